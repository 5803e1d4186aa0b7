"""What a record's geometry becomes, in any company: WKB in every layout, WKT, shapely objects."""

from __future__ import annotations

import struct

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point

import dpregions as dpr
from dpregions.curator import check_regions
from dpregions.errors import InputTypeError
from dpregions.intake.geometries import MAX_NESTING, coordinates, decoded, decoded_text

GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=4)
HERE = Point(1, 1)
CURVES = ["CIRCULARSTRING", "COMPOUNDCURVE", "CURVEPOLYGON", "MULTICURVE", "MULTISURFACE"]


def collection_of_empty_curve(kind: int) -> bytes:
    return struct.pack("<BIIBII", 1, 7, 1, 1, kind, 0)


def odd_objects() -> list[shapely.Geometry]:
    """Return collections that GEOS holds but cannot list, with and without other parts."""
    texts = [f"GEOMETRYCOLLECTION ({curve} EMPTY)" for curve in CURVES]
    texts += [f"GEOMETRYCOLLECTION (POINT (1 1), {curve} EMPTY)" for curve in CURVES]
    texts += ["GEOMETRYCOLLECTION (CIRCULARSTRING (0 0, 1 1, 2 0))"]
    return list(shapely.from_wkt(texts))


class TestWkb:
    @pytest.mark.parametrize("kind", range(8, 13), ids=CURVES)
    def test_a_collection_of_an_empty_curve_counts_for_nothing_beside_others(self, kind):
        records = [HERE.wkb, collection_of_empty_curve(kind), HERE.wkb]
        for regions in (records, pa.table({"geometry": pa.array(records, pa.binary())})):
            histogram = dpr.EulerHistogram.from_regions(regions, GRID)
            assert histogram.count(0, 0, 4, 4) == 2

    @pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
    def test_layouts_slices_and_nulls_of_arrow_give_the_same(self, kind):
        records = [HERE.wkb, None, b"", b"\x01", Point(2, 2).wkb, None, Point(3, 3).wkb]
        expected = [HERE, None, None, None, Point(2, 2), None, Point(3, 3)]
        column = pa.array(records, kind)
        for start in range(len(records) + 1):
            for stop in range(start, len(records) + 1):
                assert decoded(column[start:stop]).tolist() == expected[start:stop]
        chunked = pa.chunked_array([column[:3], column[3:3], column[3:]])
        assert decoded(chunked).tolist() == decoded(records).tolist() == expected
        assert decoded(np.array(records, dtype=object)).tolist() == expected

    def test_what_is_given_is_left_as_it_is(self):
        records = np.array([b"\x01nonsense", HERE.wkb], dtype=object)
        decoded(records)
        assert records.tolist() == [b"\x01nonsense", HERE.wkb]

    @pytest.mark.parametrize(
        "empty", [[], pa.array([], pa.binary()), pa.chunked_array([], "binary")]
    )
    def test_nothing_gives_nothing(self, empty):
        assert decoded(empty).shape == (0,)

    def test_a_column_of_nulls_or_of_one_width_is_read(self):
        assert decoded(pa.nulls(2)).tolist() == [None, None]
        assert decoded(pa.array([HERE.wkb], pa.binary(21))).tolist() == [HERE]

    @pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.list_(pa.float64())])
    def test_a_column_of_another_type_is_refused_by_its_type(self, kind):
        with pytest.raises(InputTypeError, match=r"holds .*, which is not WKB"):
            decoded(pa.nulls(1, kind))


DEEP = {
    "collections": "GEOMETRYCOLLECTION(" * 100_000 + "POINT (1 1)" + ")" * 100_000,
    "brackets": "(" * 1_000_000,
    "a polygon": "POLYGON " + "(" * 100_000 + "0 0" + ")" * 100_000,
}
NO_WKT = {
    "a lone surrogate": "POINT (1 1)\ud800",
    "a nul": "POINT (1 1)\0",
    "a nul within": "POINT (1\0 1)",
    "another alphabet": "ПОИНТ (1 1)",
    "a space that is not ASCII": "POINT\u00a0(1 1)",
    "nothing": "",
    "words": "somewhere",
    "text after the end": "POINT (1 1) POINT (1 1)",
    "a format of C": "POINT (%s %n)",
    "an open ring": "POLYGON ((0 0, 1 0, 1 1))",
    "a bracket too few": "POINT (1 1",
}


class TestWkt:
    @pytest.mark.parametrize("text", NO_WKT.values(), ids=NO_WKT)
    def test_text_that_is_no_wkt_is_none_and_the_others_are_as_ever(self, text):
        assert decoded_text([text]).tolist() == [None]
        company = ["POINT (1 1)", text, None, "point(1 1)"]
        assert decoded_text(company).tolist() == [HERE, None, None, HERE]

    @pytest.mark.parametrize("curve", [*CURVES, "POLYHEDRALSURFACE", "TRIANGLE", "TIN"])
    @pytest.mark.parametrize("form", ["{} EMPTY", "GEOMETRYCOLLECTION ({} EMPTY)"])
    def test_curves_and_surfaces_are_none_by_themselves_and_within_collections(self, curve, form):
        texts = [form.format(curve), form.format(curve.lower()), "POINT (1 1)"]
        assert decoded_text(texts).tolist() == [None, None, HERE]

    @pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
    def test_text_nested_without_end_is_none_and_the_process_lives(self, text):
        assert decoded_text([text, "POINT (1 1)"]).tolist() == [None, HERE]

    def test_brackets_nest_to_the_bound_and_no_deeper(self):
        def nested(depth):
            return "GEOMETRYCOLLECTION (" * (depth - 1) + "POINT (1 1)" + ")" * (depth - 1)

        found = decoded_text([nested(MAX_NESTING), nested(MAX_NESTING + 1)])
        assert found[0] is not None and found[1] is None

    def test_many_brackets_beside_each_other_are_fine(self):
        parts = ", ".join(["((0 0, 1 0, 1 1, 0 0))"] * 50)
        (found,) = decoded_text([f"MULTIPOLYGON ({parts})"])
        assert shapely.get_num_geometries(found) == 50

    @pytest.mark.parametrize("number", ["1e999", "-1e999", "nan", "inf", "1e-999", "9" * 100_000])
    def test_numbers_of_any_size_are_read_in_silence(self, number):
        texts = [f"POINT ({number} 1)", f"POLYGON ((0 0, {number} 0, 1 1, 0 0))", "POINT (1 1)"]
        together = decoded_text(texts)
        apart = [decoded_text([text])[0] for text in texts]
        with np.errstate(all="ignore"):
            assert shapely.to_wkb(together).tolist() == shapely.to_wkb(apart).tolist()
        assert together[2] == HERE

    @given(st.lists(st.text("POINT EMYLGZ(),.0123456789eE-+\0\ud800é", max_size=40), max_size=6))
    def test_text_in_company_is_read_as_it_is_alone(self, texts):
        together = decoded_text([*texts, "POINT (1 1)"])
        apart = [decoded_text([text])[0] for text in texts]
        with np.errstate(all="ignore"):
            assert shapely.to_wkb(together[:-1]).tolist() == [
                shapely.to_wkb(shape) for shape in apart
            ]
        assert together[-1] == HERE


class TestCoordinates:
    def test_objects_that_geos_cannot_list_have_none_in_any_company(self):
        for odd in odd_objects():
            assert len(coordinates(np.array([odd]))[0]) == 0
            coords, starts = coordinates(np.array([HERE, odd, None, Point(2, 3)]))
            assert coords.tolist() == [[1, 1], [2, 3]]
            assert starts.tolist() == [0, 1, 1, 1, 2]

    def test_a_frame_with_such_objects_is_counted_without_them(self):
        frame = geopandas.GeoDataFrame(geometry=[HERE, *odd_objects(), HERE, None])
        histogram = dpr.EulerHistogram.from_regions(frame, GRID, user_id=None)
        assert histogram.count(0, 0, 4, 4) == 2
        frame["user"] = ["a"] * len(frame)
        histogram = dpr.EulerHistogram.from_regions(frame, GRID, user_id="user")
        assert histogram.count(0, 0, 4, 4) == 1


GEOS_GIVES_UP = """POLYGON ((-1e308 0, 1e154 -1e308, 1e308 1e308, -1e308 0),
    (-1e308 1, 1e308 1e308, 0 1e308, -1e308 1))"""


class TestCuratorsCheck:
    @pytest.fixture
    def checked(self, tmp_path):
        """Return the check of a file of WKB."""

        def check(records):
            path = tmp_path / "odd.parquet"
            pq.write_table(pa.table({"geometry": pa.array(records, pa.binary())}), path)
            stream = dpr.open_regions(path, user_id=None)
            return check_regions(stream, GRID, user_id=None, max_diameter=1)

        return check

    def test_odd_records_are_counted_each_under_its_name(self, checked):
        wild = ["POLYGON ((0 0, 1e308 0, 1e308 1e308, 0 0))", "LINESTRING (-1e308 0, 1e308 1)"]
        wild += ["MULTIPOINT ((1e308 1e308), (-1e308 -1e308))", "POINT (1e308 1)"]
        records = [shapely.from_wkt(text).wkb for text in wild]
        records += [collection_of_empty_curve(kind) for kind in range(8, 13)]
        records += [struct.pack("<BII", 1, 7, 1) * 100_000 + HERE.wkb, HERE.wkb, None]
        found = checked(records)
        assert (found.rows, found.null, found.unreadable) == (len(records), 1, 6)
        assert found.outside == len(wild) and found.counted_rows == 1

    def test_a_record_that_geos_gives_up_on_is_invalid_and_changes_no_other(self, checked):
        far = shapely.from_wkt(GEOS_GIVES_UP)
        with np.errstate(all="ignore"), pytest.raises(shapely.GEOSException):
            shapely.is_valid(far)
        bow = shapely.from_wkt("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))")
        dart = shapely.from_wkt("POLYGON ((0 0, 2 1, 0 2, 1 1, 0 0))")
        found = checked([HERE.wkb, bow.wkb, far.wkb, HERE.wkb, dart.wkb])
        assert (found.invalid, found.not_convex, found.outside) == (2, 2, 1)
