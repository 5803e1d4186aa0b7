"""Which levels to measure, and with which shares of the budget: decided before they are paid for.

Each candidate is tried out on made-up cities (`made_up`) with the same grid (or a smaller one like
it), bound and epsilon, and about as many regions as a noisy total says; the one with the least
error over the workload wins, where people are and everywhere. It sees public parameters and that
noisy total, never data: the choice costs no privacy beyond the total's own share, by adaptive
composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.geometry.doubled import SignedTable
from dpregions.mechanisms.footprint.buckets import LIMIT, Alphabet, Buckets
from dpregions.mechanisms.footprint.expectation import expected_buckets
from dpregions.mechanisms.footprint.fits import covert_fit
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy, Level
from dpregions.mechanisms.footprint.made_up import City, cities
from dpregions.mechanisms.footprint.measuring import Measured, Measurement, Strategy, measure
from dpregions.mechanisms.footprint.shape_mix import shaped
from dpregions.mechanisms.footprint.shapes import groups_of_patterns, n_groups
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.keyed import KeyedCounts
from dpregions.mechanisms.footprint.tree.ladder import Ladder
from dpregions.mechanisms.footprint.tree.measured import TreeShares, measure_tree
from dpregions.mechanisms.footprint.tree.reading import TreeReading
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.workload import ALL_SIZES, Workload
from dpregions.privacy.budget import Budget

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints, Numbers
    from dpregions.choices import Favour
    from dpregions.mechanisms.footprint.bodies import Bodies
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tuning import Words
    from dpregions.mechanisms.footprint.workload import Size

_LEAST_REGIONS = 20.0
"""A city has so many regions at least: a noisy total may be negative."""
_MOST_PATTERNS = 1_000_000
"""Patterns times places up to which plans that measure shapes are tried: a limit of time."""
_LOST = 3
"""Standard deviations of the total's noise below which it is lost in it."""
_PARTS = 49
"""What weights of plans are multiplied by, so that a fiftieth for shapes is a whole number."""


def candidates(
    side: int, n_rows: int, n_cols: int, *, shapes: bool, tuning: Tuning = TUNING
) -> list[Strategy]:
    """Return the strategies to choose from on a grid; `shapes`: those that measure them too.

    Of near ties the earlier one is chosen.
    """
    of_sizes = tuning.plans_of_joined if side == 2 else ()
    of_sizes += tuning.plans_of_sizes + tuning.plans_of_blocks
    if side > 2:
        of_sizes += tuning.plans_of_cells
    if side > 4:
        of_sizes += tuning.plans_of_classes
    n = max(n_rows, n_cols, 2)
    plans: list[tuple[Alphabet, Words]] = [
        ("patterns", words) for words in tuning.plans_of_shapes if shapes
    ]
    plans += [("sizes", words) for words in of_sizes]
    made = []
    for alphabet, words in plans:
        kept = tuple(
            Measurement(block, letters, _PARTS * weight)
            for block, letters, weight in words
            if block < n
        )
        # Blocks that hold the whole grid are left out, and on a small grid all that was measured.
        if any(m.weight for m in kept if m.block):
            made.append(Strategy(alphabet, kept + _of_shapes(alphabet, kept, side, tuning)))
    return list(dict.fromkeys(made))


def _of_shapes(
    alphabet: Alphabet, kept: tuple[Measurement, ...], side: int, tuning: Tuning
) -> tuple[Measurement, ...]:
    """Return the measurement of shapes beside others: where letters are sizes, and shapes differ.

    Its weight is so that it takes `tuning.shape_mix` of what the total leaves.
    """
    if alphabet == "patterns" or side < 2:
        return ()
    whole = sum(m.weight for m in kept)
    weight = round(whole * tuning.shape_mix / (1 - tuning.shape_mix))
    return (Measurement(0, "shapes", weight),)


def choose(
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    *,
    epsilon: float,
    n_regions: float,
    spent: float,
    factor: int = 1,
    workload: Workload = ALL_SIZES,
    favour: Favour = "people",
    trees: bool = True,
    tuning: Tuning = TUNING,
) -> Strategy | Adaptive:
    """Return the first candidate whose mean log error over the workload is about the least.

    Parameters
    ----------
    catalogue : Catalogue
    n_rows, n_cols : int
    epsilon : float
        What is left to spend.
    n_regions : float
        The noisy total. Near totals choose alike: see `judged_total`.
    spent : float
        The epsilon it cost; it is a measurement too.
    factor : int
        Sensitivity of a level: 2 under replace-one.
    workload : Workload
        The queries that matter; by default the rectangles of `Rectangles.sizes`.
    favour : {"people", "places"}
        Whether queries are placed as people are beside evenly, or evenly alone.
    trees : bool
        Whether adaptive trees are tried too.
    tuning : Tuning, optional
    """
    total = judged_total(n_regions, spent / factor, tuning)
    return _chosen(
        catalogue, (n_rows, n_cols), epsilon / factor, spent / factor, total, workload, favour,
        trees, tuning,
    )  # fmt: skip


def judged_total(n_regions: float, spent: float, tuning: Tuning = TUNING) -> float:
    """Return the rung of a ladder that a noisy total is on: candidates are judged for that many.

    Rungs are a constant factor apart, from a total that stands out of its noise upwards. So totals
    that noise moves about choose alike, and a choice that was made before can be kept.
    """
    least = max(_LEAST_REGIONS, _LOST * math.sqrt(2.0) / spent)
    rungs = math.log(max(n_regions / least, 1.0)) / math.log(tuning.total_step)
    return float(least * tuning.total_step ** round(rungs))


@lru_cache(maxsize=64)
def _chosen(
    catalogue: Catalogue,
    shape: Size,
    epsilon: float,
    spent: float,
    total: float,
    workload: Workload,
    favour: Favour,
    trees: bool,
    tuning: Tuning,
) -> Strategy | Adaptive:
    """Return the choice for so many regions: kept, since it follows from public values and them."""
    heats = _Heats.of(catalogue, shape, epsilon, spent, total, workload, favour, tuning)
    tried: list[Strategy | Adaptive] = []
    tried += candidates(catalogue.side, *heats.shape, shapes=heats.shapes, tuning=tuning)
    if trees and min(heats.shape) > 1 and max(heats.shape) >= tuning.tree_side:
        tried += [Adaptive(*words) for words in tuning.trees]
    return heats.winner(tried)


@dataclass(frozen=True, eq=False)
class _Heats:
    """Cities to try candidates on, as in a race: those that fall behind are not tried further."""

    shape: Size
    epsilon: float
    spent: float
    shapes: bool
    """Whether shapes are worth a try."""
    cities: list[City]
    judged: slice
    """The placements that count: even ones, and as people are."""
    tuning: Tuning

    @classmethod
    def of(
        cls,
        catalogue: Catalogue,
        grid: Size,
        epsilon: float,
        spent: float,
        total: float,
        workload: Workload,
        favour: Favour,
        tuning: Tuning,
    ) -> _Heats:
        """Return cities on a grid or on a smaller one like it."""
        shape = _proxy(*grid, tuning)
        n_cells = math.prod(shape)
        n_on_proxy = max(total * (n_cells / math.prod(grid)), _LEAST_REGIONS)
        # Shapes pay only where a pattern's count at a place stands out of its noise.
        shapes = (
            may_measure_shapes(catalogue, *grid, tuning)
            and n_on_proxy * epsilon > len(catalogue) * n_cells
        )
        # Fewer regions with more epsilon err alike, relative to their number, and are quicker.
        fewer = max(n_on_proxy / tuning.proxy_regions, 1.0)
        # Small grids are quick to rehearse, and their few placements tell plans apart less well.
        trials = tuning.tried_buckets // (n_cells * catalogue.side**2)
        trials = min(max(trials, tuning.least_trials), tuning.most_trials)
        asked = workload.on(shape, grid)
        made = cities(catalogue, shape, int(n_on_proxy / fewer), asked, trials, tuning)
        judged = slice(0, 2 if favour == "people" else 1)
        return cls(shape, epsilon * fewer, spent * fewer, shapes, made, judged, tuning)

    def winner(self, tried: list[Strategy | Adaptive]) -> Strategy | Adaptive:
        """Return the first of those whose error is about the least.

        After each city those are dropped that are clearly worse: by less, the more it has seen.
        """
        t, left = self.tuning, list(range(len(tried)))
        trials, sums = list(map(self._trial, tried)), np.zeros(len(tried))
        for seen, city in enumerate(self.cities):
            for i in left:
                sums[i] += self.error(trials[i], city, seed=seen)
            least, n = min(sums[i] for i in left), seen + 1
            worse = max(t.behind / n**0.5, t.near_tie) if n > 1 else math.inf
            left = [i for i in left if (sums[i] - least) / n <= worse]
            if len(left) == 1:
                break
        near = min(sums[i] for i in left) + t.near_tie * n
        return tried[next(i for i in left if sums[i] <= near)]

    def error(self, trial: _Trial | _TreeTrial, city: City, seed: int) -> float:
        """Return the mean log error in a city, over placements and sizes.

        The mean error over the mean truth: where hardly anybody is, answering 0 gains nothing.
        """
        table = SignedTable(trial.counts(city.bodies, _ImaginedNoise(seed)))
        off = np.abs(table.rectangles(*city.queries) - city.truth).mean(axis=-1)
        ratio = off / np.maximum(city.truth.mean(axis=-1), 1.0)
        return float(np.log(ratio[self.judged] + self.tuning.good_enough).mean())

    def _trial(self, one: Strategy | Adaptive) -> _Trial | _TreeTrial:
        known, t = self.cities[0].bodies.catalogue, self.tuning
        if isinstance(one, Adaptive):
            return _TreeTrial.of(one, known, self.shape, self.epsilon, self.spent, t)
        return _Trial.of(one, known, self.shape, self.epsilon, self.spent, t)


def _proxy(n_rows: int, n_cols: int, tuning: Tuning) -> Size:
    """Return the size of a grid like it, or of itself where it is small enough to rehearse."""
    shrink = max(n_rows, n_cols) / tuning.proxy_side
    if shrink <= 1:
        return n_rows, n_cols
    return max(round(n_rows / shrink), 1), max(round(n_cols / shrink), 1)


def may_measure_shapes(
    catalogue: Catalogue, n_rows: int, n_cols: int, tuning: Tuning = TUNING
) -> bool:
    """Whether shapes are ever measured on a grid, however many regions there are."""
    rows, cols = _proxy(n_rows, n_cols, tuning)
    few = len(catalogue) * rows * cols < _MOST_PATTERNS
    return few and n_affordable(catalogue, n_rows, n_cols) > 0


def n_affordable(catalogue: Catalogue, n_rows: int, n_cols: int) -> int:
    """Return how many buckets a grid may have where shapes are measured, 0 where none can be."""
    n = len(catalogue) * n_rows * n_cols
    return n if n <= LIMIT else 0


class _ImaginedNoise:
    """Noise for made-up cities alone: continuous, so that the scaling above holds.

    Regions may be fewer and epsilon larger there, where integer noise would vanish.
    """

    private = False
    label = "imagined"
    software = ()

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def add(self, values: Numbers, *, epsilon: Any, sensitivity: int) -> Numbers:
        """Return the values with Laplace noise."""
        return values + self._rng.laplace(0.0, sensitivity / epsilon, len(values))

    def allot(self, budget: Budget) -> _ImaginedNoise:
        """Return itself: it meters nothing."""
        del budget
        return self

    @staticmethod
    def variance(epsilon: float, sensitivity: int) -> float:
        """Return the variance of one draw."""
        return 2 * sensitivity**2 / epsilon**2


@dataclass(frozen=True, eq=False)
class _Trial:
    """A strategy of levels, ready to be tried on bodies: measured and fitted as a release is."""

    tree: Hierarchy
    shares: dict[Level, float]
    groups: Ints
    """Of shapes, of each pattern."""
    tuning: Tuning

    @classmethod
    def of(
        cls,
        strategy: Strategy,
        known: Catalogue,
        shape: Size,
        epsilon: float,
        spent: float,
        tuning: Tuning,
    ) -> _Trial:
        """Return the trial of a strategy, with what the total costs and what is left."""
        tree = Hierarchy.of(Buckets.of(known, strategy.alphabet, *shape), strategy.levels)
        whole = sum(strategy.weights.values())
        shares = {at: epsilon * weight / whole for at, weight in strategy.weights.items()}
        return cls(tree, {WHOLE: spent} | shares, groups_of_patterns(known), tuning)

    def counts(self, bodies: Bodies, noise: _ImaginedNoise) -> Floats:
        """Return about the counts that a release of some bodies has."""
        tree, buckets, shares = self.tree, self.tree.buckets, self.shares
        number = buckets.of_bodies(bodies.pattern, bodies.row, bodies.col)
        counts = np.bincount(number, bodies.times, len(buckets))
        total = noise.add(tree.sums(WHOLE, counts), epsilon=shares[WHOLE], sensitivity=1)
        shapes = np.bincount(self.groups[bodies.pattern], bodies.times, n_groups(buckets.side))
        noisy = {WHOLE: total, **measure(tree, counts, shapes, shares, 1, noise)}
        measured = shaped(Measured.of(tree, noisy, shares, 1, noise.variance), self.tuning)
        expected = expected_buckets(measured, self.tuning)
        held = covert_fit(measured, expected, self.tuning)
        return measured.hierarchy.buckets.expand(held)


@dataclass(frozen=True, eq=False)
class _TreeTrial:
    """An adaptive tree, ready to be tried on bodies."""

    how: Adaptive
    ladder: Ladder
    buckets: Buckets
    shares: TreeShares
    groups: Ints
    """Of shapes, of each pattern."""
    tuning: Tuning

    @classmethod
    def of(
        cls,
        how: Adaptive,
        known: Catalogue,
        shape: Size,
        epsilon: float,
        spent: float,
        tuning: Tuning,
    ) -> _TreeTrial:
        """Return the trial of a tree, with what the total costs and what is left."""
        buckets = Buckets.of(known, "sizes", *shape)
        prior = np.zeros_like(known.prior)
        prior[buckets.heights, buckets.widths] = buckets.weights
        ladder = Ladder(*shape, known.side, buckets.filed, prior / prior.sum())
        # A few digits are enough here, and quick as fractions.
        first, rest = (Budget(Fraction(float(f"{share:.4g}"))) for share in (spent, epsilon))
        shares = TreeShares.of(known.side, first, rest, tuning)
        return cls(how, ladder, buckets, shares, groups_of_patterns(known), tuning)

    def counts(self, bodies: Bodies, noise: _ImaginedNoise) -> Floats:
        """Return about the counts that a release of some bodies has."""
        h, w = bodies.catalogue.heights[bodies.pattern], bodies.catalogue.widths[bodies.pattern]
        keys = self.ladder.keys(bodies.row + (h - 1) // 2, bodies.col + (w - 1) // 2, h, w)
        order = np.argsort(keys)
        exact = KeyedCounts(self.ladder, keys[order], bodies.times[order])

        def counts(level: int, nodes: Ints, share: Budget) -> Floats:
            return noise.add(exact.of_nodes(level, nodes), epsilon=float(share), sensitivity=1)

        def sizes(tall: Ints, wide: Ints, share: Budget) -> Floats:
            return noise.add(exact.of_sizes(tall, wide), epsilon=float(share), sensitivity=1)

        def shapes(share: Budget) -> Floats:
            n = n_groups(self.ladder.side)
            groups = np.bincount(self.groups[bodies.pattern], bodies.times, n)
            return noise.add(groups, epsilon=float(share), sensitivity=1)

        first = float(self.shares.first)
        total = noise.add(np.array([bodies.times.sum()]), epsilon=first, sensitivity=1)
        measured = measure_tree(
            self.ladder, self.how, self.shares, 1, float(total[0]), counts, sizes, shapes,
            lambda share, factor: noise.variance(float(share), factor), self.tuning,
        )  # fmt: skip
        buckets = self.buckets.shaped_as(measured.shaped(self.buckets.catalogue, self.tuning))
        return buckets.expand(TreeReading(measured, self.tuning).held_by(buckets))
