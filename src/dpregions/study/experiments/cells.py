"""The experiment `cells`: errors by size of the grid's cells. Not a private release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions.study import charts
from dpregions.study.datasets import CABSPOTTING, TDRIVE, Setting
from dpregions.study.experiments import errors
from dpregions.study.experiments.base import Experiment, Pictures, Source, datasets_of, varied
from dpregions.study.statements import Finding, judged

if TYPE_CHECKING:
    import pandas as pd

SIDES = (30, 20, 10)
"""Cells a side, A/d."""


def _draw(table: pd.DataFrame, source: Source) -> Pictures:
    parts = datasets_of(table)
    figure, axes = charts.new_figure(1, len(parts), 5.6, 4.2)
    for axis, (dataset, part) in zip(axes[0], parts.items(), strict=True):
        charts.draw_lines(axis, part, "cells_a_side")
        sides = part.drop_duplicates("cells_a_side").sort_values("cells_a_side")
        texts = [
            f"A/d = {n}\nd = {d:.3g} km\nsensitivity {s}"
            for n, d, s in sides[["cells_a_side", "cell_km", "sensitivity"]].itertuples(index=False)
        ]
        axis.set_xticks(sides["cells_a_side"], texts)
        axis.set_title(f"{charts.title_of(dataset)}, questions of 1 % of the area")
        charts.error_axis(axis, True)
    charts.add_legend(figure, charts.shown(table))
    yield "cells", figure


def _say(part: pd.DataFrame) -> str:
    at = [
        f"on {n} x {n} cells (sensitivity {rows['sensitivity'].iloc[0]}) {errors.against(rows)}"
        for n, rows in part.groupby("cells_a_side", sort=False)
    ]
    return f"{'; '.join(at)}."


def _sensitivities(table: pd.DataFrame | None) -> Finding:
    settings = {
        25: Setting(TDRIVE, 20),
        49: Setting(TDRIVE, 30),
        9: Setting(TDRIVE, 10),
        729: Setting(CABSPOTTING, 20),
    }
    ours = [setting.sensitivity for setting in settings.values()]
    return judged(
        "Sensitivities 25, 49, 9 (T-Drive, A/d = 20, 30, 10) and 729 (Cabspotting, d = 0.16 km)",
        ", ".join(str(value) for value in ours),
        ours == list(settings),
        "k = ceil(B / d) is taken from exact fractions here.",
        "These hold for adding or removing a region. The paper defines neighbours by replacing "
        "one, for which the noise must be twice as wide.",
    )


CELLS = Experiment(
    name="cells",
    title="Error by size of the cells",
    about="Questions of 1 % of the area on 30 x 30, 20 x 20 and 10 x 10 cells. Smaller cells "
    "tell more, and one region then touches more of them.",
    measure=errors.ERRORS,
    settings=lambda data: [Setting(data, n) for n in SIDES] if varied(data) else [],
    columns=errors.COLUMNS,
    summary=lambda raw: errors.size_errors(raw, errors.SMALL[0]),
    brief=lambda table: errors.in_columns(table, ["cells_a_side"], "A/d = {}".format, "dataset"),
    draw=_draw,
    say=_say,
    judges=(_sensitivities,),
)
