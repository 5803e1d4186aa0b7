"""The command `regions`: what it writes, says, refuses, and keeps to itself."""

import json
from functools import partial

import geopandas
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpregions.extraction.fixes import UNIT_ATTRIBUTE, regions_from_fixes
from dpregions.io.region_files import load_regions, save_regions
from support import command_line
from support.fresh_interpreter import HEAVY, imported_by

run = partial(command_line.run, "regions")


@pytest.fixture
def fixes(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(6), 50),
            "t": pd.Timestamp("2008-05-01") + pd.to_timedelta(np.tile(np.arange(50), 6), "min"),
            "lon": rng.normal(9, 0.01, 300),
            "lat": rng.normal(48.5, 0.01, 300),
        }
    )
    table.loc[table["t"].dt.minute >= 25, "t"] += pd.Timedelta("2h")
    path = tmp_path / "fixes.csv"
    table.to_csv(path, index=False)
    return path


RECIPE = ("--k", 20, "--max-diameter", "2km", "--crs", "EPSG:32632")


def test_the_file_holds_the_regions_of_the_library(fixes, tmp_path):
    out = tmp_path / "regions.parquet"
    result = run(fixes, "-o", out, *RECIPE)
    assert result.exit_code == 0, result.output
    assert str(out) in result.stdout.replace("\n", "")
    found = load_regions(out)
    table = pd.read_csv(fixes, dtype={"user_id": str})
    expected = regions_from_fixes(table, k=20, max_diameter="2km", crs=32632)
    assert found["user_id"].tolist() == expected["user_id"].tolist()
    assert found.geometry.geom_equals(expected.geometry).all()
    assert found.crs == expected.crs
    assert found.attrs == {UNIT_ATTRIBUTE: "user"}


def test_around_a_place_is_its_utm_zone(fixes, tmp_path):
    out = tmp_path / "regions.parquet"
    place = ("--k", 20, "--max-diameter", "2km", "--around", "9.0,48.5")
    assert run(fixes, "-o", out, *place).exit_code == 0
    assert load_regions(out).crs == "EPSG:32632"
    west = ("--k", 20, "--max-diameter", "2km", "--around", "-122.4,37.8")
    assert run(fixes, "-o", out, *west, "--overwrite").exit_code == 0
    assert load_regions(out).crs == "EPSG:32610"


def test_the_unit_trajectory_lasts_in_the_file(fixes, tmp_path):
    out = tmp_path / "regions.parquet"
    result = run(fixes, "-o", out, *RECIPE, "--unit", "trajectory", "--gap", "20min", "--json")
    assert json.loads(result.stdout)["unit"] == "trajectory"
    assert load_regions(out).attrs["dpregions_unit"] == "trajectory"
    assert len(load_regions(out)) == 12
    assert pq.read_schema(out).metadata[b"dpregions_unit"] == b"trajectory"


def test_a_file_that_does_not_say_its_unit_holds_users(fixes, tmp_path):
    out, rewritten = tmp_path / "regions.parquet", tmp_path / "rewritten.parquet"
    run(fixes, "-o", out, *RECIPE, "--unit", "trajectory", "--gap", "20min")
    bare = geopandas.read_parquet(out)
    bare.attrs = {}
    bare.to_parquet(rewritten)
    assert load_regions(rewritten).attrs["dpregions_unit"] == "user"


def test_a_diameter_without_a_unit_is_refused(fixes, tmp_path):
    out = tmp_path / "regions.parquet"
    refused = run(fixes, "-o", out, "--k", 20, "--max-diameter", "2", "--crs", "EPSG:32632")
    assert refused.exit_code == 2 and not out.exists()
    assert "--max-diameter 2 has no unit: write 2km or 2m, whichever is meant" in refused.stderr


def test_a_file_cut_short_is_an_error_that_names_it(fixes, tmp_path):
    path = tmp_path / "cut.csv.gz"
    pd.read_csv(fixes).to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[:-99])
    result = run(path, "-o", tmp_path / "o.parquet", *RECIPE)
    assert result.exit_code == 2
    assert "cut.csv.gz is cut short or damaged" in result.stderr


def test_nothing_counted_is_printed_unless_the_report_is_asked_for(fixes, tmp_path):
    fixes.write_text(fixes.read_text() + "6,2008-05-01,9.0,400\n")
    out = tmp_path / "regions.parquet"
    quiet = run(fixes, "-o", out, *RECIPE)
    assert not any(number in quiet.output for number in ("300", "301", "skipped"))
    told = run(fixes, "-o", out, *RECIPE, "--report", "--overwrite")
    assert "exact, not private, do not publish" in told.stdout
    assert "skipped 1" in told.stdout
    again = (*RECIPE, "--report", "--json", "--overwrite")
    result = json.loads(run(fixes, "-o", out, *again).stdout)
    assert result["report"]["label"] == "exact, not private, do not publish"
    assert result["report"]["wrong_places"] == 1


def test_exchanged_columns_are_told_in_the_report_alone(fixes, tmp_path):
    out = tmp_path / "regions.parquet"
    table = pd.read_csv(fixes).assign(lat=116.4)
    table.to_csv(fixes, index=False)
    quiet = run(fixes, "-o", out, *RECIPE)
    assert quiet.exit_code == 0
    assert "may be swapped" not in quiet.output
    assert load_regions(out).empty
    told = run(fixes, "-o", out, *RECIPE, "--report", "--overwrite")
    assert "longitude and latitude may be swapped" in told.stdout
    again = (*RECIPE, "--report", "--json", "--overwrite")
    result = json.loads(run(fixes, "-o", out, *again).stdout)
    assert result["report"]["swapped_axes_suspected"] is True


def test_ids_of_other_bytes_than_utf_8_stay_apart_in_the_file(fixes, tmp_path):
    out = tmp_path / "regions.parquet"
    names = ["José", "Josè", r"Jos\xe9"]
    lines = ["user_id,lon,lat", *(f"{name},9,48.5" for name in names)]
    fixes.write_bytes("\n".join(lines).encode("latin-1"))
    assert run(fixes, "-o", out, *RECIPE).exit_code == 0
    assert load_regions(out)["user_id"].tolist() == [r"Jos\\xe9", r"Jos\xe8", r"Jos\xe9"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--k", 0, "--max-diameter", "2km", "--crs", 32632), "--k must be at least 1"),
        (("--k", 9, "--max-diameter", "2 leagues", "--crs", 32632), "is not a length"),
        (("--k", 9, "--max-diameter", "2km", "--crs", 4326), "geographic"),
        (("--k", 9, "--max-diameter", "nan", "--crs", 32632), "must be a finite number"),
        (("--k", 9, "--max-diameter", "2km", "--crs", 3857), "not metres on the ground"),
        (("--k", 9, "--max-diameter", "2km", "--around", "9,nan"), "no place on Earth"),
        (("--k", 9, "--max-diameter", "2km", "--around", "9,85"), "beyond UTM"),
        (("--k", 9, "--max-diameter", "2km"), "one of --crs and --around"),
        (("--k", 9, "--max-diameter", "2km", "--around", "here"), "is no place"),
        (("--k", 9, "--max-diameter", "2km", "--around", "500,1"), "no place on Earth"),
        ((*RECIPE, "--lon", "x"), "--lon 'x' is no column"),
        ((*RECIPE, "--user-id", "x"), "--user-id 'x' is no column"),
        ((*RECIPE, "--unit", "trajectory"), "needs a gap, for example --gap '20min'"),
        ((*RECIPE, "--gap", "20min"), "--gap '20min' has no use with --unit 'user'"),
        ((*RECIPE, "--format", "geolife"), "no fixes found"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(fixes, tmp_path, args, words):
    if "geolife" in args:
        fixes = fixes.parent
    out = tmp_path / "out" / "regions.parquet"
    out.parent.mkdir()
    result = run(fixes, "-o", out, *args)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.startswith("dpregions: error: ")
    assert result.stderr.count("\n") == 1
    assert not list(out.parent.iterdir())


def test_wrong_usage_is_exit_code_2(fixes, tmp_path):
    assert run(fixes).exit_code == 2
    assert run(tmp_path / "none", "-o", tmp_path / "o.parquet", *RECIPE).exit_code == 2
    assert run(fixes, "-o", tmp_path, *RECIPE).exit_code == 2
    assert run(fixes, "-o", tmp_path / "no" / "o.parquet", *RECIPE).exit_code == 2
    assert run(fixes, "-o", fixes, *RECIPE).exit_code == 2
    assert run(fixes, "-o", tmp_path / "o.parquet", *RECIPE, "--format", "gpx").exit_code == 2


@pytest.mark.parametrize("name", ["regions.csv", "regions.gpkg", "regions", "parquet"])
def test_a_name_of_another_format_is_refused(fixes, tmp_path, name):
    result = run(fixes, "-o", tmp_path / name, *RECIPE)
    assert result.exit_code == 2
    assert "a name that ends in .parquet" in result.stderr
    assert not (tmp_path / name).exists()


def test_a_failed_write_leaves_the_old_file_and_no_part(fixes, tmp_path, full_disk):
    out = tmp_path / "out" / "regions.parquet"
    out.parent.mkdir()
    out.write_text("old")
    result = run(fixes, "-o", out, *RECIPE, "--overwrite")
    assert result.exit_code == 1
    assert result.stderr == f"dpregions: failed: No space left on device: '{out}'\n"
    assert out.read_text() == "old"
    assert list(out.parent.iterdir()) == [out]


def test_the_file_is_for_its_owner_alone(tmp_path):
    table = pd.DataFrame({"user_id": [1], "lon": [9.0], "lat": [48.5]})
    out = tmp_path / "regions.parquet"
    save_regions(regions_from_fixes(table, k=1, max_diameter=1, crs=32632), out)
    assert out.stat().st_mode & 0o077 == 0


def test_there_is_help_without_heavy_imports():
    assert imported_by("import typer, dpregions.cli.regions", ("numpy", *HEAVY)) == []
    assert "GPS" in run("--help").stdout
