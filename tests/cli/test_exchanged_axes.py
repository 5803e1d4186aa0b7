"""Exchanged longitude and latitude, and what else a curator is told by `check` and `--report`."""

import json

import geopandas
import pandas as pd
import pytest
import shapely

import dpregions as dpr
from support.command_line import run

AREA = ("--around", "9.0,48.5", "--side", "20km", "--cell", "1km")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(n, lon=9.0, lat=48.5, first=0):
    ids = [f"u{i}" for i in range(first, first + n)]
    points = geopandas.points_from_xy([lon] * n, [lat] * n)
    return geopandas.GeoDataFrame({"user_id": ids}, geometry=points, crs=4326)


def test_check_says_how_many_lie_inside_with_axes_exchanged(here):
    places(30, lon=48.5, lat=9.0).to_parquet("turned.parquet")
    told = run("check", "turned.parquet", *AREA)
    assert told.exit_code == 0, told.stderr
    assert "30 of 30 outside; with axes exchanged 30 inside." in told.stdout
    places(30).to_parquet("right.parquet")
    assert "axes exchanged" not in run("check", "right.parquet", *AREA).stdout


def test_check_says_how_many_ids_two_sources_share(here):
    places(30).to_parquet("june.parquet")
    places(25, first=20).to_parquet("july.parquet")
    told = run("check", "june.parquet", "--against", "july.parquet", *AREA)
    assert "EXACT, NOT PRIVATE" in told.stdout
    assert "10 ids are in both: june.parquet has 30, july.parquet 25." in told.stdout
    args = ("check", "june.parquet", "--against", "july.parquet", *AREA, "--json")
    found = json.loads(run(*args).stdout)
    wanted = {"source": "july.parquet", "ids": 30, "other_ids": 25, "shared": 10}
    assert found["against"] == wanted and found["label"].startswith("exact, not private")


def test_ids_of_sources_with_types_and_without_are_compared_as_they_are_written(here):
    numbers = places(4).assign(user_id=[1, 2, 3, 30])
    numbers.to_parquet("numbers.parquet")
    rows = ["user_id,lon,lat", "1.0,9,48.5", "3,9,48.5", "30,9,48.5", "ada,9,48.5", ",9,48.5"]
    (here / "text.csv").write_text("\n".join(rows) + "\n")
    place = ("--lon", "lon", "--lat", "lat")
    told = run("check", "text.csv", *place, "--crs", "EPSG:4326", "--against", "text.csv", *AREA)
    assert told.exit_code == 0, told.stderr
    assert "4 ids are in both: text.csv has 4, text.csv 4." in told.stdout
    from dpregions.curator import shared_ids

    one = dpr.open_regions("numbers.parquet")
    other = dpr.open_regions("text.csv", lon="lon", lat="lat", crs="EPSG:4326")
    assert shared_ids(one, other) == (4, 4, 3)


def test_without_ids_there_is_nothing_to_compare(here):
    places(3).to_parquet("june.parquet")
    told = run("check", "june.parquet", "--each-row", "--against", "june.parquet", *AREA)
    assert told.exit_code == 2
    assert "leaves no ids to compare: name the column of users" in told.stderr


def fixes(lon, lat):
    rows = [(u, lon, lat + i / 1e4) for u, n in (("a", 9), ("b", 2), ("c", 1)) for i in range(n)]
    return pd.DataFrame(rows, columns=["user_id", "lon", "lat"])


RECIPE = ("--k", "5", "--max-diameter", "2km", "--crs", "EPSG:32632")


def test_the_report_counts_fixes_outside_the_zone_users_below_k_and_flat_regions(here):
    fixes(9.0, 48.5).to_parquet("right.parquet")
    told = run("regions", "right.parquet", "-o", "a.parquet", *RECIPE, "--report")
    assert told.exit_code == 0, told.stderr
    for words in (
        "0 of 12 fixes outside the zone of EPSG:32632; with axes exchanged 0 inside.",
        "2 of 3 users with fewer than 5 fixes.",
        "Of 3 regions 1 are points and 2 lines.",
    ):
        assert words in told.stdout
    fixes(48.5, 9.0).to_parquet("turned.parquet")
    args = ("regions", "turned.parquet", "-o", "b.parquet", *RECIPE)
    assert "outside" not in run(*args).output
    told = run(*args, "--report", "--overwrite")
    assert "12 of 12 fixes outside the zone of EPSG:32632; with axes exchanged 12" in told.stdout
    found = json.loads(run(*args, "--report", "--overwrite", "--json").stdout)["report"]
    figures = {"fixes": 12, "outside_zone": 12, "inside_if_swapped": 12, "users": 3, "below_k": 2}
    assert figures.items() <= found.items()


def test_names_of_columns_that_look_exchanged_are_noted(here):
    fixes(9.0, 48.5).to_parquet("right.parquet")
    turned = ("--lon", "lat", "--lat", "lon")
    told = run("regions", "right.parquet", "-o", "a.parquet", *RECIPE, *turned)
    assert "note: --lon lat and --lat lon look exchanged" in told.stderr


@pytest.fixture
def city(here):
    grid = dpr.Grid.around(116.4, 39.9, side="20km", cell_size="1km")
    somewhere = places(20, lon=116.4, lat=39.9)
    dpr.release(somewhere, grid, epsilon=1, max_diameter="1km", method="paper").save("city.parquet")
    return here


def test_a_query_outside_that_would_lie_inside_with_axes_exchanged_is_noted(city):
    told = "with axes exchanged it lies inside: x is longitude or easting, y the other"
    turned = ("39.85", "116.35", "39.95", "116.45", "--crs", "EPSG:4326")
    refused = run("query", "city.parquet", *turned)
    assert refused.exit_code == 2 and told in refused.stderr
    elsewhere = ("39.85", "66.35", "39.95", "66.45", "--crs", "EPSG:4326")
    assert "exchanged" not in run("query", "city.parquet", *elsewhere).stderr
    xmin, ymin, xmax, ymax = map(str, dpr.load("city.parquet").grid.bounds)
    turned = run("query", "city.parquet", ymin, xmin, ymax, xmax)
    assert turned.exit_code == 0 and told in turned.stderr
    assert "exchanged" not in run("query", "city.parquet", xmin, ymin, xmax, ymax).stderr


def test_polygons_outside_that_would_lie_inside_with_axes_exchanged_are_noted(city):
    grid = dpr.load("city.parquet").grid
    shapes = [shapely.box(*grid.bounds), shapely.box(0, 0, 1, 1)]
    turned = geopandas.GeoSeries(shapes, crs=grid.crs).map(
        lambda shape: shapely.transform(shape, lambda xy: xy[:, ::-1])
    )
    turned.set_crs(grid.crs, allow_override=True).to_file("turned.gpkg")
    told = run("query", "city.parquet", "--polygons", "turned.gpkg")
    assert "with axes exchanged 1 of 2 lie inside" in told.stderr


def test_a_rectangle_in_degrees_is_snapped_to_whole_cells(city):
    degrees = ("116.32", "39.83", "116.4", "39.93", "--crs", "EPSG:4326")
    release = dpr.load("city.parquet")
    around = release.grid.enclosing(116.32, 39.83, 116.4, 39.93, crs=4326)
    told = run("query", "city.parquet", *degrees, "--snap", "--json")
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["exact"] and found["count"] == release.count(*around)
    assert f"note: about the cells around it, {around[0]:.10g} " in told.stderr
    assert not json.loads(run("query", "city.parquet", *degrees, "--json").stdout)["exact"]


def test_polygons_are_snapped_each_by_itself(city):
    release = dpr.load("city.parquet")
    xmin, ymin, *_ = release.grid.bounds
    corners = [(100, 100), (2500, 100), (100, 900)]
    shape = shapely.Polygon([(xmin + x, ymin + y) for x, y in corners])
    geopandas.GeoSeries([shape], crs=release.grid.crs).to_file("shapes.gpkg")
    told = run("query", "city.parquet", "--polygons", "shapes.gpkg", "--snap")
    assert told.exit_code == 0, told.stderr
    count = release.count(xmin, ymin, xmin + 3000, ymin + 1000)
    assert told.stdout.splitlines()[1].startswith(f"{count},")
