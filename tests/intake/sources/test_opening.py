"""Sources: the same regions through every file format, DuckDB and Arrow; and bad input."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from functools import partial

import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from shapely import Point, box

import dpregions as dpr
from dpregions import EulerHistogram, synthetic
from dpregions.errors import (
    CRSError,
    DPRegionsError,
    InputError,
    InputTypeError,
    PrivacyError,
    SourceError,
)
from dpregions.intake.arrow import RegionStream, plain_column
from dpregions.intake.ids import IdColumns
from dpregions.io.region_files import save_regions
from dpregions.releases.make import release_with
from support.small_chunks import open_in_chunks
from support.watched_noise import Untouched

GRID = synthetic.grid(cell_size="2km")


def city() -> geopandas.GeoDataFrame:
    """300 users, some with several rows, some rows without a user, some without a region."""
    frame = synthetic.regions(300)
    again = synthetic.regions(60, seed=1)
    nobody = synthetic.regions(5, seed=2).astype({"user_id": "Int64"})
    nobody["user_id"] = pd.NA
    parts = [frame.astype({"user_id": "Int64"}), again.astype({"user_id": "Int64"}), nobody]
    whole = pd.concat(parts, ignore_index=True)
    whole["user_id"] = whole["user_id"].astype("Int64")
    whole.loc[[7, 70, 170], "geometry"] = None
    whole["note"] = "not needed"
    return whole


CITY = city()


def degrees() -> geopandas.GeoDataFrame:
    return CITY.to_crs(4326)


def truth(frame=CITY, **options):
    return EulerHistogram.from_regions(frame, GRID, user_id="user_id", **options)


def counted(stream, user_id="user_id", grid=GRID):
    return EulerHistogram.from_regions(stream, grid, user_id=user_id)


def write_csv(path, frame=CITY):
    table = pd.DataFrame({"user_id": frame["user_id"], "wkt": frame.geometry.to_wkt()})
    table.to_csv(path, index=False)


def write_duckdb(path, frame=CITY):
    described = GRID.crs.to_json().replace("'", "''")
    with duckdb.connect(str(path)) as connection:
        table = pa.table({"user_id": pa.array(frame["user_id"]), "wkb": frame.geometry.to_wkb()})
        connection.register("given", table)
        connection.execute("CREATE TABLE blobs AS SELECT user_id, wkb::BLOB AS wkb FROM given")
        connection.execute(
            f"CREATE TABLE shapes AS SELECT user_id, 'x' AS note, "
            f"ST_SetCRS(ST_GeomFromWKB(wkb::BLOB), '{described}') AS shape FROM given"
        )


def zipped(path, shapefile):
    with zipfile.ZipFile(path, "w") as archive:
        for suffix in (".shp", ".shx", ".dbf", ".prj"):
            archive.write(shapefile.with_suffix(suffix), f"city{suffix}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the city in every format."""
    folder = tmp_path_factory.mktemp("city")
    CITY.to_parquet(folder / "city.parquet", row_group_size=64)
    CITY.to_file(folder / "city.gpkg", layer="homes")
    CITY.to_file(folder / "city.fgb", SPATIAL_INDEX="NO")
    degrees().to_file(folder / "city.geojson", COORDINATE_PRECISION=15)
    CITY.to_file(folder / "city.shp")
    zipped(folder / "city.zip", folder / "city.shp")
    write_csv(folder / "city.csv")
    with gzip.open(folder / "city.csv.gz", "wb") as file:
        file.write((folder / "city.csv").read_bytes())
    write_duckdb(folder / "city.duckdb")
    return folder


def by_arrow(folder):
    return pq.read_table(folder / "city.parquet")


def by_polars(folder):
    columns = ["user_id", "geometry"]
    return polars.from_arrow(pq.read_table(folder / "city.parquet", columns=columns))


def opened(folder, name, **options):
    return dpr.open_regions(folder / name, **options)


SOURCES = {
    "GeoParquet": lambda f, o: o(f / "city.parquet"),
    "GeoPackage": lambda f, o: o(f / "city.gpkg"),
    "GeoPackage, its layer named": lambda f, o: o(f / "city.gpkg", layer="homes"),
    "FlatGeobuf": lambda f, o: o(f / "city.fgb"),
    "Shapefile": lambda f, o: o(f / "city.shp"),
    "zipped Shapefile": lambda f, o: o(f / "city.zip"),
    "CSV with WKT": lambda f, o: o(f / "city.csv", crs=32632),
    "compressed CSV": lambda f, o: o(f / "city.csv.gz", crs="EPSG:32632", geometry="wkt"),
    "a path as text": lambda f, o: o(str(f / "city.parquet")),
    "DuckDB's GEOMETRY": lambda f, o: o(f / "city.duckdb", sql="SELECT * FROM shapes;"),
    "DuckDB's GEOMETRY by URL": lambda f, o: o(
        f"duckdb:///{f}/city.duckdb", sql="FROM shapes -- all of them", geometry="shape"
    ),
    "WKB in DuckDB": lambda f, o: o(f / "city.duckdb", sql="SELECT * FROM blobs", crs=GRID.crs),
    "a file through DuckDB": lambda f, o: o(
        "duckdb://", sql=f"SELECT user_id, geometry FROM '{f}/city.parquet'"
    ),
    "an Arrow table": lambda f, o: o(by_arrow(f)),
    "an Arrow reader": lambda f, o: o(by_arrow(f).to_reader(max_chunksize=50)),
    "a Polars frame": lambda f, o: o(by_polars(f), crs=32632),
    "a DuckDB relation": lambda f, o: o(
        duckdb.connect(f / "city.duckdb", read_only=True).sql("FROM shapes")
    ),
    "a stream of a stream": lambda f, o: o(o(f / "city.parquet")),
}


class TestEverySource:
    @pytest.mark.parametrize("source", SOURCES)
    def test_the_same_regions_give_the_same_histogram(self, source, folder):
        stream = SOURCES[source](folder, dpr.open_regions)
        assert stream.columns == ["user_id", "geometry"]
        assert stream.crs == GRID.crs
        assert counted(stream) == truth()

    @pytest.mark.parametrize("source", SOURCES)
    def test_small_chunks_give_the_same(self, source, folder):
        small = partial(open_in_chunks, chunk_rows=17, csv_block=1 << 12)
        batches = list(SOURCES[source](folder, small))
        assert all(batch.num_rows <= 17 for batch in batches)
        assert sum(batch.num_rows for batch in batches) == len(CITY)
        assert counted(SOURCES[source](folder, small)) == truth()

    def test_geojson_is_in_degrees_and_gives_the_same_as_a_frame_in_degrees(self, folder):
        stream = opened(folder, "city.geojson")
        assert stream.crs == "OGC:CRS84"
        assert counted(stream) == truth(degrees())

    @pytest.mark.parametrize("source", ["GeoParquet", "Shapefile", "CSV with WKT"])
    def test_each_row_its_own_user(self, source, folder):
        names = {"GeoParquet": "city.parquet", "Shapefile": "city.shp", "CSV with WKT": "city.csv"}
        crs = 32632 if names[source].endswith("csv") else None
        stream = opened(folder, names[source], user_id=None, crs=crs)
        assert stream.columns == ["geometry"]
        assert counted(stream, user_id=None) == EulerHistogram.from_regions(CITY, GRID)

    @pytest.mark.parametrize("name", ["city.parquet", "city.gpkg", "city.geojson", "city.csv"])
    def test_progress_ends_at_all(self, name, folder):
        shares = []
        list(open_in_chunks(folder / name, chunk_rows=100, progress=shares.append))
        assert shares == sorted(shares)
        assert shares[-1] == 1.0

    def test_only_the_needed_columns_are_read(self, folder, monkeypatch):
        asked = []
        real = pq.ParquetFile.iter_batches

        def noted(self, *args, columns, **kwargs):
            asked.append(columns)
            return real(self, *args, columns=columns, **kwargs)

        monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
        list(opened(folder, "city.parquet"))
        assert asked == [["user_id", "geometry"]]

    def test_a_stream_is_read_once(self, folder):
        stream = opened(folder, "city.parquet")
        counted(stream)
        with pytest.raises(InputError, match="open the source again"):
            counted(stream)

    def test_a_stream_that_was_closed_is_not_read(self, folder):
        with opened(folder, "city.duckdb", sql="FROM shapes") as stream:
            pass
        with pytest.raises(InputError, match="open the source again"):
            list(stream)

    def test_a_stream_is_arrow_data_with_its_crs(self, folder):
        frame = geopandas.GeoDataFrame.from_arrow(opened(folder, "city.gpkg"))
        assert frame.crs == CITY.crs
        assert len(frame) == len(CITY)

    def test_its_text_says_nothing_that_was_counted(self, folder):
        text = repr(opened(folder, "city.parquet"))
        assert text == "<RegionStream of user_id, geometry, EPSG:32632>"

    def test_ids_under_another_name(self, folder, tmp_path):
        CITY.rename(columns={"user_id": "driver"}).to_file(tmp_path / "c.gpkg")
        stream = dpr.open_regions(tmp_path / "c.gpkg", user_id="driver")
        assert counted(stream, user_id="driver") == truth()

    @pytest.mark.parametrize("inside", ["", "sub/", "a/b c/"])
    def test_a_zip_may_have_a_folder_and_what_a_mac_adds(self, inside, folder, tmp_path):
        with zipfile.ZipFile(tmp_path / "mac.zip", "w") as archive:
            for suffix in (".shp", ".shx", ".dbf", ".prj"):
                archive.write(folder / f"city{suffix}", f"{inside}city{suffix}")
                archive.writestr(f"__MACOSX/{inside}._city{suffix}", b"x" * 120)
            archive.writestr(f"{inside}readme.txt", "hello")
        assert counted(opened(tmp_path, "mac.zip")) == truth()

    def test_degrees_may_be_stated_in_either_order_of_axes(self, tmp_path):
        CITY.to_crs("OGC:CRS84").to_parquet(tmp_path / "c.parquet")
        assert counted(opened(tmp_path, "c.parquet", crs=4326)) == truth(degrees())

    def test_capitals_in_a_suffix_do_not_matter(self, folder, tmp_path):
        shutil.copy(folder / "city.csv.gz", tmp_path / "CITY.CSV.GZ")
        assert counted(opened(tmp_path, "CITY.CSV.GZ", crs=32632)) == truth()

    def test_of_several_geometries_the_primary_one_is_meant(self, tmp_path):
        frame = geopandas.GeoDataFrame(
            {"user_id": CITY["user_id"], "home": CITY.centroid, "area": CITY.geometry},
            geometry="area",
            crs=CITY.crs,
        )
        frame.to_parquet(tmp_path / "two.parquet")
        assert counted(opened(tmp_path, "two.parquet")) == truth()
        homes = truth(frame.set_geometry("home"))
        assert counted(opened(tmp_path, "two.parquet", geometry="home")) == homes
        assert homes != truth()

    def test_the_crs_of_geoparquet_counts_where_the_column_itself_says_none(self, folder):
        table = pq.read_table(folder / "city.parquet", columns=["user_id", "geometry"])
        bare = pa.field("geometry", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
        geo = {b"geo": table.schema.metadata[b"geo"]}
        schema = pa.schema([table.schema.field("user_id"), bare], metadata=geo)
        columns = [table["user_id"], plain_column(table["geometry"])]
        assert counted(dpr.open_regions(pa.table(columns, schema=schema))) == truth()

    def test_large_whole_numbers_stay_apart(self, tmp_path):
        ids = [2**60, 2**60 + 1, None]
        frame = geopandas.GeoDataFrame(
            {"user_id": pd.array(ids, dtype="Int64")}, geometry=CITY.geometry[:3], crs=GRID.crs
        )
        frame.to_parquet(tmp_path / "c.parquet")
        frame.to_file(tmp_path / "c.gpkg")
        for name in ("c.parquet", "c.gpkg"):
            assert counted(opened(tmp_path, name)).count(*GRID.bounds) == 2


class TestPlaces:
    TABLE = "user_id,lon,lat\na,9.01,48.5\nb,8.99,48.51\nc,none,48.5\n,9,48.5\nd,9,\n"

    def test_a_row_of_longitude_and_latitude_is_a_point(self, tmp_path):
        (tmp_path / "p.csv").write_text(self.TABLE)
        points = geopandas.GeoSeries([Point(9.01, 48.5), Point(8.99, 48.51)], crs=4326)
        assert counted(opened(tmp_path, "p.csv")) == EulerHistogram.from_regions(points, GRID)

    def test_the_columns_may_have_other_names_and_another_crs(self, tmp_path):
        (tmp_path / "p.csv").write_text("who,x,y\na,500100,5372000\n")
        stream = opened(tmp_path, "p.csv", user_id="who", lon="x", lat="y", crs=32632)
        expected = EulerHistogram.from_regions([Point(500100, 5372000)], GRID, crs=32632)
        assert counted(stream, user_id="who") == expected
        assert expected.counts.any()

    def test_the_words_longitude_and_latitude_are_known(self, tmp_path):
        (tmp_path / "p.csv").write_text(self.TABLE.replace("lon,lat", "longitude,latitude"))
        assert counted(opened(tmp_path, "p.csv")).count(*GRID.bounds) == 2


class TestUnit:
    """A file of trajectories says so, and its release does too."""

    def write(self, folder):
        frame = synthetic.regions(6)
        frame["user_id"] = [1, 1, 2, 2, 2, 3]
        frame["trajectory"] = [0, 1, 0, 1, 1, 0]
        frame.attrs["dpregions_unit"] = "trajectory"
        save_regions(frame, folder / "t.parquet")
        return frame

    def test_trajectories_are_the_unit_of_a_release_of_the_file(self, tmp_path):
        frame = self.write(tmp_path)
        stream = opened(tmp_path, "t.parquet")
        assert stream.columns == ["user_id", "trajectory", "geometry"]
        released = dpr.release(stream, GRID, epsilon=1, max_diameter="4km", unit="trajectory")
        assert released.unit == "trajectory"
        ids = IdColumns(("user_id", "trajectory"))
        assert counted(opened(tmp_path, "t.parquet"), user_id=ids) == counted(frame, user_id=ids)
        assert counted(frame, user_id=ids).count(*GRID.bounds) == 5

    def test_by_way_of_arrow_too(self, tmp_path):
        self.write(tmp_path)
        stream = dpr.open_regions(pq.read_table(tmp_path / "t.parquet"))
        terms = {"epsilon": 1, "max_diameter": "4km"}
        assert dpr.release(stream, GRID, unit="trajectory", **terms).unit == "trajectory"

    def test_a_mark_never_overrides_the_ids_that_were_named(self, tmp_path):
        """200 rows of one user, marked as trajectories, are refused and not counted 200 times."""
        self.write(tmp_path)
        for unit in (None, "user"):
            stream = opened(tmp_path, "t.parquet", user_id="user_id", unit=unit)
            with pytest.raises(PrivacyError, match="unit='trajectory'"):
                dpr.release(stream, GRID, epsilon=1, max_diameter="4km", unit=unit)

    def test_a_file_of_users_is_of_users(self, tmp_path):
        save_regions(synthetic.regions(6), tmp_path / "u.parquet")
        stream = opened(tmp_path, "u.parquet")
        assert dpr.release(stream, GRID, epsilon=1, max_diameter="4km").unit == "user"

    def test_each_row_is_a_record(self, tmp_path):
        self.write(tmp_path)
        stream = opened(tmp_path, "t.parquet", user_id=None)
        made = dpr.release(stream, GRID, epsilon=1, max_diameter="4km", user_id=None)
        assert made.unit == "record"


def refused(source, kind=InputError, **options):
    """Return the words in which a source is refused, when it is opened or read: before noise."""
    terms = {"epsilon": 1, "max_diameter": "2km"}
    with pytest.raises(kind) as caught:
        release_with(Untouched(), dpr.open_regions(source, **options), GRID, **terms)
    assert caught.value.__cause__ is None
    return str(caught.value)


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
        for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
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


class TestRecords:
    """Trouble with single records never stops a reading, and is not told."""

    def test_records_that_are_no_region_count_nowhere(self, tmp_path, recwarn):
        rows = ["POINT (500000 5372000)", "POINT (", "", "POINT EMPTY", "POINT (nan 1)", "hello"]
        rows.append("CURVEPOLYGON (CIRCULARSTRING (0 0, 1 1, 2 0, 1 -1, 0 0))")
        lines = [f'{i},"{row}"' for i, row in enumerate(rows)]
        (tmp_path / "x.csv").write_text("\n".join(["user_id,wkt", *lines, "9,1,2,3"]))
        hist = counted(opened(tmp_path, "x.csv", crs=32632))
        assert hist.count(*GRID.bounds) == 1
        assert not recwarn

    def test_a_self_crossing_polygon_is_no_news(self, tmp_path, recwarn, capfd):
        bow = shapely.from_wkt("POLYGON ((500000 5372000, 501000 5373000, 501000 5372000, "
                               "500000 5373000, 500000 5372000))")  # fmt: skip
        frame = geopandas.GeoDataFrame({"user_id": [1]}, geometry=[bow], crs=32632)
        for name in ("x.gpkg", "x.geojson", "x.fgb"):
            frame.to_file(tmp_path / name)
        recwarn.clear()
        for name in ("x.gpkg", "x.geojson", "x.fgb"):
            assert counted(opened(tmp_path, name)).count(*GRID.bounds) == 1
        assert not recwarn
        assert capfd.readouterr().err == ""

    def test_an_id_that_is_no_text_in_utf_8_is_an_id(self, tmp_path):
        names = [f"Jos\u00e9{i}" for i in range(len(CITY))]
        frame = CITY.assign(user_id=names)
        frame.to_file(tmp_path / "x.shp", encoding="ISO-8859-1")
        (tmp_path / "x.cpg").write_text("UTF-8")
        assert counted(opened(tmp_path, "x.shp")) == truth(frame)
        frame.to_crs(4326).to_file(tmp_path / "x.geojson", COORDINATE_PRECISION=15)
        text = (tmp_path / "x.geojson").read_bytes().replace('Jos\u00e97"'.encode(), b'\xff\xfe"')
        (tmp_path / "x.geojson").write_bytes(text)
        assert counted(opened(tmp_path, "x.geojson")) == truth(frame.to_crs(4326))

    @pytest.mark.parametrize("suffix", ["parquet", "gpkg", "fgb", "csv"])
    def test_no_rows_at_all_are_no_trouble(self, suffix, tmp_path):
        path = tmp_path / f"none.{suffix}"
        none = CITY.iloc[:0]
        if suffix == "parquet":
            none.to_parquet(path)
        elif suffix == "csv":
            path.write_text("user_id,wkt\n")
        else:
            none.astype({"user_id": int}).to_file(path)
        crs = 32632 if suffix == "csv" else None
        assert not counted(dpr.open_regions(path, crs=crs)).counts.any()


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


def test_a_region_stream_can_be_made_of_any_batches():
    schema = pa.schema({"user_id": pa.string(), "geometry": pa.binary()})
    wkb = box(500000, 5372000, 501000, 5373000).wkb
    batch = pa.record_batch([pa.array(["a"]), pa.array([wkb], pa.binary())], schema=schema)
    stream = RegionStream(iter([batch]), schema, GRID.crs)
    assert counted(stream).count(*GRID.bounds) == 1
    assert np.asarray(stream.columns).tolist() == ["user_id", "geometry"]
