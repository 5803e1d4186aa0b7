"""Hot loops of queries as drawn: how likely a body in each bucket touches a shape.

Floats, in cells from the grid's corner: they weigh estimates and intervals, never a count. A shape
is its edges, each ``x0, y0, x1, y1``; those of rings say what lies inside, by even and odd. A cell
is outside (0), inside (1) or crossed by edges (2), and lists those.
"""

from __future__ import annotations

import math

import numpy as np

from dpregions.compiled import njit

OUTSIDE, INSIDE, CROSSED = 0, 1, 2
_REF_X, _REF_Y = 0.4871, 0.5219  # of the point of a cell that parity is known of: no round place
_EPS = 1e-9


@njit(cache=True, nogil=True)
def _columns(edge, row, first, last):
    """Return the columns of the cells of a row that an edge passes, a little widened."""
    x0, y0, x1, y1 = edge[0], edge[1], edge[2], edge[3]
    low, high = min(x0, x1), max(x0, x1)
    if y0 != y1:
        a = x0 + (x1 - x0) * ((row - y0) / (y1 - y0))
        b = x0 + (x1 - x0) * ((row + 1 - y0) / (y1 - y0))
        low, high = max(low, min(a, b)), min(high, max(a, b))
    # Far away, numbers do not fit integers: cut first.
    low, high = max(low - _EPS, first), min(high + _EPS, last + 0.5)
    return math.floor(low), math.floor(high)


@njit(cache=True, nogil=True)
def _rows(edge, first, last):
    """Return the rows of cells that an edge passes, a little widened."""
    low, high = min(edge[1], edge[3]) - _EPS, max(edge[1], edge[3]) + _EPS
    return math.floor(max(low, first)), math.floor(min(high, last + 0.5))


@njit(cache=True, nogil=True)
def marked_cells(edges, n_ring, r0, r1, c0, c1):
    """Return the cells of a range: their states, and the lists of the edges that pass them.

    Beside the states, whether each one's reference point is inside. The first `n_ring` edges are
    of rings.
    """
    rows, cols = r1 - r0 + 1, c1 - c0 + 1
    starts = np.zeros(rows * cols + 1, np.int64)
    flips = np.zeros((rows, cols + 1), np.bool_)
    for i in range(len(edges)):
        a, b = _rows(edges[i], r0, r1)
        for r in range(a, b + 1):
            left, right = _columns(edges[i], r, c0, c1)
            for c in range(left, right + 1):
                starts[(r - r0) * cols + c - c0 + 1] += 1
        if i < n_ring:
            x0, y0, x1, y1 = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
            for r in range(a, b + 1):
                y = r + _REF_Y
                if (y0 <= y) != (y1 <= y):
                    x = x0 + (x1 - x0) * ((y - y0) / (y1 - y0)) - _REF_X - c0
                    at = math.floor(min(max(x, -1.0), float(cols))) + 1
                    flips[r - r0, min(at, cols)] ^= True
    starts = np.cumsum(starts)
    used, listed = starts[:-1].copy(), np.empty(starts[-1], np.int64)
    for i in range(len(edges)):
        a, b = _rows(edges[i], r0, r1)
        for r in range(a, b + 1):
            left, right = _columns(edges[i], r, c0, c1)
            for c in range(left, right + 1):
                cell = (r - r0) * cols + c - c0
                listed[used[cell]] = i
                used[cell] += 1
    state, inside = np.empty((rows, cols), np.int8), np.empty((rows, cols), np.bool_)
    for r in range(rows):
        within = False
        for c in range(cols):
            within ^= flips[r, c]
            inside[r, c] = within
            cell = r * cols + c
            crossed = starts[cell] < starts[cell + 1]
            state[r, c] = CROSSED if crossed else (INSIDE if within else OUTSIDE)
    return state, inside, starts, listed


@njit(cache=True, nogil=True)
def _meets(x0, y0, x1, y1, xy, start, stop):
    """Whether a segment meets a convex outline: what its half-planes leave of the segment."""
    t0, t1 = 0.0, 1.0
    dx, dy = x1 - x0, y1 - y0
    ax, ay = xy[stop - 1, 0], xy[stop - 1, 1]
    for i in range(start, stop):
        bx, by = xy[i, 0], xy[i, 1]
        at = (bx - ax) * (y0 - ay) - (by - ay) * (x0 - ax)
        slope = (bx - ax) * dy - (by - ay) * dx
        if slope == 0.0:
            if at < 0.0:
                return False
        elif slope > 0.0:
            t0 = max(t0, -at / slope)
        else:
            t1 = min(t1, -at / slope)
        if t0 > t1:
            return False
        ax, ay = bx, by
    return True


@njit(cache=True, nogil=True)
def _crossed(edges, n_ring, starts, listed, cell, x, y, u, v):
    """Whether the way between two points of a cell crosses an odd number of edges of rings."""
    odd = False
    for k in range(starts[cell], starts[cell + 1]):
        i = listed[k]
        if i >= n_ring:
            continue
        ax, ay, bx, by = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        a = (u - x) * (ay - y) - (v - y) * (ax - x)
        b = (u - x) * (by - y) - (v - y) * (bx - x)
        if (a > 0.0) != (b > 0.0):
            p = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
            q = (bx - ax) * (v - ay) - (by - ay) * (u - ax)
            odd ^= (p > 0.0) != (q > 0.0)
    return odd


@njit(cache=True, nogil=True)
def _touches(xy, start, stop, row, col, spans, height, all_crossed, shape, marks):
    """Whether an outline at a place touches a shape, of which it touches crossed cells alone."""
    edges, n_ring = shape
    state, inside, starts, listed, r0, c0 = marks
    rows, cols = state.shape
    xmin, ymin = xy[start, 0], xy[start, 1]
    xmax, ymax = xmin, ymin
    for i in range(start + 1, stop):
        xmin, xmax = min(xmin, xy[i, 0]), max(xmax, xy[i, 0])
        ymin, ymax = min(ymin, xy[i, 1]), max(ymax, xy[i, 1])
    for d in range(height):
        r = row + d - r0
        if not 0 <= r < rows:
            continue
        first, last = max(col + spans[2 * d, 0] - c0, 0), min(col + spans[2 * d, 1] - c0, cols - 1)
        for c in range(first, last + 1):
            for k in range(starts[r * cols + c], starts[r * cols + c + 1]):
                i = listed[k]
                x0, y0, x1, y1 = (
                    edges[i, 0] - col,
                    edges[i, 1] - row,
                    edges[i, 2] - col,
                    edges[i, 3] - row,
                )
                if max(x0, x1) < xmin or min(x0, x1) > xmax:
                    continue
                if max(y0, y1) < ymin or min(y0, y1) > ymax:
                    continue
                if _meets(x0, y0, x1, y1, xy, start, stop):
                    return True
    # No edge comes near: it lies inside or outside as a whole.
    if not all_crossed:
        return False
    x, y = xy[start, 0] + col, xy[start, 1] + row
    r, c = math.floor(y), math.floor(x)
    cell = (r - r0) * cols + c - c0
    odd = _crossed(edges, n_ring, starts, listed, cell, c + _REF_X, r + _REF_Y, x, y)
    return inside[r - r0, c - c0] ^ odd


@njit(cache=True, nogil=True)
def _running(state, value):
    """Return how many cells of each row are of a state, up to each column."""
    rows, cols = state.shape
    sums = np.zeros((rows, cols + 1), np.int64)
    for r in range(rows):
        for c in range(cols):
            sums[r, c + 1] = sums[r, c] + (state[r, c] == value)
    return sums


@njit(cache=True, nogil=True)
def _pattern_chance(p, row, col, height, spans, begin, end, xy, small, offsets, shape, marks, runs):
    """Return the shares of a pattern's witnesses, and of its least ones, that touch a shape."""
    state, _, _, _, r0, c0 = marks
    inner, crossed = runs
    rows, cols = state.shape
    n_cells, n_crossed = 0, 0
    for d in range(height):
        r = row + d - r0
        a, b = col + spans[p, 2 * d, 0] - c0, col + spans[p, 2 * d, 1] - c0
        n_cells += b - a + 1
        if 0 <= r < rows:
            a, b = max(a, 0), min(b, cols - 1)
            if a <= b:
                if inner[r, b + 1] > inner[r, a]:
                    return 1.0, 1.0
                n_crossed += crossed[r, b + 1] - crossed[r, a]
    if n_crossed == 0:
        return 0.0, 0.0
    whole = n_crossed == n_cells
    hits, small_hits = 0, 0
    for w in range(begin[p], end[p]):
        start, stop = offsets[w], offsets[w + 1]
        if _touches(xy, start, stop, row, col, spans[p], height, whole, shape, marks):
            hits += 1
            if _touches(small, start, stop, row, col, spans[p], height, whole, shape, marks):
                small_hits += 1
    n = end[p] - begin[p]
    return hits / n, small_hits / n


@njit(cache=True, nogil=True)
def bucket_chances(
    letters, starts, n_rows, n_cols, weights, spans, begin, end, xy, small, offsets, shape, marks
):
    """Return the buckets near a shape, the chance that a body in each touches it, and a least one.

    `letters` has a row ``height, width, first pattern, last + 1`` for each; a body of letter k has
    pattern p with the chance ``weights[p]``, and each of the witnesses ``begin[p]:end[p]`` alike.
    `small` are the same witnesses as small as they can be. `marks` are of the cells of a range, as
    `marked_cells` has them, with the range's first row and column.
    """
    state, _, _, _, r0, c0 = marks
    rows, cols = state.shape
    runs = _running(state, INSIDE), _running(state, CROSSED)
    n = 0
    for k in range(len(letters)):
        h, w = letters[k, 0], letters[k, 1]
        tall = min(r0 + rows - 1, n_rows - h) - max(r0 - h + 1, 0) + 1
        wide = min(c0 + cols - 1, n_cols - w) - max(c0 - w + 1, 0) + 1
        n += max(tall, 0) * max(wide, 0)
    which, chance, least = np.empty(n, np.int64), np.zeros(n), np.zeros(n)
    used = 0
    for k in range(len(letters)):
        h, w = letters[k, 0], letters[k, 1]
        for row in range(max(r0 - h + 1, 0), min(r0 + rows - 1, n_rows - h) + 1):
            for col in range(max(c0 - w + 1, 0), min(c0 + cols - 1, n_cols - w) + 1):
                which[used] = starts[k] + row * (n_cols - w + 1) + col
                in_all, any_here = 0, False
                a, b = max(col - c0, 0), min(col + w - 1 - c0, cols - 1)
                for r in range(max(row - r0, 0), min(row + h - 1 - r0, rows - 1) + 1):
                    n_inner = runs[0][r, b + 1] - runs[0][r, a]
                    in_all += n_inner
                    any_here |= n_inner > 0 or runs[1][r, b + 1] > runs[1][r, a]
                if in_all == h * w:
                    chance[used], least[used] = 1.0, 1.0
                elif any_here:
                    for p in range(letters[k, 2], letters[k, 3]):
                        found, found_small = _pattern_chance(
                            p,
                            row,
                            col,
                            h,
                            spans,
                            begin,
                            end,
                            xy,
                            small,
                            offsets,
                            shape,
                            marks,
                            runs,
                        )
                        chance[used] += weights[p] * found
                        least[used] += weights[p] * found_small
                used += 1
    return which, chance, least
