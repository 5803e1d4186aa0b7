"""How far the predictions of `plan` are from what the synthetic city measures.

Predictions come from the public parameters alone. Measured is a run of the study's harness on
the regions of `dpregions.synthetic`: its default city, and several cities with other seeds
(the plan is made on yet others), with noise of their own. T-Drive too, where its file is given
(--data FOLDER, or DPREGIONS_DATA). Study on exact data: not a private release.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.report import Row, show
from benchmarks.utility import MAX_DIAMETER, City, synthetic_city, tdrive, usual_folder
from dpregions import synthetic
from dpregions.planning.exact_data import ExactData
from dpregions.planning.planner import plan
from dpregions.study.harness import errors_by_size, evaluate

SHARES = (0.01, 0.05, 0.25, 1.0)
NAMES = {"footprint": "footprint", "paper": "round"}
CITIES = 6
"""Cities with other seeds, whose median is the second thing to compare with."""


@dataclass(frozen=True)
class Setting:
    """How many regions, on n x n cells, at which epsilon."""

    n_regions: int
    n: int
    epsilon: float
    load: Callable[[], City] | None = None

    @property
    def name(self) -> str:
        """What the setting is called."""
        data = "T-Drive" if self.load else f"N={self.n_regions:,}"
        return f"{data} n={self.n} eps={self.epsilon:g}"


SETTINGS = [
    Setting(n_regions, n, epsilon)
    for n_regions, n, epsilon in (
        (1_000, 10, 0.5), (1_000, 10, 1), (1_000, 20, 0.5), (1_000, 20, 1), (1_000, 40, 1),
        (5_000, 10, 0.1), (5_000, 20, 0.5), (5_000, 40, 1),
        (10_000, 10, 0.1), (10_000, 10, 1), (10_000, 20, 0.1), (10_000, 20, 0.5), (10_000, 20, 1),
        (10_000, 40, 0.5), (10_000, 40, 1),
        (50_000, 10, 0.5), (50_000, 20, 1), (50_000, 40, 1),
        (200_000, 10, 1), (200_000, 20, 0.1), (200_000, 20, 1), (200_000, 40, 1),
    )
]  # fmt: skip


def predicted(setting: Setting, methods: list[str]) -> dict[tuple[str, float], float]:
    grid = synthetic.grid("20km", 20_000 / setting.n)
    made = plan(
        grid,
        max_diameter=MAX_DIAMETER,
        n_regions=setting.n_regions,
        epsilons=setting.epsilon,
        queries=[f"{100 * share:g}%" for share in SHARES],
        methods=methods,
    )
    asked = {f"{100 * share:.6g} %": share for share in SHARES}
    return {(row.method, asked[row.query]): row.error for row in made.rows}


def measured(
    data: ExactData, epsilon: float, methods: list[str], repetitions: int, seed: int
) -> dict[tuple[str, float], float]:
    table = evaluate(
        data, methods, epsilon=epsilon, repetitions=repetitions, seed=seed, shares=SHARES
    )
    errors = errors_by_size(table)
    return {(m, s): float(errors.loc[NAMES[m], s]) for m in methods for s in SHARES}


def compare(setting: Setting, methods: list[str], repetitions: int, cities: int) -> list[Row]:
    """Return one row a method and size: predicted, measured, their ratio."""
    guess = predicted(setting, methods)
    load = setting.load or partial(synthetic_city, setting.n_regions, setting.n)
    found = measured(load().exact(), setting.epsilon, methods, repetitions, seed=99)
    others: list[dict[tuple[str, float], float]] = []
    if setting.load is None:
        each = max(repetitions // cities, 3)
        for seed in range(1, cities + 1):
            data = synthetic_city(setting.n_regions, setting.n, seed).exact()
            others.append(measured(data, setting.epsilon, methods, each, seed=100 + seed))
    rows = []
    for method, share in guess:
        error, truth = guess[method, share], found[method, share]
        pooled = float(np.median([one[method, share] for one in others])) if others else np.nan
        rows.append(
            Row(
                f"{setting.name} {method} {share:.0%}",
                100 * error,
                "%",
                "T-Drive" if setting.load else "default city",
                100 * truth,
                error / truth,
                "0.70 to 1.30" if setting.load is None else "",
                f"other cities {100 * pooled:.3g} %, ratio {error / pooled:.2f}" if others else "",
            )
        )
    return rows


def markdown(setting: Setting, rows: list[Row]) -> str:
    """Return a setting's rows as lines of a Markdown table: a line a method."""
    lines = []
    for method in NAMES:
        of_method = [row for row in rows if f" {method} " in row.what]
        if not of_method:
            continue
        cells = [f"{row.ours:.3g} / {row.peer_value:.3g}" for row in of_method]
        ratios = " ".join(f"{row.ratio:.2f}" for row in of_method)
        others = " ".join(row.note.split()[-1] for row in of_method if row.note)
        lines.append(
            f"| {setting.name} | {method} | " + " | ".join(cells) + f" | {ratios} | {others} |"
        )
    return "\n".join(lines)


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Compare a few settings; `python -m benchmarks.plan` compares them all."""
    if quick:
        return compare(Setting(1_000, 10, 1), ["footprint"], repetitions=4, cities=2)
    rows = []
    for setting in settings(data or usual_folder())[::4]:
        rows += compare(setting, list(NAMES), repetitions=16, cities=4)
    return rows


def settings(data: Path | None) -> list[Setting]:
    found = list(SETTINGS)
    if data is not None and (data / "tdrive.parquet").exists():
        for n, epsilon in ((10, 0.1), (20, 1.0), (30, 1.0), (40, 1.0)):
            found.append(Setting(10_149, n, epsilon, partial(tdrive, data, n)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--markdown", type=Path, help="file for the table, as Markdown")
    args = parser.parse_args()
    head = " | ".join(f"{share:.0%}" for share in SHARES)
    lines = [
        f"| setting | method | {head} | predicted / measured | other cities |",
        "|---|---|" + "---:|" * len(SHARES) + "---|---|",
    ]
    for setting in settings(args.data):
        if args.only not in setting.name:
            continue
        rows = compare(setting, list(NAMES), args.repetitions, CITIES)
        show(setting.name, rows)
        lines.append(markdown(setting, rows))
        if args.markdown:
            args.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
