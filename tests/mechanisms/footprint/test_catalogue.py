"""The catalogue: witnesses touch what they are recorded to touch, within the bound, with room."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.geometry.outlines import Outlines
from dpregions.mechanisms.footprint.catalogue import (
    Catalogue,
    catalogue,
    drawn_catalogue,
)
from dpregions.mechanisms.footprint.sizes import PATTERNS_A_FOOTPRINT
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.mechanisms.footprint.witnesses import CLEAR
from support.oracle import padded, touched

STEPS = 1 << 20
# B / d: whole numbers, fractions, less than a cell, and just above a whole number.
RATIOS = (0.001, 0.5, 1, 1.0001, 2, 2.0001, 2.5, 3, 4, 12.5)


def steps_of(ratio: float) -> int:
    return int(ratio * STEPS)


def side_of(bound: int) -> int:
    return -(-bound // STEPS) + 1


@cache
def known(ratio: float) -> Catalogue:
    bound = steps_of(ratio)
    return catalogue(side_of(bound), bound)


def witness(c: Catalogue, i: int) -> np.ndarray:
    return c.xy[c.offsets[i] : c.offsets[i + 1]]


def pattern_of_witness(c: Catalogue) -> np.ndarray:
    return np.repeat(np.arange(len(c)), np.diff(c.starts))


def pattern(c: Catalogue, i: int) -> np.ndarray:
    """The pattern as the doubled array of its footprint, from its spans, entry by entry."""
    array = np.zeros((2 * c.heights[i] - 1, 2 * c.widths[i] - 1), np.int64)
    for row, (first, last) in zip(array, c.spans[i], strict=False):
        row[2 * first : 2 * last + 1] = first <= last
    return array


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("move", [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])
def test_a_witness_has_its_footprint_and_spans_wherever_it_is_put(ratio, move):
    """Also after a move by a few lattice steps: `move` says which way."""
    c = known(ratio)
    rng = np.random.default_rng(0)
    n_rows, n_cols = c.side + 3, c.side + 5
    of = pattern_of_witness(c)
    row = rng.integers(0, n_rows - c.heights[of] + 1)
    col = rng.integers(0, n_cols - c.widths[of] + 1)
    corner = np.stack([col, row], axis=-1) * STEPS + np.array(move) * CLEAR
    xy = c.xy + np.repeat(corner, np.diff(c.offsets), axis=0)
    places, spans = Outlines(xy, c.offsets).footprints(n_rows, n_cols, c.side)
    wanted = np.stack([row, col, c.heights[of], c.widths[of]], axis=-1)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(spans, c.spans[of])


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_brute_force_oracle_sees_the_same_pattern(ratio):
    c = known(ratio)
    of = pattern_of_witness(c)
    chosen = np.random.default_rng(1).permutation(len(of))[:60]
    found = touched(padded([witness(c, i).tolist() for i in chosen]), c.side + 1, c.side + 1)
    for i, array in zip(of[chosen], found, strict=True):
        wanted = np.zeros_like(array)
        wanted[: 2 * c.heights[i] - 1, : 2 * c.widths[i] - 1] = pattern(c, i)
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_witness_is_strictly_shorter_than_the_bound(ratio):
    c, bound = known(ratio), steps_of(ratio)
    assert c.xy.dtype == np.int64
    chosen = np.random.default_rng(2).permutation(c.starts[-1])[:3000]
    for i in chosen:
        xy = witness(c, i)
        apart = ((xy[:, None] - xy[None]) ** 2).sum(axis=-1)
        # Also with every vertex a step further out, as floats may put it.
        assert apart.max() ** 0.5 + 3 < bound


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_witness_is_a_strictly_convex_ring(ratio):
    c = known(ratio)
    chosen = np.random.default_rng(3).permutation(c.starts[-1])[:3000]
    for i in chosen:
        side = np.diff(witness(c, i), axis=0, append=witness(c, i)[:1])
        following = np.roll(side, -1, axis=0)
        turn = side[:, 0] * following[:, 1] - side[:, 1] * following[:, 0]
        assert len(side) >= 3
        assert (turn > 0).all()


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_pattern_has_sixteen_witnesses_at_least_and_a_size_sixty_four(ratio):
    c = known(ratio)
    n = np.diff(c.starts)
    assert n.min() >= 16
    of_size = np.zeros((c.side + 1, c.side + 1))
    np.add.at(of_size, (c.heights, c.widths), n)
    assert of_size[1:, 1:].min() >= 64
    of = pattern_of_witness(c)
    for p in np.random.default_rng(4).permutation(len(c))[:50]:
        different = {witness(c, i).tobytes() for i in np.flatnonzero(of == p)}
        # Only a pattern that hardly any body has repeats a few.
        assert len(different) >= 16 or c.times[p] <= 3


@pytest.mark.parametrize("ratio", [0.5, 1, 2])
def test_witnesses_of_one_cell_lie_all_over_it(ratio):
    c = known(ratio)
    middles = (
        np.array([witness(c, i).mean(axis=0) for i in range(c.starts[0], c.starts[1])]) / STEPS
    )
    quarters = np.unique((middles > 0.5).astype(int), axis=0, return_counts=True)[1]
    assert len(quarters) == 4 and quarters.min() >= 12


@pytest.mark.parametrize("ratio", RATIOS)
def test_every_footprint_there_can_be_has_a_witness(ratio):
    c = known(ratio)
    assert all(c.has(h, w) for h in range(1, c.side + 1) for w in range(1, c.side + 1))


@pytest.mark.parametrize(("ratio", "side"), [(5, 1), (5, 3), (50, 4), (1000, 2), (13, 6)])
def test_a_bound_larger_than_the_grid_leaves_the_footprints_that_fit(ratio, side):
    c = catalogue(side, steps_of(ratio))
    assert c.side == side
    assert all(c.has(h, w) for h in range(1, side + 1) for w in range(1, side + 1))
    assert c.heights.max() == c.widths.max() == side


@pytest.mark.parametrize("over", [1, 8, 16])
def test_a_few_steps_above_a_whole_number_only_the_longest_footprints_have_none(over):
    c = catalogue(4, 2 * STEPS + over)
    for h in range(1, 5):
        for w in range(1, 5):
            assert c.has(h, w) == (max(h, w) < 4)


@pytest.mark.parametrize("ratio", RATIOS)
def test_weights_are_probabilities_within_each_footprint_and_over_all(ratio):
    c = known(ratio)
    assert (c.weights > 0).all()
    for h in range(1, c.side + 1):
        for w in range(1, c.side + 1):
            part = slice(c.first[h, w], c.last[h, w])
            assert (c.heights[part] == h).all()
            assert (c.widths[part] == w).all()
            assert 1 <= len(c.weights[part]) <= PATTERNS_A_FOOTPRINT
            assert c.weights[part].sum() == pytest.approx(1, abs=1e-12)
    assert c.prior.sum() == pytest.approx(1, abs=1e-12)
    assert (c.last - c.first).sum() == len(c)
    assert (c.prior >= 0).all()
    assert (c.prior[0] == 0).all() and (c.prior[:, 0] == 0).all()


@pytest.mark.parametrize("ratio", [1, 2.5])
def test_no_pattern_is_listed_twice(ratio):
    c = known(ratio)
    keys = {(c.heights[i], c.widths[i], c.spans[i].tobytes()) for i in range(len(c))}
    assert len(keys) == len(c)


@pytest.mark.parametrize("ratio", [1, 2.5])
def test_everyone_has_the_same_catalogue(ratio):
    first = known(ratio)
    numbers = TUNING.least_aspect, TUNING.length_power
    again = drawn_catalogue.__wrapped__(first.side, steps_of(ratio), *numbers)
    assert again is not first
    for name in ("heights", "widths", "spans", "weights", "first", "last", "prior", "starts", "xy"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_up_to_two_by_two_cells_the_patterns_are_all_there_are():
    """By eye: one cell; two side by side; one above the other; and of four cells, the vertex.

    A convex body over 2 x 2 cells touches all four, or three (one of four ways), or the two
    on a diagonal never: it would have to pass through the vertex, which touches a third.
    """
    c = known(1)
    listed = {(h, w): int(c.last[h, w] - c.first[h, w]) for h in (1, 2) for w in (1, 2)}
    assert listed == {(1, 1): 1, (1, 2): 1, (2, 1): 1, (2, 2): 5}
    for i in range(c.first[2, 2], c.last[2, 2]):
        faces = pattern(c, i)[::2, ::2].sum()
        assert faces == (4 if pattern(c, i)[1, 1] else 3)


@given(st.data())
def test_arrays_and_means_say_what_the_spans_say(data):
    c = known(data.draw(st.sampled_from([1, 2.5, 4])))
    i = data.draw(st.integers(0, len(c) - 1))
    h, w = c.heights[i], c.widths[i]
    array = c.pattern_arrays()[i]
    np.testing.assert_array_equal(array[: 2 * h - 1, : 2 * w - 1], pattern(c, i))
    assert array.sum() == pattern(c, i).sum()
    part = range(c.first[h, w], c.last[h, w])
    mean = sum(c.weights[j] * pattern(c, j) for j in part)
    np.testing.assert_allclose(c.size_means[h, w, : 2 * h - 1, : 2 * w - 1], mean)


@pytest.mark.parametrize("ratio", [1, 2.5, 4])
def test_each_pattern_is_one_convex_body_to_eulers_formula(ratio):
    c = known(ratio)
    arrays = c.pattern_arrays()
    sign = (-1.0) ** np.add.outer(np.arange(2 * c.side - 1), np.arange(2 * c.side - 1))
    np.testing.assert_array_equal((arrays * sign).sum(axis=(1, 2)), 1)


def test_the_catalogue_of_two_cells_has_74_patterns():
    assert len(known(2)) == 74
