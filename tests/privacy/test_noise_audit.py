"""Audits of the noising step: it leaks no more than claimed, and deliberate faults are caught."""

from __future__ import annotations

import numpy as np
import pytest

from dpregions.mechanisms.paper.sensitivity import euler_sensitivity
from dpregions.privacy.budget import Budget
from dpregions.privacy.noise import NoiseSource, SystemNoise
from dpregions.privacy.seeded import StudyNoise
from support.auditing import audit, audit_by_component

Counts = np.ndarray


def noised(noise: NoiseSource, epsilon: float, sensitivity: int):
    """The mechanism under audit: counts in, that many noised copies out, in one call."""

    def run(counts: Counts, draws: int) -> Counts:
        stacked = np.broadcast_to(counts, (draws, *counts.shape))
        return noise.add(stacked, epsilon=Budget(epsilon), sensitivity=sensitivity)

    return run


def both_audits(run, pair, *, draws=100_000):
    """Audit jointly and by component, both on the same outputs of each dataset."""
    outputs = {}

    def remembered(counts: Counts, wanted: int) -> Counts:
        if wanted < draws:  # Training: always fresh, the event must not be judged on it.
            return run(counts, wanted)
        key = counts.tobytes()
        if key not in outputs:
            outputs[key] = run(counts, wanted)
        return outputs[key]

    joint = audit(remembered, *pair, pair, draws=draws)
    by_component = audit_by_component(remembered, *pair, pair, draws=draws)
    print(f"joint {joint:.3f}, by component {by_component:.3f}")
    return joint, by_component


def block(shape: tuple[int, int], columns: slice) -> Counts:
    """The Euler histogram of one small body around an inner vertex (or edge), k = 1."""
    counts = np.zeros(shape, dtype=np.int64)
    counts[:, columns] = 1
    return counts


# Worst cases of the lemma, reached exactly. 2 x 2 cells: one body on all 9 components, or none.
ADDED = np.zeros((3, 3), dtype=np.int64), block((3, 3), slice(0, 3))
# 2 x 4 and 1 x 4 cells: the body moves between the two ends, so no component is common.
MOVED = block((3, 7), slice(0, 3)), block((3, 7), slice(4, 7))
MOVED_IN_ONE_ROW = block((1, 7), slice(0, 3)), block((1, 7), slice(4, 7))
# 2 x 2 cells under replace-one: the furthest a body can move is out of the area.
MOVED_OUT = ADDED

CASES = {
    "add-remove, 2 x 2": (ADDED, "add-remove", 2, 2),
    "replace-one, 2 x 2": (MOVED_OUT, "replace-one", 2, 2),
    "replace-one, 1 x 4": (MOVED_IN_ONE_ROW, "replace-one", 1, 4),
    "replace-one, 2 x 4": (MOVED, "replace-one", 2, 4),
}


@pytest.mark.parametrize(
    ("case", "distance", "sensitivity"),
    [
        ("add-remove, 2 x 2", 9, 9),
        ("replace-one, 1 x 4", 6, 6),
        ("replace-one, 2 x 4", 18, 18),
    ],
)
def test_the_audited_neighbours_are_as_far_apart_as_the_lemma_allows(case, distance, sensitivity):
    (counts, other), neighbours, n_rows, n_cols = CASES[case]
    assert np.abs(counts - other).sum() == distance
    assert euler_sensitivity(1, neighbours, n_rows, n_cols) == sensitivity


@pytest.mark.parametrize("claim", [1, 4])
@pytest.mark.parametrize(
    "case",
    [
        "add-remove, 2 x 2",
        "replace-one, 1 x 4",
        pytest.param("replace-one, 2 x 2", marks=pytest.mark.slow),
    ],
)
def test_release_noise_leaks_at_most_its_claim(case, claim):
    pair, neighbours, n_rows, n_cols = CASES[case]
    sensitivity = euler_sensitivity(1, neighbours, n_rows, n_cols)
    joint, by_component = both_audits(noised(SystemNoise(), claim, sensitivity), pair, draws=50_000)
    assert joint <= claim
    assert by_component <= claim
    # Not vacuous: most of what this pair can show is really found.
    reached = np.abs(pair[0] - pair[1]).sum() / sensitivity
    assert by_component > (reached - 0.3) * claim


@pytest.mark.parametrize("claim", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_the_calibration_leaks_at_most_its_claim_in_many_more_draws(case, claim):
    """The same calibration with the fast study noise: eight times the draws, a sharper audit."""
    pair, neighbours, n_rows, n_cols = CASES[case]
    run = noised(StudyNoise(claim), claim, euler_sensitivity(1, neighbours, n_rows, n_cols))
    joint, by_component = both_audits(run, pair, draws=400_000)
    assert joint <= claim
    assert by_component <= claim


@pytest.mark.parametrize("claim", [1, 4])
def test_mutant_noise_for_one_body_under_replace_one_is_caught_by_the_audit(claim):
    """The paper's calibration: it measures close to 2 epsilon where epsilon is claimed."""
    run = noised(StudyNoise(1), claim, euler_sensitivity(1, "add-remove", 1, 4))
    joint, by_component = both_audits(run, MOVED_IN_ONE_ROW, draws=400_000)
    assert joint > claim
    assert by_component > 1.8 * claim


def test_mutant_without_noise_on_vertices_is_caught_by_the_audit():
    noise = noised(StudyNoise(2), 1, 9)

    def run(counts, draws):
        outputs = noise(counts, draws)
        outputs[:, 1::2, 1::2] = counts[1::2, 1::2]
        return outputs

    assert audit(run, *ADDED, ADDED) > 5


def test_mutant_with_a_body_over_the_bound_is_caught_by_the_audit():
    """A body three cells wide where k = 1 is claimed. `test_privacy` catches it by the lemma."""
    pair = np.zeros((5, 5), dtype=np.int64), np.ones((5, 5), dtype=np.int64)
    run = noised(StudyNoise(3), 1, euler_sensitivity(1))
    joint, by_component = both_audits(run, pair, draws=400_000)
    assert by_component > 2
    assert joint > 1


def test_mutant_with_a_grid_taken_from_the_data_is_caught_by_the_audit():
    """One outlier stretches the grid, and everybody else changes cells."""

    def histogram(places):
        # Point bodies on a line, two cells over the extent of the data: face, edge, face.
        low, high = min(places), max(places)
        right = sum(2 * (place - low) >= high - low for place in places)
        return np.array([[len(places) - right, 0, right]], dtype=np.int64)

    town = [0] * 20 + [1] * 20
    with_outlier = [*town, 100]
    noise = noised(StudyNoise(4), 1, euler_sensitivity(1, "add-remove", 1, 2))

    def run(places, draws):
        return noise(histogram(places), draws)

    assert audit(run, town, with_outlier, (histogram(town), histogram(with_outlier))) > 3


def test_the_audit_finds_nothing_where_nothing_differs():
    same = ADDED[1], ADDED[1]
    assert audit(noised(StudyNoise(5), 1, 9), *same, ADDED) < 0.1
