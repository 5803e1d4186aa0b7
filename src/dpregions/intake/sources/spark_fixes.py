"""Fixes on Spark: each user's rows are brought together, and work that is done here is done there.

Spark lays each user's rows side by side; workers read them batch by batch, and hold a batch and
the largest user. What is made of a user is a function of that user's rows in any order, so a task
that is retried, or run twice at once, makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.intake.arrow import wkb_metadata
from dpregions.intake.ids import user_numbers
from dpregions.intake.sources import tables
from dpregions.intake.sources.spark_files import is_spark as is_spark
from dpregions.intake.sources.spark_files import schema_of
from dpregions.intake.sources.spark_workers import Workers
from dpregions.intake.units import TRAJECTORY, UNIT_ATTRIBUTE
from dpregions.place_names import places_asked
from dpregions.unforeseen import READING, foreseen

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    from pyproj import CRS

    from dpregions.arrays import Ints
    from dpregions.choices import FixUnit

BATCH_FIXES = 1 << 17
"""Fixes after which a worker works on the users that are whole."""


@dataclass(frozen=True)
class Extraction:
    """What a worker does with a table of whole users, and with how many fixes at once. Public."""

    work: Callable[[pd.DataFrame], geopandas.GeoDataFrame]
    batch_fixes: int = BATCH_FIXES


def regions_by_user(
    fixes: Any,
    columns: dict[str, str],
    work: Callable[[pd.DataFrame], geopandas.GeoDataFrame],
    crs: CRS,
    unit: FixUnit,
) -> Any:
    """Return what `work` makes of each user's fixes as a Spark DataFrame of ids and WKB.

    Parameters
    ----------
    fixes : pyspark.sql.DataFrame
    columns : dict
        Its names of our columns `user_id`, `lon`, `lat` and, where times are read, `t`.
    work : callable
        Makes regions of a table of our columns; users are whole numbers there.
    crs, unit
        Of the regions that it makes.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql import types

    lon, lat = places_asked(columns["lon"], columns["lat"], fixes.columns)
    columns = columns | {"lon": lon, "lat": lat}
    tables.declared_types(schema_of(fixes), columns)
    workers = Workers(fixes.sparkSession)
    rows = fixes.select(*[fixes[f"`{theirs}`"].alias(ours) for ours, theirs in columns.items()])
    user, kind = sql.col("user_id"), rows.schema["user_id"].dataType
    if isinstance(kind, types.StringType):
        user = user.cast("binary")  # a collation may take two texts for one
    rows = rows.filter(user.isNotNull()).repartition(user).sortWithinPartitions(user)
    made = [types.StructField("user_id", kind)]
    if unit == "trajectory":
        made.append(types.StructField(TRAJECTORY, types.LongType()))
    marks = wkb_metadata(crs) | {UNIT_ATTRIBUTE: unit}
    made.append(types.StructField("geometry", types.BinaryType(), metadata=marks))
    return workers.map(rows, extracted, Extraction(work), types.StructType(made))


def extracted(job: Extraction, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the regions of Arrow batches of fixes in which each user's rows follow each other."""
    for table, users in _whole_users(batches, job.batch_fixes):
        yield from foreseen(partial(_extracted, job.work, table, users), READING)


def _whole_users(batches: Iterator[Any], least: int) -> Iterator[tuple[Any, Ints]]:
    """Yield tables of whole users, of that many fixes or more, and their users as numbers."""
    import pyarrow as pa

    held: list[Any] = []
    n, enough = 0, least
    for batch in batches:
        held.append(batch)
        n += batch.num_rows
        if n < enough:
            continue
        table = pa.Table.from_batches(held)
        users = _numbers(table)
        ends = np.flatnonzero(users[1:] != users[:-1])
        if len(ends):  # the last user may go on
            whole = int(ends[-1]) + 1
            yield table[:whole], users[:whole]
            held, n = table[whole:].to_batches(), n - whole
        enough = max(least, 2 * n)  # so that one user of very many is looked at few times
    if n:
        table = pa.Table.from_batches(held)
        yield table, _numbers(table)


def _numbers(table: Any) -> Ints:
    """Return each row's user as a number, -1 for none."""
    numbers = user_numbers(table.column("user_id"), None, None)
    assert numbers is not None
    return numbers


def _extracted(work: Callable[[pd.DataFrame], Any], table: Any, users: Ints) -> list[Any]:
    """Return the regions of a table of fixes as Arrow batches."""
    import pandas as pd
    import pyarrow as pa

    known = np.flatnonzero(users >= 0)
    rows = table.take(known)
    read = {"lon": tables.numbers, "lat": tables.numbers, "t": tables.times}
    fixes = {name: read[name](rows.column(name)) for name in rows.column_names if name in read}
    regions = work(pd.DataFrame({"user_id": users[known], **fixes}))
    numbers, first = np.unique(users, return_index=True)
    first = first[np.searchsorted(numbers, regions["user_id"].to_numpy())]
    made = {"user_id": table.column("user_id").take(first)}
    if TRAJECTORY in regions:
        made[TRAJECTORY] = pa.array(regions[TRAJECTORY].to_numpy(), pa.int64())
    made["geometry"] = pa.array(regions.geometry.to_wkb(), pa.binary())
    return pa.table(made).to_batches()
