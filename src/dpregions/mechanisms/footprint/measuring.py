"""What to measure and with which shares of the budget, and the noisy counts that come of it.

A `Strategy` is public. `measure` takes exact counts of buckets and is where they get their noise;
`Measured` holds noisy counts and how noisy they are, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.buckets import Alphabet
from dpregions.mechanisms.footprint.levels import (
    BESIDE,
    MIX,
    SHAPES,
    WHOLE,
    Grouping,
    Hierarchy,
    Level,
)
from dpregions.privacy import law
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.privacy.budget import Budget, BudgetLike
    from dpregions.privacy.noise import NoiseSource

_LEAST_VARIANCE = 1e-12
_MOST_LEVELS, _MOST_BLOCK, _MOST_WEIGHT = 16, 1 << 30, 1_000_000

Share = TypeVar("Share", bound="BudgetLike")


class Measurement(NamedTuple):
    """Counts of regions in blocks of cells, by group of letters, with a weight in the budget.

    The weight is in what the total leaves; 0: it is not measured, only a step of the fits.
    """

    block: int
    letters: Grouping
    weight: int = 0

    @property
    def level(self) -> Level:
        """The partition that it counts."""
        return Level(self.block, self.letters)


@dataclass(frozen=True)
class Strategy:
    """What is measured beside the total, in this order.

    Each measurement with blocks refines the one before, down to single letters in each cell; those
    of the whole area, of sizes and of shapes, stand beside that chain.
    """

    alphabet: Alphabet
    measurements: tuple[Measurement, ...]

    def __post_init__(self) -> None:
        levels = [m.level for m in self.measurements]
        beside = [m for m in self.measurements if not m.block]
        good = (
            self.alphabet in get_args(Alphabet)
            and all(m.letters in get_args(Grouping) for m in self.measurements)
            and all(type(n) is int for m in self.measurements for n in (m.block, m.weight))
            and all(0 <= m.weight <= _MOST_WEIGHT for m in self.measurements)
            and all(0 <= m.block <= _MOST_BLOCK for m in self.measurements)
            and 2 <= len(self.levels) <= _MOST_LEVELS
            and self.levels[-1] == Level(1, "letters")
            and len(set(levels)) == len(levels)
            and all(m.level in BESIDE and m.weight > 0 for m in beside)
            and all(m.level == SHAPES for m in self.measurements if m.letters == "shapes")
            and (SHAPES not in levels or self.alphabet == "sizes")
            and any(m.weight for m in self.measurements)
        )
        if not good:
            raise PrivacyError(
                "this strategy cannot be followed: measurements go from large blocks to small "
                "ones, each level once, down to the letters of each cell, one of them with a weight"
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """The chain of partitions, from the whole area down."""
        return (WHOLE, *(m.level for m in self.measurements if m.block))

    @property
    def weights(self) -> dict[Level, int]:
        """The weight of each partition that is measured after the total."""
        return {m.level: m.weight for m in self.measurements if m.weight}

    def shares(self, first: Budget, rest: Budget) -> dict[Level, Budget]:
        """Return the budget of each partition that is measured; they sum to both exactly."""
        weights = self.weights
        return {WHOLE: first, **dict(zip(weights, rest.split(*weights.values()), strict=True))}


class Noisy(NamedTuple):
    """The noisy counts of a partition's parts, and the variance of each one's noise."""

    values: Floats
    variance: float


def measure(
    tree: Hierarchy,
    exact: Ints,
    shapes: Ints,
    shares: Mapping[Level, Share],
    factor: int,
    noise: NoiseSource,
) -> dict[Level, Ints]:
    """Return noisy counts of the partitions that have a share, from exact counts.

    `exact` are counts of buckets, `shapes` those of groups of shapes. The total is measured before
    a strategy is chosen, so it is not measured again here.
    """
    return {
        level: noise.add(
            shapes if level == SHAPES else tree.sums(level, exact),
            epsilon=share,
            sensitivity=factor,
        )
        for level, share in shares.items()
        if level != WHOLE
    }


def integer_variance(share: BudgetLike, factor: int) -> float:
    """Return the variance of the integer noise that a share of the budget pays for."""
    return law.variance(scale_for(share, factor))


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy counts of some partitions: of levels of a hierarchy, and perhaps of the mix."""

    hierarchy: Hierarchy
    noisy: Mapping[Level, Noisy]

    @classmethod
    def of(
        cls,
        tree: Hierarchy,
        counts: Mapping[Level, Ints],
        shares: Mapping[Level, Share],
        factor: int,
        spread: Callable[[Share, int], float] = integer_variance,
    ) -> Measured:
        """Return noisy counts together with how noisy they are."""
        # Noise of a large epsilon has a variance that is 0 as a float: nothing to divide by.
        noisy = {
            level: Noisy(
                counts[level].astype(np.float64), max(spread(share, factor), _LEAST_VARIANCE)
            )
            for level, share in shares.items()
        }
        return cls(tree, noisy)

    @cached_property
    def levels(self) -> tuple[Noisy | None, ...]:
        """What was measured of each level of the hierarchy; None where nothing was."""
        return tuple(self.noisy.get(level) for level in self.hierarchy.levels)

    @property
    def mix(self) -> Noisy | None:
        """The number of regions of each letter in the whole area, where that was measured."""
        return self.noisy.get(MIX)

    @property
    def shapes(self) -> Noisy | None:
        """The number of regions of each group of shapes in the area, where that was measured."""
        return self.noisy.get(SHAPES)

    @property
    def finest(self) -> int:
        """The finest level that was measured."""
        return max(i for i, noisy in enumerate(self.levels) if noisy is not None)
