"""The paper's mechanism behind the seam: noise on the Euler histogram, then LinProg and Round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpregions.errors import Argument, GridError, InputError, PrivacyError, ReleaseFileError
from dpregions.mechanisms.base import Cost, Held, Layout, Outcome
from dpregions.mechanisms.paper.order import order_of
from dpregions.mechanisms.paper.pipeline import NORMS, Norm, run
from dpregions.memory import FILE, PAPER, refuse_beyond
from dpregions.privacy import law
from dpregions.privacy.budget import PrivacyUnit
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.choices import Neighbours
    from dpregions.geometry.cells import Selection
    from dpregions.geometry.domain import Counter, Domain
    from dpregions.geometry.layers import Layer
    from dpregions.geometry.outlines import Bound
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource

_EXACT = 1 << 53
"""Whole numbers up to this are floats."""


@dataclass(frozen=True)
class Paper:
    """Noise on every component, then the nearest consistent array.

    Parameters
    ----------
    norm : {"l1", "linf"}
        What LinProg minimises.
    """

    name: ClassVar[str] = "paper"
    half_for_one: ClassVar[bool] = True

    norm: Norm = "l1"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise InputError(Argument("norm", repr(self.norm)), " is unknown: use 'l1' or 'linf'")

    def prepare(
        self, grid: Domain, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> PreparedPaper:
        """Settle the sensitivity; refuse a grid beyond memory and a hopeless epsilon."""
        what = f"a release by the paper's method on {grid.size_in_words}"
        refuse_beyond(PAPER * grid.n_components, what, error=GridError)
        sensitivity = grid.most_touched(bound) * PrivacyUnit(neighbours).sensitivity_factor
        scale_for(budget, sensitivity)
        return PreparedPaper(self.norm, grid, budget, sensitivity)

    @classmethod
    def layout(cls, *, covert: bool) -> Layout:
        """Return no columns: counts and estimates are all there is."""
        return Layout()

    @classmethod
    def outcome(cls, held: Held) -> PaperOutcome:
        """Return the outcome of a file; estimates are whole numbers."""
        said, signed, options = held.statement, held.signed, held.options
        if options.keys() != {"norm"} or options["norm"] not in NORMS:
            raise ReleaseFileError("its norm is none that LinProg has")
        # The file has the float next to the bound that was enforced, which may be a fraction.
        bound = said.max_diameter
        near = (math.nextafter(bound, 0), bound, math.nextafter(bound, math.inf))
        bounds = {said.grid.bound(length, said.oversize) for length in near}
        factor = said.privacy_unit.sensitivity_factor
        if said.sensitivity not in {factor * said.grid.most_touched(bound) for bound in bounds}:
            raise ReleaseFileError(
                "its sensitivity is not that of its bound and neighbour relation"
            )
        if len(said.spending) != 1:
            raise ReleaseFileError("it spent in parts what its method spends at once")
        if signed is not None and ((np.abs(signed) > _EXACT) | (signed != np.rint(signed))).any():
            raise ReleaseFileError("it has estimates that are no whole numbers")
        whole = None if signed is None else signed.astype(np.int64)
        scale = scale_for(said.budget, said.sensitivity)
        return PaperOutcome(said.grid, held.counts, whole, said.spending, options["norm"], scale)


@dataclass(frozen=True)
class PreparedPaper:
    """The paper's mechanism on a grid, calibrated."""

    norm: Norm
    grid: Domain
    budget: Budget
    sensitivity: int

    def tally(self) -> Counter:
        """Return an empty Euler histogram.

        It is as large as what is published: each component gets noise, empty ones too.
        """
        return self.grid.counter()

    def cost(self) -> Cost:
        """Return what a release takes: one draw for each component."""
        n = self.grid.n_components
        return Cost(n, PAPER * n, FILE * n)

    def publish(self, tally: Counter, noise: NoiseSource) -> PaperOutcome:
        """Run the pipeline on the exact histogram."""
        steps = run(
            tally.histogram(),
            epsilon=self.budget,
            sensitivity=self.sensitivity,
            noise=noise,
            norm=self.norm,
            order=order_of(self.grid),
        )
        spending = ((f"all {self.grid.n_components:,} components", self.budget),)
        scale = scale_for(self.budget, self.sensitivity)
        return PaperOutcome(self.grid, steps.counts, steps.signed, spending, self.norm, scale)


@dataclass(frozen=True, eq=False)
class PaperOutcome(Outcome):
    """Round's counts, and the counts with noise alone. Private."""

    norm: Norm
    """What LinProg minimised."""
    scale: float
    """Of the noise on each component."""

    def half_widths(self, selection: Selection, confidence: float) -> NDArray[Any]:
        """Return quantiles of the sum of as many draws as a query has components."""
        return law.sum_half_width(selection.n_components, self.scale, confidence)

    def deviations(self, selection: Selection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the draws add up to; shapes add nothing."""
        noise = np.sqrt(selection.n_components * law.variance(self.scale))
        return noise, np.zeros_like(noise)

    def to_regions(self) -> Layer:
        """Refuse: no regions have these counts."""
        raise PrivacyError(
            "a release made with method='paper' is the histogram of no set of regions: its counts "
            "satisfy C1 to C3, which does not suffice. Use method='footprint'"
        )

    def options(self) -> dict[str, Any]:
        """Return the norm: counts and estimates are all there is beside it."""
        return {"norm": self.norm}
