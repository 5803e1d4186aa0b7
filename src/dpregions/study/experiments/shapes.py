"""The experiment `shapes`: errors by shape of the question. Not a private release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.study import charts
from dpregions.study.experiments.base import Experiment, Pictures, Source, datasets_of, main
from dpregions.study.experiments.errors import COLUMNS, ERRORS, error_rows, in_columns
from dpregions.study.methods import OURS, ROUND
from dpregions.study.words import percent

if TYPE_CHECKING:
    import pandas as pd


def _brief(table: pd.DataFrame) -> pd.DataFrame:
    return in_columns(table, ["size", "height", "width"], lambda key: f"{key[1]} x {key[2]}")


def _draw(table: pd.DataFrame, source: Source) -> Pictures:
    parts = datasets_of(table)
    figure, axes = charts.two_rows(len(parts))
    for column, mine in enumerate(parts.values()):
        for row, size in enumerate(("small", "large")):
            part = mine[mine["size"] == size]
            axis, methods = axes[row, column], charts.shown(part)
            shapes = list(dict.fromkeys(zip(part["height"], part["width"], strict=True)))
            for place, method in enumerate(methods):
                rows = part[part["method"] == method]
                # Side by side, so that the bars can be told apart.
                shift = 0.055 * (place - (len(methods) - 1) / 2)
                charts.draw_bars(axis, method, np.arange(len(rows)) + shift, rows)
            axis.set_xticks(range(len(shapes)), [f"{h} x {w}" for h, w in shapes])
            share = part["share_percent"].iloc[0]
            axis.set_title(charts.heading(part, f"{share:.3g} % of the area"), size=9)
            axis.set_xlabel("height x width, cells")
            charts.error_axis(axis, column == 0)
    charts.add_legend(figure, charts.shown(table))
    yield "shapes", figure


def _say(part: pd.DataFrame) -> str:
    sentences = []
    for size, rows in part.groupby("size", sort=False):
        text = []
        for method in (OURS, ROUND):
            mine = rows[rows["method"] == method].sort_values("error_percent")
            if mine.empty:
                continue
            best, worst = mine.iloc[0], mine.iloc[-1]
            text.append(
                f"{charts.label_of(method)} errs least at {best['height']} x {best['width']} "
                f"({percent(best['error_percent'])}) and most at {worst['height']} x "
                f"{worst['width']} ({percent(worst['error_percent'])})"
            )
        area = rows["share_percent"].iloc[0]
        sentences.append(f"Among {size} questions ({area:.3g} % of the area) {'; '.join(text)}.")
    return " ".join(sentences)


SHAPES = Experiment(
    name="shapes",
    title="Error by shape of the question",
    about="All heights and widths of the same area, in cells, at random places. Bars hold "
    "eight of ten repetitions.",
    measure=ERRORS,
    settings=main,
    columns=(*COLUMNS, "size"),
    summary=lambda raw: error_rows(raw, "small", "large").rename(columns={"question": "size"}),
    brief=_brief,
    draw=_draw,
    say=_say,
)
