"""The pictures of each experiment's table. Draws tables and one user's fixes; computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.study.charts import (
    INK,
    PALE,
    STYLES,
    add_legend,
    cells_text,
    draw_bar_chart,
    draw_bars,
    draw_dots,
    draw_line,
    duration,
    error_axis,
    label_of,
    new_figure,
    short,
    shown,
    title_of,
    two_rows,
)
from dpregions.study.datasets import DATASETS, MAX_DIAMETER
from dpregions.study.measures import EULER, PREPARATION, shown_user

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpregions.study.measures import Source

Pictures = Iterator[tuple[str, "Figure"]]


def figures_of(name: str, table: pd.DataFrame, source: Source) -> Pictures:
    """Yield the pictures of an experiment's table, each with a name for its file."""
    if name == "extraction":
        yield from _extraction(table, source)
    else:
        yield from DRAWINGS[name](table)


def _sizes(table: pd.DataFrame) -> Pictures:
    panels = []
    for dataset in dict.fromkeys(table["dataset"]):
        mine = table[table["dataset"] == dataset]
        panels.append((dataset, mine["cells_a_side"].max(), mine["cells_a_side"].min()))
    figure, axes = two_rows(len(panels))
    for column, (dataset, fine, coarse) in enumerate(panels):
        for row, (n, low, high) in enumerate(((fine, 0.9, 10.1), (coarse, 9.9, 100.1))):
            part = table[(table["dataset"] == dataset) & (table["cells_a_side"] == n)]
            part = part[part["share_percent"].between(low, high)]
            axis = axes[row, column]
            for method in shown(part):
                rows = part[part["method"] == method]
                draw_line(axis, method, rows["share_percent"], rows)
            axis.set_title(f"{title_of(dataset)}, {cells_text(part)}")
            axis.set_xlabel("size of the question, % of the area")
            axis.set_xticks([1, 2, 4, 6, 8, 10] if row == 0 else [10, 20, 40, 60, 80, 100])
            error_axis(axis, column == 0)
    add_legend(figure, shown(table))
    yield "sizes", figure


def _shapes(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    figure, axes = two_rows(len(datasets))
    for column, dataset in enumerate(datasets):
        for row, size in enumerate(("small", "large")):
            part = table[(table["dataset"] == dataset) & (table["size"] == size)]
            axis, methods = axes[row, column], shown(part)
            shapes = list(dict.fromkeys(zip(part["height"], part["width"], strict=True)))
            for place, method in enumerate(methods):
                rows = part[part["method"] == method]
                # Side by side, so that the bars can be told apart.
                shift = 0.055 * (place - (len(methods) - 1) / 2)
                draw_bars(axis, method, np.arange(len(rows)) + shift, rows)
            axis.set_xticks(range(len(shapes)), [f"{h} x {w}" for h, w in shapes])
            share = part["share_percent"].iloc[0]
            axis.set_title(
                f"{title_of(dataset)}, {share:.3g} % of the area, {cells_text(part)}", size=9
            )
            axis.set_xlabel("height x width, cells")
            error_axis(axis, column == 0)
    add_legend(figure, shown(table))
    yield "shapes", figure


def _cells_errors(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    figure, axes = new_figure(1, len(datasets), 5.6, 4.2)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[table["dataset"] == dataset]
        for method in shown(part):
            rows = part[part["method"] == method].sort_values("cells_a_side")
            draw_line(axis, method, rows["cells_a_side"], rows)
        sides = part.drop_duplicates("cells_a_side").sort_values("cells_a_side")
        texts = [
            f"A/d = {n}\nd = {d:.3g} km\nsensitivity {s}"
            for n, d, s in zip(
                sides["cells_a_side"], sides["cell_km"], sides["sensitivity"], strict=True
            )
        ]
        axis.set_xticks(sides["cells_a_side"], texts)
        axis.set_title(f"{title_of(dataset)}, questions of 1 % of the area")
        error_axis(axis, True)
    add_legend(figure, shown(table))
    yield "cells", figure


def _epsilon_errors(table: pd.DataFrame) -> Pictures:
    panels = list(
        dict.fromkeys(zip(table["dataset"], table["share_percent"].round(6), strict=True))
    )
    figure, axes = new_figure(1, len(panels), 4.6, 4.2)
    for column, (dataset, share) in enumerate(panels):
        axis = axes[0, column]
        part = table[(table["dataset"] == dataset) & (table["share_percent"].round(6) == share)]
        for method in shown(part):
            rows = part[part["method"] == method].sort_values("epsilon")
            draw_line(axis, method, rows["epsilon"], rows)
        axis.set_xticks(sorted(set(part["epsilon"])))
        axis.set_xlabel("epsilon")
        axis.set_title(f"{title_of(dataset)}, {share:g} % of the area, {cells_text(part)}")
        error_axis(axis, column == 0)
    add_legend(figure, shown(table))
    yield "epsilon", figure


def _l1(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    methods = shown(table)
    figure, axes = new_figure(1, len(datasets), 4.2, 0.42 * len(methods) + 1.6, sharey=True)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[table["dataset"] == dataset].set_index("method").loc[methods]
        draw_dots(axis, methods, part["relative_l1"], part["low"], part["high"], "{:.3g}".format)
        axis.set_xlim(table["relative_l1"][table["method"] != EULER].min() / 2, None)
        axis.set_xlim(None, 4 * table["relative_l1"].max())
        axis.axvline(1, color=STYLES["diff-priv"].colour, lw=1, zorder=1)
        axis.set_title(
            f"{title_of(dataset)}, {cells_text(part)}, sensitivity {part['sensitivity'].iloc[0]}",
            size=9,
        )
        axis.set_xlabel("L1 distance from the exact histogram,\nrelative to DiffPriv's")
    yield "l1", figure


_KINDS = {
    "C1_percent": "C1 violated, %",
    "C2_percent": "C2 violated, %",
    "C3_percent": "C3 violated, %",
    "negative_percent": "negative\nanswers, %",
    "non_monotone_percent": "smaller of two nested\nanswers more, % of pairs",
    "next_non_monotone_percent": "the same, a row or\ncolumn apart, % of pairs",
}


def _consistency(table: pd.DataFrame) -> Pictures:
    datasets, methods = list(dict.fromkeys(table["dataset"])), shown(table)
    height = 0.3 * len(methods) + 1.1
    figure, axes = new_figure(len(datasets), len(_KINDS), 2.35, height, sharey=True)
    for line, dataset in zip(axes, datasets, strict=True):
        part = table[table["dataset"] == dataset].set_index("method").loc[methods]
        for axis, (kind, title) in zip(line, _KINDS.items(), strict=True):
            draw_bar_chart(axis, methods, part[kind], short)
            axis.set_xlim(0, 1.3 * max(table[kind].max(), 1e-9))
            axis.set_title(title, size=9)
            axis.set_xticks([])
            axis.spines["bottom"].set_visible(False)
        line[0].set_ylabel(f"{title_of(dataset)}, {cells_text(part)}", size=9)
    yield "consistency", figure


def _times(table: pd.DataFrame) -> Pictures:
    datasets = list(dict.fromkeys(table["dataset"]))
    steps = [step for step in (*PREPARATION, *STYLES) if step in set(table["step"])]
    figure, axes = new_figure(1, len(datasets), 4.2, 0.42 * len(steps) + 1.5, sharey=True)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        part = table[table["dataset"] == dataset].set_index("step").loc[steps]
        draw_dots(axis, steps, part["seconds"], part["low"], part["high"], duration)
        axis.set_xlim(table["seconds"].min() / 3, table["seconds"].max() * 12)
        axis.axvline(1, color=PALE, lw=1, zorder=1)
        axis.xaxis.set_major_formatter(lambda value, _: duration(value))
        axis.tick_params(axis="x", labelsize=8)
        axis.set_title(f"{title_of(dataset)}, {cells_text(part)}")
    yield "times", figure


def _density(table: pd.DataFrame) -> Pictures:
    for dataset in dict.fromkeys(table["dataset"]):
        part = table[table["dataset"] == dataset]
        methods = shown(part)
        columns = (len(methods) + 1) // 2
        figure, axes = new_figure(2, columns, 2.5, 2.5)
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
        figure.suptitle(f"{title_of(dataset)}: {n * side:g} km square, {cells_text(part)}", size=10)
        yield f"density_{dataset}", figure


def _extraction(table: pd.DataFrame, source: Source) -> Pictures:
    from dpregions.plots.extraction import plot_extraction

    for dataset in table["dataset"]:
        data = DATASETS[dataset]
        fixes, k = shown_user(data, source)
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
