"""The footprint mechanism: what it releases is the histogram of bodies, and what it refuses."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import geopandas
import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import CRSError, InputError, InputTypeError, PrivacyError
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.footprint.choice import choose
from dpregions.mechanisms.footprint.measuring import Measurement, Strategy
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.mechanisms.footprint.workload import Workload
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.published import Release
from support.footprint_releases import JOINED, PLAIN, SHAPES, UNIT_GRID, study, town
from support.watched_noise import Spy, Untouched

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
def test_the_counts_are_those_of_the_published_regions_on_every_grid(name, plan):
    grid = GRIDS[name]
    for ratio in (0.5, 1, 2.5, 4) if plan is PLAIN else (1, 2, 3):
        longest = float(ratio * grid.cell_size)
        release = study(grid=grid, max_diameter=longest, strategy=plan)
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


def test_an_empty_release_publishes_no_regions():
    release = study([], epsilon=10**6, strategy=PLAIN)
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
    assert release.outcome.bodies.catalogue.side == 14
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


# Covert releases


def test_a_covert_release_holds_nothing_signed():
    open_release, covert = study(), study(covert=True)
    np.testing.assert_array_equal(covert.counts, open_release.counts)
    assert covert.signed is None
    assert covert.outcome.reading is None
    assert covert.outcome.strategy is None
    assert covert.count(0, 0, 3, 3) == open_release.count(0, 0, 3, 3)
    assert_is_the_histogram_of_its_bodies(covert)
    for array in vars(covert.outcome.bodies).values():
        if isinstance(array, np.ndarray):
            assert array.dtype == np.int64 and (array >= 0).all()
    assert "signed_table" not in vars(covert.outcome)
    # Nor does a pickle of it: no noisy measurement is among its bytes.
    held = pickle.dumps(covert)
    for values, _ in open_release.outcome.reading.measured.noisy.values():
        if values.size > 1:
            assert values.tobytes() not in held
            assert values.astype(np.int64).tobytes() not in held
    assert open_release.signed.tobytes() not in held
    said, open_said = (made.describe().splitlines() for made in (covert, open_release))
    assert said == [line for line in open_said if not line.startswith("Intervals: ")]
    assert len(said) == len(open_said) - 1


@pytest.mark.parametrize("method", ["footprint", "paper"])
@pytest.mark.parametrize("ask", ["estimate", "interval", "expected_error"])
def test_a_covert_release_refuses_what_needs_signed_measurements(ask, method):
    covert = study(covert=True, method=method)
    with pytest.raises(PrivacyError, match="covert=False"):
        getattr(covert, ask)(0, 0, 1, 1)


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


def test_what_is_favoured_is_one_of_two_words():
    with pytest.raises(InputError, match="'people' or 'places'"):
        study(noise=Untouched(), favour="money")
    with pytest.raises(InputError, match="favour is for method='footprint'"):
        study(noise=Untouched(), favour="places", method="paper")


def test_the_papers_mechanism_takes_no_workload():
    with pytest.raises(InputError, match="workload is for method='footprint'"):
        study(noise=Untouched(), workload=[1], method="paper")


def test_a_workload_reaches_the_choice_and_its_release_keeps_every_promise():
    bound, workload = Bound.of(UNIT_GRID, 2, "shrink"), [1, (5, 4)]
    prepared = Footprint(workload=workload).prepare(UNIT_GRID, bound, Budget(1), "add-remove")
    assert prepared.workload == Workload(((1, 1), (4, 5)))
    spy = Spy(1)
    release = study(town(UNIT_GRID, 2, n=45), workload=workload, noise=spy)
    *_, (total,) = spy.asked[0]
    public = {"epsilon": 0.75, "spent": 0.25, "n_regions": float(total)}
    chosen = choose(prepared.known, 4, 5, workload=prepared.workload, **public)
    assert release.outcome.strategy == chosen
    assert release.laid_out_for == (
        "rectangles of 1 x 1, 4 x 5 (rows x columns of cells), where people are and everywhere"
    )
    assert release.laid_out_for in release.describe()
    assert_is_the_histogram_of_its_bodies(release)
    assert sum(budget.epsilon for _, budget in release.spending) == 1


@pytest.mark.parametrize(
    ("grid", "max_diameter", "strategy", "number"),
    [
        (dpr.Grid(0, 0, 1, 4000, 4000), 2, PLAIN, "143,928,009"),
        (dpr.Grid(0, 0, 1, 100, 100), 90, PLAIN, "25,050,025"),
        (dpr.Grid(0, 0, 1, 100, 100), 90, None, "91 cells wide, more than 65"),
        (dpr.Grid(0, 0, 1, 1000, 1000), 1e6, None, "1000 cells wide, more than 65"),
    ],
)
def test_too_many_buckets_or_too_wide_ones_are_refused_before_noise_with_the_remedy(
    grid, max_diameter, strategy, number
):
    """Too many where a strategy lists them all: a tree lists none but those it opens."""
    with pytest.raises(PrivacyError, match=r"larger cells.*smaller max_diameter") as refused:
        study([], grid, noise=Untouched(), max_diameter=max_diameter, strategy=strategy)
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


def strategy_of(*measurements, alphabet="sizes"):
    return Strategy(alphabet, tuple(Measurement(*one) for one in measurements))


@pytest.mark.parametrize(
    ("method", "grid", "words"),
    [
        (Footprint(strategy=strategy_of((3, "all", 1), (2, "all", 1), (1, "letters", 1))), 6,
         "do not refine"),
        (Footprint(strategy=strategy_of((1, "letters", 1), alphabet="patterns")), 400, "cells"),
        (Footprint(tuning=replace(TUNING, bodies_per_spot=0)), 6, "tuning"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_before_the_debit(method, grid, words, ledger):
    ledger.create("city", 1, unit="record")
    paid = {"user_id": None, "ledger": ledger, "dataset": "city"}
    area = dpr.Grid(0, 0, 1, grid, grid)
    with pytest.raises(PrivacyError, match=words):
        dpr.release(
            [shapely.box(1, 1, 2, 2)], area, epsilon=1, max_diameter=2, method=method, **paid
        )
    assert ledger.account("city").spent == 0


def test_a_strategy_or_a_tuning_of_another_kind_is_refused():
    for wrong in ({"strategy": "sizes"}, {"tuning": None}):
        with pytest.raises(InputTypeError, match="must be a"):
            Footprint(**wrong)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-07])
def test_a_hopeless_epsilon_is_refused_by_the_number_that_was_given(epsilon):
    grid = dpr.Grid(0, 0, 1, n_rows=4, n_cols=4)
    with pytest.raises(PrivacyError, match=f"epsilon = {epsilon}, of which .* is for the number"):
        dpr.release([], grid, epsilon=epsilon, max_diameter=2, user_id=None)
