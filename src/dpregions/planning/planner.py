"""`plan`: how far answers will be off, before any budget is spent, from public parameters alone.

The mechanisms are rehearsed on made-up cities (`study.rehearsal`); this module asks for the
rehearsals and makes a table and a recommendation of them. It has no argument that could hold
data and opens no file, so planning costs no privacy, however often it is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.lengths import shown_area, shown_length, shown_percent
from dpregions.planning import arguments as given
from dpregions.planning.advice import Asked, Recommendation, advise, with_finer_epsilons
from dpregions.planning.arguments import square_grids
from dpregions.planning.rehearsal import REHEARSED, part_of
from dpregions.privacy.budget import Budget, PrivacyUnit

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.planning.arguments import Query
    from dpregions.planning.rehearsal import Outcome, Progress, Trial
    from dpregions.privacy.budget import BudgetLike

__all__ = ["Expectation", "Plan", "Recommendation", "plan", "square_grids"]

QUERIES = ("1%", "5%", "25%", "100%")
"""Sizes of queries where none are asked for: shares of the area."""


@dataclass(frozen=True)
class Expectation:
    """The error to expect of one method at one cell size, epsilon and size of query."""

    method: str
    cell: str
    cell_size: float
    epsilon: float
    query: str
    rows: int
    """Cells that answer the query; 0 where it is smaller than a cell."""
    cols: int
    share: float
    """Of the area, as it is answered."""
    error: float
    """Median relative error; NaN where there is none to expect."""
    low: float
    """Eight of ten rehearsals lie between this and `high`."""
    high: float
    uncertainty: float
    """Relative standard error of `error`, from having rehearsed so many times and no more."""
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What to expect of a release, by method, cell size, epsilon and size of query.

    Made by `plan`; print it, or take `to_dataframe()`.

    Attributes
    ----------
    area, max_diameter : str
    n_regions : int
    neighbours : str
    rows : tuple of Expectation
    recommendations : tuple of Recommendation
        Empty without a target.
    """

    area: str
    max_diameter: str
    n_regions: int
    neighbours: Neighbours
    rows: tuple[Expectation, ...]
    recommendations: tuple[Recommendation, ...] = ()

    def to_dataframe(self) -> pd.DataFrame:
        """Return the rows as a table."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain types, without NaN, as JSON wants it."""
        return _plain(asdict(self))

    @property
    def uncertainty(self) -> float:
        """The median over rows of their Monte Carlo standard error; NaN where all refuse."""
        known = [row.uncertainty for row in self.rows if not math.isnan(row.uncertainty)]
        return float(np.median(known)) if known else math.nan

    def __str__(self) -> str:
        head = (
            f"Median relative error to expect, for about {self.n_regions:,} regions up to "
            f"{self.max_diameter} across in {self.area}\n({self.neighbours}; rehearsed on made-up "
            f"cities, no data was read)\n"
        )
        notes = [row.note for row in self.rows if row.note]
        foot = [f"* {note}" for note in dict.fromkeys(notes)]
        if not math.isnan(self.uncertainty):
            foot.append(
                f"Each figure is uncertain by about {100 * self.uncertainty:.0f} % of itself "
                f"(Monte Carlo); a real city may differ by more."
            )
        advice = [str(one) for one in self.recommendations]
        if advice and notes:
            advice.append("Cells that would enlarge or cannot answer a query (*) are not advised.")
        return "\n".join([head, *_table(self.rows), "", *foot, *([""] * bool(advice)), *advice])


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
    progress: Progress = None,
) -> Plan:
    """Predict the errors of releases that were not made, from public parameters alone.

    Parameters
    ----------
    grids : Grid or several
        Of one area, with the cell sizes in question; see `square_grids`.
    max_diameter : float or str
        The bound on a region, in CRS units or as text. Regions are made up in mixed sizes up
        to it, half of it being typical.
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
    progress : callable, optional
        Told the share done.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from dpregions.planning.planner import plan, square_grids
    >>> made = plan(
    ...     square_grids("8km", ["2km"]), max_diameter="2km", n_regions=1000, epsilons=1,
    ...     queries=["4km"], methods="footprint",
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
    )
    PrivacyUnit(neighbours)  # which refuses an unknown one
    bound = given.read_bound(max_diameter, asked.grids)
    budgets = given.read_epsilons(epsilons)
    Budget.warn_large(budgets, stacklevel=2)
    sizes = given.read_queries(queries, asked.grids)
    aim = None if target is None else given.read_target(target)
    # The search for a recommendation takes about as long again as the table.
    share = 1.0 if aim is None else 0.5
    outcomes = asked.rehearse(sizes, budgets, part_of(progress, 0.0, share))
    rows = tuple(_rows(asked, sizes, outcomes))
    advice: tuple[Recommendation, ...] = ()
    if aim is not None:
        finer = with_finer_epsilons(asked, sizes, outcomes, aim, part_of(progress, share, 1.0))
        advice = tuple(advise(asked, sizes, finer, budgets, aim))
    area = shown_area(asked.grids[0])
    return Plan(area, bound, asked.n_regions, neighbours, rows, advice)


def _rows(
    asked: Asked, sizes: Sequence[Query], outcomes: dict[Trial, Outcome]
) -> Iterable[Expectation]:
    def order(trial: Trial) -> tuple[int, int, float]:
        return asked.methods.index(trial.method), trial.grid, float(trial.budget)

    for trial in sorted(outcomes, key=order):
        grid, outcome = asked.grids[trial.grid], outcomes[trial]
        for column, query in enumerate(sizes):
            cells = query.cells(grid)
            rows, cols = cells or (0, 0)
            yield Expectation(
                trial.method,
                shown_length(grid.cell_size, grid),
                grid.cell_size,
                float(trial.budget),
                query.label,
                rows,
                cols,
                rows * cols / (grid.n_rows * grid.n_cols),
                *_summary(outcome, column, cells is not None),
                _note(grid, query, outcome),
            )


def _summary(outcome: Outcome, column: int, answered: bool) -> tuple[float, float, float, float]:
    """Return the median error, where eight of ten lie, and how uncertain the median is."""
    if isinstance(outcome, str) or not answered:
        return (math.nan,) * 4
    errors = outcome[:, column]
    middle = float(np.median(errors))
    low, high = (float(q) for q in np.quantile(errors, [0.1, 0.9]))
    drawn = np.random.default_rng(0).integers(0, len(errors), (200, len(errors)))
    off = float(np.median(errors[drawn], axis=1).std())
    return middle, low, high, off / middle if middle > 0 else 0.0


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


def _table(rows: Sequence[Expectation]) -> list[str]:
    """Return rows as lines of text, one a method, cell size and epsilon."""
    queries = list(dict.fromkeys(row.query for row in rows))
    lines = [["method", "cell", "epsilon", *queries]]
    grouped: dict[tuple[str, str, float], list[str]] = {}
    for row in rows:
        mark = "*" if row.note else " "
        shown = "-" if math.isnan(row.error) else shown_percent(row.error)
        grouped.setdefault((row.method, row.cell, row.epsilon), []).append(shown + mark)
    lines += [[m, cell, f"{eps:g}", *cells] for (m, cell, eps), cells in grouped.items()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
