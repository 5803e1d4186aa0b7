"""How often intervals hold the true count: the table itself, and plans that guess detail."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

import dpregions as dpr
from dpregions.geometry.rectangles import SHARES
from dpregions.planning.exact_data import LABEL, ExactData
from dpregions.study.coverage import interval_coverage


@cache
def town() -> ExactData:
    return ExactData.of(dpr.synthetic.regions(1000), dpr.synthetic.grid("12km", "1km"), "2km")


def test_the_table_has_a_row_a_size_and_says_what_it_is():
    done = []
    found = interval_coverage(town(), epsilon=1, releases=3, progress=done.append)
    assert list(found.index) == list(SHARES)
    assert list(found) == ["held", "noisy", "held_noisy", "width", "relative_width"]
    assert found.attrs["label"] == LABEL
    assert sum(found.attrs["plans"].values()) == 3
    assert done == [1, 2, 3]
    again = interval_coverage(town(), epsilon=1, releases=3)
    pd.testing.assert_frame_equal(found, again)


def test_more_confidence_holds_more_with_wider_intervals():
    low, high = (
        interval_coverage(town(), epsilon=1, releases=10, confidence=c) for c in (0.2, 0.999)
    )
    assert (high["width"] > 2 * low["width"]).all()
    assert low["held"].mean() < 0.6
    assert high["held"].mean() > 0.99


@pytest.mark.slow
def test_intervals_hold_where_detail_is_guessed_from_blocks_and_the_mix():
    found = interval_coverage(town(), epsilon=0.4, releases=60)
    chosen = found.attrs["plans"]
    guessed = sum(times for plan, times in chosen.items() if "by size of footprint in" in plan[-1])
    assert guessed > 50
    # 60 totals: seven misses of the whole area would be three standard deviations.
    assert (found["held"] > 0.88).all()
    assert found["held"].mean() > 0.94
