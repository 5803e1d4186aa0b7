"""The boundary rules: the snap to the lattice, and which cells a query rectangle touches."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpregions import Grid
from support import strategies
from support.oracle import UNIT


def line(grid, i):
    return grid.xmin + i * grid.cell_size


def steps_in_rationals(grid, x):
    """Return the cell and how far into it x is, exactly: lines are floats, all else rational."""
    i = math.floor((x - grid.xmin) / grid.cell_size) - 2
    while line(grid, i + 1) <= x:
        i += 1
    assert line(grid, i) <= x
    # Rounded lines may lie further apart than a cell size: nothing passes the next line.
    return i, min((Fraction(x) - Fraction(line(grid, i))) / Fraction(grid.cell_size), Fraction(1))


class TestSnap:
    @given(strategies.grids(), st.data())
    def test_the_snap_is_the_floor_in_rationals(self, grid, data):
        x = data.draw(strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols))
        cell, fraction = steps_in_rationals(grid, x)
        found = int(grid.snap(x, grid.ymin)[0])
        assert found >> 20 == cell
        expected = min(math.floor(fraction * UNIT), UNIT - 1)
        # Within a cell the product is one of floats: a step apart only if a hair from it.
        if found - cell * UNIT != expected:
            assert abs(found - cell * UNIT - expected) == 1
            assert abs(fraction * UNIT - round(fraction * UNIT)) < Fraction(1, 2**20)

    @given(strategies.dyadic_grids(), st.data())
    def test_the_snap_is_exact_where_steps_are_floats(self, grid, data):
        points = data.draw(strategies.bodies(grid.shape))
        x, y = np.array(strategies.to_floats(points, grid)).T
        assert list(map(tuple, grid.snap(x, y).tolist())) == points
        assert list(map(tuple, grid.snap(x, y, nearest=True).tolist())) == points

    @given(strategies.grids(), st.integers(-3, 10), st.booleans())
    def test_lines_are_exact_and_one_ulp_below_is_the_lower_cell(self, grid, i, nearest):
        x = line(grid, i)
        assert grid.snap(x, grid.ymin, nearest=nearest)[0] == i * UNIT
        below = grid.snap(math.nextafter(x, -math.inf), grid.ymin)[0]
        assert below >> 20 == i - 1

    @given(strategies.grids(), st.data(), st.booleans())
    def test_the_snap_keeps_order(self, grid, data, nearest):
        axis = strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
        x = np.sort(data.draw(st.lists(axis, min_size=2, max_size=10)))
        found = grid.snap(x, np.full(x.size, grid.ymin), nearest=nearest)[:, 0]
        assert (np.diff(found) >= 0).all()

    @given(strategies.grids(), st.data())
    def test_queries_are_read_to_the_nearest_step(self, grid, data):
        x = data.draw(strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols))
        cell, fraction = steps_in_rationals(grid, x)
        found = int(grid.snap(x, grid.ymin, nearest=True)[0])
        assert abs(found - (cell + fraction) * UNIT) <= Fraction(1, 2) + Fraction(1, 2**20)

    @given(strategies.rough_grids(), st.integers(-(2**27), 2**27))
    def test_lines_far_beyond_the_area_are_exact_too(self, grid, i):
        assume(abs(i) * grid.cell_size < 1e15)
        assert grid.snap(line(grid, i), grid.ymin)[0] == i * UNIT


def open_cells(low, high, grid):
    """Return the columns whose open interval meets the open interval low..high, in rationals."""
    lines = [Fraction(line(grid, i)) for i in range(grid.n_cols + 1)]
    return [c for c in range(grid.n_cols) if max(lines[c], Fraction(low)) < min(lines[c + 1], high)]


class TestQueryRectangles:
    @given(strategies.grids(), st.data())
    def test_one_rectangle_and_an_array_of_them_touch_the_same_cells(self, grid, data):
        x = strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
        y = strategies.axis_floats(grid.ymin, grid.cell_size, grid.n_rows)
        (x0, x1), (y0, y1) = sorted([data.draw(x), data.draw(x)]), sorted([data.draw(y)] * 2)
        y1 = max(y1, data.draw(y))
        one = grid.cell_range(x0, y0, x1, y1)
        assert grid.cell_ranges(*(np.array([v]) for v in (x0, y0, x1, y1)))[:, 0].tolist() == list(
            one
        )

    @given(strategies.grids(), st.data())
    def test_a_union_of_cells_selects_those_cells(self, grid, data):
        cells = data.draw(strategies.cell_rectangles(grid.shape))
        assert grid.cell_range(*grid.cell_bounds(*cells)) == cells

    @given(strategies.grids(), st.data())
    def test_a_bound_one_ulp_or_half_a_step_from_a_line_lies_on_it(self, grid, data):
        cells = data.draw(strategies.cell_rectangles(grid.shape))
        bounds = grid.cell_bounds(*cells)
        nudge = st.sampled_from([0.0, 0.49 / UNIT, -0.49 / UNIT])
        moved = [
            data.draw(
                st.sampled_from([math.nextafter(b, math.inf), math.nextafter(b, -math.inf)])
                | nudge.map(lambda n, b=b: b + n * grid.cell_size)
            )
            for b in bounds
        ]
        assume(grid.cell_size > 1e-3 * max(map(abs, bounds)) or grid.cell_size >= 1)
        assume(grid.cell_size / UNIT > 8 * math.ulp(max(map(abs, bounds))))
        assert grid.cell_range(*moved) == cells

    @given(strategies.grids(), st.data())
    def test_a_query_with_area_touches_the_cells_whose_interior_it_meets(self, grid, data):
        axis = strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
        low, high = sorted([data.draw(axis), data.draw(axis)])
        for bound in (low, high):  # half a step from a line: the test above
            _, fraction = steps_in_rationals(grid, bound)
            assume(fraction == 0 or Fraction(2, UNIT) < fraction < 1 - Fraction(2, UNIT))
        assume(low < high)
        *_, first, last = grid.cell_range(low, grid.ymin, high, grid.ymax)
        assert list(range(first, last + 1)) == open_cells(low, high, grid)

    @given(strategies.grids(), st.data())
    def test_a_query_without_area_follows_the_rule_for_bodies(self, grid, data):
        x = data.draw(strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols))
        y = data.draw(strategies.axis_floats(grid.ymin, grid.cell_size, grid.n_rows))
        row0, row1, col0, col1 = grid.cell_range(x, y, x, y)
        col, row = grid.snap(x, y) >> 20
        if 0 <= row < grid.n_rows and 0 <= col < grid.n_cols:
            assert (row0, row1, col0, col1) == (row, row, col, col)
        else:
            assert row1 < row0 or col1 < col0

    def test_a_query_thinner_than_a_step_touches_the_cells_on_both_sides(self):
        grid = Grid(0, 0, 1, 1, 4)
        hair = 1e-9
        assert grid.cell_range(2 - hair, 0, 2 + hair, 1)[2:] == (1, 2)
        assert grid.cell_range(2, 0, 2 + hair, 1)[2:] == (2, 2)
        assert grid.cell_range(2 - hair, 0, 2, 1)[2:] == (1, 1)

    @pytest.mark.parametrize(
        "far", [(-5, 0, 0, 1), (4, 0, 9, 1), (0, 1, 4, 2), (0, -9, 4, 0), (4, 0, 4, 1)]
    )
    def test_what_only_touches_the_area_from_outside_is_outside(self, far):
        row0, row1, col0, col1 = Grid(0, 0, 1, 1, 4).cell_range(*far)
        assert row1 < row0 or col1 < col0

    def test_a_query_larger_than_anything_is_the_area(self):
        grid = Grid(0, 0, 1, 2, 4)
        assert grid.cell_range(-1.7e308, -1.7e308, 1.7e308, 1.7e308) == (0, 1, 0, 3)
