"""Errors by size and shape: what is asked, what exact methods err by, what seeds decide."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from dpregions.geometry.rectangles import Rectangles
from dpregions.study.datasets import Setting
from dpregions.study.experiments.base import Unit, measure
from dpregions.study.experiments.errors import ERRORS, LARGE, SMALL, shape_areas
from dpregions.study.methods import EULER, METHODS
from support.small_studies import TINY, source

HUGE = 1e5  # an epsilon whose noise is 0


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 20))
def test_the_shapes_of_an_area_are_all_that_fit(cells, rows, cols):
    every = {(h, w) for h in range(1, rows + 1) for w in range(1, cols + 1) if h * w == cells}
    found = Rectangles(rows, cols).of_area(cells)
    assert set(found) == every
    assert len(found) == len(every)


def test_the_shapes_that_the_study_compares():
    on, (small, large) = Rectangles(20, 20), shape_areas(20).values()
    assert on.of_area(small) == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert on.of_area(large) == [
        (6, 20),
        (8, 15),
        (10, 12),
        (12, 10),
        (15, 8),
        (20, 6),
    ]
    small, large = shape_areas(4).values()
    assert Rectangles(4, 4).of_area(small) == [(1, 4), (2, 2), (4, 1)]
    assert Rectangles(4, 4).of_area(large) == [(3, 4), (4, 3)]


def test_a_shape_is_placed_everywhere_and_nowhere_outside():
    row0, row1, col0, col1 = Rectangles(4, 4).placed(2, 3, 400, np.random.default_rng(0))
    assert_array_equal(row1 - row0, 1)
    assert_array_equal(col1 - col0, 2)
    assert set(zip(row0.tolist(), col0.tolist(), strict=True)) == {
        (r, c) for r in range(3) for c in range(2)
    }


def test_sizes_are_those_of_the_paper():
    assert SMALL == (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
    assert LARGE == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@pytest.fixture(scope="module")
def exact_errors(tmp_path_factory):
    """Errors where the noise is 0."""
    unit = Unit(ERRORS, Setting(TINY, 10, HUGE), 0, 2)
    return measure(source(tmp_path_factory.mktemp("exact")), unit)


def test_without_noise_the_truth_and_the_papers_steps_do_not_err(exact_errors):
    exact = exact_errors[exact_errors["method"].isin([EULER, "diff-priv", "lin-prog", "round"])]
    assert len(exact) > 0
    assert exact["value"].eq(0).all()


def test_without_noise_each_method_counts_what_it_counts(exact_errors):
    sizes = exact_errors[exact_errors["question"] == "size"]
    of = sizes.groupby(["share", "method"])["value"].median()
    assert of[1.0, "footprint"] < 0.001  # the total has a share of epsilon
    assert of[1.0, "cell counts"] > 0.3  # regions over several cells are counted several times
    assert of[0.3, "centroid points"] > 0  # a region that only reaches in is missed


def test_every_size_and_shape_is_asked_in_every_repetition(exact_errors):
    euler = exact_errors[(exact_errors["method"] == EULER) & (exact_errors["repetition"] == 1)]
    sizes = euler[euler["question"] == "size"]
    assert sorted(sizes["share"]) == sorted({*SMALL, *LARGE})
    small = euler[euler["question"] == "small"]
    assert list(zip(small["height"], small["width"], strict=True)) == [(1, 3), (3, 1)]
    assert euler["question"].eq("l1").sum() == 1


def test_errors_are_measured_for_every_method(exact_errors):
    named = {EULER, "diff-priv", "lin-prog", "round", "footprint", "footprint-signed"}
    assert set(exact_errors["method"]) == named | (set(METHODS) - {"paper", "footprint"})


def test_repetitions_in_parts_are_those_of_the_whole(tmp_path):
    setting, some = Setting(TINY, 10), source(tmp_path, "paper", "quadtree")
    whole = measure(some, Unit(ERRORS, setting, 0, 3))
    parts = [measure(some, Unit(ERRORS, setting, a, b)) for a, b in ((0, 1), (1, 3))]
    pd.testing.assert_frame_equal(whole, pd.concat(parts, ignore_index=True))


def test_a_method_gives_the_same_beside_other_methods(tmp_path):
    unit = Unit(ERRORS, Setting(TINY, 10), 0, 2)
    alone = measure(source(tmp_path, "four corners"), unit)
    beside = measure(source(tmp_path, "cell counts", "four corners"), unit)
    kept = beside[beside["method"].isin([EULER, "four corners"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, kept)


def test_another_seed_gives_other_noise_and_other_questions(tmp_path):
    unit = Unit(ERRORS, Setting(TINY, 10), 0, 1)
    one, other = (measure(source(tmp_path, "four corners", seed=s), unit) for s in (0, 1))
    assert not one.equals(other)


def test_settings_have_noise_of_their_own(tmp_path):
    some = source(tmp_path, "centroid points")
    one, other = (
        measure(some, Unit(ERRORS, Setting(TINY, 10, epsilon), 0, 1)) for epsilon in (1, 1.001)
    )
    assert not one["value"].equals(other["value"])
