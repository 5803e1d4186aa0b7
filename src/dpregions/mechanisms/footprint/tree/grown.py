"""A tree as it grew: its nodes, what was measured of each, and two fits to that.

Made from noisy counts alone, in the order they were measured, whether they come from a meter or
from a file. The fits are those of `fits`, where some branches end before others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.fits import split
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.least_squares import sums

if TYPE_CHECKING:
    from fractions import Fraction

    from dpregions.arrays import Bools, Floats, Ints
    from dpregions.mechanisms.footprint.tree.growing import Batch
    from dpregions.mechanisms.footprint.tree.ladder import Ladder


class Form(NamedTuple):
    """Which nodes a tree has: parents before children, by generation, in each by their parents."""

    level: Ints
    keys: Ints
    parent: Ints
    """-1 of the root."""
    steps: tuple[slice, ...]
    """The generations: nodes as many steps below the root."""

    @classmethod
    def of(cls, ladder: Ladder, level: Ints, keys: Ints) -> tuple[Form, Ints]:
        """Return the form of a tree with some nodes, some of them twice, and which each is."""
        order = np.lexsort((keys, level))
        new = np.ones(len(order), np.bool_)
        new[1:] = (np.diff(keys[order]) != 0) | (np.diff(level[order]) != 0)
        node = np.empty(len(order), np.int64)
        node[order] = np.cumsum(new) - 1
        level, keys = level[order][new], keys[order][new]
        parent, depth = np.full(len(keys), -1), np.zeros(len(keys), np.int64)
        starts = np.searchsorted(level, np.arange(len(ladder.rungs) + 1))
        for at in range(1, len(ladder.rungs)):
            here = slice(starts[at], starts[at + 1])
            parent[here] = _above(ladder, starts, keys, at)
            depth[here] = depth[parent[here]] + 1
        if starts[1] != 1 or (parent[1:] < 0).any():
            raise PrivacyError("a part of a tree has none above it")
        place = np.zeros(len(keys), np.int64)
        ends = np.cumsum(np.bincount(depth))
        for d, start in enumerate(ends[:-1], start=1):
            some = np.flatnonzero(depth == d)
            some = some[np.lexsort((keys[some], place[parent[some]]))]
            place[some] = start + np.arange(len(some))
        order = np.argsort(place)
        up = np.where(parent >= 0, place[parent], -1)[order]
        steps = tuple(slice(int(a), int(b)) for a, b in zip([0, *ends], ends, strict=False))
        return cls(level[order], keys[order], up, steps), place[node]


def _above(ladder: Ladder, starts: Ints, keys: Ints, level: int) -> Ints:
    """Return the nearest node above each node of a level; nodes lie by level, then by key."""
    wanted = keys[starts[level] : starts[level + 1]]
    found = np.full(len(wanted), -1)
    for above in range(level - 1, -1, -1):
        open_ones = np.flatnonzero(found < 0)
        known = keys[starts[above] : starts[above + 1]]
        if not len(known) or not len(open_ones):
            continue
        key = wanted[open_ones] >> ladder.rungs[above].shift - ladder.rungs[level].shift
        at = np.minimum(np.searchsorted(known, key), len(known) - 1)
        found[open_ones] = np.where(known[at] == key, starts[above] + at, -1)
    return found


@dataclass(frozen=True, eq=False)
class Grown:
    """The nodes of a tree, parents before children; node 0 is the root.

    Attributes
    ----------
    level, keys, parent : int64
        `parent` of the root is -1.
    values, variance : float64
        The noisy count of each node by itself, and the variance of its noise; several
        measurements of one node are averaged.
    generations : tuple of slice
        Nodes as many steps below the root as each has, in order of their parents.
    mix : float64, (side + 1, side + 1)
        How many regions of each size are expected, up to a factor.
    """

    ladder: Ladder
    mix: Floats
    level: Ints
    keys: Ints
    parent: Ints
    values: Floats
    variance: Floats
    generations: tuple[slice, ...]

    @classmethod
    def of(
        cls,
        ladder: Ladder,
        mix: Floats,
        total: tuple[float, float],
        batches: Sequence[Batch],
        variance: Callable[[Fraction], float],
    ) -> Grown:
        """Return the tree of what was measured: the total with its variance, then nodes."""
        value, spread = total
        level, keys = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
        weighed, precision = [np.array([value / spread])], [np.array([1 / spread])]
        for batch in batches:
            spread = variance(batch.share)
            level.append(np.full(len(batch.nodes), batch.level))
            keys.append(batch.nodes)
            weighed.append(batch.values / spread)
            precision.append(np.full(len(batch.nodes), 1 / spread))
        form, node = Form.of(ladder, np.concatenate(level), np.concatenate(keys))
        whole = sums(node, np.concatenate(precision), len(form.keys))
        values = sums(node, np.concatenate(weighed), len(form.keys)) / whole
        return cls(ladder, mix, form.level, form.keys, form.parent, values, 1 / whole, form.steps)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def is_leaf(self) -> Bools:
        """Which nodes have no children."""
        found = np.ones(len(self), np.bool_)
        found[self.parent[1:]] = False
        return found

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without children, in order of keys, which no two of them share."""
        which = np.flatnonzero(self.is_leaf)
        shift = np.array([rung.shift for rung in self.ladder.rungs])
        return which[np.argsort(self.keys[which] << shift[self.level[which]])]

    @cached_property
    def gathered(self) -> tuple[Floats, Floats]:
        """Each node's best estimate from itself and below, and its variance."""
        best, spread = self.values.copy(), self.variance.copy()
        below, doubt = np.zeros((2, len(self)))
        for part in reversed(self.generations):
            inner = np.arange(part.start, part.stop)[~self.is_leaf[part]]
            own = self.variance[inner]
            weight = np.where(np.isinf(own), 1.0, own / (own + doubt[inner]))
            direct = np.where(np.isinf(own), 0.0, self.values[inner])
            best[inner] = weight * below[inner] + (1 - weight) * direct
            spread[inner] = np.where(np.isinf(own), doubt[inner], own * (1 - weight))
            if part.start:
                first = self.generations[self.generations.index(part) - 1]
                up = self.parent[part] - first.start
                n = first.stop - first.start
                below[first] += sums(up, best[part], n)
                doubt[first] += sums(up, spread[part], n)
        return best, spread

    @cached_property
    def shares(self) -> Floats:
        """Each node's expected share of its parent; 1 of the root."""
        weight = np.empty(len(self))
        for level in np.unique(self.level):
            here = np.flatnonzero(self.level == level)
            weight[here] = self.ladder.weights(int(level), self.keys[here], self.mix)
        whole = sums(self.parent[1:], weight[1:], len(self))
        found = np.ones(len(self))
        np.divide(weight[1:], whole[self.parent[1:]], out=found[1:], where=weight[1:] > 0)
        found[1:][weight[1:] <= 0] = 0.0
        return found

    @cached_property
    def fitted(self) -> Floats:
        """The signed least squares count of every node."""
        best, spread = self.gathered
        fit = best.copy()
        for up, part in self._steps():
            missing = fit[up] - sums(self.parent[part] - up.start, best[part], up.stop - up.start)
            whole = sums(self.parent[part] - up.start, spread[part], up.stop - up.start)
            share = np.divide(missing, whole, out=np.zeros_like(whole), where=whole > 0)
            fit[part] = best[part] + spread[part] * share[self.parent[part] - up.start]
        return fit

    def held(self, tuning: Tuning = TUNING) -> Floats:
        """Return a non-negative count of every node; children sum to their parents."""
        best, spread = self.gathered
        fit = np.maximum(best, 0.0)
        for up, part in self._steps():
            above = self.parent[part] - up.start
            prior = fit[up][above] * self.shares[part]
            fit[part] = split(
                fit[up], above, prior, best[part], spread[part], tuning, tuning.believed
            )
        return fit

    def _steps(self) -> list[tuple[slice, slice]]:
        return list(zip(self.generations, self.generations[1:], strict=False))
