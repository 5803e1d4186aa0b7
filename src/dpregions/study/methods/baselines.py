"""The simple private methods that a mechanism must beat.

Study on exact data: not a private release. Each baseline is what a careful analyst would do
without Euler histograms or footprints, at the same epsilon and neighbour relation, and none
is told the number of regions. All answer the same question: ``answers(rectangles)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.privacy.budget import PrivacyUnit

if TYPE_CHECKING:
    from dpregions.arrays import Ints, Numbers
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.planning.exact_data import ExactData
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource


class CellSums:
    """Answers of one number a cell, added up."""

    def __init__(self, cells: Numbers) -> None:
        self._table = _below(cells)

    def answers(self, rectangles: Ints) -> Numbers:
        """Return the sum over each rectangle's cells."""
        row0, row1, col0, col1 = rectangles
        t = self._table
        return t[row1 + 1, col1 + 1] - t[row0, col1 + 1] - t[row1 + 1, col0] + t[row0, col0]


class CornerCounts:
    """Answers of four histograms: where the corners of bounding boxes are.

    A box misses a rectangle's rows when it begins above or ends below them, never both. So
    "it meets them" is "begins at or below row1" less "ends below row0", likewise for columns,
    and the product of the two is four counts of corners in a quadrant. Exact without noise.
    Corners come in the order low left, low right, up left, up right.
    """

    def __init__(self, *corners: Numbers) -> None:
        self._tables = [_below(corner) for corner in corners]

    def answers(self, rectangles: Ints) -> Numbers:
        """Return how many bounding boxes meet each rectangle."""
        row0, row1, col0, col1 = rectangles
        low_left, low_right, up_left, up_right = self._tables
        begin = low_left[row1 + 1, col1 + 1] - low_right[row1 + 1, col0]
        return begin - up_left[row0, col1 + 1] + up_right[row0, col0]


def cell_counts(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """Regions touching each cell: a region over several cells is counted several times."""
    rows, cols = (min(data.bound.k + 1, n) for n in data.grid.shape)
    reach = rows * cols * PrivacyUnit(neighbours).sensitivity_factor
    return CellSums(noise.add(data.counts[::2, ::2], epsilon=budget, sensitivity=reach))


def centroid_points(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """One point a region on the uniform grid: a region that only reaches in is missed."""
    row, col = data.centres
    points = _tally(row, col, data.grid)
    reach = PrivacyUnit(neighbours).sensitivity_factor
    return CellSums(noise.add(points, epsilon=budget, sensitivity=reach))


def corner_histograms(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CornerCounts:
    """Four corners of each region's bounding box, a quarter of epsilon each."""
    low, up, left, right = data.boxes
    reach = PrivacyUnit(neighbours).sensitivity_factor
    corners = [(low, left), (low, right), (up, left), (up, right)]
    return CornerCounts(
        *(
            noise.add(_tally(*corner, data.grid), epsilon=share, sensitivity=reach)
            for corner, share in zip(corners, budget.split(1, 1, 1, 1), strict=True)
        )
    )


def _tally(row: Ints, col: Ints, grid: Grid) -> Ints:
    cells = np.bincount(row * grid.n_cols + col, minlength=grid.n_rows * grid.n_cols)
    return cells.reshape(grid.shape)


def _below(cells: Numbers) -> Numbers:
    """Return the sums over all cells below and left of each corner of the grid."""
    return np.pad(cells.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
