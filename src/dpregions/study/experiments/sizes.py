"""The experiments `sizes` and `people`: errors by size of the question. Not a private release.

The same rectangles are asked at places anywhere, as in the paper, and at places where people are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dpregions.study import charts, harness
from dpregions.study.datasets import CABSPOTTING, Setting
from dpregions.study.experiments.base import FINE, Experiment, Pictures, Source, datasets_of
from dpregions.study.experiments.errors import COLUMNS, ERRORS, against, in_columns, size_errors
from dpregions.study.methods import ROUND
from dpregions.study.statements import Finding, absent, judged
from dpregions.study.words import percent

if TYPE_CHECKING:
    import pandas as pd

SMALL_LIMIT, LARGE_LIMIT, CAB_LIMIT = 20.0, 10.0, 10.0
"""Errors in percent that the paper prints; "very low" is read as below 10 %."""


def _draw(table: pd.DataFrame, source: Source, name: str = "sizes") -> Pictures:
    parts = datasets_of(table)
    figure, axes = charts.two_rows(len(parts))
    for column, mine in enumerate(parts.values()):
        sides = mine["cells_a_side"]
        for row, (n, low, high) in enumerate(((sides.max(), 0.9, 10.1), (sides.min(), 9.9, 100.1))):
            part = mine[(sides == n) & mine["share_percent"].between(low, high)]
            axis = axes[row, column]
            charts.draw_lines(axis, part, "share_percent")
            axis.set_title(charts.heading(part))
            axis.set_xlabel("size of the question, % of the area")
            axis.set_xticks([1, 2, 4, 6, 8, 10] if row == 0 else [10, 20, 40, 60, 80, 100])
            charts.error_axis(axis, column == 0)
    charts.add_legend(figure, charts.shown(table))
    yield name, figure


def _say(part: pd.DataFrame) -> str:
    sentences = []
    for n, rows in part.groupby("cells_a_side"):
        cell = rows["cell_km"].iloc[0]
        at = [
            f"at {share:.3g} % of the area {against(rows[rows['share_percent'] == share])}"
            for share in _ends(rows["share_percent"])
        ]
        sentences.append(f"With {n} x {n} cells of {cell:.3g} km, {'; '.join(at)}.")
    return " ".join(sentences)


def _ends(values: pd.Series[float]) -> list[float]:
    known = sorted(set(values))
    return [known[0], *([10.0] if 10.0 in known else []), known[-1]]


def _tdrive_small(table: pd.DataFrame | None) -> Finding:
    return _tdrive(
        _round_errors(table, "tdrive", 20, 1, 10),
        SMALL_LIMIT,
        "T-Drive: errors under 20 % for small questions (1-10 % of the area)",
        "Noise of scale 25 on every component weighs more where fewer regions are in the area.",
    )


def _tdrive_large(table: pd.DataFrame | None) -> Finding:
    return _tdrive(
        _round_errors(table, "tdrive", 20, 20, 100),
        LARGE_LIMIT,
        "T-Drive: very low errors for large questions (read as: under 10 % from 20 % on)",
        "Cutting negative counts to 0 pushes sparse parts up, and a large question sums the bias.",
    )


def _tdrive(errors: pd.Series[float] | None, limit: float, printed: str, why: str) -> Finding:
    if errors is None:
        return absent(printed, "the experiment sizes on tdrive")
    return judged(printed, f"Round errs by {_range(errors)}", bool(errors.max() < limit), why)


def _cabspotting(table: pd.DataFrame | None) -> Finding:
    printed = "Cabspotting: errors under 10 % for questions of 1-9 % of the area"
    coarse = _round_errors(table, "cabspotting", CABSPOTTING.n, 1, 9)
    fine = _round_errors(table, "cabspotting", 20, 1, 9)
    if coarse is None or fine is None:
        return absent(printed, "the experiment sizes on cabspotting")
    return judged(
        printed,
        f"Round errs by {_range(coarse)} with cells of 0.8 km, where every such question is one "
        f"cell, and by {_range(fine)} with cells of 0.16 km",
        bool(coarse.max() < CAB_LIMIT),
        "The noise has scale 49 on each component at 0.8 km (729 at 0.16 km) however many cabs "
        "there are, and no cell counts more than all of them. Under 10 % would take more cabs "
        "than the file has, a smaller sensitivity or a larger epsilon than the paper states.",
    )


def _round_errors(
    table: pd.DataFrame | None, dataset: str, n: int, low: float, high: float
) -> pd.Series[float] | None:
    """Return Round's errors at sizes from low to high percent of the area."""
    if table is None:
        return None
    rows = table[
        (table["dataset"] == dataset)
        & (table["cells_a_side"] == n)
        & (table["method"] == ROUND)
        & table["share_percent"].between(low - 0.01, high + 0.01)
    ]
    return None if rows.empty else rows["error_percent"]


def _range(values: pd.Series[float]) -> str:
    low, high = percent(values.min()), percent(values.max())
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


SIZES = Experiment(
    name="sizes",
    title="Error by size of the question",
    about="Rectangles of cells, as square as they can be, at random places. The error is "
    "|answer - truth| / max(truth, 0.1 % of all regions); its median over 100 places, "
    "then over repetitions. Bands hold eight of ten repetitions.",
    measure=ERRORS,
    settings=lambda data: [Setting(data, n) for n in dict.fromkeys((data.n, FINE))],
    columns=COLUMNS,
    summary=size_errors,
    brief=lambda table: in_columns(table, ["share_percent"], "{:.3g} %".format),
    draw=_draw,
    say=_say,
    judges=(_tdrive_small, _tdrive_large, _cabspotting),
)

PEOPLE = replace(
    SIZES,
    name="people",
    title="Error by size of the question, where people are",
    about="The same rectangles, placed as people are: about a region, each as likely as any other. "
    "At random places many questions of a crowded city are nearly empty; here few are. Errors are "
    "reckoned alike.",
    summary=partial(size_errors, placed=harness.PEOPLE),
    draw=partial(_draw, name="people"),
    judges=(),
)
