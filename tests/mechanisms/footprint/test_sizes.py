"""Which footprint sizes there are, what others are filed under, and how likely each is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.ellipses import longest, size_prior
from dpregions.mechanisms.footprint.sizes import MOST_SIDE, filed_under, known_sizes
from dpregions.mechanisms.footprint.tuning import TUNING

STEPS = 1 << 20
LAW = TUNING.least_aspect, TUNING.length_power

# Which sizes there are

EDGES = (1, 7, 16, 19, 20, 21, 22, 23, 24, 25, 28, 32, 40, 64, 1000)


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("over", EDGES)
def test_the_sizes_there_are_a_few_steps_above_whole_cells_are_those_of_the_whole(cells, over):
    bound = cells * STEPS + over
    whole = catalogue(cells + 2, bound)
    np.testing.assert_array_equal(known_sizes(cells + 2, bound), whole.last > whole.first)


@given(st.integers(1, 6), st.integers(1000, 5 * STEPS))
@settings(max_examples=8)
def test_the_sizes_there_are_within_any_bound_are_those_of_the_whole(side, bound):
    whole = catalogue(side, bound)
    side_of_bound = -(-bound // STEPS) + 1
    known = known_sizes(side, bound)
    np.testing.assert_array_equal(known, whole.last > whole.first)
    small = min(side, side_of_bound) - 1
    assert known[1 : small + 1, 1 : small + 1].all()


@given(st.integers(3 * STEPS, (MOST_SIDE - 1) * STEPS))
@settings(max_examples=25)
def test_up_to_one_cell_less_than_the_longest_every_size_is_there(bound):
    side = -(-bound // STEPS) + 1
    known = known_sizes(side, bound)
    assert known[1:-1, 1:-1].all()
    # The longest needs a few steps above a whole number of cells.
    assert known[1:, 1:].all() or bound % STEPS < 64


def filed_one_by_one(known: np.ndarray, h: int, w: int) -> tuple[int, int]:
    while not known[h, w]:
        h, w = (h - 1, w) if h >= w else (h, w - 1)
    return h, w


@given(st.integers(1, 9), st.data())
def test_a_footprint_without_a_body_is_filed_under_one_cut_down_cell_by_cell(side, data):
    flags = data.draw(st.lists(st.booleans(), min_size=side**2, max_size=side**2))
    known = np.zeros((side + 1, side + 1), bool)
    known[1:, 1:] = np.reshape(flags, (side, side))
    known[1, 1] = True
    table = filed_under(known)
    for h in range(1, side + 1):
        for w in range(1, side + 1):
            assert tuple(table[h, w]) == filed_one_by_one(known, h, w)


def test_without_a_body_in_one_cell_nothing_can_be_filed():
    with pytest.raises(ValueError, match="one cell"):
        filed_under(np.zeros((3, 3), bool))


def test_the_widest_grid_files_the_longest_footprints_under_those_within_the_bound():
    known = known_sizes(65, 63 * STEPS + 8)
    table = filed_under(known)
    assert tuple(table[65, 65]) == (64, 64)
    assert tuple(table[65, 3]) == (64, 3)
    assert tuple(table[64, 30]) == (64, 30)


# How likely they are


def drawn_sizes(side: int, bound: int, n: int, seed: int) -> np.ndarray:
    """The share of each size among random ellipses with 12 corners, drawn as they are described."""
    rng = np.random.default_rng(seed)
    along = longest(side, bound) * rng.random(n) ** TUNING.length_power
    across = along * rng.uniform(TUNING.least_aspect, 1, n)
    turn = rng.uniform(0, np.pi, n)
    low, high = np.full((2, n), np.inf), np.full((2, n), -np.inf)
    middle = rng.random((2, n)) + 100
    for angle in np.arange(12) * np.pi / 6:
        u, v = np.cos(angle) * along / 2, np.sin(angle) * across / 2
        x, y = np.cos(turn) * u - np.sin(turn) * v, np.sin(turn) * u + np.cos(turn) * v
        at = middle + np.stack([x, y])
        low, high = np.minimum(low, at), np.maximum(high, at)
    w, h = (np.floor(high) - np.floor(low)).astype(int) + 1
    inside = (w <= side) & (h <= side)
    table = np.zeros((side + 1, side + 1))
    np.add.at(table, (h[inside], w[inside]), 1)
    return table / n


@pytest.mark.parametrize(
    ("side", "cells"),
    [(2, 1), (4, 2.6), (9, 8), (31, 30), (65, 64), (5, 40)],
)
def test_the_prior_of_sizes_is_how_often_ellipses_have_them(side, cells):
    bound = int(cells * STEPS)
    n = 400_000
    found = drawn_sizes(side, bound, n, seed=5)
    prior = size_prior(side, bound, *LAW)
    assert prior.sum() == pytest.approx(1, abs=1e-12)
    assert ((prior > 0) == known_sizes(side, bound)).all()
    wanted = found / found.sum()
    # Diamonds are a body of each size more.
    off = np.abs(prior - wanted)
    assert (off <= 5 * np.sqrt(np.maximum(wanted, prior) / n) + 2 / (40_000 + 400 * side**2)).all()
    assert off.sum() < 1.5 * np.sqrt(2 / np.pi) * np.sqrt(wanted / n).sum() + 0.02


@pytest.mark.parametrize("cells", [0.5, 1, 2, 2.5, 3])
def test_the_prior_of_sizes_is_that_of_a_whole_catalogue_that_leaves_no_pattern_out(cells):
    bound = int(cells * STEPS)
    side = -(-bound // STEPS) + 1
    whole = catalogue(side, bound)
    n = whole.times.sum()
    prior = size_prior(side, bound, *LAW)
    deviation = np.sqrt(prior * (1 - prior) / n)
    assert (np.abs(prior - whole.prior) <= 5 * deviation + 0.02 * prior).all()
