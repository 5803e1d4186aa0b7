"""A synthetic city: made-up users with regions and GPS fixes, for demos, docs, tests and studies.

Seeded and public: nothing here describes a real person, so exact answers about it may be
shown. User `i` has the same region whatever the number of users, and `regions` and `fixes` with
the same seed speak of the same homes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpregions import extras
from dpregions.errors import InputError
from dpregions.geometry.grid import Grid

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

    from dpregions.arrays import Floats, Ints

extras.need("curator")

CENTRE = (9.0, 48.5)
"""Longitude and latitude of the city's centre: a place without a large city of its own."""

N_DISTRICTS = 24
POINTS_A_REGION = 12
EXTENT = 20_000.0
"""Side of the city, in metres."""
_WEEK = 7 * 24 * 3600


def grid(side: float | str = "20km", cell_size: float | str = "1km") -> Grid:
    """Return a grid around the city's centre; by default 20 km of 1 km cells."""
    return Grid.around(*CENTRE, side=side, cell_size=cell_size)


def regions(n_users: int, *, seed: int = 0) -> geopandas.GeoDataFrame:
    """Return one region a user: the hull of places around the user's home.

    Sizes are mixed: most are between 0.4 and 3 km across, a few much larger or a few metres
    small. Homes crowd in districts, the centre most.

    Parameters
    ----------
    n_users : int
    seed : int

    Returns
    -------
    geopandas.GeoDataFrame
        `user_id` and `geometry`, in the CRS of `grid`.

    Examples
    --------
    >>> from dpregions import synthetic
    >>> synthetic.regions(3, seed=1)["user_id"].tolist()
    [0, 1, 2]
    """
    import geopandas
    import shapely

    home, around = homes_and_roaming(n_users, seed=seed)
    places = home[:, None, :] + around
    hulls = shapely.convex_hull(shapely.linestrings(places + _centre()))
    return geopandas.GeoDataFrame({"user_id": np.arange(n_users)}, geometry=hulls, crs=grid().crs)


def homes_and_roaming(n_users: int, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Return what regions are made of, in metres: homes, and places around each.

    Homes are relative to the centre of a city of `EXTENT`, shape (n, 2); places relative to
    their home, shape (n, points, 2). A region is the hull of its places.
    """
    users = _users(n_users, seed)
    spread = _stream(seed, "places").normal(size=(n_users, POINTS_A_REGION, 2))
    return users.home, users.around_home(spread)


def fixes(n_users: int, *, seed: int = 0, per_user: int = 120) -> pd.DataFrame:
    """Return a week of GPS fixes: at home, at work, on the way, and a few gone astray.

    Parameters
    ----------
    n_users : int
    seed : int
    per_user : int
        Mean number of fixes a user; some have a handful, some many times as many.

    Returns
    -------
    pandas.DataFrame
        `user_id`, `t` (timestamp), `lon`, `lat` (WGS 84), sorted by user and time.
    """
    import pandas as pd

    if per_user < 1:
        raise InputError(f"per_user must be at least 1, got {per_user}")
    users = _users(n_users, seed)
    activity = _stream(seed, "activity").lognormal(0.0, 0.8, n_users) / np.exp(0.32)
    owner = np.repeat(np.arange(n_users), np.maximum(1, np.rint(activity * per_user)).astype(int))
    rng = _stream(seed, "fixes")
    home = users.home[owner] + users.around_home(rng.normal(size=(len(owner), 1, 2)), owner)[:, 0]
    work = users.work[owner] + rng.normal(scale=80.0, size=(len(owner), 2))
    along = rng.random((len(owner), 1))
    way = users.home[owner] + along * (users.work - users.home)[owner]
    what = rng.random((len(owner), 1))
    where = np.where(what < 0.6, home, np.where(what < 0.85, work, way))
    where += rng.normal(scale=8.0, size=where.shape)  # what a receiver is off by
    astray = rng.random(len(owner)) < 0.005
    where[astray] += rng.normal(scale=4000.0, size=(int(astray.sum()), 2))
    lon, lat = _degrees(where + _centre())
    t = pd.Timestamp("2024-03-04") + pd.to_timedelta(rng.integers(0, _WEEK, len(owner)), unit="s")
    table = pd.DataFrame({"user_id": owner, "t": t, "lon": lon, "lat": lat})
    return table.sort_values(["user_id", "t"], ignore_index=True)


def example_user(*, seed: int = 4) -> pd.DataFrame:
    """Return the many fixes of one user, for pictures: home, work, the way between, errands."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    home, work = np.array([0.0, 0.0]), np.array([4300.0, 2100.0])
    bend = np.array([2600.0, -250.0])
    t = rng.uniform(0, 1, (170, 1))
    way = (1 - t) ** 2 * home + 2 * t * (1 - t) * bend + t**2 * work
    spots = [
        home + rng.normal(0, [330, 260], (260, 2)),
        home + rng.standard_t(2.5, (110, 2)) * [430, 520],
        work + rng.normal(0, [210, 250], (120, 2)),
        way + rng.normal(0, 75, way.shape),
        rng.uniform([-2200, -2300], [5200, 3300], (45, 2)),
    ]
    lon, lat = _degrees(np.concatenate(spots) + np.array([500_000.0, 5_372_000.0]))
    return pd.DataFrame({"lon": lon, "lat": lat})


@dataclass(frozen=True)
class _Users:
    """Where users live and work, in metres from the centre, and how far they roam."""

    home: Floats
    work: Floats
    along: Floats
    across: Floats
    direction: Floats

    def around_home(self, spread: Floats, owner: Ints | slice = slice(None)) -> Floats:
        """Return normal deviates as displacements: stretched and turned as each user roams."""
        u = spread[..., 0] * self.along[owner, None]
        v = spread[..., 1] * self.across[owner, None]
        c, s = np.cos(self.direction[owner, None]), np.sin(self.direction[owner, None])
        return np.stack([c * u - s * v, s * u + c * v], axis=-1)


def _users(n: int, seed: int) -> _Users:
    if n < 0:
        raise InputError(f"n_users must be at least 0, got {n}")
    city = _stream(seed, "districts")
    middle = np.clip(city.normal(scale=4500.0, size=(N_DISTRICTS, 2)), -EXTENT / 2, EXTENT / 2)
    middle[0] = 0.0
    width = city.uniform(400.0, 1600.0, N_DISTRICTS)
    weight = 1.0 / np.arange(1, N_DISTRICTS + 1)
    edges = np.cumsum(weight) / weight.sum()

    def place(name: str) -> Floats:
        pick = _stream(seed, f"{name} district").random((n, 2))
        scatter = _stream(seed, f"{name} place").normal(size=(n, 2))
        district = np.searchsorted(edges, pick[:, 0], side="right")
        crowded = middle[district] + width[district, None] * scatter
        return np.where(pick[:, 1:] < 0.85, crowded, EXTENT / 4 * scatter)

    size = _stream(seed, "size").normal(size=n)
    slim = _stream(seed, "slim").uniform(0.2, 1.0, n)
    along = 240.0 * np.exp(0.6 * size)
    direction = _stream(seed, "direction").uniform(0.0, 2 * np.pi, n)
    return _Users(place("home"), place("work"), along, along * slim, direction)


def _stream(seed: int, name: str) -> np.random.Generator:
    """Return a generator of its own for each attribute: users stay the same for every n."""
    return np.random.default_rng([seed, *name.encode()])


def _degrees(metres: Floats) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of places in the city's CRS."""
    from pyproj import Transformer

    lon, lat = Transformer.from_crs(grid().crs, 4326, always_xy=True).transform(*metres.T)
    return lon, lat


def _centre() -> Floats:
    area = grid()
    return np.array([(area.xmin + area.xmax) / 2, (area.ymin + area.ymax) / 2])
