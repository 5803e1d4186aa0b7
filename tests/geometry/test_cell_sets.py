"""Queries on a partition: which cells, which components inside, when a sum is exact."""

from __future__ import annotations

import warnings

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions import EulerHistogram, Grid, Partition
from dpregions.errors import (
    ApproximateCountWarning,
    CRSError,
    DPRegionsWarning,
    InputTypeError,
    OutsideAreaWarning,
    QueryError,
)
from support.exact_bodies import hull_of, outlines_of
from support.partitions import AREA, convex_partitions, grazing_bodies

SITES = [(1, 1), (6, 2), (3, 6), (7, 7)]


def quietly(partition, *query, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPRegionsWarning)
        return partition.select(query, **options)


def cells_of(selection, query=0):
    offsets, items = selection.cells
    return items[offsets[query] : offsets[query + 1]].tolist()


def counts_of(partition, bodies):
    tally = partition.counter()
    tally.add(outlines_of(bodies))
    return tally.histogram()


def twice_area(ring):
    """Return twice the area of a ring, in Python's integers."""
    pairs = zip(ring, ring[1:] + ring[:1], strict=True)
    return sum(a[0] * b[1] - a[1] * b[0] for a, b in pairs)


class TestSums:
    @settings(max_examples=60)
    @given(convex_partitions(), st.data())
    def test_components_inside_are_those_of_which_every_face_is_chosen(self, partition, data):
        c = partition.complex
        some = st.sets(st.integers(0, c.n_faces - 1))
        chosen = data.draw(st.lists(some, min_size=1, max_size=4))
        selection = quietly(partition, cells=[[partition.labels[i] for i in s] for s in chosen])
        offsets, items = selection.components
        rng = np.random.default_rng(0)
        counts = rng.integers(0, 99, c.n_components)
        for query, cells in enumerate(chosen):
            edges = [c.n_faces + e for e, f in enumerate(c.edge_faces.tolist()) if cells >= set(f)]
            ends, faces = c.vertex_faces
            vertices = [
                c.n_faces + c.n_edges + v
                for v in range(c.n_vertices)
                if cells >= set(faces[ends[v] : ends[v + 1]].tolist())
            ]
            expected = sorted(cells) + edges + vertices
            assert items[offsets[query] : offsets[query + 1]].tolist() == expected
            total = counts[sorted(cells)].sum() - counts[edges].sum() + counts[vertices].sum()
            assert selection.sums(counts)[query] == total
            assert selection.sums(counts / 2)[query] == pytest.approx(total / 2)
            assert (selection.signs(query) * counts).sum() == total
        assert selection.n_components.tolist() == np.diff(offsets).tolist()

    @settings(max_examples=60)
    @given(convex_partitions(), st.data())
    def test_an_exact_sum_counts_each_body_that_touches_the_cells_once(self, partition, data):
        cells = data.draw(st.sets(st.integers(0, partition.n_faces - 1), min_size=1))
        bodies = data.draw(grazing_bodies(partition, 12))
        selection = quietly(partition, cells=[partition.labels[i] for i in cells])
        if not selection.exact[0] or not partition.complex.is_strict:
            return
        offsets, items = partition.touched(outlines_of(bodies))
        truth = sum(
            bool(cells & set(items[offsets[i] : offsets[i + 1]].tolist()))
            for i in range(len(bodies))
        )
        assert selection.sums(counts_of(partition, bodies))[0] == truth

    def test_a_sum_that_is_not_exact_can_count_a_body_twice(self):
        partition = Partition.from_grid(Grid(0, 0, 1, 1, 3))
        body = [[(1 << 19, 1 << 19), (5 << 19, 1 << 19)]]
        selection = quietly(partition, cells=[0, 2])
        assert selection.sums(counts_of(partition, body)).tolist() == [2]
        assert not selection.exact[0]


class TestExactness:
    @settings(max_examples=60)
    @given(convex_partitions(), st.data())
    def test_a_set_is_exact_where_its_union_is_its_hull(self, partition, data):
        c = partition.complex
        cells = data.draw(st.sets(st.integers(0, c.n_faces - 1), min_size=2))
        selection = quietly(partition, cells=[partition.labels[i] for i in cells])
        rings = [[(int(c.x[p]), int(c.y[p])) for p in c.ring(face)] for face in sorted(cells)]
        hull = hull_of([corner for ring in rings for corner in ring])
        convex = sum(map(twice_area, rings)) == twice_area(hull)
        assert selection.exact[0] == (convex or len(cells) == c.n_faces)

    @pytest.mark.parametrize(
        ("cells", "exact"),
        [
            ([0], True),
            ([0, 1], True),
            ([0, 3], True),
            ([0, 4], False),
            ([0, 2], False),
            ([0, 1, 3], False),
            ([0, 1, 3, 4], True),
            ([0, 1, 2, 3, 5, 6, 7, 8], False),
            (list(range(9)), True),
            ([], True),
        ],
    )
    def test_on_nine_squares(self, cells, exact):
        partition = Partition.from_grid(Grid(0, 0, 1, 3, 3))
        assert partition.is_exact(cells=cells) is exact

    def test_on_a_generic_diagram_only_cells_and_the_whole_area_are_convex(self):
        partition = Partition.voronoi(np.random.default_rng(2).uniform(0, 8, (40, 2)), AREA)
        pairs = partition.complex.edge_faces.tolist()
        inner = quietly(partition, cells=pairs).exact
        assert inner.mean() < 0.05  # but for pairs in the corners of the area
        assert partition.is_exact(cells=list(range(40)))
        assert partition.is_exact(cells=[[i] for i in range(40)]).all()

    def test_all_cells_that_are_not_convex_are_not_exact(self):
        ell = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(0, 1, 1, 2)]
        partition = Partition.from_polygons(ell, convex=False)
        assert partition.is_exact(cells=[[0, 1, 2], [0, 1], [1]]).tolist() == [False, True, True]


class TestShapes:
    @settings(max_examples=60)
    @given(st.integers(0, 2**32))
    def test_a_polygon_touches_the_cells_whose_interior_it_meets(self, seed):
        rng = np.random.default_rng(seed)
        partition = Partition.voronoi(rng.uniform(0, 8, (30, 2)), AREA)
        shapes = shapely.convex_hull(
            shapely.multipoints(rng.uniform(-1, 9, (6, 1, 2)) + rng.uniform(-2, 2, (6, 4, 2)))
        )
        faces = np.asarray(partition.to_geodataframe().geometry.array)
        selection = quietly(partition, shapes)
        for i, shape in enumerate(shapes):
            shared = shapely.area(shapely.intersection(faces, shape))
            assert set(cells_of(selection, i)) >= set(np.flatnonzero(shared > 1e-6))
            assert set(cells_of(selection, i)) <= set(np.flatnonzero(shared > 0))

    @settings(max_examples=60)
    @given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
    def test_rectangles_on_a_grid_answer_as_the_grid_does(self, x0, y0, x1, y1):
        grid = Grid(0, 0, 1, 3, 4)
        bounds = min(x0, x1) / 2, min(y0, y1) / 2, max(x0, x1) / 2, max(y0, y1) / 2
        shapes = shapely.box(*np.random.default_rng(1).uniform(0, 4, (4, 50)))
        hist = EulerHistogram.from_regions(shapes, grid)
        partition = Partition.from_grid(grid)
        tally = partition.counter()
        coords, owner = shapely.get_coordinates(shapes, return_index=True)
        tally.add(partition.outlines(coords, np.searchsorted(owner, np.arange(51))))
        selection = quietly(partition, *bounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DPRegionsWarning)
            expected = hist.count(*bounds)
        assert selection.wrap(selection.sums(tally.histogram())) == expected

    def test_a_cell_as_a_query_is_that_cell_alone(self):
        partition = Partition.voronoi(np.random.default_rng(0).uniform(0, 8, (60, 2)), AREA)
        selection = quietly(partition, partition.to_geodataframe())
        assert [cells_of(selection, i) for i in range(60)] == [[i] for i in range(60)]

    @pytest.mark.parametrize("angle", [0, 17, 45])
    def test_a_neighbour_that_shares_the_areas_border_touches_no_cell(self, angle):
        """Cells reach a few steps beyond the area, and there they count nothing."""
        area, beside, across = (
            shapely.affinity.rotate(box, angle, origin=(0, 0))
            for box in (shapely.box(0, 0, 8, 8), shapely.box(8, 0, 12, 8), shapely.box(7, 0, 12, 8))
        )
        sites = shapely.get_coordinates(shapely.affinity.rotate(
            shapely.MultiPoint(np.random.default_rng(0).uniform(0, 8, (40, 2))), angle, (0, 0)
        ))  # fmt: skip
        partition = Partition.voronoi(sites, area)
        corners = shapely.get_coordinates(partition.area)
        right = corners[np.argsort(corners @ shapely.get_coordinates(beside)[0])][-3:]
        assert shapely.distance(beside, shapely.points(right)).min() < 1e-6
        with pytest.warns(OutsideAreaWarning):
            assert cells_of(partition.select((beside,))) == []
        selected = cells_of(quietly(partition, across))
        cells = np.asarray(partition.to_geodataframe().geometry.array)
        met = shapely.area(shapely.intersection(cells, shapely.intersection(across, area))) > 1e-6
        assert selected == np.flatnonzero(met).tolist()
        both = shapely.union_all([beside, shapely.Point(*area.centroid.coords[0]).buffer(0.01)])
        (middle,) = partition.select((area.centroid,)).cells.items
        assert middle in cells_of(quietly(partition, both))
        assert not set(cells_of(quietly(partition, both))) & set(selected) - {int(middle)}

    def test_lines_and_points_touch_cells_as_bodies_do(self):
        partition = Partition.from_grid(Grid(0, 0, 1, 2, 3))
        shapes = [
            shapely.Point(1, 1),
            shapely.LineString([(0.5, 0.5), (2.5, 0.5), (2.5, 1.5)]),
            shapely.MultiPoint([(0.5, 0.5), (2.5, 1.5)]),
            shapely.GeometryCollection([shapely.Point(0.5, 0.5), shapely.box(1.2, 1.2, 2.2, 1.8)]),
            shapely.Polygon([(0.5, 0.5), (1.5, 0.5), (0.5, 0.5)]),
            shapely.LineString([(-5, 0.5), (0.5, 0.5)]),
        ]
        selection = quietly(partition, np.array(shapes, object))
        found = [cells_of(selection, i) for i in range(len(shapes))]
        assert found == [[4], [0, 1, 2, 5], [0, 5], [0, 4, 5], [0, 1], [0]]

    def test_holes_and_several_parts_are_left_out_and_taken_in(self):
        partition = Partition.from_grid(Grid(0, 0, 1, 3, 3))
        ring = shapely.box(0, 0, 3, 3).difference(shapely.box(1, 1, 2, 2))
        two = shapely.union_all([shapely.box(0.1, 0.1, 0.2, 0.2), shapely.box(2.1, 2.1, 2.2, 2.2)])
        selection = quietly(partition, np.array([ring, two]))
        assert cells_of(selection, 0) == [0, 1, 2, 3, 5, 6, 7, 8]
        assert cells_of(selection, 1) == [0, 8]

    def test_an_invalid_polygon_is_made_valid(self):
        partition = Partition.from_grid(Grid(0, 0, 1, 2, 2))
        bow = shapely.Polygon([(0.1, 0.1), (1.9, 0.9), (1.9, 0.1), (0.1, 0.9)])
        assert cells_of(quietly(partition, bow)) == [0, 1]

    def test_queries_in_another_crs_are_reprojected(self):
        area = geopandas.GeoSeries([shapely.box(4e5, 4e6, 4.1e5, 4.01e6)], crs=32650)
        partition = Partition.hexagons(area, "2km")
        cell = partition.to_geodataframe().iloc[[7]]
        middle = cell.geometry.buffer(-10)
        assert cells_of(quietly(partition, middle.to_crs(4326))) == [7]
        assert cells_of(quietly(partition, middle.to_crs(4326).iloc[0], crs=4326)) == [7]
        with pytest.raises(CRSError, match="carry no CRS"):
            partition.select((geopandas.GeoSeries(list(middle)),))


class TestForms:
    PARTITION = Partition.voronoi(SITES, AREA, labels=list("abcd"))

    def test_answers_come_in_the_form_of_the_queries(self):
        counts = np.arange(self.PARTITION.n_components)
        one = quietly(self.PARTITION, 0, 0, 8, 8)
        assert type(one.wrap(one.sums(counts))) is int
        many = quietly(self.PARTITION, *np.zeros((2, 3, 2)), *np.full((2, 3, 2), 8.0))
        assert many.wrap(many.sums(counts)).shape == (3, 2)
        frame = geopandas.GeoSeries([shapely.box(0, 0, 1, 1)] * 2, index=["x", "y"])
        series = quietly(self.PARTITION, frame)
        found = series.wrap(series.sums(counts), "count")
        assert isinstance(found, pd.Series) and found.index.tolist() == ["x", "y"]
        several = quietly(self.PARTITION, cells=[["a"], ["b", "c"]])
        assert several.wrap(several.n_cells).tolist() == [1, 2]
        assert cells_of(quietly(self.PARTITION, cells=np.array(["d", "a"]))) == [0, 3]
        for form in (pd.Series, pd.Index, iter, frozenset, tuple):
            several = quietly(self.PARTITION, cells=[form(["a"]), form(["c", "b"]), form([])])
            assert [cells_of(several, i) for i in range(3)] == [[0], [1, 2], []]

    @pytest.mark.parametrize(
        ("query", "options", "error", "why"),
        [
            ((), {}, InputTypeError, "0 arguments"),
            ((1, 2), {}, InputTypeError, "2 arguments"),
            ((2, 2, 1, 1), {}, QueryError, "reversed"),
            ((0, 0, np.nan, 1), {}, QueryError, "finite"),
            (("here",), {}, InputTypeError, "a query is"),
            ((np.array([None]),), {}, QueryError, "null"),
            ((shapely.Point(1e12, 1),), {}, QueryError, "coordinate"),
            ((0, 0, 1, 1), {"cells": ["a"]}, InputTypeError, "not both"),
            ((), {"cells": ["a", "z", 3]}, QueryError, "'z', 3"),
            ((), {"cells": "abc"}, InputTypeError, "list"),
            ((), {"cells": 3}, InputTypeError, "list"),
            ((), {"cells": [[["a"]]]}, QueryError, "does not have"),
            ((), {"cells": ["a", ["b"]]}, InputTypeError, "some are one"),
            ((), {"cells": [{}, "a"]}, InputTypeError, "some are one"),
            ((0, 0, 1, 1), {"crs": 32650}, CRSError, "no CRS"),
        ],
    )
    def test_bad_queries_are_refused(self, query, options, error, why):
        with pytest.raises(error, match=why):
            self.PARTITION.select(query, **options)

    def test_numbers_that_look_like_degrees_are_met_with_the_remedy(self):
        there = Partition.hexagons((490_000, 5_360_000, 500_000, 5_370_000), "2km", crs=32632)
        for query in ((9.0, 48.5, 9.1, 48.6), (shapely.box(9.0, 48.5, 9.1, 48.6),)):
            with pytest.warns(OutsideAreaWarning, match="look like degrees"):
                there.select(query)
        with pytest.warns(
            OutsideAreaWarning, match="no cell of the partition: nothing is counted there$"
        ):
            there.select((100_000, 1_000_000, 200_000, 2_000_000))

    def test_no_cells_are_a_query_that_counts_nobody_and_says_so(self):
        for cells, said in (([], "the query names no cell"), ([["a"], []], "1 of 2 queries name")):
            with pytest.warns(OutsideAreaWarning, match=said):
                self.PARTITION.select((), cells=cells)

    def test_queries_beside_the_area_and_sums_that_are_approximate_warn(self):
        with pytest.warns(OutsideAreaWarning, match="no cell"):
            selection = self.PARTITION.select((20, 20, 30, 30))
        assert selection.outside.all()
        with pytest.warns(ApproximateCountWarning, match="not a convex set") as caught:
            self.PARTITION.select((), cells=["a", "d"], stacklevel=1)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.PARTITION.select((), cells=["a"])
            self.PARTITION.select(AREA)
