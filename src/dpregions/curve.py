"""Hilbert's curve: an order of places in the plane that keeps neighbours together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def along_curve(row: NDArray[np.int64], col: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of cells, by rows and columns from 0, along the curve."""
    side = 1
    while side <= max(row.max(initial=0), col.max(initial=0)):
        side *= 2
    x, y = col.copy(), row.copy()
    along = np.zeros(len(row), np.int64)
    half = side // 2
    while half:
        right, up = (x & half) > 0, (y & half) > 0
        along += half * half * ((3 * right) ^ up)
        turn = ~up
        flip = turn & right
        x, y = np.where(flip, side - 1 - x, x), np.where(flip, side - 1 - y, y)
        x, y = np.where(turn, y, x), np.where(turn, x, y)
        half //= 2
    return along
