"""A table of fixes as arrays: places in their CRS, users in order, times.

Owns which rows of a table can be used and whose they are (the rule of `ids.py`). Rows that cannot
be used (NaN, no user, latitude 400) count for nothing, silently, be they all there are: what is
refused is about the call and the types of columns. No message holds a number of fixes or users.
"""

from __future__ import annotations

import math
from datetime import date
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.crs import on_the_globe, read_crs
from dpregions.errors import Argument, CRSError, InputError, InputTypeError
from dpregions.intake import columns
from dpregions.intake.ids import one_column, user_numbers
from dpregions.place_names import places_asked

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    from pyproj import CRS

    from dpregions.arrays import Bools, Floats, Ints


class FixTable(NamedTuple):
    """Fixes, one of each for each row. Secret."""

    x: Floats
    y: Floats
    crs: CRS
    users: Ints
    """Each row's user as a rank, -1 for none."""
    names: Any
    """The users in order."""
    when: Ints | None
    """Microseconds, or `columns.NO_TIME`; None where times are not read."""

    def usable(self) -> Bools:
        """Say which rows are a place of somebody, and have a time where times are read."""
        good = (self.users >= 0) & np.isfinite(self.x) & np.isfinite(self.y)
        if self.crs.is_geographic:
            good &= on_the_globe(self.x, self.y)
        if self.when is not None:
            good &= self.when != columns.NO_TIME
        return good


def fix_table(fixes: Any, names: dict[str, str]) -> FixTable:
    """Return a DataFrame of fixes as arrays.

    Parameters
    ----------
    fixes : DataFrame or GeoDataFrame
    names : dict
        The table's names of our columns `user_id`, `lon`, `lat` and, where times are read, `t`.
    """
    import geopandas
    import pandas as pd

    if not isinstance(fixes, pd.DataFrame):
        raise InputTypeError(
            Argument("fixes"),
            f" must be a pandas DataFrame, a GeoDataFrame of points or a Spark DataFrame, got "
            f"{type(fixes).__name__}: convert it, for example with to_pandas()",
        )
    users = _column(fixes, names["user_id"], "user_id")
    when = None
    if "t" in names:
        when = columns.microseconds_of(_column(fixes, names["t"], "time"))
    if isinstance(fixes, geopandas.GeoDataFrame):
        x, y, crs = _points(fixes)
    else:
        lon, lat = places_asked(names["lon"], names["lat"], list(fixes.columns))
        x = columns.numbers_of(_column(fixes, lon, "lon"))
        y = columns.numbers_of(_column(fixes, lat, "lat"))
        crs = read_crs(4326)
    return FixTable(x, y, crs, *ranked(users), when)


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


def ranked(users: pd.Series[Any]) -> tuple[Ints, Any]:
    """Return each row's user as a rank (-1 for none), and the users in order."""
    import pandas as pd

    if isinstance(users.dtype, pd.CategoricalDtype):
        ranks, names = ranked(pd.Series(users.cat.categories))
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
