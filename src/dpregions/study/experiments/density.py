"""The experiment `density`: maps of regions by cell, exact and private. Not a private release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.study import charts
from dpregions.study.experiments import base
from dpregions.study.harness import Row, answers_of_blocks
from dpregions.study.methods import EULER
from dpregions.study.words import percent

if TYPE_CHECKING:
    import pandas as pd


def maps(source: base.Source, unit: base.Unit) -> Iterator[Row]:
    """Yield every method's answer for every cell, of one repetition."""
    n = unit.setting.n
    for method, found in source.trial(unit.setting).draws(unit.first):
        cells = answers_of_blocks(found, n, n, 1, 1)
        for (row, col), value in np.ndenumerate(cells):
            yield {"method": method, "row": row, "col": col, "regions": float(value)}


def _brief(table: pd.DataFrame) -> pd.DataFrame:
    groups = table.groupby(["dataset", "method"], sort=False)["regions"]
    return groups.agg(["min", "median", "max", "sum"]).reset_index()


def _draw(table: pd.DataFrame, source: base.Source) -> base.Pictures:
    for dataset, part in base.datasets_of(table).items():
        methods = charts.shown(part)
        columns = (len(methods) + 1) // 2
        figure, axes = charts.new_figure(2, columns, 2.5, 2.5)
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
            axis.set_title(charts.label_of(method), size=9)
            axis.set_xticks([])
            axis.set_yticks([])
        for axis in axes.flat[len(methods) :]:
            axis.set_visible(False)
        bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.01)
        ticks = np.round(top * np.linspace(0, 1, 6) ** 2).astype(int)
        bar.set_ticks(np.sqrt(ticks), labels=[f"{tick:,}" for tick in ticks])
        bar.set_label("regions that touch the cell (more: as the top)", size=8)
        area = f"{charts.title_of(dataset)}: {n * side:g} km square"
        figure.suptitle(f"{area}, {charts.cells_text(part)}", size=10)
        yield f"density_{dataset}", figure


def _say(part: pd.DataFrame) -> str:
    exact = part.loc[part["method"] == EULER, "regions"]
    crowded = exact.max() / max(exact.sum(), 1)
    empty = percent(100 * float((exact == 0).mean()))
    return (
        f"{empty} of the cells are touched by no region, and the most "
        f"crowded one holds {percent(100 * crowded)} of all touches."
    )


DENSITY = base.Experiment(
    name="density",
    title="Density of regions",
    about="How many regions touch each cell: the exact counts, and what each method answers "
    "with one draw of noise.",
    measure=base.Measure("maps", maps, each=0.1),
    settings=base.fine,
    columns=(*base.WHERE, "method", "row", "col", "regions"),
    brief=_brief,
    draw=_draw,
    say=_say,
    repeated=False,
)
