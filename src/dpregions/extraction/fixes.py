"""GPS fixes -> regions of frequent visitation: the function that users call, and its streams.

What a table of fixes becomes is in `hulls.py`, the choices that are public in `recipe.py`. Files
are read by `intake/sources/traces.py`, and Spark's tables by `intake/sources/spark_fixes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.choices import FixUnit
from dpregions.errors import InputError
from dpregions.extraction.hulls import regions_of
from dpregions.extraction.recipe import NAMES, Recipe
from dpregions.intake.fix_tables import ranked
from dpregions.intake.sources.spark_fixes import is_spark, regions_by_user
from dpregions.intake.units import UNIT_ATTRIBUTE
from dpregions.unforeseen import foreseen, foreseen_items

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

extras.need("curator")

_READING = "reading the fixes"


def regions_from_fixes(
    fixes: Any,
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
) -> Any:
    """Turn each user's GPS fixes into one convex region where the user mostly is.

    The mode is the fix where a Gaussian kernel density (Scott's rule) of the user's fixes is
    greatest. The region is the convex hull of the `k` fixes nearest the mode, without those
    farther from it than half of `max_diameter`: a polygon, a segment or a point.

    Parameters
    ----------
    fixes : DataFrame, GeoDataFrame or Spark DataFrame
        One row for each fix: columns `lon` and `lat` in degrees (WGS 84), or in a GeoDataFrame
        points with their CRS. Rows that cannot be used are left out, in silence: where columns
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
    geopandas.GeoDataFrame, or a Spark DataFrame of Spark's fixes
        `user_id` and `geometry`, sorted by user, and for trajectories `trajectory`, their
        number in order of time. ``attrs["dpregions_unit"]`` holds the unit. Secret, as the
        fixes are. On Spark the same regions as WKB, in no order; the column `geometry` holds CRS
        and unit in its metadata, where `release` finds them. Nothing runs before it is asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> fixes = pd.DataFrame({"user_id": 7, "lon": [9.0, 9.001, 9.0], "lat": [48.5, 48.5, 48.501]})
    >>> regions = regions_from_fixes(fixes, k=10, max_diameter="2km", crs="EPSG:32632")
    >>> regions.geometry.iloc[0].geom_type
    'Polygon'
    """
    recipe = Recipe.of(k, max_diameter, crs, unit, gap, (user_id, lon, lat, time))
    if is_spark(fixes):
        work = partial(regions_of, recipe=recipe.with_our_columns(), workers=1)
        return regions_by_user(fixes, recipe.columns, work, recipe.crs, unit)
    return foreseen(lambda: regions_of(fixes, recipe), _READING)


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

    recipe = Recipe.of(k, max_diameter, crs, unit, gap)
    made = (regions_of(batch, recipe) for batch in batches)
    parts = list(foreseen_items(made, _READING))
    parts = [part for part in parts if len(part)] or parts[:1]
    if not parts:
        return regions_of(pd.DataFrame(columns=NAMES, dtype=object), recipe)
    if len({part["user_id"].dtype for part in parts}) > 1:
        # As objects, so that each id stays the value that it is.
        parts = [part.astype({"user_id": object}) for part in parts]
    regions = pd.concat(parts, ignore_index=True)
    codes, _ = ranked(regions["user_id"])
    turn = regions["trajectory"].to_numpy() if unit == "trajectory" else np.zeros(len(codes))
    order = np.lexsort((turn, codes))
    if np.any((np.diff(codes[order]) == 0) & (np.diff(turn[order]) == 0)):
        raise InputError("a user's fixes came in two batches: each user must be whole in one")
    regions = regions.take(order).reset_index(drop=True)
    regions.attrs[UNIT_ATTRIBUTE] = unit
    return regions
