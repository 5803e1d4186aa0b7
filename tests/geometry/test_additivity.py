"""One record never changes another: through every reader, the whole is the sum of its users.

Each user's rows are read alone and in company, with ids and geometries of every odd kind that a
format can hold. The counts of any company are the sum of its members' counts, and reading never
raises, warns or prints.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import math
import sqlite3
import struct
import warnings
from decimal import Decimal
from uuid import UUID

import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions import EulerHistogram
from dpregions.intake.arrow import RegionStream
from dpregions.intake.ids import IdColumns

GRID = dpr.Grid(0, 0, 1, n_rows=6, n_cols=6)


# Geometries: what is a region, and what is none.


def nested(depth: int) -> bytes:
    """Return a point within collections within collections, as WKB."""
    head = struct.pack("<BII", 1, 7, 1)
    return head * depth + shapely.Point(1.5, 1.5).wkb


def curve(kind: int) -> bytes:
    """Return an empty curve or surface, or a collection of one: 18 bytes that shapely refuses."""
    return struct.pack("<BII", 1, 7, 1) + struct.pack("<BII", 1, kind, 0)


REGIONS = [
    shapely.box(0.5, 0.5, 1.5, 1.5).wkb,
    shapely.Point(2.5, 2.5).wkb,
    shapely.LineString([(0.5, 3.5), (4.5, 3.6)]).wkb,
    shapely.to_wkb(shapely.Point(4.5, 0.5, 7), output_dimension=3),
    shapely.to_wkb(
        shapely.set_srid(shapely.box(3, 3, 4.9, 4.9), 4326), byte_order=0, include_srid=True
    ),
    shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)]).wkb,
    shapely.Polygon([(0, 0), (3, 3), (3, 0), (0, 3)]).wkb,
    nested(3),
    nested(1_000),
    curve(8),
    curve(10),
    curve(12),
    struct.pack("<BII", 1, 8, 0),
    struct.pack("<BII", 1, 3, 2**32 - 1),
    shapely.Point(math.nan, 1).wkb,
    shapely.Polygon().wkb,
    shapely.box(1.2, 1.2, 1.4, 1.4).wkb[:-3],
    b"",
    b"\x00\x01\x02",
    None,
]

WKT = [
    "POLYGON ((0.5 0.5, 1.5 0.5, 1.5 1.5, 0.5 0.5))",
    "POINT (2.5 2.5)",
    "point z (4.5 0.5 7)",
    "MULTIPOINT ((1 1), (5 5))",
    "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (2 2, 3 3))",
    "GEOMETRYCOLLECTION (" * 1_000 + "POINT (1 1)" + ")" * 1_000,
    "GEOMETRYCOLLECTION (CIRCULARSTRING EMPTY)",
    "CURVEPOLYGON EMPTY",
    "POLYGON ((0 0, 1 1, 1 0))",
    "POINT (nan 1)",
    "POINT (1e999 1)",
    "POINT EMPTY",
    "POINT (1 1",
    'say "hi",\nyou',
    "Jos\udce9",
    "",
]

PLACE = {"type": "Point", "coordinates": [2.5, 2.5]}
GEOJSON = [
    {"type": "Polygon", "coordinates": [[[0.5, 0.5], [1.5, 0.5], [1.5, 1.5], [0.5, 0.5]]]},
    PLACE,
    {"type": "Point", "coordinates": [4.5, 0.5, 7]},
    {"type": "MultiPoint", "coordinates": [[1, 1], [5, 5]]},
    {"type": "GeometryCollection", "geometries": [PLACE, {"type": "Point", "coordinates": [1, 1]}]},
    {"type": "CircularString", "coordinates": [[0, 0], [1, 1], [2, 0]]},
    {"type": "Point", "coordinates": [math.nan, 1]},
    {"type": "Point", "coordinates": ["1", 1]},
    {"type": "Point", "coordinates": []},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]},
    {"type": "Topology"},
    [1, 2],
    "POINT (1 1)",
    None,
]


# Ids: each entry is one user, in all spellings that a format can hold.

WHOLE = [[1], [2], [2**53], [2**53 + 1], [2**62], [-1]]
TEXTS = [
    *(["1"], ["1.0"], ["01"], ["x"], ["X"], [" x"], ["é"], ["e\u0301"], ["NaN"], ["None"]),
    *(["2020-01-01"], ["2020/01/01"], ["true"], ["\\x80"], ["a\\b"], ['a"b'], ["a,b"], ["a\nb"]),
]
SURROGATES = [["\ud800"], ["\udc80"], ["\ud801"]]
NUMBERS = [[1, 1.0], [1.5], [2**53], [2**53 + 1], [2**63], [10**30], [0, -0.0]]
OBJECTS = [
    *NUMBERS,
    *TEXTS,
    *SURROGATES,
    *([True], [b"1"], [Decimal("0.1")], [0.1], [UUID(int=1)], [("a", 1), ("a", 1.0)]),
    *([datetime.date(2020, 1, 1)], [pd.Timestamp("2020-01-01")], [math.inf], [np.int8(7), 7]),
]
NO_IDS = [None, "", math.nan, pd.NA, Decimal("sNaN"), [], {}]


def parquet(path, ids, shapes, kind):
    table = pa.table({"user_id": pa.array(ids, kind), "geometry": pa.array(shapes, pa.binary())})
    pq.write_table(table, path, row_group_size=3)


def arrow(kind):
    def read(folder, ids, shapes):
        table = pa.table(
            {"user_id": pa.array(ids, kind), "geometry": pa.array(shapes, pa.binary())}
        )
        return table.to_reader(max_chunksize=2)

    return read


def parquet_of(kind):
    def read(folder, ids, shapes):
        parquet(folder / "a.parquet", ids, shapes, kind)
        return dpr.open_regions(folder / "a.parquet")

    return read


def frame(folder, ids, shapes):
    column = pd.Series(np.empty(len(ids), object))
    for i, value in enumerate(ids):
        column[i] = value
    return geopandas.GeoDataFrame({"user_id": column}, geometry=list(shapes))


def wkb_and_ids(folder, ids, shapes):
    return list(shapes)


def geojson_text(ids, shapes):
    features = [
        {"type": "Feature", "properties": {"user_id": user, "other": i}, "geometry": shape}
        for i, (user, shape) in enumerate(zip(ids, shapes, strict=True))
    ]
    for feature in features[::2]:  # which is nobody's business but its own
        feature |= {"crs": {"type": "name", "properties": {"name": "EPSG:3857"}}, "features": []}
    return [json.dumps(feature) for feature in features]


def geojson(folder, ids, shapes):
    features = ",\n".join(geojson_text(ids, shapes))
    text = f'{{"type": "FeatureCollection", "features": [{features}], "crs": null}}'
    (folder / "a.geojson").write_text(text, encoding="utf-8")
    return dpr.open_regions(folder / "a.geojson")


def geojson_lines(folder, ids, shapes):
    text = "\n".join(geojson_text(ids, shapes)) + "\n"
    (folder / "a.json").write_text(text or "\n", encoding="utf-8")
    return dpr.open_regions(folder / "a.json")


def geopackage(folder, ids, shapes):
    """Write cells as they are: SQLite's columns hold values of any type."""
    path = folder / "a.gpkg"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        db.executescript(
            """
            PRAGMA application_id = 1196444487;
            CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT, srs_id INTEGER PRIMARY KEY,
                organization TEXT, organization_coordsys_id INTEGER, definition TEXT,
                description TEXT);
            INSERT INTO gpkg_spatial_ref_sys VALUES ('none', -1, 'NONE', -1, 'undefined', '');
            CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT,
                identifier TEXT, description TEXT, last_change TEXT, min_x REAL, min_y REAL,
                max_x REAL, max_y REAL, srs_id INTEGER);
            INSERT INTO gpkg_contents VALUES ('homes', 'features', 'homes', '', '', 0, 0, 6, 6, -1);
            CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT,
                geometry_type_name TEXT, srs_id INTEGER, z INTEGER, m INTEGER);
            INSERT INTO gpkg_geometry_columns VALUES ('homes', 'geom', 'GEOMETRY', -1, 2, 2);
            CREATE TABLE homes (fid INTEGER PRIMARY KEY, geom BLOB, user_id);
            """
        )
        head = b"GP\x00\x01" + struct.pack("<i", -1)
        rows = [(None if s is None else head + s, i) for i, s in zip(ids, shapes, strict=True)]
        db.executemany("INSERT INTO homes (geom, user_id) VALUES (?, ?)", rows)
    db.close()
    return dpr.open_regions(path)


def csv_of(name, opener):
    def read(folder, ids, shapes):
        with opener(
            folder / name, "wt", encoding="utf-8", errors="surrogateescape", newline=""
        ) as f:
            writer = csv.writer(f)
            writer.writerow(["user_id", "wkt"])
            writer.writerows(zip(ids, shapes, strict=True))
        return dpr.open_regions(folder / name)

    return read


def by_driver(suffix, dtype):
    def read(folder, ids, shapes):
        path = folder / f"a.{suffix}"
        frame = geopandas.GeoDataFrame(
            {"user_id": pd.Series(ids, dtype=dtype)}, geometry=shapely.from_wkb(np.array(shapes))
        )
        if not len(frame):
            return list(shapes)
        with warnings.catch_warnings():  # of the writer
            warnings.simplefilter("ignore")
            frame.to_file(path)
        return dpr.open_regions(path)

    return read


def duck(folder, ids, shapes):
    regions = pa.table(
        {"user_id": pa.array(ids, pa.int64()), "geom": pa.array(shapes, pa.binary())}
    )
    path = folder / "a.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as connection:
        connection.register("regions", regions)
        connection.execute("CREATE TABLE homes AS SELECT * FROM regions")
    return dpr.open_regions(path, sql="FROM homes")


def polars_frame(folder, ids, shapes):
    schema = {"user_id": polars.String, "geometry": polars.Binary}
    return polars.DataFrame({"user_id": ids, "geometry": shapes}, schema=schema)


SOUND = [shape for shape in REGIONS[:8] if shape is not None and shape != nested(3)][:3]
BYTES = [["é".encode()], ["é".encode("latin-1")], [b"\x00"], [b"\x00\x00"], [b"1"]]
EXACT = [[Decimal("1.10")], [Decimal("1.1") + Decimal("1e-30")], [Decimal(10) ** 20]]
DAYS = [[datetime.date(2020, 1, 1)], [datetime.date(2020, 1, 2)]]
OPENED = [entry for entry in TEXTS if entry != ["a\nb"]]

READERS = {
    "frame of objects": (frame, OBJECTS, NO_IDS, shapely.from_wkb(REGIONS[:7])),
    "list of WKB": (wkb_and_ids, OBJECTS, NO_IDS, REGIONS),
    "arrow, whole numbers": (arrow(pa.int64()), WHOLE, [None], REGIONS),
    "arrow, text": (arrow(pa.string()), TEXTS, [None, ""], REGIONS),
    "arrow, views": (arrow(pa.string_view()), TEXTS, [None, ""], REGIONS),
    "arrow, bytes": (arrow(pa.large_binary()), BYTES, [None, b""], REGIONS),
    "arrow, decimals": (arrow(pa.decimal128(38, 30 // 2)), EXACT[:1] + EXACT[2:], [None], REGIONS),
    "arrow, dates": (arrow(pa.date32()), DAYS, [None], REGIONS),
    "polars": (polars_frame, TEXTS, [None, ""], REGIONS),
    "GeoParquet, whole numbers": (parquet_of(pa.int64()), WHOLE, [None], REGIONS),
    "GeoParquet, text": (parquet_of(pa.string()), TEXTS, [None, ""], REGIONS),
    "GeoJSON": (geojson, [*NUMBERS, *TEXTS, *SURROGATES, [True]], [None, "", [], {}], GEOJSON),
    "GeoJSON, lines": (geojson_lines, [*NUMBERS, *TEXTS, *SURROGATES], [None, "", []], GEOJSON),
    "GeoPackage": (
        geopackage,
        [*WHOLE, [1.5], *TEXTS, [b"1"], [2.0**53 + 2]],
        [None, "", b""],
        REGIONS,
    ),
    "CSV": (csv_of("a.csv", open), [*TEXTS, ["Jos\udce9"], ["Jos\udce8"], ["\\xe9"]], [""], WKT),
    "CSV, zipped": (csv_of("a.csv.gz", gzip.open), [*TEXTS, ["Jos\udce9"]], [""], WKT),
    "FlatGeobuf, text": (by_driver("fgb", "str"), TEXTS, [None, ""], SOUND),
    "FlatGeobuf, whole numbers": (by_driver("fgb", "int64"), WHOLE, [], SOUND),
    "Shapefile, text": (by_driver("shp", "str"), [e for e in OPENED if e != [" x"]], [], SOUND[:1]),
    "Shapefile, whole numbers": (by_driver("shp", "int64"), WHOLE, [], SOUND[:1]),
    "DuckDB": (duck, WHOLE, [None], REGIONS),
}
"""By reader: how it is written and read, its users and their spellings, what is no id, regions."""


def counts(reader, folder, rows):
    """Return the counts of rows (an id, a geometry), read in that order."""
    ids, shapes = [user for user, _ in rows], [shape for _, shape in rows]
    source = reader(folder, ids, shapes)
    own_ids = reader is wkb_and_ids or isinstance(source, list)
    options = {"user_id": ids if own_ids else "user_id"}
    if isinstance(source, RegionStream) and source.crs is not None:
        return EulerHistogram.from_regions(source, IN_DEGREES, **options).counts
    return EulerHistogram.from_regions(source, GRID, **options).counts


IN_DEGREES = dpr.Grid.around(0.0, 0.0, side="1200km", cell_size="200km")


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_whole_is_the_sum_of_its_users(reader, data, tmp_path_factory, recwarn, capfd):
    read, users, no_ids, shapes = READERS[reader]
    folder = tmp_path_factory.mktemp("rows", numbered=True)
    row = st.sampled_from(range(len(shapes)))
    chosen = data.draw(
        st.lists(st.sampled_from(range(len(users))), min_size=1, max_size=5, unique=True)
    )
    rows = []
    for user in chosen:
        spelled = st.sampled_from(users[user])
        own = data.draw(st.lists(st.tuples(spelled, row), min_size=1, max_size=3))
        rows += [(user, i, shapes[shape]) for i, shape in own]
    if no_ids:
        nobodys = data.draw(st.lists(st.tuples(st.sampled_from(no_ids), row), max_size=2))
        rows += [(None, i, shapes[shape]) for i, shape in nobodys]
    rows = data.draw(st.permutations(rows))

    def of(*company):
        return counts(read, folder, [(i, shape) for user, i, shape in rows if user in company])

    alone = {user: of(user) for user in chosen}
    nobody = [(i, shape) for user, i, shape in rows if user is None]
    assert all(whole.max(initial=0) <= 1 for whole in alone.values())
    assert not counts(read, folder, nobody).any() if nobody else True
    assert np.array_equal(of(None, *chosen), sum(alone.values()))
    left_out = data.draw(st.sampled_from(chosen))
    others = [user for user in chosen if user != left_out]
    rest = sum((alone[user] for user in others), np.zeros_like(alone[left_out]))
    if others:
        assert np.array_equal(of(None, *others), rest)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("reader", READERS)
def test_all_spellings_of_an_id_are_one_user_and_no_two_ids_are(reader, tmp_path):
    """Each spelling of each id at the same place: there are as many regions as ids."""
    read, users, no_ids, shapes = READERS[reader]
    rows = [(i, shapes[0]) for user in users for i in user] + [(i, shapes[0]) for i in no_ids]
    assert counts(read, tmp_path, rows).max() == len(users)


def test_a_trajectory_is_told_by_both_of_its_columns():
    table = pa.table(
        {"user_id": [1, 1, 2], "trajectory": [0, 1, 0], "geometry": [shapely.Point(1, 1).wkb] * 3}
    )
    ids = IdColumns(("user_id", "trajectory"))
    assert EulerHistogram.from_regions(table, GRID, user_id=ids).counts.max() == 3
