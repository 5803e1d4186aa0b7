"""Releases by a tree: consistent by construction, covert, and one answer for one question."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.privacy.seeded import StudyNoise
from support.footprint_releases import study, town

WAYS = {"few": Adaptive(0.03, 16), "many": Adaptive(3.0, 64), "capped": Adaptive(1.0, 16, 40)}
CASES = {
    "small": (dpr.Grid(1000.0, -300.0, 10.0, 6, 7), 20, 300, 1),
    "wide regions": (dpr.Grid(0, 0, 1, 12, 9), 5, 400, 1),
    "crowded": (dpr.Grid(-5, 0.5, 0.5, 16, 16), 1, 6000, 2),
    "next to nobody": (dpr.Grid(0, 0, 1, 20, 3), 2, 3, 0.1),
}
RELEASES = {
    (case, way): study(
        town(grid, diameter, n=n), grid, max_diameter=diameter, epsilon=epsilon, strategy=how
    )
    for case, (grid, diameter, n, epsilon) in CASES.items()
    for way, how in WAYS.items()
}
KEYS = pytest.mark.parametrize("release", RELEASES.values(), ids=map(" ".join, RELEASES))


def cells_of(release, n=60, seed=0):
    """Rectangles of cells of all sizes: rows and columns, first and last."""
    rng = np.random.default_rng(seed)
    rows, cols = (
        np.sort(rng.integers(0, n_cells, (2, n)), axis=0) for n_cells in release.grid.shape
    )
    return np.stack([*rows, *cols])


@KEYS
def test_the_counts_are_the_histogram_of_the_published_regions(release):
    bodies = release.to_regions()
    bound = release.max_diameter
    again = dpr.EulerHistogram.from_regions(bodies, release.grid, max_diameter=bound, user_id=None)
    np.testing.assert_array_equal(again.counts, release.counts)


@KEYS
def test_no_answer_is_negative_and_no_smaller_rectangle_answers_more(release):
    found = dpr.paper.inconsistency(release.counts)
    assert found.pairs > 100
    assert found.negative == found.non_monotone == 0
    assert dpr.paper.violations(release.counts) == {"C1": 0, "C2": 0, "C3": 0}


@KEYS
def test_as_drawn_a_count_is_that_of_the_published_regions_that_touch(release):
    bodies = release.to_regions().geometry.to_numpy()
    grid, rng = release.grid, np.random.default_rng(1)
    width = grid.cell_size * max(grid.shape)
    for _ in range(12):
        x = grid.xmin + rng.uniform(0, grid.n_cols) * grid.cell_size
        y = grid.ymin + rng.uniform(0, grid.n_rows) * grid.cell_size
        disc = shapely.Point(x, y).buffer(rng.uniform(0.01, 0.4) * width)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            count = release.count(disc, within="shape")
            low, high = release.interval(disc, within="shape")
        assert count == int(shapely.intersects(bodies, disc).sum())
        assert low <= count <= high
        assert np.isfinite(release.estimate(disc, within="shape"))


@KEYS
def test_on_the_grids_lines_cells_and_shapes_have_one_count_and_one_interval(release):
    for cells in cells_of(release, 15).T:
        bounds = release.grid.cell_bounds(*cells)
        by = {rule: release.count(*bounds, within=rule) for rule in (None, "cells", "shape")}
        assert len(set(by.values())) == 1
        box = shapely.box(*bounds)
        intervals = [release.interval(*bounds, within=rule) for rule in (None, "cells", "shape")]
        intervals += [release.interval(box, within=rule) for rule in ("cells", "shape")]
        estimates = [release.estimate(*bounds, within=rule) for rule in ("cells", "shape")]
        for interval in intervals[1:]:
            assert interval == pytest.approx(intervals[0], rel=1e-9, abs=1e-9)
        assert estimates[0] == pytest.approx(estimates[1], rel=1e-9, abs=1e-9)


@KEYS
def test_one_rectangle_and_many_have_the_same_answers(release):
    cells = cells_of(release)
    bounds = release.grid.cell_bounds(*cells)
    low, high = release.interval(*bounds)
    middle = release.estimate(*bounds)
    for i in range(0, cells.shape[1], 10):
        one = [float(side[i]) for side in bounds]
        assert release.estimate(*one) == pytest.approx(middle[i], abs=1e-9)
        assert release.interval(*one) == pytest.approx((low[i], high[i]), abs=1e-9)


@KEYS
def test_the_estimate_of_the_whole_area_is_the_fitted_total(release):
    grown = release.outcome.reading.grown
    assert release.estimate(*release.grid.bounds) == pytest.approx(grown.fitted[0], abs=1e-6)
    # Bodies follow the non-negative fit, whose total is rounded once.
    held = grown.held()
    assert release.count(*release.grid.bounds) == np.rint(held[0])
    assert len(release.to_regions()) == np.rint(held[0])


def euler_sum(signed, cells) -> float:
    row0, row1, col0, col1 = cells
    part = signed[2 * row0 : 2 * row1 + 1, 2 * col0 : 2 * col1 + 1]
    signs = (-1.0) ** np.add.outer(*map(np.arange, part.shape))
    return float((part * signs).sum())


@KEYS
def test_estimates_of_components_sum_to_those_of_rectangles(release):
    """N = F - E + V, also of what is estimated."""
    cells = cells_of(release)
    middle = release.estimate(*release.grid.cell_bounds(*cells))
    sums = [euler_sum(release.signed, some) for some in cells.T]
    scale = 1 + np.abs(release.signed).max()
    np.testing.assert_allclose(sums, middle, rtol=1e-7, atol=1e-7 * scale)


def test_a_covert_release_holds_counts_alone():
    grid, diameter, n, epsilon = CASES["small"]
    terms = {"max_diameter": diameter, "epsilon": epsilon, "strategy": WAYS["many"]}
    covert = study(town(grid, diameter, n=n), grid, covert=True, **terms)
    open_one = RELEASES["small", "many"]
    np.testing.assert_array_equal(covert.counts, open_one.counts)
    assert covert.to_regions().equals(open_one.to_regions())
    assert covert.signed is None and covert.outcome.reading is None
    assert covert.outcome.strategy is None and covert.outcome.options() == {}
    assert covert.outcome.columns().lists.keys() == {"bodies"}
    for ask in (covert.estimate, covert.interval, covert.expected_error):
        with pytest.raises(PrivacyError, match="covert"):
            ask(*grid.bounds)


def test_with_next_to_no_noise_counts_of_single_sizes_are_exact():
    """Opened to the end, every leaf is a size in a cell, and shapes alone are unknown."""
    grid = dpr.Grid(0, 0, 1, 5, 6)
    regions = town(grid, 1, n=400)
    release = study(
        regions,
        grid,
        max_diameter=1,
        epsilon=10**9,
        strategy=Adaptive(10.0, 64),
        noise=StudyNoise(1),
    )
    exact = dpr.EulerHistogram.from_regions(regions, grid, max_diameter=1, user_id=None)
    whole = grid.bounds
    assert release.count(*whole) == exact.count(*whole) == round(release.estimate(*whole))
    # One cell beside the border of 2 x 2 footprints: faces are off by shapes alone.
    assert np.abs(release.counts - exact.counts).max() < 0.2 * exact.counts.max()


def test_intervals_grow_with_confidence_and_hold_the_count():
    release = RELEASES["wide regions", "few"]
    bounds = release.grid.cell_bounds(*cells_of(release))
    width = np.zeros(cells_of(release).shape[1])
    for confidence in (0.5, 0.9, 0.99):
        low, high = release.interval(*bounds, confidence=confidence)
        count = release.count(*bounds)
        assert ((low <= count) & (count <= high) & (low >= 0)).all()
        assert (high - low >= width - 1e-9).all()
        width = high - low


@KEYS
def test_tables_of_cells_have_the_estimates_of_single_cells_and_make_no_others(release):
    asked = study_again(release)
    found = asked.cell_arrays()["estimate"]
    assert "_estimates" not in vars(asked.outcome)
    np.testing.assert_allclose(found, asked.signed[::2, ::2], rtol=1e-9, atol=1e-9)


def study_again(release):
    """The same release, of which nothing was asked yet."""
    return replace(release, outcome=replace(release.outcome))
