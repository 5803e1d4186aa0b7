"""A black-box audit of a privacy claim: how much does a mechanism provably leak?

A mechanism here is `run(dataset, draws)`: that many independent outputs, one a row. The auditor
knows both datasets and what their exact counts would be, nothing about the noise. It learns an
event on some outputs, then counts how often the event happens on fresh ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

Dataset = TypeVar("Dataset")
Run = Callable[[Dataset, int], NDArray[np.int64]]
FAILURE = 1e-6


def log_ratio_bound(hits: int, other_hits: int, draws: int, other_draws: int) -> float:
    """Lower bound on log(p / q) at confidence 1 - FAILURE, by Clopper and Pearson."""
    low = beta.ppf(FAILURE / 2, hits, draws - hits + 1) if hits else 0.0
    high = beta.isf(FAILURE / 2, other_hits + 1, max(other_draws - other_hits, 1))
    return math.log(low / high) if low > 0 else -math.inf


def audit(
    run: Run,
    dataset: Dataset,
    neighbour: Dataset,
    expected: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    draws: int = 100_000,
    training: int = 10_000,
) -> float:
    """Return a lower bound on epsilon that holds at confidence 1 - FAILURE, whatever `run` is.

    The event is "the likelihood ratio exceeds a threshold", with the ratio learned component by
    component on one half of the training outputs and the threshold chosen on the other half.
    """
    half = training // 2
    score = _Score(run(dataset, half), run(neighbour, half), expected)
    scores, others = score(run(dataset, half)), score(run(neighbour, half))
    # Either dataset may be the likelier one given the event; the other way, scores turn round.
    forward, backward = (
        _best_threshold(scores, others, draws),
        _best_threshold(-others, -scores, draws),
    )
    if forward[1] >= backward[1]:
        sign, cut, pair = 1, forward[0], (dataset, neighbour)
    else:
        sign, cut, pair = -1, backward[0], (neighbour, dataset)
    hits = [int(np.count_nonzero(sign * score(run(data, draws)) >= cut)) for data in pair]
    return log_ratio_bound(hits[0], hits[1], draws, draws)


def audit_by_score(
    scores: Callable[[Dataset, int], NDArray[np.float64]],
    dataset: Dataset,
    neighbour: Dataset,
    *,
    draws: int,
    training: int,
) -> float:
    """Return a lower bound on epsilon as `audit` does, where every output is scored by the caller.

    For outputs of no fixed length. Whatever the score looks at, the bound holds; the better it
    tells the two datasets apart, the higher it is. High scores speak for the neighbour.
    """
    theirs, mine = scores(neighbour, training), scores(dataset, training)
    cut, _ = _best_threshold(theirs, mine, draws)
    hits = [int(np.count_nonzero(scores(d, draws) >= cut)) for d in (neighbour, dataset)]
    return log_ratio_bound(hits[0], hits[1], draws, draws)


class _Score:
    """A learned log-likelihood ratio: a sum over components, which a fair mechanism noises apart.

    Each component is read as one of three: at the lower of its two exact counts or below, at
    the higher or above, between. For Laplace noise nothing else matters.
    """

    def __init__(
        self,
        outputs: NDArray[np.int64],
        others: NDArray[np.int64],
        expected: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        self.low = np.minimum(*expected).reshape(-1)
        self.high = np.maximum(*expected).reshape(-1)
        self.moved = self.low < self.high
        kinds = self._kinds(outputs), self._kinds(others)
        counts = [np.stack([(k == i).sum(axis=0) for i in range(3)]) + 0.5 for k in kinds]
        self.weights = np.log(counts[0]) - np.log(counts[1])

    def _kinds(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        flat = outputs.reshape(len(outputs), -1)[:, self.moved]
        return np.where(
            flat <= self.low[self.moved], 0, np.where(flat < self.high[self.moved], 1, 2)
        )

    def __call__(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.take_along_axis(self.weights, self._kinds(outputs), axis=0).sum(axis=1)


def _best_threshold(
    scores: NDArray[np.float64], others: NDArray[np.float64], draws: int
) -> tuple[float, float]:
    """Return the threshold whose bound would be the best if the shares held on `draws` outputs."""
    cuts = np.unique(np.quantile(scores, 1 - np.geomspace(1e-3, 0.5, 40)))
    bounds = [
        log_ratio_bound(
            round(np.mean(scores >= cut) * draws),
            # One more hit than seen: a rare event must not look free.
            round((np.count_nonzero(others >= cut) + 1) / len(others) * draws),
            draws,
            draws,
        )
        for cut in cuts
    ]
    best = int(np.argmax(bounds))
    return float(cuts[best]), bounds[best]


def audit_by_component(
    run: Run,
    dataset: Dataset,
    neighbour: Dataset,
    expected: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    draws: int = 100_000,
) -> float:
    """Return a sharper lower bound on epsilon for mechanisms with one law on every component.

    Losses of independent components add up. So the loss of one component, pooled over all that
    differ (by 1), times their number is the loss of the whole. Holds at confidence 1 - FAILURE
    if the noise is independent and alike on all components, which other tests establish.
    """
    step = (expected[1] - expected[0]).reshape(-1)
    assert set(np.unique(step)) <= {-1, 0, 1}
    moved = np.flatnonzero(step)
    hits = []
    for data in (dataset, neighbour):
        shift = (run(data, draws).reshape(draws, -1) - expected[0].reshape(-1))[:, moved]
        hits.append(int(np.count_nonzero(shift * step[moved] <= 0)))
    trials = draws * len(moved)
    return len(moved) * log_ratio_bound(hits[0], hits[1], trials, trials)
