"""Shapefiles: ids by their digits and bytes, geometries by their index, no file but the parts."""

from __future__ import annotations

import struct
import zipfile
from fractions import Fraction

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point

import dpregions as dpr
from dpregions.errors import CRSError, InputError, InputTypeError
from support.file_records import (
    CANARY,
    ids_of,
    mutants,
    records,
    records_of,
    refused,
    same_partition,
    survives,
    wkt_of,
)
from support.small_chunks import open_in_chunks


def table(cells, kind="C", width=8, decimals=0, deleted=(), name=b"user_id"):
    """Return a .dbf with one column, whose cells are written as they are."""
    field = struct.pack("<11sc4xBB14x", name, kind.encode(), width, decimals)
    head = struct.pack("<B3xIHH20x", 3, len(cells), 65, width + 1) + field + b"\r"
    marks = [b"*" if i in deleted else b" " for i in range(len(cells))]
    return head + b"".join(m + cell.ljust(width) for m, cell in zip(marks, cells, strict=True))


def shapes(contents, kind=1):
    """Return a .shp and its .shx, of records whose contents are as they are."""
    head = struct.pack(">7i", 9994, 0, 0, 0, 0, 0, 0), struct.pack("<2i64x", 1000, kind)
    body, index, place = b"", b"", 50
    for number, content in enumerate(contents, 1):
        body += struct.pack(">2i", number, len(content) // 2) + content
        index += struct.pack(">2i", place, len(content) // 2)
        place += 4 + len(content) // 2
    return tuple(
        head[0][:24] + struct.pack(">i", 50 + len(rest) // 2) + head[1] + rest
        for rest in (body, index)
    )


def point(x=1.0, y=2.0):
    return struct.pack("<i2d", 1, x, y)


def write(path, cells, kind="C", contents=None, **options):
    shp, shx = shapes([point()] * len(cells) if contents is None else contents)
    path.write_bytes(shp)
    path.with_suffix(".shx").write_bytes(shx)
    path.with_suffix(".dbf").write_bytes(table(cells, kind, **options))
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.shp"


class TestIds:
    def test_numbers_of_any_length_are_exact(self, path):
        wide = [b"12345678901234567890123", b"12345678901234567890124", b"0012", b"12", b"+12"]
        found = ids_of(write(path, [n.rjust(24) for n in wide], "N", width=24))
        assert found == ["12345678901234567890123", "12345678901234567890124", "12", "12", "12"]

    def test_numbers_beyond_18_digits_as_geopandas_writes_them(self, path):
        wide = np.arange(50) + 2**60
        frame = geopandas.GeoDataFrame({"user_id": wide}, geometry=[Point(1, 2)] * 50, crs=32632)
        frame.to_file(path)
        assert ids_of(path) == [str(user) for user in wide]

    def test_a_cell_that_is_no_number_is_kept_apart(self, path):
        cells = [b"7", b"", b"****", b"ann", b"bob", b"1.5", b"1.50", b"7.0", b"nan", b"\0\0"]
        expected = [7, None, None, "ann", "bob", 1.5, 1.5, 7, "nan", None]
        assert same_partition(ids_of(write(path, cells, "N")), expected)

    def test_text_is_told_apart_by_its_bytes(self, path):
        cells = [
            b"Jos\xe9",
            b"Jos\xe8",
            b"Jos\\xe9",
            "José".encode(),
            b"a\0b",
            b"a",
            b" a",
            b"a \0",
        ]
        path.with_suffix(".cpg").write_text("ASCII")
        found = ids_of(write(path, cells))
        assert found[7] == found[5]
        assert len(set(found)) == 7
        assert found[3] == '"Jos\\u00e9"'

    @pytest.mark.parametrize("kind", ["N", "F"])
    def test_a_column_with_decimals_is_refused_whatever_it_holds(self, kind, path):
        for cells in ([], [b""], [b"7"]):
            words = refused(write(path, cells, kind, decimals=2), InputTypeError)
            assert "user_id='user_id' holds double" in words
        assert len(list(dpr.open_regions(path, user_id=None))) == 1

    @pytest.mark.parametrize("kind", ["M", "B", "@", "O", "\xe9"])
    def test_other_types_are_refused(self, kind, path):
        made = bytearray(table([b"x"]))
        made[32 + 11] = ord(kind)
        write(path, [b"x"]).with_suffix(".dbf").write_bytes(made)
        assert "of a type that a Shapefile has no ids of" in refused(path, InputTypeError)

    def test_dates_truths_and_binary_integers(self, path):
        dates = [b"20200101", b"20200102", b"", b"00000000", b"20200101"]
        assert same_partition(ids_of(write(path, dates, "D")), ["a", "b", None, None, "a"])
        truths = [b"T", b"y", b"F", b"n", b"?", b"", b"x"]
        found = ids_of(write(path, truths, "L", width=1))
        assert found == ["true", "true", "false", "false", None, None, '"x"']
        cells = [struct.pack("<i", i) for i in (7, -7, 0)]
        assert ids_of(write(path, cells, "I", width=4)) == ["7", "-7", "0"]

    def test_deleted_rows_do_not_count_and_move_no_other(self, path):
        contents = [point(i, i) for i in range(4)]
        write(path, [b"a", b"b", b"c", b"d"], contents=contents, deleted=(0, 2))
        assert ids_of(path) == ['"b"', '"d"']
        assert wkt_of(path) == ["POINT (1 1)", "POINT (3 3)"]

    def test_a_name_is_exact(self, path):
        write(path, [b"a"], name=b"USER_ID")
        assert "is no column: there are USER_ID." in refused(path, InputError)
        assert ids_of(path, user_id="USER_ID") == ['"a"']
        assert ids_of(write(path, [b"a"], name=b"us\xfcario"), user_id="usüario") == ['"a"']

    digits = st.integers(-(10**22), 10**22).map(lambda n: str(n).encode())
    cell = st.one_of(
        digits,
        st.sampled_from([b"", b"1", b"01", b"1.0", b"1e0", b"x", b"*", b"***", b"\xff", b"\\xff"]),
        st.binary(max_size=4),
    )

    @settings(max_examples=50)
    @given(cells=st.lists(cell, max_size=6), kind=st.sampled_from("NC"))
    def test_all_rows_are_read_as_each_alone(self, cells, kind, tmp_path_factory):
        path = tmp_path_factory.getbasetemp() / "additive.shp"
        contents = [point(i, 0) for i in range(len(cells))]
        whole = records(write(path, cells, kind, contents, width=24))
        alone = [
            row
            for cell, content in zip(cells, contents, strict=True)
            for row in records(write(path, [cell], kind, [content], width=24))
        ]
        assert whole == alone
        expected = [self.meant(cell, kind) for cell in cells]
        assert same_partition([user for user, _ in whole], expected)

    def meant(self, cell, kind):
        if kind == "C":
            return cell.rstrip(b" \0") or None
        cell = cell.strip(b" \0")
        if not cell.strip(b"*"):
            return None
        try:
            if b"/" in cell or b"_" in cell or not cell.isascii() or cell != cell.strip():
                return cell
            return Fraction(cell.decode())
        except ValueError:
            return cell


SHAPES = (
    ["POINT (1 2)", None, "POINT (3 4)"],
    ["MULTIPOINT (1 2, 3 4)", None, "MULTIPOINT (5 6)"],
    ["LINESTRING (0 0, 1 1, 2 0)", "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 4))"],
    ["POLYGON ((0 0, 9 0, 9 9, 0 0))", None,
     "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))",
     "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1)), ((20 0, 29 0, 29 9, 20 0)))"],
    ["POINT Z (1 2 3)"],
    ["POLYGON Z ((0 0 1, 9 0 2, 9 9 3, 0 0 1))"],
    ["LINESTRING Z (0 0 1, 9 0 2)"],
)  # fmt: skip


class TestGeometries:
    @pytest.mark.parametrize("texts", SHAPES)
    def test_as_geopandas_reads_it(self, texts, path):
        users = pd.array([None, *range(1, len(texts))], dtype="Int64")
        made = [shapely.from_wkt(text) for text in texts]
        geopandas.GeoDataFrame({"user_id": users}, geometry=made, crs=32632).to_file(path)
        read = geopandas.read_file(path)
        shapes = [None if s is None else shapely.force_2d(s) for s in read.geometry]
        found = [None if text is None else shapely.from_wkt(text) for text in wkt_of(path)]
        assert [f if f is None else f.normalize().wkt for f in found] == [
            s if s is None else s.normalize().wkt for s in shapes
        ]
        assert ids_of(path) == [None, *map(str, range(1, len(texts)))]
        assert dpr.open_regions(path).crs == "EPSG:32632"

    @pytest.mark.parametrize(
        "odd",
        [
            b"",
            b"\0\0",
            struct.pack("<i", 0),
            struct.pack("<i", 99),
            struct.pack("<i", 31) + bytes(60),
            struct.pack("<id", 1, 1.0),
            struct.pack("<i4di", 8, 0, 0, 0, 0, 2**30),
            struct.pack("<i4di", 8, 0, 0, 0, 0, -1),
            struct.pack("<i4d2i", 5, 0, 0, 0, 0, 1, 1),
            struct.pack("<i4d2i", 5, 0, 0, 0, 0, 2**30, 2**30),
            struct.pack("<i4d3i8d", 5, 0, 0, 0, 0, 1, 4, 1, *range(8)),
            struct.pack("<i4d4i8d", 5, 0, 0, 0, 0, 2, 4, 0, 4, *range(8)),
            struct.pack("<i4d4i8d", 3, 0, 0, 0, 0, 2, 4, 0, -1, *range(8)),
        ],
    )
    def test_a_broken_geometry_is_none_by_itself(self, odd, path):
        write(path, [b"a", b"b", b"c"], contents=[point(), odd, point()])
        assert wkt_of(path) == ["POINT (1 2)", None, "POINT (1 2)"]

    def test_heights_and_measures_are_left_out(self, path):
        line = struct.pack("<i4d3i4d8d", 13, 0, 0, 0, 0, 1, 2, 0, *range(4), *range(8))
        contents = [struct.pack("<i4d", 11, 1, 2, 3, 4), struct.pack("<i3d", 21, 5, 6, 7), line]
        write(path, [b"a", b"b", b"c"], contents=contents)
        assert wkt_of(path) == ["POINT (1 2)", "POINT (5 6)", "LINESTRING (0 1, 2 3)"]

    def test_geometries_are_where_the_index_says(self, path):
        write(path, [b"a", b"b"], contents=[point(1, 1), point(2, 2)])
        index = bytearray(path.with_suffix(".shx").read_bytes())
        index[100:108], index[108:116] = index[108:116], index[100:108]
        path.with_suffix(".shx").write_bytes(index)
        assert wkt_of(path) == ["POINT (2 2)", "POINT (1 1)"]
        index[100:104] = b"\x7f\xff\xff\xff"
        path.with_suffix(".shx").write_bytes(index)
        assert "x.shp is cut short, damaged" in refused(path)

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_chunks_make_no_difference(self, size, path):
        write(path, [str(i).encode() for i in range(7)], deleted=(3,))
        shares = []
        small = open_in_chunks(path, chunk_rows=size, progress=shares.append)
        assert records_of(small) == records(path)
        assert shares == sorted(shares) and shares[-1] == 1


def zipped(path, source, inside=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for suffix in (".shp", ".shx", ".dbf"):
            archive.write(source.with_suffix(suffix), f"{inside}{source.stem}{suffix}")
    return path


class TestTheFiles:
    def vrt(self, tmp_path):
        other = write(tmp_path / "other.shp", [CANARY.encode()], width=20)
        return (
            f"<OGRVRTDataSource><OGRVRTLayer name='x'><SrcDataSource>{other}</SrcDataSource>"
            f"<SrcLayer>other</SrcLayer></OGRVRTLayer></OGRVRTDataSource>" + " " * 200
        )

    def test_a_vrt_is_no_shapefile(self, path, tmp_path, capfd):
        write(path, [b"a"]).write_text(self.vrt(tmp_path))
        refused(path)
        path.with_suffix(".zip").write_text(self.vrt(tmp_path))
        assert "not a zip file" in refused(path.with_suffix(".zip"))
        assert "".join(capfd.readouterr()) == ""

    def test_a_vrt_beside_a_shapefile_is_not_opened(self, path, tmp_path):
        made = zipped(tmp_path / "x.zip", write(path, [b"a"]), "sub/")
        with zipfile.ZipFile(made, "a") as archive:
            archive.writestr("sub/a.vrt", self.vrt(tmp_path))
            archive.writestr("sub/x.shp.vrt", self.vrt(tmp_path))
            archive.writestr("a.vrt", self.vrt(tmp_path))
        assert ids_of(made) == ['"a"']

    @pytest.mark.parametrize(("place", "code"), [(0, b"\0\0\x27\x0b"), (28, b"\xe9\3\0\0")])
    @pytest.mark.parametrize("suffix", [".shp", ".shx"])
    def test_the_first_bytes_say_what_it_is(self, place, code, suffix, path):
        part = write(path, [b"a"]).with_suffix(suffix)
        content = bytearray(part.read_bytes())
        content[place : place + 4] = code
        part.write_bytes(content)
        assert "not of the format its name says" in refused(path)

    def test_a_table_of_more_or_fewer_rows_than_geometries(self, path):
        write(path, [b"a", b"b"]).with_suffix(".dbf").write_bytes(table([b"a"]))
        assert "is cut short, damaged" in refused(path)

    def test_a_table_whose_columns_are_wider_than_its_rows(self, path):
        made = bytearray(write(path, [b"a"]).with_suffix(".dbf").read_bytes())
        made[32 + 16] = 200
        path.with_suffix(".dbf").write_bytes(made)
        assert "is cut short, damaged" in refused(path)

    def test_a_crs_that_cannot_be_read_is_not_quoted(self, path):
        write(path, [b"a"]).with_suffix(".prj").write_text(CANARY)
        words = refused(path, CRSError)
        assert "its CRS cannot be read" in words and CANARY not in words

    @pytest.mark.parametrize("epsg", [4326, 3857, 25832, 2154, 27700])
    def test_a_crs_is_the_authoritys(self, epsg, path):
        frame = geopandas.GeoDataFrame({"user_id": [1]}, geometry=[Point(1, 2)], crs=epsg)
        frame.to_file(path)
        assert dpr.open_regions(path).crs == f"EPSG:{epsg}"

    def test_an_archive_of_several(self, path, tmp_path):
        made = zipped(tmp_path / "x.zip", write(path, [b"a"]))
        other = write(tmp_path / "y.shp", [b"b"])
        with zipfile.ZipFile(made, "a") as archive:
            for suffix in (".shp", ".shx", ".dbf"):
                archive.write(other.with_suffix(suffix), f"y{suffix}")
        assert "choose one by layer=, of 'x', 'y'" in refused(made)
        assert ids_of(made, layer="y") == ['"b"']

    def test_an_archive_with_a_password(self, path, tmp_path):
        made = zipped(tmp_path / "x.zip", write(path, [b"a"]))
        content = bytearray(made.read_bytes())
        for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            at = content.find(mark)
            while at >= 0:
                content[at + flags] |= 1
                at = content.find(mark, at + 1)
        made.write_bytes(content)
        assert "x.zip is cut short, damaged" in refused(made)

    @pytest.mark.parametrize("suffix", [".shp", ".shx", ".dbf", ".zip"])
    def test_mutated_files_raise_our_errors_alone(self, suffix, path, capfd):
        made = [shapely.from_wkt(text) for text in SHAPES[3]]
        ids = [f"{CANARY}-{i}" for i in range(len(made))]
        with pytest.warns(UserWarning, match="'crs' was not provided"):
            geopandas.GeoDataFrame({"user_id": ids}, geometry=made).to_file(path)
        opened = zipped(path.with_suffix(".zip"), path) if suffix == ".zip" else path
        part = path.with_suffix(suffix)
        whole, outcomes = part.read_bytes(), []
        for mutant in mutants(whole, 300):
            part.write_bytes(mutant)
            outcomes.append(survives(opened))
        assert 0 < np.sum(outcomes) < len(outcomes)
        assert "".join(capfd.readouterr()) == ""
