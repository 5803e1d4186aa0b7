"""What an experiment is: how it is measured, its table, its pictures, its words, all in one record.

Study on exact data: not a private release. Owns the records and what most experiments share
(settings, spread over repetitions). Knows no experiment, and nothing about output folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.privacy.budget import Budget
from dpregions.study.datasets import DataSet, Setting, exact_data
from dpregions.study.harness import Row, Trial
from dpregions.study.methods import EULER, METHODS, run_truth

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpregions.study.statements import Finding

Pictures = Iterator[tuple[str, "Figure"]]
"""Each with a name for its file."""
Raw = list[tuple[Setting, "pd.DataFrame"]]

WHERE = ("dataset", "cells_a_side", "cell_km", "sensitivity", "epsilon")
SPREAD = ("low", "high", "repetitions")
"""Low and high hold eight of ten repetitions."""

FINE = 20
"""Cells a side where histograms are compared."""

READING = 10.0
"""About how many seconds it takes to read a file of fixes and extract their regions."""


@dataclass(frozen=True)
class Source:
    """What every measurement of a study shares."""

    methods: tuple[str, ...]
    seed: int
    folder: Path | None
    """Of data."""
    kept: Path
    """Folder of regions, and of the fixes of the users who are shown."""

    def trial(self, setting: Setting) -> Trial:
        """Return the methods at a setting, the truth first."""
        methods = {EULER: run_truth, **{name: METHODS[name] for name in self.methods}}
        return Trial(
            exact_data(setting, self.kept),
            methods,
            Budget(setting.epsilon),
            seed=self.seed,
            key=setting.key,
        )


@dataclass(frozen=True)
class Measure:
    """How raw rows are measured, for all experiments that read them."""

    name: str
    rows: Callable[[Source, Unit], Iterator[Row]]
    once: float = 0.0
    """About how many seconds it takes beyond its repetitions, where a file is read."""
    each: float = 0.0
    """About how many seconds each repetition takes, beyond a draw of all methods."""


@dataclass(frozen=True)
class Unit:
    """Some repetitions of one measure at one setting: done whole, saved whole."""

    measure: Measure
    setting: Setting
    first: int
    last: int

    @property
    def name(self) -> str:
        """A name for its file."""
        return f"{self.measure.name}-{self.setting.key}-{self.first:05d}"

    @property
    def cost(self) -> float:
        """About how many seconds it takes; a draw of all methods grows with footprints of k x k."""
        reads = self.first == 0 and not self.setting.data.made_up
        draw = self.setting.cells_spanned**2 / 400
        return self.measure.once * reads + (self.last - self.first) * (self.measure.each + draw)


def measure(source: Source, unit: Unit) -> pd.DataFrame:
    """Do one unit of work."""
    import pandas as pd

    return pd.DataFrame(list(unit.measure.rows(source, unit)))


def as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    """Return a copy: of rows that are a table already, of a table that readers see whole."""
    return table.copy()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment, whole: what to measure where, and what becomes of the measurements."""

    name: str
    title: str
    about: str
    measure: Measure
    settings: Callable[[DataSet], list[Setting]]
    columns: tuple[str, ...]
    """Of its table: readers of the CSV files rely on them."""
    draw: Callable[[pd.DataFrame, Source], Pictures]
    say: Callable[[pd.DataFrame], str]
    """The rows of one data set, in words made of their numbers."""
    summary: Callable[[pd.DataFrame], pd.DataFrame] = as_it_is
    """Raw measurements of one setting to rows of the table."""
    brief: Callable[[pd.DataFrame], pd.DataFrame] = as_it_is
    """The table to what the report shows of it."""
    judges: tuple[Callable[[pd.DataFrame | None], Finding], ...] = ()
    """What the paper prints about it, judged by its table, if there is one."""
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


def datasets_of(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each data set, in the table's order."""
    return {name: table[table["dataset"] == name] for name in dict.fromkeys(table["dataset"])}


def main(data: DataSet) -> list[Setting]:
    """Return the paper's main setting."""
    return [Setting(data, data.n)]


def fine(data: DataSet) -> list[Setting]:
    """Return the setting where histograms are compared."""
    return [Setting(data, FINE)]


def varied(data: DataSet) -> bool:
    """Say whether cell size and epsilon are varied: on T-Drive in the paper, our city here."""
    return data.name in ("tdrive", "synthetic")


def spread(groups: Any, name: str) -> pd.DataFrame:
    """Return the median over repetitions of each group, and what holds eight of ten of them."""
    table: pd.DataFrame = groups.median().rename(name).to_frame()
    table["low"], table["high"] = groups.quantile(0.1), groups.quantile(0.9)
    table["repetitions"] = groups.count()
    return table.reset_index()
