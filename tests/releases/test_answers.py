"""Releases: what they answer, in every form of query, and how often intervals hold."""

from __future__ import annotations

import math
from fractions import Fraction

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
    InputTypeError,
    OutsideAreaWarning,
    PrivacyError,
    QueryError,
)
from dpregions.mechanisms.known import MECHANISMS as METHODS
from dpregions.privacy.law import sum_half_width, sum_tail
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.published import Release
from support.small_releases import (
    euler_sum,
    n_components,
    paper_study,
    scale_of,
    study,
    town,
)

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


def test_outside_the_area_nothing_is_counted_nor_known_and_that_is_warned_of():
    release = paper_study()
    for ask in (release.count, release.estimate):
        with pytest.warns(OutsideAreaWarning):
            assert ask(50, 50, 60, 60) == 0
    with pytest.warns(OutsideAreaWarning):
        assert np.isnan(release.interval(50, 50, 60, 60)).all()
    with pytest.warns(OutsideAreaWarning):
        low, high = release.interval([50, 0], [50, 0], [60, 1], [60, 1])
    assert np.isnan([low[0], high[0]]).all() and low[1] <= release.count(0, 0, 1, 1) <= high[1]


@pytest.mark.parametrize("name", ["count", "estimate", "interval", "expected_error"])
def test_a_warning_points_at_whoever_asked(name):
    ask = getattr(paper_study(), name)
    for query in [(50, 50, 60, 60), ([50], 50, 60, 60), (shapely.box(50, 50, 60, 60),)]:
        with pytest.warns(OutsideAreaWarning) as caught:
            ask(*query)
        assert caught[0].filename == __file__


@pytest.mark.parametrize("method", METHODS)
def test_one_rectangle_is_answered_as_one_of_many_by_a_plain_number(method):
    release = study(town(), method=method)
    for ask in (release.count, release.estimate):
        many = ask(*BOUNDS)
        for i, bounds in enumerate(zip(*BOUNDS, strict=True)):
            for form in (int, float, np.int64, np.float32, Fraction):
                one = ask(*(form(int(bound)) for bound in bounds))
                assert type(one) is type(many[i].item())
                assert one == many[i]


def test_queries_in_another_crs_are_reprojected():
    grid = dpr.synthetic.grid(side="4km")
    release = study(dpr.synthetic.regions(50), grid, max_diameter="2km")
    inside = shapely.box(grid.xmin + 1100, grid.ymin + 1100, grid.xmin + 1900, grid.ymin + 2900)
    queries = geopandas.GeoSeries([inside], crs=grid.crs)
    cells = release.count(*grid.cell_bounds(1, 2, 1, 1))
    assert release.count(queries, within="cells").tolist() == [cells]
    assert release.count(queries.to_crs(4326), within="cells").tolist() == [cells]
    assert release.count(inside, crs=grid.crs, within="cells") == cells
    assert release.count(queries.to_crs(4326)).tolist() == [release.count(inside)]
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


@pytest.mark.parametrize(
    "confidence", [0, 1, 95, -0.5, math.nan, "x", "0.95", None, True, np.True_, [0.95], 0.95 + 0j]
)
@pytest.mark.parametrize("method", METHODS)
def test_a_confidence_that_is_none_is_refused(method, confidence):
    with pytest.raises(PrivacyError, match=r"confidence must lie .*: write 0.95 for 95 percent"):
        study(method=method).interval(0, 0, 1, 1, confidence=confidence)


@pytest.mark.parametrize("method", METHODS)
def test_a_confidence_may_be_a_number_of_any_type(method):
    release = study(method=method)
    expected = release.interval(0, 0, 1, 1, confidence=0.5)
    for confidence in (np.float64(0.5), np.float32(0.5), np.float16(0.5), Fraction(1, 2)):
        assert release.interval(0, 0, 1, 1, confidence=confidence) == expected


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
