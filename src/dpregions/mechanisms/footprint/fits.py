"""Two fits to noisy counts of nested partitions.

- `signed_fit`: weighted least squares, unbiased for measured parts, may be negative (up the
  tree, then down).
- `covert_fit`: the same measurements read as Bayes would, top-down: each part's count is split
  among its children by what was measured and by what is expected beforehand, none negative,
  their sum kept. How far to trust the expectation is judged from the noisy counts themselves.

Everything here sees only noisy counts and public parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.least_squares import gathered, settled, sums

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.levels import Hierarchy
    from dpregions.mechanisms.footprint.measuring import Measured

_ROUNDS = 25
"""Rounds of setting negative children to 0, at most; what is left is cut and scaled."""
_LEAST_VARIANCE = 1e-9
"""Of a child of which nothing is expected: enough to divide by, nothing beside one region."""
_TINY = 1e-300
"""What stands for a sum of nothing, to divide by."""


def combine(measured: Measured) -> tuple[list[Floats], list[Floats]]:
    """Return, up the tree, each part's best estimate from itself and below, and its variance.

    Infinite where nothing at or below a part was measured.
    """
    tree = measured.hierarchy
    values = [None if noisy is None else noisy.values for noisy in measured.levels]
    variances = [np.inf if noisy is None else noisy.variance for noisy in measured.levels]
    return gathered(tree.sizes, tree.parent, values, variances)


def signed_fit(measured: Measured, expected: Floats) -> Floats:
    """Return the weighted least squares counts of buckets; unmeasured detail as expected."""
    tree = measured.hierarchy
    values, spread = combine(measured)
    fit = values[0]
    for level, up in enumerate(tree.parent, start=1):
        if np.isinf(spread[level]).any():
            fit = fit[up] * shares_of(tree, level, expected)
            continue
        fit = settled(fit, up, values[level], spread[level])
    return fit[tree.part[-1]]


def covert_fit(measured: Measured, expected: Floats, tuning: Tuning = TUNING) -> Floats:
    """Return non-negative counts of buckets, top-down; unmeasured detail as expected."""
    tree = measured.hierarchy
    return covert_fit_of(measured, expected, tuning, len(tree.levels) - 1)[tree.part[-1]]


def covert_fit_of(measured: Measured, expected: Floats, tuning: Tuning, last: int) -> Floats:
    """Return the non-negative counts of a level's parts, top-down."""
    tree = measured.hierarchy
    values, spread = combine(measured)
    fit = np.maximum(values[0], 0.0)
    for level, up in enumerate(tree.parent[:last], start=1):
        prior = fit[up] * shares_of(tree, level, expected)
        if np.isinf(spread[level]).any():
            fit = prior
            continue
        fit = split(fit, up, prior, values[level], spread[level], tuning, tuning.believed)
    return fit


def split(
    total: Floats,
    up: Ints,
    prior: Floats,
    seen: Floats,
    noise: Floats,
    tuning: Tuning,
    believed: float,
) -> Floats:
    """Return children that add up to their parents' totals, between prior and measurement.

    A child's count is taken to vary about its prior m with variance m + s * m**2: chance, and
    a real unevenness s that is estimated from how far the measurements stray. Where one
    strays by more than `believed` standard deviations of its noise, it is believed: real
    counts have heavier tails than any common s, and shrinking a hot spot costs more than it
    saves. For the same reason the variance is taken `tuning.doubt` times over.
    """
    # s by least squares: what noise and chance leave of each square is s * m**2 in the mean.
    # The variance of a square goes with its mean squared, for which s is guessed beforehand.
    unexplained = (seen - prior) ** 2 - noise - prior
    precision = 1.0 / (noise + prior + tuning.unevenness_guess * prior**2) ** 2
    found = (precision * prior**2 * unexplained).sum() / max((precision * prior**4).sum(), _TINY)
    uneven = max(found, tuning.least_unevenness)
    outlying = np.maximum((seen - prior) ** 2 - believed**2 * noise, 0.0)
    variance = tuning.doubt * (prior + uneven * prior**2) + outlying + _LEAST_VARIANCE
    # Each child by itself: prior and measurement averaged by precision, and what may be off.
    doubtful = variance * noise / (variance + noise)
    best = doubtful * (prior / variance + seen / noise)
    # What a parent's total differs by is shared out to the most doubtful first. That may turn
    # some negative: they are set to 0 for good, and the others share again.
    free = np.ones(len(best), np.bool_)
    n = len(total)
    for _ in range(_ROUNDS):
        doubt_of_free, nothing = sums(up, doubtful * free, n), np.zeros(n)
        missing = total - sums(up, best * free, n)
        missing = np.divide(missing, doubt_of_free, out=nothing, where=doubt_of_free > 0)
        fit = np.where(free, best + doubtful * missing[up], 0.0)
        negative = (fit < 0) & free
        if not negative.any():
            break
        free &= ~negative
    fit = np.maximum(fit, 0.0)
    reached = sums(up, fit, n)
    return fit * np.divide(total, reached, out=np.zeros(n), where=reached > 0)[up]


def shares_of(tree: Hierarchy, level: int, expected: Floats) -> Floats:
    """Return each part's expected share of its parent."""
    up = tree.parent[level - 1]
    weight = sums(tree.part[level], expected, tree.sizes[level])
    return weight / sums(up, weight, tree.sizes[level - 1])[up]
