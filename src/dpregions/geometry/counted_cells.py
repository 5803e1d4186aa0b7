"""What a histogram asks of a partition: bounds, sensitivity, outlines, counts, grids over its area.

The half of `Partition` that makes it a `Domain`; the other half, in `partition.py`, owns how one is
made, named and saved. Everything here is public but the outlines and counts that pass through.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import unit_label
from dpregions.errors import Argument, GridError, InputError
from dpregions.geometry.bases import Base
from dpregions.geometry.lattice import REACH, STEPS
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.geometry.partition_counts import Counting, PartitionCounts
from dpregions.lengths import positive_length, quotient

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.choices import Oversize, Within
    from dpregions.geometry.cell_sets import CellSelection
    from dpregions.geometry.complexes import Complex, Ragged
    from dpregions.geometry.grid import Grid

_FINEST = 8
"""Cells of the coarsest grid along the mean distance between cells, at most."""
_FINER = (1, 2, 4)
"""Into how many parts the mean distance between cells is cut, for the grids over the area."""


class CountedCells:
    """Cells of any shape as a domain."""

    _complex: Complex
    _crs: CRS | None
    _grid: Grid | None
    _cap: int | None
    _made_by: str

    @property
    def form(self) -> str:
        """What its cells are: "voronoi", "hexagons", "polygons" or "grid"."""
        return self._made_by

    @property
    def cap(self) -> int | None:
        """The most components that a region may touch, where that is set; see `capped`."""
        return self._cap

    @property
    def counts_shape(self) -> tuple[int]:
        """The shape of an array of counts: one entry for each component."""
        return (self._complex.n_components,)

    def split(self, counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the values of faces, of inner edges and of inner vertices."""
        c = self._complex
        faces, edges, vertices = np.split(counts, np.cumsum([c.n_faces, c.n_edges]))
        return faces, edges, vertices

    @property
    def place_names(self) -> tuple[str, ...]:
        """The names of what `places` returns."""
        return ("component",)

    def places(self) -> dict[str, NDArray[np.int32]]:
        """Return the number of each component."""
        return {"component": np.arange(self._complex.n_components, dtype=np.int32)}

    @property
    def cells_in_words(self) -> str:
        """How many cells there are, for a message."""
        apart = f"{self._spacing:.4g} {unit_label(self._crs)}"
        return f"{self._complex.n_faces:,} cells about {apart} apart"

    @property
    def enforced_in_words(self) -> str:
        """What it enforces on regions beside their diameter: the cap, where there is one."""
        if self._cap is None:
            return ""
        return f", touching at most {self._cap} components (others shrunk until they do)"

    @property
    def size_in_words(self) -> str:
        """How large it is, for a message."""
        c = self._complex
        return f"a partition of {c.n_faces:,} cells ({c.n_components:,} components)"

    @property
    def _spacing(self) -> float:
        """How far apart neighbouring cells are on average: the side of a square as large."""
        return math.sqrt(self.area.area / self._complex.n_faces)  # type: ignore[attr-defined]

    def length(self, value: float | str, name: str = "length") -> Fraction:
        """Return a positive length in CRS units, exactly as it was written."""
        return positive_length(value, name=name, crs=self._crs)

    def in_cells(self, value: float | str, name: str = "length") -> Fraction:
        """Return a positive length in mean distances between neighbouring cells."""
        return quotient(self.length(value, name), Fraction(self._spacing))

    def in_steps(self, value: float | str, name: str = "length") -> int:
        """Return a positive length in whole lattice steps, never more than it."""
        if self._grid is not None:
            return math.floor(min(self._grid.in_cells(value, name), Fraction(REACH)) * STEPS)
        steps = self.length(value, name) / Fraction(self._complex.step)
        return math.floor(min(steps, Fraction(1 << 48)))

    # -- bodies --------------------------------------------------------------------------------

    def bound(self, max_diameter: float | str, oversize: Oversize) -> Bound:
        """Return the bound that `max_diameter` sets, as the integers that enforce it."""
        Bound.check_oversize(oversize)
        if self._grid is not None:
            return self._grid.bound(max_diameter, oversize)
        steps = self.in_steps(max_diameter, "max_diameter")
        return Bound(
            math.ceil(self.in_cells(max_diameter, "max_diameter")), steps, oversize == "drop"
        )

    def most_touched(self, bound: Bound) -> int:
        """Return how many components a body within the bound touches at most: proven, or the cap.

        By Jung's theorem; see `jung.py`. The cells of a grid have a lesser bound of their own.
        """
        most = _most_touched(self._complex, bound.steps, self._cap)
        return most if self._grid is None else min(most, self._grid.most_touched(bound))

    def bases(self, bound: Bound) -> tuple[Base, ...]:
        """Return the grids that regions may be measured on, from large cells to small ones.

        Squares over the area, as far apart as the cells are on average, and twice and four times
        as fine, but never above the bound by more than a step. Finer ones that this machine does
        not hold are left out.
        """
        from dpregions.geometry.grid import Grid

        if self._cap is not None:
            raise GridError(
                "the footprint mechanism has a sensitivity of 1 without any cap: release on the "
                "partition as it was before capped(...)",
                argument="grid",
            )
        if self._grid is not None:
            return self._grid.bases(bound)
        c = self._complex
        low, high = self._extent
        xmin, ymin = c.origin + low * c.step
        found: list[Base] = []
        width, height = (high - low).tolist()
        apart = int(self._spacing / c.step)
        # Regions far smaller than cells need no squares as small as they are.
        largest = min(apart, max(bound.steps, apart // _FINEST))
        for parts in _FINER:
            wanted = max(largest // parts, 1)
            side = width // -(-width // wanted) + 1  # whole cells across, and the last step inside
            n_cols, n_rows = width // side + 1, height // side + 1
            try:
                grid = Grid(xmin, ymin, Fraction(c.step) * side, n_rows, n_cols, crs=self._crs)
            except GridError:
                if not found:
                    raise
                break
            beyond = n_rows * side - height > 1 or not self._reaches_corners
            area = self.area if c.area.size and beyond else None  # type: ignore[attr-defined]
            found.append(Base.of_side(grid, side, bound, (int(low[0]), int(low[1])), area))
        return tuple(found)

    @cached_property
    def _reaches_corners(self) -> bool:
        """Whether the area is the rectangle of its own extent."""
        area: Any = self.area  # type: ignore[attr-defined]
        return bool(area.area >= area.envelope.area * (1 - 1e-9))

    @cached_property
    def _extent(self) -> NDArray[np.int64]:
        """The least and the largest x and y that a body may have, in lattice steps."""
        c = self._complex
        ring = c.area if c.area.size else np.stack([c.x, c.y], axis=-1)
        return np.stack([ring.min(axis=0), ring.max(axis=0)]).astype(np.int64)

    def outlines(
        self, coords: NDArray[np.float64], starts: NDArray[np.int64], bound: Bound | None = None
    ) -> Outlines:
        """Return records as bodies: convex, within the bound, cut to the area.

        Record i has points ``coords[starts[i]:starts[i + 1]]``, in CRS units. One that is not a
        place, is beside the area or is dropped by the bound has an empty outline. On a convex
        partition F - E + V = 1 holds for every body, and nobody touches more than the cap: corners
        are pulled in by lattice steps until it is so.
        """
        from dpregions.geometry.body_kernel import outlines

        steps, drop = (-1, False) if bound is None else (bound.steps, bound.drop)
        c = self._complex
        lattice = (*c.origin, c.step, 0.0 if self._grid is None else self._grid.cell_size)
        euler = c.is_convex and not c.is_strict
        limit = -1 if self._cap is None else self._cap
        walk, area = self._counting.walk, c.area.astype(np.int64)
        return Outlines(*outlines(coords, starts, lattice, walk, area, steps, drop, euler, limit))

    @cached_property
    def _counting(self) -> Counting:
        return Counting.of(self._complex)

    def counter(self) -> PartitionCounts:
        """Return counts of nothing, to add to."""
        return PartitionCounts(self._counting)

    def touched(self, outlines: Outlines) -> Ragged:
        """Return the components that each body touches, as offsets and one list."""
        return self._counting.touched(outlines)

    def touching(self, outlines: Outlines) -> NDArray[np.bool_]:
        """Say which bodies touch a cell."""
        return np.diff(self.touched(outlines).offsets) > 0

    # -- queries -------------------------------------------------------------------------------

    def look_up(self, query: tuple[Any, ...], crs: Any, within: Within | None) -> None:
        """Return that no rectangle of cells answers a query of plain numbers."""

    def select(
        self,
        query: tuple[Any, ...],
        crs: Any = None,
        *,
        cells: Any = None,
        within: Within | None = "cells",
        once: bool = False,
        stacklevel: int | None = 2,
    ) -> CellSelection:
        """Return the cells that queries touch; see `select_cells`."""
        from dpregions.geometry.cell_sets import select_cells

        drawn, level = within != "cells", None if stacklevel is None else stacklevel + 1
        partition: Any = self
        return select_cells(
            partition, query, crs, cells=cells, drawn=drawn, once=once, stacklevel=level
        )

    def blocks_shape(self, block: int) -> tuple[int]:
        """Return how many cells there are; refuse blocks of several."""
        if isinstance(block, bool) or not hasattr(block, "__index__") or block.__index__() != 1:
            raise InputError(
                Argument("block"),
                f" must be 1 on a partition, which has no rows and columns, got {block!r}: ask "
                f"about sets of cells by their labels",
            )
        return (self._complex.n_faces,)

    def select_blocks(self, block: int, start: int, stop: int) -> CellSelection:
        """Return the cells from number `start` to `stop`, each as a query of its own."""
        from dpregions.geometry.cell_sets import CellSelection
        from dpregions.geometry.complexes import Ragged

        self.blocks_shape(block)
        each = Ragged(np.arange(stop - start + 1), np.arange(start, stop))
        return CellSelection(self._complex, each, (stop - start,))

    def table(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return counts ready to be summed over queries: as they are."""
        return counts


@lru_cache(maxsize=16)
def _most_touched(c: Complex, steps: int, cap: int | None) -> int:
    """Return the bound of Jung's theorem for one complex; the search takes up to a second."""
    from dpregions.geometry.jung import most_touched

    return most_touched(*_within_reach(c), steps, euler=c.is_convex, cap=cap)


def _within_reach(c: Complex) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the segments that components consist of, and the component of each.

    Of edges alone where F - E + V = 1 is enforced: the others follow.
    """
    xy = np.stack([c.x, c.y], axis=-1).astype(np.int64)
    sides = np.concatenate([xy[c.points], xy[c.side_end]], axis=1)
    inner = np.flatnonzero(c.side_edge >= 0)
    segments, owners = [sides[inner]], [c.n_faces + c.side_edge[inner]]
    if not c.is_convex:
        segments += [sides, np.tile(xy[c.vertices], 2)]
        owners += [c.side_face, c.n_faces + c.n_edges + np.arange(c.n_vertices)]
    return np.concatenate(segments), np.concatenate(owners)
