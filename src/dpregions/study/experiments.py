"""The experiments of the paper and ours: what each measures where, and its table.

Study on exact data: not a private release. An experiment is a record: the settings it needs,
how raw measurements become a table with fixed columns, how the table is drawn and what it says
in words. Nothing here runs a method or knows about folders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpregions.errors import InputError
from dpregions.study.datasets import DataSet, Setting
from dpregions.study.measures import LARGE, SMALL

if TYPE_CHECKING:
    import pandas as pd

WHERE = ("dataset", "cells_a_side", "cell_km", "sensitivity", "epsilon")
SPREAD = ("low", "high", "repetitions")
"""Low and high hold eight of ten repetitions."""

EPSILONS = (0.1, 0.4, 0.7, 1.0)
SIDES = (30, 20, 10)
"""Cells a side, A/d."""
FINE = 20
"""Cells a side where histograms are compared."""

Raw = list[tuple[Setting, "pd.DataFrame"]]


@dataclass(frozen=True)
class Experiment:
    """One experiment: what to measure, and how the measurements become a table."""

    name: str
    title: str
    about: str
    measure: str
    columns: tuple[str, ...]
    settings: Callable[[DataSet], list[Setting]]
    summary: Callable[[pd.DataFrame], pd.DataFrame]
    """Raw measurements of one setting to rows of the table."""
    repeated: bool = True
    needs: str | None = None
    """A method without which it says nothing."""

    def table(self, raw: Raw) -> pd.DataFrame:
        """Return the table of all settings, with the experiment's columns."""
        import pandas as pd

        parts = []
        for setting, measured in raw:
            rows = self.summary(measured)
            rows["dataset"], rows["cells_a_side"] = setting.data.name, setting.n
            rows["cell_km"], rows["epsilon"] = setting.cell_km, setting.epsilon
            rows["sensitivity"] = setting.sensitivity
            parts.append(rows)
        return pd.concat(parts, ignore_index=True)[list(self.columns)]


def _main(data: DataSet) -> list[Setting]:
    return [Setting(data, data.n)]


def _fine(data: DataSet) -> list[Setting]:
    return [Setting(data, FINE)]


def _main_and_fine(data: DataSet) -> list[Setting]:
    return [Setting(data, n) for n in dict.fromkeys((data.n, FINE))]


def _varied(data: DataSet) -> bool:
    """Whether cell size and epsilon are varied on it: T-Drive in the paper, our city here."""
    return data.name in ("tdrive", "synthetic")


def _by_cell(data: DataSet) -> list[Setting]:
    return [Setting(data, n) for n in SIDES] if _varied(data) else []


def _by_epsilon(data: DataSet) -> list[Setting]:
    return [Setting(data, 10, epsilon) for epsilon in EPSILONS] if _varied(data) else []


def _spread(groups: Any, name: str) -> pd.DataFrame:
    """Return the median over repetitions of each group, and what holds eight of ten of them."""
    table: pd.DataFrame = groups.median().rename(name).to_frame()
    table["low"], table["high"] = groups.quantile(0.1), groups.quantile(0.9)
    table["repetitions"] = groups.count()
    return table.reset_index()


def _errors(raw: pd.DataFrame, kinds: tuple[str, ...]) -> pd.DataFrame:
    rows = raw[raw["question"].isin(kinds)].copy()
    rows["value"] *= 100
    by = ["method", "question", "share", "height", "width"]
    table = _spread(rows.groupby(by, sort=False)["value"], "error_percent")
    table["share_percent"] = 100 * table["share"]
    return table


def _size_errors(raw: pd.DataFrame) -> pd.DataFrame:
    return _errors(raw, ("size",))


def _shape_errors(raw: pd.DataFrame) -> pd.DataFrame:
    return _errors(raw, ("small", "large")).rename(columns={"question": "size"})


def _errors_at(*shares: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def summary(raw: pd.DataFrame) -> pd.DataFrame:
        table = _size_errors(raw)
        return table[table["share"].isin(shares)].reset_index(drop=True)

    return summary


def _l1(raw: pd.DataFrame) -> pd.DataFrame:
    rows = raw[raw["question"] == "l1"]
    reference = rows[rows["method"] == "diff-priv"].set_index("repetition")["value"]
    relative = rows.assign(relative=rows["value"] / rows["repetition"].map(reference))
    table = _spread(relative.groupby("method", sort=False)["relative"], "relative_l1")
    table["l1"] = table["method"].map(rows.groupby("method")["value"].median())
    return table


KINDS = ("C1", "C2", "C3", "negative", "non_monotone", "next_non_monotone")


def _consistency(raw: pd.DataFrame) -> pd.DataFrame:
    groups = raw.groupby("method", sort=False)
    table = groups[list(KINDS)].mean().add_suffix("_percent")
    table["repetitions"] = groups["repetition"].nunique()
    return table.reset_index()


def _times(raw: pd.DataFrame) -> pd.DataFrame:
    return _spread(raw.groupby("step", sort=False)["seconds"], "seconds")


def _as_it_is(raw: pd.DataFrame) -> pd.DataFrame:
    return raw.copy()


_ERRORS = (*WHERE, "method", "share_percent", "height", "width", "error_percent", *SPREAD)

EXPERIMENTS = {
    made.name: made
    for made in (
        Experiment(
            "sizes",
            "Error by size of the question",
            "Rectangles of cells, as square as they can be, at random places. The error is "
            "|answer - truth| / max(truth, 0.1 % of all regions); its median over 100 places, "
            "then over repetitions. Bands hold eight of ten repetitions.",
            "errors",
            _ERRORS,
            _main_and_fine,
            _size_errors,
        ),
        Experiment(
            "shapes",
            "Error by shape of the question",
            "All heights and widths of the same area, in cells, at random places. Bars hold "
            "eight of ten repetitions.",
            "errors",
            (*_ERRORS, "size"),
            _main,
            _shape_errors,
        ),
        Experiment(
            "cells",
            "Error by size of the cells",
            "Questions of 1 % of the area on 30 x 30, 20 x 20 and 10 x 10 cells. Smaller cells "
            "tell more, and one region then touches more of them.",
            "errors",
            _ERRORS,
            _by_cell,
            _errors_at(SMALL[0]),
        ),
        Experiment(
            "epsilon",
            "Error by epsilon",
            "10 x 10 cells, questions of 1 % (one cell) and of 10 % of the area. A smaller "
            "epsilon protects more, with more noise.",
            "errors",
            _ERRORS,
            _by_epsilon,
            _errors_at(SMALL[0], LARGE[0]),
        ),
        Experiment(
            "l1",
            "Differences between histograms",
            "The sum over all faces, edges and vertices of how far each is from the exact Euler "
            "histogram, relative to that of DiffPriv in the same repetition, on 20 x 20 cells. A "
            "baseline has no edges and vertices of its own: they are those that its answers to "
            "one, two and four cells imply.",
            "errors",
            (*WHERE, "method", "l1", "relative_l1", *SPREAD),
            _fine,
            _l1,
            needs="paper",
        ),
        Experiment(
            "consistency",
            "Violations of consistency",
            "In percent, on 20 x 20 cells. C1: an edge counts more than one of its faces. C2: a "
            "vertex counts more than one of its edges. C3: a block of four cells answers less "
            "than 0. These three are necessary and not sufficient; real consistency is about the "
            "answers: none is negative, and no rectangle answers more than one that contains it "
            "(of all nested pairs; and of those that differ by one row or column, where every "
            "contradiction begins). Baselines by the histograms that their answers imply.",
            "consistency",
            (*WHERE, "method", *(f"{kind}_percent" for kind in KINDS), "repetitions"),
            _fine,
            _consistency,
        ),
        Experiment(
            "times",
            "Running time by step",
            "Seconds on this machine, while it may do other work, on 20 x 20 cells. Compiling is "
            "left out. Reading, extraction and the exact histogram are done once, the other "
            "steps in each repetition. This table alone differs from run to run.",
            "times",
            (*WHERE, "step", "seconds", *SPREAD),
            _fine,
            _times,
        ),
        Experiment(
            "density",
            "Density of regions",
            "How many regions touch each cell: the exact counts, and what each method answers "
            "with one draw of noise.",
            "maps",
            (*WHERE, "method", "row", "col", "regions"),
            _fine,
            _as_it_is,
            repeated=False,
        ),
        Experiment(
            "extraction",
            "From fixes to a region, for one user",
            "One user's fixes, their density and its mode, the k fixes nearest the mode and not "
            "farther than half of the largest diameter, and their convex hull: the region.",
            "extraction",
            ("dataset", "fixes", "k", "corners", "area_km2", "circle_km"),
            _main,
            _as_it_is,
            repeated=False,
        ),
    )
}


def chosen_experiments(names: list[str]) -> list[Experiment]:
    """Return the experiments asked for, in their own order; all of them by default."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise InputError(
            f"{', '.join(unknown)} is no experiment: choose from {', '.join(EXPERIMENTS)}",
            argument="experiments",
        )
    return [made for name, made in EXPERIMENTS.items() if not names or name in names]
