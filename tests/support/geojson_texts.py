"""GeoJSON written by hand, and what is read of it."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import shapely

from dpregions.errors import InputError
from dpregions.intake.sources import geojson
from dpregions.intake.sources.geojson import open_geojson
from dpregions.intake.sources.requests import Request

POINT = '{"type": "Point", "coordinates": [9, 48.5]}'


HERE = shapely.Point(9, 48.5)


def feature(user="7", geometry=POINT):
    """Return a feature's text; its parts are texts too, so that they can be wrong."""
    return f'{{"type": "Feature", "properties": {{"user_id": {user}}}, "geometry": {geometry}}}'


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def collection(*features, before="", after=""):
    listed = b",\n".join(map(as_bytes, features))
    head = f'{{{before} "type": "FeatureCollection", "features": ['.encode()
    return head + listed + f"]{after}}}\n".encode()


def sequence(*features):
    return b"".join(as_bytes(text) + b"\n" for text in features)


@contextmanager
def opened(content, block=geojson.BLOCK_BYTES, **asked):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.geojson")
        path.write_bytes(as_bytes(content))
        yield open_geojson(path, Request(**asked), block)


def read(content, block=geojson.BLOCK_BYTES, user_id="user_id"):
    """Return the rows of a file: id and WKB, or WKB alone."""
    with opened(content, block, user_id=user_id) as regions:
        return [tuple(row.values()) for batch in regions for row in batch.to_pylist()]


def refused(content, block=geojson.BLOCK_BYTES, kind=InputError):
    with pytest.raises(kind) as caught:
        read(content, block)
    assert caught.value.__context__ is None
    return str(caught.value)


SHAPES = [
    shapely.Point(9, 48.5),
    shapely.Point(9, 48.5, 300),
    shapely.LineString([(9, 48), (9.5, 48.25), (10, 48)]),
    shapely.box(9, 48, 10, 49),
    shapely.box(9, 48, 10, 49).difference(shapely.box(9.25, 48.25, 9.5, 48.5)),
    shapely.MultiPoint([(9, 48), (10, 49)]),
    shapely.MultiLineString([[(9, 48), (10, 49)], [(9, 49), (10, 48)]]),
    shapely.MultiPolygon([shapely.box(9, 48, 9.5, 48.5), shapely.box(10, 48, 10.5, 48.5)]),
    shapely.GeometryCollection([shapely.Point(9, 48), shapely.box(9, 48, 10, 49)]),
    shapely.GeometryCollection([]),
    shapely.from_wkt("POLYGON Z ((9 48 1, 10 48 2, 10 49 3, 9 48 1))"),
    None,
]
