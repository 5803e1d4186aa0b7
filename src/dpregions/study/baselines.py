"""Exact data of a study, and the simple private methods that a mechanism must beat.

Study on exact data: not a private release. Each baseline is what a careful analyst would do
without Euler histograms or footprints, at the same epsilon and neighbour relation, and none
is told the number of regions. All answer the same question: ``answers(rectangles)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from dpregions.geometry.cells import signed_table
from dpregions.geometry.grid import Grid
from dpregions.geometry.lattice import STEPS
from dpregions.intake.regions import Bound, Outlines, geometry_batches, outlines_of, read_regions
from dpregions.mechanisms.footprint.buckets import Footprints
from dpregions.privacy.budget import Budget, Neighbours, NoiseSource, sensitivity_factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABEL = "study on exact data: not a private release"


class Answering(Protocol):
    """Anything that counts regions in rectangles ``row0, row1, col0, col1`` of cells."""

    def answers(self, rectangles: NDArray[np.int64]) -> NDArray[Any]:
        """Return one count a rectangle."""


@dataclass(frozen=True, eq=False)
class EulerAnswers:
    """Answers of an Euler histogram, exact or released."""

    counts: NDArray[Any]

    @cached_property
    def _table(self) -> NDArray[Any]:
        return signed_table(self.counts)

    def answers(self, rectangles: NDArray[np.int64]) -> NDArray[Any]:
        """Return F - E + V of each rectangle."""
        row0, row1, col0, col1 = rectangles
        top, bottom, left, right = 2 * row1 + 1, 2 * row0, 2 * col0, 2 * col1 + 1
        t = self._table
        return t[top, right] - t[bottom, right] - t[top, left] + t[bottom, left]


class CellSums:
    """Answers of one number a cell, added up."""

    def __init__(self, cells: NDArray[Any]) -> None:
        self._table = _below(cells)

    def answers(self, rectangles: NDArray[np.int64]) -> NDArray[Any]:
        """Return the sum over each rectangle's cells."""
        row0, row1, col0, col1 = rectangles
        t = self._table
        return t[row1 + 1, col1 + 1] - t[row0, col1 + 1] - t[row1 + 1, col0] + t[row0, col0]


class CornerCounts:
    """Answers of four histograms: where the corners of bounding boxes are.

    A box misses a rectangle's rows when it begins above or ends below them, never both. So
    "it meets them" is "begins at or below row1" less "ends below row0", likewise for columns,
    and the product of the two is four counts of corners in a quadrant. Exact without noise.
    """

    def __init__(
        self,
        low_left: NDArray[Any],
        low_right: NDArray[Any],
        up_left: NDArray[Any],
        up_right: NDArray[Any],
    ) -> None:
        corners = (low_left, low_right, up_left, up_right)
        self._tables = [_below(corner) for corner in corners]

    def answers(self, rectangles: NDArray[np.int64]) -> NDArray[Any]:
        """Return how many bounding boxes meet each rectangle."""
        row0, row1, col0, col1 = rectangles
        low_left, low_right, up_left, up_right = self._tables
        begin = low_left[row1 + 1, col1 + 1] - low_right[row1 + 1, col0]
        return begin - up_left[row0, col1 + 1] + up_right[row0, col0]


@dataclass(frozen=True, eq=False)
class ExactData:
    """A data set on a grid, in every form that some method starts from. Secret."""

    label: ClassVar[str] = LABEL

    grid: Grid
    bound: Bound
    outlines: tuple[Outlines, ...]

    @classmethod
    def of(
        cls, regions: Any, grid: Grid, max_diameter: float | str, *, user_id: Any = "user_id"
    ) -> ExactData:
        """Read regions as `release` does, once for all methods and repetitions."""
        bound = Bound.of(grid, max_diameter, "shrink")
        source = read_regions(regions, user_id=user_id)
        batches = geometry_batches(source, grid, bound)
        return cls(
            grid, bound, tuple(outlines_of(batch, source.crs, grid, bound) for batch in batches)
        )

    def __repr__(self) -> str:
        return f"<ExactData on {self.grid!r}: {LABEL}>"

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The exact Euler histogram."""
        from dpregions.geometry import kernel as _kernel

        n_rows, n_cols = self.grid.doubled_shape
        steps = np.zeros((n_rows, n_cols + 1), np.int64)
        for batch in self.outlines:
            _kernel.add_bodies(batch.xy, batch.offsets, *self.grid.shape, steps)
        return np.cumsum(steps, axis=1)[:, :-1]

    @cached_property
    def truth(self) -> EulerAnswers:
        """The exact answers."""
        return EulerAnswers(self.counts)

    @cached_property
    def n_regions(self) -> int:
        """How many regions touch the area."""
        rows, cols = self.grid.shape
        return int(self.truth.answers(np.array([[0], [rows - 1], [0], [cols - 1]]))[0])

    @cached_property
    def boxes(self) -> NDArray[np.int64]:
        """First and last row, first and last column of each region's cells inside the area."""
        side = min(self.bound.k + 1, max(self.grid.shape))
        row, col, height, width = Footprints.of(self.outlines, *self.grid.shape, side).places.T
        return np.stack([row, row + height - 1, col, col + width - 1])

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Where each region is that touches the area: y and x of its centroid, in cells from 0.

        A centroid outside is moved to the nearest place inside, so that points miss no region.
        """
        from dpregions.geometry import kernel as _kernel

        found = [np.zeros((0, 2))]  # a source without regions has no batch
        for batch in self.outlines:
            touching = _kernel.touching(batch.xy, batch.offsets, *self.grid.shape)
            found.append(centroids(batch)[touching[np.diff(batch.offsets) > 0]])
        shape = np.array(self.grid.shape, np.float64)
        yx = np.concatenate(found)[:, ::-1] / STEPS
        return np.clip(yx, 0.0, np.nextafter(shape, 0.0)).T

    @cached_property
    def centres(self) -> NDArray[np.int64]:
        """Row and column of the cell that holds each region's point."""
        return np.floor(self.points).astype(np.int64)


def centroids(outlines: Outlines) -> NDArray[np.float64]:
    """Return the centroid of each outline, in lattice steps; of a segment, its middle."""
    sizes = np.diff(outlines.offsets)
    xy, owner = outlines.xy.astype(np.float64), np.repeat(np.arange(len(sizes)), sizes)
    first = np.zeros((len(sizes), 2))
    first[sizes > 0] = xy[outlines.offsets[:-1][sizes > 0]]
    a = xy - first[owner]
    b = np.roll(a, -1, axis=0)
    b[outlines.offsets[1:][sizes > 0] - 1] = 0.0  # the last vertex meets the first again
    cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    n = len(sizes)
    area = np.bincount(owner, cross, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = [np.bincount(owner, cross * (a + b)[:, i], n) / (3 * area) for i in (0, 1)]
        flat = [np.bincount(owner, a[:, i], n) / sizes for i in (0, 1)]
    offset = np.where((area != 0)[:, None], np.stack(middle, axis=-1), np.stack(flat, axis=-1))
    return (first + offset)[sizes > 0]


def cell_counts(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """Regions touching each cell: a region over several cells is counted several times."""
    rows, cols = (min(data.bound.k + 1, n) for n in data.grid.shape)
    reach = rows * cols * sensitivity_factor(neighbours)
    return CellSums(noise.add(data.counts[::2, ::2], epsilon=budget, sensitivity=reach))


def centroid_points(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """One point a region on the uniform grid: a region that only reaches in is missed."""
    row, col = data.centres
    points = _tally(row, col, data.grid)
    reach = sensitivity_factor(neighbours)
    return CellSums(noise.add(points, epsilon=budget, sensitivity=reach))


def corner_histograms(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CornerCounts:
    """Four corners of each region's bounding box, a quarter of epsilon each."""
    low, up, left, right = data.boxes
    reach = sensitivity_factor(neighbours)
    corners = [(low, left), (low, right), (up, left), (up, right)]
    return CornerCounts(
        *(
            noise.add(_tally(*corner, data.grid), epsilon=share, sensitivity=reach)
            for corner, share in zip(corners, budget.split(1, 1, 1, 1), strict=True)
        )
    )


def _tally(row: NDArray[np.int64], col: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    cells = np.bincount(row * grid.n_cols + col, minlength=grid.n_rows * grid.n_cols)
    return cells.reshape(grid.shape)


def _below(cells: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over all cells below and left of each corner of the grid."""
    table = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), cells.dtype)
    table[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    return table
