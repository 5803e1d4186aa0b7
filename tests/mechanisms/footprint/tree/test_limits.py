"""How far trees go, what is refused before a region is read, and where a tree is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions import memory
from dpregions.errors import PrivacyError
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.footprint import choice
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.measuring import Strategy
from dpregions.mechanisms.footprint.mechanism import Footprint, PreparedFootprint
from dpregions.mechanisms.footprint.sizes import MOST_SIDE
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.prepared import PreparedTree
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.privacy.budget import Budget
from support.footprint_releases import study, town
from support.watched_noise import Scripted


def prepared_on(n_rows, n_cols, diameter, way=None, **changes):
    grid = dpr.Grid(0, 0, 1, n_rows, n_cols)
    bound = Bound.of(grid, diameter, "shrink")
    return (way or Footprint(**changes)).prepare(grid, bound, Budget(1), "add-remove")


# How far they go


@pytest.mark.parametrize(("n", "diameter", "regions"), [(300, 2, 3000), (40, 40, 60)])
def test_fine_grids_and_wide_regions_work(n, diameter, regions):
    grid = dpr.Grid(0, 0, 1, n, n)
    data = town(grid, min(diameter, 8), n=regions)
    release = study(data, grid, max_diameter=diameter)
    assert isinstance(release.outcome.strategy, Adaptive)
    again = dpr.EulerHistogram.from_regions(
        release.to_regions(), grid, max_diameter=diameter, user_id=None
    )
    np.testing.assert_array_equal(again.counts, release.counts)
    found = dpr.paper.inconsistency(release.counts)
    assert found.negative == found.non_monotone == 0
    half = 0, 0, n / 2, n
    low, high = release.interval(*half)
    assert 0 <= low <= release.count(*half) <= high
    assert sum(share.epsilon for _, share in release.spending) == 1


def test_the_catalogue_of_wide_regions_follows_from_the_published_sizes_alone():
    """The same noisy counts of other data: the same sizes, patterns and witnesses."""
    grid = dpr.Grid(0, 0, 1, 40, 40)
    data = (
        np.array([], object),
        town(grid, 30, n=200),
        np.array([shapely.box(1, 1, 29, 25)] * 150, object),
    )
    made = [
        study(regions, grid, max_diameter=30, noise=Scripted(5, 120)).outcome for regions in data
    ]
    first = made[0].bodies.catalogue
    published = set(
        zip(
            first.heights[made[0].bodies.pattern], first.widths[made[0].bodies.pattern], strict=True
        )
    )
    assert set(zip(first.heights, first.widths, strict=True)) == published
    for other in made[1:]:
        found = other.bodies.catalogue
        for name in ("heights", "widths", "spans", "starts", "times", "prior"):
            np.testing.assert_array_equal(getattr(first, name), getattr(found, name))
        np.testing.assert_array_equal(made[0].counts, other.counts)


# What is refused


class Unread:
    """Regions that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"regions were asked for {name}")


@pytest.mark.parametrize("way", [None, Adaptive(0.15, 64)])
def test_regions_too_wide_for_any_catalogue_are_refused_before_all_else(way, ledger):
    ledger.create("city", 1, unit="record")
    grid, diameter = dpr.Grid(0, 0, 1, 100, 100), MOST_SIDE
    terms = {"epsilon": 1, "max_diameter": diameter, "user_id": None}
    with pytest.raises(PrivacyError, match=r"66 cells wide, more than 65.*larger cells.*smaller"):
        dpr.release(
            Unread(), grid, ledger=ledger, dataset="city", method=Footprint(strategy=way), **terms
        )
    assert ledger.account("city").spent == 0
    assert prepared_on(100, 100, MOST_SIDE - 1, strategy=way).side == MOST_SIDE


def test_too_little_memory_is_refused_with_the_parts_that_a_tree_may_have(monkeypatch):
    monkeypatch.setattr(memory, "memory_bytes", lambda: 1e8)
    with pytest.raises(PrivacyError, match=r"4,000,000 parts.*smaller most_parts"):
        dpr.release(Unread(), dpr.Grid(0, 0, 1, 80, 80), epsilon=1, max_diameter=2)
    fewer = Adaptive(0.15, 64, 1000)
    assert prepared_on(80, 80, 2, strategy=fewer).how == fewer


def test_shares_too_small_to_be_measured_with_are_refused_before_noise():
    grid = dpr.Grid(0, 0, 1, 100, 100)
    for epsilon in (1e-13, 1e-5):
        with pytest.raises(PrivacyError, match="larger epsilon"):
            dpr.release(
                Unread(), grid, epsilon=epsilon, max_diameter=2,
                method=Footprint(strategy=Adaptive(0.1, 4)),
            )  # fmt: skip


@pytest.mark.parametrize("epsilon", [1e3, 1e6, 10**15])
def test_a_large_epsilon_is_no_division_by_zero(epsilon):
    grid = dpr.Grid(0, 0, 1, 6, 5)
    regions = town(grid, 2)
    exact = dpr.EulerHistogram.from_regions(regions, grid, max_diameter=2, user_id=None)
    for data in (regions, []):
        release = study(data, grid, epsilon=epsilon, strategy=Adaptive(0.5, 16))
        assert np.isfinite(release.signed).all()
        truth = exact.count(*grid.bounds) if len(data) else 0
        assert release.count(*grid.bounds) == truth


def test_a_tree_is_not_measured_for_the_cells_of_a_partition():
    sites = shapely.points([(1.0, 1.0), (4.0, 2.0), (2.0, 5.0)])
    area = dpr.Partition.voronoi(sites, shapely.box(0, 0, 6, 6))
    with pytest.raises(PrivacyError, match="on a grid"):
        Footprint(strategy=Adaptive(0.1, 16)).prepare(
            area, area.bound(1, "shrink"), Budget(1), "add-remove"
        )


# Where a tree is chosen


@pytest.mark.parametrize(
    ("shape", "diameter"), [((65, 3), 2), ((3, 65), 2), ((100, 100), 5), ((40, 40), 30)]
)
def test_beyond_what_is_rehearsed_there_is_a_tree_whatever_the_total(shape, diameter):
    prepared = prepared_on(*shape, diameter)
    assert isinstance(prepared, PreparedTree)
    assert len({prepared.strategy(total) for total in (-5.0, 0.0, 1e3, 1e9)}) == 1
    k = Bound.of(prepared.grid, diameter, "shrink").k
    assert prepared.how == Adaptive(
        TUNING.fine_detail if k <= 3 else TUNING.coarse_detail, TUNING.tree_children
    )


def test_up_to_64_cells_a_side_trees_are_rehearsed_beside_the_other_strategies(monkeypatch):
    tried = []

    def winner(_, candidates):
        tried.extend(candidates)
        return candidates[-1]

    monkeypatch.setattr(choice._Heats, "winner", winner)
    choice._chosen.cache_clear()  # nothing that was chosen by a race, and nothing of this one after
    prepared = prepared_on(64, 64, 2)
    assert isinstance(prepared, PreparedFootprint)
    found = prepared.strategy(5000.0)
    trees = [Adaptive(*words) for words in TUNING.trees]
    assert [one for one in tried if isinstance(one, Adaptive)] == trees
    assert any(isinstance(one, Strategy) for one in tried)
    assert found == trees[-1]  # here whoever comes last wins
    tried.clear()
    without = choice.choose(
        prepared.known, 64, 64, epsilon=1.0, n_regions=5000.0, spent=0.02, trees=False
    )
    assert isinstance(without, Strategy) and not any(isinstance(one, Adaptive) for one in tried)
    choice._chosen.cache_clear()


def test_a_tree_can_win_and_is_then_what_is_measured():
    """In cities of a few crowded spots, with little budget for regions over many sizes."""
    spots = replace(
        TUNING, most_spots=0.95, bodies_per_spot=400, spot_crowding=4.0, least_trials=3,
        most_trials=3, trial_queries=24, trees=((0.15, 64),),
    )  # fmt: skip
    known = catalogue(5, 4 << 20)
    terms = {"epsilon": 0.9, "n_regions": 8000.0, "spent": 0.05, "tuning": spots}
    found = choice.choose(known, 30, 30, **terms)
    assert found == Adaptive(0.15, 64)


def test_a_tree_that_was_chosen_is_measured_with_what_the_total_left(monkeypatch):
    how = Adaptive(0.3, 16)
    monkeypatch.setattr(choice, "choose", lambda *_, **__: how)
    monkeypatch.setattr("dpregions.mechanisms.footprint.mechanism.choose", lambda *_, **__: how)
    grid = dpr.Grid(0, 0, 1, 6, 7)
    chosen, fixed = study(grid=grid), study(grid=grid, strategy=how)
    assert chosen.outcome.strategy == how
    np.testing.assert_array_equal(chosen.counts, fixed.counts)
    # Where patterns may be measured, one that the catalogue lacks counts as that most like it, also
    # in the mix of shapes: the weights of patterns differ by that.
    np.testing.assert_allclose(chosen.signed, fixed.signed, rtol=1e-3, atol=1e-3)
    assert chosen.spending == fixed.spending


def test_the_choice_of_a_tree_depends_on_public_values_and_the_noisy_total_only(monkeypatch):
    """The same noisy total of other data: the same choice, of the same made-up cities."""
    asked = []
    choose = choice.choose

    def noted(known, n_rows, n_cols, **terms):
        asked.append((n_rows, n_cols, tuple(sorted(map(str, terms.items())))))
        return choose(known, n_rows, n_cols, **terms)

    monkeypatch.setattr("dpregions.mechanisms.footprint.mechanism.choose", noted)
    grid = dpr.Grid(0, 0, 1, 5, 5)
    for regions in ([], town(grid, 2, n=300)):
        study(regions, grid, noise=Scripted(2, 200))
    assert len(asked) == 2 and asked[0] == asked[1]
