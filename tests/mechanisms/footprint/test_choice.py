"""What to measure: plans, the workload they are judged by, and which one is chosen."""

from __future__ import annotations

import numpy as np
import pytest

import dpregions as dpr
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint import choice as strategy
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.choice import choose, workload_sizes
from dpregions.mechanisms.footprint.levels import MIX, Level
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.planning.exact_data import ExactData, relative_errors
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise


def test_footprints_are_joined_only_where_there_are_four_sizes():
    def joins(side):
        plans = strategy.candidates(side, 20, 20, shapes=True)
        return [plan.weights[MIX] for plan in plans if Level(1, "joined") in plan.levels]

    assert joins(2) == [3, 3]  # and then the mix is measured too
    assert joins(1) == joins(3) == joins(5) == []


@pytest.mark.parametrize(("epsilon", "joined"), [(0.1, True), (1, False), (10, False)])
def test_footprints_are_joined_where_noise_drowns_single_sizes(epsilon, joined):
    known = catalogue(2, 1 << 20)
    plan = strategy.choose(
        known, 10, 10, epsilon=0.9 * epsilon, n_regions=9000.0, spent=0.1 * epsilon, trees=False
    )
    assert (Level(1, "joined") in plan.levels) == joined


def test_sizes_of_a_workload_are_read_in_cells():
    metres = dpr.Grid(0, 0, 500, 10, 20, crs="EPSG:32632")
    assert workload_sizes(["2km"], metres) == [(4, 4)]
    assert workload_sizes([("4km", "1km"), 1000, (600, 500.0)], metres) == [(2, 8), (2, 2), (1, 2)]
    assert workload_sizes((5,), dpr.Grid.from_bounds(0, 0, 5, 5, cell_size=1)) == [(5, 5)]


def test_the_choice_follows_the_workload():
    """Blocks get more where large rectangles are asked for."""
    known, terms = catalogue(3, 2 << 20), {"epsilon": 1, "spent": 0.05, "trees": False}
    small, large = (
        choose(known, 16, 16, n_regions=30000.0, sizes=[(size, size)], **terms) for size in (1, 8)
    )
    assert small.levels == large.levels
    blocks = small.levels[1]
    assert large.weights[blocks] > small.weights[blocks] > 0


def test_default_sizes_fit_the_grid_and_end_with_all_of_it():
    for shape in ((1, 1), (1, 9), (20, 20), (7, 3), (512, 512)):
        sizes = Rectangles(*shape).sizes()
        assert sizes[-1] == shape
        assert all(1 <= h <= shape[0] and 1 <= w <= shape[1] for h, w in sizes)
        assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("shape", [(20, 20), (30, 40), (7, 3), (1, 9)])
def test_budgets_are_laid_out_for_the_rectangles_that_studies_ask(shape):
    asked = {Rectangles(*shape).shape_of(share) for share in Rectangles.SHARES}
    assert set(Rectangles(*shape).sizes()) == asked


@pytest.mark.parametrize("side", [2, 3, 5])
def test_every_plan_that_leaves_sizes_unmeasured_measures_their_mix_or_classes(side):
    for plan in strategy.candidates(side, 40, 40, shapes=True):
        chain = [level for level in plan.levels if level in plan.weights]
        assert MIX in plan.weights or any(at.letters in ("letters", "classes") for at in chain)


def median_error(data: ExactData, epsilon: float, share: float, repetitions: int = 4) -> float:
    errors = []
    for seed in range(repetitions):
        outcome = data.outcome(Footprint(), Budget(epsilon), "add-remove", StudyNoise(seed))
        on, rng = Rectangles(*data.grid.shape), np.random.default_rng(seed)
        cells = on.placed(*on.shape_of(share), 200, rng, turned=True)
        answers = SignedTable(outcome.counts).answers(cells)
        errors.append(relative_errors(answers, data.truth.answers(cells), data.n_regions))
    return float(np.median(np.concatenate(errors)))


def test_the_choice_does_not_count_on_the_sizes_of_the_prior():
    """The synthetic city's regions are smaller. Plans that leave sizes to the prior err by 36 %."""
    data = ExactData.of(dpr.synthetic.regions(20_000), dpr.synthetic.grid("20km", 500), "2km")
    assert median_error(data, 0.4, 0.01) < 0.12


def test_the_choice_makes_the_most_of_few_regions():
    """Measuring each size at each place would err by a quarter and more."""
    data = ExactData.of(dpr.synthetic.regions(2_000), dpr.synthetic.grid(), "2km")
    assert median_error(data, 1, 0.01, 8) < 0.20
