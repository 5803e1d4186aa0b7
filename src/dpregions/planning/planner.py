"""`plan`: how far answers will be off, before any budget is spent.

The mechanisms are rehearsed on made-up cities, or on a proxy that may be looked at; this module
reads the public parameters, asks for the rehearsals and makes rows of them. The data that will be
released have no way in, so planning costs no privacy, however often it is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.lengths import shown_area, shown_length
from dpregions.planning import arguments as given
from dpregions.planning.advice import Asked, Recommendation, advise, with_finer_epsilons
from dpregions.planning.arguments import square_grids
from dpregions.planning.expected import Expectation, Plan
from dpregions.planning.rehearsal import PLACES, part_of
from dpregions.planning.rehearsed import REHEARSED
from dpregions.planning.stand_ins import stand_ins
from dpregions.privacy.budget import Budget, PrivacyUnit

if TYPE_CHECKING:
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.planning.arguments import Query
    from dpregions.planning.rehearsal import Outcome, Progress, Trial
    from dpregions.privacy.budget import BudgetLike

extras.need("curator")

__all__ = ["Expectation", "Plan", "Recommendation", "plan", "square_grids"]

QUERIES = ("1%", "5%", "25%", "100%")
"""Sizes of queries where none are asked for: shares of the area."""


def plan(
    grids: Grid | Iterable[Grid],
    *,
    max_diameter: float | str,
    n_regions: int,
    epsilons: BudgetLike | Iterable[BudgetLike],
    queries: Iterable[float | str] = QUERIES,
    target: float | str | None = None,
    methods: str | Iterable[str] = tuple(REHEARSED),
    neighbours: Neighbours = "add-remove",
    shape: str | None = None,
    like: Any = None,
    progress: Progress = None,
) -> Plan:
    """Predict the errors of releases that were not made, without the data.

    Parameters
    ----------
    grids : Grid or several
        Of one area, with the cell sizes in question; see `square_grids`.
    max_diameter : float or str
        The bound on a region, in CRS units or as text. Most kinds of cities have regions of
        mixed sizes up to it, a third or half of it being typical.
    n_regions : int
        About how many regions there are; a public guess, not a count of the data.
    epsilons : number or several
        Above 20 they protect next to nothing, and a `SettingWarning` says so.
    queries : iterable of float or str
        Sizes of queries: sides of squares (``"2km"``) or shares of the area (``"5%"``). A
        square is enlarged to whole cells.
    target : float or str, optional
        The error aimed at, 0.05 or ``"5%"``: asks for recommendations.
    methods : {"footprint", "paper"} or several
    neighbours : {"add-remove", "replace-one"}
    shape : str, optional
        The kind of city, one of `dpregions.cities.KINDS`: ``"even"``, ``"districts"``,
        ``"skewed"`` and others. By default the range over several kinds is shown.
    like : path or regions, optional
        Regions that are public or a proxy, never the data that will be released: rehearsals
        draw their cities from them. Each row is one region.
    progress : callable, optional
        Told the share done.

    Returns
    -------
    Plan
        Its errors are medians of ``|answer - truth| / truth`` in busy places and in typical
        ones; an answer within half a region counts as off by half a region.

    Examples
    --------
    >>> from dpregions.planning.planner import plan, square_grids
    >>> made = plan(
    ...     square_grids("8km", ["2km"]), max_diameter="2km", n_regions=1000, epsilons=1,
    ...     queries=["4km"], methods="footprint", shape="even",
    ... )
    >>> made.rows[0].rows, 0 < made.rows[0].error < 1
    (2, True)
    """
    asked = Asked(
        grids=given.read_grids(grids),
        max_diameter=max_diameter,
        n_regions=given.read_regions_number(n_regions),
        methods=given.read_methods(methods, REHEARSED),
        neighbours=neighbours,
        stand_ins=stand_ins(shape, like),
    )
    PrivacyUnit(neighbours)  # which refuses an unknown one
    bound = given.read_bound(max_diameter, asked.grids)
    budgets = given.read_epsilons(epsilons)
    Budget.warn_large(budgets, stacklevel=2)
    sizes = given.read_queries(queries, asked.grids)
    aim = None if target is None else given.read_target(target)
    # A recommendation seldom needs more rehearsals than the table.
    share = 1.0 if aim is None else 0.9
    outcomes = asked.rehearse(sizes, budgets, part_of(progress, 0.0, share))
    rows = tuple(_rows(asked, sizes, outcomes))
    advice: tuple[Recommendation, ...] = ()
    if aim is not None:
        finer = with_finer_epsilons(asked, sizes, outcomes, aim, part_of(progress, share, 1.0))
        advice = tuple(advise(asked, sizes, finer, budgets, aim))
    area = shown_area(asked.grids[0])
    kinds = tuple(one.name for one in asked.stand_ins)
    return Plan(area, bound, asked.n_regions, neighbours, kinds, rows, advice)


def _rows(
    asked: Asked, sizes: Sequence[Query], outcomes: dict[Trial, Outcome]
) -> Iterable[Expectation]:
    def order(trial: Trial) -> tuple[int, int, float]:
        return asked.methods.index(trial.method), trial.grid, float(trial.budget)

    for trial in sorted(outcomes, key=order):
        grid, outcome = asked.grids[trial.grid], outcomes[trial]
        for (column, query), place in product(enumerate(sizes), PLACES):
            cells = query.cells(grid)
            rows, cols = cells or (0, 0)
            yield Expectation(
                trial.method,
                shown_length(grid.cell_size, grid),
                grid.cell_size,
                float(trial.budget),
                query.label,
                place,
                rows,
                cols,
                rows * cols / (grid.n_rows * grid.n_cols),
                **_figures(outcome, column, PLACES.index(place), cells is not None),
                note=_note(grid, query, outcome),
            )


def _figures(outcome: Outcome, column: int, place: int, answered: bool) -> dict[str, Any]:
    """Return the figures of an expectation: its error, where eight of ten lie, its certainty."""
    if isinstance(outcome, str) or not answered:
        names = ("error", "low", "high", "regions", "count", "uncertainty")
        return dict.fromkeys(names, math.nan) | {"by_kind": {}}
    errors = {kind: found[:, column, place] for kind, found in outcome.errors.items()}
    by_kind = {kind: float(np.median(found)) for kind, found in errors.items()}
    error = math.sqrt(min(by_kind.values()) * max(by_kind.values()))
    counts = [np.median(found[:, column, place]) for found in outcome.truths.values()]
    count = float(np.exp(np.log(np.maximum(counts, 1.0)).mean()))
    low, high = (float(q) for q in np.quantile(np.concatenate([*errors.values()]), [0.1, 0.9]))
    rng = np.random.default_rng(0)
    off = []
    for found in errors.values():
        drawn = found[rng.integers(0, len(found), (200, len(found)))]
        off.append(float(np.median(drawn, axis=1).std()) / float(np.median(found)))
    return {
        "error": error, "low": low, "high": high, "regions": error * count, "count": count,
        "by_kind": by_kind, "uncertainty": float(np.mean(off)),
    }  # fmt: skip


def _note(grid: Grid, query: Query, outcome: Outcome) -> str:
    cell = shown_length(grid.cell_size, grid)
    if isinstance(outcome, str):
        return f"not possible with d = {cell}: {outcome}"
    cells = query.cells(grid)
    if cells is None:
        return f"{query.label} is smaller than a cell of {cell}"
    if query.fits(grid):
        return ""
    answered = " x ".join(shown_length(n * grid.cell_size, grid) for n in cells)
    return f"{query.label} is enlarged to whole cells: {answered} with d = {cell}"
