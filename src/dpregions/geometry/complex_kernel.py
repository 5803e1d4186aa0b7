"""Hot loops over bodies on a complex: which faces, edges and vertices each touches.

The walk starts at a touched face and goes on through every touched side, by the signs of
`shift_kernel.py`. Integers throughout: results are exact and the same everywhere. Nothing here
knows of users, files or noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpregions.compiled import njit
from dpregions.geometry.hull_kernel import longest_of
from dpregions.geometry.shift_kernel import (
    NEAR_HIGH,
    NEAR_LOW,
    box_of,
    is_inside,
    lines_of,
    mask_of,
    meets,
    ring_has,
    straddles,
)

MASK = 64
"""Bodies of up to as many corners are quick: a bit for each of their sides."""


_OUTSIDE, _KNOWN = 15, 16


class Walk(NamedTuple):
    """A complex as the walk reads it, components in an order of its own.

    Components are numbered faces, then edges, then vertices. `sides` has a row for each side of
    each face: its first point, the face beyond it (-1: none), its edge's component, and its
    segment (both sides of which share a number).
    """

    x: np.ndarray
    y: np.ndarray
    vertex: np.ndarray  # component of each point, -1 where it is not an inner vertex
    first: np.ndarray  # first side of each face, and one more
    sides: np.ndarray
    n_segments: int
    n_components: int
    x_lines: np.ndarray  # buckets lie between these lines
    y_lines: np.ndarray
    bucket_faces: np.ndarray  # offsets, a bucket each
    faces: np.ndarray  # that reach into a bucket
    bucket_borders: np.ndarray
    borders: np.ndarray  # sides of the border that reach into a bucket
    border_face: np.ndarray  # the face of each of them
    is_open: bool  # whether bodies may reach beyond the faces
    is_bent: bool  # whether the union is not convex: a body may meet it in several pieces


class Marks(NamedTuple):
    """What one thread remembers of the body it is at; a mark holds while it equals the body's."""

    face: np.ndarray
    segment: np.ndarray
    component: np.ndarray
    point: np.ndarray
    code: np.ndarray  # on which sides of the body's box a point is, and whether its mask is known
    mask: np.ndarray
    touched: np.ndarray  # components of the body
    waiting: np.ndarray  # faces to look at
    now: np.ndarray  # the mark of the present body


@njit(cache=True, nogil=True)
def fresh_marks(walk):
    """Return marks that mark nothing."""
    n_faces = walk.first.size - 1
    return Marks(
        np.zeros(n_faces, np.int32),
        np.zeros(walk.n_segments, np.int32),
        np.zeros(walk.n_components, np.int32),
        np.zeros(walk.x.size, np.int32),
        np.zeros(walk.x.size, np.int32),
        np.zeros(walk.x.size, np.uint64),
        np.empty(walk.n_components, np.int32),
        np.empty(n_faces, np.int32),
        np.zeros(1, np.int32),
    )


@njit(cache=True, nogil=True)
def line_below(lines, v):
    """Return how many lines lie at or below a coordinate."""
    low, high = 0, lines.size
    while low < high:
        middle = (low + high) >> 1
        if lines[middle] <= v:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def bucket_of(x_lines, y_lines, x, y):
    """Return the bucket that a place lies in."""
    return line_below(y_lines, y) * (x_lines.size + 1) + line_below(x_lines, x)


@njit(cache=True, nogil=True)
def _locate(x, y, first, sides, faces, start, stop, is_open, qx, qy, near):
    """Return which of some faces holds a point, moved; -1 where none does."""
    if stop - start == 1 and not is_open:
        return faces[start]
    for i in range(start, stop):
        f = faces[i]
        if ring_has(x, y, sides, first[f], first[f + 1], qx, qy, near):
            return f
    return np.int32(-1)


@njit(cache=True, nogil=True)
def _seed_at_border(walk, marks, hx, hy, m, box, near, waiting):
    """Put faces in waiting whose side of the border a body meets; all, or one where one will do."""
    now, columns = marks.now[0], walk.x_lines.size + 1
    x0, x1, y0, y1 = box
    for row in range(line_below(walk.y_lines, y0), line_below(walk.y_lines, y1) + 1):
        for col in range(line_below(walk.x_lines, x0), line_below(walk.x_lines, x1) + 1):
            bucket = row * columns + col
            for i in range(walk.bucket_borders[bucket], walk.bucket_borders[bucket + 1]):
                face, s = walk.border_face[i], walk.borders[i]
                if marks.face[face] == now:
                    continue
                t = s + 1 if s + 1 < walk.first[face + 1] else walk.first[face]
                p, q = walk.sides[s, 0], walk.sides[t, 0]
                ux, uy = np.int64(walk.x[p]), np.int64(walk.y[p])
                vx, vy = np.int64(walk.x[q]), np.int64(walk.y[q])
                if meets(hx, hy, m, ux, uy, vx, vy, near):
                    marks.face[face] = now
                    marks.waiting[waiting] = face
                    waiting += 1
                    if not walk.is_bent:
                        return waiting
    return waiting


@njit(cache=True, nogil=True)
def touch(walk, marks, hx, hy, m, lines):
    """Write the components that a body touches to `marks.touched`.

    Parameters
    ----------
    walk, marks : Walk, Marks
    hx, hy, m
        The body's m corners: counter-clockwise, no three on a line.
    lines : int64 (64, 3)
        Room for the body's lines.

    Returns
    -------
    n_faces, n_edges, n_vertices
        How many of each; together as many as were written.
    """
    marks.now[0] += 1
    now = marks.now[0]
    x0, x1, y0, y1 = box = box_of(hx, hy, m)
    near = x0 >= NEAR_LOW and y0 >= NEAR_LOW and x1 <= NEAR_HIGH and y1 <= NEAR_HIGH
    bucket = bucket_of(walk.x_lines, walk.y_lines, hx[0], hy[0])
    face = _locate(
        walk.x,
        walk.y,
        walk.first,
        walk.sides,
        walk.faces,
        walk.bucket_faces[bucket],
        walk.bucket_faces[bucket + 1],
        walk.is_open,
        hx[0],
        hy[0],
        near,
    )
    waiting = 0
    if face >= 0:
        marks.face[face] = now
        marks.waiting[0] = face
        waiting = 1
    if walk.is_open and (face < 0 or walk.is_bent):
        waiting = _seed_at_border(walk, marks, hx, hy, m, box, near, waiting)
    return _spread(
        walk.x,
        walk.y,
        walk.vertex,
        walk.first,
        walk.sides,
        marks.face,
        marks.segment,
        marks.component,
        marks.point,
        marks.code,
        marks.mask,
        marks.touched,
        marks.waiting,
        hx,
        hy,
        m,
        lines,
        waiting,
        now,
        box,
        near,
    )


@njit(cache=True, nogil=True)
def _spread(
    x,
    y,
    vertex,
    first,
    sides,
    seen_face,
    seen_segment,
    seen_edge,
    seen_point,
    codes,
    masks,
    touched,
    queue,
    hx,
    hy,
    m,
    lines,
    waiting,
    now,
    box,
    near,
):
    """Go from the faces in waiting through every side that a body meets; see `touch`.

    The fields of the tuples one by one: reading one from a tuple costs a count of references.
    """
    n, n_faces, n_edges = 0, 0, 0
    if m == 1:  # a point, moved, lies in one face and on no edge
        if waiting:
            touched[0] = queue[0]
        return waiting, 0, 0
    quick = near and m <= MASK
    x0, x1, y0, y1 = box
    if quick:
        lines_of(hx, hy, m, lines)
    while waiting:
        waiting -= 1
        face = queue[waiting]
        touched[n] = face
        n += 1
        n_faces += 1
        start, stop = first[face], first[face + 1]
        for s in range(start, stop):
            p = sides[s, 0]
            if seen_point[p] != now:
                seen_point[p] = now
                px, py = np.int64(x[p]), np.int64(y[p])
                # The body's box, moved with it, has most points outside at little cost.
                code = (px <= x0) | ((px > x1) << 1) | ((py <= y0) << 2) | ((py > y1) << 3)
                codes[p] = code
                if code == 0:
                    if quick:
                        mask = mask_of(px, py, lines, m)
                    else:
                        mask = np.uint64(0 if is_inside(hx, hy, m, px, py, near) else 1)
                    codes[p] = _KNOWN
                    masks[p] = mask
                    if mask == 0 and vertex[p] >= 0:
                        touched[n] = vertex[p]
                        n += 1
        for s in range(start, stop):
            beyond, segment = sides[s, 1], sides[s, 3]
            if beyond < 0 or seen_segment[segment] == now:
                continue
            seen_segment[segment] = now
            u, v = sides[s, 0], sides[s + 1 if s + 1 < stop else start, 0]
            if codes[u] & codes[v] & _OUTSIDE:
                continue
            ux, uy, vx, vy = np.int64(x[u]), np.int64(y[u]), np.int64(x[v]), np.int64(y[v])
            met = (codes[u] == _KNOWN and masks[u] == 0) or (codes[v] == _KNOWN and masks[v] == 0)
            if not met and quick:
                if codes[u] < _KNOWN:
                    codes[u] |= _KNOWN
                    masks[u] = mask_of(ux, uy, lines, m)
                if codes[v] < _KNOWN:
                    codes[v] |= _KNOWN
                    masks[v] = mask_of(vx, vy, lines, m)
                met = (masks[u] & masks[v]) == 0 and straddles(hx, hy, m, ux, uy, vx, vy, True)
            elif not met:
                met = meets(hx, hy, m, ux, uy, vx, vy, near)
            if met:
                edge = sides[s, 2]
                if seen_edge[edge] != now:
                    seen_edge[edge] = now
                    touched[n] = edge
                    n += 1
                    n_edges += 1
                if seen_face[beyond] != now:
                    seen_face[beyond] = now
                    queue[waiting] = beyond
                    waiting += 1
    return n_faces, n_edges, n - n_faces - n_edges


@njit(cache=True, nogil=True)
def _take(xy, start, stop, hx, hy):
    for i in range(start, stop):
        hx[i - start], hy[i - start] = xy[i, 0], xy[i, 1]
    return stop - start


@njit(cache=True, nogil=True)
def _by_place(x_lines, y_lines, xy, offsets):
    """Return the bodies that are there by the buckets of their first corners, and their buckets.

    What is near in the plane is then near in time, and found in the cache.
    """
    n = offsets.size - 1
    bucket = np.empty(n, np.int32)
    place = np.zeros((x_lines.size + 1) * (y_lines.size + 1) + 1, np.int64)
    for i in range(n):
        bucket[i] = -1
        if offsets[i] < offsets[i + 1]:
            bucket[i] = bucket_of(x_lines, y_lines, xy[offsets[i], 0], xy[offsets[i], 1])
            place[bucket[i] + 1] += 1
    for k in range(place.size - 1):
        place[k + 1] += place[k]
    order = np.empty(place[-1], np.int64)
    for i in range(n):
        if bucket[i] >= 0:
            order[place[bucket[i]]] = i
            place[bucket[i]] += 1
    return order, bucket


@njit(cache=True, nogil=True)
def add_bodies(walk, xy, offsets, times, counts):
    """Add outlines to the counts of components, in the walk's order; each so many times.

    An empty `times` is once for each. Does what `touch` does, without its tuples.
    """
    marks, lines = fresh_marks(walk), np.empty((MASK, 3), np.int64)
    room = longest_of(offsets)
    hx, hy = np.empty(room, np.int64), np.empty(room, np.int64)
    x, y, vertex, first, sides = walk.x, walk.y, walk.vertex, walk.first, walk.sides
    bucket_faces, faces = walk.bucket_faces, walk.faces
    is_open, is_bent = walk.is_open, walk.is_bent
    seen_face, seen_segment, seen_edge = marks.face, marks.segment, marks.component
    seen_point, codes, masks = marks.point, marks.code, marks.mask
    touched, queue = marks.touched, marks.waiting
    order, bucket = _by_place(walk.x_lines, walk.y_lines, xy, offsets)
    now = np.int32(0)
    for i in order:
        now += np.int32(1)
        m = _take(xy, offsets[i], offsets[i + 1], hx, hy)
        x0, x1, y0, y1 = box = box_of(hx, hy, m)
        near = x0 >= NEAR_LOW and y0 >= NEAR_LOW and x1 <= NEAR_HIGH and y1 <= NEAR_HIGH
        start, stop = bucket_faces[bucket[i]], bucket_faces[bucket[i] + 1]
        face = _locate(x, y, first, sides, faces, start, stop, is_open, hx[0], hy[0], near)
        waiting = 0
        if face >= 0:
            seen_face[face] = now
            queue[0] = face
            waiting = 1
        if is_open and (face < 0 or is_bent):
            marks.now[0] = now
            waiting = _seed_at_border(walk, marks, hx, hy, m, box, near, waiting)
        n_faces, n_edges, n_vertices = _spread(
            x,
            y,
            vertex,
            first,
            sides,
            seen_face,
            seen_segment,
            seen_edge,
            seen_point,
            codes,
            masks,
            touched,
            queue,
            hx,
            hy,
            m,
            lines,
            waiting,
            now,
            box,
            near,
        )
        weight = times[i] if times.size else 1
        for j in range(n_faces + n_edges + n_vertices):
            counts[touched[j]] += weight


@njit(cache=True, nogil=True)
def touched_lists(walk, xy, offsets):
    """Return the components of each outline, in the walk's order, as offsets and one list."""
    marks, lines = fresh_marks(walk), np.empty((MASK, 3), np.int64)
    room = longest_of(offsets)
    hx, hy = np.empty(room, np.int64), np.empty(room, np.int64)
    ends = np.zeros(offsets.size, np.int64)
    items = np.empty(max(16, 8 * (offsets.size - 1)), np.int32)
    used = 0
    for i in range(offsets.size - 1):
        m = _take(xy, offsets[i], offsets[i + 1], hx, hy)
        if m:
            n_faces, n_edges, n_vertices = touch(walk, marks, hx, hy, m, lines)
            n = n_faces + n_edges + n_vertices
            if used + n > items.size:
                more = np.empty(2 * (used + n), np.int32)
                more[:used] = items[:used]
                items = more
            items[used : used + n] = marks.touched[:n]
            used += n
        ends[i + 1] = used
    return ends, items[:used]
