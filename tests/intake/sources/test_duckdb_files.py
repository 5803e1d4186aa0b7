"""DuckDB: its own geometry and WKB, and no file or network but its own."""

from __future__ import annotations

import shutil

import duckdb
import pytest

import dpregions as dpr
from dpregions.errors import (
    DPRegionsError,
    InputTypeError,
    SourceError,
)
from support.city_files import counted, opened, refused, truth


class TestDuckDB:
    def test_sql_that_returns_no_geometry(self, folder):
        words = refused(folder / "city.duckdb", InputTypeError, sql="SELECT user_id FROM shapes")
        assert "returns no geometry: its columns are user_id" in words
        sql = "SELECT user_id, ST_AsText(shape) AS shape FROM shapes"
        assert "is of type VARCHAR" in refused(
            folder / "city.duckdb", InputTypeError, sql=sql, geometry="shape"
        )

    @pytest.mark.parametrize(
        "sql",
        ["SELEC 'secret-471'", "SELECT * FROM nope", "DROP TABLE shapes", "SELECT 1; SELECT 2"],
    )
    def test_sql_that_is_refused_is_not_quoted(self, sql, folder):
        words = refused(folder / "city.duckdb", sql=sql)
        assert "DuckDB refused the SQL" in words
        assert "471" not in words

    def test_sql_is_needed(self, folder):
        assert "DuckDB needs a query: give sql=" in refused(folder / "city.duckdb")

    def test_several_geometries(self, folder):
        sql = "SELECT user_id, shape, shape AS again FROM shapes"
        words = refused(folder / "city.duckdb", sql=sql)
        assert "choose one by geometry=, of shape, again" in words
        stream = opened(folder, "city.duckdb", sql=sql, geometry="again")
        assert counted(stream) == truth()

    def test_a_query_that_breaks_on_the_way(self, folder):
        sql = (
            "SELECT range AS user_id, CASE WHEN range = 500000 THEN error('record 471') "
            "ELSE 'POINT (1 2)'::GEOMETRY END AS geom FROM range(1000000)"
        )
        with pytest.raises(SourceError, match="nothing was released") as caught:
            counted(dpr.open_regions("duckdb://", sql=sql, crs=32632))
        assert "471" not in str(caught.value)
        assert caught.value.__context__ is None

    def test_no_extension_is_fetched(self, folder, no_network):
        sql = "SELECT user_id, ST_Buffer(shape, 1) AS shape FROM shapes"
        assert "without functions of an extension" in refused(folder / "city.duckdb", sql=sql)

    def test_column_names_that_need_quotes(self, folder):
        sql = 'SELECT user_id AS "the ""user""", shape AS "my shape" FROM shapes'
        stream = opened(folder, "city.duckdb", sql=sql, user_id='the "user"', geometry="my shape")
        assert counted(stream, user_id='the "user"') == truth()

    def test_a_view_reads_no_other_file(self, folder, tmp_path):
        other = tmp_path / "other.csv"
        other.write_text("user_id,wkt\n1,POINT (1 2)\n")
        with duckdb.connect(tmp_path / "view.duckdb") as connection:
            connection.execute(
                f"CREATE VIEW shapes AS SELECT user_id, wkt::GEOMETRY AS g FROM '{other}'"
            )
        words = refused(tmp_path / "view.duckdb", sql="FROM shapes", crs=32632)
        assert "reads nothing outside of it" in words
        table = dpr.synthetic.regions(5)
        table.to_parquet(tmp_path / "other.parquet")
        sql = f"SELECT user_id, geometry FROM '{tmp_path / 'other.parquet'}'"
        assert counted(dpr.open_regions("duckdb://", sql=sql)) == truth(table)

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT user_id, wkt::GEOMETRY AS g FROM '{}'",
            "SELECT user_id, wkt::GEOMETRY AS g FROM read_csv('{}', all_varchar = true)",
            "WITH t AS MATERIALIZED (FROM '{}') SELECT user_id, wkt::GEOMETRY AS g FROM t",
        ],
    )
    def test_types_that_are_inferred_from_all_rows_are_refused(self, sql, tmp_path):
        """One more id that is no time made 49 users of 24; without a header a row was quoted."""
        (tmp_path / "a.csv").write_text("user_id,wkt\nannCanary,POINT (1 2)\n")
        words = refused("duckdb://", sql=sql.format(tmp_path / "a.csv"), crs=32632)
        assert "open the CSV or GeoJSON file itself" in words
        assert "Canary" not in words

    def test_a_file_of_another_format(self, folder, tmp_path):
        shutil.copy(folder / "city.gpkg", tmp_path / "city.duckdb")
        assert "of another format" in refused(tmp_path / "city.duckdb", sql="FROM city")

    def test_a_time_of_day_with_an_offset_is_no_id(self):
        """Arrow has no such type, and drops the offset: two ids would be one."""
        sql = "SELECT '01:00:00+01'::TIMETZ AS user_id, 'POINT (1 2)'::GEOMETRY AS g"
        assert "cast it to text" in refused("duckdb://", InputTypeError, sql=sql, crs=32632)

    def test_a_refused_file_is_closed(self, folder, tmp_path):
        shutil.copy(folder / "city.duckdb", tmp_path / "a.duckdb")
        refused(tmp_path / "a.duckdb", InputTypeError, sql="SELECT 1 AS user_id")
        with duckdb.connect(tmp_path / "a.duckdb") as connection:
            connection.execute("CREATE TABLE another (x INTEGER)")

    @pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "INTEGER[]", "STRUCT(a INTEGER)"])
    def test_ids_of_a_kind_that_is_none(self, kind):
        sql = f"SELECT NULL::{kind} AS user_id, 'POINT (1 2)'::GEOMETRY AS g"
        assert "cannot be ids" in refused("duckdb://", InputTypeError, sql=sql, crs=32632)

    @pytest.mark.parametrize("kind", ["HUGEINT", "UBIGINT", "DECIMAL(38, 2)", "UUID", "VARCHAR",
                                      "BLOB", "DATE", "TIMESTAMP_NS", "BOOLEAN"])  # fmt: skip
    def test_ids_of_a_kind_that_is_exact(self, kind):
        sql = f"SELECT NULL::{kind} AS user_id, 'POINT (1 2)'::GEOMETRY AS g"
        stream = dpr.open_regions("duckdb://", sql=sql, crs=32632, geometry="g")
        assert not counted(stream).counts.any()

    def test_missing_duckdb_names_the_extra(self, folder, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
        with pytest.raises(DPRegionsError, match=r"dpregions\[db\]"):
            opened(folder, "city.duckdb", sql="FROM shapes")
