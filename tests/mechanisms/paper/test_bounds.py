"""The utility bounds: their values, their order, and that they hold as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dpregions.errors import InputError, PrivacyError
from dpregions.mechanisms.paper.bounds import (
    diff_priv_bound,
    lin_prog_bound,
    n_components,
    paper_sensitivity,
    round_bound,
    rounding_bound,
    utility_bound,
)
from dpregions.mechanisms.paper.isotonic import fit_l1, fit_linf
from dpregions.mechanisms.paper.sensitivity import euler_sensitivity
from dpregions.privacy.law import tail
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise

FAILURE = 0.1


def nested_histogram(n: int, seed: int) -> np.ndarray:
    """An exact Euler histogram: squares of cells, each covering all components inside it."""
    generator = np.random.default_rng(seed)
    counts = np.zeros((2 * n - 1, 2 * n - 1), dtype=np.int64)
    for row, col in generator.integers(0, n - 1, (60, 2)).tolist():
        counts[2 * row : 2 * row + 3, 2 * col : 2 * col + 3] += 1
    return counts


def test_a_square_grid_has_the_components_of_the_doubled_array():
    assert n_components(20, 20) == 39 * 39
    assert n_components(1, 4) == 7


def test_the_papers_sensitivity_is_ours_for_one_cell_and_looser_above():
    assert [paper_sensitivity(k) for k in (1, 2, 3, 13)] == [9, 27, 54, 819]
    assert all(paper_sensitivity(k) > euler_sensitivity(k) for k in range(2, 50))
    assert paper_sensitivity(2, "replace-one") == 54


def test_the_papers_bounds_follow_its_formulas():
    noise = 27 / 0.5 * math.log(39**2 / 0.05)
    arguments = (20, 1, 2, 0.5, 0.05)
    assert utility_bound(*arguments, step="diff-priv", constants="paper") == pytest.approx(noise)
    assert utility_bound(*arguments, step="lin-prog", constants="paper") == pytest.approx(2 * noise)
    assert utility_bound(*arguments, constants="paper") == pytest.approx(2 * noise + 0.5)
    double = utility_bound(*arguments, constants="paper", neighbours="replace-one")
    assert double == pytest.approx(4 * noise + 0.5)


def test_the_tight_bound_is_the_smallest_whole_number_that_bounds_the_noise():
    m = utility_bound(20, 1, 2, 1, 0.05, step="diff-priv")
    components, scale = 39**2, scale_for(1, 25)
    assert m == 257
    assert 1 - (1 - tail(m + 1, scale)) ** components <= 0.05
    assert 1 - (1 - tail(m, scale)) ** components > 0.05
    assert utility_bound(20, 1, 2, 1, 0.05) == m
    assert utility_bound(20, 1, 2, 1, 0.05, neighbours="replace-one") > 1.9 * m


def test_lengths_count_at_face_value_and_part_cells_as_cells():
    assert utility_bound(7, 0.7, 2.1, 1, 0.05) == utility_bound(10, 1, 3, 1, 0.05)
    assert utility_bound(9.5, 1, 3, 1, 0.05) == utility_bound(10, 1, 3, 1, 0.05)


@given(
    st.integers(1, 10**6),
    st.floats(0.001, 20),
    st.integers(1, 3000),
    st.floats(1e-9, 0.9),
)
def test_tight_bounds_are_never_above_the_papers(components, epsilon, sensitivity, failure):
    arguments = (components, epsilon, sensitivity, failure)
    for bound in (diff_priv_bound, lin_prog_bound, round_bound):
        assert bound(*arguments) <= math.ceil(bound(*arguments, constants="paper"))


@given(st.integers(-1000, 1000), st.floats(-500, 500))
def test_rounding_adds_no_more_than_the_lemma_says(exact, shift):
    fitted = exact + shift
    before = abs(fitted - exact)
    after = abs(np.rint(fitted) - exact)
    assert after <= rounding_bound(before, constants="paper")
    assert after <= rounding_bound(before + 1e-9)


def test_the_noise_bound_fails_as_often_as_it_says_and_a_smaller_one_more_often():
    draws, components = 40_000, n_components(3, 3)
    noise = StudyNoise(1).add(
        np.zeros((draws, components), dtype=np.int64), epsilon=1, sensitivity=9
    )
    largest = np.abs(noise).max(axis=1)
    m = diff_priv_bound(components, 1, 9, FAILURE)
    assert np.mean(largest > m) <= FAILURE + 0.005
    assert np.mean(largest > m - 1) > FAILURE
    assert np.mean(largest > diff_priv_bound(components, 1, 9, FAILURE, constants="paper")) < 0.11


@pytest.mark.parametrize(
    ("fit", "epsilon"), [(fit_l1, 0.5), (fit_l1, 4), (fit_linf, 0.5), (fit_linf, 4)]
)
@pytest.mark.parametrize("cut", [True, False])
def test_the_bounds_hold_after_lin_prog_and_round_at_their_confidence(fit, epsilon, cut):
    n, draws = 6, 300
    exact = nested_histogram(n, seed=3)
    copies = np.broadcast_to(exact, (draws, *exact.shape))
    noisy = StudyNoise(5).add(copies, epsilon=epsilon, sensitivity=9)
    shift = np.abs(noisy - exact).max(axis=(1, 2))
    if cut:
        noisy = np.maximum(noisy, 0)
    fitted = np.array([fit(array) for array in noisy])
    after_fit = np.abs(fitted - exact).max(axis=(1, 2))
    after_round = np.abs(np.rint(fitted) - exact).max(axis=(1, 2))
    # The lemmas, draw by draw: neither step moves further than the largest noise.
    assert (after_fit <= shift).all()
    assert (after_round <= shift).all()
    # The bounds, at their confidence: more failures than this have probability 1e-6.
    allowed = binom.isf(1e-6, draws, FAILURE)
    arguments = (n_components(n, n), epsilon, 9, FAILURE)
    assert np.sum(after_fit > lin_prog_bound(*arguments)) <= allowed
    assert np.sum(after_round > round_bound(*arguments)) <= allowed
    assert np.sum(after_round > round_bound(*arguments, constants="paper")) <= allowed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"max_diameter": None}, "max_diameter is missing"),
        ({"cell_size": -1}, "cell_size"),
        ({"failure": 0}, "failure"),
        ({"failure": 1}, "failure"),
        ({"neighbours": "swap"}, "'add-remove' or 'replace-one'"),
        ({"step": "rounding"}, "'diff-priv' or 'lin-prog' or 'round'"),
        ({"constants": "loose"}, "'tight' or 'paper'"),
    ],
)
def test_unusable_arguments_are_refused(changed, message):
    arguments = {"side": 20, "cell_size": 1, "max_diameter": 2, "epsilon": 1, "failure": 0.05}
    of_the_bound = changed.keys() & {"step", "constants"}  # these are not about privacy
    with pytest.raises(InputError if of_the_bound else PrivacyError, match=message):
        utility_bound(**(arguments | changed))
