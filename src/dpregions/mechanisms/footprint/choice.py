"""Which levels to measure, and with which shares of the budget: decided before they are paid for.

Each candidate is tried out on made-up cities with the same grid (or a smaller one like it),
bound and epsilon, and about as many regions as a noisy total says; the one with the least error
over the workload wins. It sees public parameters and that noisy total, never data: the choice
costs no privacy beyond the total's own share, by adaptive composition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import Argument, InputError
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import LIMIT, Alphabet, Buckets
from dpregions.mechanisms.footprint.expectation import expected_buckets
from dpregions.mechanisms.footprint.fits import covert_fit
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy, Level
from dpregions.mechanisms.footprint.measuring import Measured, Measurement, Strategy, measure
from dpregions.mechanisms.footprint.shape_mix import shaped
from dpregions.mechanisms.footprint.shapes import groups_of_patterns, n_groups
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.keyed import KeyedCounts
from dpregions.mechanisms.footprint.tree.ladder import Ladder
from dpregions.mechanisms.footprint.tree.measured import TreeShares, measure_tree
from dpregions.mechanisms.footprint.tree.reading import TreeReading
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.privacy.budget import Budget

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints, Numbers
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tuning import Words

Size = tuple[int, int]
"""Rows and columns of cells."""

_LEAST_REGIONS = 20.0
"""A city has so many regions at least: a noisy total may be negative."""
_MOST_PATTERNS = 1_000_000
"""Patterns times places up to which plans that measure shapes are tried: a limit of time."""
_FLOOR = 0.001
"""Errors are relative to the truth, or to this share of all regions where that is more: as in
`planning.exact_data`."""
_GOLDEN = (5**0.5 - 1) / 2
_PARTS = 49
"""What weights of plans are multiplied by, so that a fiftieth for shapes is a whole number."""


def candidates(
    side: int, n_rows: int, n_cols: int, *, shapes: bool, tuning: Tuning = TUNING
) -> list[Strategy]:
    """Return the strategies to choose from on a grid; `shapes`: those that measure them too."""
    of_sizes = tuning.plans_of_sizes + tuning.plans_of_blocks
    if side == 2:
        of_sizes += tuning.plans_of_joined
    if side > 2:
        of_sizes += tuning.plans_of_cells
    if side > 4:
        of_sizes += tuning.plans_of_classes
    n = max(n_rows, n_cols, 2)
    plans: list[tuple[Alphabet, Words]] = [("sizes", words) for words in of_sizes]
    plans += [("patterns", words) for words in tuning.plans_of_shapes if shapes]
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


@dataclass(frozen=True, eq=False)
class _City:
    """A made-up city: bodies, their true answers, the queries to judge by."""

    shape: Size
    bodies: Bodies
    queries: Ints
    """Rectangles as ``row0, row1, col0, col1``, each a row a size and a column a placement."""
    truth: Floats


def choose(
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    *,
    epsilon: float,
    n_regions: float,
    spent: float,
    factor: int = 1,
    sizes: list[Size] | None = None,
    trees: bool = True,
    tuning: Tuning = TUNING,
) -> Strategy | Adaptive:
    """Return the candidate with the least mean log error over the workload.

    Parameters
    ----------
    catalogue : Catalogue
    n_rows, n_cols : int
    epsilon : float
        What is left to spend.
    n_regions : float
        The noisy total.
    spent : float
        The epsilon it cost; it is a measurement too.
    factor : int
        Sensitivity of a level: 2 under replace-one.
    sizes : list of (rows, cols), optional
        The workload's rectangles, in cells; by default `Rectangles.sizes`.
    trees : bool
        Whether adaptive trees are tried too.
    tuning : Tuning, optional
    """
    rows, cols = _proxy(n_rows, n_cols, tuning)
    n_on_proxy = max(n_regions * (rows * cols / (n_rows * n_cols)), _LEAST_REGIONS)
    # Shapes pay only where a pattern's count at a place stands out of its noise.
    shapes = (
        may_measure_shapes(catalogue, n_rows, n_cols, tuning)
        and n_on_proxy * epsilon > len(catalogue) * rows * cols
    )
    # Fewer regions with more epsilon err alike, relative to their number, and are quicker.
    fewer = max(n_on_proxy / tuning.proxy_regions, 1.0)
    on_total, on_rest = (share * fewer / factor for share in (spent, epsilon))
    asked = sizes or Rectangles(rows, cols).sizes()
    fitting = tuple((min(h, rows), min(w, cols)) for h, w in asked)
    cities = _cities(catalogue, (rows, cols), int(n_on_proxy / fewer), fitting, tuning)
    tried: list[Strategy | Adaptive] = []
    tried += candidates(catalogue.side, rows, cols, shapes=shapes, tuning=tuning)
    if trees and min(rows, cols) > 1:
        tried += [Adaptive(*words) for words in tuning.trees]
    # A tree must be clearly better: it was the worse choice on real data where it was a near tie.
    errors = [
        _trial_error(one, cities, on_rest, on_total, tuning)
        + tuning.tree_margin * isinstance(one, Adaptive)
        for one in tried
    ]
    return tried[int(np.argmin(errors))]


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


def _trial_error(
    strategy: Strategy | Adaptive,
    cities: list[_City],
    epsilon: float,
    spent: float,
    tuning: Tuning,
) -> float:
    """Return the mean over cities and query sizes of the log of the median relative error."""
    known, shape = cities[0].bodies.catalogue, cities[0].shape
    trial: _Trial | _TreeTrial
    if isinstance(strategy, Adaptive):
        trial = _TreeTrial.of(strategy, known, shape, epsilon, spent, tuning)
    else:
        trial = _Trial.of(strategy, known, shape, epsilon, spent, tuning)
    logs = []
    for seed, city in enumerate(cities):
        table = SignedTable(trial.counts(city.bodies, _ImaginedNoise(seed)))
        off = np.abs(table.rectangles(*city.queries) - city.truth)
        scale = np.maximum(city.truth, _FLOOR * city.bodies.times.sum())
        logs.append(np.log(np.median(off / scale, axis=1) + tuning.good_enough))
    return float(np.mean(logs))


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


@lru_cache(maxsize=2)
def _cities(
    catalogue: Catalogue, shape: Size, n: int, sizes: tuple[Size, ...], tuning: Tuning
) -> list[_City]:
    """Make up cities: smaller and larger bodies, smooth and rough, spread over what is likely."""
    rng = np.random.default_rng(0)
    # Small grids are quick to rehearse, and their few placements tell plans apart less well.
    trials = tuning.tried_buckets // (math.prod(shape) * catalogue.side**2)
    trials = min(max(trials, tuning.least_trials), tuning.most_trials)
    strays = NormalDist(tuning.stray_mean, tuning.stray_spread)
    cities = []
    for i in range(trials):
        # Quantiles of both, in different orders: multiples of the golden ratio.
        stray = strays.inv_cdf((i + 0.5) / trials)
        spots = tuning.most_spots * ((i + 0.5) * _GOLDEN % 1.0)
        weights = _off_the_prior(catalogue, shape, stray, tuning)
        bodies = _made_up(catalogue, shape, n, weights, spots, rng, tuning)
        table, asked = SignedTable(bodies.counts_on(*shape)), Rectangles(*shape)
        placed = [asked.placed(h, w, tuning.trial_queries, rng) for h, w in sizes]
        queries = np.stack(placed, axis=1)
        cities.append(_City(shape, bodies, queries, table.rectangles(*queries)))
    return cities


def _made_up(
    catalogue: Catalogue,
    shape: Size,
    n: int,
    weights: Floats,
    spots: float,
    rng: np.random.Generator,
    tuning: Tuning,
) -> Bodies:
    """Make up the bodies of a city: crowded districts, countryside, hot spots.

    A hot spot is many bodies in one bucket, as around a station: real data are rougher than
    any mixture of districts, and a strategy must not count on smoothness. The share `spots` of
    all bodies is in such spots.
    """
    n_rows, n_cols = shape
    pattern = rng.choice(len(catalogue), n, p=weights)
    place = _places(shape, n, rng, tuning)
    # A body in a spot is where another one is and like it. The first spots draw the most.
    in_spot = np.flatnonzero(rng.random(n) < spots)
    n_spots = n // tuning.bodies_per_spot
    model = rng.integers(0, n, 1 + n_spots)
    rank = rng.random(len(in_spot)) ** tuning.spot_crowding * n_spots
    like = model[rank.astype(np.int64)]
    pattern[in_spot], place[in_spot] = pattern[like], place[like]
    row = np.clip(place[:, 0], 0, n_rows - catalogue.heights[pattern])
    col = np.clip(place[:, 1], 0, n_cols - catalogue.widths[pattern])
    return Bodies.of_patterns(catalogue, pattern, row, col, np.ones(n, np.int64))


def _places(shape: Size, n: int, rng: np.random.Generator, tuning: Tuning) -> Ints:
    """Return cells, row and column, in districts that follow Zipf's law and between them."""
    extent, n_districts = np.array(shape), tuning.districts
    middles = extent * rng.normal(0.5, tuning.district_scatter, (n_districts, 2))
    width = rng.uniform(tuning.narrowest_district, tuning.widest_district, n_districts)
    crowd = 1.0 / np.arange(1, n_districts + 1)
    district = rng.choice(n_districts, n, p=crowd / crowd.sum())
    near = middles[district] + extent * width[district, None] * rng.normal(size=(n, 2))
    wide = extent * rng.normal(0.5, tuning.countryside, (n, 2))
    at = np.where(rng.random((n, 1)) < tuning.district_share, near, wide)
    return np.floor(at).astype(np.int64)


def _off_the_prior(catalogue: Catalogue, shape: Size, stray: float, tuning: Tuning) -> Floats:
    """Return how often patterns occur where sizes and shapes are not quite the prior's.

    A strategy must not count on the prior: bodies are larger than it has them by `stray` of its
    standard deviations of sizes, or smaller, and fill more of their footprints.
    """
    h, w = catalogue.heights, catalogue.widths
    weight = catalogue.weights * catalogue.prior[h, w] * ((h <= shape[0]) & (w <= shape[1]))
    size = (h + w).astype(np.float64)
    mean = np.average(size, weights=weight)
    spread = math.sqrt(np.average((size - mean) ** 2, weights=weight)) or 1.0
    filled = (np.diff(catalogue.spans[:, ::2], axis=2)[:, :, 0] + 1).clip(0).sum(axis=1)
    tilt = stray * (size - mean) / spread + tuning.fullness * (filled / (h * w))
    weight = weight * np.exp(tilt)
    return weight / weight.sum()


def workload_sizes(workload: Any, grid: Grid) -> list[Size]:
    """Return a user's sizes of rectangles as (rows, cols), in cells, or say why they cannot be."""
    if isinstance(workload, str) or not isinstance(workload, Sequence) or not workload:
        raise InputError(
            Argument("workload"),
            f" must be a sequence of sizes, each a side or a pair (width, height), such as "
            f"['2km', ('4km', '1km')], got {workload!r}",
        )
    found = []
    for size in workload:
        sides: Any = (size, size) if isinstance(size, str | Real) else size
        if not isinstance(sides, Sequence) or len(sides) != 2:
            raise InputError(
                f"a size of a workload is a side or a pair, got {size!r}", argument="workload"
            )
        width, height = (math.ceil(grid.in_cells(side, "workload")) for side in sides)
        if width > grid.n_cols or height > grid.n_rows:
            raise InputError(
                f"the workload's size {size!r} is {height} x {width} cells, but the area has only "
                f"{grid.n_rows} x {grid.n_cols}",
                argument="workload",
            )
        found.append((height, width))
    return found
