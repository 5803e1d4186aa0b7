"""Lays out a tree of parts level by level in whole-array steps: `parts_kernel` without a compiler.

Knows blocks of cells and their order, and nothing of what is in them. Finds the same tree as the
kernel, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.mechanisms.footprint.parts_kernel import FEW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Ints


def laid_out(parent: Ints, given: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return a tree with children side by side and virtual nodes between, and its depth.

    See `parts_kernel.laid_out`.
    """
    places = _Places.of(parent, given)
    levels, level = [], _Level(given[:1].copy(), places.of_node[:1], places.of_node[1:2])
    count = 0
    while len(level.nodes):
        count += len(level.nodes)
        n, below = places.children(level)
        level.nodes["first"] = count + np.cumsum(n) - n
        level.nodes["n"] = n
        levels.append(level.nodes)
        level = below
    _sum_up(levels)
    return np.concatenate(levels), len(levels)


class _Level(NamedTuple):
    """Nodes of one depth, and from which to which place each has children."""

    nodes: NDArray[Any]
    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False)
class _Places:
    """Nodes as children: a place is neighbouring siblings with the same block."""

    given: NDArray[Any]
    kids: Ints
    """All nodes but the root, those of one parent side by side."""
    run: Ints
    """Where each place begins among them, and the end of the last."""
    of_node: Ints
    """From which place on a node has its children."""
    order: Ints
    """Places in the order that they are halved in."""

    @classmethod
    def of(cls, parent: Ints, given: NDArray[Any]) -> _Places:
        n = len(parent)
        kids = np.argsort(parent[1:], kind="stable") + 1
        start = np.searchsorted(parent[kids], np.arange(n + 1))
        block = given[kids]
        begins = np.ones(n - 1, np.bool_)
        begins[1:] = parent[kids[1:]] != parent[kids[:-1]]
        for name in ("row", "col", "side"):
            begins[1:] |= block[name][1:] != block[name][:-1]
        run = np.append(np.flatnonzero(begins), n - 1)
        of_node = np.append(0, np.cumsum(begins))[start]
        return cls(given, kids, run, of_node, np.arange(len(run) - 1))

    def children(self, level: _Level) -> tuple[Ints, _Level]:
        """Return how many children each node of a level has, and these."""
        of, low, high = self._segments(level)
        place = self.order[low]
        alone = (high - low == 1) & (self.run[place + 1] - self.run[place] == 1)
        # Places that are one segment of their node are not told apart any further.
        n_segments = np.bincount(of, minlength=len(level.nodes))
        plain = alone | (n_segments[of] == 1)
        segment, at = _ranges(low, high)
        place = self.order[at]
        lengths = np.where(plain[segment], self.run[place + 1] - self.run[place], 0)
        n = np.bincount(segment, lengths, len(low)).astype(np.int64)
        n[~plain] = 1
        end = np.cumsum(n)
        nodes = np.zeros(int(n.sum()), self.given.dtype)
        begin, until = np.zeros((2, len(nodes)), np.int64)
        _, kid = _ranges(self.run[place], self.run[place] + lengths)
        kid = self.kids[kid]
        real = np.repeat(plain, n)
        nodes[real] = self.given[kid]
        begin[real], until[real] = self.of_node[kid], self.of_node[kid + 1]
        some = np.flatnonzero(~plain)
        if len(some):
            to = end[some] - 1
            nodes[to] = self._virtual(low[some], high[some])
            nodes["group"][to] = level.nodes["group"][of[some]]
            begin[to], until[to] = low[some], high[some]
        per_node = np.bincount(of, n, len(level.nodes)).astype(np.int64)
        return per_node, _Level(nodes, begin, until)

    def _segments(self, level: _Level) -> tuple[Ints, Ints, Ints]:
        """Return the segments of places below nodes: of which node, from where, to where."""
        size = level.high - level.low
        many = np.flatnonzero(size > FEW)
        of, at = _ranges(level.low, level.high)
        begins = np.ones(len(at), np.bool_)
        if len(many):
            halved, places = _ranges(level.low[many], level.high[many])
            quarter = self._quarters(level.low[many], level.high[many])
            key = 4 * halved + quarter
            self.order[places] = self.order[places][np.argsort(key, kind="stable")]
            key = np.sort(key)
            begins[size[of] > FEW] = np.append(True, key[1:] != key[:-1])
        low = at[begins]
        high = low + np.diff(np.append(np.flatnonzero(begins), len(at)))
        return of[begins], low, high

    def _bounds(self, low: Ints, high: Ints) -> tuple[Ints, NDArray[Any]]:
        of, at = _ranges(low, high)
        return np.flatnonzero(np.diff(of, prepend=-1)), self.given[
            self.kids[self.run[self.order[at]]]
        ]

    def _quarters(self, low: Ints, high: Ints) -> Ints:
        begin, block = self._bounds(low, high)
        row, col = block["row"].astype(np.int64), block["col"].astype(np.int64)
        r0, c0 = np.minimum.reduceat(row, begin), np.minimum.reduceat(col, begin)
        extent = np.maximum(
            np.maximum.reduceat(row, begin) - r0, np.maximum.reduceat(col, begin) - c0
        )
        half = np.maximum(np.minimum.reduceat(block["side"].astype(np.int64), begin), 1)
        while (wider := 2 * half <= extent).any():
            half[wider] *= 2
        n = high - low
        half, r0, c0 = (np.repeat(each, n) for each in (half, r0, c0))
        return np.asarray(2 * (row - r0 >= half) + (col - c0 >= half), np.int64)

    def _virtual(self, low: Ints, high: Ints) -> NDArray[Any]:
        """Return nodes that were not measured, around the places of segments."""
        begin, block = self._bounds(low, high)
        nodes = np.zeros(len(low), self.given.dtype)
        nodes["row"] = np.minimum.reduceat(block["row"], begin)
        nodes["col"] = np.minimum.reduceat(block["col"], begin)
        beyond = (
            np.maximum.reduceat(block[name] + block["side"], begin) - nodes[name]
            for name in ("row", "col")
        )
        nodes["side"] = np.maximum(*beyond)
        nodes["spread"] = -1.0
        return nodes


def _ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of ranges, one after another, and of which range each is."""
    n = high - low
    of = np.repeat(np.arange(len(n)), n)
    return of, np.arange(len(of)) + np.repeat(low - (np.cumsum(n) - n), n)


def _sum_up(levels: list[NDArray[Any]]) -> None:
    """Give virtual nodes, whose spread is below 0, the sums of their children."""
    for nodes, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        virtual = nodes["spread"] < 0
        of = np.repeat(np.arange(len(nodes)), nodes["n"])
        for name in ("spread", "fit"):
            sums = np.bincount(of, below[name], len(nodes))
            nodes[name][virtual] = sums[virtual]
