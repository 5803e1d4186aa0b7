"""Releases paid from a ledger: one debit, before the noise; what fails after it stays spent."""

import warnings
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import (
    InputError,
    LedgerError,
    LedgerUnavailableError,
    LedgerWarning,
    OverBudgetError,
    PrivacyError,
    SourceError,
)
from dpregions.mechanisms.footprint.mechanism import Footprint, PreparedFootprint
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.ledger import Ledger
from dpregions.privacy.noise import MeteredNoise, SystemNoise
from dpregions.releases.make import release_with

GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
SQUARES = list(shapely.box(*np.random.default_rng(0).uniform(0, 3, (2, 40)), 3.5, 3.5))


def publish(ledger, regions=SQUARES, **changes):
    """Release records, so that the smallest input will do."""
    arguments = {"epsilon": 1, "max_diameter": 2, "user_id": None, "dataset": "town"} | changes
    return dpr.release(regions, GRID, ledger=ledger, **arguments)


def opened(ledger, total=3):
    ledger.create("town", total, unit="record")
    return ledger


@pytest.mark.parametrize("method", MECHANISMS)
def test_a_release_is_debited_and_says_so(ledger, method):
    opened(ledger)
    made = publish(str(ledger.path), epsilon=0.5, method=method)
    account = ledger.account("town")
    assert account.spent == Fraction(1, 2)
    assert account.entries[1].state == "released"
    assert account.entries[1].what == f"{method}, 4 x 5 cells of 1 units"
    assert made.ledger_entry.endswith("/town/2")
    assert f"Ledger: {made.ledger_entry}." in made.describe()
    unrecorded = dpr.release(SQUARES, GRID, epsilon=1, max_diameter=2, user_id=None)
    assert unrecorded.ledger_entry is None
    assert "Ledger: budget not recorded." in unrecorded.describe()


class WatchedNoise:
    """Notes at every draw what the ledger says is spent."""

    private, label, software = SystemNoise.private, SystemNoise.label, ()

    def __init__(self, ledger, seen):
        self.ledger, self.seen = ledger, seen

    def allot(self, budget):
        return self

    def add(self, values, *, epsilon, sensitivity):
        self.seen.append(self.ledger.account("town").spent)
        return SystemNoise().add(values, epsilon=epsilon, sensitivity=sensitivity)


def publish_watched(ledger, seen, regions=SQUARES, epsilon=1, **changes):
    """Release as `publish` does, with noise that is watched in place of the system's alone."""
    terms = {"epsilon": epsilon, "max_diameter": 2, "user_id": None} | changes
    watched, promise = WatchedNoise(ledger, seen), PrivacyUnit(unit="record")
    with ledger.paying(watched, "town", Budget(epsilon), promise, "watched") as noise:
        return release_with(noise, regions, GRID, **terms)


@pytest.mark.parametrize("method", MECHANISMS)
def test_no_noise_is_drawn_before_the_debit_and_there_is_one_debit(ledger, method):
    opened(ledger)
    seen = []
    publish_watched(ledger, seen, epsilon=0.5, method=method)
    assert len(seen) >= (2 if method == "footprint" else 1)
    assert set(seen) == {Fraction(1, 2)}


def dropped(batches):
    """A stream of regions whose connection drops after some batches."""

    def rows():
        for _ in range(batches):
            yield pa.record_batch({"geometry": pa.array(shapely.to_wkb(SQUARES).tolist())})
        raise OSError("the connection dropped")

    return pa.RecordBatchReader.from_batches(pa.schema({"geometry": pa.binary()}), rows())


@pytest.mark.parametrize("method", MECHANISMS)
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


def test_budget_that_goes_while_the_data_is_read_is_refused_at_the_debit(ledger):
    opened(ledger)
    seen = []

    def rows():
        ledger.debit("town", 2.5, PrivacyUnit(unit="record"), "another release")
        yield pa.record_batch({"geometry": pa.array(shapely.to_wkb(SQUARES).tolist())})

    stream = pa.RecordBatchReader.from_batches(pa.schema({"geometry": pa.binary()}), rows())
    with pytest.raises(OverBudgetError, match=r"0\.5 remains"):
        publish_watched(ledger, seen, stream)
    assert seen == []
    assert ledger.account("town").spent == Fraction(5, 2)


@pytest.mark.parametrize("error", [MemoryError("full"), KeyboardInterrupt()])
def test_what_fails_after_the_debit_stays_spent_and_the_error_says_so(ledger, error):
    opened(ledger)

    class Failing(PreparedFootprint):
        def strategy(self, n_regions):
            raise error

    class Method(Footprint):
        def prepare(self, *public):
            prepared = super().prepare(*public)
            return Failing(**{part.name: getattr(prepared, part.name) for part in fields(prepared)})

    with pytest.raises(type(error)) as failed:
        publish(ledger, method=Method())
    assert "epsilon 1.0 was debited" in failed.value.__notes__[0]
    assert failed.value.__notes__[0].endswith("/town/2")
    account = ledger.account("town")
    assert account.spent == 1
    assert account.entries[1].state == "interrupted or running: the budget is spent"


class FullLedger(Ledger):
    """A ledger whose disk is full once a release is paid for."""

    def mark_released(self, entry):
        raise LedgerUnavailableError("the disk is full")


def test_a_release_is_handed_over_even_if_the_ledger_cannot_be_told(ledger):
    ledger = opened(FullLedger(ledger.path))
    with pytest.warns(LedgerWarning, match="the disk is full") as told:
        made = publish(ledger)
    assert told[0].filename == __file__
    assert made.ledger_entry.endswith("/town/2")


def test_a_release_is_handed_over_also_where_warnings_are_errors(ledger):
    ledger = opened(FullLedger(ledger.path))
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


def test_a_period_is_a_label_and_debits_of_several_add_up(ledger):
    opened(ledger, total=1)
    for week in ("2026-W22", "2026-W23"):
        publish(ledger, epsilon=0.5, period=week)
    account = ledger.account("town")
    assert account.spent == 1
    assert [entry.what.rpartition(", ")[2] for entry in account.entries[1:]] == [
        "period 2026-W22",
        "period 2026-W23",
    ]
    with pytest.raises(OverBudgetError):
        publish(ledger, epsilon=0.5, period="2026-W24")


@pytest.mark.parametrize("period", ["", "a\nb", "x" * 101, 23])
def test_a_period_that_is_no_label_is_refused_and_nothing_is_spent(ledger, period):
    opened(ledger)
    with pytest.raises(InputError, match="must be a label"):
        publish(ledger, period=period)
    assert ledger.account("town").spent == 0


def test_a_period_without_a_ledger_is_refused():
    with pytest.raises(InputError, match="is a label in a ledger"):
        dpr.release(SQUARES, GRID, epsilon=1, max_diameter=2, user_id=None, period="2026-W22")
