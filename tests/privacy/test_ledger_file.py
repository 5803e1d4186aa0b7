"""The file of a budget ledger: private, durable, plain about damage, and shared by processes."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions.errors import DPRegionsError, LedgerError, LedgerUnavailableError
from dpregions.privacy import chain, ledger_file
from dpregions.privacy.budget import PrivacyUnit
from dpregions.privacy.ledger import Ledger
from support.full_disks import file_size_limit

USERS = PrivacyUnit()


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


# Rows like those that are there, of a table's columns without the number: taken from the last row.
ROWS = {
    "ledger": "id, created, migrated",
    "dataset": "name, unit, neighbours, source, period, owner, created",
    "entry": "dataset, kind, epsilon, what, time",
    "event": "entry, kind, file, sha256, time",
    "link": "of, row, digest",
}
CHANGES = [
    "UPDATE{} {table} SET rowid = rowid",
    "UPDATE{} {table} SET number = number + 1",
    "UPDATE{} {table} SET number = 1",
]
TAKEN = ["1", "'1'", "1.0", "(SELECT max(number) FROM {table})"]
NOT_THE_NEXT = [*TAKEN, "NULL", "-1", "0", "99", "9223372036854775807"]
ALSO = [" OR REPLACE", " OR IGNORE", " OR FAIL", " OR ROLLBACK", " OR ABORT", ""]
INSERTS = [
    f"INSERT{{}} INTO {{table}} ({key}, {{columns}}) SELECT {number}, {{columns}} FROM {{table}}"
    for key in ("number", "rowid", "_rowid_", "oid")
    for number in NOT_THE_NEXT
]
UPSERT = " WHERE true ON CONFLICT DO UPDATE SET number = excluded.number"


def only_grows(ledger, statement):
    """Another tool is refused the statement, and nothing of the ledger has changed after it."""
    before = everything_in(ledger)
    with closing(sqlite3.connect(ledger.path)) as db:
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            db.execute(statement)
        db.commit()
    assert everything_in(ledger) == before


def everything_in(ledger):
    with closing(sqlite3.connect(ledger.path)) as db:
        return [db.execute(f"SELECT * FROM {table}").fetchall() for table in ROWS]


@pytest.fixture
def used(ledger):
    """A ledger with more than one row of everything that may have more."""
    for name in ("town", "city"):
        ledger.create(name, 1)
        ledger.mark_released(ledger.debit(name, 1, USERS, "test"))
    return ledger


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("also", ALSO)
def test_a_ledger_only_grows(used, table, also):
    columns = ROWS[table]
    only_grows(used, f"DELETE FROM {table}")
    for change in CHANGES:
        only_grows(used, change.format(also, table=table))
    for insert in INSERTS:
        only_grows(used, insert.format(also, table=table, columns=columns))
    # Without a number, SQLite would choose the next: refused too, as it cannot be checked before.
    only_grows(used, f"INSERT{also} INTO {table} ({columns}) SELECT {columns} FROM {table}")


@pytest.mark.parametrize("table", ROWS)
def test_a_ledger_only_grows_whatever_becomes_of_conflicts(used, table):
    columns = ROWS[table]
    for insert in INSERTS:
        only_grows(used, insert.format("", table=table, columns=columns) + UPSERT)


@pytest.mark.parametrize("also", ALSO)
def test_a_name_that_is_taken_cannot_be_replaced_under_the_next_number(used, also):
    columns = ROWS["dataset"]
    only_grows(
        used,
        f"INSERT{also} INTO dataset (number, {columns}) "
        f"SELECT 3, name, 'record', neighbours, '', '', '', created "
        f"FROM dataset WHERE name = 'town'",
    )


def test_a_ledger_has_one_id_for_good(used):
    for also in ALSO:
        only_grows(used, f"INSERT{also} INTO ledger (number, id, created) VALUES (2, 'x', 'y')")


def test_several_rows_in_one_statement_are_refused_together(used):
    """The first is the next row, the second would replace it: neither stays."""
    row = "'town', 'total', '9', 'more', 'now'"
    only_grows(used, f"INSERT OR REPLACE INTO entry VALUES (5, {row}), (5, {row})")


def without_triggers(ledger, *statements):
    """What somebody can do who means to: drop the triggers, and restore them after."""
    with closing(sqlite3.connect(ledger.path)) as db:
        made = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in made:
            db.execute(f"DROP TRIGGER {name}")
        for statement in (*statements, *(sql for _, sql in made)):
            db.execute(statement)
        db.commit()


def made_anew(ledger):
    """Write all links again, as whoever means to can: nothing within the file tells."""
    with closing(sqlite3.connect(ledger.path)) as db:
        rows = db.execute("SELECT of, row FROM link ORDER BY number").fetchall()
    without_triggers(ledger, "DELETE FROM link")
    with closing(sqlite3.connect(ledger.path)) as db:
        for number, (of, row) in enumerate(rows, 1):
            columns = {"number": number} | chain.next_link(db, of, row)
            db.execute("INSERT INTO link VALUES (:number, :of, :row, :digest)", columns)
        db.commit()


@pytest.mark.parametrize(
    "change",
    [
        *(f"DROP TRIGGER {t}_no_{c}" for t in ROWS for c in ("insert", "update", "delete")),
        "DROP TABLE event",
        "CREATE TABLE more (x)",
        "CREATE VIEW more AS SELECT * FROM entry",
        "CREATE INDEX more ON entry (epsilon)",
        "CREATE TRIGGER more AFTER INSERT ON entry BEGIN DELETE FROM event; END",
        "ALTER TABLE entry ADD COLUMN more",
        "ALTER TABLE entry RENAME COLUMN what TO why",
    ],
)
def test_a_ledger_whose_tables_or_triggers_are_not_as_made_is_refused(used, change):
    altered(used, change)
    everything_refuses(used, LedgerError, "was altered: its tables, its triggers")
    with pytest.raises(LedgerError, match="was altered"):
        used.create("village", 1)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM ledger",
        "DELETE FROM dataset WHERE number = 1",
        "DELETE FROM entry WHERE number = 2",
        "DELETE FROM event WHERE number = 1",
        "UPDATE entry SET number = 9 WHERE number = 4",
        "INSERT INTO ledger VALUES (2, 'x', 'y', NULL)",
        "DELETE FROM link WHERE number = 3",
    ],
)
def test_a_ledger_with_a_gap_in_its_rows_is_refused(used, change):
    without_triggers(used, change)
    everything_refuses(used, LedgerError, "was altered: .* the numbers of its rows")


def test_what_other_tools_do_to_any_sqlite_file_alters_nothing(used):
    altered(used, "ANALYZE")
    altered(used, "VACUUM")
    altered(used, "REINDEX")
    assert used.account("town").spent == 1


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


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (1, "open a new one with 'dpregions budget"),
        (2, "from before the chain: 'dpregions budget migrate"),
        (4, "or a newer one"),
    ],
)
def test_a_ledger_of_another_version_is_refused_with_what_to_do(ledger, version, remedy):
    ledger.create("town", 1)
    altered(ledger, f"PRAGMA user_version = {version}")
    words = f"of version {version}; this dpregions knows version 3: .*{remedy}"
    everything_refuses(ledger, LedgerError, words)


def test_a_ledger_cut_short_is_refused(ledger):
    ledger.create("town", 1)
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content[: len(content) // 2])
    everything_refuses(ledger, LedgerError, "is damaged: restore it from a copy")


NO_EPSILONS = ["-1", "1e9", "nan", "", "0", "0/1", "1/0", "1/00", "9" * 5000, "1/" + "9" * 5000]


@pytest.mark.parametrize("amount", NO_EPSILONS)
def test_a_ledger_with_altered_amounts_is_refused(ledger, amount):
    ledger.create("town", 1)
    without_triggers(ledger, f"UPDATE entry SET epsilon = '{amount}'")
    everything_refuses(ledger, LedgerError, "was altered: entry 1 is not what it was")
    made_anew(ledger)  # by somebody who knows how digests are made
    everything_refuses(ledger, LedgerError, "was altered: an entry of 'town' is no epsilon")


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


def test_a_locked_ledger_is_waited_for_and_then_given_up_on(ledger, impatient):
    ledger.create("town", 1)
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
    everything_refuses(Ledger(tmp_path), LedgerError, "is a folder: name a ledger in it")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LedgerUnavailableError, match="cannot be made: No such file or directory"):
        Ledger(tmp_path / "missing" / "budget.ledger").create("town", 1)


def test_a_path_may_hold_what_means_something_in_a_uri(tmp_path):
    ledger = Ledger(tmp_path / "50% of? #1 ü.ledger")
    ledger.create("town", 1)
    assert os.listdir(tmp_path) == [ledger.path.name]


@pytest.mark.parametrize("room", [0, 5_000])
def test_on_a_full_disk_no_ledger_is_left_behind_and_no_temporary_name_is_said(tmp_path, room):
    with file_size_limit(room), pytest.raises(LedgerUnavailableError) as refused:
        Ledger(tmp_path / "budget.ledger").create("town", 1)
    assert list(tmp_path.iterdir()) == []
    assert "budget.ledger: the disk" in str(refused.value) and ".part" not in str(refused.value)


# Many processes


RACER = """
import sys
from dpregions.errors import OverBudgetError
from dpregions.privacy.ledger import Ledger
from dpregions.privacy.budget import PrivacyUnit
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
    assert ledger.verify().problems == ()


def test_processes_that_create_the_same_ledger_at_once_make_one(tmp_path):
    code = (
        "import sys; from dpregions.privacy.ledger import Ledger; "
        "Ledger(sys.argv[1]).create(sys.argv[2], 1)"
    )
    path = tmp_path / "budget.ledger"
    makers = [subprocess.Popen([sys.executable, "-c", code, path, f"town {i}"]) for i in range(4)]
    assert [maker.wait() for maker in makers] == [0] * 4
    assert {account.dataset for account in Ledger(path).accounts()} == {
        f"town {i}" for i in range(4)
    }


def test_what_a_terminal_would_act_on_is_shown_as_escapes(tmp_path):
    """Whoever alters a ledger may write anything into it."""
    ledger = Ledger(tmp_path / "budget.ledger")
    ledger.create("town", 1)
    entry = ledger.debit("town", 1, PrivacyUnit(), "paper\x1b[2J")
    ledger.mark_saved(entry, "a\x1b]0;b", "0")
    account = ledger.account("town")
    assert account.entries[-1].what == "paper\\x1b[2J"
    assert account.entries[-1].files[0].path.isprintable()
