"""Queries: every form, and the shape of its answer."""

from __future__ import annotations

import warnings
from fractions import Fraction

import geopandas
import numpy as np
import pandas as pd
import pytest
from shapely import Polygon, box

from dpregions.errors import DPRegionsWarning
from dpregions.geometry.cells import select
from support.small_queries import GRID, HIST


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
