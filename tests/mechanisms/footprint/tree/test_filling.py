"""What lies inside leaves: footprints have sizes that fit about their places."""

from __future__ import annotations

import numpy as np
import pytest

from dpregions.mechanisms.footprint.tree.kernel import place_bodies

N, WIDEST, TIMES = 6, 4, 60


def placed(row, col, mix):
    """Return the footprints of one leaf: a cell, all sizes together."""
    one = [np.array([v]) for v in (row, col, 1, 0, 0, WIDEST, 0, TIMES)]
    return place_bodies(*one, np.ones((N, N)), mix, 1, N, N).astype(int)


@pytest.mark.parametrize("row", range(N))
@pytest.mark.parametrize("col", [0, 2, N - 1])
def test_a_footprint_has_its_place_in_the_middle_also_at_the_border(row, col):
    low, left, height, width = placed(row, col, np.ones((WIDEST + 1, WIDEST + 1))).T
    np.testing.assert_array_equal(low + (height - 1) // 2, row)
    np.testing.assert_array_equal(left + (width - 1) // 2, col)
    assert (low >= 0).all() and (low + height <= N).all()


def test_every_size_that_fits_at_the_border_is_dealt():
    found = placed(0, N - 1, np.ones((WIDEST + 1, WIDEST + 1)))
    assert set(map(tuple, found[:, 2:].tolist())) == {(1, 1), (2, 1)}


def test_where_no_size_fits_a_footprint_is_moved_inside():
    mix = np.zeros((WIDEST + 1, WIDEST + 1))
    mix[4, 4] = 1.0
    assert (placed(0, 0, mix) == (0, 0, 4, 4)).all()
    assert (placed(N - 1, N - 1, mix) == (N - 4, N - 4, 4, 4)).all()
