"""Hilbert's curve."""

from __future__ import annotations

import numpy as np
import pytest

from dpregions.curve import along_curve


@pytest.mark.parametrize("side", [1, 2, 8, 64])
def test_the_curve_passes_every_cell_once_and_goes_to_a_neighbour_each_time(side):
    row, col = (v.ravel() for v in np.indices((side, side)))
    along = along_curve(row, col)
    assert np.sort(along).tolist() == list(range(side * side))
    order = np.argsort(along)
    steps = np.abs(np.diff(row[order])) + np.abs(np.diff(col[order]))
    assert (steps == 1).all()


def test_no_cells_have_no_places():
    nothing = np.zeros(0, np.int64)
    assert along_curve(nothing, nothing).size == 0
