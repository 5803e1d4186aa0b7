"""The outcome of an adaptive tree: bodies as from every footprint release, read another way.

Nothing here is as long as all buckets: estimates and intervals walk down the tree, and the signed
estimates of all components are made when they are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.mechanisms.footprint.outcome import FootprintOutcome
from dpregions.mechanisms.footprint.tree import codec
from dpregions.mechanisms.footprint.tree.drawn import DrawnLeaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.mechanisms.base import Columns
    from dpregions.mechanisms.footprint.border import Border
    from dpregions.mechanisms.footprint.reading import LaidOut
    from dpregions.mechanisms.footprint.tree.growing import Adaptive
    from dpregions.mechanisms.footprint.tree.reading import TreeReading


@dataclass(frozen=True, eq=False)
class TreeOutcome(FootprintOutcome):
    """Bodies of a tree's leaves, and what the tree says of any query. Private."""

    reading: TreeReading | None  # type: ignore[assignment]
    strategy: Adaptive | None  # type: ignore[assignment]

    @property
    def is_covert(self) -> bool:
        """Whether it was published without its measurements."""
        return self.reading is None

    @cached_property
    def border(self) -> Border:
        """What answers rectangles; made when the first is asked."""
        assert self.reading is not None
        return self.reading.border(self.bodies.catalogue)

    @cached_property
    def _leaves(self) -> DrawnLeaves:
        """What answers shapes as drawn; made when the first is asked."""
        assert self.reading is not None
        return DrawnLeaves(self.reading, self.bodies.catalogue, self.grid)

    def estimates(self) -> NDArray[np.float64] | None:
        """Return the signed estimate of every component, made once; None in a covert outcome."""
        return None if self.is_covert else self._estimates

    @cached_property
    def _estimates(self) -> NDArray[np.float64]:
        """From the estimates of single cells, of two side by side, and of four about a vertex."""
        n_rows, n_cols = self.grid.shape
        found = np.empty(self.grid.doubled_shape)
        whole: dict[tuple[int, int], NDArray[np.float64]] = {}
        for tall, wide in ((1, 1), (1, 2), (2, 1), (2, 2)):
            row, col = np.indices((n_rows - tall + 1, n_cols - wide + 1)).reshape(2, -1)
            ranges = np.stack([row, row + tall - 1, col, col + wide - 1])
            shape = n_rows - tall + 1, n_cols - wide + 1
            whole[tall, wide] = self.border.rectangles(ranges).estimate.reshape(shape)
        cell, across, up, square = whole.values()
        # N = F - E + V of each of these, solved for its last component.
        found[::2, ::2] = cell
        found[::2, 1::2] = cell[:, :-1] + cell[:, 1:] - across
        found[1::2, ::2] = cell[:-1] + cell[1:] - up
        faces = cell[:-1, :-1] + cell[:-1, 1:] + cell[1:, :-1] + cell[1:, 1:]
        flat, steep = found[::2, 1::2], found[1::2, ::2]
        edges = flat[:-1] + flat[1:] + steep[:, :-1] + steep[:, 1:]
        found[1::2, 1::2] = square - faces + edges
        found.flags.writeable = False
        return found

    def estimate(self, selection: Selection) -> NDArray[Any]:
        """Return the signed estimate of each selected query."""
        return self._read(selection)[0]

    def estimate_of(self, cells: tuple[int, int, int, int]) -> float:
        """Return the same of one rectangle of cells; the components need not be made for it."""
        return float(self.border.rectangle(*cells).estimate)

    def _read(
        self, selection: Selection
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Return estimates and their deviations, from noise and from what is not known."""
        assert self.reading is not None
        middle, noise, shape = np.zeros((3, selection.ranges.shape[1]))
        plain = np.flatnonzero(selection.exact & ~selection.as_drawn & ~selection.outside)
        if plain.size:
            found = self.border.rectangles(selection.ranges[:, plain])
            middle[plain], noise[plain] = found.estimate, np.sqrt(found.variance)
            shape[plain] = self.reading.shape_deviation(
                found.detail, found.detail_squares, found.bucket
            )
        for i, mask in selection.masks.items():
            _, noise[i], shape[i] = self._leaves.read(_cells(selection.ranges[:, i], mask, self))
        if selection.masks:
            which = list(selection.masks)
            middle[which] = selection.sums(self.signed_table)[which]
        for i, drawn in selection.shapes.items():
            cells = self._cells_of(drawn, selection.ranges[:, i])
            one = self._leaves.read(drawn) if cells is None else self._read_of(cells)
            middle[i], noise[i], shape[i] = one
        return middle, noise, shape

    def _read_of(self, cells: tuple[int, int, int, int]) -> tuple[float, float, float]:
        """Return the estimate of one rectangle of cells and its deviations."""
        assert self.reading is not None
        found = self.border.rectangle(*cells)
        shape = self.reading.shape_deviation(found.detail, found.detail_squares, found.bucket)
        return float(found.estimate), math.sqrt(found.variance), float(shape)

    def laid_out(self, most: int) -> Iterator[LaidOut]:
        """Yield bodies of every leaf, each with its share of the leaf's signed fit."""
        return self._leaves.laid_out(most)

    def options(self) -> dict[str, Any]:
        """Return how the tree opened; nothing in a covert release."""
        return {} if self.strategy is None else {"strategy": codec.strategy_fields(self.strategy)}

    def _columns(self) -> Columns:
        measured = None if self.reading is None else self.reading.measured
        return codec.columns_of(self.grid, self.bodies, measured)


def _cells(ranges: NDArray[np.int64], mask: NDArray[np.bool_], outcome: TreeOutcome) -> Any:
    """Return the cells of a mask as one shape."""
    import shapely

    row, col = np.nonzero(mask)
    row, col = row + ranges[0], col + ranges[2]
    return shapely.union_all(shapely.box(*outcome.grid.cell_bounds(row, row, col, col)))
