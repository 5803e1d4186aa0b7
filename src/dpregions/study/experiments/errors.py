"""How far answers are off: what the six experiments on errors share.

Study on exact data: not a private release. One draw of each method answers every question of
its repetition, so sizes, shapes, cells, epsilon and L1 distances are read from the same rows.
Noise and questions follow from the seed: equal seeds give equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dpregions.geometry.rectangles import Rectangles
from dpregions.study import charts
from dpregions.study.experiments.base import SPREAD, WHERE, Measure, Source, Unit, spread
from dpregions.study.harness import (
    ANYWHERE,
    PLACEMENTS,
    Question,
    Row,
    people_questions,
    sized_questions,
)
from dpregions.study.methods import BASELINES, EULER, OURS, ROUND
from dpregions.study.words import percent, times_as

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

SMALL = tuple(percent / 100 for percent in range(1, 11))
LARGE = tuple(percent / 100 for percent in range(10, 101, 10))
"""Sizes of questions, as shares of the area."""

COLUMNS = (*WHERE, "method", "share_percent", "height", "width", "error_percent", *SPREAD)


def errors(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield each method's median error for sizes and shapes of questions, and its L1 distance."""
    trial = source.trial(unit.setting)

    def ask(rng: np.random.Generator) -> Iterator[Question]:
        yield from questions(unit.setting.n, rng)
        # Last, so that the others are placed as they would be without them.
        yield from people_questions(sorted({*SMALL, *LARGE}), trial.data, rng)

    for repetition in range(unit.first, unit.last):
        yield from trial.errors(repetition, ask)


ERRORS = Measure("errors", errors, each=0.1)


def questions(n: int, rng: np.random.Generator) -> Iterator[Question]:
    """Yield what is asked on n x n cells in a repetition: every size, then every shape."""
    yield from sized_questions(sorted({*SMALL, *LARGE}), n, n, rng)
    for kind, area in shape_areas(n).items():
        for height, width in Rectangles(n, n).of_area(area):
            cells = Rectangles(n, n).placed(height, width, PLACEMENTS, rng)
            yield Question(kind, area / n**2, height, width, cells)


def shape_areas(n: int) -> dict[str, int]:
    """Return a small and a large area, in cells, whose shapes are compared on n x n cells.

    3 and 30 % of the area, with six shapes each at n = 20; a quarter and three quarters where
    3 % is less than a cell.
    """
    small, large = (0.03, 0.3) if n >= 10 else (0.25, 0.75)
    return {"small": round(small * n * n), "large": round(large * n * n)}


def error_rows(raw: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """Return the errors of some kinds of questions, in percent."""
    rows = raw[raw["question"].isin(kinds)].copy()
    rows["value"] *= 100
    by = ["method", "question", "share", "height", "width"]
    table = spread(rows.groupby(by, sort=False)["value"], "error_percent")
    table["share_percent"] = 100 * table["share"]
    return table


def size_errors(raw: pd.DataFrame, *shares: float, placed: str = ANYWHERE) -> pd.DataFrame:
    """Return the errors of near-square questions: of all sizes, or of some."""
    table = error_rows(raw, placed)
    if shares:
        table = table[table["share"].isin(shares)].reset_index(drop=True)
    return table


def in_columns(
    table: pd.DataFrame, by: list[str], heading: Callable[[Any], str], *rows: str
) -> pd.DataFrame:
    """Return a table of errors with one row per method, and a column per kind of question."""
    index = [*(rows or ("dataset", "cell_km")), "method"]
    wide = table.pivot_table(index=index, columns=by, values="error_percent", sort=False)
    if by == ["share_percent"]:
        wide = wide.sort_index(axis=1)
    wide.columns = [heading(key) for key in wide.columns]
    return wide.reset_index()


def against(part: pd.DataFrame) -> str:
    """Compare ours with Round and with the best baseline among rows of one question."""
    methods = set(part["method"])
    if OURS not in methods:
        best = min(methods - {EULER}, key=lambda m: _error(part, m))
        return f"{charts.label_of(best)} errs least, by {percent(_error(part, best))}"
    ours = _error(part, OURS)
    text = f"ours errs by {percent(ours)}"
    if ROUND in methods:
        theirs = _error(part, ROUND)
        text += f", Round by {percent(theirs)} ({times_as(theirs, ours)} ours)"
    present = [name for name in BASELINES if name in methods]
    if present:
        best = min(present, key=lambda name: _error(part, name))
        value = _error(part, best)
        text += f", the best baseline ({charts.label_of(best)}) by {percent(value)}"
        text += f" ({times_as(value, ours)} ours)"
    return text


def _error(part: pd.DataFrame, method: str) -> float:
    return float(part.loc[part["method"] == method, "error_percent"].median())
