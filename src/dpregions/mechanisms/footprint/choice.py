"""Which levels to measure, and with which shares of the budget: decided before they are paid for.

Each candidate is tried out on made-up cities with the same grid (or a smaller one like it),
bound and epsilon, and about as many regions as a noisy total says; the one with the least error
over the workload wins. It sees public parameters and that noisy total, never data: the choice
costs no privacy beyond the total's own share, by adaptive composition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import Argument, InputError
from dpregions.geometry.cells import signed_table
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import LIMIT, Alphabet, Buckets
from dpregions.mechanisms.footprint.expectation import expected_buckets
from dpregions.mechanisms.footprint.levels import (
    MIX,
    Grouping,
    Hierarchy,
    Level,
    Measured,
    covert_fit,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue

AREAS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""The default workload: rectangles of these shares of the area, each as important."""

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


@dataclass(frozen=True)
class Strategy:
    """Levels, and their weights in the budget that the total left; 0: not measured again.

    `mix` is the weight of the number of regions of each letter in the whole area.
    """

    alphabet: Alphabet
    levels: tuple[Level, ...]
    weights: tuple[int, ...]
    mix: int = 0


# Each word of a plan is a level below the total: the side of its blocks in cells, its letters
# (a: all together, j: the small ones joined, c: classes of similar size, l: each), and its weight
# in what is left. 0l is the number of regions of each letter in the whole area.
_PLANS = """
sizes    1a0 1l10
sizes    2a0 1l10
sizes    2a1 1l9
sizes    2a3 1l7
sizes    4a1 2a3 1l6
sizes    4a2 1a3 1l5
sizes    0l6 2a94 1l0
sizes    0l6 4a94 1l0
sizes    0l6 4a34 2a60 1l0
"""
# Joining pays where noise drowns single sizes. Of nine sizes it took more than it gave: how they
# share out differs too much from place to place.
_PLANS_OF_FOUR_SIZES = """
sizes    0l3 1j97 1l0
sizes    0l3 4a0 1j97 1l0
"""
_PLANS_OF_MORE_SIZES = """
sizes    0l6 1a94 1l0
sizes    0l6 4a20 1a74 1l0
"""
_PLANS_OF_MANY_SIZES = """
sizes    2a4 2c6 1l0
sizes    4a2 2a3 2c4 1l0
sizes    4a1 4c3 1c5 1l0
sizes    2a3 2c1 1c6 1l0
sizes    8a2 4a3 4c4 1l0
"""
_PLANS_OF_SHAPES = """
patterns 2a0 1a0 1c0 1l10
patterns 2a2 1l8
patterns 1a0 1c3 1l7
patterns 2a1 1c4 1l5
patterns 4a1 2a1 1a1 1c3 1l4
"""
_LETTERS: dict[str, Grouping] = {"a": "all", "j": "joined", "c": "classes", "l": "letters"}


def candidates(side: int, n_rows: int, n_cols: int, *, shapes: bool) -> list[Strategy]:
    """Return the strategies to choose from on a grid; `shapes`: those that measure them too."""
    plans = _PLANS + _PLANS_OF_FOUR_SIZES * (side == 2) + _PLANS_OF_MORE_SIZES * (side > 2)
    plans += _PLANS_OF_MANY_SIZES * (side > 4) + _PLANS_OF_SHAPES * shapes
    read = [_read(line, max(n_rows, n_cols)) for line in plans.split("\n") if line]
    return [plan for plan in dict.fromkeys(read) if any(plan.weights)]


def _read(line: str, n: int) -> Strategy:
    """Return the strategy of one line, without the blocks that hold the whole grid."""
    alphabet, *words = line.split()
    read = [re.fullmatch(r"(\d+)([ajcl])(\d+)", word) for word in words]
    fields = [(int(m[1]), _LETTERS[m[2]], int(m[3])) for m in read if m is not None]
    kept = [(block, letters, weight) for block, letters, weight in fields if 0 < block < max(n, 2)]
    return Strategy(
        "patterns" if alphabet == "patterns" else "sizes",
        (Level(0, "all"), *(Level(block, letters) for block, letters, _ in kept)),
        (0, *(weight for *_, weight in kept)),
        sum(weight for block, _, weight in fields if block == 0),
    )


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
        The workload's rectangles, in cells; by default `AREAS` of the area.
    """
    affordable = n_affordable(catalogue, n_rows, n_cols) > 0
    shrink = max(n_rows, n_cols) / _PROXY_SIDE
    if shrink > 1:
        rows, cols = max(round(n_rows / shrink), 1), max(round(n_cols / shrink), 1)
        n_regions *= rows * cols / (n_rows * n_cols)
        if sizes is not None:
            sizes = [(min(h, rows), min(w, cols)) for h, w in sizes]
        n_rows, n_cols = rows, cols
    n_regions = max(n_regions, 20.0)
    # Shapes pay only where a pattern's count at a place stands out of its noise.
    n_patterns = len(catalogue) * n_rows * n_cols
    shapes = affordable and n_regions * epsilon > n_patterns and n_patterns < _MOST_PATTERNS
    # Fewer regions with more epsilon err alike, relative to their number.
    scale = max(n_regions / _PROXY_REGIONS, 1.0)
    n, eps, first = int(n_regions / scale), epsilon * scale / factor, spent * scale / factor
    rng = np.random.default_rng(0)
    # Small grids are quick to rehearse, and their few placements tell plans apart less well.
    trials = _TRIED_BUCKETS // (n_rows * n_cols * catalogue.side**2)
    trials = min(max(trials, _TRIALS), _MOST_TRIALS)
    cities = []
    for i in range(trials):
        # Smaller and larger sizes, smooth and rough cities: spread evenly over what is likely.
        stray = _STRAY.inv_cdf((i + 0.5) / trials)
        spots = _MOST_SPOTS * ((i + 0.5) * _GOLDEN % 1.0)
        cities.append(_city(catalogue, n_rows, n_cols, n, stray, spots, sizes, rng))
    best, least = None, np.inf
    for strategy in candidates(catalogue.side, n_rows, n_cols, shapes=shapes):
        error = _trial_error(strategy, cities, catalogue, n_rows, n_cols, eps, first)
        if error < least:
            best, least = strategy, error
    assert best is not None
    return best


def n_affordable(catalogue: Catalogue, n_rows: int, n_cols: int) -> int:
    """Return how many buckets a grid may have where shapes are measured, 0 where none can be."""
    n = len(catalogue) * n_rows * n_cols
    return n if n <= LIMIT else 0


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
    logs = []
    for seed, city in enumerate(cities):
        rng = np.random.default_rng(seed)
        counts = np.bincount(_numbers(buckets, city.bodies), city.bodies.times, len(buckets))
        measured = simulate(tree, counts, strategy.weights, epsilon, spent, rng, strategy.mix)
        fitted = covert_fit(measured, expected_buckets(measured))
        table = signed_table(buckets.expand(fitted))
        for cells, truth in zip(city.queries, city.truth, strict=True):
            off = np.abs(answers(table, cells) - truth)
            error = np.median(off / np.maximum(truth, 0.001 * counts.sum()))
            logs.append(math.log(error + GOOD_ENOUGH))
    return float(np.mean(logs))


def simulate(
    tree: Hierarchy,
    counts: NDArray[np.int64],
    weights: tuple[int, ...],
    epsilon: float,
    spent: float,
    rng: np.random.Generator,
    mix: int = 0,
) -> Measured:
    """Return made-up measurements of made-up counts."""
    values: list[NDArray[np.float64] | None] = []
    variances = []
    whole = sum(weights) + mix
    for level, weight in enumerate(weights):
        share = epsilon * weight / whole if level else spent
        exact = np.bincount(tree.part[level], counts, minlength=tree.sizes[level])
        if share == 0:
            values.append(None)
            variances.append(np.inf)
            continue
        # Continuous noise: regions may be fewer and epsilon larger here, where integer noise
        # would vanish and the scaling would no longer hold.
        values.append(exact + rng.laplace(0.0, 1 / share, len(exact)))
        variances.append(2 / share**2)
    if not mix:
        return Measured(tree, tuple(values), tuple(variances))
    share = epsilon * mix / whole
    letters = tree.sums(MIX, counts)
    noisy = letters + rng.laplace(0.0, 1 / share, len(letters))
    return Measured(tree, tuple(values), tuple(variances), noisy, 2 / share**2)


def answers(table: NDArray[np.float64], cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the answers to rectangles ``row0, row1, col0, col1`` of cells."""
    row0, row1, col0, col1 = cells
    top, right, left, bottom = 2 * row1 + 1, 2 * col1 + 1, 2 * col0, 2 * row0
    return table[top, right] - table[bottom, right] - table[top, left] + table[bottom, left]


def _numbers(buckets: Buckets, bodies: Bodies) -> NDArray[np.int64]:
    letters = (
        buckets.letter_of_pattern[bodies.pattern]
        if buckets.alphabet == "patterns"
        else buckets.letter_of_size[
            bodies.catalogue.heights[bodies.pattern], bodies.catalogue.widths[bodies.pattern]
        ]
    )
    return buckets.number(letters, bodies.row, bodies.col)


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
    table = signed_table(bodies.counts_on(n_rows, n_cols))
    queries = [
        _placements(h, w, n_rows, n_cols, rng) for h, w in (sizes or default_sizes(n_rows, n_cols))
    ]
    return _City(bodies, queries, [answers(table, cells) for cells in queries])


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


def default_sizes(n_rows: int, n_cols: int) -> list[tuple[int, int]]:
    """Return rectangles of about `AREAS` of a grid, shaped like it, in cells."""
    found = []
    for area in AREAS:
        rows = min(max(round(n_rows * area**0.5), 1), n_rows)
        cols = min(max(round(area * n_rows * n_cols / rows), 1), n_cols)
        if (rows, cols) not in found:
            found.append((rows, cols))
    return found


def _placements(
    rows: int, cols: int, n_rows: int, n_cols: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    row0 = rng.integers(0, n_rows - rows + 1, _QUERIES)
    col0 = rng.integers(0, n_cols - cols + 1, _QUERIES)
    return np.stack([row0, row0 + rows - 1, col0, col0 + cols - 1])
