"""Parquet on Spark: a session at a master's address, and the regions of files that it reads.

Nothing is read here but schemas. Spark's own messages may quote a record, and are not passed on.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpregions import extras
from dpregions.crs import one_crs
from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.intake.arrow import geometry_field
from dpregions.intake.ids import one_column
from dpregions.intake.units import UNIT_ATTRIBUTE, stated_unit

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

    from dpregions.intake.sources.requests import Request


class SparkRegions:
    """Regions in files that Spark reads, for `release`; closing it ends the session.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
    crs : pyproj.CRS or None
    attrs : dict
        ``attrs["dpregions_unit"]`` says what one region stands for, where the file does.
    """

    note = None

    def __init__(self, frame: Any, crs: CRS | None, unit: str | None = None) -> None:
        self.frame, self.crs = frame, crs
        self.attrs = {} if unit is None else {UNIT_ATTRIBUTE: unit}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.frame.sparkSession.stop()


def is_spark(regions: Any) -> bool:
    """Whether regions are a Spark DataFrame; Spark is not imported to tell."""
    return type(regions).__module__.startswith("pyspark.sql.") and hasattr(regions, "mapInArrow")


def schema_of(frame: Any) -> pyarrow.Schema:
    """Return the Arrow schema of a Spark DataFrame, with what its columns' metadata say.

    Spark carries metadata with a column, also into files: so a CRS and a unit get here.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = None
    with suppress(Exception):
        schema = to_arrow_schema(frame.schema, timezone="UTC")
    if schema is None:
        raise InputTypeError(
            "the DataFrame has columns that Arrow does not know: select the ids and WKB, with "
            "Sedona ST_AsBinary(geometry), before it is released"
        )
    unit = None
    for i, field in enumerate(frame.schema):
        words = {key: value for key, value in field.metadata.items() if isinstance(value, str)}
        unit = words.get(UNIT_ATTRIBUTE, unit)
        schema = schema.set(i, schema.field(i).with_metadata(words))
    return schema.with_metadata({} if unit is None else {UNIT_ATTRIBUTE: unit})


def session_at(master: str) -> Any:
    """Return a Spark session at a master's URL; refuse where there is no Spark, Java or master."""
    with extras.named():
        from pyspark.sql import SparkSession
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("dpregions")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        return builder.getOrCreate()
    except Exception as error:
        kind = type(error).__name__
    raise InputError(
        Argument("master", repr(master)),
        f" gives no Spark session ({kind}): Java 17 or later must be on the path, and the address "
        f"one that Spark knows (local[2], spark://host:7077, yarn)",
    )


def open_on_spark(source: str, request: Request) -> SparkRegions:
    """Open Parquet on Spark: a file, a folder of files or any address that Spark reads.

    A file on this machine tells its CRS; of others, Spark does not read what their metadata say.
    """
    import pyarrow.parquet as pq

    request.refuse_useless("Spark, which reads Parquet")
    assert request.master is not None
    carried, path, geometry, unit = None, Path(source), request.geometry, None
    if path.is_file():
        schema = None
        with suppress(Exception):
            schema = pq.read_schema(path)
        if schema is None:
            raise InputError(f"{path} is cut short, damaged or not Parquet", argument="source")
        geometry, carried = geometry_field(schema, geometry)
        unit = stated_unit(schema.metadata)
    # Spark has a folder and a default file system of its own.
    address = f"file://{path.resolve()}" if path.exists() else source
    session = session_at(request.master)
    try:
        crs = one_crs(carried, request.crs, "the regions")
        return _opened(session, address, request, geometry, crs, unit)
    except BaseException:
        session.stop()
        raise


def _opened(
    session: Any,
    source: str,
    request: Request,
    geometry: str | None,
    crs: CRS | None,
    unit: str | None,
) -> SparkRegions:
    try:
        frame = session.read.parquet(source)
        names = list(frame.columns)
    except Exception as error:
        failure = type(error).__name__
    else:
        failure = ""
    if failure:
        raise InputError(
            f"Spark cannot read the source as Parquet ({failure}): it takes files, folders and "
            f"addresses of Parquet alone",
            argument="source",
        )
    ids = request.id_columns(names, unit)
    if geometry is not None:
        one_column(geometry, names, "geometry")
        columns = [frame[f"`{name}`"] for name in ids]
        frame = frame.select(*columns, frame[f"`{geometry}`"].alias("geometry"))
    return SparkRegions(frame, crs, unit)
