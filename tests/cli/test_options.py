"""The options that several commands share, read as they are typed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import typer

from dpregions import Grid
from dpregions.cli.app import app
from dpregions.cli.options import in_options, notes, read_grid, read_length, read_place
from dpregions.errors import Argument, DPRegionsError, InputError, InPython, SettingWarning


def test_a_grid_is_read_from_its_file_or_from_a_place(tmp_path):
    grid = Grid.around(9.0, 48.5, side="4km", cell_size="1km")
    file = tmp_path / "grid.json"
    file.write_text(grid.to_json())
    assert read_grid(file, None, None, None) == grid
    assert read_grid(None, "9,48.5", "4km", "1000") == grid


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
        ((None, "9,85", "4km", "1km"), "beyond UTM.* by --grid FILE"),
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


def test_bare_numbers_are_lengths_in_units_of_the_crs():
    assert read_length("2000") == 2000.0
    assert read_length("2km") == "2km"
    assert read_place("-122.4,37.8", "--crs") == (-122.4, 37.8)


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
