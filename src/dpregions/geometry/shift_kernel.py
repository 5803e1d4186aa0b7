"""The rule for bodies on a complex, as signs that are never 0.

A body is moved by (e, e * e), e infinitesimal. The move leaves every line, so no corner lies on a
line of the complex and no vertex on a line of a body. A tie depends on one line alone:

- a point of the complex against the side a -> b of a body: the sign of the cross product, else of
  dy, else of -dx;
- a corner of a body against the side u -> v of a face: the sign of the cross product, else of -dy,
  else of dx.

On a grid this is the rule of its own lines: they belong to the cell on their right or top.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit
from dpregions.geometry.hull_kernel import turn

NEAR_LOW, NEAR_HIGH = -(1 << 29), 3 << 29
"""Between these, all cross products with the points of a complex fit in 64 bits."""


@njit(cache=True, nogil=True)
def cross(ax, ay, bx, by, near):
    """Return a number of the sign of the cross product a x b."""
    if near:
        return ax * by - ay * bx
    return np.int64(turn(ax, ay, bx, by))


@njit(cache=True, nogil=True)
def ring_has(x, y, sides, start, stop, qx, qy, near):
    """Whether a face holds a point, moved: an odd number of its sides lie right of it."""
    odd = False
    p = sides[stop - 1, 0]
    ux, uy = np.int64(x[p]), np.int64(y[p])
    for s in range(start, stop):
        p = sides[s, 0]
        vx, vy = np.int64(x[p]), np.int64(y[p])
        if (uy <= qy) != (vy <= qy):
            c = cross(vx - ux, vy - uy, qx - ux, qy - uy, near)
            if (c > 0) if vy > uy else (c < 0):
                odd = not odd
        ux, uy = vx, vy
    return odd


@njit(cache=True, nogil=True)
def lines_of(hx, hy, m, lines):
    """Write each side of a body as the line a * y - b * x + c, negative outside, never 0 by tie."""
    for j in range(m):
        k = j + 1 if j + 1 < m else 0
        dx, dy = hx[k] - hx[j], hy[k] - hy[j]
        tie = 1 if dy < 0 or (dy == 0 and dx > 0) else 0
        lines[j, 0], lines[j, 1], lines[j, 2] = dx, dy, dy * hx[j] - dx * hy[j] - tie


@njit(cache=True, nogil=True)
def mask_of(x, y, lines, m):
    """Return which sides of a body a point is outside of, a bit each."""
    mask = np.uint64(0)
    for j in range(m):
        c = lines[j, 0] * y - lines[j, 1] * x + lines[j, 2]
        mask |= np.uint64(c < 0) << np.uint64(j)
    return mask


@njit(cache=True, nogil=True)
def _beyond(hx, hy, m, j, x, y, near):
    """Whether a point is outside of side j of a body."""
    k = j + 1 if j + 1 < m else 0
    dx, dy = hx[k] - hx[j], hy[k] - hy[j]
    c = cross(dx, dy, x - hx[j], y - hy[j], near)
    return c < 0 or (c == 0 and (dy < 0 or (dy == 0 and dx > 0)))


@njit(cache=True, nogil=True)
def is_inside(hx, hy, m, x, y, near):
    """Whether a point is inside of every side of a body that has an inside."""
    j = 0
    while j < m and not _beyond(hx, hy, m, j, x, y, near):
        j += 1
    return j == m and m > 2


@njit(cache=True, nogil=True)
def straddles(hx, hy, m, ux, uy, vx, vy, near):
    """Whether a body has corners on both sides of the line from u to v."""
    dx, dy = vx - ux, vy - uy
    tie = np.int64(1) if dy < 0 or (dy == 0 and dx > 0) else np.int64(0)
    left = cross(dx, dy, hx[0] - ux, hy[0] - uy, near) + tie > 0
    i = 1
    while i < m and (cross(dx, dy, hx[i] - ux, hy[i] - uy, near) + tie > 0) == left:
        i += 1
    return i < m


@njit(cache=True, nogil=True)
def _separated(hx, hy, m, ux, uy, vx, vy, near):
    """Whether one side of a body has both ends of a segment outside."""
    for j in range(m):
        if _beyond(hx, hy, m, j, ux, uy, near) and _beyond(hx, hy, m, j, vx, vy, near):
            return True
    return False


@njit(cache=True, nogil=True)
def meets(hx, hy, m, ux, uy, vx, vy, near):
    """Whether a body, moved, meets a segment: no line of either separates them."""
    return (
        m > 1
        and straddles(hx, hy, m, ux, uy, vx, vy, near)
        and not _separated(hx, hy, m, ux, uy, vx, vy, near)
    )


@njit(cache=True, nogil=True)
def box_of(hx, hy, m):
    """Return the least and the largest x and y of a body."""
    x0, x1, y0, y1 = hx[0], hx[0], hy[0], hy[0]
    for i in range(1, m):
        x0, x1 = min(x0, hx[i]), max(x1, hx[i])
        y0, y1 = min(y0, hy[i]), max(y1, hy[i])
    return x0, x1, y0, y1
