"""CSV tables of regions: a column of WKT, or a longitude and a latitude a row (a point).

Read as leniently as tables of fixes: a row that is no region counts for nothing. A file whose
first line names no columns is refused without quoting it: it may be a record.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.arrow_regions import RegionStream
from dpregions.crs import read_crs
from dpregions.errors import InputError
from dpregions.geometries import decoded_text
from dpregions.io import tables
from dpregions.io.requests import Request

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray
    from pyproj import CRS

WKT_NAMES = ("geometry", "geom", "wkt")
PLACE_NAMES = (("lon", "lat"), ("longitude", "latitude"))


def open_csv(path: Path, request: Request) -> RegionStream:
    """Open a CSV file, which carries no CRS: places are WGS 84 unless `crs` is given."""
    import pyarrow as pa

    request.refuse_useless("CSV", "lon", "lat")
    with tables.opened(path) as (file, _):
        names = list(file.schema.names)
    wkt, places = _columns(path, names, request)
    ids = [] if request.user_id is None else [_named(path, names, "user_id", request.user_id)]
    fields = [*(pa.field(name, pa.string()) for name in ids), pa.field("geometry", pa.binary())]
    if "geometry" in ids:
        raise InputError(f"user_id={request.user_id!r} is the column of regions: name another")
    schema = pa.schema(fields)
    met = tables.Skipped()
    batches = _batches(path, ids, places or [wkt or ""], schema, request, met)
    # What the first chunk tells of the file is told when it is opened.
    batches = chain([first for first in [next(batches, None)] if first], batches)
    carried = read_crs(4326) if places and request.crs is None else None
    stream = request.stream(batches, schema, ids, "geometry", carried)
    stream.skipped_rows = lambda: met.count
    return stream


def _columns(path: Path, names: list[str], request: Request) -> tuple[str | None, list[str]]:
    """Return the column of WKT, or those of longitude and latitude."""
    if request.lon is not None and request.lat is not None:
        if request.geometry is not None:
            raise InputError("give geometry=, or lon= and lat=, not both")
        pairs = (("lon", request.lon), ("lat", request.lat))
        return None, [_named(path, names, argument, name) for argument, name in pairs]
    if request.geometry is not None:
        return _named(path, names, "geometry", request.geometry), []
    for name in WKT_NAMES:
        for there in names:
            if there.lower() == name:
                return there, []
    for pair in PLACE_NAMES:
        if all(name in names for name in pair):
            return None, list(pair)
    raise InputError(
        f"{path}: its first line names no column of regions{_why(path)} Name the column of WKT "
        f"by geometry=, or those of places by lon= and lat="
    )


def _named(path: Path, names: list[str], argument: str, name: str) -> str:
    times = names.count(name)
    if times == 1:
        return name
    if times > 1:
        raise InputError(f"{argument}={name!r} names several columns of {path}")
    remedy = " Use user_id=None if each row is its own user" if argument == "user_id" else ""
    raise InputError(f"{argument}={name!r} is not in the first line of {path}{_why(path)}{remedy}")


def _why(path: Path) -> str:
    """Return what the first line suggests, and a full stop; nothing of the line itself."""
    openly: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with openly(path, "rb") as file:
        line = file.readline(1 << 16)
    for mark, name in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars")):
        if line.count(mark) > line.count(b","):
            return f": fields are separated by {name}, it seems, and must be by commas."
    return ": is there a line of names at the top?"


def _batches(
    path: Path,
    ids: list[str],
    geometry: list[str],
    schema: pyarrow.Schema,
    request: Request,
    met: tables.Skipped,
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    done, total = 0, path.stat().st_size
    for chunk, skipped in tables.stream(path, [*ids, *geometry]):
        met.count += skipped
        if not done and skipped and not chunk.num_rows:
            raise InputError(
                f"{path}: its rows have more or fewer fields than its first line has names. Text "
                f'with commas, such as WKT, must be in quotes ("), and decimals have points'
            )
        if len(geometry) == 2:
            x, y = (tables.numbers(chunk[name]) for name in geometry)
            if not done:
                _refuse_no_places(path, geometry, x, y, request.crs)
            wkb = _points(x, y)
        else:
            wkb = _from_wkt(chunk[geometry[0]].to_pylist())
            if not done:
                _refuse_no_wkt(path, geometry[0], wkb)
        users = [pa.array([text or None for text in chunk[name].to_pylist()]) for name in ids]
        users = [column.cast(pa.string()) for column in users]
        done += chunk.nbytes
        yield pa.record_batch([*users, pa.array(wkb, pa.binary())], schema=schema)
        request.show(0.99 * done / total)
    request.show(1.0)


def _points(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> list[bytes | None]:
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


def _refuse_no_wkt(path: Path, name: str, wkb: list[bytes | None]) -> None:
    """Refuse a column that cannot be one of WKT: nothing in its first chunk can be read."""
    if all(value is None for value in wkb):
        raise InputError(
            f"geometry={name!r} of {path} holds no WKT, as far as its first rows tell: WKT is "
            f"text such as POLYGON ((...)) or POINT (9 48.5)"
        )


def _refuse_no_places(
    path: Path, names: list[str], x: NDArray[np.float64], y: NDArray[np.float64], crs: CRS | None
) -> None:
    """Refuse columns that cannot be those of places: nothing in the first chunk is one."""
    columns = f"lon={names[0]!r} and lat={names[1]!r} of {path}"
    if not np.any(np.isfinite(x) & np.isfinite(y)):
        raise InputError(
            f"{columns} hold no numbers, as far as the first rows tell: decimals have points, "
            f"as in 48.5"
        )
    in_degrees = crs is None or (crs.is_geographic and crs.axis_info[0].unit_name == "degree")
    if in_degrees and not np.any((np.abs(x) <= 180) & (np.abs(y) <= 90)):
        raise InputError(
            f"{columns} hold no degrees, as far as the first rows tell: if they are metres, say of "
            f"which CRS by crs=, and if they are exchanged, exchange them"
        )
