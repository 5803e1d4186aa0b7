"""The command `plan`: what it prints, draws, refuses, and that it reads no data."""

import json
from functools import partial

import pytest

from dpregions import Grid, synthetic
from dpregions.planning.planner import plan, square_grids
from support import command_line
from support.fresh_interpreter import HEAVY, imported_by

run = partial(command_line.run, "plan")


pytestmark = pytest.mark.usefixtures("few_repetitions")

AREA = {"--side": "20km", "--cell": "2km,4km"}
PUBLIC = {
    "--max-diameter": "2km", "--epsilon": "0.5,1", "--regions": "2000", "--shape": "districts",
}  # fmt: skip


def options(given):
    return [part for pair in given.items() for part in pair if part is not None]


def test_the_command_prints_what_the_library_plans():
    result = run(*options(AREA | PUBLIC), "--query", "4km,50%", "--target", "5%")
    made = plan(
        square_grids("20km", ["2km", "4km"]),
        max_diameter="2km",
        n_regions=2000,
        epsilons=[0.5, 1],
        queries=["4km", "50%"],
        target=0.05,
        shape="districts",
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{made}\n"
    assert result.stderr == ""


def test_an_epsilon_that_hides_nothing_and_another_area_than_asked_for_are_noted():
    public = PUBLIC | {"--epsilon": "1,20,30", "--cell": "4km,6km,7km", "--side": "20km"}
    result = run(*options(public), "--method", "paper", "--query", "50%", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"]
    area, epsilon = result.stderr.splitlines()
    assert area == (
        "dpregions: note: --side 20km is no whole number of cells: the area is 24 km x 24 km with "
        "cells of 6 km, 21 km x 21 km with cells of 7 km"
    )
    assert epsilon.startswith("dpregions: note: epsilon 30.0 protects next to nothing: above 20, ")


def test_a_cell_may_be_a_fraction_and_is_not_rounded():
    public = PUBLIC | {"--epsilon": "1", "--side": "4km", "--cell": "2/3 km"}
    result = run(*options(public), "--method", "paper", "--query", "50%")
    assert result.exit_code == 0, result.output
    assert "in 4 km x 4 km" in result.stdout
    assert result.stderr == ""  # the side is a whole number of cells


def test_json_holds_the_rows_and_the_advice():
    more = ("--json", "--method", "footprint", "--target", "20%", "--query", "4km")
    result = run(*options(AREA | PUBLIC), *more)
    made = json.loads(result.stdout)
    assert made["n_regions"] == 2000 and made["neighbours"] == "add-remove"
    busy = [row for row in made["rows"] if row["place"] == "busy"]
    assert [row["cell"] for row in busy] == ["2 km", "2 km", "4 km", "4 km"]
    assert all(row["error"] > 0 and row["regions"] > 0 < row["count"] for row in busy)
    assert made["kinds"] == ["districts"]
    assert {row["method"] for row in made["rows"]} == {"footprint"}
    assert made["recommendations"][0]["target"] == 0.2


def test_a_place_or_a_grid_file_gives_the_same_cells(tmp_path):
    file = tmp_path / "grid.json"
    file.write_text(Grid.around(9.0, 48.5, side="20km", cell_size="2km").to_json())
    more = ("--json", "--method", "paper")
    around = {"--around": "9.0,48.5", "--side": "20km", "--cell": "2km"}
    found = [
        json.loads(run(*options(area | PUBLIC), *more).stdout)
        for area in (around, {"--grid": str(file)})
    ]
    assert found[0] == found[1]
    assert found[0]["rows"][0]["cell"] == "2 km"


def test_bounds_aligned_and_of_any_shape_are_planned_for():
    place = ("--bounds", "490500,5361000,514000,5373000", "--bounds-crs", "EPSG:32632")
    paper = ("--cell", "2km,4km", "--method", "paper")
    told = run(*options(PUBLIC), *place, *paper, "--align", "round", "--json")
    assert told.exit_code == 0, told.stderr
    for wrong, words in {
        ("--side", "40kmx20km"): "needs its place, --around LON,LAT",
        ("--side", "20km", "--align", "round"): "--align and --bounds-crs need the place",
        ("--side", "20"): "--side 20 has no unit",
    }.items():
        refused = run(*options(PUBLIC), *paper, *wrong)
        assert refused.exit_code == 2 and words in refused.stderr


def test_the_picture_is_drawn_and_named(tmp_path):
    path = tmp_path / "plan.png"
    result = run(*options(AREA | PUBLIC), "--method", "footprint", "--plot", path)
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert f"Picture: {path}" in result.stdout


def test_a_proxy_is_rehearsed_on_and_the_help_says_never_the_data(tmp_path):
    file = tmp_path / "proxy.parquet"
    synthetic.regions(200).to_parquet(file)
    given = {"--around": "9,48.5", "--side": "20km", "--cell": "4km"}
    given |= {k: v for k, v in PUBLIC.items() if k != "--shape"}
    result = run(*options(given), "--like", file, "--method", "footprint", "--query", "4km")
    assert result.exit_code == 0, result.output
    assert "rehearsed on the proxy" in result.stdout
    words = " ".join(run("--help").stdout.replace("│", " ").split())
    assert "never the data itself" in words


def test_an_epsilon_may_be_a_fraction_as_in_release():
    result = run(*options(AREA | PUBLIC | {"--epsilon": "1/3"}), "--method", "paper", "--json")
    assert result.exit_code == 0, result.output
    assert "0.333" in result.stdout or "1/3" in result.stdout


def test_the_number_of_regions_may_have_commas_between_thousands():
    result = run(*options(AREA | PUBLIC | {"--regions": "2,000"}), "--method", "paper")
    assert "2,000 regions" in result.stdout


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"--regions": "0"}, "--regions must be about how many"),
        ({"--regions": "-3"}, "--regions must be"),
        ({"--regions": "nan"}, "--regions must be"),
        ({"--regions": "lots"}, "--regions must be"),
        ({"--epsilon": "0"}, "--epsilon 0 is no privacy loss"),
        ({"--epsilon": "1,nan"}, "--epsilon nan is no privacy loss"),
        ({"--epsilon": "1,,2"}, "--epsilon '1,,2' has an empty part"),
        ({"--epsilon": "one"}, "--epsilon one is no privacy loss"),
        ({"--cell": "30km"}, "--cell '30km' is larger than the area, --side '20km'"),
        ({"--cell": "1 parsec"}, "--cell '1 parsec' is not a length"),
        ({"--cell": "0m"}, "--cell must be greater than 0"),
        ({"--cell": None}, "--side 20km --cell"),
        ({"--side": "-1km"}, "--side must be greater than 0"),
        ({"--max-diameter": "21km"}, "--max-diameter '21km' is larger than the area"),
        ({"--max-diameter": "wide"}, "--max-diameter 'wide' is not a length"),
        ({"--query": "21km"}, "--query '21km' is larger than the area"),
        ({"--query": "wide"}, "--query 'wide' is not a length"),
        ({"--query": "200%"}, "--query '200%' must be above 0 %"),
        ({"--target": "0%"}, "--target must lie above 0 %"),
        ({"--target": "150%"}, "--target must lie above 0 %"),
        ({"--target": "low"}, "--target 'low' is no percentage"),
        ({"--method": "footprint,magic"}, "--method 'magic' is unknown"),
        ({"--around": "here"}, "--around 'here' is no place"),
        ({"--shape": "round"}, "--shape 'round' is unknown: use even, districts, skewed"),
        ({"--like": "proxy.gpkg"}, "--like needs the place of the area: give --around"),
        ({"--like": "no.gpkg", "--around": "9,48.5", "--shape": None}, "no.gpkg"),
        ({"--like": "no.gpkg", "--around": "9,48.5"}, "give one of --shape and --like"),
        ({"--plot": "no/such/folder.png"}, "--plot no/such/folder.png: give a file"),
        ({"--plot": "plan.doc"}, "end it in .png"),
        ({"--grid": "none.json"}, "give the public area by --grid"),
    ],
)
def test_bad_input_is_one_line_that_names_the_option(wrong, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {k: v for k, v in (AREA | PUBLIC | wrong).items() if v is not None}
    result = run(*options(given))
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.startswith("dpregions: error: ") and result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_missing_options_are_wrong_usage():
    assert run(*options(AREA)).exit_code == 2
    assert run(*options(AREA | PUBLIC), "--data", "regions.parquet").exit_code == 2
    assert run(*options(AREA | PUBLIC), "regions.parquet").exit_code == 2


def test_an_unknown_neighbour_relation_is_wrong_usage_and_the_known_ones_are_named():
    result = run(*options(AREA | PUBLIC | {"--neighbours": "friends"}))
    assert result.exit_code == 2
    assert "--neighbours" in result.stderr and "'replace-one'" in result.stderr


def test_the_help_has_an_example_and_needs_nothing_heavy():
    assert imported_by("import typer, dpregions.cli.plan", ("numpy", *HEAVY)) == []
    assert "Example: dpregions plan" in run("--help").stdout
