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
from typing import TYPE_CHECKING

import numpy as np

from dpregions.bodies import Bodies, make_bodies
from dpregions.buckets import Buckets, Footprints, refuse_too_many
from dpregions.catalogue import catalogue
from dpregions.errors import PrivacyError
from dpregions.hierarchy import (
    MIX,
    Hierarchy,
    Measured,
    covert_fit,
    expected_letters,
    query_variance,
    signed_fit,
)
from dpregions.noise_law import variance
from dpregions.privacy import Budget, Neighbours, NoiseSource, scale_for, sensitivity_factor
from dpregions.strategy import Strategy, choose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from dpregions.grid import Grid
    from dpregions.regions import Bound, Outlines

LEAST_TOTAL, MOST_TOTAL = Fraction(1, 50), Fraction(1, 4)
MOST_NOISE = 1_000_000
"""Largest scale of the total's noise: it is made up of bodies, one by one."""
LEAST_STEPS = 128
"""Smallest bound in lattice steps that the catalogue has witnesses for."""


def total_share(grid: Grid) -> Fraction:
    """Return the share of the budget for the total, which the choice of levels rests on.

    One over the square root of the number of cells: the total is then as precise as the sum
    of all cells of a plain histogram of points at the whole budget.
    """
    share = Fraction(1, math.isqrt(grid.n_rows * grid.n_cols))
    return min(max(share, LEAST_TOTAL), MOST_TOTAL)


@dataclass(frozen=True, eq=False)
class Measurements:
    """The signed part of a release: what was measured, and the fit that errors are judged by.

    It can be left out of a release; what is left is covert.
    """

    measured: Measured
    expected: NDArray[np.float64]
    fitted: NDArray[np.float64]
    strategy: Strategy

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """The non-negative counts that the bodies follow: how many regions a query may split."""
        return covert_fit(self.measured, self.expected)


@dataclass(frozen=True, eq=False)
class FootprintSteps:
    """What the mechanism gave; all of it private."""

    bodies: Bodies
    counts: NDArray[np.int64]
    signed: NDArray[np.float64]
    measurements: Measurements
    spending: tuple[tuple[str, Budget], ...]
    """What was measured and with which share of epsilon; they sum to it exactly."""


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
    factor = sensitivity_factor(neighbours)
    share = total_share(grid)
    first, rest = budget.split(share, 1 - share)
    side = min(bound.k + 1, max(grid.shape))
    _refuse_hopeless(first, factor, bound)
    refuse_too_many(side, *grid.shape)
    known = catalogue(side, bound.steps)
    regions = Footprints.of(outlines, *grid.shape, known.side)
    total = noise.add(np.array([len(regions.places)], np.int64), epsilon=first, sensitivity=factor)
    strategy = choose(
        known,
        *grid.shape,
        epsilon=float(rest),
        n_regions=float(total[0]),
        spent=float(first),
        factor=factor,
        sizes=sizes,
    )
    tree = Hierarchy.of(Buckets.of(known, strategy.alphabet, *grid.shape), strategy.levels)
    exact = np.bincount(tree.buckets.numbers(regions), minlength=len(tree.buckets))
    weights = {**dict(enumerate(strategy.weights)), MIX: strategy.mix}
    used = [i for i, weight in weights.items() if weight]
    shares = dict(zip(used, rest.split(*(weights[i] for i in used)), strict=True))
    noisy = {
        i: noise.add(tree.sums(i, exact), epsilon=share, sensitivity=factor)
        for i, share in shares.items()
    }
    shares, noisy = {0: first} | shares, {0: total} | noisy
    del regions, exact  # from here on only noisy counts
    return _post_process(tree, strategy, noisy, shares, factor)


def _refuse_hopeless(share: Budget, factor: int, bound: Bound) -> None:
    """Refuse noise that makes up more bodies than a machine holds, and bodies without extent."""
    if bound.steps < LEAST_STEPS:
        raise PrivacyError(
            "max_diameter is too small beside the grid's cells for any body within it: "
            "use smaller cells or a larger max_diameter"
        )
    scale = scale_for(share, factor)
    if scale > MOST_NOISE:
        raise PrivacyError(
            f"with epsilon = {share} for the number of regions, its noise has scale {scale:.3g}, "
            f"more than {MOST_NOISE:,}: give a larger epsilon"
        )


def _post_process(
    tree: Hierarchy,
    strategy: Strategy,
    noisy: dict[int, NDArray[np.int64]],
    shares: dict[int, Budget],
    factor: int,
) -> FootprintSteps:
    """Fit the noisy counts and make bodies of them."""
    spread = {i: variance(scale_for(share, factor)) for i, share in shares.items()}
    values = {i: noisy_counts.astype(np.float64) for i, noisy_counts in noisy.items()}
    n = len(tree.levels)
    measured = Measured(
        tree,
        tuple(values.get(i) for i in range(n)),
        tuple(spread.get(i, np.inf) for i in range(n)),
        values.get(MIX),
        spread.get(MIX, np.inf),
    )
    expected = expected_letters(measured)
    fitted = signed_fit(measured, expected)
    bodies = make_bodies(tree.buckets, covert_fit(measured, expected))
    buckets = tree.buckets
    return FootprintSteps(
        bodies=bodies,
        counts=bodies.counts_on(buckets.n_rows, buckets.n_cols),
        signed=buckets.expand(fitted),
        measurements=Measurements(measured, expected, fitted, strategy),
        spending=tuple((tree.describe(level), share) for level, share in shares.items()),
    )


CLUMPING = 0.7
"""How much regions keep together within a part that was not measured further, so that they
fall the same way: 0 not at all, 1 entirely."""

SHAPE_CROWD, SHAPE_DOUBT = 2.0, 1.0
"""How shapes stray from the prior: regions that are alike fall the same way, so their chance
has more variance than independent ones have, by the first; and the prior's chances may be off,
by the second as a share of their own spread. Both cover T-Drive and the synthetic city."""


def deviations(measurements: Measurements, signs: NDArray[np.int8]) -> tuple[float, float]:
    """Return the standard deviations, from noise and from shape, of a query's estimate.

    `signs` is the query as a doubled array: 1 at its faces and vertices, -1 at its edges.
    """
    buckets = measurements.measured.hierarchy.buckets
    chance = buckets.weigh(signs)
    noise = query_variance(measurements.measured, chance, measurements.expected)
    if buckets.alphabet == "patterns":
        return math.sqrt(noise), 0.0
    held, chance, filled = _touching(measurements, chance)
    either = np.maximum(chance * (1 - chance), 0.0)
    # Regions fall either way by chance, and the prior as a whole may be off.
    spread = float((held * either).sum())
    shape = SHAPE_CROWD * spread + (SHAPE_DOUBT * spread) ** 2
    if filled:
        shape = spread + CLUMPING * float((held**2 * either).sum())
    return math.sqrt(noise), math.sqrt(shape)


def _touching(
    measurements: Measurements, chance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Return what the finest measured parts hold, and their regions' mean chance to touch.

    And whether there is unmeasured detail below them.
    """
    measured, tree = measurements.measured, measurements.measured.hierarchy
    finest = max(i for i, values in enumerate(measured.values) if values is not None)
    if finest == len(tree.levels) - 1:
        return measurements.held, chance, False
    part, n, weight = tree.part[finest], tree.sizes[finest], measurements.expected
    mean = np.bincount(part, weight * chance, n) / np.bincount(part, weight, n)
    held = np.bincount(part, measurements.held, n).astype(np.float64, copy=False)
    return held, mean, True


def half_widths(
    noise: NDArray[np.float64], shape: NDArray[np.float64], confidence: float
) -> NDArray[np.float64]:
    """Return half widths of intervals from standard deviations.

    A sum of noise lies between one Laplace draw and a normal variable: the wider is taken.
    """
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise PrivacyError(
            f"confidence must lie strictly between 0 and 1, got {confidence!r}: write 0.95 for "
            f"95 percent"
        )
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    laplace = -math.log(1 - confidence) / math.sqrt(2)
    return np.hypot(max(normal, laplace) * noise, normal * shape)
