"""The footprint mechanism spends its epsilon, exactly, and sees nothing secret after the noise."""

from __future__ import annotations

import ast
import inspect
import math
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import dpregions as dpr
from dpregions.mechanisms.footprint import choice as strategy
from dpregions.mechanisms.footprint import mechanism as footprint
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.choice import Strategy, choose
from dpregions.mechanisms.footprint.levels import Hierarchy
from dpregions.privacy.budget import Budget
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise
from support.footprint_releases import (
    BLOCKS,
    JOINED,
    PLAIN,
    SHAPES,
    UNIT_GRID,
    fix_strategy,
    study,
    town,
)
from support.watched_noise import Spy

# What is spent


@settings(max_examples=40)
@given(
    st.one_of(
        st.sampled_from([1, 0.1, 0.3, 1 / 3, 1e-3, 7, 100, Fraction(1, 7), Fraction(22, 7)]),
        st.floats(0.01, 50),
        st.fractions(Fraction(1, 100), 50),
    ),
    st.sampled_from([(1, 1), (2, 3), (7, 7), (20, 20), (1, 300)]),
    st.integers(0, 13),
)
def test_shares_of_the_budget_sum_to_it_exactly(epsilon, shape, i):
    plans = [JOINED, *strategy.candidates(4, *shape, shapes=True)]
    plan = plans[i % len(plans)]
    grid = dpr.Grid(0, 0, 1, *shape)
    with pytest.MonkeyPatch.context() as patch:
        fix_strategy(patch, plan)
        spy = Spy(1)
        release = study([shapely.Point(0.5, 0.5)], grid, epsilon=epsilon, max_diameter=1, noise=spy)
    wanted = Budget(epsilon).epsilon
    assert release.budget.epsilon == wanted
    assert sum(budget.epsilon for _, budget in release.spending) == wanted
    # What was said is what was asked of the noise: nothing is measured beyond it.
    assert sum(Budget(asked).epsilon for _, asked, *_ in spy.asked) == wanted
    assert len(spy.asked) == len(release.spending)
    assert [len(what) for what, *_ in spy.asked] == [
        release.measurements.measured.hierarchy.sizes[i]
        for i, values in enumerate(release.measurements.measured.values)
        if values is not None
    ] + [len(release.measurements.measured.hierarchy.buckets.heights)] * bool(plan.mix)


def test_the_total_costs_a_small_share_and_comes_first():
    for shape, share in (
        ((1, 1), Fraction(1, 4)),
        ((10, 10), Fraction(1, 10)),
        ((500, 500), Fraction(1, 50)),
    ):
        assert footprint.total_share(dpr.Grid(0, 0, 1, *shape)) == share
    what, budget = study().spending[0]
    assert what == "the number of regions in the area"
    assert budget == Budget(Fraction(1, 4))


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES, JOINED])
def test_every_count_gets_noise_of_its_share_empty_ones_too(plan, monkeypatch):
    fix_strategy(monkeypatch, plan)
    spy = Spy(3)
    release = study([], noise=spy, epsilon=0.5)
    tree = release.measurements.measured.hierarchy
    sizes = [1] + [tree.sizes[i] for i, weight in enumerate(plan.weights) if weight]
    sizes += [len(tree.buckets.heights)] * bool(plan.mix)
    assert [len(values) for values, *_ in spy.asked] == sizes
    for (values, asked, sensitivity, noisy), (_, budget) in zip(
        spy.asked, release.spending, strict=True
    ):
        assert (values == 0).all()
        assert sensitivity == 1
        assert asked == budget
        if len(values) > 20:
            # P(noise = 0) = (1 - a) / (1 + a): far from all of them, and none is left out.
            a = math.exp(-1 / scale_for(budget, 1))
            zeros = np.count_nonzero(noisy == 0)
            assert zeros <= binom.isf(1e-9, len(values), (1 - a) / (1 + a))
            assert np.abs(noisy).mean() > 0.5 * scale_for(budget, 1)
    found = release.measurements.measured
    measured = [v for v in (*found.values, found.mix) if v is not None]
    for (*_, noisy), values in zip(spy.asked, measured, strict=True):
        np.testing.assert_array_equal(noisy, values)


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES])
@pytest.mark.parametrize(("neighbours", "sensitivity"), [("add-remove", 1), ("replace-one", 2)])
def test_each_measurement_is_calibrated_to_the_sensitivity_it_states(
    plan, neighbours, sensitivity, monkeypatch
):
    fix_strategy(monkeypatch, plan)
    spy = Spy(1)
    release = study(noise=spy, neighbours=neighbours)
    assert release.sensitivity == sensitivity
    assert {asked[2] for asked in spy.asked} == {sensitivity}
    assert f"at most {sensitivity} (L1)" in release.describe()
    variances = release.measurements.measured.variances
    for i, budget in zip(
        [i for i, v in enumerate(variances) if np.isfinite(v)],
        [budget for _, budget in release.spending],
        strict=True,
    ):
        scale = sensitivity / float(budget)
        a = math.exp(-1 / scale)
        assert variances[i] == pytest.approx(2 * a / (1 - a) ** 2)


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES, JOINED])
@pytest.mark.parametrize("change", ["add", "replace", "move out"])
def test_neighbours_move_each_measurement_by_no_more_than_its_sensitivity(
    plan, change, monkeypatch
):
    """Over many regions: the exact counts that reach the noise, of two neighbouring data sets."""
    fix_strategy(monkeypatch, plan)
    base = list(town(UNIT_GRID, 2, n=40))
    others = town(UNIT_GRID, 3, n=40, seed=9)
    most = 1 if change == "add" else 2
    reached = 0
    for other in others:
        changed = {
            "add": [*base, other],
            "replace": [other, *base[1:]],
            "move out": [shapely.Point(99, 99), *base[1:]],
        }[change]
        spies = Spy(1), Spy(1)
        for spy, regions in zip(spies, (base, changed), strict=True):
            study(regions, noise=spy)
        for (values, *_), (moved, *_) in zip(spies[0].asked, spies[1].asked, strict=True):
            step = np.abs(values - moved).sum()
            assert step <= (1 if change == "move out" else most)
            reached = max(reached, int(step))
    assert reached == (1 if change == "move out" else most)


# After the noise, nothing secret


def test_the_strategy_depends_on_public_parameters_and_the_noisy_total_only():
    names = set(inspect.signature(choose).parameters)
    assert names == {
        "catalogue",
        "n_rows",
        "n_cols",
        "epsilon",
        "n_regions",
        "spent",
        "factor",
        "sizes",
    }
    known = catalogue(3, 2 << 20)
    arguments = {"epsilon": 0.9, "n_regions": 700.0, "spent": 0.1}
    first = choose(known, 8, 9, **arguments)
    np.random.default_rng().random(7)  # no global state has a say
    np.random.seed(5)  # noqa: NPY002
    assert choose(known, 8, 9, **arguments) == first


def test_the_mechanism_asks_for_a_strategy_with_the_noisy_total(monkeypatch):
    asked = []

    def remember(known, n_rows, n_cols, **public):
        asked.append(public)
        return PLAIN

    monkeypatch.setattr(footprint, "choose", remember)
    spy = Spy(8)
    study(town(UNIT_GRID, 2, n=300), noise=spy, neighbours="replace-one")
    total = spy.asked[0]
    (public,) = asked
    assert public == {
        "epsilon": 0.75,
        "n_regions": float(total[3][0]),
        "spent": 0.25,
        "factor": 2,
        "sizes": None,
    }
    assert total[3][0] != total[0][0]


SUBPROCESS = """
import pickle, sys
from dpregions.mechanisms.footprint import mechanism as footprint
steps = footprint.post_process(*pickle.load(sys.stdin.buffer))
sys.stdout.buffer.write(pickle.dumps((steps.counts, steps.signed, steps.spending)))
"""


def test_another_process_gets_the_same_counts_from_the_noisy_ones_alone(monkeypatch):
    """Nothing secret is within reach of the post-processing: it has the noisy counts only."""
    inputs = []
    true_step = footprint.post_process

    def remember(*arguments):
        inputs.append(pickle.dumps(arguments))
        return true_step(*arguments)

    monkeypatch.setattr(footprint, "post_process", remember)
    spy = Spy(2)
    release = study(noise=spy)
    (pickled,) = inputs
    # What goes in: the tree, the plan, noisy counts, shares, the factor; no exact array.
    tree, plan, noisy, shares, factor = pickle.loads(pickled)
    assert isinstance(tree, Hierarchy) and isinstance(plan, Strategy) and factor == 1
    for (exact, *_, given_out), level in zip(spy.asked, sorted(noisy), strict=True):
        np.testing.assert_array_equal(noisy[level], given_out)
        if exact.size > 1:
            assert not np.array_equal(noisy[level], exact)
    assert sum(budget.epsilon for budget in shares.values()) == 1
    command = [sys.executable, "-c", SUBPROCESS]
    done = subprocess.run(command, input=pickled, capture_output=True, check=True)
    counts, signed, spending = pickle.loads(done.stdout)
    np.testing.assert_array_equal(counts, release.counts)
    np.testing.assert_array_equal(signed, release.signed)
    assert spending == release.spending


def test_exact_counts_are_named_on_no_line_but_those_that_add_noise():
    """The source of `run`: after the noise, `regions` and `exact` appear only to be deleted."""
    (function,) = ast.parse(inspect.getsource(footprint.run)).body
    last = [node for node in function.body if isinstance(node, ast.Delete)][-1]
    assert {target.id for target in last.targets} == {"regions", "exact"}
    after = function.body[function.body.index(last) + 1 :]
    for statement in after:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        assert not names & {"regions", "exact", "outlines", "noise"}


def test_a_release_repeats_with_its_noise():
    first, again, other = (study(noise=StudyNoise(seed)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.counts, again.counts)
    np.testing.assert_array_equal(first.signed, again.signed)
    assert first.spending == again.spending
    assert first.to_regions().equals(again.to_regions())
    assert (first.counts != other.counts).any()


def test_the_order_of_regions_does_not_matter():
    regions = town(UNIT_GRID, 2)
    first, turned = study(regions), study(regions[::-1])
    np.testing.assert_array_equal(first.counts, turned.counts)
    np.testing.assert_array_equal(first.signed, turned.signed)


def test_next_to_no_noise_the_total_is_exact_and_patterns_are_exact_everywhere(monkeypatch):
    regions = town(UNIT_GRID, 1, n=500)
    exact = dpr.EulerHistogram.from_regions(regions, UNIT_GRID, max_diameter=1)
    fix_strategy(monkeypatch, SHAPES)
    release = study(regions, max_diameter=1, epsilon=10**9)
    # For k = 1 the catalogue has every pattern there is.
    np.testing.assert_array_equal(release.counts, exact.counts)
    np.testing.assert_allclose(release.signed, exact.counts, atol=1e-6)


# What the software says of itself


def test_describe_lists_what_was_measured_with_its_share_and_scale():
    release = study(epsilon=0.5)
    text = release.describe()
    for what, budget in release.spending:
        assert f"{what} with epsilon {budget}, noise of scale {scale_for(budget, 1):g}" in text
    assert "method 'footprint'" in text
    assert "empty ones too" in text
