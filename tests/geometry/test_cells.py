"""Queries: every form and its answer's shape, the rule at boundaries, polygons, refusals."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shapely import LineString, MultiPolygon, Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.errors import (
    ApproximateCountWarning,
    CRSError,
    DPRegionsWarning,
    InputTypeError,
    OutsideAreaWarning,
    QueryError,
)
from dpregions.geometry.cells import select
from dpregions.geometry.doubled import SignedTable
from support import oracle, strategies
from support.oracle import UNIT

GRID = Grid(0, 0, 1, n_rows=4, n_cols=5)
BODIES = [
    box(0.5, 0.5, 1.5, 1.5),
    box(0.2, 0.2, 4.8, 3.8),
    Polygon([(2.5, 0.5), (4.5, 1.5), (3.5, 3.5)]),
    LineString([(0.5, 3.5), (4.5, 3.2)]),
    Point(4, 3),
]
HIST = EulerHistogram.from_regions(BODIES, GRID)
UTM = Grid(447_000, 4_418_000, 1000, n_rows=6, n_cols=7, crs=32650)


def quiet(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPRegionsWarning)
        return call(*arguments, **options)


def touched_cells(grid, *query, crs=None):
    """Return which cells queries select (bool), one array a query."""
    selection = quiet(select, grid, query, crs)
    found = []
    for i, (row0, row1, col0, col1) in enumerate(selection.ranges.T):
        cells = np.zeros(grid.shape, bool)
        part = cells[row0 : row1 + 1, col0 : col1 + 1] if row0 <= row1 and col0 <= col1 else None
        if part is not None:
            part[...] = selection.masks.get(i, True)
        found.append(cells)
    return found


class TestForms:
    def test_four_numbers_give_a_number(self):
        answer = HIST.count(0, 0, 2, 2)
        assert answer == 2
        assert type(answer) is int

    @pytest.mark.parametrize("kind", [int, float, np.int64, np.float32, np.float64, Fraction])
    def test_numbers_of_any_kind_are_numbers(self, kind):
        answer = HIST.count(*map(kind, (0, 0, 2, 2)))
        assert answer == 2
        assert type(answer) is int

    def test_zero_dimensional_arrays_are_numbers(self):
        answer = HIST.count(*map(np.array, (0, 0, 2, 2)))
        assert answer == 2
        assert type(answer) is int

    @pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (0,)])
    def test_four_arrays_give_an_array_of_their_shape(self, shape):
        low, high = np.zeros(shape), np.full(shape, 2.0)
        answer = HIST.count(low, low, high, high)
        assert isinstance(answer, np.ndarray)
        assert answer.shape == shape
        assert (answer == 2).all()

    def test_numbers_and_arrays_mix(self):
        assert HIST.count(0, 0, [1, 2, 5], 4).tolist() == [
            HIST.count(0, 0, x, 4) for x in (1, 2, 5)
        ]

    def test_lists_and_series_are_arrays(self):
        assert HIST.count([0], [0], [2], [2]).tolist() == [2]
        bounds = pd.DataFrame({"a": [0, 0], "b": [0, 0], "c": [2, 5], "d": [2, 4]}, index=[7, 8])
        assert HIST.count(*(bounds[c] for c in bounds)).tolist() == [2, 5]

    def test_one_geometry_gives_a_number(self):
        answer = HIST.count(box(0, 0, 2, 2))
        assert answer == 2
        assert type(answer) is int

    def test_a_series_gives_a_series_on_its_index(self):
        queries = geopandas.GeoSeries([box(0, 0, 2, 2), box(0, 0, 5, 4)], index=["old", "new"])
        answer = HIST.count(queries)
        expected = pd.Series([2, 5], index=["old", "new"], name="count")
        pd.testing.assert_series_equal(answer, expected)

    def test_a_frame_gives_a_series_on_its_index(self):
        frame = geopandas.GeoDataFrame(
            {"name": ["x"]}, geometry=[box(0, 0, 2, 2)], index=pd.MultiIndex.from_tuples([(1, "a")])
        )
        answer = HIST.count(frame)
        assert answer.index.equals(frame.index)
        assert answer.tolist() == [2]
        assert HIST.count(frame.iloc[:0]).tolist() == []

    def test_an_array_or_list_of_geometries_gives_an_array(self):
        queries = [box(0, 0, 2, 2), box(0, 0, 5, 4)]
        assert HIST.count(queries).tolist() == [2, 5]
        assert HIST.count(np.array([queries, queries])).tolist() == [[2, 5], [2, 5]]

    def test_a_selection_tells_which_rectangles_whole_cells_enlarge(self):
        bounds = [[0, 0.5, -1, 7], [0, 0, -1, 7], [2, 2, 6, 8], [2, 2, 6, 8]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DPRegionsWarning)
            selection = select(GRID, tuple(map(np.array, bounds)))
            staircase = select(GRID, (Polygon([(0, 0), (3, 0), (0, 3)]),))
        assert selection.enlarged(GRID).tolist() == [False, True, False, False]
        assert staircase.enlarged(GRID).tolist() == [False]  # its cells form no rectangle

    def test_is_exact_tells_which_in_the_same_forms(self):
        triangle = Polygon([(0, 0), (3, 0), (0, 3)])
        assert GRID.is_exact(0, 0, 2.5, 2.5) is True
        assert GRID.is_exact(triangle) is False
        assert GRID.is_exact([0, 1], [0, 1], [2, 3], [2, 3]).tolist() == [True, True]
        queries = geopandas.GeoSeries([triangle, box(0, 0, 1, 1)], index=["a", "b"])
        expected = pd.Series([False, True], index=["a", "b"], name="exact")
        pd.testing.assert_series_equal(GRID.is_exact(queries), expected)
        assert GRID.is_exact(100, 100, 101, 101) is True  # outside: 0, exactly; no warning


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


class TestCRS:
    def test_cells_exported_in_degrees_select_their_own_cell(self):
        faces = UTM.to_geodataframe("faces")
        found = touched_cells(UTM, faces.to_crs(4326))
        for i, cells in enumerate(found):
            assert np.argwhere(cells).tolist() == [[faces["row"][i] // 2, faces["col"][i] // 2]]
        assert np.array_equal(found, touched_cells(UTM, faces))

    def test_frames_are_reprojected_and_bare_ones_are_in_the_grids_crs(self):
        hist = EulerHistogram.from_regions(
            geopandas.GeoSeries([box(447_500, 4_418_500, 449_500, 4_419_500)], crs=32650), UTM
        )
        query = geopandas.GeoSeries([box(448_000, 4_418_000, 449_000, 4_419_000)], crs=32650)
        assert hist.count(query).tolist() == [1]
        degrees = query.to_crs(4326)
        assert hist.count(degrees).tolist() == [1]
        assert hist.count(degrees[0], crs=4326) == 1
        assert hist.count(degrees.to_list(), crs="EPSG:4326").tolist() == [1]
        assert hist.count(degrees.array).tolist() == [1]
        assert hist.count(query[0]) == 1
        assert hist.count(query[0], crs=32650) == 1
        x0, y0, x1, y1 = degrees.total_bounds
        assert hist.count(x0, y0, x1, y1, crs=4326) == 1
        assert hist.count([x0], [y0], [x1], [y1], crs=4326).tolist() == [1]
        assert UTM.is_exact(query[0], crs=32650) is True

    def test_a_crs_on_one_side_only_is_refused(self):
        with pytest.raises(
            CRSError, match=r"the queries are in EPSG:4326, but the grid has no CRS"
        ):
            HIST.count(geopandas.GeoSeries([box(0, 0, 1, 1)], crs=4326))
        with pytest.raises(
            CRSError, match=r"the queries are in EPSG:4326, but the grid has no CRS"
        ):
            HIST.count(geopandas.GeoSeries([box(0, 0, 1, 1)], crs=4326).array)
        with pytest.raises(CRSError, match="the grid has no CRS"):
            HIST.count(0, 0, 1, 1, crs=4326)
        hist = EulerHistogram.from_regions([], UTM, crs=32650)
        with pytest.raises(
            CRSError, match=r"the queries carry no CRS, but the grid is in EPSG:32650"
        ):
            hist.count(geopandas.GeoSeries([box(0, 0, 1, 1)]))

    def test_two_crs_that_differ_are_refused(self):
        hist = EulerHistogram.from_regions([], UTM, crs=32650)
        queries = geopandas.GeoSeries([box(0, 0, 1, 1)], crs=4326)
        with pytest.raises(CRSError, match=r"carry EPSG:4326, but crs=EPSG:3857 was given"):
            hist.count(queries, crs=3857)
        # The same CRS with its axes named in the other order: coordinates are x, y in both.
        place = geopandas.GeoSeries([box(448_000, 4_418_000, 449_000, 4_419_000)], crs=32650)
        degrees = place.to_crs(4326)
        for crs in ("OGC:CRS84", "EPSG:4326"):
            assert hist.count(degrees, crs=crs).equals(hist.count(degrees))
        with pytest.raises(CRSError, match="is no CRS"):
            hist.count(0, 0, 1, 1, crs="nonsense")

    def test_a_query_that_the_projection_does_not_have_is_refused(self):
        hist = EulerHistogram.from_regions([], UTM, crs=32650)
        with pytest.raises(QueryError, match="not finite"):
            hist.count(0, 0, 400, 100, crs=4326)


class TestRefusals:
    @pytest.mark.parametrize(
        "bounds", [(2, 0, 1, 1), (0, 2, 1, 1), (10**400, 0, 0, 1), (0, 0, 1, -(10**400))]
    )
    def test_a_reversed_rectangle(self, bounds):
        with pytest.raises(QueryError, match=r"reversed: xmin=.*give xmin <= xmax|too large"):
            HIST.count(*bounds)
        arrays = [[v] for v in bounds]
        with pytest.raises(QueryError, match=r"query 0 is reversed: xmin=|too large"):
            HIST.count(*arrays)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("place", range(4))
    def test_a_bound_that_is_not_finite(self, bad, place):
        bounds = [0.0, 0.0, 1.0, 1.0]
        bounds[place] = bad
        name = ("xmin", "ymin", "xmax", "ymax")[place]
        with pytest.raises(QueryError, match=f"not finite: .*{name}={bad}"):
            HIST.count(*bounds)
        with pytest.raises(
            QueryError, match=f"query 1 has a bound that is not finite: .*{name}={bad}"
        ):
            HIST.count(*([good, v] for good, v in zip((0, 0, 1, 1), bounds, strict=True)))

    def test_every_bound_infinite(self):
        with pytest.raises(QueryError, match="not finite"):
            HIST.count(-math.inf, -math.inf, math.inf, math.inf)

    @pytest.mark.parametrize("label", ["b", 7, (1, 2)])
    def test_a_null_geometry_names_its_index(self, label):
        index = pd.Index(["first", label], dtype=object, tupleize_cols=False)
        queries = geopandas.GeoSeries([box(0, 0, 1, 1), None], index=index)
        with pytest.raises(QueryError) as caught:
            HIST.count(queries)
        assert f"index {label!r} is null" in str(caught.value)

    def test_a_null_in_an_array_names_its_place(self):
        with pytest.raises(QueryError, match="index 1 is null"):
            HIST.count([box(0, 0, 1, 1), None])

    def test_a_coordinate_that_is_not_finite_names_its_index(self):
        with np.errstate(invalid="ignore"):
            line = LineString([(0, 0), (1, math.inf)])
        queries = geopandas.GeoSeries([box(0, 0, 1, 1), line], index=["a", "b"])
        with pytest.raises(QueryError, match=r"index 'b' has a coordinate that is not finite"):
            HIST.count(queries)

    @pytest.mark.parametrize("far", [1e9, 1e300])
    def test_a_polygon_of_absurd_extent(self, far):
        with pytest.raises(QueryError, match="more than 268435456 cells from the grid"):
            HIST.count(Polygon([(0, 0), (far, 0), (0, far)]))

    @pytest.mark.parametrize(
        "query", [(), (1,), (1, 2), (0, 0, 1, 1, 1), ("abc",), (None,), ([1, 2],), (object(),)]
    )
    def test_what_is_no_query(self, query):
        with pytest.raises(InputTypeError, match=r"a query is four numbers"):
            HIST.count(*query)

    @pytest.mark.parametrize(
        "bounds", [("a", 0, 1, 1), ([0, 0], [0, 0, 0], 1, 1), (object(), 0, 1, 1), (1j, 0, 1, 1)]
    )
    def test_bounds_that_are_no_numbers_or_of_no_one_shape(self, bounds):
        with pytest.raises(QueryError, match="must be numbers or arrays of one shape"):
            HIST.count(*bounds)

    def test_a_missing_bound(self):
        with pytest.raises(QueryError):
            HIST.count(0, 0, None, 1)


class TestWarnings:
    OUTSIDE = "lies wholly outside the grid's area"

    @pytest.mark.parametrize(
        "query",
        [
            (9, 9, 10, 10),
            (-2, 0, 0, 4),
            (5, 0, 6, 4),
            (5, 4, 5, 4),
            (box(9, 9, 10, 10),),
            (Point(5, 1),),
            (Polygon([(9, 9), (10, 9), (9, 10)]),),
            (Polygon([(5, 0), (7, 2), (5, 4)]),),
            (Polygon(),),
            (LineString([(5, 0), (5, 4)]),),
        ],
        ids=str,
    )
    def test_a_query_wholly_outside_counts_nothing_with_a_warning(self, query):
        with pytest.warns(OutsideAreaWarning, match=self.OUTSIDE) as caught:
            assert HIST.count(*query) == 0
        assert caught[0].filename == __file__  # the warning points at the caller

    def test_numbers_that_look_like_degrees_are_told_the_remedy(self):
        grid = Grid.around(9.0, 48.5, side="4km", cell_size="1km")
        hist = EulerHistogram.from_regions([], grid, crs=4326)
        remedy = "look like degrees: if they are, longitude first, give crs='EPSG:4326'"
        west, south, east, north = 8.99, 48.49, 9.01, 48.51
        for query in [
            (west, south, east, north),
            ([west, west], south, east, [north, 48.5]),
            (box(west, south, east, north),),
        ]:
            with pytest.warns(OutsideAreaWarning, match=remedy):
                hist.count(*query)

    def test_the_remedy_for_degrees_is_not_told_where_it_is_none(self):
        grid = Grid.around(9.0, 48.5, side="4km", cell_size="1km")
        hist = EulerHistogram.from_regions([], grid, crs=4326)
        for counted, query, crs in [
            (hist, (200, 0, 201, 1), None),  # no degrees
            (hist, (0, 91, 1, 92), None),
            (hist, ([9, grid.xmax + 9], 48, [10, grid.xmax + 10], 49), None),  # not all
            (hist, (10, 50, 11, 51), "EPSG:4326"),  # read as degrees, and elsewhere
            (hist, (geopandas.GeoSeries([box(9, 48, 10, 49)], crs=grid.crs),), None),
            (HIST, (9, 9, 10, 10), None),  # a plane without a CRS
            (hist, (Polygon(),), None),
        ]:
            with pytest.warns(OutsideAreaWarning) as caught:
                counted.count(*query, crs=crs)
            assert "degrees" not in str(caught[0].message)

    def test_how_many_of_several_lie_outside(self):
        with pytest.warns(OutsideAreaWarning, match="2 of 3 queries lie wholly outside"):
            answer = HIST.count([0, 9, 8], [0, 9, 8], [2, 10, 9], [2, 10, 9])
        assert answer.tolist() == [2, 0, 0]

    def test_how_many_of_several_are_approximate(self):
        triangle = Polygon([(0, 0), (3, 0), (0, 3)])
        with pytest.warns(ApproximateCountWarning, match="2 of 3 queries touch cells") as caught:
            HIST.count(geopandas.GeoSeries([triangle, box(0, 0, 1, 1), triangle]))
        assert caught[0].filename == __file__

    def test_one_approximate_query(self):
        with pytest.warns(ApproximateCountWarning, match="the query touches cells that form no"):
            HIST.count(Polygon([(0, 0), (3, 0), (0, 3)]))

    def test_no_query_no_warning(self):
        assert HIST.count([], [], [], []).tolist() == []
        assert HIST.count(geopandas.GeoSeries([])).tolist() == []


def test_a_frame_of_queries_without_a_geometry_is_refused():
    import geopandas as gpd

    hist = EulerHistogram.from_regions([], Grid(0, 0, 1, 2, 2))
    frame = gpd.GeoDataFrame({"geom": gpd.GeoSeries([box(0, 0, 1, 1)], crs=4326)})
    with pytest.raises(InputTypeError, match="set_geometry"):
        hist.count(frame)


def test_numpy_scalars_are_read_as_the_numbers_they_are():
    grid = Grid(490000.0, 5361875.5771484375, 1000.0, 20, 20)
    hist = EulerHistogram(grid, np.random.default_rng(0).integers(0, 9, grid.doubled_shape))
    bounds = [np.float32(v) for v in grid.cell_bounds(3, 7, 4, 9)]
    assert hist.count(*bounds) == hist.count(*map(float, bounds))
    assert hist.count(*bounds) == hist.count(*(np.array([v]) for v in bounds))[0]
