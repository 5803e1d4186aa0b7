"""Many rectangles of one size are answered from what they share: as each would be by itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dpregions as dpr
from dpregions.mechanisms.footprint import alike, border
from dpregions.mechanisms.footprint.alike import Alike
from dpregions.mechanisms.footprint.border import Border
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from support.footprint_releases import BLOCKS, JOINED, PLAIN, SHAPES, study, town

SIZES = [(1, 1), (1, 2), (3, 3), (8, 8), (5, 40)]
CASES = {
    "small sizes": (dpr.Grid(0, 0, 1, 70, 66), 2, 4000, Adaptive(0.03, 64)),
    "wide regions": (dpr.Grid(0, 0, 1, 90, 71), 12, 3000, Adaptive(0.15, 64)),
    "very wide regions": (dpr.Grid(0, 0, 1, 70, 100), 30, 2000, Adaptive(0.05, 64)),
    "next to nobody": (dpr.Grid(0, 0, 1, 66, 80), 9, 5, Adaptive(0.15, 64)),
    "sizes": (dpr.Grid(0, 0, 1, 11, 9), 2, 300, PLAIN),
    "blocks": (dpr.Grid(0, 0, 1, 11, 9), 3, 300, BLOCKS),
    "patterns": (dpr.Grid(0, 0, 1, 9, 8), 1, 300, SHAPES),
    "joined": (dpr.Grid(0, 0, 1, 9, 8), 2, 300, JOINED),
}


@cache
def border_in(case: str) -> Border:
    grid, diameter, n, strategy = CASES[case]
    made = study(
        town(grid, diameter, n=n), grid, max_diameter=diameter, strategy=strategy, epsilon=2
    )
    outcome = made.outcome
    return outcome.border if hasattr(outcome, "border") else outcome.reading.border


def of_one_size(walk: Border, tall: int, wide: int, n: int = 250) -> np.ndarray:
    """Rectangles anywhere, cut at the grid, those in its corners among them."""
    n_rows, n_cols = walk.letters.n_rows, walk.letters.n_cols
    rng = np.random.default_rng(0)
    row, col = rng.integers(0, n_rows, n), rng.integers(0, n_cols, n)
    row[:4], col[:4] = [0, 0, n_rows - 1, n_rows - 1], [0, n_cols - 1, 0, n_cols - 1]
    return np.stack(
        [row, np.minimum(row + tall, n_rows) - 1, col, np.minimum(col + wide, n_cols) - 1]
    )


def answers(walk: Border, ranges: np.ndarray) -> np.ndarray:
    found = np.array(walk.rectangles(ranges))
    return found[1:] if np.isnan(found[0]).any() else found


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_rectangles_of_one_size_are_answered_as_each_by_itself(monkeypatch, case, size):
    walk = border_in(case)
    ranges = of_one_size(walk, *size)
    alone = answers(walk, ranges)
    monkeypatch.setattr(border, "_MANY", 100)
    assert walk._alike(ranges).tall == min(size[0], walk.letters.n_rows)
    np.testing.assert_allclose(answers(walk, ranges), alone, rtol=1e-9, atol=1e-9)


def test_every_kind_of_leaf_is_among_these():
    shared = [Alike.of(w.parts, w.letters, w.shares.few, 1, 1) for w in map(border_in, CASES)]
    assert sum((one.miss_sides > 0).any() for one in shared) >= 2
    assert sum((one.mixed_starts >= 0).any() for one in shared) >= 2


@pytest.mark.parametrize(
    ("table", "case", "step"),
    [
        ("chances", "very wide regions", 1),
        ("misses", "very wide regions", 4),
        ("mixed", "wide regions", 1),
    ],
)
def test_a_table_that_is_off_by_one_cell_is_caught(monkeypatch, table, case, step):
    walk = border_in(case)
    ranges = of_one_size(walk, 1, 1)
    right = answers(walk, ranges)
    shared = walk._alike(ranges)
    wrong = shared._replace(**{table: np.roll(getattr(shared, table), step)})
    monkeypatch.setattr(border, "_MANY", 100)
    monkeypatch.setitem(walk._known_alike, (1, 1), wrong)
    assert np.abs(answers(walk, ranges) - right).max() > 1e-3


def test_what_would_be_too_large_to_share_is_not_shared(monkeypatch):
    walk = border_in("wide regions")
    ranges = of_one_size(walk, 2, 2)
    alone = answers(walk, ranges)
    monkeypatch.setattr(alike, "_MOST", 50)
    monkeypatch.setattr(border, "_MANY", 100)
    walk._known_alike.clear()
    assert walk._alike(ranges).tall == 0
    np.testing.assert_array_equal(answers(walk, ranges), alone)
    walk._known_alike.clear()


def test_rectangles_of_several_sizes_share_nothing():
    ranges = of_one_size(border_in("wide regions"), 2, 2)
    ranges[1, 5] -= ranges[1, 5] > ranges[0, 5]
    assert border_in("wide regions")._alike(ranges).tall == 0


def test_no_rectangles_are_answered_too():
    assert border_in("wide regions").rectangles(np.empty((4, 0), np.int64)).estimate.shape == (0,)
