"""What to measure: plans, the workload they are judged by, and which one is chosen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import geopandas
import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint import choice as strategy
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.choice import choose, judged_total
from dpregions.mechanisms.footprint.levels import MIX, Level
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.mechanisms.footprint.workload import ALL_SIZES, Workload, workload_sizes
from dpregions.planning.exact_data import ExactData, relative_errors
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise


def test_footprints_are_joined_only_where_there_are_four_sizes():
    def joins(side):
        plans = strategy.candidates(side, 20, 20, shapes=True)
        joined = [plan.weights for plan in plans if Level(1, "joined") in plan.levels]
        return [Fraction(weights[MIX], weights[Level(1, "joined")]) for weights in joined]

    assert joins(2) == [Fraction(3, 97)] * 2  # and then the mix is measured too
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
    """Shapes are measured for the sake of small rectangles: large ones hardly cut any region."""
    known, terms = catalogue(3, 2 << 20), {"epsilon": 1, "spent": 0.05, "trees": False}
    small, large = (
        choose(known, 16, 16, n_regions=60_000.0, workload=Workload(((size, size),)), **terms)
        for size in (1, 8)
    )
    assert (small.alphabet, large.alphabet) == ("patterns", "sizes")


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
    assert median_error(data, 1, 0.01, 8) < 0.22


def heats(known, shape, *, epsilon=1.0, n=2000.0, spent=0.05, favour="people", tuning=TUNING):
    return strategy._Heats.of(known, shape, epsilon, spent, n, ALL_SIZES, favour, tuning)


def mean_errors(race, plans):
    """The rehearsed mean log error of each plan, tried in every city."""
    return {
        plan: np.mean(
            [race.error(race._trial(plan), city, i) for i, city in enumerate(race.cities)]
        )
        for plan in plans
    }


def test_cities_are_of_every_kind_and_asked_where_people_are():
    race = heats(catalogue(3, 2 << 20), (20, 20))
    assert {city.kind.crowd for city in race.cities} == {
        "even", "districts", "centre", "malls", "corridors"
    }  # fmt: skip
    (skewed,) = [city for city in race.cities if city.kind.crowd == "centre"]
    even, near = skewed.truth[:, 0].mean(axis=-1)  # of the smallest rectangles
    assert near > 5 * even


def test_answering_nothing_where_nobody_is_gains_nothing():
    """A plan that knows the empty places and not the crowd is no better than one that answers 0."""
    race = heats(catalogue(3, 2 << 20), (20, 20))
    (skewed,) = [city for city in race.cities if city.kind.crowd == "centre"]

    class Nothing:
        def counts(self, bodies, noise):
            return np.zeros((39, 39))

    class Everything:
        def counts(self, bodies, noise):
            return bodies.counts_on(20, 20).astype(float)

    assert race.error(Nothing(), skewed, 0) == pytest.approx(math.log(1 + TUNING.good_enough))
    assert race.error(Everything(), skewed, 0) == pytest.approx(math.log(TUNING.good_enough))


def test_racing_chooses_what_trying_all_in_every_city_chooses():
    """But for near ties, in at least 19 of 20 cases."""
    every, same = replace(TUNING, behind=math.inf), []
    for side, n in ((2, 10), (3, 20), (3, 6), (4, 16), (5, 12)):
        known = catalogue(side, (side - 1) << 20)
        for epsilon, n_regions in ((0.1, 9000.0), (1.0, 300.0), (1.0, 3000.0), (1.0, 30000.0)):
            terms = {"epsilon": 0.95 * epsilon, "spent": 0.05 * epsilon, "n_regions": n_regions}
            raced = choose(known, n, n, **terms)
            same.append(raced == choose(known, n, n, tuning=every, **terms))
    assert len(same) == 20 and sum(same) >= 19


def test_totals_that_noise_moves_about_are_judged_alike():
    spent = 0.02
    lost = 3 * math.sqrt(2) / spent
    assert len({judged_total(n, spent) for n in (-1000.0, 0.0, 29.0, lost, 1.15 * lost)}) == 1
    for n in (500.0, 5000.0, 50_000.0):
        assert judged_total(n, spent) == pytest.approx(n, rel=0.19)


@pytest.mark.parametrize(
    ("side", "n", "epsilon", "n_regions"),
    [(11, 50, 1.0, 29.0), (3, 20, 1.0, 190.0), (3, 20, 1.0, 2000.0), (2, 10, 0.1, 2000.0)],
)
def test_near_totals_choose_plans_that_err_alike(side, n, epsilon, n_regions):
    """Three standard deviations either way: rehearsed errors differ by less than a tenth."""
    known, share = catalogue(side, (side - 1) << 20), max(1 / n, 0.02)
    spent = share * epsilon
    terms = {"epsilon": epsilon - spent, "spent": spent}
    totals = n_regions + 3 * math.sqrt(2) / spent * np.linspace(-1, 1, 7)
    chosen = {choose(known, n, n, n_regions=float(total), **terms) for total in totals}
    race = heats(known, (n, n), n=judged_total(n_regions, spent), **terms)
    errors = mean_errors(race, chosen)
    assert max(errors.values()) - min(errors.values()) < math.log(1.1)


def test_the_choice_for_a_total_on_the_same_rung_is_kept():
    known, terms = catalogue(3, 2 << 20), {"epsilon": 0.95, "spent": 0.05}
    first = choose(known, 20, 20, n_regions=10_000.0, **terms)
    tried = strategy._chosen.cache_info().misses
    assert choose(known, 20, 20, n_regions=10_050.0, **terms) is first
    assert strategy._chosen.cache_info().misses == tried


def test_districts_are_laid_out_for_by_their_area_and_place():
    grid = dpr.Grid(0, 0, 500, 10, 20, crs="EPSG:32632")
    square, beside = shapely.box(1000, 2000, 2000, 3000), shapely.box(-900, 0, -1, 900)
    slanted = shapely.Polygon([(0, 0), (4000, 0), (4000, 4000)])  # half of its box
    found = Workload.of(geopandas.GeoSeries([square, slanted, beside], crs=grid.crs), grid)
    assert found.places == ((4, 5, 2, 3), (1, 6, 1, 6))
    assert found == Workload.of([square, slanted], grid)
    assert found.in_words() == "2 districts of about 4 to 36 cells"
    with pytest.raises(dpr.errors.InputError, match="no polygon that lies in the area"):
        Workload.of([beside], grid)
    with pytest.raises(dpr.errors.InputError, match="points and lines"):
        Workload.of([shapely.Point(1, 1)], grid)


def test_the_choice_follows_districts():
    """Districts that tile the area take what rectangles of their size take."""
    known, terms = catalogue(3, 2 << 20), {"epsilon": 1, "spent": 0.05, "trees": False}
    grid, chosen = dpr.Grid(0, 0, 1, 16, 16), []
    for size in (1, 8):
        corners = [(x, y) for x in range(0, 16, size) for y in range(0, 16, size)]
        tiles = [shapely.box(x, y, x + size, y + size) for x, y in corners]
        districts = Workload.of(tiles, grid)
        chosen.append(choose(known, 16, 16, n_regions=60_000.0, workload=districts, **terms))
    assert [plan.alphabet for plan in chosen] == ["patterns", "sizes"]
