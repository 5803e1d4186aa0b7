"""Several grids that regions of a partition may be measured on: one is, chosen by noisy counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions import memory
from dpregions.mechanisms.footprint.bases import BasesTally, PreparedBases
from dpregions.mechanisms.footprint.mechanism import Footprint, PreparedFootprint
from dpregions.privacy.budget import Budget
from support.releases_on_cells import ring_points, squares, study_on, town_on, voronoi
from support.watched_noise import NoNoise, Spy

CELLS = voronoi()
BOUND = CELLS.bound(2, "shrink")


def prepared(neighbours="add-remove", epsilon=1, **options) -> PreparedBases:
    return Footprint(**options).prepare(CELLS, BOUND, Budget(epsilon), neighbours)


def bodies(n=200, seed=0):
    return CELLS.outlines(*ring_points(town_on(CELLS, n, seed)), BOUND)


def tallied(ready, *parts):
    tally = ready.tally()
    for part in parts:
        tally.add(part)
    return tally


class Untouchable:
    """A tally that nobody may look at."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of a tally that is not measured was asked for")


class TotalAlone(Untouchable):
    """A tally of which the total may be seen, and nothing else."""

    def __init__(self, total):
        self.total = total


def test_one_pass_tallies_every_candidate():
    ready = prepared()
    tally = tallied(ready, bodies())
    assert len(tally.tallies) == 3
    within = int(CELLS.touching(bodies()).sum())
    for one, base, each in zip(tally.tallies, ready.bases, ready.prepared, strict=True):
        alone = each.tally()
        alone.add(base.outlines(bodies()))
        buckets = each._finest
        np.testing.assert_array_equal(one.counts(buckets), alone.counts(buckets))
        assert one.total == within


def test_tallies_of_parts_add_up_in_any_order():
    ready = prepared()
    parts = [bodies(80, seed) for seed in range(3)]
    whole = tallied(ready, *parts)
    backwards = ready.tally()
    for part in reversed(parts):
        backwards += tallied(ready, part)
    for one, other, each in zip(whole.tallies, backwards.tallies, ready.prepared, strict=True):
        np.testing.assert_array_equal(one.counts(each._finest), other.counts(each._finest))
    assert whole.nbytes == sum(one.nbytes for one in whole.tallies) > 0


@pytest.mark.parametrize(("neighbours", "sensitivity"), [("add-remove", 1), ("replace-one", 2)])
@pytest.mark.parametrize("n", [10, 20_000])
def test_the_total_and_one_candidate_get_noise_for_exactly_epsilon(neighbours, sensitivity, n):
    ready = prepared(neighbours, Fraction(1, 3))
    tally, spy = tallied(ready, bodies(n)), Spy(3)
    exact = [
        one.counts(each._finest) for one, each in zip(tally.tallies, ready.prepared, strict=True)
    ]
    outcome = ready.publish(tally, spy)
    assert ready.sensitivity == sensitivity
    assert {asked[2] for asked in spy.asked} == {sensitivity}
    assert sum(Budget(asked[1]).epsilon for asked in spy.asked) == Fraction(1, 3)
    assert sum(share.epsilon for _, share in outcome.spending) == Fraction(1, 3)
    first, *others = spy.asked
    assert first[0].tolist() == [tally.tallies[0].total]
    which = ready.chosen(float(first[3][0]))
    assert outcome.grid == ready.bases[which].grid
    # Each further measurement adds up to all regions, of the chosen grid's buckets.
    assert others
    for values, *_ in others:
        assert values.sum() == exact[which].sum()
        assert values.size <= exact[which].size


@pytest.mark.parametrize("n", [10, 2_000, 40_000])
def test_no_tally_is_looked_at_but_the_total_and_the_chosen_one(n):
    ready = prepared()
    tally = tallied(ready, bodies(n))
    total = tally.tallies[0].total
    which = ready.chosen(total)
    hidden = [one if i == which else Untouchable() for i, one in enumerate(tally.tallies)]
    if which:
        hidden[0] = TotalAlone(total)
    outcome = ready.publish(BasesTally(ready.bases, hidden), NoNoise())
    assert outcome.grid == ready.bases[which].grid


@given(st.lists(st.floats(-1e6, 1e12), min_size=2, max_size=20))
def test_the_choice_follows_the_noisy_total_and_gets_finer_with_it(totals):
    chosen = [READY.chosen(total) for total in sorted(totals)]
    assert chosen == sorted(chosen)
    assert set(chosen) <= {0, 1, 2}


READY = prepared()


def test_every_candidate_has_totals_that_choose_it_and_more_epsilon_chooses_finer():
    totals = np.geomspace(1, 1e9, 60)
    assert {READY.chosen(total) for total in totals} == {0, 1, 2}
    low, high = prepared(epsilon=0.1), prepared(epsilon=10)
    assert all(low.chosen(t) <= READY.chosen(t) <= high.chosen(t) for t in totals)
    assert any(low.chosen(t) < high.chosen(t) for t in totals)
    twice = prepared("replace-one", 2)
    assert [twice.chosen(t) for t in totals] == [READY.chosen(t) for t in totals]


def test_candidates_that_the_machine_does_not_hold_are_left_out(monkeypatch):
    room = 24 * READY.bases[2].grid.n_components  # what counting alone takes on the finest
    monkeypatch.setattr(memory, "memory_bytes", lambda: room - 1.0)
    assert CELLS.bases(BOUND) == READY.bases[:2]
    monkeypatch.setattr(memory, "memory_bytes", lambda: 800_000.0)
    fewer = prepared()
    assert len(fewer.prepared) == len(fewer.bases) == 1
    assert fewer.chosen(1e15) == 0
    outcome = fewer.publish(tallied(fewer, bodies()), Spy(1))
    assert outcome.grid == READY.bases[0].grid


def test_where_not_even_the_coarsest_fits_it_is_refused(monkeypatch):
    for limit in (1000.0, 50_000.0):
        monkeypatch.setattr(memory, "memory_bytes", lambda limit=limit: limit)
        with pytest.raises(dpr.errors.InputError, match="memory"):
            prepared()


def test_a_workload_is_laid_out_on_every_candidate():
    ready = prepared(workload=[1.0, (2.0, 4.0)])
    for base, one in zip(ready.bases, ready.prepared, strict=True):
        assert len(one.workload.sizes) == 2
        wanted = np.array([(1.0, 1.0), (4.0, 2.0)]) / base.grid.cell_size
        assert np.abs(np.array(one.workload.sizes) - wanted).max() <= 1
    made = study_on(CELLS, workload=["1m", ("2m", "4m")])
    assert made.count(*CELLS.bounds) > 0


def test_the_cells_of_a_grid_are_measured_on_it_alone():
    cells = squares()
    ready = Footprint().prepare(cells, cells.bound(2, "shrink"), Budget(1), "add-remove")
    assert isinstance(ready, PreparedFootprint)


def test_one_user_more_moves_each_tally_by_one():
    ready = prepared()
    some = town_on(CELLS, 50)
    more = np.append(some, shapely.box(4, 4, 5, 5))
    before, after = (
        tallied(ready, CELLS.outlines(*ring_points(shapes), BOUND)) for shapes in (some, more)
    )
    for one, other, each in zip(before.tallies, after.tallies, ready.prepared, strict=True):
        assert np.abs(other.counts(each._finest) - one.counts(each._finest)).sum() == 1
