"""A few regions in every form that the intake takes."""

from __future__ import annotations

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from shapely import LineString, MultiPoint, Point, Polygon, box

from dpregions import EulerHistogram, Grid

GRID = Grid(0, 0, 1, n_rows=4, n_cols=5)


UTM = Grid(447_000, 4_418_000, 100, n_rows=20, n_cols=20, crs=32650)


SHAPES = np.array(
    [
        box(0.5, 0.5, 1.5, 1.5),
        Point(2, 2),
        LineString([(0, 3), (4.5, 3.5)]),
        Polygon([(1, 0.2), (4.9, 1), (3, 3.7)]),
        MultiPoint([(0.1, 0.1), (0.9, 2.1), (3, 1)]),
    ]
)


def histogram(source, grid=GRID, **options):
    return EulerHistogram.from_regions(source, grid, **options)


def geoseries(crs=None):
    return geopandas.GeoSeries(SHAPES, crs=crs)


def wkb():
    return [shape.wkb for shape in SHAPES]


def arrow_table():
    return pa.table({"user_id": [1, 2, 3, 4, 5], "geometry": pa.array(wkb(), pa.binary())})
