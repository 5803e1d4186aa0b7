"""The curator's check: small tables, and the figures a person would write beside them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions import Grid, synthetic
from dpregions.curator import LABEL, check_regions
from dpregions.errors import CRSError, InputError, UnforeseenError
from dpregions.intake import figures
from dpregions.releases import make as releasing
from support import command_line
from support.small_chunks import open_in_chunks

GRID = Grid(0, 0, 1, n_rows=4, n_cols=5)

run = partial(command_line.run, "check")

ROWS = [
    ("ann", "POLYGON ((1 1, 2 1, 2 2, 1 2, 1 1))", "fine"),
    ("ann", "POINT (3 3)", "fine: a second row"),
    ("bob", None, "null"),
    ("cem", "POLYGON EMPTY", "empty"),
    ("dan", "POINT (nan 1)", "not finite"),
    ("eve", "POINT (9 9)", "outside"),
    ("fay", "POLYGON ((1 1, 2 2, 2 1, 1 2, 1 1))", "invalid, not convex"),
    ("gus", "POLYGON ((0 0, 3 0, 3 1, 1 1, 1 3, 0 3, 0 0))", "not convex, oversized"),
    ("hal", "LINESTRING (0 0, 1 1, 2 0)", "not convex"),
    ("ida", "MULTIPOINT (1 1, 2 2)", "not convex: its hull is a line"),
    (None, "LINESTRING (1 1, 2 2)", "without a user"),
    ("jan", "POLYGON ((5.2 -1, 6 0, 7 -1, 5.2 -1))", "outside"),
    ("kay", "POLYGON ((4 -3, 9 2, 9 -3, 4 -3))", "outside: its bounding box is not; oversized"),
]


def table(rows=ROWS):
    wkb = [None if text is None else shapely.from_wkt(text).wkb for _, text, *_ in rows]
    users = [user for user, *_ in rows]
    return pa.table({"user_id": pa.array(users), "geometry": pa.array(wkb, pa.binary())})


def stream(rows=ROWS, **options):
    return dpr.open_regions(table(rows), **options)


def checked(rows=ROWS, grid=GRID, **options):
    return check_regions(stream(rows), grid, **options)


def test_the_figures_are_those_of_the_table():
    found = checked(max_diameter=3)
    assert found.rows == 13
    assert found.null == 1
    assert found.empty == 1
    assert found.not_finite == 1
    assert found.outside == 3
    assert found.counted_rows == 7
    assert found.invalid == 1
    assert found.not_convex == 4
    assert found.oversized == 2
    assert found.unreadable == 0
    assert (found.users, found.rows_without_user) == (11, 1)
    assert (found.users_with_several_rows, found.most_rows_of_a_user) == (1, 2)
    assert not found.swapped_axes_suspected
    assert found.unit == "user"


def test_small_chunks_give_the_same():
    small = open_in_chunks(table(), chunk_rows=2)
    assert check_regions(small, GRID, max_diameter=3) == checked(max_diameter=3)


def test_without_a_bound_or_users_their_figures_are_left_out():
    found = check_regions(stream(user_id=None), GRID, user_id=None)
    assert found.oversized is None
    assert found.users is None
    assert found.most_rows_of_a_user is None
    assert found.unit == "record"


def test_no_rows_at_all():
    found = checked([])
    assert found.rows == found.users == found.most_rows_of_a_user == 0
    assert not found.swapped_axes_suspected


def test_bytes_that_are_no_wkb_are_unreadable():
    values = pa.array([b"\x01nonsense", shapely.Point(1, 1).wkb], pa.binary())
    table = pa.table({"user_id": [1, 2], "geometry": values})
    found = check_regions(dpr.open_regions(table), GRID)
    assert (found.unreadable, found.outside, found.counted_rows) == (1, 0, 1)


def test_lines_of_wrong_fields_and_empty_ids_are_shown(tmp_path):
    rows = ["user_id,wkt", "ann,POINT (1 1)", "too,many,fields", ",POINT (1 1)", "few", "bob,x"]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    found = check_regions(dpr.open_regions(tmp_path / "x.csv"), GRID)
    assert (found.skipped, found.rows, found.null) == (2, 3, 1)
    empty = checked([("", "POINT (1 1)", ""), ("ann", "POINT (1 1)", "")])
    assert (empty.users, empty.rows_without_user) == (1, 1)


def test_rows_add_up_on_a_synthetic_city(tmp_path):
    city = synthetic.regions(400)
    city.to_parquet(tmp_path / "c.parquet")
    grid = synthetic.grid(side="10km")
    found = check_regions(dpr.open_regions(tmp_path / "c.parquet"), grid, max_diameter="2km")
    area = shapely.box(*grid.bounds)
    assert found.outside == np.count_nonzero(~shapely.intersects(city.geometry.array, area))
    assert found.counted_rows + found.outside == 400
    diameters = [shapely.minimum_bounding_radius(shape) * 2 for shape in city.geometry]
    assert 0 < found.oversized < np.count_nonzero(np.array(diameters) > 2000)


class TestSwappedAxes:
    GRID = Grid.around(9.0, 48.5, side="20km", cell_size="1km")

    def checked(self, frame):
        frame = frame.assign(user_id=range(len(frame)))
        return check_regions(dpr.open_regions(frame.to_arrow()), self.GRID)

    def test_latitude_before_longitude(self):
        places = geopandas.GeoDataFrame(
            geometry=geopandas.points_from_xy([48.5, 48.51, 48.49], [9.0, 9.01, 9.0]), crs=4326
        )
        found = self.checked(places)
        assert (found.outside, found.inside_if_swapped) == (3, 3)
        assert found.swapped_axes_suspected

    def test_latitudes_beyond_the_pole(self):
        places = geopandas.GeoDataFrame(
            geometry=geopandas.points_from_xy([39.9, 39.8], [116.4, 116.3]), crs=4326
        )
        found = self.checked(places)
        assert found.beyond_degrees == 2
        assert found.swapped_axes_suspected

    def test_one_latitude_beyond_the_pole_says_nothing_of_the_others(self):
        places = geopandas.GeoDataFrame(
            geometry=geopandas.points_from_xy([9.0, 9.01, 39.9], [48.5, 48.51, 116.4]), crs=4326
        )
        found = self.checked(places)
        assert found.beyond_degrees == 1
        assert not found.swapped_axes_suspected

    def test_northing_before_easting(self):
        city = synthetic.regions(50)
        swapped = city.set_geometry(shapely.transform(city.geometry.array, lambda xy: xy[:, ::-1]))
        found = self.checked(swapped.set_crs(city.crs, allow_override=True))
        assert found.swapped_axes_suspected
        assert not self.checked(city).swapped_axes_suspected

    def test_another_city_is_no_swap(self):
        places = geopandas.GeoDataFrame(
            geometry=geopandas.points_from_xy([13.4, 13.5], [52.5, 52.4]), crs=4326
        )
        found = self.checked(places)
        assert found.outside == 2
        assert not found.swapped_axes_suspected


def test_a_missing_crs_or_column_is_refused():
    with pytest.raises(CRSError, match="carry no CRS"):
        checked(grid=synthetic.grid())
    with pytest.raises(InputError, match="user_id='driver' is no column"):
        checked(user_id="driver")


def test_a_release_never_checks(monkeypatch):
    def called(*_, **__):
        raise AssertionError("a release looked at the curator's figures")

    # The one function that every figure comes from: nothing else shows what was not called.
    monkeypatch.setattr(figures, "_figures", called)
    with pytest.raises(UnforeseenError, match="AssertionError"):
        checked()
    made = dpr.release(stream(), GRID, epsilon=1, max_diameter=2)
    assert made.private
    assert "dpregions.curator" not in Path(releasing.__file__).read_text()


def test_what_is_shown_is_labelled():
    assert LABEL in repr(checked())
    assert next(iter(checked().as_dict().items())) == ("label", LABEL)


class TestCommand:
    AREA = ("--around", "9.0,48.5", "--side", "20km", "--cell", "1km")

    @pytest.fixture
    def city(self, tmp_path):
        path = tmp_path / "city.gpkg"
        synthetic.regions(60).to_file(path)
        return path

    def test_the_table_is_labelled_and_has_the_figures(self, city):
        done = run(city, "--max-diameter", "2km", *self.AREA)
        assert done.exit_code == 0
        assert LABEL.upper() in done.stdout
        assert "60" in done.stdout
        assert "EPSG:32632" in done.stdout

    def test_json_is_that_of_the_library(self, city):
        done = run(city, "--max-diameter", "2km", "--json", *self.AREA)
        found = check_regions(dpr.open_regions(city), synthetic.grid(), max_diameter="2km")
        assert json.loads(done.stdout) == found.as_dict()

    def test_each_row(self, city):
        done = run(city, "--each-row", "--json", *self.AREA)
        assert json.loads(done.stdout)["users"] is None
        assert json.loads(done.stdout)["unit"] == "record"

    def test_errors_name_options(self, city, tmp_path):
        done = run(city, "--user-id", "driver", *self.AREA)
        assert done.exit_code == 2
        assert "--user-id 'driver' is no column" in done.stderr
        assert "--each-row" in done.stderr
        bare = tmp_path / "x.csv"
        bare.write_text("user_id,wkt\n1,POINT (1 2)\n")
        assert "EPSG:32632: give --crs" in run(bare, *self.AREA).stderr
        assert run(city, "--each-row", "--user-id", "x", *self.AREA).exit_code == 2
        assert "--sql has no use" in run(city, "--sql", "SELECT 1", *self.AREA).stderr
        assert run(city).exit_code == 2

    def test_a_database_that_is_down_is_exit_code_1(self):
        url = "postgresql://me:hunter2@127.0.0.1:1/x"
        done = run(url, "--sql", "SELECT 1", *self.AREA)
        assert done.exit_code == 1
        assert done.stderr.startswith("dpregions: failed: x at 127.0.0.1:1 is down")
        assert "hunter2" not in done.stderr
