"""The commands `budget`: what they write, show and refuse."""

import dataclasses
import json
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from dpregions.privacy.budget import PrivacyUnit
from dpregions.privacy.ledger import Ledger
from support.command_line import run
from support.old_ledgers import as_before_the_chain


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "city.ledger"
    Ledger(path).create("taxis", 3)
    return path


def test_an_account_is_opened_with_its_promise(tmp_path):
    path = tmp_path / "city.ledger"
    promise = ("--unit", "record", "--neighbours", "replace-one")
    made = run("budget", "create", path, "--dataset", "taxis", "--epsilon", "1/3", *promise)
    assert made.exit_code == 0, made.stderr
    assert "taxis: total epsilon 1/3, spent 0.0, remaining 1/3" in made.stdout
    account = Ledger(path).account("taxis")
    assert account.total == Fraction(1, 3)
    assert account.privacy_unit == PrivacyUnit("replace-one", "record")


def test_decimals_are_read_exactly(tmp_path):
    path = tmp_path / "city.ledger"
    assert run("budget", "create", path, "--dataset", "a", "--epsilon", "0.1").exit_code == 0
    assert Ledger(path).account("a").total == Fraction(1, 10)


def test_the_history_is_shown_with_what_became_of_each_debit(path, tmp_path):
    ledger, users = Ledger(path), PrivacyUnit()
    saved = tmp_path / "city.parquet"
    saved.write_bytes(b"abc")
    ledger.mark_saved(ledger.debit("taxis", 0.5, users, "footprint, 20 x 20 cells"), saved)
    ledger.debit("taxis", 1, users, "paper, 20 x 20 cells")
    shown = run("budget", "show", path).stdout
    assert "total epsilon 3.0, spent 1.5, remaining 1.5 (unit user, add-remove)" in shown
    for words in ("footprint, 20 x 20 cells", str(saved), "interrupted or running: the budget is"):
        assert words in shown
    found = json.loads(run("budget", "show", path, "--json").stdout)
    assert found["id"] == ledger.id
    (account,) = found["datasets"]
    assert (account["total"], account["spent"], account["remaining"]) == ("3.0", "1.5", "1.5")
    assert [entry["state"] for entry in account["entries"]] == [
        "total set",
        "saved",
        "interrupted or running: the budget is spent",
    ]
    assert account["entries"][1]["files"][0]["sha256"].startswith("ba7816bf")
    assert account["entries"][1]["files"][0]["path"] == str(saved)


def test_paths_are_not_broken_on_a_narrow_terminal(path, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes what it writes to for a terminal
    monkeypatch.setenv("COLUMNS", "50")
    saved = tmp_path / f"{'city-' * 20}.parquet"
    saved.write_bytes(b"abc")
    ledger = Ledger(path)
    ledger.mark_saved(ledger.debit("taxis", 0.5, PrivacyUnit(), "footprint"), saved)
    shown = run("budget", "show", path).stdout.splitlines()
    assert f"entry 2 is saved in {saved}" in shown
    assert any(str(path) in line for line in shown)


def test_exact_amounts_come_back_from_json(path):
    for share in (Fraction(1, 3), Fraction(1, 7)):
        Ledger(path).debit("taxis", share, PrivacyUnit(), "test")
    (account,) = json.loads(run("budget", "show", path, "--json").stdout)["datasets"]
    assert Fraction(account["spent"]) == Fraction(10, 21)
    assert Fraction(account["remaining"]) == 3 - Fraction(10, 21)


def test_names_that_look_like_markup_are_shown_as_they_are(path):
    Ledger(path).create("[red]fleet[/red]"[:11], 1)
    assert "[red]fleet[" in run("budget", "show", path).stdout


def test_a_total_is_changed_but_not_below_what_was_spent(path):
    Ledger(path).debit("taxis", 2, PrivacyUnit(), "test")
    raised = run("budget", "set-total", path, "--dataset", "taxis", "--epsilon", "4", "--json")
    assert json.loads(raised.stdout)["datasets"][0]["remaining"] == "2.0"
    lowered = run("budget", "set-total", path, "--dataset", "taxis", "--epsilon", "1")
    assert lowered.exit_code == 2
    assert "has spent epsilon 2.0 already" in lowered.stderr
    assert Ledger(path).account("taxis").total == 4


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("show", "missing.ledger"), "there is no ledger at missing.ledger"),
        (("show", "LEDGER", "--dataset", "buses"), "'buses' is not in the ledger"),
        (("create", "LEDGER", "--dataset", "taxis", "--epsilon", "1"), "already"),
        (("create", "LEDGER", "--dataset", "a/b", "--epsilon", "1"), "is no name"),
        (("create", "LEDGER", "--dataset", "b", "--epsilon", "-1"), "--epsilon -1 is no privacy"),
        (("create", "LEDGER", "--dataset", "b", "--epsilon", "much"), "--epsilon much is no"),
        (("create", "LEDGER", "--dataset", "b", "--epsilon", "nan"), "--epsilon nan is no"),
        (("create", "LEDGER", "--dataset", "b", "--epsilon", "1/0"), "--epsilon 1/0 is no"),
        (("create", "LEDGER", "--dataset", "b", "--epsilon", "1e999999999"), "is no privacy loss"),
        (("create", "LEDGER", "--dataset", "b"), "Missing option '--epsilon'"),
        (("create", "LEDGER", "--epsilon", "1"), "Missing option '--dataset'"),
        (("create", "LEDGER", "--dataset", "b", "--epsilon", "1", "--unit", "cat"), "--unit"),
        (("spend", "LEDGER"), "No such command"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(path, args, words):
    ended = run("budget", *(path if arg == "LEDGER" else arg for arg in args))
    assert ended.exit_code == 2
    assert words in " ".join(ended.stderr.replace("│", " ").split())
    assert len(Ledger(path).accounts()) == 1


def test_a_ledger_in_use_for_too_long_is_exit_code_1(path, impatient):
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ended = run("budget", "show", path)
    assert ended.exit_code == 1
    assert ended.stderr.startswith("dpregions: failed: the ledger")
    assert len(ended.stderr.splitlines()) == 1


def test_the_help_of_all_has_an_example():
    assert "Example: dpregions budget create" in run("budget", "--help").stdout


@pytest.mark.parametrize("command", ["create", "show", "set-total"])
def test_help_has_an_example(command):
    assert f"Example: dpregions budget {command}" in run("budget", command, "--help").stdout


def test_an_account_is_bound_to_what_it_is_declared_to_be(tmp_path):
    path = tmp_path / "city.ledger"
    facts = ("--source", "rides of 2026", "--period", "2026", "--owner", "A. Ride")
    args = ("budget", "create", path, "--epsilon", "1", *facts)
    made = run(*args, "--dataset", "taxis")
    assert made.exit_code == 0, made.stderr
    assert "source: rides of 2026\nperiod: 2026\nowner: A. Ride\n" in made.stdout
    again = run(*args, "--dataset", "rides")
    assert again.exit_code == 2 and "declared to be of this source and period" in again.stderr
    (shown,) = json.loads(run("budget", "show", path, "--json").stdout)["datasets"]
    assert shown["declared"] == {"source": "rides of 2026", "period": "2026", "owner": "A. Ride"}


def test_a_total_above_twenty_needs_to_be_meant(tmp_path):
    path = tmp_path / "city.ledger"
    args = ("budget", "create", path, "--dataset", "taxis", "--epsilon", "1e9")
    refused = run(*args)
    assert refused.exit_code == 2 and not path.exists()
    assert "--epsilon 1000000000.0 protects next to nothing: above 20" in refused.stderr
    assert "gives --allow-epsilon" in refused.stderr
    assert run(*args, "--allow-epsilon").exit_code == 0
    raised = run("budget", "set-total", path, "--dataset", "taxis", "--epsilon", "2e9")
    assert raised.exit_code == 2 and "--allow-epsilon" in raised.stderr


def test_a_ledger_and_its_releases_are_verified(path, good, tmp_path):
    ledger = Ledger(path)
    paid = ledger.debit("taxis", 1, PrivacyUnit(), "test")
    file = tmp_path / "june.parquet"
    named = {"ledger_entry": str(paid), "ledger_digest": paid.digest}
    dataclasses.replace(good[0], **named).save(file)
    ledger.mark_saved(paid, file)
    found = run("budget", "verify", path, file)
    assert found.exit_code == 0, found.output
    assert "5 rows and 1 releases tell one story.\nLast digest: " in found.stdout
    facts = json.loads(run("budget", "verify", path, "--json").stdout)
    assert facts["problems"] == [] and facts["releases"] == 0 and len(facts["last"]) == 64
    wrong = run("budget", "verify", path, file, good[1])
    assert wrong.exit_code == 1 and "no ledger paid for it" in wrong.stdout
    dataclasses.replace(good[0], **named | {"ledger_digest": "0" * 64}).save(file)
    wrong = run("budget", "verify", path, file)
    assert wrong.exit_code == 1
    assert f"{file}: entry 2 is not the one that paid for it" in wrong.stdout


def test_a_ledger_from_before_the_chain_is_migrated(path):
    as_before_the_chain(Ledger(path))
    refused = run("budget", "show", path)
    assert refused.exit_code == 2 and f"'dpregions budget migrate {path}'" in refused.stderr
    assert json.loads(run("budget", "migrate", path, "--json").stdout)["rows"] == 3
    assert run("budget", "show", path).exit_code == 0
    assert "Its chain was made on 20" in run("budget", "verify", path).stdout
    assert run("budget", "migrate", path).exit_code == 2


def test_what_is_left_is_planned_ahead(path):
    ledger = Ledger(path)
    ledger.set_total("taxis", Fraction("1.08"))
    ledger.debit("taxis", 0.04, PrivacyUnit(), "footprint, period 2026-W22")
    shown = run("budget", "show", path, "--at", "0.04", "--every", "week").stdout
    assert "\n26 weeks left at 0.04\n" in shown and "period 2026-W22" in shown
    assert "\n2 releases left at 0.5\n" in run("budget", "show", path, "--at", "0.5").stdout
    assert (
        "\n1 month left at 1.0\n"
        in run("budget", "show", path, "--at", "1", "--every", "month").stdout
    )
    found = json.loads(run("budget", "show", path, "--at", "2", "--json").stdout)["datasets"][0]
    assert (found["at"], found["every"], found["left"]) == ("2.0", "release", 0)
    assert "left" not in json.loads(run("budget", "show", path, "--json").stdout)["datasets"][0]


def test_a_plan_without_a_price_is_refused(path):
    done = run("budget", "show", path, "--every", "week")
    assert done.exit_code == 2 and "--every needs --at" in done.stderr


def test_thirds_are_planned_exactly(tmp_path):
    Ledger(tmp_path / "a").create("a", 1)
    assert Ledger(tmp_path / "a").account("a").releases_left(Fraction(1, 3)) == 3
