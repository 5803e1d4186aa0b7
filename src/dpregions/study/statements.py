"""The paper's printed statements beside what a study measured, and why they differ.

Study on exact data: not a private release. A verdict is computed from the tables; the reasons
are ours and shown where the verdict asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from dpregions.study.charts import duration, label_of, title_of
from dpregions.study.datasets import CABSPOTTING, TDRIVE, Setting
from dpregions.study.measures import PREPARATION
from dpregions.study.words import percent, times_as

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["agrees", "differs", "not measured"]

SMALL_LIMIT, LARGE_LIMIT, CAB_LIMIT = 20.0, 10.0, 10.0
"""Errors in percent that the paper prints; "very low" is read as below 10 %."""
GEOLIFE_SECONDS = 196.0
"""What was printed; half and twice of it are taken as the same."""


class Finding(NamedTuple):
    """One statement of the paper, what was measured, and whether they agree."""

    printed: str
    measured: str
    verdict: Verdict
    why: str = ""


def findings(tables: Mapping[str, pd.DataFrame]) -> list[Finding]:
    """Set each statement beside the tables that are there."""
    return [judge(tables) for judge in JUDGES]


def _judged(printed: str, measured: str, holds: bool, why: str, always: str = "") -> Finding:
    reasons = " ".join(text for text in (always, "" if holds else why) if text)
    return Finding(printed, measured, "agrees" if holds else "differs", reasons)


def _absent(printed: str, needed: str) -> Finding:
    return Finding(printed, f"needs {needed}", "not measured")


def _round_errors(
    tables: Mapping[str, pd.DataFrame], dataset: str, n: int, low: float, high: float
) -> pd.Series[float] | None:
    """Return Round's errors at sizes from low to high percent of the area."""
    table = tables.get("sizes")
    if table is None:
        return None
    rows = table[
        (table["dataset"] == dataset)
        & (table["cells_a_side"] == n)
        & (table["method"] == "round")
        & table["share_percent"].between(low - 0.01, high + 0.01)
    ]
    return None if rows.empty else rows["error_percent"]


def _range(values: pd.Series[float]) -> str:
    low, high = percent(values.min()), percent(values.max())
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _tdrive_small(tables: Mapping[str, pd.DataFrame]) -> Finding:
    printed = "T-Drive: errors under 20 % for small questions (1-10 % of the area)"
    errors = _round_errors(tables, "tdrive", 20, 1, 10)
    if errors is None:
        return _absent(printed, "the experiment sizes on tdrive")
    return _judged(
        printed,
        f"Round errs by {_range(errors)}",
        bool(errors.max() < SMALL_LIMIT),
        "Noise of scale 25 on every component weighs more where fewer regions are in the area.",
    )


def _tdrive_large(tables: Mapping[str, pd.DataFrame]) -> Finding:
    printed = "T-Drive: very low errors for large questions (read as: under 10 % from 20 % on)"
    errors = _round_errors(tables, "tdrive", 20, 20, 100)
    if errors is None:
        return _absent(printed, "the experiment sizes on tdrive")
    return _judged(
        printed,
        f"Round errs by {_range(errors)}",
        bool(errors.max() < LARGE_LIMIT),
        "Cutting negative counts to 0 pushes sparse parts up, and a large question sums the bias.",
    )


def _cabspotting(tables: Mapping[str, pd.DataFrame]) -> Finding:
    printed = "Cabspotting: errors under 10 % for questions of 1-9 % of the area"
    coarse = _round_errors(tables, "cabspotting", CABSPOTTING.n, 1, 9)
    fine = _round_errors(tables, "cabspotting", 20, 1, 9)
    if coarse is None or fine is None:
        return _absent(printed, "the experiment sizes on cabspotting")
    return _judged(
        printed,
        f"Round errs by {_range(coarse)} with cells of 0.8 km, where every such question is one "
        f"cell, and by {_range(fine)} with cells of 0.16 km",
        bool(coarse.max() < CAB_LIMIT),
        "The noise has scale 49 on each component at 0.8 km (729 at 0.16 km) however many cabs "
        "there are, and no cell counts more than all of them. Under 10 % would take more cabs "
        "than the file has, a smaller sensitivity or a larger epsilon than the paper states.",
    )


def _sensitivities(tables: Mapping[str, pd.DataFrame]) -> Finding:
    settings = {
        25: Setting(TDRIVE, 20),
        49: Setting(TDRIVE, 30),
        9: Setting(TDRIVE, 10),
        729: Setting(CABSPOTTING, 20),
    }
    ours = [setting.sensitivity for setting in settings.values()]
    return _judged(
        "Sensitivities 25, 49, 9 (T-Drive, A/d = 20, 30, 10) and 729 (Cabspotting, d = 0.16 km)",
        ", ".join(str(value) for value in ours),
        ours == list(settings),
        "k = ceil(B / d) is taken from exact fractions here.",
        "These hold for adding or removing a region. The paper defines neighbours by replacing "
        "one, for which the noise must be twice as wide.",
    )


def _least(tables: Mapping[str, pd.DataFrame]) -> Finding:
    printed = "C3 is the constraint least violated by DiffPriv"
    table = tables.get("consistency")
    rows = None if table is None else table[table["method"] == "diff-priv"]
    if rows is None or rows.empty:
        return _absent(printed, "the experiment consistency with the method paper")
    texts, holds = [], True
    for _, row in rows.iterrows():
        c1, c2, c3 = (row[f"{kind}_percent"] for kind in ("C1", "C2", "C3"))
        holds &= bool(c3 <= min(c1, c2))
        texts.append(
            f"{title_of(row['dataset'])} C1 {percent(c1)}, C2 {percent(c2)}, C3 {percent(c3)}"
        )
    return _judged(
        printed,
        "; ".join(texts),
        holds,
        "C3 sums nine noisy counts, C1 and C2 compare two: which is broken more depends on how "
        "wide the noise is beside the counts.",
    )


def _seconds(tables: Mapping[str, pd.DataFrame]) -> Finding:
    printed = "DiffPriv, LinProg and Round take under a second each"
    table = tables.get("times")
    steps = ("diff-priv", "lin-prog", "round")
    rows = None if table is None else table[table["step"].isin(steps)]
    if rows is None or rows.empty:
        return _absent(printed, "the experiment times with the method paper")
    longest = rows.groupby("step", sort=False)["seconds"].max()
    return _judged(
        printed,
        ", ".join(f"{label_of(step)} at most {duration(longest[step])}" for step in steps),
        bool(longest.max() < 1),
        "This machine is slower, or busy.",
    )


def _total(tables: Mapping[str, pd.DataFrame]) -> Finding:
    printed = "GeoLife: 196 s in total"
    table = tables.get("times")
    steps = {*PREPARATION, "diff-priv", "lin-prog", "round"}
    rows = None if table is None else table[table["dataset"] == "geolife"]
    if rows is None or not steps <= set(rows["step"]):
        return _absent(printed, "the experiment times on geolife with the method paper")
    total = float(rows.loc[rows["step"].isin(steps), "seconds"].sum())
    before = float(rows.loc[rows["step"].isin(PREPARATION[:2]), "seconds"].sum())
    holds = GEOLIFE_SECONDS / 2 <= total <= 2 * GEOLIFE_SECONDS
    if total < GEOLIFE_SECONDS:
        how = f", {times_as(GEOLIFE_SECONDS, total)} as fast"
        why = "Another machine; extraction is compiled here, and is quicker with fewer fixes."
    else:
        how = f", {times_as(total, GEOLIFE_SECONDS)} as long"
        why = "This machine is slower, or busy, or the file has more fixes."
    return _judged(
        printed,
        f"{total:.3g} s from the file of fixes to Round{'' if holds else how}; "
        f"{percent(100 * before / total)} of it is reading and extraction",
        holds,
        why,
    )


JUDGES = (_tdrive_small, _tdrive_large, _cabspotting, _sensitivities, _least, _seconds, _total)
