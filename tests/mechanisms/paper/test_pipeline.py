"""The paper's steps on plain arrays: DiffPriv, LinProg, Round, and what may see what."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dpregions as dpr
from dpregions.errors import InputError, InputTypeError, PrivacyError
from dpregions.mechanisms.paper import pipeline as paper
from dpregions.privacy.law import variance
from dpregions.privacy.seeded import StudyNoise
from support import oracle_lp
from support.watched_noise import Spy

NONE_BROKEN = {"C1": 0, "C2": 0, "C3": 0}

sides = st.integers(1, 5).map(lambda cells: 2 * cells - 1)
shapes = st.tuples(sides, sides)
noisy_arrays = shapes.flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(-40, 60))
)


# Sensitivity


@pytest.mark.parametrize(
    ("max_diameter", "cell_size", "expected"),
    [(1, 1, 9), (2, 1, 25), (3, 1, 49), (12.5, 1, 729), (2.1, 0.7, 49), (0.3, 0.1, 49)],
)
def test_the_papers_sensitivities_and_replace_one_doubles_them(max_diameter, cell_size, expected):
    assert paper.sensitivity(max_diameter, cell_size) == expected
    assert paper.sensitivity(max_diameter, cell_size, "replace-one") == 2 * expected


def test_the_sensitivity_counts_cells_at_face_value_where_floats_say_one_more():
    assert math.ceil(2.1 / 0.7) == 4
    assert paper.sensitivity(2.1, 0.7) == (2 * 3 + 1) ** 2


@pytest.mark.parametrize(
    "arguments",
    [(None, 1), (0, 1), (-2, 1), (math.nan, 1), (math.inf, 1), (2, 0), (2, None), (2, 1, "swap")],
)
def test_a_sensitivity_without_a_bound_a_cell_or_a_known_relation_is_refused(arguments):
    with pytest.raises(PrivacyError):
        paper.sensitivity(*arguments)


# DiffPriv


def test_diff_priv_noises_empty_components_and_cuts_at_zero():
    draws = np.stack([paper.diff_priv(np.zeros((5, 7), int), 1, 9) for _ in range(60)])
    assert draws.dtype == np.int64
    assert draws.min() == 0
    # A component is cut to 0 with probability 0.528; never above 0 in 60 draws: 1e-16.
    assert (draws.max(axis=0) > 0).all()
    assert (draws.min(axis=0) == 0).all()


def test_diff_priv_has_scale_sensitivity_over_epsilon():
    counts = np.full((121, 201), 10**6)
    for epsilon, sensitivity in ((1, 25), (0.5, 9)):
        noise = paper.diff_priv(counts, epsilon, sensitivity) - 10**6
        expected = variance(sensitivity / epsilon)
        # The sample variance of so many draws is within a tenth, but for a chance of 1e-10.
        assert noise.astype(float).var() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"epsilon": 0}, PrivacyError, "epsilon"),
        ({"epsilon": -1}, PrivacyError, "epsilon"),
        ({"epsilon": math.nan}, PrivacyError, "epsilon"),
        ({"epsilon": math.inf}, PrivacyError, "epsilon"),
        ({"epsilon": None}, PrivacyError, "epsilon is missing"),
        ({"sensitivity": 0}, PrivacyError, "sensitivity"),
        ({"sensitivity": 2.5}, PrivacyError, "sensitivity"),
        ({"counts": np.zeros((4, 4), int)}, InputError, "odd"),
        ({"counts": np.zeros((3, 3))}, InputTypeError, "whole numbers"),
        ({"counts": np.full((3, 3), np.nan)}, InputError, "NaN"),
    ],
)
def test_diff_priv_refuses_what_it_cannot_noise(changed, error, words):
    arguments = {"counts": np.zeros((3, 3), int), "epsilon": 1, "sensitivity": 9}
    with pytest.raises(error, match=words):
        paper.diff_priv(**(arguments | changed))


# LinProg


@pytest.mark.parametrize("norm", ["l1", "linf"])
@given(noisy=noisy_arrays)
def test_lin_prog_takes_negative_input_and_gives_what_every_constraint_allows(norm, noisy):
    consistent = paper.lin_prog(noisy, norm)
    assert oracle_lp.violated(consistent) == []
    assert paper.violations(consistent) == NONE_BROKEN
    np.testing.assert_array_equal(paper.lin_prog(consistent, norm), consistent)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_lin_prog_minimises_what_its_norm_says(norm):
    noisy = np.random.default_rng(3).integers(-20, 60, (9, 11))
    change = np.abs(paper.lin_prog(noisy, norm) - noisy)
    reached = change.sum() if norm == "l1" else change.max()
    assert reached == pytest.approx(oracle_lp.objective(noisy, norm=norm))


def test_lin_prog_is_l1_unless_told_otherwise():
    noisy = np.array([[0, 3, 9]])
    assert paper.lin_prog(noisy).tolist() == paper.lin_prog(noisy, "l1").tolist() == [[1, 1, 9]]
    assert paper.lin_prog(noisy, norm="linf").tolist() == [[1.5, 1.5, 9.0]]


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize(
    ("noisy", "error", "words"),
    [
        (np.zeros((4, 3)), InputError, "odd shape"),
        (np.zeros((2, 2), int), InputError, "odd shape"),
        (np.zeros(5), InputError, r"\(5,\)"),
        ([[1, np.nan, 1]], InputError, "NaN"),
        ([[1, np.inf, 1]], InputError, "infinite"),
        ([["1"]], InputTypeError, "dtype"),
    ],
)
def test_lin_prog_refuses_even_shapes_and_values_that_are_not_finite(norm, noisy, error, words):
    with pytest.raises(error, match=words):
        paper.lin_prog(noisy, norm)


def test_an_unknown_norm_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"norm='l2'.*'l1' or 'linf'"):
        paper.lin_prog(np.zeros((3, 3), int), "l2")


# Round


def test_rounding_goes_to_the_nearest_and_halves_go_up():
    values = np.array([[0.49, 0.5, 1.5, 2.5, 2.51, 0.49999999999999994, 3.0]])
    assert paper.round_counts(values).tolist() == [[0, 1, 2, 3, 3, 0, 3]]


def test_whole_numbers_stay_as_they_are_however_large():
    odd = 2**52 + 1
    assert paper.round_counts([[float(odd)]]).tolist() == [[odd]]
    assert paper.round_counts(np.array([[2**60 + 1]])).tolist() == [[2**60 + 1]]
    assert paper.round_counts(np.array([[7]], dtype=np.uint8)).dtype == np.int64


@given(noisy_arrays.map(lambda noisy: noisy / 8), st.sampled_from(["l1", "linf"]))
def test_round_keeps_c1_to_c3_for_float_input(noisy, norm):
    rounded = paper.round_counts(paper.lin_prog(noisy, norm))
    assert rounded.dtype == np.int64
    assert oracle_lp.violated(rounded) == []


def test_round_keeps_c1_to_c3_where_the_l_infinity_program_leaves_halves():
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(50):
        consistent = paper.lin_prog(rng.integers(-9, 30, (7, 9)), "linf")
        seen += np.count_nonzero(consistent % 1)
        rounded = paper.round_counts(consistent)
        assert oracle_lp.violated(rounded) == []
        assert np.abs(rounded - consistent).max() <= 0.5
    assert seen > 500


@given(noisy_arrays)
def test_round_changes_nothing_after_integer_noise(noisy):
    steps = paper.post_process(noisy)
    assert steps.consistent.dtype == np.int64
    np.testing.assert_array_equal(steps.counts, steps.consistent)


# The sequence


@given(noisy_arrays, st.sampled_from(["l1", "linf"]))
def test_post_processing_is_the_three_steps_one_after_the_other(signed, norm):
    steps = paper.post_process(signed, norm)
    np.testing.assert_array_equal(steps.signed, signed)
    np.testing.assert_array_equal(steps.noisy, np.maximum(signed, 0))
    np.testing.assert_array_equal(steps.consistent, paper.lin_prog(np.maximum(signed, 0), norm))
    np.testing.assert_array_equal(steps.counts, paper.round_counts(steps.consistent))
    assert oracle_lp.violated(steps.counts) == []


def test_post_processing_leaves_the_signed_counts_alone():
    signed = np.array([[-5, 3, 2]])
    steps = paper.post_process(signed)
    assert steps.signed.tolist() == [[-5, 3, 2]]
    assert steps.noisy.tolist() == [[0, 3, 2]]


def test_the_pipeline_noises_once_with_the_parameters_it_was_given():
    exact, spy = np.arange(15).reshape(3, 5), Spy(1)
    steps = paper.run(exact, epsilon=0.5, sensitivity=25, noise=spy)
    ((values, *calibration, _),) = spy.asked
    np.testing.assert_array_equal(values, exact)
    assert calibration == [0.5, 25]
    signed = StudyNoise(1).add(exact, epsilon=0.5, sensitivity=25)
    for name, value in paper.post_process(signed)._asdict().items():
        np.testing.assert_array_equal(getattr(steps, name), value)


AFTER_THE_NOISE = """
import sys
import numpy as np
from dpregions.mechanisms.paper import pipeline as paper

signed, counts = sys.argv[1:]
np.save(counts, paper.post_process(np.load(signed)).counts)
seen = {"dpregions.euler", "dpregions.intake.regions", "geopandas", "shapely"}
seen |= {f"dpregions.geometry.{kernel}" for kernel in ("hull_kernel", "touch_kernel")}
assert not seen & set(sys.modules), "post-processing loaded the code that reads regions"
"""


def test_post_processing_runs_in_a_process_that_never_saw_the_regions(tmp_path):
    grid = dpr.Grid(0, 0, 1, 6, 7)
    spread = np.random.default_rng(5).random((40, 2)) * 5
    regions = [shapely.box(x, y, x + 0.7, y + 1.2) for x, y in spread]
    release = dpr.release(regions, grid, epsilon=2, max_diameter=2, method="paper", user_id=None)
    signed, counts = tmp_path / "signed.npy", tmp_path / "counts.npy"
    np.save(signed, release.signed)
    subprocess.run([sys.executable, "-c", AFTER_THE_NOISE, signed, counts], check=True)
    np.testing.assert_array_equal(np.load(counts), release.counts)
