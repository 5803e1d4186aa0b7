"""GeoPackage: each cell by itself, and nothing but the file."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point, box

import dpregions as dpr
from dpregions.errors import CRSError, InputError, InputTypeError
from dpregions.intake.sources import geopackage
from support.file_records import (
    CANARY,
    ids_of,
    mutants,
    number_or_text,
    records,
    records_of,
    refused,
    same_partition,
    survives,
    wkt_of,
)
from support.small_chunks import open_in_chunks

PLACE = Point(1, 2).wkb
SCHEMA = """
    CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT, srs_id INTEGER PRIMARY KEY,
        organization TEXT, organization_coordsys_id INTEGER, definition TEXT);
    CREATE TABLE gpkg_contents (table_name TEXT, data_type TEXT);
    CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT, srs_id INTEGER);
    INSERT INTO gpkg_spatial_ref_sys VALUES ('UTM', 7, 'EPSG', 32632, '');
    INSERT INTO gpkg_contents VALUES ('homes', 'features');
    INSERT INTO gpkg_geometry_columns VALUES ('homes', 'geom', 7);
"""


def blob(wkb=PLACE, flags=1, envelope=b"", start=b"GP\0"):
    return start + bytes([flags]) + struct.pack("<i", 7) + envelope + wkb


def write(path, rows, declared="INTEGER", more="", before=""):
    """Write rows of an id and a geometry as they are, whatever the column declares."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("PRAGMA synchronous = OFF;" + before + SCHEMA)
        connection.execute(f"CREATE TABLE homes (geom BLOB, user_id {declared})")
        connection.executemany("INSERT INTO homes VALUES (?, ?)", [(g, u) for u, g in rows])
        connection.executescript(more)
    return path


def write_ids(path, ids, declared="INTEGER", **options):
    return write(path, [(user, blob()) for user in ids], declared, **options)


class TestIds:
    def test_text_in_a_column_of_integers_stays_text(self, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", ["ann", "bob", 0, "0x", 7, None])
        assert ids_of(path) == ['"ann"', '"bob"', "0", '"0x"', "7", None]

    def test_one_row_does_not_change_another(self, tmp_path):
        wide = [2**62 + i for i in range(5)]
        alone = ids_of(write_ids(tmp_path / "x.gpkg", wide))
        company = ids_of(write_ids(tmp_path / "x.gpkg", [*wide, 1.5, "x", b"y"]))
        assert company[:5] == alone
        assert len(set(company)) == 8

    def test_numbers_are_one_id_when_exactly_equal(self, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [1, 1.0, "1", b"1", 2**53, 2.0**53], "BLOB")
        found = ids_of(path)
        assert found[0] == found[1] and found[4] == found[5]
        assert len(set(found)) == 4

    def test_text_is_told_apart_by_its_bytes(self, tmp_path):
        texts = [b"Jos\xe9", b"Jos\xe8", "José".encode(), b"Jos\\xe9", b"a\0b", b"a", b"a\0c"]
        values = "".join(
            f"INSERT INTO homes (user_id) VALUES (CAST(x'{text.hex()}' AS TEXT));" for text in texts
        )
        path = write(tmp_path / "x.gpkg", [], "TEXT", more=values)
        assert len(set(ids_of(path))) == len(texts)

    @pytest.mark.parametrize("declared", ["REAL", "DOUBLE", "float", "Double Precision"])
    def test_a_column_of_floats_is_refused_whatever_it_holds(self, declared, tmp_path):
        for ids in ([], ["ann"], [None]):
            path = write_ids(tmp_path / "x.gpkg", ids, declared)
            assert "user_id='user_id' holds double" in refused(path, InputTypeError)
        assert len(ids_of(path, user_id=None)) == 1

    @pytest.mark.parametrize("declared", ["", "TEXT(20)", "DATE", "MEDIUMINT", "BLOB", "BOOLEAN"])
    def test_other_columns_are_read_cell_by_cell(self, declared, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [3, "x", None, ""], declared)
        assert same_partition(ids_of(path), ["3", "x", None, None])

    def test_a_column_that_differs_in_capitals_is_not_taken(self, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [1])
        words = refused(path, InputError, user_id="USER_ID")
        assert "user_id='USER_ID' is no column: there are user_id." in words
        assert "user_id='geom' is no column" in refused(path, InputError, user_id="geom")

    def test_names_may_need_quotes(self, tmp_path):
        more = """CREATE TABLE "my ""homes" ("the ""shape" BLOB, "the [user]" TEXT);
            INSERT INTO "my ""homes" VALUES (NULL, "ann");
            INSERT INTO gpkg_contents VALUES ("my ""homes", "features");
            INSERT INTO gpkg_geometry_columns VALUES ("my ""homes", "THE ""shape", 7);"""
        path = write_ids(tmp_path / "x.gpkg", [], more=more)
        assert ids_of(path, user_id="the [user]", layer='my "homes') == ['"ann"']

    cell = st.one_of(
        st.none(),
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([1, 1.0, 0, -0.0, 2**53, 2**53 + 1, 2.0**53, 1e300, "", "1", b"1", b""]),
        st.floats(allow_nan=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        st.binary(max_size=4),
    )

    @settings(max_examples=40)
    @given(ids=st.lists(cell, max_size=6), declared=st.sampled_from(["BLOB", "TEXT", "INTEGER"]))
    def test_all_rows_are_read_as_each_alone(self, ids, declared, tmp_path_factory):
        path = tmp_path_factory.getbasetemp() / "additive.gpkg"
        rows = [(user, blob(Point(i, 0).wkb)) for i, user in enumerate(ids)]
        whole = records(write(path, rows, declared))
        assert whole == [row for each in rows for row in records(write(path, [each], declared))]
        if declared == "BLOB":
            expected = [number_or_text(user) for user in ids]
            assert same_partition([user for user, _ in whole], expected)


class TestGeometries:
    @pytest.mark.parametrize("envelope", range(5))
    @pytest.mark.parametrize("bits", [0, 1, 16])
    def test_the_header_may_hold_an_envelope_of_any_kind(self, envelope, bits, tmp_path):
        made = blob(flags=bits | envelope << 1, envelope=b"\7" * (0, 32, 48, 48, 64)[envelope])
        assert records(write(tmp_path / "x.gpkg", [(1, made)])) == [("1", PLACE)]

    def test_what_is_no_geometry_is_none_by_itself(self, tmp_path):
        odd = [None, b"", b"GP", PLACE, blob(start=b"GP\1"), blob(start=b"PG\0"), "text", 5, 1.5,
               blob(flags=1 | 32), blob(flags=1 | 5 << 1), blob(wkb=b""), "GP\0\1" + "x" * 40,
               blob(flags=1 | 4 << 1)]  # fmt: skip
        rows = [(i, shape) for i, shape in enumerate([*odd, blob()])]
        found = records(write(tmp_path / "x.gpkg", rows))
        assert [shape for _, shape in found] == [None] * len(odd) + [PLACE]

    def test_the_bytes_of_curves_and_of_nonsense_are_passed_on(self, tmp_path):
        nested = b"\1\7\0\0\0\1\0\0\0" * 1000
        rows = [(1, blob(nested)), (2, blob(b"nonsense")), (3, blob())]
        assert [s for _, s in records(write(tmp_path / "x.gpkg", rows))][2] == PLACE

    def test_as_geopandas_reads_it(self, tmp_path):
        odd = shapely.from_wkt(["MULTIPOINT Z (1 2 3, 4 5 6)", "LINESTRING (0 0, 1 1)"])
        shapes = [Point(1, 2), None, box(0, 0, 3, 4), Point(), *odd]
        ids = pd.array([2**60, 2, None, 2, -5, 0], dtype="Int64")
        frame = geopandas.GeoDataFrame({"user_id": ids}, geometry=shapes, crs=25832)
        frame.to_file(tmp_path / "x.gpkg")
        read = geopandas.read_file(tmp_path / "x.gpkg")
        assert wkt_of(tmp_path / "x.gpkg") == [None if s is None else s.wkt for s in read.geometry]
        expected = [None if pd.isna(user) else str(user) for user in ids]
        assert ids_of(tmp_path / "x.gpkg") == expected
        assert dpr.open_regions(tmp_path / "x.gpkg").crs == read.crs

    @pytest.mark.parametrize("size", [1, 2, 3, 100])
    def test_chunks_make_no_difference(self, size, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", range(7))
        shares = []
        small = open_in_chunks(path, chunk_rows=size, progress=shares.append)
        assert records_of(small) == records(path)
        assert shares == sorted(shares) and shares[-1] == 1


class TestCRS:
    def crs_of(self, tmp_path, row):
        more = f"UPDATE gpkg_spatial_ref_sys SET {row};"
        return dpr.open_regions(write_ids(tmp_path / "x.gpkg", [1], more=more)).crs

    def test_it_is_the_authoritys_or_else_the_definition(self, tmp_path):
        assert self.crs_of(tmp_path, "srs_name = 'x'") == "EPSG:32632"
        assert self.crs_of(tmp_path, "organization = 'epsg'") == "EPSG:32632"
        wkt = dpr.open_regions(tmp_path / "x.gpkg").crs.to_wkt().replace("'", "''")
        own = f"organization = 'NONE', organization_coordsys_id = 7, definition = '{wkt}'"
        assert self.crs_of(tmp_path, own) == "EPSG:32632"

    def test_there_may_be_none(self, tmp_path):
        undefined = "organization = 'NONE', definition = 'undefined'"
        assert self.crs_of(tmp_path, undefined) is None
        assert self.crs_of(tmp_path, "srs_id = 8") is None
        for srs in (-1, 0):
            more = f"UPDATE gpkg_geometry_columns SET srs_id = {srs};"
            assert dpr.open_regions(write_ids(tmp_path / "x.gpkg", [1], more=more)).crs is None

    def test_one_that_cannot_be_read_is_not_quoted(self, tmp_path):
        more = f"UPDATE gpkg_spatial_ref_sys SET organization = 'x', definition = '{CANARY}';"
        words = refused(write_ids(tmp_path / "x.gpkg", [1], more=more), CRSError)
        assert "its CRS cannot be read" in words
        assert CANARY not in words


@pytest.mark.usefixtures("no_network")
class TestTheFile:
    def test_a_vrt_is_no_geopackage(self, tmp_path, capfd):
        other = write_ids(tmp_path / "other.gpkg", [CANARY])
        path = tmp_path / "x.gpkg"
        path.write_text(
            f'<OGRVRTDataSource><OGRVRTLayer name="homes"><SrcDataSource>{other}</SrcDataSource>'
            f"</OGRVRTLayer></OGRVRTDataSource>" + " " * 200
        )
        words = refused(path)
        assert "not of the format its name says" in words
        assert "".join(capfd.readouterr()) == ""

    def test_another_sqlite_file_is_no_geopackage(self, tmp_path):
        with closing(sqlite3.connect(tmp_path / "x.gpkg")) as connection:
            connection.execute("CREATE TABLE homes (geom BLOB, user_id TEXT)")
        assert "not of the format its name says" in refused(tmp_path / "x.gpkg")

    def test_no_layer_or_several(self, tmp_path):
        none = write_ids(tmp_path / "x.gpkg", [1], more="UPDATE gpkg_contents SET data_type = 't';")
        assert "has no layer with a geometry" in refused(none)
        twice = "INSERT INTO gpkg_contents VALUES ('Homes', 'features');"
        path = write_ids(tmp_path / "x.gpkg", [1], more=twice)
        assert "choose one by layer=, of 'Homes', 'homes'" in refused(path)

    def test_a_layer_whose_table_is_not_there(self, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [1], more="DROP TABLE homes;")
        assert "is cut short, damaged" in refused(path)
        path = write_ids(tmp_path / "x.gpkg", [1], more="ALTER TABLE homes DROP COLUMN geom;")
        assert "is cut short, damaged" in refused(path)

    def test_a_view_within_the_file_is_a_layer(self, tmp_path):
        more = """ALTER TABLE homes RENAME TO stored;
            CREATE VIEW homes AS SELECT geom, user_id || '!' AS user_id FROM stored;"""
        assert ids_of(write_ids(tmp_path / "x.gpkg", [1, "b"], more=more)) == ['"1!"', '"b!"']

    @pytest.mark.parametrize(
        "expression",
        ["load_extension('x')", f"readfile('{CANARY}')", "fts3_tokenizer('simple')"],
    )
    def test_a_view_reaches_nothing_else(self, expression, tmp_path):
        more = f"""ALTER TABLE homes RENAME TO stored;
            CREATE VIEW homes AS SELECT geom, {expression} AS user_id FROM stored;"""
        words = refused(write_ids(tmp_path / "x.gpkg", [1], more=more))
        assert CANARY not in words

    def test_the_files_own_functions_are_not_trusted(self, tmp_path):
        uri = write_ids(tmp_path / "x.gpkg", [1]).as_uri() + "?mode=ro"
        with closing(geopackage._connected(uri)) as connection:
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)

    @pytest.mark.parametrize("beside", ["-wal", "-journal"])
    def test_a_file_that_was_not_closed(self, beside, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [1])
        (tmp_path / f"x.gpkg{beside}").write_bytes(b"")
        assert ids_of(path) == ["1"]
        (tmp_path / f"x.gpkg{beside}").write_bytes(b"changes")
        assert f"was not closed: x.gpkg{beside} beside it" in refused(path)

    def test_nothing_is_written_beside_the_file(self, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [1], before="PRAGMA journal_mode = WAL;")
        assert ids_of(path) == ["1"]
        assert [other.name for other in tmp_path.iterdir()] == ["x.gpkg"]

    def test_signs_in_a_path_mean_nothing(self, tmp_path):
        path = write_ids(tmp_path / "a b?mode=rwc#%41.gpkg", [1])
        assert ids_of(path) == ["1"]

    def test_text_in_utf_16(self, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", ["a"], before="PRAGMA encoding = 'UTF-16';")
        assert "keeps its text in UTF-16" in refused(path)

    @pytest.mark.parametrize("cut", [0.02, 0.5, 0.99])
    def test_one_that_is_cut_short(self, cut, tmp_path):
        path = write_ids(tmp_path / "x.gpkg", [CANARY] * 2000)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * cut)])
        assert "x.gpkg is cut short" in refused(path)
        path.write_bytes(whole[:-1024])  # the number of pages as old versions left it
        assert "x.gpkg is cut short" in refused(path)

    def test_mutated_files_raise_our_errors_alone(self, tmp_path, capfd):
        whole = write_ids(tmp_path / "x.gpkg", [CANARY, 1, 2.5, None] * 60, "TEXT").read_bytes()
        path = tmp_path / "y.gpkg"
        outcomes = []
        for mutant in mutants(whole, 300):
            path.write_bytes(mutant)
            outcomes.append(survives(path))
        assert 0 < np.sum(outcomes) < len(outcomes)
        assert "".join(capfd.readouterr()) == ""
