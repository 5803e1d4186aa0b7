"""Hot loops over records: coordinates -> convex hulls -> integer outlines, within the bound.

Everything after the snap is integer arithmetic and exact, so results are the same on every
platform, engine and order of rows. Nothing here knows of users, files or noise, and nothing
raises for what a record holds: a record that is no place becomes the empty outline.

An outline is the convex hull of a body in lattice steps from the grid's corner: counter-
clockwise from its leftmost (then lowest) vertex, without collinear vertices. Outlines are
ragged: vertices `xy[offsets[i]:offsets[i + 1]]` belong to body `i`.
"""

from __future__ import annotations

import math

import numpy as np

from dpregions.bit_mixing import FIRST, GOLDEN, SECOND, scrambled
from dpregions.compiled import njit
from dpregions.geometry.lattice import LATTICE_BITS, REACH, STEPS

_SMALL = 1 << 26
_RUN = 16
_FEW = 32
_NEAR = 1 << 30  # sums of two squares below it are exact in int64


@njit(cache=True, nogil=True)
def floor_muldiv(a, b, c):
    """Return floor(a * b / c) for c > 0, exactly, while the result stays below 2**50.

    A product below 2**52 is exact as a float, and its quotient's rounding is less than the
    distance 1/c to the next whole number. Beyond, the float quotient is off by at most one; the
    remainder is small, so computing it modulo 2**64 gives it exactly even where the product
    does not fit.
    """
    if -_SMALL < a < _SMALL and -_SMALL < b < _SMALL:
        return np.int64(math.floor(float(a * b) / float(c)))
    q = np.int64(math.floor(float(a) * float(b) / float(c)))
    r = a * b - q * c
    while r < 0:
        q -= 1
        r += c
    while r >= c:
        q += 1
        r -= c
    return q


@njit(cache=True, nogil=True)
def turn(ax, ay, bx, by):
    """Return the sign of the cross product a x b, exactly, for entries below 2**52."""
    p, q = float(ax) * float(by), float(ay) * float(bx)
    bound = (abs(p) + abs(q)) * 2.0**-51
    if p - q > bound:
        return 1
    if q - p > bound:
        return -1
    # The true value is below 2**55 in size here, so arithmetic modulo 2**64 has it exactly.
    d = ax * by - ay * bx
    return 1 if d > 0 else (-1 if d < 0 else 0)


@njit(cache=True, nogil=True)
def snap(x, origin, size):
    """Return a coordinate in lattice steps by floor, exact on the grid's lines."""
    i = np.int64(math.floor((x - origin) * (1.0 / size)))
    line = origin + i * size
    if x < line:
        i -= 1
        line = origin + i * size
    elif x >= origin + (i + 1) * size:
        i += 1
        line = origin + i * size
    within = np.int64((x - line) * (STEPS / size))
    return (i << LATTICE_BITS) + min(within, STEPS - 1)


@njit(cache=True, nogil=True)
def _sort_points(xs, ys, m, other_xs, other_ys):
    """Sort the first m points by x, then y: short runs by insertion, then runs merged.

    A record may hold millions of points in any order, so no order may be slow. The other two
    arrays are room to merge into.
    """
    for start in range(0, m, _RUN):
        for i in range(start + 1, min(start + _RUN, m)):
            x, y = xs[i], ys[i]
            j = i
            while j > start and (xs[j - 1] > x or (xs[j - 1] == x and ys[j - 1] > y)):
                xs[j], ys[j] = xs[j - 1], ys[j - 1]
                j -= 1
            xs[j], ys[j] = x, y
    run = _RUN
    while run < m:
        for start in range(0, m, 2 * run):
            middle, stop = min(start + run, m), min(start + 2 * run, m)
            _merge_runs(xs, ys, start, middle, stop, other_xs, other_ys)
        run *= 2


@njit(cache=True, nogil=True)
def _merge_runs(xs, ys, start, middle, stop, left_xs, left_ys):
    """Merge two neighbouring sorted runs of points in place, the left one by way of a copy."""
    for i in range(middle - start):
        left_xs[i], left_ys[i] = xs[start + i], ys[start + i]
    i, j, to = 0, middle, start
    while i < middle - start:
        if j < stop and (xs[j] < left_xs[i] or (xs[j] == left_xs[i] and ys[j] < left_ys[i])):
            xs[to], ys[to] = xs[j], ys[j]
            j += 1
        else:
            xs[to], ys[to] = left_xs[i], left_ys[i]
            i += 1
        to += 1


@njit(cache=True, nogil=True)
def convex_ring(xs, ys, m, hx, hy):
    """Write a closed ring that already is a strict hull to hx, hy; return its size, else 0.

    All turns to one side and a single lexicographic minimum: the ring goes round once.
    """
    m -= 1
    if m < 3 or xs[0] != xs[m] or ys[0] != ys[m]:
        return 0
    side, lowest, minima = 0, 0, 0
    for i in range(m):
        before = i - 1 if i > 0 else m - 1
        ax, ay = xs[i] - xs[before], ys[i] - ys[before]
        bx, by = xs[i + 1] - xs[i], ys[i + 1] - ys[i]
        way = turn(ax, ay, bx, by)
        if way == 0 or way == -side:
            return 0
        side = way
        if (ax < 0 or (ax == 0 and ay < 0)) and (bx > 0 or (bx == 0 and by > 0)):
            lowest = i
            minima += 1
    if minima != 1:
        return 0
    for i in range(m):
        j = lowest + side * i
        j = j - m if j >= m else (j + m if j < 0 else j)
        hx[i], hy[i] = xs[j], ys[j]
    return m


@njit(cache=True, nogil=True)
def hull(xs, ys, m, hx, hy):
    """Write the convex hull of m points (they get sorted) to hx, hy; return its size."""
    _sort_points(xs, ys, m, hx, hy)
    if xs[0] == xs[m - 1] and ys[0] == ys[m - 1]:
        hx[0], hy[0] = xs[0], ys[0]
        return 1
    n = 0
    for i in range(m):
        n = _push(hx, hy, n, 0, xs[i], ys[i])
    lower = n - 1
    for i in range(m - 2, -1, -1):
        n = _push(hx, hy, n, lower, xs[i], ys[i])
    return n - 1


@njit(cache=True, nogil=True)
def _push(hx, hy, n, base, x, y):
    while n - base >= 2:
        px, py = hx[n - 2], hy[n - 2]
        if turn(hx[n - 1] - px, hy[n - 1] - py, x - px, y - py) > 0:
            break
        n -= 1
    if n > base and hx[n - 1] == x and hy[n - 1] == y:
        return n
    hx[n], hy[n] = x, y
    return n + 1


@njit(cache=True, nogil=True)
def _longer(ax, ay, bx, by):
    """Whether vector a is longer than b, exactly, for entries below 2**51.

    The difference of their squared lengths is (ax-bx)(ax+bx) + (ay-by)(ay+by): the cross
    product whose sign `turn` tells.
    """
    return turn(ax - bx, by - ay, ay + by, ax + bx) > 0


@njit(cache=True, nogil=True)
def is_longer_than(hx, hy, m, bound):
    """Whether a hull's diameter exceeds `bound` steps."""
    width, height = _box(hx, hy, m)
    if not _longer(width, height, bound, 0):
        return False
    if width > bound or height > bound:
        return True
    # From here on the bound is below sqrt(2) times the longer side: its square fits as well.
    if m <= _FEW and max(width, height) < _NEAR:
        return _squared_by_pairs(hx, hy, m) > bound * bound
    dx, dy = _diameter_by_calipers(hx, hy, m)
    return _longer(dx, dy, bound, 0)


@njit(cache=True, nogil=True)
def _squared_diameter(hx, hy, m):
    """Return the square of a hull's diameter, rounded as floats are."""
    if m <= _FEW and max(*_box(hx, hy, m)) < _NEAR:
        return float(_squared_by_pairs(hx, hy, m))
    dx, dy = _diameter_by_calipers(hx, hy, m)
    return float(dx) * float(dx) + float(dy) * float(dy)


@njit(cache=True, nogil=True)
def _box(hx, hy, m):
    """Return the width and the height of a hull."""
    x0, x1, y0, y1 = hx[0], hx[0], hy[0], hy[0]
    for i in range(1, m):
        x0, x1 = min(x0, hx[i]), max(x1, hx[i])
        y0, y1 = min(y0, hy[i]), max(y1, hy[i])
    return x1 - x0, y1 - y0


@njit(cache=True, nogil=True)
def _squared_by_pairs(hx, hy, m):
    """Return the square of a hull's diameter: the quickest for few vertices near each other."""
    longest = hx[0] - hx[0]
    for i in range(m):
        for j in range(i):
            dx, dy = hx[i] - hx[j], hy[i] - hy[j]
            longest = max(longest, dx * dx + dy * dy)
    return longest


@njit(cache=True, nogil=True)
def _diameter_by_calipers(hx, hy, m):
    """Return the vector between the two vertices of a hull that are farthest apart.

    The time is linear in m, and any coordinates will do. Turning with the hull's sides, j is
    the vertex farthest from side i. Every two vertices with parallel lines through them that
    hold the hull between them, so also the two farthest apart, come up as an end of a side
    and its j.
    """
    dx, dy = hx[m - 1] - hx[0], hy[m - 1] - hy[0]
    j = 1
    for i in range(m if m > 2 else 0):
        end = i + 1 if i + 1 < m else 0
        side_x, side_y = hx[end] - hx[i], hy[end] - hy[i]
        after = j + 1 if j + 1 < m else 0
        while turn(side_x, side_y, hx[after] - hx[j], hy[after] - hy[j]) > 0:
            j = after
            after = j + 1 if j + 1 < m else 0
        for near in (i, end):
            ex, ey = hx[j] - hx[near], hy[j] - hy[near]
            if _longer(ex, ey, dx, dy):
                dx, dy = ex, ey
    return dx, dy


@njit(cache=True, nogil=True)
def centroid(hx, hy, m):
    """Return the centroid of a hull (of its area; of a segment, its middle), by floor."""
    twice_area, sx, sy = 0.0, 0.0, 0.0
    for i in range(1, m - 1):
        ax, ay = float(hx[i] - hx[0]), float(hy[i] - hy[0])
        bx, by = float(hx[i + 1] - hx[0]), float(hy[i + 1] - hy[0])
        area = ax * by - ay * bx
        twice_area += area
        sx += area * (ax + bx)
        sy += area * (ay + by)
    if twice_area <= 0.0:
        return hx[0] + (hx[m - 1] - hx[0]) // 2, hy[0] + (hy[m - 1] - hy[0]) // 2
    sx, sy = sx / (3.0 * twice_area), sy / (3.0 * twice_area)
    return hx[0] + np.int64(math.floor(sx)), hy[0] + np.int64(math.floor(sy))


@njit(cache=True, nogil=True)
def shrink(hx, hy, m, bound):
    """Scale a hull about its centroid, in place, to a diameter of at most `bound` steps.

    Each coordinate is floored, which moves a difference by less than one step: aiming two
    steps below the bound leaves room for sqrt(2).
    """
    length = np.int64(math.ceil(math.sqrt(_squared_diameter(hx, hy, m)))) + 1
    aim = max(bound - 2, 0)
    cx, cy = centroid(hx, hy, m)
    for i in range(m):
        hx[i] = cx + floor_muldiv(hx[i] - cx, aim, length)
        hy[i] = cy + floor_muldiv(hy[i] - cy, aim, length)


@njit(cache=True, nogil=True)
def shortened(hx, hy, m, bound, drop, xs, ys):
    """Shrink a hull that is longer than a bound, as a hull again; return how many corners it has.

    None where it is left out: with `drop`, if it is longer by more than rounding (two steps).
    """
    if drop and is_longer_than(hx, hy, m, bound + 2):
        return 0
    shrink(hx, hy, m, bound)
    xs[:m], ys[:m] = hx[:m], hy[:m]
    return hull(xs, ys, m, hx, hy)


@njit(cache=True, nogil=True)
def longest_of(offsets):
    """Return the most items of a list."""
    longest = 0
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@njit(cache=True, nogil=True)
def _read_points(coords, start, stop, xmin, ymin, size, xs, ys):
    """Snap the points of one record; return False when it is no place."""
    for i in range(start, stop):
        x, y = coords[i, 0], coords[i, 1]
        # Written so that NaN fails too.
        if not (abs(x - xmin) <= REACH * size and abs(y - ymin) <= REACH * size):
            return False
        xs[i - start], ys[i - start] = snap(x, xmin, size), snap(y, ymin, size)
    return True


@njit(cache=True, nogil=True)
def _outside(xs, ys, m, n_rows, n_cols):
    left = right = below = above = True
    for i in range(m):
        left &= xs[i] < 0
        right &= xs[i] >= n_cols * STEPS
        below &= ys[i] < 0
        above &= ys[i] >= n_rows * STEPS
    return left or right or below or above


@njit(cache=True, nogil=True)
def outlines(coords, starts, xmin, ymin, size, n_rows, n_cols, bound, drop):
    """Return the outlines of records as ragged integers, every one within the bound.

    Parameters
    ----------
    coords : float64 (n, 2)
        Points of all records; record i has rows ``starts[i]:starts[i + 1]``.
    starts : int64 (records + 1,)
    xmin, ymin, size, n_rows, n_cols
        The grid.
    bound : int
        Largest diameter in lattice steps; negative for none.
    drop : bool
        Leave out a record that is longer than the bound by more than rounding (two steps),
        instead of shrinking it.

    Returns
    -------
    xy, offsets
        A record that is no place, or beside the area, has the empty outline.
    """
    n = starts.size - 1
    longest = longest_of(starts)
    xs, ys = np.empty(longest, np.int64), np.empty(longest, np.int64)
    hx, hy = np.empty(longest + 2, np.int64), np.empty(longest + 2, np.int64)
    xy = np.empty((starts[n] - starts[0], 2), np.int64)
    offsets = np.zeros(n + 1, np.int64)
    used = 0
    for i in range(n):
        m = starts[i + 1] - starts[i]
        if m > 0 and _read_points(coords, starts[i], starts[i + 1], xmin, ymin, size, xs, ys):
            m = convex_ring(xs, ys, m, hx, hy) or hull(xs, ys, m, hx, hy)
            if bound >= 0 and is_longer_than(hx, hy, m, bound):
                m = shortened(hx, hy, m, bound, drop, xs, ys)
                # The last word on sensitivity. The lemma in shrink makes it hold.
                if m > 0 and is_longer_than(hx, hy, m, bound):
                    m = 0
            if m > 0 and not _outside(hx, hy, m, n_rows, n_cols):
                for j in range(m):
                    xy[used + j, 0], xy[used + j, 1] = hx[j], hy[j]
                used += m
        offsets[i + 1] = used
    return xy[:used], offsets


@njit(cache=True, nogil=True)
def scaled(xy, offsets, times, over):
    """Return outlines with every coordinate times a fraction, by floor, as hulls again."""
    longest = longest_of(offsets)
    xs, ys = np.empty(longest, np.int64), np.empty(longest, np.int64)
    hx, hy = np.empty(longest + 2, np.int64), np.empty(longest + 2, np.int64)
    made, starts, used = np.empty_like(xy), np.zeros_like(offsets), 0
    for i in range(offsets.size - 1):
        m = offsets[i + 1] - offsets[i]
        for j in range(m):
            xs[j] = floor_muldiv(xy[offsets[i] + j, 0], times, over)
            ys[j] = floor_muldiv(xy[offsets[i] + j, 1], times, over)
        if m > 0:
            m = hull(xs, ys, m, hx, hy)
        for j in range(m):
            made[used + j, 0], made[used + j, 1] = hx[j], hy[j]
        used += m
        starts[i + 1] = used
    return made[:used], starts


@njit(cache=True, nogil=True)
def outline_keys(xy, offsets):
    """Return two 64-bit keys per outline, functions of its vertices alone.

    They order a user's records so that the choice of one does not depend on row order.
    """
    n = offsets.size - 1
    keys = np.empty((n, 2), np.uint64)
    for i in range(n):
        a, b = GOLDEN, FIRST
        for j in range(offsets[i], offsets[i + 1]):
            for axis in range(2):
                v = np.uint64(xy[j, axis])
                a = scrambled(a ^ v)
                b = scrambled(b + v * SECOND)
        keys[i, 0], keys[i, 1] = a, b
    return keys
