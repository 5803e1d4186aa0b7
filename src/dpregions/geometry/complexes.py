"""`Complex`: a partition of an area as integers, and the proof that it is one.

A complex is the rings of its faces on a lattice. Edges, inner vertices and what meets what follow
from the rings by fixed rules, so that nothing else need be stored or believed. `Complex.check` is
the certificate, exact, in integers: if every ring is simple and counter-clockwise, every inner
segment is used once in each direction, and the other segments form one simple ring, then the faces
tile its inside (winding numbers add, and shared segments cancel). Nothing here knows of CRS, labels
or counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.errors import GridError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ACROSS = 1 << 30
"""The most lattice steps from one side of an area to the other."""

MARGIN = 1 << 12
"""How far, in steps, rings may reach beyond the area's bounds: cells are cut a little outside."""

MOST_FACES, MOST_POINTS = 1 << 20, 1 << 23
"""The most faces, and corners of all rings together, of a complex."""

MOST_SLACK = (ACROSS >> 6) + 2
"""The most slack of a complex: the largest tolerance that cells are made with, and rounding."""

SEALED = 4
"""Steps about the area that the faces must cover for bodies in the area to lie inside them all,
whatever way their corners were rounded."""


class Ragged(NamedTuple):
    """Lists of numbers: list i is ``items[offsets[i]:offsets[i + 1]]``."""

    offsets: NDArray[np.int64]
    items: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Complex:
    """The faces of a partition as rings of lattice points, and what follows from them.

    Attributes
    ----------
    x, y : int32
        The points, in steps from the origin.
    offsets, points : int64, int32
        Face i has the ring of points ``points[offsets[i]:offsets[i + 1]]``, counter-clockwise.
    origin, step : float
        Where step 0 is, and how long a step is, in CRS units.
    area : int32 (n, 2)
        The convex ring that bodies are cut to; without rows where they are not cut.
    slack : int
        Steps by which a corner may lie inside the hull of a cell that counts as convex.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    offsets: NDArray[Any]
    points: NDArray[Any]
    origin: tuple[float, float]
    step: float
    area: NDArray[Any]
    slack: int

    def __post_init__(self) -> None:
        """Make the arrays what they are said to be, and read only."""
        kinds = {"x": "i4", "y": "i4", "offsets": "i8", "points": "i4", "area": "i4"}
        for name, kind in kinds.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        """Whether all integers are the same."""
        if not isinstance(other, Complex):
            return NotImplemented
        names = ("x", "y", "offsets", "points", "area")
        same = all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)
        numbers = ("origin", "step", "slack")
        return same and all(getattr(self, n) == getattr(other, n) for n in numbers)

    def __hash__(self) -> int:
        """Return a number that equal complexes share."""
        return hash((self.points.tobytes(), self.x.tobytes(), self.y.tobytes()))

    # -- sides: one for each corner of each ring, from it to the next -----------------------

    @property
    def n_faces(self) -> int:
        """How many faces there are."""
        return self.offsets.size - 1

    @cached_property
    def side_face(self) -> NDArray[np.int64]:
        """The face that has each side on its left."""
        return np.repeat(np.arange(self.n_faces), np.diff(self.offsets))

    @cached_property
    def side_after(self) -> NDArray[np.int64]:
        """The side after each in its ring."""
        after = np.arange(1, self.points.size + 1)
        after[self.offsets[1:] - 1] = self.offsets[:-1]
        return after

    @cached_property
    def side_end(self) -> NDArray[np.int64]:
        """The point at which each side ends; it starts at `points`."""
        return self.points[self.side_after].astype(np.int64)

    @cached_property
    def side_twin(self) -> NDArray[np.int64]:
        """The side that runs the other way between the same points, -1 on the border."""
        start, n = self.points.astype(np.int64), self.x.size
        key, back = start * n + self.side_end, self.side_end * n + start
        order = np.argsort(key, kind="stable")
        at = np.minimum(np.searchsorted(key[order], back), key.size - 1)
        return np.where(key[order][at] == back, order[at], -1)

    @cached_property
    def side_turn(self) -> NDArray[np.int64]:
        """Twice the area of the triangle at the end of each side: negative where it is reflex."""
        dx, dy = self.side_steps
        return dx * dy[self.side_after] - dy * dx[self.side_after]

    @cached_property
    def side_steps(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How far each side goes along x and along y."""
        x, y = self.x.astype(np.int64), self.y.astype(np.int64)
        return x[self.side_end] - x[self.points], y[self.side_end] - y[self.points]

    @cached_property
    def border(self) -> NDArray[np.int64]:
        """The points of the outer ring, counter-clockwise from the lowest number."""
        outer = np.flatnonzero(self.side_twin < 0)
        after = dict(zip(self.points[outer].tolist(), self.side_end[outer].tolist(), strict=True))
        ring = [min(after)]
        while (point := after[ring[-1]]) != ring[0] and len(ring) <= outer.size:
            ring.append(point)
        return np.array(ring, np.int64)

    # -- components --------------------------------------------------------------------------

    @cached_property
    def _meets(self) -> NDArray[np.bool_]:
        """Whether an edge ends at each point: on the border, or where three faces meet."""
        found = np.bincount(self.points, minlength=self.x.size) >= 3
        outer = self.side_twin < 0
        found[self.points[outer]] = True
        found[self.side_end[outer]] = True
        return found

    @cached_property
    def side_edge(self) -> NDArray[np.int64]:
        """The edge that each side is part of, -1 on the border.

        An edge is a chain of sides between the same two faces. Edges are numbered by where they
        start in the rings of the lower-numbered of their faces.
        """
        starts = self._meets[self.points]
        chain = np.cumsum(starts)
        before_first = chain == np.concatenate([[0], chain])[self.offsets[:-1]][self.side_face]
        chain = np.where(before_first, chain[self.offsets[1:] - 1][self.side_face], chain)
        inner = self.side_twin >= 0
        lower = inner & (self.side_face < self.side_face[self.side_twin])
        edge = np.full(self.points.size, -1)
        edge[lower] = np.unique(chain[lower], return_inverse=True)[1]
        higher = inner & ~lower
        edge[higher] = edge[self.side_twin[higher]]
        return edge

    @cached_property
    def n_edges(self) -> int:
        """How many inner edges there are."""
        return int(self.side_edge.max(initial=-1)) + 1

    @cached_property
    def edge_faces(self) -> NDArray[np.int64]:
        """The two faces beside each edge, int64 (n_edges, 2), the lower number first."""
        found = np.empty((self.n_edges, 2), np.int64)
        inner = np.flatnonzero(self.side_edge >= 0)
        face, other = self.side_face[inner], self.side_face[self.side_twin[inner]]
        edge = self.side_edge[inner]
        found[edge, 0], found[edge, 1] = np.minimum(face, other), np.maximum(face, other)
        return found

    @cached_property
    def edge_points(self) -> Ragged:
        """The points along each edge, from end to end."""
        lower = self.side_face < self.side_face[self.side_twin]
        sides = np.flatnonzero((self.side_edge >= 0) & lower)
        edge = self.side_edge[sides]
        # A chain may run over the end of its ring's list: its sides count on from its start.
        start = np.full(self.n_edges, -1)
        first = sides[self._meets[self.points[sides]]]
        start[self.side_edge[first]] = first
        size = np.diff(self.offsets)[self.side_face[sides]]
        order = np.lexsort(((sides - start[edge]) % size, edge))
        sides, edge = sides[order], edge[order]
        length = np.bincount(edge, minlength=self.n_edges)
        offsets = np.concatenate([[0], np.cumsum(length + 1)])
        items = np.empty(offsets[-1], np.int64)
        items[np.arange(sides.size) + edge] = self.points[sides]
        last = np.cumsum(length) - 1
        items[offsets[1:] - 1] = self.side_end[sides[last]]
        return Ragged(offsets, items)

    @cached_property
    def vertices(self) -> NDArray[np.int64]:
        """The points that are inner vertices: three or more faces meet there."""
        degree = np.bincount(self.points, minlength=self.x.size)
        outer = np.zeros(self.x.size, np.bool_)
        outer[self.points[self.side_twin < 0]] = True
        return np.flatnonzero((degree >= 3) & ~outer)

    @cached_property
    def _sides_at_vertices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        number = np.full(self.x.size, -1)
        number[self.vertices] = np.arange(self.vertices.size)
        vertex = number[self.points]
        sides = np.flatnonzero(vertex >= 0)
        sides = sides[np.argsort(vertex[sides], kind="stable")]
        sizes = np.bincount(vertex[sides], minlength=self.vertices.size)
        return np.concatenate([[0], np.cumsum(sizes)]), sides

    @cached_property
    def vertex_faces(self) -> Ragged:
        """The faces that meet at each inner vertex."""
        offsets, sides = self._sides_at_vertices
        return Ragged(offsets, self.side_face[sides])

    @cached_property
    def vertex_edges(self) -> Ragged:
        """The edges that end at each inner vertex: as many as faces."""
        offsets, sides = self._sides_at_vertices
        return Ragged(offsets, self.side_edge[sides])

    @property
    def n_vertices(self) -> int:
        """How many inner vertices there are."""
        return self.vertices.size

    @property
    def n_components(self) -> int:
        """How many faces, inner edges and inner vertices there are together."""
        return self.n_faces + self.n_edges + self.n_vertices

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        """What each component is: 0 a face, 1 an edge, 2 a vertex."""
        sizes = (self.n_faces, self.n_edges, self.n_vertices)
        return np.repeat(np.arange(3, dtype=np.int8), sizes)

    # -- convexity -----------------------------------------------------------------------------

    @cached_property
    def is_strict(self) -> bool:
        """Whether no face is reflex, and bodies as they are counted lie in a convex union.

        Then every body has F - E + V = 1, by the lemma alone.
        """
        if (self.side_turn < 0).any():
            return False
        return self.is_sealed if self.area.size else bool((self.border_turns >= 0).all())

    @cached_property
    def is_convex(self) -> bool:
        """Whether faces, and what bodies are cut to, are convex but for `slack` steps of rounding.

        Where bodies are not cut, that is the union of the faces.
        """
        import shapely

        reflex = np.unique(self.side_face[self.side_turn < 0])
        rings = [self.ring(face) for face in reflex.tolist()]
        if not self.area.size and (self.border_turns < 0).any():
            rings.append(self.border)
        for ring in rings:
            xy = np.stack([self.x[ring], self.y[ring]], axis=-1).astype(np.float64)
            hull = shapely.get_exterior_ring(shapely.MultiPoint(xy).convex_hull)
            if shapely.distance(shapely.points(xy), hull).max() > self.slack:
                return False
        return True

    def ring(self, face: int) -> NDArray[Any]:
        """Return the points of one face's ring."""
        return self.points[self.offsets[face] : self.offsets[face + 1]]

    @cached_property
    def border_turns(self) -> NDArray[np.int64]:
        """Twice the area of the triangle at each corner of the outer ring."""
        ring = self.border
        return _turns(self.x[ring].astype(np.int64), self.y[ring].astype(np.int64))

    @cached_property
    def is_sealed(self) -> bool:
        """Whether no side of the outer ring comes nearer to the area than `SEALED` steps.

        A side is away from it when it lies beyond the line of one side of the area, or has the
        whole area on its left.
        """
        x, y = self.x.astype(np.int64), self.y.astype(np.int64)
        ring, (ax, ay) = self.border, self.area.T.astype(np.int64)
        bx, by = np.roll(ax, -1) - ax, np.roll(ay, -1) - ay
        far = -SEALED * (np.abs(bx) + np.abs(by))
        away = True
        for chunk in np.array_split(np.arange(ring.size), ring.size * ax.size // (1 << 20) + 1):
            u, v = ring[chunk, None], np.roll(ring, -1)[chunk, None]
            beyond = [bx * (y[p] - ay) - by * (x[p] - ax) <= far for p in (u, v)]
            dx, dy = x[v] - x[u], y[v] - y[u]
            left = dx * (ay - y[u]) - dy * (ax - x[u]) >= SEALED * (np.abs(dx) + np.abs(dy))
            away &= bool(((beyond[0] & beyond[1]).any(axis=1) | left.all(axis=1)).all())
        # It is round the area, not beside it: an odd number of its sides lie right of a corner.
        x0, y0 = x[ring], y[ring]
        x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
        cross = (x1 - x0) * (ay[0] - y0) - (y1 - y0) * (ax[0] - x0)
        up, down = (y0 <= ay[0]) & (ay[0] < y1), (y1 <= ay[0]) & (ay[0] < y0)
        return away and int(((up & (cross > 0)) | (down & (cross < 0))).sum()) % 2 == 1

    # -- the certificate -----------------------------------------------------------------------

    def check(self) -> None:
        """Refuse what does not tile the inside of one simple ring. Trusts nothing."""
        self._check_numbers()
        start, n = self.points.astype(np.int64), self.x.size
        at = np.sort(self.x.astype(np.int64) * (4 * ACROSS) + self.y)
        if (np.diff(at) == 0).any() or np.bincount(start, minlength=n).min() == 0:
            raise _refusal("a point is there twice, or no face has it")
        if _repeated(self.side_face * n + start) or _repeated(start * n + self.side_end):
            raise _refusal("a face passes a point twice, or two faces lie on one side of an edge")
        outer = np.flatnonzero(self.side_twin < 0)
        ends = np.sort(start[outer]), np.sort(self.side_end[outer])
        if not outer.size or _repeated(ends[0]) or not np.array_equal(*ends):
            raise _refusal("the border is not one ring")
        if self.border.size != outer.size:
            raise _refusal("the border is more than one ring")
        self._check_rings()
        if self.n_faces - self.n_edges + self.n_vertices != 1:
            raise _refusal("faces - edges + vertices is not 1")

    def _check_numbers(self) -> None:
        """Refuse what has no meaning; everything computed afterwards stays in range."""
        n, corners = self.x.size, self.points.size
        if not (self.x.ndim == self.y.ndim == self.points.ndim == self.offsets.ndim == 1):
            raise _refusal("its lists are not lists")
        if self.y.size != n or not 3 <= n <= corners <= MOST_POINTS:
            raise _refusal("it has no points, or too many")
        n_faces, ends = self.offsets.size - 1, self.offsets
        if not 1 <= n_faces <= MOST_FACES or ends[0] != 0 or ends[-1] != corners:
            raise _refusal("it has no faces, or too many")
        if ends.min() < 0 or ends.max() > corners or np.diff(ends).min() < 3:
            raise _refusal("a face has fewer than three corners")
        if self.points.min() < 0 or self.points.max() >= n:
            raise _refusal("a corner is not one of its points")
        for v in (self.x, self.y):
            if v.min() < -MARGIN or v.max() > ACROSS + MARGIN:
                raise _refusal("a point lies outside the lattice")
        if not 0 <= self.slack <= MOST_SLACK:
            raise _refusal("its slack is not a number of steps")
        numbers = (*self.origin, self.step, ACROSS * self.step)
        if not all(map(math.isfinite, numbers)) or self.step <= 0:
            raise _refusal("its lattice is not one")
        if self.area.size:
            self._check_area()

    def _check_area(self) -> None:
        if self.area.ndim != 2 or self.area.shape[1] != 2 or not 3 <= len(self.area) <= 1 << 16:
            raise _refusal("its area is not a ring")
        x, y = self.area.T.astype(np.int64)
        if self.area.min() < -MARGIN or self.area.max() > ACROSS + MARGIN:
            raise _refusal("its area lies outside the lattice")
        if (_turns(x, y) <= 0).any() or _minima(x, y) != 1:
            raise _refusal("its area is not a convex ring")

    def _check_rings(self) -> None:
        import shapely

        dx, dy = self.side_steps
        on_x, on_y = dx[self.side_after], dy[self.side_after]
        back = (self.side_turn == 0) & (dx * on_x + dy * on_y <= 0)
        low = ((dx < 0) | ((dx == 0) & (dy < 0))) & ((on_x > 0) | ((on_x == 0) & (on_y > 0)))
        minima = np.bincount(self.side_face[low], minlength=self.n_faces)
        odd = minima != 1
        odd[self.side_face[(self.side_turn < 0) | back]] = True
        rings = [self.ring(face) for face in np.flatnonzero(odd).tolist()]
        ends = self.x[self.border].astype(np.int64), self.y[self.border].astype(np.int64)
        if _turns(*ends).min() < 0 or _minima(*ends) != 1:
            rings.append(self.border)
        for ring in rings:
            x, y = self.x[ring].astype(np.int64), self.y[ring].astype(np.int64)
            xy = np.stack([x, y], axis=-1).astype(np.float64)
            # The sum wraps and comes back: twice an area on the lattice fits in 64 bits.
            twice = (x * np.roll(y, -1) - y * np.roll(x, -1)).sum()
            if twice <= 0 or not shapely.Polygon(xy).is_valid:
                raise _refusal("a ring crosses or touches itself, or is clockwise")


def _turns(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cross product at each corner of a ring."""
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    return np.roll(dx, 1) * dy - np.roll(dy, 1) * dx


def _minima(x: NDArray[np.int64], y: NDArray[np.int64]) -> int:
    """Return how often a ring turns back at its left: once, if it goes round once."""
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    ax, ay = np.roll(dx, 1), np.roll(dy, 1)
    return int((((ax < 0) | ((ax == 0) & (ay < 0))) & ((dx > 0) | ((dx == 0) & (dy > 0)))).sum())


def _repeated(values: NDArray[np.int64]) -> bool:
    return bool((np.diff(np.sort(values)) == 0).any())


def _refusal(why: str) -> GridError:
    return GridError(f"this is not a partition of an area: {why}")
