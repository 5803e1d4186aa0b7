"""Layers as GeoJSON, CSV and GeoParquet, by pyarrow and shapely alone; all others by GDAL.

Owns how each format holds columns and geometries. Returns whole files: what writes them to a disk
finds out that it is full.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.crs import read_crs, reproject, same_crs
from dpregions.errors import CRSError, OutputError
from dpregions.geometry.layers import Layer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

BOUNDS = ("xmin", "ymin", "xmax", "ymax")
"""Where a geometry lies, in a CSV file, which has no geometries."""


def geojson(layer: Layer, name: str, statement: str | None = None, decimals: int = 7) -> bytes:
    """Return a layer as GeoJSON in WGS 84, as RFC 7946 wants; it has a CRS, or is in degrees."""
    import shapely

    fewer = shapely.transform(_in_degrees(layer), lambda xy: np.round(xy, decimals))
    shapes = np.asarray(shapely.orient_polygons(fewer))  # outer rings counter-clockwise
    head = {"name": name} | ({} if statement is None else {"description": statement})
    return _geojson(head, Layer(layer.columns, shapes, None))


def geojson_as_given(layer: Layer, name: str) -> bytes:
    """Return a layer as GeoJSON in its own CRS, which the file names where it is not WGS 84."""
    head: dict[str, Any] = {"name": name}
    if layer.crs is not None and not same_crs(layer.crs, read_crs("OGC:CRS84")):
        authority = layer.crs.to_authority()
        if authority is None:
            raise CRSError(
                f"GeoJSON has no words for {layer.crs.name}: write .parquet, or .gpkg",
                argument="crs",
            )
        urn = "urn:ogc:def:crs:{}::{}".format(*authority)
        head["crs"] = {"type": "name", "properties": {"name": urn}}
    return _geojson(head, layer)


def _geojson(head: dict[str, Any], layer: Layer) -> bytes:
    import shapely

    listed = ",\n".join(
        f'{{"type": "Feature", "properties": {json.dumps(_plain(row))}, '
        f'"geometry": {shape or "null"}}}'
        for row, shape in zip(layer.rows(), shapely.to_geojson(layer.shapes), strict=True)
    )
    first = {"type": "FeatureCollection", **head}
    return f'{json.dumps(first)[:-1]}, "features": [\n{listed}\n]}}\n'.encode()


def _in_degrees(layer: Layer) -> NDArray[np.object_]:
    """Return geometries in WGS 84; what crosses the antimeridian is cut there, in two parts."""
    import shapely

    degrees, source = read_crs("OGC:CRS84"), layer.crs
    if source is None:
        return layer.shapes
    found = shapely.transform(layer.shapes, lambda xy: reproject(xy, source, degrees))
    xmin, _, xmax, _ = shapely.bounds(found).T
    for i in np.flatnonzero(xmax - xmin > 180):
        east = shapely.transform(found[i], lambda xy: xy + np.where(xy < 0, [360, 0], 0))
        parts = [shapely.intersection(east, shapely.box(at, -90, at + 180, 90)) for at in (0, 180)]
        parts[1] = shapely.transform(parts[1], lambda xy: xy - [360, 0])
        found[i] = shapely.union_all(parts)
    return np.asarray(found)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return values that JSON has: not a number is nothing there, and others are text."""
    return {name: _json_value(value) for name, value in row.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def table_json(layer: Layer) -> str:
    """Return the columns of a layer as JSON, an object for each row."""
    return json.dumps([_plain(row) for row in layer.rows()], default=str)


def table_csv(layer: Layer) -> bytes:
    """Return the columns of a layer as CSV, without geometries; empty where nothing is."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(layer.columns)
    writer.writerows(["" if v is None else v for v in row.values()] for row in layer.rows())
    return text.getvalue().encode()


def with_bounds(layer: Layer) -> Layer:
    """Return a layer with columns that say where each geometry lies, in the layer's CRS."""
    import shapely

    return layer.with_columns(**dict(zip(BOUNDS, shapely.bounds(layer.shapes).T, strict=True)))


def geoparquet(layer: Layer, metadata: dict[bytes, bytes] | None = None) -> memoryview:
    """Return a layer as GeoParquet, with more key-value metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import shapely

    kinds = np.unique(shapely.get_type_id(layer.shapes[~shapely.is_missing(layer.shapes)]))
    bounds = shapely.total_bounds(layer.shapes) if len(layer) else np.full(4, np.nan)
    column = {
        "encoding": "WKB",
        "crs": None if layer.crs is None else layer.crs.to_json_dict(),
        "geometry_types": [_KINDS[kind] for kind in kinds],
        **({"bbox": bounds.tolist()} if np.isfinite(bounds).all() else {}),
    }
    geo = {
        "version": "1.0.0",
        "primary_column": Layer.GEOMETRY,
        "columns": {Layer.GEOMETRY: column},
    }
    table = layer.arrow()
    plain = pa.schema([field.remove_metadata() for field in table.schema])
    known = {b"geo": json.dumps(geo).encode(), **(metadata or {})}
    content = io.BytesIO()
    pq.write_table(table.cast(plain).replace_schema_metadata(known), content, compression="zstd")
    return content.getbuffer()


_KINDS = (
    "Point", "LineString", "LineString", "Polygon",
    "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection",
)  # fmt: skip
"""GeoParquet's names of geometries, by shapely's numbers."""


def write_by_gdal(
    layer: Layer, target: Any, name: str, driver: str, kind: str = "Unknown", **options: str
) -> None:
    """Write a layer of a file by one of GDAL's drivers; needs the extra `curator`."""
    with extras.named():
        import pyogrio
    with warnings.catch_warnings():
        # A grid without CRS is a plane by choice.
        warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
        try:
            pyogrio.write_arrow(
                layer.arrow(),
                target,
                layer=name,
                driver=driver,
                geometry_name=Layer.GEOMETRY,
                geometry_type=kind,
                crs=None if layer.crs is None else _crs_for_gdal(layer.crs),
                layer_options=options,
            )
        except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
            raise OutputError(
                f"{name} could not be written as {driver}: is the disk full, or the folder closed "
                f"to you?"
            ) from error


def _crs_for_gdal(crs: CRS) -> str:
    code = crs.to_epsg()
    return crs.to_wkt("WKT1_GDAL") if code is None else f"EPSG:{code}"
