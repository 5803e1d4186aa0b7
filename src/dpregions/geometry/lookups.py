"""One rectangle of plain numbers -> its cells, without the cost of arrays.

Owns the short cut that makes a single count a look-up of four corners. Whatever there is to
refuse, to warn of or to answer as drawn is left to `cells.select`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dpregions.geometry.lattice import STEPS

if TYPE_CHECKING:
    from dpregions.choices import Within
    from dpregions.geometry.grid import Grid

_MOST = sys.float_info.max
_NUMBERS = (int, float)


def look_up(
    grid: Grid, bounds: tuple[Any, ...], within: Within | None
) -> tuple[int, int, int, int] | None:
    """Return the cells that answer one rectangle of plain numbers in the grid's CRS.

    None where there is anything to refuse or to warn of, where the rectangle is answered as
    drawn, and for any other query.
    """
    if within is None:
        return _cells_on_lines(grid, bounds)
    return _cells_of_one(grid, bounds) if within == "cells" else None


def _cells_of_one(grid: Grid, bounds: tuple[Any, ...]) -> tuple[int, int, int, int] | None:
    """Return the cells of one rectangle of plain numbers, without the cost of arrays.

    None where there is anything to refuse or to warn of, and of any other query.
    """
    if not all(isinstance(bound, _NUMBERS) and -_MOST <= bound <= _MOST for bound in bounds):
        return None
    xmin, ymin, xmax, ymax = map(float, bounds)
    if xmin > xmax or ymin > ymax:
        return None
    row0, row1, col0, col1 = cells = grid.cell_range(xmin, ymin, xmax, ymax)
    return None if row1 < row0 or col1 < col0 else cells


def _cells_on_lines(grid: Grid, bounds: tuple[Any, ...]) -> tuple[int, int, int, int] | None:
    """Return the cells of one rectangle of plain numbers whose bounds lie on the grid's lines.

    What reaches beyond the area is cut to it. None where there is anything else to say.
    """
    for bound in bounds:
        if not (isinstance(bound, _NUMBERS) and -_MOST <= bound <= _MOST):
            return None
    xmin, ymin, xmax, ymax = bounds
    cols = _between_lines(xmin, xmax, grid.xmin, grid.cell_size, grid.n_cols)
    rows = _between_lines(ymin, ymax, grid.ymin, grid.cell_size, grid.n_rows)
    return None if cols is None or rows is None else (*rows, *cols)


def _between_lines(
    low: float, high: float, origin: float, size: float, n: int
) -> tuple[int, int] | None:
    """Return the first and last cell between two lines of an axis; None where one is no line."""
    first, end, slack = 0, n, size / (2 * STEPS)
    if low > origin:
        first = round((low - origin) / size)
        if abs(low - (origin + first * size)) > slack:
            return None
    if high < origin + n * size:
        end = round((high - origin) / size)
        if abs(high - (origin + end * size)) > slack:
            return None
    return (first, end - 1) if first < end else None
