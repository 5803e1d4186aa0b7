"""Areas that are not square, and grids aligned to lines that others use too."""

from __future__ import annotations

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS, Transformer

from dpregions import Grid
from dpregions.errors import CRSError, GridError


def test_an_area_may_be_wider_than_high():
    grid = Grid.around(9.0, 48.5, side=("30km", "20km"), cell_size="1km")
    assert grid.shape == (20, 30)
    x, y = Transformer.from_crs(4326, grid.crs, always_xy=True).transform(9.0, 48.5)
    assert (grid.xmin + grid.xmax) / 2 == pytest.approx(x, abs=0.001)
    assert (grid.ymin + grid.ymax) / 2 == pytest.approx(y, abs=0.001)


def test_a_square_is_as_it_was():
    pair = Grid.around(9.0, 48.5, side=("20km", "20km"), cell_size="1km")
    assert pair == Grid.around(9.0, 48.5, side="20km", cell_size="1km")


def test_lines_are_at_multiples_of_the_cell_and_the_area_grows_to_them():
    grid = Grid.from_bounds(1500, -200, 4001, 900, cell_size=1000, align="round")
    assert grid.bounds == (1000, -1000, 5000, 1000)
    around = Grid.around(9.0, 48.5, side="20km", cell_size="1km", align="round")
    assert around.xmin % 1000 == around.ymin % 1000 == 0
    plain = Grid.around(9.0, 48.5, side="20km", cell_size="1km")
    assert shapely.box(*around.bounds).covers(shapely.box(*plain.bounds))
    assert max(around.shape) <= 21


def test_the_inspire_grid_is_that_of_europes_statistics():
    grid = Grid.around(9.0, 48.5, side="20km", cell_size="1km", align="inspire")
    assert grid.crs == CRS.from_epsg(3035)
    assert grid.xmin % 1000 == grid.ymin % 1000 == 0
    again = Grid.from_bounds(*grid.bounds, cell_size="1km", align="inspire")
    assert again == grid
    coarse = Grid.from_bounds(*grid.bounds, cell_size="5km", align="inspire")
    assert coarse.xmin % 5000 == 0 and coarse.xmin <= grid.xmin


steps = st.integers(-(10**6), 10**6)


@given(steps, steps, st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([1, 0.1, 250, 7]))
def test_aligned_grids_of_one_cell_size_share_their_lines(x, y, width, height, cell):
    grid = Grid.from_bounds(x, y, x + width, y + height, cell_size=cell * 100, align="round")
    assert (grid.xmin / (cell * 100)).is_integer() and (grid.ymin / (cell * 100)).is_integer()
    assert grid.xmin <= x and grid.ymin <= y
    assert grid.xmax >= x + width and grid.ymax >= y + height
    assert grid.xmin + grid.cell_size > x and grid.ymin + grid.cell_size > y


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"crs": 32632}, CRSError, r"align='inspire' is in EPSG:3035, not in EPSG:32632"),
        ({"cell_size": "3km"}, GridError, r"cell_size='3000 m' is no side of cells in an INSPIRE"),
        ({"cell_size": "2/3 km"}, GridError, "take one that divides 100 km"),
        ({"cell_size": "200km", "side": "900km"}, GridError, "take one that divides 100 km"),
        ({"align": "left"}, GridError, "align must be 'round' or 'inspire', got 'left'"),
    ],
)
def test_what_no_aligned_grid_is_made_of_is_refused(changes, error, words):
    arguments = {"side": "20km", "cell_size": "1km", "align": "inspire"} | changes
    with pytest.raises(error, match=words):
        Grid.around(9.0, 48.5, **arguments)


def test_an_area_cut_into_so_many_squares_has_no_lines_to_align():
    with pytest.raises(GridError, match="align needs cell_size"):
        Grid.from_bounds(0, 0, 2, 2, n_rows=2, n_cols=2, align="round")


def test_a_height_below_a_cell_is_refused():
    with pytest.raises(GridError, match="is larger than the area, side='500m'"):
        Grid.around(9.0, 48.5, side=("20km", "500m"), cell_size="1km")
