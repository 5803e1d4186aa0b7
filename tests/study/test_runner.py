"""Running a study: tables, report, resuming, and what is refused with nothing written."""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import dpregions as dpr
from dpregions.errors import InputError, MissingExtraError
from dpregions.planning.exact_data import ExactData
from dpregions.study import folder as study_folder
from dpregions.study.datasets import CABSPOTTING, GEOLIFE, SYNTHETIC, TDRIVE
from dpregions.study.experiments import EXPERIMENTS, chosen_experiments
from dpregions.study.experiments.base import measure
from dpregions.study.experiments.errors import questions
from dpregions.study.folder import StudyFolder, study_settings
from dpregions.study.harness import people_questions
from dpregions.study.methods import METHODS
from dpregions.study.runner import Plan
from dpregions.study.runner import run_study as run_in_two_processes
from dpregions.study.words import percent

TINY = replace(SYNTHETIC, n_users=50)
QUICK = ("paper", "four corners")

WHERE = ["dataset", "cells_a_side", "cell_km", "sensitivity", "epsilon"]
SPREAD = ["low", "high", "repetitions"]
ERRORS = [*WHERE, "method", "share_percent", "height", "width", "error_percent", *SPREAD]
SCHEMAS = {
    "sizes": ERRORS,
    "people": ERRORS,
    "shapes": [*ERRORS, "size"],
    "cells": ERRORS,
    "epsilon": ERRORS,
    "l1": [*WHERE, "method", "l1", "relative_l1", *SPREAD],
    "coverage": [
        *WHERE,
        "size",
        "decile",
        "held_percent",
        "queries",
        "regions",
        "width",
        "repetitions",
    ],
    "consistency": [
        *WHERE,
        "method",
        "C1_percent",
        "C2_percent",
        "C3_percent",
        "negative_percent",
        "non_monotone_percent",
        "next_non_monotone_percent",
        "repetitions",
    ],
    "times": [*WHERE, "step", "seconds", *SPREAD],
    "density": [*WHERE, "method", "row", "col", "regions"],
    "extraction": ["dataset", "fixes", "k", "corners", "area_km2", "circle_km"],
}
"""The columns of every table: readers of the CSV files rely on them."""


def plan(*names, datasets=(TINY,), methods=QUICK, repetitions=2, **more):
    experiments = chosen_experiments(list(names))
    return Plan(experiments, list(datasets), methods=methods, repetitions=repetitions, **more)


run_study = partial(run_in_two_processes, processes=1)


def claim(out, asked):
    """Do what a run does before it measures anything."""
    settings = study_settings(asked.methods, asked.repetitions, asked.seed)
    return StudyFolder.claim(out, settings, asked.datasets, asked.folder)


def measured_again(*_):
    pytest.fail("measured again")


def cabs(seed=0):
    """Return 40 fixes of each of 30 cabs."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(30), 40),
            "t": pd.Timestamp("2008-05-17"),
            "lon": rng.normal(-122.40, 0.004, 1200),
            "lat": rng.normal(37.792, 0.004, 1200),
        }
    )


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All experiments with all methods on a tiny city, two repetitions."""
    out = tmp_path_factory.mktemp("all") / "study"
    return out, run_study(out, plan(methods=tuple(METHODS)))


def read(out, name):
    return pd.read_csv(out / f"{name}.csv", comment="#")


def test_every_experiment_has_a_table_with_its_fixed_columns(everything):
    out, made = everything
    assert list(made.tables) == list(SCHEMAS) == list(EXPERIMENTS)
    for name, columns in SCHEMAS.items():
        assert list(read(out, name).columns) == columns, name


def test_every_table_says_in_its_first_line_what_it_is(everything):
    out, _ = everything
    tables = list(out.rglob("*.csv"))
    assert len(tables) > len(SCHEMAS)
    for path in tables:
        assert path.read_text().startswith("# study on exact data: not a private release\n")


def test_every_file_and_folder_is_for_its_owners_eyes(everything):
    out, _ = everything
    for path in out.rglob("*"):
        mode = 0o600 if path.is_file() else 0o700
        assert stat.S_IMODE(path.stat().st_mode) == mode, path.name
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_every_method_is_in_every_table_of_methods(everything):
    out, _ = everything
    baselines = set(METHODS) - {"paper", "footprint"}
    named = {"euler", "diff-priv", "lin-prog", "round", "footprint", "footprint-signed"} | baselines
    for name in ("sizes", "people", "shapes", "cells", "epsilon", "l1", "consistency", "density"):
        assert set(read(out, name)["method"]) == named, name


def test_settings_are_those_of_the_issue(everything):
    out, _ = everything
    cells = read(out, "cells").drop_duplicates("cells_a_side")
    assert list(cells["cells_a_side"]) == [30, 20, 10]
    assert list(cells["sensitivity"]) == [49, 25, 9]
    assert set(read(out, "cells")["share_percent"]) == {1}
    epsilon = read(out, "epsilon")
    assert sorted(set(epsilon["epsilon"])) == [0.1, 0.4, 0.7, 1.0]
    assert set(epsilon["cell_km"]) == {2}


def test_coverage_is_told_by_size_and_tenth_of_the_truth(everything):
    out, made = everything
    table = read(out, "coverage")
    assert table["decile"].between(1, 10).all() and table["held_percent"].between(0, 100).all()
    assert {"1 x 1", "2 x 2", "100 %"} <= set(table["size"])
    assert table.groupby("size")["queries"].sum()["1 x 1"] == 2 * 40
    one = table[table["size"] == "1 x 1"].sort_values("decile")
    assert one["regions"].is_monotonic_increasing and one["regions"].iloc[-1] > 0
    assert "hold the true count" in made.report.read_text()


def test_placing_as_people_are_does_not_move_the_papers_questions():
    """They are drawn last, so tables of the paper's experiments stay what they were."""
    data = ExactData.of(dpr.synthetic.regions(50), dpr.synthetic.grid("20km", "2km"), "2km")
    alone, beside = np.random.default_rng(3), np.random.default_rng(3)
    first = [question.cells for question in questions(10, alone)]
    both = [*questions(10, beside), *people_questions((0.01,), data, beside)]
    for cells, question in zip(first, both, strict=False):
        np.testing.assert_array_equal(cells, question.cells)
    assert both[-1].kind == "people"


def test_diff_priv_is_at_distance_one_from_itself(everything):
    out, _ = everything
    table = read(out, "l1").set_index("method")
    assert table.loc["diff-priv", ["relative_l1", "low", "high"]].eq(1).all()
    assert table.loc["euler", "relative_l1"] == 0


def test_the_truth_and_ours_contradict_nothing(everything):
    out, _ = everything
    table = read(out, "consistency").set_index("method").filter(like="percent")
    assert table.loc[["euler", "footprint"]].eq(0).all(axis=None)
    assert table.loc["round", ["C1_percent", "C2_percent", "C3_percent"]].eq(0).all()


def test_the_report_opens_offline_and_says_what_it_is(everything):
    out, made = everything
    text = made.report.read_text()
    assert made.report == out / "report.html"
    assert text.count(ExactData.label) >= 2
    for outside in ("http:", "https:", "<script", "<link", "@import", "url("):
        assert outside not in text
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    pictures = [image.get("src") for image in page.iter("img")]
    assert len(pictures) == len(list(out.glob("*.png")))
    assert all(source.startswith("data:image/png;base64,") for source in pictures)
    places = {part.get("id") for part in page.iter("section")}
    assert {link.get("href").removeprefix("#") for link in page.iter("a")} == places


def test_the_report_holds_every_experiment_with_its_picture_words_and_table(everything):
    _, made = everything
    text = made.report.read_text()
    for name, experiment in EXPERIMENTS.items():
        section = text.split(f'<section id="{name}">')[1].split("</section>")[0]
        assert f"{experiment.title}</h2>" in section
        assert "data:image/png;base64," in section
        assert "<li>Made-up city: " in section
        assert "<table>" in section
        assert f'<a href="#{name}">' in text
    assert "196 s" in text


def test_words_hold_the_tables_numbers(everything):
    out, made = everything
    table = read(out, "sizes")
    rows = table[(table["method"] == "round") & (table["share_percent"] == 100)]
    assert f"Round by {percent(rows['error_percent'].iloc[0])}" in made.report.read_text()


def test_contradictions_are_percentages_of_pairs_of_rectangles(everything):
    _, made = everything
    text = made.report.read_text()
    assert "of nested pairs the smaller answers more" in text
    assert "of the pairs a row or column apart" in text


def test_equal_seeds_give_equal_bytes(tmp_path):
    for name in ("one", "same"):
        run_study(tmp_path / name, plan("sizes", "l1", seed=3))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "same")


class Stopped(Exception):
    pass


def test_a_stopped_study_goes_on_where_it_stopped(tmp_path):
    asked = plan("l1", methods=("paper",), repetitions=25)
    run_study(tmp_path / "whole", asked)
    seen, later = [], []

    def stop_after_two(source, unit):
        if len(seen) == 2:
            raise Stopped
        seen.append(unit)
        return measure(source, unit)

    def go_on(source, unit):
        later.append(unit)
        return measure(source, unit)

    with pytest.raises(Stopped):
        run_study(tmp_path / "parts", asked, measure=stop_after_two)
    assert len(seen) == 2
    assert not (tmp_path / "parts" / "report.html").exists()
    run_study(tmp_path / "parts", asked, measure=go_on)
    assert len(later) == 1 and not set(later) & set(seen)
    assert files_of(tmp_path / "parts") == files_of(tmp_path / "whole")


def test_a_finished_study_is_not_measured_again(tmp_path):
    run_study(tmp_path / "out", plan("sizes"))
    before = files_of(tmp_path / "out")
    run_study(tmp_path / "out", plan("sizes"), measure=measured_again)
    assert files_of(tmp_path / "out") == before


def test_a_study_grows_by_experiments_that_share_its_measurements(tmp_path):
    run_study(tmp_path / "out", plan("sizes"))
    made = run_study(tmp_path / "out", plan("shapes"), measure=measured_again)
    assert list(made.tables) == ["sizes", "shapes"]
    assert 'id="sizes"' in made.report.read_text()


def test_two_processes_give_the_same_bytes_as_one(tmp_path):
    asked = plan("sizes", methods=("four corners",), repetitions=21)
    done = []
    run_in_two_processes(tmp_path / "two", asked, progress=done.append, processes=2)
    assert done == sorted(done) and done[0] == 0 and done[-1] == pytest.approx(1)
    run_study(tmp_path / "one", asked)
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")


def test_reading_fixes_is_part_of_the_work(tmp_path):
    cabs().to_parquet(tmp_path / "cabspotting.parquet")
    done, before_measuring = [], []

    def measured(source, unit):
        before_measuring.extend(done)
        return measure(source, unit)

    asked = plan("extraction", datasets=(CABSPOTTING,), folder=tmp_path)
    run_study(tmp_path / "out", asked, progress=done.append, measure=measured)
    assert before_measuring[0] == 0 and 0.5 < before_measuring[-1] < 1
    assert done == [*before_measuring, pytest.approx(1)]
    again = []
    run_study(tmp_path / "out", asked, progress=again.append)
    assert again == [1]


def test_a_folder_that_is_not_a_studys_is_left_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty and holds no study"):
        run_study(tmp_path, plan("sizes"))
    (tmp_path / "study.json").write_text('{"made_by": "somebody else"}')
    with pytest.raises(InputError, match="not empty and holds no study"):
        run_study(tmp_path, plan("sizes"))
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(InputError, match="not empty and holds no study"):
        run_study(tmp_path, plan("sizes"))
    assert files_of(tmp_path) == {"thesis.txt": b"mine", "study.json": b"[]"}


@pytest.mark.parametrize(
    "damage",
    [{"settings": []}, {"settings": None}, {"data": []}, {"finished": 3}, {"finished": [["a"]]}],
)
def test_a_damaged_manifest_is_no_studys(tmp_path, damage):
    sound = {"made_by": "dpregions study", "settings": {}, "data": {}, "finished": []}
    (tmp_path / "study.json").write_text(json.dumps({**sound, **damage}))
    before = files_of(tmp_path)
    with pytest.raises(InputError, match="not empty and holds no study"):
        run_study(tmp_path, plan("sizes"))
    assert files_of(tmp_path) == before


class StoppedAtParts(type(Path())):
    """A path below which the first folder of parts is made, and nothing after it."""

    def mkdir(self, *args, **kwargs):
        super().mkdir(*args, **kwargs)
        if self.name == "parts":
            raise Stopped


def test_a_study_stopped_while_it_claims_its_folder_goes_on(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        claim(StoppedAtParts(out), plan("sizes"))
    assert (out / "parts").is_dir()
    claim(out, plan("sizes"))


def test_what_a_killed_writer_of_the_manifest_left_does_not_block_a_folder(tmp_path):
    (tmp_path / ".study.json.x1.part.json").write_text("")
    claim(tmp_path, plan("sizes"))
    assert (tmp_path / "study.json").exists()


@pytest.mark.parametrize("out", ["afile", "afile/sub", "afile/sub/sub"])
def test_a_file_is_no_folder(tmp_path, out):
    (tmp_path / "afile").write_text("")
    with pytest.raises(InputError, match="afile is a file: give a folder"):
        run_study(tmp_path / out, plan("sizes"))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"repetitions": 3}, r"repetitions 2 \(now 3\)"),
        ({"seed": 1}, r"seed 0 \(now 1\)"),
        ({"methods": ("paper",)}, "methods"),
        ({"datasets": (replace(TINY, n_users=51),)}, "another synthetic"),
    ],
)
def test_a_study_with_other_settings_is_left_as_it_is(tmp_path, other, says):
    claim(tmp_path / "out", plan("sizes"))
    before = files_of(tmp_path / "out")
    with pytest.raises(InputError, match=says):
        run_study(tmp_path / "out", plan("sizes", **other))
    assert files_of(tmp_path / "out") == before


def test_parts_made_by_other_code_are_refused(tmp_path):
    run_study(tmp_path / "out", plan("sizes", repetitions=1))
    manifest = tmp_path / "out" / "study.json"
    written = json.loads(manifest.read_text())
    written["settings"]["sources"] = "0123"
    manifest.write_text(json.dumps(written))
    before = files_of(tmp_path / "out")
    with pytest.raises(InputError, match=r"sources 0123 \(now \w{16}\): give a new folder"):
        run_study(tmp_path / "out", plan("sizes", repetitions=1))
    assert files_of(tmp_path / "out") == before


def test_the_digest_of_sources_follows_every_file_and_its_name(tmp_path):
    digests = set()
    for name, text in [("a.py", "x"), ("a.py", "y"), ("sub/b.py", "x"), ("sub/b.py", "z")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        digests.add(study_folder._sources(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "c.py")
    digests.add(study_folder._sources(tmp_path))
    assert len(digests) == 5
    (tmp_path / "notes.txt").write_text("no code")
    assert study_folder._sources(tmp_path) in digests


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (plan("sizes", repetitions=0), "repetitions must be at least 1, got 0"),
        (plan("sizes", seed=-1), "seed must be at least 0, got -1"),
        (plan("sizes", methods=("paper", "magic")), "magic is no method: choose from paper, "),
        (plan("sizes", methods=()), "nothing is no method"),
        (plan("l1", methods=("four corners",)), "compares with the method paper"),
        (plan("sizes", datasets=(TDRIVE,)), "tdrive needs a folder of data"),
        (plan("cells", "epsilon", datasets=(GEOLIFE,)), "is for T-Drive and the made-up city"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(tmp_path, asked, says):
    with pytest.raises(InputError, match=says):
        run_study(tmp_path / "out", asked)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", ["matplotlib", "scipy"])
def test_without_the_extra_it_is_named_and_nothing_written(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*dpregions\[plot\]"):
        run_study(tmp_path / "out", plan("sizes"))
    assert not (tmp_path / "out").exists()


def test_missing_files_are_named_with_their_columns_and_origin(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(InputError) as refused:
        run_study(tmp_path / "out", plan("sizes", datasets=(TDRIVE, CABSPOTTING), folder=data))
    text = str(refused.value)
    for part in ("tdrive.parquet", "cabspotting.parquet", "Microsoft Research", "CRAWDAD"):
        assert part in text
    assert "user_id, t, lon, lat" in text
    assert not (tmp_path / "out").exists()


def test_a_file_without_a_column_or_that_is_none_is_refused(tmp_path):
    fixes = pd.DataFrame({"user_id": [1], "lon": [0.0], "lat": [0.0]})
    fixes.to_parquet(tmp_path / "tdrive.parquet")
    asked = plan("sizes", datasets=(TDRIVE,), folder=tmp_path)
    with pytest.raises(InputError, match="has no column t"):
        run_study(tmp_path / "out", asked)
    (tmp_path / "tdrive.parquet").write_text("no table")
    with pytest.raises(InputError, match="no Parquet file"):
        run_study(tmp_path / "out", asked)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def one_cab_shown(tmp_path):
    """Return a data folder, and a study's folder that shows one of its users."""
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    cabs().to_parquet(data / "cabspotting.parquet")
    run_study(out, plan("extraction", datasets=(CABSPOTTING,), folder=data))
    return data, out


@pytest.mark.parametrize("with_folder", [False, True])
def test_a_study_that_shows_a_user_grows_without_the_users_file(one_cab_shown, with_folder):
    data, out = one_cab_shown
    picture = (out / "extraction_cabspotting.png").read_bytes()
    (data / "cabspotting.parquet").unlink()
    made = run_study(out, plan("density", folder=data if with_folder else None))
    assert list(made.tables) == ["density", "extraction"]
    assert (out / "extraction_cabspotting.png").read_bytes() == picture
    user = out / "secret_regions" / "cabspotting_user.parquet"
    assert stat.S_IMODE(user.stat().st_mode) == 0o600


def test_a_study_is_not_mixed_with_other_data_than_those_it_holds(one_cab_shown):
    data, out = one_cab_shown
    before = files_of(out)
    cabs(seed=1).to_parquet(data / "cabspotting.parquet")
    with pytest.raises(InputError, match="another cabspotting: the data have changed"):
        run_study(out, plan("density", folder=data))
    assert files_of(out) == before


def test_a_data_set_is_read_from_its_folder_and_its_regions_kept_secret(tmp_path):
    fixes, data = cabs(), tmp_path / "data"
    data.mkdir()
    fixes.to_parquet(data / "cabspotting.parquet")
    out = tmp_path / "out"
    asked = plan("sizes", "density", datasets=(CABSPOTTING,), folder=data)
    made = run_study(out, asked)
    sizes = read(out, "sizes")
    assert set(zip(sizes["cells_a_side"], sizes["sensitivity"], strict=True)) == {
        (4, 49),
        (20, 729),
    }
    kept = out / "secret_regions" / "cabspotting.parquet"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    cab = next(found for found in made.findings if "Cabspotting: errors" in found.printed)
    assert cab.verdict == "differs"
    fixes[:-40].to_parquet(data / "cabspotting.parquet")
    with pytest.raises(InputError, match="the data have changed"):
        run_study(out, asked)


def test_the_manifest_says_whose_folder_it_is(everything):
    out, _ = everything
    manifest = json.loads((out / "study.json").read_text())
    assert manifest["label"] == ExactData.label
    assert manifest["settings"]["repetitions"] == 2
    assert ["sizes", "synthetic"] in manifest["finished"]
