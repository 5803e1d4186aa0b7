"""Rectangles of cells to ask about: their sizes, as shares of the area, and where they are placed.

One definition for the queries that budgets are laid out for, those that plans rehearse and those
that studies ask. It knows a grid's size in cells, and nothing of what is counted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpregions.errors import InputError

if TYPE_CHECKING:
    from dpregions.arrays import Ints

_SQUARENESS = 0.1


@dataclass(frozen=True)
class Rectangles:
    """The rectangles of cells on a grid of so many rows and columns."""

    SHARES: ClassVar[tuple[float, ...]] = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
    """Sizes of rectangles, as shares of the area."""

    n_rows: int
    n_cols: int

    def shape_of(self, share: float) -> tuple[int, int]:
        """Return the near-square rectangle, in cells, whose area is nearest a share of the grid's.

        A little area is given up for a squarer shape: on 20 x 20 cells, 50 % is 14 x 14, not
        10 x 20. At least one cell.

        Examples
        --------
        >>> [Rectangles(20, 20).shape_of(share) for share in (0.01, 0.05, 0.5, 1.0)]
        [(2, 2), (4, 5), (14, 14), (20, 20)]
        """
        if not 0 < share <= 1:
            raise InputError(f"a share of the area lies above 0 and at most at 1, got {share!r}")
        rows, cols = np.arange(1, self.n_rows + 1)[:, None], np.arange(1, self.n_cols + 1)[None, :]
        target = max(share * self.n_rows * self.n_cols, 1.0)
        slim = np.abs(np.log(rows * self.n_cols / (cols * self.n_rows)))
        off = np.abs(rows * cols - target) / target + _SQUARENESS * slim
        row, col = np.unravel_index(np.argmin(off), off.shape)
        return int(row) + 1, int(col) + 1

    def sizes(self) -> list[tuple[int, int]]:
        """Return the distinct rectangles of all `SHARES`, in cells: the default workload."""
        return list(dict.fromkeys(map(self.shape_of, self.SHARES)))

    def of_area(self, cells: int) -> list[tuple[int, int]]:
        """Return every height and width of exactly so many cells that fits on the grid.

        Examples
        --------
        >>> Rectangles(20, 6).of_area(12)
        [(2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
        """
        heights = (h for h in range(1, min(cells, self.n_rows) + 1) if cells % h == 0)
        return [(h, cells // h) for h in heights if cells // h <= self.n_cols]

    def placed(
        self, height: int, width: int, n: int, rng: np.random.Generator, *, turned: bool = False
    ) -> Ints:
        """Return `n` placements of a rectangle: rows ``row0, row1, col0, col1``, inclusive.

        Placed evenly over the grid; with `turned`, on its side half of the time where it fits.
        """
        high, wide = self._turned(height, width, n, rng, turned)
        row0 = rng.integers(0, self.n_rows - high + 1, n)
        col0 = rng.integers(0, self.n_cols - wide + 1, n)
        return np.stack([row0, row0 + high - 1, col0, col0 + wide - 1])

    def holding(
        self,
        height: int,
        width: int,
        cells: Ints,
        rng: np.random.Generator,
        *,
        turned: bool = False,
    ) -> Ints:
        """Return placements of a rectangle that hold given cells, one for each of them.

        `cells` are rows and columns. All places on the grid that hold a cell are as likely.
        """
        (row, col), n = cells, cells.shape[1]
        high, wide = self._turned(height, width, n, rng, turned)
        row0 = rng.integers(np.maximum(row - high + 1, 0), np.minimum(row, self.n_rows - high) + 1)
        col0 = rng.integers(np.maximum(col - wide + 1, 0), np.minimum(col, self.n_cols - wide) + 1)
        return np.stack([row0, row0 + high - 1, col0, col0 + wide - 1])

    def _turned(
        self, height: int, width: int, n: int, rng: np.random.Generator, turned: bool
    ) -> tuple[Any, Any]:
        """Return the heights and widths of n rectangles, some on their side if `turned`."""
        if not turned:
            return height, width
        side = (rng.random(n) < 0.5) & (width <= self.n_rows) & (height <= self.n_cols)
        return np.where(side, width, height), np.where(side, height, width)
