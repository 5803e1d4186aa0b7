"""Sources that cannot be what they say are refused before any noise, in words of our own."""

from __future__ import annotations

import json
import shutil
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

import dpregions as dpr
from dpregions.errors import (
    CRSError,
    InputTypeError,
    SourceError,
)
from support.city_files import CITY, GRID, counted, degrees, opened, refused, truth


class TestRefused:
    @pytest.mark.parametrize("cut", [0.02, 0.3, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("suffix", ["parquet", "gpkg", "fgb", "geojson", "zip", "csv.gz"])
    def test_a_half_written_file(self, suffix, cut, folder, tmp_path):
        whole = (folder / f"city.{suffix}").read_bytes()
        path = tmp_path / f"half.{suffix}"
        path.write_bytes(whole[: int(len(whole) * cut)])
        words = refused(path, crs=None if suffix != "csv.gz" else 32632)
        assert f"half.{suffix} is cut short" in words

    @pytest.mark.parametrize("part", [".shp", ".shx", ".dbf"])
    @pytest.mark.parametrize("cut", [0.0, 0.02, 0.5, 0.99])
    def test_a_half_written_part_of_a_shapefile(self, part, cut, folder, tmp_path):
        for suffix in (".shp", ".shx", ".dbf", ".prj"):
            shutil.copy(folder / f"city{suffix}", tmp_path / f"half{suffix}")
        whole = (folder / f"city{part}").read_bytes()
        (tmp_path / f"half{part}").write_bytes(whole[: int(len(whole) * cut)])
        words = refused(tmp_path / "half.shp")
        assert "is empty" in words if (part, cut) == (".shp", 0) else f"its {part} is cut" in words

    @pytest.mark.parametrize("part", [".shx", ".dbf"])
    def test_a_missing_part_of_a_shapefile(self, part, folder, tmp_path):
        for suffix in (".shp", *({".shx", ".dbf"} - {part})):
            shutil.copy(folder / f"city{suffix}", tmp_path / f"some{suffix}")
        assert f"and {part} is missing" in refused(tmp_path / "some.shp")

    @pytest.mark.parametrize("cut", [0.3, 0.9])
    @pytest.mark.parametrize("separator", ["", "\x1e"])
    def test_half_written_lines_of_geojson(self, cut, separator, folder, tmp_path):
        features = json.loads((folder / "city.geojson").read_text())["features"]
        whole = "".join(f"{separator}{json.dumps(feature)}\n" for feature in features)
        path = tmp_path / "x.geojson"
        path.write_text(whole)
        assert counted(dpr.open_regions(path)) == truth(degrees())
        path.write_text(whole[: int(len(whole) * cut)])
        assert "x.geojson is cut short" in refused(path)

    @pytest.mark.parametrize("cut", [0.5, 0.9])
    def test_a_half_written_csv_file(self, cut, folder, tmp_path):
        whole = (folder / "city.csv").read_bytes()
        (tmp_path / "x.csv").write_bytes(whole[: whole.index(b" ", int(len(whole) * cut))])
        assert "x.csv is cut short: it ends within quotes" in refused(tmp_path / "x.csv", crs=32632)

    def test_a_zip_without_parts_or_without_a_shapefile(self, folder, tmp_path):
        path = tmp_path / "some.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(folder / "city.dbf", "city.dbf")
        assert ".shp and .shx are missing" in refused(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "hello")
        assert "holds no Shapefile" in refused(path)

    @pytest.mark.parametrize("suffix", ["parquet", "gpkg", "fgb", "geojson", "shp", "csv", "db"])
    def test_a_file_of_nothing_or_of_something_else(self, suffix, tmp_path):
        path = tmp_path / f"x.{suffix}"
        assert "there is no such" in refused(path, sql="SELECT 1")
        path.write_bytes(b"")
        assert "x." in refused(path, sql="FROM t" if suffix == "db" else None)
        path.write_bytes(b"\x00secret 471\xff" * 500)
        words = refused(path, sql="FROM t" if suffix == "db" else None)
        assert "x." in words
        assert "471" not in words

    @pytest.mark.parametrize("suffix", ["parquet", "gpkg", "fgb", "shp", "csv"])
    def test_a_missing_column_of_users(self, suffix, folder):
        words = refused(folder / f"city.{suffix}", user_id="driver", crs=None)
        assert "user_id='driver' is no" in words
        assert "user_id=None if each row is its own user" in words
        if suffix != "csv":
            assert "note" in words

    def test_regions_without_a_crs(self, folder, tmp_path):
        assert "carry no CRS" in refused(folder / "city.csv", CRSError)
        bare = CITY.dropna(subset=["geometry"]).set_crs(None, allow_override=True)
        for name in ("c.gpkg", "c.fgb", "c.shp"):
            with pytest.warns(UserWarning, match="'crs' was not provided"):
                bare.to_file(tmp_path / name)
            assert "carry no CRS" in refused(tmp_path / name, CRSError)

    def test_a_crs_beside_another(self, folder):
        for name in ("city.parquet", "city.gpkg", "city.fgb", "city.geojson"):
            words = refused(folder / name, CRSError, crs=3857)
            label = "OGC:CRS84" if name == "city.geojson" else "EPSG:32632"
            assert f"regions carry {label}" in words
        assert "is no CRS" in refused(folder / "city.csv", CRSError, crs="nonsense")

    def test_a_file_with_several_layers(self, folder, tmp_path):
        path = tmp_path / "two.gpkg"
        CITY.to_file(path, layer="homes")
        CITY.to_file(path, layer="offices")
        assert "layer=, of 'homes', 'offices'" in refused(path)
        assert "there are 'homes', 'offices'" in refused(path, layer="schools")
        assert counted(dpr.open_regions(path, layer="homes")) == truth()
        assert "layer= has no use for CSV" in refused(folder / "city.csv", layer="homes")

    def test_a_file_of_an_unknown_kind(self, tmp_path, folder):
        (tmp_path / "x.xlsx").write_text("hello")
        words = refused(tmp_path / "x.xlsx")
        assert "its name does not tell its format" in words
        assert "GeoPackage (.gpkg)" in words
        assert "there is no such file" in refused(folder / "folder.gpkg")

    def test_options_that_do_nothing(self, folder):
        assert "sql= has no use" in refused(folder / "city.gpkg", sql="SELECT 1")
        assert "lon= has no use" in refused(folder / "city.parquet", lon="x", lat="y")
        assert "geometry= has no use" in refused(folder / "city.gpkg", geometry="geom")
        assert "lon and lat go together" in refused(folder / "city.csv", lon="x")
        words = refused(folder / "city.csv", lon="x", lat="y", geometry="wkt")
        assert "not both" in words

    def test_what_is_no_source(self):
        for source in (None, 5, [Point(1, 1)], Point(1, 1)):
            assert "a source is a path" in refused(source, InputTypeError)
        assert "pass it on as it is" in refused(CITY, InputTypeError)
        assert "geometry must be text" in refused("x.csv", InputTypeError, geometry=1)

    def test_a_url_of_another_kind_is_refused_without_its_password(self):
        words = refused("mysql://me:hunter2@db/x", sql="SELECT 1")
        assert "mysql://" in words
        assert "hunter2" not in words

    @pytest.mark.parametrize(
        "source",
        [
            "postgresql:/me:hunter2@db/x",
            "host=db user=me password=hunter2",
            "jdbc:postgresql://db/x?user=me&word=hunter2",
            "postgres_x://me:hunter2@db/x",
            "PG:host=db user=me auth=hunter2",
            "/vsicurl/https://me:hunter2@db/x.gpkg",
            "me:hunter2@db/x.parquet" + "x" * 300 + ".parquet",
            "duckdb:///x.db?word=hunter2",
        ],
    )
    def test_what_may_hold_a_password_is_not_shown(self, source):
        words = refused(source, sql="SELECT 1")
        assert "postgresql://..." in words
        assert "hunter2" not in words

    def test_blanks_around_a_url_do_not_matter(self):
        words = refused(" mysql://me:hunter2@db/x ", sql="SELECT 1")
        assert "a source at mysql://" in words

    def test_a_file_may_have_signs_of_a_url_in_its_name(self, folder, tmp_path):
        shutil.copy(folder / "city.parquet", tmp_path / "me@home.parquet")
        assert counted(opened(tmp_path, "me@home.parquet")) == truth()

    def test_a_table_separated_by_other_signs(self, tmp_path):
        path = tmp_path / "x.csv"
        for sign, name in (("\t", "tabs"), ("|", "bars")):
            path.write_text(f"user_id{sign}wkt\n471{sign}POINT (1 2)\n")
            words = refused(path, crs=32632)
            assert f"separated by {name}" in words
            assert "471" not in words

    def test_a_table_without_a_header(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("471,POINT (1 2)\n472,POINT (2 3)\n")
        for options in ({}, {"geometry": "wkt"}, {"lon": "lon", "lat": "lat"}):
            words = refused(path, **options)
            assert "a line of names at the top?" in words
            assert "471" not in words

    def test_a_geometry_column_that_is_none(self, folder, tmp_path):
        words = refused(folder / "city.parquet", InputTypeError, geometry="note")
        assert "geometry='note' holds" in words
        assert "is no column" in refused(folder / "city.parquet", geometry="shape")
        pq.write_table(pa.table({"user_id": [1]}), tmp_path / "x.parquet")
        assert "no WKB column" in refused(tmp_path / "x.parquet", InputTypeError)
        assert "is the column of regions" in refused(folder / "city.parquet", user_id="geometry")

    def test_geoparquet_with_broken_metadata(self, tmp_path):
        table = pa.table({"user_id": [1], "geometry": [Point(1, 2).wkb]})
        broken = (b"{", b"{}x", b'{"primary_column": "geometry"}', b"[1]", b"[" * 100_000, b"\xff",
                  b'{"primary_column": "geometry", "columns": null}',
                  b'{"primary_column": "geometry", "columns": ["geometry"]}',
                  b'{"primary_column": ["geometry"], "columns": {"geometry": {}}}',
                  b'{"primary_column": "geometry", "columns": {"geometry": null}}')  # fmt: skip
        for geo in broken:
            described = table.replace_schema_metadata({b"geo": geo})
            pq.write_table(described, tmp_path / "x.parquet")
            assert "cannot be read" in refused(tmp_path / "x.parquet")
            assert "cannot be read" in refused(described)

    @pytest.mark.parametrize("metadata", ["{", "null", "[1]"])
    def test_arrow_data_with_broken_metadata(self, metadata):
        marked = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": metadata}
        fields = [pa.field("user_id", pa.int64()), pa.field("g", pa.binary(), metadata=marked)]
        table = pa.table([[1], [Point(1, 2).wkb]], schema=pa.schema(fields))
        assert "'ARROW:extension:metadata' cannot be read" in refused(table)

    def test_two_columns_of_one_name(self, tmp_path):
        columns = [pa.array([1]), *[pa.array([Point(1, 2).wkb])] * 2]
        table = pa.Table.from_arrays(columns, names=["user_id", "geometry", "geometry"])
        pq.write_table(table, tmp_path / "x.parquet")
        for source in (table, tmp_path / "x.parquet"):
            assert "geometry='geometry' names several columns" in refused(source, crs=32632)

    def test_several_geometries_of_which_none_is_the_first_choice(self):
        table = pa.table(CITY.assign(home=CITY.centroid).to_arrow())
        assert "choose one by geometry=, of geometry, home" in refused(table)
        assert counted(dpr.open_regions(table, geometry="geometry")) == truth()

    def test_an_arrow_stream_that_breaks(self):
        def batches():
            yield pa.record_batch({"user_id": [1], "geometry": [Point(1, 2).wkb]})
            raise OSError("secret record 471")

        schema = pa.schema({"user_id": pa.int64(), "geometry": pa.binary()})
        for take in (lambda reader: reader, dpr.open_regions):
            reader = pa.RecordBatchReader.from_batches(schema, batches())
            with pytest.raises(SourceError, match="failed while it was read") as caught:
                dpr.release(take(reader), GRID, epsilon=1, max_diameter="2km", crs=32632)
            assert "471" not in str(caught.value)
            assert caught.value.__context__ is None

    def test_a_geojson_that_is_no_geojson(self, tmp_path):
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"type": "Topology", "secret": 471}))
        words = refused(path)
        assert "x.json" in words
        assert "471" not in words
