"""Which components bound which: what LinProg, Round and the constraints need of a partition.

An edge lies below its two faces, a vertex below its edges and their faces. Owns the two ways to say
so behind one interface, `Order`: the places of a doubled array (grids; nothing is stored) and lists
(any partition). It holds no counts and no geometry, and nothing here is secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpregions.errors import InputError
from dpregions.geometry.doubled import doubled_array
from dpregions.geometry.partition import Partition
from dpregions.mechanisms.paper import consistency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from dpregions.geometry.domain import Domain


class Order(Protocol):
    """The order V <= E <= F of a partition's counts. Each method refuses counts that do not fit."""

    def checked(self, counts: ArrayLike) -> NDArray[Any]:
        """Return counts as int64 or float64 in the order's shape, or say why they cannot be."""

    def l1_range(self, noisy: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the lowest and the highest of all L1 fits."""

    def fit_l1(self, noisy: ArrayLike) -> NDArray[Any]:
        """Return the mean of the lowest and the highest L1 fit, for integers its floor."""

    def fit_linf(self, noisy: ArrayLike) -> NDArray[np.float64]:
        """Return the fit with the least largest change."""

    def violations(self, counts: ArrayLike, *, percent: bool = False) -> dict[str, Any]:
        """Return how many constraints of each family C1, C2, C3 are broken, or what percentage."""


class DoubledOrder:
    """The order of doubled arrays of any size: even rows and columns lie above odd ones."""

    def checked(self, counts: ArrayLike) -> NDArray[Any]:
        """Return counts as a doubled array."""
        return doubled_array(counts)

    def l1_range(self, noisy: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return `isotonic.l1_range`."""
        from dpregions.mechanisms.paper.isotonic import l1_range

        return l1_range(noisy)

    def fit_l1(self, noisy: ArrayLike) -> NDArray[Any]:
        """Return `isotonic.fit_l1`."""
        from dpregions.mechanisms.paper.isotonic import fit_l1

        return fit_l1(noisy)

    def fit_linf(self, noisy: ArrayLike) -> NDArray[np.float64]:
        """Return `isotonic.fit_linf`."""
        from dpregions.mechanisms.paper.isotonic import fit_linf

        return fit_linf(noisy)

    def violations(self, counts: ArrayLike, *, percent: bool = False) -> dict[str, Any]:
        """Return `consistency.violations`."""
        return consistency.violations(counts, percent=percent)


DOUBLED = DoubledOrder()


@dataclass(frozen=True, eq=False, repr=False)
class ListedOrder:
    """The order of a partition's components by lists: faces first, then edges, then vertices.

    Lists are pairs of offsets and members: component u has ``members[offsets[u]:offsets[u + 1]]``.
    """

    above: tuple[NDArray[np.int64], NDArray[np.int64]]
    """All components above each: of an edge its two faces, of a vertex its edges and their faces.

    All of them, not only the next: a conflict may be between a vertex and a face alone.
    """
    below: tuple[NDArray[np.int64], NDArray[np.int64]]
    """The same relation the other way round."""
    edge_faces: NDArray[np.int64]
    """The two faces of each edge."""
    vertex_edges: tuple[NDArray[np.int64], NDArray[np.int64]]
    """The edges that end at each vertex, as numbers among the edges."""

    @classmethod
    def of(
        cls,
        n_faces: int,
        edge_faces: ArrayLike,
        vertex_edges: tuple[ArrayLike, ArrayLike],
    ) -> ListedOrder:
        """Return the order of a partition.

        Parameters
        ----------
        n_faces : int
            How many faces there are.
        edge_faces : int array (E, 2)
            The two faces of each edge. There may be no edge.
        vertex_edges : pair of int arrays
            Offsets (V + 1) and members: the edges that end at each vertex, numbered from 0 among
            the edges. There may be no vertex.

        Examples
        --------
        Three cells about one vertex, and a vertex above everything around it, which gives way:

        >>> order = ListedOrder.of(3, [[0, 1], [1, 2], [2, 0]], ([0, 3], [0, 1, 2]))
        >>> order.fit_l1([5, 5, 4, 3, 2, 3, 9])
        array([5, 5, 4, 3, 2, 3, 2])
        >>> order.violations([5, 5, 4, 3, 2, 3, 9])
        {'C1': 0, 'C2': 3, 'C3': 0}
        """
        faces = np.asarray(edge_faces, np.int64).reshape(-1, 2)
        offsets, edges = (np.asarray(part, np.int64) for part in vertex_edges)
        _refuse_broken_lists(n_faces, faces, offsets, edges)
        n_vertices = offsets.size - 1
        edge = n_faces + np.arange(len(faces))
        corner = np.repeat(np.arange(n_vertices), np.diff(offsets))
        # An edge's faces lie about its ends, so no list of a vertex's faces is asked for: one that
        # lacked a face would make the fits wrong in silence. Most faces come up twice.
        corners, around = np.divmod(
            np.unique(np.repeat(corner, 2) * n_faces + faces[edges].ravel()), n_faces
        )
        first = n_faces + len(faces)
        lower = np.concatenate([np.repeat(edge, 2), first + corner, first + corners])
        upper = np.concatenate([faces.ravel(), n_faces + edges, around])
        n = first + n_vertices
        return cls(_lists(n, lower, upper), _lists(n, upper, lower), faces, (offsets, edges))

    @property
    def n_components(self) -> int:
        """How many faces, edges and vertices there are."""
        return self.above[0].size - 1

    @property
    def n_constraints(self) -> dict[str, int]:
        """How many constraints of each family there are."""
        return {
            "C1": self.edge_faces.size,
            "C2": self.vertex_edges[1].size,
            "C3": self.vertex_edges[0].size - 1,
        }

    def checked(self, counts: ArrayLike) -> NDArray[Any]:
        """Return counts as one row of numbers, one for each component."""
        return doubled_array(counts, (self.n_components,))

    def l1_range(self, noisy: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the lowest and the highest of all L1 fits."""
        from dpregions.mechanisms.paper.isotonic import listed_l1_range

        return listed_l1_range(self.checked(noisy), self.above, self.below)

    def fit_l1(self, noisy: ArrayLike) -> NDArray[Any]:
        """Return the mean of the lowest and the highest L1 fit, for integers its floor."""
        from dpregions.mechanisms.paper.isotonic import middle_fit

        return middle_fit(*self.l1_range(noisy))

    def fit_linf(self, noisy: ArrayLike) -> NDArray[np.float64]:
        """Return the fit with the least largest change."""
        from dpregions.mechanisms.paper.isotonic import listed_linf

        return listed_linf(self.checked(noisy), self.above, self.below)

    def violations(self, counts: ArrayLike, *, percent: bool = False) -> dict[str, Any]:
        """Return how many constraints of each family C1, C2, C3 are broken, or what percentage."""
        x = self.checked(counts)
        n_faces = x.size - len(self.edge_faces) - (self.vertex_edges[0].size - 1)
        offsets, members = self.vertex_edges
        edge, vertex = np.split(x[n_faces:], [len(self.edge_faces)])
        face = x[self.edge_faces]
        # Each place about a vertex is a face between two edges, so its edges' faces are twice its
        # faces, also where one face lies about it twice. Edges are added in the order of their
        # faces: where C1 holds, the rounded sum of floats is not larger.
        faces = np.add.reduceat(face.sum(axis=1)[members], offsets[:-1])
        edges = np.add.reduceat((edge + edge)[members], offsets[:-1])
        broken = {
            "C1": int((edge[:, None] > face).sum()),
            "C2": int((np.repeat(vertex, np.diff(offsets)) > edge[members]).sum()),
            "C3": int((faces - edges + (vertex + vertex) < 0).sum()),
        }
        return consistency.in_percent(broken, self.n_constraints) if percent else broken


def _lists(
    n: int, of: NDArray[np.int64], members: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs as lists: the members of each of n components, in the pairs' order."""
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(of, minlength=n), out=offsets[1:])
    return offsets, members[np.argsort(of, kind="stable")]


def _refuse_broken_lists(
    n_faces: int, faces: NDArray[np.int64], offsets: NDArray[np.int64], edges: NDArray[np.int64]
) -> None:
    """Refuse lists that name what does not exist, or that no partition has."""
    if faces.size and (faces.min() < 0 or faces.max() >= n_faces):
        raise InputError(f"edge_faces must be between 0 and {n_faces - 1}, the last of the faces")
    if (faces[:, 0] == faces[:, 1]).any():
        at = int(np.flatnonzero(faces[:, 0] == faces[:, 1])[0])
        raise InputError(f"edge {at} has face {faces[at, 0]} on both sides: leave it out")
    if edges.size and (edges.min() < 0 or edges.max() >= len(faces)):
        raise InputError(f"vertex_edges must be between 0 and {len(faces) - 1}, the last edge")
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != edges.size:
        raise InputError(f"the offsets of vertex_edges must run from 0 to {edges.size}")
    if (np.diff(offsets) < 1).any():
        at = int(np.flatnonzero(np.diff(offsets) < 1)[0])
        raise InputError(f"vertex {at} has no edges: leave it out")


def order_of(grid: Domain) -> Order:
    """Return the order of the components of a domain."""
    if not isinstance(grid, Partition):
        return DOUBLED
    c = grid.complex
    return ListedOrder.of(c.n_faces, c.edge_faces, c.vertex_edges)
