"""Bodies as convex outlines in integers, and the bound on their diameter.

Owns the bound as the integers that enforce it, so that sensitivity follows from what is checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpregions.errors import Argument, InputError
from dpregions.geometry.lattice import REACH, STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Bools, Floats, Ints
    from dpregions.choices import Oversize
    from dpregions.geometry.grid import Grid


@dataclass(frozen=True)
class Bound:
    """The largest diameter of a region, as the integers that enforce it.

    `k` is ceil(B / d): no region within `steps` lattice steps touches more than 2k+1 doubled
    rows and 2k+1 doubled columns. Both follow from one exact number of cells, so that `steps` is
    at most k cells whatever float error there is in B or d.
    """

    k: int
    steps: int
    drop: bool

    @classmethod
    def of(cls, grid: Grid, max_diameter: float | str, oversize: Oversize) -> Bound:
        """Return the bound that `max_diameter` sets on a grid."""
        cls.check_oversize(oversize)
        cells = grid.in_cells(max_diameter, "max_diameter")
        steps = math.floor(min(cells, Fraction(REACH)) * STEPS)
        return cls(math.ceil(cells), steps, oversize == "drop")

    @staticmethod
    def check_oversize(oversize: object) -> None:
        """Refuse an unknown way with regions that are too long."""
        if oversize not in ("shrink", "drop"):
            raise InputError(
                Argument("oversize", repr(oversize)), " is unknown: use 'shrink' or 'drop'"
            )


@dataclass(frozen=True, repr=False)
class Outlines:
    """Convex bodies as ragged integer outlines, in lattice steps from the grid's corner."""

    xy: Ints
    offsets: Ints

    @classmethod
    def of(cls, coords: Floats, starts: Ints, grid: Grid, bound: Bound | None) -> Outlines:
        """Return the outlines of records: record i has points ``coords[starts[i]:starts[i + 1]]``.

        One that is no place, is beside the area or is dropped by the bound has an empty outline.
        """
        from dpregions.geometry.hull_kernel import outlines

        steps, drop = (-1, False) if bound is None else (bound.steps, bound.drop)
        area = grid.xmin, grid.ymin, grid.cell_size, *grid.shape
        return cls(*outlines(coords, starts, *area, steps, drop))

    def scaled(self, times: int, over: int) -> Outlines:
        """Return the outlines with every coordinate times a fraction, by floor, hulls again."""
        from dpregions.geometry.hull_kernel import scaled

        return Outlines(*scaled(self.xy, self.offsets, times, over))

    def taken(self, rows: Ints) -> Outlines:
        """Return the outlines of some bodies, given in order."""
        sizes = np.diff(self.offsets)
        kept = np.zeros(len(sizes), np.bool_)
        kept[rows] = True
        offsets = np.concatenate([[0], np.cumsum(sizes[rows])])
        return Outlines(self.xy[np.repeat(kept, sizes)], offsets)

    def keys(self) -> NDArray[np.uint64]:
        """Return two keys for each outline, functions of its vertices alone."""
        from dpregions.geometry.hull_kernel import outline_keys

        return outline_keys(self.xy, self.offsets)

    def touching(self, n_rows: int, n_cols: int) -> Bools:
        """Say which bodies touch a cell of a grid."""
        from dpregions.geometry.touch_kernel import touching

        return touching(self.xy, self.offsets, n_rows, n_cols)

    def footprints(
        self, n_rows: int, n_cols: int, side: int, *, empty: bool = False
    ) -> tuple[Ints, NDArray[np.int16]]:
        """Return where bodies touch a grid: row, column, height and width in cells, and spans.

        One row for each body that touches a cell; with `empty`, also for the others, of height 0.
        Spans are the first and last cell column, from the footprint's left, on each of its
        doubled rows; (1, 0) where there is none. A body is at most `side` cells wide and high.
        """
        from dpregions.geometry.touch_kernel import footprints

        found: tuple[Ints, NDArray[np.int16]] = footprints(
            self.xy, self.offsets, n_rows, n_cols, side, empty
        )
        return found
