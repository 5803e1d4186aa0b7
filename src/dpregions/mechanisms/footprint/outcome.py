"""The outcome of the footprint mechanism: bodies, and what the measurements say of any query.

Private: it holds noisy counts and what was made of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpregions.errors import InputError
from dpregions.mechanisms.base import Outcome
from dpregions.mechanisms.footprint import codec
from dpregions.mechanisms.footprint.elsewhere import BodiesElsewhere
from dpregions.mechanisms.footprint.reading import Inside, Reading, half_widths
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.mechanisms.footprint.worst import cells_around

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.layers import Layer
    from dpregions.mechanisms.base import Columns
    from dpregions.mechanisms.footprint.bodies import Bodies, DrawnBodies
    from dpregions.mechanisms.footprint.measuring import Strategy
    from dpregions.mechanisms.footprint.reading import LaidOut


_ON_A_LINE = 1e-9
"""Part of a cell by which a side may be off a line and still be on it."""


@dataclass(frozen=True, eq=False)
class FootprintOutcome(Outcome):
    """The histogram of made-up bodies, and the signed estimates. Private."""

    answers_shapes: ClassVar[bool] = True

    grid: Grid

    bodies: Bodies
    """What the counts are the exact histogram of."""
    reading: Reading | None
    """What the signed estimate and its errors come from; None in a covert release."""
    strategy: Strategy | None
    area: Any = None
    """The polygon that every region touched, where the grid reaches beyond it; else None."""

    def inside(self, area: Any) -> Self:
        """Return the same of regions that all touched an area: so do their bodies, if they can."""
        if area is None:
            return self
        return replace(self, bodies=self.bodies.touching(area, self.grid), area=area)

    @cached_property
    def _placed(self) -> Bodies:
        """The bodies where they are counted: all touch the area."""
        return self.bodies if self.area is None else self.bodies.moved_into(self.area, self.grid)

    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the corners of distinct bodies, where each one's start, and how often it is."""
        return self._placed.corners(self.grid)

    def covert(self) -> Self:
        """Return the outcome without its measurements."""
        return replace(self, signed=None, reading=None, strategy=None)

    @cached_property
    def _inside(self) -> Inside | None:
        """How likely a body of each bucket touches the area, where that is not certain."""
        if self.area is None or self.reading is None:
            return None
        return Inside.of(self.reading, self.area, self.grid)

    @cached_property
    def _drawn(self) -> DrawnBodies:
        """The bodies as polygons, made once, when the first query is answered as drawn."""
        return self._placed.drawn(self.grid)

    def count(self, selection: Selection) -> NDArray[np.int64]:
        """Return counts of cells, and of the bodies that touch what is asked as drawn."""
        counts = super().count(selection)
        if selection.shapes:
            which, shapes = selection.drawn()
            counts[which] = self._drawn.counts(shapes)
        return counts

    def estimate(self, selection: Selection) -> NDArray[Any]:
        """Return signed sums of cells, and of buckets by their chance to touch a shape."""
        return self._read(selection)[0] if selection.shapes else super().estimate(selection)

    def bounds(self, selection: Selection, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return intervals that hold the count too: another reading of the same noisy counts."""
        return self.readings(selection, confidence)[1:]

    def readings(
        self, selection: Selection, confidence: float
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return estimates and the ends of their intervals, read once."""
        middle, noise, shape = self._read(selection)
        width, count = half_widths(noise, shape, confidence), self.count(selection)
        low, high = np.maximum(middle - width, 0), np.maximum(middle + width, 0)
        return middle, np.minimum(low, count), np.maximum(high, count)

    def worst_bounds(
        self, selection: Selection, confidence: float
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return intervals that hold whatever regions do inside measured parts, and the count."""
        assert self.reading is not None
        inner, outer = cells_around(selection, self.grid)
        found, count = self.reading.worst.bounds(inner, outer), self.count(selection)
        low = found.sure - half_widths(found.sure_deviation, 0.0, confidence)
        high = found.possible + half_widths(found.possible_deviation, 0.0, confidence)
        return np.minimum(np.maximum(low, 0.0), count), np.maximum(high, count)

    def reading_of(
        self, cells: tuple[int, int, int, int], confidence: float
    ) -> tuple[float, float, float] | None:
        """Return what `readings` does, of one rectangle of cells, without the cost of arrays."""
        middle, noise, shape = self._read_of(cells)
        width = float(half_widths(noise, shape, confidence))
        count = self.count_table.rectangle(*cells)
        low, high = max(middle - width, 0.0), max(middle + width, 0.0)
        return float(middle), float(min(low, count)), float(max(high, count))

    def _read_of(self, cells: tuple[int, int, int, int]) -> tuple[float, float, float]:
        """Return the estimate of one rectangle of cells and its deviations."""
        assert self.reading is not None
        return self.signed_table.rectangle(*cells), *self.reading.deviations_of(*cells)

    def half_widths(self, selection: Selection, confidence: float) -> NDArray[np.float64]:
        """Return half widths from the deviations of noise and of shapes."""
        return half_widths(*self.deviations(selection), confidence)

    def deviations(self, selection: Selection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what noise and what unmeasured detail add."""
        return self._read(selection)[1:]

    def _read(
        self, selection: Selection
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Return estimates and their deviations, from noise and from shapes."""
        assert self.reading is not None
        estimates = super().estimate(selection)
        noise, shape = self.reading.deviations(selection, self.grid)
        if selection.shapes:
            which, shapes = selection.drawn()
            drawn = np.array(self.reading.drawn(shapes, self.grid, self._inside))
            for at, (i, one) in enumerate(zip(which.tolist(), shapes, strict=True)):
                cells = (
                    None if self.area is not None else self._cells_of(one, selection.ranges[:, i])
                )
                if cells is not None:  # what cells answer, to the last bit
                    drawn[:, at] = self._read_of(cells)
            estimates[which], noise[which], shape[which] = drawn
        return estimates, noise, shape

    def _cells_of(self, shape: Any, ranges: NDArray[np.int64]) -> tuple[int, int, int, int] | None:
        """Return the cells of a shape that is a rectangle on the grid's lines; else None."""
        import shapely

        lines = np.array(self.grid.cell_bounds(*ranges))
        slack = _ON_A_LINE * self.grid.cell_size
        if (np.abs(lines - shapely.bounds(shape)) > slack).any():
            return None
        area = shapely.area(shapely.unary_union(shape))  # parts of a collection may overlap
        whole = math.isclose(area, np.prod(lines[2:] - lines[:2]), rel_tol=1e-9)
        return tuple(ranges.tolist()) if whole else None

    def laid_out(self, most: int) -> Iterator[LaidOut]:
        """Yield witnesses of what was measured, about `most`, each with its share of the fit."""
        assert self.reading is not None
        return self.reading.laid_out(self.grid, most)

    def to_regions(self) -> Layer:
        """Return each body as a convex polygon."""
        return self._placed.to_regions(self.grid)

    def on(self, grid: Domain) -> BodiesElsewhere:
        """Return what the bodies are on other cells."""
        return BodiesElsewhere.of(self, grid)

    def options(self) -> dict[str, Any]:
        """Return what was measured; nothing in a covert release."""
        return codec.options_of(self.strategy, self.area)

    def columns(self) -> Columns:
        """Return bodies, noisy counts and the catalogue."""
        if self.reading is not None and self.reading.tuning != TUNING:
            raise InputError(
                "a release made with another tuning cannot be saved: read back, it would have "
                "other intervals"
            )
        return self._columns()

    def _columns(self) -> Columns:
        """Return the same, of a release that can be saved."""
        measured = None if self.reading is None else self.reading.counted
        return codec.columns_of(self.grid, self.bodies, measured, self.strategy)
