"""The noise of a release is what OpenDP returned for the exact counts, and nothing else is random.

Three proofs, for both methods and for adaptive trees, with a ledger and without: every number that
was measured went to OpenDP, and its answer is what the release holds; with known answers in
OpenDP's place, and all other sources of chance closed, the whole release is the same in any
process; with OpenDP's own answers it differs, also where clock, process number and hash seed are
the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import opendp.core
import pytest

import dpregions as dpr
from dpregions.errors import OverBudgetError, PrivacyError
from dpregions.euler import EulerHistogram
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.levels import SHAPES
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.keyed import KeyedCounts
from dpregions.mechanisms.footprint.tree.mix import groupings
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy.budget import Budget
from dpregions.privacy.noise import MeteredNoise, SystemNoise, add_integer_laplace
from dpregions.releases.make import release_with
from support.small_releases import GRID, town
from support.watched_noise import NoNoise

NEIGHBOURS = ("add-remove", "replace-one")
PAID = (False, True)


class Call(NamedTuple):
    """One use of OpenDP's mechanism."""

    given: list[int]
    answer: list[int]
    measurement: opendp.core.Measurement


@pytest.fixture
def calls(monkeypatch):
    """What OpenDP was given and what it answered, call by call: noted where it is called."""
    noted = []
    invoke = opendp.core.measurement_invoke

    def note(measurement, values):
        answer = invoke(measurement, values)
        noted.append(Call(list(values), list(answer), measurement))
        return answer

    monkeypatch.setattr(opendp.core, "measurement_invoke", note)
    return noted


def publish(ledger, paid, **changes):
    """Release a small town, paid from a ledger or not."""
    arguments = {"epsilon": 1, "max_diameter": 2} | changes
    if paid:
        ledger.create("town", 1, neighbours=changes.get("neighbours", "add-remove"))
        arguments |= {"ledger": ledger, "dataset": "town"}
    return dpr.release(town(), GRID, **arguments)


def assert_calibrated(calls, release):
    """OpenDP's own account of each call is the share of epsilon that the release states."""
    stated = [float(share) for _, share in release.spending]
    assert [call.measurement.map(release.sensitivity) for call in calls] == pytest.approx(
        stated, rel=1e-12
    )


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("paid", PAID)
def test_the_papers_release_is_opendps_answer_to_every_exact_count(ledger, calls, neighbours, paid):
    made = publish(ledger, paid, method="paper", neighbours=neighbours)
    exact = EulerHistogram.from_regions(town(), GRID, max_diameter=2).counts
    assert np.count_nonzero(exact) and not exact.all()
    (call,) = calls
    assert call.given == exact.ravel().tolist()
    assert call.answer == made.signed.ravel().tolist()
    assert made.private
    assert_calibrated(calls, made)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("paid", PAID)
def test_a_release_by_footprints_holds_opendps_answers_to_every_level(
    ledger, calls, neighbours, paid
):
    made = publish(ledger, paid, neighbours=neighbours)
    measured = made.outcome.reading.measured
    tree, held = measured.hierarchy, {at: v.tolist() for at, (v, _) in measured.noisy.items()}
    assert len(held) >= 2
    bound = Bound.of(GRID, 2, "shrink")
    tally = FootprintTally(tree.buckets)
    tally.add(outlines_of(np.asarray(town().geometry.array, object), None, GRID, bound))
    exact = tally.counts(tree.buckets)
    given = [tally.shapes if at == SHAPES else tree.sums(at, exact) for at in held]
    assert SHAPES in held and tally.shapes.sum() == tally.total
    assert [call.given for call in calls] == [counts.tolist() for counts in given]
    assert [call.answer for call in calls] == list(held.values())
    assert made.private
    assert_calibrated(calls, made)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("paid", PAID)
def test_a_release_by_a_tree_holds_opendps_answers_to_every_count_it_asked_for(
    ledger, calls, neighbours, paid
):
    way = Footprint(strategy=Adaptive(3.0, 4))
    made = publish(ledger, paid, method=way, neighbours=neighbours)
    measured = made.outcome.reading.measured
    ladder = measured.ladder
    tally = FootprintTally(ladder)
    bound = Bound.of(GRID, 2, "shrink")
    tally.add(outlines_of(np.asarray(town().geometry.array, object), None, GRID, bound))
    exact = KeyedCounts(ladder, *tally.keyed(ladder))
    assert len(measured.batches) >= 2
    given = [[tally.total], *(exact.of_sizes(*g).tolist() for g in groupings(ladder.side))]
    given.append(tally.shapes.tolist())
    given += [exact.of_nodes(batch.level, batch.nodes).tolist() for batch in measured.batches]
    held = [[measured.total], *measured.sizes, measured.shapes]
    held += [batch.values for batch in measured.batches]
    assert [call.given for call in calls] == given
    assert [call.answer for call in calls] == [list(values) for values in held]
    assert made.private
    # OpenDP's own account of each call is the share that its parts are said to cost.
    shares = [measured.shares.first, *measured.shares.mix, measured.shares.shapes]
    shares += [batch.share for batch in measured.batches]
    losses = [call.measurement.map(made.sensitivity) for call in calls]
    assert losses == pytest.approx(list(map(float, shares)), rel=1e-12)
    assert all(Fraction(loss) <= Budget(s).epsilon for loss, s in zip(losses, shares, strict=True))
    assert sum(share.epsilon for _, share in made.spending) == 1
    if paid:
        assert ledger.account("town").remaining == 0


def test_a_tree_is_debited_before_its_first_draw_and_never_again():
    events = []

    class Noting(NoNoise):
        def add(self, values, *, epsilon, sensitivity):
            events.append("draw")
            return super().add(values, epsilon=epsilon, sensitivity=sensitivity)

    def debit():
        events.append("debit")
        return "entry"

    paid = MeteredNoise(Noting(), Budget(1), debit)
    way = Footprint(strategy=Adaptive(0.15, 16))
    release_with(paid, town(), GRID, epsilon=1, max_diameter=2, method=way)
    assert events[:2] == ["debit", "draw"]
    assert events.count("debit") == 1 < events.count("draw")
    with pytest.raises(OverBudgetError):
        paid.add(np.zeros(1, np.int64), epsilon=Fraction(1, 10**9), sensitivity=1)
    assert events.count("draw") == len(paid._noise.calls)


def test_what_is_allotted_is_paid_for_by_every_meter_before_noise_is_given_out():
    events = []
    inner = MeteredNoise(NoNoise(), Budget(1), lambda: events.append("inner") or "entry")
    outer = MeteredNoise(inner, Budget(Fraction(1, 2)))
    assert type(outer.allot(Budget(Fraction(1, 3)))) is NoNoise
    assert events == ["inner"]
    with pytest.raises(OverBudgetError):
        outer.allot(Budget(Fraction(1, 3)))
    assert type(outer.allot(Budget(Fraction(1, 6)))) is NoNoise
    for spent in (outer, inner):
        with pytest.raises(OverBudgetError):
            spent.add(np.zeros(1, np.int64), epsilon=Fraction(2, 3), sensitivity=1)


def test_a_tree_beyond_what_a_ledger_has_is_refused_before_a_draw(ledger, calls):
    ledger.create("town", Fraction(1, 2))
    way = Footprint(strategy=Adaptive(0.15, 16))
    terms = {"epsilon": 1, "max_diameter": 2, "method": way}
    with pytest.raises(OverBudgetError):
        dpr.release(town(), GRID, ledger=ledger, dataset="town", **terms)
    assert not calls
    assert ledger.account("town").remaining == Fraction(1, 2)


def test_system_noise_gives_back_what_opendp_answered_place_by_place(calls):
    counts = np.arange(77).reshape(7, 11) % 3
    whole = SystemNoise().add(counts, epsilon=1, sensitivity=9).ravel()
    ((given, answer, _),) = calls
    assert (given, answer) == (counts.ravel().tolist(), whole.tolist())
    calls.clear()
    noised = add_integer_laplace(counts, epsilon=1, sensitivity=9, chunk=10).ravel()
    assert sum(len(call.given) for call in calls) == 77
    parts = {start: counts.ravel()[start : start + 10].tolist() for start in range(0, 77, 10)}
    answers = {start: noised[start : start + 10].tolist() for start in parts}
    found = sorted((call.given, call.answer) for call in calls)
    assert found == sorted((parts[start], answers[start]) for start in parts)


@pytest.mark.parametrize("method", MECHANISMS)
@pytest.mark.parametrize("paid", PAID)
def test_a_release_is_made_with_system_noise_alone(ledger, method, paid):
    seen = []

    class Noting(MECHANISMS[method]):
        def prepare(self, *public):
            prepared = super().prepare(*public)

            def publish(tally, noise):
                seen.append(noise)
                return prepared.publish(tally, noise)

            return SimpleNamespace(
                sensitivity=prepared.sensitivity, tally=prepared.tally, publish=publish
            )

    publish(ledger, paid, method=Noting())
    (noise,) = seen
    assert type(noise) is MeteredNoise
    within = noise._noise
    assert type(within) is (MeteredNoise if paid else SystemNoise)
    assert not paid or type(within._noise) is SystemNoise


# Run in processes of their own, so that closing the sources closes them for this code alone. Every
# clock stands still and all processes have one number. What dpregions imports is closed before.
RUNNER = """
import hashlib, json, os, random, secrets, sys, time, uuid
import geopandas, numba, numpy, opendp.prelude, scipy.optimize, shapely

# The layout is tried out on made-up cities, from public parameters and the noisy total.
FOOTPRINT = "dpregions.mechanisms.footprint"
REHEARSALS = {f"{FOOTPRINT}.choice": range(100), f"{FOOTPRINT}.catalogue": range(1)}
REHEARSALS[f"{FOOTPRINT}.witnesses"] = range(100)
REHEARSALS[f"{FOOTPRINT}.border"] = REHEARSALS[f"{FOOTPRINT}.made_up"] = range(1)

def closed(name):
    def refuse(*_, **__):
        raise AssertionError(f"{name} was asked")
    return refuse

def close(module, *names):
    for name in names or [name for name in dir(module) if name[0] != "_"]:
        thing, refuse = getattr(module, name), closed(f"{module.__name__}.{name}")
        if isinstance(thing, type):  # others ask what is an instance of it
            setattr(module, name, type(name, (thing,), {"__new__": refuse}))
        elif callable(thing):
            setattr(module, name, refuse)

default_rng, Generator = numpy.random.default_rng, numpy.random.Generator

def rehearsal_rng(seed=None):
    caller = sys._getframe(1).f_globals["__name__"]
    assert type(seed) is int and seed in REHEARSALS[caller], (caller, seed)
    return default_rng(seed)

close(numpy.random)
numpy.random.default_rng, numpy.random.Generator = rehearsal_rng, Generator
close(random)
close(secrets)
close(uuid, "uuid1", "uuid4")
close(os, "urandom", "getrandom")
for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
    setattr(time, name, lambda: 1.7e9)
    setattr(time, f"{name}_ns", lambda: 1_700_000_000_000_000_000)
os.getpid = lambda: 4242

import dpregions as dpr
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.known import MECHANISMS

GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
boxes = shapely.box(*(numpy.arange(120).reshape(2, 60) * 7 % 31 / 10), 3.3, 3.3)
invoke = opendp.core.measurement_invoke
calls = 0

def known(measurement, values):
    # Numbers that look like noise and depend on the place and the call alone.
    global calls
    calls += 1
    return [value + (7919 * i + 31 * calls) % 23 - 11 for i, value in enumerate(values)]

def digest(release):
    held = [release.counts, release.signed]
    if release.method == "footprint":
        measured = release.outcome.reading.measured
        if hasattr(measured, "batches"):
            held += [*measured.sizes, *(batch.values for batch in measured.batches)]
        else:
            held += [values for values, _ in measured.noisy.values()]
        held += [release.outcome.bodies.counts_on(*GRID.shape)]
    return hashlib.sha256(b"".join(numpy.ascontiguousarray(v).tobytes() for v in held)).hexdigest()

account = {"ledger": sys.argv[1], "dataset": "town"}
how = {"epsilon": 1, "max_diameter": 2, "user_id": None}
found = {"known": [], "OpenDP": []}
for source, answers in {"known": known, "OpenDP": invoke}.items():
    opendp.core.measurement_invoke = answers
    for method in (*MECHANISMS, Footprint(strategy=Adaptive(3.0, 4))):
        for paid in ({}, account):
            found[source].append(digest(dpr.release(boxes, GRID, method=method, **how, **paid)))
print(json.dumps(found))
"""


N_WAYS = len(MECHANISMS) + 1
"""The mechanisms, and a tree."""


def test_with_every_other_source_closed_releases_differ_by_opendps_answers_alone(ledger):
    ledger.create("town", 4 * N_WAYS, unit="record")
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(ledger.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
        for _ in range(2)
    ]
    ended = [runner.communicate() for runner in runners]
    assert [errors for _, errors in ended] == ["", ""]
    one, other = (json.loads(found) for found, _ in ended)
    assert one["known"] == other["known"]
    assert len({*one["OpenDP"], *other["OpenDP"]}) == 4 * N_WAYS
    assert ledger.account("town").remaining == 0


def test_the_seam_for_studies_takes_no_noise_that_could_be_published():
    with pytest.raises(PrivacyError, match="for studies: publish with release"):
        release_with(SystemNoise(), town(), GRID, epsilon=1, max_diameter=2, user_id=None)
