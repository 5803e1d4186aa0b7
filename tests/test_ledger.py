"""The budget ledger: exact, never overspent, paid before noise, and plain about broken files."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

import dpregions as dpr
from dpregions import ledger_file, releases, releasing
from dpregions.errors import (
    DPRegionsError,
    InputError,
    InputTypeError,
    LedgerError,
    LedgerUnavailableError,
    LedgerWarning,
    OverBudgetError,
    PrivacyError,
    SourceError,
)
from dpregions.ledger import Ledger, MeteredNoise
from dpregions.privacy import Budget, PrivacyUnit, SystemNoise

USERS = PrivacyUnit()
GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
SQUARES = list(shapely.box(*np.random.default_rng(0).uniform(0, 3, (2, 40)), 3.5, 3.5))


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.ledger")


def publish(ledger, regions=SQUARES, **changes):
    """Release records, so that the smallest input will do."""
    arguments = {"epsilon": 1, "max_diameter": 2, "user_id": None, "dataset": "town"} | changes
    return dpr.release(regions, GRID, ledger=ledger, **arguments)


def opened(ledger, total=3):
    ledger.create("town", total, unit="record")
    return ledger


# Exact arithmetic


def test_a_tenth_three_times_of_three_tenths_is_allowed_and_a_fourth_is_not(ledger):
    ledger.create("town", 0.3)
    for _ in range(3):
        ledger.debit("town", 0.1, USERS, "test")
    assert ledger.account("town").remaining == 0
    with pytest.raises(OverBudgetError, match=r"0\.3 is spent and 0\.0 remains; 1e-300 was asked"):
        ledger.debit("town", 1e-300, USERS, "test")


def test_thirds_add_up_to_one(ledger):
    ledger.create("town", 1)
    for share in Budget(1).split(1, 1, 1):
        ledger.debit("town", share, USERS, "test")
    account = ledger.account("town")
    assert (account.spent, account.remaining) == (1, 0)


def test_every_form_of_number_counts_at_its_face_value(ledger):
    ledger.create("town", Decimal("1.0"))
    for amount in (0.1, Decimal("0.1"), Fraction(1, 10), Budget(0.1), np.float64(0.1)):
        ledger.debit("town", amount, USERS, "test")
    assert ledger.account("town").spent == Fraction(1, 2)


def test_over_budget_is_refused_with_the_figures(ledger):
    ledger.create("town", 3)
    ledger.debit("town", 2.5, USERS, "test")
    words = "total epsilon of 3.0, of which 2.5 is spent and 0.5 remains; 1.0 was asked for"
    with pytest.raises(OverBudgetError, match=words):
        ledger.debit("town", 1, USERS, "test")
    assert ledger.account("town").spent == Fraction(5, 2)


# Accounts


def test_an_account_keeps_to_its_unit_and_its_neighbours(ledger):
    ledger.create("town", 3)
    for other in (PrivacyUnit("replace-one", "user"), PrivacyUnit("add-remove", "record")):
        with pytest.raises(LedgerError, match=f"for unit '{other.unit}', neighbours"):
            ledger.debit("town", 1, other, "test")
    assert ledger.account("town").spent == 0


def test_data_sets_have_separate_budgets(ledger):
    ledger.create("one", 1)
    ledger.create("other", 1, unit="trajectory", neighbours="replace-one")
    ledger.debit("one", 1, USERS, "test")
    assert [account.remaining for account in ledger.accounts()] == [0, 1]
    assert ledger.account("other").privacy_unit == PrivacyUnit("replace-one", "trajectory")


def test_a_data_set_is_created_once(ledger):
    ledger.create("town", 1)
    with pytest.raises(LedgerError, match="already"):
        ledger.create("town", 5)
    assert ledger.account("town").total == 1


def test_a_total_changes_but_never_below_what_is_spent_and_the_history_keeps_it(ledger):
    ledger.create("town", 1)
    ledger.debit("town", 0.5, USERS, "test")
    ledger.set_total("town", 2)
    ledger.set_total("town", 0.5)
    with pytest.raises(OverBudgetError, match=r"spent epsilon 0\.5 already"):
        ledger.set_total("town", 0.4)
    account = ledger.account("town")
    assert account.total == Fraction(1, 2)
    assert [(e.kind, e.epsilon) for e in account.entries] == [
        ("total", 1),
        ("debit", Fraction(1, 2)),
        ("total", 2),
        ("total", Fraction(1, 2)),
    ]


def test_the_history_tells_time_purpose_state_and_file(ledger, tmp_path):
    ledger.create("town", 3)
    entry = ledger.debit("town", 1, USERS, "footprint, 4 x 5 cells")
    states = [ledger.account("town").entries[1].state]
    ledger.mark_released(entry)
    states.append(ledger.account("town").entries[1].state)
    file = tmp_path / "town.parquet"
    file.write_bytes(b"abc")
    checksum = ledger.mark_saved(entry, file)
    line = ledger.account("town").entries[1]
    assert [*states, line.state] == [
        "interrupted or running: the budget is spent",
        "released",
        "saved",
    ]
    assert line.files == ((str(file), checksum),)
    assert checksum.startswith("ba7816bf")  # SHA-256 of "abc"
    assert line.what == "footprint, 4 x 5 cells"
    assert line.time.startswith("20") and line.time.endswith("Z")


def test_an_entry_names_its_ledger_so_another_ledger_refuses_it(ledger, tmp_path):
    other = Ledger(tmp_path / "other.ledger")
    for each in (ledger, other):
        each.create("town", 1)
    entry = ledger.debit("town", 1, USERS, "test")
    assert entry.split("/")[1:] == ["town", "2"]
    for wrong in (entry.replace("town", "city"), entry[:-1] + "1", entry + "0", "nonsense"):
        with pytest.raises(LedgerError, match="is no debit"):
            ledger.mark_released(wrong)
    with pytest.raises(LedgerError, match="is no debit"):
        other.mark_released(entry)


@pytest.mark.parametrize("name", ["", " town", "a/b", "two\nlines", "x" * 101])
def test_a_name_that_would_not_print_on_one_line_is_refused(ledger, name):
    with pytest.raises(InputError, match="is no name for a data set"):
        ledger.create(name, 1)
    assert not ledger.path.exists()


def test_wrong_arguments_are_refused_before_a_file_is_made(ledger):
    for wrong in (0, -1, None, float("nan"), "1"):
        with pytest.raises(PrivacyError):
            ledger.create("town", wrong)
    with pytest.raises(PrivacyError, match="unit must be"):
        ledger.create("town", 1, unit="person")
    with pytest.raises(InputTypeError, match="name is text"):
        ledger.create(7, 1)
    with pytest.raises(InputTypeError, match="a ledger is a path"):
        Ledger(7)
    assert not ledger.path.exists()


def test_an_unknown_data_set_is_refused_and_the_known_ones_are_named(ledger):
    ledger.create("town", 1)
    with pytest.raises(LedgerError, match="it has 'town'"):
        ledger.debit("city", 1, USERS, "test")


# The file


def test_the_file_is_for_its_owner_alone_and_nothing_is_left_beside_it(ledger):
    ledger.create("town", 1)
    ledger.debit("town", 1, USERS, "test")
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(ledger.path.parent) == [ledger.path.name]


def test_a_commit_outlives_a_power_cut(ledger):
    ledger.create("town", 1)
    with ledger_file.transaction(ledger.path, write=True) as db:
        # 3 is EXTRA: the folder is synced after the journal is gone.
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_ledger_that_somebody_switched_to_write_ahead_logging_is_switched_back(ledger):
    ledger.create("town", 1)
    altered(ledger, "PRAGMA journal_mode = WAL")
    ledger.debit("town", 1, USERS, "test")
    assert os.listdir(ledger.path.parent) == [ledger.path.name]
    with closing(sqlite3.connect(ledger.path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@pytest.mark.parametrize("table", ["ledger", "dataset", "entry", "event"])
@pytest.mark.parametrize("change", ["UPDATE {} SET rowid = rowid", "DELETE FROM {}"])
def test_a_ledger_only_grows(ledger, table, change):
    ledger.create("town", 1)
    ledger.mark_released(ledger.debit("town", 1, USERS, "test"))
    with (
        closing(sqlite3.connect(ledger.path)) as db,
        pytest.raises(sqlite3.IntegrityError, match="only grows"),
    ):
        db.execute(change.format(table))


def altered(ledger, *statements):
    with closing(sqlite3.connect(ledger.path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def everything_refuses(ledger, error, words):
    """Reading and writing both refuse, and leave the file as it is."""
    before = ledger.path.read_bytes() if ledger.path.is_file() else None
    for act in (
        ledger.accounts,
        lambda: ledger.debit("town", 1, USERS, "test"),
        lambda: ledger.check("town", 1, USERS),
        lambda: ledger.set_total("town", 9),
    ):
        with pytest.raises(error, match=words):
            act()
    assert (ledger.path.read_bytes() if ledger.path.is_file() else None) == before


def test_a_ledger_that_is_not_there_is_not_made_by_using_it(ledger):
    everything_refuses(ledger, LedgerError, "there is no ledger at .* 'dpregions budget create'")
    assert not ledger.path.exists()


def test_an_empty_file_is_no_ledger_until_one_is_created_in_it(ledger):
    ledger.path.touch()
    everything_refuses(ledger, LedgerError, "is empty, no ledger yet")
    ledger.create("town", 1)
    assert ledger.account("town").remaining == 1


@pytest.mark.parametrize("content", [b"user_id,lon,lat\n" * 99, bytes(range(256)) * 40])
def test_a_file_of_something_else_is_refused_and_left_alone(ledger, content):
    ledger.path.write_bytes(content)
    everything_refuses(ledger, LedgerError, "is no ledger: it is not an SQLite file")
    with pytest.raises(LedgerError, match="is no ledger"):
        ledger.create("town", 1)
    assert ledger.path.read_bytes() == content


def test_another_programs_sqlite_file_is_refused_and_left_alone(ledger):
    altered(ledger, "CREATE TABLE entry (number INTEGER)")
    everything_refuses(ledger, LedgerError, "but no dpregions ledger")
    with pytest.raises(LedgerError, match="but no dpregions ledger"):
        ledger.create("town", 1)


def test_a_ledger_of_a_newer_version_is_refused(ledger):
    ledger.create("town", 1)
    altered(ledger, "PRAGMA user_version = 2")
    everything_refuses(ledger, LedgerError, "of version 2; this dpregions knows version 1")


def test_a_ledger_cut_short_is_refused(ledger):
    ledger.create("town", 1)
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content[: len(content) // 2])
    everything_refuses(ledger, LedgerError, "is damaged: restore it from a copy")


def test_a_ledger_without_its_tables_or_with_altered_amounts_is_refused(ledger):
    ledger.create("town", 1)
    keep = ledger.path.read_bytes()
    altered(ledger, "DROP TABLE event")
    everything_refuses(ledger, LedgerError, "is damaged")
    for amount in ("-1", "1e9", "nan", ""):
        ledger.path.write_bytes(keep)
        altered(ledger, "DROP TRIGGER entry_no_update", f"UPDATE entry SET epsilon = '{amount}'")
        everything_refuses(ledger, LedgerError, "was altered")


@settings(max_examples=60)
@given(st.data())
def test_flipped_bits_never_pass_for_another_kind_of_error(data):
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "budget.ledger")
        shutil.copy(sound_ledger(), ledger.path)
        content = bytearray(ledger.path.read_bytes())
        used = [i for i, byte in enumerate(content) if byte]
        for at in data.draw(st.lists(st.sampled_from(used), min_size=1, max_size=6)):
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        ledger.path.write_bytes(content)
        try:
            ledger.accounts()
            ledger.debit("town", 1, USERS, "test")
        except DPRegionsError:
            pass


_SOUND: list[Path] = []


def sound_ledger() -> Path:
    """A ledger with a little of everything, made once."""
    if not _SOUND:
        ledger = Ledger(Path(tempfile.mkdtemp()) / "sound.ledger")
        ledger.create("town", 3)
        ledger.mark_saved(ledger.debit("town", 1, USERS, "test"), __file__)
        _SOUND.append(ledger.path)
    return _SOUND[0]


def test_a_locked_ledger_is_waited_for_and_then_given_up_on(ledger, monkeypatch):
    ledger.create("town", 1)
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    with closing(sqlite3.connect(ledger.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        everything_refuses(ledger, LedgerUnavailableError, "another process holds it")
    ledger.debit("town", 1, USERS, "test")


def test_a_ledger_that_cannot_be_written_can_still_be_read(ledger, monkeypatch):
    ledger.create("town", 1)
    address = f"{ledger.path.as_uri()}?mode=ro"  # permissions do not stop root, and CI may be root
    monkeypatch.setattr(ledger_file, "_address", lambda path: address)
    with pytest.raises(LedgerUnavailableError, match="the file and its folder must be writable"):
        ledger.debit("town", 1, USERS, "test")
    assert ledger.account("town").remaining == 1


def test_a_folder_in_place_of_a_ledger_and_a_missing_folder_are_refused(tmp_path):
    everything_refuses(Ledger(tmp_path), LedgerUnavailableError, "it cannot be opened")
    with pytest.raises(LedgerUnavailableError, match="cannot be made: No such file or directory"):
        Ledger(tmp_path / "missing" / "budget.ledger").create("town", 1)


def test_a_path_may_hold_what_means_something_in_a_uri(tmp_path):
    ledger = Ledger(tmp_path / "50% of? #1 ü.ledger")
    ledger.create("town", 1)
    assert os.listdir(tmp_path) == [ledger.path.name]


# Releases


@pytest.mark.parametrize("method", releases.METHODS)
def test_a_release_is_debited_and_says_so(ledger, method):
    opened(ledger)
    made = publish(str(ledger.path), epsilon=0.5, method=method)
    account = ledger.account("town")
    assert account.spent == Fraction(1, 2)
    assert account.entries[1].state == "released"
    assert account.entries[1].what == f"{method}, 4 x 5 cells"
    assert made.ledger_entry.endswith("/town/2")
    assert f"Ledger: {made.ledger_entry}." in made.describe()
    unrecorded = dpr.release(SQUARES, GRID, epsilon=1, max_diameter=2, user_id=None)
    assert unrecorded.ledger_entry is None
    assert "Ledger: budget not recorded." in unrecorded.describe()


class WatchedNoise:
    """Notes at every draw what the ledger says is spent."""

    private, label = SystemNoise.private, SystemNoise.label

    def __init__(self, ledger, seen):
        self.ledger, self.seen = ledger, seen

    def add(self, values, *, epsilon, sensitivity):
        self.seen.append(self.ledger.account("town").spent)
        return SystemNoise().add(values, epsilon=epsilon, sensitivity=sensitivity)


@pytest.mark.parametrize("method", releases.METHODS)
def test_no_noise_is_drawn_before_the_debit_and_there_is_one_debit(ledger, monkeypatch, method):
    opened(ledger)
    seen = []
    monkeypatch.setattr(releasing, "SystemNoise", lambda: WatchedNoise(ledger, seen))
    publish(ledger, epsilon=0.5, method=method)
    assert len(seen) >= (2 if method == "footprint" else 1)
    assert set(seen) == {Fraction(1, 2)}


def dropped(batches):
    """A stream of regions whose connection drops after some batches."""

    def rows():
        for _ in range(batches):
            yield pa.record_batch({"geometry": pa.array(shapely.to_wkb(SQUARES).tolist())})
        raise OSError("the connection dropped")

    return pa.RecordBatchReader.from_batches(pa.schema({"geometry": pa.binary()}), rows())


@pytest.mark.parametrize("method", releases.METHODS)
@pytest.mark.parametrize("batches", [0, 2])
def test_input_that_fails_on_the_way_costs_nothing(ledger, method, batches):
    opened(ledger)
    with pytest.raises(SourceError) as failed:
        publish(ledger, dropped(batches), method=method)
    assert ledger.account("town").spent == 0
    assert not getattr(failed.value, "__notes__", ())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"epsilon": 4}, OverBudgetError),
        ({"dataset": "city"}, LedgerError),
        ({"neighbours": "replace-one"}, LedgerError),
        ({"epsilon": 0}, PrivacyError),
        ({"workload": ["9parsec"]}, InputError),
        ({"dataset": None}, InputError),
    ],
)
def test_what_cannot_be_paid_for_is_refused_before_the_data_is_read(ledger, changes, error):
    opened(ledger)

    def rows():
        raise AssertionError("the data was read")
        yield

    stream = pa.RecordBatchReader.from_batches(pa.schema({"geometry": pa.binary()}), rows())
    with pytest.raises(error):
        publish(ledger, stream, **changes)
    assert ledger.account("town").spent == 0


def test_a_dataset_without_a_ledger_is_refused():
    with pytest.raises(InputError, match="go together"):
        publish(None)


def test_budget_that_goes_while_the_data_is_read_is_refused_at_the_debit(ledger, monkeypatch):
    opened(ledger)
    seen = []
    monkeypatch.setattr(releasing, "SystemNoise", lambda: WatchedNoise(ledger, seen))

    def rows():
        ledger.debit("town", 2.5, PrivacyUnit(unit="record"), "another release")
        yield pa.record_batch({"geometry": pa.array(shapely.to_wkb(SQUARES).tolist())})

    stream = pa.RecordBatchReader.from_batches(pa.schema({"geometry": pa.binary()}), rows())
    with pytest.raises(OverBudgetError, match=r"0\.5 remains"):
        publish(ledger, stream)
    assert seen == []
    assert ledger.account("town").spent == Fraction(5, 2)


@pytest.mark.parametrize("error", [MemoryError("full"), KeyboardInterrupt()])
def test_what_fails_after_the_debit_stays_spent_and_the_error_says_so(ledger, monkeypatch, error):
    opened(ledger)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(releases.footprint, "choose", fail)
    with pytest.raises(type(error)) as failed:
        publish(ledger)
    assert "epsilon 1.0 was debited" in failed.value.__notes__[0]
    assert failed.value.__notes__[0].endswith("/town/2")
    account = ledger.account("town")
    assert account.spent == 1
    assert account.entries[1].state == "interrupted or running: the budget is spent"


def test_a_release_is_handed_over_even_if_the_ledger_cannot_be_told(ledger, monkeypatch):
    opened(ledger)

    def unavailable(*_):
        raise LedgerUnavailableError("the disk is full")

    monkeypatch.setattr(Ledger, "mark_released", unavailable)
    with pytest.warns(LedgerWarning, match="the disk is full") as told:
        made = publish(ledger)
    assert told[0].filename == __file__
    assert made.ledger_entry.endswith("/town/2")


def test_a_release_is_handed_over_also_where_warnings_are_errors(ledger, monkeypatch):
    opened(ledger)
    full = mock.Mock(side_effect=LedgerUnavailableError("the disk is full"))
    monkeypatch.setattr(Ledger, "mark_released", full)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("error")
        made = publish(ledger)
    assert made.ledger_entry.endswith("/town/2")
    assert [warning.category for warning in told] == [LedgerWarning]


def test_a_mechanism_cannot_draw_more_than_was_debited():
    debits = []
    noise = MeteredNoise(SystemNoise(), Budget(1), lambda: debits.append(1) or "entry")
    zeros = np.zeros(3, np.int64)
    noise.add(zeros, epsilon=0.9, sensitivity=1)
    with pytest.raises(OverBudgetError, match="fault of the mechanism"):
        noise.add(zeros, epsilon=0.2, sensitivity=1)
    noise.add(zeros, epsilon=0.1, sensitivity=1)
    assert debits == [1]


# Many processes


RACER = """
import sys
from dpregions.errors import OverBudgetError
from dpregions.ledger import Ledger
from dpregions.privacy import PrivacyUnit
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
for dataset in sys.stdin:
    won = 0
    for _ in range(2):
        try:
            ledger.debit(dataset.strip(), 0.1, PrivacyUnit(), "race")
            won += 1
        except OverBudgetError:
            pass
    print(won, flush=True)
"""


def test_of_eight_processes_racing_for_the_last_epsilon_exactly_the_allowed_number_win(ledger):
    command = [sys.executable, "-c", RACER, str(ledger.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, **pipes) for _ in range(8)]
    try:
        assert {racer.stdout.readline() for racer in racers} == {"ready\n"}
        for number, allowed in enumerate([1, 5, 7, 15, 16]):
            ledger.create(f"race {number}", Fraction(allowed, 10))
            for racer in racers:
                racer.stdin.write(f"race {number}\n")
                racer.stdin.flush()
            assert sum(int(racer.stdout.readline()) for racer in racers) == allowed
            account = ledger.account(f"race {number}")
            assert account.remaining == 0
            assert len(account.entries) == 1 + allowed
    finally:
        for racer in racers:
            racer.communicate()
    assert [racer.returncode for racer in racers] == [0] * 8


def test_processes_that_create_the_same_ledger_at_once_make_one(tmp_path):
    code = "import sys; from dpregions.ledger import *; Ledger(sys.argv[1]).create(sys.argv[2], 1)"
    path = tmp_path / "budget.ledger"
    makers = [subprocess.Popen([sys.executable, "-c", code, path, f"town {i}"]) for i in range(4)]
    assert [maker.wait() for maker in makers] == [0] * 4
    assert {account.dataset for account in Ledger(path).accounts()} == {
        f"town {i}" for i in range(4)
    }


# Against a model


AMOUNTS = st.fractions(Fraction(1, 12), 2, max_denominator=12)
PROMISES = st.builds(
    PrivacyUnit, st.sampled_from(["add-remove", "replace-one"]), st.sampled_from(["user", "record"])
)


class LedgerModel(RuleBasedStateMachine):
    """Does everything in any order, beside a model of dictionaries and sums."""

    entries = Bundle("entries")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(Path(self.folder.name) / "budget.ledger")
        self.ledger.create("base", 3)
        self.totals = {"base": Fraction(3)}
        self.promises = {"base": USERS}
        self.debits = {"base": []}
        self.delivered = set()

    def teardown(self):
        self.folder.cleanup()

    @rule(name=st.sampled_from(["base", "b", "c"]), total=AMOUNTS, promise=PROMISES)
    def create(self, name, total, promise):
        how = {"unit": promise.unit, "neighbours": promise.neighbours}
        if name in self.totals:
            with pytest.raises(LedgerError, match="already"):
                self.ledger.create(name, total, **how)
            return
        self.ledger.create(name, total, **how)
        self.totals[name], self.promises[name], self.debits[name] = total, promise, []

    @rule(name=st.sampled_from(["base", "b"]), total=AMOUNTS)
    def set_total(self, name, total):
        if name not in self.totals:
            with pytest.raises(LedgerError, match="is not in the ledger"):
                self.ledger.set_total(name, total)
        elif total < sum(self.debits[name]):
            with pytest.raises(OverBudgetError):
                self.ledger.set_total(name, total)
        else:
            self.ledger.set_total(name, total)
            self.totals[name] = total

    @rule(
        target=entries,
        name=st.sampled_from(["base", "b", "c"]),
        amount=AMOUNTS,
        promise=st.one_of(st.none(), PROMISES),
    )
    def debit(self, name, amount, promise):
        promise = promise or self.promises.get(name, USERS)
        fits = self.promises.get(name) == promise
        enough = fits and sum(self.debits[name]) + amount <= self.totals[name]
        if not enough:
            with pytest.raises(OverBudgetError if fits else LedgerError):
                self.ledger.debit(name, amount, promise, "test")
            return multiple()
        entry = self.ledger.debit(name, amount, promise, "test")
        self.debits[name].append(amount)
        return entry

    @rule(entry=consumes(entries))
    def deliver(self, entry):
        self.ledger.mark_released(entry)
        self.delivered.add(int(entry.split("/")[-1]))

    @invariant()
    def the_ledger_is_the_model(self):
        accounts = {account.dataset: account for account in self.ledger.accounts()}
        assert accounts.keys() == self.totals.keys()
        for name, account in accounts.items():
            assert account.privacy_unit == self.promises[name]
            assert account.total == self.totals[name]
            assert 0 <= account.spent <= account.total
            debits = [entry for entry in account.entries if entry.kind == "debit"]
            assert [entry.epsilon for entry in debits] == self.debits[name]
            assert all((e.number in self.delivered) == e.released for e in debits)


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
