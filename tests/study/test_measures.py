"""What the study measures: questions, histograms that answers imply, errors, consistency."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from dpregions.geometry.rectangles import placed, shapes_of_area
from dpregions.mechanisms.paper import pipeline as paper
from dpregions.planning.exact_data import EulerAnswers
from dpregions.privacy.budget import Budget
from dpregions.study import measures
from dpregions.study.baselines import CellSums
from dpregions.study.datasets import (
    CABSPOTTING,
    GEOLIFE,
    SYNTHETIC,
    TDRIVE,
    Setting,
    exact_data,
)
from dpregions.study.harness import METHODS
from dpregions.study.measures import (
    EULER,
    Source,
    Unit,
    implied_histogram,
    measure,
    next_non_monotone,
    one_user,
    shape_areas,
)
from support.watched_noise import NoNoise

TINY = replace(SYNTHETIC, n_users=60, n=10)
HUGE = 1e5  # an epsilon whose noise is 0


def source(tmp_path, *methods, seed=0):
    return Source(methods or tuple(METHODS), seed, None, tmp_path)


class Asked:
    """Answers whose histogram cannot be looked into."""

    def __init__(self, found):
        self.answers = found.answers


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 20))
def test_the_shapes_of_an_area_are_all_that_fit(cells, rows, cols):
    every = {(h, w) for h in range(1, rows + 1) for w in range(1, cols + 1) if h * w == cells}
    found = shapes_of_area(cells, rows, cols)
    assert set(found) == every
    assert len(found) == len(every)


def test_the_shapes_that_the_study_compares():
    small, large = shape_areas(20).values()
    assert shapes_of_area(small, 20, 20) == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert shapes_of_area(large, 20, 20) == [(6, 20), (8, 15), (10, 12), (12, 10), (15, 8), (20, 6)]
    small, large = shape_areas(4).values()
    assert shapes_of_area(small, 4, 4) == [(1, 4), (2, 2), (4, 1)]
    assert shapes_of_area(large, 4, 4) == [(3, 4), (4, 3)]


def test_a_shape_is_placed_everywhere_and_nowhere_outside():
    row0, row1, col0, col1 = placed(2, 3, 4, 4, 400, np.random.default_rng(0))
    assert_array_equal(row1 - row0, 1)
    assert_array_equal(col1 - col0, 2)
    assert set(zip(row0.tolist(), col0.tolist(), strict=True)) == {
        (r, c) for r in range(3) for c in range(2)
    }


def test_sizes_are_those_of_the_paper():
    assert measures.SMALL == (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
    assert measures.LARGE == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def test_sensitivities_are_those_the_paper_prints():
    assert [Setting(TDRIVE, n).sensitivity for n in (20, 30, 10)] == [25, 49, 9]
    assert Setting(GEOLIFE, 20).sensitivity == 25
    assert [Setting(CABSPOTTING, n).sensitivity for n in (4, 20)] == [49, 729]


def test_cells_have_the_sides_of_the_paper():
    assert [Setting(CABSPOTTING, n).cell_km for n in (4, 20)] == [0.8, 0.16]
    assert Setting(TDRIVE, 20).data.grid(20).shape == (20, 20)
    assert Setting(TDRIVE, 30).data.grid(30).shape == (30, 30)


@given(hnp.arrays(np.int64, (7, 7), elements=st.integers(-5, 20)))
def test_answers_of_an_euler_histogram_imply_it(counts):
    found = EulerAnswers(counts)
    assert_array_equal(implied_histogram(found, 4), counts)
    assert_array_equal(implied_histogram(Asked(found), 4), counts)


def test_sums_of_cells_imply_the_cells_and_nothing_between_them():
    cells = np.arange(16).reshape(4, 4)
    whole = implied_histogram(CellSums(cells), 4)
    assert_array_equal(whole[::2, ::2], cells)
    assert whole.sum() == cells.sum()


def test_four_corners_imply_a_histogram_with_their_answers(tmp_path):
    data = exact_data(Setting(TINY, 10), tmp_path)
    found = METHODS["four corners"](data, Budget(1), "add-remove", NoNoise())["four corners"]
    whole = EulerAnswers(implied_histogram(found, 10))
    asked = placed(3, 4, 10, 10, 50, np.random.default_rng(0))
    assert_array_equal(whole.answers(asked), found.answers(asked))


def test_next_pairs_by_hand():
    assert next_non_monotone(np.array([[1, 1, 1]])) == 0
    # Each cell answers 1 and both together 0.
    assert next_non_monotone(np.array([[1, 2, 1]])) == 100
    # The left cell answers 2, the right one 0, both 1: one of two pairs.
    assert next_non_monotone(np.array([[2, 1, 0]])) == 50


@given(hnp.arrays(np.int64, (5, 7), elements=st.integers(0, 3)))
def test_every_contradiction_begins_with_one_row_or_column(counts):
    assert (next_non_monotone(counts) == 0) == (paper.inconsistency(counts).non_monotone == 0)


@pytest.fixture(scope="module")
def exact_errors(tmp_path_factory):
    """Errors where the noise is 0."""
    unit = Unit("errors", Setting(TINY, 10, HUGE), 0, 2)
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
    assert sorted(sizes["share"]) == sorted({*measures.SMALL, *measures.LARGE})
    small = euler[euler["question"] == "small"]
    assert list(zip(small["height"], small["width"], strict=True)) == [(1, 3), (3, 1)]
    assert euler["question"].eq("l1").sum() == 1


def test_errors_are_measured_for_every_method(exact_errors):
    named = {EULER, "diff-priv", "lin-prog", "round", "footprint", "footprint-signed"}
    assert set(exact_errors["method"]) == named | (set(METHODS) - {"paper", "footprint"})


def test_repetitions_in_parts_are_those_of_the_whole(tmp_path):
    setting, some = Setting(TINY, 10), source(tmp_path, "paper", "quadtree")
    whole = measure(some, Unit("errors", setting, 0, 3))
    parts = [measure(some, Unit("errors", setting, a, b)) for a, b in ((0, 1), (1, 3))]
    pd.testing.assert_frame_equal(whole, pd.concat(parts, ignore_index=True))


def test_a_method_gives_the_same_beside_other_methods(tmp_path):
    unit = Unit("errors", Setting(TINY, 10), 0, 2)
    alone = measure(source(tmp_path, "four corners"), unit)
    beside = measure(source(tmp_path, "cell counts", "four corners"), unit)
    kept = beside[beside["method"].isin([EULER, "four corners"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, kept)


def test_another_seed_gives_other_noise_and_other_questions(tmp_path):
    unit = Unit("errors", Setting(TINY, 10), 0, 1)
    one, other = (measure(source(tmp_path, "four corners", seed=s), unit) for s in (0, 1))
    assert not one.equals(other)


def test_settings_have_noise_of_their_own(tmp_path):
    some = source(tmp_path, "centroid points")
    one, other = (
        measure(some, Unit("errors", Setting(TINY, 10, epsilon), 0, 1)) for epsilon in (1, 1.001)
    )
    assert not one["value"].equals(other["value"])


def test_what_violates_which_constraints(tmp_path):
    table = measure(source(tmp_path), Unit("consistency", Setting(TINY, 10), 0, 2))
    mean = table.groupby("method").mean()
    kinds = ["C1", "C2", "C3", "negative", "non_monotone", "next_non_monotone"]
    assert mean.loc[[EULER, "footprint"], kinds].eq(0).all(axis=None)
    assert mean.loc[["lin-prog", "round"], ["C1", "C2", "C3"]].eq(0).all(axis=None)
    assert mean.loc["diff-priv", kinds].gt(0).all()
    assert table[kinds].le(100).all(axis=None) and table[kinds].ge(0).all(axis=None)


def test_fractions_are_compared_exactly():
    """Sums of thirds in floats would contradict themselves."""
    cells = np.full((4, 4), 1 / 3)
    whole = np.rint(measures.FRACTION * implied_histogram(CellSums(cells), 4)).astype(np.int64)
    assert paper.violations(whole) == {"C1": 0, "C2": 0, "C3": 0}
    assert next_non_monotone(whole) == 0


def test_times_are_taken_of_every_step(tmp_path):
    table = measure(
        source(tmp_path, "paper", "four corners"), Unit("times", Setting(TINY, 10), 0, 2)
    )
    once = table["step"].isin(measures.PREPARATION)
    assert list(table.loc[once, "step"]) == list(measures.PREPARATION)
    assert list(table.loc[~once, "step"]) == 2 * ["diff-priv", "lin-prog", "round", "four corners"]
    assert table["seconds"].gt(0).all()


def test_maps_hold_the_exact_faces_and_every_methods_answers(tmp_path):
    setting = Setting(TINY, 10)
    table = measure(source(tmp_path, "paper"), Unit("maps", setting, 0, 1))
    exact = table[table["method"] == EULER].pivot(index="row", columns="col", values="regions")
    assert_array_equal(exact.to_numpy(), exact_data(setting, tmp_path).counts[::2, ::2])
    assert set(table["method"]) == {EULER, "diff-priv", "lin-prog", "round"}


def fixes_of(sizes):
    """Return fixes of users with so many each, a minute apart, near Beijing's centre."""
    owner = np.repeat(list(sizes), list(sizes.values()))
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "user_id": owner,
            "t": pd.Timestamp("2008-02-02") + pd.to_timedelta(np.arange(len(owner)), "min"),
            "lon": rng.normal(116.40, 0.004, len(owner)),
            "lat": rng.normal(39.91, 0.004, len(owner)),
        }
    )


def test_the_user_shown_has_the_median_number_of_fixes(tmp_path):
    fixes_of({5: 40, 6: 3, 7: 20}).to_parquet(tmp_path / "tdrive.parquet")
    fixes, k = one_user(TDRIVE, tmp_path)
    assert set(fixes["user_id"]) == {7} and len(fixes) == 20
    assert k == 163
    row = measure(Source((), 0, tmp_path, tmp_path), Unit("extraction", Setting(TDRIVE, 20), 0, 1))
    assert row["fixes"].tolist() == [20]
    assert 0 < row["circle_km"][0] <= 2.01


def test_of_trajectories_the_longest_is_shown(tmp_path):
    fixes = fixes_of({7: 20})
    fixes.loc[5:, "t"] += pd.Timedelta("1h")
    fixes.to_parquet(tmp_path / "geolife.parquet")
    assert len(one_user(GEOLIFE, tmp_path)[0]) == 15


@pytest.mark.parametrize(
    ("measure_name", "setting", "seconds"),
    [
        ("errors", Setting(CABSPOTTING, 20), 0.52),
        ("consistency", Setting(TDRIVE, 20), 2.56),
    ],
)
def test_costs_are_near_the_seconds_once_measured(measure_name, setting, seconds):
    cost = Unit(measure_name, setting, 10, 20).cost / 10
    assert cost == pytest.approx(seconds, rel=0.2)


def test_every_measure_has_a_cost_and_reading_a_file_counts_once():
    assert set(measures.SECONDS) == set(measures.MEASURES)
    first, second = (Unit("times", Setting(TDRIVE, 20), at, at + 10).cost for at in (0, 10))
    assert first - second == pytest.approx(measures.READING)
    assert Unit("times", Setting(TINY, 20), 0, 10).cost == pytest.approx(second)
