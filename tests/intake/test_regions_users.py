"""One region a user counts, whatever ids, orders and forms they come in."""

from __future__ import annotations

import math

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.errors import (
    InputError,
    InputTypeError,
)
from support.region_forms import GRID, SHAPES, arrow_table, geoseries, histogram, wkb


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
