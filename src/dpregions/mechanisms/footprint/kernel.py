"""Hot loops of the footprint mechanism: outlines -> footprints and patterns -> Euler arrays.

A footprint is the rows and columns of the cells inside the area that a body touches. A
pattern is which components of its footprint it touches: on each doubled row one span of cell
columns, relative to the footprint's left column, (1, 0) where there is none.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpregions.geometry.kernel import PAD, row_spans, span_buffers


@njit(cache=True, nogil=True)
def footprints(xy, offsets, n_rows, n_cols, side):
    """Return each outline's footprint ``row, col, height, width`` and its pattern's spans.

    A body that touches no cell has height 0. Heights and widths are at most `side`; the
    intake's bound makes that hold, and a body beyond it is left out.
    """
    n = offsets.size - 1
    places = np.zeros((n, 4), np.int64)
    spans = np.zeros((n, 2 * side - 1, 2), np.int16)
    spans[:, :, 0] = 1
    low, high = span_buffers(n_rows)
    for i in range(n):
        start, stop = offsets[i], offsets[i + 1]
        if start == stop:
            continue
        first, last = row_spans(xy, start, stop, n_rows, low, high)
        row, top, left, right = -1, -1, n_cols, -1
        for r in range(first, last + 1):
            a, b = max(low[2 * r + PAD], 0), min(high[2 * r + PAD], n_cols - 1)
            if a <= b:
                if row < 0:
                    row = r
                top, left, right = r, min(left, a), max(right, b)
        if row < 0 or top - row >= side or right - left >= side:
            continue
        places[i, 0], places[i, 1] = row, left
        places[i, 2], places[i, 3] = top - row + 1, right - left + 1
        for d in range(2 * row, 2 * top + 1):
            a, b = max(low[d + PAD], 0), min(high[d + PAD], n_cols - 1)
            if a <= b:
                spans[i, d - 2 * row, 0], spans[i, d - 2 * row, 1] = a - left, b - left
    return places, spans


@njit(cache=True, nogil=True)
def nearest_patterns(heights, widths, spans, first, last, known):
    """Return, for each body, the catalogue's pattern of its footprint that differs least.

    ``first[h, w]:last[h, w]`` are the patterns `known` of footprints h x w. Faces weigh more
    than lines: they decide the answers to rectangles.
    """
    n = heights.size
    chosen = np.empty(n, np.int64)
    for i in range(n):
        h, w = heights[i], widths[i]
        best, least = first[h, w], 1 << 30
        for p in range(first[h, w], last[h, w]):
            off = 0
            for d in range(2 * h - 1):
                gap = abs(spans[i, d, 0] - known[p, d, 0]) + abs(spans[i, d, 1] - known[p, d, 1])
                off += gap if d % 2 else 4 * gap
                if off >= least:
                    break
            if off < least:
                best, least = p, off
            if least == 0:
                break
        chosen[i] = best
    return chosen


@njit(cache=True, nogil=True)
def add_means(values, rows, cols, letters, heights, widths, means, out):
    """Add to `out` each bucket's value times the mean pattern of its letter."""
    for i in range(values.size):
        v, k = values[i], letters[i]
        if v == 0.0:
            continue
        for d in range(2 * heights[k] - 1):
            for e in range(2 * widths[k] - 1):
                out[2 * rows[i] + d, 2 * cols[i] + e] += v * means[k, d, e]


@njit(cache=True, nogil=True)
def weigh_means(signs, rows, cols, letters, heights, widths, means):
    """Return, for each bucket, the sum of its letter's mean pattern times `signs`."""
    weights = np.zeros(rows.size)
    for i in range(rows.size):
        k, total = letters[i], 0.0
        for d in range(2 * heights[k] - 1):
            for e in range(2 * widths[k] - 1):
                total += signs[2 * rows[i] + d, 2 * cols[i] + e] * means[k, d, e]
        weights[i] = total
    return weights
