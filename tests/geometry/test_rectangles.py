"""Rectangles of cells about given places."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpregions.geometry.rectangles import Rectangles


@given(st.data(), st.integers(1, 9), st.integers(1, 9), st.booleans(), st.integers(0, 99))
def test_a_placement_about_a_cell_holds_it_and_stays_on_the_grid(data, rows, cols, turned, seed):
    height, width = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    held = np.indices((rows, cols)).reshape(2, -1)
    on, rng = Rectangles(rows, cols), np.random.default_rng(seed)
    row0, row1, col0, col1 = on.holding(height, width, held, rng, turned=turned)
    assert ((row0 <= held[0]) & (held[0] <= row1) & (col0 <= held[1]) & (held[1] <= col1)).all()
    assert row0.min() >= 0 and col0.min() >= 0 and row1.max() < rows and col1.max() < cols
    sides = set(zip((row1 - row0 + 1).tolist(), (col1 - col0 + 1).tolist(), strict=True))
    assert sides <= {(height, width)} | ({(width, height)} if turned else set())


def test_all_placements_that_hold_a_cell_are_as_likely():
    corner, middle = (np.full((2, 9000), at) for at in (0, 5))
    on, rng = Rectangles(11, 11), np.random.default_rng(0)
    assert set(on.holding(3, 3, corner, rng)[0]) == {0}
    times = np.bincount(on.holding(3, 3, middle, rng)[0])[3:]
    assert len(times) == 3 and abs(times / 3000 - 1).max() < 0.08
