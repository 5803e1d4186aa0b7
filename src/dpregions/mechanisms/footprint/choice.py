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
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import LIMIT, Alphabet, Buckets
from dpregions.mechanisms.footprint.expectation import expected_buckets
from dpregions.mechanisms.footprint.fits import covert_fit
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy
from dpregions.mechanisms.footprint.measuring import Measured, Measurement, Strategy, measure
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tuning import Words

_LEAST_REGIONS = 20.0
"""A city has so many regions at least: a noisy total may be negative."""
_MOST_PATTERNS = 1_000_000
"""Patterns times places up to which plans that measure shapes are tried: a limit of time."""
_FLOOR = 0.001
"""Errors are relative to the truth, or to this share of all regions where that is more: as in
`planning.workload`."""
_GOLDEN = (5**0.5 - 1) / 2


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
        kept = tuple(Measurement(*word) for word in words if word[0] < n)
        # Blocks that hold the whole grid are left out, and on a small grid all that was measured.
        if any(m.weight for m in kept if m.block):
            made.append(Strategy(alphabet, kept))
    return list(dict.fromkeys(made))


@dataclass(frozen=True, eq=False)
class _City:
    """A made-up city: bodies, their true answers, the queries to judge by."""

    shape: tuple[int, int]
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
    tuning: Tuning = TUNING,
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
        The workload's rectangles, in cells; by default `Rectangles.sizes`.
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
    asked = [(min(h, rows), min(w, cols)) for h, w in asked]
    cities = _cities(catalogue, rows, cols, int(n_on_proxy / fewer), asked, tuning)
    tried = candidates(catalogue.side, rows, cols, shapes=shapes, tuning=tuning)
    errors = [_trial_error(one, cities, catalogue, on_rest, on_total, tuning) for one in tried]
    return tried[int(np.argmin(errors))]


def _proxy(n_rows: int, n_cols: int, tuning: Tuning) -> tuple[int, int]:
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
    epsilon: float,
    spent: float,
    tuning: Tuning,
) -> float:
    """Return the mean over cities and query sizes of the log of the median relative error."""
    buckets = Buckets.of(catalogue, strategy.alphabet, *cities[0].shape)
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
        fitted = covert_fit(measured, expected_buckets(measured, tuning), tuning)
        table = SignedTable(buckets.expand(fitted))
        for cells, truth in zip(city.queries, city.truth, strict=True):
            off = np.abs(table.rectangles(*cells) - truth)
            error = np.median(off / np.maximum(truth, _FLOOR * counts.sum()))
            logs.append(math.log(error + tuning.good_enough))
    return float(np.mean(logs))


def _cities(
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    n: int,
    sizes: list[tuple[int, int]],
    tuning: Tuning,
) -> list[_City]:
    """Make up cities: smaller and larger bodies, smooth and rough, spread over what is likely."""
    rng = np.random.default_rng(0)
    # Small grids are quick to rehearse, and their few placements tell plans apart less well.
    trials = tuning.tried_buckets // (n_rows * n_cols * catalogue.side**2)
    trials = min(max(trials, tuning.least_trials), tuning.most_trials)
    strays = NormalDist(tuning.stray_mean, tuning.stray_spread)
    cities = []
    for i in range(trials):
        # Quantiles of both, in different orders: multiples of the golden ratio.
        stray = strays.inv_cdf((i + 0.5) / trials)
        spots = tuning.most_spots * ((i + 0.5) * _GOLDEN % 1.0)
        weights = _off_the_prior(catalogue, n_rows, n_cols, stray, tuning)
        bodies = _made_up(catalogue, n_rows, n_cols, n, weights, spots, rng, tuning)
        table, asked = SignedTable(bodies.counts_on(n_rows, n_cols)), Rectangles(n_rows, n_cols)
        queries = [asked.placed(h, w, tuning.trial_queries, rng) for h, w in sizes]
        truth = [table.rectangles(*cells) for cells in queries]
        cities.append(_City((n_rows, n_cols), bodies, queries, truth))
    return cities


def _made_up(
    catalogue: Catalogue,
    n_rows: int,
    n_cols: int,
    n: int,
    weights: NDArray[np.float64],
    spots: float,
    rng: np.random.Generator,
    tuning: Tuning,
) -> Bodies:
    """Make up the bodies of a city: crowded districts, countryside, hot spots.

    A hot spot is many bodies in one bucket, as around a station: real data are rougher than
    any mixture of districts, and a strategy must not count on smoothness. The share `spots` of
    all bodies is in such spots.
    """
    pattern = rng.choice(len(catalogue), n, p=weights)
    place = _places(n_rows, n_cols, n, rng, tuning)
    # A body in a spot is where another one is and like it. The first spots draw the most.
    in_spot = np.flatnonzero(rng.random(n) < spots)
    n_spots = n // tuning.bodies_per_spot
    model = rng.integers(0, n, 1 + n_spots)
    rank = rng.random(len(in_spot)) ** tuning.spot_crowding * n_spots
    like = model[rank.astype(np.int64)]
    pattern[in_spot], place[in_spot] = pattern[like], place[like]
    row = np.clip(place[:, 0], 0, n_rows - catalogue.heights[pattern])
    col = np.clip(place[:, 1], 0, n_cols - catalogue.widths[pattern])
    return Bodies(catalogue, pattern, row, col, np.ones(n, np.int64))


def _places(
    n_rows: int, n_cols: int, n: int, rng: np.random.Generator, tuning: Tuning
) -> NDArray[np.int64]:
    """Return cells, row and column, in districts that follow Zipf's law and between them."""
    extent, n_districts = np.array([n_rows, n_cols]), tuning.districts
    middles = extent * rng.normal(0.5, tuning.district_scatter, (n_districts, 2))
    width = rng.uniform(tuning.narrowest_district, tuning.widest_district, n_districts)
    crowd = 1.0 / np.arange(1, n_districts + 1)
    district = rng.choice(n_districts, n, p=crowd / crowd.sum())
    near = middles[district] + extent * width[district, None] * rng.normal(size=(n, 2))
    wide = extent * rng.normal(0.5, tuning.countryside, (n, 2))
    at = np.where(rng.random((n, 1)) < tuning.district_share, near, wide)
    return np.floor(at).astype(np.int64)


def _off_the_prior(
    catalogue: Catalogue, n_rows: int, n_cols: int, stray: float, tuning: Tuning
) -> NDArray[np.float64]:
    """Return how often patterns occur where sizes and shapes are not quite the prior's.

    A strategy must not count on the prior: bodies are larger than it has them by `stray` of its
    standard deviations of sizes, or smaller, and fill more of their footprints.
    """
    h, w = catalogue.heights, catalogue.widths
    weight = catalogue.weights * catalogue.prior[h, w] * ((h <= n_rows) & (w <= n_cols))
    size = (h + w).astype(np.float64)
    mean = np.average(size, weights=weight)
    spread = math.sqrt(np.average((size - mean) ** 2, weights=weight)) or 1.0
    filled = (np.diff(catalogue.spans[:, ::2], axis=2)[:, :, 0] + 1).clip(0).sum(axis=1)
    tilt = stray * (size - mean) / spread + tuning.fullness * (filled / (h * w))
    weight = weight * np.exp(tilt)
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
