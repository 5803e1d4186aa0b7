"""The footprint mechanism spends its epsilon, exactly, and sees nothing secret after the noise."""

from __future__ import annotations

import ast
import inspect
import math
import pickle
import subprocess
import sys
import textwrap
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import dpregions as dpr
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint import choice as strategy
from dpregions.mechanisms.footprint.bases import PreparedBases
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.choice import choose
from dpregions.mechanisms.footprint.levels import MIX, Hierarchy
from dpregions.mechanisms.footprint.levels import SHAPES as SHAPE_MIX
from dpregions.mechanisms.footprint.measuring import Measured, Strategy, measure
from dpregions.mechanisms.footprint.mechanism import Footprint, PreparedFootprint, total_share
from dpregions.mechanisms.footprint.tree.prepared import PreparedTree
from dpregions.mechanisms.footprint.workload import Workload
from dpregions.privacy.budget import Budget
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise
from support.footprint_releases import (
    BLOCKS,
    JOINED,
    PLAIN,
    SHAPES,
    UNIT_GRID,
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
    spy, terms = Spy(1), {"epsilon": epsilon, "max_diameter": 1}
    release = study([shapely.Point(0.5, 0.5)], grid, noise=spy, strategy=plan, **terms)
    wanted = Budget(epsilon).epsilon
    assert release.budget.epsilon == wanted
    assert sum(budget.epsilon for _, budget in release.spending) == wanted
    # What was said is what was asked of the noise: nothing is measured beyond it.
    assert sum(Budget(asked).epsilon for _, asked, *_ in spy.asked) == wanted
    assert len(spy.asked) == len(release.spending)
    measured = release.outcome.reading.measured
    tree = measured.hierarchy
    assert [len(what) for what, *_ in spy.asked] == [
        tree.sizes[i] for i, noisy in enumerate(measured.levels) if noisy is not None
    ] + [tree.n_parts(level) for level in (MIX, SHAPE_MIX) if level in plan.weights]


def test_the_total_costs_a_small_share_and_comes_first():
    for shape, share in (
        ((1, 1), Fraction(1, 4)),
        ((10, 10), Fraction(1, 10)),
        ((500, 500), Fraction(1, 50)),
    ):
        assert total_share(dpr.Grid(0, 0, 1, *shape)) == share
    what, budget = study().spending[0]
    assert what == "the number of regions in the area"
    assert budget == Budget(Fraction(1, 4))


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES, JOINED])
def test_every_count_gets_noise_of_its_share_empty_ones_too(plan):
    spy = Spy(3)
    release = study([], noise=spy, epsilon=0.5, strategy=plan)
    measured = release.outcome.reading.measured
    tree = measured.hierarchy
    sizes = [1]
    sizes += [n for n, at in zip(tree.sizes, tree.levels, strict=True) if at in plan.weights]
    sizes += [len(tree.buckets.heights)] * (MIX in plan.weights)
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
    held = [noisy.values for noisy in (*measured.levels, measured.mix) if noisy is not None]
    for (*_, noisy), values in zip(spy.asked, held, strict=True):
        np.testing.assert_array_equal(noisy, values)


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES])
@pytest.mark.parametrize(("neighbours", "sensitivity"), [("add-remove", 1), ("replace-one", 2)])
def test_each_measurement_is_calibrated_to_the_sensitivity_it_states(plan, neighbours, sensitivity):
    spy = Spy(1)
    release = study(noise=spy, neighbours=neighbours, strategy=plan)
    assert release.sensitivity == sensitivity
    assert {asked[2] for asked in spy.asked} == {sensitivity}
    assert f"at most {sensitivity} (L1)" in release.describe()
    levels = release.outcome.reading.measured.levels
    for noisy, (_, budget) in zip(
        [noisy for noisy in levels if noisy is not None], release.spending, strict=True
    ):
        scale = sensitivity / float(budget)
        a = math.exp(-1 / scale)
        assert noisy.variance == pytest.approx(2 * a / (1 - a) ** 2)


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES, JOINED])
@pytest.mark.parametrize("change", ["add", "replace", "move out"])
def test_neighbours_move_each_measurement_by_no_more_than_its_sensitivity(plan, change):
    """Over many regions: the exact counts that reach the noise, of two neighbouring data sets."""
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
            study(regions, noise=spy, strategy=plan)
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
        "workload",
        "favour",
        "trees",
        "tuning",
    }
    known = catalogue(3, 2 << 20)
    arguments = {"epsilon": 0.9, "n_regions": 700.0, "spent": 0.1}
    first = choose(known, 8, 9, **arguments)
    np.random.default_rng().random(7)  # no global state has a say
    np.random.seed(5)  # noqa: NPY002
    assert choose(known, 8, 9, **arguments) == first


def prepared_for(neighbours="add-remove") -> PreparedFootprint:
    """The mechanism on the unit grid, with epsilon 1 and a bound of 2 cells."""
    bound = Bound.of(UNIT_GRID, 2, "shrink")
    return Footprint().prepare(UNIT_GRID, bound, Budget(1), neighbours)


def test_the_mechanism_asks_for_a_strategy_with_the_noisy_total():
    asked = []

    class Asking(PreparedFootprint):
        def strategy(self, n_regions):
            asked.append(n_regions)
            return PLAIN

    spy, public = Spy(8), prepared_for("replace-one")
    prepared = Asking(**{part.name: getattr(public, part.name) for part in fields(public)})
    tally = prepared.tally()
    regions = town(UNIT_GRID, 2, n=300)
    tally.add(outlines_of(regions, None, UNIT_GRID, Bound.of(UNIT_GRID, 2, "shrink")))
    assert prepared.publish(tally, spy).strategy == PLAIN
    (exact,), *_, (noisy,) = spy.asked[0]
    assert asked == [float(noisy)]
    assert noisy != exact


def test_a_strategy_is_chosen_for_what_is_left_of_the_budget_and_what_was_spent():
    """By the choices at two totals, which every other argument would change."""
    prepared, totals = prepared_for("replace-one"), (60.0, 10_000.0)

    def chosen(**changes):
        public = {"epsilon": 0.75, "spent": 0.25, "factor": 2} | changes
        return [choose(prepared.known, 4, 5, n_regions=total, **public) for total in totals]

    found = [prepared.strategy(total) for total in totals]
    assert found == chosen()
    cells = Workload(sizes=((1, 1),))
    wrong = ({"epsilon": 1.0}, {"spent": 0.75}, {"factor": 1}, {"workload": cells})
    assert all(chosen(**change) != found for change in wrong)


SUBPROCESS = """
import pickle, sys
prepared, strategy, measured = pickle.load(sys.stdin.buffer)
outcome = prepared.post_process(strategy, measured)
sys.stdout.buffer.write(pickle.dumps((outcome.counts, outcome.signed, outcome.spending)))
"""


def test_another_process_gets_the_same_counts_from_the_noisy_ones_alone():
    """Nothing secret is within reach of the post-processing: it has the noisy counts only."""
    spy = Spy(2)
    release = study(noise=spy)
    strategy, measured = release.outcome.strategy, release.outcome.reading.measured
    # What goes in: public terms, the strategy, noisy counts; no exact array.
    assert isinstance(strategy, Strategy) and isinstance(measured, Measured)
    assert vars(measured).keys() >= {"hierarchy", "noisy"}
    for (exact, *_, given_out), noisy in zip(spy.asked, measured.noisy.values(), strict=True):
        np.testing.assert_array_equal(noisy.values, given_out)
        if exact.size > 1:
            assert not np.array_equal(noisy.values, exact)
    prepared = prepared_for()
    assert prepared.sensitivity == 1
    assert prepared.first.epsilon + prepared.rest.epsilon == 1
    tree = Hierarchy.of(prepared._buckets(strategy.alphabet), strategy.levels)
    pickled = pickle.dumps((prepared, strategy, Measured(tree, measured.noisy)))
    command = [sys.executable, "-c", SUBPROCESS]
    done = subprocess.run(command, input=pickled, capture_output=True, check=True)
    counts, signed, spending = pickle.loads(done.stdout)
    np.testing.assert_array_equal(counts, release.counts)
    np.testing.assert_array_equal(signed, release.signed)
    assert spending == release.spending


def statements_of(function) -> list[ast.stmt]:
    """The statements of a function but its docstring."""
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return parsed.body[1:]


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_exact_counts_are_named_on_no_line_but_those_that_add_noise():
    """By the source: a tally goes nowhere but where noise is added, and is never looked at."""
    secret = {"tally", "exact"}
    total = "self.measured_total(tally, noise)"
    for prepared in (PreparedFootprint, PreparedTree):
        (line,) = statements_of(prepared.publish)
        assert ast.unparse(line) == f"return self.publish_beside({total}, tally, noise)"
        for line in statements_of(prepared.post_process):
            assert not names_in(line) & {*secret, "outlines", "noise"}
    (line,) = statements_of(PreparedFootprint.measured_total)
    assert ast.unparse(line).startswith("return noise.add(np.array([tally.total], np.int64)")
    exact, line = statements_of(PreparedTree.measured_total)
    assert ast.unparse(exact) == "exact = np.array([tally.total], np.int64)"
    assert ast.unparse(line).startswith("return noise.add(exact, ")
    choice, tree, last = statements_of(PreparedFootprint.publish_beside)
    assert not names_in(choice) & {*secret, "noise"}
    assert ast.unparse(tree.test) == "isinstance(strategy, Adaptive)"
    (line,) = tree.body
    beside = "self._as_tree(strategy).publish_beside(total, tally, noise)"
    assert ast.unparse(line) == f"return {beside}"
    measured = "self._measured(strategy, total, tally, noise)"
    assert ast.unparse(last) == f"return self.post_process(strategy, {measured})"
    for line in statements_of(PreparedFootprint._measured):
        if names_in(line) & secret:
            counted = ast.unparse(line) == "exact = tally.counts(tree.buckets)"
            added = "measure(tree, exact, tally.shapes, shares, self.sensitivity, noise)"
            assert counted or ast.unparse(line) == f"noisy = {added}"
            assert not isinstance(line, ast.Return)
    (line,) = statements_of(PreparedTree.publish_beside)
    measured = "self.measured(float(total[0]), tally, noise)"
    assert ast.unparse(line) == f"return self.post_process({measured})"
    for line in statements_of(PreparedTree.measured):
        if names_in(line) & secret:
            meter = "Meter(ladder, tally.keyed(ladder), tally.shapes, self.rest, factor, noise)"
            assert ast.unparse(line) == f"meter = {meter}"
    total, which, rest, last = statements_of(PreparedBases.publish)
    assert not names_in(last) & {"tally", "noise", "total"}
    assert ast.unparse(total).endswith(".measured_total(tally.tallies[0], noise)")
    assert names_in(which) <= {"which", "self", "float", "total"}
    assert ".publish_beside(total, tally.tallies[which], noise)" in ast.unparse(rest)
    (line,) = statements_of(measure)
    calls = [node for node in ast.walk(line) if isinstance(node, ast.Call)]
    (adds,) = [call for call in calls if ast.unparse(call.func) == "noise.add"]
    n_named = [
        sum(isinstance(part, ast.Name) and part.id == "exact" for part in ast.walk(node))
        for node in (line, adds)
    ]
    assert n_named == [1, 1]


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


def test_next_to_no_noise_the_total_is_exact_and_patterns_are_exact_everywhere():
    regions = town(UNIT_GRID, 1, n=500)
    exact = dpr.EulerHistogram.from_regions(regions, UNIT_GRID, max_diameter=1)
    release = study(regions, max_diameter=1, epsilon=10**9, strategy=SHAPES)
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
