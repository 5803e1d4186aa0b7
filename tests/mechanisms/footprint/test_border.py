"""The border walk: rectangles' estimates and errors, held against going through every part."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.mechanisms.footprint import border_kernel
from dpregions.mechanisms.footprint.alike import Alike
from dpregions.mechanisms.footprint.border import (
    NODE,
    Border,
    Letters,
    Parts,
    Shares,
    Unsure,
    border_of,
    nodes_of,
    smooth_table,
)
from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.choice import candidates
from dpregions.mechanisms.footprint.levels import SHAPES as SHAPES_COUNTED
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy
from dpregions.mechanisms.footprint.measuring import Measured, Noisy, Strategy
from dpregions.mechanisms.footprint.reading import Reading
from support.border_oracle import by_all_buckets, chances, held_in_parts, plain_tree
from support.footprint_releases import BLOCKS, JOINED, PLAIN, SHAPES, UNIT_GRID, study, town
from support.trees import buckets_of

SHAPES_OF_GRIDS = [(1, 1), (1, 9), (7, 2), (4, 5), (9, 9), (13, 6)]


def strategies(shape: tuple[int, int], k: int) -> list[Strategy]:
    """Every strategy of every family that a grid may be given."""
    return candidates(min(k + 1, max(shape)), *shape, shapes=k < 2)


@cache
def tree(shape: tuple[int, int], k: int, strategy: Strategy) -> Hierarchy:
    return Hierarchy.of(buckets_of(shape, k, strategy.alphabet), strategy.levels)


def reading_of(shape, k, strategy, seed) -> Reading:
    """A made-up reading: counts with hot spots, noise of mixed variance, negatives among them."""
    rng, hierarchy = np.random.default_rng(seed), tree(shape, k, strategy)
    counts = rng.poisson(rng.gamma(0.3, 5, len(hierarchy.buckets)))
    noisy = {}
    for level in (WHOLE, *strategy.weights):
        if level == SHAPES_COUNTED:
            exact = rng.poisson(20, hierarchy.n_parts(level))
        else:
            exact = hierarchy.sums(level, counts)
        variance = float(rng.choice([0.5, 2, 8, 50]))
        noise = rng.laplace(0, (variance / 2) ** 0.5, len(exact))
        noisy[level] = Noisy(exact + np.rint(noise), variance)
    return Reading(Measured(hierarchy, noisy))


def rectangles(shape, rng, n=12) -> np.ndarray:
    """Random rectangles of cells, single cells, and the whole area."""
    rows, cols = (np.sort(rng.integers(0, m, (2, n)), axis=0) for m in shape)
    some = np.concatenate([rows, cols])
    some[1, :3], some[3, :3] = some[0, :3], some[2, :3]
    whole = np.array([[0], [shape[0] - 1], [0], [shape[1] - 1]])
    return np.concatenate([some, whole], axis=1)


def same(found, wanted, scale=1.0) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * scale)


# On the levels of a hierarchy


@st.composite
def made_up_readings(draw) -> tuple[Reading, np.ndarray]:
    shape, k = draw(st.sampled_from(SHAPES_OF_GRIDS)), draw(st.sampled_from([1, 2, 5]))
    strategy = draw(st.sampled_from(strategies(shape, k) or [PLAIN]))
    seed = draw(st.integers(0, 2**32))
    return reading_of(shape, k, strategy, seed), rectangles(shape, np.random.default_rng(seed))


@given(made_up_readings())
def test_the_walk_finds_what_going_through_every_part_finds(made):
    reading, ranges = made
    wanted = by_all_buckets(reading, ranges)
    walk = border_of(reading.measured, reading.expected, held_in_parts(reading), reading.fitted)
    found, scale = walk.rectangles(ranges), max(np.abs(reading.fitted).sum(), 1.0)
    same(found.estimate, wanted.estimate, scale)
    same(found.variance, wanted.variance, 1e-2)
    same(found.uncertain[0], wanted.spread, 1e-3 * scale)
    same(found.uncertain[1], wanted.squares, 1e-3 * scale**2)


@given(made_up_readings())
def test_one_rectangle_is_answered_as_many_are_to_the_last_bit(made):
    reading, ranges = made
    walk = reading.border
    many = np.array(walk.rectangles(ranges))
    for i, cells in enumerate(ranges.T.tolist()):
        np.testing.assert_array_equal(np.array(walk.rectangle(*cells)), many[:, i])


@given(made_up_readings())
def test_virtual_nodes_change_nothing(made):
    reading, ranges = made
    deep = border_of(reading.measured, reading.expected, held_in_parts(reading), reading.fitted)
    parent, nodes, _ = nodes_of(reading.measured, held_in_parts(reading), reading.fitted)
    flat = Border(plain_tree(parent, nodes), deep.letters, deep.shares)
    scale = max(np.abs(reading.fitted).sum(), 1.0)
    for a, b in zip(deep.rectangles(ranges), flat.rectangles(ranges), strict=True):
        same(a, b, scale)


def test_between_a_root_and_many_cells_no_node_has_more_than_four_places_below():
    reading = reading_of((13, 6), 1, PLAIN, 0)
    parts = reading.border.parts
    n_sizes = len(reading.measured.hierarchy.buckets.heights)
    assert (parts.nodes["n"] <= max(4, n_sizes)).all()
    below = np.concatenate([np.arange(m["first"], m["first"] + m["n"]) for m in parts.nodes])
    np.testing.assert_array_equal(np.sort(below), np.arange(1, len(parts.nodes)))
    assert (parts.nodes["n"] == 0).sum() == len(reading.measured.hierarchy.buckets)


@given(made_up_readings())
def test_what_a_query_cuts_is_never_certain(made):
    """With a floor, as least spread as if each cut part were torn by it; else as without one."""
    reading, ranges = made
    given = reading.measured, reading.expected, held_in_parts(reading), reading.fitted
    plain = border_of(*given).rectangles(ranges)
    torn = border_of(*given, Unsure(0.25, 0.25)).rectangles(ranges)
    floored = border_of(*given, Unsure(0.1, 0.1)).rectangles(ranges)
    for least, more, most in zip(plain[2:], floored[2:], torn[2:], strict=True):
        assert (least <= more + 1e-9).all() and (more <= most + 1e-9).all()
        assert (more >= 0.4 * most - 1e-9).all()
        assert not more[-1] and not most[-1]  # the whole area
    same(plain.variance, torn.variance)
    same(plain.estimate, torn.estimate)


def test_queries_of_no_cells_find_nothing():
    walk = reading_of((4, 5), 1, BLOCKS, 0).border
    empty = walk.rectangles(np.array([[0, 2], [-1, 3], [0, 4], [3, 3]]))
    assert not np.nan_to_num(np.array(empty)).any()


@pytest.mark.parametrize("strategy", [PLAIN, BLOCKS, SHAPES, JOINED])
def test_an_inside_test_that_is_off_by_one_cell_is_caught(strategy, monkeypatch):
    """A mutant: what touches the column beside the query is taken to touch it."""
    reading, ranges = (
        reading_of((9, 9), 1, strategy, 3),
        rectangles((9, 9), np.random.default_rng(3)),
    )
    wanted = by_all_buckets(reading, ranges)
    right = in_python(reading.border, ranges, monkeypatch)
    same(right[1], wanted.variance, 1e-2)
    inside = border_kernel.meets

    def wider(node, group, n_rows, n_cols, q0, q1, q2, q3):
        return inside(node, group, n_rows, n_cols, q0, q1, q2, min(q3 + 1, n_cols - 1))

    monkeypatch.setattr(border_kernel, "meets", wider)
    wrong = in_python(reading.border, ranges, monkeypatch)
    assert not np.allclose(wrong[1], wanted.variance, rtol=1e-6)


def in_python(walk: Border, ranges: np.ndarray, monkeypatch) -> np.ndarray:
    """What the walk finds when Python runs it, so that its steps can be replaced."""
    for name, value in vars(border_kernel).items():
        if hasattr(value, "py_func"):
            monkeypatch.setattr(border_kernel, name, value.py_func)
    n_rows, n_cols, letters, tables, groups, members = walk.letters
    records = [a.view(np.recarray) for a in (walk.parts.nodes, letters, groups)]
    found = np.zeros((6, ranges.shape[1]))
    border_kernel.walk(
        records[0], walk.parts.depth, n_rows, n_cols, records[1], tables, records[2], members,
        *walk.shares, *walk.unsure, *Alike.none(), ranges, found,
    )  # fmt: skip
    return found


# On trees of uneven depth, with a density of regions


@dataclass
class Ragged:
    """A tree by hand: its nodes, what was measured of each, and the buckets of its leaves."""

    buckets: Buckets
    rng: np.random.Generator
    nodes: list = field(default_factory=list)
    parent: list = field(default_factory=list)
    variance: list = field(default_factory=list)
    groups: list = field(default_factory=list)

    def grow(self, above: int, row: int, col: int, side: int, group: int) -> int:
        """Add a node and, as chance has it, quarters of its block or single letters below."""
        i, rng = len(self.nodes), self.rng
        node = np.zeros((), NODE)
        node["row"], node["col"], node["side"], node["group"] = row, col, side, group
        self.nodes.append(node)
        self.parent.append(above)
        self.variance.append(float(rng.uniform(0.5, 9)))
        below = []
        if side > 1 and rng.random() < 0.75:
            below = [
                (r, c, side // 2, group)
                for r in (row, row + side // 2)
                for c in (col, col + side // 2)
                if r < self.buckets.n_rows and c < self.buckets.n_cols
            ]
        elif len(self.groups[group]) > 1 and rng.random() < 0.5:
            below = [(row, col, side, 1 + k) for k in self.groups[group]]
        below = [one for one in below if self.members(*one).size]
        for one in below:
            self.grow(i, *one)
        if below and rng.random() < 0.4:
            self.variance[i] = np.inf
        node["detail"] = not below
        return i

    def members(self, row: int, col: int, side: int, group: int) -> np.ndarray:
        """The buckets of a block and a group."""
        r, c = self.buckets.centres
        inside = (r >= row) & (r < row + side) & (c >= col) & (c < col + side)
        return np.flatnonzero(inside & np.isin(self.buckets.letters, self.groups[group]))


def ragged(shape, k, seed) -> tuple[Ragged, np.ndarray, np.ndarray]:
    """A random tree, its nodes with spreads and fits, and its leaves' buckets as a matrix."""
    buckets, rng = buckets_of(shape, k), np.random.default_rng(seed)
    n_letters = len(buckets.heights)
    tree = Ragged(buckets, rng, groups=[np.arange(n_letters), *np.arange(n_letters)[:, None]])
    side = 1
    while side < max(shape):
        side *= 2
    tree.grow(-1, 0, 0, side, 0)
    nodes = np.array(tree.nodes, NODE)
    inner = np.zeros(len(nodes), bool)
    inner[tree.parent[1:]] = True
    nodes["held"], nodes["fit"] = np.where(inner, 0, rng.gamma(1, 3, (2, len(nodes))))
    below = np.zeros(len(nodes))
    for i in range(len(nodes) - 1, -1, -1):
        own = tree.variance[i]
        s = below[i] if inner[i] else own
        if inner[i] and np.isfinite(own):
            s = own * s / (own + s)
        nodes["spread"][i] = s
        if i:
            below[tree.parent[i]] += s
            nodes["fit"][tree.parent[i]] += nodes["fit"][i]
    leaves = np.flatnonzero(~inner)
    of_leaf = np.zeros((len(leaves), len(buckets)))
    for j, i in enumerate(leaves):
        of_leaf[
            j, tree.members(*(int(nodes[i][name]) for name in ("row", "col", "side", "group")))
        ] = 1
    assert (of_leaf.sum(axis=0) == 1).all()
    return tree, nodes, of_leaf


@given(
    st.sampled_from([(4, 5), (8, 8), (7, 11)]),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_a_ragged_tree_is_answered_as_plain_linear_algebra_says(shape, k, even, seed):
    tree, nodes, of_leaf = ragged(shape, k, seed)
    b, rng = tree.buckets, tree.rng
    density = np.ones(shape) if even else rng.choice([0.0, 0.01, 1.0, 7.0], shape)
    weights = rng.uniform(0.1, 1, len(b.heights))
    letters = Letters.of(shape, b.heights, b.widths, tree.groups, weights, b.tables)
    table = np.pad(density.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    walk = Border(
        Parts.of(np.array(tree.parent), nodes), letters, Shares.by_density(table, few=1 << 30)
    )
    ranges = rectangles(shape, rng)
    found = walk.rectangles(ranges)

    chance = chances(b, ranges)
    share = of_leaf * weights[b.letters]
    dense = share * density[b.centres]
    share = np.where(dense.sum(axis=1, keepdims=True) > 1e-9, dense, share)
    p = chance @ (share / share.sum(axis=1, keepdims=True)).T
    leaves = np.setdiff1d(np.arange(len(nodes)), tree.parent)
    same(found.estimate, p @ nodes["fit"][leaves], 10)
    same(found.detail, np.maximum(p * (1 - p), 0) @ nodes["held"][leaves], 10)
    same(found.detail_squares, np.maximum(p * (1 - p), 0) @ nodes["held"][leaves] ** 2, 100)
    assert not found.bucket.any()
    under = np.zeros((len(nodes), len(leaves)))
    for j, i in enumerate(leaves):
        while i >= 0:
            under[i, j] = 1
            i = tree.parent[i]
    rows = under / np.sqrt(tree.variance)[:, None]
    covariance = np.linalg.inv(rows.T @ rows)
    same(found.variance, ((p @ covariance) * p).sum(axis=1), 10)


@pytest.mark.parametrize("cells", [(3, 9, 2, 12), (6, 6, 7, 7), (0, 15, 5, 9)])
def test_large_corners_are_answered_nearly_as_cell_by_cell(cells):
    """One leaf for all: corners of its letters are sampled where they are more than a few cells."""
    shape, b = (16, 16), buckets_of((16, 16), 5)
    node = np.zeros(1, NODE)
    node["side"], node["spread"], node["held"], node["detail"] = 16, 1.0, 1.0, True
    letters = Letters.of(shape, b.heights, b.widths, [np.arange(len(b.heights))], None, b.tables)
    table = np.multiply.outer(np.arange(17.0), np.arange(17.0))
    exact, rough = (
        Border(Parts.of(np.array([-1]), node), letters, Shares.by_density(table, few)).rectangle(
            *cells
        )
        for few in (1 << 30, 4)
    )
    assert rough.variance**0.5 == pytest.approx(exact.variance**0.5, abs=0.02)


def corner_deficit(height: int, width: int, rows: int, cols: int) -> float:
    """The chance that a body of a large footprint misses `rows` x `cols` at its corner."""
    return 1 - border_kernel.smooth_chance(smooth_table(), height, width, 0, rows, 0, cols)


def test_letters_without_a_table_have_the_chances_of_ellipses():
    b = buckets_of((16, 16), 7)
    k = int(np.flatnonzero((b.heights == 6) & (b.widths == 6))[0])
    own, smooth = (
        Letters.of((16, 16), b.heights, b.widths, [np.arange(1)], None, t) for t in (b.tables, None)
    )
    for rows in range(1, 7):
        for cols in range(1, 7):
            cells = 5, 5 + rows - 1, 5, 5 + cols - 1
            chances = [
                border_kernel.chance_of(one.letters[k], one.tables, 5, 5, *cells)
                for one in (own, smooth)
            ]
            assert chances[1] == pytest.approx(chances[0], abs=0.15)
            assert 1 - chances[1] == pytest.approx(corner_deficit(6, 6, rows, cols), abs=1e-12)


def test_deficits_of_large_footprints_fall_with_the_overlap_from_nearly_one_to_none():
    deficit = np.array([[corner_deficit(40, 24, i, j) for j in range(1, 25)] for i in range(1, 41)])
    assert (np.diff(deficit, axis=0) <= 1e-12).all() and (np.diff(deficit, axis=1) <= 1e-12).all()
    assert deficit[0, 0] > 0.99
    assert np.abs(deficit[-1]).max() < 1e-12 and np.abs(deficit[:, -1]).max() < 1e-12
    assert len(smooth_table()) == 34**2


# In releases


@pytest.mark.parametrize("strategy", [PLAIN, BLOCKS, SHAPES, JOINED])
def test_an_interval_of_four_numbers_is_that_of_arrays_to_the_last_bit(strategy):
    release = study(town(UNIT_GRID, 2, n=500), strategy=strategy)
    ranges = rectangles(UNIT_GRID.shape, np.random.default_rng(1), n=40)
    bounds = np.array(UNIT_GRID.cell_bounds(*ranges)).T
    low, high = release.interval(*bounds.T, confidence=0.9)
    for i, one in enumerate(bounds.tolist()):
        found = release.interval(*one, confidence=0.9)
        assert found == (low[i], high[i])
        assert [type(end) for end in found] == [float, float]
