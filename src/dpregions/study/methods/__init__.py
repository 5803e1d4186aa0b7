"""What a study compares: the truth, both mechanisms and the baselines, all called alike.

Study on exact data: not a private release. This is the one place in the study that runs a
mechanism; whoever adds a method adds it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from dpregions.geometry.doubled import SignedTable
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.paper.pipeline import run
from dpregions.privacy.budget import PrivacyUnit
from dpregions.study.methods.baselines import cell_counts, centroid_points, corner_histograms
from dpregions.study.methods.kd_tree import kd_tree
from dpregions.study.methods.trees import adaptive_grid, quadtree

if TYPE_CHECKING:
    from dpregions.choices import Neighbours
    from dpregions.planning.exact_data import Answering, ExactData
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource

Method: TypeAlias = (
    "Callable[[ExactData, Budget, Neighbours, NoiseSource], Mapping[str, Answering]]"
)
"""One run with one draw of noise; what it gave, by name."""

EULER, OURS, ROUND = "euler", "footprint", "round"
"""What is compared most: the truth, the footprint mechanism's counts, the paper's."""


def run_truth(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> dict[str, Answering]:
    """Return the truth, as a method."""
    return {EULER: data.truth}


def run_paper(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> dict[str, Answering]:
    """Return the paper's steps: noise cut at 0, made consistent, rounded."""
    sensitivity = data.grid.most_touched(data.bound) * PrivacyUnit(neighbours).sensitivity_factor
    steps = run(data.counts, epsilon=budget, sensitivity=sensitivity, noise=noise)
    return {
        "diff-priv": SignedTable(steps.noisy),
        "lin-prog": SignedTable(steps.consistent),
        ROUND: SignedTable(steps.counts),
    }


def run_footprint(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> dict[str, Answering]:
    """Return the footprint mechanism's covert counts and its signed estimate."""
    made = data.outcome(Footprint(), budget, neighbours, noise)
    signed = made.estimates()
    assert signed is not None
    return {OURS: SignedTable(made.counts), "footprint-signed": SignedTable(signed)}


METHODS: dict[str, Method] = {
    "paper": run_paper,
    "footprint": run_footprint,
    "cell counts": lambda *args: {"cell counts": cell_counts(*args)},
    "centroid points": lambda *args: {"centroid points": centroid_points(*args)},
    "four corners": lambda *args: {"four corners": corner_histograms(*args)},
    "adaptive grid": lambda *args: {"adaptive grid": adaptive_grid(*args)},
    "quadtree": lambda *args: {"quadtree": quadtree(*args)},
    "kd-tree": lambda *args: {"kd-tree": kd_tree(*args)},
}

SIMPLE_BASELINES = ("cell counts", "centroid points", "four corners")
"""What needs no structure of its own; the footprint mechanism is judged against the best."""

BASELINES = (*SIMPLE_BASELINES, "adaptive grid", "quadtree", "kd-tree")
