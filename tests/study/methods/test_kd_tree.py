"""The kd-tree: medians without noise, what its budget goes to, what its noise must hide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from shapely import Point

from dpregions import Grid
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.methods.kd_tree import CANDIDATES, kd_tree, spread


class Scores:
    """Noise that keeps what it was asked for, and adds nothing."""

    private = False
    label = "none"

    def __init__(self):
        self.asked = []

    def add(self, values, *, epsilon, sensitivity):
        self.asked.append((np.array(values), Budget(epsilon).epsilon, sensitivity))
        return np.array(values)

    def counts(self):
        """What was counted, depth by depth: the levels whose sizes are powers of four."""
        return [values for values, *_ in self.asked if (values >= 0).all() and values.any()]


def points_at(yx, n=8):
    grid = Grid(0, 0, 1, n, n)
    return ExactData.of([Point(x, y) for y, x in yx], grid, 1, user_id=None)


def test_parts_are_cut_where_they_hold_half_of_the_points():
    rng = np.random.default_rng(1)
    noise = Scores()
    kd_tree(points_at(rng.beta(1, 6, (4000, 2)) * 8), Budget(1), "add-remove", noise)
    quarters = noise.counts()[1]
    assert quarters.shape == (4,) and quarters.sum() == 4000
    # A quadtree would have nearly all of them in one quarter; steps are a 32nd of the side.
    assert quarters.min() > 700 and quarters.max() < 1400


def test_every_point_is_in_one_part_of_each_depth():
    noise = Scores()
    corners = [(a, b) for a in range(8) for b in range(8)]  # on the lines of all cuts
    kd_tree(points_at(corners), Budget(1), "add-remove", noise)
    counts = noise.counts()
    assert [level.size for level in counts] == [1, 4, 16, 64]
    assert {int(level.sum()) for level in counts} == {64}


def test_below_the_medians_parts_are_cut_in_the_middle():
    """Of three depths the upper two have medians: the last cuts know nothing of the points."""
    noise = Scores()
    kd_tree(points_at([(1, 1)] * 9), Budget(1), "add-remove", noise)
    asked = [values.size for values, *_ in noise.asked]
    parts = [1, 2, 4, 8]
    assert [size for size in asked if size % (CANDIDATES - 1) == 0] == [
        (CANDIDATES - 1) * n for n in parts
    ]


def test_leaves_count_by_the_area_of_cells_that_they_share():
    found = kd_tree(points_at([(1, 1), (6, 6)]), Budget(1), "add-remove", Scores())
    all_of_it = np.array([[0], [7], [0], [7]])
    assert_allclose(found.answers(all_of_it), [2])


def test_pieces_share_themselves_out_among_cells():
    low, high = np.array([0.0, 0.3, 2.0]), np.array([0.3, 2.0, 3.0])
    shares = spread(low, high, 3)
    assert_allclose(shares.sum(axis=1), 1)
    assert_allclose(shares[1], np.array([0.7, 1.0, 0]) / 1.7)


@pytest.mark.parametrize(("neighbours", "reach"), [("add-remove", 1), ("replace-one", 2)])
@pytest.mark.parametrize("epsilon", [1, 0.1, Fraction(1, 3)])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_shares_add_up_to_epsilon_and_choices_have_twice_the_noise_of_counts(
    neighbours, reach, epsilon, n
):
    noise = Scores()
    kd_tree(points_at([(0.5, 0.5)] * 5, n), Budget(epsilon), neighbours, noise)
    assert sum(share for _, share, _ in noise.asked) == Budget(epsilon).epsilon
    factors = {values.size % (CANDIDATES - 1) == 0: sens for values, _, sens in noise.asked}
    assert factors[False] == reach
    assert n == 1 or factors[True] == 2 * reach


def test_one_point_moves_every_score_by_at_most_one():
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 8, (60, 2))
    one, other = Scores(), Scores()
    kd_tree(points_at(points), Budget(1), "add-remove", one)
    kd_tree(points_at(points[1:]), Budget(1), "add-remove", other)
    # Of the first choice alone: later ones are about other parts once it differs.
    first, second = (
        next(values for values, *_ in noise.asked if values.size == CANDIDATES - 1)
        for noise in (one, other)
    )
    assert_array_equal(np.abs(first - second), 1)


def test_the_median_errs_where_noise_is_large():
    """The choice is private: with a tiny budget cuts lie anywhere."""
    rng = np.random.default_rng(3)
    data = points_at(rng.beta(1, 6, (400, 2)) * 8)
    cuts = []
    for seed in range(20):
        found = kd_tree(data, Budget(0.01), "add-remove", StudyNoise(seed))
        cuts.append(found.answers(np.array([[0], [3], [0], [3]]))[0])
    assert np.std(cuts) > 50
