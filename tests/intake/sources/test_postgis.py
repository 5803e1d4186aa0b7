"""PostGIS: a real server on loopback; what is read, and how it fails."""

from __future__ import annotations

import socket
import sys
import traceback

import geopandas
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions import EulerHistogram, synthetic
from dpregions.errors import (
    CRSError,
    DPRegionsError,
    InputError,
    InputTypeError,
    MissingExtraError,
    SourceError,
)
from dpregions.releases import make as releasing
from support.small_chunks import open_in_chunks
from support.watched_noise import Untouched

GRID = synthetic.grid(cell_size="2km")
PASSWORD = "hunter2-secret"

pytest.importorskip("sqlalchemy")


def city() -> geopandas.GeoDataFrame:
    """300 users, some with several rows, some rows without a user, some without a region."""
    parts = [synthetic.regions(300), synthetic.regions(60, seed=1), synthetic.regions(5, seed=2)]
    whole = pd.concat(parts, ignore_index=True).astype({"user_id": "Int64"})
    whole.loc[360:, "user_id"] = pd.NA
    whole.loc[[0, 7, 170], "geometry"] = None
    return whole


CITY = city()


@pytest.fixture(scope="module")
def url(postgis):
    """Return the URL of a database with the city in it."""
    shapes = shapely.to_wkb(np.asarray(CITY.geometry.array))
    users = [None if pd.isna(user) else int(user) for user in CITY["user_id"]]
    with psycopg.connect(postgis, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS homes")
        cursor.execute(
            "CREATE TABLE homes (user_id bigint, note text, geom geometry(Geometry, 32632))"
        )
        cursor.executemany(
            "INSERT INTO homes VALUES (%s, 'record 471', ST_GeomFromWKB(%s, 32632))",
            list(zip(users, shapes, strict=True)),
        )
    return postgis


def opened(url, sql="SELECT * FROM homes", **options):
    return open_in_chunks(url, sql=sql, **options)


def counted(stream, user_id="user_id"):
    return EulerHistogram.from_regions(stream, GRID, user_id=user_id)


def truth(frame=CITY):
    return EulerHistogram.from_regions(frame, GRID, user_id="user_id")


PLACE = "ST_Point(1, 2, 32632)::geometry(Point, 32632) AS geom"
ENDLESS = f"SELECT generate_series(1, 1000000000) AS user_id, {PLACE}"
"""A query whose rows come one by one: in FROM, the series would be made whole first."""

QUERIES = {
    "a table": {},
    "a semicolon": {"sql": "SELECT user_id, geom FROM homes;"},
    "a comment at the end": {"sql": "SELECT user_id, geom FROM homes -- all"},
    "signs that drivers read": {
        "sql": "SELECT *, '50%' AS p, ':x %s %(a)s' AS q, '12:30'::time FROM homes"
    },
    "a common table expression": {"sql": "WITH h AS (SELECT * FROM homes) SELECT * FROM h"},
    "degrees on the way": {
        "sql": "SELECT user_id, ST_SetSRID(geom, 32632)::geometry(Geometry, 32632) g FROM homes"
    },
    "a stated CRS of an undeclared SRID": {
        "sql": "SELECT user_id, ST_SetSRID(geom, 32632) AS geom FROM homes",
        "crs": 32632,
    },
    "WKB and a stated CRS": {
        "sql": "SELECT user_id, ST_AsBinary(geom) AS geom FROM homes",
        "crs": 32632,
    },
    "EWKB": {"sql": "SELECT user_id, ST_AsEWKB(geom) AS geom FROM homes", "crs": 32632},
    "big-endian EWKB": {
        "sql": "SELECT user_id, ST_AsEWKB(geom, 'XDR') AS geom FROM homes",
        "crs": 32632,
    },
    "no SRID and a stated CRS": {
        "sql": "SELECT user_id, ST_SetSRID(geom, 0) AS geom FROM homes",
        "crs": 32632,
    },
    "ids as text": {"sql": "SELECT user_id::varchar AS user_id, geom FROM homes"},
    "ids as decimal numbers": {"sql": "SELECT user_id::numeric AS user_id, geom FROM homes"},
    "ids as uuid": {"sql": "SELECT md5(user_id::text)::uuid AS user_id, geom FROM homes"},
    "the geometry by name": {"sql": "SELECT *, geom AS again FROM homes", "geometry": "geom"},
}


class TestReading:
    @pytest.mark.parametrize("query", QUERIES)
    def test_the_same_regions_give_the_same_histogram(self, query, url):
        stream = opened(url, **QUERIES[query])
        assert stream.crs == GRID.crs
        assert counted(stream) == truth()

    @pytest.mark.parametrize(
        ("spellings", "users"),
        [
            ("1.0::numeric), (1.00), (1), (2), ('NaN'), (NULL", 2),
            ("'ab'::char(5)), ('ab '), ('b'), (''", 2),
            ("'a'::text), (''), (NULL", 1),
            ("true), (false), (NULL", 2),
            ("'2026-01-01 00:00+00'::timestamptz), ('2026-01-01 01:00+01'", 1),
            ("'\\x00'::bytea), ('\\x0000'), ('\\x00'", 2),
        ],
    )
    def test_ids_that_are_equal_are_one_user(self, spellings, users, url):
        shape = "ST_SetSRID(ST_Point(500000, 5372000), 32632)::geometry(Point, 32632)"
        sql = f"SELECT u AS user_id, {shape} AS geom FROM (VALUES ({spellings})) AS v(u)"
        assert counted(opened(url, sql)).count(*GRID.bounds) == users

    def test_a_row_of_another_srid_counts_nowhere_and_changes_nobody(self, url):
        odd = "ST_SetSRID(geom, CASE user_id WHEN 250 THEN 4326 WHEN 251 THEN 0 ELSE 32632 END)"
        sql = f"SELECT user_id, {odd} AS g FROM homes"
        found = counted(opened(url, sql, crs=32632))
        assert found == truth(CITY[CITY["user_id"] != 250])

    @pytest.mark.parametrize("encoding", ["WIN1252", "SQL_ASCII", "LATIN1"])
    def test_text_that_cannot_be_made_utf_8_stays_apart_and_stops_nothing(self, encoding, url):
        """In WIN1252 the byte 81 is no character: the server failed to send any row."""
        name = f"odd_{encoding.lower()}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
        other = url.replace("/postgres", f"/{name}")
        try:
            with psycopg.connect(other, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION postgis")
                connection.execute("CREATE TABLE homes (user_id text, geom geometry(Point, 32632))")
                place = "ST_Point(500000, 5372000, 32632)"
                for code in (65, 129, 141, 233, 129):
                    connection.execute(f"INSERT INTO homes SELECT chr({code}), {place}")
            assert counted(opened(other)).count(*GRID.bounds) == 4
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name}")

    @pytest.mark.parametrize("rows", [1, 17, 364, 365, 366])
    def test_small_chunks_give_the_same(self, rows, url):
        assert next(iter(opened(url, chunk_rows=rows))).num_rows == min(rows, 365)
        assert counted(opened(url, chunk_rows=rows)) == truth()

    def test_a_geography_is_in_degrees(self, url):
        sql = "SELECT user_id, ST_Transform(geom, 4326)::geography AS geog FROM homes"
        stream = opened(url, sql)
        assert stream.crs == "EPSG:4326"
        frame = geopandas.GeoDataFrame.from_arrow(stream).astype({"user_id": "Int64"})
        assert counted(frame) == counted(opened(url, sql))

    def test_each_row_its_own_user(self, url):
        stream = opened(url, user_id=None)
        assert stream.columns == ["geometry"]
        assert counted(stream, user_id=None) == EulerHistogram.from_regions(CITY, GRID)

    def test_a_name_that_needs_quotes(self, url):
        sql = 'SELECT user_id AS "The ""User""", geom AS "Geom" FROM homes'
        stream = opened(url, sql, user_id='The "User"', geometry="Geom")
        assert counted(stream, user_id='The "User"') == truth()

    def test_rows_are_asked_for_in_chunks_on_the_server(self, url):
        stream = opened(url, ENDLESS, chunk_rows=10)
        batches = iter(stream)
        assert next(batches).num_rows == 10
        batches.close()

    def test_closing_lets_go_of_the_connection(self, url):
        stream = opened(url)
        assert connections(url) == 1
        stream.close()
        assert connections(url) == 0

    def test_no_connection_is_left_after_reading_or_failing(self, url):
        counted(opened(url))
        with pytest.raises(DPRegionsError):
            opened(url, "SELECT * FROM nothing")
        with pytest.raises(DPRegionsError):
            opened(url, "SELECT user_id FROM homes")
        assert connections(url) == 0

    def test_a_release_says_its_unit(self, url):
        made = dpr.release(opened(url), GRID, epsilon=1, max_diameter="4km")
        assert made.unit == "user"

    def test_no_rows_are_no_trouble(self, url):
        stream = opened(url, "SELECT * FROM homes WHERE false", crs=32632)
        assert not counted(stream).counts.any()

    def test_progress_ends_at_all(self, url):
        shares = []
        list(opened(url, progress=shares.append))
        assert shares == [1.0]


def connections(url):
    with psycopg.connect(url) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        return connection.execute(asked).fetchone()[0] - 1


def refused(kind, url, sql="SELECT * FROM homes", **options):
    """Return the words of a refusal, after looking for secrets wherever Python keeps an error."""
    with pytest.raises(kind) as caught, opened(url, sql, **options) as stream:
        releasing.release_with(Untouched(), stream, GRID, epsilon=1, max_diameter="2km")
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    printed = "".join(traceback.format_exception(error)) + repr(vars(error)) + repr(error.args)
    for secret in (PASSWORD, "curator", "record 471"):
        assert secret not in printed
    assert len(sql) < 10 or sql not in str(error)
    return str(error)


class TestRefused:
    @pytest.mark.parametrize(
        ("sql", "kind", "words"),
        [
            ("SELECT * FROM nothing", InputError, "42P01: there is no such table"),
            ("SELECT user_id, nothing FROM homes", InputError, "42703: there is no such column"),
            ("SELEC 'record 471'", InputError, "42601: its syntax is wrong"),
            ("SELECT 1; DROP TABLE homes", InputError, "its syntax is wrong"),
            ("UPDATE homes SET note = 'x'", InputError, "its syntax is wrong"),
            ("SELECT *, nextval('counter') FROM homes", SourceError, "it writes"),
            ("SELECT user_id, 'record 471'::int AS n, geom FROM homes", InputError, "22P02"),
            ("SELECT user_id FROM homes", InputTypeError, "no geometry: its columns are user_id"),
            ("SELECT user_id, ST_AsText(geom) AS t FROM homes", InputTypeError, "no geometry"),
            ("SELECT geom FROM homes", InputError, "user_id='user_id' is no column"),
            ("SELECT *, geom AS g FROM homes", InputError, "choose one by geometry="),
            ("SELECT *, user_id FROM homes", InputError, "names several columns"),
            ("", InputError, "PostGIS needs a query: give sql="),
        ],
    )
    def test_sql_that_does_not_fit(self, sql, kind, words, url):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE SEQUENCE IF NOT EXISTS counter")
        assert words in refused(kind, url, sql)

    @pytest.mark.parametrize("kind", ["citext", "interval", "jsonb", "timetz", "float4", "float8"])
    def test_ids_of_which_a_user_may_have_several_spellings(self, kind, url):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS citext")
        sql = f"SELECT NULL::{kind} AS user_id, geom FROM homes"
        words = refused(InputTypeError, url, sql)
        assert f"is of type {kind}" in words
        assert "cast it to bigint or text" in words

    def test_a_geometry_of_another_type(self, url):
        sql = "SELECT user_id, ST_AsText(geom) AS t FROM homes"
        assert "is of type text: return a geometry" in refused(
            InputTypeError, url, sql, geometry="t"
        )
        assert "is the column of regions" in refused(InputError, url, user_id="geom")

    def test_a_crs_that_is_missing_or_another(self, url):
        bare = "SELECT user_id, ST_AsBinary(geom) AS geom FROM homes"
        assert "carry no CRS" in refused(CRSError, url, bare)
        assert "regions carry EPSG:32632" in refused(CRSError, url, crs=4326)
        odd = "SELECT user_id, ST_SetSRID(geom, 910000)::geometry(Geometry, 910000) g FROM homes"
        assert "SRID 910000 is no EPSG code" in refused(CRSError, url, odd)
        assert counted(opened(url, odd, crs=32632)) == truth()

    @pytest.mark.parametrize("srid", [0, 4326, 32632])
    def test_an_srid_that_no_column_declares(self, srid, url):
        """Refused from the schema, also where the rows would agree: no row is looked at."""
        sql = f"SELECT user_id, ST_SetSRID(geom, {srid}) AS g FROM homes WHERE user_id < 0"
        words = refused(CRSError, url, sql)
        assert "declares no SRID" in words
        assert "g::geometry(Geometry, 4326)" in words

    def test_options_of_files(self, url):
        assert "layer= has no use for PostGIS" in refused(InputError, url, layer="homes")
        assert "lon= has no use for PostGIS" in refused(InputError, url, lon="x", lat="y")

    def test_a_query_that_fails_at_a_late_row(self, url):
        sql = "SELECT user_id, geom FROM homes WHERE 1 / (user_id - 299) < 1"
        assert "SQLSTATE 22012" in refused(DPRegionsError, url, sql, chunk_rows=100)
        sql = f"SELECT 1000 / (50000 - i) AS user_id, {PLACE} FROM "
        words = refused(SourceError, url, sql + "generate_series(1, 100000) i", chunk_rows=100)
        assert "failed while it sent the regions (SQLSTATE 22012)" in words


class TestDown:
    def test_a_server_that_is_not_there(self, url):
        with socket.socket() as taken:  # bound, and nobody listens
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            away = f"postgresql://curator:{PASSWORD}@127.0.0.1:{port}/city"
            words = refused(SourceError, away)
        assert f"city at 127.0.0.1:{port} is down, cannot be reached" in words

    def test_a_wrong_password_or_database(self, url):
        assert "refused the login" in refused(SourceError, url.replace(PASSWORD, "no-such-word"))
        words = refused(SourceError, url.replace("/postgres", "/nowhere"))
        assert "nowhere at 127.0.0.1" in words
        assert "does not exist" in words

    def test_signs_in_the_name_of_a_database(self, url):
        for name in ("no$where", "no+where", "no-where"):
            assert f"{name} at 127.0.0.1" in refused(
                SourceError, url.replace("/postgres", f"/{name}")
            )

    @pytest.mark.parametrize(
        "wrong",
        [
            f"postgresql://curator:p@{PASSWORD}@127.0.0.1/x",
            f"postgresql://curator:{PASSWORD}@127.0.0.1:port/x",
            f"postgresql+nothing://curator:{PASSWORD}@127.0.0.1/x",
            f"postgresql://curator:x@127.0.0.1/{PASSWORD}?@",
        ],
    )
    def test_a_url_that_cannot_be_read(self, wrong):
        assert "URL cannot be read" in refused(InputError, wrong)

    def test_a_password_without_a_host_is_no_port_to_be_shown(self):
        with pytest.raises(SourceError) as caught:
            opened("postgresql://localhost:1")
        assert ":1" not in str(caught.value)

    def test_an_option_the_driver_does_not_know(self, url):
        assert "postgres at 127.0.0.1" in refused(SourceError, f"{url}?{PASSWORD}={PASSWORD}")

    def test_a_missing_driver_names_the_extra(self, monkeypatch, url):
        monkeypatch.setitem(sys.modules, "psycopg2", None)
        driver = url.replace("postgresql:", "postgresql+psycopg2:")
        assert "dpregions[db]" in refused(MissingExtraError, driver)
        monkeypatch.setitem(sys.modules, "sqlalchemy", None)
        with pytest.raises(MissingExtraError, match=r"SQLAlchemy.*dpregions\[db\]"):
            opened(url)

    @pytest.mark.parametrize("user_id", ["user_id", None])
    def test_a_connection_that_drops_in_the_middle_spends_nothing(self, url, user_id):
        stream = opened(url, ENDLESS, user_id=user_id, chunk_rows=1000)
        batches = stream._batches

        def killed_after_three():
            for number, batch in enumerate(batches):
                yield batch
                if number == 2:
                    kill_the_readers(url)

        stream._batches = killed_after_three()
        with pytest.raises(SourceError, match="dropped the connection") as caught:
            releasing.release_with(
                Untouched(), stream, GRID, epsilon=1, max_diameter="2km", user_id=user_id
            )
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert PASSWORD not in "".join(traceback.format_exception(caught.value))

    def test_by_way_of_arrow_the_words_are_ours_too(self, url):
        reader = pa.RecordBatchReader.from_stream(opened(url, ENDLESS, chunk_rows=1000))
        reader.read_next_batch()
        kill_the_readers(url)
        with pytest.raises(SourceError, match="the Arrow stream failed") as caught:
            counted(reader)
        assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def kill_the_readers(url):
    asked = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    with psycopg.connect(url) as connection:
        connection.execute(asked + "AND backend_type = 'client backend'")
