"""An audit of the footprint mechanism's measurements together, and of three mutants.

What is audited is the vector of noisy measurements, captured where noise is added.
"""

from __future__ import annotations

import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from support.auditing import audit
from support.footprint_releases import BLOCKS, PLAIN, study
from support.watched_noise import Spy

AUDIT_GRID = dpr.Grid(0, 0, 1, 2, 2)
ALONE = [shapely.Point(0.5, 0.5)] * 3
ADDED = [*ALONE, shapely.Point(1.5, 1.5)]
REPLACED = [shapely.Point(1.5, 1.5), *ALONE[1:]]


class Capturing:
    """Adds many draws at once: what each of so many runs would have measured."""

    private = False
    label = "captured"
    software = ()

    def __init__(self, seed: int, draws: int, charge=lambda level, epsilon: epsilon) -> None:
        self.noise, self.draws, self.seen, self.charge = StudyNoise(seed), draws, [], charge

    def allot(self, budget):
        return self

    def add(self, values, *, epsilon, sensitivity):
        epsilon = self.charge(len(self.seen), epsilon)
        stacked = np.broadcast_to(values, (self.draws, *values.shape))
        noisy = self.noise.add(stacked, epsilon=epsilon, sensitivity=sensitivity)
        self.seen.append(noisy.reshape(self.draws, -1))
        return noisy[0]


def exact_measurements(regions, strategy=PLAIN, **changes) -> np.ndarray:
    spy = Spy(0)
    study(regions, AUDIT_GRID, noise=spy, max_diameter=1, strategy=strategy, **changes)
    return np.concatenate([values.ravel() for values, *_ in spy.asked])


def measuring(seed: int, charge=lambda level, epsilon: epsilon, strategy=PLAIN, **changes):
    """The mechanism under audit: regions in, that many vectors of noisy measurements out."""
    seeds = iter(range(seed, seed + 10**6))

    def run(regions, draws):
        noise = Capturing(next(seeds), draws, charge)
        study(regions, AUDIT_GRID, noise=noise, max_diameter=1, strategy=strategy, **changes)
        return np.concatenate(noise.seen, axis=1)

    return run


AUDITED = {
    "add-remove": (ALONE, ADDED),
    "replace-one": (ALONE, REPLACED),
}


@pytest.mark.parametrize("claim", [1, 4])
@pytest.mark.parametrize("neighbours", AUDITED)
@pytest.mark.parametrize("plan", [PLAIN, BLOCKS], ids=["plain", "blocks"])
def test_the_measurements_together_leak_at_most_the_claim(plan, neighbours, claim):
    pair = AUDITED[neighbours]
    changes = {"strategy": plan, "epsilon": claim, "neighbours": neighbours}
    expected = tuple(exact_measurements(regions, **changes) for regions in pair)
    found = audit(measuring(100, **changes), *pair, expected, draws=200_000)
    assert found <= claim
    # Not vacuous. Replacing one region does not move the total: its share is not seen.
    assert found > (0.6 if neighbours == "add-remove" else 0.4) * claim


def test_the_audited_neighbours_are_as_far_apart_as_they_can_be():
    alone, added, replaced = (exact_measurements(r) for r in (ALONE, ADDED, REPLACED))
    assert np.abs(alone - added).tolist().count(1) == 2  # the total and one bucket
    assert np.abs(alone - replaced).sum() == 2


def test_mutant_with_a_total_that_is_not_charged_is_caught_by_the_audit():
    """The total measured with the whole epsilon on top of the buckets' share.

    `test_shares_of_the_budget_sum_to_it_exactly` catches it too, by what the noise was asked.
    """
    expected = tuple(exact_measurements(regions) for regions in (ALONE, ADDED))
    run = measuring(200, charge=lambda level, epsilon: epsilon if level else Budget(1))
    assert audit(run, ALONE, ADDED, expected, draws=200_000) > 1.2


def test_mutant_with_a_region_in_two_buckets_is_caught_by_the_audit(monkeypatch):
    """`test_neighbours_move_each_measurement_by_no_more_than_its_sensitivity` catches it too."""
    once = FootprintTally.counts

    def twice(self, buckets):
        counts = once(self, buckets)
        return counts + np.roll(counts, 4)

    monkeypatch.setattr(FootprintTally, "counts", twice)
    expected = tuple(exact_measurements(regions) for regions in (ALONE, ADDED))
    assert np.abs(expected[0] - expected[1]).sum() == 3
    assert audit(measuring(300), ALONE, ADDED, expected, draws=200_000) > 1.2


def test_mutant_with_an_exact_total_is_caught_by_the_audit():
    expected = tuple(exact_measurements(regions) for regions in (ALONE, ADDED))
    run = measuring(400, charge=lambda level, epsilon: epsilon if level else Budget(50))
    assert audit(run, ALONE, ADDED, expected) > 5
