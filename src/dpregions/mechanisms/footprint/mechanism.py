"""The footprint mechanism: noise on footprints instead of on the Euler histogram.

A region touches many components but has one footprint, so a histogram of footprints has
sensitivity 1 where the Euler histogram has (2k+1)**2. The sequence: a noisy total; a choice of
what else to measure, from public parameters and that total; noisy counts of the chosen levels;
two fits to them; bodies that realise the non-negative one. Exact counts are seen in
`PreparedFootprint._measured` alone, and noise is added there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpregions.errors import Argument, InputError, InputTypeError, PrivacyError
from dpregions.mechanisms.base import Columns, Held, Layout, Outcome
from dpregions.mechanisms.footprint import codec
from dpregions.mechanisms.footprint.bodies import Bodies, make_bodies
from dpregions.mechanisms.footprint.buckets import Alphabet, Buckets, refuse_too_many
from dpregions.mechanisms.footprint.catalogue import Catalogue, catalogue
from dpregions.mechanisms.footprint.choice import (
    choose,
    may_measure_shapes,
    n_affordable,
    workload_sizes,
)
from dpregions.mechanisms.footprint.fits import combine
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy
from dpregions.mechanisms.footprint.measuring import Measured, Strategy, measure
from dpregions.mechanisms.footprint.reading import Reading, half_widths
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.memory import BUCKET, COMPONENT, refuse_beyond
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    import geopandas
    from numpy.typing import NDArray

    from dpregions.choices import Neighbours
    from dpregions.geometry.cells import Selection
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.outlines import Bound
    from dpregions.privacy.noise import NoiseSource

MOST_NOISE = 1_000_000
"""Largest scale of the total's noise: it is made up of bodies, one by one."""
LEAST_STEPS = 128
"""Smallest bound in lattice steps that the catalogue has witnesses for."""


@dataclass(frozen=True)
class Footprint:
    """Noise on footprints, then bodies that are consistent by construction.

    Parameters
    ----------
    workload : sequence, optional
        Sizes of the rectangles that matter, each a side or a pair (width, height), numbers or
        text ("2km"): the budget is laid out for them. By default all sizes matter alike.
    strategy : Strategy, optional
        What to measure, fixed beforehand; by default it is chosen for the noisy total.
    tuning : Tuning, optional
        For calibration and tests: other numbers than today's. A file does not keep them: read
        back, intervals are by today's.
    """

    name: ClassVar[str] = "footprint"

    workload: Any = None
    strategy: Strategy | None = None
    tuning: Tuning = field(default=TUNING, repr=False)

    def __post_init__(self) -> None:
        for name, kind in (("strategy", Strategy), ("tuning", Tuning)):
            value = getattr(self, name)
            if not isinstance(value, kind) and not (name == "strategy" and value is None):
                raise InputTypeError(Argument(name), f" must be a {kind.__name__}, got {value!r}")

    def prepare(
        self, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> PreparedFootprint:
        """Settle budget shares and the catalogue; refuse what cannot be measured or held."""
        sizes = None if self.workload is None else workload_sizes(self.workload, grid)
        share = total_share(grid, self.tuning)
        first, rest = budget.split(share, 1 - share)
        factor = PrivacyUnit(neighbours).sensitivity_factor
        side = min(bound.k + 1, max(grid.shape))
        _refuse_hopeless(first, factor, bound)
        n_sizes = refuse_too_many(side, *grid.shape)
        known = catalogue(side, bound.steps, self.tuning)
        # Whether shapes are measured is decided after the debit: both must fit before it.
        _refuse_beyond_memory(grid, max(n_sizes, n_affordable(known, *grid.shape)))
        prepared = PreparedFootprint(
            grid, first, rest, factor, known, sizes, self.strategy, self.tuning
        )
        # What is chosen after the debit must work: a strategy or a tuning of one's own is tried.
        if self.strategy is not None or self.tuning != TUNING:
            prepared.try_out()
        return prepared

    @classmethod
    def layout(cls, *, covert: bool) -> Layout:
        """Return bodies, noisy counts unless covert, and the catalogue."""
        return codec.layout(covert=covert)

    @classmethod
    def outcome(cls, held: Held) -> FootprintOutcome:
        """Return the outcome of a file."""
        said = held.statement
        bodies, measured, strategy = codec.read(held)
        reading = None if measured is None else Reading(measured)
        return FootprintOutcome(
            said.grid, held.counts, held.signed, said.spending, bodies, reading, strategy
        )


@dataclass(frozen=True, eq=False)
class PreparedFootprint:
    """What is settled before a region is looked at: budget, sensitivity, catalogue."""

    grid: Grid
    first: Budget
    """For the total."""
    rest: Budget
    """For what is chosen after it."""
    sensitivity: int
    """Of every measurement: 2 under replace-one."""
    known: Catalogue
    sizes: list[tuple[int, int]] | None
    fixed: Strategy | None
    tuning: Tuning = TUNING

    def tally(self) -> FootprintTally:
        """Return an empty tally, of the finest alphabet that may be measured."""
        return FootprintTally(self._finest)

    @cached_property
    def _finest(self) -> Buckets:
        if self.fixed is not None:
            return self._buckets(self.fixed.alphabet)
        shapes = may_measure_shapes(self.known, *self.grid.shape, self.tuning)
        return self._buckets("patterns" if shapes else "sizes")

    def _buckets(self, alphabet: Alphabet) -> Buckets:
        return Buckets.of(self.known, alphabet, *self.grid.shape)

    def strategy(self, n_regions: float) -> Strategy:
        """Return what to measure, given a total that is noisy or public."""
        if self.fixed is not None:
            return self.fixed
        return choose(
            self.known,
            *self.grid.shape,
            epsilon=float(self.rest),
            n_regions=n_regions,
            spent=float(self.first),
            factor=self.sensitivity,
            sizes=self.sizes,
            tuning=self.tuning,
        )

    def try_out(self) -> None:
        """Refuse a strategy that cannot be measured on this grid, or whose shares are too small."""
        try:
            strategy = self.strategy(0.0)
        except (ArithmeticError, LookupError, ValueError) as error:
            raise PrivacyError(
                f"no strategy can be chosen with this tuning ({type(error).__name__})"
            ) from error
        shapes = strategy.alphabet == "patterns"
        if shapes and not n_affordable(self.known, *self.grid.shape):
            raise PrivacyError(
                "shapes cannot be measured on so many cells: use a strategy of sizes"
            )
        self._tree(strategy)
        for share in strategy.shares(self.first, self.rest).values():
            scale_for(share, self.sensitivity)

    def with_strategy(self, strategy: Strategy) -> PreparedFootprint:
        """Return the same with what to measure fixed."""
        return replace(self, fixed=strategy)

    def _tree(self, strategy: Strategy) -> Hierarchy:
        if strategy is self.fixed:
            return self._fixed_tree
        return Hierarchy.of(self._buckets(strategy.alphabet), strategy.levels)

    @cached_property
    def _fixed_tree(self) -> Hierarchy:
        """Of the fixed strategy, made once: rehearsals publish again and again."""
        assert self.fixed is not None
        return Hierarchy.of(self._buckets(self.fixed.alphabet), self.fixed.levels)

    def _measured(self, tally: FootprintTally, noise: NoiseSource) -> tuple[Strategy, Measured]:
        """Return noisy counts: the total, what is chosen for it, and those measurements."""
        total = noise.add(
            np.array([tally.total], np.int64), epsilon=self.first, sensitivity=self.sensitivity
        )
        strategy = self.strategy(float(total[0]))
        tree = self._tree(strategy)
        shares = strategy.shares(self.first, self.rest)
        exact = tally.counts(tree.buckets)
        noisy = {WHOLE: total, **measure(tree, exact, shares, self.sensitivity, noise)}
        return strategy, Measured.of(tree, noisy, shares, self.sensitivity)

    def publish(self, tally: FootprintTally, noise: NoiseSource) -> FootprintOutcome:
        """Measure with noise; from there on there are only noisy counts."""
        return self.post_process(*self._measured(tally, noise))

    def post_process(self, strategy: Strategy, measured: Measured) -> FootprintOutcome:
        """Fit the noisy counts and make bodies of them."""
        reading, tree = Reading(measured, self.tuning), measured.hierarchy
        bodies = make_bodies(tree.buckets, reading.held)
        shares = strategy.shares(self.first, self.rest)
        return FootprintOutcome(
            grid=self.grid,
            counts=bodies.counts_on(*self.grid.shape),
            signed=tree.buckets.expand(reading.fitted),
            spending=tuple((tree.describe(level), share) for level, share in shares.items()),
            bodies=bodies,
            reading=reading,
            strategy=strategy,
        )

    # What rehearsals ask of a fixed strategy.

    @property
    def n_buckets(self) -> int:
        """How many buckets get noise."""
        return len(self._fixed_tree.buckets)

    def expected_counts(self, tally: FootprintTally, noise: NoiseSource) -> NDArray[np.float64]:
        """Return about what `publish` gives as counts, without making bodies one by one."""
        _, measured = self._measured(tally, noise)
        return measured.hierarchy.buckets.expand(Reading(measured, self.tuning).held)

    def total_variances(self) -> tuple[float, float]:
        """Return the variance of the noisy total, by itself and after the fit."""
        assert self.fixed is not None
        tree, shares = self._fixed_tree, self.fixed.shares(self.first, self.rest)
        empty = np.zeros(len(tree.buckets), np.int64)
        nothing = {level: tree.sums(level, empty) for level in shares}
        measured = Measured.of(tree, nothing, shares, self.sensitivity)
        return measured.noisy[WHOLE].variance, float(combine(measured)[1][0][0])


def total_share(grid: Grid, tuning: Tuning = TUNING) -> Fraction:
    """Return the share of the budget for the total, which the choice of levels rests on.

    One over the square root of the number of cells: the total is then as precise as the sum
    of all cells of a plain histogram of points at the whole budget.
    """
    share = Fraction(1, math.isqrt(grid.n_rows * grid.n_cols))
    return min(max(share, tuning.least_total), tuning.most_total)


def _refuse_beyond_memory(grid: Grid, n_buckets: int) -> None:
    """Refuse more buckets and components than this machine holds."""
    refuse_beyond(
        COMPONENT * grid.n_components + BUCKET * n_buckets,
        f"a release by footprints on {grid.size_in_words} with {n_buckets:,} buckets",
        ("use larger cells, a smaller area or a smaller ", Argument("max_diameter")),
        PrivacyError,
    )


def _refuse_hopeless(share: Budget, factor: int, bound: Bound) -> None:
    """Refuse noise that makes up more bodies than a machine holds, and bodies without extent."""
    if bound.steps < LEAST_STEPS:
        raise PrivacyError(
            Argument("max_diameter"),
            " is too small beside the grid's cells for any body within it: use smaller cells or a "
            "larger ",
            Argument("max_diameter"),
        )
    scale = scale_for(share, factor)
    if scale > MOST_NOISE:
        raise PrivacyError(
            f"with epsilon = {share} for the number of regions, its noise has scale {scale:.3g}, "
            f"more than {MOST_NOISE:,}: give a larger epsilon",
            argument="epsilon",
        )


@dataclass(frozen=True, eq=False)
class FootprintOutcome(Outcome):
    """The histogram of made-up bodies, and the signed estimates. Private."""

    bodies: Bodies
    """What the counts are the exact histogram of."""
    reading: Reading | None
    """What the signed estimate and its errors come from; None in a covert release."""
    strategy: Strategy | None

    def covert(self) -> Self:
        """Return the outcome without its measurements."""
        return replace(self, signed=None, reading=None, strategy=None)

    def bounds(self, selection: Selection, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return intervals that hold the count too: another reading of the same noisy counts."""
        low, high = super().bounds(selection, confidence)
        count = self.count(selection)
        return np.minimum(low, count), np.maximum(high, count)

    def half_widths(self, selection: Selection, confidence: float) -> NDArray[np.float64]:
        """Return half widths from the deviations of noise and of shapes."""
        return half_widths(*self.deviations(selection), confidence)

    def deviations(self, selection: Selection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what noise and what unmeasured detail add."""
        assert self.reading is not None
        return self.reading.deviations(selection, self.grid)

    def to_regions(self) -> geopandas.GeoDataFrame:
        """Return each body as a convex polygon."""
        return self.bodies.to_regions(self.grid)

    def options(self) -> dict[str, Any]:
        """Return what was measured; nothing in a covert release."""
        return {} if self.strategy is None else {"strategy": codec.strategy_fields(self.strategy)}

    def columns(self) -> Columns:
        """Return bodies, noisy counts and the catalogue."""
        if self.reading is not None and self.reading.tuning != TUNING:
            raise InputError(
                "a release made with another tuning cannot be saved: read back, it would have "
                "other intervals"
            )
        measured = None if self.reading is None else self.reading.measured
        return codec.columns_of(self.grid, self.bodies, measured, self.strategy)
