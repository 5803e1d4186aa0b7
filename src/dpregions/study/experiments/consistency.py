"""The experiment `consistency`: how often counts and answers contradict each other.

Study on exact data: not a private release.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpregions import paper
from dpregions.geometry.doubled import SignedTable
from dpregions.study import charts
from dpregions.study.experiments import base
from dpregions.study.harness import Row, implied_histogram
from dpregions.study.methods import OURS, ROUND
from dpregions.study.statements import Finding, absent, judged
from dpregions.study.words import percent, short

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.arrays import Ints

KINDS = {
    "C1": "C1 violated, %",
    "C2": "C2 violated, %",
    "C3": "C3 violated, %",
    "negative": "negative\nanswers, %",
    "non_monotone": "smaller of two nested\nanswers more, % of pairs",
    "next_non_monotone": "the same, a row or\ncolumn apart, % of pairs",
}
"""What is counted, with the title of its panel."""

FRACTION = 2**20
"""Fractional answers are compared in whole parts of this: sums of them are then exact."""


def consistency(source: base.Source, unit: base.Unit) -> Iterator[Row]:
    """Yield the percentages of constraints, rectangles and nested pairs that contradict."""
    trial, n = source.trial(unit.setting), unit.setting.n
    for repetition in range(unit.first, unit.last):
        for method, found in trial.draws(repetition):
            whole = implied_histogram(found, n, n)
            if whole.dtype.kind == "f":
                whole = np.rint(FRACTION * whole).astype(np.int64)
            broken = paper.violations(whole, percent=True)
            real = _contradictions(whole.astype(np.int64).tobytes(), whole.shape)
            yield {"repetition": repetition, "method": method, **broken, **real}


@lru_cache(maxsize=4)
def _contradictions(counts: bytes, shape: tuple[int, int]) -> dict[str, float]:
    """Return percentages of contradictions; equal arrays (the truth, LinProg and Round) once."""
    whole = np.frombuffer(counts, np.int64).reshape(shape)
    found = paper.inconsistency(whole)
    return {
        "negative": 100 * found.negative / found.rectangles,
        "non_monotone": 100 * found.non_monotone / found.pairs,
        "next_non_monotone": next_non_monotone(whole),
    }


def next_non_monotone(counts: Ints) -> float:
    """Return in how many percent of pairs a row or column apart the smaller answers more.

    Where any rectangle contradicts one that contains it, one of these steps between them does.
    """
    rows, cols = (side // 2 + 1 for side in counts.shape)
    row0, row1, col0, col1 = np.indices((rows, rows, cols, cols)).reshape(4, -1)
    found = SignedTable(counts)
    inner = np.stack([row0, row1, col0, col1])[:, (row0 <= row1) & (col0 <= col1)]
    answers, steps, worse = found.answers(inner), 0, 0
    for grown in np.array([[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]]):
        outer = inner + grown[:, None]
        fits = (outer[0] >= 0) & (outer[1] < rows) & (outer[2] >= 0) & (outer[3] < cols)
        steps += int(fits.sum())
        worse += int((found.answers(outer[:, fits]) < answers[fits]).sum())
    return 100 * worse / max(steps, 1)


def _summary(raw: pd.DataFrame) -> pd.DataFrame:
    groups = raw.groupby("method", sort=False)
    table = groups[list(KINDS)].mean().add_suffix("_percent")
    table["repetitions"] = groups["repetition"].nunique()
    return table.reset_index()


def _draw(table: pd.DataFrame, source: base.Source) -> base.Pictures:
    parts, methods = base.datasets_of(table), charts.shown(table)
    height = 0.3 * len(methods) + 1.1
    figure, axes = charts.new_figure(len(parts), len(KINDS), 2.35, height, sharey=True)
    for line, mine in zip(axes, parts.values(), strict=True):
        part = mine.set_index("method").loc[methods]
        for axis, (kind, title) in zip(line, KINDS.items(), strict=True):
            charts.draw_bar_chart(axis, methods, part[f"{kind}_percent"], short)
            axis.set_xlim(0, 1.3 * max(table[f"{kind}_percent"].max(), 1e-9))
            axis.set_title(title, size=9)
            axis.set_xticks([])
            axis.spines["bottom"].set_visible(False)
        line[0].set_ylabel(charts.heading(part), size=9)
    yield "consistency", figure


def _say(part: pd.DataFrame) -> str:
    sentences = []
    for method in ("diff-priv", "lin-prog", ROUND, OURS):
        rows = part[part["method"] == method]
        if rows.empty:
            continue
        row = rows.iloc[0]
        c1, c2, c3 = (percent(row[f"{kind}_percent"]) for kind in ("C1", "C2", "C3"))
        sentences.append(
            f"{charts.label_of(method)} violates {c1} of C1, {c2} of C2, {c3} of C3; "
            f"{percent(row['negative_percent'])} of its answers are negative, and in "
            f"{percent(row['non_monotone_percent'])} of nested pairs the smaller answers more "
            f"({percent(row['next_non_monotone_percent'])} of the pairs a row or column apart)"
        )
    return f"{'. '.join(sentences)}."


def _least(table: pd.DataFrame | None) -> Finding:
    printed = "C3 is the constraint least violated by DiffPriv"
    rows = None if table is None else table[table["method"] == "diff-priv"]
    if rows is None or rows.empty:
        return absent(printed, "the experiment consistency with the method paper")
    texts, holds = [], True
    for _, row in rows.iterrows():
        c1, c2, c3 = (row[f"{kind}_percent"] for kind in ("C1", "C2", "C3"))
        holds &= bool(c3 <= min(c1, c2))
        title = charts.title_of(row["dataset"])
        texts.append(f"{title} C1 {percent(c1)}, C2 {percent(c2)}, C3 {percent(c3)}")
    return judged(
        printed,
        "; ".join(texts),
        holds,
        "C3 sums nine noisy counts, C1 and C2 compare two: which is broken more depends on how "
        "wide the noise is beside the counts.",
    )


CONSISTENCY = base.Experiment(
    name="consistency",
    title="Violations of consistency",
    about="In percent, on 20 x 20 cells. C1: an edge counts more than one of its faces. C2: a "
    "vertex counts more than one of its edges. C3: a block of four cells answers less "
    "than 0. These three are necessary and not sufficient; real consistency is about the "
    "answers: none is negative, and no rectangle answers more than one that contains it "
    "(of all nested pairs; and of those that differ by one row or column, where every "
    "contradiction begins). Baselines by the histograms that their answers imply.",
    measure=base.Measure("consistency", consistency, each=2.5),
    settings=base.fine,
    columns=(*base.WHERE, "method", *(f"{kind}_percent" for kind in KINDS), "repetitions"),
    summary=_summary,
    draw=_draw,
    say=_say,
    judges=(_least,),
)
