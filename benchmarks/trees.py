"""The adaptive tree beside an earlier state of the package: same data, same queries, same seeds.

Study on exact data: not a private release. The earlier state is a checkout of it (--today FOLDER);
it releases the same regions in a process of its own, and without it there is nothing to compare
with but the present choice. Real data where their Parquet files are given (--data FOLDER, or
DPREGIONS_DATA for `make bench`). How long large releases and their intervals take is measured by
`benchmarks.tree_scale`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import geopandas
import numpy as np
import pandas as pd
import shapely

from benchmarks import earlier, utility
from benchmarks.report import Row, show
from benchmarks.utility import MAX_DIAMETER, City, Ratio, tdrive, usual_folder
from dpregions import Grid
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.datasets import GEOLIFE, keep_regions, lacks_regions
from dpregions.study.harness import sized_questions

TODAY, NOW = "today", "now"
"""The earlier state, and the present one as it chooses."""
FORCED = {
    **{f"tree {detail:g}": Adaptive(detail, 64) for detail in (0.03, 0.15, 0.5)},
    "tree 0.15 / 256": Adaptive(0.15, 256),
}
"""Trees that are measured whatever the choice, by their detail; into 64 children but for one."""
PLACEMENTS = 200
NOT_WORSE = 0.9
TOWNS = 400


class Goal(NamedTuple):
    """How many times less a method is to err than the earlier state."""

    method: str
    times: float
    shares: tuple[float, ...] = Rectangles.SHARES
    """Of these sizes, in the geometric mean."""


@dataclass(frozen=True)
class Contest:
    """A data set on a grid at an epsilon, what is compared there, and what is promised."""

    name: str
    load: Callable[[], City]
    epsilon: float
    methods: tuple[str, ...]
    goals: tuple[Goal, ...]
    max_diameter: float | str = MAX_DIAMETER
    user_id: str | None = "user_id"


def geolife(data: Path, n: int) -> City:
    kept = Path(tempfile.gettempdir()) / f"dpregions-shapes-{os.getuid()}"
    if lacks_regions(GEOLIFE, kept):
        keep_regions(GEOLIFE, data, kept)
    return City(geopandas.read_parquet(kept / "geolife.parquet"), GEOLIFE.grid(n))


def country_regions(n_regions: int, n: int, k: float, piece: int = 0) -> np.ndarray:
    """Return hulls at most k cells long on n x n cells: towns by Zipf's law, a tenth elsewhere.

    Other pieces are other regions of the same towns.
    """
    rng = np.random.default_rng(0)
    towns, width = n * rng.random((TOWNS, 2)), n * rng.uniform(0.002, 0.02, TOWNS)
    rng = np.random.default_rng([0, piece])
    crowd = 1 / np.arange(1, TOWNS + 1)
    town = rng.choice(TOWNS, n_regions, p=crowd / crowd.sum())
    at = towns[town] + width[town, None] * rng.normal(size=(n_regions, 2))
    outside = (rng.random(n_regions) < 0.1) | ((at < 0) | (at >= n)).any(axis=1)
    at = np.where(outside[:, None], n * rng.random((n_regions, 2)), at)
    return ellipses(at, k * rng.uniform(0.2, 1.0, n_regions), rng)


def ellipses(at: np.ndarray, length: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return ellipses of eight corners about places, each of some length and slimness."""
    n = len(at)
    turn, slim = rng.uniform(0, np.pi, (n, 1)), rng.uniform(0.3, 1.0, (n, 1))
    corner = np.arange(8) * np.pi / 4
    u, v = np.cos(corner), slim * np.sin(corner)
    xy = np.stack([np.cos(turn) * u - np.sin(turn) * v, np.sin(turn) * u + np.cos(turn) * v], -1)
    return shapely.polygons(at[:, None] + length[:, None, None] / 2 * xy)


def country(n_regions: int, n: int, k: float) -> City:
    regions = geopandas.GeoDataFrame(geometry=country_regions(n_regions, n, k))
    return City(regions, Grid(0, 0, 1, n, n))


def contests(data: Path | None, quick: bool = False) -> list[Contest]:
    """Return what to measure: trees that are forced, a country, and every setting of `utility`."""
    not_worse = (Goal(NOW, NOT_WORSE),)
    if quick:
        load = partial(utility.synthetic_city, 300, 10)
        return [Contest("synthetic N=300 n=10", load, 1.0, (NOW, "tree 0.15"), not_worse)]
    found, methods = [], (NOW, *FORCED)
    better = {"Cabspotting d=0.16km": (Goal("tree 0.15", 1.25),)}
    if data is not None and (data / "tdrive.parquet").exists():
        goals = (Goal("tree 0.15", 1.2), *not_worse)
        found.append(Contest("T-Drive n=100", partial(tdrive, data, 100), 1.0, methods, goals))
    if data is not None and (data / "geolife.parquet").exists():
        load = partial(geolife, data, 20)
        # One region a trajectory.
        found.append(Contest("GeoLife n=20", load, 1.0, methods, not_worse, user_id=None))
    for setting in utility.settings(data):
        goals = (*better.get(setting.name, ()), *not_worse)
        found.append(Contest(setting.name, setting.load, setting.epsilon, methods, goals))
    shares = ((0.01, 2.0), (0.05, 3.0), (0.25, 5.0))
    goals = tuple(Goal(NOW, times, (share,)) for share, times in shares)
    load = partial(country, 300_000, 512, 2.0)
    found.append(Contest("country 512 x 512", load, 1.0, methods, goals, 2.0, None))
    return found


class Made(NamedTuple):
    """One release: its answers, what was measured, and the processor's seconds."""

    table: SignedTable
    measured: str
    seconds: float


def seed_of(repetition: int) -> int:
    """Return the seed of a repetition's noise, the same for every method."""
    return int(np.random.default_rng([0, repetition]).integers(2**62))


def by_the_present(
    data: ExactData, contest: Contest, method: str, repetitions: Sequence[int]
) -> Iterator[Made]:
    """Make releases as the package is: as it chooses, or by a tree that is forced."""
    mechanism = Footprint(strategy=FORCED.get(method))
    for repetition in repetitions:
        noise, start = StudyNoise(seed_of(repetition)), time.process_time()
        made = data.outcome(mechanism, Budget(contest.epsilon), "add-remove", noise)
        seconds = time.process_time() - start
        said = "; ".join(what for what, _ in made.spending)
        if isinstance(made.strategy, Adaptive):
            said = f"tree {made.strategy.detail:g}, {made.strategy.most_children}"
        yield Made(SignedTable(made.counts), said, seconds)


def by_an_earlier(
    today: Path, city: City, contest: Contest, repetitions: Sequence[int]
) -> Iterator[Made]:
    """Make releases with an earlier state of the package, in a process of its own."""
    job = {
        "epsilon": contest.epsilon,
        "max_diameter": contest.max_diameter,
        "user_id": contest.user_id,
        "seeds": [seed_of(repetition) for repetition in repetitions],
    }
    with earlier.released(today, city.regions, city.grid, job) as (folder, made):
        for number, (measured, seconds) in enumerate(made):
            yield Made(SignedTable(np.load(folder / f"{number}.npy")), measured, seconds)


def compare(
    contest: Contest, wanted: Mapping[str, Sequence[int]], today: Path | None
) -> pd.DataFrame:
    """Return the median error of each method, its repetitions and sizes of rectangles."""
    city = contest.load()
    data = ExactData.of(*city, contest.max_diameter, user_id=contest.user_id)
    rows = []
    for method, repetitions in wanted.items():
        made: Iterator[Made]
        if today is not None and method == TODAY:
            made = by_an_earlier(today, city, contest, repetitions)
        else:
            made = by_the_present(data, contest, method, repetitions)
        for repetition, (table, measured, seconds) in zip(repetitions, made, strict=True):
            rng = np.random.default_rng([1, repetition])
            for asked in sized_questions(Rectangles.SHARES, *data.grid.shape, rng, PLACEMENTS):
                off = np.median(data.errors(table.answers(asked.cells), asked.cells))
                error = max(float(off), 0.5 / data.n_regions)  # half a region is as good as none
                rows.append((method, repetition, asked.share, error, measured, seconds))
    names = ["method", "repetition", "share", "error", "measured", "seconds"]
    return pd.DataFrame(rows, columns=names)


def ratio(
    table: pd.DataFrame, above: str, below: str, shares: Sequence[float], resamples: int = 2000
) -> Ratio:
    """Return the geometric mean over sizes of one method's error over another's.

    With the 95 % interval of a bootstrap over repetitions, which both methods share.
    """
    by = table.set_index("method")
    logs = []
    for method in (above, below):
        errors = by.loc[method].pivot(index="repetition", columns="share", values="error")
        logs.append(np.log(errors[list(shares)].to_numpy()))
    n = len(logs[0])
    drawn = np.random.default_rng(0).integers(0, n, (resamples, n))
    one, many = (
        np.subtract(*(np.median(log[which], axis=-2) for log in logs)).mean(axis=-1)
        for which in (np.arange(n), drawn)
    )
    return Ratio(float(np.exp(one)), *np.exp(np.quantile(many, [0.025, 0.975])).tolist())


def measured_words(table: pd.DataFrame, method: str) -> str:
    """Return what a method measured, and how often."""
    one = table[(table["method"] == method) & (table["share"] == 1.0)]
    return ", ".join(f"{n} x [{what}]" for what, n in Counter(one["measured"]).most_common())


def rows_of(contest: Contest, table: pd.DataFrame) -> list[Row]:
    """Return one row a method, or a size where goals are about single sizes."""
    rows, n = [], table["repetition"].nunique()
    has_today = (table["method"] == TODAY).any()
    goals = {(goal.method, goal.shares): goal.times for goal in contest.goals}
    for method in contest.methods:
        mine = [shares for name, shares in goals if name == method] or [Rectangles.SHARES]
        for shares in mine:
            title = f"{contest.name}, {method}"
            if len(shares) == 1:
                title += f", {shares[0]:.0%}"
            errors = mean_error(table, method, shares)
            note, seconds = f"{n} repetitions", cpu(table, method)
            row = Row(title, 100 * errors, "%", note=f"{note}, {seconds:.2g} s each")
            if has_today:
                better = ratio(table, TODAY, method, shares)
                times = goals.get((method, shares))
                row = Row(
                    title,
                    100 * errors,
                    "%",
                    TODAY,
                    100 * mean_error(table, TODAY, shares),
                    better.value,
                    "" if times is None else f">= {times:g} x",
                    f"{note}, 95 %: {better.low:.2f}-{better.high:.2f}",
                )
            rows.append(row)
    return rows


def mean_error(table: pd.DataFrame, method: str, shares: Sequence[float]) -> float:
    """Return the geometric mean over sizes of a method's error."""
    errors = errors_by_size(table).loc[method, list(shares)]
    return float(np.exp(np.log(errors.to_numpy(np.float64)).mean()))


def errors_by_size(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median error over repetitions: a row a method, a column a size."""
    return table.groupby(["method", "share"], sort=False)["error"].median().unstack("share")


def cpu(table: pd.DataFrame, method: str) -> float:
    """Return the median of the processor's seconds of a release, without counting regions."""
    return float(table.loc[table["method"] == method, "seconds"].median())


def markdown(contest: Contest, table: pd.DataFrame) -> str:
    """Return a contest's errors and ratios as lines of a Markdown table."""
    errors, n = errors_by_size(table), table["repetition"].nunique()
    lines = []
    for method, values in errors.iterrows():
        cells = [f"{contest.name}, eps = {contest.epsilon:g}, {n} x", str(method)]
        cells += [f"{100 * value:.3g}" for value in values]
        if method == TODAY or TODAY not in errors.index:
            cells.append("")
        else:
            cells.append(str(ratio(table, TODAY, str(method), Rectangles.SHARES)))
        cells.append(f"{cpu(table, str(method)):.2g}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(contest: Contest, table: pd.DataFrame) -> str:
    """Return the ratios of all methods as one line of a Markdown table."""
    methods = [m for m in (NOW, *FORCED) if m in set(table["method"])]
    cells = [contest.name, str(table["repetition"].nunique())]
    cells += [str(ratio(table, TODAY, method, Rectangles.SHARES)) for method in methods]
    one = table[(table["method"] == NOW) & (table["share"] == 1.0)]
    cells.append(f"{one['measured'].str.startswith('tree').mean():.0%}")
    return "| " + " | ".join(cells) + " |"


def extended(
    contest: Contest, repetitions: int, today: Path | None, kept: Path | None = None
) -> pd.DataFrame:
    """Return so many repetitions; those that an earlier run kept in a folder are not made again."""
    methods = [TODAY, *contest.methods] if today else list(contest.methods)
    if kept is None:
        return compare(contest, dict.fromkeys(methods, range(repetitions)), today)
    kept.mkdir(parents=True, exist_ok=True)
    path = kept / (re.sub(r"[^\w.=-]+", "_", contest.name) + ".csv")
    before = pd.read_csv(path) if path.exists() else pd.DataFrame({"method": [], "repetition": []})
    missing = {}
    for method in methods:
        there = set(before.loc[before["method"] == method, "repetition"])
        if lacking := sorted(set(range(repetitions)) - there):
            missing[method] = lacking
    if missing:
        before = pd.concat([before, compare(contest, missing, today)], ignore_index=True)
        before.to_csv(path, index=False)
    return before


def run(quick: bool = False, data: Path | None = None, today: Path | None = None) -> list[Row]:
    """Measure a few repetitions of each contest; `python -m benchmarks.trees` does more."""
    rows = []
    for contest in contests(data or usual_folder(), quick):
        rows += rows_of(contest, extended(contest, 2 if quick else 3, today))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--today", type=Path, help="a checkout of the earlier state")
    parser.add_argument("--quick", action="store_true", help="one small city")
    parser.add_argument("--repetitions", type=int, default=8)
    parser.add_argument("--only", default="", help="contests whose name holds this text")
    parser.add_argument("--keep", type=Path, help="folder of tables (CSV): to go on from there")
    args = parser.parse_args()
    head = [f"{share:.0%}" for share in Rectangles.SHARES]
    titles = ["data", "method", *head, f"{TODAY} / method", "CPU s"]
    print("| " + " | ".join(titles) + " |")
    print("|---|---|" + "---:|" * (len(titles) - 2))
    rows, lines = [], []
    for contest in contests(args.data, args.quick):
        if not re.search(args.only, contest.name):
            continue
        start = time.perf_counter()
        table = extended(contest, args.repetitions, args.today, args.keep)
        rows += rows_of(contest, table)
        print(markdown(contest, table), flush=True)
        if args.today:
            lines.append(summary(contest, table))
        for method in table["method"].unique():
            print(f"  {method} measured {measured_words(table, method)}", file=sys.stderr)
        spent = time.perf_counter() - start
        print(f"  {contest.name}: {spent:.0f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    show("The adaptive tree", rows)
    titles = ["data", "repetitions", NOW, *FORCED, "trees chosen"]
    print("| " + " | ".join(titles) + " |", "|---|" + "---:|" * (len(titles) - 1), sep="\n")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
