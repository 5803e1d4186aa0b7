"""The footprint mechanism: noise on footprints instead of on the Euler histogram.

A region touches many components but has one footprint, so a histogram of footprints has
sensitivity 1 where the Euler histogram has (2k+1)**2. The sequence: a noisy total; a choice of
what else to measure, from public parameters and that total; noisy counts of the chosen levels;
two fits to them; bodies that realise the non-negative one. Regions are seen only where a
level's counts are summed, and noise is added on the same line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.errors import Argument, PrivacyError
from dpregions.geometry.grid import size_in_words
from dpregions.mechanisms.footprint.bodies import Bodies, make_bodies
from dpregions.mechanisms.footprint.buckets import Buckets, Footprints, refuse_too_many
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.choice import Strategy, choose, n_affordable
from dpregions.mechanisms.footprint.expectation import expected_buckets, mix_doubt
from dpregions.mechanisms.footprint.levels import (
    MIX,
    Hierarchy,
    Measured,
    QueryVariance,
    covert_fit,
    row_sums,
    signed_fit,
)
from dpregions.memory import BUCKET, COMPONENT, refuse_beyond
from dpregions.privacy.budget import Budget, Neighbours, sensitivity_factor
from dpregions.privacy.law import variance
from dpregions.privacy.noise import NoiseSource, scale_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.geometry.outlines import Bound, Outlines
    from dpregions.mechanisms.footprint.catalogue import Catalogue

LEAST_TOTAL, MOST_TOTAL = Fraction(1, 50), Fraction(1, 4)
MOST_NOISE = 1_000_000
"""Largest scale of the total's noise: it is made up of bodies, one by one."""
_BATCH = 1 << 20
"""Chances held at once, buckets times queries."""
LEAST_STEPS = 128
"""Smallest bound in lattice steps that the catalogue has witnesses for."""


def total_share(grid: Grid) -> Fraction:
    """Return the share of the budget for the total, which the choice of levels rests on.

    One over the square root of the number of cells: the total is then as precise as the sum
    of all cells of a plain histogram of points at the whole budget.
    """
    share = Fraction(1, math.isqrt(grid.n_rows * grid.n_cols))
    return min(max(share, LEAST_TOTAL), MOST_TOTAL)


class FinestParts(NamedTuple):
    """The finest parts measured: of each bucket, what they hold, what they are expected to."""

    of_bucket: NDArray[np.int64]
    held: NDArray[np.float64]
    expected: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measurements:
    """The signed part of a release: what was measured, and the fits that errors are judged by.

    It can be left out of a release; what is left is covert. The fits follow from what was
    measured, so only that is kept in a file.
    """

    measured: Measured
    strategy: Strategy

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """How much each bucket is expected to hold beforehand, up to a factor."""
        return expected_buckets(self.measured)

    @cached_property
    def fitted(self) -> NDArray[np.float64]:
        """The signed counts of buckets that estimates come from."""
        return signed_fit(self.measured, self.expected)

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """The non-negative counts that the bodies follow: how many regions a query may split."""
        return covert_fit(self.measured, self.expected)

    @cached_property
    def variance(self) -> QueryVariance:
        """The variance that noise gives the estimate of a query."""
        return QueryVariance(self.measured, self.expected)

    @cached_property
    def mix_doubt(self) -> float:
        """How little is known of the mix of sizes, where single sizes were not measured."""
        return mix_doubt(self.measured)

    @cached_property
    def finest(self) -> FinestParts | None:
        """The finest measured parts, where there is unmeasured detail below them."""
        tree, finest = self.measured.hierarchy, self.measured.finest
        if finest == len(tree.levels) - 1:
            return None
        part, n = tree.part[finest], tree.sizes[finest]
        held, expected = (np.bincount(part, v, n) for v in (self.held, self.expected))
        return FinestParts(part, held.astype(np.float64), expected.astype(np.float64))


@dataclass(frozen=True, eq=False)
class FootprintSteps:
    """What the mechanism gave; all of it private."""

    bodies: Bodies
    counts: NDArray[np.int64]
    signed: NDArray[np.float64]
    measurements: Measurements
    spending: tuple[tuple[str, Budget], ...]
    """What was measured and with which share of epsilon; they sum to it exactly."""


@dataclass(frozen=True, eq=False)
class Terms:
    """What is settled before a region is looked at: budget, sensitivity, catalogue."""

    first: Budget
    """For the total."""
    rest: Budget
    """For the levels that are chosen after it."""
    factor: int
    """Sensitivity of every level: 2 under replace-one."""
    known: Catalogue

    @classmethod
    def of(cls, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours) -> Terms:
        """Return the terms of a mechanism, or refuse them."""
        factor = sensitivity_factor(neighbours)
        share = total_share(grid)
        first, rest = budget.split(share, 1 - share)
        side = min(bound.k + 1, max(grid.shape))
        _refuse_hopeless(first, factor, bound)
        n_sizes = refuse_too_many(side, *grid.shape)
        known = catalogue(side, bound.steps)
        # Whether shapes are measured is decided after the debit: both must fit before it.
        _refuse_beyond_memory(grid, max(n_sizes, n_affordable(known, *grid.shape)))
        return cls(first, rest, factor, known)

    def strategy(
        self, n_regions: float, grid: Grid, sizes: list[tuple[int, int]] | None = None
    ) -> Strategy:
        """Return what to measure, given a total that is noisy or public."""
        return choose(
            self.known,
            *grid.shape,
            epsilon=float(self.rest),
            n_regions=n_regions,
            spent=float(self.first),
            factor=self.factor,
            sizes=sizes,
        )

    def shares(self, strategy: Strategy) -> dict[int, Budget]:
        """Return the budget of each level, and of the mix; they sum to the whole exactly."""
        weights = {**dict(enumerate(strategy.weights)), MIX: strategy.mix}
        used = [i for i, weight in weights.items() if weight]
        parts = self.rest.split(*(weights[i] for i in used))
        return {0: self.first, **dict(zip(used, parts, strict=True))}


def run(
    outlines: Iterable[Outlines],
    grid: Grid,
    bound: Bound,
    *,
    budget: Budget,
    neighbours: Neighbours,
    noise: NoiseSource,
    sizes: list[tuple[int, int]] | None = None,
) -> FootprintSteps:
    """Run the mechanism on the outlines of regions, one a user."""
    terms = Terms.of(grid, bound, budget, neighbours)
    regions = Footprints.of(outlines, *grid.shape, terms.known.side)
    total = noise.add(
        np.array([len(regions.places)], np.int64), epsilon=terms.first, sensitivity=terms.factor
    )
    strategy = terms.strategy(float(total[0]), grid, sizes)
    tree = Hierarchy.of(Buckets.of(terms.known, strategy.alphabet, *grid.shape), strategy.levels)
    exact = np.bincount(tree.buckets.numbers(regions), minlength=len(tree.buckets))
    shares = terms.shares(strategy)
    noisy = measure(tree, exact, total, shares, terms.factor, noise)
    del regions, exact  # from here on only noisy counts
    return post_process(tree, strategy, noisy, shares, terms.factor)


def measure(
    tree: Hierarchy,
    exact: NDArray[np.int64],
    total: NDArray[np.int64],
    shares: dict[int, Budget],
    factor: int,
    noise: NoiseSource,
) -> dict[int, NDArray[np.int64]]:
    """Return noisy counts of the levels that have a share, by level; the total is noisy already."""
    noisy = {
        i: noise.add(tree.sums(i, exact), epsilon=share, sensitivity=factor)
        for i, share in shares.items()
        if i != 0
    }
    return {0: total, **noisy}


def _refuse_beyond_memory(grid: Grid, n_buckets: int) -> None:
    """Refuse more buckets and components than this machine holds."""
    refuse_beyond(
        COMPONENT * grid.n_components + BUCKET * n_buckets,
        f"a release by footprints on {size_in_words(grid)} with {n_buckets:,} buckets",
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


def measured_with(
    tree: Hierarchy,
    noisy: dict[int, NDArray[np.int64]],
    shares: dict[int, Budget],
    factor: int,
) -> Measured:
    """Return noisy counts together with how noisy they are."""
    spread = {i: variance(scale_for(share, factor)) for i, share in shares.items()}
    values = {i: noisy_counts.astype(np.float64) for i, noisy_counts in noisy.items()}
    n = len(tree.levels)
    return Measured(
        tree,
        tuple(values.get(i) for i in range(n)),
        tuple(spread.get(i, np.inf) for i in range(n)),
        values.get(MIX),
        spread.get(MIX, np.inf),
    )


def post_process(
    tree: Hierarchy,
    strategy: Strategy,
    noisy: dict[int, NDArray[np.int64]],
    shares: dict[int, Budget],
    factor: int,
) -> FootprintSteps:
    """Fit the noisy counts and make bodies of them."""
    found = measurements_of(tree, strategy, noisy, shares, factor)
    buckets = tree.buckets
    bodies = make_bodies(buckets, found.held)
    return FootprintSteps(
        bodies=bodies,
        counts=bodies.counts_on(buckets.n_rows, buckets.n_cols),
        signed=buckets.expand(found.fitted),
        measurements=found,
        spending=tuple((tree.describe(level), share) for level, share in shares.items()),
    )


def measurements_of(
    tree: Hierarchy,
    strategy: Strategy,
    noisy: dict[int, NDArray[np.int64]],
    shares: dict[int, Budget],
    factor: int,
) -> Measurements:
    """Return the signed part of a release: its noisy counts and how they came about."""
    return Measurements(measured_with(tree, noisy, shares, factor), strategy)


CLUMPING = 0.7
"""How much regions keep together within a part that was not measured further, so that they
fall the same way: 0 not at all, 1 entirely."""

MIX_DOUBT = 1.5
"""How far the prior's chances are off, as a share of their own spread, where nothing is known of
the sizes of regions."""

SHAPE_CROWD, SHAPE_DOUBT = 2.0, 1.0
"""How shapes stray from the prior: regions that are alike fall the same way, so their chance
has more variance than independent ones have, by the first; and the prior's chances may be off,
by the second as a share of their own spread. Both cover T-Drive and the synthetic city."""


def rectangle_deviations(
    measurements: Measurements, ranges: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the standard deviations, from noise and from shape, of estimates for rectangles.

    `ranges` are ``row0, row1, col0, col1`` of cells, one column a rectangle.
    """
    buckets = measurements.measured.hierarchy.buckets
    noise, shape = np.zeros((2, ranges.shape[1]))
    batch = max(_BATCH // len(buckets), 1)
    for start in range(0, ranges.shape[1], batch):
        some = slice(start, start + batch)
        which, chance = buckets.weigh_rectangles(ranges[:, some])
        noise[some], shape[some] = _deviations(measurements, which, chance)
    return noise, shape


def deviations(measurements: Measurements, signs: NDArray[np.int8]) -> tuple[float, float]:
    """Return the same for one query of any cells.

    `signs` is the query as a doubled array: 1 at its faces and vertices, -1 at its edges.
    """
    chance = measurements.measured.hierarchy.buckets.weigh(signs)
    noise, shape = _deviations(measurements, np.arange(len(chance)), chance[None])
    return float(noise[0]), float(shape[0])


def _deviations(
    measurements: Measurements, which: NDArray[np.int64], chance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return standard deviations from the chances (a row a query) of the buckets `which`."""
    noise = np.sqrt(measurements.variance.of(chance, which))
    if measurements.measured.hierarchy.buckets.alphabet == "patterns":
        return noise, np.zeros_like(noise)
    parts = measurements.finest
    if parts is None:
        held = measurements.held[which]
    else:
        held, expected = parts.held, measurements.expected[which]
        chance = row_sums(parts.of_bucket[which], chance * expected, len(held)) / parts.expected
    either = np.maximum(chance * (1 - chance), 0.0)
    # Regions fall either way by chance, and the prior as a whole may be off.
    spread = either @ held
    if parts is None:
        shape = SHAPE_CROWD * spread + (SHAPE_DOUBT * spread) ** 2
    else:
        doubt = MIX_DOUBT * measurements.mix_doubt * spread
        shape = spread + CLUMPING * (either @ held**2) + doubt**2
    return noise, np.sqrt(shape)


def half_widths(
    noise: NDArray[np.float64], shape: NDArray[np.float64], confidence: float
) -> NDArray[np.float64]:
    """Return half widths of intervals from standard deviations.

    A sum of noise lies between one Laplace draw and a normal variable: the wider is taken.
    """
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise PrivacyError(
            Argument("confidence"),
            f" must lie strictly between 0 and 1, got {confidence!r}: write 0.95 for 95 percent",
        )
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    laplace = -math.log(1 - confidence) / math.sqrt(2)
    return np.hypot(max(normal, laplace) * noise, normal * shape)
