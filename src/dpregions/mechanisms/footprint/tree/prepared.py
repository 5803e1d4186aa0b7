"""An adaptive tree with everything settled that public values decide, and how it is measured.

`publish` is where the secret tally meets noise, through a `Meter`; from there on there are only
noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.base import Cost
from dpregions.mechanisms.footprint.bodies import bodies_of_sizes
from dpregions.mechanisms.footprint.catalogue_of_sizes import catalogue_of_sizes
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.ladder import Ladder, ladder_of
from dpregions.mechanisms.footprint.tree.measured import TreeMeasured, TreeShares, measure_tree
from dpregions.mechanisms.footprint.tree.meter import Meter
from dpregions.mechanisms.footprint.tree.outcome import TreeOutcome
from dpregions.mechanisms.footprint.tree.reading import TreeReading
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.memory import COMPONENT, FILE, PART
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.measuring import Strategy
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource


@dataclass(frozen=True, eq=False)
class PreparedTree:
    """What is settled before a region is looked at: budget, sensitivity, levels."""

    grid: Grid
    bound: int
    """In lattice steps."""
    side: int
    """Cells of the widest footprint."""
    first: Budget
    """For the total."""
    rest: Budget
    """For sizes and the tree."""
    sensitivity: int
    """Of every measurement: 2 under replace-one."""
    how: Adaptive
    known: Catalogue | None
    """The catalogue of all sizes; None where they are too many, and those used are drawn later."""
    tuning: Tuning = TUNING

    @cached_property
    def ladder(self) -> Ladder:
        """The levels of the tree."""
        return ladder_of(self.grid.shape, self.side, self.bound, self.tuning)

    @property
    def shares(self) -> TreeShares:
        """The budget of the total, of sizes, and of every path."""
        return TreeShares.of(self.side, self.first, self.rest, self.tuning)

    def cost(self) -> Cost:
        """Return what a release takes where the tree opens as many parts as it may."""
        parts, components = self.how.most_parts, self.grid.n_components
        return Cost(parts, COMPONENT * components + PART * parts, FILE * (parts + components))

    def tally(self) -> FootprintTally:
        """Return an empty tally."""
        return FootprintTally(self.ladder)

    def try_out(self) -> None:
        """Refuse a budget whose smallest share is too small to be measured with."""
        # A path is measured at most once a level.
        depth = len(self.ladder.rungs)
        least = self.shares.path.epsilon * (1 - self.tuning.tree_first) ** depth
        scale_for(least * self.tuning.tree_first, self.sensitivity)
        shapes = () if self.shares.shapes is None else (self.shares.shapes,)
        for share in (*self.shares.mix, *shapes):
            scale_for(share, self.sensitivity)

    def measured_total(self, tally: FootprintTally, noise: NoiseSource) -> Ints:
        """Return the noisy number of regions."""
        exact = np.array([tally.total], np.int64)
        return noise.add(exact, epsilon=self.first, sensitivity=self.sensitivity)

    def publish(self, tally: FootprintTally, noise: NoiseSource) -> TreeOutcome:
        """Measure with noise; from there on there are only noisy counts."""
        return self.publish_beside(self.measured_total(tally, noise), tally, noise)

    def publish_beside(self, total: Ints, tally: FootprintTally, noise: NoiseSource) -> TreeOutcome:
        """Measure the rest, where the total is measured already."""
        return self.post_process(self.measured(float(total[0]), tally, noise))

    def measured(self, total: float, tally: FootprintTally, noise: NoiseSource) -> TreeMeasured:
        """Return noisy counts of sizes and along the tree."""
        ladder, factor = self.ladder, self.sensitivity
        meter = Meter(ladder, tally.keyed(ladder), tally.shapes, self.rest, factor, noise)
        found = measure_tree(
            ladder, self.how, self.shares, factor, total, meter.counts, meter.sizes, meter.shapes,
            tuning=self.tuning,
        )  # fmt: skip
        for level, leaves in found.leaves():
            if not meter.spending.is_settled(level, leaves):
                raise PrivacyError("a path of the tree did not spend what it was given")
        return found

    def post_process(self, measured: TreeMeasured) -> TreeOutcome:
        """Fit the noisy counts and make bodies of them."""
        reading = TreeReading(measured, self.tuning)
        row, col, height, width = reading.footprints().astype(np.int64).T
        known = measured.shaped(self.catalogue(height, width), self.tuning)
        bodies = bodies_of_sizes(known, row, col, height, width)
        return TreeOutcome(
            grid=self.grid,
            counts=bodies.counts_on(*self.grid.shape),
            signed=None,
            spending=measured.spending,
            bodies=bodies,
            reading=reading,
            strategy=self.how,
        )

    def catalogue(self, height: Ints, width: Ints) -> Catalogue:
        """Return the catalogue that bodies of some sizes are drawn from."""
        if self.known is not None:
            return self.known
        used = np.unique(np.stack([height, width]), axis=1).T
        return catalogue_of_sizes(self.side, self.bound, map(tuple, used.tolist()), self.tuning)

    # What rehearsals ask.

    def strategy(self, n_regions: float) -> Adaptive:
        """Return what to measure, whatever the total."""
        del n_regions
        return self.how

    def with_strategy(self, how: Adaptive | Strategy) -> PreparedTree:
        """Return the same with another way to open."""
        assert isinstance(how, Adaptive)
        return replace(self, how=how)

    @property
    def n_buckets(self) -> int:
        """How many counts get noise, about: as many as regions, at most, and a few."""
        return min(self.grid.n_rows * self.grid.n_cols, self.how.most_parts)

    def expected_counts(self, tally: FootprintTally, noise: NoiseSource) -> Floats:
        """Return what `publish` gives as counts."""
        return self.publish(tally, noise).counts.astype(np.float64)

    def total_variances(self) -> tuple[float, float]:
        """Return the variance of the noisy total, by itself and about that after the fit."""
        from dpregions.mechanisms.footprint.measuring import integer_variance

        variance = integer_variance(self.first, self.sensitivity)
        return variance, variance
