"""Pictures of a study's tables: one colour, marker and line a method, the same everywhere.

Colours are Okabe and Ito's, told apart by readers of every colour vision; ours and the paper's
steps are drawn through, baselines dashed. Draws tables and one user's fixes; computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.study.datasets import DATASETS, MAX_DIAMETER
from dpregions.study.measures import EULER, PREPARATION, one_user

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpregions.study.measures import Source


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
    "centroid points": Style("centroids, uniform grid", "#009E73", "^"),
    "adaptive grid": Style("centroids, adaptive grid", "#56B4E9", "P"),
    "quadtree": Style("centroids, quadtree", "#CC79A7", "X"),
    "four corners": Style("four corners", "#A6761D", "<"),
}
"""In the order of legends; methods that are not here are in tables only."""

INK, PALE = "#22303c", "#cfd6db"

Pictures = Iterator[tuple[str, "Figure"]]


def figures_of(name: str, table: pd.DataFrame, source: Source) -> Pictures:
    """Yield the pictures of an experiment's table, each with a name for its file."""
    if name == "extraction":
        yield from _extraction(table, source)
    else:
        yield from DRAWINGS[name](table)


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


def _sizes(table: pd.DataFrame) -> Pictures:
    panels = []
    for dataset in dict.fromkeys(table["dataset"]):
        mine = table[table["dataset"] == dataset]
        panels.append((dataset, mine["cells_a_side"].max(), mine["cells_a_side"].min()))
    figure, axes = _two_rows(len(panels))
    for column, (dataset, fine, coarse) in enumerate(panels):
        for row, (n, low, high) in enumerate(((fine, 0.9, 10.1), (coarse, 9.9, 100.1))):
            part = table[(table["dataset"] == dataset) & (table["cells_a_side"] == n)]
            part = part[part["share_percent"].between(low, high)]
            axis = axes[row, column]
            for method in shown(part):
                rows = part[part["method"] == method]
                _line(axis, method, rows["share_percent"], rows)
            axis.set_title(f"{title_of(dataset)}, {_cells(part)}")
            axis.set_xlabel("size of the question, % of the area")
            axis.set_xticks([1, 2, 4, 6, 8, 10] if row == 0 else [10, 20, 40, 60, 80, 100])
            _error_axis(axis, column == 0)
    _legend(figure, shown(table))
    yield "sizes", figure


def _shapes(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    figure, axes = _two_rows(len(datasets))
    for column, dataset in enumerate(datasets):
        for row, size in enumerate(("small", "large")):
            part = table[(table["dataset"] == dataset) & (table["size"] == size)]
            axis, methods = axes[row, column], shown(part)
            shapes = list(dict.fromkeys(zip(part["height"], part["width"], strict=True)))
            for place, method in enumerate(methods):
                rows = part[part["method"] == method]
                # Side by side, so that the bars can be told apart.
                shift = 0.055 * (place - (len(methods) - 1) / 2)
                _bars(axis, method, np.arange(len(rows)) + shift, rows)
            axis.set_xticks(range(len(shapes)), [f"{h} x {w}" for h, w in shapes])
            share = part["share_percent"].iloc[0]
            axis.set_title(
                f"{title_of(dataset)}, {share:.3g} % of the area, {_cells(part)}", size=9
            )
            axis.set_xlabel("height x width, cells")
            _error_axis(axis, column == 0)
    _legend(figure, shown(table))
    yield "shapes", figure


def _cells_errors(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    figure, axes = _figure(1, len(datasets), 5.6, 4.2)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[table["dataset"] == dataset]
        for method in shown(part):
            rows = part[part["method"] == method].sort_values("cells_a_side")
            _line(axis, method, rows["cells_a_side"], rows)
        sides = part.drop_duplicates("cells_a_side").sort_values("cells_a_side")
        texts = [
            f"A/d = {n}\nd = {d:.3g} km\nsensitivity {s}"
            for n, d, s in zip(
                sides["cells_a_side"], sides["cell_km"], sides["sensitivity"], strict=True
            )
        ]
        axis.set_xticks(sides["cells_a_side"], texts)
        axis.set_title(f"{title_of(dataset)}, questions of 1 % of the area")
        _error_axis(axis, True)
    _legend(figure, shown(table))
    yield "cells", figure


def _epsilon_errors(table: pd.DataFrame) -> Pictures:
    panels = list(
        dict.fromkeys(zip(table["dataset"], table["share_percent"].round(6), strict=True))
    )
    figure, axes = _figure(1, len(panels), 4.6, 4.2)
    for column, (dataset, share) in enumerate(panels):
        axis = axes[0, column]
        part = table[(table["dataset"] == dataset) & (table["share_percent"].round(6) == share)]
        for method in shown(part):
            rows = part[part["method"] == method].sort_values("epsilon")
            _line(axis, method, rows["epsilon"], rows)
        axis.set_xticks(sorted(set(part["epsilon"])))
        axis.set_xlabel("epsilon")
        axis.set_title(f"{title_of(dataset)}, {share:g} % of the area, {_cells(part)}")
        _error_axis(axis, column == 0)
    _legend(figure, shown(table))
    yield "epsilon", figure


def _l1(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    methods = [method for method in shown(table) if method != EULER]
    figure, axes = _figure(1, len(datasets), 4.2, 0.42 * len(methods) + 1.6, sharey=True)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[table["dataset"] == dataset].set_index("method").loc[methods]
        _dots(axis, methods, part["relative_l1"], part["low"], part["high"], "{:.3g}")
        axis.set_xlim(table["relative_l1"][table["method"] != EULER].min() / 2, None)
        axis.set_xlim(None, 4 * table["relative_l1"].max())
        axis.axvline(1, color=STYLES["diff-priv"].colour, lw=1, zorder=1)
        axis.set_title(
            f"{title_of(dataset)}, {_cells(part)}, sensitivity {part['sensitivity'].iloc[0]}",
            size=9,
        )
        axis.set_xlabel("L1 distance from the exact histogram,\nrelative to DiffPriv's")
    yield "l1", figure


_KINDS = {
    "C1_percent": "C1 violated, %",
    "C2_percent": "C2 violated, %",
    "C3_percent": "C3 violated, %",
    "negative_percent": "negative\nanswers, %",
    "non_monotone_percent": "smaller rectangle\nanswers more, %",
    "next_non_monotone_percent": "so does one without\na row or column, %",
}


def _consistency(table: pd.DataFrame) -> Pictures:
    datasets, methods = list(dict.fromkeys(table["dataset"])), shown(table)
    height = 0.36 * len(methods) + 1.1
    figure, axes = _figure(len(datasets), len(_KINDS), 2.35, height, sharey=True)
    for line, dataset in zip(axes, datasets, strict=True):
        part = table[table["dataset"] == dataset].set_index("method").loc[methods]
        for axis, (kind, title) in zip(line, _KINDS.items(), strict=True):
            _bar_chart(axis, methods, part[kind], "{:.2g}")
            axis.set_xlim(0, 1.3 * max(table[kind].max(), 1e-9))
            axis.set_title(title, size=9)
            axis.set_xticks([])
            axis.spines["bottom"].set_visible(False)
        line[0].set_ylabel(f"{title_of(dataset)}, {_cells(part)}", size=9)
    yield "consistency", figure


def _times(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    steps = [step for step in (*PREPARATION, *STYLES) if step in set(table["step"])]
    figure, axes = _figure(1, len(datasets), 4.2, 0.42 * len(steps) + 1.5, sharey=True)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[table["dataset"] == dataset].set_index("step").loc[steps]
        _dots(axis, steps, part["seconds"], part["low"], part["high"], "{:.2g} s")
        axis.set_xlim(table["seconds"].min() / 3, table["seconds"].max() * 12)
        axis.axvline(1, color=PALE, lw=1, zorder=1)
        axis.set_xlabel("seconds")
        axis.set_title(f"{title_of(dataset)}, {_cells(part)}")
    yield "times", figure


def _density(table: pd.DataFrame) -> Pictures:
    for dataset in dict.fromkeys(table["dataset"]):
        part = table[table["dataset"] == dataset]
        methods = shown(part)
        columns = (len(methods) + 1) // 2
        figure, axes = _figure(2, columns, 2.5, 2.5)
        n, side = part["cells_a_side"].iloc[0], part["cell_km"].iloc[0]
        top = part.loc[part["method"] == EULER, "regions"].max()
        image: Any = None
        for axis, method in zip(axes.flat, methods, strict=False):
            rows = part[part["method"] == method]
            cells = rows.pivot(index="row", columns="col", values="regions").to_numpy()
            # Square roots: a few crowded cells would leave the rest of the city in one colour.
            image = axis.imshow(
                np.sqrt(np.clip(cells, 0, top)),
                origin="lower",
                cmap="cividis",
                vmin=0,
                vmax=np.sqrt(top),
                extent=(0, n * side, 0, n * side),
            )
            axis.set_title(label_of(method), size=9)
            axis.set_xticks([])
            axis.set_yticks([])
        for axis in axes.flat[len(methods) :]:
            axis.set_visible(False)
        bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.01)
        ticks = np.round(top * np.linspace(0, 1, 6) ** 2).astype(int)
        bar.set_ticks(np.sqrt(ticks), labels=[f"{tick:,}" for tick in ticks])
        bar.set_label("regions that touch the cell (more: as the top)", size=8)
        figure.suptitle(f"{title_of(dataset)}: {n * side:g} km square, {_cells(part)}", size=10)
        yield f"density_{dataset}", figure


def _extraction(table: pd.DataFrame, source: Source) -> Pictures:
    from dpregions.plots.extraction import plot_extraction

    for dataset in table["dataset"]:
        data = DATASETS[dataset]
        fixes, k = one_user(data, source.folder)
        crs = data.grid(data.n).crs
        figure = plot_extraction(fixes, k=k, max_diameter=MAX_DIAMETER, crs=crs)
        who = "a made-up user" if data.made_up else "ONE REAL USER: SECRET, never to be published"
        figure.suptitle(f"{data.title}: {who}", size=10, color=INK)
        yield f"extraction_{dataset}", figure


DRAWINGS: dict[str, Callable[[Any], Pictures]] = {
    "sizes": _sizes,
    "shapes": _shapes,
    "cells": _cells_errors,
    "epsilon": _epsilon_errors,
    "l1": _l1,
    "consistency": _consistency,
    "times": _times,
    "density": _density,
}


def _figure(
    rows: int, columns: int, width: float, height: float, *, sharey: bool = False
) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(width * columns, 5.6), height * rows + 0.6), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=sharey)


def _two_rows(columns: int) -> tuple[Figure, Any]:
    """Return axes in two rows and some columns; a single column lies on its side."""
    if columns > 1:
        return _figure(2, columns, 4.4, 3.7)
    figure, axes = _figure(1, 2, 4.8, 3.7)
    return figure, axes.T


def _cells(part: pd.DataFrame) -> str:
    return f"d = {part['cell_km'].iloc[0]:.3g} km"


def _line(axis: Any, method: str, x: Any, rows: pd.DataFrame) -> None:
    """Draw a method's errors with a band; the truth, which errs by 0, as the floor."""
    if method == EULER:
        return
    style = STYLES[method]
    y = rows["error_percent"]
    axis.plot(
        x, y, color=style.colour, marker=style.marker or None, ls=style.line, lw=style.width,
        ms=4.5, zorder=2 if method == "lin-prog" else 4 if method == "footprint" else 3,
    )  # fmt: skip
    if style.line == "-" and method != "lin-prog":
        axis.fill_between(x, rows["low"], rows["high"], color=style.colour, alpha=0.15, lw=0)


def _bars(axis: Any, method: str, x: Any, rows: pd.DataFrame) -> None:
    if method == EULER:
        return
    style, y = STYLES[method], rows["error_percent"]
    spread = [y - rows["low"], rows["high"] - y]
    marker = style.marker or "_"
    axis.errorbar(x, y, spread, color=style.colour, fmt=marker, ms=4.5, lw=1.1, capsize=1.5)


def _error_axis(axis: Any, labelled: bool) -> None:
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


def _legend(figure: Figure, methods: list[str]) -> None:
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


def _bar_chart(axis: Any, names: list[str], values: Any, text: str) -> None:
    """Draw one bar a method, the first at the top, with its value beside it."""
    places = np.arange(len(names))
    axis.barh(places, values, color=[STYLES[name].colour for name in names], height=0.72)
    _name_rows(axis, names, values, values, text)


def _dots(axis: Any, names: list[str], values: Any, low: Any, high: Any, text: str) -> None:
    """Draw one dot a row on a logarithmic axis, which has no 0 for a bar to start from."""
    for place, name in enumerate(names):
        colour = STYLES[name].colour if name in STYLES else INK
        value = values.iloc[place]
        spread = [[value - low.iloc[place]], [high.iloc[place] - value]]
        axis.axhline(place, color=PALE, lw=0.6, zorder=1)
        axis.errorbar(
            value, place, xerr=spread, fmt="o", color=colour, ms=7, lw=1.6, capsize=3, zorder=3
        )
    axis.set_xscale("log")
    _plain_ticks(axis.xaxis)
    _name_rows(axis, names, values, high, text)


def _name_rows(axis: Any, names: list[str], values: Any, ends: Any, text: str) -> None:
    for place, (value, end) in enumerate(zip(values, ends, strict=True)):
        axis.annotate(
            text.format(value), (end, place), (7, 0), textcoords="offset points", va="center",
            size=8, color=INK, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    axis.set_yticks(range(len(names)), [label_of(name) for name in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0, labelsize=8.5)
    axis.spines[["top", "right"]].set_visible(False)
