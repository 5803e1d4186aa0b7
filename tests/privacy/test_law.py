"""The law of the noise: against direct convolution, against draws, and at its edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from dpregions.errors import PrivacyError
from dpregions.privacy import law as noise_law
from dpregions.privacy.law import (
    half_width,
    max_half_width,
    pmf,
    sum_half_width,
    sum_tail,
    tail,
    variance,
)
from dpregions.privacy.seeded import StudyNoise

SCALES = [0.3, 2.0, 9.0, 25.0]


def convolved(n_terms: int, scale: float) -> np.ndarray:
    """P(|S| >= m) for m = 0, 1, ..., by adding up the law term by term."""
    reach = int(60 * scale) + 60
    one = pmf(np.arange(-reach, reach + 1), scale)
    law = np.ones(1)
    for _ in range(n_terms):
        law = np.convolve(law, one)
    middle = len(law) // 2
    folded = law[middle:] + np.where(np.arange(middle + 1) > 0, law[middle::-1], 0)
    return np.append(folded[::-1].cumsum()[::-1], 0.0)


@pytest.mark.parametrize("scale", SCALES)
def test_the_law_sums_to_one_and_has_the_stated_variance_and_tail(scale):
    m = np.arange(-4000, 4001)
    assert pmf(m, scale).sum() == pytest.approx(1, abs=1e-12)
    assert (pmf(m, scale) * m**2).sum() == pytest.approx(variance(scale))
    assert tail(3, scale) == pytest.approx(pmf(m[np.abs(m) >= 3], scale).sum())
    assert tail([0, -2], scale).tolist() == [1, 1]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_terms", [1, 2, 3, 7, 16, 17])
def test_the_tail_of_a_sum_is_that_of_the_convolution(n_terms, scale):
    expected = convolved(n_terms, scale)
    m = np.unique(np.geomspace(1, len(expected) - 1, 60).astype(int) - 1)
    assert np.abs(sum_tail(m, n_terms, scale) - expected[m]).max() < noise_law.SUM_ERROR


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99999])
def test_the_half_width_of_a_sum_is_the_smallest_that_reaches_the_confidence(scale, confidence):
    widths = sum_half_width(np.arange(1, 8), scale, confidence)
    for n_terms, width in enumerate(widths.tolist(), start=1):
        outside = convolved(n_terms, scale)
        assert outside[width + 1] <= 1 - confidence
        assert width == 0 or outside[width] > 1 - confidence


def test_a_sum_of_one_is_a_draw_and_a_sum_of_none_is_zero():
    assert sum_half_width(1, 25.0, 0.95) == half_width(25.0, 0.95) == 75
    assert sum_half_width(0, 25.0, 0.95) == 0
    assert sum_tail([0, 1], 0, 25.0).tolist() == [1, 0]


@pytest.mark.parametrize("scale", [0.5, 25.0, 72900.0])
@pytest.mark.parametrize("n_terms", [10**4, 10**6, 10**7])
def test_a_sum_of_very_many_is_nearly_normal(n_terms, scale):
    expected = norm.ppf(0.975) * (n_terms * variance(scale)) ** 0.5
    assert sum_half_width(n_terms, scale, 0.95) == pytest.approx(expected, rel=1e-4, abs=1)


def test_many_queries_at_once_are_answered_as_one_by_one_and_widths_grow_with_the_sum():
    n_terms = (np.arange(1, 400) ** 2)[::-1].reshape(-1, 21)
    widths = sum_half_width(n_terms, 25.0, 0.9)
    assert widths.shape == n_terms.shape
    assert widths.dtype == np.int64
    assert widths[3, 5] == sum_half_width(int(n_terms[3, 5]), 25.0, 0.9)
    assert (np.diff(widths.ravel()) <= 0).all()
    assert sum_half_width(np.array([], dtype=np.int64), 25.0, 0.9).shape == (0,)


@pytest.mark.parametrize("n_terms", [1, 4, 81])
def test_intervals_cover_study_noise_as_often_as_they_say(n_terms):
    draws = 40_000
    noise = StudyNoise(n_terms).add(
        np.zeros((draws, n_terms), dtype=np.int64), epsilon=1, sensitivity=9
    )
    signs = np.where(np.arange(n_terms) % 2, -1, 1)
    inside = np.abs((noise * signs).sum(axis=1)) <= sum_half_width(n_terms, 9.0, 0.9)
    exact = 1 - sum_tail(sum_half_width(n_terms, 9.0, 0.9) + 1, n_terms, 9.0)
    assert exact >= 0.9
    assert 1e-9 < binom.cdf(inside.sum(), draws, exact) < 1 - 1e-9


@given(
    st.integers(1, 10**7),
    st.floats(0.05, 1e6),
    st.floats(1e-12, 0.99),
)
def test_the_largest_of_many_draws_is_bounded_by_no_smaller_number(n_terms, scale, failure):
    def outside(m: int) -> float:
        return -np.expm1(n_terms * np.log1p(-min(float(tail(m + 1, scale)), 1 - 1e-16)))

    m = max_half_width(n_terms, scale, failure)
    assert outside(m) <= failure * (1 + 1e-9)
    assert m == 0 or outside(m - 1) > failure * (1 - 1e-9)


def test_noise_too_small_to_show_has_no_width():
    assert sum_half_width(1000, 1e-4, 0.99) == 0
    assert sum_tail(1, 5, 1e-4) == 0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, float("nan"), 1 - 1e-12])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(PrivacyError, match="confidence"):
        sum_half_width(9, 25.0, confidence)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(PrivacyError, match="scale"):
        sum_half_width(9, scale, 0.95)


@pytest.mark.parametrize("n_terms", [-1, np.array([1.5])])
def test_a_number_of_terms_that_is_none_is_refused(n_terms):
    with pytest.raises(PrivacyError, match="n_terms"):
        sum_half_width(n_terms, 25.0, 0.95)
