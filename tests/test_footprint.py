"""The footprint mechanism: what it releases is the histogram of bodies, what it spends is epsilon.

Also an audit of its measurements, and of two mutants. Coverage of intervals is at the end.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from functools import cache

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import dpregions as dpr
from auditing import audit
from dpregions import footprint, strategy
from dpregions.buckets import Buckets
from dpregions.catalogue import catalogue
from dpregions.errors import CRSError, InputError, InputTypeError, PrivacyError
from dpregions.hierarchy import Hierarchy, Level
from dpregions.privacy import Budget, scale_for
from dpregions.regions import Bound, outlines_of
from dpregions.releases import Release
from dpregions.releasing import release_with
from dpregions.strategy import Strategy, choose, default_sizes
from dpregions.study.noise import StudyNoise

UNIT_GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
PLAIN = Strategy("sizes", (Level(0, "all"), Level(1, "letters")), (0, 10))
BLOCKS = Strategy("sizes", (Level(0, "all"), Level(2, "all"), Level(1, "letters")), (0, 3, 7))
SHAPES = Strategy("patterns", PLAIN.levels, PLAIN.weights)
JOINED = Strategy("sizes", (Level(0, "all"), Level(1, "joined"), Level(1, "letters")), (0, 9, 0), 1)


def town(grid: dpr.Grid, max_diameter: float, n: int = 200, seed: int = 0) -> np.ndarray:
    """Hulls of six places each, some of them partly outside the area, some too long."""
    rng = np.random.default_rng(seed)
    across, up = rng.uniform(-0.5, 0.5, (2, n)) + rng.uniform(0, 1, (2, n)) * [
        [grid.n_cols],
        [grid.n_rows],
    ]
    homes = np.stack([grid.xmin + across * grid.cell_size, grid.ymin + up * grid.cell_size], -1)
    places = homes[:, None] + rng.normal(size=(n, 6, 2)) * max_diameter / 4
    return shapely.convex_hull(shapely.linestrings(places))


def study(regions=None, grid=UNIT_GRID, *, noise=None, **changes) -> Release:
    """A release of records with seeded noise."""
    arguments = {"epsilon": 1, "max_diameter": 2, "user_id": None, "crs": grid.crs} | changes
    regions = town(grid, float(arguments["max_diameter"])) if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, grid, **arguments)


def fix_strategy(monkeypatch, plan: Strategy) -> None:
    monkeypatch.setattr(footprint, "choose", lambda *_, **__: plan)


class Spy(StudyNoise):
    """Seeded noise that remembers what it was asked for and what it gave."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[tuple[np.ndarray, Budget, int, np.ndarray]] = []

    def add(self, values, *, epsilon, sensitivity):
        noisy = super().add(values, epsilon=epsilon, sensitivity=sensitivity)
        self.asked.append((values.copy(), epsilon, sensitivity, noisy))
        return noisy


class Untouched:
    """A source of noise that must not be asked."""

    private = False
    label = "none"

    def add(self, values, *, epsilon, sensitivity):
        raise AssertionError("noise was drawn")


# The release is the exact histogram of its bodies

GRIDS = {
    "4 x 5": dpr.Grid(0, 0, 1, 4, 5),
    "3 x 7 of 0.1": dpr.Grid(0.1, -0.3, 0.1, 3, 7),
    "5 x 5 far out": dpr.Grid(1e9 + 0.1, -2e9, 1, 5, 5),
    "1 x 9 of 2/3": dpr.Grid(-1234.56, 4_417_000.1, 2 / 3, 1, 9),
    "9 x 1": dpr.Grid(0, 0, 1, 9, 1),
    "1 x 1": dpr.Grid(7, 7, 3, 1, 1),
    "6 x 4, UTM": dpr.Grid(447_915.3, 4_417_000.1, 111.32, 6, 4, crs="EPSG:32632"),
    "tiny cells": dpr.Grid(0.25, 1, 1e-6, 4, 4),
}
RATIOS = (0.5, 1, 2, 2.5, 3, 4, 5, 13)


def assert_is_the_histogram_of_its_bodies(release: Release) -> None:
    grid, longest = release.grid, release.max_diameter
    regions = release.to_regions()
    assert isinstance(regions, geopandas.GeoDataFrame)
    assert regions.crs == grid.crs
    assert len(regions) == release.count(*grid.bounds)
    for bounded in (
        {},
        {"max_diameter": longest, "oversize": "drop"},
        {"max_diameter": longest, "oversize": "shrink"},
    ):
        again = dpr.EulerHistogram.from_regions(regions, grid, **bounded)
        np.testing.assert_array_equal(again.counts, release.counts)
    shapes = regions.geometry.drop_duplicates()
    assert (shapes.geom_type == "Polygon").all()
    assert shapes.is_valid.all()
    np.testing.assert_allclose(shapes.convex_hull.area, shapes.area, rtol=1e-6)
    for shape in shapes:
        xy = shapely.get_coordinates(shape) - [grid.xmin, grid.ymin]
        assert np.hypot(*(xy[:, None] - xy[None]).T).max() < longest


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("plan", [PLAIN, SHAPES, JOINED], ids=["sizes", "patterns", "joined"])
def test_the_counts_are_those_of_the_published_regions_on_every_grid(name, plan, monkeypatch):
    grid = GRIDS[name]
    fix_strategy(monkeypatch, plan)
    for ratio in (0.5, 1, 2.5, 4) if plan is PLAIN else (1, 2, 3):
        longest = float(ratio * grid.cell_size)
        release = study(grid=grid, max_diameter=longest)
        assert_is_the_histogram_of_its_bodies(release)


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_counts_are_those_of_the_published_regions_at_every_bound(ratio):
    """With the strategy the mechanism itself chooses, and a bound beyond the grid."""
    for epsilon in (0.3, 20):
        release = study(max_diameter=float(ratio), epsilon=epsilon)
        assert_is_the_histogram_of_its_bodies(release)
        assert (release.counts >= 0).all()
        found = dpr.paper.inconsistency(release.counts)
        assert found.negative == found.non_monotone == 0
        assert dpr.paper.violations(release.counts) == {"C1": 0, "C2": 0, "C3": 0}


def test_just_above_a_whole_number_of_cells_the_bodies_still_fit():
    step = 1 / (1 << 20)
    for over in (1, 8, 16, 32):
        release = study(max_diameter=2 + over * step)
        assert_is_the_histogram_of_its_bodies(release)


def test_only_what_is_asked_for_is_published():
    regions = study().to_regions()
    assert list(regions.columns) == ["geometry"]
    assert list(regions.index) == list(range(len(regions)))


def test_published_regions_can_be_released_again():
    first = study()
    again = study(first.to_regions(), epsilon=10**12)
    assert again.count(*UNIT_GRID.bounds) == first.count(*UNIT_GRID.bounds)


def test_an_empty_release_publishes_no_regions(monkeypatch):
    fix_strategy(monkeypatch, PLAIN)
    release = study([], epsilon=10**6)
    assert (release.counts == 0).all()
    assert len(release.to_regions()) == 0
    assert release.to_regions().geometry.name == "geometry"


def test_where_floats_are_too_coarse_for_the_lattice_to_regions_says_so():
    release = study(grid=dpr.Grid(1e12, 1e12, 1, 4, 4))
    assert release.count(*release.grid.bounds) > 0
    with pytest.raises(InputError, match="too coarse"):
        release.to_regions()


def test_the_papers_release_has_no_regions_and_says_why():
    with pytest.raises(PrivacyError, match=r"histogram of no set of regions.*method='footprint'"):
        study(method="paper").to_regions()


def test_regions_over_thirteen_cells_work():
    grid = dpr.Grid(0, 0, 0.16, 20, 20)
    release = study(grid=grid, max_diameter=2.0)
    assert math.ceil(2 / 0.16) == 13
    assert release.bodies.catalogue.side == 14
    again = dpr.EulerHistogram.from_regions(release.to_regions(), grid, max_diameter=2.0)
    np.testing.assert_array_equal(again.counts, release.counts)


def test_a_large_grid_works():
    grid = dpr.Grid(0, 0, 1, 128, 128)
    regions = town(grid, 2, n=20_000)
    release = study(regions, grid)
    again = dpr.EulerHistogram.from_regions(release.to_regions(), grid)
    np.testing.assert_array_equal(again.counts, release.counts)
    truth = dpr.EulerHistogram.from_regions(regions, grid, max_diameter=2)
    half = 0, 0, 64, 128
    assert release.count(*half) == pytest.approx(truth.count(*half), rel=0.1)


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
from dpregions import footprint
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


# Covert releases, estimates, errors


def test_a_covert_release_holds_nothing_signed():
    open_release, covert = study(), study(covert=True)
    np.testing.assert_array_equal(covert.counts, open_release.counts)
    assert covert.signed is None
    assert covert.measurements is None
    assert covert.count(0, 0, 3, 3) == open_release.count(0, 0, 3, 3)
    assert_is_the_histogram_of_its_bodies(covert)
    for array in vars(covert.bodies).values():
        if isinstance(array, np.ndarray):
            assert array.dtype == np.int64 and (array >= 0).all()
    assert set(covert._tables) == {"counts"}
    # Nor does a pickle of it: no noisy measurement is among its bytes.
    held = pickle.dumps(covert)
    for values in open_release.measurements.measured.values:
        if values is not None and values.size > 1:
            assert values.tobytes() not in held
            assert values.astype(np.int64).tobytes() not in held
    assert open_release.signed.tobytes() not in held
    assert covert.describe() == open_release.describe()


@pytest.mark.parametrize("method", ["footprint", "paper"])
@pytest.mark.parametrize("ask", ["estimate", "interval", "expected_error"])
def test_a_covert_release_refuses_what_needs_signed_measurements(ask, method):
    covert = study(covert=True, method=method)
    with pytest.raises(PrivacyError, match="covert=False"):
        getattr(covert, ask)(0, 0, 1, 1)


@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_estimates_intervals_and_errors_come_in_the_form_of_the_query(method):
    release = study(method=method)
    boxes = geopandas.GeoSeries(
        [shapely.box(0, 0, 2, 2), shapely.box(1, 1, 4, 3)], index=pd.Index(["a", "b"])
    )
    arrays = [boxes.bounds[name].to_numpy() for name in ("minx", "miny", "maxx", "maxy")]
    low, high = release.interval(*arrays)
    errors = release.expected_error(*arrays)
    frame, table = release.interval(boxes), release.expected_error(boxes)
    assert list(frame.columns) == ["low", "high"]
    assert list(table.columns) == ["noise", "shape", "total"]
    assert list(frame.index) == list(table.index) == ["a", "b"]
    np.testing.assert_array_equal(frame["low"], low)
    np.testing.assert_array_equal(table["total"], errors.total)
    for i, box in enumerate(boxes):
        assert release.interval(box) == (low[i], high[i])
        assert release.expected_error(*box.bounds).noise == errors.noise[i]
        assert release.estimate(*box.bounds) == release.estimate(boxes).iloc[i]
    assert isinstance(release.expected_error(0, 0, 1, 1).total, float)
    np.testing.assert_allclose(np.hypot(errors.noise, errors.shape), errors.total)
    assert (errors.noise > 0).all()
    if method == "paper":
        assert (errors.shape == 0).all()


def test_the_whole_area_has_no_shape_error_and_patterns_have_none_anywhere(monkeypatch):
    fix_strategy(monkeypatch, PLAIN)
    release = study()
    assert release.expected_error(*UNIT_GRID.bounds).shape == pytest.approx(0, abs=1e-6)
    assert release.expected_error(1, 1, 3, 3).shape > 0.1
    fix_strategy(monkeypatch, SHAPES)
    assert study().expected_error(1, 1, 3, 3).shape == 0


def test_intervals_grow_with_confidence_and_never_reach_below_zero():
    release = study()
    widths = []
    for confidence in (0.5, 0.9, 0.95, 0.999):
        low, high = release.interval(0, 0, 5, 2, confidence=confidence)
        assert 0 <= low <= max(release.estimate(0, 0, 5, 2), 0) <= high
        widths.append(high - low)
    assert widths == sorted(widths)
    nearly_empty = study([])
    assert nearly_empty.interval(0, 0, 1, 1)[0] == 0


def test_the_expected_error_is_what_errors_are(monkeypatch):
    """The noise part, over many releases, at rectangles of several sizes."""
    fix_strategy(monkeypatch, BLOCKS)
    regions = town(UNIT_GRID, 1, n=400)
    bounds = np.array([(0, 0, 1, 1), (1, 1, 4, 3), (0, 0, 5, 4)], float).T
    noise = StudyNoise(5)
    releases = [study(regions, noise=noise, max_diameter=1) for _ in range(250)]
    estimates = np.array([release.estimate(*bounds) for release in releases])
    spread = np.abs(estimates - estimates.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(spread, releases[0].expected_error(*bounds).noise, rtol=0.2)


def test_the_estimate_is_unbiased_but_for_shape(monkeypatch):
    fix_strategy(monkeypatch, SHAPES)
    regions = town(UNIT_GRID, 1, n=100)
    exact = dpr.EulerHistogram.from_regions(regions, UNIT_GRID, max_diameter=1)
    noise, n = StudyNoise(6), 300
    total = sum(study(regions, noise=noise, max_diameter=1).signed for _ in range(n))
    # A component's estimate has a standard deviation below 12; of the mean, below 0.7.
    np.testing.assert_allclose(total / n, exact.counts, atol=3.5)


# Workloads, and what is refused


@pytest.mark.parametrize(
    ("workload", "error", "words"),
    [
        ([6], InputError, "only 4 x 5"),
        ([(1, 5)], InputError, "only 4 x 5"),
        ([(5, 4), (6, 1)], InputError, "1 x 6 cells"),
        ([0], InputError, "greater than 0"),
        ([-1], InputError, "greater than 0"),
        ([math.nan], InputError, "finite"),
        ([math.inf], InputError, "finite"),
        (["2km"], CRSError, "without a CRS"),
        ([], InputError, "sequence of sizes"),
        ("2km", InputError, "sequence of sizes"),
        (2, InputError, "sequence of sizes"),
        ({"small": 1}, InputError, "sequence of sizes"),
        ([None], InputError, "a side or a pair"),
        ([(1, 2, 3)], InputError, "a side or a pair"),
        ([(1,)], InputError, "a side or a pair"),
        ([{1, 2}], InputError, "a side or a pair"),
        ([(1, None)], InputTypeError, "must be a number"),
        ([True], InputTypeError, "must be a number"),
    ],
)
def test_a_workload_that_cannot_be_is_refused_before_noise(workload, error, words):
    with pytest.raises(error, match=words):
        study(noise=Untouched(), workload=workload)
    with pytest.raises(error, match=words):
        dpr.release([], UNIT_GRID, epsilon=1, max_diameter=2, user_id=None, workload=workload)


def test_the_papers_mechanism_takes_no_workload():
    with pytest.raises(InputError, match="workload is for method='footprint'"):
        study(noise=Untouched(), workload=[1], method="paper")


def test_a_workload_reaches_the_choice_and_its_release_keeps_every_promise(monkeypatch):
    asked = []

    def remember(*arguments, **public):
        asked.append(public["sizes"])
        return choose(*arguments, **public)

    monkeypatch.setattr(footprint, "choose", remember)
    release = study(workload=[1, (5, 4)])
    assert asked == [[(1, 1), (4, 5)]]
    assert_is_the_histogram_of_its_bodies(release)
    assert sum(budget.epsilon for _, budget in release.spending) == 1


@pytest.mark.parametrize(
    ("grid", "max_diameter", "number"),
    [
        (dpr.Grid(0, 0, 1, 4000, 4000), 2, "143,928,009"),
        (dpr.Grid(0, 0, 1, 100, 100), 90, "25,050,025"),
        (dpr.Grid(0, 0, 1, 1000, 1000), 1e6, "250,500,250,000"),
    ],
)
def test_too_many_buckets_are_refused_before_noise_with_their_number_and_the_remedy(
    grid, max_diameter, number
):
    with pytest.raises(PrivacyError, match=r"larger cells.*smaller max_diameter") as refused:
        study([], grid, noise=Untouched(), max_diameter=max_diameter)
    assert number in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 1e-6}, "larger epsilon"),
        ({"epsilon": 1e-13}, "larger epsilon"),
        ({"max_diameter": 1e-6}, "smaller cells or a larger max_diameter"),
    ],
)
def test_what_leaves_no_answer_is_refused_before_noise(changes, words):
    with pytest.raises(PrivacyError, match=words):
        study(noise=Untouched(), **changes)


@pytest.mark.parametrize("epsilon", [1e3, 1e6, 10**15])
def test_a_large_epsilon_is_no_division_by_zero(epsilon):
    regions = town(UNIT_GRID, 2)
    exact = dpr.EulerHistogram.from_regions(regions, UNIT_GRID, max_diameter=2)
    for data in (regions, []):
        release = study(data, epsilon=epsilon)
        assert np.isfinite(release.signed).all()
        low, high = release.interval(*UNIT_GRID.bounds)
        truth = exact.count(*UNIT_GRID.bounds) if len(data) else 0
        assert release.count(*UNIT_GRID.bounds) == truth
        assert low - 1e-3 <= truth <= high + 1e-3


@pytest.mark.parametrize("epsilon", [0.01, 0.0001])
def test_a_small_epsilon_is_noise_and_nothing_breaks(epsilon):
    release = study(epsilon=epsilon, noise=StudyNoise(3))
    found = dpr.paper.inconsistency(release.counts)
    assert found.negative == found.non_monotone == 0
    assert np.isfinite(release.signed).all()


# What the software says of itself


def test_describe_lists_what_was_measured_with_its_share_and_scale():
    release = study(epsilon=0.5)
    text = release.describe()
    for what, budget in release.spending:
        assert f"{what} with epsilon {budget}, noise of scale {scale_for(budget, 1):g}" in text
    assert "method 'footprint'" in text
    assert "empty ones too" in text


# The audit: the vector of noisy measurements, captured where noise is added

AUDIT_GRID = dpr.Grid(0, 0, 1, 2, 2)
ALONE = [shapely.Point(0.5, 0.5)] * 3
ADDED = [*ALONE, shapely.Point(1.5, 1.5)]
REPLACED = [shapely.Point(1.5, 1.5), *ALONE[1:]]


class Capturing:
    """Adds many draws at once: what each of so many runs would have measured."""

    private = False
    label = "captured"

    def __init__(self, seed: int, draws: int, charge=lambda level, epsilon: epsilon) -> None:
        self.noise, self.draws, self.seen, self.charge = StudyNoise(seed), draws, [], charge

    def add(self, values, *, epsilon, sensitivity):
        epsilon = self.charge(len(self.seen), epsilon)
        stacked = np.broadcast_to(values, (self.draws, *values.shape))
        noisy = self.noise.add(stacked, epsilon=epsilon, sensitivity=sensitivity)
        self.seen.append(noisy.reshape(self.draws, -1))
        return noisy[0]


def exact_measurements(regions, **changes) -> np.ndarray:
    spy = Spy(0)
    study(regions, AUDIT_GRID, noise=spy, max_diameter=1, **changes)
    return np.concatenate([values.ravel() for values, *_ in spy.asked])


def measuring(seed: int, charge=lambda level, epsilon: epsilon, **changes):
    """The mechanism under audit: regions in, that many vectors of noisy measurements out."""
    seeds = iter(range(seed, seed + 10**6))

    def run(regions, draws):
        noise = Capturing(next(seeds), draws, charge)
        study(regions, AUDIT_GRID, noise=noise, max_diameter=1, **changes)
        return np.concatenate(noise.seen, axis=1)

    return run


AUDITED = {
    "add-remove": (ALONE, ADDED),
    "replace-one": (ALONE, REPLACED),
}


@pytest.mark.parametrize("claim", [1, 4])
@pytest.mark.parametrize("neighbours", AUDITED)
@pytest.mark.parametrize("plan", [PLAIN, BLOCKS], ids=["plain", "blocks"])
def test_the_measurements_together_leak_at_most_the_claim(plan, neighbours, claim, monkeypatch):
    fix_strategy(monkeypatch, plan)
    pair = AUDITED[neighbours]
    changes = {"epsilon": claim, "neighbours": neighbours}
    expected = tuple(exact_measurements(regions, **changes) for regions in pair)
    found = audit(measuring(100, **changes), *pair, expected, draws=200_000)
    assert found <= claim
    # Not vacuous. Replacing one region does not move the total: its share is not seen.
    assert found > (0.6 if neighbours == "add-remove" else 0.4) * claim


def test_the_audited_neighbours_are_as_far_apart_as_they_can_be(monkeypatch):
    fix_strategy(monkeypatch, PLAIN)
    alone, added, replaced = (exact_measurements(r) for r in (ALONE, ADDED, REPLACED))
    assert np.abs(alone - added).tolist().count(1) == 2  # the total and one bucket
    assert np.abs(alone - replaced).sum() == 2


def test_mutant_with_a_total_that_is_not_charged_is_caught_by_the_audit(monkeypatch):
    """The total measured with the whole epsilon on top of the buckets' share.

    `test_shares_of_the_budget_sum_to_it_exactly` catches it too, by what the noise was asked.
    """
    fix_strategy(monkeypatch, PLAIN)
    expected = tuple(exact_measurements(regions) for regions in (ALONE, ADDED))
    run = measuring(200, charge=lambda level, epsilon: epsilon if level else Budget(1))
    assert audit(run, ALONE, ADDED, expected, draws=200_000) > 1.2


def test_mutant_with_a_region_in_two_buckets_is_caught_by_the_audit(monkeypatch):
    """`test_neighbours_move_each_measurement_by_no_more_than_its_sensitivity` catches it too."""
    fix_strategy(monkeypatch, PLAIN)
    once = Buckets.numbers

    def twice(self, regions):
        numbers = once(self, regions)
        return np.concatenate([numbers, (numbers + 4) % len(self)])

    monkeypatch.setattr(Buckets, "numbers", twice)
    expected = tuple(exact_measurements(regions) for regions in (ALONE, ADDED))
    assert np.abs(expected[0] - expected[1]).sum() == 3
    assert audit(measuring(300), ALONE, ADDED, expected, draws=200_000) > 1.2


def test_mutant_with_an_exact_total_is_caught_by_the_audit(monkeypatch):
    fix_strategy(monkeypatch, PLAIN)
    expected = tuple(exact_measurements(regions) for regions in (ALONE, ADDED))
    run = measuring(400, charge=lambda level, epsilon: epsilon if level else Budget(50))
    assert audit(run, ALONE, ADDED, expected) > 5


# Intervals hold the true count


@cache
def city():
    grid = dpr.synthetic.grid(side="12km")
    regions = dpr.synthetic.regions(3000)
    exact = dpr.EulerHistogram.from_regions(regions, grid, user_id="user_id", max_diameter="2km")
    return regions, grid, exact


def placements(grid: dpr.Grid, each: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Rectangles of every default size, placed at random: their bounds and their size class."""
    cells, size = [], []
    for i, (h, w) in enumerate(default_sizes(*grid.shape)):
        for _ in range(each if (h, w) != grid.shape else 1):
            row, col = rng.integers(0, grid.n_rows - h + 1), rng.integers(0, grid.n_cols - w + 1)
            cells.append(grid.cell_bounds(row, row + h - 1, col, col + w - 1))
            size.append(i)
    return np.array(cells).T, np.array(size)


def coverage(epsilon: float, n: int, seed: int) -> pd.DataFrame:
    """Ask many releases: a row a query, whether its interval held the truth, how wide it was."""
    regions, grid, exact = city()
    bound = Bound.of(grid, "2km", "shrink")
    outlines = outlines_of(np.asarray(regions.geometry.array, object), regions.crs, grid, bound)
    noise, rng = StudyNoise(seed), np.random.default_rng(seed)
    public = {"budget": Budget(epsilon), "neighbours": "add-remove", "noise": noise}
    rows = []
    for _ in range(n):
        steps = footprint.run([outlines], grid, bound, **public)
        release = dataclasses.replace(
            template(), counts=steps.counts, signed=steps.signed, measurements=steps.measurements
        )
        bounds, size = placements(grid, 2 if n >= 500 else 6, rng)
        truth = exact.count(*bounds)
        low, high = release.interval(*bounds)
        error = release.expected_error(*bounds)
        held, by_noise = (low <= truth) & (truth <= high), error.noise > 0.5 * error.total
        rows.append(
            pd.DataFrame({"size": size, "held": held, "noisy": by_noise, "width": high - low})
        )
    return pd.concat(rows)


@cache
def template() -> Release:
    regions, grid, _ = city()
    return release_with(StudyNoise(0), regions, grid, epsilon=1, max_diameter="2km")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "n", "plan"), [(1, 500, BLOCKS), (4, 120, PLAIN), (0.2, 80, BLOCKS)]
)
def test_intervals_hold_the_true_count_as_often_as_they_say(epsilon, n, plan, monkeypatch):
    """At every size class: 93 % at least, and not much too wide where noise makes the width.

    The smaller runs allow for their own chance error, the one of 500 releases does not.
    """
    fix_strategy(monkeypatch, plan)
    found = coverage(epsilon, n, seed=7)
    for size, asked in found.groupby("size"):
        noisy = asked[asked["noisy"]]
        print(
            f"epsilon {epsilon}, size class {size}: held {asked['held'].mean():.3f}, where noise "
            f"rules {noisy['held'].mean():.4f} of {asked['noisy'].mean():.2f}, mean width "
            f"{asked['width'].mean():.1f}"
        )
        slack = 0 if n >= 500 else 3 * (0.05 / n) ** 0.5
        assert asked["held"].mean() >= 0.93 - slack
        assert len(noisy) < 500 or noisy["held"].mean() <= 0.995
