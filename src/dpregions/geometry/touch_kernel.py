"""Hot loops over outlines and queries: which cells, row spans and footprints they touch.

Integer arithmetic alone, so results are exact, and the same on every platform, engine and order
of rows. Outlines are those of `hull_kernel.py`: vertices `xy[offsets[i]:offsets[i + 1]]` belong
to body `i`, counter-clockwise. Nothing here knows of users, files or noise.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit
from dpregions.geometry.hull_kernel import floor_muldiv
from dpregions.geometry.lattice import LATTICE_BITS, STEPS

_HALF = STEPS // 2

PAD = 2
"""Entries before doubled row 0 in the buffers of `row_spans` (and as many after the last)."""

_NOTED = 4096
"""Ends of spans that are noted before they are added."""


@njit(cache=True, nogil=True)
def span_buffers(n_rows):
    """Return two buffers for `row_spans`."""
    size = 2 * n_rows - 1 + 2 * PAD
    return np.empty(size, np.int64), np.empty(size, np.int64)


@njit(cache=True, nogil=True)
def row_spans(xy, start, stop, n_rows, low, high):
    """Write one outline's first and last cell column on each doubled row d to low, high [d + PAD].

    Columns are not cut to the area. A line belongs to the row above it: line r is hit when
    the body reaches from below line r to it or beyond, and then it bounds rows r-1 and r.

    Returns
    -------
    first, last
        The rows of cells inside the area that the body's bounding box meets; doubled rows
        ``2*first .. 2*last`` are written. ``last < first``: none.
    """
    ymin, ymax = xy[start, 1], xy[start, 1]
    for i in range(start + 1, stop):
        ymin, ymax = min(ymin, xy[i, 1]), max(ymax, xy[i, 1])
    first, last = max(ymin >> LATTICE_BITS, 0), min(ymax >> LATTICE_BITS, n_rows - 1)
    for d in range(2 * first + PAD, 2 * last + PAD + 1):
        low[d], high[d] = np.int64(1) << 60, -(np.int64(1) << 60)
    x0, y0 = xy[stop - 1, 0], xy[stop - 1, 1]
    for i in range(start, stop):
        x1, y1 = xy[i, 0], xy[i, 1]
        row, col = y1 >> LATTICE_BITS, x1 >> LATTICE_BITS
        if first <= row <= last:
            d = 2 * row + PAD
            low[d], high[d] = min(low[d], col), max(high[d], col)
        # Counter-clockwise: the right side goes up, the left side down. Lines in (lower, upper].
        if y0 < y1:
            stop_line = min(y1 >> LATTICE_BITS, last + 1)
            for r in range(max((y0 >> LATTICE_BITS) + 1, first), stop_line + 1):
                at = x0 + floor_muldiv(x1 - x0, (r << LATTICE_BITS) - y0, y1 - y0)
                col, d = at >> LATTICE_BITS, 2 * r + PAD
                high[d - 2], high[d - 1], high[d] = max(high[d - 2], col), col, max(high[d], col)
        elif y0 > y1:
            stop_line = min(y0 >> LATTICE_BITS, last + 1)
            for r in range(max((y1 >> LATTICE_BITS) + 1, first), stop_line + 1):
                at = x1 + floor_muldiv(x0 - x1, (r << LATTICE_BITS) - y1, y0 - y1)
                col, d = at >> LATTICE_BITS, 2 * r + PAD
                low[d - 2], low[d - 1], low[d] = min(low[d - 2], col), col, min(low[d], col)
        x0, y0 = x1, y1
    return first, last


@njit(cache=True, nogil=True)
def touching(xy, offsets, n_rows, n_cols):
    """Say which outlines touch a cell of the area."""
    low, high = span_buffers(n_rows)
    touched = np.zeros(offsets.size - 1, np.bool_)
    for i in range(offsets.size - 1):
        start, stop = offsets[i], offsets[i + 1]
        if start == stop:
            continue
        first, last = row_spans(xy, start, stop, n_rows, low, high)
        for r in range(first, last + 1):
            d = 2 * r + PAD
            if max(low[d], 0) <= min(high[d], n_cols - 1):
                touched[i] = True
                break
    return touched


@njit(cache=True, nogil=True)
def _box(xy, start, stop, n_rows, n_cols, side, low, high):
    """Return the rows and columns of cells of one footprint; `low` and `high` get its spans."""
    first, last = 0, -1
    if start < stop:
        first, last = row_spans(xy, start, stop, n_rows, low, high)
    row, top, left, right = -1, -1, n_cols, -1
    for r in range(first, last + 1):
        a, b = max(low[2 * r + PAD], 0), min(high[2 * r + PAD], n_cols - 1)
        if a <= b:
            if row < 0:
                row = r
            top, left, right = r, min(left, a), max(right, b)
    if row < 0 or top - row >= side or right - left >= side:
        return 0, 0, 0, 0
    return row, left, top - row + 1, right - left + 1


@njit(cache=True, nogil=True)
def footprint(xy, start, stop, n_rows, n_cols, side, low, high, spans):
    """Return one outline's footprint ``row, col, height, width``; write the spans it touches there.

    A footprint is the rows and columns of the cells inside the area that a body touches. Spans
    are of cell columns from the footprint's left, one on each doubled row, (1, 0) for none.
    A body that touches no cell has height 0. Heights and widths are at most `side`; the intake's
    bound makes that hold, and a body beyond it touches none. `low` and `high` are `span_buffers`.
    """
    row, left, height, width = _box(xy, start, stop, n_rows, n_cols, side, low, high)
    for d in range(2 * side - 1):
        a, b = left + 1, left
        if d <= 2 * (height - 1):
            at = d + 2 * row + PAD
            a, b = max(low[at], 0), min(high[at], n_cols - 1)
        hit = a <= b
        spans[d, 0], spans[d, 1] = a - left if hit else 1, b - left if hit else 0
    return row, left, height, width


@njit(cache=True, nogil=True)
def footprints(xy, offsets, n_rows, n_cols, side, empty):
    """Return what `footprint` does of each outline; one without any has a row only if `empty`."""
    n, used = offsets.size - 1, 0
    places = np.empty((n, 4), np.int64)
    spans = np.empty((n, 2 * side - 1, 2), np.int16)
    low, high = span_buffers(n_rows)
    for i in range(n):
        row, col, height, width = footprint(
            xy, offsets[i], offsets[i + 1], n_rows, n_cols, side, low, high, spans[used]
        )
        if height == 0 and not empty:
            continue
        places[used, 0], places[used, 1] = row, col
        places[used, 2], places[used, 3] = height, width
        used += 1
    return places[:used], spans[:used]


@njit(cache=True, nogil=True)
def add_bodies(xy, offsets, n_rows, n_cols, steps):
    """Add outlines to a difference array of shape (2 * n_rows - 1, 2 * n_cols).

    The running sum of `steps` along its rows is the histogram (and a last column of zeros).
    """
    low, high = span_buffers(n_rows)
    flat, width = steps.reshape(-1), 2 * n_cols
    # Noted first and added together: of an array beyond the cache, many entries then come at once.
    ends, n = np.empty(_NOTED, np.int64), 0
    for i in range(offsets.size - 1):
        start, stop = offsets[i], offsets[i + 1]
        if start == stop:
            continue
        first, last = row_spans(xy, start, stop, n_rows, low, high)
        for d in range(2 * first, 2 * last + 1):
            a, b = max(low[d + PAD], 0), min(high[d + PAD], n_cols - 1)
            if a > b:
                continue
            ends[n], ends[n + 1] = d * width + 2 * a, d * width + 2 * b + 1
            n += 2
            if n == _NOTED:
                _add_ends(ends, n, flat)
                n = 0
    _add_ends(ends, n, flat)


@njit(cache=True, nogil=True)
def _add_ends(ends, n, flat):
    """Add 1 where a span begins and take 1 where it ends, for ``n / 2`` spans."""
    for j in range(0, n, 2):
        flat[ends[j]] += 1
        flat[ends[j + 1]] -= 1


@njit(cache=True, nogil=True)
def _mark_edge(x0, y0, x1, y1, r0, c0, mask):
    """Mark the cells whose open interior a segment passes through."""
    if y0 > y1:
        x0, y0, x1, y1 = x1, y1, x0, y0
    rows, cols = mask.shape
    top = y1 >> LATTICE_BITS
    if y1 == top << LATTICE_BITS:
        if y0 == y1:
            return  # along a line: no open cell
        top -= 1
    for r in range(max(y0 >> LATTICE_BITS, r0), min(top, r0 + rows - 1) + 1):
        a_floor, a_ceil = x0, x0
        b_floor, b_ceil = x1, x1
        if y0 != y1:
            low, high = max(y0, r << LATTICE_BITS), min(y1, (r + 1) << LATTICE_BITS)
            a_floor = x0 + floor_muldiv(x1 - x0, low - y0, y1 - y0)
            a_ceil = x0 - floor_muldiv(x0 - x1, low - y0, y1 - y0)
            b_floor = x0 + floor_muldiv(x1 - x0, high - y0, y1 - y0)
            b_ceil = x0 - floor_muldiv(x0 - x1, high - y0, y1 - y0)
        if x0 == x1:
            if x0 == (x0 >> LATTICE_BITS) << LATTICE_BITS:
                return  # along a line
            left, right = x0 >> LATTICE_BITS, x0 >> LATTICE_BITS
        else:
            left = min(a_floor, b_floor) >> LATTICE_BITS
            right = (max(a_ceil, b_ceil) - 1) >> LATTICE_BITS
        for c in range(max(left, c0), min(right, c0 + cols - 1) + 1):
            mask[r - r0, c - c0] = True


@njit(cache=True, nogil=True)
def add_patterns(spans, pattern, row, col, times, steps):
    """Add spans of cell columns to differences along doubled rows, each so many times.

    ``spans[pattern[i], d]`` are the first and last column on doubled row d of body i, counted
    from its cell (row[i], col[i]); first > last: none.
    """
    n_rows, n_cols = steps.shape
    for i in range(pattern.size):
        for d in range(spans.shape[1]):
            first, last = spans[pattern[i], d, 0], spans[pattern[i], d, 1]
            if first > last:
                continue
            r, low, high = 2 * row[i] + d, 2 * (col[i] + first), 2 * (col[i] + last) + 1
            if r < 0 or r >= n_rows or low < 0 or high >= n_cols:
                raise IndexError("a body lies outside the grid")
            steps[r, low] += times[i]
            steps[r, high] -= times[i]


@njit(cache=True, nogil=True)
def mark_polygon(xy, ring_offsets, r0, c0, mask):
    """Mark the cells whose interior meets a polygon's interior (even-odd over its rings).

    A cell is met when an edge passes through its interior, or when none does and its centre
    is inside. `mask` covers the cells from (r0, c0) on.
    """
    rows, cols = mask.shape
    flips = np.zeros((rows, cols + 1), np.bool_)
    for ring in range(ring_offsets.size - 1):
        for i in range(ring_offsets[ring], ring_offsets[ring + 1] - 1):
            x0, y0, x1, y1 = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
            _mark_edge(x0, y0, x1, y1, r0, c0, mask)
            if y0 > y1:
                x0, y0, x1, y1 = x1, y1, x0, y0
            # Rows whose centre line y satisfies y0 <= y < y1.
            below = -((_HALF - y0) >> LATTICE_BITS)
            above = -((_HALF - y1) >> LATTICE_BITS) - 1
            for r in range(max(below, r0), min(above, r0 + rows - 1) + 1):
                y = (r << LATTICE_BITS) + _HALF
                at = x0 + floor_muldiv(x1 - x0, y - y0, y1 - y0)
                c = ((at - _HALF) >> LATTICE_BITS) + 1
                c = min(max(c - c0, 0), cols)
                flips[r - r0, c] = not flips[r - r0, c]
    for r in range(rows):
        inside = False
        for c in range(cols):
            inside ^= flips[r, c]
            if inside:
                mask[r, c] = True


@njit(cache=True, nogil=True)
def mark_path(xy, n_rows, n_cols, r0, c0, mask):
    """Mark the cells that a point or a path touches, by the rule for bodies."""
    low, high = span_buffers(n_rows)
    for i in range(max(xy.shape[0] - 1, 1)):
        first, last = row_spans(xy, i, min(i + 2, xy.shape[0]), n_rows, low, high)
        for r in range(first, last + 1):
            for c in range(max(low[2 * r + PAD], 0), min(high[2 * r + PAD], n_cols - 1) + 1):
                mask[r - r0, c - c0] = True
