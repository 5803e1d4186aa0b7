"""Sources: the same regions through every file format, DuckDB and Arrow; and bad input."""

from __future__ import annotations

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
    InputError,
    PrivacyError,
)
from dpregions.intake.arrow import RegionStream, plain_column
from dpregions.intake.ids import IdColumns
from dpregions.io.region_files import save_regions
from support.city_files import CITY, GRID, counted, degrees, opened, truth
from support.small_chunks import open_in_chunks


def by_arrow(folder):
    return pq.read_table(folder / "city.parquet")


def by_polars(folder):
    columns = ["user_id", "geometry"]
    return polars.from_arrow(pq.read_table(folder / "city.parquet", columns=columns))


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

    @pytest.mark.parametrize("name", ["city.parquet", "city.gpkg", "city.fgb", "city.shp"])
    def test_progress_does_not_tell_how_many_rows_there_are(self, name, folder):
        """One step of so many rows would be a share from which their number follows."""
        shares, size = [], len(CITY) // 5
        list(open_in_chunks(folder / name, chunk_rows=size, progress=shares.append))
        assert 0.2 not in np.round(shares, 3)

    def test_only_the_needed_columns_are_read(self, folder, monkeypatch):
        asked = []
        real = pq.ParquetFile.iter_batches

        def noted(self, *args, columns, **kwargs):
            asked.append(columns)
            return real(self, *args, columns=columns, **kwargs)

        # What was read and dropped would not show in the stream.
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
        list(opened(folder, "city.parquet"))
        assert asked[-1] == ["user_id", "geometry"]  # before, how long their values may be
        assert {name for columns in asked for name in columns} == {"user_id", "geometry"}

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


def test_a_region_stream_can_be_made_of_any_batches():
    schema = pa.schema({"user_id": pa.string(), "geometry": pa.binary()})
    wkb = box(500000, 5372000, 501000, 5373000).wkb
    batch = pa.record_batch([pa.array(["a"]), pa.array([wkb], pa.binary())], schema=schema)
    stream = RegionStream(iter([batch]), schema, GRID.crs)
    assert counted(stream).count(*GRID.bounds) == 1
    assert np.asarray(stream.columns).tolist() == ["user_id", "geometry"]
