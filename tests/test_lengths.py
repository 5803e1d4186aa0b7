"""Lengths as people write them: text and numbers, read exactly, on a grid too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS

from dpregions import Grid
from dpregions.errors import CRSError, InputError, InputTypeError
from dpregions.lengths import (
    exact,
    positive_length,
    short_text,
    shown_area,
    shown_length,
    shown_percent,
)
from dpregions.mechanisms.paper.sensitivity import cells_spanned

UTM50 = CRS.from_epsg(32650)


class TestLengths:
    @pytest.mark.parametrize(
        ("text", "metres"),
        [
            ("1km", 1000),
            ("500 m", 500),
            (" 2.5 KM ", 2500),
            ("1e3m", 1000),
            (".5km", 500),
            ("3ft", Fraction(9144, 10000)),
            ("3937 ftUS", Fraction(1200)),
            ("1 yd", Fraction(9144, 10000)),
            ("250cm", Fraction(5, 2)),
            ("1 mm", Fraction(1, 1000)),
            ("1nmi", 1852),
            ("+1mi", Fraction(1609344, 1000)),
            ("2/3 km", Fraction(2000, 3)),
            ("2/3km", Fraction(2000, 3)),
            (" 2.5 / 3 m", Fraction(5, 6)),
        ],
    )
    def test_text_is_read_exactly(self, text, metres):
        assert positive_length(text, name="side", crs=UTM50) == metres

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "km",
            "1",
            "1 parsec",
            "1 km 2 m",
            "one km",
            "1,5km",
            "2/0 km",
            "2/ km",
            "/3km",
            "1/2/3 m",
            "2/-3 m",
        ],
    )
    def test_text_that_is_no_length_is_refused_with_the_units(self, text):
        with pytest.raises(InputError, match=r"side=.* is not a length: .*'1km' or '500 m'"):
            positive_length(text, name="side", crs=UTM50)

    @pytest.mark.parametrize("value", [0, -1.5, "0km", "-1 m"])
    def test_what_is_not_positive_is_refused(self, value):
        with pytest.raises(InputError, match="side must be greater than 0, got"):
            positive_length(value, name="side", crs=UTM50)

    @pytest.mark.parametrize("value", [None, True, [1], b"1km", 1j])
    def test_what_is_no_length_at_all_is_refused(self, value):
        with pytest.raises(InputTypeError, match="side must be a number or a text such as"):
            positive_length(value, name="side", crs=UTM50)

    @pytest.mark.parametrize("value", [2.1, 0.1, 1e-7, 1e22, 123456.789, 5e-324])
    def test_numbers_have_their_decimal_face_value(self, value):
        assert exact(value) == Fraction(repr(value))
        assert exact(np.float64(value)) == Fraction(repr(value))

    @pytest.mark.parametrize(
        ("bound", "cell", "k"),
        [
            (2.1, 0.7, 3),  # 2.1 / 0.7 is 3.0000000000000004 in floats
            (0.3, 0.1, 3),
            (2.0, 1.0, 2),
            (2.0000001, 1.0, 3),
            (0.48, 0.16, 3),
            (1.3, 0.1, 13),
            (0.05, 0.1, 1),
            (2 / 3, 2 / 3, 1),
            (2, 20 / 30, 3),  # as decimals, 3.0000000000000001
            (1, 1 / 3, 3),
            (2, Fraction(2, 3), 3),
            (2 * (1 + 1e-11), 20 / 30, 4),  # more than float error
        ],
    )
    def test_the_cells_that_a_bound_spans_come_from_exact_numbers(self, bound, cell, k):
        assert Grid(0, 0, cell, 3, 3).cells_spanned(bound) == k

    @given(st.integers(1, 400), st.integers(1, 400), st.integers(-6, 6), st.integers(1, 60))
    def test_so_many_times_a_fraction_is_so_many_cells(self, p, q, power, times):
        cell = Fraction(p, q) * Fraction(10) ** power
        assert Grid(0, 0, float(cell), 3, 3).in_cells(float(times * cell)) == times
        assert Grid(0, 0, cell, 3, 3).in_cells(float(times * cell)) == times
        assert cells_spanned(float(times * cell), float(cell)) == times

    def test_a_bound_may_be_text(self):
        thirds = Grid(0, 0, "2/3 km", 3, 3, crs=32650)
        assert thirds.cells_spanned("2km") == 3
        assert thirds.cells_spanned("2/3km") == 1
        assert Grid(0, 0, "700m", 3, 3, crs=32650).cells_spanned("2.1km") == 3
        assert Grid(0, 0, 700, 3, 3, crs=32650).length("2.1km") == 2100
        with pytest.raises(CRSError, match="max_diameter='2km' has a unit"):
            Grid(0, 0, 700, 3, 3).cells_spanned("2km")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.05, "5 %"), (0.0123, "1.2 %"), (52.4, "5,200 %"), (0.000071, "0.0071 %"), (0, "0 %"),
     (0.0996, "10 %"), (0.4, "40 %")],
)  # fmt: skip
def test_percentages_have_two_digits(share, text):
    assert shown_percent(share) == text


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(3), "3.0"),
        (Fraction(1, 3), "1/3"),
        (Fraction(10**5000), "1" + "0" * 5000),
        (Fraction(1, 10**5000), "1/1" + "0" * 5000),
        (Fraction(10**5000 + 1, 3), "1" + "0" * 4999 + "1/3"),
    ],
)
def test_a_fraction_of_any_length_is_printed_exactly(sign, value, text):
    """Python itself refuses to write more than 4,300 digits of an int."""
    assert short_text(sign * value) == ("" if sign == 1 else "-") + text


def test_lengths_are_shown_in_metres_where_there_is_a_crs():
    feet = Grid(0, 0, 5000, n_rows=2, n_cols=1, crs=2263)
    assert shown_area(Grid(0, 0, 500, n_rows=1, n_cols=3, crs=UTM50)) == "1.5 km x 500 m"
    assert shown_area(Grid(0, 0, 500, n_rows=1, n_cols=3)) == "1500 x 500"
    assert shown_length(feet.cell_size, feet) == "1.524 km"
