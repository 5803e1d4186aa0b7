"""Errors placed evenly and placed as people are, beside the best baseline and an earlier state.

Study on exact data: not a private release. The same regions, rectangles and epsilon for all: what
the package publishes, the study's baselines, and, with a checkout of an earlier state (--today
FOLDER), what that published. Single cells are asked too: all of them, and the crowded ones.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import coverage, earlier, utility
from benchmarks.report import Row
from benchmarks.trees import NOW, TODAY, geolife, ratio, seed_of
from benchmarks.utility import MAX_DIAMETER, City, Ratio, usual_folder
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import Answering, ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.harness import ANYWHERE, PEOPLE, people_questions, sized_questions
from dpregions.study.methods import BASELINES, METHODS, OURS

CELLS, CROWDED = "all cells", "crowded cells"
"""The mean absolute error of all cells; the mean relative one of those with `CROWD` or more."""
CROWD = 300
BEST = 1.1
"""The goal: at most so many times the error of the best baseline, by the interval's upper end."""
PLACED = {ANYWHERE: "evenly", PEOPLE: "as people are"}


@dataclass(frozen=True)
class Contest:
    """A data set on a grid at an epsilon."""

    name: str
    load: partial[City]
    epsilon: float = 1.0
    max_diameter: float | str = MAX_DIAMETER
    user_id: str | None = "user_id"


def contests(data: Path | None, quick: bool = False) -> list[Contest]:
    """Return what to measure: every setting of `utility`, GeoLife, and two made-up cities."""
    found = [
        Contest(setting.name, partial(setting.load), setting.epsilon)
        for setting in utility.settings(data, quick)
    ]
    if quick:
        return found
    if data is not None and (data / "geolife.parquet").exists():
        # One region a trajectory.
        found.append(Contest("GeoLife n=20", partial(geolife, data, 20), user_id=None))
    for name in ("skewed centre", "malls"):
        kind = coverage.KINDS[name]
        load = partial(coverage.made_up_city, kind)
        found.append(Contest(name, load, max_diameter=kind.max_diameter, user_id=None))
    return found


def measured(contest: Contest, repetitions: int, today: Path | None) -> pd.DataFrame:
    """Return the error of each method, repetition and kind of question."""
    city = contest.load()
    data = ExactData.of(*city, contest.max_diameter, user_id=contest.user_id)
    budget, rows = Budget(contest.epsilon), []
    for method in (OURS, *BASELINES):
        for number in range(repetitions):
            noise = StudyNoise(seed_of(number))
            (name, answering), *_ = METHODS[method](data, budget, "add-remove", noise).items()
            shown = NOW if method == OURS else name
            rows += [(shown, number, *row) for row in errors(data, answering, number)]
    if today is not None:
        job = {
            "epsilon": contest.epsilon,
            "max_diameter": contest.max_diameter,
            "user_id": contest.user_id,
            "seeds": [seed_of(number) for number in range(repetitions)],
        }
        with earlier.released(today, city.regions, city.grid, job) as (folder, made):
            for number in range(len(made)):
                answering = SignedTable(np.load(folder / f"{number}.npy"))
                rows += [(TODAY, number, *row) for row in errors(data, answering, number)]
    return pd.DataFrame(rows, columns=["method", "repetition", "placed", "share", "error"])


def errors(
    data: ExactData, answering: Answering, repetition: int
) -> Iterator[tuple[str, float, float]]:
    """Yield the median error by placement and size, then those of single cells."""
    rng, shape = np.random.default_rng([2, repetition]), data.grid.shape
    questions = [
        *sized_questions(Rectangles.SHARES, *shape, rng),
        *people_questions(Rectangles.SHARES, data, rng),
    ]
    for asked in questions:
        off = float(np.median(data.errors(answering.answers(asked.cells), asked.cells)))
        # Half a region is as good as none.
        yield asked.kind, asked.share, max(off, 0.5 / data.n_regions)
    row, col = np.indices(shape).reshape(2, -1)
    cells = np.stack([row, row, col, col])
    truth = np.asarray(data.truth.answers(cells), np.float64)
    off = np.abs(np.asarray(answering.answers(cells), np.float64) - truth)
    yield CELLS, 0.0, float(off.mean())
    if (truth >= CROWD).any():
        yield CROWDED, 0.0, float((off / np.maximum(truth, 1))[truth >= CROWD].mean())


def placed(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the rows of one placement."""
    return table[table["placed"] == kind]


def best_baseline(table: pd.DataFrame, kind: str) -> str:
    """Return the baseline with the least error of a placement, as geometric mean over sizes."""
    some = placed(table, kind)
    middle = some.groupby(["method", "share"])["error"].median()
    mean = np.log(middle).groupby("method").mean()
    return str(mean[list(BASELINES)].idxmin())


def against_best(table: pd.DataFrame, kind: str) -> tuple[str, Ratio]:
    """Return the best baseline and how many times its error ours is, over all sizes."""
    best = best_baseline(table, kind)
    return best, ratio(placed(table, kind), NOW, best, Rectangles.SHARES)


def cells_error(table: pd.DataFrame, method: str, kind: str) -> float:
    """Return the median over repetitions of an error of single cells."""
    some = placed(table, kind)
    return float(some.loc[some["method"] == method, "error"].median())


def rows_of(contest: Contest, table: pd.DataFrame) -> list[Row]:
    """Return one row for each placement: ours beside the best baseline."""
    rows = []
    for kind, words in PLACED.items():
        best, times = against_best(table, kind)
        note = f"{best}; 95 %: {times.low:.2f}-{times.high:.2f}"
        goal = f"<= {BEST:g} times the best baseline"
        title = f"{contest.name}, placed {words}"
        rows.append(Row(title, times.value, "times", goal=goal, note=note))
    return rows


def lines_of(contest: Contest, table: pd.DataFrame) -> list[str]:
    """Return a contest's ratios as one line of a Markdown table, then the errors by size."""
    both = TODAY in set(table["method"])
    cells = [contest.name, f"{contest.epsilon:g}", str(table["repetition"].nunique())]
    for kind in PLACED:
        best, times = against_best(table, kind)
        cells.append(f"{times} {best}")
        shown = str(ratio(placed(table, kind), TODAY, NOW, Rectangles.SHARES)) if both else ""
        cells.append(shown)
    for kind in (CELLS, CROWDED):
        there = placed(table, kind)["method"].isin([NOW]).any()
        names = [NOW, TODAY] if both else [NOW]
        scale = 100 if kind == CROWDED else 1
        values = [f"{scale * cells_error(table, name, kind):.3g}" for name in names]
        cells.append(" / ".join(values) if there else "")
    return ["| " + " | ".join(cells) + " |"]


def sizes_of(contest: Contest, table: pd.DataFrame) -> list[str]:
    """Return the errors by size, in percent, of ours and of the earlier state."""
    lines = []
    for kind, words in PLACED.items():
        some = placed(table, kind).groupby(["method", "share"])["error"].median().unstack("share")
        for method in (NOW, TODAY):
            if method in some.index:
                values = [f"{100 * value:.3g}" for value in some.loc[method]]
                lines.append(f"| {' | '.join([contest.name, words, method, *values])} |")
    return lines


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure a few repetitions of each contest; `python -m benchmarks.people` does more."""
    rows = []
    for contest in contests(data or usual_folder(), quick):
        rows += rows_of(contest, measured(contest, 2 if quick else 4, None))
    return rows


def table_of(lines: Iterable[str], titles: Iterable[str], text: int) -> str:
    """Return lines as a Markdown table, so many of whose first columns are text."""
    names = list(titles)
    rule = "|" + "---|" * text + "---:|" * (len(names) - text)
    return "\n".join(["| " + " | ".join(names) + " |", rule, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--today", type=Path, help="a checkout of the earlier state")
    parser.add_argument("--quick", action="store_true", help="one small city")
    parser.add_argument("--repetitions", type=int, default=24)
    parser.add_argument("--only", default="", help="contests whose name matches this expression")
    parser.add_argument("--keep", type=Path, help="folder for the tables of errors, as CSV")
    args = parser.parse_args()
    lines, by_size = [], []
    for contest in contests(args.data, args.quick):
        if not re.search(args.only, contest.name):
            continue
        start = time.process_time()
        table = measured(contest, args.repetitions, args.today)
        lines += lines_of(contest, table)
        by_size += sizes_of(contest, table)
        print(lines[-1], f"{time.process_time() - start:.0f} s", flush=True)
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            table.to_csv(args.keep / f"{contest.name.replace(' ', '_')}.csv", index=False)
    titles = ["data", "epsilon", "repetitions"]
    for words in PLACED.values():
        titles += [f"{words}: ours / best baseline", f"{words}: {TODAY} / ours"]
    titles += [f"cells, {NOW} / {TODAY}", f"{CROWD} and more, % {NOW} / {TODAY}"]
    print(table_of(lines, titles, 1))
    heads = ["data", "placed", "method", *(f"{share:.0%}" for share in Rectangles.SHARES)]
    print(table_of(by_size, heads, 3))


if __name__ == "__main__":
    main()
