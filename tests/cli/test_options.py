"""The options that several commands share, read as they are typed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import typer

from dpregions import Grid
from dpregions.cli.app import app
from dpregions.cli.areas import Asked, area_in_words, read_place
from dpregions.cli.options import in_options, notes, read_length
from dpregions.errors import Argument, DPRegionsError, InputError, InPython, SettingWarning


def read_grid(grid, around, side, cell):
    """Read an area by its place."""
    return Asked(grid, None, around, side, cell).read()


def test_a_grid_is_read_from_its_file_or_from_a_place(tmp_path):
    grid = Grid.around(9.0, 48.5, side="4km", cell_size="1km")
    file = tmp_path / "grid.json"
    file.write_text(grid.to_json())
    assert read_grid(file, None, None, None) == grid
    assert read_grid(None, "9,48.5", "4km", "1000m") == grid


def test_a_side_that_is_no_whole_number_of_cells_says_which_area_was_made(capsys):
    read_grid(None, "9,48.5", "20km", "3km")
    assert capsys.readouterr().err == (
        "dpregions: note: --side 20km is no whole number of cells: the area is 21 km x 21 km with "
        "cells of 3 km\n"
    )
    read_grid(None, "9,48.5", "2.1km", "0.7km")  # 3 cells as written, though not in binary
    assert capsys.readouterr().err == ""


def test_warnings_are_notes_in_words_of_options_also_where_the_work_fails(capsys):
    def work():
        given = Argument("max_diameter", "'9km'")
        warnings.warn(SettingWarning(given, " is long"), stacklevel=1)
        raise InputError("no")

    with pytest.raises(InputError), notes():
        work()
    assert capsys.readouterr().err == "dpregions: note: --max-diameter '9km' is long\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((None, None, None, None), "--grid FILE.json, by --around"),
        ((Path("g.json"), "9,48", None, None), "--grid FILE.json, by --around"),
        ((Path("none.json"), None, None, None), "none.json: there is no such file"),
        ((None, "9,48", None, None), "--around needs --side and --cell too"),
        ((None, "9,48", "4km", None), "--around, --side needs --cell too"),
        ((None, "200,48", "4km", "1km"), "'200,48' is no place on Earth"),
        ((None, "9;48", "4km", "1km"), "write LON,LAT"),
        ((None, "nan,48", "4km", "1km"), "no place"),
        ((None, "9,85", "4km", "1km"), "beyond UTM.* by --bounds and --bounds-crs"),
    ],
)
def test_wrong_grids_are_refused_by_the_names_of_options(options, message):
    with pytest.raises(InputError, match=message):
        read_grid(*options)


def test_a_file_that_is_no_grid_is_refused(tmp_path):
    file = tmp_path / "grid.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not JSON, as it is not text"):
        read_grid(file, None, None, None)
    file.write_text("{}")
    with pytest.raises(DPRegionsError, match="not a grid's JSON"):
        read_grid(file, None, None, None)


def test_a_length_without_a_unit_is_refused_where_there_are_units():
    assert read_length("2km", "--cell") == "2km"
    assert read_length("2000", "--cell", bare=True) == 2000.0
    with pytest.raises(InputError, match=r"--cell 20 has no unit: write 20km or 20m, whichever"):
        read_length("20", "--cell")
    with pytest.raises(InputError, match="--side 20 has no unit"):
        read_grid(None, "9,48.5", "20", "1km")
    with pytest.raises(InputError, match="--cell 1 has no unit"):
        read_grid(None, "9,48.5", "20km", "1")


def test_a_place_with_exchanged_axes_is_told():
    assert read_place("-122.4,37.8", "--crs") == (-122.4, 37.8)
    with pytest.raises(
        InputError, match=r"with axes exchanged it is one, 116\.4,39\.9\. Longitude"
    ):
        read_place("39.9,116.4", "--crs")


BOUNDS = "490000,5361000,520000,5381000"


def test_an_area_by_its_bounds_may_be_of_any_width_and_height():
    made = Asked(bounds=BOUNDS, bounds_crs="EPSG:32632", cell="1km").read()
    wanted = Grid.from_bounds(490000, 5361000, 520000, 5381000, cell_size="1km", crs=32632)
    assert made == wanted and made.shape == (20, 30)
    assert Asked(around="9,48.5", side="30kmx20km", cell="1km").read().shape == (20, 30)


def test_bounds_in_degrees_become_a_grid_that_holds_them():
    made = Asked(bounds="8.9,48.4,9.1,48.6", bounds_crs="EPSG:4326", cell="1km").read()
    assert made.crs.to_epsg() == 32632
    assert made.enclosing(8.9, 48.4, 9.1, 48.6, crs=4326) == made.bounds
    west = Asked(bounds="-122.5,37.7,-122.4,37.8", bounds_crs="EPSG:4326", cell="1km").read()
    assert west.crs.to_epsg() == 32610


def test_an_area_is_aligned_to_round_numbers_or_to_the_inspire_grid():
    made = Asked(around="9,48.5", side="20km", cell="1km", align="round").read()
    assert made.xmin % 1000 == made.ymin % 1000 == 0 and made.crs.to_epsg() == 32632
    inspire = {"cell": "1km", "align": "inspire"}
    made = Asked(bounds="8.9,48.4,9.1,48.6", bounds_crs="EPSG:4326", **inspire).read()
    assert made.xmin % 1000 == made.ymin % 1000 == 0 and made.crs.to_epsg() == 3035


def test_an_area_is_said_in_words_and_in_degrees():
    made = Asked(around="9,48.5", side="30kmx20km", cell="1km").read()
    words = area_in_words(made)
    assert words.startswith("30 km x 20 km, 20 x 30 cells of 1000 m, longitude 8.79")
    assert words.endswith("latitude 48.4099 to 48.5900")
    assert "nowhere on Earth, as it has no CRS" in area_in_words(Grid(0, 0, 1, 2, 3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": BOUNDS, "cell": "1km"}, "--cell, --bounds needs --bounds-crs too"),
        ({"bounds": BOUNDS, "bounds_crs": "EPSG:32632"}, "needs --cell too"),
        ({"bounds": "1,2,3", "bounds_crs": "EPSG:32632", "cell": "1km"}, "is no rectangle"),
        ({"bounds": BOUNDS, "side": "2km", "cell": "1km"}, "--side has no use beside --bounds"),
        ({"around": "9,48", "bounds_crs": "EPSG:4326"}, "--bounds-crs has no use beside --around"),
        ({"bounds": BOUNDS, "bounds_crs": "EPSG:4326", "cell": "1km"}, "is no rectangle of degr"),
        (
            {"bounds": "39,116,40,117", "bounds_crs": "EPSG:4326", "cell": "1km"},
            "on Earth: longitude comes first",
        ),
        ({"around": "9,48", "side": "1kmx2kmx3km", "cell": "1km"}, "write 20km, or width and"),
        ({"align": "round"}, "--align needs --around and --side and --cell too"),
    ],
)
def test_wrong_bounds_are_refused_by_the_names_of_options(options, words):
    with pytest.raises(InputError, match=words):
        Asked(**options).read()


def test_notes_are_the_tools_own_warnings_and_never_another_librarys(capsys):
    """Another library may quote the record that it stumbled over."""
    with notes():
        warnings.warn("could not parse 'Jane Doe'", UserWarning, stacklevel=1)
        warnings.warn("epsilon 50 protects next to nothing", SettingWarning, stacklevel=1)
    assert capsys.readouterr().err == "dpregions: note: epsilon 50 protects next to nothing\n"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((Argument("max_diameter"), " must be"), "--max-diameter must be"),
        ((Argument("user_id", "'x'"), " is no column"), "--user-id 'x' is no column"),
        (("name it by ", Argument("geometry", ""), "."), "name it by --geometry."),
        (("use ", Argument("user_id", "None")), "use --each-row"),
        ((Argument("cell_sizes", "'9km'"), " is large"), "--cell '9km' is large"),
        ((InPython("regions.set_crs(...), or "), "give ", Argument("crs", "")), "give --crs"),
        (("crs= and max_diameter in a file's name",), "crs= and max_diameter in a file's name"),
    ],
)
def test_an_argument_is_said_as_its_option_and_other_words_stay(parts, said):
    assert in_options(InputError(*parts)) == said


def known_options(command):
    """Every option of a command and of those below it."""
    for below in getattr(command, "commands", {}).values():
        yield from known_options(below)
    for option in command.params:
        yield from option.opts


NAMES = """
cell_size cell_sizes confidence covert crs datasets epsilon epsilons favour folder format gap
geometry grids k lat layer lon max_diameter method methods n_regions neighbours out oversize queries
repetitions seed side sql target time total unit user_id what workload
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_what_an_argument_is_said_as_is_an_option(name):
    said = in_options(InputError(Argument(name)))
    assert said in set(known_options(typer.main.get_command(app)))


def test_a_field_of_a_grids_file_is_no_option(tmp_path):
    file = tmp_path / "grid.json"
    file.write_text(Grid(0, 0, 1, 2, 2).to_json().replace('"cell_size": 1.0', '"cell_size": 0'))
    with pytest.raises(InputError, match=r"--grid .*grid.json: cell_size must be") as refused:
        read_grid(file, None, None, None)
    assert in_options(refused.value) == str(refused.value)
