"""Hot loops of intervals: from rectangles of cells down a tree of parts, along their border alone.

A node is a block of centre cells times a group of letters. Where the buckets of a node all touch a
rectangle, or none does, nothing below it is visited: only nodes that the border cuts are.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit

OUTSIDE, INSIDE, CUT = 0, 1, 2
FINENESS = 16
"""Cells along each side of the box that bodies of large footprints are drawn in."""
_LINES = 2 * FINENESS + 2
SAMPLED = 4
"""Cells along each side of a large corner at which the chance is looked up."""


@njit(cache=True, nogil=True)
def summed_in_blocks(values, starts, heights, widths, n_rows, n_cols, block):
    """Return sums of buckets' values by centre cell and letter, over all before it in its block.

    All letters of a cell side by side: a leaf reads them together.
    """
    found = np.zeros((n_rows, n_cols, len(heights)))
    for k in range(len(heights)):
        up, left, i = (heights[k] - 1) // 2, (widths[k] - 1) // 2, starts[k]
        for r in range(n_rows - heights[k] + 1):
            for c in range(n_cols - widths[k] + 1):
                found[r + up, c + left, k] = values[i]
                i += 1
    if block == 1:
        return found
    for r in range(n_rows):
        for c in range(n_cols):
            if c % block:
                for k in range(len(heights)):
                    found[r, c, k] += found[r, c - 1, k]
        if r % block:
            for c in range(n_cols):
                for k in range(len(heights)):
                    found[r, c, k] += found[r - 1, c, k]
    return found


# Chances


@njit(cache=True, nogil=True)
def chance_of(letter, tables, row, col, q0, q1, q2, q3):
    """Return the chance that a body of a letter at a place touches the cells q0..q1 x q2..q3."""
    height, width, t = letter.height, letter.width, tables
    if letter.table < 0:
        return smooth_chance(
            t, height, width,
            max(q0 - row, 0), min(q1 - row + 1, height), max(q2 - col, 0), min(q3 - col + 1, width),
        )  # fmt: skip
    left, right = max(2 * (q2 - col), 0), min(2 * (q3 - col) + 1, 2 * width - 1)
    bottom = letter.table + max(2 * (q0 - row), 0) * 2 * width
    top = letter.table + min(2 * (q1 - row) + 1, 2 * height - 1) * 2 * width
    return (t[top + right] - t[top + left]) - (t[bottom + right] - t[bottom + left])


@njit(cache=True, nogil=True)
def smooth_chance(table, height, width, bottom, top, left, right):
    """Return the chance for a large footprint and its own lines bottom..top x left..right.

    Between the lines of `table` it is interpolated. A body's box begins and ends, in the mean, in
    the middle of its footprint's outer cells.
    """
    y0, y1 = _in_box(bottom, height), _in_box(top, height)
    x0, x1 = _in_box(left, width), _in_box(right, width)
    return (
        _between(table, y1, 1, x1, 1) - _between(table, y1, 1, x0, 0)
        - _between(table, y0, 0, x1, 1) + _between(table, y0, 0, x0, 0)
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _in_box(line, extent):
    if line <= 0:
        return 0.0
    return float(FINENESS) if line >= extent else FINENESS * (line - 0.5) / (extent - 1)


@njit(cache=True, nogil=True)
def _between(table, y, stop_y, x, stop_x):
    i, j = min(int(y), FINENESS - 1), min(int(x), FINENESS - 1)
    v, u = y - i, x - j
    a, c = (2 * i + 1 - stop_y) * _LINES, 2 * j + 1 - stop_x
    b, d = a + 2 * _LINES, c + 2
    lower = (1 - u) * table[a + c] + u * table[a + d]
    upper = (1 - u) * table[b + c] + u * table[b + d]
    return (1 - v) * lower + v * upper


# Leaves


@njit(cache=True, nogil=True)
def _mass(node, k, dense, even, weight, density, summed, r0, r1, c0, c1):
    """Return what is expected of a letter, centred in the cells r0..r1 x c0..c1 of a leaf."""
    if dense:
        if even:
            return weight * ((r1 - r0 + 1) * (c1 - c0 + 1))
        return weight * (
            (density[r1 + 1, c1 + 1] - density[r1 + 1, c0])
            - (density[r0, c1 + 1] - density[r0, c0])
        )
    total = summed[r1, c1, k]
    if r0 > node.row:
        total -= summed[r0 - 1, c1, k]
    if c0 > node.col:
        total -= summed[r1, c0 - 1, k]
        if r0 > node.row:
            total += summed[r0 - 1, c0 - 1, k]
    return total


@njit(cache=True, nogil=True)
def sampled(first, n, i, m):
    """Return the i-th of m places that stand for n."""
    return first + (2 * i + 1) * n // (2 * m)


@njit(cache=True, nogil=True)
def _missing(
    letter, tables, dense, even, density, expected, across, few, chances, known, step, misses, at,
    r0, r1, c0, c1, q0, q1, q2, q3,
):  # fmt: skip
    """Return how much of what is expected at a corner's places misses the query all the same.

    Of queries alike, ``chances[known - row * step - col]`` is the chance of a place, -1 for known:
    it has to be found; and ``misses[at]`` is the sum over sampled places, likewise.
    """
    n_r, n_c, missed = r1 - r0 + 1, c1 - c0 + 1, 0.0
    up, left = (letter.height - 1) // 2, (letter.width - 1) // 2
    if not dense or n_r * n_c <= few:
        for r in range(r0, r1 + 1):
            for c in range(c0, c1 + 1):
                if not dense:
                    mass = expected[letter.start + r * across + c]
                elif even:
                    mass = letter.weight
                else:
                    y, x, w = r + up, c + left, density
                    mass = (w[y + 1, x + 1] - w[y + 1, x]) - (w[y, x + 1] - w[y, x])
                    mass *= letter.weight
                if known >= 0:
                    chance = chances[known - r * step - c]
                else:
                    chance = chance_of(letter, tables, r, c, q0, q1, q2, q3)
                missed += mass * (1 - chance)
        return missed
    m_r, m_c = min(n_r, SAMPLED), min(n_c, SAMPLED)
    if at >= 0:
        missed = misses[at]
    else:
        for i in range(m_r):
            r = sampled(r0, n_r, i, m_r)
            for j in range(m_c):
                c = sampled(c0, n_c, j, m_c)
                if known >= 0:
                    chance = chances[known - r * step - c]
                else:
                    chance = chance_of(letter, tables, r, c, q0, q1, q2, q3)
                missed += 1 - chance
    missed *= letter.weight / (m_r * m_c)
    if even:
        return missed * (n_r * n_c)
    y0, y1, x0, x1, w = r0 + up, r1 + up + 1, c0 + left, c1 + left + 1, density
    return missed * ((w[y1, x1] - w[y1, x0]) - (w[y0, x1] - w[y0, x0]))


@njit(cache=True, nogil=True)
def partly(extent, first, last, above):
    """Return the places along an axis where a footprint lies partly in a range, below or above."""
    if last - first + 1 < extent:  # nowhere wholly: all in one
        return (0, -1) if above else (first - extent + 1, last)
    return (last - extent + 2, last) if above else (first - extent + 1, first - 1)


@njit(cache=True, nogil=True)
def _within(
    node, even, n_rows, n_cols, letters, tables, groups, members, dense, expected, summed, density,
    few, tall, wide, chances, starts, misses, miss_starts, miss_sides, q0, q1, q2, q3,
):  # fmt: skip
    """Return what is expected of a leaf that touches the query, and of all of it.

    A footprint that lies wholly within the query's rows, or its columns, touches it for sure where
    it meets it: only at the query's corners is it a matter of chance.
    """
    touching = whole = 0.0
    alike = q1 - q0 + 1 == tall and q3 - q2 + 1 == wide  # else it is cut at the grid
    kept = alike and miss_sides[node.group] == node.side
    for m in range(groups[node.group].begin, groups[node.group].end):
        k = members[m]
        letter = letters[k]
        h, w = letter.height, letter.width
        up, left, across = (h - 1) // 2, (w - 1) // 2, n_cols - w + 1
        a0, a1 = max(node.row - up, 0), min(node.row + node.side - 1 - up, n_rows - h)
        b0, b1 = max(node.col - left, 0), min(node.col + node.side - 1 - left, n_cols - w)
        if a1 < a0 or b1 < b0:
            continue
        mass = _mass(
            node, k, dense, even, letter.weight, density, summed,
            a0 + up, a1 + up, b0 + left, b1 + left,
        )  # fmt: skip
        whole += mass
        r0, r1, c0, c1 = max(a0, q0 - h + 1), min(a1, q1), max(b0, q2 - w + 1), min(b1, q3)
        if r1 < r0 or c1 < c0:
            continue
        if r0 > a0 or r1 < a1 or c0 > b0 or c1 < b1:
            mass = _mass(
                node, k, dense, even, letter.weight, density, summed,
                r0 + up, r1 + up, c0 + left, c1 + left,
            )  # fmt: skip
        touching += mass
        if (r0 >= q0 and r1 + h - 1 <= q1) or (c0 >= q2 and c1 + w - 1 <= q3):
            continue
        first = known = -1
        if alike:
            known = starts[k] + (q0 + tall - 1) * (w + wide - 1) + q2 + wide - 1
        if kept and a1 - a0 + 1 == node.side and b1 - b0 + 1 == node.side:
            along = q2 - b0 + wide - 1
            first = miss_starts[m] + 4 * ((q0 - a0 + tall - 1) * (node.side + w + wide - 2) + along)
        for above in (False, True):
            d0, d1 = partly(h, q0, q1, above)
            d0, d1 = max(d0, r0), min(d1, r1)
            if d1 < d0:
                continue
            for right in (False, True):
                e0, e1 = partly(w, q2, q3, right)
                e0, e1 = max(e0, c0), min(e1, c1)
                if e1 >= e0:
                    at = -1 if first < 0 else first + 2 * above + right
                    touching -= _missing(
                        letter, tables, dense, even, density, expected, across, few,
                        chances, known, w + wide - 1, misses, at,
                        d0, d1, e0, e1, q0, q1, q2, q3,
                    )  # fmt: skip
    return touching, whole


@njit(cache=True, nogil=True)
def _share_by_cells(node, group, mixed, start, tall, wide, density, q0, q2):
    """Return the share of a small leaf's regions that touch one of queries alike.

    All sizes of its group fit about all of its cells, and `mixed` has the group's chances.
    """
    high, across = group.highest + tall - 1, group.widest + wide - 1
    y0 = q0 + tall - 1 + (group.highest - 1) // 2
    x0 = q2 + wide - 1 + (group.widest - 1) // 2
    touching, w = 0.0, density
    for y in range(max(node.row, y0 - high + 1), min(node.row + node.side - 1, y0) + 1):
        for x in range(max(node.col, x0 - across + 1), min(node.col + node.side - 1, x0) + 1):
            chance = mixed[start + (y0 - y) * across + x0 - x]
            if node.side == 1:
                return chance
            touching += chance * ((w[y + 1, x + 1] - w[y + 1, x]) - (w[y, x + 1] - w[y, x]))
    if node.side == 1:
        return 0.0
    y0, y1, x0, x1 = node.row, node.row + node.side, node.col, node.col + node.side
    return touching / ((w[y1, x1] - w[y1, x0]) - (w[y0, x1] - w[y0, x0]))


@njit(cache=True, nogil=True)
def _is_small(node, group, n_rows, n_cols, density, least, weight):
    """Whether all sizes of a group fit about all cells of a leaf, and it has some density."""
    if (
        node.row < (group.highest - 1) // 2
        or node.col < (group.widest - 1) // 2
        or node.row + node.side + group.highest // 2 > n_rows
        or node.col + node.side + group.widest // 2 > n_cols
    ):
        return False
    y0, y1, x0, x1, w = node.row, node.row + node.side, node.col, node.col + node.side, density
    return node.side == 1 or weight * ((w[y1, x1] - w[y1, x0]) - (w[y0, x1] - w[y0, x0])) > least


@njit(cache=True, nogil=True)
def share_of(
    node, n_rows, n_cols, letters, tables, groups, members, dense, expected, summed, density, few,
    least, tall, wide, chances, starts, misses, miss_starts, miss_sides,
    mixed, mixed_starts, mixed_weights, q0, q1, q2, q3,
):  # fmt: skip
    """Return the expected share of a leaf's regions that touch the query."""
    group = groups[node.group]
    if node.side == 1 and group.end == group.begin + 1:
        letter = letters[members[group.begin]]
        row, col = node.row - (letter.height - 1) // 2, node.col - (letter.width - 1) // 2
        meets_rows = row <= q1 and row + letter.height > q0
        if not meets_rows or col > q3 or col + letter.width <= q2:
            return 0.0
        return chance_of(letter, tables, row, col, q0, q1, q2, q3)
    start = mixed_starts[node.group] if q1 - q0 + 1 == tall and q3 - q2 + 1 == wide else -1
    if start >= 0 and node.side * node.side <= few:
        weight = mixed_weights[node.group]
        if _is_small(node, group, n_rows, n_cols, density, least, weight):
            return _share_by_cells(node, group, mixed, start, tall, wide, density, q0, q2)
    even = dense and node.side == 1  # letters at one cell share its density
    touching, whole = _within(
        node, even, n_rows, n_cols, letters, tables, groups, members, dense, expected, summed,
        density, few, tall, wide, chances, starts, misses, miss_starts, miss_sides,
        q0, q1, q2, q3,
    )  # fmt: skip
    if dense and not even and whole <= least:
        touching, whole = _within(
            node, True, n_rows, n_cols, letters, tables, groups, members, dense, expected, summed,
            density, few, tall, wide, chances, starts, misses, miss_starts, miss_sides,
            q0, q1, q2, q3,
        )  # fmt: skip
    return touching / whole if whole > 0 else 0.0


# The walk


@njit(cache=True, nogil=True)
def meets(node, group, n_rows, n_cols, q0, q1, q2, q3):
    """Return whether all buckets of a node touch a query for sure, or none can; else it is cut."""
    h0, h1, w0, w1 = group.lowest, group.highest, group.narrowest, group.widest
    r0, r1 = node.row, min(node.row + node.side, n_rows) - 1
    c0, c1 = node.col, min(node.col + node.side, n_cols) - 1
    down, up = r0 - (h1 - 1) // 2, r1 + h1 // 2
    left, right = c0 - (w1 - 1) // 2, c1 + w1 // 2
    if up < q0 or down > q1 or right < q2 or left > q3:
        return OUTSIDE
    rows = max(down, 0) >= q0 and min(up, n_rows - 1) <= q1
    cols = max(left, 0) >= q2 and min(right, n_cols - 1) <= q3
    if rows and (cols or (c1 - (w0 - 1) // 2 <= q3 and c0 + w0 // 2 >= q2)):
        return INSIDE
    if cols and r1 - (h0 - 1) // 2 <= q1 and r0 + h0 // 2 >= q0:
        return INSIDE
    return CUT


@njit(cache=True, nogil=True)
def walk(
    nodes, depth, n_rows, n_cols, letters, tables, groups, members, dense, expected, summed,
    density, few, least, unsure_detail, unsure_bucket,
    tall, wide, chances, starts, misses, miss_starts, miss_sides,
    mixed, mixed_starts, mixed_weights, ranges, found,
):  # fmt: skip
    """Fill `found` for each column of ranges: estimate, variance, and sums of p(1-p) over leaves.

    These are p(1-p) times held and held squared of leaves with detail below, then of the others;
    p(1-p) is taken as at least `unsure_detail` or `unsure_bucket` of a leaf that the query cuts.
    The variance goes up the tree: `slope` is how the query's answer moves with a node's fit, `rest`
    what its children's errors add beside. `tall` and what follows is what queries alike share,
    as `alike.Alike` has it.
    """
    above, child = np.empty(depth, np.int64), np.empty(depth, np.int64)
    sums = np.empty((depth, 3))
    for q in range(ranges.shape[1]):
        q0, q1, q2, q3 = ranges[0, q], ranges[1, q], ranges[2, q], ranges[3, q]
        found[:, q] = 0.0
        if q1 < q0 or q3 < q2:
            continue
        at, top, slope, rest = 0, -1, 0.0, 0.0
        while True:
            node = nodes[at]
            how = meets(node, groups[node.group], n_rows, n_cols, q0, q1, q2, q3)
            if how == CUT and node.n > 0:
                top += 1
                above[top], child[top] = at, 0
                sums[top] = 0.0
                at = node.first
                continue
            slope, rest = float(how), 0.0
            if how == CUT:
                slope = share_of(
                    node, n_rows, n_cols, letters, tables, groups, members, dense, expected, summed,
                    density, few, least,
                    tall, wide, chances, starts, misses, miss_starts, miss_sides,
                    mixed, mixed_starts, mixed_weights, q0, q1, q2, q3,
                )  # fmt: skip
                unsure = unsure_detail if node.detail else unsure_bucket
                either = max(slope * (1 - slope), unsure) * node.held
                first = 2 if node.detail else 4
                found[first, q] += either
                found[first + 1, q] += either * node.held
            if how != OUTSIDE:
                found[0, q] += slope * node.fit
            while top >= 0:
                spread = nodes[at].spread
                sums[top, 0] += slope * spread
                sums[top, 1] += spread
                sums[top, 2] += rest + slope * slope * spread
                child[top] += 1
                at = above[top]
                if child[top] < nodes[at].n:
                    at = nodes[at].first + child[top]
                    break
                whole = sums[top, 1]
                slope = sums[top, 0] / whole if whole > 0 else 0.0
                rest = sums[top, 2] - slope * slope * whole
                top -= 1
            if top < 0:
                break
        found[1, q] = max(rest + slope * slope * nodes[0].spread, 0.0)
