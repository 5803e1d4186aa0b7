"""The bound on a region's diameter: what is enforced never exceeds what noise is calibrated to."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString, Point

from dpregions import EulerHistogram, Grid
from dpregions.geometry.lattice import REACH, STEPS
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.paper.sensitivity import cells_spanned, euler_sensitivity

PARTS = st.integers(1, 200)


@st.composite
def sizes(draw):
    """Return a cell size p/q and a bound as floats; often whole in cells, up to a few ulps."""
    cell = draw(PARTS) / draw(PARTS) * 10.0 ** draw(st.integers(-3, 3))
    bound = draw(st.one_of(st.integers(1, 9), st.floats(0.5, 9.5))) * cell
    for _ in range(draw(st.integers(0, 3))):
        bound = math.nextafter(bound, draw(st.sampled_from([0.0, math.inf])))
    return cell, bound


@given(sizes(), st.sampled_from(["shrink", "drop"]))
def test_the_enforced_extent_is_at_most_k_cells_and_k_is_not_one_too_many(sizes, oversize):
    cell, length = sizes
    bound = Bound.of(Grid(0, 0, cell, 3, 3), length, oversize)
    assert bound.steps <= bound.k * STEPS
    assert bound.k == cells_spanned(length, cell)
    assert bound.k == math.ceil(bound.steps / STEPS) or bound.steps == (bound.k - 1) * STEPS
    # What is enforced is the bound as written, to less than a lattice step and float error.
    exact = Fraction(repr(length)) / Fraction(repr(cell)) * STEPS
    assert -1e-5 < exact - bound.steps < 1 + 1e-5


@given(sizes(), st.data())
def test_no_region_touches_more_than_the_sensitivity_where_cells_are_fractions(sizes, data):
    cell, length = sizes
    n = 2 * math.ceil(length / cell) + 4
    grid = Grid(0, 0, cell, n, n)
    # Ends on lines, or a few ulps beside them: where a region touches the most cells.
    start = np.array([data.draw(st.integers(1, 3)) * cell for _ in "xy"])
    start = np.nextafter(start, data.draw(st.sampled_from([0.0, math.inf])))
    angle = data.draw(st.sampled_from([0.0, math.pi / 2, math.pi / 4, 0.3]))
    end = start + length * np.array([math.cos(angle), math.sin(angle)])
    for shape in (LineString([start, end]), Point((start + end) / 2).buffer(length / 2)):
        counts = EulerHistogram.from_regions([shape], grid, max_diameter=length).counts
        assert counts.sum() <= euler_sensitivity(Bound.of(grid, length, "shrink").k)


def test_two_over_twenty_thirtieths_is_three_cells():
    bound = Bound.of(Grid(0, 0, 20 / 30, 30, 30), 2, "shrink")
    assert (bound.k, bound.steps) == (3, 3 * STEPS)


@pytest.mark.parametrize("bound", [REACH + 1, 1e12])
def test_a_bound_beyond_the_reach_of_coordinates_is_that_reach(bound):
    found = Bound.of(Grid(0, 0, 1, 3, 3), bound, "shrink")
    assert found.steps == REACH * STEPS
    assert found.k == bound
