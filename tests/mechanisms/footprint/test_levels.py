"""Levels: nested partitions of sensitivity 1; two fits, held against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.choice import candidates
from dpregions.mechanisms.footprint.expectation import expected_letters
from dpregions.mechanisms.footprint.fits import combine, covert_fit, signed_fit, split
from dpregions.mechanisms.footprint.levels import MIX, Hierarchy, Level
from dpregions.mechanisms.footprint.measuring import Measured, Measurement, Strategy
from dpregions.mechanisms.footprint.reading import QueryVariance
from dpregions.mechanisms.footprint.tuning import TUNING
from support.trees import LEAVES, LEVELS, buckets_of, matrix, measured_of, tree_of


def measured_with(tree: Hierarchy, seed: int, used: tuple[bool, ...], counts=None) -> Measured:
    """Made-up measurements of the levels in use, noise of mixed variance, negatives among them."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(2, len(tree.buckets)) if counts is None else counts
    values, variances = [], []
    for level, use in enumerate(used):
        variance = float(rng.choice([0.5, 2, 8, 50]))
        noise = rng.laplace(0, (variance / 2) ** 0.5, tree.sizes[level])
        values.append(matrix(tree, level) @ counts + noise if use else None)
        variances.append(variance if use else np.inf)
    return measured_of(tree, tuple(values), tuple(variances))


def least_squares(measured: Measured) -> tuple[np.ndarray, np.ndarray]:
    """The weighted least squares fit by numpy, and the covariance of its buckets."""
    tree = measured.hierarchy
    used = {i: noisy for i, noisy in enumerate(measured.levels) if noisy is not None}
    rows = np.vstack([matrix(tree, i) / noisy.variance**0.5 for i, noisy in used.items()])
    seen = np.concatenate([noisy.values / noisy.variance**0.5 for noisy in used.values()])
    fit, *_ = np.linalg.lstsq(rows, seen, rcond=None)
    return fit, np.linalg.pinv(rows.T @ rows)


# The levels


@pytest.mark.parametrize("i", range(len(LEVELS)))
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 4), (7, 7)])
@pytest.mark.parametrize(("k", "alphabet"), [(1, "sizes"), (3, "sizes"), (2, "patterns")])
def test_levels_are_nested_partitions_from_one_part_to_one_a_bucket(i, shape, k, alphabet):
    tree = tree_of(i, shape, k, alphabet)
    for level, part in enumerate(tree.part):
        assert part.shape == (len(tree.buckets),)
        assert set(part.tolist()) == set(range(tree.sizes[level]))  # every part has a bucket
    assert tree.sizes[0] == 1
    assert tree.sizes[-1] == len(tree.buckets)
    for coarse, fine, up in zip(tree.part, tree.part[1:], tree.parent, strict=False):
        np.testing.assert_array_equal(coarse, up[fine])


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (3, 4), (20, 20)])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_levels_of_every_strategy_are_nested_partitions(shape, k):
    side = min(k + 1, max(shape))
    for strategy in candidates(side, *shape, shapes=k < 3):
        tree = Hierarchy.of(buckets_of(shape, k, strategy.alphabet), strategy.levels)
        assert tree.sizes[0] == 1
        assert tree.sizes[-1] == len(tree.buckets)
        for coarse, fine, up in zip(tree.part, tree.part[1:], tree.parent, strict=False):
            np.testing.assert_array_equal(coarse, up[fine])


@given(st.integers(0, len(LEVELS) - 1), st.data())
def test_one_region_more_moves_one_count_of_each_level_by_one(i, data):
    tree = tree_of(i)
    n = len(tree.buckets)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    counts = rng.poisson(3, n)
    more, elsewhere = counts.copy(), counts.copy()
    a, b = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    more[a] += 1
    elsewhere[b] += 1
    for level, size, part in zip(tree.levels, tree.sizes, tree.part, strict=True):
        step = tree.sums(level, more) - tree.sums(level, counts)
        assert step.dtype == np.int64
        assert sorted(step.tolist()) == [0] * (size - 1) + [1]
        replaced = np.abs(tree.sums(level, more) - tree.sums(level, elsewhere)).sum()
        assert replaced in (0, 2)
        assert (replaced == 0) == (part[a] == part[b])
    step = tree.sums(MIX, more) - tree.sums(MIX, counts)
    assert sorted(step.tolist()) == [0] * (len(tree.buckets.heights) - 1) + [1]
    assert np.abs(tree.sums(MIX, more) - tree.sums(MIX, elsewhere)).sum() in (0, 2)


@pytest.mark.parametrize("i", range(len(LEVELS)))
def test_sums_are_exact_also_of_many_regions(i):
    tree = tree_of(i)
    counts = np.random.default_rng(0).integers(0, 2**40, len(tree.buckets))
    for level, size, part in zip(tree.levels, tree.sizes, tree.part, strict=True):
        wanted = [int(counts[part == j].sum()) for j in range(size)]
        assert tree.sums(level, counts).tolist() == wanted


def test_describe_says_what_is_counted_where():
    tree = tree_of(2)
    total, blocks, classes, leaves = map(tree.describe, tree.levels)
    assert total == "the number of regions in the area"
    assert "block of 2 x 2 cells" in blocks
    assert "by class of size" in classes
    assert leaves.startswith(f"{len(tree.buckets)} counts of regions by size")
    assert "pattern of footprint" in tree_of(0, alphabet="patterns").describe(LEAVES)
    assert "of one and two cells together" in tree_of(5).describe(Level(1, "joined"))
    assert tree.describe(MIX) == "4 counts of regions by size of footprint in the area"


# The signed fit

USED = [
    (0, (True, True)),
    (0, (False, True)),
    (1, (True, True, True)),
    (1, (True, False, True)),
    (2, (True, True, True, True)),
    (2, (True, False, True, True)),
    (3, (True, True, False, True, True)),
    (3, (True, True, True, True, True)),
    (4, (False, True, True, True, True)),
]


@pytest.mark.parametrize(("i", "used"), USED)
@pytest.mark.parametrize("seed", range(4))
def test_the_signed_fit_is_weighted_least_squares(i, used, seed):
    tree = tree_of(i)
    measured = measured_with(tree, seed, used)
    fit, _ = least_squares(measured)
    np.testing.assert_allclose(signed_fit(measured, np.ones(len(fit))), fit, atol=1e-8)


@pytest.mark.parametrize(("i", "used"), USED)
def test_noise_free_measurements_are_reproduced_by_both_fits(i, used):
    tree = tree_of(i)
    counts = np.random.default_rng(1).poisson(4, len(tree.buckets)).astype(float)
    for variance in (1e-6, 1.0, 100.0):
        values = tuple(
            matrix(tree, level) @ counts if use else None for level, use in enumerate(used)
        )
        spread = tuple(variance if use else np.inf for use in used)
        measured = measured_of(tree, values, spread)
        expected = np.ones(len(counts))
        np.testing.assert_allclose(signed_fit(measured, expected), counts, atol=1e-8)
    # The covert fit weighs in the prior, so only where noise is next to nothing.
    measured = measured_of(tree, values, tuple(1e-9 if use else np.inf for use in used))
    np.testing.assert_allclose(covert_fit(measured, expected), counts, atol=1e-3)


def test_a_variance_of_zero_is_no_division_by_zero():
    for i, (_, *_rest) in enumerate(LEVELS):
        tree = tree_of(i)
        for n in (0, 5):
            counts = np.random.default_rng(n).poisson(n, len(tree.buckets)).astype(float)
            values = tuple(matrix(tree, level) @ counts for level in range(len(tree.levels)))
            measured = measured_of(tree, values, (0.0,) * len(values))
            expected = expected_letters(measured)
            assert (expected > 0).all()
            np.testing.assert_allclose(signed_fit(measured, expected), counts, atol=1e-6)
            np.testing.assert_allclose(covert_fit(measured, expected), counts, atol=1e-3)


def test_what_is_not_measured_is_filled_in_as_expected():
    """Blocks only: every bucket gets its expected share of its block, in both fits."""
    tree = tree_of(1)
    rng = np.random.default_rng(2)
    blocks, expected = rng.poisson(50, tree.sizes[1]), rng.uniform(1, 3, len(tree.buckets))
    values = (np.array([blocks.sum()]), blocks.astype(float), None)
    measured = measured_of(tree, values, (1.0, 1e-9, np.inf))
    share = expected / np.bincount(tree.part[1], expected)[tree.part[1]]
    for fit in (signed_fit, covert_fit):
        filled = fit(measured, expected)
        np.testing.assert_allclose(filled, blocks[tree.part[1]] * share, rtol=1e-4)


def test_an_unmeasured_level_in_the_middle_changes_nothing():
    tree, plain = tree_of(1), tree_of(0)
    measured = measured_with(tree, 5, (True, False, True))
    direct = measured_of(plain, *zip(*measured.levels[::2], strict=True))
    expected = np.ones(len(tree.buckets))
    order = np.argsort(tree.part[-1]), np.argsort(plain.part[-1])
    np.testing.assert_array_equal(*order)
    np.testing.assert_allclose(signed_fit(measured, expected), signed_fit(direct, expected))


# The covert fit


@given(st.sampled_from(USED), st.integers(0, 2**32), st.sampled_from([0.01, 0.3, 3, 100]))
def test_the_covert_fit_is_never_negative_and_keeps_the_total(case, seed, crowd):
    i, used = case
    tree = tree_of(i)
    counts = np.random.default_rng(seed).poisson(crowd, len(tree.buckets))
    measured = measured_with(tree, seed, used, counts)
    fit = covert_fit(measured, expected_letters(measured))
    total = max(combine(measured)[0][0][0], 0.0)
    assert (fit >= 0).all()
    assert np.isfinite(fit).all()
    assert fit.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_the_total_of_both_fits_is_the_best_estimate_of_it():
    """From the direct measurement and the sum of the parts, by inverse variance."""
    tree = tree_of(0)
    n = len(tree.buckets)
    leaves = np.random.default_rng(3).poisson(9, n) + 0.0
    measured = measured_of(tree, (np.array([300.0]), leaves), (4.0, 2.0))
    weight = np.array([1 / 4, 1 / (2 * n)])
    best = (weight @ [300, leaves.sum()]) / weight.sum()
    for fit in (signed_fit, covert_fit):
        assert fit(measured, np.ones(n)).sum() == pytest.approx(best)


def test_a_hot_spot_keeps_most_of_its_count():
    tree = tree_of(1, (7, 7), 2)
    counts = np.zeros(len(tree.buckets))
    counts[57] = 500
    rng = np.random.default_rng(4)
    values = tuple(
        matrix(tree, i) @ counts + np.rint(rng.laplace(0, 1, tree.sizes[i])) for i in range(3)
    )
    measured = measured_of(tree, values, (2.0, 2.0, 2.0))
    fit = covert_fit(measured, expected_letters(measured))
    assert 480 < fit[57] < 505
    assert fit.sum() == pytest.approx(500, abs=10)


def test_a_few_hot_spots_lose_nothing_to_the_many_empty_buckets():
    """Cutting at zero once and scaling the rest to the total would take over 200 regions away."""
    tree = tree_of(0, (7, 7), 2)
    rng = np.random.default_rng(0)
    counts = np.zeros(len(tree.buckets))
    counts[rng.choice(len(counts), 5, replace=False)] = 500
    leaves = matrix(tree, 1) @ counts + rng.laplace(0, 1, len(counts))
    measured = measured_of(tree, (np.array([counts.sum()]), leaves), (1.0, 2.0))
    fit = covert_fit(measured, expected_letters(measured))
    assert np.abs(fit - counts).sum() < 60


def test_an_empty_area_stays_nearly_empty():
    """Cutting at zero would make up half a body for every bucket; the total forbids it."""
    tree = tree_of(0, (7, 7), 2)
    rng = np.random.default_rng(5)
    leaves = rng.laplace(0, 1, len(tree.buckets))
    measured = measured_of(tree, (np.array([1.0]), leaves), (1.0, 2.0))
    assert np.maximum(leaves, 0).sum() > 100
    assert covert_fit(measured, expected_letters(measured)).sum() < 10


def test_a_negative_total_is_an_empty_city():
    tree = tree_of(1)
    values = tuple(np.full(size, -3.0) for size in tree.sizes)
    measured = measured_of(tree, values, (1.0, 1.0, 1.0))
    assert (covert_fit(measured, np.ones(len(tree.buckets))) == 0).all()
    alone = measured_of(tree, (values[0], None, None), (1.0, np.inf, np.inf))
    assert (covert_fit(alone, np.ones(len(tree.buckets))) == 0).all()
    assert (signed_fit(alone, np.ones(len(tree.buckets))) < 0).all()


# Joined sizes


def test_joined_footprints_of_one_and_two_cells_share_a_count_and_larger_ones_have_their_own():
    tree = tree_of(5)
    buckets, part = tree.buckets, tree.part[2]
    cell = buckets.centres[0] * buckets.n_cols + buckets.centres[1]
    small = (buckets.heights * buckets.widths)[buckets.letters] <= 2
    for one in range(len(buckets)):
        together = (cell == cell[one]) & small if small[one] else np.arange(len(buckets)) == one
        np.testing.assert_array_equal(part == part[one], together)


# The variance of a query


@pytest.mark.parametrize(("i", "used"), USED)
@pytest.mark.parametrize("seed", range(3))
def test_the_variance_of_a_query_is_that_of_least_squares(i, used, seed):
    tree = tree_of(i)
    measured = measured_with(tree, seed, used)
    _, covariance = least_squares(measured)
    rng = np.random.default_rng(seed)
    for weights in (
        rng.uniform(0, 1, len(tree.buckets)),
        np.ones(len(tree.buckets)),
        np.eye(len(tree.buckets))[3],
    ):
        exact = weights @ covariance @ weights
        found = QueryVariance(measured, np.ones(len(weights))).of(weights[None])[0]
        assert found == pytest.approx(exact, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("used", [(True, True, True), (True, True, False), (True, False, False)])
def test_the_variance_of_a_query_is_what_many_fits_show(used):
    """Also where detail is not measured but filled in by expected shares."""
    tree = tree_of(1)
    rng = np.random.default_rng(6)
    weights, expected = rng.uniform(0, 1, (2, len(tree.buckets))) + 0.1
    variances = tuple(v if use else np.inf for v, use in zip((9.0, 4.0, 2.0), used, strict=True))
    answers = []
    for _ in range(4000):
        values = tuple(
            rng.normal(0, v**0.5, size) if use else None
            for v, size, use in zip(variances, tree.sizes, used, strict=True)
        )
        answers.append(weights @ signed_fit(measured_of(tree, values, variances), expected))
    found = QueryVariance(measured_of(tree, values, variances), expected).of(weights[None])[0]
    # The standard error of a variance from 4000 normal draws is 2.2 %.
    assert np.var(answers) == pytest.approx(found, rel=0.12)


def test_more_measurements_never_make_a_query_less_certain():
    tree = tree_of(3)
    weights = np.random.default_rng(7).uniform(0, 1, len(tree.buckets))
    least = np.inf
    for used in ((0, 0, 0, 0, 1), (1, 0, 0, 0, 1), (1, 0, 1, 0, 1), (1, 1, 1, 1, 1)):
        values = tuple(
            np.zeros(n) if use else None for n, use in zip(tree.sizes, used, strict=True)
        )
        variances = tuple(2.0 if use else np.inf for use in used)
        found = QueryVariance(measured_of(tree, values, variances), np.ones(len(weights))).of(
            weights[None]
        )[0]
        assert found <= least + 1e-9
        least = found


def test_the_variance_of_a_query_is_what_each_measurement_adds_to_it():
    """The fit is linear: one measurement moves at a time, where a level in the middle has none."""
    tree = tree_of(2, (7, 7), 2)
    variances = (800.0, 20.0, np.inf, 4.5)
    weights, expected = np.random.default_rng(0).random((2, len(tree.buckets)))
    by_hand = 0.0
    for level in (0, 1, 3):
        for part in range(tree.sizes[level]):
            values = [
                None if v == np.inf else np.zeros(n)
                for v, n in zip(variances, tree.sizes, strict=True)
            ]
            values[level][part] = 1.0
            fit = signed_fit(measured_of(tree, values, variances), expected)
            by_hand += variances[level] * (weights @ fit) ** 2
    found = QueryVariance(measured_of(tree, values, variances), expected).of(weights[None])[0]
    assert found == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize(
    "measurements",
    [
        [],
        [(2, "all", 1)],
        [(1, "letters", 0)],
        [(1, "letters", -1)],
        [(1, "letters", 1), (1, "letters", 1)],
        [(1, "letters", 1), (0, "all", 1)],
        [(1, "letters", 1), (0, "letters", 0)],
        [(1, "some", 1), (1, "letters", 1)],
        [(-2, "all", 1), (1, "letters", 1)],
        [(1, "letters", True)],
        [(1, "letters", 0.5)],
        [(1, "letters", np.int64(1))],
        [(2, "all", 1), (1, "letters", 10**30)],
    ],
)
def test_a_strategy_that_cannot_be_followed_is_refused(measurements):
    with pytest.raises(PrivacyError, match="cannot be followed"):
        Strategy("sizes", tuple(Measurement(*one) for one in measurements))


def test_levels_that_do_not_refine_each_other_are_refused():
    levels = (Level(0, "all"), Level(3, "all"), Level(2, "all"), Level(1, "letters"))
    with pytest.raises(PrivacyError, match="do not refine"):
        Hierarchy.of(buckets_of((6, 6)), levels)


@pytest.mark.filterwarnings("error")
def test_a_family_none_of_whose_children_can_be_above_zero_divides_by_nothing():
    """Beside measurements so far below zero, rounding leaves no child free."""
    first = float.fromhex("-0x1.f8def8808b024p+104")
    total, both, seen = np.array([1e11]), np.ones(2), np.array([first, first / 4])
    fit = split(total, np.zeros(2, np.int64), both, seen, np.array([4.0, 1.0]), TUNING, 3.0)
    np.testing.assert_array_equal(fit, [0.0, 0.0])
