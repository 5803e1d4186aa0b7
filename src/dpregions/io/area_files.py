"""Files of areas to ask about: GeoParquet and GeoJSON read here, all other formats by GDAL.

Areas are public: a file that cannot be read is refused in the words of whatever found out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.crs import read_crs
from dpregions.errors import Argument, DPRegionsError, InputError
from dpregions.geometry.layers import Layer
from dpregions.readable_files import refuse_unreadable

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

_PARQUET = (".parquet", ".geoparquet", ".pq")
_GEOJSON = (".geojson", ".json")


def read_areas(path: Path, option: str | Argument) -> Layer:
    """Return the areas of a file, whatever its format, or say why an option cannot have it."""
    if not path.is_dir():  # some formats are folders
        refuse_unreadable(path, named=f"{option} {path}")
    suffix = path.suffix.lower()
    read = _parquet if suffix in _PARQUET else _geojson if suffix in _GEOJSON else _by_gdal
    try:
        found = read(path)
    except DPRegionsError:
        raise
    except Exception as error:  # readers of many formats raise as many kinds
        first = (str(error).splitlines() or [""])[0]
        raise InputError(option, f" {path} cannot be read: {first}") from None
    if found is None:
        raise InputError(option, f" {path} has no geometries")
    if Layer.GEOMETRY in found.columns:
        raise InputError(option, f" {path} has a second column {Layer.GEOMETRY!r}: rename it")
    return found


def _parquet(path: Path) -> Layer | None:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    stated = json.loads((table.schema.metadata or {}).get(b"geo", b"{}"))
    name = stated.get("primary_column")
    if name not in table.column_names:
        return None
    column = stated["columns"][name]
    if column["encoding"] != "WKB":
        raise ValueError(f"its geometries are encoded as {column['encoding']}: write them as WKB")
    # GeoParquet without a word on the CRS is in degrees.
    crs = column.get("crs", "OGC:CRS84")
    return _layer(table, name, None if crs is None else read_crs(crs))


def _by_gdal(path: Path) -> Layer | None:
    with extras.named():
        import pyogrio
    meta, table = pyogrio.read_arrow(path)
    name = meta["geometry_name"] or "wkb_geometry"
    if meta["geometry_type"] is None or name not in table.column_names:
        return None
    return _layer(table, name, None if meta["crs"] is None else read_crs(meta["crs"]))


def _layer(table: pyarrow.Table, name: str, crs: CRS | None) -> Layer:
    import shapely

    wkb = np.array(table.column(name).to_pylist(), object)
    columns = {other: table.column(other) for other in table.column_names if other != name}
    return Layer(columns, np.asarray(shapely.from_wkb(wkb), object), crs)


def _geojson(path: Path) -> Layer:
    import shapely

    found = json.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError("it is not GeoJSON")
    listed = found["features"] if found.get("type") == "FeatureCollection" else [found]
    features = [
        feature if feature.get("type") == "Feature" else {"geometry": feature} for feature in listed
    ]
    texts = [
        None if feature.get("geometry") is None else json.dumps(feature["geometry"])
        for feature in features
    ]
    shapes = np.empty(len(texts), object)
    shapes[:] = shapely.from_geojson(np.array(texts, object))
    rows = [feature.get("properties") or {} for feature in features]
    if any("id" in feature for feature in features):
        pairs = zip(features, rows, strict=True)
        rows = [{"id": feature.get("id"), **row} for feature, row in pairs]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return Layer(columns, shapes, _crs(found))


def _column(values: list[Any]) -> pyarrow.Array:
    """Return properties as an Arrow array; of several kinds, or nested, as text."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except pa.ArrowInvalid:
        array = None
    if array is not None and not pa.types.is_nested(array.type):
        return array
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(texts, pa.string())


def _crs(found: dict[str, Any]) -> CRS | None:
    """Return the CRS that a file names as GeoJSON of 2008 did; without one it is WGS 84."""
    member = found.get("crs", ...)
    if member is ...:
        return read_crs("OGC:CRS84")
    if member is None:
        return None
    name = member["properties"]["name"]
    parts = re.fullmatch(r"urn:(?:x-)?ogc:def:crs:(\w+):[\d.]*:(\w+)", name, re.I)
    return read_crs(f"{parts[1]}:{parts[2]}" if parts else name)
