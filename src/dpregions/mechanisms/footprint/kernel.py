"""Hot loops of the footprint mechanism: footprints -> patterns -> Euler arrays.

A pattern is which components of its footprint a body touches: on each doubled row one span of
cell columns, relative to the footprint's left column, (1, 0) where there is none.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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
