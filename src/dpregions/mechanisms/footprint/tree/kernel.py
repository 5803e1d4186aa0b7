"""Hot loops of the adaptive tree. Public values and noisy counts alone."""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit


@njit(cache=True, nogil=True)
def node_weights(rows, cols, block, tall, wide, step, each, inner, n_rows, n_cols):
    """Return the sum of `each` size's weight over its places in nodes: blocks and classes.

    `inner` has the sums of classes where every size fits everywhere in a block.
    """
    found = np.empty(len(rows))
    side = each.shape[0] - 1
    for i in range(len(rows)):
        h0, w0 = tall[i] * step + 1, wide[i] * step + 1
        h1, w1 = min(h0 + step - 1, side), min(w0 + step - 1, side)
        r0, c0 = rows[i], cols[i]
        r1, c1 = r0 + block, c0 + block
        if (
            r0 >= (h1 - 1) // 2
            and r1 <= n_rows - h1 + (h1 - 1) // 2 + 1
            and c0 >= (w1 - 1) // 2
            and c1 <= n_cols - w1 + (w1 - 1) // 2 + 1
        ):
            found[i] = inner[tall[i], wide[i]]
            continue
        total = 0.0
        for h in range(h0, h1 + 1):
            up = min(r1, n_rows - h + (h - 1) // 2 + 1) - max(r0, (h - 1) // 2)
            if up <= 0:
                continue
            for w in range(w0, w1 + 1):
                along = min(c1, n_cols - w + (w - 1) // 2 + 1) - max(c0, (w - 1) // 2)
                if along > 0:
                    total += each[h, w] * up * along
        found[i] = total
    return found


@njit(cache=True, nogil=True)
def spread_evenly(rows, cols, block, held, out):
    """Add each leaf's count to the cells of its block, evenly."""
    n_rows, n_cols = out.shape
    for i in range(len(rows)):
        r1, c1 = min(rows[i] + block, n_rows), min(cols[i] + block, n_cols)
        each = held[i] / ((r1 - rows[i]) * (c1 - cols[i]))
        for r in range(rows[i], r1):
            for c in range(cols[i], c1):
                out[r, c] += each


@njit(cache=True, nogil=True)
def _between(means, block, row, col):
    """Return the density at a cell, between the means of the blocks around it."""
    y, x = (row + 0.5) / block - 0.5, (col + 0.5) / block - 0.5
    i, j = int(np.floor(y)), int(np.floor(x))
    v, u = y - i, x - j
    i0, i1 = max(i, 0), min(i + 1, means.shape[0] - 1)
    j0, j1 = max(j, 0), min(j + 1, means.shape[1] - 1)
    low = (1 - u) * means[i0, j0] + u * means[i0, j1]
    high = (1 - u) * means[i1, j0] + u * means[i1, j1]
    return (1 - v) * low + v * high


@njit(cache=True, nogil=True)
def spread_by_surroundings(rows, cols, block, held, means, even, out):
    """Add each leaf's count to the cells of its block, more towards crowded neighbours.

    `means` has the density of all blocks of that side; `even` of a block's own is added.
    """
    n_rows, n_cols = out.shape
    for i in range(len(rows)):
        if held[i] <= 0.0:
            continue
        r1, c1 = min(rows[i] + block, n_rows), min(cols[i] + block, n_cols)
        least = even * means[rows[i] // block, cols[i] // block]
        whole = 0.0
        for r in range(rows[i], r1):
            for c in range(cols[i], c1):
                whole += _between(means, block, r, c) + least
        for r in range(rows[i], r1):
            for c in range(cols[i], c1):
                out[r, c] += held[i] * (_between(means, block, r, c) + least) / whole


@njit(cache=True, nogil=True)
def _on_curve(block, at):
    """Return row and column of a place on Hilbert's curve through a block."""
    x = y = 0
    side = 1
    while side < block:
        rx = 1 & (at // 2)
        ry = 1 & (at ^ rx)
        if ry == 0:
            if rx == 1:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        x += side * rx
        y += side * ry
        at //= 4
        side *= 2
    return y, x


@njit(cache=True, nogil=True)
def _beyond(row, col, at, block, n_rows, n_cols):
    """Return how many places of the curve lie beyond the grid from one on: a whole square's.

    The curve passes through squares of 2**j cells a side one by one, and they begin at multiples
    of their sides: on a long grid most of a block is passed in a few steps.
    """
    side = 1
    while 2 * side <= block and at % (4 * side * side) == 0:
        low, left = row // (2 * side) * 2 * side, col // (2 * side) * 2 * side
        if low < n_rows and left < n_cols:
            break
        side *= 2
    return side * side


_GOLDEN = (5**0.5 - 1) / 2


@njit(cache=True, nogil=True)
def _most_about(at, n, most):
    """Return the longest side, up to `most`, with this cell in the middle and within n cells.

    Of h cells (h - 1) // 2 are before the middle one.
    """
    return min(2 * at + 2, 2 * (n - 1 - at) + 1, most)


@njit(cache=True, nogil=True)
def place_bodies(
    rows, cols, blocks, tall, wide, steps, turn_at, times, density, mix, n_turns, n_rows, n_cols
):
    """Return centre cell and size of each body: `times` of them in each leaf, in the leaves' order.

    Places lie at equal steps of the leaf's density, along a curve; sizes are dealt in the mix's
    proportions, evenly over each class's bodies, among those that fit about the place. Where none
    does, a footprint is moved inside the grid.
    """
    n = times.sum()
    found = np.empty((n, 4), np.int32)
    turns = np.zeros(n_turns, np.int64)
    side = mix.shape[0] - 1
    k = 0
    for i in range(len(rows)):
        if times[i] == 0:
            continue
        block, r0, c0 = blocks[i], rows[i], cols[i]
        whole = 0.0
        for r in range(r0, min(r0 + block, n_rows)):
            for c in range(c0, min(c0 + block, n_cols)):
                whole += density[r, c]
        h0, w0, step = tall[i] * steps[i] + 1, wide[i] * steps[i] + 1, steps[i]
        h1, w1 = min(h0 + step - 1, side), min(w0 + step - 1, side)
        at, reached = 0, 0.0
        row, col = r0, c0
        for j in range(times[i]):
            wanted = (j + 0.5) / times[i] * whole
            while at < block * block and reached <= wanted:
                y, x = _on_curve(block, at)
                if r0 + y < n_rows and c0 + x < n_cols:
                    row, col = r0 + y, c0 + x
                    reached += density[row, col]
                    at += 1
                else:
                    at += _beyond(r0 + y, c0 + x, at, block, n_rows, n_cols)
            turns[turn_at[i]] += 1
            h2, w2 = _most_about(row, n_rows, h1), _most_about(col, n_cols, w1)
            fitting = mix[h0 : h2 + 1, w0 : w2 + 1].sum()
            if fitting <= 0.0:
                h2, w2 = h1, w1
                fitting = mix[h0 : h2 + 1, w0 : w2 + 1].sum()
            share = ((turns[turn_at[i]] * _GOLDEN) % 1.0) * fitting
            height, width, below = h0, w0, 0.0
            for h in range(h0, h2 + 1):
                for w in range(w0, w2 + 1):
                    if below <= share and mix[h, w] > 0.0:
                        height, width = h, w
                    below += mix[h, w]
            low, left = row - (height - 1) // 2, col - (width - 1) // 2
            found[k, 0] = max(min(low, n_rows - height), 0)
            found[k, 1] = max(min(left, n_cols - width), 0)
            found[k, 2], found[k, 3] = height, width
            k += 1
    return found


@njit(cache=True, nogil=True)
def place_samples(windows, tall, wide, steps, n, density, mix, n_rows, n_cols):
    """Return lower left cell and size of n bodies centred in each of some windows of cells.

    `windows` are first and last rows and columns, inclusive. Places lie at equal steps of the
    density, row by row and back; sizes are dealt in the mix's proportions.
    """
    found = np.empty((n * len(windows), 4), np.int64)
    side = mix.shape[0] - 1
    for i in range(len(windows)):
        r0, r1, c0, c1 = windows[i]
        whole = density[r0 : r1 + 1, c0 : c1 + 1].sum()
        even = whole / ((r1 - r0 + 1) * (c1 - c0 + 1)) * 0.01 + 1e-300
        whole += even * (r1 - r0 + 1) * (c1 - c0 + 1)
        h0, w0 = tall[i] * steps[i] + 1, wide[i] * steps[i] + 1
        h1, w1 = min(h0 + steps[i] - 1, side), min(w0 + steps[i] - 1, side)
        all_sizes = mix[h0 : h1 + 1, w0 : w1 + 1].sum()
        row, col, reached = r0, c0, density[r0, c0] + even
        for j in range(n):
            wanted = (j + 0.5) / n * whole
            end = c1 if (r1 - r0) % 2 == 0 else c0
            while reached <= wanted and not (row == r1 and col == end):
                forth = (row - r0) % 2 == 0
                if col == (c1 if forth else c0):
                    row += 1
                else:
                    col += 1 if forth else -1
                reached += density[row, col] + even
            share = ((j + 1) * _GOLDEN) % 1.0 * all_sizes
            height, width, below = h0, w0, 0.0
            for h in range(h0, h1 + 1):
                for w in range(w0, w1 + 1):
                    if below <= share and mix[h, w] > 0.0:
                        height, width = h, w
                    below += mix[h, w]
            k = i * n + j
            found[k, 0] = max(min(row - (height - 1) // 2, n_rows - height), 0)
            found[k, 1] = max(min(col - (width - 1) // 2, n_cols - width), 0)
            found[k, 2], found[k, 3] = height, width
    return found
