"""The commands `query` and `describe`: what they answer, say and refuse."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import subprocess
import sys

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

import dpregions as dpr
from dpregions.cli.areas import Asked
from dpregions.cli.query import ANSWERS
from dpregions.errors import InputError
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from support.command_line import run
from support.full_disks import file_size_limit

# About the origin of its plane, so that bounds are negative.
GRID = dpr.Grid(-2000, -2000, 1000, n_rows=4, n_cols=5, crs="EPSG:3857")


def regions(n=300):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2000, 2000, (2, n))
    return shapely.box(x, y, x + 900, y + 900)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files: a private release, a covert one, one of a study, one by the paper's method."""
    folder = tmp_path_factory.mktemp("releases")
    given = {"epsilon": 1, "max_diameter": 1500, "user_id": None, "crs": GRID.crs}
    dpr.release(regions(), GRID, **given).save(folder / "city.parquet")
    dpr.release(regions(), GRID, covert=True, **given).save(folder / "covert.parquet")
    release_with(StudyNoise(0), regions(), GRID, **given).save(folder / "study.parquet")
    dpr.release(regions(), GRID, method="paper", **given).save(folder / "paper.parquet")
    return folder


@pytest.fixture(scope="module")
def city(folder):
    return folder / "city.parquet"


@pytest.fixture(scope="module")
def release(city):
    return dpr.load(city)


# One rectangle


def test_a_rectangle_is_answered_as_the_library_does(city, release):
    done = run("query", city, -1500, -1000.5, 1e3, "0", "--json")
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert answer["count"] == release.count(-1500, -1000.5, 1e3, 0)
    assert (answer["low"], answer["high"]) == release.interval(-1500, -1000.5, 1e3, 0)
    assert answer["exact"] is True and answer["confidence"] == 0.95
    assert answer["within"] == "shape"
    cells = json.loads(
        run("query", city, -1500, -1000.5, 1e3, "0", "--json", "--within", "cells").stdout
    )
    assert cells["count"] == release.count(-2000, -2000, 1000, 0)
    assert cells["within"] == "cells" and cells["exact"] is True


def test_an_interval_may_leave_detail_open(city, release, tmp_path):
    done = run("query", city, -1500, -1000.5, 1e3, "0", "--json", "--detail", "worst")
    answer = json.loads(done.stdout)
    wanted = release.interval(-1500, -1000.5, 1e3, 0, detail="worst")
    assert (answer["low"], answer["high"]) == wanted
    assert wanted != release.interval(-1500, -1000.5, 1e3, 0)
    corners = [(-2000, -2000), (1000, -2000), (0, 1000)]
    frame = geopandas.GeoDataFrame(geometry=[shapely.Polygon(corners)], crs=GRID.crs)
    frame.to_parquet(tmp_path / "area.parquet")
    done = run("query", city, "--polygons", tmp_path / "area.parquet", "--detail", "worst")
    assert done.exit_code == 2 and "--detail 'worst' is about rectangles" in done.stderr
    assert run("query", city, 0, 0, 1, 1, "--detail", "best").exit_code == 2


def test_an_unknown_rule_is_refused_with_those_there_are(city):
    done = run("query", city, 0, 0, 1000, 1000, "--within", "polygon")
    assert done.exit_code == 2 and "cells" in done.stderr and "shape" in done.stderr


def test_the_papers_method_is_asked_within_cells(folder):
    done = run("query", folder / "paper.parquet", 0, 0, 900, 900, "--within", "shape")
    assert done.exit_code == 2 and "footprint" in done.stderr
    done = run("query", folder / "paper.parquet", 0, 0, 900, 900, "--json")
    assert json.loads(done.stdout)["within"] == "cells"
    assert "about the whole cells it touches" in done.stderr


def test_a_rectangle_that_cuts_cells_says_what_it_is_about(city):
    size = GRID.cell_size
    whole = run("query", city, *GRID.cell_bounds(0, 1, 0, 1))
    assert whole.stderr == ""
    off = GRID.xmin + 1, GRID.ymin, GRID.xmin + size + 1, GRID.ymin + size
    assert run("query", city, *off).stderr == ""  # as drawn: there is nothing to say
    cut = run("query", city, *off, "--within", "cells")
    x, y = GRID.xmin, GRID.ymin
    bounds = f"{x:.10g} {y:.10g} {x + 2 * size:.10g} {y + size:.10g}"
    assert cut.stderr == f"dpregions: note: about the whole cells it touches, {bounds}\n"
    same = run("query", city, *GRID.cell_bounds(0, 1, 0, 1), "--crs", GRID.crs.to_string())
    assert same.stderr == ""


def test_polygons_within_cells_are_answered_for_whole_cells_and_that_is_said(city, tmp_path):
    xmin, ymin, xmax, ymax = GRID.cell_bounds(0, 1, 0, 1)
    shapes = [shapely.box(xmin + 9, ymin, xmax, ymax), shapely.box(xmin, ymin, xmax, ymax)]
    frame = geopandas.GeoDataFrame({"id": [0, 1]}, geometry=shapes, crs=GRID.crs)
    frame.to_parquet(tmp_path / "within.parquet")
    done = run("query", city, "--polygons", tmp_path / "within.parquet", "--within", "cells")
    assert "dpregions: note: 1 of 2 queries cut through cells" in done.stderr


BEYOND = "beyond the area: only what lies inside is counted\n"


def test_a_query_that_reaches_beyond_the_area_says_so(city, release):
    beyond = run("query", city, GRID.xmin - 9e4, GRID.ymin - 9e4, GRID.xmax + 9e4, GRID.ymax + 9e4)
    assert beyond.stderr == f"dpregions: note: the query reaches {BEYOND}"
    assert beyond.stdout.startswith(f"count {release.count(*GRID.bounds)}\n")
    assert run("query", city, *GRID.bounds).stderr == ""
    dust = GRID.cell_size * 2.0**-30  # what arithmetic leaves is no reach
    grown = (*np.array(GRID.bounds[:2]) - dust, *np.array(GRID.bounds[2:]) + dust)
    assert run("query", city, *grown).stderr == ""


@pytest.mark.parametrize("side", [0, 1, 2, 3])
def test_each_side_of_the_area_may_be_crossed(city, side):
    bounds = list(GRID.bounds)
    bounds[side] += -500 if side < 2 else 500
    assert BEYOND in run("query", city, *bounds).stderr


def test_how_many_of_several_queries_reach_beyond_the_area(city, tmp_path):
    shapes = [
        shapely.box(-5000, -1000, 0, 0),  # cut
        shapely.box(-1000, -1000, 0, 0),
        shapely.Polygon([(0, 0), (9000, 0), (0, 9000)]),  # cut
        shapely.box(1e5, 1e5, 2e5, 2e5),  # wholly outside, which is said by itself
    ]
    frame = geopandas.GeoDataFrame({"id": range(4)}, geometry=shapes, crs=GRID.crs)
    for there in (frame, frame.to_crs(4326)):
        there.to_parquet(tmp_path / "areas.parquet")
        done = run("query", city, "--polygons", tmp_path / "areas.parquet", "--json")
        assert f"dpregions: note: 2 of 4 queries reach {BEYOND}" in done.stderr
        assert json.loads(done.stdout)[0].keys() == {"id", *ANSWERS}
    rows = "xmin,ymin,xmax,ymax\n-5000,-1000,0,0\n-1000,-1000,0,0\n"
    done = run("query", city, "--rectangles", "-", stdin=rows)
    assert done.stderr == f"dpregions: note: 1 of 2 queries reach {BEYOND}"


def test_degrees_without_their_crs_are_told_the_remedy(tmp_path):
    grid = dpr.Grid.around(9.0, 48.5, side="4km", cell_size="1km")
    given = {"epsilon": 1, "max_diameter": 1000, "user_id": None, "crs": grid.crs}
    release_with(StudyNoise(0), [], grid, **given).save(tmp_path / "city.parquet")
    degrees = ("8.99", "48.49", "9.01", "48.51")
    done = run("query", tmp_path / "city.parquet", *degrees)
    assert done.stdout.startswith("count unknown\n")
    assert (
        "look like degrees: if they are, longitude first, give --crs 'EPSG:4326'\n" in done.stderr
    )
    assert "degrees" not in run("query", tmp_path / "city.parquet", 0, 0, 0, 91).stderr
    done = run("query", tmp_path / "city.parquet", *degrees, "--crs", "EPSG:4326")
    assert "outside" not in done.stderr and "degrees" not in done.stderr


def test_people_read_three_lines(city, release):
    done = run("query", city, "-1e3", "-.5e3", 1000, "+1000", "--confidence", 0.5)
    low, high = release.interval(-1000, -500, 1000, 1000, confidence=0.5)
    count = release.count(-1000, -500, 1000, 1000)
    low, high = math.floor(10 * low) / 10, math.ceil(10 * high) / 10
    assert done.stdout == f"count {count}\nlow   {low}\nhigh  {high}\n"


def test_options_may_stand_before_negative_numbers(city):
    before = run("query", "--json", city, "--confidence", 0.9, -1000, -1000, -10, -10)
    after = run("query", city, -1000, -1000, -10, -10, "--confidence", 0.9, "--json")
    assert before.exit_code == after.exit_code == 0
    assert before.stdout == after.stdout


def test_a_query_outside_the_area_is_unknown_and_null_with_a_note(city, tmp_path):
    done = run("query", city, 1e6, 1e6, 2e6, 2e6)
    assert done.exit_code == 0
    assert done.stdout == "count unknown\nlow   unknown\nhigh  unknown\n"
    said = json.loads(run("query", city, 1e6, 1e6, 2e6, 2e6, "--json").stdout)
    assert (said["count"], said["low"], said["high"], said["outside"]) == (None, None, None, True)
    rows = "xmin,ymin,xmax,ymax\n1e6,1e6,2e6,2e6\n-1000,-1000,0,0\n"
    table = run("query", city, "--rectangles", "-", stdin=rows).stdout.splitlines()
    assert table[1] == "1e6,1e6,2e6,2e6,,,,cells,True,True,False,False"
    areas = [shapely.box(1e6, 1e6, 2e6, 2e6), shapely.box(-1000, -1000, 0, 0)]
    for suffix in (".gpkg", ".geojson", ".parquet", ".fgb"):
        geopandas.GeoSeries(areas, crs=GRID.crs).to_file(tmp_path / "areas.gpkg")
        out = tmp_path / f"out{suffix}"
        assert run("query", city, "--polygons", tmp_path / "areas.gpkg", "-o", out).exit_code == 0
        read = geopandas.read_parquet if suffix == ".parquet" else geopandas.read_file
        found = read(out).sort_values("outside", ascending=False)
        assert found["count"].isna().tolist() == [True, False]
        assert found[["low", "high"]].isna().to_numpy().tolist() == [[True, True], [False, False]]
    assert done.stderr.count("\n") == 1 and "outside the grid's area" in done.stderr
    assert ".py" not in done.stderr


def test_a_query_in_degrees_is_reprojected(city, release):
    done = run("query", city, -0.01, -0.01, 0.012, 0.011, "--crs", "EPSG:4326", "--json")
    assert json.loads(done.stdout)["count"] == release.count(
        -0.01, -0.01, 0.012, 0.011, crs="EPSG:4326"
    )


def test_a_covert_release_has_counts_and_says_that_it_has_no_more(folder):
    done = run("query", folder / "covert.parquet", -1000, -1000, 1000, 1000, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout).keys() == set(ANSWERS) - {"low", "high"}
    assert "covert" in done.stderr


def test_a_study_is_called_not_private(folder):
    assert "NOT PRIVATE" in run("query", folder / "study.parquet", 0, 0, 1, 1).stderr
    assert run("describe", folder / "study.parquet").stdout.startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "give one query"),
        ([1, 2, 3], "four numbers; got 3"),
        ([1, 2, 3, 4, 5], "four numbers; got 5"),
        ([1, 2, 3, "x"], "YMAX must be a number, got 'x'"),
        ([3, 2, 1, 4], "reversed"),
        ([1, 2, 3, "nan"], "not finite"),
        ([1, 2, 3, "-inf"], "not finite"),
        ([1, 2, 3, "-x"], "no option '-x'"),
        ([1, 2, 3, 4, "--jsn"], "no option '--jsn'"),
        ([1, 2, 3, 4, "--confidence", 95], "--confidence must lie strictly between"),
        ([1, 2, 3, 4, "--crs", "EPSG:0"], "--crs 'EPSG:0'"),
        ([1, 2, 3, 4, "--polygons", "a.gpkg"], "give one query"),
        ([1, 2, 3, 4, "-o", "a.csv"], "--output is for"),
        (["--rectangles", "none.csv"], "no such file"),
        (["--polygons", "none.gpkg"], "no such file"),
        (["--polygons", "none.gpkg", "-o", "a.txt"], "ends in"),
        (["--rectangles", "none.csv", "-o", "a.gpkg"], "ends in .csv"),
        (["--polygons", "none.gpkg", "-o", "none/a.csv"], "folder that exists"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(args, words, city):
    done = run("query", city, *args)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_file_that_is_no_release_is_refused(tmp_path, city):
    (tmp_path / "a.parquet").write_bytes(city.read_bytes()[:-100])
    for path in (tmp_path / "none.parquet", tmp_path / "a.parquet", tmp_path):
        for args in (["query", path, 0, 0, 1, 1], ["describe", path]):
            done = run(*args)
            assert done.exit_code == 2 and done.stdout == ""
            assert done.stderr.startswith("dpregions: error:") and done.stderr.count("\n") == 1


# Many rectangles

ROWS = "name,xmin,ymin,xmax,ymax\nwest,-2000,-2000,0,2000\neast,0,-2000,3000,2000\n"


def test_rectangles_of_a_file_come_back_with_answers(city, release, tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS)
    done = run("query", city, "--rectangles", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert list(rows[0]) == [
        "name",
        "xmin",
        "ymin",
        "xmax",
        "ymax",
        *ANSWERS,
    ]
    assert [row["name"] for row in rows] == ["west", "east"]
    assert int(rows[0]["count"]) == release.count(-2000, -2000, 0, 2000)
    low, high = release.interval(0, -2000, 3000, 2000)
    assert 0 <= float(rows[1]["high"]) - high <= 0.1 and 0 <= low - float(rows[1]["low"]) <= 0.1
    assert rows[1]["high"] == f"{math.ceil(10 * high) / 10}"


def test_rectangles_are_read_from_standard_input(city, release):
    done = run("query", city, "--rectangles", "-", "--json", stdin=ROWS)
    found = json.loads(done.stdout)
    assert [row["count"] for row in found] == [
        release.count(-2000, -2000, 0, 2000),
        release.count(0, -2000, 3000, 2000),
    ]
    assert found[0]["xmin"] == -2000.0 and found[0]["name"] == "west"
    assert found[1]["high"] == release.interval(0, -2000, 3000, 2000)[1]
    done = run("query", city, "--rectangles", "-", stdin=ROWS)
    assert done.stdout.splitlines()[0].startswith("name,xmin")
    european = ROWS.replace(",", ";").replace("2000", "2000,0")
    assert (
        run("query", city, "--rectangles", "-", "--json", stdin=european).stdout
        == json.dumps(found) + "\n"
    )
    assert run("query", city, "--rectangles", "-", stdin="xmin,ymin,xmax,ymax\n").exit_code == 0


def test_an_outline_as_long_text_comes_back_with_its_rectangle(city):
    long = "x" * 200_000
    text = f"xmin,ymin,xmax,ymax,wkt\n-2000,-2000,0,2000,{long}\n"
    done = run("query", city, "--rectangles", "-", "--json", stdin=text)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)[0]["wkt"] == long


def test_an_output_is_replaced_only_when_told_to_and_never_an_input(city, tmp_path):
    rows, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    rows.write_text(ROWS)
    out.write_text("kept")
    asked = ("query", city, "--rectangles", rows, "-o")
    refused = run(*asked, out)
    assert refused.exit_code == 2
    assert "is there already: choose another name, or give --overwrite" in refused.stderr
    assert out.read_text() == "kept"
    assert run(*asked, out, "--overwrite").exit_code == 0
    assert out.read_text().startswith("name,xmin")
    refused = run(*asked, rows, "--overwrite")
    assert refused.exit_code == 2
    assert "is one of the inputs" in refused.stderr
    assert rows.read_text() == ROWS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column xmin, ymin, xmax, ymax"),
        ("xmin,ymin\n1,2\n", "no column xmax, ymax: there are xmin, ymin"),
        ("xmin,ymin,xmax,ymax\n1,2,3,4\n1,2,3,four\n", "ymax in line 3"),
        ("xmin,ymin,xmax,ymax\n1,2,3\n", "ymax in line 2"),
        ("xmin,ymin,xmax,ymax,count\n1,2,3,4,5\n", "column count already"),
        ("xmin,ymin,xmax,ymax\n3,2,1,4\n", "line 2 is reversed"),
        ("xmin,ymin,xmax,ymax\n1,2,3,4\n1,2,3,4,5\n", "line 3 has more fields than the header"),
        ("xmin,ymin,xmax,ymax,xmin\n1,2,3,4,0\n", "has a column xmin twice"),
        ("xmin,ymin,xmax,ymax\n1,2,3,4\r5\n", "no CSV in line"),
    ],
)
def test_rectangles_that_are_none_are_refused(text, words, city):
    done = run("query", city, "--rectangles", "-", stdin=text)
    assert done.exit_code == 2 and words in done.stderr and done.stdout == ""


# Polygons


@pytest.fixture(scope="module")
def districts():
    shapes = [
        shapely.box(-2000, -2000, 0, 0),
        shapely.Polygon([(-1900, -1900), (2900, -1800), (0, 1900)]),
    ]
    return geopandas.GeoDataFrame({"name": ["box", "triangle"]}, geometry=shapes, crs=GRID.crs)


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".parquet", ".fgb", ".shp"])
def test_polygons_come_back_with_answers(suffix, city, release, districts, tmp_path):
    path = tmp_path / f"districts{suffix}"
    districts.to_parquet(path) if suffix == ".parquet" else districts.to_file(path)
    out = tmp_path / f"out{'.gpkg' if suffix == '.shp' else suffix}"
    done = run("query", city, "--polygons", path, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    found = (geopandas.read_parquet if suffix == ".parquet" else geopandas.read_file)(out)
    found = found.sort_values("name", ignore_index=True)  # FlatGeobuf orders rows by place
    assert found["name"].tolist() == ["box", "triangle"]
    assert found["within"].tolist() == ["cells", "shape"]
    assert found["exact"].astype(bool).tolist() == [True, True]
    wanted = release.interval(districts).assign(count=release.count(districts))
    for name in ("count", "low", "high"):
        np.testing.assert_allclose(found[name], wanted[name])
    assert found.to_crs(GRID.crs).geometry.geom_equals(districts.geometry).all()


def test_polygons_within_cells_may_count_a_region_twice_and_that_is_said(
    city, release, districts, tmp_path
):
    districts.to_parquet(tmp_path / "a.parquet")
    done = run("query", city, "--polygons", tmp_path / "a.parquet", "--within", "cells", "--json")
    assert "1 of 2 queries touch cells that form no rectangle" in done.stderr
    rows = json.loads(done.stdout)
    assert [row["within"] for row in rows] == ["cells", "cells"]
    assert [row["exact"] for row in rows] == [True, False]
    with pytest.warns(dpr.errors.ApproximateCountWarning):
        assert [row["count"] for row in rows] == release.count(districts, within="cells").tolist()


def test_polygons_without_an_output_are_rows_without_geometry(city, districts, tmp_path):
    districts.to_crs(4326).to_file(tmp_path / "a.geojson")
    done = run("query", city, "--polygons", tmp_path / "a.geojson")
    found = pd.read_csv(io.StringIO(done.stdout))
    assert list(found.columns) == ["name", *ANSWERS]
    rows = json.loads(run("query", city, "--polygons", tmp_path / "a.geojson", "--json").stdout)
    assert [row["count"] for row in rows] == found["count"].tolist()
    out = tmp_path / "out.csv"
    assert run("query", city, "--polygons", tmp_path / "a.geojson", "-o", out).exit_code == 0
    assert out.read_text() == done.stdout


def test_polygons_without_a_crs_need_one_stated(city, districts, tmp_path):
    path = tmp_path / "a.parquet"
    districts.set_crs(None, allow_override=True).to_parquet(path)
    done = run("query", city, "--polygons", path)
    assert done.exit_code == 2 and "--crs" in done.stderr
    assert run("query", city, "--polygons", path, "--crs", "EPSG:3857").exit_code == 0


def test_polygon_files_that_are_none_are_refused(city, districts, tmp_path):
    (tmp_path / "a.gpkg").write_text("no")
    districts.drop(columns="geometry").to_csv(tmp_path / "a.csv")
    districts.assign(low=1).to_file(tmp_path / "low.gpkg")
    for name in ("a.gpkg", "a.csv", "low.gpkg"):
        done = run("query", city, "--polygons", tmp_path / name)
        assert done.exit_code == 2 and done.stdout == "", done.stderr


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson", ".fgb", ".parquet", ".csv"])
def test_a_full_disk_is_one_line_that_names_the_output(suffix, city, districts, tmp_path):
    districts.to_parquet(tmp_path / "a.parquet")
    out = tmp_path / f"out{suffix}"
    with file_size_limit(100):
        done = run("query", city, "--polygons", tmp_path / "a.parquet", "-o", out)
    assert done.exit_code == 1 and done.stderr.count("\n") == 1
    assert str(out) in done.stderr and ".part" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


# Describe


def test_describe_says_everything_in_words(city, release):
    done = run("describe", city)
    assert done.exit_code == 0 and done.stderr == ""
    for words in (
        release.describe(),
        hashlib.sha256(city.read_bytes()).hexdigest(),
        "Ledger: budget not recorded",
        "1500.0 m",
        "4 x 5 cells",
    ):
        assert words in done.stdout


def test_describe_gives_a_grid_that_other_commands_take(city, tmp_path):
    done = run("describe", city, "--json")
    found = json.loads(done.stdout)
    assert found["epsilon"] == "1" and found["private"] is True
    assert found["sha256"] == hashlib.sha256(city.read_bytes()).hexdigest()
    for name, text in (("all", done.stdout), ("grid", json.dumps(found["grid"]))):
        (tmp_path / name).write_text(text)
        assert Asked(tmp_path / name).read() == GRID
    (tmp_path / "none").write_text('{"format": 1}')
    with pytest.raises(InputError, match="not a grid"):
        Asked(tmp_path / "none").read()


def test_a_rectangle_is_answered_without_geopandas(city):
    code = (
        "import sys\n"
        "from dpregions.cli.app import main\n"
        "sys.argv = ['dpregions', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'geopandas', 'shapely', 'pandas', 'matplotlib', 'opendp'}\n"
        "heavy |= {'numba', 'scipy'} if 'describe' in sys.argv else set()  # intervals need it\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    for args in (["query", city, "-1000", "-1000", "1000", "1000"], ["describe", city]):
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
