"""The sign-off sheet: every question is answered, or the release is not made."""

from __future__ import annotations

import tomllib

import pytest
import shapely

import dpregions as dpr
from dpregions.errors import InputError, InputTypeError
from dpregions.releases.sign_off import BLANK, QUESTIONS, answers_of
from support.command_line import run

GRID = dpr.Grid(0, 0, 1, n_rows=2, n_cols=2)
ANSWERS = {name: f"A. Ride answers: {name}" for name in QUESTIONS}


def publish(sheet, **account):
    terms = {"epsilon": 1, "max_diameter": 1, "user_id": None, "method": "paper"}
    return dpr.release([shapely.box(0, 0, 1, 1)], GRID, sign_off=sheet, **terms, **account)


def filled(answers):
    return "".join(f"{name} = {answer!r}\n" for name, answer in answers.items())


def test_a_blank_sheet_asks_every_question_once():
    assert tomllib.loads(BLANK) == dict.fromkeys(QUESTIONS, "")
    for question in QUESTIONS.values():
        assert BLANK.count(f"# {question}\n") == 1


def test_answers_are_kept_in_the_release_and_its_file(tmp_path):
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(filled(dict(reversed(ANSWERS.items()))))
    for given in (ANSWERS, sheet, str(sheet)):
        made = publish(given)
        assert dict(made.sign_off) == ANSWERS
    made.save(tmp_path / "made.parquet")
    assert dpr.load(tmp_path / "made.parquet").sign_off == made.sign_off
    assert "Signed off: grid: A. Ride answers: grid; max_diameter: " in made.describe()
    assert answers_of(None) == () and publish(None).sign_off == ()


@pytest.mark.parametrize(
    ("sheet", "words"),
    [
        ({}, "does not answer 'grid': Who chose the area"),
        (ANSWERS | {"ids": "  "}, "does not answer 'ids': What makes sure"),
        (ANSWERS | {"ids": "a\nb"}, "Answer in one line"),
        (ANSWERS | {"ids": "a" * 301}, "of at most 300 characters"),
        (ANSWERS | {"ids": 7}, "does not answer 'ids'"),
        (ANSWERS | {"mood": "good"}, "answers 'mood', which nobody asked: questions are grid"),
        ("missing.toml", "cannot be read: No such file"),
    ],
)
def test_a_sheet_that_lacks_an_answer_is_refused_before_the_debit(sheet, words, ledger):
    ledger.create("town", 3, unit="record")
    with pytest.raises(InputError, match=words):
        publish(sheet, ledger=ledger, dataset="town")
    assert ledger.account("town").spent == 0


def test_what_is_no_sheet_is_refused(tmp_path):
    for text in (b"grid: me", b"\xff"):
        (tmp_path / "sheet.toml").write_bytes(text)
        with pytest.raises(InputError, match="is no sheet of TOML text: 'dpregions sign-off'"):
            publish(tmp_path / "sheet.toml")
    with pytest.raises(InputTypeError, match="sign_off must be the path of a sheet or a dict"):
        publish(7)


def test_the_command_writes_a_blank_sheet_and_replaces_none(tmp_path):
    sheet = tmp_path / "sheet.toml"
    assert run("sign-off", sheet).exit_code == 0
    assert sheet.read_text() == BLANK
    sheet.write_text("filled in")
    refused = run("sign-off", sheet)
    assert refused.exit_code == 2 and "is there already: choose another name" in refused.stderr
    assert sheet.read_text() == "filled in"
    assert run("sign-off", sheet, "--overwrite").exit_code == 0
    assert sheet.read_text() == BLANK


def test_the_command_releases_with_a_sheet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dpr.synthetic.regions(50).to_parquet("homes.parquet")
    args = ["release", "homes.parquet", "-o", "made.parquet", "--epsilon", "1", "--method", "paper"]
    args += ["--max-diameter", "2km", "--around", "9.0,48.5", "--side", "4km", "--cell", "1km"]
    run("sign-off", "sheet.toml")
    refused = run(*args, "--sign-off", "sheet.toml")
    assert refused.exit_code == 2 and "--sign-off does not answer 'grid'" in refused.stderr
    (tmp_path / "sheet.toml").write_text(filled(ANSWERS))
    assert run(*args, "--sign-off", "sheet.toml").exit_code == 0
    assert dict(dpr.load("made.parquet").sign_off) == ANSWERS
