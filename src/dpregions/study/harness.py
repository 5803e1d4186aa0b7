"""One harness for studies and benchmarks: methods side by side, same data, epsilon, questions.

Study on exact data: not a private release. Every method sees exact regions through seeded
noise, so that figures can be repeated; what comes out is a table of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.geometry.rectangles import SHARES, rectangles
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.paper import pipeline as paper
from dpregions.mechanisms.paper.sensitivity import euler_sensitivity
from dpregions.planning.exact_data import LABEL, Answering, EulerAnswers, ExactData
from dpregions.planning.workload import (
    Ratio,
    bootstrap_ratio,
    l1_distance,
    relative_errors,
)
from dpregions.privacy.budget import Budget, BudgetLike, Neighbours
from dpregions.privacy.noise import NoiseSource
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.baselines import cell_counts, centroid_points, corner_histograms
from dpregions.study.trees import adaptive_grid, quadtree

if TYPE_CHECKING:
    import pandas as pd

Method = Callable[[ExactData, Budget, Neighbours, NoiseSource], Mapping[str, Answering]]
"""One run with one draw of noise; what it gave, by name."""


def run_paper(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> dict[str, Answering]:
    """Return the paper's steps: noise cut at 0, made consistent, rounded."""
    sensitivity = euler_sensitivity(data.bound.k, neighbours, *data.grid.shape)
    steps = paper.run(data.counts, epsilon=budget, sensitivity=sensitivity, noise=noise)
    return {
        "diff-priv": EulerAnswers(steps.noisy),
        "lin-prog": EulerAnswers(steps.consistent),
        "round": EulerAnswers(steps.counts),
    }


def run_footprint(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> dict[str, Answering]:
    """Return the footprint mechanism's covert counts and its signed estimate."""
    steps = data.outcome(Footprint(), budget, neighbours, noise)
    assert steps.signed is not None
    return {
        "footprint": EulerAnswers(steps.counts),
        "footprint-signed": EulerAnswers(steps.signed),
    }


METHODS: dict[str, Method] = {
    "paper": run_paper,
    "footprint": run_footprint,
    "cell counts": lambda *args: {"cell counts": cell_counts(*args)},
    "centroid points": lambda *args: {"centroid points": centroid_points(*args)},
    "four corners": lambda *args: {"four corners": corner_histograms(*args)},
    "adaptive grid": lambda *args: {"adaptive grid": adaptive_grid(*args)},
    "quadtree": lambda *args: {"quadtree": quadtree(*args)},
}

SIMPLE_BASELINES = ("cell counts", "centroid points", "four corners")
"""What needs no structure of its own; the footprint mechanism is judged against the best."""

BASELINES = (*SIMPLE_BASELINES, "adaptive grid", "quadtree")


def evaluate(
    data: ExactData,
    methods: Iterable[str] | Mapping[str, Method] = tuple(METHODS),
    *,
    epsilon: BudgetLike,
    repetitions: int,
    seed: int = 0,
    neighbours: Neighbours = "add-remove",
    shares: Sequence[float] = SHARES,
    placements: int = 100,
) -> pd.DataFrame:
    """Measure methods on exact data: a table of errors, not a private release.

    Parameters
    ----------
    data : ExactData
    methods : names of `METHODS`, or a mapping of names to methods
    epsilon : number or Budget
        For each run of a method.
    repetitions : int
        Each with fresh noise and fresh placements, the same placements for all methods.
    seed : int
        Equal seeds give equal tables.
    neighbours : {"add-remove", "replace-one"}
    shares : sequence of float
        Sizes of rectangles, as shares of the area.
    placements : int
        Rectangles of each size in each repetition.

    Returns
    -------
    pandas.DataFrame
        One row for each method, share and repetition: `median_error`, `mean_error` (relative),
        `mean_off` (in regions), and `l1`, the distance of the whole histogram from the exact
        one where the method has one. Its attribute `label` says what it is.
    """
    import pandas as pd

    chosen = methods if isinstance(methods, Mapping) else {name: METHODS[name] for name in methods}
    budget = Budget(epsilon)
    rows: list[dict[str, Any]] = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        asked = [(s, rectangles(s, *data.grid.shape, placements, rng)) for s in shares]
        for number, method in enumerate(chosen.values()):
            noise = StudyNoise(
                int(np.random.default_rng([seed, repetition, number]).integers(2**62))
            )
            for name, found in method(data, budget, neighbours, noise).items():
                whole = found.counts if isinstance(found, EulerAnswers) else None
                l1 = np.nan if whole is None else l1_distance(whole, data.counts)
                for share, cells in asked:
                    truth, answers = data.truth.answers(cells), found.answers(cells)
                    errors = relative_errors(answers, truth, data.n_regions)
                    rows.append(
                        {
                            "method": name,
                            "share": share,
                            "repetition": repetition,
                            "median_error": float(np.median(errors)),
                            "mean_error": float(errors.mean()),
                            "mean_off": float(np.abs(answers - truth).mean()),
                            "l1": l1,
                        }
                    )
    table = pd.DataFrame(rows)
    table.attrs["label"] = LABEL
    return table


def errors_by_size(table: pd.DataFrame) -> pd.DataFrame:
    """Return the error of each method (rows) at each share (columns).

    The median over repetitions of the median over placements.
    """
    errors = table.groupby(["method", "share"], sort=False)["median_error"].median()
    return errors.unstack("share")


def ratio(table: pd.DataFrame, above: str, below: str, share: float) -> Ratio:
    """Return one method's error over another's at a share, with a 95 % bootstrap interval."""
    at = table[table["share"] == share].set_index("repetition").sort_index()
    pair = (at.loc[at["method"] == name, "median_error"].to_numpy() for name in (above, below))
    return bootstrap_ratio(*pair)


def l1_ratio(table: pd.DataFrame, above: str, below: str) -> Ratio:
    """Return how many times farther one method's histogram is from the exact one in L1."""
    one = table.drop_duplicates(["method", "repetition"]).sort_values("repetition")
    pair = (one.loc[one["method"] == name, "l1"].to_numpy() for name in (above, below))
    return bootstrap_ratio(*pair)


def best_baseline(table: pd.DataFrame, share: float) -> str:
    """Return the simple baseline that errs least at a share."""
    errors = errors_by_size(table)[share]
    return str(errors[list(SIMPLE_BASELINES)].idxmin())
