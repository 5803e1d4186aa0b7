"""Hot loops over records on a partition: coordinates -> hulls -> bodies that may be counted there.

As `hull_kernel.py` does for a grid, and with its functions. A body is within the bound on its
diameter and is cut to the area; on a convex partition F - E + V = 1 holds for it, and it touches at
most as many components as a public cap says. What does not hold by itself is made to hold, by
pulling corners in, so that sensitivity never rests on an assumption. Nothing raises for what a
record holds.
"""

from __future__ import annotations

import math

import numpy as np

from dpregions.compiled import njit
from dpregions.geometry.complex_kernel import MASK, fresh_marks, touch
from dpregions.geometry.hull_kernel import (
    centroid,
    convex_ring,
    hull,
    is_longer_than,
    longest_of,
    shortened,
    snap,
)
from dpregions.geometry.lattice import REACH, STEPS
from dpregions.geometry.shift_kernel import NEAR_HIGH, NEAR_LOW, box_of

FAR = REACH * STEPS
"""Coordinates more steps from the origin than this are no places."""


@njit(cache=True, nogil=True)
def _cut(hx, hy, m, area, xs, ys):
    """Cut a strict hull to a convex ring, to the nearest step; return the size of what is left.

    Floats will do: a new corner is off by less than a step, and the cells reach farther. Rounded
    corners may bend a hull inwards, and a side would then cross it more than twice, so the hull is
    taken after each side that cuts. It grows by one corner for each of them; the last word on the
    room is the guard, as signs of floats may be wrong. What it leaves out makes a body smaller.
    """
    room = xs.size - 1  # a hull is written with one corner more
    for a in range(area.shape[0]):
        b = a + 1 if a + 1 < area.shape[0] else 0
        ax, ay = area[a, 0], area[a, 1]
        bx, by = float(area[b, 0] - ax), float(area[b, 1] - ay)
        n, cuts = 0, False
        far = bx * float(hy[0] - ay) - by * float(hx[0] - ax)
        for i in range(m):
            k = i + 1 if i + 1 < m else 0
            near = far
            far = bx * float(hy[k] - ay) - by * float(hx[k] - ax)
            if near < 0:
                cuts = True
            elif n < room:
                xs[n], ys[n] = hx[i], hy[i]
                n += 1
            if ((near > 0 and far < 0) or (near < 0 and far > 0)) and n < room:
                t = near / (near - far)
                xs[n] = hx[i] + np.int64(np.rint(t * float(hx[k] - hx[i])))
                ys[n] = hy[i] + np.int64(np.rint(t * float(hy[k] - hy[i])))
                n += 1
        if n == 0:
            return 0
        if cuts:
            m = hull(xs, ys, n, hx, hy)
    return m


@njit(cache=True, nogil=True)
def _lies_in(hx, hy, m, area):
    """Whether a body's box lies in a convex ring. Exact: all of it is near where it does."""
    x0, x1, y0, y1 = box_of(hx, hy, m)
    if x0 < NEAR_LOW or y0 < NEAR_LOW or x1 > NEAR_HIGH or y1 > NEAR_HIGH:
        return False
    for a in range(area.shape[0]):
        b = a + 1 if a + 1 < area.shape[0] else 0
        bx, by = area[b, 0] - area[a, 0], area[b, 1] - area[a, 1]
        x, y = (x1 if by > 0 else x0), (y0 if bx > 0 else y1)
        if bx * (y - area[a, 1]) - by * (x - area[a, 0]) < 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _pulled(ox, oy, m, cx, cy, pull, xs, ys, hx, hy):
    """Write the hull of corners moved so many steps towards a point; return its size."""
    for i in range(m):
        dx, dy = float(cx - ox[i]), float(cy - oy[i])
        length = math.sqrt(dx * dx + dy * dy)
        t = 1.0 if length <= pull else pull / length
        xs[i] = ox[i] + np.int64(np.rint(t * dx))
        ys[i] = oy[i] + np.int64(np.rint(t * dy))
    return hull(xs, ys, m, hx, hy)


@njit(cache=True, nogil=True)
def _fits(walk, marks, lines, hx, hy, m, bound, euler, cap):
    """Whether a body is within its bound, touches at most `cap` components, and F - E + V is 1."""
    if bound >= 0 and is_longer_than(hx, hy, m, bound):
        return False
    if not euler and cap < 0:
        return True
    n_faces, n_edges, n_vertices = touch(walk, marks, hx, hy, m, lines)
    if euler and n_faces - n_edges + n_vertices != 1:
        return False
    return cap < 0 or n_faces + n_edges + n_vertices <= cap


@njit(cache=True, nogil=True)
def _fitted(walk, marks, lines, hx, hy, m, bound, euler, cap, xs, ys, ox, oy):
    """Pull a body's corners in until it fits; return its size.

    It ends, as a point touches one face: so much is left that half the last pull would not do.
    """
    if _fits(walk, marks, lines, hx, hy, m, bound, euler, cap):
        return m
    ox[:m], oy[:m] = hx[:m], hy[:m]
    cx, cy = centroid(hx, hy, m)
    pull = 1
    while True:
        pull *= 2
        k = _pulled(ox, oy, m, cx, cy, pull, xs, ys, hx, hy)
        if _fits(walk, marks, lines, hx, hy, k, bound, euler, cap):
            break
        if k == 1:
            return 0  # outside every face
    low, high = pull // 2, pull
    while high - low > max(1, high >> 6):
        middle = (low + high) // 2
        k = _pulled(ox, oy, m, cx, cy, middle, xs, ys, hx, hy)
        if _fits(walk, marks, lines, hx, hy, k, bound, euler, cap):
            high = middle
        else:
            low = middle
    k = _pulled(ox, oy, m, cx, cy, high, xs, ys, hx, hy)
    return k if _fits(walk, marks, lines, hx, hy, k, bound, euler, cap) else 0


@njit(cache=True, nogil=True)
def _read(coords, start, stop, x, y, step, cell, xs, ys):
    """Read the points of one record as steps; return False when it is no place."""
    reach, steps_a_unit = FAR * step, 1.0 / step  # exact: a step is a power of two
    for i in range(start, stop):
        px, py = coords[i, 0], coords[i, 1]
        # Written so that NaN fails too.
        if not (abs(px - x) <= reach and abs(py - y) <= reach):
            return False
        if cell > 0:
            xs[i - start], ys[i - start] = snap(px, x, cell), snap(py, y, cell)
        else:
            xs[i - start] = np.int64(np.rint((px - x) * steps_a_unit))
            ys[i - start] = np.int64(np.rint((py - y) * steps_a_unit))
    return True


@njit(cache=True, nogil=True)
def outlines(coords, starts, lattice, walk, area, bound, drop, euler, cap):
    """Return the outlines of records as ragged integers, as they are counted on a complex.

    Parameters
    ----------
    coords, starts
        Record i has points ``coords[starts[i]:starts[i + 1]]``.
    lattice : tuple
        ``x, y, step`` of the lattice, and the cell size of the grid whose floor is to be used;
        0 for the nearest step.
    walk : Walk
    area : int64 (n, 2)
        The convex ring that bodies are cut to; none for no cut.
    bound, drop
        Largest diameter in steps, negative for none; whether to leave out longer ones.
    euler : bool
        Whether to make F - E + V = 1 hold for each body.
    cap : int
        The most components of a body, negative for no limit.
    """
    x, y, step, cell = lattice
    n = starts.size - 1
    room = longest_of(starts) + area.shape[0] + 4
    xs, ys = np.empty(room, np.int64), np.empty(room, np.int64)
    hx, hy = np.empty(room, np.int64), np.empty(room, np.int64)
    ox, oy = np.empty(room, np.int64), np.empty(room, np.int64)
    marks, lines = fresh_marks(walk), np.empty((MASK, 3), np.int64)
    xy = np.empty((starts[n] - starts[0], 2), np.int64)
    offsets = np.zeros(n + 1, np.int64)
    used = 0
    for i in range(n):
        m = starts[i + 1] - starts[i]
        if m > 0 and _read(coords, starts[i], starts[i + 1], x, y, step, cell, xs, ys):
            m = convex_ring(xs, ys, m, hx, hy) or hull(xs, ys, m, hx, hy)
            if bound >= 0 and is_longer_than(hx, hy, m, bound):
                m = shortened(hx, hy, m, bound, drop, xs, ys)
            if m > 0 and area.shape[0] > 0 and not _lies_in(hx, hy, m, area):
                m = _cut(hx, hy, m, area, xs, ys)
            # The last word on sensitivity. (Handing the tuples over costs more than all the rest.)
            if m > 0 and (euler or cap >= 0 or (bound >= 0 and is_longer_than(hx, hy, m, bound))):
                m = _fitted(walk, marks, lines, hx, hy, m, bound, euler, cap, xs, ys, ox, oy)
            if used + m > xy.shape[0]:
                more = np.empty((2 * (used + m), 2), np.int64)
                more[:used] = xy[:used]
                xy = more
            for j in range(m):
                xy[used + j, 0], xy[used + j, 1] = hx[j], hy[j]
            used += m
        offsets[i + 1] = used
    return xy[:used], offsets
