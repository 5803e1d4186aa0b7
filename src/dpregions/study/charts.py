"""How a study's pictures look: one colour, marker and line per method, the same everywhere.

Colours are Okabe and Ito's, told apart by readers of every colour vision; ours and the paper's
steps are drawn through, baselines dashed. Knows methods and axes, not experiments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.plots import blank_figure
from dpregions.study.datasets import DATASETS
from dpregions.study.methods import EULER

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Style(NamedTuple):
    """How a method looks."""

    label: str
    colour: str
    marker: str
    line: str = "--"
    width: float = 1.3


STYLES = {
    EULER: Style("Euler (exact)", "#000000", "", "-", 2.5),
    "diff-priv": Style("DiffPriv", "#E69F00", "o", "-", 1.6),
    "lin-prog": Style("LinProg", "#F3B48B", "", "-", 5.5),
    "round": Style("Round", "#D55E00", "s", "-", 1.8),
    "footprint": Style("ours (footprint)", "#0072B2", "D", "-", 2.6),
    "cell counts": Style("cell counts", "#8C8C8C", "v"),
    "centroid points": Style("centroids (uniform grid)", "#009E73", "^"),
    "adaptive grid": Style("centroids (adaptive grid)", "#56B4E9", "P"),
    "quadtree": Style("centroids (quadtree)", "#CC79A7", "X"),
    "kd-tree": Style("centroids (kd-tree)", "#882255", "p"),
    "four corners": Style("four corners", "#A6761D", "<"),
}
"""In the order of legends; methods that are not here are in tables only."""

INK, PALE = "#22303c", "#cfd6db"

Text = Callable[[float], str]


def title_of(dataset: str) -> str:
    """Return a data set's name for readers."""
    return DATASETS[dataset].title if dataset in DATASETS else dataset


def label_of(method: str) -> str:
    """Return a method's or a step's name for readers."""
    return STYLES[method].label if method in STYLES else method


def shown(table: pd.DataFrame) -> list[str]:
    """Return the methods of a table that are drawn, in the order of legends."""
    present = set(table["method"])
    return [method for method in STYLES if method in present]


def new_figure(
    rows: int, columns: int, width: float, height: float, *, sharey: bool = False
) -> tuple[Figure, Any]:
    """Return a figure of rows and columns of axes, each of a width and height in inches."""
    size = max(width * columns, 6.8), height * rows + 0.6
    figure = blank_figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=sharey)


def two_rows(columns: int) -> tuple[Figure, Any]:
    """Return axes in two rows and some columns; a single column lies on its side."""
    if columns > 1:
        return new_figure(2, columns, 4.4, 3.7)
    figure, axes = new_figure(1, 2, 4.8, 3.7)
    return figure, axes.T


def cells_text(part: pd.DataFrame) -> str:
    """Return the side of the cells of a part of a table."""
    return f"d = {part['cell_km'].iloc[0]:.3g} km"


def heading(part: pd.DataFrame, *facts: str) -> str:
    """Return what a panel shows: its data set, facts about it, the side of its cells."""
    return ", ".join([title_of(part["dataset"].iloc[0]), *facts, cells_text(part)])


def draw_lines(axis: Any, part: pd.DataFrame, by: str) -> None:
    """Draw errors by a column, with bands; the truth, which errs by 0, as the floor."""
    for method in shown(part):
        if method == EULER:
            continue
        style, rows = STYLES[method], part[part["method"] == method].sort_values(by)
        axis.plot(
            rows[by], rows["error_percent"], color=style.colour, marker=style.marker or None,
            ls=style.line, lw=style.width, ms=4.5,
            zorder=2 if method == "lin-prog" else 4 if method == "footprint" else 3,
        )  # fmt: skip
        if style.line == "-" and method != "lin-prog":
            band = rows["low"], rows["high"]
            axis.fill_between(rows[by], *band, color=style.colour, alpha=0.15, lw=0)


def draw_bars(axis: Any, method: str, x: Any, rows: pd.DataFrame) -> None:
    """Draw a method's errors with bars that hold eight of ten repetitions."""
    if method == EULER:
        return
    style, y = STYLES[method], rows["error_percent"]
    spread = [y - rows["low"], rows["high"] - y]
    marker = style.marker or "_"
    axis.errorbar(x, y, spread, color=style.colour, fmt=marker, ms=4.5, lw=1.1, capsize=1.5)


def error_axis(axis: Any, labelled: bool) -> None:
    """Make an axis of errors: logarithmic, plain numbers, the truth as its floor."""
    axis.set_yscale("log")
    _plain_ticks(axis.yaxis)
    if labelled:
        axis.set_ylabel("median relative error, %")
    axis.grid(alpha=0.3)
    axis.title.set_size(9.5)
    axis.spines[["top", "right"]].set_visible(False)
    # Nothing is at 0 on a logarithmic axis: its floor stands for the truth.
    axis.spines["bottom"].set(linewidth=STYLES[EULER].width, color=STYLES[EULER].colour)


def _plain_ticks(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(NullFormatter())


def add_legend(figure: Figure, methods: list[str]) -> None:
    """Name the methods below the panels."""
    from matplotlib.lines import Line2D

    handles = []
    for method in methods:
        style = STYLES[method]
        label = f"{style.label}: no error, the floor" if method == EULER else style.label
        handles.append(
            Line2D(
                [], [], color=style.colour, marker=style.marker or None, ls=style.line,
                lw=style.width, ms=5, label=label,
            )
        )  # fmt: skip
    width = figure.get_size_inches()[0]
    columns = max(2, min(len(handles), int(width // 2)))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def draw_bar_chart(axis: Any, names: list[str], values: Any, text: Text) -> None:
    """Draw one bar a method, the first at the top, with its value beside it."""
    places = np.arange(len(names))
    axis.barh(places, values, color=[STYLES[name].colour for name in names], height=0.72)
    _name_rows(axis, names, values, values, text)


def draw_dots(axis: Any, names: list[str], rows: pd.DataFrame, column: str, text: Text) -> None:
    """Draw one dot per row on a logarithmic axis, which has no 0 for a bar to start from."""
    values, low, high = (rows[name] for name in (column, "low", "high"))
    for place, name in enumerate(names):
        colour = STYLES[name].colour if name in STYLES else INK
        value = values.iloc[place]
        spread = [[value - low.iloc[place]], [high.iloc[place] - value]]
        axis.axhline(place, color=PALE, lw=0.6, zorder=1)
        if value == 0:
            continue
        axis.errorbar(
            value, place, xerr=spread, fmt="o", color=colour, ms=7, lw=1.6, capsize=3, zorder=3
        )
    axis.set_xscale("log")
    _plain_ticks(axis.xaxis)
    _name_rows(axis, names, values, high, text)


def _name_rows(axis: Any, names: list[str], values: Any, ends: Any, text: Text) -> None:
    for place, (value, end) in enumerate(zip(values, ends, strict=True)):
        # 0 has no place on a logarithmic axis: its text stands at the left end.
        at, where = (end, "data") if end > 0 else (0, "axes fraction")
        axis.annotate(
            text(value), (at, place), (7, 0), xycoords=(where, "data"), size=8, color=INK,
            textcoords="offset points", va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    axis.set_yticks(range(len(names)), [label_of(name) for name in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0, labelsize=8.5)
    axis.spines[["top", "right"]].set_visible(False)
