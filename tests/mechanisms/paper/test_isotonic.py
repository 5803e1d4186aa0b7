"""The order-constrained fits against the paper's programs, brute force and cases done by hand."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpregions.errors import InputError, InputTypeError
from dpregions.mechanisms.paper.isotonic import fit_l1, fit_linf, l1_range
from support import oracle_lp

FITS = [fit_l1, fit_linf]
# Every way of turning and mirroring a grid, as functions of the doubled array.
SYMMETRIES = [lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a.T, lambda a: a[::-1].T]


def doubled_arrays(low: int = -6, high: int = 12, most: int = 4) -> st.SearchStrategy[np.ndarray]:
    side = st.integers(1, most).map(lambda cells: 2 * cells - 1)
    return st.tuples(side, side).flatmap(
        lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(low, high))
    )


def random_arrays(number: int, seed: int) -> list[np.ndarray]:
    """Grids up to 6 x 6, from many ties to none, from all above 0 to half below."""
    rng = np.random.default_rng(seed)
    arrays = []
    for _ in range(number):
        shape = 2 * rng.integers(1, 7, 2) - 1
        spread = int(rng.choice([1, 3, 30, 1000]))
        arrays.append(rng.integers(-spread, spread + 1, shape) + int(rng.choice([0, spread])))
    return arrays


def feasible(noisy: np.ndarray) -> np.ndarray:
    """Some histogram that satisfies the order, made without the code under test."""
    counts = np.abs(noisy)
    for axis in (0, 1):
        lines = counts.swapaxes(0, axis)
        lines[:-1:2] += lines[1::2]
        lines[2::2] += lines[1::2]
    assert oracle_lp.violated(counts) == []
    return counts


def l1(noisy: np.ndarray, fit: np.ndarray) -> float:
    return np.abs(fit - noisy).sum()


def linf(noisy: np.ndarray, fit: np.ndarray) -> float:
    return np.abs(fit - noisy).max()


# Cases a person can check.


def test_a_vertex_alone_gives_way_to_what_surrounds_it():
    noisy = np.array([[2, 1, 2], [1, 9, 1], [2, 1, 2]])
    expected = np.array([[2, 1, 2], [1, 1, 1], [2, 1, 2]])
    np.testing.assert_array_equal(fit_l1(noisy), expected)


def test_a_low_face_alone_rises_to_its_two_edges():
    noisy = np.array([[0, 5, 9], [5, 1, 5], [9, 5, 9]])
    expected = np.array([[5, 5, 9], [5, 1, 5], [9, 5, 9]])
    np.testing.assert_array_equal(fit_l1(noisy), expected)


def test_one_conflict_may_be_settled_anywhere_between_and_the_middle_is_taken():
    noisy = np.array([[0, 3, 9]])  # face 0 under edge 3: both at any one level 0 .. 3
    lowest, highest = l1_range(noisy)
    np.testing.assert_array_equal(lowest, [[0, 0, 9]])
    np.testing.assert_array_equal(highest, [[3, 3, 9]])
    np.testing.assert_array_equal(fit_l1(noisy), [[1, 1, 9]])
    np.testing.assert_array_equal(fit_l1(noisy / 2), [[0.75, 0.75, 4.5]])


def test_the_largest_change_is_halved_between_the_two_ends_of_a_conflict():
    noisy = np.array([[4, 3, 4], [3, 8, 3], [4, 3, 4]])
    expected = np.array([[6, 5.5, 6], [5.5, 5.5, 5.5], [6, 5.5, 6]])
    np.testing.assert_array_equal(fit_linf(noisy), expected)


def test_negative_values_count_in_the_largest_change_but_not_in_the_sum():
    noisy = np.array([[-10, 10, 30]])  # the face must rise by 10 to be a count at all
    np.testing.assert_array_equal(fit_l1(noisy), [[5, 5, 30]])
    np.testing.assert_array_equal(fit_linf(noisy), [[0, 0, 30]])
    np.testing.assert_array_equal(fit_linf(np.maximum(noisy, 0)), [[5, 5, 30]])


@pytest.mark.parametrize("fit", FITS)
def test_a_single_cell_is_only_cut_at_zero(fit):
    assert fit([[7]]).tolist() == [[7]]
    assert fit([[-7]]).tolist() == [[0]]


@pytest.mark.parametrize("fit", FITS)
def test_a_row_and_a_column_of_cells_fit_alike(fit):
    row = np.array([[3, 5, 1, 2, 2, 8, 0]])
    np.testing.assert_array_equal(fit(row).T, fit(row.T))


def test_the_paper_counts_3325_constraints_on_20_by_20_cells():
    sizes = [matrix.shape[0] for matrix in oracle_lp.constraints((39, 39)).values()]
    assert sizes == [1520, 1444, 361]


# The optimum, against the paper's programs.


@pytest.mark.parametrize("seed", range(4))
def test_objectives_equal_the_linear_programs_on_random_arrays(seed):
    for noisy in random_arrays(75, seed):
        assert l1(noisy, fit_l1(noisy)) == round(oracle_lp.objective(noisy, norm="l1"))
        assert linf(noisy, fit_linf(noisy)) == pytest.approx(
            oracle_lp.objective(noisy, norm="linf"), abs=1e-6
        )


@given(doubled_arrays())
@settings(deadline=None)
def test_objectives_equal_the_linear_programs(noisy):
    assert l1(noisy, fit_l1(noisy)) == round(oracle_lp.objective(noisy, norm="l1"))
    assert linf(noisy, fit_linf(noisy)) == round(2 * oracle_lp.objective(noisy, norm="linf")) / 2


@given(doubled_arrays(-40, 90, most=3))
@settings(deadline=None)
def test_the_floats_objective_equals_the_linear_program(noisy):
    noisy = noisy / 8  # eighths: sums stay exact
    fit = fit_l1(noisy)
    assert fit.dtype == np.float64
    assert oracle_lp.violated(fit) == []
    assert l1(noisy, fit) == pytest.approx(oracle_lp.objective(noisy, norm="l1"), abs=1e-6)


@pytest.mark.parametrize("scale", [25, 729])
def test_a_noisy_histogram_of_40_by_40_cells_is_fitted_exactly(scale):
    rng = np.random.default_rng(scale)
    truth = feasible(rng.poisson(3, (79, 79)))
    noisy = truth + np.rint(rng.laplace(scale=scale, size=truth.shape)).astype(np.int64)
    assert l1(noisy, fit_l1(noisy)) == round(oracle_lp.objective(noisy, norm="l1"))


def test_lowest_and_highest_are_optimal_and_bracket_every_optimum_by_brute_force():
    every = np.array(list(itertools.product(range(4), repeat=9)))
    every = every[
        (every[:, 4:5] <= every[:, [1, 3, 5, 7]]).all(1)
        & (every[:, [1, 1, 3, 3, 5, 5, 7, 7]] <= every[:, [0, 2, 0, 6, 2, 8, 6, 8]]).all(1)
    ]
    rng = np.random.default_rng(0)
    for _ in range(150):
        noisy = rng.integers(-1, 4, (3, 3))
        distance = np.abs(every - noisy.ravel()).sum(1)
        optima = every[distance == distance.min()]
        lowest, highest = l1_range(noisy)
        np.testing.assert_array_equal(lowest.ravel(), optima.min(0))
        np.testing.assert_array_equal(highest.ravel(), optima.max(0))
        assert (optima == fit_l1(noisy).ravel()).all(1).any()


@given(doubled_arrays(most=6))
@settings(deadline=None)
def test_lowest_middle_and_highest_are_equally_good(noisy):
    lowest, highest = l1_range(noisy)
    middle = fit_l1(noisy)
    assert (lowest <= middle).all()
    assert (middle <= highest).all()
    assert l1(noisy, lowest) == l1(noisy, middle) == l1(noisy, highest)
    assert np.isin([lowest, highest], np.maximum(noisy, 0)).all()


@given(doubled_arrays(most=6))
@settings(deadline=None)
def test_the_l1_fit_with_no_bound_below_cut_at_zero_is_the_bounded_one(noisy):
    lift = 10  # lifted above 0, the bound never binds: this is the fit without it
    free = np.array(l1_range(noisy + lift)) - lift
    np.testing.assert_array_equal(np.maximum(free, 0), l1_range(noisy))
    np.testing.assert_array_equal(fit_l1(np.maximum(noisy, 0)), fit_l1(noisy))


# What every fit keeps.


@pytest.mark.parametrize("fit", FITS)
@given(noisy=doubled_arrays(-50, 50, most=7))
@settings(deadline=None)
def test_the_fit_satisfies_every_constraint_and_is_its_own_fit(fit, noisy):
    counts = fit(noisy)
    assert counts.dtype == (np.int64 if fit is fit_l1 else np.float64)
    assert oracle_lp.violated(counts) == []
    np.testing.assert_array_equal(fit(counts), counts)


@pytest.mark.parametrize("fit", FITS)
@given(noisy=doubled_arrays(-30, 30, most=6))
@settings(deadline=None)
def test_a_histogram_that_satisfies_the_order_stays_as_it_is(fit, noisy):
    counts = feasible(noisy)
    np.testing.assert_array_equal(fit(counts), counts)


@pytest.mark.parametrize("fit", FITS)
@given(noisy=doubled_arrays(most=6), data=st.data())
@settings(deadline=None)
def test_a_larger_input_has_a_larger_fit(fit, noisy, data):
    rise = data.draw(hnp.arrays(np.int64, noisy.shape, elements=st.integers(0, 5)))
    assert (fit(noisy) <= fit(noisy + rise)).all()


@pytest.mark.parametrize("fit", FITS)
@given(noisy=doubled_arrays(low=0, most=6), shift=st.integers(0, 10**6))
@settings(deadline=None)
def test_a_shifted_input_has_the_shifted_fit(fit, noisy, shift):
    np.testing.assert_array_equal(fit(noisy + shift), fit(noisy) + shift)


@pytest.mark.parametrize("fit", FITS)
@given(noise=doubled_arrays(-20, 20, most=6), data=st.data())
@settings(deadline=None)
def test_no_count_ends_further_off_than_the_largest_noise(fit, noise, data):
    basis = data.draw(hnp.arrays(np.int64, noise.shape, elements=st.integers(0, 9)))
    truth = feasible(basis)
    assert linf(truth, fit(truth + noise)) <= np.abs(noise).max()


@pytest.mark.parametrize("turn", SYMMETRIES)
@given(noisy=doubled_arrays(most=6))
@settings(deadline=None)
def test_a_turned_grid_has_the_turned_fit(turn, noisy):
    for fit in FITS:
        np.testing.assert_array_equal(fit(turn(noisy)), turn(fit(noisy)))


# Input kinds and sizes.


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8", "f2", "f4", "f8", ">i4"])
def test_every_real_dtype_gives_the_same_fit(dtype):
    noisy = np.random.default_rng(1).integers(0, 100, (9, 7))
    for fit in FITS:
        np.testing.assert_array_equal(
            fit(noisy.astype(dtype)), fit(noisy if dtype[-2] != "f" else noisy + 0.0)
        )


def test_the_input_may_be_a_list_read_only_or_strided_and_is_left_alone():
    noisy = np.random.default_rng(2).integers(-9, 20, (18, 14))[::2, ::2][:, ::-1]
    before = noisy.copy()
    noisy.flags.writeable = False
    for fit in FITS:
        np.testing.assert_array_equal(fit(noisy), fit(before.tolist()))
        np.testing.assert_array_equal(noisy, before)


def test_the_largest_integers_do_not_overflow():
    top = 2**63 - 1
    noisy = np.array([[top - 3, top, top]])
    np.testing.assert_array_equal(fit_l1(noisy), [[top - 2, top - 2, top]])
    np.testing.assert_array_equal(fit_l1([[-top, top, top]]), [[top // 2, top // 2, top]])


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    ("noisy", "error", "words"),
    [
        (np.zeros((4, 3)), InputError, r"odd shape.*\(4, 3\)"),
        (np.zeros((3, 4)), InputError, r"odd shape.*\(3, 4\)"),
        (np.zeros((0, 3)), InputError, r"odd shape.*\(0, 3\)"),
        ([], InputError, r"\(0,\)"),
        (5, InputError, r"\(\)"),
        (np.zeros(3), InputError, r"\(3,\)"),
        (np.zeros((3, 3, 3)), InputError, r"\(3, 3, 3\)"),
        ([[np.nan]], InputError, "NaN or infinite"),
        ([[1, np.inf, 1]], InputError, "NaN or infinite"),
        ([[1, -np.inf, 1]], InputError, "NaN or infinite"),
        ([[1.7e308]], InputError, "between"),
        ([[2**63]], InputError, "between"),
        ([[-(2**63)]], InputError, "between"),
        ([[2**70]], InputTypeError, "object"),
        ([["1"]], InputTypeError, "dtype <U1"),
        ([[None]], InputTypeError, "object"),
        ([[True]], InputTypeError, "bool"),
        ([[1j]], InputTypeError, "complex"),
        (np.array([["2020-01-01"]], "M8[D]"), InputTypeError, "datetime"),
        ([[1, 2, 3], [1]], InputTypeError, "rectangular"),
        (None, InputTypeError, "object"),
    ],
)
def test_unusable_input_is_refused_with_the_reason(fit, noisy, error, words):
    with pytest.raises(error, match=words):
        fit(noisy)


def test_the_benchmark_runs_on_small_grids(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    rows = importlib.import_module("benchmarks.isotonic").run(quick=True)
    assert all(row.ours >= 0 for row in rows)
    assert rows[0].ratio > 0
