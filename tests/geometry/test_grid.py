"""`Grid`: constructors, what is refused, a grid as a value and as frames."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given
from pyproj import CRS

from dpregions import Grid
from dpregions.errors import CRSError, GridError, InputError, InputTypeError
from support import strategies


class TestMaking:
    def test_a_grid_knows_its_shape_and_its_bounds(self):
        grid = Grid(10, 20, 0.5, n_rows=2, n_cols=3)
        assert grid.shape == (2, 3)
        assert grid.doubled_shape == (3, 5)
        assert grid.n_components == 15
        assert grid.bounds == (10.0, 20.0, 11.5, 21.0)
        assert grid.cell_bounds(1, 1, 0, 2) == (10.0, 20.5, 11.5, 21.0)

    def test_numbers_become_floats_and_ints(self):
        grid = Grid(np.float32(1), np.int64(2), np.float64(0.5), np.int32(2), np.uint8(3))
        assert grid == Grid(1, 2, 0.5, 2, 3)
        kinds = [type(v) for v in (grid.xmin, grid.ymin, grid.cell_size, grid.n_rows, grid.n_cols)]
        assert kinds == [float, float, float, int, int]

    def test_the_repr_is_the_call(self):
        grid = Grid(0, 0, 1, 2, 3)
        assert repr(grid) == "Grid(xmin=0.0, ymin=0.0, cell_size=1.0, n_rows=2, n_cols=3)"
        assert eval(repr(grid)) == grid
        there = Grid(0, 0, 1, 2, 3, crs=32650)
        assert repr(there).endswith("n_cols=3, crs='EPSG:32650')")
        assert eval(repr(there)) == there

    def test_a_cell_size_may_be_text_where_there_is_a_crs(self):
        assert Grid(0, 0, "1km", 2, 2, crs=CRS.from_epsg(32650)).cell_size == 1000
        assert Grid(0, 0, "1 mi", 2, 2, crs=32650).cell_size == 1609.344
        # US survey feet: a coordinate unit is 0.3048006 m
        feet = Grid(0, 0, "1km", 2, 2, crs=2263).cell_size
        assert feet == pytest.approx(1000 / 0.3048006096, rel=1e-9)

    @pytest.mark.parametrize(
        ("lon", "lat", "epsg"),
        [
            (116.40, 39.91, 32650),
            (-74.0, 40.7, 32618),
            (-43.2, -22.9, 32723),
            (151.2, -33.9, 32756),
            (0.0, 0.0, 32631),
            (-180.0, 10.0, 32601),
            (180.0, 10.0, 32660),
            (179.9, -10.0, 32760),
            (6.0, 50.0, 32632),
            (5.999, 50.0, 32631),
        ],
    )
    def test_around_picks_the_utm_zone(self, lon, lat, epsg):
        grid = Grid.around(lon, lat, side="20km", cell_size="1km")
        assert grid.crs == CRS.from_epsg(epsg)
        assert grid.shape == (20, 20)
        assert grid.cell_size == 1000

    def test_around_is_centred_to_a_millimetre_and_its_lines_are_exact(self):
        from pyproj import Transformer

        grid = Grid.around(116.40, 39.91, side=2500, cell_size=1000)
        assert grid.shape == (3, 3)  # the side is rounded up to whole cells
        x, y = Transformer.from_crs(4326, grid.crs, always_xy=True).transform(116.40, 39.91)
        assert (grid.xmin + grid.xmax) / 2 == pytest.approx(x, abs=0.001)
        assert (grid.ymin + grid.ymax) / 2 == pytest.approx(y, abs=0.001)
        for i in range(4):
            assert Fraction(grid.xmin + i * 1000.0) == Fraction(grid.xmin) + i * 1000

    def test_around_takes_another_crs_where_utm_ends(self):
        grid = Grid.around(0, 89, side="100km", cell_size="10km", crs=3995)
        assert grid.crs == CRS.from_epsg(3995)
        with pytest.raises(GridError, match=r"lat=89.0 lies beyond UTM.*crs"):
            Grid.around(0, 89, side="100km", cell_size="10km")

    @pytest.mark.parametrize(("lon", "lat"), [(39.9, 116.4), (181, 0), (0, -91), (math.nan, 0)])
    def test_around_refuses_what_is_no_place(self, lon, lat):
        with pytest.raises(GridError, match=r"swapped|finite"):
            Grid.around(lon, lat, side="1km", cell_size="100m")

    @pytest.mark.parametrize(
        ("bounds", "cell_size", "shape"),
        [
            ((0, 0, 2.1, 1.4), 0.7, (2, 3)),  # in binary, 2.1 / 0.7 exceeds 3
            ((0, 0, 0.3, 0.1), 0.1, (1, 3)),
            ((-1, -1, 1, 1.5), 1, (3, 2)),
            ((0.1, 0.2, 0.4, 0.8), 0.1, (6, 3)),
        ],
    )
    def test_from_bounds_covers_the_bounds_with_no_cell_too_many(self, bounds, cell_size, shape):
        grid = Grid.from_bounds(*bounds, cell_size=cell_size)
        assert grid.shape == shape
        assert (grid.xmin, grid.ymin) == bounds[:2]

    def test_from_bounds_reads_text(self):
        assert Grid.from_bounds(0, 0, 5000, 2001, cell_size="1km", crs=32650).shape == (3, 5)

    @pytest.mark.parametrize("bounds", [(0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 1, 1)])
    def test_from_bounds_refuses_no_area(self, bounds):
        with pytest.raises(GridError, match="have no area: xmax > xmin"):
            Grid.from_bounds(*bounds, cell_size=1)

    def test_from_bounds_cuts_an_area_into_so_many_squares(self):
        grid = Grid.from_bounds(0, 0, 20, 10, n_rows=15, n_cols=30)
        assert grid.shape == (15, 30)
        assert grid.in_cells(2) == 3
        assert grid.in_cells(Fraction(2, 3)) == 1
        assert grid == Grid(0, 0, 20 / 30, 15, 30)
        there = Grid.from_json(grid.to_json())
        assert there == grid
        assert there.in_cells(10) == 15

    def test_from_bounds_reads_bounds_as_decimals(self):
        grid = Grid.from_bounds(0.1, 0.2, 0.4, 0.8, n_rows=14, n_cols=7)
        assert grid.shape == (14, 7)
        assert grid.in_cells(0.3) == 7

    @pytest.mark.parametrize(
        ("sizes", "words"),
        [
            ({"n_rows": 10, "n_cols": 30}, "n_rows=10 and n_cols=30 make cells .* not squares"),
            ({"n_rows": 10}, "give cell_size, or n_rows and n_cols"),
            ({}, "give cell_size, or n_rows and n_cols"),
            ({"cell_size": 1, "n_rows": 20, "n_cols": 20}, "not both"),
            ({"n_rows": 0, "n_cols": 0}, "at least 1"),
        ],
    )
    def test_from_bounds_needs_one_size_of_squares(self, sizes, words):
        with pytest.raises(GridError, match=words):
            Grid.from_bounds(0, 0, 20, 20, **sizes)

    def test_an_area_of_so_many_cells_has_no_cell_too_many(self):
        assert Grid.from_bounds(0, 0, 20, 20, cell_size=20 / 30).shape == (30, 30)
        assert Grid.around(9, 48.5, side="20km", cell_size="2/3 km").shape == (30, 30)
        assert Grid.around(9, 48.5, side=20_000, cell_size=20_000 / 30).shape == (30, 30)


class TestRefusals:
    @pytest.mark.parametrize("name", ["xmin", "ymin"])
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_a_corner_that_is_not_finite(self, name, value):
        arguments = {"xmin": 0, "ymin": 0, "cell_size": 1, "n_rows": 1, "n_cols": 1, name: value}
        with pytest.raises(GridError, match=f"{name} must be finite, got {value}"):
            Grid(**arguments)

    @pytest.mark.parametrize("value", [0, -1, -0.0, math.nan, math.inf])
    def test_a_cell_size_that_is_not_positive_and_finite(self, value):
        with pytest.raises(InputError, match=f"cell_size must be .*{re.escape(repr(value))}"):
            Grid(0, 0, value, 1, 1)

    @pytest.mark.parametrize("name", ["n_rows", "n_cols"])
    @pytest.mark.parametrize("value", [0, -3])
    def test_a_number_of_cells_below_one(self, name, value):
        arguments = {"xmin": 0, "ymin": 0, "cell_size": 1, "n_rows": 1, "n_cols": 1, name: value}
        with pytest.raises(GridError, match=f"{name} must be at least 1, got {value}"):
            Grid(**arguments)

    @pytest.mark.parametrize("value", [1.0, 2.5, "3", None, True])
    def test_a_number_of_cells_that_is_not_whole(self, value):
        with pytest.raises(InputTypeError, match="n_rows must be a whole number, got"):
            Grid(0, 0, 1, value, 1)

    @pytest.mark.parametrize("value", [None, [1], "here", 1j])
    def test_a_corner_that_is_no_number(self, value):
        with pytest.raises(InputTypeError, match="xmin must be a number, got"):
            Grid(value, 0, 1, 1, 1)

    def test_more_components_than_memory_holds(self):
        with pytest.raises(GridError, match=r"10000000 x 10000000 .* GiB .*larger cells or a sma"):
            Grid(0, 0, 1, 10**7, 10**7)

    @pytest.mark.parametrize(
        "arguments",
        [
            (0, 0, 1, 10**400, 1),
            (0, 0, 10**400, 1, 1),
            (10**400, 0, 1, 1, 1),
            (0, 0, 1e308, 3, 3),
            (1.7e308, 0, 1e308, 1, 1),
        ],
    )
    def test_numbers_beyond_floats(self, arguments):
        with pytest.raises(InputError):
            Grid(*arguments)

    @pytest.mark.parametrize("text", ["1e400km", "1e-400m"])
    def test_text_beyond_floats(self, text):
        with pytest.raises(InputError, match="cell_size"):
            Grid(0, 0, text, 1, 1, crs=32650)

    @pytest.mark.parametrize("size", [1e301, 1e-305, 5e-324])
    def test_cells_on_which_no_lattice_can_be_laid(self, size):
        with pytest.raises(GridError, match="leaves no room for coordinates"):
            Grid(0, 0, size, 3, 3)

    @pytest.mark.parametrize(("corner", "size"), [(1e16, 1), (1e9, 1e-9), (-1e300, 1e280)])
    def test_cells_so_small_that_lines_fall_together(self, corner, size):
        with pytest.raises(GridError, match=r"too small beside coordinates.*larger cells"):
            Grid(corner, 0, size, 3, 3)

    @pytest.mark.parametrize("crs", [4326, "OGC:CRS84", "EPSG:4269"])
    def test_a_geographic_crs_with_the_remedy(self, crs):
        with pytest.raises(CRSError, match=r"is geographic.*Grid\.around\(lon, lat, side="):
            Grid(0, 0, 1, 1, 1, crs=crs)
        with pytest.raises(CRSError, match=r"Grid\.around"):
            Grid.from_bounds(0, 0, 1, 1, cell_size=1, crs=crs)

    def test_a_geocentric_crs(self):
        with pytest.raises(CRSError, match="not a projected CRS"):
            Grid(0, 0, 1, 1, 1, crs=4978)

    @pytest.mark.parametrize("crs", ["nonsense", object(), 999999, ""])
    def test_a_crs_that_is_none(self, crs):
        with pytest.raises(CRSError, match="is no CRS that pyproj reads"):
            Grid(0, 0, 1, 1, 1, crs=crs)

    def test_text_without_a_crs(self):
        with pytest.raises(CRSError, match="cell_size='1km' has a unit, but without a CRS"):
            Grid(0, 0, "1km", 1, 1)


class TestBeingAValue:
    @given(strategies.grids())
    def test_json_comes_back_equal(self, grid):
        again = Grid.from_json(grid.to_json())
        assert again == grid
        assert hash(again) == hash(grid)

    @pytest.mark.parametrize("crs", [32650, 2263, "ESRI:54009", "+proj=laea +lat_0=50 +lon_0=10"])
    def test_json_keeps_the_crs(self, crs):
        grid = Grid(0, 0, 0.1, 2, 3, crs=crs)
        again = Grid.from_json(grid.to_json())
        assert again == grid
        assert hash(again) == hash(grid)
        assert again.crs == CRS.from_user_input(crs)

    def test_json_is_plain(self):
        fields = json.loads(Grid(0, 0, 0.1, 2, 3).to_json())
        assert fields == {
            "dpregions": "grid",
            "version": 1,
            "xmin": 0.0,
            "ymin": 0.0,
            "cell_size": 0.1,
            "n_rows": 2,
            "n_cols": 3,
            "crs": None,
        }

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"dpregions": "release"}, "not a grid's JSON"),
            ({"version": 2}, "version 2; this release reads version 1"),
            ({"xmin": None}, "xmin must be a number"),
            ({"xmin": math.nan}, "xmin must be finite"),
            ({"n_rows": 0}, "n_rows must be at least 1"),
            ({"n_rows": 2.5}, "n_rows must be a whole number"),
            ({"cell_size": -1}, "cell_size must be greater than 0"),
            ({"crs": "nonsense"}, "no CRS"),
        ],
    )
    def test_json_that_is_no_grid_is_refused(self, change, message):
        text = json.dumps(json.loads(Grid(0, 0, 1, 2, 3).to_json()) | change)
        with pytest.raises((InputError, InputTypeError), match=message):
            Grid.from_json(text)

    @pytest.mark.parametrize("text", ["", "[]", "{", "3", None, "{}"])
    def test_text_that_is_no_json_of_ours_is_refused(self, text):
        with pytest.raises(GridError, match="not a grid's JSON"):
            Grid.from_json(text)

    def test_json_with_a_field_missing_is_refused(self):
        fields = json.loads(Grid(0, 0, 1, 2, 3).to_json())
        del fields["xmin"], fields["n_cols"]
        with pytest.raises(GridError, match="lacks n_cols, xmin"):
            Grid.from_json(json.dumps(fields))

    @given(strategies.grids())
    def test_a_pickle_comes_back_equal(self, grid):
        assert pickle.loads(pickle.dumps(grid)) == grid

    def test_a_pickle_keeps_the_crs(self):
        grid = Grid.around(2.35, 48.85, side="5km", cell_size="500m")
        assert pickle.loads(pickle.dumps(grid)) == grid

    def test_equality_looks_at_every_field(self):
        base = Grid(0, 0, 1, 2, 3)
        changes = [{"xmin": 1}, {"ymin": 1}, {"cell_size": 2}, {"n_rows": 3}, {"n_cols": 2}]
        others = [dataclasses.replace(base, **change) for change in [*changes, {"crs": 32650}]]
        assert all(other != base for other in others)
        assert len({base, Grid(0, 0, 1, 2, 3), *others}) == 1 + len(others)
        assert base != "a grid"

    @pytest.mark.parametrize("name", ["xmin", "n_rows", "crs", "colour"])
    def test_a_grid_cannot_be_changed(self, name):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(Grid(0, 0, 1, 1, 1), name, 5)


class TestFrames:
    @pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (2, 3)])
    def test_components_are_drawn_where_the_doubled_array_has_them(self, shape):
        grid = Grid(10, 20, 0.5, *shape)
        places = []
        for kind, odd in (("faces", 0), ("edges", 1), ("vertices", 2)):
            frame = grid.to_geodataframe(kind)
            assert ((frame["row"] % 2 + frame["col"] % 2) == odd).all()
            middle = frame.geometry.centroid
            # Places i = 0, 1, 2, ... have their middles at 0.5, 1, 1.5, ... cells.
            assert ((middle.x - 10) / 0.5 * 2 - 1 == frame["col"]).all()
            assert ((middle.y - 20) / 0.5 * 2 - 1 == frame["row"]).all()
            places += zip(frame["row"], frame["col"], strict=True)
        assert sorted(places) == sorted(np.ndindex(grid.doubled_shape))

    def test_shapes_and_crs_are_right(self):
        grid = Grid(0, 0, 1, 2, 2, crs=32650)
        faces, edges, vertices = (
            grid.to_geodataframe(kind) for kind in ("faces", "edges", "vertices")
        )
        assert faces.crs == edges.crs == vertices.crs == grid.crs
        assert (faces.area == 1).all()
        assert (edges.length == 1).all()
        assert vertices.geometry.tolist() == [shapely.Point(1, 1)]
        assert shapely.union_all(faces.geometry).equals(shapely.box(0, 0, 2, 2))

    def test_an_unknown_kind_is_refused(self):
        with pytest.raises(InputError, match="kind='cells' is unknown"):
            Grid(0, 0, 1, 2, 2).to_geodataframe("cells")


def test_cells_that_are_no_short_decimals_are_kept_exactly():
    from fractions import Fraction

    thirds = Grid(0, 0, Fraction(2, 3), 4, 4)
    assert thirds.cells_spanned(2) == 3
    assert Grid.from_json(thirds.to_json()).cells_spanned(2) == 3
    feet = Grid(0, 0, "1mi", 4, 4, crs=2263)
    assert feet.cells_spanned("3mi") == 3
    assert Grid.from_json(feet.to_json()) == feet


@pytest.mark.parametrize("cells", [(-1, 0, 0, 0), (0, 2, 0, 0), (1, 0, 0, 0), (0, 0, 0, 3)])
def test_bounds_of_cells_that_are_not_there_are_refused(cells):
    with pytest.raises(GridError, match=r"rows within|columns within 0\.\.2"):
        Grid(0, 0, 1, 2, 3).cell_bounds(*cells)


@pytest.mark.parametrize("text", ["1e999999999", "1/0", "-1", "1.5", "", " 1", "9" * 5000, 7])
def test_an_exact_cell_size_that_str_never_wrote_is_not_computed(text):
    grid = Grid(0, 0, 1, 2, 3)
    fields = json.loads(grid.to_json()) | {"exact_cell_size": text}
    assert Grid.from_json(json.dumps(fields)) == grid


def test_cells_larger_than_the_area_are_refused():
    with pytest.raises(GridError, match="'30km' is larger than the area, side='20km'"):
        Grid.around(9.0, 48.5, side="20km", cell_size="30km")
