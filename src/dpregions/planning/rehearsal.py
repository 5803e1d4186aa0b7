"""Rehearsals: the mechanisms themselves, run on what stands in for the data.

Its exact answers are known, and seeded noise is good enough to see how far private answers will be
off: where people are, and anywhere that is not empty. What comes out is errors, never a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.outlines import Bound
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.rehearsed import REHEARSED

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.planning.exact_data import Answering, ExactData
    from dpregions.planning.rehearsed import Rehearsed
    from dpregions.planning.stand_ins import StandIn
    from dpregions.privacy.budget import Budget

REPETITIONS, LEAST_REPETITIONS = 24, 4
"""How many cities are rehearsed on, of all kinds together."""

PLACEMENTS = 100
"""Rectangles of each size at each kind of places in each repetition."""

BUSY, TYPICAL = "busy", "typical"
PLACES = (BUSY, TYPICAL)
"""Busy: about a region, each as likely as any other. Typical: anywhere, if a region is there."""

LEAST_OFF = 0.5
"""An answer that is nearer to the truth counts as off by half a region."""

Progress: TypeAlias = Callable[[float], None] | None

_WORK = 1_200_000
_LEAST_CITIES = 16
_FIRST_CITY = 7_000_000


class Trial(NamedTuple):
    """What is rehearsed: a grid (by its number), a method, an epsilon."""

    grid: int
    method: str
    budget: Budget


class Tried(NamedTuple):
    """What came of it: arrays of repetitions x sizes of queries x `PLACES`, for each kind."""

    errors: dict[str, Floats]
    """The median relative error over placements."""
    truths: dict[str, Floats]
    """The median true count over placements."""

    def error(self, kind: str, query: int, place: int) -> float:
        """Return the median error over repetitions."""
        return float(np.median(self.errors[kind][:, query, place]))


Outcome: TypeAlias = "Tried | str"
"""What came of a trial, or why the method refuses."""


def rehearse(
    grids: Sequence[Grid],
    sizes: Sequence[Sequence[tuple[int, int]]],
    stand_ins: Sequence[StandIn],
    *,
    max_diameter: float | str,
    n_regions: int,
    budgets: Sequence[Budget],
    methods: Sequence[str],
    neighbours: Neighbours,
    progress: Progress = None,
) -> dict[Trial, Outcome]:
    """Run methods on what stands in for the data and return how far their answers are off.

    Parameters
    ----------
    grids : sequence of Grid
        Of one area, with cells of several sizes.
    sizes : sequence
        For each grid the sizes of queries: rows and columns, in cells.
    stand_ins : sequence of StandIn
    max_diameter : float or str
    n_regions : int
    budgets : sequence of Budget
    methods : names of `REHEARSED`
    neighbours : {"add-remove", "replace-one"}
    progress : callable, optional
        Told the share done.
    """
    trials = [Trial(*t) for t in product(range(len(grids)), methods, budgets)]
    # Repetitions are not known before the preparations: those count for half.
    prepared = _steps(part_of(progress, 0.0, 0.5), len(trials))
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
    tried: dict[Trial, dict[str, list[Floats]]] = {
        trial: {one.name: [] for one in stand_ins} for trial in ready
    }
    times = {trial: _repetitions(ready[trial], n_regions, len(stand_ins)) for trial in ready}
    repeated = _steps(part_of(progress, 0.5, 1.0), sum(times.values()) * len(stand_ins))
    for repetition in range(max(times.values(), default=0)):
        for stand_in, (g, grid) in product(stand_ins, enumerate(grids)):
            now = [t for t in ready if t.grid == g and repetition < times[t]]
            if not now:
                continue
            city = stand_in.on(grid, max_diameter, n_regions, _FIRST_CITY + repetition)
            rng = np.random.default_rng([repetition, g])
            asked = [asked_places(city, size, rng) for size in sizes[g]]
            for trial in now:
                off = _off(ready[trial], city, repetition, asked)
                tried[trial][stand_in.name].append(off)
                repeated()
    for trial, kinds in tried.items():
        both = {kind: np.array(rows) for kind, rows in kinds.items()}
        errors, truths = ({k: rows[..., i] for k, rows in both.items()} for i in (0, 1))
        found[trial] = Tried(errors, truths)
    return found


def asked_places(
    city: ExactData, size: tuple[int, int], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return queries of a size at the `PLACES` of a city."""
    busy = city.placed_as_people(*size, PLACEMENTS, rng, turned=True)
    anywhere = Rectangles(*city.grid.shape).placed(*size, 4 * PLACEMENTS, rng, turned=True)
    held = anywhere[:, city.truth.answers(anywhere) > 0][:, :PLACEMENTS]
    return busy, held if held.shape[1] else busy


def place_errors(answers: Floats, truth: Floats) -> tuple[float, float]:
    """Return the median of errors relative to the truth, and the median truth.

    An error below half a region counts as half, so that none is 0.
    """
    off = np.maximum(np.abs(answers - truth), LEAST_OFF) / np.maximum(truth, 1.0)
    return float(np.median(off)), float(np.median(truth))


def _off(
    rehearsed: Rehearsed, city: ExactData, repetition: int, asked: list[tuple[Ints, Ints]]
) -> Floats:
    """Return the median error and truth of each size of query at each kind of places."""
    released: Answering = SignedTable(rehearsed.counts(city, repetition))
    total = rehearsed.total(city, repetition)
    whole = np.array([0, city.grid.n_rows - 1, 0, city.grid.n_cols - 1])
    found = []
    for places in asked:
        of_size = []
        for queries in places:
            answers = np.asarray(released.answers(queries), np.float64)
            if total is not None and (queries[:, 0] == whole).all():
                answers = np.full(len(answers), total)
            of_size.append(place_errors(answers, city.truth.answers(queries)))
        found.append(of_size)
    return np.array(found)


def _repetitions(rehearsed: Rehearsed, n_regions: int, kinds: int) -> int:
    """Return how many repetitions of each kind are affordable; large grids and cities get fewer."""
    of_grid = max(_WORK // rehearsed.size, LEAST_REPETITIONS)
    of_city = max(_WORK // n_regions, _LEAST_CITIES)
    return -(-min(of_grid, of_city, REPETITIONS) // kinds)


def part_of(progress: Progress, start: float, end: float) -> Progress:
    """Return a progress that fills a stretch of another."""
    if progress is None:
        return None
    return lambda done: progress(start + done * (end - start))


def _steps(progress: Progress, n: int) -> Callable[[], None]:
    """Return what to call after each of n steps."""
    done = count(1)
    return lambda: None if progress is None else progress(next(done) / n)
