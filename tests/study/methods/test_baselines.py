"""Simple baselines: known answers without noise, and which noise they ask for."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from numpy.testing import assert_allclose, assert_array_equal
from shapely import box

from dpregions import Grid, synthetic
from dpregions.geometry.outlines import Outlines
from dpregions.planning.exact_data import ExactData, centroids
from dpregions.privacy.budget import Budget
from dpregions.study.methods import METHODS
from dpregions.study.methods.baselines import (
    CellSums,
    cell_counts,
    centroid_points,
    corner_histograms,
)
from support.watched_noise import NoNoise

GRID = Grid(0, 0, 1, n_rows=5, n_cols=6)
BOXES = [
    box(0.2, 0.2, 0.4, 0.4),  # one cell
    box(1.5, 1.5, 2.5, 2.5),  # four cells
    box(3.1, 0.5, 4.7, 0.6),  # two cells in a row
    box(5.5, 4.5, 7.0, 6.0),  # mostly outside
    box(-1.8, 2.2, -0.1, 2.3),  # wholly outside
]


def all_rectangles(n_rows, n_cols):
    rows, cols = np.triu_indices(n_rows), np.triu_indices(n_cols)
    pick_row, pick_col = np.indices((len(rows[0]), len(cols[0]))).reshape(2, -1)
    return np.stack([rows[0][pick_row], rows[1][pick_row], cols[0][pick_col], cols[1][pick_col]])


def answers_of(baseline, data, queries, neighbours="add-remove"):
    noise = NoNoise()
    found = baseline(data, Budget(1), neighbours, noise)
    return found.answers(queries), noise.calls


@pytest.fixture(scope="module")
def data():
    return ExactData.of(BOXES, GRID, 2, user_id=None)


@pytest.fixture(scope="module")
def city():
    return ExactData.of(synthetic.regions(300), synthetic.grid(), "2km")


def test_the_truth_counts_each_region_once(data):
    query = np.array([[0, 1, 4], [4, 2, 4], [0, 1, 5], [5, 2, 5]])
    assert_array_equal(data.truth.answers(query), [4, 1, 1])
    assert data.n_regions == 4


def test_cell_counts_are_sums_of_faces_with_noise_for_every_cell_a_region_may_touch(data):
    queries = all_rectangles(*GRID.shape)
    answers, calls = answers_of(cell_counts, data, queries)
    faces = data.counts[::2, ::2]
    expected = [faces[a : b + 1, c : d + 1].sum() for a, b, c, d in queries.T]
    assert_array_equal(answers, expected)
    assert calls == [(1.0, 9)]
    _, calls = answers_of(cell_counts, data, queries, "replace-one")
    assert calls == [(1.0, 18)]


def test_a_small_grid_cuts_the_sensitivity_of_cell_counts():
    small = ExactData.of(BOXES, Grid(0, 0, 1, n_rows=2, n_cols=6), 2, user_id=None)
    _, calls = answers_of(cell_counts, small, all_rectangles(2, 6))
    assert calls == [(1.0, 2 * 3)]


def test_centroid_points_count_each_region_once_where_its_centroid_is_or_next_to_it(data):
    queries = all_rectangles(*GRID.shape)
    answers, calls = answers_of(centroid_points, data, queries)
    middles = shapely.get_coordinates(shapely.centroid(np.array(BOXES)))
    touching = shapely.intersects(np.array(BOXES), box(*GRID.bounds))
    points = np.clip(np.floor(middles[touching][:, ::-1]), 0, np.array(GRID.shape) - 1)
    expected = [
        ((points >= [a, c]) & (points <= [b, d])).all(axis=1).sum() for a, b, c, d in queries.T
    ]
    assert_array_equal(answers, expected)
    assert answers.max() == 4  # the centroid of the fourth lies outside the area
    assert calls == [(1.0, 1)]


def test_four_corners_reproduce_counts_of_bounding_boxes_exactly(data, city):
    for some in (data, city):
        queries = all_rectangles(*some.grid.shape)
        answers, calls = answers_of(corner_histograms, some, queries)
        low, up, left, right = some.boxes
        expected = [
            ((low <= b) & (up >= a) & (left <= d) & (right >= c)).sum() for a, b, c, d in queries.T
        ]
        assert_array_equal(answers, expected)
        assert calls == [(0.25, 1)] * 4


def test_four_corners_are_exact_for_boxes(data):
    queries = all_rectangles(*GRID.shape)
    answers, _ = answers_of(corner_histograms, data, queries)
    assert_array_equal(answers, data.truth.answers(queries))


def test_centroids_of_areas_segments_points_and_nothing():
    xy = np.array([[0, 0], [6, 0], [0, 6], [2, 2], [4, 8], [5, 5], [0, 0], [4, 0], [4, 2], [0, 2]])
    outlines = Outlines(xy, np.array([0, 3, 3, 5, 6, 10]))
    assert_allclose(centroids(outlines), [[2, 2], [3, 5], [5, 5], [2, 1]])


def test_cell_sums_of_a_matrix():
    sums = CellSums(np.array([[1, 2], [3, -4]]))
    assert_array_equal(
        sums.answers(np.array([[0, 1, 0], [0, 1, 1], [0, 1, 0], [1, 1, 1]])), [3, -4, 2]
    )


def test_without_noise_the_paper_and_the_corners_are_exact_on_boxes(data):
    for name, answer in (("paper", "round"), ("four corners", "four corners")):
        found = METHODS[name](data, Budget(1), "add-remove", NoNoise())[answer]
        queries = all_rectangles(*GRID.shape)
        assert_array_equal(found.answers(queries), data.truth.answers(queries))


def test_exact_data_says_that_it_is_no_release(data):
    assert "not a private release" in repr(data)
