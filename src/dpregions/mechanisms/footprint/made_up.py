"""Made-up cities that plans are tried out on, and the queries that they are judged by.

Even ones and very uneven ones, with regions as the prior has them or far smaller or thin: a plan
must not count on any of it. They follow from public parameters and a number of regions that is
noisy or public, with a constant seed. Nothing here sees data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.bodies import Bodies

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tuning import Tuning
    from dpregions.mechanisms.footprint.workload import Size, Workload

_GOLDEN = (5**0.5 - 1) / 2


class _Kind(NamedTuple):
    """Where most people of a city are, and what is odd about their regions, if anything."""

    crowd: Literal["even", "districts", "centre", "malls", "corridors"]
    regions: Literal["usual", "small", "thin"] = "usual"


_KINDS = (
    _Kind("districts"),
    _Kind("centre"),
    _Kind("even"),
    _Kind("malls"),
    _Kind("districts", "small"),
    _Kind("corridors"),
    _Kind("even"),
    _Kind("districts"),
    _Kind("even"),
    _Kind("centre"),
    _Kind("districts", "thin"),
    _Kind("even"),
)
"""Two thirds of all cities are even or of districts; the first six show every kind of crowd."""


@dataclass(frozen=True, eq=False)
class City:
    """A made-up city: bodies, the queries to judge by, and their true answers."""

    kind: _Kind
    shape: Size
    bodies: Bodies
    queries: Ints
    """Rectangles as ``row0, row1, col0, col1``, by placement (even; as people), size, number."""
    truth: Floats
    """By placement, size, and number."""


@lru_cache(maxsize=4)
def cities(
    catalogue: Catalogue, shape: Size, n: int, asked: Workload, trials: int, tuning: Tuning
) -> list[City]:
    """Make up cities of different kinds, with smaller and larger bodies, smooth and rough."""
    rng = np.random.default_rng(0)
    strays = NormalDist(tuning.stray_mean, tuning.stray_spread)
    found = []
    for i in range(trials):
        kind = _KINDS[i % len(_KINDS)]
        # Quantiles of both, in different orders: multiples of the golden ratio.
        stray = strays.inv_cdf(((i + 0.5) * _GOLDEN**2) % 1.0)
        if kind.regions == "small":
            stray = tuning.small_stray
        spots = tuning.most_spots * ((i + 0.5) * _GOLDEN % 1.0)
        fullness = tuning.thin_fullness if kind.regions == "thin" else tuning.fullness
        weights = _off_the_prior(catalogue, shape, stray, fullness)
        bodies = _made_up(catalogue, shape, n, kind, weights, spots, rng, tuning)
        table = SignedTable(bodies.counts_on(*shape))
        if asked.places:
            queries = _drawn(asked, table, tuning.trial_queries, rng)
        else:
            queries = _placed(bodies, shape, asked.sizes, tuning.trial_queries, rng)
        found.append(City(kind, shape, bodies, queries, table.rectangles(*queries)))
    return found


def _placed(
    bodies: Bodies, shape: Size, sizes: tuple[Size, ...], n: int, rng: np.random.Generator
) -> Ints:
    """Return rectangles of each size, placed evenly and each near some body.

    One is near a body where it holds the middle cell of its footprint.
    """
    on = Rectangles(*shape)
    even = np.stack([on.placed(h, w, n, rng) for h, w in sizes], axis=1)
    high, wide = (np.array([size[i] for size in sizes])[:, None] for i in (0, 1))
    who = rng.integers(0, len(bodies.pattern), (len(sizes), n))
    known = bodies.catalogue
    row = bodies.row[who] + (known.heights[bodies.pattern[who]] - 1) // 2
    col = bodies.col[who] + (known.widths[bodies.pattern[who]] - 1) // 2
    row = np.clip(row - rng.integers(0, high, (len(sizes), n)), 0, shape[0] - high)
    col = np.clip(col - rng.integers(0, wide, (len(sizes), n)), 0, shape[1] - wide)
    return np.stack([even, np.stack([row, row + high - 1, col, col + wide - 1])], axis=1)


def _drawn(asked: Workload, table: SignedTable, n: int, rng: np.random.Generator) -> Ints:
    """Return districts of each group of sizes, each alike and as often as bodies touch them."""
    found = []
    for group in asked.groups():
        many = np.maximum(table.rectangles(*group).astype(np.float64), 0.0) + 1e-9
        even = np.arange(n) % group.shape[1]
        near = rng.choice(group.shape[1], n, p=many / many.sum())
        found.append(np.stack([group[:, even], group[:, near]], axis=1))
    return np.stack(found, axis=2)


def _made_up(
    catalogue: Catalogue,
    shape: Size,
    n: int,
    kind: _Kind,
    weights: Floats,
    spots: float,
    rng: np.random.Generator,
    tuning: Tuning,
) -> Bodies:
    """Make up the bodies of a city, with hot spots.

    A hot spot is many bodies in one bucket, as around a station: real data are rougher than
    any mixture of districts, and a strategy must not count on smoothness. The share `spots` of
    all bodies is in such spots.
    """
    n_rows, n_cols = shape
    pattern = rng.choice(len(catalogue), n, p=weights)
    place = np.floor(_places(shape, n, kind.crowd, rng, tuning)).astype(np.int64)
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


def _places(shape: Size, n: int, crowd: str, rng: np.random.Generator, tuning: Tuning) -> Floats:
    """Return where bodies are, as row and column: most where their kind of city has them."""
    extent = np.array(shape, np.float64)
    if crowd in ("even", "districts"):
        wide = extent * rng.normal(0.5, tuning.countryside, (n, 2))
        if crowd == "even":
            return wide
        near, share = _in_districts(extent, n, rng, tuning), tuning.district_share
    else:
        share = tuning.crowd_share
        wide = extent * rng.random((n, 2))
        if crowd == "centre":
            # Six of seven bodies lie within two standard deviations: that is the centre's area.
            sd = math.sqrt(tuning.crowd_area / math.pi) / 2
            near = extent * (rng.uniform(0.3, 0.7, 2) + sd * rng.normal(size=(n, 2)))
        elif crowd == "malls":
            near = (extent * rng.random((tuning.malls, 2)))[rng.integers(0, tuning.malls, n)]
        else:
            near = _in_corridors(extent, n, rng, tuning)
    return np.where(rng.random((n, 1)) < share, near, wide)


def _in_districts(extent: Floats, n: int, rng: np.random.Generator, tuning: Tuning) -> Floats:
    """Return places in districts that follow Zipf's law."""
    n_districts = tuning.districts
    middles = extent * rng.normal(0.5, tuning.district_scatter, (n_districts, 2))
    width = rng.uniform(tuning.narrowest_district, tuning.widest_district, n_districts)
    crowd = 1.0 / np.arange(1, n_districts + 1)
    district = rng.choice(n_districts, n, p=crowd / crowd.sum())
    return middles[district] + extent * width[district, None] * rng.normal(size=(n, 2))


def _in_corridors(extent: Floats, n: int, rng: np.random.Generator, tuning: Tuning) -> Floats:
    """Return places along straight corridors across the area."""
    ends = extent * rng.random((2, tuning.corridors, 2))
    which, along = rng.integers(0, tuning.corridors, n), rng.random((n, 1))
    on_line = ends[0, which] * (1 - along) + ends[1, which] * along
    return on_line + extent * tuning.corridor_width * rng.normal(size=(n, 2))


def _off_the_prior(catalogue: Catalogue, shape: Size, stray: float, fullness: float) -> Floats:
    """Return how often patterns occur where sizes and shapes are not quite the prior's.

    Bodies are larger than it has them by `stray` of its standard deviations of sizes, or smaller,
    and fill more of their footprints, or less.
    """
    h, w = catalogue.heights, catalogue.widths
    weight = catalogue.weights * catalogue.prior[h, w] * ((h <= shape[0]) & (w <= shape[1]))
    size = (h + w).astype(np.float64)
    mean = np.average(size, weights=weight)
    spread = math.sqrt(np.average((size - mean) ** 2, weights=weight)) or 1.0
    filled = (np.diff(catalogue.spans[:, ::2], axis=2)[:, :, 0] + 1).clip(0).sum(axis=1)
    tilt = stray * (size - mean) / spread + fullness * (filled / (h * w))
    weight = weight * np.exp(tilt - tilt.max())
    return weight / weight.sum()
