"""A reading of what was measured: the two fits, and how far the signed one may be off.

Sees noisy counts and public parameters alone. It follows from what was measured, so a file keeps
only that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.mechanisms.footprint.expectation import expected_buckets, mix_doubt
from dpregions.mechanisms.footprint.fits import combine, covert_fit, shares_of, signed_fit, sums
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.privacy import law

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.measuring import Measured

_BATCH = 1 << 20
"""Chances held at once, buckets times queries."""


class FinestParts(NamedTuple):
    """The finest parts measured: of each bucket, what they hold, what they are expected to."""

    of_bucket: NDArray[np.int64]
    held: NDArray[np.float64]
    expected: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reading:
    """What measurements say of every bucket, and how far that may be off."""

    measured: Measured
    tuning: Tuning = TUNING

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """How much each bucket is expected to hold beforehand, up to a factor."""
        return expected_buckets(self.measured, self.tuning)

    @cached_property
    def fitted(self) -> NDArray[np.float64]:
        """The signed counts of buckets that estimates come from."""
        return signed_fit(self.measured, self.expected)

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """The non-negative counts that the bodies follow: how many regions a query may split."""
        return covert_fit(self.measured, self.expected, self.tuning)

    @cached_property
    def _variance(self) -> QueryVariance:
        return QueryVariance(self.measured, self.expected)

    @cached_property
    def _mix_doubt(self) -> float:
        """How little is known of the mix of sizes, where single sizes were not measured."""
        return mix_doubt(self.measured)

    @cached_property
    def _finest(self) -> FinestParts | None:
        """The finest measured parts, where there is unmeasured detail below them."""
        tree, finest = self.measured.hierarchy, self.measured.finest
        if finest == len(tree.levels) - 1:
            return None
        part, n = tree.part[finest], tree.sizes[finest]
        held, expected = (np.bincount(part, v, n) for v in (self.held, self.expected))
        return FinestParts(part, held.astype(np.float64), expected.astype(np.float64))

    def deviations(
        self, selection: Selection, grid: Grid
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the standard deviations, from noise and from shape, of estimates of queries."""
        buckets = self.measured.hierarchy.buckets
        noise, shape = np.zeros((2, selection.ranges.shape[1]))
        plain = np.flatnonzero(selection.exact)
        batch = max(_BATCH // len(buckets), 1)
        for start in range(0, len(plain), batch):
            some = plain[start : start + batch]
            which, chance = buckets.weigh_rectangles(selection.ranges[:, some])
            noise[some], shape[some] = self._deviations(which, chance)
        for i in selection.masks:
            chance = buckets.weigh(selection.signs(i, grid))[None]
            noise[i : i + 1], shape[i : i + 1] = self._deviations(np.arange(len(buckets)), chance)
        return noise, shape

    def _deviations(
        self, which: NDArray[np.int64], chance: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return standard deviations from the chances (a row per query) of the buckets `which`."""
        noise = np.sqrt(self._variance.of(chance, which))
        if self.measured.hierarchy.buckets.alphabet == "patterns":
            return noise, np.zeros_like(noise)
        parts = self._finest
        if parts is None:
            held = self.held[which]
        else:
            held, expected = parts.held, self.expected[which]
            chance = row_sums(parts.of_bucket[which], chance * expected, len(held)) / parts.expected
        either = np.maximum(chance * (1 - chance), 0.0)
        # Regions fall either way by chance, and the prior as a whole may be off.
        t, spread = self.tuning, either @ held
        if parts is None:
            shape = t.shape_crowd * spread + (t.shape_doubt * spread) ** 2
        else:
            doubt = t.mix_doubt * self._mix_doubt * spread
            shape = spread + t.clumping * (either @ held**2) + doubt**2
        return noise, np.sqrt(shape)


def half_widths(
    noise: NDArray[np.float64], shape: NDArray[np.float64], confidence: float
) -> NDArray[np.float64]:
    """Return half widths of intervals from standard deviations.

    A sum of noise lies between one Laplace draw and a normal variable: the wider is taken.
    """
    confidence = law.checked_confidence(confidence)
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    laplace = -math.log(1 - confidence) / math.sqrt(2)
    return np.hypot(max(normal, laplace) * noise, normal * shape)


@dataclass(frozen=True, eq=False)
class QueryVariance:
    """The variance of weighted sums of the signed fit's buckets; public. For many queries.

    Down the tree a part's fit is its estimate plus its share of what its parent's fit differs
    from the sum: so the sum's variance follows from the bottom up, one pass.
    """

    measured: Measured
    expected: NDArray[np.float64]

    @cached_property
    def _spread(self) -> list[NDArray[np.float64]]:
        return combine(self.measured)[1]

    @cached_property
    def _below(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """By level, each part's variance and its parent's sum of them; or its expected share."""
        tree = self.measured.hierarchy
        found: list[tuple[NDArray[np.float64], NDArray[np.float64] | None]] = []
        for level in range(1, len(tree.levels)):
            s = self._spread[level]
            if np.isinf(s).any():
                found.append((shares_of(tree, level, self.expected), None))
            else:
                found.append((s, sums(tree.parent[level - 1], s, tree.sizes[level - 1])))
        return found

    def of(
        self, weights: NDArray[np.float64], which: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.float64]:
        """Return the variance for each row of `weights`, on the buckets `which`; others weigh 0."""
        tree = self.measured.hierarchy
        part: NDArray[np.int64] | slice = tree.part[-1][which]
        slope, rest = weights, np.zeros_like(weights)
        for level in range(len(tree.levels) - 1, 0, -1):
            up, n = tree.parent[level - 1][part], tree.sizes[level - 1]
            below, whole = self._below[level - 1]
            carried = slope * below[part]
            if whole is None:
                slope, rest = row_sums(up, carried, n), np.zeros((len(weights), n))
            else:
                mean = row_sums(up, carried, n) / whole
                rest = row_sums(up, rest + slope * carried, n) - mean**2 * whole
                slope = mean
            part = slice(None)
        found = (rest + slope**2 * self._spread[0]).sum(axis=1)
        return np.maximum(found, 0.0)


def row_sums(part: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return, in each row of values, the sum of those in each of n parts."""
    q = len(values)
    at = part + n * np.arange(q)[:, None]
    return sums(at.ravel(), values.ravel(), q * n).reshape(q, n)
