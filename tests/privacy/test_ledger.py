"""The budget ledger: exact, never overspent, and the same as a plain model of it."""

import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from dpregions.errors import InputError, InputTypeError, LedgerError, OverBudgetError, PrivacyError
from dpregions.lengths import short_text
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.ledger import Ledger

USERS = PrivacyUnit()

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


def primes_from(start, number):
    """The first primes from a number on."""
    found, candidate = [], start | 1
    while len(found) < number:
        if pow(2, candidate - 1, candidate) == 1 == pow(3, candidate - 1, candidate):
            found.append(candidate)
        candidate += 2
    return found


PRIMES = primes_from(10**120, 40)  # coprime: the sum's denominator is their product


def test_sums_that_could_not_be_added_up_or_printed_are_refused_before_they_are_written(ledger):
    ledger.create("town", Fraction(1, 3))
    paid = []
    for prime in PRIMES:
        refused = pytest.raises(LedgerError, match="more than 3000 digits: ask for a rounder one")
        if len(paid) * 120 >= 2880:
            with refused:
                ledger.debit("town", Fraction(1, prime), USERS, "test")
            with refused:
                ledger.check("town", Fraction(1, prime), USERS)
        else:
            ledger.debit("town", Fraction(1, prime), USERS, "test")
            paid.append(Fraction(1, prime))
    account = ledger.account("town")
    assert len(paid) == 24
    assert account.spent == sum(paid)
    assert Fraction(short_text(account.spent)) == account.spent
    assert Fraction(short_text(account.remaining)) == account.remaining
    with pytest.raises(OverBudgetError, match=short_text(account.remaining)):
        ledger.debit("town", 1, USERS, "test")
    with pytest.raises(OverBudgetError, match="cannot become 1/"):
        ledger.set_total("town", Fraction(1, PRIMES[-1]))


def test_a_rounder_epsilon_is_paid_for_after_the_longest_sum(ledger):
    ledger.create("town", 3)
    for prime in PRIMES[:24]:
        ledger.debit("town", Fraction(1, prime), USERS, "test")
    ledger.debit("town", 0.1, USERS, "test")
    ledger.debit("town", 1, USERS, "test")
    assert ledger.account("town").spent > Fraction(11, 10)


def test_the_ledger_writes_the_epsilons_that_releases_may_have_and_no_longer_ones(ledger):
    longest, longer = Fraction(1, 10**350 - 1), Fraction(1, 10**350 + 1)
    ledger.create("town", longest * 10**100)
    ledger.debit("town", longest * 10**60, USERS, "test")
    for act in (
        lambda: ledger.debit("town", longer * 10**60, USERS, "test"),
        lambda: ledger.check("town", longer * 10**60, USERS),
        lambda: ledger.set_total("town", longer * 10**100),
        lambda: ledger.create("city", longer * 10**100),
    ):
        with pytest.raises(PrivacyError, match="more than 350 digits"):
            act()
    assert ledger.account("town").spent == longest * 10**60


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
