"""Recommendations: the least epsilon, and the cells to use with it, that meet a target.

Rests on busy places, in the least favourable of the kinds of cities: an empty square is answered
well by any noise. Asks for more rehearsals where an error passes the target between two epsilons
that are far apart, and reads the answer off the curve. It never sees data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dpregions.lengths import shown_length, shown_percent
from dpregions.planning.rehearsal import BUSY, PLACES, part_of, rehearse
from dpregions.privacy.budget import Budget

if TYPE_CHECKING:
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.planning.arguments import Query
    from dpregions.planning.rehearsal import Outcome, Progress, Trial
    from dpregions.planning.stand_ins import StandIn

STEP = 3.0
"""Epsilons are rehearsed this close, as a ratio, where one that meets the target is sought."""

EVERY_QUERY = "all"
"""The query of a recommendation that holds for all sizes asked about."""


@dataclass(frozen=True)
class Recommendation:
    """The least epsilon that meets a target, and the cells to use with it."""

    target: float
    query: str
    method: str
    cell: str | None
    """None where no cell size asked about answers the query."""
    epsilon: float | None
    """None where the target is not reachable."""
    most: float
    """The largest epsilon asked about."""
    less_may_do: bool = False
    """Met at the smallest epsilon asked about: less may do."""
    error: float = math.nan
    """Where it is not reachable, the least error at the largest epsilon."""
    note: str = ""

    def __str__(self) -> str:
        asked = "all these queries" if self.query == EVERY_QUERY else f"{self.query} queries"
        start = f"For {shown_percent(self.target)} error on {asked} in busy places: "
        if self.cell is None:
            return f"{start}not possible ({self.method}): {self.note}."
        if self.epsilon is None:
            return (
                f"{start}not reachable with epsilon up to {self.most:g} ({self.method}: "
                f"{shown_percent(self.error)} at best, with d = {self.cell})."
            )
        less = "; less may do" if self.less_may_do else ""
        note = f"; {self.note}" if self.note else ""
        return f"{start}d = {self.cell}, epsilon >= {self.epsilon:g} ({self.method}{less}{note})."


@dataclass(frozen=True)
class Asked:
    """What all rehearsals of a plan have in common."""

    grids: list[Grid]
    max_diameter: float | str
    n_regions: int
    methods: list[str]
    neighbours: Neighbours
    stand_ins: Sequence[StandIn]

    def rehearse(
        self,
        sizes: Sequence[Query],
        budgets: Sequence[Budget],
        progress: Progress,
        only: tuple[int, str] | None = None,
    ) -> dict[Trial, Outcome]:
        """Return the outcomes of all trials, or of one grid and method only."""
        first, grids = (0, self.grids) if only is None else (only[0], [self.grids[only[0]]])
        # A query smaller than a cell is rehearsed as one cell, and not shown.
        found = rehearse(
            grids,
            [[query.cells(grid) or (1, 1) for query in sizes] for grid in grids],
            self.stand_ins,
            max_diameter=self.max_diameter,
            n_regions=self.n_regions,
            budgets=budgets,
            methods=self.methods if only is None else [only[1]],
            neighbours=self.neighbours,
            progress=progress,
        )
        return {trial._replace(grid=trial.grid + first): out for trial, out in found.items()}


def with_finer_epsilons(
    asked: Asked,
    sizes: Sequence[Query],
    outcomes: dict[Trial, Outcome],
    target: float,
    progress: Progress,
) -> dict[Trial, Outcome]:
    """Return the outcomes with more epsilons where some query's error passes the target."""
    wanted: dict[tuple[int, str], list[Budget]] = {}
    for grid, method in {(trial.grid, trial.method): None for trial in outcomes}:
        between: dict[Budget, None] = {}
        for column, query in enumerate(sizes):
            if query.cells(asked.grids[grid]) is None:
                continue
            curve = _curve(outcomes, grid, method, column)
            for (low, above), (high, below) in pairwise(curve):
                if below <= target < above:
                    between |= dict.fromkeys(_between(low, high))
        if between:
            wanted[grid, method] = sorted(between, key=float)
    found = dict(outcomes)
    for i, (key, more) in enumerate(wanted.items()):
        part = part_of(progress, i / len(wanted), (i + 1) / len(wanted))
        found |= asked.rehearse(sizes, more, part, key)
    if progress is not None:
        progress(1.0)
    return found


def _between(low: float, high: float) -> list[Budget]:
    """Return epsilons between two, evenly in ratio and at most `STEP` apart."""
    n = math.ceil(math.log(high / low) / math.log(STEP) - 1e-9)
    return [Budget(float(f"{low * (high / low) ** (i / n):.2g}")) for i in range(1, n)]


def _curve(
    outcomes: dict[Trial, Outcome], grid: int, method: str, column: int
) -> list[tuple[float, float]]:
    """Return epsilon and error where it is least favourable, from small epsilons to large ones."""
    busy = PLACES.index(BUSY)
    points = [
        (float(trial.budget), max(outcome.error(kind, column, busy) for kind in outcome.errors))
        for trial, outcome in outcomes.items()
        if trial.grid == grid and trial.method == method and not isinstance(outcome, str)
    ]
    return sorted(points)


def advise(
    asked: Asked,
    sizes: Sequence[Query],
    outcomes: dict[Trial, Outcome],
    budgets: Sequence[Budget],
    target: float,
) -> Iterable[Recommendation]:
    """Return recommendations, query by query, and then for all queries at once."""
    together = [list(range(len(sizes)))] if len(sizes) > 1 else []
    for columns in [[i] for i in range(len(sizes))] + together:
        label = sizes[columns[0]].label if len(columns) == 1 else EVERY_QUERY
        for method in asked.methods:
            usable = _usable(asked, [sizes[i] for i in columns])
            curves = {grid: [_curve(outcomes, grid, method, i) for i in columns] for grid in usable}
            curves = {grid: found for grid, found in curves.items() if found[0]}
            yield _best(asked, label, method, curves, budgets, target, bool(usable))


def _usable(asked: Asked, queries: Sequence[Query]) -> list[int]:
    """Return the grids that answer queries: as they were asked, or else enlarged."""
    whole = [i for i, grid in enumerate(asked.grids) if all(q.fits(grid) for q in queries)]
    enlarged = [i for i, grid in enumerate(asked.grids) if all(q.cells(grid) for q in queries)]
    return whole or enlarged


def _best(
    asked: Asked,
    label: str,
    method: str,
    curves: dict[int, list[list[tuple[float, float]]]],
    budgets: Sequence[Budget],
    target: float,
    answered: bool,
) -> Recommendation:
    """Return the cells that need the least epsilon; of equals the finest, which answer more."""
    most, least = float(budgets[-1]), float(budgets[0])
    if not curves:
        why = "the method refuses it" if answered else "no cell size asked about answers them"
        return Recommendation(target, label, method, None, None, most, note=why)

    def shown(grid: int) -> str:
        return shown_length(asked.grids[grid].cell_size, asked.grids[grid])

    needed = {
        grid: max(least_epsilon(curve, target) for curve in found) for grid, found in curves.items()
    }
    best = min(needed, key=lambda grid: (needed[grid], grid))
    if math.isinf(needed[best]):
        at_most = {grid: max(curve[-1][1] for curve in found) for grid, found in curves.items()}
        best = min(at_most, key=lambda grid: at_most[grid])
        return Recommendation(target, label, method, shown(best), None, most, error=at_most[best])
    epsilon = needed[best]
    return Recommendation(
        target, label, method, shown(best), epsilon, most, less_may_do=epsilon <= least
    )


def least_epsilon(curve: Sequence[tuple[float, float]], target: float) -> float:
    """Return the epsilon from which on a curve of errors stays at or below a target.

    Interpolated between the two points about the target, both logarithms, and rounded up to
    two digits. Where errors fall much faster than noise does, the mechanism changes what it
    measures between the two: then the upper point is taken, which was rehearsed. Infinite
    where the last point is above the target.

    Examples
    --------
    >>> least_epsilon([(0.1, 0.4), (0.2, 0.2), (0.4, 0.1)], 0.15)
    0.27
    """
    above = [i for i, (_, error) in enumerate(curve) if error > target]
    if not above:
        return curve[0][0]
    last = above[-1]
    if last == len(curve) - 1:
        return math.inf
    (low, high_error), (high, low_error) = curve[last], curve[last + 1]
    step, fall = math.log(high / low), math.log(high_error / max(low_error, 1e-12))
    if fall > 2 * step:
        return high
    epsilon = low * math.exp(step * math.log(high_error / target) / fall)
    return min(_up_to_two_digits(epsilon), high)


def _up_to_two_digits(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.2g}")
