"""The only place where a tree's secret counts meet noise, and what every path of it has spent.

Counts of nodes are asked here, and noisy counts come back. Nodes measured together are disjoint,
so that a region is in one of them at most; nodes above each other add up. The meter keeps what was
spent on every key as an exact fraction, and refuses a measurement with which any of them would go
beyond the budget.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpregions.errors import OverBudgetError
from dpregions.mechanisms.footprint.tree.keyed import KeyedCounts

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.mechanisms.footprint.tree.ladder import Ladder
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource


class Spending:
    """What was spent on every key, exactly: a step function. It knows no counts."""

    def __init__(self, ladder: Ladder, budget: Fraction) -> None:
        self._ladder, self._budget = ladder, budget
        self._starts = np.array([0, len(ladder)], np.int64)
        self._which = np.zeros(1, np.int64)
        self._amounts = [Fraction(0)]

    def add(self, level: int, nodes: Ints, share: Fraction) -> None:
        """Add a share to all keys of some nodes, in order; refuse where it is too much."""
        shift = self._ladder.rungs[level].shift
        first, last = nodes << shift, (nodes + 1) << shift
        if len(nodes) == 0:
            return
        if (first[1:] < last[:-1]).any() or first[0] < 0 or last[-1] > len(self._ladder):
            raise OverBudgetError(f"parts that are measured together overlap{_FAULT}")
        ends = np.stack([first, last], axis=-1).ravel()
        starts = np.unique(np.concatenate([self._starts, ends]))
        which = self._which[np.searchsorted(self._starts, starts[:-1], side="right") - 1]
        at = np.searchsorted(ends, starts[:-1], side="right")
        inside = (at & 1) == 1
        for i in np.unique(which[inside]):
            spent = self._amounts[i] + share
            if share <= 0 or spent > self._budget:
                raise OverBudgetError(
                    f"a part with {self._amounts[i]} spent above it is measured with {share}, "
                    f"beyond {self._budget}: it was not{_FAULT}"
                )
            if spent not in self._amounts:
                self._amounts.append(spent)
            which[inside & (which == i)] = -1 - self._amounts.index(spent)
        which = np.where(which < 0, -1 - which, which)
        new = np.ones(len(which), np.bool_)
        new[1:] = which[1:] != which[:-1]
        self._starts = np.append(starts[:-1][new], starts[-1])
        self._which = which[new]

    def on(self, keys: Ints) -> list[Fraction]:
        """Return what was spent on some keys."""
        at = np.searchsorted(self._starts, keys, side="right") - 1
        return [self._amounts[i] for i in self._which[at]]

    def is_settled(self, level: int, nodes: Ints) -> bool:
        """Whether all keys of some nodes have spent the whole budget."""
        shift = self._ladder.rungs[level].shift
        first = np.searchsorted(self._starts, nodes << shift, side="right") - 1
        last = np.searchsorted(self._starts, (nodes + 1) << shift, side="left")
        spent = np.array([amount == self._budget for amount in self._amounts])[self._which]
        before = np.concatenate([[0], np.cumsum(spent)])
        return bool((before[last] - before[first] == last - first).all())


_FAULT = ". This is a fault of the mechanism"


class Meter:
    """Secret counts by key, and noise for them: gives out noisy counts alone."""

    def __init__(
        self,
        ladder: Ladder,
        counted: tuple[Ints, Ints],
        shapes: Ints,
        budget: Budget,
        sensitivity: int,
        noise: NoiseSource,
    ) -> None:
        self._counts, self._shapes = KeyedCounts(ladder, *counted), shapes
        self._sensitivity, self._noise = sensitivity, noise.allot(budget)
        self.spending = Spending(ladder, budget.epsilon)

    def counts(self, level: int, nodes: Ints, share: Budget) -> Ints:
        """Return noisy counts of some nodes of a level, in order, each with this share."""
        self.spending.add(level, nodes, share.epsilon)
        return self._noised(self._counts.of_nodes(level, nodes), share)

    def sizes(self, tall: Ints, wide: Ints, share: Budget) -> Ints:
        """Return noisy counts of groups of sizes in the whole area.

        Every size is in one group: that of its height in `tall` and of its width in `wide`, so a
        region is in one of them and all keys spend the share.
        """
        self.spending.add(0, np.zeros(1, np.int64), share.epsilon)
        return self._noised(self._counts.of_sizes(tall, wide), share)

    def shapes(self, share: Budget) -> Ints:
        """Return noisy counts of groups of shapes in the whole area: all keys spend the share."""
        self.spending.add(0, np.zeros(1, np.int64), share.epsilon)
        return self._noised(self._shapes, share)

    def _noised(self, exact: Ints, share: Budget) -> Ints:
        return self._noise.add(exact, epsilon=share, sensitivity=self._sensitivity)
