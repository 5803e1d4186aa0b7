"""How far the predictions of `plan` are from what is measured, in busy places and in typical ones.

Study on exact data: not a private release. Told the kind of city, a plan is compared with other
cities of that kind than it rehearsed on; without being told, with T-Drive and GeoLife, where their
files are given (--data FOLDER, or DPREGIONS_DATA), and with a skewed centre.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Row, show
from benchmarks.trees import geolife
from benchmarks.utility import MAX_DIAMETER, City, tdrive, usual_folder
from dpregions import Grid, cities
from dpregions.planning.exact_data import ExactData
from dpregions.planning.planner import plan
from dpregions.planning.rehearsal import PLACES, asked_places, place_errors
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.methods import METHODS, OURS, ROUND

SHARES = (0.01, 0.05, 0.25)
NAMES = {"footprint": OURS, "paper": ROUND}
TOLD, UNTOLD = 1.5, 3.0
"""The goals: within these factors where the kind of city was told, and where it was not."""
CITIES = 6
"""Cities of a kind that are measured; no plan rehearses on them."""

Figures = dict[tuple[str, str], float]
"""Errors by query and place."""


@dataclass(frozen=True)
class Setting:
    """About how many regions, on n x n cells, at which epsilon; a kind of city, or data."""

    kind: str
    n_regions: int
    n: int
    epsilon: float
    load: Callable[[], City] | None = None
    told: bool = True

    @property
    def name(self) -> str:
        """What the setting is called."""
        how = "" if self.told else " (not told)"
        return f"{self.kind}{how} N={self.n_regions:,} n={self.n} eps={self.epsilon:g}"

    @property
    def grid(self) -> Grid:
        """The area: 20 km for made-up cities."""
        if self.load is not None:
            return self.load().grid
        return Grid(0, 0, 20_000 / self.n, self.n, self.n, crs=32632)

    def data(self) -> list[ExactData]:
        """Return the data that are measured."""
        if self.load is not None:
            # One row is one region: of GeoLife, one for each trajectory.
            return [ExactData.of(*self.load(), MAX_DIAMETER, user_id=None)]
        made = (
            cities.made_up(self.kind, self.n_regions, seed=seed).regions(self.grid, MAX_DIAMETER)
            for seed in range(CITIES)
        )
        return [ExactData.of(regions, self.grid, MAX_DIAMETER) for regions in made]


TELLING = [
    Setting(kind, n_regions, n, epsilon)
    for kind in ("even", "districts", "skewed", "malls", "corridor", "thin", "small", "wide")
    for n_regions, n, epsilon in ((1_000, 10, 1.0), (10_000, 20, 0.5), (10_000, 40, 1.0))
]
SKEWED_CENTRE = Setting("skewed", 7_000, 40, 1.0, told=False)


def settings(data: Path | None, quick: bool = False) -> list[Setting]:
    """Return what to compare: kinds of cities, and real data where a folder holds them."""
    if quick:
        return [Setting("even", 500, 10, 1.0)]
    found = [*TELLING, SKEWED_CENTRE]
    if data is not None and (data / "tdrive.parquet").exists():
        for n, epsilon in ((10, 0.1), (20, 1.0), (40, 1.0)):
            load = partial(tdrive, data, n)
            found.append(Setting("T-Drive", 10_000, n, epsilon, load, told=False))
    if data is not None and (data / "geolife.parquet").exists():
        found.append(Setting("GeoLife", 25_000, 20, 1.0, partial(geolife, data, 20), told=False))
    return found


def predicted(setting: Setting, method: str) -> tuple[Figures, dict[tuple[str, str], Any]]:
    made = plan(
        setting.grid,
        max_diameter=MAX_DIAMETER,
        n_regions=setting.n_regions,
        epsilons=setting.epsilon,
        queries=[f"{100 * share:g}%" for share in SHARES],
        methods=method,
        shape=setting.kind if setting.told else None,
    )
    rows = {(row.query, row.place): row for row in made.rows}
    return {key: row.error for key, row in rows.items()}, rows


def measured(
    data: ExactData,
    shapes: dict[str, tuple[int, int]],
    *,
    method: str,
    epsilon: float,
    repetitions: int,
    seed: int = 0,
) -> Figures:
    """Return the errors of a method by query and place: medians over repetitions."""
    found: dict[tuple[str, str], list[float]] = {}
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        noise = StudyNoise(int(rng.integers(2**62)))
        answering = METHODS[method](data, Budget(epsilon), "add-remove", noise)[NAMES[method]]
        for query, shape in shapes.items():
            for place, cells in zip(PLACES, asked_places(data, shape, rng), strict=True):
                answers = np.asarray(answering.answers(cells), np.float64)
                error, _ = place_errors(answers, data.truth.answers(cells))
                found.setdefault((query, place), []).append(error)
    return {key: float(np.median(errors)) for key, errors in found.items()}


def compare(setting: Setting, method: str, repetitions: int) -> list[Row]:
    """Return one row for each query and place: predicted, measured, their ratio."""
    guess, rows = predicted(setting, method)
    shapes = {row.query: (row.rows, row.cols) for row in rows.values()}
    data = setting.data()
    each = max(repetitions // len(data), 2)
    figures = [
        measured(city, shapes, method=method, epsilon=setting.epsilon, repetitions=each, seed=seed)
        for seed, city in enumerate(data)
    ]
    goal = TOLD if setting.told else UNTOLD
    found = []
    for key, error in guess.items():
        truth = float(np.median([one[key] for one in figures]))
        kinds = ", ".join(f"{kind} {100 * e:.3g} %" for kind, e in rows[key].by_kind.items())
        found.append(
            Row(
                f"{setting.name} {method} {key[0]} {key[1]}",
                100 * error,
                "%",
                "measured",
                100 * truth,
                error / truth,
                f"{1 / goal:.2f} to {goal:g}",
                kinds,
            )
        )
    return found


def within(rows: list[Row], factor: float) -> str:
    """Return how many predictions are within a factor of what is measured."""
    ratios = np.array([row.ratio for row in rows])
    held = int(((ratios <= factor) & (ratios >= 1 / factor)).sum())
    return f"{held} of {len(rows)} within a factor of {factor:g}, from {ratios.min():.2f} to " + (
        f"{ratios.max():.2f}"
    )


def markdown(setting: Setting, rows: list[Row]) -> str:
    """Return a setting's rows as a line of a Markdown table."""
    cells = [f"{row.ours:.3g} / {row.peer_value:.3g} ({row.ratio:.2f})" for row in rows]
    method = rows[0].what.removeprefix(setting.name).split()[0]
    return f"| {setting.name} | {method} | " + " | ".join(cells) + " |"


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Compare a few settings; `python -m benchmarks.plan` compares them all."""
    chosen = settings(data or usual_folder(), quick)
    return [
        row
        for setting in (chosen if quick else chosen[::4])
        for row in compare(setting, "footprint", repetitions=4 if quick else 12)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--repetitions", type=int, default=24)
    parser.add_argument("--methods", default="footprint,paper")
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--markdown", type=Path, help="file for the table, as Markdown")
    args = parser.parse_args()
    head = " | ".join(f"{share:.0%} {place}" for share in SHARES for place in PLACES)
    lines = [f"| predicted / measured in % | method | {head} |"]
    lines.append("|---|---|" + "---:|" * (len(SHARES) * len(PLACES)))
    all_rows: dict[bool, list[Row]] = {True: [], False: []}
    for setting in settings(args.data):
        if args.only not in setting.name:
            continue
        for method in args.methods.split(","):
            rows = compare(setting, method, args.repetitions)
            show(setting.name, rows)
            lines.append(markdown(setting, rows))
            all_rows[setting.told] += rows
        if args.markdown:
            args.markdown.write_text("\n".join(lines) + "\n")
    for told, rows in all_rows.items():
        if rows:
            print("told the kind:" if told else "not told:", within(rows, TOLD if told else UNTOLD))


if __name__ == "__main__":
    main()
