"""Intervals that lean on what was measured alone: nothing is thought of regions inside a part.

A region is in one measured part. All that is known of it is that its footprint is centred in the
part's block and of one of its sizes. Either any such region touches a rectangle, or some may, or
none can. So the true count lies between two sums of true counts of parts, whatever regions do, and
of these sums the noisy counts give unbiased estimates whose variance is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.errors import Argument, QueryError, QueryNumber
from dpregions.mechanisms.footprint.border import nodes_of
from dpregions.mechanisms.least_squares import sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Bools, Floats, Ints
    from dpregions.geometry.cells import Selection
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.measuring import Measured

ROWS, COLS = 0, 1
BEFORE, AFTER = 0, 1
LEAST, MOST = 0, 1

_ON_A_LINE = 1e-9
"""Part of a cell by which a side may be off a line and still be on it."""


class Bounds(NamedTuple):
    """Of rectangles, an estimate and its standard deviation from noise: of each of two sums."""

    sure: Floats
    """Regions of parts in which all touch the inner rectangle."""
    sure_deviation: Floats
    possible: Floats
    """Regions of parts in which any may touch the outer rectangle."""
    possible_deviation: Floats


def cells_around(selection: Selection, grid: Grid) -> tuple[Ints, Ints]:
    """Return the cells wholly inside each rectangle, and those that it touches; refuse others.

    Both as ``row0, row1, col0, col1``; no cell where a last one is before its first.
    """
    import shapely

    inner, outer = selection.ranges.astype(np.int64), selection.ranges.astype(np.int64)
    odd = list(selection.masks)
    for i, shape in selection.shapes.items():
        xmin, ymin, xmax, ymax = shapely.bounds(shape)
        # Of a collection parts may overlap, so that its area says nothing.
        whole = shapely.area(shapely.unary_union(shape))
        if not math.isclose(whole, (xmax - xmin) * (ymax - ymin), rel_tol=1e-12):
            odd.append(i)
            continue
        # What is cut at the area, or nearly on a line of the grid, is on it.
        low = np.array([ymin - grid.ymin, xmin - grid.xmin]) / grid.cell_size
        high = np.array([ymax - grid.ymin, xmax - grid.xmin]) / grid.cell_size
        inner[[0, 2], i] = np.ceil(low - _ON_A_LINE)
        inner[[1, 3], i] = np.floor(high + _ON_A_LINE) - 1
    if odd:
        raise QueryError(
            Argument("detail"),
            " 'worst' is about rectangles, and ",
            QueryNumber(min(odd)),
            " is none: ask one around it for the upper end, and one inside it for the lower",
        )
    return inner, outer


def reaches(filed: Ints, shape: tuple[int, int]) -> Ints:
    """Return how far footprints that are filed under a size reach from its centre cell.

    By that size's height and width, axis, before or after it, least and most. `filed` is the size
    that each footprint is filed under: its own, or a smaller one at the same corner.
    """
    side = len(filed) - 1
    own = np.indices(filed.shape[:2])[:, 1 : shape[0] + 1, 1 : shape[1] + 1].reshape(2, -1)
    under = filed[own[ROWS], own[COLS]].T
    before = (under - 1) // 2
    found = np.zeros((side + 1, side + 1, 2, 2, 2), np.int64)
    found[..., LEAST], found[..., MOST] = side, -side
    for axis in (ROWS, COLS):
        for end, reach in ((BEFORE, before[axis]), (AFTER, own[axis] - 1 - before[axis])):
            np.minimum.at(found[:, :, axis, end, LEAST], tuple(under), reach)
            np.maximum.at(found[:, :, axis, end, MOST], tuple(under), reach)
    return found


def reaches_of_groups(reach: Ints, height: Ints, width: Ints, group: Ints, n_groups: int) -> Ints:
    """Return the same of groups of sizes."""
    of_size = reach[height, width]
    found = np.empty((n_groups, *reach.shape[2:]), np.int64)
    found[..., LEAST], found[..., MOST] = len(reach), -len(reach)
    np.minimum.at(found[..., LEAST], group, of_size[..., LEAST])
    np.maximum.at(found[..., MOST], group, of_size[..., MOST])
    return found


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A tree of measured parts, and where footprints of its leaves may begin and end."""

    parent: Ints
    """Of each node; of the root -1."""
    generations: Sequence[slice]
    """Nodes as many steps below the root."""
    spread: Floats
    """The variance of what is known of each node from itself and below (`gathered`)."""
    leaves: Ints
    fit: Floats
    """The signed least squares counts of the leaves."""
    begin: NDArray[np.int64]
    """The first row and column of footprints of each leaf: axis, least and most, leaf."""
    end: NDArray[np.int64]
    """The last ones."""

    @classmethod
    def of(
        cls,
        parent: Ints,
        generations: Sequence[slice],
        spread: Floats,
        fit: Floats,
        blocks: tuple[Ints, Ints, Ints],
        reach: Ints,
        shape: tuple[int, int],
    ) -> WorstCase:
        """Return the tree of nodes with their signed fit, block (row, column, side) and reach."""
        inner = np.zeros(len(parent), np.bool_)
        inner[parent[1:]] = True
        leaves = np.flatnonzero(~inner)
        row, col, side = (np.asarray(value, np.int64)[leaves] for value in blocks)
        begin, end = np.empty((2, 2, 2, len(leaves)), np.int64)
        for axis, (first, n) in enumerate(zip((row, col), shape, strict=True)):
            last = np.minimum(first + side, n) - 1
            of_axis = reach[leaves, axis]
            begin[axis, LEAST] = first - of_axis[:, BEFORE, MOST]
            begin[axis, MOST] = last - of_axis[:, BEFORE, LEAST]
            end[axis, LEAST] = first + of_axis[:, AFTER, LEAST]
            end[axis, MOST] = last + of_axis[:, AFTER, MOST]
            # Footprints are rows and columns of the area alone.
            np.clip(begin[axis], 0, n - 1, out=begin[axis])
            np.clip(end[axis], 0, n - 1, out=end[axis])
        return cls(parent, generations, spread, leaves, fit[leaves], begin, end)

    def touching(self, row0: int, row1: int, col0: int, col1: int) -> tuple[Bools, Bools]:
        """Return the leaves in which all regions touch a rectangle of cells, and in which any may.

        A region touches each row and each column of its footprint. So one whose rows all are the
        rectangle's touches it where their columns meet.
        """
        within, meet, may = [], [], []
        for axis, (first, last) in enumerate(((row0, row1), (col0, col1))):
            begin, end = self.begin[axis], self.end[axis]
            within.append((begin[LEAST] >= first) & (end[MOST] <= last))
            meet.append((begin[MOST] <= last) & (end[LEAST] >= first))
            may.append((begin[LEAST] <= last) & (end[MOST] >= first))
        if row1 < row0 or col1 < col0:  # no cell
            none = np.zeros(len(self.leaves), np.bool_)
            return none, none
        sure = (within[ROWS] & meet[COLS]) | (within[COLS] & meet[ROWS])
        return sure, may[ROWS] & may[COLS]

    def bounds(self, inner: Ints, outer: Ints) -> Bounds:
        """Return the two sums of rectangles; ``row0, row1, col0, col1`` of cells, a column each."""
        found = np.empty((4, outer.shape[1]))
        for i, (within, around) in enumerate(zip(inner.T.tolist(), outer.T.tolist(), strict=True)):
            sure, may = self.touching(*within)[0], self.touching(*around)[1]
            found[:, i] = *self._sum_of(sure), *self._sum_of(may)
        return Bounds(*found)

    def _sum_of(self, which: Bools) -> tuple[float, float]:
        """Return the estimate of all regions in some leaves, and its standard deviation."""
        return float(self.fit[which].sum()), float(np.sqrt(self._variance(which)))

    def _variance(self, which: Bools) -> float:
        """Return the variance of the sum of some leaves' fits, from the bottom up.

        Siblings' own estimates vary independently; what their parent's fit differs from their sum
        is handed out in proportion to their variances.
        """
        weight, rest = np.zeros((2, len(self.parent)))
        weight[self.leaves] = which
        for step in reversed(self._steps):
            spread = self.spread[step.part]
            carried = weight[step.part] * spread
            mean = sums(step.up, carried, step.n)[step.inner] / step.whole
            own = sums(step.up, rest[step.part] + weight[step.part] * carried, step.n)[step.inner]
            above = step.start + step.inner
            weight[above], rest[above] = mean, own - mean**2 * step.whole
        return max(float(rest[0] + weight[0] ** 2 * self.spread[0]), 0.0)

    @cached_property
    def _steps(self) -> list[_Step]:
        found = []
        for above, part in zip(self.generations, self.generations[1:], strict=False):
            up, n = self.parent[part] - above.start, above.stop - above.start
            inner = np.flatnonzero(np.bincount(up, minlength=n))
            whole = sums(up, self.spread[part], n)[inner]
            found.append(_Step(part, above.start, up, n, inner, whole))
        return found


class _Step(NamedTuple):
    """A generation, the one above it, and what of that has children."""

    part: slice
    start: int
    """The first node above."""
    up: Ints
    """The parent of each node, counted from there."""
    n: int
    inner: Ints
    whole: Floats
    """The sum of the variances below each of these."""


def worst_of(measured: Measured, fit: Floats) -> WorstCase:
    """Return the worst case of levels that were measured; `fit` are signed counts of buckets."""
    tree, finest, buckets = measured.hierarchy, measured.finest, measured.hierarchy.buckets
    parent, nodes, groups = nodes_of(measured, np.zeros(tree.sizes[finest]), fit)
    letters, shape = np.concatenate(groups), (buckets.n_rows, buckets.n_cols)
    reach = reaches_of_groups(
        reaches(buckets.filed, shape),
        buckets.heights[letters],
        buckets.widths[letters],
        np.repeat(np.arange(len(groups)), [len(group) for group in groups]),
        len(groups),
    )
    ends = np.cumsum([0, *tree.sizes[: finest + 1]]).tolist()
    generations = [slice(start, stop) for start, stop in pairwise(ends)]
    blocks = nodes["row"], nodes["col"], nodes["side"]
    reach = reach[nodes["group"]]
    return WorstCase.of(parent, generations, nodes["spread"], nodes["fit"], blocks, reach, shape)
