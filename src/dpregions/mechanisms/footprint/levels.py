"""Measurements of nested partitions of buckets, and the two fits to them.

A level is a partition of the buckets; each level refines the one before. Every region is in
one part of each, so a level's counts have sensitivity 1. Given noisy counts of some levels:

- `signed_fit`: weighted least squares, unbiased for measured parts, may be negative (up the
  tree, then down).
- `covert_fit`: the same measurements read as Bayes would, top-down: each part's count is split
  among its children by what was measured and by what is expected beforehand, none negative,
  their sum kept. How far to trust the expectation is judged from the noisy counts themselves.

Everything here sees only noisy counts and public parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpregions.mechanisms.least_squares import gathered, settled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.mechanisms.footprint.buckets import Buckets

Grouping = Literal["all", "joined", "classes", "letters"]

MIX = -1
"""Beside the levels: the number of regions of each letter in the whole area."""

_ROUNDS = 25
_LEAST_SPREAD = 1e-3
_DOUBT = 4.0
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Level:
    """A partition: blocks of `block` x `block` cells (0: the whole area), letters grouped."""

    block: int
    letters: Grouping


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels from coarse to fine; the last has one bucket a part.

    `part[l][i]` is the part of level `l` that bucket `i` is in, `parent[l][j]` the part of
    level `l` that part `j` of level `l + 1` is in.
    """

    buckets: Buckets
    levels: tuple[Level, ...]
    part: tuple[NDArray[np.int64], ...]
    parent: tuple[NDArray[np.int64], ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, buckets: Buckets, levels: tuple[Level, ...]) -> Hierarchy:
        """Return the hierarchy of some levels, from one part for all to one a bucket."""
        part = [_parts(buckets, level) for level in levels]
        sizes = tuple(int(p.max()) + 1 for p in part)
        parent = []
        for coarse, fine, n in zip(part, part[1:], sizes[1:], strict=False):
            up = np.zeros(n, np.int64)
            up[fine] = coarse
            parent.append(up)
        return cls(buckets, levels, tuple(part), tuple(parent), sizes)

    def describe(self, level: int) -> str:
        """Return a level, or the mix, in plain words."""
        if level == MIX:
            return f"{len(self.buckets.heights)} counts of regions by size of footprint in the area"
        block, letters = self.levels[level].block, self.levels[level].letters
        if not block:
            return "the number of regions in the area"
        what = {
            "all": "regions",
            "joined": "regions by size of footprint, of one and two cells together,",
            "classes": "regions by class of size",
            "letters": f"regions by {self.buckets.alphabet[:-1]} of footprint",
        }[letters]
        where = "cell" if block == 1 else f"block of {block} x {block} cells"
        return f"{self.sizes[level]:,} counts of {what} centred in each {where}"

    def anchors(self, level: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return each part's place, the lower left cell of its block, and group of letters.

        Parts are numbered by place, row by row, then by group. The mix is of the whole area.
        """
        if level == MIX:
            nowhere = np.zeros(len(self.buckets.heights), np.int64)
            return nowhere, nowhere, np.arange(len(nowhere))
        member = np.zeros(self.sizes[level], np.int64)
        member[self.part[level]] = np.arange(len(self.buckets))
        block = self.levels[level].block or max(self.buckets.n_rows, self.buckets.n_cols)
        row, col = (place[member] // block * block for place in self.buckets.centres)
        groups = letter_groups(self.buckets, self.levels[level].letters)
        return row, col, groups[self.buckets.letters[member]]

    def sums(self, level: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of a level's parts, or of the mix, from counts of buckets."""
        part, n = (
            (self.buckets.letters, len(self.buckets.heights))
            if level == MIX
            else (self.part[level], self.sizes[level])
        )
        total = np.bincount(part, counts, minlength=n)
        return np.rint(total).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy counts by level (None where a level was not measured) and their noise's variance.

    `mix` is the noisy number of regions of each letter in the whole area, where that was
    measured. Blocks do not refine it, so it is no level: only what is expected follows it.
    """

    hierarchy: Hierarchy
    values: tuple[NDArray[np.float64] | None, ...]
    variances: tuple[float, ...]
    mix: NDArray[np.float64] | None = None
    mix_variance: float = np.inf

    @property
    def finest(self) -> int:
        """The finest level that was measured."""
        return max(i for i, values in enumerate(self.values) if values is not None)

    def __post_init__(self) -> None:
        # Noise of a large epsilon has a variance that is 0 as a float: nothing to divide by.
        floored = tuple(max(variance, _LEAST_VARIANCE) for variance in self.variances)
        object.__setattr__(self, "variances", floored)
        object.__setattr__(self, "mix_variance", max(self.mix_variance, _LEAST_VARIANCE))


def combine(measured: Measured) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Return, up the tree, each part's best estimate from itself and below, and its variance.

    Infinite where nothing at or below a part was measured.
    """
    tree = measured.hierarchy
    return gathered(tree.sizes, tree.parent, measured.values, measured.variances)


def signed_fit(measured: Measured, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted least squares counts of buckets; unmeasured detail as expected."""
    tree = measured.hierarchy
    values, spread = combine(measured)
    fit = values[0]
    for level, up in enumerate(tree.parent, start=1):
        if np.isinf(spread[level]).any():
            fit = fit[up] * _shares(tree, level, expected)
            continue
        fit = settled(fit, up, values[level], spread[level])
    return fit[tree.part[-1]]


def covert_fit(measured: Measured, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return non-negative counts of buckets, top-down; unmeasured detail as expected."""
    tree = measured.hierarchy
    values, spread = combine(measured)
    fit = np.maximum(values[0], 0.0)
    for level, up in enumerate(tree.parent, start=1):
        prior = fit[up] * _shares(tree, level, expected)
        if np.isinf(spread[level]).any():
            fit = prior
            continue
        fit = split(fit, up, prior, values[level], spread[level])
    return fit[tree.part[-1]]


def split(
    total: NDArray[np.float64],
    up: NDArray[np.int64],
    prior: NDArray[np.float64],
    seen: NDArray[np.float64],
    noise: NDArray[np.float64],
    believed: float = 2.0,
) -> NDArray[np.float64]:
    """Return children that add up to their parents' totals, between prior and measurement.

    A child's count is taken to vary about its prior m with variance m + s * m**2: chance, and
    a real unevenness s that is estimated from how far the measurements stray. Where one
    strays by more than `believed` standard deviations of its noise, it is believed: real
    counts have heavier tails than any common s, and shrinking a hot spot costs more than it
    saves. For the same reason the variance is taken `_DOUBT` times over.
    """
    stray = (seen - prior) ** 2 - noise - prior
    trust = 1.0 / (noise + prior + 0.3 * prior**2) ** 2
    uneven = (trust * prior**2 * stray).sum() / max((trust * prior**4).sum(), 1e-300)
    beyond = np.maximum((seen - prior) ** 2 - believed**2 * noise, 0.0)
    own = _DOUBT * (prior + max(uneven, _LEAST_SPREAD) * prior**2) + beyond + 1e-9
    weight = own * noise / (own + noise)
    best = weight * (prior / own + seen / noise)
    free = np.ones(len(best), np.bool_)
    n = len(total)
    for _ in range(_ROUNDS):
        room = np.maximum(_sum(up, weight * free, n), 1e-300)
        shift = (total - _sum(up, best * free, n)) / room
        fit = np.where(free, best + weight * shift[up], 0.0)
        negative = (fit < 0) & free
        if not negative.any():
            break
        free &= ~negative
    fit = np.maximum(fit, 0.0)
    reached = _sum(up, fit, n)
    return fit * np.divide(total, reached, out=np.zeros(n), where=reached > 0)[up]


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
                found.append((_shares(tree, level, self.expected), None))
            else:
                found.append((s, _sum(tree.parent[level - 1], s, tree.sizes[level - 1])))
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


def query_variance(
    measured: Measured, weights: NDArray[np.float64], expected: NDArray[np.float64]
) -> float:
    """Return what `QueryVariance` does, for one query's weights of all buckets."""
    return float(QueryVariance(measured, expected).of(weights[None])[0])


def _shares(tree: Hierarchy, level: int, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each part's expected share of its parent."""
    up = tree.parent[level - 1]
    weight = _sum(tree.part[level], expected, tree.sizes[level])
    return weight / _sum(up, weight, tree.sizes[level - 1])[up]


def _sum(part: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the sum of the values in each of n parts."""
    return np.bincount(part, values, minlength=n).astype(np.float64, copy=False)


def row_sums(part: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return, in each row of values, the sum of those in each of n parts."""
    q = len(values)
    at = part + n * np.arange(q)[:, None]
    return _sum(at.ravel(), values.ravel(), q * n).reshape(q, n)


def _parts(buckets: Buckets, level: Level) -> NDArray[np.int64]:
    if level.block == 0:
        return np.zeros(len(buckets), np.int64)
    row, col = buckets.centres
    groups = letter_groups(buckets, level.letters)
    place = (row // level.block) * -(-buckets.n_cols // level.block) + col // level.block
    part = place * (int(groups.max()) + 1) + groups[buckets.letters]
    used = np.bincount(part) > 0
    return (np.cumsum(used) - 1)[part]


def letter_groups(buckets: Buckets, letters: Grouping) -> NDArray[np.int64]:
    """Return the group of each letter: all one, classes of similar size, or each its own.

    Joined: footprints of one and of two cells together, since all of them touch the cell they
    are counted in; every larger size by itself.
    """
    if letters == "letters":
        return np.arange(len(buckets.heights))
    if letters == "all":
        return np.zeros(len(buckets.heights), np.int64)
    if letters == "joined":
        size = buckets.heights * (buckets.catalogue.side + 1) + buckets.widths
        small = buckets.heights * buckets.widths <= 2
        return np.unique(np.where(small, 0, size), return_inverse=True)[1]
    ends = [1]
    while ends[-1] <= buckets.catalogue.side:
        ends.append(max(ends[-1] + 1, round(ends[-1] * 1.6)))
    height = np.searchsorted(ends, buckets.heights, side="right")
    width = np.searchsorted(ends, buckets.widths, side="right")
    _, group = np.unique(height * len(ends) + width, return_inverse=True)
    return group
