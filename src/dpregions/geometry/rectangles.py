"""Rectangles of cells to ask about: their sizes, as shares of the area, and where they are placed.

One definition for the queries that budgets are laid out for, those that plans rehearse and those
that studies ask. It knows a grid's size in cells, and nothing of what is counted there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Sizes of rectangles, as shares of the area."""

_SQUARENESS = 0.1


def shape_of(share: float, n_rows: int, n_cols: int) -> tuple[int, int]:
    """Return the near-square rectangle, in cells, whose area is nearest a share of the grid's.

    A little area is given up for a squarer shape: on 20 x 20 cells, 50 % is 14 x 14, not
    10 x 20. At least one cell.

    Examples
    --------
    >>> [shape_of(share, 20, 20) for share in (0.01, 0.05, 0.5, 1.0)]
    [(2, 2), (4, 5), (14, 14), (20, 20)]
    """
    if not 0 < share <= 1:
        raise InputError(f"a share of the area lies above 0 and at most at 1, got {share!r}")
    rows, cols = np.arange(1, n_rows + 1)[:, None], np.arange(1, n_cols + 1)[None, :]
    target = max(share * n_rows * n_cols, 1.0)
    slim = np.abs(np.log(rows * n_cols / (cols * n_rows)))
    off = np.abs(rows * cols - target) / target + _SQUARENESS * slim
    row, col = np.unravel_index(np.argmin(off), off.shape)
    return int(row) + 1, int(col) + 1


def default_sizes(n_rows: int, n_cols: int) -> list[tuple[int, int]]:
    """Return the distinct rectangles of all `SHARES` of a grid, in cells: the default workload."""
    return list(dict.fromkeys(shape_of(share, n_rows, n_cols) for share in SHARES))


def rectangles(
    share: float, n_rows: int, n_cols: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return `n` placements of a share's rectangle: rows ``row0, row1, col0, col1``, inclusive.

    Placed evenly over the grid, on their side half of the time where they fit.
    """
    return placements(*shape_of(share, n_rows, n_cols), n_rows, n_cols, n, rng)


def placements(
    rows: int, cols: int, n_rows: int, n_cols: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return `n` placements of a rectangle of `rows` x `cols` cells, as `rectangles` does."""
    turned = (rng.random(n) < 0.5) & (cols <= n_rows) & (rows <= n_cols)
    height, width = np.where(turned, cols, rows), np.where(turned, rows, cols)
    return placed(height, width, n_rows, n_cols, n, rng)


def shapes_of_area(cells: int, n_rows: int, n_cols: int) -> list[tuple[int, int]]:
    """Return every height and width of exactly so many cells that fits on the grid.

    Examples
    --------
    >>> shapes_of_area(12, 20, 6)
    [(2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    """
    heights = (h for h in range(1, min(cells, n_rows) + 1) if cells % h == 0)
    return [(h, cells // h) for h in heights if cells // h <= n_cols]


def placed(
    height: int | NDArray[np.int64],
    width: int | NDArray[np.int64],
    n_rows: int,
    n_cols: int,
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return `n` placements of one shape, or of as many, evenly over the grid and never turned."""
    row0 = rng.integers(0, n_rows - height + 1, n)
    col0 = rng.integers(0, n_cols - width + 1, n)
    return np.stack([row0, row0 + height - 1, col0, col0 + width - 1])
