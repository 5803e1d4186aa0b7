"""GPS fixes -> regions of frequent visitation: density mode, k nearest, diameter, hull.

Owns what a table of fixes becomes. A region depends on its own user's fixes alone, and not on
their order; which rows are one user's is the rule of `ids.py`. Rows that cannot be used (NaN, no
user, latitude 400) count for nothing, silently, be they all there are: what is refused is about
the call and the types of columns, and no message holds a number of fixes or users. The loops are
in `density.py`; files are read by `intake/sources/traces.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from dpregions.choices import FixUnit
from dpregions.crs import crs_label, on_the_globe, read_crs, same_crs
from dpregions.errors import (
    Argument,
    CRSError,
    InputError,
    InputTypeError,
    InPython,
    Part,
    PrivacyError,
)
from dpregions.intake import columns
from dpregions.intake.ids import one_column, user_numbers
from dpregions.intake.units import UNIT_ATTRIBUTE
from dpregions.lengths import positive_length
from dpregions.memory import n_workers
from dpregions.place_names import places_asked
from dpregions.unforeseen import foreseen, foreseen_items

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    from pyproj import CRS

    from dpregions.arrays import Floats, Ints

_READING = "reading the fixes"

_NAMES = ("user_id", "lon", "lat", "t")
"""Columns of the batches that `read_fixes` makes."""

_ON_EARTH = 1e9
"""Projected coordinates beyond this are no places, and their squares would lose digits."""


@dataclass(frozen=True)
class _Recipe:
    """The public choices of an extraction, checked before any row is looked at."""

    k: int
    diameter: float
    crs: CRS
    unit: FixUnit
    gap: int | None  # microseconds
    user_id: str
    lon: str
    lat: str
    time: str


def regions_from_fixes(
    fixes: pd.DataFrame | geopandas.GeoDataFrame,
    *,
    k: int,
    max_diameter: float | str,
    crs: Any,
    user_id: str = "user_id",
    lon: str = "lon",
    lat: str = "lat",
    time: str = "t",
    unit: FixUnit = "user",
    gap: Any = None,
) -> geopandas.GeoDataFrame:
    """Turn each user's GPS fixes into one convex region where the user mostly is.

    The mode is the fix where a Gaussian kernel density (Scott's rule) of the user's fixes is
    greatest. The region is the convex hull of the `k` fixes nearest the mode, without those
    farther from it than half of `max_diameter`: a polygon, a segment or a point.

    Parameters
    ----------
    fixes : DataFrame or GeoDataFrame
        One row a fix: columns `lon` and `lat` in degrees (WGS 84), or a geometry column of
        points with its CRS. Rows that cannot be used are left out, in silence: where columns
        are exchanged, that may be all of them.
    k : int
        How many fixes make a region; all of them where a user has fewer.
    max_diameter : float or str
        The largest diameter B of a region: a number in units of `crs`, or text as ``"2km"``.
    crs
        The projected CRS in which distances are measured and regions are returned, for
        instance ``grid.crs``.
    user_id, lon, lat, time : str
        Names of columns. `time` is read for trajectories only. Ids are whole numbers, text or
        other values that are exactly equal or not: a column of floats is refused.
    unit : {"user", "trajectory"}
        Whose fixes make one region. A release of trajectories protects one trajectory.
    gap : str or timedelta, optional
        For trajectories: a longer time without a fix starts a new one, for example ``"20min"``.

    Returns
    -------
    geopandas.GeoDataFrame
        `user_id` and `geometry`, sorted by user, and for trajectories `trajectory`, their
        number in order of time. ``attrs["dpregions_unit"]`` holds the unit. Secret, as the
        fixes are.

    Examples
    --------
    >>> import pandas as pd
    >>> fixes = pd.DataFrame({"user_id": 7, "lon": [9.0, 9.001, 9.0], "lat": [48.5, 48.5, 48.501]})
    >>> regions = regions_from_fixes(fixes, k=10, max_diameter="2km", crs="EPSG:32632")
    >>> regions.geometry.iloc[0].geom_type
    'Polygon'
    """
    recipe = _recipe(k, max_diameter, crs, unit, gap, (user_id, lon, lat, time))
    return foreseen(lambda: _regions(fixes, recipe), _READING)


def regions_from_batches(
    batches: Iterable[pd.DataFrame],
    *,
    k: int,
    max_diameter: float | str,
    crs: Any,
    unit: FixUnit = "user",
    gap: Any = None,
) -> geopandas.GeoDataFrame:
    """Turn a stream of fixes into regions, holding one batch at a time.

    Parameters
    ----------
    batches : iterable of DataFrame
        As `intake.sources.traces.read_fixes` makes them: columns `user_id`, `t`, `lon`, `lat`, and
        all of a user's fixes in one batch.
    k, max_diameter, crs, unit, gap
        As in `regions_from_fixes`, which gives the same regions of the whole table.
    """
    import pandas as pd

    recipe = _recipe(k, max_diameter, crs, unit, gap, _NAMES)
    made = (_regions(batch, recipe) for batch in batches)
    parts = list(foreseen_items(made, _READING))
    parts = [part for part in parts if len(part)] or parts[:1]
    if not parts:
        return _regions(pd.DataFrame(columns=_NAMES, dtype=object), recipe)
    if len({part["user_id"].dtype for part in parts}) > 1:
        # As objects, so that each id stays the value that it is.
        parts = [part.astype({"user_id": object}) for part in parts]
    regions = pd.concat(parts, ignore_index=True)
    codes, _ = _ranked(regions["user_id"])
    turn = regions["trajectory"].to_numpy() if unit == "trajectory" else np.zeros(len(codes))
    order = np.lexsort((turn, codes))
    if np.any((np.diff(codes[order]) == 0) & (np.diff(turn[order]) == 0)):
        raise InputError("a user's fixes came in two batches: each user must be whole in one")
    regions = regions.take(order).reset_index(drop=True)
    regions.attrs[UNIT_ATTRIBUTE] = unit
    return regions


def _recipe(
    k: Any, max_diameter: Any, crs: Any, unit: Any, gap: Any, names: tuple[str, str, str, str]
) -> _Recipe:
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise InputTypeError(Argument("k"), f" must be a whole number of fixes, got {k!r}")
    if k < 1:
        raise InputError(Argument("k"), f" must be at least 1, got {k}: a region needs a fix")
    target = _metric_crs(crs)
    exact = positive_length(max_diameter, name="max_diameter", crs=target)
    diameter = float(exact)
    if Fraction(diameter) > exact:
        diameter = math.nextafter(diameter, 0.0)
    if unit not in get_args(FixUnit):
        raise PrivacyError(Argument("unit", repr(unit)), " is unknown: use 'user' or 'trajectory'")
    trajectory = Argument("unit", "'trajectory'")
    if gap is None and unit == "trajectory":
        example = Argument("gap", "'20min'")
        raise InputError(trajectory, " needs a gap, for example ", example, argument="gap")
    if gap is not None and unit == "user":
        useless = Argument("gap", repr(gap)), " has no use with ", Argument("unit", "'user'")
        raise InputError(*useless, ": add ", trajectory, ", or leave it out")
    pause = None if gap is None else _microseconds(gap)
    return _Recipe(min(int(k), 1 << 62), diameter, target, unit, pause, *names)


def _metric_crs(value: Any) -> CRS:
    if value is None:
        raise _unmetric(Argument("crs"), " is missing: distances need a projected CRS")
    crs = read_crs(value)
    label = f"{crs_label(crs)} ({crs.name})"
    if crs.is_geographic:
        raise _unmetric(f"{label} is geographic: degrees are not distances")
    if not (crs.is_projected or crs.is_engineering):
        raise _unmetric(f"{label} is not a projected CRS")
    if _is_world_mercator(crs):
        raise _unmetric(
            f"{label} stretches lengths away from the equator: its metres are not metres on the "
            f"ground"
        )
    return crs


def _unmetric(*why: Part) -> CRSError:
    zone = InPython(", for example Grid.around(lon, lat, ...).crs, the UTM zone")
    return CRSError(*why, "; use a projected one", zone, argument="crs")


def _is_world_mercator(crs: CRS) -> bool:
    """Say whether a CRS is Web Mercator, or a Mercator not made for a strip of the Earth."""
    for part in filter(None, (crs, crs.source_crs, *crs.sub_crs_list)):
        method = part.coordinate_operation.method_name if part.coordinate_operation else ""
        area = part.area_of_use
        if "Pseudo Mercator" in method:
            return True
        if method.startswith("Mercator") and (area is None or area.north - area.south > 60):
            return True
    return False


def _microseconds(gap: Any) -> int:
    import pandas as pd

    given = Argument("gap", repr(gap))
    remedy = "write a time with its unit, for example '20min' or '1h'"
    if isinstance(gap, int | float):
        raise InputTypeError(given, f" has no unit: {remedy}")
    try:
        pause = pd.Timedelta(gap)
    except (ValueError, TypeError):
        raise InputError(given, f" is not a time: {remedy}") from None
    if pd.isna(pause) or pause <= pd.Timedelta(0):
        raise InputError(given, f" must be longer than 0: {remedy}")
    return int(pause / pd.Timedelta(microseconds=1))


def _usable(fixes: Any, recipe: _Recipe) -> tuple[Floats, Floats, Any, Ints | None, Any]:
    """Return the rows that can be used: x and y in the recipe's CRS, ranked users, times."""
    import geopandas
    import pandas as pd

    if not isinstance(fixes, pd.DataFrame):
        raise InputTypeError(
            Argument("fixes"),
            f" must be a pandas DataFrame or a GeoDataFrame of points, got "
            f"{type(fixes).__name__}: convert it, for example with to_pandas()",
        )
    users = _column(fixes, recipe.user_id, "user_id")
    when = None
    if recipe.gap is not None:
        when = columns.microseconds_of(_column(fixes, recipe.time, "time"))
    if isinstance(fixes, geopandas.GeoDataFrame):
        x, y, crs = _points(fixes)
    else:
        lon, lat = places_asked(recipe.lon, recipe.lat, list(fixes.columns))
        x = columns.numbers_of(_column(fixes, lon, "lon"))
        y = columns.numbers_of(_column(fixes, lat, "lat"))
        crs = read_crs(4326)
    codes, names = _ranked(users)
    good = (codes >= 0) & np.isfinite(x) & np.isfinite(y)
    if crs.is_geographic:
        good &= on_the_globe(x, y)
    if when is not None:
        good &= when != columns.NO_TIME
    x, y = _projected(x[good], y[good], crs, recipe.crs)
    here = (np.abs(x) < _ON_EARTH) & (np.abs(y) < _ON_EARTH)
    good[good] = here
    # Adding 0 turns -0 into 0: equal coordinates must have equal bits.
    return x[here] + 0.0, y[here] + 0.0, codes[good], None if when is None else when[good], names


def _column(fixes: pd.DataFrame, name: Any, argument: str) -> pd.Series[Any]:
    if not isinstance(name, str):
        raise InputTypeError(Argument(argument), f" must name a column, got {name!r}")
    one_column(name, list(fixes.columns), argument, each_row=False)
    return fixes[name]


def _points(fixes: geopandas.GeoDataFrame) -> tuple[Floats, Floats, CRS]:
    import shapely

    try:
        geometry = fixes.geometry
    except AttributeError:
        raise InputError(
            Argument("fixes"), " has no active geometry: call set_geometry first"
        ) from None
    if geometry.crs is None:
        raise CRSError(
            Argument("fixes"), " has no CRS: call set_crs, for example set_crs(4326) for lon/lat"
        )
    kinds = shapely.get_type_id(geometry.array)
    x, y = np.full((2, len(kinds)), np.nan)
    points = (kinds == 0) & ~shapely.is_empty(geometry.array)
    places = np.asarray(geometry.array)[points]
    x[points], y[points] = shapely.get_x(places), shapely.get_y(places)
    return x, y, geometry.crs


def _ranked(users: pd.Series[Any]) -> tuple[Ints, Any]:
    """Return each row's user as a rank (-1 for none), and the users in order."""
    import pandas as pd

    if isinstance(users.dtype, pd.CategoricalDtype):
        ranks, names = _ranked(pd.Series(users.cat.categories))
        return np.append(ranks, -1)[users.cat.codes], names
    codes = user_numbers(users, None, None)
    assert codes is not None
    rows = np.flatnonzero(codes >= 0)[::-1]
    first = np.full(codes.max(initial=-1) + 1, -1)
    first[codes[rows]] = rows  # backwards: what stays is the first row of each
    there = np.flatnonzero(first >= 0)
    names = users.iloc[first[there]]
    order = _in_order(names)
    ranks = np.full(len(first) + 1, -1)  # the last one is that of no user
    ranks[there[order]] = np.arange(len(order))
    return ranks[codes], names.take(order)


def _in_order(names: pd.Series[Any]) -> Ints:
    """Return the order of distinct users: numbers, then text, then others; or by their one type."""
    if names.dtype == object:
        keys = [_sort_key(name) for name in names]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    return np.asarray(names.array.argsort(), np.int64)


def _sort_key(name: Any) -> tuple[Any, ...]:
    """Return what any two users are compared by: never values of different kinds."""
    if isinstance(name, str):
        return 1, str(name)
    kind = type(name).__name__
    if isinstance(name, Integral) and not isinstance(name, bool):
        return 0, _rounded(name), "", int(name)
    if isinstance(name, Number) and not isinstance(name, bool):
        return 0, _rounded(name), kind, repr(name)
    return 2, kind, name.isoformat() if isinstance(name, date) else repr(name)


def _rounded(number: Any) -> float:
    """Return a real number's nearest float, infinite where there is none; 0 for others."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except (TypeError, ValueError):
        return 0.0


def _projected(x: Floats, y: Floats, source: CRS, target: CRS) -> tuple[Floats, Floats]:
    """Return places in the target CRS, point by point; infinite where there is none."""
    if same_crs(source, target):
        return x, y
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    def part(cut: slice) -> tuple[Floats, Floats]:
        # A Transformer of its own: they are not to be shared between threads.
        transformer = Transformer.from_crs(source, target, always_xy=True)
        there: tuple[Floats, Floats] = transformer.transform(x[cut], y[cut])
        return there

    ends = np.linspace(0, len(x), (n_workers() if len(x) > 50_000 else 1) + 1).astype(int)
    cuts = [slice(a, b) for a, b in pairwise(ends)]
    try:
        parts = _in_threads(part, cuts)
    except ProjError:
        raise CRSError(
            f"fixes in {crs_label(source)} cannot be taken to {crs_label(target)}"
        ) from None
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _in_threads(work: Callable[[Any], Any], tasks: list[Any]) -> list[Any]:
    if len(tasks) < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(n_workers()) as pool:
        return list(pool.map(work, tasks))


def _groups(codes: Ints, when: Ints | None, gap: int | None) -> tuple[Any, Ints, Ints]:
    """Return the rows in order of group, where groups start (and the end), and their numbers.

    A group is a user, or a user's trajectory; numbers count each user's groups from 0.
    """
    if when is not None:
        order: Any = np.lexsort((when, codes))
    elif np.all(codes[1:] >= codes[:-1]):
        order = slice(None)
    else:
        order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    new_user = np.append(True, sorted_codes[1:] != sorted_codes[:-1])[: len(codes)]
    new_group = new_user
    if when is not None:
        new_group = new_user | np.append(True, np.diff(when[order]) > gap)[: len(codes)]
    starts = np.flatnonzero(new_group)
    first_of_user = np.flatnonzero(new_user[starts])
    repeats = np.diff(np.append(first_of_user, len(starts)))
    numbers = np.arange(len(starts)) - np.repeat(first_of_user, repeats)
    return order, np.append(starts, len(codes)), numbers


def _kept_fixes(x: Floats, y: Floats, bounds: Ints, recipe: _Recipe) -> tuple[Floats, Ints]:
    """Return the fixes that each group keeps, one group after the other, and where each starts."""
    from dpregions.extraction import density as _density

    sizes = np.diff(bounds)
    room = np.minimum(sizes, recipe.k)
    slots = np.cumsum(room) - room
    out, counts = np.empty((room.sum(), 2)), np.zeros(len(sizes), np.int64)

    def part(cut: tuple[int, int]) -> None:
        groups = slice(*cut)
        mine = bounds[cut[0] : cut[1] + 1]
        half, whole = recipe.diameter / 2, recipe.diameter
        _density.extract(x, y, mine, recipe.k, half, whole, slots[groups], out, counts[groups])

    # Several tasks a worker, of about equally many fixes, so that none waits for the last.
    goals = np.linspace(0, bounds[-1], 8 * n_workers() + 1)
    ends = np.unique(np.searchsorted(bounds, goals))
    _in_threads(part, list(pairwise(ends.tolist())))
    offsets = np.append(0, np.cumsum(counts))
    rows = np.arange(offsets[-1]) + np.repeat(slots - offsets[:-1], counts)
    return out[rows], offsets


def _regions(fixes: Any, recipe: _Recipe) -> geopandas.GeoDataFrame:
    import geopandas
    import shapely

    x, y, codes, when, names = _usable(fixes, recipe)
    order, bounds, numbers = _groups(codes, when, recipe.gap)
    kept, offsets = _kept_fixes(x[order], y[order], bounds, recipe)
    who = {"user_id": names.take(codes[order][bounds[:-1]]).reset_index(drop=True)}
    if recipe.unit == "trajectory":
        who["trajectory"] = numbers
    sets = shapely.from_ragged_array(shapely.GeometryType.MULTIPOINT, kept, (offsets,))
    regions = geopandas.GeoDataFrame(who, geometry=shapely.convex_hull(sets), crs=recipe.crs)
    regions.attrs[UNIT_ATTRIBUTE] = recipe.unit
    return regions
