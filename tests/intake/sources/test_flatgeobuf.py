"""FlatGeobuf: exact ids of declared columns, and features that never change each other."""

from __future__ import annotations

import struct

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point

import dpregions as dpr
from dpregions.errors import InputError, InputTypeError
from dpregions.intake.sources.flatbuffers import Table
from support import flatgeobuf_files as fgb
from support.file_records import (
    CANARY,
    ids_of,
    mutants,
    number_or_text,
    records,
    refused,
    same_partition,
    survives,
    wkt_of,
)


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.fgb"


VALUES = {
    fgb.TEXT: st.sampled_from([b"a", b"a\0", b"\xff", b"\\xff"]) | st.binary(max_size=3),
    fgb.BINARY: st.binary(max_size=3),
    fgb.LONG: st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    fgb.ULONG: st.integers(0, 2**64 - 1) | st.integers(0, 2),
}


class TestIds:
    def test_text_with_zero_bytes_stays_apart(self, path):
        ids = [b"a\0b", b"a", b"a\0c", b"a\0", b"", None]
        found = ids_of(write(path, fgb.of_ids(fgb.TEXT, ids)))
        assert same_partition(found, [*ids[:4], None, None])

    def test_text_that_is_no_utf_8_stays_apart(self, path):
        ids = [b"Jos\xe9", b"Jos\xe8", b"Jos\\xe9", "José".encode(), b"\xff\xfe"]
        assert len(set(ids_of(write(path, fgb.of_ids(fgb.TEXT, ids))))) == 5

    def test_64_bits_are_exact_with_a_sign_or_without(self, path):
        wide = [2**64 - 1, 2**64 - 2, 2**63, 1]
        found = ids_of(write(path, fgb.of_ids(fgb.ULONG, wide)))
        assert found == [str(user) for user in wide]
        wide = [2**63 - 1, 2**63 - 2, -(2**63), 1]
        assert ids_of(write(path, fgb.of_ids(fgb.LONG, wide))) == [str(user) for user in wide]

    def test_bytes_are_ids(self, path):
        assert len(set(ids_of(write(path, fgb.of_ids(fgb.BINARY, [b"\0", b"\0\0", b"x"]))))) == 3

    @pytest.mark.parametrize(
        ("kind", "words"), [(9, "double"), (fgb.DOUBLE, "double"), (fgb.JSON, "JSON"),
                            (fgb.TIME, "times"), (99, "an unknown type")],
    )  # fmt: skip
    def test_a_declared_kind_that_cannot_be_ids_is_refused_whatever_it_holds(
        self, kind, words, path
    ):
        for ids in ([], [None], [None, None]):
            write(path, fgb.of_ids(kind, ids))
            assert words in refused(path, InputTypeError)
        assert len(dpr.open_regions(path, user_id=None).columns) == 1

    def test_a_column_is_found_among_others_by_its_exact_name(self, path):
        texts = enumerate([b"x", b"me", b"y"])
        row = fgb.feature(b"".join(fgb.value(i, fgb.TEXT, text) for i, text in texts))
        write(path, fgb.file([row], fgb.TEXT, ("a", "user_id", "b")))
        assert ids_of(path) == ['"me"']
        assert ids_of(path, user_id="b") == ['"y"']
        assert "is no column: there are a, user_id, b." in refused(path, user_id="USER_ID")
        write(path, fgb.file([], fgb.TEXT, ("user_id", "user_id")))
        assert "names several columns" in refused(path, InputError)

    @pytest.mark.parametrize(
        "broken",
        [b"\0", b"\0\0", b"\0\0\5\0\0\0abc", b"\7\0\1\0\0\0a", struct.pack("<HI", 0, 2**32 - 1)],
    )
    def test_a_feature_whose_values_are_broken_has_no_id(self, broken, path):
        good = fgb.feature(fgb.value(0, fgb.TEXT, b"me"), fgb.geometry())
        odd = fgb.feature(broken, fgb.geometry())
        found = records(write(path, fgb.file([good, odd, b"", b"\xff" * 9, good], fgb.TEXT)))
        assert found == [('"me"', fgb.POINT), *[(None, None)] * 3, ('"me"', fgb.POINT)]

    @given(data=st.data(), kind=st.sampled_from(sorted(VALUES)))
    def test_all_rows_are_read_as_each_alone(self, data, kind, tmp_path_factory):
        path = tmp_path_factory.getbasetemp() / "additive.fgb"
        ids = data.draw(st.lists(st.none() | VALUES[kind], max_size=6))
        whole = records(write(path, fgb.of_ids(kind, ids)))
        alone = [row for user in ids for row in records(write(path, fgb.of_ids(kind, [user])))]
        assert whole == alone
        assert same_partition([user for user, _ in whole], [number_or_text(user) for user in ids])


SHAPES = (
    "POINT (1 2)",
    "LINESTRING (0 0, 1 1, 2 0)",
    "POLYGON ((0 0, 9 0, 9 9, 0 0))",
    "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))",
    "MULTIPOINT (1 2, 3 4)",
    "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 4))",
    "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1)), ((20 0, 29 0, 29 9, 20 0)))",
    "GEOMETRYCOLLECTION (POINT (1 2), GEOMETRYCOLLECTION (LINESTRING (0 0, 1 1), POINT (5 6)))",
)


class TestGeometries:
    @pytest.mark.parametrize("index", ["YES", "NO"])
    @pytest.mark.parametrize("count", [1, 2, 16, 17, 300])
    def test_as_geopandas_reads_it(self, index, count, path):
        shapes = [shapely.from_wkt(SHAPES[i % len(SHAPES)]) for i in range(count)]
        frame = geopandas.GeoDataFrame(
            {"note": "x", "user_id": [f"u{i}" for i in range(count)]}, geometry=shapes, crs=32632
        )
        frame.to_file(path, SPATIAL_INDEX=index)
        read = geopandas.read_file(path)
        assert wkt_of(path) == [shape.wkt for shape in read.geometry]
        assert ids_of(path) == [f'"{user}"' for user in read["user_id"]]
        assert dpr.open_regions(path).crs == frame.crs

    @pytest.mark.parametrize("text", [*SHAPES, "POINT Z (1 2 3)"])
    def test_a_file_of_one_kind(self, text, path):
        shapes = [shapely.from_wkt(text), None]
        frame = geopandas.GeoDataFrame({"user_id": [1, 2]}, geometry=shapes, crs=32632)
        frame.to_file(path, SPATIAL_INDEX="NO")
        assert wkt_of(path) == [shapely.force_2d(shapes[0]).wkt, None]

    def test_null_and_no_id(self, path):
        ids = pd.array([1, None, 2**60], dtype="Int64")
        shapes = [None, Point(1, 2), Point()]
        frame = geopandas.GeoDataFrame({"user_id": ids}, geometry=shapes, crs=32632)
        frame.to_file(path, SPATIAL_INDEX="NO")
        assert ids_of(path)[:2] == ["1", None]
        assert wkt_of(path)[:2] == [None, "POINT (1 2)"]

    @pytest.mark.parametrize(
        "odd",
        [
            fgb.geometry(kind=8, xy=(0, 0, 1, 1, 2, 0)),
            fgb.geometry(kind=17),
            fgb.geometry(kind=0),
            fgb.geometry(xy=()),
            fgb.geometry(xy=(1.0,)),
            fgb.geometry(xy=(1.0, 2, 3)),
            fgb.geometry(kind=3, xy=(0, 0, 1, 1), ends=[3]),
            fgb.geometry(kind=3, xy=(0, 0, 1, 1), ends=[1]),
            fgb.geometry(kind=3, xy=(0, 0, 1, 1), ends=[2, 1, 2]),
            fgb.geometry(kind=5, xy=(0, 0, 1, 1), ends=[2**32 - 1, 2]),
            fgb.geometry(kind=7, parts=[fgb.geometry(), fgb.geometry(kind=9)]),
            {6: b"\1"},
            {},
        ],
    )
    def test_curves_and_broken_geometries_are_none_by_themselves(self, odd, path):
        me = fgb.value(0, fgb.LONG, 7)
        shapes = [fgb.geometry(), odd, fgb.geometry()]
        write(path, fgb.file([fgb.feature(me, shape) for shape in shapes]))
        assert [shape for _, shape in records(path)] == [fgb.POINT, None, fgb.POINT]

    def test_few_bytes_do_not_make_a_geometry_of_any_size(self, path):
        bomb = fgb.geometry()
        for _ in range(30):
            bomb = {6: b"\7", 7: [bomb] * 8}
        deep = fgb.geometry()
        for _ in range(200):
            deep = {6: b"\7", 7: [deep]}
        shapes = [bomb, deep, fgb.geometry()]
        write(path, fgb.file([fgb.feature(fgb.value(0, fgb.LONG, 1), shape) for shape in shapes]))
        assert [shape for _, shape in records(path)] == [None, None, fgb.POINT]

    def test_no_offset_counts_from_the_end(self):
        with pytest.raises(struct.error):
            Table.root(struct.pack("<Ii", 4, 100) + bytes(200))


class TestTheFile:
    def test_a_vrt_is_no_flatgeobuf(self, path, tmp_path, capfd):
        other = write(tmp_path / "other.fgb", fgb.of_ids(fgb.TEXT, [CANARY.encode()]))
        vrt = (
            f"<OGRVRTDataSource><OGRVRTLayer name='x'><SrcDataSource>{other}</SrcDataSource>"
            f"<SrcLayer>other</SrcLayer></OGRVRTLayer></OGRVRTDataSource>"
        )
        # GDAL takes what has the first bytes of one format for another: those of both are here.
        for start in (b"", b"fgb\x03fgb\x01", b"fgb\x03fgb\x01\x01\x01\x01\x01"):
            assert "not of the format its name says" in refused(write(path, start + vrt.encode()))
        assert "".join(capfd.readouterr()) == ""

    def test_fewer_or_more_features_than_the_header_says(self, path):
        whole = fgb.of_ids(fgb.LONG, [1, 2])
        for content in (whole[:-1], whole + b"\0", whole + fgb.framed(fgb.feature())):
            assert "is cut short, damaged" in refused(write(path, content))
        one = fgb.feature(fgb.value(0, fgb.LONG, 1), fgb.geometry())
        for count in (2, 2**63):
            assert "is cut short" in refused(write(path, fgb.file([one], count=count)))
        assert ids_of(write(path, fgb.file([one, one], count=0))) == ["1", "1"]

    def test_its_layer_has_a_name(self, path):
        write(path, fgb.of_ids(fgb.LONG, [1]))
        assert ids_of(path, layer="x") == ["1"]
        assert "there are 'x'" in refused(path, layer="y")

    def test_mutated_files_raise_our_errors_alone(self, path, capfd):
        shapes = [shapely.from_wkt(text) for text in SHAPES]
        ids = [f"{CANARY}-{i}" for i in range(len(shapes))]
        frame = geopandas.GeoDataFrame({"user_id": ids}, geometry=shapes)
        with pytest.warns(UserWarning, match="'crs' was not provided"):
            frame.to_file(path)
        whole = path.read_bytes()
        outcomes = [survives(write(path, mutant)) for mutant in mutants(whole, 1500)]
        assert 0 < np.sum(outcomes) < len(outcomes)
        assert "".join(capfd.readouterr()) == ""
