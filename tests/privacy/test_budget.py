"""Budget, unit, sensitivity and the release path's noise.

The noise is unseeded, so the statistical tests are wide: each fails by chance with probability
below 1e-9 and still tells a wrong scale from a right one.
"""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chi2

from dpregions.errors import InputTypeError, PrivacyError
from dpregions.mechanisms.paper.sensitivity import cells_spanned, euler_sensitivity
from dpregions.privacy import noise as privacy
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.law import pmf, tail
from dpregions.privacy.noise import SystemNoise, add_integer_laplace, loss_of, scale_for
from dpregions.privacy.seeded import StudyNoise

CHANCE = 1e-11
positive = st.floats(1e-6, 1e6) | st.fractions(Fraction(1, 10**6), 10**6)


# Budget


@given(positive, st.lists(positive, min_size=1, max_size=6))
def test_shares_of_a_budget_sum_to_it_exactly(epsilon, weights):
    budget = Budget(epsilon)
    assert sum(share.epsilon for share in budget.split(*weights)) == budget.epsilon


def test_a_budget_counts_at_its_decimal_face_value():
    assert Budget(0.1).epsilon == Budget(Decimal("0.1")).epsilon == Fraction(1, 10)
    assert float(Budget(0.1)) == 0.1
    assert repr(Budget(0.1)) == "Budget(epsilon=0.1)"
    assert repr(Budget(1).split(1, 2)[0]) == "Budget(epsilon=1/3)"
    assert Budget(Budget(np.float64(0.3))) == Budget(0.3)


@pytest.mark.parametrize("digits", [600, 5000])
def test_a_budget_below_zero_is_refused_in_our_words_whatever_its_length(digits):
    for epsilon in (-(10**digits), Fraction(-1, 10**digits), Fraction(1 - 10**digits, 10**digits)):
        with pytest.raises(PrivacyError, match="greater than 0, got -"):
            Budget(epsilon)


def test_what_a_guess_may_become_follows_from_the_odds():
    assert Budget(1).posterior() == pytest.approx(math.e / (1 + math.e))
    assert Budget(math.log(9)).posterior(0.1) == pytest.approx(0.5)
    assert Budget(1e9).posterior(1e-9) == 1
    assert Budget(1).posterior(0) == 0 and Budget(1).posterior(1) == 1


@given(st.floats(1e-3, 5), st.floats(1e-6, 1 - 1e-6))
def test_the_odds_of_a_guess_grow_by_exp_epsilon(epsilon, prior):
    later = Budget(epsilon).posterior(prior)
    assert later / (1 - later) == pytest.approx(math.exp(epsilon) * prior / (1 - prior), rel=1e-6)


@pytest.mark.parametrize("prior", [-0.1, 1.1, math.nan, "half", True, None])
def test_a_prior_that_is_no_probability_is_refused(prior):
    with pytest.raises(PrivacyError, match=r"prior=.* is no probability: give a number from 0"):
        Budget(1).posterior(prior)


def test_a_budget_cannot_be_changed():
    with pytest.raises(AttributeError):
        Budget(1).epsilon = Fraction(5)


@pytest.mark.parametrize(
    "epsilon",
    [
        *(0, -1, 0.0, float("nan"), float("inf"), np.float32("nan")),
        *(Decimal("NaN"), Decimal("Infinity"), 10**400, Fraction(1, 10**400)),
        *(True, np.True_, "1", None, [1], 1j),
        *(Fraction(10**700 + 1, 10**700), Decimal("0." + "3" * 5000)),
    ],
)
def test_a_budget_that_is_none_is_refused(epsilon):
    with pytest.raises(PrivacyError, match="epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize("weights", [(), (1, 0), (1, -1), (1, float("nan"))])
def test_a_split_that_is_none_is_refused(weights):
    with pytest.raises(PrivacyError, match=r"weights? must|split"):
        Budget(1).split(*weights)


# Unit and sensitivity


def test_a_unit_says_in_words_what_it_protects():
    assert PrivacyUnit().sensitivity_factor == 1
    assert PrivacyUnit("replace-one").sensitivity_factor == 2
    assert "one user more or fewer" in PrivacyUnit().describe()
    assert "unit = record" in PrivacyUnit("replace-one", "record").describe()
    assert "trajectory" in PrivacyUnit(unit="trajectory").describe()


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({"neighbours": "swap"}, "'add-remove' or 'replace-one'"),
        ({"neighbours": None}, "'add-remove' or 'replace-one'"),
        ({"unit": "household"}, "'user' or 'record' or 'trajectory'"),
    ],
)
def test_an_unknown_relation_or_unit_is_refused_with_the_options(arguments, options):
    with pytest.raises(PrivacyError, match=options):
        PrivacyUnit(**arguments)


@pytest.mark.parametrize(
    ("max_diameter", "cell_size", "k"),
    [(1, 1, 1), (2, 1, 2), (3, 1, 3), (12.5, 1, 13), (2.1, 0.7, 3), (0.3, 0.1, 3), (0.5, 1, 1)],
)
def test_the_cells_a_diameter_spans_follow_from_decimal_face_values(max_diameter, cell_size, k):
    assert cells_spanned(max_diameter, cell_size) == k


def test_the_papers_sensitivities():
    spans = [cells_spanned(diameter, 1) for diameter in (1, 2, 3, 12.5)]
    assert [euler_sensitivity(k) for k in spans] == [9, 25, 49, 729]
    assert [euler_sensitivity(k, "replace-one") for k in spans] == [18, 50, 98, 1458]


def test_a_small_grid_cuts_the_sensitivity_down():
    assert euler_sensitivity(2, "add-remove", n_rows=1, n_cols=4) == 1 * 5
    assert euler_sensitivity(2, "replace-one", n_rows=2, n_cols=2) == 2 * 3 * 3
    assert euler_sensitivity(2, n_rows=100, n_cols=100) == 25


STEPS = 8  # lattice steps a cell, as few as show every case


def doubled_lines_touched(start: int, length: int) -> int:
    """How many doubled rows an interval touches: its cells and the lines between them."""
    return 2 * ((start + length) // STEPS - start // STEPS) + 1


@given(st.integers(1, 9), st.data())
def test_lemma_a_region_within_the_bound_touches_at_most_the_lemmas_components(k, data):
    touched = [
        doubled_lines_touched(
            data.draw(st.integers(0, 20 * STEPS)), data.draw(st.integers(0, k * STEPS))
        )
        for _ in "xy"
    ]
    assert touched[0] * touched[1] <= euler_sensitivity(k)


@pytest.mark.parametrize("k", [1, 2, 3, 13])
def test_lemma_is_reached_and_one_lattice_step_over_the_bound_breaks_it(k):
    """The lemma test that catches a body over the bound: k holds on the lattice, or not at all."""
    starts = range(STEPS)
    within = max(doubled_lines_touched(start, k * STEPS) for start in starts)
    over = max(doubled_lines_touched(start, k * STEPS + 1) for start in starts)
    assert within**2 == euler_sensitivity(k)
    assert over**2 > euler_sensitivity(k)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None, "2"])
def test_a_bound_in_cells_that_is_none_is_refused(k):
    with pytest.raises(PrivacyError, match="k must be a whole number"):
        euler_sensitivity(k)


@pytest.mark.parametrize("max_diameter", [None, 0, -1, float("nan"), float("inf"), "2km"])
def test_a_diameter_that_is_none_is_refused(max_diameter):
    with pytest.raises(PrivacyError, match="max_diameter"):
        cells_spanned(max_diameter, 1)


# Scale and loss


def test_the_scale_is_sensitivity_over_epsilon_where_that_is_a_float():
    assert scale_for(1, 25) == 25
    assert scale_for(4, 9) == 2.25
    assert loss_of(25.0, 25) == 1


@given(positive, st.integers(1, 10**5))
def test_the_loss_of_a_scale_is_at_most_epsilon_and_hardly_less(epsilon, sensitivity):
    loss = loss_of(scale_for(epsilon, sensitivity), sensitivity)
    assert loss <= Budget(epsilon).epsilon
    assert loss > Budget(epsilon).epsilon * (1 - Fraction(1, 10**14))


@given(st.floats(1e-3, 100), st.sampled_from([1, 2, 9, 18, 25, 50, 729, 1458]))
def test_opendps_own_account_of_the_loss_is_at_most_epsilon(epsilon, sensitivity):
    assert privacy._laplace(Budget(epsilon), sensitivity)([7])


def test_a_scale_opendp_accounts_above_epsilon_is_refused(monkeypatch):
    """The scale test that catches a wrong calibration: noise for one body under replace-one.

    `scale_for` never errs so; it is put in its place for what stands behind it to be seen.
    """
    too_small = scale_for(1, euler_sensitivity(1, "add-remove"))
    monkeypatch.setattr(privacy, "scale_for", lambda epsilon, sensitivity: too_small)
    with pytest.raises(PrivacyError, match="nothing was noised"):
        add_integer_laplace([0], epsilon=1, sensitivity=euler_sensitivity(1, "replace-one"))


def test_an_epsilon_that_drowns_everything_is_refused():
    with pytest.raises(PrivacyError, match="drowns any count"):
        scale_for(1e-14, 9)


def test_an_epsilon_too_large_to_matter_leaves_the_counts_alone():
    counts = np.arange(6).reshape(2, 3)
    assert (add_integer_laplace(counts, epsilon=1e15, sensitivity=9) == counts).all()


# The release path's noise


@pytest.fixture(scope="module")
def draws():
    """Draws of scale 6, on counts of 0."""
    return add_integer_laplace(np.zeros(200_000, dtype=np.int64), epsilon=1.5, sensitivity=9)


def goodness_of_fit(draws: np.ndarray, scale: float) -> float:
    """The p-value of a chi-square test against integer Laplace noise of this scale."""
    edge = 0
    while len(draws) * float(tail(edge + 1, scale)) > 100:
        edge += 1
    clipped = np.clip(draws, -edge, edge)
    observed = np.bincount(clipped + edge, minlength=2 * edge + 1)
    expected = len(draws) * pmf(np.arange(-edge, edge + 1), scale)
    expected[[0, -1]] = len(draws) * tail(edge, scale) / 2
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), 2 * edge))


def test_noise_fits_its_scale_and_no_scale_thirty_percent_off(draws):
    assert goodness_of_fit(draws, 6.0) > CHANCE
    for wrong in (0.7, 1 / 1.3, 1.3, 1 / 0.7):
        assert goodness_of_fit(draws[:20_000], 6.0 * wrong) < CHANCE


def test_study_noise_fits_the_same_law():
    zeros = np.zeros(200_000, dtype=np.int64)
    study = StudyNoise(1).add(zeros, epsilon=1.5, sensitivity=9)
    assert goodness_of_fit(study, 6.0) > CHANCE
    assert goodness_of_fit(study[:20_000], 6.0 * 1.3) < CHANCE


def test_noise_is_symmetric(draws):
    for m in range(1, 20):
        plus, minus = np.count_nonzero(draws >= m), np.count_nonzero(draws <= -m)
        assert binomtest(plus, plus + minus).pvalue > CHANCE


def test_neighbouring_values_differ_in_probability_by_the_decay(draws):
    counts = np.bincount(np.abs(draws), minlength=12)
    for m in range(1, 11):
        # Given that |Y| is m or m + 1, it is m with probability 1 / (1 + exp(-1/scale)).
        here, next_one = int(counts[m]), int(counts[m + 1])
        expected = 1 / (1 + np.exp(-1 / 6))
        assert binomtest(here, here + next_one, expected).pvalue > CHANCE
        assert abs(np.log(here / next_one) - 1 / 6) < 0.15


def test_empty_components_are_noised():
    noised = np.stack(
        [
            add_integer_laplace(np.zeros((5, 7), dtype=np.int64), epsilon=1, sensitivity=25)
            for _ in range(9)
        ]
    )
    assert noised.any(axis=0).all()


def chance_of_equal_values(scale: float) -> float:
    return float((pmf(np.arange(-3000, 3001), scale) ** 2).sum())


def assert_independent(streams: np.ndarray, scale: float) -> None:
    for one, other in combinations(streams, 2):
        equal = np.count_nonzero(one == other)
        assert binom.sf(equal - 1, len(one), chance_of_equal_values(scale)) > CHANCE
        # Signs agree as often as two coins: streams are neither alike nor mirrored.
        both = (one != 0) & (other != 0)
        agree = np.count_nonzero(np.sign(one[both]) == np.sign(other[both]))
        assert binomtest(agree, np.count_nonzero(both)).pvalue > CHANCE


def test_concurrent_calls_never_share_a_stream():
    zeros = np.zeros(3000, dtype=np.int64)
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(add_integer_laplace, zeros, epsilon=1, sensitivity=25) for _ in range(8)
        ]
        assert_independent(np.stack([job.result() for job in jobs]), 25.0)


def test_the_threads_of_one_call_never_share_a_stream():
    zeros = np.zeros(12_000, dtype=np.int64)
    noise = add_integer_laplace(zeros, epsilon=1, sensitivity=25, workers=8, chunk=1000)
    assert_independent(noise.reshape(12, 1000), 25.0)


def test_noise_keeps_the_shape_and_the_place_of_every_count():
    counts = (np.arange(77, dtype=np.int32) * 1000).reshape(7, 11)[:, ::-1]
    noised = add_integer_laplace(counts, epsilon=10, sensitivity=1, chunk=10)
    assert noised.dtype == np.int64
    assert np.abs(noised - counts).max() < 100
    assert counts[0, 0] == 10_000
    assert add_integer_laplace(np.zeros((0, 3), dtype=int), epsilon=1, sensitivity=1).shape == (
        0,
        3,
    )


def test_counts_at_the_end_of_int64_stop_there_and_do_not_wrap():
    ends = np.repeat([np.iinfo(np.int64).max, np.iinfo(np.int64).min], 200)
    noised = add_integer_laplace(ends, epsilon=1, sensitivity=25)
    assert (np.sign(noised) == np.sign(ends)).all()


@pytest.mark.parametrize("values", [[1.0], [True], ["1"], np.array([1], dtype=np.uint64)])
def test_counts_that_are_not_whole_by_type_are_refused(values):
    with pytest.raises(InputTypeError, match=r"astype\(numpy.int64\)"):
        add_integer_laplace(values, epsilon=1, sensitivity=1)


# The seam between releases and studies


def test_release_noise_takes_no_seed_and_study_noise_says_it_is_not_private():
    with pytest.raises(TypeError):
        SystemNoise(1)
    assert SystemNoise().private
    assert not StudyNoise(1).private
    assert "not private" in StudyNoise(1).label


def test_study_noise_repeats_with_its_seed_and_differs_between_calls():
    zeros = np.zeros(100, dtype=np.int64)
    one, other = StudyNoise(7), StudyNoise(7)
    first = one.add(zeros, epsilon=1, sensitivity=9)
    assert (first == other.add(zeros, epsilon=1, sensitivity=9)).all()
    assert (first != one.add(zeros, epsilon=1, sensitivity=9)).any()


def test_the_release_path_loads_neither_studies_nor_opendp_before_it_noises():
    code = (
        "import sys, dpregions.privacy.noise as p; "
        "assert not any(m.startswith('opendp') for m in sys.modules); "
        "p.add_integer_laplace([0], epsilon=1, sensitivity=1); "
        "assert 'dpregions.study' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
