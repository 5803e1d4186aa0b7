"""Loops before any body is counted: clusters of points, Voronoi cells one by one, buckets.

A Voronoi cell is the area, cut along the lines half way to other sites. That is slow beside GEOS,
which makes all cells at once, but it cannot fail: GEOS gives wrong cells where sites lie on a
circle up to rounding (libgeos issues 955 and 1040).
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit
from dpregions.geometry.complex_kernel import line_below


@njit(cache=True, nogil=True)
def half_plane_cells(sites, which, area):
    """Return the cells of some sites within a convex ring, as corners and offsets; floats.

    A site more than twice as far as the farthest corner of a cell cannot cut it, so sites are
    taken by their distance until one is.
    """
    room = area.shape[0] + sites.shape[0] + 2
    here, there = np.empty((room, 2)), np.empty((room, 2))
    corners = np.empty((16 * which.size + area.shape[0], 2))
    offsets = np.zeros(which.size + 1, np.int64)
    used = 0
    for n in range(which.size):
        i = which[n]
        away = np.hypot(sites[:, 0] - sites[i, 0], sites[:, 1] - sites[i, 1])
        m = area.shape[0]
        here[:m] = area
        for j in np.argsort(away):
            if j == i:
                continue
            farthest = 0.0
            for k in range(m):
                at = np.hypot(here[k, 0] - sites[i, 0], here[k, 1] - sites[i, 1])
                farthest = max(farthest, at)
            if away[j] > 2 * farthest:
                break
            m = _cut(here, m, sites[i], sites[j], there)
            here, there = there, here
        if used + m > corners.shape[0]:
            more = np.empty((2 * (used + m), 2))
            more[:used] = corners[:used]
            corners = more
        corners[used : used + m] = here[:m]
        used += m
        offsets[n + 1] = used
    return corners[:used], offsets


@njit(cache=True, nogil=True)
def _cut(ring, m, site, other, out):
    """Write the part of a ring that is nearer to a site than to another; return its size."""
    nx, ny = other[0] - site[0], other[1] - site[1]
    mx, my = (other[0] + site[0]) / 2, (other[1] + site[1]) / 2
    n = 0
    for i in range(m):
        k = i + 1 if i + 1 < m else 0
        near = nx * (mx - ring[i, 0]) + ny * (my - ring[i, 1])
        far = nx * (mx - ring[k, 0]) + ny * (my - ring[k, 1])
        if near >= 0:
            out[n] = ring[i]
            n += 1
        if (near > 0 and far < 0) or (near < 0 and far > 0):
            t = near / (near - far)
            out[n, 0] = ring[i, 0] + t * (ring[k, 0] - ring[i, 0])
            out[n, 1] = ring[i, 1] + t * (ring[k, 1] - ring[i, 1])
            n += 1
    return n


@njit(cache=True, nogil=True)
def lowest_of_clusters(n, one, other):
    """Return the lowest number that each of n is joined to by pairs, also by way of others."""
    lowest = np.arange(n)
    for i in range(one.size):
        a, b = one[i], other[i]
        while lowest[a] != a:
            lowest[a] = lowest[lowest[a]]
            a = lowest[a]
        while lowest[b] != b:
            lowest[b] = lowest[lowest[b]]
            b = lowest[b]
        lowest[max(a, b)] = min(a, b)
    for i in range(n):
        lowest[i] = lowest[lowest[i]]
    return lowest


@njit(cache=True, nogil=True)
def _row_reach(x, y, low, high):
    """Return from where to where a ring reaches along x between two heights; floats, widened."""
    least, most = np.inf, -np.inf
    n = x.size
    for i in range(n):
        k = i + 1 if i + 1 < n else 0
        x0, y0, x1, y1 = float(x[i]), float(y[i]), float(x[k]), float(y[k])
        if max(y0, y1) < low or min(y0, y1) > high:
            continue
        if y0 == y1:
            a, b = x0, x1
        else:
            s = min(max((low - y0) / (y1 - y0), 0.0), 1.0)
            t = min(max((high - y0) / (y1 - y0), 0.0), 1.0)
            a, b = x0 + s * (x1 - x0), x0 + t * (x1 - x0)
        least, most = min(least, a, b), max(most, a, b)
    return least - 2.0, most + 2.0


@njit(cache=True, nogil=True)
def face_buckets(x, y, first, ring, x_lines, y_lines):
    """Return the faces that reach into each bucket, as offsets and one list."""
    columns = x_lines.size + 1
    offsets = np.zeros(columns * (y_lines.size + 1) + 1, np.int64)
    faces = np.empty(0, np.int32)
    for fill in range(2):
        if fill:
            for i in range(offsets.size - 1):
                offsets[i + 1] += offsets[i]
            faces = np.empty(offsets[-1], np.int32)
            place = offsets[:-1].copy()
        else:
            place = np.zeros(offsets.size - 1, np.int64)
        for f in range(first.size - 1):
            points = ring[first[f] : first[f + 1]]
            px, py = x[points], y[points]
            for row in range(line_below(y_lines, py.min()), line_below(y_lines, py.max()) + 1):
                low = -np.inf if row == 0 else float(y_lines[row - 1])
                high = np.inf if row == y_lines.size else float(y_lines[row])
                least, most = _row_reach(px, py, low, high)
                for col in range(line_below(x_lines, least), line_below(x_lines, most) + 1):
                    bucket = row * columns + col
                    if fill:
                        faces[place[bucket]] = f
                        place[bucket] += 1
                    else:
                        offsets[bucket + 1] += 1
    return offsets, faces
