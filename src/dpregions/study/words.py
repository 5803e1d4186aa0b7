"""What a study's tables say, in sentences made of their numbers.

Every figure in a sentence is read from the table it speaks of; nothing is known beforehand
about who errs less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpregions.study.charts import STYLES, duration, label_of, title_of
from dpregions.study.harness import BASELINES
from dpregions.study.measures import EULER, PREPARATION

if TYPE_CHECKING:
    import pandas as pd

OURS, ROUND = "footprint", "round"


def percent(value: float) -> str:
    """Return a percentage in three digits, without an exponent."""
    if 0 < value < 0.001:
        return "less than 0.001 %"
    return f"{float(f'{value:.3g}'):,.12g} %"


def times_as(above: float, below: float) -> str:
    """Return how many times as much one value is, in two digits."""
    if not below > 0:
        return "beyond measure"
    return f"{float(f'{above / below:.2g}'):,.12g} times"


def words_of(name: str, table: pd.DataFrame) -> list[str]:
    """Return one sentence or a few for each data set of an experiment's table."""
    say = SENTENCES[name]
    parts = ((title_of(d), table[table["dataset"] == d]) for d in dict.fromkeys(table["dataset"]))
    return [f"{title}: {say(part)}" for title, part in parts]


def _error(part: pd.DataFrame, method: str) -> float:
    return float(part.loc[part["method"] == method, "error_percent"].median())


def _against(part: pd.DataFrame) -> str:
    """Compare ours with Round and with the best baseline among rows of one question."""
    methods = set(part["method"])
    if OURS not in methods:
        best = min(methods - {EULER}, key=lambda m: _error(part, m))
        return f"{label_of(best)} errs least, by {percent(_error(part, best))}"
    ours = _error(part, OURS)
    text = f"ours errs by {percent(ours)}"
    if ROUND in methods:
        theirs = _error(part, ROUND)
        text += f", Round by {percent(theirs)} ({times_as(theirs, ours)} ours)"
    present = [name for name in BASELINES if name in methods]
    if present:
        best = min(present, key=lambda name: _error(part, name))
        value = _error(part, best)
        text += f", the best baseline ({label_of(best)}) by {percent(value)}"
        text += f" ({times_as(value, ours)} ours)"
    return text


def _sizes(part: pd.DataFrame) -> str:
    sentences = []
    for n, rows in part.groupby("cells_a_side"):
        cell = rows["cell_km"].iloc[0]
        at = [
            f"at {share:.3g} % of the area {_against(rows[rows['share_percent'] == share])}"
            for share in _ends(rows["share_percent"])
        ]
        sentences.append(f"With {n} x {n} cells of {cell:.3g} km, {'; '.join(at)}.")
    return " ".join(sentences)


def _ends(values: pd.Series[float]) -> list[float]:
    known = sorted(set(values))
    return [known[0], *([10.0] if 10.0 in known else []), known[-1]]


def _shapes(part: pd.DataFrame) -> str:
    sentences = []
    for size, rows in part.groupby("size", sort=False):
        text = []
        for method in (OURS, ROUND):
            mine = rows[rows["method"] == method].sort_values("error_percent")
            if mine.empty:
                continue
            best, worst = mine.iloc[0], mine.iloc[-1]
            text.append(
                f"{label_of(method)} errs least at {best['height']} x {best['width']} "
                f"({percent(best['error_percent'])}) and most at {worst['height']} x "
                f"{worst['width']} ({percent(worst['error_percent'])})"
            )
        area = rows["share_percent"].iloc[0]
        sentences.append(f"Among {size} questions ({area:.3g} % of the area) {'; '.join(text)}.")
    return " ".join(sentences)


def _cells(part: pd.DataFrame) -> str:
    at = [
        f"on {n} x {n} cells (sensitivity {rows['sensitivity'].iloc[0]}) {_against(rows)}"
        for n, rows in part.groupby("cells_a_side", sort=False)
    ]
    return f"{'; '.join(at)}."


def _epsilon(part: pd.DataFrame) -> str:
    small = part[part["share_percent"] == part["share_percent"].min()]
    at = [
        f"at epsilon = {epsilon:g} {_against(rows)}"
        for epsilon, rows in small.groupby("epsilon")
        if epsilon in (small["epsilon"].min(), small["epsilon"].max())
    ]
    return f"for questions of {small['share_percent'].iloc[0]:.3g} % {'; '.join(at)}."


def _l1(part: pd.DataFrame) -> str:
    near = part[part["method"] != EULER].sort_values("relative_l1")
    near = near[near["method"].isin(STYLES)]
    values = zip(near["method"], near["relative_l1"], strict=True)
    order = [f"{label_of(method)} {value:.3g}" for method, value in values]
    return f"from the nearest to the farthest, DiffPriv being 1: {', '.join(order)}."


def _consistency(part: pd.DataFrame) -> str:
    sentences = []
    for method in ("diff-priv", "lin-prog", ROUND, OURS):
        rows = part[part["method"] == method]
        if rows.empty:
            continue
        row = rows.iloc[0]
        c1, c2, c3 = (percent(row[f"{kind}_percent"]) for kind in ("C1", "C2", "C3"))
        sentences.append(
            f"{label_of(method)} violates {c1} of C1, {c2} of C2, {c3} of C3; "
            f"{percent(row['negative_percent'])} of its answers are negative, and in "
            f"{percent(row['non_monotone_percent'])} of nested pairs the smaller answers more "
            f"({percent(row['next_non_monotone_percent'])} of the pairs a row or column apart)"
        )
    return f"{'. '.join(sentences)}."


def _times(part: pd.DataFrame) -> str:
    seconds = part.set_index("step")["seconds"]
    before = ", ".join(f"{step} {duration(seconds[step])}" for step in PREPARATION)
    after = ", ".join(
        f"{label_of(step)} {duration(seconds[step])}" for step in STYLES if step in seconds.index
    )
    return f"once: {before}. Each time: {after}."


def _density(part: pd.DataFrame) -> str:
    exact = part.loc[part["method"] == EULER, "regions"]
    crowded = exact.max() / max(exact.sum(), 1)
    empty = percent(100 * float((exact == 0).mean()))
    return (
        f"{empty} of the cells are touched by no region, and the most "
        f"crowded one holds {percent(100 * crowded)} of all touches."
    )


def _extraction(part: pd.DataFrame) -> str:
    row = part.iloc[0]
    return (
        f"{row['fixes']:,} fixes, k = {row['k']:,}, a region of {row['corners']} corners and "
        f"{row['area_km2']:.3g} km², in a circle {row['circle_km']:.3g} km across."
    )


SENTENCES: dict[str, Callable[[pd.DataFrame], str]] = {
    "sizes": _sizes,
    "shapes": _shapes,
    "cells": _cells,
    "epsilon": _epsilon,
    "l1": _l1,
    "consistency": _consistency,
    "times": _times,
    "density": _density,
    "extraction": _extraction,
}
