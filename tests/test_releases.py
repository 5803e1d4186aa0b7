"""Releases: what they hold and hide, what they answer, whom they count, what they refuse."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from fractions import Fraction
from itertools import combinations, product

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy.stats import binom

import dpregions as dpr
from dpregions.errors import (
    ApproximateCountWarning,
    CRSError,
    InputError,
    InputTypeError,
    OutsideAreaWarning,
    PrivacyError,
    QueryError,
    SettingWarning,
)
from dpregions.ledger import Ledger
from dpregions.noise_law import sum_half_width, sum_tail
from dpregions.privacy import Budget, PrivacyUnit, SystemNoise, scale_for
from dpregions.queries import signed_table
from dpregions.releases import METHODS, Release
from dpregions.releasing import Terms, release_with
from dpregions.study.noise import StudyNoise
from watched_noise import Spy, Untouched

GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
HARDLY_ANY_NOISE = 10**15  # an epsilon at which every draw is 0: shows who was counted


def town(n: int = 60, seed: int = 0) -> geopandas.GeoDataFrame:
    """Boxes of up to 1.2 by 1.2 cells, one a user, some of them partly outside."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-0.5, 4.5, (2, n))
    width, height = rng.uniform(0.1, 1.2, (2, n))
    boxes = shapely.box(x, y, x + width, y + height)
    return geopandas.GeoDataFrame({"user_id": np.arange(n)}, geometry=boxes)


def study(regions=None, grid=GRID, *, noise=None, **changes) -> Release:
    """A release with seeded noise."""
    arguments = {"epsilon": 1, "max_diameter": 2} | changes
    regions = town() if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, grid, **arguments)


def paper_study(regions=None, grid=GRID, **changes) -> Release:
    """A release by the paper's mechanism, with seeded noise."""
    return study(regions, grid, method="paper", **changes)


def scale_of(release: Release) -> float:
    """The scale of the noise on every component, for the paper's mechanism."""
    assert release.method == "paper"
    return scale_for(release.budget, release.sensitivity)


def euler_sum(counts: np.ndarray, row0: int, row1: int, col0: int, col1: int) -> int:
    """Faces - edges + vertices inside a rectangle of cells, one by one."""
    places = product(range(2 * row0, 2 * row1 + 1), range(2 * col0, 2 * col1 + 1))
    return sum((-1) ** (i + j) * int(counts[i, j]) for i, j in places)


def n_components(row0: int, row1: int, col0: int, col1: int) -> int:
    return (2 * (row1 - row0) + 1) * (2 * (col1 - col0) + 1)


# What a release is


@pytest.mark.parametrize(("method", "sensitivity"), [("paper", 25), ("footprint", 1)])
def test_a_release_says_every_public_parameter(method, sensitivity):
    release = dpr.release(town(), GRID, epsilon=0.5, max_diameter=2, method=method)
    assert release.grid == GRID
    assert release.method == method
    assert release.epsilon == 0.5
    assert release.budget == Budget(0.5)
    assert release.neighbours == "add-remove"
    assert release.unit == "user"
    assert release.privacy_unit == PrivacyUnit("add-remove", "user")
    assert release.sensitivity == sensitivity
    assert sum(budget.epsilon for _, budget in release.spending) == Fraction(1, 2)
    assert release.max_diameter == 2
    assert release.oversize == "shrink"
    assert release.version == dpr.__version__
    assert release.private is True
    assert release.noise == SystemNoise.label


def test_the_footprint_mechanism_is_the_default():
    assert dpr.release(town(), GRID, epsilon=1, max_diameter=2).method == "footprint"


def test_the_papers_release_spends_everything_on_all_components():
    release = paper_study()
    assert release.spending == (("all 63 components", Budget(1)),)
    assert release.bodies is None
    assert release.measurements is None


def test_a_release_holds_whole_numbers_and_those_published_obey_the_constraints():
    release = dpr.release(town(), GRID, epsilon=1, max_diameter=2, method="paper")
    for array in (release.counts, release.signed):
        assert array.dtype == np.int64
        assert array.shape == GRID.doubled_shape
    assert (release.counts >= 0).all()
    assert (release.signed < 0).any()
    assert dpr.paper.violations(release.counts) == {"C1": 0, "C2": 0, "C3": 0}
    np.testing.assert_array_equal(release.counts, dpr.paper.post_process(release.signed).counts)


@pytest.mark.parametrize("method", METHODS)
def test_two_releases_of_the_same_data_differ(method):
    first, second = (
        dpr.release(town(), GRID, epsilon=1, max_diameter=2, method=method) for _ in range(2)
    )
    assert (first.signed != second.signed).any()


def restored(release: Release) -> list[Release]:
    return [
        release,
        copy.copy(release),
        copy.deepcopy(release),
        pickle.loads(pickle.dumps(release)),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_a_release_cannot_be_changed_nor_can_a_copy_of_it(method):
    for release in restored(study(method=method)):
        for field in dataclasses.fields(release):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(release, field.name, None)
        for array in (release.counts, release.signed):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0] = 1


@pytest.mark.parametrize("method", METHODS)
def test_a_copy_answers_as_the_release_does(method):
    first, *others = restored(study(method=method))
    for other in others:
        assert other.describe() == first.describe()
        assert other.interval(0, 0, 3, 2) == first.interval(0, 0, 3, 2)
        np.testing.assert_array_equal(other.counts, first.counts)


def test_a_release_does_not_share_its_arrays_with_whoever_made_them():
    first = study()
    counts = first.counts.copy()
    other = dataclasses.replace(first, counts=counts)
    counts[:] = 7
    np.testing.assert_array_equal(other.counts, first.counts)


def test_arrays_of_another_grid_are_refused():
    with pytest.raises(InputError, match=r"counts must have shape \(7, 9\)"):
        dataclasses.replace(study(), counts=np.zeros((3, 3), int))


def test_a_study_takes_the_defaults_of_a_release():
    public = inspect.signature(dpr.release).parameters
    private = inspect.signature(Terms).parameters
    assert private.keys() == public.keys() - {"regions", "user_id", "ledger", "dataset"}
    assert all(public[name].default == terms.default for name, terms in private.items())
    ids = inspect.signature(release_with).parameters["user_id"]
    assert ids.default == public["user_id"].default


def test_the_public_function_takes_neither_seed_nor_noise():
    names = set(inspect.signature(dpr.release).parameters)
    assert names == {
        "regions",
        "grid",
        "epsilon",
        "max_diameter",
        "method",
        "neighbours",
        "user_id",
        "oversize",
        "workload",
        "covert",
        "crs",
        "ledger",
        "dataset",
    }
    for name in ("seed", "noise", "rng", "random_state"):
        with pytest.raises(TypeError, match=name):
            dpr.release(town(), GRID, epsilon=1, max_diameter=2, **{name: 1})


# What it hides


def parts_of(value: object, seen: set[int] | None = None):
    """Yield a value and everything reachable from it through attributes and containers."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        inner = list(value)
    elif isinstance(value, np.ndarray):
        inner = [] if value.base is None else [value.base]
    else:
        inner = [*getattr(value, "__dict__", {}).values()]
    for part in inner:
        yield from parts_of(part, seen)


@pytest.mark.parametrize("method", METHODS)
def test_a_release_holds_nothing_exact(method):
    regions = town(400)
    exact = dpr.EulerHistogram.from_regions(regions, GRID, user_id="user_id", max_diameter=2)
    secrets = [exact.counts, signed_table(exact.counts), exact.faces, np.asarray(regions.geometry)]
    release = dpr.release(regions, GRID, epsilon=1, max_diameter=2, method=method)
    for whole in (release, pickle.loads(pickle.dumps(release))):
        parts = list(parts_of(whole))
        assert any(part is whole.counts for part in parts)
        assert not any(isinstance(part, dpr.EulerHistogram) for part in parts)
        assert not any(isinstance(part, geopandas.GeoDataFrame) for part in parts)
        for array in (part for part in parts if isinstance(part, np.ndarray)):
            assert not any(np.array_equal(array, secret) for secret in secrets)
        # Whole numbers of the catalogue and the levels may be anything; they are public.
        public = list(parts_of([whole.bodies, whole.measurements]))
        held = [part for part in parts if not any(part is known for known in public)]
        assert not any(isinstance(part, int) and part == 400 for part in held)
    assert exact.counts.tobytes() not in pickle.dumps(release)


def test_what_a_release_says_does_not_depend_on_the_data():
    few, many = paper_study(town(3)), paper_study(town(500))
    assert few.describe() == many.describe()
    assert repr(few) == repr(many)


def test_secret_and_released_do_not_turn_into_each_other():
    exact = dpr.EulerHistogram.from_regions(town(), GRID)
    assert not isinstance(exact, Release)
    with pytest.raises(TypeError):
        exact + study()
    with pytest.raises(InputTypeError, match="got EulerHistogram"):
        dpr.release(exact, GRID, epsilon=1, max_diameter=2)


# What it says


def test_describe_says_relation_unit_epsilon_and_sensitivity_in_words():
    text = dpr.release(
        town(), GRID, epsilon=0.5, max_diameter=2, neighbours="replace-one", method="paper"
    ).describe()
    for words in (
        "epsilon = 0.5",
        "pure differential privacy",
        "replace-one, unit = user",
        "one user's data replaced by any other, or moved away",
        "at most 50 (L1)",
        "diameter at most 2.0 units (longer ones shrunk to it)",
        "all 63 components with epsilon 0.5, noise of scale 100",
        repr(GRID),
        dpr.__version__,
        "Not promised",
    ):
        assert words in text
    assert "NOT PRIVATE" not in text


def test_describe_follows_the_unit_the_relation_and_the_rule_for_long_regions():
    text = paper_study(user_id=None, oversize="drop").describe()
    assert "add-remove, unit = record" in text
    assert "one record more or fewer" in text
    assert "one region a record" in text
    assert "longer ones left out" in text
    assert "at most 25 (L1)" in text


def test_a_study_release_is_stamped_not_private_wherever_it_is_shown():
    release = study()
    assert release.private is False
    assert "NOT PRIVATE" in repr(release)
    assert "NOT PRIVATE" in release.describe()
    assert "do not publish" in release.describe()
    assert "seeded" in release.noise
    assert "NOT PRIVATE" not in repr(dpr.release(town(), GRID, epsilon=1, max_diameter=2))


@pytest.mark.parametrize("method", METHODS)
def test_a_study_release_repeats_with_its_seed(method):
    first, again, other = (study(noise=StudyNoise(seed), method=method) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.counts, again.counts)
    np.testing.assert_array_equal(first.signed, again.signed)
    assert (first.signed != other.signed).any()


# Answers, in every form of query

ROW0, ROW1, COL0, COL1 = np.array([[0, 0, 1, 3], [0, 3, 2, 3], [0, 0, 2, 4], [0, 4, 3, 4]])
RECTANGLES = list(zip(ROW0.tolist(), ROW1.tolist(), COL0.tolist(), COL1.tolist(), strict=True))
BOUNDS = COL0, ROW0, COL1 + 1, ROW1 + 1  # unit cells from 0: their coordinates


def expected(release: Release, name: str) -> list[int]:
    return [euler_sum(getattr(release, name), *cells) for cells in RECTANGLES]


def expected_intervals(release: Release, confidence: float) -> tuple[list[int], list[int]]:
    low, high = [], []
    for cells, middle in zip(RECTANGLES, expected(release, "signed"), strict=True):
        width = sum_half_width(n_components(*cells), scale_of(release), confidence)
        low.append(max(middle - width, 0))
        high.append(max(middle + width, 0))
    return low, high


def test_four_numbers_give_a_number_and_a_pair_of_numbers():
    release = paper_study()
    low, high = expected_intervals(release, 0.95)
    for i, bounds in enumerate(zip(*(b.tolist() for b in BOUNDS), strict=True)):
        for bounds_as in (bounds, tuple(map(float, bounds)), tuple(map(np.int64, bounds))):
            count, estimate = release.count(*bounds_as), release.estimate(*bounds_as)
            assert type(count) is type(estimate) is int
            assert count == expected(release, "counts")[i]
            assert estimate == expected(release, "signed")[i]
            interval = release.interval(*bounds_as)
            assert type(interval) is tuple
            assert [type(end) for end in interval] == [int, int]
            assert interval == (low[i], high[i])


def test_four_arrays_give_arrays_of_their_shape_and_pairs_of_them():
    release = paper_study()
    for shape in ((4,), (2, 2), (4, 1)):
        bounds = [b.reshape(shape) for b in BOUNDS]
        for answers, name in (
            (release.count(*bounds), "counts"),
            (release.estimate(*bounds), "signed"),
        ):
            assert answers.dtype == np.int64
            assert answers.shape == shape
            assert answers.ravel().tolist() == expected(release, name)
        interval = release.interval(*bounds, confidence=0.8)
        assert type(interval) is tuple
        for ends, wanted in zip(interval, expected_intervals(release, 0.8), strict=True):
            assert ends.shape == shape
            assert ends.ravel().tolist() == wanted


def test_a_number_among_arrays_stands_for_every_query():
    release = paper_study()
    answers = release.count(0, 0, np.array([1, 5]), 4)
    assert answers.tolist() == [release.count(0, 0, 1, 4), release.count(0, 0, 5, 4)]


def test_one_geometry_gives_a_number_and_an_array_of_them_an_array():
    release = paper_study()
    boxes = shapely.box(*BOUNDS)
    assert release.count(boxes[2]) == expected(release, "counts")[2]
    assert type(release.estimate(boxes[2])) is int
    assert release.interval(boxes[2]) == tuple(end[2] for end in expected_intervals(release, 0.95))
    assert release.count(boxes).tolist() == expected(release, "counts")
    assert release.interval(boxes)[1].tolist() == expected_intervals(release, 0.95)[1]


@pytest.mark.parametrize("frame", [geopandas.GeoSeries, geopandas.GeoDataFrame])
def test_frames_give_series_and_for_intervals_frames_on_their_index(frame):
    release = paper_study()
    index = pd.Index(["a", "b", "c", "a"], name="place")
    column = geopandas.GeoSeries(shapely.box(*BOUNDS), index=index)
    queries = column if frame is geopandas.GeoSeries else column.to_frame("geometry")
    for answers, name in (
        (release.count(queries), "counts"),
        (release.estimate(queries), "signed"),
    ):
        assert isinstance(answers, pd.Series)
        assert answers.index.equals(index)
        assert answers.tolist() == expected(release, name)
    assert release.count(queries).name == "count"
    assert release.estimate(queries).name == "estimate"
    intervals = release.interval(queries, confidence=0.5)
    assert isinstance(intervals, pd.DataFrame)
    assert intervals.index.equals(index)
    assert list(intervals.columns) == ["low", "high"]
    assert (intervals["low"].tolist(), intervals["high"].tolist()) == expected_intervals(
        release, 0.5
    )


def test_a_query_that_is_no_union_of_cells_is_enlarged_to_those_it_touches():
    release = paper_study()
    assert release.count(1.2, 0.9, 2.1, 1.3) == release.count(1, 0, 3, 2)
    assert release.interval(1.2, 0.9, 2.1, 1.3) == release.interval(1, 0, 3, 2)


def test_an_l_shape_sums_its_own_components_and_says_it_is_approximate():
    release = paper_study()
    shape = shapely.box(0, 0, 3, 1) | shapely.box(0, 0, 1, 3)
    # The two arms share the corner cell, and the L has no inner vertex: 5 faces, 4 edges.
    for name, ask in (("counts", release.count), ("signed", release.estimate)):
        counts = getattr(release, name)
        arms = euler_sum(counts, 0, 0, 0, 2) + euler_sum(counts, 0, 2, 0, 0) - counts[0, 0]
        with pytest.warns(ApproximateCountWarning):
            assert ask(shape) == arms
    with pytest.warns(ApproximateCountWarning):
        low, high = release.interval(shape, confidence=0.9)
    width = sum_half_width(5 + 4, scale_of(release), 0.9)
    assert (low, high) == (max(arms - width, 0), max(arms + width, 0))


def test_outside_the_area_the_answer_is_zero_with_a_warning():
    release = paper_study()
    for ask in (release.count, release.estimate):
        with pytest.warns(OutsideAreaWarning):
            assert ask(50, 50, 60, 60) == 0
    with pytest.warns(OutsideAreaWarning):
        assert release.interval(50, 50, 60, 60) == (0, 0)


def test_queries_in_another_crs_are_reprojected():
    grid = dpr.synthetic.grid(side="4km")
    release = study(dpr.synthetic.regions(50), grid, max_diameter="2km")
    inside = shapely.box(grid.xmin + 1100, grid.ymin + 1100, grid.xmin + 1900, grid.ymin + 2900)
    queries = geopandas.GeoSeries([inside], crs=grid.crs)
    cells = release.count(*grid.cell_bounds(1, 2, 1, 1))
    assert release.count(queries).tolist() == [cells]
    assert release.count(queries.to_crs(4326)).tolist() == [cells]
    assert release.count(inside, crs=grid.crs) == cells
    with pytest.raises(CRSError):
        release.count(geopandas.GeoSeries([inside]))


@pytest.mark.parametrize("ask", ["count", "estimate", "interval"])
@pytest.mark.parametrize(
    ("query", "error"),
    [
        ((3, 0, 1, 2), QueryError),
        ((0, 0, math.nan, 2), QueryError),
        ((0, 0, math.inf, 2), QueryError),
        ((1, 2, 3), InputTypeError),
        (("here",), InputTypeError),
    ],
)
def test_queries_that_are_none_are_refused(ask, query, error):
    with pytest.raises(error):
        getattr(paper_study(), ask)(*query)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, math.nan])
@pytest.mark.parametrize("method", METHODS)
def test_a_confidence_that_is_none_is_refused(method, confidence):
    with pytest.raises(PrivacyError, match="confidence"):
        study(method=method).interval(0, 0, 1, 1, confidence=confidence)


# Intervals hold what they say


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_intervals_hold_the_true_count_as_often_as_they_say(neighbours):
    grid = dpr.Grid(0, 0, 1, 3, 3)
    regions = town(150)
    exact = dpr.EulerHistogram.from_regions(regions, grid, max_diameter=1)
    rectangles = [(0, 0, 0, 0), (0, 1, 1, 2), (0, 2, 0, 0), (0, 2, 0, 2)]
    bounds = np.array([grid.cell_bounds(*cells) for cells in rectangles]).T
    truth = exact.count(*bounds)
    assert (truth > 0).all()
    noise, n, confidences = StudyNoise(11), 400, (0.5, 0.9, 0.95)
    hits = np.zeros((len(confidences), len(rectangles)), int)
    for _ in range(n):
        release = paper_study(
            regions, grid, noise=noise, max_diameter=1, epsilon=3, neighbours=neighbours
        )
        for row, confidence in zip(hits, confidences, strict=True):
            low, high = release.interval(*bounds, confidence=confidence)
            assert (low >= 0).all()
            row += (low <= truth) & (truth <= high)
    for row, confidence in zip(hits, confidences, strict=True):
        for cells, held in zip(rectangles, row, strict=True):
            terms = n_components(*cells)
            width = sum_half_width(terms, scale_of(release), confidence)
            chance = 1 - float(sum_tail(width + 1, terms, scale_of(release)))
            assert confidence <= chance < confidence + 0.08  # whole numbers: never just so
            assert held >= binom.ppf(1e-6, n, confidence)
            assert binom.ppf(1e-6, n, chance) <= held <= binom.isf(1e-6, n, chance)


def test_the_estimate_is_unbiased_and_the_count_is_not():
    grid = dpr.Grid(0, 0, 1, 3, 3)
    noise, empty = StudyNoise(12), town(0)
    releases = [paper_study(empty, grid, noise=noise, max_diameter=1) for _ in range(400)]
    estimates = np.array([release.estimate(0, 0, 3, 3) for release in releases])
    # 25 draws of standard deviation 12.7; the mean of 400 sums is within 3.2 at one sigma.
    assert abs(estimates.mean()) < 16
    assert np.mean([release.count(0, 0, 1, 1) for release in releases]) > 3


# Whom it counts


def counted(regions, **changes) -> int:
    """How many regions a release counts on the whole area, seen through no noise."""
    counts = set()
    for method in METHODS:
        release = study(regions, epsilon=HARDLY_ANY_NOISE, method=method, **changes)
        counts.add(release.count(*release.grid.bounds))
    (count,) = counts
    return count


def points(**columns) -> geopandas.GeoDataFrame:
    n = len(next(iter(columns.values())))
    places = shapely.points(0.5 + np.arange(n) % 5, 0.5 + np.arange(n) // 5)
    return geopandas.GeoDataFrame(columns, geometry=places)


def test_a_user_counts_once_and_the_unit_is_the_user():
    regions = points(user_id=["a", "b", "a", "a", "c"])
    assert counted(regions) == 3
    assert study(regions).unit == "user"
    driver = regions.rename(columns={"user_id": "driver"})
    assert counted(driver, user_id="driver") == 3
    assert counted(regions.geometry, user_id=["a", "b", "a", "a", "c"]) == 3
    assert study(regions.geometry, user_id=np.arange(5)).unit == "user"


def test_without_users_each_row_counts_and_the_unit_is_the_record():
    regions = points(user_id=["a", "b", "a", "a", "c"])
    assert counted(regions, user_id=None) == 5
    assert study(regions, user_id=None).unit == "record"
    assert "unit = record" in study(regions, user_id=None).describe()
    assert "protected less" in study(regions, user_id=None).describe()


def trajectories() -> geopandas.GeoDataFrame:
    """Two users with trajectories 0 and 1 each, numbered within the user; one of them twice."""
    regions = points(user_id=["a", "a", "b", "b", "b"], trajectory=[0, 1, 0, 1, 1])
    regions.attrs["dpregions_unit"] = "trajectory"
    return regions


def test_a_users_trajectory_counts_once_and_the_unit_is_the_trajectory():
    assert counted(trajectories()) == 4
    release = study(trajectories())
    assert release.unit == "trajectory"
    assert "unit = trajectory" in release.describe()
    assert "one region a trajectory" in release.describe()


def test_trajectory_numbers_are_no_users_whatever_column_is_named():
    assert counted(trajectories(), user_id="trajectory") == 4
    assert study(trajectories(), user_id="trajectory").unit == "trajectory"
    alone = trajectories().drop(columns="user_id")
    assert counted(alone) == 2
    assert study(alone).unit == "trajectory"


def test_a_trajectory_without_a_user_counts_nowhere():
    regions = trajectories()
    regions["user_id"] = [None, "a", "b", "b", None]
    assert counted(regions) == 3


def test_trajectories_released_by_user_or_by_row_say_so():
    users = trajectories()["user_id"].to_numpy()
    assert counted(trajectories(), user_id=users) == 2
    assert study(trajectories(), user_id=users).unit == "user"
    assert counted(trajectories(), user_id=None) == 5
    assert study(trajectories(), user_id=None).unit == "record"
    unnumbered = trajectories().drop(columns="trajectory")
    assert counted(unnumbered) == 2
    assert study(unnumbered).unit == "user"
    with pytest.raises(InputError, match="have no columns"):
        study(trajectories().geometry, noise=Untouched())


def test_trajectories_of_ids_that_cannot_be_compared_are_refused():
    regions = trajectories()
    regions["user_id"] = [[1], [1], [2], [2], [2]]
    with pytest.raises(InputTypeError, match="cannot be compared"):
        study(regions)


def test_long_regions_are_shrunk_or_left_out():
    line = shapely.LineString([(0.1, 0.5), (3.9, 0.5)])  # its middle lies on a grid line
    long = geopandas.GeoDataFrame({"user_id": [1]}, geometry=[line])
    shrunk = study(long, epsilon=HARDLY_ANY_NOISE, max_diameter=1)
    assert shrunk.counts[0].tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0]
    assert counted(long, max_diameter=1, oversize="drop") == 0
    assert counted(long, max_diameter=4, oversize="drop") == 1


# Sensitivity of the paper's histogram


def test_a_small_grid_cuts_the_sensitivity_and_replace_one_doubles_it():
    for shape, max_diameter, wanted in (
        ((1, 1), 10, 1),
        ((1, 4), 10, 7),
        ((2, 2), 5, 9),
        ((2, 9), 2, 15),
        ((9, 9), 2, 25),
        ((9, 9), 2.5, 49),
    ):
        grid = dpr.Grid(0, 0, 1, *shape)
        assert paper_study(grid=grid, max_diameter=max_diameter).sensitivity == wanted
        double = paper_study(grid=grid, max_diameter=max_diameter, neighbours="replace-one")
        assert double.sensitivity == 2 * wanted
        assert scale_of(double) == 2 * wanted
        assert double.neighbours == "replace-one"


def test_the_noise_is_calibrated_to_the_sensitivity_the_release_states():
    for neighbours in ("add-remove", "replace-one"):
        spy = Spy(1)
        release = paper_study(noise=spy, epsilon=0.5, neighbours=neighbours)
        ((_, epsilon, sensitivity, _),) = spy.asked
        assert (float(epsilon), sensitivity) == (0.5, release.sensitivity)


def bodies_on(grid: dpr.Grid) -> list[shapely.Geometry]:
    """Points, segments and boxes with corners on lines and a tenth before them, long ones too."""
    x, y = (np.add.outer(np.arange(n), [0, 0.9]).ravel() for n in (grid.n_cols, grid.n_rows))
    columns = [(a, b) for a in x for b in x if a <= b]
    rows = [(a, b) for a in y for b in y if a <= b]
    return [shapely.box(a, c, b, d) for (a, b), (c, d) in product(columns, rows)]


@pytest.mark.parametrize(
    ("shape", "max_diameter"), [((2, 3), 1), ((2, 3), 2), ((1, 4), 2), ((4, 4), 2), ((4, 4), 3)]
)
def test_the_sensitivity_is_the_most_that_any_body_adds(shape, max_diameter):
    grid = dpr.Grid(0, 0, 1, *shape)
    added = [
        dpr.EulerHistogram.from_regions([body], grid, max_diameter=max_diameter).counts.sum()
        for body in bodies_on(grid)
    ]
    assert max(added) == paper_study(grid=grid, max_diameter=max_diameter).sensitivity


def test_the_sensitivity_under_replace_one_is_the_most_that_any_two_bodies_differ():
    grid = dpr.Grid(0, 0, 1, 2, 4)
    seen = {
        dpr.EulerHistogram.from_regions([body], grid, max_diameter=1).counts.tobytes()
        for body in bodies_on(grid)
    }
    histograms = [np.frombuffer(counts, dtype=np.int64) for counts in seen]
    furthest = max(int(np.abs(a - b).sum()) for a, b in combinations(histograms, 2))
    assert (
        furthest
        == paper_study(grid=grid, max_diameter=1, neighbours="replace-one").sensitivity
        == 18
    )


# What it refuses, before it noises


N_RECORDS = 7919
REFUSED = [
    ({"epsilon": None}, PrivacyError, "epsilon is missing"),
    ({"epsilon": 0}, PrivacyError, "epsilon must be greater than 0"),
    ({"epsilon": -1}, PrivacyError, "epsilon must be greater than 0"),
    ({"epsilon": math.nan}, PrivacyError, "epsilon must be finite"),
    ({"epsilon": math.inf}, PrivacyError, "epsilon must be finite"),
    ({"epsilon": "1"}, PrivacyError, "epsilon must be a number"),
    ({"epsilon": 1e-13}, PrivacyError, "larger epsilon"),
    ({"max_diameter": None}, PrivacyError, "max_diameter is missing"),
    ({"max_diameter": 0}, InputError, "max_diameter must be greater than 0"),
    ({"max_diameter": -2}, InputError, "max_diameter must be greater than 0"),
    ({"max_diameter": math.nan}, InputError, "max_diameter must be a finite number"),
    ({"max_diameter": math.inf}, InputError, "max_diameter must be a finite number"),
    ({"max_diameter": "2km"}, CRSError, "without a CRS"),
    ({"max_diameter": [2]}, InputTypeError, "max_diameter"),
    ({"neighbours": "swap-one"}, PrivacyError, "'add-remove' or 'replace-one'"),
    ({"neighbours": None}, PrivacyError, "'add-remove' or 'replace-one'"),
    ({"method": "laplace"}, PrivacyError, "method='laplace' is unknown"),
    ({"oversize": "keep"}, InputError, "'shrink' or 'drop'"),
    ({"user_id": "driver"}, InputError, "user_id='driver' is no column"),
    ({"user_id": 5}, InputTypeError, "user_id must be a column name"),
    ({"user_id": ["a"]}, InputError, "one id a region"),
    ({"crs": "EPSG:32632"}, CRSError, "the grid has no CRS"),
    ({"crs": "nonsense"}, CRSError, "no CRS that pyproj reads"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("changed", "error", "words"), REFUSED)
def test_what_cannot_be_released_is_refused_before_noise_and_names_no_number_of_records(
    method, changed, error, words
):
    with pytest.raises(error, match=words) as refused:
        study(points(user_id=range(N_RECORDS)), noise=Untouched(), **({"method": method} | changed))
    assert str(N_RECORDS) not in str(refused.value)
    arguments = {"epsilon": 1, "max_diameter": 2, "method": method} | changed
    with pytest.raises(error, match=words):
        dpr.release(town(), GRID, **arguments)


@pytest.mark.parametrize("name", ["epsilon", "max_diameter"])
def test_epsilon_and_the_bound_have_no_default(name):
    arguments = {"epsilon": 1, "max_diameter": 2}
    del arguments[name]
    with pytest.raises(TypeError, match=name):
        dpr.release(town(), GRID, **arguments)


@pytest.mark.parametrize(
    ("regions_crs", "grid_crs", "crs", "words"),
    [
        (None, "EPSG:32632", None, "carry no CRS"),
        ("EPSG:32632", None, None, "the grid has no CRS"),
        ("EPSG:4326", None, None, "the grid has no CRS"),
        ("EPSG:32632", "EPSG:32632", "EPSG:32633", "regions carry EPSG:32632"),
    ],
)
def test_a_crs_that_does_not_fit_is_an_error_before_noise(regions_crs, grid_crs, crs, words):
    grid = dpr.Grid(0, 0, 1, 4, 5, crs=grid_crs)
    regions = town().set_crs(regions_crs) if regions_crs else town()
    with pytest.raises(CRSError, match=words):
        study(regions, grid, noise=Untouched(), crs=crs)


def test_regions_without_columns_need_ids_or_an_explicit_none():
    boxes = list(town().geometry)
    with pytest.raises(InputError, match="have no columns"):
        study(boxes, noise=Untouched())
    assert study(boxes, user_id=None).unit == "record"


def test_records_that_are_no_place_count_nowhere_and_nothing_is_said(recwarn, capfd):
    regions = points(user_id=range(6))
    places = [None, shapely.Point(), shapely.Point(math.nan, 1), shapely.Point(1e300, 1)]
    regions["geometry"] = geopandas.GeoSeries(
        [*places, shapely.Point(900, 900), shapely.Point(1, 1)]
    )
    assert counted(regions) == 1
    dpr.release(regions, GRID, epsilon=1, max_diameter=2)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": Fraction(201, 10)}, r"epsilon 20\.1 protects next to nothing: .* 485 million"),
        (
            {"max_diameter": 6.41},
            r"max_diameter=6\.41 is longer than the diagonal .* 6\.40312",
        ),
        ({"max_diameter": 0.04}, r"max_diameter=0\.04 is 0\.04 of a cell: every region is shrunk"),
    ],
)
def test_a_setting_that_does_nothing_is_warned_of_and_allowed(changes, words):
    arguments = {"epsilon": 1, "max_diameter": 2, "method": "paper"} | changes
    with pytest.warns(SettingWarning, match=words) as caught:
        assert dpr.release(town(), GRID, **arguments).private
    assert [one.filename for one in caught] == [__file__]  # it points at the caller


def test_the_largest_sensible_settings_pass_without_a_word():
    dpr.release(town(), GRID, epsilon=20, max_diameter=6.403, method="paper")


def test_an_odd_setting_is_warned_of_before_the_ledger_pays(tmp_path):
    book = Ledger(tmp_path / "people.ledger")
    book.create("rows", 100)
    with pytest.raises(SettingWarning):  # tests make errors of warnings
        dpr.release(town(), GRID, epsilon=50, max_diameter=2, ledger=book, dataset="rows")
    assert book.account("rows").spent == 0
