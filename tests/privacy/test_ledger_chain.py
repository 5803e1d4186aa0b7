"""The chain of a ledger: what was changed is found, alone or beside the releases it paid for."""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions.errors import InputError, InputTypeError, LedgerError, PrivacyError
from dpregions.privacy import chain
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.ledger import Ledger
from support.old_ledgers import as_before_the_chain

USERS = PrivacyUnit()


class Claim(NamedTuple):
    """What a release says of its debit."""

    ledger_entry: str | None
    ledger_digest: str
    budget: Budget
    sha256: str | None = None
    may_be_part: bool = False


def claim(paid, epsilon, sha256=None):
    return Claim(str(paid), paid.digest, Budget(epsilon), sha256)


def problems(ledger, *claims):
    """What is wrong with a ledger beside releases of these claims, without their names."""
    named = {f"{i}.parquet": claim for i, claim in enumerate(claims)}
    sums = {name: claim.sha256 for name, claim in named.items() if claim.sha256 is not None}
    found = ledger.verify(named, sums).problems
    assert all(problem.split(": ")[0] in named for problem in found) or not claims
    return [problem.split(".parquet: ")[-1] for problem in found]


@pytest.fixture
def year(ledger):
    """A ledger with an account and two debits, and what their releases say."""
    ledger.create("taxis", 3, source="the operator's rides", period="2026", owner="A. Ride")
    paid = [ledger.debit("taxis", epsilon, USERS, "test") for epsilon in (1, 0.5)]
    ledger.mark_saved(paid[1], __file__, "5" * 64)
    return ledger, [claim(paid[0], 1), claim(paid[1], 0.5, "5" * 64)]


def test_a_ledger_and_its_releases_tell_one_story(year):
    ledger, claims = year
    assert problems(ledger, *claims) == []
    found = ledger.verify()
    assert found.migrated is None
    assert found.rows == 6  # the ledger, the account, its total, two debits, a file
    assert len({*found.last}) > 2 and len(found.last) == 64


def test_each_link_holds_the_digest_of_the_one_before(year):
    ledger, claims = year
    with closing(sqlite3.connect(ledger.path)) as db:
        links = db.execute("SELECT of, row, digest FROM link ORDER BY number").fetchall()
        before = chain.START
        for of, row, digest in links:
            found = db.execute(f"SELECT * FROM {of} WHERE number = ?", (row,))
            columns = [column[0] for column in found.description]
            values = dict(zip(columns, found.fetchone(), strict=True))
            assert digest == chain.digest_of(before, of, values)
            before = digest
    assert claims[0].ledger_digest in [digest for *_, digest in links]


def change(ledger, *statements):
    """What somebody can do who means to: drop the triggers, change rows, restore the triggers."""
    with closing(sqlite3.connect(ledger.path)) as db:
        made = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in made:
            db.execute(f"DROP TRIGGER {name}")
        for statement in (*statements, *(sql for _, sql in made)):
            db.execute(statement)
        db.commit()


def link_anew(ledger):
    """Write all links again, as whoever knows how digests are made."""
    with closing(sqlite3.connect(ledger.path)) as db:
        rows = db.execute("SELECT of, row FROM link ORDER BY number").fetchall()
    change(ledger, "DELETE FROM link")
    with closing(sqlite3.connect(ledger.path)) as db:
        for number, (of, row) in enumerate(rows, 1):
            columns = {"number": number} | chain.next_link(db, of, row)
            db.execute("INSERT INTO link VALUES (:number, :of, :row, :digest)", columns)
        db.commit()


CHANGED = {
    "UPDATE entry SET epsilon = '1/100' WHERE number = 2": "entry 2 is not what it was",
    "UPDATE entry SET epsilon = '9' WHERE number = 1": "entry 1 is not what it was",
    "UPDATE entry SET what = 'nothing' WHERE number = 3": "entry 3 is not what it was",
    "UPDATE dataset SET unit = 'record'": "dataset 1 is not what it was",
    "UPDATE dataset SET owner = NULL": "dataset 1 is not what it was",
    "UPDATE event SET sha256 = 'x'": "event 1 is not what it was",
    "UPDATE ledger SET id = '0123456789abcdef'": "ledger 1 is not what it was",
    "UPDATE link SET digest = 'x' WHERE number = 3": "entry 1 is not what it was",
    "UPDATE link SET row = 99 WHERE number = 6": "link 6 is of no row",
    "UPDATE link SET of = 'link', row = 1 WHERE number = 6": "link 6 is of no row",
    "UPDATE link SET row = 2 WHERE number = 5": "entry 3 has no link",
    "INSERT INTO entry VALUES (4, 'taxis', 'total', '99', 'more', 'now')": "entry 4 has no link",
}


@pytest.mark.parametrize("statement", CHANGED)
def test_whatever_is_changed_is_found_and_nothing_is_spent_from_it(year, statement):
    ledger, _ = year
    change(ledger, statement)
    assert any(CHANGED[statement] in problem for problem in ledger.verify().problems)
    with pytest.raises(LedgerError, match=r"was altered: .*'dpregions budget verify' says more"):
        ledger.debit("taxis", 0.1, USERS, "test")


def test_a_ledger_that_was_linked_anew_is_found_by_its_releases(year):
    ledger, claims = year
    change(ledger, "UPDATE entry SET epsilon = '1/100' WHERE number = 2")
    link_anew(ledger)
    assert ledger.verify().problems == ()
    first, second = problems(ledger, *claims)
    assert "entry 2 is not the one that paid for it" in first
    assert "entry 3 is not the one that paid for it" in second  # its link hangs on the one before


def test_an_older_copy_is_found_by_the_releases_since(year, tmp_path):
    ledger, claims = year
    copy = tmp_path / "copy.ledger"
    shutil.copy(ledger.path, copy)
    late = claim(ledger.debit("taxis", 0.25, USERS, "test"), 0.25)
    assert problems(ledger, *claims, late) == []
    shutil.copy(copy, ledger.path)
    (problem,) = problems(ledger, *claims, late)
    assert "its entry 4 is not in the ledger, which is older than the release" in problem
    ledger.debit("taxis", 0.25, USERS, "something else")
    (problem,) = problems(ledger, *claims, late)
    assert "entry 4 is not the one that paid for it" in problem


def test_a_release_of_another_ledger_or_of_none_is_told(year, tmp_path):
    ledger, (first, second) = year
    other = Ledger(tmp_path / "other.ledger")
    other.create("taxis", 3)
    elsewhere = claim(other.debit("taxis", 1, USERS, "test"), 1)
    moved = first.ledger_entry.replace("taxis", "trams")
    claims = {
        elsewhere: f"it was paid from another ledger, {other.id}",
        first._replace(ledger_entry=None): "no ledger paid for it",
        first._replace(budget=Budget(2)): "of another data set or another epsilon",
        first._replace(ledger_entry=moved): "of another data set",
        second._replace(sha256="6" * 64): "the file is none that was saved under entry 3",
    }
    for told, words in claims.items():
        (problem,) = problems(ledger, told)
        assert words in problem


def test_a_part_of_a_release_is_not_accused_and_two_releases_of_one_entry_are(year):
    ledger, (first, second) = year
    part = second._replace(sha256="6" * 64, may_be_part=True)
    assert problems(ledger, second, part) == []
    assert problems(ledger, first, first) == []
    one, other = (first._replace(sha256=digit * 64) for digit in "67")
    assert problems(ledger, one, one) == []
    (problem,) = problems(ledger, one, other)
    assert "0.parquet is another release, under the same entry" in problem


def test_an_account_says_for_good_what_it_is_of(year):
    ledger, _ = year
    declared = (("source", "the operator's rides"), ("period", "2026"), ("owner", "A. Ride"))
    assert ledger.account("taxis").declared == declared
    assert ledger.debit("taxis", 0.1, USERS, "test").declared == declared
    ledger.create("trams", 1)
    assert ledger.account("trams").declared == ()


def test_no_two_accounts_are_of_one_source_and_period(year):
    ledger, _ = year
    with pytest.raises(LedgerError, match="'taxis' is declared to be of this source and period"):
        ledger.create("rides", 1, source="the operator's rides", period="2026")
    ledger.create("rides", 1, source="the operator's rides", period="2027")
    with pytest.raises(LedgerError, match="is declared to be of this source and period"):
        ledger.create("always", 1, source="the operator's rides")
    ledger.create("sensors", 1, source="the counters")
    with pytest.raises(LedgerError, match="'sensors' is declared to be of this source"):
        ledger.create("sensors 2026", 1, source="the counters", period="2026")
    ledger.create("trams", 1, period="2026")
    ledger.create("buses", 1, period="2026")


@pytest.mark.parametrize("said", ["", " a", "a\nb", "\x1b[31m", "x" * 301])
def test_a_fact_that_cannot_be_published_is_refused(ledger, said):
    with pytest.raises(InputError, match=r"owner=.* cannot be published with releases"):
        ledger.create("taxis", 1, owner=said)
    with pytest.raises(InputTypeError, match="owner is text, got int"):
        ledger.create("taxis", 1, owner=7)
    assert not ledger.path.exists()


def test_a_total_that_promises_next_to_nothing_is_refused_unless_it_is_meant(ledger):
    with pytest.raises(PrivacyError, match=r"epsilon=20\.5 protects next to nothing.*allow_eps"):
        ledger.create("taxis", 20.5)
    assert not ledger.path.exists()
    ledger.create("taxis", 20.5, allow_epsilon=True)
    with pytest.raises(PrivacyError, match="protects next to nothing"):
        ledger.set_total("taxis", 21)
    ledger.set_total("taxis", 21, allow_epsilon=True)
    ledger.set_total("taxis", 20)
    assert ledger.account("taxis").total == 20


# Ledgers from before the chain


def test_a_ledger_from_before_the_chain_is_brought_over_with_all_it_holds(ledger):
    ledger.create("taxis", 3)
    ledger.mark_saved(ledger.debit("taxis", 1, USERS, "test"), __file__)
    ledger.create("trams", 2, unit="record")
    before, own = ledger.accounts(), ledger.id
    as_before_the_chain(ledger)
    with pytest.raises(LedgerError, match="from before the chain: 'dpregions budget migrate"):
        ledger.accounts()
    assert ledger.migrate() == 7
    assert ledger.accounts() == before and ledger.id == own
    found = ledger.verify()
    assert found.problems == () and found.rows == 7 and found.migrated is not None
    paid = ledger.debit("taxis", 2, USERS, "test")
    assert problems(ledger, claim(paid, 2)) == []
    with pytest.raises(LedgerError, match="there is nothing to migrate"):
        ledger.migrate()


def test_a_migration_that_is_stopped_leaves_the_ledger_as_it_was(ledger, tmp_path):
    ledger.create("taxis", 3)
    ledger.debit("taxis", 1, USERS, "test")
    as_before_the_chain(ledger)
    before = ledger.path.read_bytes()
    # It is killed when some rows are linked: nothing else stops it there.
    code = (
        "import os, signal, sys; from dpregions.privacy import migration\n"
        "from dpregions.privacy.ledger import Ledger\n"
        "insert, done = migration.insert, []\n"
        "def stopped(*args, **row):\n"
        "    done.append(1)\n"
        "    if len(done) == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return insert(*args, **row)\n"
        "migration.insert = stopped\n"
        "Ledger(sys.argv[1]).migrate()\n"
    )
    assert subprocess.run([sys.executable, "-c", code, ledger.path]).returncode == -9
    with closing(sqlite3.connect(ledger.path)) as db:  # which rolls back what was begun
        assert db.execute("SELECT count(*) FROM entry").fetchone() == (2,)
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert ledger.path.read_bytes() == before
    assert ledger.migrate() == 4


def test_an_altered_ledger_from_before_the_chain_is_not_brought_over(ledger):
    ledger.create("taxis", 3)
    ledger.debit("taxis", 1, USERS, "test")
    as_before_the_chain(ledger)
    change(ledger, "DELETE FROM entry WHERE number = 1")
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="was altered: restore it from a copy"):
        ledger.migrate()
    assert ledger.path.read_bytes() == before


@settings(max_examples=20)
@given(st.lists(st.integers(1, 9), max_size=6), st.data())
def test_any_changed_character_of_what_was_spent_is_found(spent, data):
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "budget.ledger")
        ledger.create("town", 5)
        for tenths in spent:
            ledger.debit("town", Fraction(tenths, 100), USERS, "test")
        number = data.draw(st.integers(1, 1 + len(spent)))
        column = data.draw(st.sampled_from(["epsilon", "what", "time", "kind", "dataset"]))
        other = {"kind": "CASE kind WHEN 'total' THEN 'debit' ELSE 'total' END"}
        value = other.get(column, f"{column} || '{data.draw(st.sampled_from('0 a'))}'")
        change(ledger, f"UPDATE entry SET {column} = {value} WHERE number = {number}")
        assert f"entry {number} is not what it was" in ledger.verify().problems[0]
