"""Hot loops of the search for the disc that reaches most components: buckets, distances, squares.

Coordinates differ by at most 1.5 * 2**30, so dot and cross products are exact in int64. A
distance is then one root and at most one quotient of floats: it is off by less than 2**-18 steps.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def bucketed(parts, buckets):
    """Return which segments cross each bucket, as offsets and members; some may only come near.

    Parameters
    ----------
    parts : int64 (m, 4)
        Segments.
    buckets : tuple of int
        The corner of the first bucket, the side of each, how many columns and rows there are.
    """
    _, _, _, n_cols, n_rows = buckets
    offsets = np.zeros(n_cols * n_rows + 1, np.int64)
    _enter(parts, buckets, offsets, offsets[:0], False)
    for b in range(1, offsets.size):
        offsets[b] += offsets[b - 1]
    members = np.empty(offsets[-1], np.int64)
    # These are the ends of the lists now; filled from behind, they become the beginnings.
    _enter(parts, buckets, offsets, members, True)
    return offsets, members


@njit(cache=True, nogil=True)
def _enter(parts, buckets, offsets, members, write):
    """Count the segments of each bucket, or write them down.

    A segment is entered row by row of the buckets, over the columns that it has there: a long and
    slanted one would fill its box.
    """
    x0, y0, side, n_cols, _ = buckets
    for i in range(len(parts)):
        ax, ay, bx, by = parts[i, 0], parts[i, 1], parts[i, 2], parts[i, 3]
        if ay > by:
            ax, ay, bx, by = bx, by, ax, ay
        slope = float(bx - ax) / float(max(by - ay, 1))
        for row in range((ay - y0) // side, (by - y0) // side + 1):
            # Where it enters and leaves the row, with a step as room for what floats round.
            one = slope * float(max(y0 + row * side - ay, 0))
            other = slope * float(min(y0 + (row + 1) * side - ay, by - ay))
            if ay == by:
                other = float(bx - ax)
            first = max(ax + np.int64(math.floor(min(one, other))) - 1, min(ax, bx))
            last = min(ax + np.int64(math.ceil(max(one, other))) + 1, max(ax, bx))
            for col in range((first - x0) // side, (last - x0) // side + 1):
                b = row * n_cols + col
                if write:
                    offsets[b] -= 1
                    members[offsets[b]] = i
                else:
                    offsets[b] += 1


@njit(cache=True, nogil=True)
def search(parts, owner, radius, buckets, offsets, members, root, most_squares):
    """Return the most components within `radius` of a lattice point, proven and found, and where.

    A square is the lattice points ``x .. x + size - 1`` by ``y .. y + size - 1``, its centre the
    one in the middle or just above: none of its points is further from it than size / sqrt(2).
    Squares wait in a heap, those that may reach most first, among equals the smallest: so the
    first bounds all that are left, and good centres are found early.
    """
    x0, y0, _, _, _ = buckets
    mark = np.full(owner.max() + 1, -1, np.int64)
    best, best_x, best_y = 0, x0, y0
    heap = [(-mark.size, root, x0, y0)]
    looked = 0
    while heap and -heap[0][0] > best:
        if looked >= most_squares:
            return -heap[0][0], best, best_x, best_y
        _, size, x, y = heapq.heappop(heap)
        half = size // 2
        far = radius + (half * math.sqrt(0.5) if half > 1 else 0.0)
        for quarter in range(4):
            left, low = x + (quarter & 1) * half, y + (quarter >> 1) * half
            px, py = left + half // 2, low + half // 2
            looked += 1
            near, may_be = _reached(
                px, py, radius, far, parts, owner, buckets, offsets, members, mark, 2 * looked
            )
            if near > best:
                best, best_x, best_y = near, px, py
            if may_be > best:
                heapq.heappush(heap, (-may_be, half, left, low))
    return best, best, best_x, best_y


@njit(cache=True, nogil=True)
def _reached(px, py, radius, far, parts, owner, buckets, offsets, members, mark, stamp):
    """Return how many components are within `radius` of a point, and how many within `far`.

    `mark` is `stamp` for a component seen within `far`, one more for one within `radius`.
    """
    x0, y0, side, n_cols, n_rows = buckets
    n_near = n_far = 0
    reach = np.int64(far) + 1
    col0, col1 = max((px - reach - x0) // side, 0), min((px + reach - x0) // side, n_cols - 1)
    row0, row1 = max((py - reach - y0) // side, 0), min((py + reach - y0) // side, n_rows - 1)
    if col0 > col1:
        return n_near, n_far
    for row in range(row0, row1 + 1):
        for k in range(offsets[row * n_cols + col0], offsets[row * n_cols + col1 + 1]):
            i = members[k]
            c = owner[i]
            if mark[c] > stamp:
                continue
            d = _distance(px, py, parts[i, 0], parts[i, 1], parts[i, 2], parts[i, 3])
            if d <= far and mark[c] < stamp:
                n_far += 1
                mark[c] = stamp
            if d <= radius:
                n_near += 1
                mark[c] = stamp + 1
    return n_near, n_far


@njit(cache=True, nogil=True)
def _distance(px, py, ax, ay, bx, by):
    """Return the distance from a point to a segment."""
    dx, dy, ex, ey = bx - ax, by - ay, px - ax, py - ay
    along = dx * ex + dy * ey
    squared = dx * dx + dy * dy
    if along <= 0:
        return math.sqrt(float(ex * ex + ey * ey))
    if along >= squared:
        fx, fy = px - bx, py - by
        return math.sqrt(float(fx * fx + fy * fy))
    return abs(float(dx * ey - dy * ex)) / math.sqrt(float(squared))
