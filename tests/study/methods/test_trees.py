"""AG and the quadtree: known answers without noise, least squares, budgets, what they may see."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from shapely import Point, box

from benchmarks.utility import best_baseline
from dpregions import Grid, synthetic
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.law import pmf, variance
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.harness import errors_by_size, evaluate
from dpregions.study.methods import BASELINES, METHODS, SIMPLE_BASELINES
from dpregions.study.methods.baselines import centroid_points
from dpregions.study.methods.kd_tree import kd_tree
from dpregions.study.methods.trees import (
    adaptive_grid,
    first_side,
    least_squares,
    overlaps,
    quadtree,
    quadtree_height,
    second_sides,
)

EACH = pytest.mark.parametrize("method", [adaptive_grid, quadtree, kd_tree])
BOTH = pytest.mark.parametrize("method", [adaptive_grid, quadtree])


class Recorded:
    """A source of noise that keeps what it was asked for; adds nothing unless given a source."""

    private = False
    label = "recorded"

    def __init__(self, source=None):
        self.source = source
        self.exact, self.budgets, self.sensitivities, self.noisy = [], [], [], []

    def add(self, values, *, epsilon, sensitivity):
        values = np.asarray(values, np.int64)
        self.exact.append(values)
        self.budgets.append(Budget(epsilon))
        self.sensitivities.append(sensitivity)
        if self.source is not None:
            values = self.source.add(values, epsilon=epsilon, sensitivity=sensitivity)
        self.noisy.append(values)
        return values


class Deaf:
    """A source that ignores the counts: whatever is made of it depends on the data no more."""

    private = False
    label = "deaf"

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.shapes = []

    def add(self, values, *, epsilon, sensitivity):
        self.shapes.append(np.shape(values))
        high = 90_000 if np.size(values) == 1 else 300
        return self.rng.integers(-20, high, np.shape(values))


def of_points(yx, grid):
    return ExactData.of([Point(x, y) for y, x in yx], grid, grid.cell_size, user_id=None)


def scattered(n, n_rows, n_cols, seed=0):
    """Return points crowded towards the lower left corner."""
    yx = np.random.default_rng(seed).beta(1, 2, (n, 2)) * [n_rows, n_cols]
    return of_points(yx, Grid(0, 0, 1, n_rows=n_rows, n_cols=n_cols))


def all_rectangles(n_rows, n_cols, steps=(1, 1)):
    """Return all rectangles whose sides lie on every so many-th line."""
    rows, cols = (
        [(a, b - 1) for a in range(0, n, step) for b in range(a + step, n + 1, step)]
        for n, step in zip((n_rows, n_cols), steps, strict=True)
    )
    return np.array([[*row, *col] for row in rows for col in cols]).T


def points_in(data, rectangles):
    (row, col), (row0, row1, col0, col1) = data.centres, rectangles[:, :, None]
    return ((row >= row0) & (row <= row1) & (col >= col0) & (col <= col1)).sum(axis=1)


def whole(grid):
    return np.array([[0], [grid.n_rows - 1], [0], [grid.n_cols - 1]])


@pytest.fixture(scope="module")
def city():
    return ExactData.of(synthetic.regions(3000), synthetic.grid(), "2km")


# Where the points are.


def test_points_are_centroids_in_cells_moved_into_the_area_they_touch():
    grid = Grid(100, 200, 10, n_rows=2, n_cols=3)
    inside = [box(100, 200, 105, 210), Point(129, 219)]
    reaching = [box(95, 205, 103, 206), box(125, 215, 139, 219)]
    outside = [Point(115, 220), Point(130, 205)]
    data = ExactData.of(inside + reaching + outside, grid, 20, user_id=None)
    assert_allclose(data.points, [[0.5, 1.9, 0.55, 1.7], [0.25, 2.9, 0, 3]], atol=1e-5)
    assert_array_equal(data.centres, [[0, 1, 0, 1], [0, 2, 0, 2]])


@pytest.mark.parametrize("n", [1, 3, 10, 16, 20])
def test_every_point_is_in_exactly_one_part_of_each_level(n):
    corners = np.array([[a, b] for a in range(n + 1) for b in range(n + 1)], float)
    data = of_points(np.concatenate([corners, corners - 2.0**-20]), Grid(0, 0, 1, n, n))
    for method in (adaptive_grid, quadtree):
        noise = Recorded()
        method(data, Budget(1000), "add-remove", noise)
        assert len(noise.exact) >= 2 or n == 1
        assert {int(level.sum()) for level in noise.exact} == {2 * n * n}


@BOTH
def test_rounding_carries_no_point_over_the_edge(method):
    for n in range(1, 40):
        data = scattered(0, n, n)
        edge = np.nextafter(np.arange(1, n + 1.0), 0)
        data.__dict__["points"] = np.stack([edge, np.full(n, edge[-1])])
        noise = Recorded()
        found = method(data, Budget(1000), "add-remove", noise).answers(whole(data.grid))
        assert {int(level.sum()) for level in noise.exact} == {n}
        assert_allclose(found, [n])


# Known answers.


def test_a_quadtree_on_a_power_of_two_reproduces_point_counts_without_noise():
    data = scattered(500, 8, 8)
    rectangles = all_rectangles(8, 8)
    found = quadtree(data, Budget(1), "add-remove", Recorded()).answers(rectangles)
    assert_allclose(found, points_in(data, rectangles), atol=1e-9)


def test_a_quadtree_on_another_grid_reproduces_point_counts_along_its_leaves():
    data = scattered(500, 12, 20)  # 32 leaves an axis: 3 cells are 8 leaves, 5 cells are 8
    rectangles = all_rectangles(12, 20, (3, 5))
    assert rectangles.shape[1] == 10 * 10
    found = quadtree(data, Budget(1), "add-remove", Recorded()).answers(rectangles)
    assert_allclose(found, points_in(data, rectangles), atol=1e-9)


def test_a_partly_covered_leaf_of_a_quadtree_counts_by_area():
    data = of_points([(1.4, 1.4)], Grid(0, 0, 1, n_rows=3, n_cols=3))  # leaves of 3/4 of a cell
    found = quadtree(data, Budget(1), "add-remove", Recorded())
    cells = np.array([[0, 0, 1, 2], [0, 0, 1, 2], [0, 1, 1, 2], [0, 1, 1, 2]])
    third, rest = 1 / 3, 2 / 3
    assert_allclose(found.answers(cells), [third**2, third * rest, rest**2, 0], atol=1e-12)


def test_ag_reproduces_point_counts_along_its_blocks_without_noise():
    data = scattered(500, 20, 30)  # blocks of 2 x 3 cells
    aligned, others = all_rectangles(20, 30, (2, 3)), all_rectangles(20, 30)
    found = adaptive_grid(data, Budget(1), "add-remove", Recorded())
    assert_allclose(found.answers(aligned), points_in(data, aligned), atol=1e-9)
    assert abs(found.answers(others) - points_in(data, others)).max() > 1


def test_ag_reproduces_point_counts_along_its_leaves_without_noise():
    middles = np.array([[a + 0.5, b + 0.5] for a in range(20) for b in range(20)])
    data = of_points(np.repeat(middles, np.arange(400) % 3 + 3, axis=0), Grid(0, 0, 1, 20, 20))
    noise = Recorded()
    found = adaptive_grid(data, Budget(1), "add-remove", noise)
    # Blocks of 2 x 2 cells hold 12 to 20 points: m2 = ceil(sqrt(N' * 0.495 / 5)) = 2.
    assert noise.exact[2].shape == (400,)
    rectangles = all_rectangles(20, 20)
    assert_allclose(found.answers(rectangles), points_in(data, rectangles), atol=1e-9)


def test_ag_spreads_a_leaf_evenly_over_its_area():
    data = of_points([(1.1, 0.1)], Grid(0, 0, 1, n_rows=40, n_cols=20))  # a block is 4 x 2 cells
    found = adaptive_grid(data, Budget(1), "add-remove", Recorded())
    cells = np.array([[0, 3, 0, 4], [0, 3, 3, 4], [0, 0, 0, 0], [0, 1, 1, 0]])
    assert_allclose(found.answers(cells), [1 / 8, 2 / 8, 1, 0], atol=1e-12)


@EACH
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (3, 7), (20, 20), (17, 33)])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_without_noise_the_whole_area_holds_every_point(method, shape, neighbours):
    data = scattered(300, *shape)
    found = method(data, Budget(1), neighbours, Recorded())
    assert_allclose(found.answers(whole(data.grid)), [300], atol=1e-9)


@EACH
def test_no_regions_give_noise_about_nothing(method):
    nothing = [
        ExactData.of([], Grid(0, 0, 1, 4, 6), 1, user_id=None),
        of_points([(9, 9)], Grid(0, 0, 1, 4, 6)),  # outside the area
    ]
    for data in nothing:
        rectangles = all_rectangles(4, 6)
        assert not method(data, Budget(1), "add-remove", Recorded()).answers(rectangles).any()
        noisy = method(data, Budget(1), "add-remove", StudyNoise(0)).answers(rectangles)
        assert np.isfinite(noisy).all() and noisy.any()


def test_answers_of_ag_are_leaf_counts_weighted_by_overlapped_area(city):
    noise = Recorded(StudyNoise(3))
    found = adaptive_grid(city, Budget(1), "add-remove", noise)
    _, coarse, fine = noise.budgets
    _, blocks, leaves = noise.noisy
    m2 = second_sides(blocks, float(fine))
    fit = least_squares([blocks, leaves], [np.repeat(np.arange(100), m2**2)], [coarse, fine])[-1]
    bounds = []  # of each leaf, as the paper has it: block by block, in cells
    for block, m in enumerate(m2):
        for leaf in range(m * m):
            y, x = block // 10 * 2 + leaf // m * 2 / m, block % 10 * 2 + leaf % m * 2 / m
            bounds.append((x, y, x + 2 / m, y + 2 / m))
    tiles = np.array([box(*bound) for bound in bounds])
    for row0, row1, col0, col1 in [(0, 19, 0, 19), (3, 9, 4, 4), (7, 7, 11, 16)]:
        asked = box(col0, row0, col1 + 1, row1 + 1)
        share = np.array([tile.intersection(asked).area / tile.area for tile in tiles])
        answer = found.answers(np.array([[row0], [row1], [col0], [col1]]))
        assert_allclose(answer, [share @ fit], rtol=1e-9)


@given(st.integers(1, 40), st.integers(1, 40))
def test_pieces_lie_wholly_in_the_cells_and_cells_wholly_in_the_pieces(pieces, n_cells):
    shares = overlaps(np.arange(pieces), pieces, n_cells)
    assert (shares >= 0).all()
    assert_allclose(shares.sum(axis=1), 1)
    assert_allclose(shares.sum(axis=0), pieces / n_cells)


# The papers' rules.


def test_the_first_side_of_ag():
    assert [first_side(n, 1.0) for n in (0, 16_000, 16_001, 64_001)] == [10, 10, 11, 21]
    assert first_side(1_000_000, 0.1) == 25
    assert first_side(-1000, 1.0) == 10


def test_the_second_sides_of_ag():
    assert_array_equal(
        second_sides(np.array([-9, 0, 5, 6, 20, 21, 500]), 1.0), [1, 1, 1, 2, 2, 3, 10]
    )
    assert_array_equal(second_sides(np.array([50, 51]), 0.1), [1, 2])


@pytest.mark.parametrize(
    ("shape", "height"), [((1, 1), 0), ((2, 1), 1), ((3, 2), 2), ((16, 16), 4), ((20, 17), 5)]
)
def test_leaves_of_the_quadtree_are_no_larger_than_cells(shape, height):
    assert quadtree_height(Grid(0, 0, 1, *shape)) == height


@BOTH
@pytest.mark.parametrize(("neighbours", "reach"), [("add-remove", 1), ("replace-one", 2)])
@pytest.mark.parametrize("epsilon", [1, 0.1, Fraction(1, 3)])
def test_shares_add_up_to_epsilon_exactly(city, method, neighbours, reach, epsilon):
    noise = Recorded(StudyNoise(0))
    method(city, Budget(epsilon), neighbours, noise)
    assert sum(budget.epsilon for budget in noise.budgets) == Budget(epsilon).epsilon
    assert set(noise.sensitivities) == {reach}


def test_levels_of_ag_have_equal_shares_after_a_hundredth_for_the_total(city):
    noise = Recorded()
    adaptive_grid(city, Budget(1), "add-remove", noise)
    shares = [budget.epsilon for budget in noise.budgets]
    assert shares == [Fraction(1, 100), Fraction(99, 200), Fraction(99, 200)]
    assert [level.size for level in noise.exact[:2]] == [1, 100]


def test_shares_of_the_quadtree_grow_by_the_cube_root_of_two(city):
    noise = Recorded()
    quadtree(city, Budget(1), "add-remove", noise)
    shares = np.array([float(budget) for budget in noise.budgets])
    assert [level.size for level in noise.exact] == [4**depth for depth in range(6)]
    assert_allclose(shares[1:] / shares[:-1], 2 ** (1 / 3))


def test_ag_splits_less_where_a_neighbour_moves_two_points(city):
    sizes = {}
    for neighbours, epsilon in [("add-remove", 1), ("replace-one", 1), ("replace-one", 2)]:
        noise = Recorded()
        adaptive_grid(city, Budget(epsilon), neighbours, noise)
        sizes[neighbours, epsilon] = noise.exact[2].size
    assert sizes["replace-one", 1] < sizes["add-remove", 1] == sizes["replace-one", 2]


# What they may see.


@EACH
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_same_noisy_counts_give_the_same_structure_and_answers_whatever_the_data(
    city, method, neighbours
):
    grid = city.grid
    others = [
        ExactData.of(synthetic.regions(0), grid, "2km"),
        ExactData.of(synthetic.regions(900, seed=5), grid, "2km"),
    ]
    rectangles = all_rectangles(20, 20, (3, 3))
    heard = Deaf(1)
    expected = method(city, Budget(1), neighbours, heard).answers(rectangles)
    for data in others:
        deaf = Deaf(1)
        assert_array_equal(method(data, Budget(1), neighbours, deaf).answers(rectangles), expected)
        assert deaf.shapes == heard.shapes
    assert method is not adaptive_grid or heard.shapes[1] != (100,)  # the noisy total chose m1


# Least squares.


@st.composite
def small_trees(draw):
    """Return parents of a tree of 1 to 4 levels, and one share a level."""
    sizes = [draw(st.integers(1, 4))]
    parents = []
    for _ in range(draw(st.integers(0, 3))):
        children = draw(st.lists(st.integers(1, 4), min_size=sizes[-1], max_size=sizes[-1]))
        parents.append(np.repeat(np.arange(sizes[-1]), children))
        sizes.append(sum(children))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes)))
    return parents, sizes, Budget(1).split(*weights)


def solved(noisy, parents, shares):
    """Return the leaves by a general solver, from one equation a count."""
    rows = [np.eye(len(noisy[-1]))]
    for up in reversed(parents):
        onto = np.zeros((up.max() + 1, len(up)))
        onto[up, np.arange(len(up))] = 1
        rows.insert(0, onto @ rows[0])
    weight = np.concatenate([np.full(len(n), float(s)) for n, s in zip(noisy, shares, strict=True)])
    left, right = np.concatenate(rows), np.concatenate(noisy)
    leaves = np.linalg.lstsq(left * weight[:, None], right * weight, rcond=None)[0]
    return [row @ leaves for row in rows]


@given(small_trees(), st.integers(0, 99))
def test_the_fit_of_any_small_tree_is_that_of_a_general_solver(tree, seed):
    parents, sizes, shares = tree
    rng = np.random.default_rng(seed)
    noisy = [rng.integers(-50, 50, size) for size in sizes]
    found = least_squares(noisy, parents, shares)
    for level, expected in zip(found, solved(noisy, parents, shares), strict=True):
        assert_allclose(level, expected, atol=1e-8)
    for up, above, below in zip(parents, found, found[1:], strict=False):
        assert_allclose(np.bincount(up, below), above, atol=1e-8)


@given(small_trees())
def test_no_fitted_leaf_varies_more_than_its_own_noise(tree):
    parents, sizes, shares = tree
    ends = np.cumsum(sizes)
    variances = np.repeat([float(share) ** -2 for share in shares], sizes)
    effects = [
        least_squares(np.split(one, ends[:-1]), parents, shares)[-1] for one in np.eye(ends[-1])
    ]
    fitted = variances @ np.square(effects)
    assert (fitted <= variances[-1] * (1 + 1e-9)).all()
    if parents:
        assert (fitted < variances[-1]).all()


def test_the_fit_of_two_levels_is_the_formula_of_ag():
    alpha, m2, block, leaves = 0.3, 3, 40, np.arange(9)
    own = alpha**2 * m2**2 / ((1 - alpha) ** 2 + alpha**2 * m2**2)
    better = own * block + (1 - own) * leaves.sum()
    expected = leaves + (better - leaves.sum()) / m2**2
    shares = Budget(2).split(alpha, 1 - alpha)
    above, below = least_squares([np.array([block]), leaves], [np.zeros(9, np.int64)], shares)
    assert_allclose(above, [better])
    assert_allclose(below, expected)


def test_counts_that_agree_are_left_alone():
    leaves, up = np.array([1, 2, 3, 4, -5]), np.array([0, 0, 1, 1, 1])
    fit = least_squares([np.array([3, 2]), leaves], [up], Budget(1).split(1, 1))
    assert_allclose(fit[0], [3, 2])
    assert_allclose(fit[1], leaves)


# With noise.


def deviations(method, data, rectangles, expected, n=400):
    """Return how far the mean of n runs is off what is expected, in standard errors."""
    runs = [
        method(data, Budget(1), "add-remove", StudyNoise(seed)).answers(rectangles)
        for seed in range(n)
    ]
    return (np.mean(runs, axis=0) - expected) / (np.std(runs, axis=0) / np.sqrt(n))


def test_answers_of_the_quadtree_are_right_on_average():
    data = scattered(800, 16, 16)
    rectangles = all_rectangles(16, 16)[:, ::37]
    off = deviations(quadtree, data, rectangles, points_in(data, rectangles))
    assert abs(off).max() < 5


def lean(count, epsilon):
    """Return the bias of a block of AG: its noise, by the weight that this noise itself chose."""
    noise = np.arange(-200, 201)
    m2 = second_sides(count + noise, epsilon)
    return (pmf(noise, scale_for(epsilon, 1)) * noise * m2**2 / (1 + m2**2)).sum()


def test_answers_of_ag_are_right_on_average_but_for_the_lean_of_its_blocks():
    data = scattered(800, 10, 10)  # a block is a cell
    cells = np.stack([np.repeat(np.arange(10), 10)] * 2 + [np.tile(np.arange(10), 10)] * 2)
    counts = points_in(data, cells).reshape(10, 10)
    leans = np.array([lean(count, 99 / 200) for count in counts.ravel()]).reshape(10, 10)
    assert (leans >= 0).all() and 3 < leans.sum() < 30
    rectangles = all_rectangles(10, 10)[:, ::13]
    expected = [(counts + leans)[a : b + 1, c : d + 1].sum() for a, b, c, d in rectangles.T]
    assert abs(deviations(adaptive_grid, data, rectangles, expected)).max() < 5
    assert abs(deviations(adaptive_grid, data, rectangles, points_in(data, rectangles))).max() > 5


def test_the_fit_makes_leaves_of_the_quadtree_and_sums_of_them_less_noisy():
    data, n = scattered(800, 8, 8), 400
    rectangles, runs = all_rectangles(8, 8), []
    for seed in range(n):
        noise = Recorded(StudyNoise(seed))
        runs.append(quadtree(data, Budget(1), "add-remove", noise).answers(rectangles))
    leaf = variance(scale_for(noise.budgets[-1], 1))
    row0, row1, col0, col1 = rectangles
    area = (row1 - row0 + 1) * (col1 - col0 + 1)
    ratio = np.var(runs, axis=0) / (area * leaf)
    assert ratio[area == 1].mean() < 0.95
    assert ratio.max() < 1.3  # chance: the deviation of a variance over 400 runs is 11 %
    assert ratio[area == 64] < 0.3


def test_replacing_one_doubles_the_noise():
    data = scattered(800, 8, 8)

    def spread(method, neighbours):
        runs = [
            method(data, Budget(0.5), neighbours, StudyNoise(seed)).answers(whole(data.grid))
            for seed in range(300)
        ]
        return float(np.std(runs))

    for method in (adaptive_grid, quadtree):
        assert 1.7 < spread(method, "replace-one") / spread(method, "add-remove") < 2.3


# In the harness.


def test_trees_are_methods_of_the_harness_and_not_among_the_simple_baselines(city):
    assert {"adaptive grid", "quadtree", "kd-tree"} <= set(METHODS)
    assert set(BASELINES) - set(SIMPLE_BASELINES) == {"adaptive grid", "quadtree", "kd-tree"}
    table = evaluate(city, BASELINES, epsilon=1, repetitions=2, shares=(0.05, 1.0), placements=20)
    assert set(table["method"]) == set(BASELINES)
    assert best_baseline(table, 1.0) in SIMPLE_BASELINES


def test_trees_err_about_as_much_as_centroid_points_on_a_city(city):
    """Regions that only reach in are missed by all of them, which is most of their error."""
    names = ("centroid points", "adaptive grid", "quadtree", "kd-tree")
    table = evaluate(city, names, epsilon=1, repetitions=5, shares=(0.1,), placements=100)
    errors = errors_by_size(table)[0.1]
    assert_allclose(errors / errors["centroid points"], 1, atol=0.2)
    found = centroid_points(city, Budget(1), "add-remove", Recorded())
    assert_allclose(found.answers(whole(city.grid)), [city.points.shape[1]])
