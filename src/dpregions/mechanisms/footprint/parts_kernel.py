"""Hot loops that lay out a tree of parts: children side by side, and virtual nodes between.

Knows blocks of cells and their order, and nothing of what is in them.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit

FEW = 4
"""Nodes with more places below than this get virtual nodes between."""


@njit(cache=True, nogil=True)
def laid_out(parent, given):
    """Return a tree with children side by side and virtual nodes between, and its depth.

    `given` are nodes in any order, node 0 the root; `parent` is that of each. Of a node with many
    children, those at one place get a node of their own, and places are halved along both axes
    until few are left: a virtual node was not measured, its spread is the sum of its children's.
    """
    n = len(parent)
    start = np.zeros(n + 1, np.int64)
    for i in range(1, n):
        start[parent[i] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    kids, filled = np.empty(max(n - 1, 1), np.int32), start[:-1].copy()
    for i in range(1, n):
        kids[filled[parent[i]]] = i
        filled[parent[i]] += 1
    # A place: neighbouring siblings with the same block.
    run, n_runs, several = np.empty(n, np.int32), 0, 0
    of_node = np.empty(n + 1, np.int32)
    for i in range(n):
        of_node[i] = n_runs
        for k in range(start[i], start[i + 1]):
            a, b = given[kids[k]], given[kids[k - 1]]
            if k > start[i] and a.row == b.row and a.col == b.col and a.side == b.side:
                several += k - run[n_runs - 1] == 1
                continue
            run[n_runs] = k
            n_runs += 1
    of_node[n] = n_runs
    run[n_runs] = max(n - 1, 0)
    order, spare = np.arange(n_runs).astype(np.int32), np.empty(n_runs, np.int32)
    most = n + several + n_runs
    nodes = np.empty(most, given.dtype)
    low, high = np.empty(most, np.int32), np.empty(most, np.int32)
    nodes[0] = given[0]
    low[0], high[0] = of_node[0], of_node[1]
    count, at, depth, end = 1, 0, 1, 1
    ends = np.empty(5, np.int64)
    while at < count:
        if at == end:
            depth, end = depth + 1, count
        lo, hi = low[at], high[at]
        nodes[at].first, nodes[at].n = count, 0
        if hi - lo == 1:
            for k in range(run[order[lo]], run[order[lo] + 1]):
                count = _add(nodes, low, high, count, given, of_node, kids[k])
        elif hi > lo:
            n_ends = _halved(order, spare, run, kids, given, lo, hi, ends)
            if n_ends == 1:  # these cannot be told apart by their places
                for j in range(lo, hi):
                    for k in range(run[order[j]], run[order[j] + 1]):
                        count = _add(nodes, low, high, count, given, of_node, kids[k])
                n_ends = 0
            for e in range(n_ends):
                a, b = ends[e], ends[e + 1]
                first = run[order[a]]
                if b - a == 1 and run[order[a] + 1] - first == 1:
                    count = _add(nodes, low, high, count, given, of_node, kids[first])
                else:
                    _bound(nodes, count, nodes[at].group, order, run, kids, given, a, b)
                    low[count], high[count] = a, b
                    count += 1
        nodes[at].n = count - nodes[at].first
        at += 1
    _sum_up(nodes, count)
    return nodes[:count], depth


@njit(cache=True, nogil=True)
def _add(nodes, low, high, count, given, of_node, i):
    nodes[count] = given[i]
    low[count], high[count] = of_node[i], of_node[i + 1]
    return count + 1


@njit(cache=True, nogil=True)
def _halved(order, spare, run, kids, given, lo, hi, ends):
    """Sort places into quarters, and return how many have any; few places are each for itself.

    `ends` are where each quarter begins, and where the last one ends.
    """
    r0 = c0 = unit = 1 << 40
    r1 = c1 = 0
    for j in range(lo, hi):
        block = given[kids[run[order[j]]]]
        r0, c0, unit = min(r0, block.row), min(c0, block.col), min(unit, block.side)
        r1, c1 = max(r1, block.row), max(c1, block.col)
    extent, half = max(r1 - r0, c1 - c0), max(unit, 1)
    while 2 * half <= extent:
        half *= 2
    if hi - lo <= FEW:
        for j in range(lo, hi + 1):
            ends[j - lo] = j
        return hi - lo
    filled = lo
    n_ends = 0
    for quarter in range(4):
        ends[n_ends] = filled
        for j in range(lo, hi):
            block = given[kids[run[order[j]]]]
            if 2 * (block.row - r0 >= half) + (block.col - c0 >= half) == quarter:
                spare[filled] = order[j]
                filled += 1
        if filled > ends[n_ends]:
            n_ends += 1
    ends[n_ends] = hi
    order[lo:hi] = spare[lo:hi]
    return n_ends


@njit(cache=True, nogil=True)
def _bound(nodes, at, group, order, run, kids, given, a, b):
    """Make a virtual node whose block holds those of the places a to b."""
    r0 = c0 = 1 << 40
    r1 = c1 = 0
    for j in range(a, b):
        block = given[kids[run[order[j]]]]
        r0, c0 = min(r0, block.row), min(c0, block.col)
        r1, c1 = max(r1, block.row + block.side), max(c1, block.col + block.side)
    node = nodes[at]
    node.row, node.col, node.side, node.group = r0, c0, max(r1 - r0, c1 - c0), group
    node.spread, node.fit, node.held, node.detail = -1.0, 0.0, 0.0, False


@njit(cache=True, nogil=True)
def _sum_up(nodes, count):
    """Give virtual nodes, whose spread is below 0, the sums of their children."""
    for i in range(count - 1, -1, -1):
        node = nodes[i]
        if node.spread >= 0:
            continue
        node.spread = 0.0
        for k in range(node.first, node.first + node.n):
            node.spread += nodes[k].spread
            node.fit += nodes[k].fit
