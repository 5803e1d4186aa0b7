"""How often the 95 % intervals of releases hold the true count, by size and by decile of truth.

Study on exact data: not a private release. Kinds of made-up cities and synthetic ones always;
T-Drive, GeoLife and Cabspotting where their Parquet files are given (--data FOLDER, or
DPREGIONS_DATA for `make bench`). Half of the queries are placed evenly, half as people are. With a
checkout of an earlier state (--today FOLDER) its intervals are asked the same queries.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import geopandas
import numpy as np
import pandas as pd

from benchmarks import earlier
from benchmarks.report import Row
from benchmarks.trees import geolife
from benchmarks.utility import (
    MAX_DIAMETER,
    City,
    cabspotting,
    synthetic_city,
    tdrive,
    usual_folder,
)
from dpregions import Grid, cities
from dpregions.planning.exact_data import ExactData
from dpregions.study.coverage import asked_of, inside, interval_rows, labelled, rows_of, seed_of
from dpregions.study.coverage_figures import (
    PROMISED,
    coverage_table,
    coverage_tests,
    width_ratios,
    with_deciles,
)

EPSILONS = (0.1, 0.5, 1.0, 5.0)
HELD_OUT = ("GeoLife", "corridor", "wide", "scattered")
"""Data on which no constant of the intervals may be set: they are looked at in the end alone."""

POOLED = 0.94
"""The goal for all queries of all settings together."""
PLACEMENTS = 40
WIDER = 1.6
"""The goal: at the median at most so many times as wide as earlier, where that held."""


class Kind(NamedTuple):
    """A made-up city on square cells of side 1: how many regions, cells a side, their bound."""

    kind: str
    n_regions: int
    n: int
    max_diameter: float


KINDS = {
    "even": Kind("even", 4_000, 20, 2.0),
    "skewed centre": Kind("skewed", 7_000, 40, 2.0),
    "malls": Kind("malls", 2_300, 20, 2.0),
    "thin diagonals": Kind("thin", 4_000, 20, 2.0),
    "small in a large bound": Kind("small", 5_000, 20, 4.0),
    "few": Kind("even", 29, 50, 10.0),
    "corridor": Kind("corridor", 4_000, 20, 2.0),
    "wide": Kind("wide", 6_000, 40, 10.0),
    "scattered": Kind("scattered", 100, 40, 1.6),
}


def made_up_city(kind: Kind) -> City:
    grid = Grid(0, 0, 1, kind.n, kind.n)
    return City(cities.made_up(kind.kind, kind.n_regions).regions(grid, kind.max_diameter), grid)


@dataclass(frozen=True)
class Setting:
    """A data set on a grid at an epsilon."""

    data: str
    epsilon: float
    load: Callable[[], City]
    max_diameter: float | str = MAX_DIAMETER

    @property
    def name(self) -> str:
        """What the setting is called."""
        return f"{self.data}, epsilon = {self.epsilon:g}"

    @property
    def held_out(self) -> bool:
        """Whether constants may not be set on it."""
        return self.data.startswith(HELD_OUT)


def settings(data: Path | None, quick: bool = False) -> list[Setting]:
    """Return what to measure: real data where a folder holds them, synthetic cities, kinds."""
    if quick:
        return [Setting("synthetic N=500 n=10", 1.0, partial(synthetic_city, 500, 10))]
    loads: dict[str, tuple[Callable[[], City], float | str]] = {}
    if data is not None and (data / "tdrive.parquet").exists():
        for n in (10, 20, 40, 100):
            loads[f"T-Drive n={n}"] = partial(tdrive, data, n), MAX_DIAMETER
    if data is not None and (data / "geolife.parquet").exists():
        loads["GeoLife n=20"] = partial(geolife, data, 20), MAX_DIAMETER
    if data is not None and (data / "cabspotting.parquet").exists():
        for size in (800, 160):
            load = partial(cabspotting, data, size)
            loads[f"Cabspotting d={size / 1000:g}km"] = load, MAX_DIAMETER
    for n_users in (200, 2_000, 20_000, 200_000):
        load = partial(synthetic_city, n_users, 20)
        loads[f"synthetic N={n_users:,} n=20"] = load, MAX_DIAMETER
    for name, kind in KINDS.items():
        loads[name] = partial(made_up_city, kind), kind.max_diameter
    return [
        Setting(name, epsilon, load, bound)
        for name, (load, bound) in loads.items()
        for epsilon in EPSILONS
    ]


def measured(setting: Setting, releases: Iterable[int], state: Path | None = None) -> pd.DataFrame:
    """Return the rows of some releases, by the present or by an earlier state of the package."""
    city, numbers = setting.load(), list(releases)
    # One row is one region: of GeoLife, one for each trajectory.
    data = ExactData.of(*city, setting.max_diameter, user_id=None)
    if state is None:
        return interval_rows(
            data, setting.max_diameter, epsilon=setting.epsilon, releases=numbers,
            placements=PLACEMENTS,
        )  # fmt: skip
    job = {
        "epsilon": setting.epsilon,
        "max_diameter": setting.max_diameter,
        "user_id": None,
        "seeds": [seed_of(number) for number in numbers],
    }
    asked = [asked_of(data, number, PLACEMENTS) for number in numbers]
    queries = [inside(one.cells, city.grid) for one in asked]
    bare = geopandas.GeoDataFrame(geometry=city.regions.geometry)
    rows, plans = [], {}
    with earlier.released(state, bare, city.grid, job, queries) as (folder, made):
        for i, (what, _) in enumerate(made):
            truth = data.truth.answers(asked[i].cells)
            ends = np.load(folder / f"{i}.ends.npy")
            rows.append(rows_of(numbers[i], asked[i], truth, *ends))
            plans[what] = plans.get(what, 0) + 1
    return labelled(rows, plans)


def extended(
    setting: Setting, releases: int, kept: Path | None, state: Path | None = None
) -> pd.DataFrame:
    """Return so many releases; those that an earlier run kept in a folder are not made again."""
    if kept is None:
        return measured(setting, range(releases), state)
    kept.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.=-]+", "_", setting.name) + (".today" if state else "")
    path = kept / f"{name}.parquet"
    before = pd.read_parquet(path) if path.exists() else pd.DataFrame({"release": []})
    lacking = sorted(set(range(releases)) - set(before["release"]))
    if lacking:
        now = measured(setting, lacking, state)
        both = pd.concat([before, now], ignore_index=True) if len(before) else now
        plans = [table.attrs.get("plans", {}) for table in (before, now)]
        both.attrs = now.attrs | {
            "plans": {what: sum(p.get(what, 0) for p in plans) for what in {**plans[0], **plans[1]}}
        }
        both.to_parquet(path)
        before = both
    return before[before["release"] < releases]


def rows_for(setting: Setting, rows: pd.DataFrame, releases: int) -> list[Row]:
    """Return one row per size: how much was held, and of the tenth with the largest truth."""
    by_size = coverage_table(rows, ["size"])
    busy = coverage_table(with_deciles(rows).query("decile == 10"), ["size"])["held"]
    return [
        Row(
            f"{setting.name}, {size}",
            100 * found["held"],
            "%",
            goal=f"no decile significantly below {PROMISED:.0%}",
            note=f"{releases} releases; busiest tenth {100 * busy.get(size, np.nan):.1f} %; median "
            f"width {found['width']:.3g} of {found['truth']:.3g}",
        )
        for size, found in by_size.iterrows()
    ]


def markdown(setting: Setting, rows: pd.DataFrame, today: pd.DataFrame | None) -> str:
    """Return a setting's coverage by size and decile, and its widths, as a Markdown table."""
    by = coverage_table(rows, ["size", "decile"])["held"].unstack("decile")
    whole = coverage_table(rows, ["size"])
    ratios = None if today is None else width_ratios(rows, today)
    titles = ["held in %, by decile of truth", *map(str, range(1, 11)), "all"]
    titles += ["median width", "of"] + ([] if ratios is None else ["width / earlier", "it held"])
    held_out = " (held out)" if setting.held_out else ""
    lines = [
        f"### {setting.name}{held_out}",
        "",
        f"{rows['release'].nunique()} releases.",
        "",
        "| " + " | ".join(titles) + " |",
        "|---|" + "---:|" * (len(titles) - 1),
    ]
    for size in rows["size"].unique():
        shares = [*(by.loc[size].get(decile) for decile in range(1, 11)), whole["held"][size]]
        cells = ["" if s is None or pd.isna(s) else f"{100 * s:.1f}" for s in shares]
        cells += [f"{whole['width'][size]:.3g}", f"{whole['truth'][size]:.3g}"]
        if ratios is not None:
            cells += [f"{ratios['ratio'][size]:.2f}", f"{100 * ratios['held_earlier'][size]:.1f}"]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    plans = sorted(rows.attrs.get("plans", {}).items(), key=lambda one: -one[1])
    return "\n".join([*lines, "", *(f"- {n} times: {what}" for what, n in plans[:3])]) + "\n"


def overview(found: dict[Setting, pd.DataFrame], before: dict[Setting, pd.DataFrame]) -> str:
    """Return a line for each setting: how much was held, where least, and how wide it is.

    Least is that of the size and decile with the lowest score, of those that were asked often.
    """
    titles = ["data", "epsilon", "held %", "least %", "where", "busiest cells %", "width of 1 x 1"]
    titles += ["of 3 x 3", "of 25 %"] + (["width / earlier"] if before else [])
    lines = [
        "| " + " | ".join(titles) + " |",
        "|---|---:|---:|---:|---|" + "---:|" * (len(titles) - 5),
    ]
    tests = coverage_tests({setting.name: rows for setting, rows in found.items()})
    for setting, rows in found.items():
        whole, mine = with_deciles(rows), tests.loc[setting.name]
        (size, decile), least = mine["score"].idxmin(), mine.loc[mine["score"].idxmin()]
        busy = whole[(whole["size"] == "1 x 1") & (whole["decile"] == 10)]["held"].mean()
        by_size = whole.groupby("size")[["width", "truth"]].median()
        widths = by_size.reindex(["1 x 1", "3 x 3", "25 %"])
        named = f"{size}, tenth {decile}" if size != "100 %" else "whole area"
        cells = [f"{setting.data}{' (held out)' * setting.held_out}", f"{setting.epsilon:g}"]
        cells += [f"{100 * whole['held'].mean():.1f}", f"{100 * least['held']:.1f}", named]
        cells.append("" if np.isnan(busy) else f"{100 * busy:.1f}")
        cells += [
            "" if np.isnan(width) else f"{width:.3g} ({truth:.3g})"
            for width, truth in widths.to_numpy()
        ]
        if before:
            there = before.get(setting)
            cells.append("" if there is None else ratios_in_words(rows, there))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ratios_in_words(rows: pd.DataFrame, there: pd.DataFrame) -> str:
    """Return the median and the largest ratio of widths over sizes where an earlier state held."""
    now = rows[rows["release"].isin(there["release"])]
    table = width_ratios(now, there)
    ratios = table.loc[table["held_earlier"] >= PROMISED, "ratio"]
    return f"{ratios.median():.2f} ({ratios.max():.2f})" if len(ratios) else "it held nowhere"


def verdict(found: dict[Setting, pd.DataFrame], earlier_rows: dict[Setting, pd.DataFrame]) -> str:
    """Return what is significantly below the promise, how much all hold, and how wide it is."""
    tests = coverage_tests({setting.name: rows for setting, rows in found.items()})
    lines = ["## All settings", ""]
    for title, out in (("on which constants may be set", False), ("held out", True)):
        parts = [with_deciles(rows) for setting, rows in found.items() if setting.held_out == out]
        if parts:
            held = pd.concat(parts)["held"]
            names = {setting.name for setting in found if setting.held_out == out}
            mine = tests[tests.index.get_level_values("setting").isin(names)]
            lines.append(
                f"- Settings {title}: {len(parts)}; {100 * held.mean():.1f} % of {len(held):,} "
                f"intervals hold (goal {POOLED:.0%}); {int(mine['below'].sum())} of {len(mine):,} "
                f"sizes and deciles are significantly below {PROMISED:.0%} (goal 0)."
            )
    lines.append(f"- Significant is below {tests.attrs['critical']:.2f} standard errors.")
    ratios = []
    for setting, rows in found.items():
        if setting in earlier_rows:
            table = width_ratios(rows, earlier_rows[setting])
            ratios.append(table[table["held_earlier"] >= PROMISED])
    if ratios and len(pd.concat(ratios)):
        wider = pd.concat(ratios)["ratio"]
        lines.append(
            f"- Where the earlier state held {PROMISED:.0%}, median widths are "
            f"{wider.median():.2f} "
            f"times its own (median of {len(wider)}) and at most {wider.max():.2f} (goal "
            f"{WIDER:g})."
        )
    below = tests[tests["below"]].sort_values("score")
    if len(below):
        lines += ["", "| below | size | decile | held % | of | standard errors |"]
        lines.append("|---|---|---:|---:|---:|---:|")
        for (name, size, decile), row in below.iterrows():
            figures = f"{100 * row['held']:.1f} | {row['n']:.0f} | {row['score']:.1f}"
            lines.append(f"| {name} | {size} | {decile} | {figures} |")
    return "\n".join(lines) + "\n"


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure a few releases of each setting; `python -m benchmarks.coverage` does more."""
    releases = 5 if quick else 20
    rows = []
    for setting in settings(data or usual_folder(), quick):
        rows += rows_for(setting, measured(setting, range(releases)), releases)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--quick", action="store_true", help="one small city")
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--only", default="", help="settings whose name matches this expression")
    parser.add_argument(
        "--without-held-out", action="store_true", help=f"leave out {', '.join(HELD_OUT)}"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="folder of tables, to go on from there; one for each state of code",
    )
    parser.add_argument("--today", type=Path, help="a checkout of the earlier state")
    parser.add_argument("--markdown", type=Path, help="file for the tables, as Markdown")
    args = parser.parse_args()
    found: dict[Setting, pd.DataFrame] = {}
    before: dict[Setting, pd.DataFrame] = {}
    texts = []
    for setting in settings(args.data, args.quick):
        left_out = args.without_held_out and setting.held_out
        if left_out or not re.search(args.only, setting.name):
            continue
        start = time.process_time()
        found[setting] = extended(setting, args.releases, args.keep)
        if args.today:
            before[setting] = extended(setting, args.releases, args.keep, args.today)
        text = markdown(setting, found[setting], before.get(setting))
        print(f"{text}\n{time.process_time() - start:.0f} s of CPU", flush=True)
        texts.append(text)
        if args.markdown:
            whole = [verdict(found, before), overview(found, before), *texts]
            args.markdown.write_text("\n".join(whole))
    if found:
        print(verdict(found, before))


if __name__ == "__main__":
    main()
