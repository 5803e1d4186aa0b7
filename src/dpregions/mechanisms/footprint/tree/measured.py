"""What an adaptive tree measured: noisy counts of the total, of sizes and of its nodes.

From these alone follow the tree, its fits and its bodies, so a file keeps only them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpregions.mechanisms.footprint.measuring import integer_variance
from dpregions.mechanisms.footprint.shape_mix import reshaped
from dpregions.mechanisms.footprint.tree.growing import grow
from dpregions.mechanisms.footprint.tree.grown import Grown
from dpregions.mechanisms.footprint.tree.mix import groupings, mix_of
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.privacy.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tree.growing import Adaptive, Batch, Counts
    from dpregions.mechanisms.footprint.tree.ladder import Ladder


@dataclass(frozen=True, eq=False)
class TreeShares:
    """The budget of a tree: of the total, of each count of sizes, and of every path."""

    first: Budget
    mix: tuple[Budget, ...]
    shapes: Budget | None
    """None where footprints are single cells, which have one shape."""
    path: Budget

    @classmethod
    def of(cls, side: int, first: Budget, rest: Budget, tuning: Tuning = TUNING) -> TreeShares:
        """Return the shares of what the total costs and what it leaves; they sum to both."""
        n = len(groupings(side))
        if not n:
            return cls(first, (), None, rest)
        left = 1 - tuning.tree_mix - tuning.shape_mix
        *mix, shapes, path = rest.split(*[tuning.tree_mix / n] * n, tuning.shape_mix, left)
        return cls(first, tuple(mix), shapes, path)


@dataclass(frozen=True, eq=False)
class TreeMeasured:
    """Noisy counts along a tree, and how they were paid."""

    ladder: Ladder
    how: Adaptive
    shares: TreeShares
    factor: int
    """Sensitivity of every measurement: 2 under replace-one."""
    total: float
    sizes: tuple[Ints | Floats, ...]
    """Counts of groups of sizes in the whole area, as `mix.groupings` has them."""
    shapes: Ints | Floats
    """Counts of groups of shapes in the whole area; empty where all have one."""
    batches: tuple[Batch, ...]
    """Counts of nodes, in the order they were measured."""
    spread: Callable[[Budget, int], float] = integer_variance

    def variance(self, share: Budget | Fraction) -> float:
        """Return the variance of the noise that a share pays for."""
        # Noise of a large epsilon has a variance that is 0 as a float: nothing to divide by.
        return max(self.spread(Budget(share), self.factor), 1e-12)

    def mix(self, tuning: Tuning = TUNING) -> Floats:
        """Return how many regions of each size are expected, up to a factor."""
        variance = self.variance(self.shares.mix[0]) if self.sizes else 1.0
        noisy = [np.asarray(values, np.float64) for values in self.sizes]
        return mix_of(self.ladder, self.total, noisy, variance, tuning)

    def shaped(self, known: Catalogue, tuning: Tuning = TUNING) -> Catalogue:
        """Return a catalogue with shapes mixed as they were counted."""
        if self.shares.shapes is None:
            return known
        mix = self.mix(tuning)
        sizes = mix * (max(self.total, 1.0) / mix.sum())
        noisy = np.asarray(self.shapes, np.float64)
        return reshaped(known, sizes, noisy, self.variance(self.shares.shapes), tuning)

    @cached_property
    def n_parts(self) -> int:
        """How many counts of nodes there are."""
        return sum(len(batch.nodes) for batch in self.batches)

    def grown(self, tuning: Tuning = TUNING) -> Grown:
        """Return the tree."""
        total = self.total, self.variance(self.shares.first)
        return Grown.of(self.ladder, self.mix(tuning), total, self.batches, self.variance)

    def leaves(self) -> Iterator[tuple[int, Ints]]:
        """Yield the leaves of each level, in order of keys."""
        grown = self.grown()
        for level in np.unique(grown.level[grown.leaves]):
            here = grown.leaves[grown.level[grown.leaves] == level]
            yield int(level), np.sort(grown.keys[here])

    @property
    def spending(self) -> tuple[tuple[str, Budget], ...]:
        """What was measured, in plain words, and with which share."""
        found = [("the number of regions in the area", self.shares.first)]
        kinds = ["size"] if len(self.sizes) == 1 else ["height", "width"]
        for kind, values, share in zip(kinds, self.sizes, self.shares.mix, strict=False):
            found.append(
                (f"{len(values):,} counts of regions by {kind} of footprint in the area", share)
            )
        if self.shares.shapes is not None:
            found.append(
                (f"{len(self.shapes):,} counts of regions by shape in the area", self.shares.shapes)
            )
        parts = (
            f"{self.n_parts:,} counts of regions in the parts of a tree that opened where noisy "
            f"counts were large, each path from its root to a leaf in shares of epsilon, whose "
            f"noise is larger than that of all of it, together"
        )
        return (*found, (parts, self.shares.path))


def measure_tree(
    ladder: Ladder,
    how: Adaptive,
    shares: TreeShares,
    factor: int,
    total: float,
    counts: Counts,
    sizes: Callable[..., Ints | Floats],
    shapes: Callable[[Budget], Ints | Floats],
    spread: Callable[[Budget, int], float] = integer_variance,
    tuning: Tuning = TUNING,
) -> TreeMeasured:
    """Measure sizes, shapes and a tree by someone who gives noisy counts of each."""
    of_sizes = tuple(
        sizes(*group, share)
        for group, share in zip(groupings(ladder.side), shares.mix, strict=True)
    )
    of_shapes = np.zeros(0) if shares.shapes is None else shapes(shares.shapes)
    empty = TreeMeasured(ladder, how, shares, factor, total, of_sizes, of_shapes, (), spread)
    mix = empty.mix(tuning)
    batches = grow(
        ladder, how, mix, total, shares.path, factor, counts,
        lambda share, _: empty.variance(share), tuning,
    )  # fmt: skip
    return replace(empty, batches=tuple(batches))
