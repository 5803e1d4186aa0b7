"""Queries as drawn -> the chance that a body in each bucket touches them: the share of witnesses.

Public: it follows from the catalogue and the query alone. Buckets whose footprint the query covers
have chance 1, those that it does not meet 0; only at its border are witnesses laid on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Outlines
from dpregions.mechanisms.footprint.witnesses import (
    OF_A_SIZE,
    Patterns,
    Witnesses,
    ragged,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.buckets import Buckets

_POLYGON, _COLLECTIONS = 3, (4, 5, 6, 7)
_LEAST_OF_A_PATTERN = 2


class Chances(NamedTuple):
    """The buckets near a query, the chance that a body in each touches it, and the least chance.

    The least is of witnesses shrunk as far as they keep their patterns: real bodies may be far
    smaller than the catalogue's. On the grid's lines both are the same.
    """

    which: NDArray[np.int64]
    chance: NDArray[np.float64]
    least: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WitnessSample:
    """Witnesses of a grid's buckets, to be laid on queries; made once.

    Where letters are sizes, all their patterns take part but not all witnesses of each.
    """

    buckets: Buckets
    letters: NDArray[np.int64]
    weights: NDArray[np.float64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    xy: NDArray[np.float64]
    small: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, buckets: Buckets) -> WitnessSample:
        """Return the sample of a grid's buckets."""
        c = buckets.catalogue
        n = np.diff(c.starts)
        if buckets.alphabet == "patterns":
            first, last = buckets.patterns, buckets.patterns + 1
            weights, taken = np.ones(len(c)), n
        else:
            h, w = buckets.heights, buckets.widths
            first, last, weights = c.first[h, w], c.last[h, w], c.weights
            alike = (c.last - c.first)[c.heights, c.widths]
            taken = np.minimum(np.maximum(-(-OF_A_SIZE // alike), _LEAST_OF_A_PATTERN), n)
        end = np.cumsum(taken)
        begin = end - taken
        pattern = np.repeat(np.arange(len(c)), taken)
        rank = np.arange(len(pattern)) - begin[pattern]
        # In the middle of each of so many equal parts of the curve that they lie along.
        which = c.starts[pattern] + (2 * rank + 1) * n[pattern] // (2 * taken[pattern])
        vertex, offsets = ragged(c.offsets, which)
        chosen = Witnesses(pattern, Outlines(c.xy[vertex], offsets))
        patterns = Patterns(c.side, 0, c.heights, c.widths, c.spans)
        xy, small = (
            (steps + 0.5) / STEPS for steps in (chosen.outlines.xy, chosen.least(patterns))
        )
        letters = np.stack([buckets.heights, buckets.widths, first, last], axis=-1)
        return cls(buckets, letters, weights, begin, end, xy, small, offsets)

    def typical(self, letter: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the corners of n witnesses of a letter, in cells, and where each one's start.

        Dealt by the weights of patterns, evenly: each stands for one part in n.
        """
        _, _, first, last = self.letters[letter]
        upper = np.cumsum(self.weights[first:last])
        at = (np.arange(n) + 0.5) / n * upper[-1]
        pattern = np.minimum(np.searchsorted(upper, at), last - first - 1)
        within = (at - (upper - self.weights[first:last])[pattern]) / self.weights[first + pattern]
        begin, end = self.begin[first + pattern], self.end[first + pattern]
        which = np.minimum(begin + ((end - begin) * within).astype(np.int64), end - 1)
        vertex, offsets = ragged(self.offsets, which)
        return self.xy[vertex], offsets

    def chances(self, shape: Any, grid: Grid) -> Chances:
        """Return the chances of a valid geometry that reaches into the area."""
        from dpregions.mechanisms.footprint.chance_kernel import bucket_chances, marked_cells

        edges, n_ring = _edges(shape, grid)
        low = np.floor(edges.reshape(-1, 2).min(axis=0) - 1e-9)
        high = np.floor(edges.reshape(-1, 2).max(axis=0) + 1e-9)
        last = np.array([grid.n_cols - 1, grid.n_rows - 1])
        c0, r0 = np.clip(low, 0, last).astype(np.int64)
        c1, r1 = np.clip(high, 0, last).astype(np.int64)
        marks = (*marked_cells(edges, n_ring, r0, r1, c0, c1), r0, c0)
        b = self.buckets
        found = bucket_chances(
            self.letters, b.starts, b.n_rows, b.n_cols, self.weights, b.catalogue.spans, self.begin,
            self.end, self.xy, self.small, self.offsets, (edges, n_ring), marks,
        )  # fmt: skip
        return Chances(*found)


def _edges(shape: Any, grid: Grid) -> tuple[NDArray[np.float64], int]:
    """Return a geometry's edges, in cells from the grid's corner, and how many are of rings.

    Those of rings come first. A point is an edge of no length.
    """
    import shapely

    parts = np.array([shape], np.object_)
    mixed = shapely.get_type_id(shape) == 7
    while np.isin(shapely.get_type_id(parts), _COLLECTIONS).any():
        parts = shapely.get_parts(parts)
    parts = parts[~shapely.is_empty(parts)]
    area = shapely.get_type_id(parts) == _POLYGON
    polygons = parts[area]
    if mixed and len(polygons) > 1:  # those of a collection may overlap
        polygons = shapely.get_parts(shapely.union_all(polygons))
    found, n_ring = [], 0
    for lines in (shapely.get_rings(polygons), parts[~area]):
        xy, owner = shapely.get_coordinates(lines, return_index=True)
        same = owner[1:] == owner[:-1]
        alone = np.bincount(owner, minlength=len(lines))[owner] == 1
        found += [np.hstack([xy[:-1][same], xy[1:][same]]), np.hstack([xy[alone], xy[alone]])]
        n_ring = n_ring or len(found[0])
    edges = np.concatenate(found) - [grid.xmin, grid.ymin] * 2
    return np.ascontiguousarray(edges / grid.cell_size), n_ring
