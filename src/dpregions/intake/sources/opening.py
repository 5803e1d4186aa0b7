"""`open_regions`: one call for every source of regions.

Owns the choice of the adaptor. Whatever is wrong with a source is said when it is opened or
read, so before any noise is drawn, and never in the words of a driver: those may quote records,
SQL or passwords.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions import extras
from dpregions.crs import read_crs
from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.intake.arrow import arrow_batches, arrow_reader, geometry_field, is_arrow
from dpregions.intake.sources.requests import Request
from dpregions.intake.units import protected, stated_unit
from dpregions.readable_files import refuse_unreadable
from dpregions.unforeseen import foreseen

if TYPE_CHECKING:
    from dpregions.choices import Unit
    from dpregions.intake.arrow import RegionStream

extras.need("curator")

GEOPARQUET = (".parquet", ".pq", ".geoparquet")
_ADAPTORS = {
    GEOPARQUET: "geoparquet.open_geoparquet",
    (".gpkg",): "geopackage.open_geopackage",
    (".fgb",): "flatgeobuf.open_flatgeobuf",
    (".geojson", ".json", ".geojsonl", ".geojsons"): "geojson.open_geojson",
    (".shp", ".zip"): "shapefiles.open_shapefile",
    (".csv", ".csv.gz"): "csv_regions.open_csv",
    (".duckdb", ".ddb", ".db"): "duckdb_files.open_duckdb",
}
"""By the endings of names, the module beside this one and its function that opens such a file."""

_KNOWN = (
    "GeoParquet (.parquet), GeoPackage (.gpkg), FlatGeobuf (.fgb), GeoJSON (.geojson, .geojsonl), "
    "Shapefile (.shp, .zip), CSV (.csv, .csv.gz), DuckDB (.duckdb, .db, with a query), "
    "postgresql://... and duckdb:///... URLs"
)


def open_regions(
    source: Any,
    *,
    sql: str | None = None,
    layer: str | None = None,
    geometry: str | None = None,
    user_id: str | None = "user_id",
    unit: Unit | None = None,
    crs: Any = None,
    lon: str | None = None,
    lat: str | None = None,
    master: str | None = None,
    by: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Any:
    """Open a file, a database or an Arrow stream of regions, to be read in chunks.

    Parameters
    ----------
    source : path, URL or Arrow data
        GeoParquet, GeoPackage, FlatGeobuf, GeoJSON, Shapefile (also zipped), CSV with WKT or
        with longitude and latitude, a DuckDB file or ``duckdb:///file.db``, PostGIS as
        ``postgresql://host/database``, or anything with ``__arrow_c_stream__``.
    sql : str, optional
        The query, for databases: it returns a geometry column and the users.
    layer : str, optional
        The layer, in a file with several.
    geometry : str, optional
        The column of regions. By default the one that the source marks as geometry.
    user_id : str or None
        The column of user ids, under which `release` finds them. None: each row is its own
        user.
    unit : {"user", "record", "trajectory"}, optional
        What one region stands for. For "trajectory" the column `trajectory` is read too.
    crs : optional
        The CRS of a source that carries none.
    lon, lat : str, optional
        For CSV: the columns of places, in degrees (WGS 84) unless `crs` is given. Each row is
        then a point.
    master : str, optional
        Open Parquet on Spark at this address ("local[2]", "spark://host:7077") instead of here:
        a file, a folder or any address that Spark reads.
    by : str, optional
        The column of groups, which `release` finds under this name (`release(..., by=)`).
    progress : callable, optional
        Called with the share of the source that was read, 0 to 1.

    Returns
    -------
    RegionStream, or SparkRegions where `master` is given
        For `release` and `EulerHistogram.from_regions`; can be read once. Only the columns
        above are read.

    Examples
    --------
    >>> import dpregions as dpr
    >>> dpr.synthetic.regions(50).to_parquet("city.parquet")
    >>> regions = dpr.open_regions("city.parquet")
    >>> regions
    <RegionStream of user_id, geometry, EPSG:32632>
    >>> release = dpr.release(regions, dpr.synthetic.grid(), epsilon=1, max_diameter="2km")
    """
    names = {"sql": sql, "layer": layer, "geometry": geometry, "user_id": user_id}
    for name, value in {**names, "lon": lon, "lat": lat, "master": master, "by": by}.items():
        if value is not None and not isinstance(value, str):
            raise InputTypeError(Argument(name), f" must be text, got {type(value).__name__}")
    protected(user_id, unit)
    if (lon is None) != (lat is None):
        both = Argument("lon"), " and ", Argument("lat")
        raise InputError(*both, " go together: name both columns")
    stated = None if crs is None else read_crs(crs)
    request = Request(user_id, geometry, stated, sql, layer, lon, lat, progress, unit, master, by)
    if master is not None:
        from dpregions.intake.sources.spark_files import open_on_spark

        return open_on_spark(os.fspath(source), request)
    return open_requested(source, request)


def open_requested(source: Any, request: Request) -> RegionStream:
    """Open a source as a checked request asks; what fails here is about the source."""
    source = source.strip() if isinstance(source, str) else source
    try:
        stream = foreseen(lambda: _opened(source, request), "opening the source")
        if isinstance(source, str | PathLike):
            stream.reopen = partial(open_requested, source, request)
        return stream
    except (InputError, InputTypeError) as error:
        error.argument = error.argument or "source"  # what is not about an option is about this
        raise


def _opened(source: Any, request: Request) -> RegionStream:
    if isinstance(source, str) and re.match(r"[a-z][a-z0-9+]+://", source, re.I):
        return _open_url(source, request)
    if isinstance(source, str | PathLike):
        _refuse_secrets(os.fspath(source))
        return _open_file(Path(source), request)
    return _open_arrow(source, request)


def _refuse_secrets(source: str) -> None:
    """Refuse what is no file and may hold a password, which no message must quote."""
    if re.search(r"@|://|passw|pwd|^[a-z][\w+.-]+:", source, re.I) and not os.path.isfile(source):
        raise InputError(
            f"the source is no file, nor a URL that can be opened, and is not shown as it may hold "
            f"a password; there are {_KNOWN}"
        )


def _open_url(url: str, request: Request) -> RegionStream:
    scheme = url.partition("://")[0].lower()
    if scheme.partition("+")[0] in ("postgresql", "postgres"):
        from dpregions.intake.sources.postgis import open_postgis

        return open_postgis(url, request)
    if scheme == "duckdb":
        from dpregions.intake.sources.duckdb_files import open_duckdb

        place = url.partition("://")[2].removeprefix("/")
        _refuse_secrets(place.replace("?", "@"))  # a file has no parameters
        return open_duckdb(place, request)
    # The URL itself may hold a password.
    raise InputError(f"a source at {scheme}:// cannot be opened; there are {_KNOWN}")


def _open_file(path: Path, request: Request) -> RegionStream:
    name = path.name.lower()
    adaptor = next((to for endings, to in _ADAPTORS.items() if name.endswith(endings)), None)
    if adaptor is None:
        raise InputError(f"{path}: its name does not tell its format; there are {_KNOWN}")
    refuse_unreadable(path)
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: was it written to the end?")
    module, _, function = adaptor.partition(".")
    opened: RegionStream = getattr(import_module(f"dpregions.intake.sources.{module}"), function)(
        path, request
    )
    return opened


def _open_arrow(source: Any, request: Request) -> RegionStream:
    if not is_arrow(source):
        raise InputTypeError(
            f"a source is a path, a URL or Arrow data, not {type(source).__name__}"
        )
    if hasattr(source, "set_crs") or hasattr(source, "iloc"):
        raise InputTypeError(
            f"a {type(source).__name__} is no source to be opened: pass it on as it is"
        )
    request.refuse_useless("Arrow data")
    reader = arrow_reader(source)
    marked = stated_unit(reader.schema.metadata)
    ids = request.id_columns(reader.schema.names, marked)
    geometry, carried = geometry_field(reader.schema, request.geometry)
    return request.stream(arrow_batches(reader), reader.schema, ids, geometry, carried, marked)
