"""What is expected of unmeasured detail: sizes by prior or mix, places by their surroundings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.mechanisms.footprint.expectation import (
    _Surroundings,
    expected_buckets,
    expected_letters,
    mix_doubt,
)
from dpregions.mechanisms.footprint.fits import covert_fit
from dpregions.mechanisms.footprint.levels import Hierarchy, Level
from dpregions.mechanisms.footprint.measuring import Measured
from support.trees import buckets_of, matrix, measured_of, tree_of

# Sizes


def test_expected_letters_follow_the_noisy_totals_of_letters():
    tree = tree_of(0, (7, 7), 1)
    letters = tree.buckets.letters
    counts = np.where(letters == 2, 40.0, np.where(letters == 0, 10.0, 0.0))
    values = tuple(matrix(tree, level) @ counts for level in range(2))
    expected = expected_letters(measured_of(tree, values, (1.0, 1.0)))
    share = np.bincount(letters, expected) / expected.sum()
    wanted = np.bincount(letters, counts) / counts.sum()
    np.testing.assert_allclose(share, wanted, atol=0.02)
    assert (expected > 0).all()


def test_expected_letters_without_any_are_the_prior():
    tree = tree_of(1)
    values = (np.array([5.0]), np.ones(tree.sizes[1]), None)
    expected = expected_letters(measured_of(tree, values, (1.0, 1.0, np.inf)))
    share = np.bincount(tree.buckets.letters, expected)
    np.testing.assert_allclose(share, tree.buckets.weights)


@pytest.mark.parametrize(("variance", "atol"), [(1e-6, 1e-3), (1e9, 1e-3)])
def test_letters_of_a_joined_count_are_shared_out_by_the_measured_mix_or_else_the_prior(
    variance, atol
):
    tree = tree_of(5)
    letters, weights = tree.buckets.letters, tree.buckets.weights
    joined = np.bincount(tree.part[2], np.ones(len(letters)))
    mix = joined.sum() * np.array([0.6, 0.1, 0.1, 0.2])
    values = (np.array([joined.sum()]), None, joined, None)
    measured = measured_of(tree, values, (1.0, np.inf, 1.0, np.inf), mix, variance)
    share = np.bincount(letters, expected_letters(measured))[:3]
    wanted = mix[:3] if variance < 1 else weights[:3]
    np.testing.assert_allclose(share / share.sum(), wanted / wanted.sum(), atol=atol)


def test_a_mix_lost_in_noise_leaves_every_letter_something():
    tree = tree_of(5)
    values = (np.array([-5.0]), None, np.full(tree.sizes[2], -3.0), None)
    measured = measured_of(tree, values, (1.0, np.inf, 1.0, np.inf), np.full(4, -50.0), 4.0)
    expected = expected_letters(measured)
    assert np.isfinite(expected).all()
    assert (expected > 0).all()


# Places


def measured_blocks(counts: np.ndarray, tree: Hierarchy, level: int = 1) -> Measured:
    """Counts of a level next to without noise, and nothing below it."""
    values: list[np.ndarray | None] = [None] * len(tree.levels)
    variances = [np.inf] * len(tree.levels)
    for i in (0, level):
        values[i], variances[i] = matrix(tree, i) @ counts, 1e-6
    return measured_of(tree, tuple(values), tuple(variances))


def blocks_of(shape, block: int = 4, k: int = 1) -> Hierarchy:
    levels = (Level(0, "all"), Level(block, "all"), Level(1, "letters"))
    return Hierarchy.of(buckets_of(shape, k), levels)


def test_a_block_holds_more_towards_a_crowded_neighbour():
    tree = blocks_of((4, 12))
    _, col = tree.buckets.places
    counts = np.where(col < 4, 10.0, 1.0)  # a crowded block, then two that are not
    expected = expected_buckets(measured_blocks(counts, tree))
    single = tree.buckets.letters == 0
    along = [expected[single & (col == c)].sum() for c in range(12)]
    assert along[4] > 1.5 * along[5] > 1.5 * along[7]  # beside the crowded block, and away from it
    assert along[3] < along[0]  # which itself thins out towards the others
    np.testing.assert_allclose(along[9:], along[9], rtol=0.1)


def test_an_even_city_is_expected_to_be_even():
    tree = blocks_of((12, 12))
    letters = expected_letters(measured_blocks(np.ones(len(tree.buckets)), tree))
    expected = expected_buckets(measured_blocks(100 * letters, tree))
    np.testing.assert_allclose(expected, letters, rtol=0.02)


@pytest.mark.parametrize("i", [1, 2, 3, 4, 5])
@given(seed=st.integers(0, 2**32), level=st.integers(1, 3), crowd=st.sampled_from([0.0, 0.1, 5]))
def test_what_parts_are_expected_to_hold_stays_as_it_was(i, seed, level, crowd):
    """Else a measurement would be used twice: as such, and as what to expect of it."""
    tree = tree_of(i, (6, 7), 2)
    level = min(level, len(tree.levels) - 2)
    counts = np.random.default_rng(seed).poisson(crowd, len(tree.buckets)).astype(float)
    measured = measured_blocks(counts, tree, level)
    expected, letters = expected_buckets(measured), expected_letters(measured)
    assert (expected > 0).all()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(matrix(tree, level) @ expected, matrix(tree, level) @ letters)


def test_where_everything_is_measured_or_nothing_but_the_total_only_sizes_matter():
    tree = blocks_of((6, 6))
    counts = np.random.default_rng(1).poisson(3, len(tree.buckets)).astype(float)
    whole = measured_blocks(counts, tree, 2)
    total = measured_of(tree, (np.array([9.0]), None, None), (1.0, np.inf, np.inf))
    empty = measured_blocks(0 * counts - 1, tree)
    for measured in (whole, total, empty):
        np.testing.assert_array_equal(expected_buckets(measured), expected_letters(measured))


def test_surroundings_bring_a_smooth_city_nearer_than_even_blocks_do():
    tree = blocks_of((16, 16), block=4)
    row, col = tree.buckets.centres
    slope = np.exp(-((row - 5) ** 2 + (col - 6) ** 2) / 30.0)
    letters = expected_letters(measured_blocks(slope, tree))
    counts = 1000 * letters * slope
    measured = measured_blocks(counts, tree)
    off = [
        np.abs(covert_fit(measured, expected) - counts).sum()
        for expected in (expected_letters(measured), expected_buckets(measured))
    ]
    assert off[1] < 0.6 * off[0]


def test_a_long_strip_of_cells_takes_no_more_than_its_length():
    """Weights between all pairs of places would be 100 GB here."""
    tree = blocks_of((1, 60_000))
    counts = np.random.default_rng(0).poisson(0.1, len(tree.buckets)).astype(float)
    places, part = tree.buckets.centres[1], tree.part[1]
    blocks = np.bincount(part, counts)
    values = (np.array([blocks.sum()]), blocks, None)
    expected = expected_buckets(measured_of(tree, values, (1.0, 1.0, np.inf)))
    letters = expected_letters(measured_of(tree, values, (1.0, 1.0, np.inf)))
    np.testing.assert_allclose(np.bincount(part, expected), np.bincount(part, letters))
    assert places.max() == 59_999


@given(st.integers(0, 2**32), st.sampled_from([0.5, 30, 1e4]))
def test_a_noisy_mix_keeps_the_total_and_leaves_every_size_something(seed, scale):
    tree = blocks_of((8, 8), block=2, k=4)
    rng = np.random.default_rng(seed)
    counts = rng.poisson(3, len(tree.buckets)).astype(float)
    mix = np.bincount(tree.buckets.letters, counts) + rng.laplace(0, scale, 25)
    blocks = matrix(tree, 1) @ counts
    values = (np.array([counts.sum()]), blocks, None)
    measured = measured_of(tree, values, (1.0, 1.0, np.inf), mix, 2 * scale**2)
    expected = expected_buckets(measured)
    assert np.isfinite(expected).all()
    assert (expected > 0).all()
    held = np.bincount(tree.buckets.letters, expected)
    assert held.sum() == pytest.approx(counts.sum(), rel=0.02)


def test_noise_in_the_mix_makes_up_no_large_regions():
    """Only the smallest size is there. Cutting noise at 0 would give half to the 80 others."""
    tree = blocks_of((40, 40), block=4, k=8)
    buckets = tree.buckets
    small = (buckets.heights[buckets.letters] * buckets.widths[buckets.letters]) == 1
    counts = np.where(small, 1.25, 0.0)
    rng = np.random.default_rng(0)
    mix = np.bincount(buckets.letters, counts) + rng.laplace(0, 17, len(buckets.heights))
    values = (np.array([counts.sum()]), matrix(tree, 1) @ counts, None)
    measured = measured_of(tree, values, (1.0, 1.0, np.inf), mix, 2 * 17.0**2)
    expected = expected_letters(measured)
    assert expected[~small].sum() < 0.15 * expected.sum()


def test_doubt_of_the_mix_grows_with_its_noise_and_ends_where_it_says_nothing():
    tree = blocks_of((8, 8), block=2, k=4)
    counts = np.ones(len(tree.buckets))
    values = (np.array([counts.sum()]), matrix(tree, 1) @ counts, None)
    mix = np.bincount(tree.buckets.letters, counts)
    doubts = [
        mix_doubt(measured_of(tree, values, (1.0, 1.0, np.inf), mix, variance))
        for variance in (1e-9, 10.0, 1e3, 1e7)
    ]
    assert doubts[0] < 1e-4
    assert doubts == sorted(doubts)
    assert 0.01 < doubts[1] < 0.5
    assert doubts[-1] == 1.0
    assert mix_doubt(measured_of(tree, values, (1.0, 1.0, np.inf))) == 0.0


def test_surroundings_weigh_the_distance_between_middles_of_footprints():
    """Against all pairs, by hand: middles in cells, a bell with the reach as standard deviation."""
    tree = blocks_of((5, 7), k=2)
    buckets = tree.buckets
    row, col = (
        place + extent[buckets.letters] / 2
        for place, extent in zip(buckets.places, (buckets.heights, buckets.widths), strict=True)
    )
    values = np.random.default_rng(0).random(len(buckets))
    around = _Surroundings(measured_blocks(values, tree), reach=0.7)
    found = around.sums(around.lattice(values))[around.at]
    apart = (row[:, None] - row) ** 2 + (col[:, None] - col) ** 2
    np.testing.assert_allclose(found, np.exp(-apart / (2 * 0.7**2)) @ values, rtol=2e-3)
