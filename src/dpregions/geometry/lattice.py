"""One axis of a grid: where its lines are, steps of the lattice, and the cells of an interval.

Owns the boundary rules that `grid.py` states, along x or along y. It knows an origin, a cell
size and a number of cells, and nothing of a CRS, of text or of what is refused: callers give
finite numbers that a `Grid` has accepted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dpregions.arrays import Bools, Floats, Ints

LATTICE_BITS = 20
"""Coordinates are integers: 2**20 steps a cell, a millimetre where cells are a kilometre."""

STEPS = 1 << LATTICE_BITS

REACH = 1 << 28
"""Coordinates more than this many cells from the grid are no places (integers stay exact)."""


def _line_below(x: Floats, origin: float, size: float) -> tuple[Ints, Floats]:
    """Return the number and the place of the last line at or left of each x."""
    i = np.floor((x - origin) / size)
    i -= x < origin + i * size
    i += x >= origin + (i + 1) * size
    return i.astype(np.int64), origin + i * size


def steps(x: Floats, origin: float, size: float, nearest: bool) -> Ints:
    """Return coordinates in steps from the origin: by floor, or to the nearest."""
    cell, line = _line_below(x, origin, size)
    fraction = (x - line) * (STEPS / size)
    within = np.rint(fraction) if nearest else np.minimum(np.floor(fraction), STEPS - 1)
    return cell * STEPS + within.astype(np.int64)


def axis_ranges(
    low: Floats, high: Floats, area: Bools, origin: float, size: float, n: int
) -> tuple[Ints, Ints]:
    """Return first and last cell along one axis of queries ``low..high``."""
    # Nothing changes beyond one cell outside the area; the cut keeps integers small.
    low = np.clip(low, origin - size, origin + (n + 1) * size)
    high = np.clip(high, origin - size, origin + (n + 1) * size)
    first, _ = _line_below(low, origin, size)
    last, line = _line_below(high, origin, size)
    on_line_above = origin + (first + 1) * size - low <= size / (2 * STEPS)
    on_line_below = high - line <= size / (2 * STEPS)
    first_read, last_read = first + on_line_above, last - on_line_below
    # A query thinner than a lattice step is taken as it is, open ends and all.
    thin = last_read < first_read
    first_area = np.where(thin, first, first_read)
    last_area = np.where(thin, np.maximum(last - (high <= line), first), last_read)
    first, last = np.where(area, first_area, first), np.where(area, last_area, last)
    return np.maximum(first, 0), np.minimum(last, n - 1)


def axis_range(
    low: float, high: float, area: bool, origin: float, size: float, n: int
) -> tuple[int, int]:
    """Return what `axis_ranges` does, for one query, without the cost of arrays."""
    low = min(max(low, origin - size), origin + (n + 1) * size)
    high = min(max(high, origin - size), origin + (n + 1) * size)
    first, last = _line_number(low, origin, size), _line_number(high, origin, size)
    if area:
        first_read = first + (origin + (first + 1) * size - low <= size / (2 * STEPS))
        last_read = last - (high - (origin + last * size) <= size / (2 * STEPS))
        if last_read < first_read:
            first_read = first
            last_read = max(last - (high <= origin + last * size), first)
        first, last = first_read, last_read
    return max(first, 0), min(last, n - 1)


def _line_number(x: float, origin: float, size: float) -> int:
    i = math.floor((x - origin) / size)
    if x < origin + i * size:
        return i - 1
    if x >= origin + (i + 1) * size:
        return i + 1
    return i
