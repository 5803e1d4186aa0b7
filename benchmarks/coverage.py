"""How often the 95 % intervals of releases hold the true count, by size of the rectangle.

Study on exact data: not a private release. Synthetic cities always; T-Drive and Cabspotting
where their Parquet files are given (--data FOLDER, or DPREGIONS_DATA for `make bench`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.report import Row
from benchmarks.utility import (
    MAX_DIAMETER,
    City,
    cabspotting,
    synthetic_city,
    tdrive,
    usual_folder,
)
from dpregions.study.coverage import interval_coverage

LEAST, MOST_NOISY = 0.93, 0.995
"""The goal: at least at every size; at most where noise makes over half of the expected error."""


@dataclass(frozen=True)
class Setting:
    """A data set on a grid at an epsilon."""

    name: str
    epsilon: float
    load: Callable[[], City]

    def coverage(self, releases: int) -> pd.DataFrame:
        """Return how often intervals hold the true count."""
        city = self.load()
        return interval_coverage(*city, MAX_DIAMETER, epsilon=self.epsilon, releases=releases)


def settings(data: Path | None, quick: bool = False) -> list[Setting]:
    """Return what to measure: data that are rich and poor, so that different plans are chosen."""
    if quick:
        return [Setting("synthetic N=2,000 n=20", 1.0, partial(synthetic_city, 2_000))]
    found = []
    if data is not None and (data / "tdrive.parquet").exists():
        for n, epsilon in ((20, 1.0), (10, 0.1), (20, 0.1), (40, 0.4)):
            found.append(Setting(f"T-Drive n={n}", epsilon, partial(tdrive, data, n)))
    if data is not None and (data / "cabspotting.parquet").exists():
        for size in (800, 160):
            name = f"Cabspotting d={size / 1000:g}km"
            found.append(Setting(name, 1.0, partial(cabspotting, data, size)))
    cities = (
        (200, 20, 1.0), (2_000, 20, 1.0), (20_000, 20, 1.0), (200_000, 20, 1.0), (10_000, 10, 0.1),
        (20_000, 40, 0.4),
    )  # fmt: skip
    for n_users, n, epsilon in cities:
        name = f"synthetic N={n_users:,} n={n}"
        found.append(Setting(name, epsilon, partial(synthetic_city, n_users, n)))
    return found


def rows_of(setting: Setting, table: pd.DataFrame, releases: int) -> list[Row]:
    """Return one row a size: how much was held, of all and of those ruled by noise."""
    return [
        Row(
            f"{setting.name}, epsilon = {setting.epsilon:g}, {share:.0%}",
            100 * found["held"],
            "%",
            goal=f">= {LEAST:.0%}, <= {MOST_NOISY:.1%} where noise rules",
            note=f"{releases} releases; {found['held_noisy']:.1%} where noise makes over half "
            f"of the expected error; mean width {found['relative_width']:.1%} of the mean count",
        )
        for share, found in table.iterrows()
    ]


def markdown(setting: Setting, table: pd.DataFrame, releases: int) -> str:
    """Return a setting's coverage and widths as a Markdown table."""
    lines = [
        f"### {setting.name}, epsilon = {setting.epsilon:g}",
        "",
        f"{releases} releases.",
        "",
        "| in % | " + " | ".join(f"{share:.0%}" for share in table.index) + " |",
        "|---|" + "---:|" * len(table),
    ]
    titles = {
        "held": "true count held",
        "held_noisy": "where noise makes over half of the expected error",
        "noisy": "how often that is so",
        "relative_width": "mean width, of the mean count",
    }
    for column, title in titles.items():
        cells = ("" if pd.isna(v) else f"{100 * v:.3g}" for v in table[column])
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure a few releases of each setting; `python -m benchmarks.coverage` does more."""
    releases = 10 if quick else 50
    rows = []
    for setting in settings(data or usual_folder(), quick):
        rows += rows_of(setting, setting.coverage(releases), releases)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--quick", action="store_true", help="one small city")
    parser.add_argument("--releases", type=int, default=500)
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--markdown", type=Path, help="file for the tables, as Markdown")
    args = parser.parse_args()
    texts = []
    for setting in settings(args.data, args.quick):
        if args.only not in setting.name:
            continue
        start = time.perf_counter()
        table = setting.coverage(args.releases)
        text = markdown(setting, table, args.releases)
        print(text)
        for plan, times in table.attrs["plans"].items():
            print(f"{times} times: {'; '.join(plan)}")
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
        texts.append(text)
        if args.markdown:
            args.markdown.write_text("\n".join(texts))


if __name__ == "__main__":
    main()
