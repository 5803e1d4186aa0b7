"""Rehearsals: the mechanisms themselves, run on made-up cities of the size that is planned.

Nothing here reads data: a city is made up from public parameters (the area, the bound, about
how many regions), its exact answers are known, and seeded noise is good enough to see how far
private answers will be off. What comes out is errors, never a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from dpregions import cities
from dpregions.errors import PrivacyError
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.paper.mechanism import Paper
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints, Numbers
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.mechanism import PreparedFootprint
    from dpregions.mechanisms.footprint.tree.prepared import PreparedTree
    from dpregions.privacy.budget import Budget

REPETITIONS, LEAST_REPETITIONS = 24, 4
PLACEMENTS = 100
"""Rectangles of each size in each repetition."""

INSIDE = 0.96
"""Share of the synthetic city's regions that touch its area."""

NEAR = 0.02
"""Noise of the total, of all regions, up to which it is taken to choose as the true one does."""

MANY_BODIES = 50_000
"""Regions up to which the bodies of a release are made, and not only their counts fitted."""

MOST_REGIONS = 200_000
"""Regions that are made up one by one; more are made up as several of each."""

MOST_COUNTS = 2_000_000
"""Counts of a repetition that are affordable; of a method, more are not rehearsed at all."""

Progress: TypeAlias = Callable[[float], None] | None

_WORK = 1_200_000
_LEAST_CITIES = 16
_FIRST_CITY = 7_000_000
_DRAWS = 4000
_GOLDEN = (math.sqrt(5) - 1) / 2


class Rehearsed(Protocol):
    """A mechanism with its public parameters, ready to be tried on cities."""

    size: int
    """How many counts a repetition handles."""

    def counts(self, city: ExactData, repetition: int) -> Numbers:
        """Return the counts that would be published of a city, with seeded noise."""

    def total(self, city: ExactData, repetition: int) -> float | None:
        """Return the answer to the whole area where its law is known, spread over that law.

        One draw of noise a repetition decides it, if it is left to chance: its median error
        over a few dozen would be off by a third.
        """


class RehearsedFootprint:
    """The footprint mechanism, with the levels it will choose for about that many regions.

    What it measures follows from its noisy total, and near a tie it may be one thing or the
    other: where the noise is large beside the regions, two totals take turns.
    """

    def __init__(
        self, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours, n_regions: int
    ) -> None:
        prepared = Footprint().prepare(grid, bound, budget, neighbours)
        scale = scale_for(prepared.first, prepared.sensitivity)
        # Quartiles of the noisy total where they may choose apart, or else its median.
        offs = np.log([1 / 2, 2]) * scale if scale > NEAR * n_regions else np.zeros(1)
        chosen = [prepared.strategy(n_regions * INSIDE + float(off)) for off in offs]
        made = {strategy: _Fixed(prepared.with_strategy(strategy)) for strategy in set(chosen)}
        self.variants = [made[strategy] for strategy in chosen]
        self.size = max(fixed.prepared.n_buckets for fixed in self.variants)

    def counts(self, city: ExactData, repetition: int) -> Numbers:
        """Return the counts of the bodies that would be published."""
        return self._variant(repetition).counts(city, StudyNoise(repetition))

    def total(self, city: ExactData, repetition: int) -> float:
        """Return a total from the law of the fit's."""
        place = ((repetition + 0.5) * _GOLDEN) % 1.0
        off = float(np.rint(self._variant(repetition).offs[int(place * _DRAWS)]))
        return max(city.n_regions + (off if repetition % 2 else -off), 0.0)

    def _variant(self, repetition: int) -> _Fixed:
        return self.variants[repetition % len(self.variants)]


@dataclass(frozen=True, eq=False)
class _Fixed:
    """The footprint mechanism with what it measures fixed."""

    prepared: PreparedFootprint | PreparedTree

    def counts(self, city: ExactData, noise: StudyNoise) -> Numbers:
        """Return the counts of the bodies that would be published."""
        tally = city.tally(self.prepared, self.prepared.tally().alphabet)
        if city.n_regions <= MANY_BODIES:
            return self.prepared.publish(tally, noise).counts
        # Of so many regions bodies would be made one by one, to round off less than one each.
        return self.prepared.expected_counts(tally, noise)

    @cached_property
    def offs(self) -> Floats:
        """Draws of how far the fitted total is off, either way, sorted.

        Its own draw and the sum of all below it, weighted by their variances.
        """
        own, fused = self.prepared.total_variances()
        # Two independent estimates of variances `own` and `other` fuse to 1/(1/own + 1/other).
        weight = fused / own
        rng = np.random.default_rng(0)
        alone = rng.laplace(0.0, math.sqrt(own / 2), _DRAWS)
        below = rng.normal(0.0, math.sqrt(max(fused * (1 - weight), 0.0)), _DRAWS)
        return np.sort(np.abs(weight * alone + below))


class RehearsedPaper:
    """The paper's mechanism."""

    def __init__(
        self, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours, n_regions: int
    ) -> None:
        self.size = grid.n_components
        if self.size > MOST_COUNTS:
            raise PrivacyError(
                f"{self.size:,} components are more than {MOST_COUNTS:,}, too many to rehearse"
            )
        self.prepared = Paper().prepare(grid, bound, budget, neighbours)

    def counts(self, city: ExactData, repetition: int) -> Numbers:
        """Return Round's counts."""
        return self.prepared.publish(city.counted, StudyNoise(repetition)).counts

    def total(self, city: ExactData, repetition: int) -> None:
        """Return nothing: what the fit adds to a sum of draws has no simple law."""


REHEARSED: Mapping[str, Callable[..., Rehearsed]] = {
    "footprint": RehearsedFootprint,
    "paper": RehearsedPaper,
}


def exact_city(kind: str, n_regions: int, seed: int, grid: Grid, max_diameter: Any) -> ExactData:
    """Return a made-up city of about `n_regions` on a grid.

    Outlines are made as intake makes them: hulls in integers, longer ones shrunk.
    """
    times = -(-n_regions // MOST_REGIONS)
    city = cities.made_up(kind, max(n_regions // times, 1), seed=seed)
    bound = Bound.of(grid, max_diameter, "shrink")
    places = city.places(grid, max_diameter)
    starts = np.arange(len(places) + 1) * places.shape[1]
    return ExactData(grid, bound, (Outlines.of(places.reshape(-1, 2), starts, grid, bound),), times)


class Trial(NamedTuple):
    """What is rehearsed: a grid (by its number), a method, an epsilon."""

    grid: int
    method: str
    budget: Budget


Outcome: TypeAlias = "Floats | str"
"""Errors, a row a repetition and a column a query size; or why the method refuses."""


def rehearse(
    grids: Sequence[Grid],
    sizes: Sequence[Sequence[tuple[int, int]]],
    *,
    max_diameter: float | str,
    n_regions: int,
    budgets: Sequence[Budget],
    methods: Sequence[str],
    neighbours: Neighbours,
    progress: Progress = None,
) -> dict[Trial, Outcome]:
    """Run methods on made-up cities and return how far their answers are off.

    Parameters
    ----------
    grids : sequence of Grid
        Of one area, with cells of several sizes.
    sizes : sequence
        For each grid the sizes of queries: rows and columns, in cells.
    max_diameter : float or str
    n_regions : int
    budgets : sequence of Budget
    methods : names of `REHEARSED`
    neighbours : {"add-remove", "replace-one"}
    progress : callable, optional
        Told the share done.

    Returns
    -------
    dict
        For each trial the median relative error over placements, by repetition and size.
    """
    trials = [Trial(*t) for t in product(range(len(grids)), methods, budgets)]
    # Repetitions are not known before the preparations: those count for a fifth.
    prepared = _steps(part_of(progress, 0.0, 0.2), len(trials))
    bounds = [Bound.of(grid, max_diameter, "shrink") for grid in grids]
    ready: dict[Trial, Rehearsed] = {}
    found: dict[Trial, Outcome] = {}
    for trial in trials:
        public = grids[trial.grid], bounds[trial.grid], trial.budget, neighbours, n_regions
        try:
            ready[trial] = REHEARSED[trial.method](*public)
        except PrivacyError as error:
            found[trial] = str(error)
        prepared()
    errors: dict[Trial, list[Floats]] = {trial: [] for trial in ready}
    times = {trial: _repetitions(ready[trial], n_regions) for trial in ready}
    repeated = _steps(part_of(progress, 0.2, 1.0), sum(times.values()))
    for repetition in range(max(times.values(), default=0)):
        for g, grid in enumerate(grids):
            now = [t for t in ready if t.grid == g and repetition < times[t]]
            if not now:
                continue
            seed = _FIRST_CITY + repetition
            city = exact_city("districts", n_regions, seed, grid, max_diameter)
            rng = np.random.default_rng([repetition, g])
            on = Rectangles(*grid.shape)
            asked = [on.placed(*size, PLACEMENTS, rng, turned=True) for size in sizes[g]]
            for trial in now:
                errors[trial].append(_errors(ready[trial], city, repetition, asked))
                repeated()
    return found | {trial: np.array(rows) for trial, rows in errors.items()}


def _repetitions(rehearsed: Rehearsed, n_regions: int) -> int:
    """Return how many repetitions are affordable; large grids and cities get fewer."""
    of_grid = max(_WORK // rehearsed.size, LEAST_REPETITIONS)
    of_city = max(_WORK // n_regions, _LEAST_CITIES)
    return min(of_grid, of_city, REPETITIONS)


def _errors(rehearsed: Rehearsed, city: ExactData, repetition: int, asked: list[Ints]) -> Floats:
    """Return the median relative error of each size of query."""
    released = SignedTable(rehearsed.counts(city, repetition))
    total = rehearsed.total(city, repetition)
    whole = np.array([0, city.grid.n_rows - 1, 0, city.grid.n_cols - 1])
    medians = []
    for queries in asked:
        answers = released.answers(queries)
        if total is not None and (queries[:, 0] == whole).all():
            answers = np.full(len(answers), total)
        medians.append(np.median(city.errors(answers, queries)))
    return np.array(medians)


def part_of(progress: Progress, start: float, end: float) -> Progress:
    """Return a progress that fills a stretch of another."""
    if progress is None:
        return None
    return lambda done: progress(start + done * (end - start))


def _steps(progress: Progress, n: int) -> Callable[[], None]:
    """Return what to call after each of n steps."""
    done = count(1)
    return lambda: None if progress is None else progress(next(done) / n)
