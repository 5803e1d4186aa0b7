"""Queries: their CRS, what is refused, and what is warned of."""

from __future__ import annotations

import math

import geopandas
import numpy as np
import pandas as pd
import pytest
from shapely import LineString, Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.errors import (
    ApproximateCountWarning,
    CRSError,
    InputTypeError,
    OutsideAreaWarning,
    QueryError,
)
from support.small_queries import HIST, UTM, touched_cells


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
