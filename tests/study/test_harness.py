"""The harness of study and benchmarks: workloads, metrics, repeatability, implied histograms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.utility import bootstrap_ratio, l1_ratio, ratio
from dpregions import Grid, cities, synthetic
from dpregions.errors import InputError
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import ExactData, relative_errors
from dpregions.privacy.budget import Budget
from dpregions.study.datasets import Setting, exact_data
from dpregions.study.experiments.base import Unit, measure
from dpregions.study.experiments.errors import ERRORS, questions
from dpregions.study.harness import (
    errors_by_size,
    evaluate,
    implied_histogram,
    l1_distance,
    people_questions,
    sized_questions,
)
from dpregions.study.methods import BASELINES, METHODS
from dpregions.study.methods.baselines import CellSums
from support.small_studies import TINY, source
from support.watched_noise import NoNoise


@pytest.fixture(scope="module")
def city():
    return ExactData.of(synthetic.regions(300), synthetic.grid(), "2km")


class Asked:
    """Answers whose histogram cannot be looked into."""

    def __init__(self, found):
        self.answers = found.answers


@given(
    st.sampled_from(Rectangles.SHARES), st.integers(1, 40), st.integers(1, 40), st.integers(0, 9)
)
def test_rectangles_lie_inside_the_grid_and_have_the_size_of_their_share(share, rows, cols, seed):
    height, width = Rectangles(rows, cols).shape_of(share)
    row0, row1, col0, col1 = Rectangles(rows, cols).placed(
        height, width, 30, np.random.default_rng(seed), turned=True
    )
    assert (row0 >= 0).all() and (row1 < rows).all()
    assert (col0 >= 0).all() and (col1 < cols).all()
    assert_array_equal((row1 - row0 + 1) * (col1 - col0 + 1), height * width)


def test_areas_are_near_their_shares_on_the_grids_of_the_study():
    for n in (20, 30, 40):
        for share in Rectangles.SHARES:
            height, width = Rectangles(n, n).shape_of(share)
            assert abs(height * width / (share * n * n) - 1) < 0.11
            assert max(height, width) <= 2 * min(height, width)


def test_placements_reach_every_corner():
    row0, _, col0, _ = Rectangles(4, 4).placed(2, 2, 500, np.random.default_rng(0), turned=True)
    assert set(zip(row0.tolist(), col0.tolist(), strict=True)) == {
        (r, c) for r in range(3) for c in range(3)
    }


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_a_share_beyond_the_area_is_refused(share):
    with pytest.raises(InputError, match="share of the area"):
        Rectangles(4, 4).shape_of(share)


def test_errors_are_relative_to_the_truth_or_to_a_floor():
    errors = relative_errors([90, 5, 0, 12], [100, 0, 0, 10], n_regions=5000)
    assert_allclose(errors, [0.1, 1.0, 0.0, 0.2])


def test_no_regions_at_all_give_finite_errors_of_exact_answers():
    assert relative_errors([0], [0], n_regions=0).tolist() == [0.0]


def test_the_l1_distance_of_two_histograms():
    assert l1_distance([[1, 2], [3, 4]], [[2, 2], [0, 5]]) == 5


def test_the_ratio_of_constant_errors_is_certain():
    assert bootstrap_ratio([4.0] * 10, [2.0] * 10) == (2.0, 2.0, 2.0)


def test_the_interval_of_a_ratio_holds_it_and_narrows_with_repetitions():
    rng = np.random.default_rng(0)
    few = bootstrap_ratio(rng.lognormal(1, 0.5, 20), rng.lognormal(0, 0.5, 20))
    many = bootstrap_ratio(rng.lognormal(1, 0.5, 2000), rng.lognormal(0, 0.5, 2000))
    assert few.low < few.value < few.high
    assert many.high - many.low < few.high - few.low
    assert many.low < np.e < many.high


def test_a_ratio_of_different_repetitions_is_refused():
    with pytest.raises(InputError, match="same repetitions"):
        bootstrap_ratio([1.0], [1.0, 2.0])


def test_the_table_has_a_row_for_each_method_size_and_repetition(city):
    table = evaluate(city, epsilon=1, repetitions=2, shares=(0.01, 1.0), placements=10)
    names = {"diff-priv", "lin-prog", "round", "footprint", "footprint-signed", *BASELINES}
    assert set(table["method"]) == names
    assert table["question"].value_counts().to_dict() == {
        "size": len(names) * 2 * 2,
        "people": len(names) * 2 * 2,
        "l1": len(names) * 2,
    }
    assert table.attrs["label"] == "study on exact data: not a private release"
    assert table["value"].ge(0).all()
    assert errors_by_size(table).shape == (len(names), 2)
    assert ratio(table, "round", "footprint", 1.0).value > 1
    assert l1_ratio(table, "round", "footprint").value > 1


def test_errors_are_told_both_ways_and_people_are_where_counts_are_large():
    grid = Grid(0, 0, 1, 20, 20)
    data = ExactData.of(cities.made_up("skewed", 1000).regions(grid, 2), grid, 2)
    table = evaluate(data, ["footprint"], epsilon=1, repetitions=3, shares=(0.01,), placements=60)
    anywhere, people = (
        errors_by_size(table, placed).loc["footprint", 0.01] for placed in ("size", "people")
    )
    assert people < anywhere
    rng = np.random.default_rng(0)
    (asked,) = people_questions((0.01,), data, rng, 200)
    (even,) = sized_questions((0.01,), 20, 20, rng, 200)
    assert np.median(data.truth.answers(asked.cells)) > 50
    assert np.median(data.truth.answers(even.cells)) < 5


def test_a_method_has_the_same_noise_beside_other_methods(city):
    asked = {"epsilon": 1, "repetitions": 2, "shares": (0.05,), "placements": 10}
    alone = evaluate(city, ("four corners",), **asked)
    beside = evaluate(city, ("cell counts", "four corners"), **asked)
    mine = beside[beside["method"] == "four corners"].reset_index(drop=True)
    assert alone.equals(mine)


def test_the_study_and_the_benchmarks_ask_the_same_function(tmp_path):
    """At equal seeds and keys a unit of the study holds what the harness yields."""
    some, unit = source(tmp_path, "four corners", seed=3), Unit(ERRORS, Setting(TINY, 10), 0, 1)
    study = measure(some, unit)
    trial = some.trial(unit.setting)
    (size, *_) = (q for q in questions(10, trial.rng(0, "questions")) if q.share == 0.05)
    rows = list(trial.errors(0, lambda _: [size]))
    mine = study[(study["share"] == 0.05) & (study["question"] == "size")]
    assert [row["value"] for row in rows if row["question"] == "size"] == mine["value"].tolist()


def test_equal_seeds_give_equal_tables_and_others_do_not(city):
    asked = {"epsilon": 1, "repetitions": 2, "shares": (0.05,), "placements": 10}
    one, same = (evaluate(city, ("paper", "four corners"), seed=3, **asked) for _ in range(2))
    other = evaluate(city, ("paper", "four corners"), seed=4, **asked)
    assert one.equals(same)
    assert not one.equals(other)


@given(hnp.arrays(np.int64, (7, 7), elements=st.integers(-5, 20)))
def test_answers_of_an_euler_histogram_imply_it(counts):
    found = SignedTable(counts)
    assert_array_equal(implied_histogram(found, 4, 4), counts)
    assert_array_equal(implied_histogram(Asked(found), 4, 4), counts)


def test_sums_of_cells_imply_the_cells_and_nothing_between_them():
    cells = np.arange(16).reshape(4, 4)
    whole = implied_histogram(CellSums(cells), 4, 4)
    assert_array_equal(whole[::2, ::2], cells)
    assert whole.sum() == cells.sum()


def test_four_corners_imply_a_histogram_with_their_answers(tmp_path):
    data = exact_data(Setting(TINY, 10), tmp_path)
    found = METHODS["four corners"](data, Budget(1), "add-remove", NoNoise())["four corners"]
    whole = SignedTable(implied_histogram(found, 10, 10))
    asked = Rectangles(10, 10).placed(3, 4, 50, np.random.default_rng(0))
    assert_array_equal(whole.answers(asked), found.answers(asked))
