"""Intervals that leave open what regions do inside measured parts: `detail="worst"`."""

from __future__ import annotations

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions import errors
from dpregions.mechanisms.footprint.measuring import Measurement, Strategy
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.reading import QueryVariance
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.worst import AFTER, BEFORE, LEAST, MOST, reaches
from dpregions.privacy.seeded import StudyNoise
from support.border_oracle import chances
from support.footprint_releases import BLOCKS, JOINED, PLAIN, SHAPES, UNIT_GRID, study, town
from support.trees import buckets_of

COARSE = dpr.Grid(0, 0, 1, n_rows=8, n_cols=8)
QUIET = {"epsilon": 20_000}
"""So much epsilon that there is next to no noise."""


def all_rectangles(grid) -> np.ndarray:
    """Every rectangle of cells, as ``row0, row1, col0, col1``."""
    (r0, r1), (c0, c1) = (np.triu_indices(n) for n in grid.shape)
    rows, cols = np.repeat([r0, r1], len(c0), axis=1), np.tile([c0, c1], len(r0))
    return np.concatenate([rows, cols])


def ends(release, ranges, **changes):
    return release.interval(*np.array(release.grid.cell_bounds(*ranges)), detail="worst", **changes)


def exact(regions, grid, max_diameter=2.0) -> dpr.EulerHistogram:
    return dpr.EulerHistogram.from_regions(regions, grid, max_diameter=max_diameter, user_id=None)


PLANS = {
    "sizes": PLAIN,
    "patterns": SHAPES,
    "blocks": BLOCKS,
    "joined": JOINED,
    "cells": None,
    "tree": Adaptive(0.15, 64),
    "coarse tree": Adaptive(0.001, 64),
}


def release_of(plan, regions, grid, **changes):
    method = Footprint() if PLANS[plan] is None else Footprint(strategy=PLANS[plan])
    bound = 1 if plan == "joined" else 2
    return study(regions, grid, method=method, max_diameter=bound, **changes), bound


@pytest.mark.parametrize("plan", PLANS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_without_noise_it_holds_every_count_whatever_regions_do(plan, seed):
    rng = np.random.default_rng(seed)
    # All in one corner of a cell, or of its neighbours: as far from what is expected as can be.
    at = rng.uniform(0, 8, 2) + rng.normal(size=(60, 2)) * rng.choice([0.01, 0.3, 2])
    length = rng.choice([0.02, 0.5, 1.4, 2.0])
    regions = shapely.box(*at.T, *(at + length * rng.uniform(0.01, 0.7, (60, 2))).T)
    release, bound = release_of(plan, regions, COARSE, **QUIET)
    ranges = all_rectangles(COARSE)
    low, high = ends(release, ranges)
    truth = exact(regions, COARSE, bound).count(*np.array(COARSE.cell_bounds(*ranges)))
    assert (low <= truth + 0.1).all() and (truth <= high + 0.1).all()


@pytest.mark.parametrize("plan", PLANS)
def test_its_ends_miss_as_rarely_as_the_noise_does(plan):
    grid, missed, asked = COARSE, 0, 0
    regions = town(grid, 1 if plan == "joined" else 2, n=300)
    ranges = all_rectangles(grid)[:, ::7]
    for seed in range(12):
        release, bound = release_of(plan, regions, grid, noise=StudyNoise(seed))
        low, high = ends(release, ranges)
        truth = exact(regions, grid, bound).count(*np.array(grid.cell_bounds(*ranges)))
        missed, asked = missed + ((truth < low) | (truth > high)).sum(), asked + len(truth)
    assert missed < 0.05 * asked


def test_it_holds_a_crowd_in_one_corner_of_a_block():
    grid = dpr.Grid(0, 0, 1, 16, 16)
    crowd = shapely.points(np.full(500, 8.5), 8.5)
    few = shapely.points(*np.random.default_rng(0).uniform(0, 16, (2, 40)))
    blocks = Strategy("sizes", (Measurement(8, "all", 9), Measurement(1, "letters", 0)))
    release = study(np.concatenate([crowd, few]), grid, strategy=blocks)
    low, high = release.interval(*grid.cell_bounds(8, 8, 8, 8), detail="worst")
    assert low == 0 and 500 < high < 560
    low, high = release.interval(*grid.cell_bounds(9, 15, 8, 15), detail="worst")
    assert low < 12 and 500 < high < 560


def test_bodies_of_a_bucket_that_surely_touches_do_and_others_cannot():
    release = study(strategy=PLAIN)
    reading, ranges = release.outcome.reading, all_rectangles(UNIT_GRID)
    leaf = reading.measured.hierarchy.part[-1]
    chance = chances(buckets_of((4, 5), 2), ranges)
    found = [reading.worst.touching(*one) for one in ranges.T.tolist()]
    sure, may = (np.array(ones)[:, leaf] for ones in zip(*found, strict=True))
    np.testing.assert_allclose(chance[sure], 1)
    np.testing.assert_allclose(chance[~may], 0, atol=1e-12)
    # And nothing is left open that the footprint settles.
    np.testing.assert_array_equal(may, chance > 1e-12)


@pytest.mark.parametrize("strategy", [PLAIN, BLOCKS, SHAPES, JOINED])
def test_its_variance_is_that_of_the_sum_of_the_parts(strategy):
    reading = study(strategy=strategy, max_diameter=1 if strategy is JOINED else 2).outcome.reading
    tree, worst = reading.measured.hierarchy, reading.worst
    part = tree.part[reading.measured.finest]
    for which in np.random.default_rng(0).random((5, len(worst.leaves))) < 0.4:
        weights = which[part].astype(float)[None]
        wanted = QueryVariance(reading.measured, reading.expected).of(weights)
        np.testing.assert_allclose(worst._variance(which), wanted[0], rtol=1e-9)
        np.testing.assert_allclose(worst.fit[which].sum(), weights[0] @ reading.fitted)


def test_the_whole_area_has_no_detail():
    release = study(strategy=BLOCKS)
    whole = UNIT_GRID.bounds
    np.testing.assert_allclose(
        release.interval(*whole, detail="worst"), release.interval(*whole), atol=1e-3
    )


def test_a_footprint_filed_under_a_smaller_one_reaches_as_far_as_it_does():
    filed = np.ones((4, 4, 2), np.int64)
    h, w = np.indices((4, 4))
    filed[..., 0], filed[..., 1] = np.maximum(h, 1), np.maximum(w, 1)
    filed[3, 3] = 2, 3
    found = reaches(filed, (9, 9))
    assert found[2, 3, 0, AFTER].tolist() == [1, 2]
    assert found[2, 3, 0, BEFORE].tolist() == [0, 0]
    assert found[3, 2, 0, [BEFORE, AFTER]].tolist() == [[1, 1], [1, 1]]
    assert (found[3, 3, :, :, LEAST] > found[3, 3, :, :, MOST]).all()  # nothing is filed there


def test_a_rectangle_off_the_lines_is_between_the_cells_inside_it_and_those_it_touches():
    release = study(strategy=PLAIN)
    low, high = release.interval(0.5, 0.5, 3.2, 3.2, detail="worst")
    inner = release.interval(*UNIT_GRID.cell_bounds(1, 2, 1, 2), detail="worst")
    outer = release.interval(*UNIT_GRID.cell_bounds(0, 3, 0, 3), detail="worst")
    count = release.count(0.5, 0.5, 3.2, 3.2)
    assert low == pytest.approx(min(inner[0], count))
    assert high == pytest.approx(max(outer[1], count))


def test_other_shapes_are_refused_by_number():
    release = study(strategy=PLAIN)
    shapes = geopandas.GeoSeries(
        [shapely.box(0, 0, 2, 2), shapely.Polygon([(0, 0), (4, 0), (0, 4)])]
    )
    with pytest.raises(errors.QueryError, match="query 1 is none: ask one around it"):
        release.interval(shapes, detail="worst")
    counted_twice = pytest.warns(errors.ApproximateCountWarning)
    with counted_twice, pytest.raises(errors.QueryError, match="query 1"):
        release.interval(shapes, within="cells", detail="worst")
    with pytest.raises(errors.InputError, match="detail must be 'likely' or 'worst', got 'best'"):
        release.interval(0, 0, 1, 1, detail="best")


def test_a_collection_that_covers_less_than_its_bounds_is_no_rectangle():
    """Its parts overlap, so that their areas add up to that of the box around them."""
    both = shapely.GeometryCollection([shapely.box(0, 0, 3, 2), shapely.box(1, 1, 4, 3)])
    assert shapely.area(both) == shapely.box(*shapely.bounds(both)).area == 12
    release = study(strategy=PLAIN)
    with pytest.raises(errors.QueryError, match="'worst' is about rectangles"):
        release.interval(both, detail="worst")
    around = shapely.box(*shapely.bounds(both))
    assert release.estimate(both) != release.estimate(around)
    assert release.interval(both) != release.interval(around)


def test_it_comes_in_the_form_of_the_query_and_through_a_file(tmp_path):
    release = study(strategy=BLOCKS)
    release.save(tmp_path / "town.parquet")
    again = dpr.load(tmp_path / "town.parquet")
    low, high = again.interval(1, 1, 3, 3, detail="worst")
    assert isinstance(low, float) and (low, high) == release.interval(1, 1, 3, 3, detail="worst")
    frame = release.interval(geopandas.GeoSeries([shapely.box(1, 1, 3, 3)]), detail="worst")
    assert frame.to_dict("records") == [{"low": low, "high": high}]
    assert low <= release.interval(1, 1, 3, 3)[0] and release.interval(1, 1, 3, 3)[1] <= high
    with pytest.warns(errors.OutsideAreaWarning):
        assert np.isnan(release.interval(-3, -3, -1, -1, detail="worst")).all()


def test_by_the_papers_method_all_is_measured():
    release = study(method="paper")
    assert release.interval(0, 0, 2, 2, detail="worst") == release.interval(0, 0, 2, 2)
