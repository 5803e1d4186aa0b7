"""What bodies touch, against brute-force oracles: exact, whatever the positions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions import Grid
from dpregions.geometry import hull_kernel
from support import oracle, strategies
from support.kernels import patterns, touched_by_kernel
from support.oracle import UNIT


class TestTouching:
    @given(strategies.dyadic_worlds(max_bodies=2))
    def test_the_two_oracles_agree(self, world):
        grid, bodies = world
        for body in bodies:
            clipped = oracle.touched_by_clipping(body, *grid.shape)
            assert np.array_equal(oracle.touched([body], *grid.shape)[0], clipped)

    @given(strategies.dyadic_worlds())
    def test_a_body_touches_what_the_shifted_lines_say(self, world):
        grid, bodies = world
        expected = oracle.touched(oracle.padded(bodies), *grid.shape)
        assert np.array_equal(touched_by_kernel(bodies, grid.shape), expected)

    @given(strategies.dyadic_worlds(max_bodies=1))
    def test_a_body_touches_what_cutting_it_to_each_component_leaves(self, world):
        grid, bodies = world
        expected = oracle.touched_by_clipping(bodies[0], *grid.shape)
        assert np.array_equal(touched_by_kernel(bodies, grid.shape)[0], expected)

    @given(strategies.dyadic_worlds(), st.integers(-3, 3), st.integers(-3, 3))
    def test_whole_cells_of_translation_translate_the_pattern(self, world, right, up):
        grid, bodies = world
        n_rows, n_cols = grid.shape
        margin = 3
        large = (n_rows + 2 * margin, n_cols + 2 * margin)

        def shifted(dx, dy):
            return [[(x + dx * UNIT, y + dy * UNIT) for x, y in body] for body in bodies]

        there = touched_by_kernel(shifted(margin + right, margin + up), large)
        r, c = 2 * (margin + up), 2 * (margin + right)
        window = there[:, r : r + 2 * n_rows - 1, c : c + 2 * n_cols - 1]
        assert np.array_equal(touched_by_kernel(bodies, grid.shape), window)

    @pytest.mark.parametrize(("steps_a_cell", "shape"), [(4, (2, 2)), (2, (3, 4)), (1, (4, 5))])
    def test_every_triangle_on_a_small_lattice_touches_what_it_should(self, steps_a_cell, shape):
        """All points, segments and triangles of a few steps a cell, to one beyond the area."""
        n_rows, n_cols = (n * steps_a_cell for n in shape)
        places = [(x, y) for x in range(-1, n_cols + 2) for y in range(-1, n_rows + 2)]
        points = np.array(places) * (UNIT // steps_a_cell)
        pairs = np.array(list(combinations(range(len(points)), 2)))
        single = np.arange(len(points))[:, None].repeat(3, axis=1)
        triples = np.array(list(combinations(range(len(points)), 3)))
        for which in (single, np.c_[pairs, pairs[:, :1]], triples):
            assert_equal_to_oracle(points, which, shape)

    def test_every_triangle_one_step_from_the_lines_touches_what_it_should(self):
        """Corners on lines and one lattice step beside them: where an off-by-one would show."""
        side = np.concatenate([i * UNIT + np.array([-1, 0, 1]) for i in range(3)])
        points = np.array([(x, y) for x in side for y in side])
        which = np.array(list(combinations(range(len(points)), 3)))
        assert_equal_to_oracle(points, which, (2, 2))

    def test_a_large_shallow_triangle_crosses_lines_exactly(self):
        """Crossings that fall on a vertex, just before it and just after it, far from the ends."""
        reach = 2**27 * UNIT
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                line = [(-reach + dx + UNIT, -reach + dy + UNIT), (reach + UNIT, reach + UNIT)]
                body = [line, [*line, (line[0][0], line[1][1])]]
                expected = oracle.touched(oracle.padded(body), 2, 2)
                assert np.array_equal(touched_by_kernel(body, (2, 2)), expected)


def assert_equal_to_oracle(points, which, shape):
    for part in np.array_split(which, 1 + len(which) // 20_000):
        bodies = points[part]
        coords, starts = bodies.reshape(-1, 2) / UNIT, np.arange(len(part) + 1) * bodies.shape[1]
        outlines = hull_kernel.outlines(coords, starts, 0.0, 0.0, 1.0, *shape, -1, False)
        found = patterns(*outlines, shape)
        expected = oracle.touched(bodies, *shape)
        wrong = np.flatnonzero((found != expected).any(axis=(1, 2)))
        assert not wrong.size, bodies[wrong[0]].tolist()


def test_random_bodies_in_general_position_touch_what_shapely_says():
    rng = np.random.default_rng(20)
    grid = Grid(0, 0, 1, 6, 7)
    n = 1500
    middle = rng.uniform(-1, 8, (n, 1, 2))
    coords = middle + rng.uniform(-1, 1, (n, 5, 2)) * rng.choice([0.2, 1, 3], (n, 1, 1))
    points = np.floor(coords * UNIT).astype(np.int64)
    found = touched_by_kernel(points.tolist(), grid.shape)
    bodies = strategies.geometries((points / UNIT).tolist())
    assert np.array_equal(found, oracle.touched_by_shapely(bodies, grid))
