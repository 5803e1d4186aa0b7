"""Estimates of the footprint mechanism, their expected errors, and how often intervals hold."""

from __future__ import annotations

import dataclasses
from functools import cache

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

import dpregions as dpr
from dpregions.geometry.cells import Selection, select
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.levels import MIX
from dpregions.mechanisms.footprint.measuring import Measured, Noisy, Strategy
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.reading import Reading
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release
from support.footprint_releases import (
    BLOCKS,
    JOINED,
    PLAIN,
    SHAPES,
    UNIT_GRID,
    study,
    town,
)


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


def test_the_whole_area_has_no_shape_error_and_patterns_have_next_to_none():
    release = study(strategy=PLAIN)
    assert release.expected_error(*UNIT_GRID.bounds).shape == pytest.approx(0, abs=1e-6)
    assert release.expected_error(1, 1, 3, 3).shape > 0.1
    patterns = study(strategy=SHAPES)
    assert 0 < patterns.expected_error(1, 1, 3, 3).shape < 0.3


def test_an_interval_never_leaves_out_the_count():
    """With much noise the signed estimate and the count part: one is not left outside."""
    rows, cols = np.mgrid[:4, :5].reshape(2, -1)
    cells = UNIT_GRID.cell_bounds(rows, rows, cols, cols)
    left_out = 0
    for seed in range(10):
        release = study(noise=StudyNoise(seed), epsilon=0.05)
        low, high = release.interval(*cells, confidence=0.3)
        count, middle = release.count(*cells), release.estimate(*cells)
        assert ((low <= count) & (count <= high)).all()
        assert (low <= np.maximum(middle, 0)).all() and (np.maximum(middle, 0) <= high).all()
        left_out += ((count == low) & (count > 0) | (count == high)).sum()
    assert left_out > 0  # it was stretched for some


def test_a_noisier_mix_of_sizes_makes_intervals_wider():
    found = study(epsilon=1, strategy=JOINED).outcome.reading
    cells = Selection(np.array([[1], [2], [1], [3]]))
    measured = found.counted
    mix = Noisy(measured.mix.values, 1e9)
    noisier = Reading(Measured(measured.hierarchy, {**measured.noisy, MIX: mix}))
    noisier.__dict__["expected"] = found.expected  # the same shares: only doubt differs
    (noise, shape), (same, wider) = (m.deviations(cells, UNIT_GRID) for m in (found, noisier))
    assert wider[0] > 1.2 * shape[0]
    assert same[0] == noise[0]


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


def test_the_expected_error_is_what_errors_are():
    """The noise part, over many releases, at rectangles of several sizes."""
    regions = town(UNIT_GRID, 1, n=400)
    bounds = np.array([(0, 0, 1, 1), (1, 1, 4, 3), (0, 0, 5, 4)], float).T
    noise = StudyNoise(5)
    terms = {"noise": noise, "max_diameter": 1, "strategy": BLOCKS}
    releases = [study(regions, **terms) for _ in range(250)]
    estimates = np.array([release.estimate(*bounds) for release in releases])
    spread = np.abs(estimates - estimates.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(spread, releases[0].expected_error(*bounds).noise, rtol=0.2)


def test_the_estimate_is_unbiased_but_for_shape():
    regions = town(UNIT_GRID, 1, n=100)
    exact = dpr.EulerHistogram.from_regions(regions, UNIT_GRID, max_diameter=1)
    terms, n = {"noise": StudyNoise(6), "max_diameter": 1, "strategy": SHAPES}, 300
    total = sum(study(regions, **terms).signed for _ in range(n))
    # A component's estimate has a standard deviation below 12; of the mean, below 0.7.
    np.testing.assert_allclose(total / n, exact.counts, atol=3.5)


def test_errors_of_rectangles_are_those_of_their_masks_but_for_what_is_never_certain():
    many = town(UNIT_GRID, 2, n=2000)
    row0, col0 = np.divmod(np.arange(20), 5)
    selection = select(UNIT_GRID, UNIT_GRID.cell_bounds(row0 // 2, row0, col0 // 2, col0))
    assert selection.exact.all()
    whole = [np.ones((b - a + 1, d - c + 1), bool) for a, b, c, d in selection.ranges.T]
    masked = Selection(selection.ranges, masks=dict(enumerate(whole)))
    for release in (study(), study(max_diameter=4), study(many, epsilon=50)):
        wanted = np.array(release.outcome.deviations(masked))
        certain = dataclasses.replace(TUNING, unsure_bucket=0.0, unsure_pattern=0.0)
        reading = dataclasses.replace(release.outcome.reading, tuning=certain)
        found = np.array(
            dataclasses.replace(release.outcome, reading=reading).deviations(selection)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
        doubted = np.array(release.outcome.deviations(selection))
        assert (doubted >= wanted - 1e-9).all() and (doubted[1] > wanted[1] + 0.01).any()


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
    for i, (h, w) in enumerate(Rectangles(*grid.shape).sizes()):
        for _ in range(each if (h, w) != grid.shape else 1):
            row, col = rng.integers(0, grid.n_rows - h + 1), rng.integers(0, grid.n_cols - w + 1)
            cells.append(grid.cell_bounds(row, row + h - 1, col, col + w - 1))
            size.append(i)
    return np.array(cells).T, np.array(size)


def coverage(epsilon: float, plan: Strategy, n: int, seed: int) -> pd.DataFrame:
    """Ask many releases: a row a query, whether its interval held the truth, how wide it was."""
    _, grid, exact = city()
    noise, rng = StudyNoise(seed), np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        outcome = data().outcome(Footprint(strategy=plan), Budget(epsilon), "add-remove", noise)
        release = dataclasses.replace(template(), outcome=outcome)
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
def data() -> ExactData:
    regions, grid, _ = city()
    return ExactData.of(regions, grid, "2km")


@cache
def template() -> Release:
    regions, grid, _ = city()
    return release_with(StudyNoise(0), regions, grid, epsilon=1, max_diameter="2km")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "n", "plan"), [(1, 500, BLOCKS), (4, 120, PLAIN), (0.2, 80, BLOCKS)]
)
def test_intervals_hold_the_true_count_as_often_as_they_say(epsilon, n, plan):
    """At every size class: 93 % at least, and not much too wide where noise makes the width.

    The smaller runs allow for their own chance error, the one of 500 releases does not.
    """
    found = coverage(epsilon, plan, n, seed=7)
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


def small_and_large_shapes(grid: dpr.Grid, rng) -> tuple[np.ndarray, np.ndarray]:
    """Points, discs from a tenth of a cell up, in the middle of the area, and their sizes."""
    size = np.repeat([0.0, 0.1, 0.5, 1.0, 3.0], 8)
    middles = grid.cell_size * rng.uniform(2, 10, (len(size), 2)) + [grid.xmin, grid.ymin]
    points = shapely.points(middles)
    discs = shapely.buffer(points, np.maximum(size, 0.01) * grid.cell_size / 2)
    return np.where(size > 0, discs, points), size


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES])
def test_intervals_of_shapes_hold_the_true_count_from_points_up(plan):
    regions, grid, _ = city()
    tree = shapely.STRtree(regions.geometry.to_numpy())
    noise, rng = StudyNoise(3), np.random.default_rng(3)
    rows = []
    for _ in range(10):
        outcome = data().outcome(Footprint(strategy=plan), Budget(1), "add-remove", noise)
        shapes, size = small_and_large_shapes(grid, rng)
        truth = np.bincount(tree.query(shapes, predicate="intersects")[0], minlength=len(shapes))
        low, high = outcome.bounds(select(grid, (shapes,), within="shape"), 0.95)
        rows.append(pd.DataFrame({"size": size, "held": (low <= truth) & (truth <= high)}))
        assert np.median((high - low)[size == 3] / truth[size == 3]) < 2
    held = pd.concat(rows).groupby("size")["held"].mean()
    # 80 shapes of each size: their chance error is allowed for.
    assert held.min() >= 0.93 - 3 * (0.05 * 0.95 / 80) ** 0.5


def test_the_least_bodies_widen_intervals_of_small_shapes_and_none_on_the_lines():
    release = study(strategy=PLAIN)
    reading = release.outcome.reading
    calm = dataclasses.replace(reading, tuning=dataclasses.replace(reading.tuning, size_doubt=0.0))
    shapes = np.array([shapely.Point(1.4, 1.6), shapely.box(1, 1, 3, 2)])
    (_, _, wide), (_, _, narrow) = (one.drawn(shapes, UNIT_GRID) for one in (reading, calm))
    assert wide[0] > 1.02 * narrow[0]
    assert wide[1] == pytest.approx(narrow[1], abs=1e-9)
