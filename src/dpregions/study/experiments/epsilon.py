"""The experiment `epsilon`: errors by epsilon. Not a private release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions.study import charts
from dpregions.study.datasets import Setting
from dpregions.study.experiments import errors
from dpregions.study.experiments.base import Experiment, Pictures, Source, varied

if TYPE_CHECKING:
    import pandas as pd

EPSILONS = (0.1, 0.4, 0.7, 1.0)


def _brief(table: pd.DataFrame) -> pd.DataFrame:
    by = ["share_percent", "epsilon"]
    return errors.in_columns(table, by, lambda key: f"{key[0]:.3g} %, ε = {key[1]:g}")


def _draw(table: pd.DataFrame, source: Source) -> Pictures:
    panels = list(
        dict.fromkeys(zip(table["dataset"], table["share_percent"].round(6), strict=True))
    )
    figure, axes = charts.new_figure(1, len(panels), 4.6, 4.2)
    for column, (dataset, share) in enumerate(panels):
        axis = axes[0, column]
        part = table[(table["dataset"] == dataset) & (table["share_percent"].round(6) == share)]
        charts.draw_lines(axis, part, "epsilon")
        axis.set_xticks(sorted(set(part["epsilon"])))
        axis.set_xlabel("epsilon")
        axis.set_title(charts.heading(part, f"{share:g} % of the area"))
        charts.error_axis(axis, column == 0)
    charts.add_legend(figure, charts.shown(table))
    yield "epsilon", figure


def _say(part: pd.DataFrame) -> str:
    small = part[part["share_percent"] == part["share_percent"].min()]
    at = [
        f"at epsilon = {epsilon:g} {errors.against(rows)}"
        for epsilon, rows in small.groupby("epsilon")
        if epsilon in (small["epsilon"].min(), small["epsilon"].max())
    ]
    return f"for questions of {small['share_percent'].iloc[0]:.3g} % {'; '.join(at)}."


EPSILON = Experiment(
    name="epsilon",
    title="Error by epsilon",
    about="10 x 10 cells, questions of 1 % (one cell) and of 10 % of the area. A smaller "
    "epsilon protects more, with more noise.",
    measure=errors.ERRORS,
    settings=lambda data: [Setting(data, 10, e) for e in EPSILONS] if varied(data) else [],
    columns=errors.COLUMNS,
    summary=lambda raw: errors.size_errors(raw, errors.SMALL[0], errors.LARGE[0]),
    brief=_brief,
    draw=_draw,
    say=_say,
)
