"""`Grid.enclosing`: the smallest rectangle of whole cells around a query, in every form."""

from __future__ import annotations

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry import box

from dpregions import EulerHistogram, Grid
from dpregions.errors import QueryError

GRID = Grid(0, 0, 1, n_rows=4, n_cols=5)
CITY = Grid.around(116.4, 39.9, side="20km", cell_size="1km")


def test_a_rectangle_grows_to_the_lines_around_it():
    assert GRID.enclosing(0.5, 1, 2.1, 3) == (0, 1, 3, 3)
    assert GRID.enclosing(1, 1, 2, 3) == (1, 1, 2, 3)
    assert GRID.enclosing(1.2, 1.2, 1.3, 1.3) == (1, 1, 2, 2)


def test_a_shape_is_enclosed_by_what_its_extent_touches():
    assert GRID.enclosing(shapely.Polygon([(0.5, 0.5), (3.5, 0.5), (2, 2.5)])) == (0, 0, 4, 3)
    assert GRID.enclosing(shapely.Point(2.5, 1.5)) == (2, 1, 3, 2)


def test_what_reaches_beyond_is_cut_and_what_lies_outside_is_not_moved():
    assert GRID.enclosing(-3, 1.5, 1.5, 9) == (0, 1, 2, 4)
    assert GRID.enclosing(7.25, 7.5, 8, 9) == (7.25, 7.5, 8, 9)


def test_arrays_and_frames_keep_their_form():
    low, high = np.array([0.5, 7.25]), np.array([1.5, 8.0])
    found = GRID.enclosing(low, low, high, high)
    assert [side.tolist() for side in found] == [[0, 7.25], [0, 7.25], [2, 8], [2, 8]]
    frame = geopandas.GeoSeries([box(0.5, 0.5, 1.5, 1.5)], index=["old town"])
    assert GRID.enclosing(frame)[2].to_dict() == {"old town": 2}


def test_a_rectangle_in_degrees_is_answered_exactly():
    degrees = 116.32, 39.83, 116.4, 39.93
    assert not CITY.is_exact(*degrees, crs=4326)
    found = CITY.enclosing(*degrees, crs=4326)
    assert CITY.is_exact(*found)
    there = geopandas.GeoSeries([box(*degrees)], crs=4326).to_crs(CITY.crs)
    assert box(*found).covers(there.iloc[0])
    assert found == CITY.enclosing(there.iloc[0]) == CITY.enclosing(box(*degrees), crs=4326)


sides = st.floats(-1, 6)


@pytest.mark.filterwarnings("ignore:the query lies wholly outside")
@given(sides, sides, sides, sides)
def test_the_cells_around_a_rectangle_are_those_it_touches(x, y, right, up):
    xmin, xmax, ymin, ymax = min(x, right), max(x, right), min(y, up), max(y, up)
    here = EulerHistogram.from_regions([box(1.5, 1.5, 2.5, 2.5), box(4, 0, 5, 1)], GRID)
    around = GRID.enclosing(xmin, ymin, xmax, ymax)
    assert here.count(*around) == here.count(xmin, ymin, xmax, ymax)


def test_an_empty_query_has_no_cells_around_it():
    with pytest.raises(QueryError, match="query 1 is empty: no cells enclose it"):
        GRID.enclosing([box(0, 0, 1, 1), shapely.Polygon()])
