"""The mechanisms as rehearsals run them: with public parameters settled, ready for many cities.

Owns which noisy totals a rehearsal stands for and what of a release is left out because it hardly
changes errors. Noise is seeded: nothing here makes a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.paper.mechanism import Paper
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Numbers
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.outlines import Bound
    from dpregions.mechanisms.footprint.mechanism import PreparedFootprint
    from dpregions.mechanisms.footprint.tree.prepared import PreparedTree
    from dpregions.planning.exact_data import ExactData
    from dpregions.privacy.budget import Budget

INSIDE = 0.96
"""Share of a made-up city's regions that are taken to touch its area."""

NEAR = 0.02
"""Noise of the total, of all regions, up to which it is taken to choose as the true one does."""

MANY_BODIES = 50_000
"""Regions up to which the bodies of a release are made, and not only their counts fitted."""

MOST_COUNTS = 2_000_000
"""Counts of a repetition that are affordable; of a method, more are not rehearsed at all."""

_DRAWS = 4000
_GOLDEN = (math.sqrt(5) - 1) / 2


class Rehearsed(Protocol):
    """A mechanism with its public parameters, ready to be tried on cities."""

    size: int
    """How many counts a repetition handles."""

    def counts(self, city: ExactData, repetition: int) -> Numbers:
        """Return the counts that would be published of a city, with seeded noise."""

    def total(self, city: ExactData, repetition: int) -> float | None:
        """Return the answer to the whole area where its law is known, spread over that law.

        One draw of noise a repetition decides it, if it is left to chance: its median error
        over a few dozen would be off by a third.
        """


class RehearsedFootprint:
    """The footprint mechanism, with the levels it will choose for about that many regions.

    What it measures follows from its noisy total, and near a tie it may be one thing or the
    other: where the noise is large beside the regions, two totals take turns.
    """

    def __init__(
        self, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours, n_regions: int
    ) -> None:
        prepared = Footprint().prepare(grid, bound, budget, neighbours)
        scale = scale_for(prepared.first, prepared.sensitivity)
        # Quartiles of the noisy total where they may choose apart, or else its median.
        offs = np.log([1 / 2, 2]) * scale if scale > NEAR * n_regions else np.zeros(1)
        chosen = [prepared.strategy(n_regions * INSIDE + float(off)) for off in offs]
        made = {strategy: _Fixed(prepared.with_strategy(strategy)) for strategy in set(chosen)}
        self.variants = [made[strategy] for strategy in chosen]
        self.size = max(fixed.prepared.n_buckets for fixed in self.variants)

    def counts(self, city: ExactData, repetition: int) -> Numbers:
        """Return the counts of the bodies that would be published."""
        return self._variant(repetition).counts(city, StudyNoise(repetition))

    def total(self, city: ExactData, repetition: int) -> float:
        """Return a total from the law of the fit's."""
        place = ((repetition + 0.5) * _GOLDEN) % 1.0
        off = float(np.rint(self._variant(repetition).offs[int(place * _DRAWS)]))
        return max(city.n_regions + (off if repetition % 2 else -off), 0.0)

    def _variant(self, repetition: int) -> _Fixed:
        return self.variants[repetition % len(self.variants)]


@dataclass(frozen=True, eq=False)
class _Fixed:
    """The footprint mechanism with what it measures fixed."""

    prepared: PreparedFootprint | PreparedTree

    def counts(self, city: ExactData, noise: StudyNoise) -> Numbers:
        """Return the counts of the bodies that would be published."""
        tally = city.tally(self.prepared, self.prepared.tally().alphabet)
        if city.n_regions <= MANY_BODIES:
            return self.prepared.publish(tally, noise).counts
        # Of so many regions bodies would be made one by one, to round off less than one each.
        return self.prepared.expected_counts(tally, noise)

    @cached_property
    def offs(self) -> Floats:
        """Draws of how far the fitted total is off, either way, sorted.

        Its own draw and the sum of all below it, weighted by their variances.
        """
        own, fused = self.prepared.total_variances()
        # Two independent estimates of variances `own` and `other` fuse to 1/(1/own + 1/other).
        weight = fused / own
        rng = np.random.default_rng(0)
        alone = rng.laplace(0.0, math.sqrt(own / 2), _DRAWS)
        below = rng.normal(0.0, math.sqrt(max(fused * (1 - weight), 0.0)), _DRAWS)
        return np.sort(np.abs(weight * alone + below))


class RehearsedPaper:
    """The paper's mechanism."""

    def __init__(
        self, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours, n_regions: int
    ) -> None:
        self.size = grid.n_components
        if self.size > MOST_COUNTS:
            raise PrivacyError(
                f"{self.size:,} components are more than {MOST_COUNTS:,}, too many to rehearse"
            )
        self.prepared = Paper().prepare(grid, bound, budget, neighbours)

    def counts(self, city: ExactData, repetition: int) -> Numbers:
        """Return Round's counts."""
        return self.prepared.publish(city.counted, StudyNoise(repetition)).counts

    def total(self, city: ExactData, repetition: int) -> None:
        """Return nothing: what the fit adds to a sum of draws has no simple law."""


REHEARSED: Mapping[str, Callable[..., Rehearsed]] = {
    "footprint": RehearsedFootprint,
    "paper": RehearsedPaper,
}
