"""Queries: the rule at boundaries, rectangles and polygons of any shape."""

from __future__ import annotations

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shapely import LineString, MultiPolygon, Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.errors import ApproximateCountWarning
from dpregions.geometry.cells import select
from dpregions.geometry.doubled import SignedTable
from support import oracle, strategies
from support.oracle import UNIT
from support.small_queries import BODIES, GRID, HIST, quiet, touched_cells


class TestRectangles:
    @given(strategies.rough_worlds(max_bodies=3), st.data())
    def test_numbers_arrays_and_boxes_agree(self, world, data):
        grid, bodies = world
        hist = EulerHistogram.from_regions(strategies.geometries(bodies), grid)
        x = strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
        y = strategies.axis_floats(grid.ymin, grid.cell_size, grid.n_rows)
        (x0, x1), (y0, y1) = (
            sorted([data.draw(x), data.draw(x)]),
            sorted([data.draw(y), data.draw(y)]),
        )
        bounds = (x0, y0, x1, y1)
        one = quiet(hist.count, *bounds)
        assert quiet(hist.count, *(np.array([v]) for v in bounds)).tolist() == [one]
        assert quiet(hist.count, box(*bounds)) == one
        assert quiet(hist.count, geopandas.GeoSeries([box(*bounds)])).tolist() == [one]

    @given(strategies.grids(), st.data())
    def test_a_rectangle_drawn_as_a_polygon_selects_the_same_cells(self, grid, data):
        """A corner too many makes it a polygon like any other."""
        x = strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
        y = strategies.axis_floats(grid.ymin, grid.cell_size, grid.n_rows)
        (x0, x1), (y0, y1) = (
            sorted([data.draw(x), data.draw(x)]),
            sorted([data.draw(y), data.draw(y)]),
        )
        # Thinner than a few lattice steps a rectangle is taken as it is, a polygon is not.
        assume(min(x1 - x0, y1 - y0) > 4 * grid.cell_size / UNIT)
        # A polygon's bound may be off by a rounding of the step: not at exactly half a step.
        plain = touched_cells(grid, x0, y0, x1, y1)
        drawn = Polygon([(x0, y0), ((x0 + x1) / 2, y0), (x1, y0), (x1, y1), (x0, y1)])
        assert np.array_equal(plain, touched_cells(grid, drawn))

    def test_a_rectangle_is_enlarged_to_the_cells_it_touches(self):
        assert HIST.count(0.1, 0.1, 1.9, 1.9) == HIST.count(0, 0, 2, 2)
        assert HIST.count(0.9, 0.9, 1.1, 1.1) == HIST.count(0, 0, 2, 2)

    def test_the_part_outside_the_area_is_ignored(self):
        assert HIST.count(-99, -99, 2, 2) == HIST.count(0, 0, 2, 2)
        assert HIST.count(box(-99, -99, 2, 2)) == HIST.count(0, 0, 2, 2)
        assert HIST.count(-1, -1, 99, 99) == len(BODIES)

    @pytest.mark.parametrize("far", [1e12, 1e300, 1.7e308])
    def test_a_rectangle_may_reach_anywhere(self, far):
        assert HIST.count(-far, -far, far, far) == len(BODIES)
        assert HIST.count([-far], [-far], [far], [far]).tolist() == [len(BODIES)]
        assert HIST.count(box(-far, -far, far, far)) == len(BODIES)

    def test_a_query_without_area_follows_the_rule_for_bodies(self):
        assert HIST.count(4, 3, 4, 3) == HIST.count(4, 3, 5, 4)
        assert HIST.count(Point(4, 3)) == HIST.count(4, 3, 5, 4)
        assert HIST.count(2, 1, 4, 1) == HIST.count(LineString([(2, 1), (4, 1)]))
        assert HIST.count(2, 1, 4, 1) == HIST.count(2, 1, 5, 2)

    @given(st.integers(0, 2**32))
    @settings(max_examples=20)
    def test_the_summed_area_table_is_the_signed_sum(self, seed):
        rng = np.random.default_rng(seed)
        counts = rng.integers(-9, 99, (2 * rng.integers(1, 5) - 1, 2 * rng.integers(1, 5) - 1))
        table = SignedTable(counts)
        for r0 in range(0, counts.shape[0], 2):
            for c0 in range(0, counts.shape[1], 2):
                part = counts[r0:, c0:]
                cells = (r0 // 2, counts.shape[0] // 2, c0 // 2, counts.shape[1] // 2)
                assert table.rectangle(*cells) == table.rectangles(*cells) == oracle.euler_sum(part)
        whole = quiet(select, Grid(0, 0, 1, *((n + 1) // 2 for n in counts.shape)), (0, 0, 9, 9))
        assert whole.sums(table).tolist() == [oracle.euler_sum(counts)]

    def test_counting_leaves_the_counts_alone(self):
        before = HIST.counts.copy()
        HIST.count(0, 0, 2, 2)
        assert np.array_equal(HIST.counts, before)


class TestPolygons:
    @given(st.sampled_from([(1, 1), (1, 4), (3, 3), (4, 2)]), st.data())
    def test_a_polygon_touches_the_cells_whose_interior_it_meets(self, shape, data):
        rings = data.draw(strategies.query_polygons(shape))
        (cells,) = touched_cells(Grid(0, 0, 1, *shape), as_polygon(rings))
        assert np.array_equal(cells, oracle.cells_met_by(rings, *shape))

    @given(st.data())
    def test_a_polygon_counts_the_euler_sum_of_each_body_over_its_cells(self, data):
        grid = Grid(0, 0, 1, 3, 4)
        bodies = data.draw(st.lists(strategies.bodies(grid.shape), min_size=1, max_size=4))
        hist = EulerHistogram.from_regions(
            strategies.geometries([strategies.to_floats(b, grid) for b in bodies]), grid
        )
        rings = data.draw(strategies.query_polygons(grid.shape))
        cells = oracle.cells_met_by(rings, *grid.shape)
        alone = oracle.touched(oracle.padded(bodies), *grid.shape)
        expected = sum(oracle.euler_sum(body, cells) for body in alone)
        assert quiet(hist.count, as_polygon(rings)) == expected

    def test_that_sum_is_pieces_minus_holes_of_each_body_inside_the_cells(self):
        """By shapely, for bodies in general position: 1 for most, 2 where it meets two pieces."""
        rng = np.random.default_rng(11)
        grid = Grid(0, 0, 1, 7, 7)
        cells = grid.to_geodataframe("faces").geometry.to_numpy()
        seen = set()
        for _ in range(40):
            points = rng.uniform(-0.5, 7.5, (6, 2))
            middle = points.mean(axis=0)
            angles = np.arctan2(*(points - middle).T)
            query = Polygon(points[np.argsort(angles)])
            (touched,) = touched_cells(grid, query)
            union = cells[touched.ravel()]
            bodies = shapely.convex_hull(
                shapely.multipoints(rng.uniform(0, 7, (60, 2)), indices=[i // 4 for i in range(60)])
            )
            for body in bodies:
                hist = EulerHistogram.from_regions([body], grid)
                answer = quiet(hist.count, query)
                assert answer == oracle.holes_and_pieces(body, union)
                seen.add(answer)
        assert {0, 1, 2} <= seen

    def test_a_body_that_meets_a_staircase_in_two_pieces_counts_twice(self):
        ell = box(0, 0, 3, 3).difference(box(1, 1, 3, 3))
        body = LineString([(0.5, 2.5), (2.5, 0.6)])
        hist = EulerHistogram.from_regions([body], GRID)
        with pytest.warns(ApproximateCountWarning, match=r"no rectangle.*Grid.is_exact"):
            assert hist.count(ell) == 2

    def test_a_ring_of_cells_counts_pieces_minus_holes(self):
        ring = box(0, 0, 3, 3).difference(box(1, 1, 2, 2))
        inside, over = Point(1.5, 1.5), box(0.5, 0.5, 2.5, 2.5)
        assert quiet(EulerHistogram.from_regions([inside], GRID).count, ring) == 0
        assert (
            quiet(EulerHistogram.from_regions([over], GRID).count, ring) == 0
        )  # one piece, one hole
        assert touched_cells(GRID, ring)[0].sum() == 8

    def test_cells_that_meet_at_a_corner_only_stay_apart(self):
        pair = MultiPolygon([box(0, 0, 1, 1), box(1, 1, 2, 2)])
        hist = EulerHistogram.from_regions([box(0.5, 0.5, 1.5, 1.5)], GRID)
        assert quiet(hist.count, pair) == 2

    @pytest.mark.parametrize("form", [0, 1, 2])
    def test_a_union_of_cells_selects_exactly_those_cells(self, form):
        rng = np.random.default_rng(form)
        grid = [GRID, Grid(0.1, -0.3, 0.1, 4, 5), Grid(447_000.3, 4_418_000.7, 2 / 3, 4, 5)][form]
        faces = grid.to_geodataframe("faces")
        for _ in range(25):
            wanted = rng.random(grid.shape) < 0.5
            if wanted.any():
                union = shapely.union_all(faces.geometry[wanted.ravel()])
                (found,) = touched_cells(grid, union)
                assert np.array_equal(found, wanted)
                collection = shapely.GeometryCollection(list(faces.geometry[wanted.ravel()]))
                assert np.array_equal(touched_cells(grid, collection)[0], wanted)

    def test_a_polygon_whose_cells_form_a_rectangle_is_exact(self):
        diamond = Polygon([(1, 0.2), (1.8, 1), (1, 1.8), (0.2, 1)])
        assert HIST.count(diamond) == HIST.count(0, 0, 2, 2)  # no warning: an error in this suite

    @given(st.sampled_from([(1, 1), (2, 3), (4, 2)]), st.data())
    def test_a_path_touches_the_cells_of_its_segments_by_the_rule_for_bodies(self, shape, data):
        place = st.tuples(strategies.steps(shape[1]), strategies.steps(shape[0]))
        points = data.draw(st.lists(place, min_size=1, max_size=4))
        grid = Grid(0, 0, 1, *shape)
        path = strategies.geometry(strategies.to_floats(points, grid), form=1)
        segments = [[p, q] for p, q in zip(points, points[1:] or points, strict=False)]
        expected = oracle.touched(segments, *shape)[:, ::2, ::2].any(axis=0)
        assert np.array_equal(touched_cells(grid, path)[0], expected)

    def test_points_and_collections_select_what_their_parts_do(self):
        parts = [Point(0.5, 0.5), LineString([(2.5, 2.5), (3.5, 2.5)]), box(4, 3, 5, 4), Polygon()]
        nested = shapely.GeometryCollection([shapely.GeometryCollection(parts[:2]), *parts[2:]])
        expected = np.zeros(GRID.shape, bool)
        expected[0, 0] = expected[2, 2] = expected[2, 3] = expected[3, 4] = True
        assert np.array_equal(touched_cells(GRID, nested)[0], expected)

    def test_a_polygon_without_area_is_a_path(self):
        flat = Polygon([(0.5, 0.5), (3.5, 0.5), (2, 0.5)])
        assert touched_cells(GRID, flat)[0].nonzero()[1].tolist() == [0, 1, 2, 3]
        there_and_back = Polygon([(0, 0), (2, 0), (0, 0), (0, 2), (0, 0)])
        assert touched_cells(GRID, there_and_back)[0].sum() <= 3  # not the four of a box

    def test_a_polygon_round_the_area_selects_all_of_it(self):
        disc = Point(2, 2).buffer(99)
        assert touched_cells(GRID, disc)[0].all()
        assert HIST.count(disc) == len(BODIES)
        hollow = disc.difference(box(-1, -1, 9, 9))
        assert not touched_cells(GRID, hollow)[0].any()

    def test_many_vertices_are_as_few(self):
        plain = Polygon([(0.3, 0.3), (4.7, 0.4), (3.1, 3.9)])
        dense = shapely.segmentize(plain, 0.001)
        assert np.array_equal(touched_cells(GRID, dense), touched_cells(GRID, plain))


def as_polygon(rings):
    shell, *holes = ([(x / UNIT, y / UNIT) for x, y in ring] for ring in rings)
    return Polygon(shell, holes)
