"""Kinds of made-up cities: where their regions lie and how large they are, by name and seed.

Owns what a kind of city is, apart from any area or bound: homes as shares of the area's sides, and
places around each home as shares of the largest diameter. Seeded and public, like the synthetic
city: nothing here describes a real person, and nothing here reads data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpregions import extras, synthetic
from dpregions.errors import Argument, InputError

if TYPE_CHECKING:
    import geopandas

    from dpregions.arrays import Floats
    from dpregions.geometry.grid import Grid

extras.need("curator")

CENTRE_AREA, CENTRE_SHARE = 0.02, 0.8
"""Of a skewed city: the share of the area where that share of the homes is."""

_TYPICAL_BOUND = 2000.0
"""The synthetic city's regions are mixed as they are with this bound, in metres."""

_POINTS = 12
_CENTRAL = 0.85
_CENTRE_SPREAD = 0.0337
"""The centre's homes and their spread, such that `CENTRE_SHARE` of all are in `CENTRE_AREA`."""


@dataclass(frozen=True, eq=False)
class City:
    """Where a made-up city's regions are, before it is laid on an area."""

    homes: Floats
    """One row of x and y per region, as shares of the area's sides."""
    around: Floats
    """Places around each home, ``(regions, points, 2)``, as shares of the largest diameter."""

    def places(self, grid: Grid, max_diameter: float | str) -> Floats:
        """Return the places of each region, ``(regions, points, 2)``, in units of a grid's CRS.

        A region is the convex hull of its places.
        """
        xmin, ymin, xmax, ymax = grid.bounds
        homes = np.array([xmin, ymin]) + self.homes * np.array([xmax - xmin, ymax - ymin])
        return homes[:, None, :] + self.around * float(grid.length(max_diameter, "max_diameter"))

    def regions(self, grid: Grid, max_diameter: float | str) -> geopandas.GeoDataFrame:
        """Return the regions as `release` takes them: `user_id` and `geometry`, in a grid's CRS.

        Some may be a little longer than the bound, or lie outside the area, as real ones do.
        """
        import geopandas
        import shapely

        hulls = shapely.convex_hull(shapely.linestrings(self.places(grid, max_diameter)))
        users = {"user_id": np.arange(len(self.homes))}
        return geopandas.GeoDataFrame(users, geometry=hulls, crs=grid.crs)


def made_up(kind: str, n_regions: int, *, seed: int = 0) -> City:
    """Make up a city of a kind.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    n_regions : int
    seed : int
        Equal seeds give equal cities; each seed has its own centre, districts or line.

    Returns
    -------
    City

    Examples
    --------
    >>> from dpregions import Grid, cities
    >>> city = cities.made_up("skewed", 500, seed=1)
    >>> len(city.regions(Grid(0, 0, 1, 40, 40), max_diameter=2))
    500
    """
    check_kind(kind)
    if n_regions < 0:
        raise InputError(Argument("n_regions"), f" must be at least 0, got {n_regions}")
    if kind == "districts":
        home, around = synthetic.homes_and_roaming(n_regions, seed=seed)
        return City(home / synthetic.EXTENT + 0.5, around / _TYPICAL_BOUND)
    rng = np.random.default_rng([seed, *kind.encode()])
    return City(*_MAKERS[kind](n_regions, rng))


def check_kind(kind: object, name: str = "kind") -> None:
    """Refuse what is not a kind of city."""
    if kind not in KINDS:
        raise InputError(Argument(name, repr(kind)), f" is unknown: use {', '.join(KINDS)}")


def _even(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return rng.random((n, 2)), _bodies(n, rng, _mixed(n, rng))


def _skewed(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    centre = rng.uniform(0.35, 0.65, 2)
    crowded = centre + rng.normal(0.0, _CENTRE_SPREAD, (n, 2))
    homes = np.where(rng.random((n, 1)) < _CENTRAL, crowded, rng.random((n, 2)))
    return homes, _bodies(n, rng, _mixed(n, rng))


def _malls(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    spots = np.stack([rng.uniform(0.2, 0.45, 2), rng.uniform(0.55, 0.8, 2)])
    which = np.searchsorted([1000 / 2300, 2000 / 2300], rng.random(n), side="right")
    crowded = spots[np.minimum(which, 1)] + rng.normal(0.0, 0.0075, (n, 2))
    elsewhere = which == 2
    homes = np.where(elsewhere[:, None], rng.random((n, 2)), crowded)
    length = np.where(elsewhere, rng.uniform(0.1, 0.9, n), rng.uniform(0.4, 0.6, n))
    return homes, _bodies(n, rng, length, slim=0.5)


def _corridor(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    slope, x = rng.uniform(0.4, 0.8), rng.random(n)
    homes = np.stack([x, 0.5 + slope * (x - 0.5) + rng.normal(0.0, 0.0125, n)], axis=1)
    direction = np.arctan(slope) + rng.normal(0.0, 0.15, n)
    return homes, _segments(rng.uniform(0.3, 0.95, n), direction)


def _thin(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return _districts(n, rng), _segments(np.full(n, 0.65), np.full(n, np.pi / 4))


def _small(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return _districts(n, rng), _bodies(n, rng, rng.uniform(0.025, 0.125, n))


def _scattered(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return rng.random((n, 2)), _bodies(n, rng, rng.uniform(0.125, 0.75, n))


def _wide(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return _districts(n, rng), _bodies(n, rng, rng.uniform(0.6, 1.0, n), slim=0.3)


def _districts(n: int, rng: np.random.Generator) -> Floats:
    """Return homes in a dozen round districts of one size."""
    middles = np.clip(rng.normal(0.5, 0.2, (12, 2)), 0.1, 0.9)
    return middles[rng.integers(0, len(middles), n)] + rng.normal(0.0, 0.06, (n, 2))


def _mixed(n: int, rng: np.random.Generator) -> Floats:
    """Return lengths up to the largest diameter, a third of it typical."""
    return np.minimum(rng.lognormal(np.log(0.37), 0.6, n), 1.0)


def _bodies(n: int, rng: np.random.Generator, length: Floats, slim: float = 0.2) -> Floats:
    """Return places in ellipses of some lengths; across, they are `slim` of that or more."""
    turn, angle = rng.uniform(0.0, np.pi, (n, 1)), rng.uniform(0.0, 2 * np.pi, (n, _POINTS))
    radius = np.sqrt(rng.random((n, _POINTS))) * length[:, None] / 2
    along = radius * np.cos(angle)
    across = radius * np.sin(angle) * rng.uniform(slim, 1.0, (n, 1))
    c, s = np.cos(turn), np.sin(turn)
    return np.stack([c * along - s * across, s * along + c * across], axis=-1)


def _segments(length: Floats, direction: Floats) -> Floats:
    half = length[:, None] / 2 * np.stack([np.cos(direction), np.sin(direction)], axis=1)
    return np.stack([-half, half], axis=1)


KINDS: Mapping[str, str] = {
    "even": "homes anywhere in the area",
    "districts": "homes crowd in two dozen districts, as in the synthetic city",
    "skewed": "80 % of the homes in 2 % of the area",
    "malls": "two spots of 1,000 regions each for every 300 others",
    "corridor": "long, thin regions along one line",
    "thin": "diagonal segments in a dozen districts",
    "small": "regions of a fortieth to an eighth of the largest diameter",
    "scattered": "compact regions anywhere in the area, meant for few in a large one",
    "wide": "regions that nearly fill the largest diameter",
}
"""Every kind of city, and what it is like."""

_MAKERS: Mapping[str, Callable[[int, np.random.Generator], tuple[Floats, Floats]]] = {
    "even": _even,
    "skewed": _skewed,
    "malls": _malls,
    "corridor": _corridor,
    "thin": _thin,
    "small": _small,
    "scattered": _scattered,
    "wide": _wide,
}
