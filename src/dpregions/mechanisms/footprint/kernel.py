"""Hot loops of the footprint mechanism: footprints -> patterns -> Euler arrays.

A pattern is which components of its footprint a body touches: on each doubled row one span of
cell columns, relative to the footprint's left column, (1, 0) where there is none.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit


@njit(cache=True, nogil=True)
def nearest_pattern(height, width, spans, first, last, known, often):
    """Return the catalogue's pattern of a footprint that differs least from a body's spans.

    ``first[h, w]:last[h, w]`` are the patterns `known` of footprints h x w, and their places in
    `often`, which has the frequent ones first: nearly every body has one of those. Faces weigh
    more than lines: they decide the answers to rectangles. The first wins a tie.
    """
    start, stop, lines = first[height, width], last[height, width], 2 * height - 1
    for i in range(start, stop):
        p, d = often[i], 0
        while d < lines and spans[d, 0] == known[p, d, 0] and spans[d, 1] == known[p, d, 1]:
            d += 1
        if d == lines:
            return p
    best, least = start, 1 << 30
    for p in range(start, stop):
        off = 0
        for d in range(lines):
            gap = abs(spans[d, 0] - known[p, d, 0]) + abs(spans[d, 1] - known[p, d, 1])
            off += gap if d % 2 else 4 * gap
        if off < least:
            best, least = p, off
    return best


@njit(cache=True, nogil=True)
def numbers_of_patterns(places, spans, filed, first, last, known, often, letters, starts, across):
    """Return the bucket of each footprint where letters are patterns.

    `filed[h, w]` is the footprint that one is filed under, ``starts[k] + row * across[k] + col``
    the bucket of letter k at a place. One of height 0 has none: -1.
    """
    numbers = np.empty(len(places), np.int64)
    for i in range(len(places)):
        height, width = places[i, 2], places[i, 3]
        if height == 0:
            numbers[i] = -1
            continue
        h, w = filed[height, width, 0], filed[height, width, 1]
        k = letters[nearest_pattern(h, w, spans[i], first, last, known, often)]
        numbers[i] = starts[k] + places[i, 0] * across[k] + places[i, 1]
    return numbers


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


@njit(cache=True, nogil=True)
def bell_sums(lattice, bell):
    """Return sums around each entry along both axes, those `step` away times ``bell[step]``.

    Nearer ones first, lower before upper: in one order, so that sums are the same everywhere.
    """
    n_rows, n_cols = lattice.shape
    found, along = np.empty_like(lattice), np.empty_like(lattice)
    for i in range(n_rows):
        row = along[i]
        for j in range(n_cols):
            row[j] = bell[0] * lattice[i, j]
        for step in range(1, bell.size):
            weight = bell[step]
            if i >= step:
                below = lattice[i - step]
                for j in range(n_cols):
                    row[j] += weight * below[j]
            if i + step < n_rows:
                above = lattice[i + step]
                for j in range(n_cols):
                    row[j] += weight * above[j]
        out = found[i]
        for j in range(n_cols):
            out[j] = bell[0] * row[j]
        for step in range(1, min(bell.size, n_cols)):
            weight = bell[step]
            for j in range(step, n_cols):
                out[j] += weight * row[j - step]
            for j in range(n_cols - step):
                out[j] += weight * row[j + step]
    return found


@njit(cache=True, nogil=True)
def dense_shares(letters, around, at, even, floor, part, n_parts):
    """Return each bucket's share of its part, by what its letter is expected and by the density.

    That is the sum `around` each bucket's place `at`, beside an `even` one, and a least.
    """
    found, whole = np.empty(letters.size), np.zeros(n_parts)
    for i in range(letters.size):
        found[i] = letters[i] * (around[at[i]] / even[i] + floor)
        whole[part[i]] += found[i]
    for i in range(letters.size):
        found[i] /= whole[part[i]]
    return found


@njit(cache=True, nogil=True)
def on_lattice(shares, inside, part, at, n):
    """Return sums over places `at` of what buckets hold: shares of what is inside their parts."""
    lattice = np.zeros(n)
    for i in range(shares.size):
        lattice[at[i]] += inside[part[i]] * shares[i]
    return lattice


@njit(cache=True, nogil=True)
def size_family(height, width):
    """Return the family of a footprint's size, from 0; -1 where it is one cell wide."""
    short, long = min(height, width), max(height, width)
    if short < 2:
        return -1
    if long <= 3:
        return short + long - 4
    if short == 2:
        return 3
    return 4 + (long > 6) + (long > 12)


@njit(cache=True, nogil=True)
def shape_class(height, width, spans):
    """Return the class of a footprint's shape: how full it is, times which way it leans.

    Full: the share of the footprint's cells that are touched, in five classes. Leaning: the sum
    over touched cells of their distances from the middle, row times column, beside that of all
    cells without signs: falling to the right, neither, or rising.
    """
    filled, lean, whole = 0, 0, 0
    for r in range(height):
        up = 2 * r - height + 1
        for c in range(width):
            whole += abs(up * (2 * c - width + 1))
        for c in range(spans[2 * r, 0], spans[2 * r, 1] + 1):
            filled += 1
            lean += up * (2 * c - width + 1)
    full = filled / (height * width)
    level = int(full >= 0.4) + int(full >= 0.6) + int(full >= 0.8) + int(full >= 0.95)
    return 3 * level + 1 + (12 * lean > whole) - (12 * lean < -whole)


@njit(cache=True, nogil=True)
def shape_group(filed, height, width, spans):
    """Return the group of a footprint's shape; `filed` are the sizes that each is filed under."""
    family = size_family(filed[height, width, 0], filed[height, width, 1])
    if family < 0:
        return 0
    return 1 + 15 * family + shape_class(height, width, spans)


@njit(cache=True, nogil=True)
def shape_groups(filed, heights, widths, spans):
    """Return the group of each footprint's shape."""
    groups = np.empty(len(heights), np.int64)
    for i in range(len(heights)):
        groups[i] = shape_group(filed, heights[i], widths[i], spans[i])
    return groups
