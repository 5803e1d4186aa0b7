"""Intake: every input form, one region a user, the bound, and records that are trouble."""

from __future__ import annotations

import datetime
import io
import itertools
import math
import struct
import warnings

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from shapely import LineString, MultiPoint, Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.errors import (
    CRSError,
    DPRegionsError,
    InputError,
    InputTypeError,
    PrivacyError,
    UnforeseenError,
)
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of, read_outlines, read_unit
from support import strategies

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


def parquet_table():
    file = io.BytesIO()
    frame = geopandas.GeoDataFrame({"user_id": range(5)}, geometry=geoseries(crs=32650))
    frame.to_parquet(file)
    return pa.parquet.read_table(io.BytesIO(file.getvalue()))


class ArrowStream:
    """Anything with the Arrow stream protocol, of no type we know."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


FORMS = {
    "a GeoDataFrame": lambda: geopandas.GeoDataFrame(geometry=geoseries()),
    "a GeoDataFrame with its geometry under another name": lambda: geopandas.GeoDataFrame(
        {"home": geoseries()}, geometry="home"
    ),
    "a GeoSeries": geoseries,
    "a GeometryArray": lambda: geoseries().array,
    "a list": lambda: list(SHAPES),
    "a tuple": lambda: tuple(SHAPES),
    "an array": lambda: SHAPES,
    "a generator": lambda: (shape for shape in SHAPES),
    "a Series of geometries": lambda: pd.Series(SHAPES, dtype=object),
    "a list of WKB": wkb,
    "a list of geometries and WKB": lambda: [*wkb()[:2], *SHAPES[2:]],
    "a list of bytearrays and memoryviews": lambda: [
        bytearray(wkb()[0]),
        memoryview(wkb()[1]),
        *wkb()[2:],
    ],
    "an object array of WKB": lambda: np.array(wkb(), dtype=object),
    "a bytes array of WKB": lambda: np.array(wkb(), dtype="S"),
    "a Series of WKB": lambda: pd.Series(wkb()),
    "a DataFrame of WKB": lambda: pd.DataFrame({"n": range(5), "geometry": wkb()}),
    "an Arrow array": lambda: pa.array(wkb(), pa.binary()),
    "an Arrow chunked array": lambda: pa.chunked_array([wkb()[:2], wkb()[2:]], pa.binary()),
    "an Arrow array of large binaries": lambda: pa.array(wkb(), pa.large_binary()),
    "an Arrow table": arrow_table,
    "an Arrow table with its WKB under another name": lambda: arrow_table().rename_columns(
        ["user_id", "shape"]
    ),
    "an Arrow record batch": lambda: arrow_table().to_batches()[0],
    "an Arrow reader": lambda: arrow_table().to_reader(max_chunksize=2),
    "an Arrow stream of unknown type": lambda: ArrowStream(arrow_table()),
    "an Arrow stream without columns": lambda: ArrowStream(
        pa.chunked_array([wkb()[:2], wkb()[2:]], pa.binary())
    ),
    "a GeoDataFrame's Arrow stream": lambda: geopandas.GeoDataFrame(
        geometry=geoseries()
    ).to_arrow(),
    "a GeoSeries' Arrow array": lambda: geoseries().to_arrow(),
}


class TestForms:
    @pytest.mark.parametrize("form", FORMS)
    def test_every_form_gives_the_same_counts(self, form):
        assert histogram(FORMS[form]()) == histogram(list(SHAPES))

    @pytest.mark.parametrize("form", FORMS)
    def test_every_form_takes_an_array_of_ids(self, form):
        ids = np.array([1, 1, 2, 2, 2])
        assert histogram(FORMS[form](), user_id=ids) == histogram(list(SHAPES), user_id=ids)

    def test_trailing_zero_bytes_of_wkb_are_kept(self):
        points = [Point(0.5, 0.5), Point(1, 2), Point(2, 0)]  # 2.0 and 0.0 end in zero bytes
        array = np.array([p.wkb for p in points])
        assert array.dtype.kind == "S"
        assert histogram(array) == histogram(points)

    def test_a_geoparquet_file_read_by_pyarrow_keeps_its_crs(self):
        grid = Grid(0, 0, 1, 4, 5, crs=32650)
        assert histogram(parquet_table(), grid) == histogram(geoseries(crs=32650), grid)
        by_user = histogram(parquet_table(), grid, user_id="user_id")
        assert by_user == histogram(geoseries(crs=32650), grid)

    @pytest.mark.parametrize(
        "arrow",
        [
            lambda: geoseries(crs=32650).to_arrow(),
            lambda: geopandas.GeoDataFrame(geometry=geoseries(crs=32650)).to_arrow(),
            lambda: ArrowStream(geopandas.GeoDataFrame(geometry=geoseries(crs=32650)).to_arrow()),
        ],
    )
    def test_arrow_from_geopandas_keeps_its_crs(self, arrow):
        grid = Grid(0, 0, 1, 4, 5, crs=32650)
        assert histogram(arrow(), grid) == histogram(geoseries(crs=32650), grid)
        with pytest.raises(CRSError, match="the regions are in EPSG:32650, but the grid has no"):
            histogram(arrow())

    def test_a_reader_is_read_in_batches(self):
        parts = read_outlines(arrow_table().to_reader(max_chunksize=2), GRID, None)
        assert [len(make().offsets) - 1 for make in parts] == [2, 2, 1]

    def test_the_input_is_left_as_it_was(self):
        values = np.array([shapely.Point(1, 1).wkb, None, Point(2, 2)], dtype=object)
        before = values.copy()
        histogram(values)
        assert values.tolist() == before.tolist()

    @pytest.mark.parametrize(
        "source",
        [
            None,
            5,
            "POINT (1 1)",
            b"wkb",
            Point(1, 1),
            shapely.MultiPoint([(1, 1)]),
            np.array(["POINT (1 1)"]),
            pd.Series(["POINT (1 1)"], dtype="string"),
            np.zeros((3, 2)),
            pa.table({"a": [1, 2]}),
            pa.table({"a": [b"1"], "b": [b"2"]}),
            pa.array([1, 2]),
            pd.DataFrame({"x": [1.0]}),
            pd.Series([1.0]),
            geopandas.GeoDataFrame({"a": [1]}),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_what_is_no_input_is_refused_by_its_type(self, source):
        with pytest.raises(InputTypeError):
            histogram(source)

    @pytest.mark.parametrize("odd", ["POINT (1 1)", 5, [0, 0], np.zeros(2), {}, math.nan, pd.NA])
    def test_what_is_no_region_among_regions_counts_nowhere_by_itself(self, odd):
        assert histogram([*SHAPES, odd]) == histogram(SHAPES)
        assert not histogram([odd]).counts.any()

    def test_a_frame_of_pandas_is_read_by_its_columns_and_not_by_way_of_arrow(self):
        """Arrow infers one type for a column: a date before 1,000 times made one user of them."""
        times = [datetime.datetime(2020, 1, 1, 0, 0, i) for i in range(4)]
        ids = [datetime.date(2020, 1, 1), *times]
        for shapes in (SHAPES, wkb()):
            frame = pd.DataFrame({"user_id": ids, "geometry": pd.Series(shapes, dtype=object)})
            assert histogram(frame, user_id="user_id") == histogram(SHAPES)
            assert histogram(frame.rename(columns={"geometry": "wkb"})) == histogram(SHAPES)
        mixed = frame.assign(user_id=pd.Series(["a", b"a", 1, True, "\ud800"], dtype=object))
        assert histogram(mixed, user_id="user_id") == histogram(SHAPES)
        with pytest.raises(InputTypeError, match="column named geometry or geom or wkb"):
            histogram(frame.rename(columns={"geometry": "shape"}))

    def test_native_geoarrow_is_refused_with_the_remedy(self):
        arrow = geopandas.GeoDataFrame(geometry=[Point(1, 1)]).to_arrow(
            geometry_encoding="geoarrow"
        )
        with pytest.raises(InputTypeError, match=r"geoarrow.point: give WKB"):
            histogram(arrow)

    def test_a_geoparquet_column_that_was_left_out_is_refused(self):
        with pytest.raises(InputError, match="is no column: there are user_id"):
            histogram(parquet_table().select(["user_id"]), Grid(0, 0, 1, 4, 5, crs=32650))


class TestCRS:
    def frame(self):
        x, y = np.meshgrid(np.linspace(447_050, 448_900, 9), np.linspace(4_418_050, 4_419_900, 9))
        return geopandas.GeoSeries(
            shapely.buffer(shapely.points(x.ravel(), y.ravel()), 70), crs=32650
        )

    def test_regions_in_another_crs_are_reprojected(self):
        here = histogram(self.frame(), UTM)
        degrees = self.frame().to_crs(4326)
        assert histogram(degrees, UTM) == here
        assert histogram(degrees.to_frame("geometry").to_arrow(), UTM) == here
        assert histogram(degrees.to_wkb().tolist(), UTM, crs=4326) == here
        assert histogram(self.frame().to_crs(3857), UTM) == here
        assert here.counts.sum() > 81

    def test_a_degenerate_axis_order_is_x_then_y(self):
        place = geopandas.GeoSeries([Point(116.4, 39.93)], crs=4326)
        grid = Grid.around(116.4, 39.93, side=300, cell_size=100)
        assert histogram(place, grid).faces[1, 1] == 1

    def test_regions_without_a_crs_beside_a_grid_with_one(self):
        with pytest.raises(CRSError, match=r"carry no CRS, but the grid is in EPSG:32650.*crs="):
            histogram(list(SHAPES), UTM)
        with pytest.raises(CRSError, match=r"set_crs"):
            histogram(geoseries(), UTM)
        with pytest.raises(CRSError, match="carry no CRS"):
            histogram(arrow_table(), UTM)

    def test_regions_with_a_crs_beside_a_grid_without_one(self):
        message = r"the regions are in EPSG:4326, but the grid has no CRS.*Grid\(\.\.\., crs="
        with pytest.raises(CRSError, match=message):
            histogram(geoseries(crs=4326))
        with pytest.raises(CRSError, match=message):
            histogram(geoseries(crs=4326).array)
        with pytest.raises(CRSError, match=message):
            histogram(list(SHAPES), crs=4326)

    def test_two_crs_that_differ(self):
        with pytest.raises(CRSError, match="regions carry EPSG:32650, but crs=EPSG:4326 was given"):
            histogram(self.frame(), UTM, crs=4326)
        assert histogram(self.frame(), UTM, crs=32650) == histogram(self.frame(), UTM)

    def test_a_crs_that_cannot_be_read(self):
        with pytest.raises(CRSError, match="crs='nonsense' is no CRS"):
            histogram(list(SHAPES), UTM, crs="nonsense")

    def test_places_that_the_projection_does_not_have_count_nowhere(self):
        wild = [Point(400, 100), Point(math.inf, 0), Point(math.nan, 1), Point(1e300, 1), None]
        series = geopandas.GeoSeries([*wild, Point(116.39, 39.915)], crs=4326)
        assert histogram(series, UTM).counts.sum() == 1

    def test_no_regions_can_be_reprojected(self):
        assert not histogram(geopandas.GeoSeries([], crs=4326), UTM).counts.any()


class TestReadingOutlines:
    """`read_outlines`, the one function by which others read regions."""

    @pytest.mark.parametrize("batch", [1, 2, 5, None])
    @pytest.mark.parametrize("user_id", [None, [1, 1, 2, 3, 3]])
    def test_every_batch_size_gives_the_outlines_of_the_whole(self, user_id, batch):
        bound = Bound.of(GRID, 2, "shrink")
        whole = [make() for make in read_outlines(SHAPES, GRID, bound, user_id=user_id)]
        makers = list(read_outlines(SHAPES, GRID, bound, user_id=user_id, batch=batch))
        parts = [make() for make in reversed(makers)][::-1]  # in any order, and after the reading
        assert len(whole) == 1
        assert all(len(part.offsets) - 1 <= (batch or 5) for part in parts)
        assert np.array_equal(np.concatenate([part.xy for part in parts]), whole[0].xy)
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        assert np.array_equal(sizes, np.diff(whole[0].offsets))

    def test_the_unit_is_settled_before_a_row_is_read(self):
        table = arrow_table().replace_schema_metadata({"dpregions_unit": "trajectory"})
        bare = ArrowStream(table)
        with pytest.raises(PrivacyError, match="marked as one for each trajectory"):
            read_unit(bare, "user_id", None)
        shown, ids, unit = read_unit(ArrowStream(arrow_table()), "user_id", None)
        assert (ids, unit, shown.schema.names) == ("user_id", "user", ["user_id", "geometry"])
        assert read_unit(SHAPES, None, None)[1:] == (None, "record")

    def test_a_crs_on_one_side_is_refused_before_a_batch_is_asked_for(self):
        with pytest.raises(CRSError, match=r"the regions carry no CRS.* or give crs="):
            read_outlines(SHAPES, UTM, None)
        with pytest.raises(CRSError, match="the grid has no CRS"):
            read_outlines(geoseries(4326), GRID, None)

    def test_regions_are_reprojected_to_the_grids_crs(self):
        there = geopandas.GeoSeries([Point(447_050, 4_418_050)], crs=32650)
        (make,) = read_outlines(there.to_crs(4326), UTM, None)
        (near,) = make().xy.tolist()
        assert [v / (1 << 20) for v in near] == pytest.approx([0.5, 0.5], abs=1e-5)

    def test_what_nobody_foresaw_is_told_by_its_type_alone(self):
        class Broken:
            """A bound that fails where it is applied."""

            @property
            def steps(self):
                raise KeyError("Mrs Canary, 471")

        makers = list(read_outlines(SHAPES, GRID, Broken()))
        with pytest.raises(UnforeseenError, match=r"^reading the regions .*\(KeyError\)") as caught:
            makers[0]()
        assert "Canary" not in str(caught.value)
        assert caught.value.__context__ is None
        with pytest.raises(UnforeseenError, match="KeyError"):
            next(read_outlines(SHAPES, GRID, Broken(), user_id=["ann"] * len(SHAPES)))


class TestUsers:
    IDS = ("ann", "bob", "ann", "cem", "bob")

    def frame(self):
        return geopandas.GeoDataFrame({"user_id": list(self.IDS)}, geometry=geoseries())

    def test_one_region_a_user_counts(self):
        hist = histogram(self.frame(), user_id="user_id")
        assert hist.count(*GRID.bounds) == 3
        assert histogram(self.frame()).count(*GRID.bounds) == 5

    def test_a_column_and_an_array_of_ids_are_the_same(self):
        by_column = histogram(self.frame(), user_id="user_id")
        codes = [0, 1, 0, 2, 1]
        forms = [
            list(self.IDS),
            tuple(self.IDS),
            np.array(self.IDS),
            pd.Series(self.IDS, index=[9, 8, 7, 6, 5]),
            pd.Categorical(self.IDS),
            pa.array(self.IDS),
            pa.chunked_array([self.IDS[:2], self.IDS[2:]]),
            pa.compute.run_end_encode(pa.array(codes)),
            pl.Series(self.IDS),
            codes,
            np.array(codes, np.uint8),
            pd.array(codes, dtype="Int64"),
        ]
        for ids in forms:
            assert histogram(self.frame(), user_id=ids) == by_column
            assert histogram(list(SHAPES), user_id=ids) == by_column

    def test_arrow_gives_the_same_choice(self):
        table = pa.table({"user_id": list(self.IDS), "geometry": wkb()})
        expected = histogram(self.frame(), user_id="user_id")
        assert histogram(table, user_id="user_id") == expected
        assert histogram(table.to_reader(max_chunksize=2), user_id="user_id") == expected
        dictionary = table.set_column(0, "user_id", table["user_id"].dictionary_encode())
        assert histogram(dictionary, user_id="user_id") == expected

    @pytest.mark.parametrize("oversize", ["shrink", "drop"])
    def test_the_choice_does_not_depend_on_row_order(self, oversize):
        like_the_first = [box(0.5, 0.5, 1.5, 2.5), box(0.5, 0.5, 2.5, 1.5), Point(0.5, 0.5)]
        shapes = [*SHAPES, *like_the_first, None, Point(99, 99), Polygon()]
        ids = [1] * (len(shapes) - 1) + [2]
        bound = {"max_diameter": 2.5, "oversize": oversize}
        chosen = histogram(shapes, user_id=ids, **bound)
        assert chosen.count(*GRID.bounds) == 1
        rng = np.random.default_rng(0)
        for _ in range(30):
            order = rng.permutation(len(shapes))
            shuffled = [shapes[i] for i in order]
            assert histogram(shuffled, user_id=np.array(ids)[order], **bound) == chosen

    def test_the_choice_depends_on_the_users_own_rows_only(self):
        alone = histogram(SHAPES[:3], user_id=[7, 7, 7])
        together = histogram(SHAPES, user_id=[7, 7, 7, 8, 9])
        assert together == alone + histogram(SHAPES[3:])

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12),
        st.randoms(),
    )
    def test_every_user_with_a_place_counts_once_in_any_order(self, rows, random):
        ids = [user for user, _ in rows]
        shapes = [SHAPES[which] for _, which in rows]
        hist = histogram(shapes, user_id=ids)
        assert hist.count(*GRID.bounds) == len(set(ids))
        random.shuffle(rows)
        shuffled = histogram([SHAPES[w] for _, w in rows], user_id=[u for u, _ in rows])
        assert shuffled == hist

    def test_a_row_with_a_place_is_chosen_before_one_without(self):
        shapes = [None, Point(math.nan, 0), Point(50, 50), Point(0.5, 0.5), Polygon()]
        assert histogram(shapes, user_id=[1] * 5).faces[0, 0] == 1

    @pytest.mark.parametrize("x", [5, 5.5, -0.01])
    @pytest.mark.parametrize("turned", [False, True])
    def test_rows_beside_the_area_never_stand_in_for_one_inside(self, x, turned):
        """On its right or top side is beside it; 32 such rows, so that no lucky key decides."""
        y = np.arange(32) / 10
        places = shapely.points(y, x - 1 if x > 0 else x) if turned else shapely.points(x, y)
        shapes = [*places, Point(0.5, 0.5)]
        assert histogram(shapes, user_id=[1] * len(shapes)).faces[0, 0] == 1

    @pytest.mark.parametrize(
        "ids",
        [
            [None, "a", None, "b", math.nan],
            pl.Series([None, 1, None, 2, None]),
            pd.array([None, 1, None, 2, None], dtype="Int64"),
            pa.array([None, "a", None, "b", None]),
            pd.Series([pd.NA, "a", pd.NA, "b", pd.NA], dtype="string"),
            pd.to_datetime(["NaT", "2020-01-01", "NaT", "2020-01-02", "NaT"]),
            ["", "a", "", "b", None],
            pd.Series(["", "a", pd.NA, "b", ""], dtype="string"),
            pd.Categorical(["", "a", None, "b", ""]),
        ],
    )
    def test_rows_without_an_id_do_not_count(self, ids):
        assert histogram(SHAPES, user_id=ids) == histogram(SHAPES[[1, 3]])

    def test_null_ids_in_a_column_do_not_count(self):
        frame = geopandas.GeoDataFrame({"u": [None, "a", None, "b", None]}, geometry=geoseries())
        assert histogram(frame, user_id="u") == histogram(SHAPES[[1, 3]])
        table = pa.table({"u": pa.array([None, 1, None, 2, None]), "geometry": wkb()})
        assert histogram(table, user_id="u") == histogram(SHAPES[[1, 3]])

    @pytest.mark.parametrize(
        "ids",
        [
            pa.array(["", "a", None, "b", ""]),
            pa.array(["", "a", None, "b", ""]).dictionary_encode(),
            pa.array([b"", b"a", None, b"b", b""]),
        ],
        ids=lambda ids: str(ids.type),
    )
    def test_no_number_and_no_text_are_no_id_in_arrow_either(self, ids):
        table = pa.table({"u": ids, "geometry": wkb()})
        assert histogram(table, user_id="u") == histogram(SHAPES[[1, 3]])
        frame = geopandas.GeoDataFrame(
            {"u": pd.Series(ids, dtype=pd.ArrowDtype(ids.type))}, geometry=geoseries()
        )
        assert histogram(frame, user_id="u") == histogram(SHAPES[[1, 3]])

    @pytest.mark.parametrize(
        "ids",
        [
            np.arange(5.0),
            np.arange(5, dtype=np.float16),
            pd.array([1, 2, 3, 4, None], dtype="Float64"),
            pd.Series([0.0, 1, 2, 3, 4]).astype("category"),
            pa.array([0.0, 1, 2, 3, 4]),
            pa.array([0.0, 1, 2, 3, 4]).dictionary_encode(),
            pl.Series([0.0, 1, 2, 3, 4]),
            np.arange(5) + 0j,
            pa.array([[1]] * 5),
            pd.interval_range(0, 5),
        ],
        ids=lambda ids: f"{type(ids).__name__}-{getattr(ids, 'dtype', getattr(ids, 'type', ''))}",
    )
    def test_kinds_that_cannot_be_ids_are_refused_whatever_they_hold(self, ids):
        for few in (ids, ids[:0]):
            with pytest.raises(InputTypeError, match=r"cannot be ids.*whole numbers or text"):
                histogram(SHAPES[: len(few)], user_id=few)

    def test_a_missing_column_is_named_with_those_there_are(self):
        message = r"user_id='uid' is no column: there are user_id, geometry.*user_id=None"
        with pytest.raises(InputError, match=message):
            histogram(self.frame(), user_id="uid")
        with pytest.raises(InputError, match=message):
            histogram(arrow_table(), user_id="uid")

    def test_names_that_are_not_text_may_be_a_record_and_are_not_listed(self):
        frame = self.frame().rename(columns={"user_id": 48.4931})
        with pytest.raises(InputError, match="user_id='user_id' is no column") as caught:
            histogram(frame, user_id="user_id")
        assert "48" not in str(caught.value)

    @pytest.mark.parametrize("source", [geoseries, lambda: list(SHAPES), lambda: SHAPES])
    def test_a_column_name_needs_columns(self, source):
        with pytest.raises(InputError, match=r"user_id='user_id' names a column.*user_id=None"):
            histogram(source(), user_id="user_id")

    @pytest.mark.parametrize("ids", [[1], [], [1] * 6])
    def test_as_many_ids_as_regions_are_needed(self, ids):
        with pytest.raises(InputError, match="differ in length") as caught:
            histogram(SHAPES, user_id=ids)
        assert "5" not in str(caught.value)  # how many regions there are is secret

    @pytest.mark.parametrize(
        "ids",
        [5, object(), {1, 2, 3, 4, 5}, b"ids", np.zeros((5, 2))],
        ids=lambda value: type(value).__name__,
    )
    def test_what_is_no_column_of_ids_is_refused(self, ids):
        with pytest.raises(InputTypeError, match="user_id"):
            histogram(SHAPES, user_id=ids)

    def test_what_is_no_id_among_objects_counts_nowhere_by_itself(self):
        for odd in ([1], {}, object(), ((1, 2), 3), 1j):
            assert histogram(SHAPES, user_id=["a", odd, 2, odd, "b"]) == histogram(
                SHAPES[[0, 2, 4]]
            )

    def test_a_column_name_that_two_columns_share_is_refused(self):
        frame = geopandas.GeoDataFrame(
            [[1, 2, Point(1, 1)]], columns=["u", "u", "geometry"], geometry="geometry"
        )
        with pytest.raises(InputError, match="'u'"):
            histogram(frame, user_id="u")


def curve(kind, *points):
    """Return the WKB of a curve, which GEOS reads and shapely does not."""
    body = b"".join(struct.pack("<dd", *p) for p in points)
    return struct.pack("<BII", 1, kind, len(points)) + body


def line_to(x, y):
    with np.errstate(invalid="ignore"):  # GEOS compares; numpy sees the flag
        return LineString([(0, 0), (x, y)])


ARC = curve(8, (0, 0), (1, 1), (2, 0))
TROUBLE = {
    "null": None,
    "NaN": math.nan,
    "pandas' NA": pd.NA,
    "an empty point": Point(),
    "an empty polygon": Polygon(),
    "an empty collection": shapely.GeometryCollection(),
    "a collection of an empty point": shapely.GeometryCollection([Point()]),
    "a NaN point": Point(math.nan, 1),
    "a half NaN line": line_to(1, math.nan),
    "an infinite point": Point(math.inf, -math.inf),
    "a line to infinity": line_to(math.inf, 1),
    "the largest float": Point(1.7e308, 1.7e308),
    "a line across all floats": LineString([(-1.7e308, -1.7e308), (1.7e308, 1.7e308)]),
    "1e300": box(-1e300, -1e300, 1e300, 1e300),
    "far away": Point(1e7, 1e7),
    "further than 2**28 cells": LineString([(0, 0), (3e8, 3e8)]),
    "bytes that are no WKB": b"junk",
    "no bytes": b"",
    "WKB cut short": Point(1, 1).wkb[:-3],
    "WKB of a ring that is not closed": struct.pack("<BIII6d", 1, 3, 1, 3, 0, 0, 1, 1, 2, 0),
    "WKB that says it is endless": struct.pack("<BII", 1, 2, 2**31 - 1),
    "WKB of an arc": ARC,
    "WKB of a collection of an arc": struct.pack("<BII", 1, 7, 1) + ARC,
    "WKB of a curved polygon": struct.pack("<BII", 1, 10, 1)
    + curve(8, (0, 0), (1, 1), (2, 0), (1, -1), (0, 0)),
}


class TestRecordsThatAreTrouble:
    """Each maps to no contribution: nothing raised, warned or printed, the others unharmed."""

    @pytest.mark.parametrize("name", TROUBLE)
    @pytest.mark.parametrize("options", [{}, {"max_diameter": 1.5}])
    def test_in_a_list(self, name, options, capfd, recwarn):
        good = [Point(1, 1), box(0.5, 0.5, 1.5, 1.5)]
        expected = histogram(good, **options)
        assert histogram([good[0], TROUBLE[name], good[1]], **options) == expected
        ids = histogram([TROUBLE[name], *good], user_id=[0, 1, 2], **options)
        assert ids == expected
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    @pytest.mark.parametrize("name", TROUBLE)
    def test_in_arrow(self, name, capfd, recwarn):
        value = TROUBLE[name]
        if isinstance(value, shapely.Geometry):
            value = value.wkb
        elif not isinstance(value, bytes):
            value = None
        good = [Point(1, 1), box(0.5, 0.5, 1.5, 1.5)]
        table = pa.table({"u": [1, 2, 2], "geometry": [good[0].wkb, value, good[1].wkb]})
        assert histogram(table) == histogram(good)
        assert histogram(table, user_id="u") == histogram(good)
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    @pytest.mark.parametrize("name", [n for n, v in TROUBLE.items() if not isinstance(v, bytes)])
    def test_in_a_frame_that_is_reprojected(self, name, capfd, recwarn):
        value = TROUBLE[name] if isinstance(TROUBLE[name], shapely.Geometry) else None
        frame = geopandas.GeoSeries([Point(116.39, 39.915), value], crs=4326)
        assert histogram(frame, UTM).counts.sum() == 1
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    def test_all_of_them_and_nothing_else(self):
        assert not histogram(list(TROUBLE.values())).counts.any()
        assert not histogram(list(TROUBLE.values()), user_id=[1] * len(TROUBLE)).counts.any()

    def test_invalid_geometries_become_their_hull(self):
        bow_tie = Polygon([(0.5, 0.5), (1.5, 1.5), (1.5, 0.5), (0.5, 1.5)])
        assert histogram([bow_tie]) == histogram([box(0.5, 0.5, 1.5, 1.5)])

    def test_height_is_ignored(self):
        assert histogram([Point(1, 1, math.nan), Point(1, 1, 5)]).faces[1, 1] == 2

    @given(strategies.rough_worlds(), st.randoms(use_true_random=False))
    def test_trouble_changes_nothing_for_the_others(self, world, random):
        grid, bodies = world
        shapes = strategies.geometries(bodies)
        wild = [v for v in TROUBLE.values() if not isinstance(v, shapely.Geometry)]
        mixed = shapes + random.sample(wild, 3)
        random.shuffle(mixed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert histogram(mixed, grid) == histogram(shapes, grid)


class TestOversize:
    def test_a_long_region_is_shrunk_about_its_centroid(self):
        hist = histogram([box(0, 1.6, 5, 1.8)], max_diameter=0.5)
        assert hist.faces.tolist() == [[0] * 5, [0, 0, 1, 0, 0], [0] * 5, [0] * 5]

    def test_or_left_out(self):
        shapes = [box(0, 1.6, 5, 1.8), Point(0.5, 0.5)]
        hist = histogram(shapes, max_diameter=0.5, oversize="drop")
        assert hist == histogram([Point(0.5, 0.5)])

    def test_a_region_within_the_bound_is_kept_in_both_ways(self):
        shapes = [box(0.25, 0.25, 1.25, 1.25), LineString([(1, 1), (3, 1)])]
        for oversize in ("shrink", "drop"):
            assert histogram(shapes, max_diameter=2, oversize=oversize) == histogram(shapes)

    def test_a_bound_may_be_text(self):
        frame = geopandas.GeoSeries([box(447_050, 4_418_050, 448_950, 4_418_060)], crs=32650)
        short = histogram(frame, UTM, max_diameter="0.1km")
        assert short == histogram(frame, UTM, max_diameter=100)
        assert short.faces.sum() <= 2

    def test_a_region_shrunk_out_of_the_area_counts_nowhere(self):
        shape = Polygon([(1, 1), (100, 1), (100, 2)])
        assert histogram([shape]).counts.any()
        assert not histogram([shape], max_diameter=2).counts.any()

    @pytest.mark.parametrize("bound", [0, -1, math.nan, math.inf, "0m", "x"])
    def test_a_bound_that_is_not_positive_is_refused(self, bound):
        with pytest.raises(InputError, match="max_diameter"):
            histogram([], max_diameter=bound)

    @pytest.mark.parametrize("oversize", ["clip", None, ""])
    @pytest.mark.parametrize("bound", [2, None])
    def test_another_way_is_refused(self, oversize, bound):
        with pytest.raises(InputError, match=r"oversize=.*use 'shrink' or 'drop'"):
            histogram([], max_diameter=bound, oversize=oversize)


SIDES = [0.1, 2 / 3, 0.16, 1.0, 0.7, 1 / 3, 1000.0, 1e-6]


def near(value):
    return [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]


def sizes_of(shapes, grid, max_diameter, oversize="shrink"):
    """Return how many components each region touches after intake, one region at a time."""
    return [
        int(histogram([s], grid, max_diameter=max_diameter, oversize=oversize).counts.sum())
        for s in shapes
    ]


class TestSensitivity:
    """No region, however adversarial its floats, touches more than (2k+1)**2 components."""

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_widths_of_exactly_the_bound_with_ends_on_or_one_ulp_from_lines(self, side, k):
        corner = 0.3 * side
        grid = Grid(corner, -7.1 * side, side, k + 6, k + 6)
        for max_diameter in {float(f"{k * side:.12g}"), k * side, math.nextafter(k * side, 0)}:
            spanned = grid.cells_spanned(max_diameter)
            assert spanned in (k, k + 1)  # 3 * (1/3) in decimals is above 1
            starts = [v for i in (1, 2) for v in near(grid.xmin + i * side)]
            ends = [v for x in starts for v in near(x + max_diameter)]
            ends += [v for i in range(k, k + 3) for v in near(grid.xmin + i * side)]
            shapes = []
            for x0, x1 in itertools.product(starts, ends):
                y0, y1 = x0 - grid.xmin + grid.ymin, x1 - grid.xmin + grid.ymin
                shapes += [box(x0, y0, x1, y1), LineString([(x0, y0), (x1, y0)])]
                shapes += [LineString([(x0, y0), (x0, y1)])]
            assert_within_bound(shapes, grid, max_diameter)
            sample = shapes[:: len(shapes) // 60]
            assert max(sizes_of(sample, grid, max_diameter)) <= (2 * spanned + 1) ** 2

    @given(
        st.data(), st.sampled_from(SIDES), st.integers(1, 4), st.sampled_from(["shrink", "drop"])
    )
    def test_any_floats(self, data, side, k, oversize):
        corner = data.draw(st.sampled_from([0.0, 0.1, -3 * side, 12345.678 * side]))
        grid = Grid(corner, corner, side, 7, 7)
        axis = strategies.axis_floats(corner, side, 7)
        corners = st.lists(st.tuples(axis, axis), min_size=1, max_size=5)
        shapes = [
            strategies.geometry(points) for points in data.draw(st.lists(corners, min_size=1))
        ]
        max_diameter = data.draw(
            st.sampled_from([k * side, float(f"{k * side:.12g}"), (k - 0.5) * side])
        )
        assert_within_bound(shapes, grid, max_diameter, oversize)
        spanned = grid.cells_spanned(max_diameter)
        assert max(sizes_of(shapes, grid, max_diameter, oversize)) <= (2 * spanned + 1) ** 2

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_the_bound_is_reached(self, k):
        """A box a little larger than k - 1 cells: its diagonal is below k up to k = 3."""
        grid = Grid(0, 0, 1, 9, 9)
        shape = box(3 - 2**-9, 3 - 2**-9, 2 + k + 2**-9, 2 + k + 2**-9)
        assert sizes_of([shape], grid, k) == [(2 * k + 1) ** 2]

    @given(st.data(), st.integers(1, 3))
    def test_a_user_of_many_rows_touches_no_more_than_one_region_may(self, data, k):
        grid = Grid(0, 0, 1, 7, 7)
        rows = data.draw(st.lists(strategies.float_bodies(grid), min_size=2, max_size=6))
        shapes = strategies.geometries(rows)
        alone = histogram(shapes, grid, user_id=["ann"] * len(rows), max_diameter=k)
        assert alone.counts.max() <= 1
        assert alone.counts.sum() <= (2 * k + 1) ** 2
        others = histogram(SHAPES, grid, user_id=range(len(SHAPES)), max_diameter=k)
        both = histogram(
            [*SHAPES, *shapes],
            grid,
            user_id=[*range(len(SHAPES)), *["ann"] * len(rows)],
            max_diameter=k,
        )
        assert np.array_equal(both.counts, others.counts + alone.counts)

    @pytest.mark.parametrize(
        ("max_diameter", "side", "k", "steps"),
        [
            (2, 1, 2, 2 << 20),
            (0.3, 0.1, 3, 3 << 20),
            (2.1, 0.7, 3, 3 << 20),
            (0.48, 0.16, 3, 3 << 20),
            (2 / 3, 2 / 3, 1, 1 << 20),
            (0.5, 1, 1, 1 << 19),
            (1e-9, 1, 1, 0),
            (1e30, 1, 10**30, 1 << 48),
        ],
    )
    def test_k_and_the_steps_that_enforce_it(self, max_diameter, side, k, steps):
        bound = Bound.of(Grid(0, 0, side, 3, 3), max_diameter, "shrink")
        assert (bound.k, bound.steps) == (k, steps)
        assert bound.steps <= bound.k << 20

    @given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
    def test_the_steps_never_exceed_k_cells(self, max_diameter, side):
        assume(max_diameter / side < 1e6)
        bound = Bound.of(Grid(0, 0, side, 3, 3), max_diameter, "shrink")
        assert (bound.k - 1) << 20 <= bound.steps <= bound.k << 20


def assert_within_bound(shapes, grid, max_diameter, oversize="shrink"):
    """Assert on the integers that intake hands on: diameter, rows and columns of cells."""
    bound = Bound.of(grid, max_diameter, oversize)
    outlines = outlines_of(np.array(shapes, dtype=object), None, grid, bound)
    assert bound.k == grid.cells_spanned(max_diameter)
    for start, stop in itertools.pairwise(outlines.offsets.tolist()):
        points = outlines.xy[start:stop].tolist()
        for (x, y), (u, v) in itertools.combinations(points, 2):
            assert (x - u) ** 2 + (y - v) ** 2 <= bound.steps**2
            assert max(abs((x >> 20) - (u >> 20)), abs((y >> 20) - (v >> 20))) <= bound.k


def test_every_error_is_in_the_tree():
    for call in (lambda: histogram(5), lambda: histogram(SHAPES, user_id="a")):
        with pytest.raises(DPRegionsError):
            call()


class TestIdsThatFloatsWouldMerge:
    """A null among whole numbers must not turn the others into floats."""

    def many(self, ids):
        import geopandas as gpd

        shapes = [Point(i % 3 + 0.5, 0.5) for i in range(len(ids))]
        return gpd.GeoDataFrame({"user_id": ids}, geometry=shapes)

    @pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "category", "object"])
    def test_one_row_without_an_id_changes_nobody_else(self, dtype):
        import pandas as pd

        grid = Grid(0, 0, 1, 1, 3)
        ids = [2**62 + i for i in range(5)]
        plain = pd.Series(ids, dtype="Int64").astype(dtype)
        holed = pd.Series([*ids, None], dtype="Int64").astype(dtype)
        expected = EulerHistogram.from_regions(self.many(plain.array), grid, user_id="user_id")
        found = EulerHistogram.from_regions(self.many(holed.array), grid, user_id="user_id")
        assert expected.count(0, 0, 3, 1) == 5
        assert found == expected
        given = EulerHistogram.from_regions(
            self.many(holed.array).geometry, grid, user_id=holed.array
        )
        assert given == expected

    def test_arrow_columns_with_nulls_and_dictionaries_too(self):
        import pyarrow as pa

        grid = Grid(0, 0, 1, 1, 3)
        ids = pa.array([2**62 + i for i in range(5)] + [None], pa.int64())
        wkb = pa.array([Point(i % 3 + 0.5, 0.5).wkb for i in range(6)])
        for column in (ids, ids.dictionary_encode()):
            for shapes in (wkb, wkb.dictionary_encode()):
                table = pa.table({"user_id": column, "geometry": shapes})
                hist = EulerHistogram.from_regions(table, grid, user_id="user_id")
                assert hist.count(0, 0, 3, 1) == 5


@pytest.mark.parametrize(
    ("crs", "place", "far"),
    [
        (32632, (48.5, 9.0), True),  # UTM zone 32N beside an area off Somalia: axes swapped
        (32632, (9.0, 48.5), False),
        (32632, (25.0, 48.5), False),  # two zones on
        (4326, (48.5, 9.0), False),
        (32601, (179.9, 50.0), False),  # across the antimeridian
        (32632, (9.0, -40.0), True),
    ],
)
def test_a_crs_made_for_another_part_of_the_earth_is_refused_before_any_record(crs, place, far):
    grid = Grid.around(*place, side="20km", cell_size="1km")
    regions = geopandas.GeoSeries([], crs=crs)
    if not far:
        EulerHistogram.from_regions(regions, grid, user_id=None)
        return
    with pytest.raises(CRSError, match=r"far from the grid's area .* lon before lat"):
        EulerHistogram.from_regions(regions, grid, user_id=None)
