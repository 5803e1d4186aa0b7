"""Bases: grids over a partition's area that regions are measured on, reached in integers."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.geometry.bases import Base
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound
from support.exact_bodies import hull_of, outlines_of
from support.partitions import bricks, convex_partitions
from support.releases_on_cells import PARTITIONS, ring_points, town_on

COORDINATES = st.integers(-(2**30), 2**31)


@st.composite
def bounded_bodies(draw, steps, n=5):
    """Return hulls in lattice steps that are at most so many wide and high, some exactly."""
    bodies = []
    for _ in range(n):
        x, y = draw(COORDINATES), draw(COORDINATES)
        reach = st.one_of(st.just(steps), st.just(0), st.integers(0, steps))
        points = draw(st.lists(st.tuples(reach, reach), min_size=1, max_size=6))
        bodies.append(hull_of([(x + dx, y + dy) for dx, dy in points]))
    return bodies


@given(st.data(), st.integers(1, 2**30), st.integers(1, 2**31), COORDINATES, COORDINATES)
def test_an_outline_within_the_bound_never_spans_more_than_k_and_one_cells(
    data, side, steps, left, low
):
    grid = dpr.Grid(0, 0, 1, n_rows=1, n_cols=1)
    base = Base.of_side(grid, side, Bound(7, steps, False), (left, low))
    assert (base.bound.k - 1) * side < steps <= base.bound.k * side
    bodies = data.draw(bounded_bodies(steps))
    found = base.outlines(outlines_of(bodies))
    for i, body in enumerate(bodies):
        outline = found.xy[found.offsets[i] : found.offsets[i + 1]]
        cells = outline // STEPS
        assert (cells.max(axis=0) - cells.min(axis=0) <= base.bound.k).all()
        # The same by Python's integers, which round nothing and do not overflow.
        moved = [((x - left) * STEPS // side, (y - low) * STEPS // side) for x, y in body]
        assert [tuple(p) for p in outline.tolist()] == hull_of(moved)


def test_a_grid_is_its_own_base_and_changes_no_outline():
    grid = dpr.Grid(3, 4, 0.7, n_rows=3, n_cols=5)
    bound = grid.bound(1.1, "drop")
    (base,) = grid.bases(bound)
    outlines = outlines_of([hull_of([(0, 0), (5, 9), (STEPS, 3)]), [], [(7, 7)]])
    assert (base.grid, base.bound) == (grid, bound)
    assert base.outlines(outlines) is outlines
    (same,) = dpr.Partition.from_grid(grid).bases(bound)
    assert (same.grid, same.bound) == (grid, bound)


@pytest.mark.parametrize("oversize", ["shrink", "drop"])
def test_what_becomes_of_longer_regions_is_kept(oversize):
    cells = PARTITIONS["voronoi"]()
    for base in cells.bases(cells.bound(2, oversize)):
        assert base.bound.drop == (oversize == "drop")


@given(convex_partitions(), st.floats(0.05, 30))
@settings(max_examples=40)
def test_bases_are_three_at_most_cover_the_area_and_are_no_larger_than_the_bound(cells, diameter):
    bound = cells.bound(diameter, "shrink")
    bases = cells.bases(bound)
    assert 1 <= len(bases) <= 3
    assert len(bases) == (1 if cells.form == "grid" else 3)
    spacing = np.sqrt(cells.area.area / cells.n_cells)
    for parts, base in zip((1, 2, 4), bases, strict=False):
        grid = base.grid
        assert shapely.box(*grid.bounds).buffer(cells.step).covers(cells.area)
        assert grid.crs == cells.crs
        if cells.form == "grid":
            continue
        # A step more than the bound or the spacing, so that the area's last step is inside.
        # Regions far smaller than the spacing: an eighth of it will do.
        largest = max(bound.steps, int(spacing / cells.step) // 8)
        assert base.side <= largest // parts + 1
        assert grid.cell_size <= spacing / parts + cells.step
        assert grid.cell_size == base.side * cells.step


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("diameter", [0.3, 2.5])
def test_every_body_of_a_partition_lands_in_every_base(name, diameter):
    cells = PARTITIONS[name]()
    bound = cells.bound(diameter, "shrink")
    shapes = np.concatenate([town_on(cells, 300), at_the_border(cells)])
    bodies = cells.outlines(*ring_points(shapes), bound)
    touching = cells.touching(bodies)
    assert touching.sum() > 200
    for base in cells.bases(bound):
        moved = base.outlines(bodies)
        found = moved.touching(*base.grid.shape)
        assert found[touching].all()
        if cells.complex.area.size:  # bodies are cut to it
            np.testing.assert_array_equal(found, touching)
            limit = np.array([base.grid.n_cols, base.grid.n_rows]) * STEPS
            assert ((moved.xy >= 0) & (moved.xy < limit)).all()


def at_the_border(cells):
    """Return points, needles and triangles on the corners and sides of a partition's border."""
    xmin, ymin, xmax, ymax = cells.bounds
    corners = np.array([(xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax)])
    middle = (corners + np.roll(corners, 1, axis=0)) / 2
    places = np.concatenate([corners, middle])
    return np.array(
        [
            shape
            for x, y in places
            for shape in (
                shapely.Point(x, y),
                shapely.LineString([(x - 1, y), (x + 1, y)]),
                shapely.Polygon([(x - 0.2, y - 0.2), (x + 0.2, y - 0.2), (x, y + 0.2)]),
            )
        ]
    )


def test_bricks_turned_by_any_angle_have_bases_over_their_box():
    cells = dpr.Partition.from_polygons(bricks(4, 3, 17.0))
    for base in cells.bases(cells.bound(1, "shrink")):
        assert shapely.box(*base.grid.bounds).covers(cells.area)
