"""The command `study`: what it says, writes and refuses."""

from __future__ import annotations

import json
from functools import partial

import pytest

from dpregions.planning.exact_data import ExactData
from dpregions.study.experiments import EXPERIMENTS
from dpregions.study.methods import METHODS
from support import command_line

run = partial(command_line.run, "study")


def test_a_study_of_the_made_up_city_needs_no_data(tmp_path):
    out = tmp_path / "study"
    chosen = ("--repetitions", 1, "--methods", "paper, four corners", "--out", out)
    result = run("sizes", *chosen, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["label"] == ExactData.label
    assert facts["report"] == str(out / "report.html")
    assert list(facts["tables"]) == ["sizes"]
    assert {found["verdict"] for found in facts["statements"]} <= {"agrees", "not measured"}
    again = run("sizes", *chosen)
    assert again.exit_code == 0
    assert ExactData.label in again.stdout and str(out / "report.html") in again.stdout
    assert again.stderr == ""


def test_the_choices_are_listed():
    result = run("--list")
    assert result.exit_code == 0
    for name in (*EXPERIMENTS, *METHODS, "tdrive", "geolife", "cabspotting", "synthetic"):
        assert f"  {name} " in result.stdout + " " or f"  {name}\n" in result.stdout
    listed = json.loads(run("--list", "--json").stdout)
    assert list(listed["experiments"]) == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nonsense"], "nonsense is no experiment: choose from sizes, people"),
        (["sizes", "--methods", "magic"], "magic is no method"),
        (["sizes", "--methods", ""], "nothing is no method"),
        (["sizes", "--methods", "paper,paper"], "twice"),
        (["sizes", "--datasets", "mars"], "mars is no data set: choose from tdrive"),
        (["sizes", "--datasets", "tdrive"], "needs a folder of data: give --data FOLDER"),
        (["sizes", "--repetitions", 0], "--repetitions must be at least 1, got 0"),
        (["sizes", "--seed", -1], "--seed must be at least 0"),
    ],
)
def test_wrong_choices_are_refused_in_one_line(tmp_path, args, says):
    out = tmp_path / "study"
    result = run(*args, "--out", out)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.startswith("dpregions: error:") and result.stderr.count("\n") == 1
    assert not out.exists()


def test_a_data_folder_without_the_files_is_refused(tmp_path):
    result = run("--data", tmp_path / "nowhere", "--out", tmp_path / "study")
    assert result.exit_code == 2
    for part in ("tdrive.parquet", "geolife.parquet", "cabspotting.parquet", "Microsoft Research"):
        assert part in result.stderr
    assert not (tmp_path / "study").exists()


def test_a_folder_inside_a_file_is_refused_as_wrong_input(tmp_path):
    (tmp_path / "afile").write_text("")
    result = run("sizes", "--out", tmp_path / "afile" / "sub")
    assert result.exit_code == 2
    assert result.stderr.startswith("dpregions: error: --out")


def test_a_folder_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    result = run("sizes", "--out", tmp_path)
    assert result.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
