"""CSV tables of regions: a column of WKT, or a longitude and a latitude a row (a point).

Each row is read by itself: one that is no region counts for nothing, and no row decides what
becomes of another. A file whose first line names no columns is refused without quoting it: it
may be a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpregions.crs import read_crs
from dpregions.errors import Argument, InputError
from dpregions.intake.arrow import RegionStream
from dpregions.intake.columns import decoded
from dpregions.intake.geometries import decoded_text
from dpregions.intake.ids import one_column
from dpregions.intake.sources import csv_blocks, tables
from dpregions.intake.sources.requests import Request
from dpregions.place_names import place_columns

if TYPE_CHECKING:
    import pyarrow

    from dpregions.arrays import Floats

WKT_NAMES = ("geometry", "geom", "wkt")


def open_csv(path: Path, request: Request) -> RegionStream:
    """Open a CSV file, which carries no CRS: places are WGS 84 unless `crs` is given."""
    import pyarrow as pa

    request.refuse_useless("CSV", "lon", "lat")
    names = csv_blocks.column_names(path, request.csv_block)
    geometry = _columns(path, names, request)
    ids = [
        _named(path, names, request.argument_of(name), name) for name in request.id_columns(None)
    ]
    fields = [pa.field(name, pa.large_string()) for name in ids]
    schema = pa.schema([*fields, pa.field("geometry", pa.large_binary())])
    met: Counter[str] = Counter()
    batches = _batches(path, ids, geometry, schema, request, met)
    carried = read_crs(4326) if len(geometry) == 2 and request.crs is None else None
    stream = request.stream(batches, schema, ids, "geometry", carried)
    stream.skipped_rows = lambda: met["left_out"]
    return stream


def _columns(path: Path, names: list[str], request: Request) -> list[str]:
    """Return the column of WKT, or the two of longitude and latitude."""
    named = partial(_named, path, names)
    if request.lon is not None and request.lat is not None:
        if request.geometry is not None:
            both = Argument("lon", ""), " and ", Argument("lat", "")
            raise InputError("give ", Argument("geometry", ""), ", or ", *both, ", not both")
        return [named("lon", request.lon), named("lat", request.lat)]
    if request.geometry is not None:
        return [named("geometry", request.geometry)]
    for name in WKT_NAMES:
        for there in names:
            if there.lower() == name:
                return [named("geometry", there)]
    if (places := place_columns(names)) is not None:
        return list(places)
    raise InputError(
        f"{path}: its first line names no column of regions: {_why(path, names)} Name the column "
        "of WKT by ",
        *(Argument("geometry", ""), ", or those of places by "),
        *(Argument("lon", ""), " and ", Argument("lat", "")),
    )


def _named(path: Path, names: list[str], argument: str, name: str) -> str:
    one_column(name, names, argument, of=f" of {path}", why=_why(path, names))
    return name


def _why(path: Path, names: list[str]) -> str:
    """Return what the first line suggests, in a sentence: its names, unless it may be a record."""
    line = csv_blocks.first_line(path)
    for mark, name in ((b"\t", "tabs"), (b"|", "bars")):
        if line.count(mark) > max(line.count(b","), line.count(b";")):
            return f"fields are separated by {name}, it seems, and must be by commas or semicolons."
    return csv_blocks.names_in_words(names) or "is there a line of names at the top?"


def _batches(
    path: Path,
    ids: list[str],
    geometry: list[str],
    schema: pyarrow.Schema,
    request: Request,
    met: Counter[str],
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    done, total = 0, path.stat().st_size
    decimal = tables.decimal_mark(path)
    for chunk, left_out in tables.stream(path, [*ids, *geometry], block=request.csv_block):
        met["left_out"] += left_out  # exact, so for the curator's check alone
        if len(geometry) == 2:
            wkb = _points(*(tables.numbers(chunk[name], decimal) for name in geometry))
        else:
            wkb = _from_wkt(decoded(chunk[geometry[0]]).to_pylist())
        users = [tables.texts_of(chunk[name]) for name in ids]
        done += chunk.nbytes
        yield pa.record_batch([*users, pa.array(wkb, pa.large_binary())], schema=schema)
        request.show(0.99 * done / total)
    request.show(1.0)


def _points(lon: Floats, lat: Floats) -> list[bytes | None]:
    import shapely

    points = np.asarray(shapely.points(lon, lat), dtype=object)
    points[~(np.isfinite(lon) & np.isfinite(lat))] = None
    return list(shapely.to_wkb(points))


def _from_wkt(values: list[str | None]) -> list[bytes | None]:
    """Return WKB; None where text is no WKT, in silence."""
    import shapely

    shapes = decoded_text(values)
    with np.errstate(all="ignore"):  # GEOS compares NaN; numpy would warn of it
        return list(shapely.to_wkb(shapes))
