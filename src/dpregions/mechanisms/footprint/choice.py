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
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import Argument, InputError
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import default_sizes, placed
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import LIMIT, Alphabet, Buckets
from dpregions.mechanisms.footprint.expectation import expected_buckets
from dpregions.mechanisms.footprint.fits import covert_fit
from dpregions.mechanisms.footprint.levels import WHOLE, Grouping, Hierarchy
from dpregions.mechanisms.footprint.measuring import Measured, Measurement, Strategy, measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue

GOOD_ENOUGH = 0.05
"""Relative errors well below this are not worth budget that other sizes could use."""

_PROXY_SIDE = 40
_PROXY_REGIONS = 40_000
_TRIALS, _MOST_TRIALS = 4, 12
_TRIED_BUCKETS = 30_000
_QUERIES = 48
_MOST_PATTERNS = 1_000_000
_STRAY = NormalDist(-0.4, 0.8)
"""How far sizes stray from the prior's, in its standard deviations: real ones are mostly smaller,
since a bound is set with room to spare."""
_MOST_SPOTS = 0.4
_GOLDEN = (5**0.5 - 1) / 2


Words = tuple[tuple[int, Grouping, int], ...]
"""Measurements below the total: the side of blocks in cells (0: the whole area), the letters
counted apart, and the weight in what is left."""

_SIZES: tuple[Words, ...] = (
    ((1, "all", 0), (1, "letters", 10)),
    ((2, "all", 0), (1, "letters", 10)),
    ((2, "all", 1), (1, "letters", 9)),
    ((2, "all", 3), (1, "letters", 7)),
    ((4, "all", 1), (2, "all", 3), (1, "letters", 6)),
    ((4, "all", 2), (1, "all", 3), (1, "letters", 5)),
    ((2, "all", 94), (1, "letters", 0), (0, "letters", 6)),
    ((4, "all", 94), (1, "letters", 0), (0, "letters", 6)),
    ((4, "all", 34), (2, "all", 60), (1, "letters", 0), (0, "letters", 6)),
)
# Joining pays where noise drowns single sizes. Of nine sizes it took more than it gave: how they
# share out differs too much from place to place.
_OF_FOUR_SIZES: tuple[Words, ...] = (
    ((1, "joined", 97), (1, "letters", 0), (0, "letters", 3)),
    ((4, "all", 0), (1, "joined", 97), (1, "letters", 0), (0, "letters", 3)),
)
_OF_MORE_SIZES: tuple[Words, ...] = (
    ((1, "all", 94), (1, "letters", 0), (0, "letters", 6)),
    ((4, "all", 20), (1, "all", 74), (1, "letters", 0), (0, "letters", 6)),
)
_OF_MANY_SIZES: tuple[Words, ...] = (
    ((2, "all", 4), (2, "classes", 6), (1, "letters", 0)),
    ((4, "all", 2), (2, "all", 3), (2, "classes", 4), (1, "letters", 0)),
    ((4, "all", 1), (4, "classes", 3), (1, "classes", 5), (1, "letters", 0)),
    ((2, "all", 3), (2, "classes", 1), (1, "classes", 6), (1, "letters", 0)),
    ((8, "all", 2), (4, "all", 3), (4, "classes", 4), (1, "letters", 0)),
)
_SHAPES: tuple[Words, ...] = (
    ((2, "all", 0), (1, "all", 0), (1, "classes", 0), (1, "letters", 10)),
    ((2, "all", 2), (1, "letters", 8)),
    ((1, "all", 0), (1, "classes", 3), (1, "letters", 7)),
    ((2, "all", 1), (1, "classes", 4), (1, "letters", 5)),
    ((4, "all", 1), (2, "all", 1), (1, "all", 1), (1, "classes", 3), (1, "letters", 4)),
)


def candidates(side: int, n_rows: int, n_cols: int, *, shapes: bool) -> list[Strategy]:
    """Return the strategies to choose from on a grid; `shapes`: those that measure them too."""
    of_sizes = _SIZES + (_OF_FOUR_SIZES if side == 2 else ())
    of_sizes += (_OF_MORE_SIZES if side > 2 else ()) + (_OF_MANY_SIZES if side > 4 else ())
    n = max(n_rows, n_cols, 2)
    made = [_strategy("sizes", words, n) for words in of_sizes]
    made += [_strategy("patterns", words, n) for words in _SHAPES if shapes]
    return [strategy for strategy in dict.fromkeys(made) if _worth_measuring(strategy)]


def _strategy(alphabet: Alphabet, words: Words, n: int) -> Strategy:
    """Return a strategy without the blocks that hold the whole grid."""
    kept = [Measurement(*word) for word in words if word[0] < n]
    return Strategy(alphabet, tuple(kept))


def _worth_measuring(strategy: Strategy) -> bool:
    """Whether some place is measured: without, nothing is left of a strategy on a small grid."""
    return any(m.weight for m in strategy.measurements if m.block)


@dataclass(frozen=True, eq=False)
class _City:
    """A made-up city: bodies, their true answers, the queries to judge by."""

    bodies: Bodies
    queries: list[NDArray[np.int64]]
    truth: list[NDArray[np.float64]]


def choose(
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    *,
    epsilon: float,
    n_regions: float,
    spent: float,
    factor: int = 1,
    sizes: list[tuple[int, int]] | None = None,
) -> Strategy:
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
        The workload's rectangles, in cells; by default `default_sizes`.
    """
    rows, cols = _proxy(n_rows, n_cols)
    if sizes is not None:
        sizes = [(min(h, rows), min(w, cols)) for h, w in sizes]
    n_regions = max(n_regions * (rows * cols / (n_rows * n_cols)), 20.0)
    # Shapes pay only where a pattern's count at a place stands out of its noise.
    shapes = may_measure_shapes(catalogue, n_rows, n_cols)
    shapes = shapes and n_regions * epsilon > len(catalogue) * rows * cols
    # Fewer regions with more epsilon err alike, relative to their number.
    scale = max(n_regions / _PROXY_REGIONS, 1.0)
    n, eps, first = int(n_regions / scale), epsilon * scale / factor, spent * scale / factor
    rng = np.random.default_rng(0)
    # Small grids are quick to rehearse, and their few placements tell plans apart less well.
    trials = _TRIED_BUCKETS // (rows * cols * catalogue.side**2)
    trials = min(max(trials, _TRIALS), _MOST_TRIALS)
    cities = []
    for i in range(trials):
        # Smaller and larger sizes, smooth and rough cities: spread evenly over what is likely.
        stray = _STRAY.inv_cdf((i + 0.5) / trials)
        spots = _MOST_SPOTS * ((i + 0.5) * _GOLDEN % 1.0)
        cities.append(_city(catalogue, rows, cols, n, stray, spots, sizes, rng))
    tried = candidates(catalogue.side, rows, cols, shapes=shapes)
    errors = [_trial_error(one, cities, catalogue, rows, cols, eps, first) for one in tried]
    return tried[int(np.argmin(errors))]


def _proxy(n_rows: int, n_cols: int) -> tuple[int, int]:
    """Return the size of a grid like it, or of itself where it is small enough to rehearse."""
    shrink = max(n_rows, n_cols) / _PROXY_SIDE
    if shrink <= 1:
        return n_rows, n_cols
    return max(round(n_rows / shrink), 1), max(round(n_cols / shrink), 1)


def may_measure_shapes(catalogue: Catalogue, n_rows: int, n_cols: int) -> bool:
    """Whether shapes are ever measured on a grid, however many regions there are."""
    rows, cols = _proxy(n_rows, n_cols)
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

    def add(self, values: NDArray[Any], *, epsilon: Any, sensitivity: int) -> NDArray[Any]:
        """Return the values with Laplace noise."""
        return values + self._rng.laplace(0.0, sensitivity / epsilon, len(values))

    @staticmethod
    def variance(epsilon: float, sensitivity: int) -> float:
        """Return the variance of one draw."""
        return 2 * sensitivity**2 / epsilon**2


def _trial_error(
    strategy: Strategy,
    cities: list[_City],
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    epsilon: float,
    spent: float,
) -> float:
    """Return the mean over cities and query sizes of the log of the median relative error."""
    buckets = Buckets.of(catalogue, strategy.alphabet, n_rows, n_cols)
    tree = Hierarchy.of(buckets, strategy.levels)
    weights = strategy.weights
    whole = sum(weights.values())
    shares = {WHOLE: spent} | {at: epsilon * weight / whole for at, weight in weights.items()}
    logs = []
    for seed, city in enumerate(cities):
        bodies, noise = city.bodies, _ImaginedNoise(seed)
        number = buckets.of_bodies(bodies.pattern, bodies.row, bodies.col)
        counts = np.bincount(number, bodies.times, len(buckets))
        total = noise.add(tree.sums(WHOLE, counts), epsilon=spent, sensitivity=1)
        noisy = {WHOLE: total, **measure(tree, counts, shares, 1, noise)}
        measured = Measured.of(tree, noisy, shares, 1, noise.variance)
        fitted = covert_fit(measured, expected_buckets(measured))
        table = SignedTable(buckets.expand(fitted))
        for cells, truth in zip(city.queries, city.truth, strict=True):
            off = np.abs(table.rectangles(*cells) - truth)
            error = np.median(off / np.maximum(truth, 0.001 * counts.sum()))
            logs.append(math.log(error + GOOD_ENOUGH))
    return float(np.mean(logs))


def _city(
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    n: int,
    stray: float,
    spots: float,
    sizes: list[tuple[int, int]] | None,
    rng: np.random.Generator,
) -> _City:
    """Make up a city: crowded districts, hot spots, sizes and shapes off the catalogue's.

    A hot spot is many bodies in one bucket, as around a station: real data are rougher than
    any mixture of districts, and a strategy must not count on smoothness. The share `spots` of
    all bodies is in such spots. Nor must it count on the prior's sizes: bodies are larger or
    smaller than it has them by `stray` of its standard deviations.
    """
    pattern = rng.choice(len(catalogue), n, p=_off_the_prior(catalogue, n_rows, n_cols, stray))
    extent = np.array([n_rows, n_cols])
    middles = extent * rng.normal(0.5, 0.22, (24, 2))
    width = rng.uniform(0.02, 0.08, 24)
    crowd = 1.0 / np.arange(1, 25)
    district = rng.choice(24, n, p=crowd / crowd.sum())
    near = middles[district] + extent * width[district, None] * rng.normal(size=(n, 2))
    wide = extent * rng.normal(0.5, 0.25, (n, 2))
    place = np.floor(np.where(rng.random((n, 1)) < 0.85, near, wide)).astype(np.int64)
    spot = np.flatnonzero(rng.random(n) < spots)
    like = rng.integers(0, n, 1 + n // 40)[(rng.random(len(spot)) ** 2 * (n // 40)).astype(int)]
    pattern[spot], place[spot] = pattern[like], place[like]
    row = np.clip(place[:, 0], 0, n_rows - catalogue.heights[pattern])
    col = np.clip(place[:, 1], 0, n_cols - catalogue.widths[pattern])
    bodies = Bodies(catalogue, pattern, row, col, np.ones(n, np.int64))
    table = SignedTable(bodies.counts_on(n_rows, n_cols))
    sizes = sizes or default_sizes(n_rows, n_cols)
    queries = [placed(h, w, n_rows, n_cols, _QUERIES, rng) for h, w in sizes]
    return _City(bodies, queries, [table.rectangles(*cells) for cells in queries])


def _off_the_prior(
    catalogue: Catalogue, n_rows: int, n_cols: int, stray: float
) -> NDArray[np.float64]:
    """Return how often patterns occur where sizes and shapes are not quite the prior's."""
    h, w = catalogue.heights, catalogue.widths
    weight = catalogue.weights * catalogue.prior[h, w] * ((h <= n_rows) & (w <= n_cols))
    size = (h + w).astype(np.float64)
    mean = np.average(size, weights=weight)
    spread = math.sqrt(np.average((size - mean) ** 2, weights=weight)) or 1.0
    filled = (np.diff(catalogue.spans[:, ::2], axis=2)[:, :, 0] + 1).clip(0).sum(axis=1)
    weight = weight * np.exp(stray * (size - mean) / spread + filled / (h * w))
    return weight / weight.sum()


def workload_sizes(workload: Any, grid: Grid) -> list[tuple[int, int]]:
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
