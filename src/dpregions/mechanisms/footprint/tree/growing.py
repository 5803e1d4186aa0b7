"""Where the adaptive tree opens: decided from noisy counts and public values, step by step.

Each node that is open has an estimate of how many regions it holds and a budget. Opened, it gives
its budget to its children, all of them, empty ones too; closed, it is measured once more with all
that is left. Nothing here can reach a secret count: it asks for noisy ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dpregions.errors import InputError
from dpregions.mechanisms.footprint.fits import split
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.privacy.budget import Budget

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.tree.ladder import Ladder

MOST_PARTS = 4_000_000
"""Most counts of a tree: each takes a draw of noise of about ten microseconds, and 100 bytes."""


@dataclass(frozen=True)
class Adaptive:
    """What an adaptive tree weighs: how far it opens, and in how large steps.

    Parameters
    ----------
    detail : float
        How uneven regions are taken to lie inside a part: the larger, the further it opens.
    most_children : int
        Into how many parts at most a node opens at once, where it skips levels.
    most_parts : int
        Most counts in all: where they are reached, open nodes close with the budget left to them.
    """

    detail: float
    most_children: int
    most_parts: int = MOST_PARTS

    def __post_init__(self) -> None:
        whole = all(type(n) is int for n in (self.most_children, self.most_parts))
        good = whole and 4 <= self.most_children <= MOST_PARTS
        good = good and 1 <= self.most_parts <= MOST_PARTS
        if not (good and type(self.detail) is float and 0 < self.detail < 1e6):
            raise InputError(
                f"a tree has a detail above 0, opens into 4 children or more and has at most "
                f"{MOST_PARTS:,} parts, got {self!r}",
                argument="strategy",
            )


class Batch(NamedTuple):
    """Noisy counts of some nodes of one level, in order of keys, measured with one share."""

    level: int
    nodes: Ints
    share: Fraction
    values: Ints | Floats
    """Whole numbers, but in rehearsals."""


class Counts(Protocol):
    """Whoever measures: gives noisy counts of nodes for a share."""

    def __call__(self, level: int, nodes: Ints, share: Budget) -> Ints | Floats:
        """Return noisy counts of some nodes of a level."""


class _Open(NamedTuple):
    """Open nodes of one level: keys, estimates, and how often their paths were measured."""

    keys: Ints
    held: Floats
    depth: Ints


@dataclass(eq=False)
class _Growth:
    ladder: Ladder
    how: Adaptive
    mix: Floats
    budget: Fraction
    factor: int
    counts: Counts
    variance: Callable[[Budget, int], float]
    tuning: Tuning
    n_parts: int = 0
    n_open: int = 1
    """Nodes of all levels that are open: each can still be closed, at one count."""
    batches: list[Batch] = field(default_factory=list)

    def left(self, depth: int) -> Fraction:
        """Return the budget of a node whose path was measured so often."""
        return self.budget * (1 - self.tuning.tree_first) ** depth

    def run(self, total: float) -> list[Batch]:
        last = len(self.ladder.rungs) - 1
        waiting: dict[int, list[_Open]] = {level: [] for level in range(last + 1)}
        root = _Open(np.zeros(1, np.int64), np.array([max(total, 0.0)]), np.zeros(1, np.int64))
        waiting[0].append(root)
        for level in range(last + 1):
            if waiting[level]:
                found = _Open(*map(np.concatenate, zip(*waiting[level], strict=True)))
                for below, opened in self._level(level, found):
                    waiting[below].append(opened)
            waiting[level].clear()
        return self.batches

    def _level(self, level: int, nodes: _Open) -> Iterator[tuple[int, _Open]]:
        """Close or open the nodes of a level; yield the children that stay open."""
        target, final = self._decided(level, nodes)
        target = self._within_cap(level, nodes, target, final)
        self.n_open -= len(target)
        plans = np.stack([target, final, nodes.depth], axis=-1)
        for below, ends, depth in np.unique(plans, axis=0).tolist():
            which = np.flatnonzero((plans == (below, ends, depth)).all(axis=1))
            which = which[np.argsort(nodes.keys[which])]
            some = _Open(nodes.keys[which], nodes.held[which], nodes.depth[which])
            if below == level:
                self._measure(level, some.keys, self.left(depth))
                continue
            keys, up = self.ladder.children(level, some.keys, below)
            share = self.left(depth) * (1 if ends else self.tuning.tree_first)
            batch = self._measure(below, keys, share)
            if not ends:
                held = self._shared_out(some, batch, up)
                self.n_open += len(keys)
                yield below, _Open(keys, held, np.full(len(keys), depth + 1))

    def _measure(self, level: int, keys: Ints, share: Fraction) -> Batch:
        batch = Batch(level, keys, share, self.counts(level, keys, Budget(share)))
        self.batches.append(batch)
        self.n_parts += len(keys)
        return batch

    def _decided(self, level: int, nodes: _Open) -> tuple[Ints, Ints]:
        """Return the level that each node opens into, its own for none; and if it is the last."""
        rungs = self.ladder.rungs
        budget = self._epsilons(nodes.depth)
        target = np.full(len(nodes.keys), level)
        best = self._cost(1.0, budget, nodes.held)
        for below in self._steps(level):
            cost = self._cost(self.ladder.n_children(level, below), budget, nodes.held)
            target, best = np.where(cost < best, below, target), np.minimum(cost, best)
        final = np.ones(len(target), np.int64)
        for below in np.unique(target[target > level]):
            if below == len(rungs) - 1:
                continue
            here = target == below
            n = self.ladder.n_children(level, int(below))
            # A child with twice its fair share: would it open, with what is left to it?
            crowd = self.tuning.tree_crowd * nodes.held[here] / n
            later = self._epsilons(nodes.depth[here] + 1)
            closed = self._cost(1.0, later, crowd)
            opens = np.zeros(len(crowd), np.bool_)
            for further in self._steps(int(below)):
                wide = self.ladder.n_children(int(below), further)
                opens |= self._cost(wide, later, crowd) < closed
            final[here] = ~opens
        return target, final

    def _steps(self, level: int) -> Iterator[int]:
        """Yield the levels that a node of one may open into: the next, or few enough children."""
        for below in range(level + 1, len(self.ladder.rungs)):
            few = self.ladder.n_children(level, below) <= self.how.most_children
            if few or below == level + 1:
                yield below

    def _epsilons(self, depth: Ints) -> Floats:
        table = [float(self.left(d)) for d in range(int(depth.max(initial=0)) + 1)]
        return np.array(table)[depth] / self.factor

    def _cost(self, n: float, budget: Floats, held: Floats) -> Floats:
        """Return what n parts cost: their noise, and the detail that stays unknown inside them."""
        chance = self.tuning.tree_chance
        return n / budget**2 + self.how.detail * held**2 / n**1.5 + chance * held / n**0.5

    def _within_cap(self, level: int, nodes: _Open, target: Ints, final: Ints) -> Ints:
        """Return the same levels, but nodes beyond the cap stay closed: the emptiest first."""
        n = np.zeros(len(target), np.int64)
        for below in np.unique(target[target > level]):
            bits = self.ladder.rungs[level].shift - self.ladder.rungs[int(below)].shift
            n[target == below] = 1 << bits
        # Children that stay open may have to be closed later, and their node then has not to be.
        n = np.where(n > 0, n * (2 - final) - 1, 0)
        room = self.how.most_parts - self.n_parts - self.n_open
        order = np.lexsort((nodes.keys, -nodes.held))
        beyond = np.zeros(len(target), np.bool_)
        beyond[order] = np.cumsum(n[order]) > room
        return np.where(beyond, level, target)

    def _shared_out(self, nodes: _Open, batch: Batch, up: Ints) -> Floats:
        """Return the children's estimates: their parents', split by what was measured."""
        weight = self.ladder.weights(batch.level, batch.nodes, self.mix)
        whole = np.bincount(up, weight, len(nodes.keys))[up]
        prior = nodes.held[up] * np.divide(weight, whole, out=np.zeros(len(up)), where=whole > 0)
        noise = np.full(len(up), self.variance(Budget(batch.share), self.factor))
        seen, t = batch.values.astype(np.float64), self.tuning
        return split(nodes.held, up, prior, seen, noise, t, t.believed)


def grow(
    ladder: Ladder,
    how: Adaptive,
    mix: Floats,
    total: float,
    budget: Budget,
    factor: int,
    counts: Counts,
    variance: Callable[[Budget, int], float],
    tuning: Tuning = TUNING,
) -> list[Batch]:
    """Return everything that a tree measures, in its order.

    Parameters
    ----------
    ladder : Ladder
    how : Adaptive
    mix : numpy.ndarray
        How many regions of each size are expected, up to a factor.
    total : float
        The noisy number of regions.
    budget : Budget
        What each path from the root to a leaf spends.
    factor : int
        Sensitivity: 2 under replace-one.
    counts : callable
        Gives noisy counts of nodes.
    variance : callable
        Of the noise that a share pays for.
    tuning : Tuning, optional
    """
    growth = _Growth(ladder, how, mix, budget.epsilon, factor, counts, variance, tuning)
    return growth.run(total)
