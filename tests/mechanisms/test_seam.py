"""The seam: a mechanism of one's own goes through release, file and queries; tallies add up."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.engines.local import count
from dpregions.errors import (
    InputError,
    InputTypeError,
    OverBudgetError,
    PrivacyError,
    ReleaseFileError,
    UnforeseenError,
)
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import Batch, outlines_of, read_outlines
from dpregions.mechanisms.base import Columns, Entries, Held, Layout, Outcome
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.known import MECHANISMS
from dpregions.mechanisms.paper.mechanism import Paper
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.law import variance
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.file import save
from dpregions.releases.make import release_with
from support.footprint_releases import BLOCKS, SHAPES, UNIT_GRID, town
from support.watched_noise import NoNoise

BOUND = Bound.of(UNIT_GRID, 2, "shrink")
REGIONS = town(UNIT_GRID, 2, n=120)
TERMS = {"epsilon": 1, "max_diameter": 2, "user_id": None}
QUERIES = np.array([(0, 0, 1, 1), (1, 1, 4, 3), (0, 0, 5, 4)], float).T


# A mechanism of one's own


@dataclass(frozen=True)
class Flat:
    """A noisy number of the regions that touch the area, spread evenly over its cells."""

    name: ClassVar[str] = "flat"

    note: str = "spread evenly"

    def prepare(self, grid, bound, budget, neighbours):
        side = min(bound.k + 1, max(grid.shape))
        return PreparedFlat(
            grid, side, budget, PrivacyUnit(neighbours).sensitivity_factor, self.note
        )

    @classmethod
    def layout(cls, *, covert):
        return Layout({"cells": {"number": np.int32, "whole": np.int64}}, {"note": 100})

    @classmethod
    def outcome(cls, held: Held):
        said, cells = held.statement, held.columns.lists["cells"]
        if type(held.options.get("total")) is not int:
            raise ReleaseFileError("it lacks its total")
        if not np.array_equal(cells.fields["whole"], held.counts.ravel()[cells.row]):
            raise ReleaseFileError("its cells are not its counts")
        scale, note = scale_for(said.budget, said.sensitivity), held.columns.texts["note"]
        total = held.options["total"]
        return FlatOutcome(said.grid, held.counts, held.signed, said.spending, total, note, scale)


@dataclass(frozen=True)
class PreparedFlat:
    """Calibrated."""

    grid: dpr.Grid
    side: int
    budget: Budget
    sensitivity: int
    note: str

    def tally(self):
        return FlatTally(*self.grid.shape, self.side)

    def publish(self, tally, noise):
        public = {"epsilon": self.budget, "sensitivity": self.sensitivity}
        total = int(noise.add(np.array([tally.n]), **public)[0])
        counts = np.zeros(self.grid.doubled_shape, np.int64)
        signed = np.zeros(self.grid.doubled_shape)
        n = self.grid.n_rows * self.grid.n_cols
        signed[::2, ::2] = total / n
        each, more = divmod(max(total, 0), n)
        counts[::2, ::2] = each + (np.arange(n) < more).reshape(self.grid.shape)
        scale = scale_for(self.budget, self.sensitivity)
        spending = (("the number of regions in the area", self.budget),)
        return FlatOutcome(self.grid, counts, signed, spending, total, self.note, scale)


class FlatTally:
    """How many regions touch the area."""

    nbytes = 8

    def __init__(self, *shape_and_side):
        self.shape_and_side, self.n = shape_and_side, 0

    def add(self, outlines):
        self.n += len(outlines.footprints(*self.shape_and_side)[0])

    def __iadd__(self, other):
        self.n += other.n
        return self


@dataclass(frozen=True, eq=False)
class FlatOutcome(Outcome):
    """One number, everywhere."""

    total: int
    note: str
    scale: float

    def _share(self, selection):
        """Which part of the cells each query has."""
        faces = np.zeros(self.grid.doubled_shape)
        faces[::2, ::2] = 1 / (self.grid.n_rows * self.grid.n_cols)
        return selection.sums(SignedTable(faces))

    def half_widths(self, selection, confidence):
        return -math.log(1 - confidence) * self.scale * self._share(selection)

    def deviations(self, selection):
        noise = math.sqrt(variance(self.scale)) * self._share(selection)
        return noise, np.zeros_like(noise)

    def columns(self):
        row = np.flatnonzero(self.counts.ravel())
        fields = {"number": np.arange(len(row), dtype=np.int32), "whole": self.counts.ravel()[row]}
        return Columns({"cells": Entries(row, fields)}, {"note": self.note})

    def options(self):
        return {"total": self.total}


@pytest.fixture
def entered(monkeypatch):
    """The mechanism is known by its name, for this test."""
    monkeypatch.setitem(MECHANISMS, Flat.name, Flat)


def flat(noise=None, **changes):
    return release_with(
        noise or NoNoise(), REGIONS, UNIT_GRID, **TERMS | {"method": Flat()} | changes
    )


def answers(release) -> list[Any]:
    """All that a release says."""
    found = [release.counts, release.signed, release.count(*QUERIES)]
    if not release.covert:
        found += [release.estimate(*QUERIES), *release.interval(*QUERIES)]
        found += [*release.expected_error(*QUERIES)]
    return [*found, release.describe(), release._repr_html_(), repr(release)]


def assert_same_answers(one, other):
    for mine, theirs in zip(answers(one), answers(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_mechanism_of_ones_own_is_released_and_queried():
    noise = NoNoise()
    release = flat(noise)
    truth = dpr.EulerHistogram.from_regions(REGIONS, UNIT_GRID, max_diameter=2)
    total = truth.count(*UNIT_GRID.bounds)
    assert noise.calls == [(1.0, 1)]
    assert release.method == "flat"
    assert release.count(*UNIT_GRID.bounds) == total
    np.testing.assert_allclose(release.estimate(*QUERIES), total * np.array([1, 6, 20]) / 20)
    low, high = release.interval(*UNIT_GRID.bounds, confidence=0.95)
    assert (low, high) == pytest.approx((total - math.log(20), total + math.log(20)))
    error = release.expected_error(1, 1, 4, 3)
    assert (error.shape, error.total) == (0, error.noise)
    assert error.noise == pytest.approx(math.sqrt(2 / math.pi * variance(1.0)) * 6 / 20)
    assert "method 'flat'" in release.describe()
    assert "the number of regions in the area with epsilon 1.0" in release.describe()
    assert release.to_geodataframe()["count"].sum() == total


def test_release_takes_a_mechanism_with_its_own_noise_and_a_ledger_pays_for_it(ledger):
    ledger.create("town", 1, unit="record", neighbours="replace-one")
    account = {"ledger": ledger, "dataset": "town", "neighbours": "replace-one"}
    release = dpr.release(REGIONS, UNIT_GRID, method=Flat(), **TERMS, **account)
    assert release.private
    assert release.sensitivity == 2
    assert release.count(*UNIT_GRID.bounds) == pytest.approx(release.outcome.total, abs=1e-9)
    assert ledger.account("town").remaining == 0


@pytest.mark.parametrize("covert", [False, True])
@pytest.mark.usefixtures("entered")
def test_its_file_is_read_back_to_the_same_answers(covert, tmp_path):
    release = flat(StudyNoise(3), covert=covert, method=Flat("café, 12 o'clock"))
    digest = save(release, tmp_path / "flat.parquet")
    loaded = dpr.load(tmp_path / "flat.parquet")
    assert_same_answers(loaded, release)
    assert loaded.outcome.note == "café, 12 o'clock"
    assert loaded.outcome.total == release.outcome.total
    assert save(loaded, tmp_path / "again.parquet") == digest
    assert (loaded.signed is None) == covert


def test_columns_in_another_order_or_type_than_the_layouts_are_read_back_too(tmp_path, monkeypatch):
    class Turned(FlatOutcome):
        def columns(self):
            found = super().columns()
            cells = found.lists["cells"]
            fields = {name: cells.fields[name].astype(np.int16) for name in ("whole", "number")}
            lists = {"cells": Entries(cells.row.astype(np.int32), fields)}
            return dataclasses.replace(found, lists=lists)

    monkeypatch.setitem(MECHANISMS, Flat.name, Flat)
    release = flat()
    turned = dataclasses.replace(release, outcome=Turned(**vars(release.outcome)))
    digest = save(release, tmp_path / "release.parquet")
    assert save(turned, tmp_path / "flat.parquet") == digest
    assert_same_answers(dpr.load(tmp_path / "flat.parquet"), release)


@pytest.mark.usefixtures("entered")
def test_a_mechanism_that_is_entered_can_be_asked_for_by_its_word(tmp_path):
    assert_same_answers(flat(method="flat"), flat())
    with pytest.raises(PrivacyError, match="use 'footprint' or 'paper' or 'flat'"):
        flat(method="flatter")


@pytest.mark.usefixtures("entered")
def test_what_its_file_may_not_hold_is_refused(tmp_path):
    release = flat()
    lying = dataclasses.replace(release, outcome=dataclasses.replace(release.outcome, total="many"))
    lying.save(tmp_path / "flat.parquet")
    with pytest.raises(ReleaseFileError, match=r"flat.parquet is not a whole .*lacks its total"):
        dpr.load(tmp_path / "flat.parquet")
    with pytest.raises(InputError, match="longer than its mechanism's layout allows"):
        flat(method=Flat("x" * 101)).save(tmp_path / "wordy.parquet")
    assert not (tmp_path / "wordy.parquet").exists()


@pytest.mark.usefixtures("entered")
def test_the_digest_is_of_everything_that_a_mechanism_keeps(tmp_path):
    release = flat()
    others = [
        dataclasses.replace(release.outcome, note="other words"),
        dataclasses.replace(release.outcome, total=release.outcome.total + 1),
        dataclasses.replace(release.outcome, counts=release.counts + 1),
        dataclasses.replace(release.outcome, signed=release.signed + 1),
    ]
    made = [release, *(dataclasses.replace(release, outcome=outcome) for outcome in others)]
    assert len({save(one, tmp_path / "flat.parquet") for one in made}) == 5


def test_a_mechanism_that_is_not_entered_is_released_but_not_saved(tmp_path, monkeypatch):
    release = flat()
    assert release.count(*UNIT_GRID.bounds) == release.outcome.total
    path = tmp_path / "flat.parquet"
    with pytest.raises(InputError, match=r"method='flat' is unknown: .*known\.MECHANISMS"):
        release.save(path)
    assert not path.exists()
    with monkeypatch.context() as patch:
        patch.setitem(MECHANISMS, "flat", Flat)
        release.save(path)
    with pytest.raises(ReleaseFileError, match="does not know its mechanism"):
        dpr.load(path)


def test_it_says_that_it_has_no_regions():
    with pytest.raises(PrivacyError, match="not known to be the histogram of any set of regions"):
        flat().to_regions()


@pytest.mark.parametrize("method", [None, 7, object()])
def test_what_is_not_a_mechanism_is_refused(method):
    with pytest.raises(InputTypeError, match="method must be a name or a mechanism"):
        flat(method=method)


def test_a_workload_beside_a_mechanism_is_refused():
    with pytest.raises(InputError, match=r"Footprint\(workload=...\)"):
        flat(workload=[1])


@pytest.mark.parametrize("name", ["counts", "signed"])
def test_an_outcome_of_another_shape_is_refused_and_its_arrays_are_read_only(name):
    outcome = flat().outcome
    with pytest.raises(InputError, match=rf"{name} must have shape \(7, 9\)"):
        dataclasses.replace(outcome, **{name: np.zeros((3, 3), np.int64)})
    with pytest.raises(ValueError, match="read-only"):
        getattr(outcome, name)[0, 0] = 1


# Tallies add up

PREPARED = {
    "sizes": Footprint(strategy=BLOCKS),
    "patterns": Footprint(strategy=SHAPES),
    "paper": Paper(),
    "flat": Flat(),
}


def prepared(name):
    return PREPARED[name].prepare(UNIT_GRID, BOUND, Budget(1), "add-remove")


def outlines(regions):
    return outlines_of(np.asarray(regions, object), None, UNIT_GRID, BOUND)


def one_batch(mechanism, regions=REGIONS):
    tally = mechanism.tally()
    tally.add(outlines(regions))
    return tally


def exact(mechanism, tally):
    """What a tally counted: what noise would be added to."""
    if isinstance(mechanism, PreparedFlat):
        return tally.n
    if hasattr(tally, "histogram"):
        return tally.histogram()
    return tally.counts(mechanism._fixed_tree.buckets)


@pytest.mark.parametrize("name", PREPARED)
@settings(max_examples=25)
@given(data=st.data())
def test_tallies_of_batches_add_up_in_any_order_to_that_of_one_batch(name, data):
    mechanism = prepared(name)
    n = len(REGIONS)
    batch = np.array(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    owner = data.draw(st.lists(st.integers(0, 2), min_size=7, max_size=7))
    parts = [mechanism.tally() for _ in range(3)]
    for i in data.draw(st.permutations(range(7))):
        parts[owner[i]].add(outlines(REGIONS[batch == i]))
    first, *others = data.draw(st.permutations(parts))
    for other in others:
        first += other
    wanted = exact(mechanism, one_batch(mechanism))
    assert np.sum(wanted) > 0
    np.testing.assert_array_equal(exact(mechanism, first), wanted)


@pytest.mark.parametrize("name", PREPARED)
def test_the_same_tally_and_noise_publish_the_same_and_leave_the_tally_as_it_was(name):
    mechanism = prepared(name)
    tally = one_batch(mechanism)
    before = np.copy(exact(mechanism, tally))
    first, again = (mechanism.publish(tally, StudyNoise(5)) for _ in range(2))
    np.testing.assert_array_equal(first.counts, again.counts)
    np.testing.assert_array_equal(first.signed, again.signed)
    np.testing.assert_array_equal(exact(mechanism, tally), before)
    split = mechanism.tally()
    split += one_batch(mechanism, REGIONS[70:])
    split += one_batch(mechanism, REGIONS[:70])
    np.testing.assert_array_equal(mechanism.publish(split, StudyNoise(5)).signed, first.signed)


# Counting with threads


@pytest.mark.parametrize("name", PREPARED)
@pytest.mark.parametrize("batch", [1, 50, 120])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_several_threads_count_the_same_as_one(name, batch, workers):
    mechanism = prepared(name)
    batches = read_outlines(REGIONS, UNIT_GRID, BOUND, batch=batch)
    found = exact(mechanism, count(batches, mechanism.tally, workers=workers))
    wanted = exact(mechanism, one_batch(mechanism))
    assert np.asarray(found).dtype == np.int64
    np.testing.assert_array_equal(found, wanted)


class Made:
    """Batches that were made for a test, as regions are read."""

    has_users = False

    def __init__(self, makers):
        self.makers = makers

    def __iter__(self):
        return iter(self.makers)


def test_no_batch_is_an_empty_tally():
    mechanism = prepared("paper")
    assert not count(Made([]), mechanism.tally).histogram().any()


@pytest.mark.parametrize("n_before", [0, 1, 30])
@pytest.mark.parametrize("workers", [1, 3])
def test_an_unforeseen_error_of_a_worker_tells_its_type_alone(n_before, workers):
    secret = "Mrs Canary, 471"

    def broken():
        raise KeyError(secret)

    batches = [lambda: Batch(outlines(REGIONS[:3]), None)] * n_before + [broken]
    with pytest.raises(UnforeseenError, match=r"\(KeyError\)") as caught:
        count(Made(batches), prepared("paper").tally, workers=workers)
    assert secret not in str(caught.value) + repr(vars(caught.value))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_our_own_errors_of_a_worker_pass():
    def refuse():
        raise InputError("our words")

    with pytest.raises(InputError, match="our words"):
        count(Made([refuse, refuse, refuse]), prepared("paper").tally, workers=2)


# Stopping


INTERRUPTED = """
import os, signal, time
from dpregions.engines.local import count
from dpregions.intake.regions import Batch
class Nothing:
    nbytes = 8
    def add(self, outlines): pass
    def __iadd__(self, other): return self
made = []
def batches():
    for number in range(100_000):
        made.append(number)
        if number == 50:
            os.kill(os.getpid(), signal.SIGINT)  # the main thread waits for the others
        time.sleep(0.001)
        yield lambda: Batch(None, None)
class Reading:
    has_users = False
    def __iter__(self): return batches()
try:
    count(Reading(), Nothing, 2)
except KeyboardInterrupt:
    print(len(made))
"""


def test_an_interruption_ends_the_counting_at_once():
    """Workers do not go on to the end of the input when the main thread is interrupted."""
    args = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5_000


class Spendthrift(Flat):
    """A mechanism that takes more than it was given."""

    name = "spendthrift"

    def prepare(self, grid, bound, budget, neighbours):
        return super().prepare(grid, bound, Budget(100), neighbours)


def test_a_mechanism_cannot_spend_more_than_epsilon():
    with pytest.raises(OverBudgetError, match="goes beyond the budget"):
        dpr.release(REGIONS, UNIT_GRID, **TERMS, method=Spendthrift())
