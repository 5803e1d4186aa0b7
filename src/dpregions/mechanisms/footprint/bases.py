"""Several grids that regions may be measured on, one of which is: the choice by the noisy total.

The cells of a partition are not what is measured: regions are, on squares over its area, whose
best size depends on how many regions there are. That number is secret, so all sizes are tallied
in one pass and the noisy total chooses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.base import Cost

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.geometry.bases import Base
    from dpregions.geometry.outlines import Outlines
    from dpregions.mechanisms.footprint.mechanism import PreparedFootprint
    from dpregions.mechanisms.footprint.outcome import FootprintOutcome
    from dpregions.mechanisms.footprint.tally import FootprintTally
    from dpregions.mechanisms.footprint.tuning import Tuning
    from dpregions.privacy.noise import NoiseSource


class BasesTally:
    """Regions by bucket on each of several grids over one area. Secret."""

    def __init__(self, bases: tuple[Base, ...], tallies: list[FootprintTally]) -> None:
        self._bases, self.tallies = bases, tallies

    def add(self, outlines: Outlines) -> None:
        """Count more regions on every grid."""
        for base, tally in zip(self._bases, self.tallies, strict=True):
            tally.add(base.outlines(outlines))

    def marks(self, outlines: Outlines) -> Ints:
        """Return the bucket of each region on every grid, a column each, -1 for none."""
        both = zip(self._bases, self.tallies, strict=True)
        return np.concatenate(
            [tally.marks(base.outlines(outlines)) for base, tally in both], axis=1
        )

    @property
    def n_marks(self) -> int:
        """How many marks a region has: one on each grid."""
        return len(self.tallies)

    def add_marks(self, marks: Ints, times: Ints | None = None) -> None:
        """Count regions by their buckets, each so many times."""
        for i, tally in enumerate(self.tallies):
            tally.add_marks(marks[:, i : i + 1], times)

    def __iadd__(self, other: BasesTally) -> Self:
        """Add the tally of other users."""
        for ours, theirs in zip(self.tallies, other.tallies, strict=True):
            ours += theirs
        return self

    @property
    def nbytes(self) -> int:
        """How much memory it takes at most."""
        return sum(tally.nbytes for tally in self.tallies)


@dataclass(frozen=True, eq=False)
class PreparedBases:
    """Several grids that regions may be measured on; the noisy total decides which is.

    Regions are tallied on all of them, and one tally alone is measured beside the total: so the
    sensitivity is that of one grid.
    """

    prepared: tuple[PreparedFootprint, ...]
    bases: tuple[Base, ...]
    tuning: Tuning

    @property
    def sensitivity(self) -> int:
        """Of every measurement: 2 under replace-one."""
        return self.prepared[0].sensitivity

    def cost(self) -> Cost:
        """Return what a release takes: one grid is measured, and all are tallied."""
        each = [one.cost() for one in self.prepared]
        return Cost(
            max(cost.draws for cost in each),
            sum(cost.memory for cost in each),
            max(cost.file for cost in each),
        )

    @property
    def laid_out_for(self) -> str:
        """The queries that the budget is laid out for, in words and in cells of the first grid."""
        return self.prepared[0].laid_out_for

    def tally(self) -> BasesTally:
        """Return an empty tally on every grid."""
        return BasesTally(self.bases, [one.tally() for one in self.prepared])

    def publish(self, tally: BasesTally, noise: NoiseSource) -> FootprintOutcome:
        """Measure the total, choose the grid for it, and measure the rest there."""
        total = self.prepared[0].measured_total(tally.tallies[0], noise)
        which = self.chosen(float(total[0]))
        made = self.prepared[which].publish_beside(total, tally.tallies[which], noise)
        return made.inside(self.bases[which].area)

    def try_out(self) -> None:
        """Refuse a tuning by which no grid can be chosen."""
        try:
            self.chosen(0.0)
        except (ArithmeticError, ValueError) as error:
            raise PrivacyError(
                f"no grid can be chosen with this tuning ({type(error).__name__})"
            ) from error

    def chosen(self, n_regions: float) -> int:
        """Return which grid is worth measuring, given a noisy total and public values alone.

        What noise adds grows with the number of cells, what is not known of places within a cell
        falls with it: so cells halve each time that the regions in one grow by `finer_base`.
        """
        coarse = self.prepared[0]
        epsilon = float(coarse.rest) / coarse.sensitivity
        weight = max(n_regions, 1.0) * epsilon / (coarse.grid.n_rows * coarse.grid.n_cols)
        finer = math.log(max(weight / self.tuning.base_crowd, 1.0), self.tuning.finer_base)
        return min(int(finer), len(self.prepared) - 1)
