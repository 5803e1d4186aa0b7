"""The experiment `l1`: how far whole histograms are from the exact one. Not a private release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions.study import charts
from dpregions.study.experiments import base
from dpregions.study.experiments.errors import ERRORS
from dpregions.study.methods import EULER

if TYPE_CHECKING:
    import pandas as pd


def _summary(raw: pd.DataFrame) -> pd.DataFrame:
    rows = raw[raw["question"] == "l1"]
    reference = rows[rows["method"] == "diff-priv"].set_index("repetition")["value"]
    relative = rows.assign(relative=rows["value"] / rows["repetition"].map(reference))
    table = base.spread(relative.groupby("method", sort=False)["relative"], "relative_l1")
    table["l1"] = table["method"].map(rows.groupby("method")["value"].median())
    return table


def _draw(table: pd.DataFrame, source: base.Source) -> base.Pictures:
    parts, methods = base.datasets_of(table), charts.shown(table)
    figure, axes = charts.new_figure(1, len(parts), 4.2, 0.42 * len(methods) + 1.6, sharey=True)
    for axis, mine in zip(axes[0], parts.values(), strict=True):
        part = mine.set_index("method").loc[methods]
        charts.draw_dots(axis, methods, part, "relative_l1", "{:.3g}".format)
        axis.set_xlim(table["relative_l1"][table["method"] != EULER].min() / 2, None)
        axis.set_xlim(None, 4 * table["relative_l1"].max())
        axis.axvline(1, color=charts.STYLES["diff-priv"].colour, lw=1, zorder=1)
        sensitivity = part["sensitivity"].iloc[0]
        axis.set_title(f"{charts.heading(part)}, sensitivity {sensitivity}", size=9)
        axis.set_xlabel("L1 distance from the exact histogram,\nrelative to DiffPriv's")
    yield "l1", figure


def _say(part: pd.DataFrame) -> str:
    near = part[part["method"] != EULER].sort_values("relative_l1")
    near = near[near["method"].isin(charts.STYLES)]
    values = zip(near["method"], near["relative_l1"], strict=True)
    order = [f"{charts.label_of(method)} {value:.3g}" for method, value in values]
    return f"from the nearest to the farthest, DiffPriv being 1: {', '.join(order)}."


L1 = base.Experiment(
    name="l1",
    title="Differences between histograms",
    about="The sum over all faces, edges and vertices of how far each is from the exact Euler "
    "histogram, relative to that of DiffPriv in the same repetition, on 20 x 20 cells. A "
    "baseline has no edges and vertices of its own: they are those that its answers to "
    "one, two and four cells imply.",
    measure=ERRORS,
    settings=base.fine,
    columns=(*base.WHERE, "method", "l1", "relative_l1", *base.SPREAD),
    summary=_summary,
    draw=_draw,
    say=_say,
    needs="paper",
)
