"""How often intervals hold the true count: the table itself, and plans that guess detail."""

from __future__ import annotations

from functools import cache

import geopandas
import numpy as np
import pandas as pd
import pytest

import dpregions as dpr
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import ExactData
from dpregions.study.coverage import inside, interval_coverage

GRID = dpr.synthetic.grid("12km", "1km")


@cache
def town() -> geopandas.GeoDataFrame:
    return dpr.synthetic.regions(1000)


def coverage(**options):
    return interval_coverage(town(), GRID, "2km", **options)


def test_the_table_has_a_row_a_size_and_says_what_it_is():
    done = []
    found = coverage(epsilon=1, releases=3, progress=done.append)
    assert list(found.index) == list(Rectangles.SHARES)
    assert list(found) == ["held", "noisy", "held_noisy", "width", "relative_width"]
    assert found.attrs["label"] == ExactData.label
    assert sum(found.attrs["plans"].values()) == 3
    assert done == [1, 2, 3]
    again = coverage(epsilon=1, releases=3)
    pd.testing.assert_frame_equal(found, again)


def test_with_hardly_any_noise_intervals_are_about_the_cells_that_truth_is_of():
    """And not about rectangles a quarter of a cell within them, as drawn."""
    found = coverage(epsilon=50, releases=2)
    assert (found["held"] > 0.9).all()
    assert found["relative_width"].max() < 0.2


def test_more_confidence_holds_more_with_wider_intervals():
    low, high = (coverage(epsilon=1, releases=6, confidence=c) for c in (0.2, 0.999))
    assert (high["width"] > 2 * low["width"]).all()
    assert low["held"].mean() < 0.6
    assert high["held"].mean() > 0.99


@pytest.mark.slow
def test_intervals_hold_where_detail_is_guessed_from_blocks_and_the_mix():
    found = coverage(epsilon=0.4, releases=60)
    chosen = found.attrs["plans"]
    guessed = sum(times for plan, times in chosen.items() if "by size of footprint in" in plan[-1])
    assert guessed > 50
    # 60 totals: seven misses of the whole area would be three standard deviations.
    assert (found["held"] > 0.88).all()
    assert found["held"].mean() > 0.94


def test_a_query_is_asked_of_the_cells_whose_truth_it_is_held_against():
    """Counted exactly, the rectangle of a query touches what its cells touch."""
    exact = dpr.EulerHistogram.from_regions(town(), GRID, max_diameter="2km")
    truth = ExactData.of(town(), GRID, "2km").truth
    rng, on = np.random.default_rng(0), Rectangles(*GRID.shape)
    for share in on.SHARES:
        cells = on.placed(*on.shape_of(share), 30, rng, turned=True)
        np.testing.assert_array_equal(exact.count(*inside(cells, GRID)), truth.answers(cells))
