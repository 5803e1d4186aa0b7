"""The experiment `coverage`: how often intervals hold, by decile. Not a private release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpregions.study import charts
from dpregions.study.coverage import interval_rows
from dpregions.study.coverage_figures import PROMISED, coverage_table
from dpregions.study.datasets import MAX_DIAMETER, exact_data
from dpregions.study.experiments.base import (
    WHERE,
    Experiment,
    Measure,
    Pictures,
    Source,
    Unit,
    datasets_of,
    main,
)
from dpregions.study.methods import OURS
from dpregions.study.words import percent, short

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.study.harness import Row

CONFIDENCE = 0.95


def _rows(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield one row for each query: its truth and its interval."""
    found = interval_rows(
        exact_data(unit.setting, source.kept),
        MAX_DIAMETER,
        epsilon=unit.setting.epsilon,
        releases=range(unit.first, unit.last),
        confidence=CONFIDENCE,
        seed=source.seed,
    )
    for values in found.to_dict("records"):
        yield {str(name): value for name, value in values.items()}


def _summary(raw: pd.DataFrame) -> pd.DataFrame:
    table = coverage_table(raw, ["size", "decile"]).reset_index()
    table["held_percent"] = 100 * table["held"]
    table["repetitions"] = raw["release"].nunique()
    return table.rename(columns={"n": "queries", "truth": "regions"})


def _draw(table: pd.DataFrame, source: Source) -> Pictures:
    parts = datasets_of(table)
    figure, axes = charts.new_figure(1, len(parts), 4.4, 3.6, sharey=True)
    for column, part in enumerate(parts.values()):
        axis = axes[0, column]
        for size, rows in part.groupby("size", sort=False):
            rows = rows.sort_values("decile")
            axis.plot(rows["decile"], rows["held_percent"], marker="o", ms=3.5, lw=1.2, label=size)
        axis.axhline(100 * CONFIDENCE, color=charts.INK, lw=1)
        axis.axhline(100 * PROMISED, color=charts.INK, lw=1, ls=":")
        axis.set_title(charts.heading(part))
        axis.set_xlabel("tenth of the questions, from empty to busy")
        axis.set_xticks(range(1, 11))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("intervals that hold the true count, %")
    axes[0, -1].legend(frameon=False, fontsize=8, title="size")
    yield "coverage", figure


def _say(part: pd.DataFrame) -> str:
    busy = part[part["decile"] == part["decile"].max()]
    least = part.sort_values("held_percent").iloc[0]
    return (
        f"{percent(_held(part))} of all intervals hold the true count, {percent(_held(busy))} in "
        f"the busiest tenth; least are {percent(least['held_percent'])} of "
        f"{least['queries']:.0f}, at {least['size']} in tenth {least['decile']:.0f}, "
        f"where about {short(least['regions'])} regions are."
    )


def _held(part: pd.DataFrame) -> float:
    return float((part["held_percent"] * part["queries"]).sum() / part["queries"].sum())


def _brief(table: pd.DataFrame) -> pd.DataFrame:
    index = ["dataset", "cell_km", "size"]
    wide = table.pivot_table(index=index, columns="decile", values="held_percent", sort=False)
    wide = wide.sort_index(axis=1)
    wide.columns = [f"tenth {decile}" for decile in wide.columns]
    return wide.reset_index()


COVERAGE = Experiment(
    name="coverage",
    title="How often intervals hold the true count, from empty places to busy ones",
    about="Intervals of 95 % of the footprint mechanism's releases, asked at places anywhere and "
    "at places where people are, as many of each. Of each size, questions are sorted into tenths "
    "by their true count: the tenth tenth is the busiest. Equal counts share a tenth.",
    measure=Measure("coverage", _rows, each=0.6),
    settings=main,
    columns=(
        *WHERE,
        "size",
        "decile",
        "held_percent",
        "queries",
        "regions",
        "width",
        "repetitions",
    ),
    summary=_summary,
    brief=_brief,
    draw=_draw,
    say=_say,
    needs=OURS,
)
