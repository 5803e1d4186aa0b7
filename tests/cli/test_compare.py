"""The command `compare`: what it prints is what `Release.compare` says."""

from __future__ import annotations

import csv
import io
import json

import geopandas
import numpy as np
import pytest
import shapely

import dpregions as dpr
from support.command_line import run

GRID = dpr.Grid(-2000, -2000, 1000, n_rows=4, n_cols=5, crs="EPSG:3857")
OTHER = dpr.Grid(-2500, -2500, 500, n_rows=12, n_cols=12, crs="EPSG:3857")


def regions(n, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-2000, 2000, (2, n))
    return shapely.box(x, y, x + 900, y + 900)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    given = {"epsilon": 1, "max_diameter": 1500, "user_id": None, "crs": GRID.crs}
    dpr.release(regions(300, 0), GRID, **given).save(folder / "may.parquet")
    dpr.release(regions(900, 1), GRID, **given).save(folder / "june.parquet")
    dpr.release(regions(300, 2), OTHER, **given).save(folder / "fine.parquet")
    dpr.release(regions(300, 3), GRID, covert=True, **given).save(folder / "covert.parquet")
    return folder


@pytest.fixture(scope="module")
def comparison(folder):
    return dpr.load(folder / "may.parquet").compare(dpr.load(folder / "june.parquet"))


def compare(folder, *args, first="may", second="june"):
    return run("compare", folder / f"{first}.parquet", folder / f"{second}.parquet", *args)


def test_a_rectangle_prints_both_counts_the_difference_and_its_interval(folder, comparison):
    bounds = (-1000, -1000, 1000, 2000)
    done = compare(folder, *bounds)
    words = dict(line.split() for line in done.stdout.splitlines()[:5])
    low, high = comparison.interval(*bounds)
    assert int(words["difference"]) == comparison.count(*bounds)
    assert int(words["second"]) - int(words["first"]) == comparison.count(*bounds)
    assert (float(words["low"]), float(words["high"])) == pytest.approx((low, high), abs=0.06)
    assert "not recorded" in done.stdout


def test_json_has_the_same_and_the_whole_area_is_asked_by_default(folder, comparison):
    found = json.loads(compare(folder, "--json", "--confidence", "0.9").stdout)
    low, high = comparison.interval(*GRID.bounds, confidence=0.9)
    assert (found["low"], found["high"]) == pytest.approx((low, high))
    assert found["difference"] == comparison.count(*GRID.bounds)
    assert (found["confidence"], found["together"], found["private"]) == (0.9, None, True)


def test_areas_of_a_file_come_back_as_rows(folder, comparison, tmp_path):
    shapes = [shapely.box(-900, -900, 900, 900), shapely.Point(0, 0).buffer(700)]
    frame = geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=shapes, crs=GRID.crs)
    frame.to_file(tmp_path / "areas.gpkg")
    done = compare(folder, "--polygons", tmp_path / "areas.gpkg")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["name"] for row in rows] == ["a", "b"]
    assert [int(row["difference"]) for row in rows] == comparison.count(frame).tolist()
    found = json.loads(compare(folder, "--polygons", tmp_path / "areas.gpkg", "--json").stdout)
    assert [row["low"] for row in found["areas"]] == pytest.approx(
        comparison.interval(frame)["low"]
    )


def test_on_two_grids_what_both_cover_is_compared(folder):
    done = compare(folder, -1000, -1000, 700, 800, second="fine")
    assert done.exit_code == 0 and "Their cells differ" in done.stdout
    assert "reaches beyond" in compare(folder, -2400, -2400, 0, 0, second="fine").stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("1", "2", "3"), "four numbers"),
        (("--nothing", "2", "3", "4"), "no option '--nothing'"),
        (("1", "1", "2", "2", "--polygons", "x.gpkg"), "give one query"),
    ],
)
def test_a_wrong_query_is_refused(folder, args, said):
    done = compare(folder, *args)
    assert done.exit_code == 2 and said in done.stderr


def test_outside_the_area_nothing_is_known(folder, tmp_path):
    beyond = (90_000, 90_000, 91_000, 91_000)
    found = json.loads(compare(folder, *beyond, "--json").stdout, parse_constant=pytest.fail)
    numbers = ("first", "second", "difference", "low", "high")
    assert [found[name] for name in numbers] == [None] * 5
    lines = compare(folder, *beyond).stdout.splitlines()
    assert [line.split() for line in lines[:5]] == [[name, "outside"] for name in numbers]
    inside = shapely.box(-900, -900, 900, 900)
    frame = geopandas.GeoDataFrame(geometry=[inside, shapely.box(*beyond)], crs=GRID.crs)
    frame.to_file(tmp_path / "areas.gpkg")
    asked = ("--polygons", tmp_path / "areas.gpkg")
    known, unknown = csv.DictReader(io.StringIO(compare(folder, *asked).stdout))
    assert int(known["second"]) - int(known["first"]) == int(known["difference"])
    assert [unknown[name] for name in numbers] == [""] * 5
    told = compare(folder, *asked, "--json").stdout
    known, unknown = json.loads(told, parse_constant=pytest.fail)["areas"]
    assert known["difference"] is not None
    assert [unknown[name] for name in numbers] == [None] * 5


def test_a_covert_release_is_refused(folder):
    done = compare(folder, second="covert")
    assert done.exit_code == 2 and "covert" in done.stderr
