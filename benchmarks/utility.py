"""Errors of the footprint mechanism, of the paper's Round and of simple baselines, side by side.

Study on exact data: not a private release. Synthetic cities always; T-Drive and Cabspotting
where their Parquet files are given (--data FOLDER, or DPREGIONS_DATA for `make bench`). Regions
of real fixes are kept in the system's temporary folder between runs, never in the project.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import geopandas
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.report import Row
from dpregions import Grid, paper, regions_from_fixes, synthetic
from dpregions.errors import InputError
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.harness import errors_by_size, evaluate
from dpregions.study.methods import SIMPLE_BASELINES, run_footprint

MAX_DIAMETER = "2km"
COMPARED = ("paper", "footprint", *SIMPLE_BASELINES)
HOPELESS = 0.5
"""Where the best baseline errs by more than this, sizes are reported and not judged."""

Goals = dict[float, float]
TEN_AT_LEAST: Goals = dict.fromkeys(Rectangles.SHARES, 10.0)
TDRIVE_20: Goals = {**TEN_AT_LEAST, 0.01: 4.0, 0.02: 4.0, 0.05: 7.0}


class City(NamedTuple):
    """Regions, and the grid on which they are counted."""

    regions: geopandas.GeoDataFrame
    grid: Grid

    def exact(self) -> ExactData:
        """Return them in every form that some method starts from."""
        return ExactData.of(self.regions, self.grid, MAX_DIAMETER)


@dataclass(frozen=True)
class Setting:
    """A data set on a grid at an epsilon, and how many times better than Round is promised."""

    name: str
    load: Callable[[], City]
    epsilon: float = 1.0
    goals: Goals = field(default_factory=lambda: dict.fromkeys(Rectangles.SHARES, 1.0))
    checks: int = 5
    """Releases whose every answer is checked for consistency."""


def synthetic_city(n_users: int, n: int = 20, seed: int = 0) -> City:
    grid = synthetic.grid("20km", 20_000 / n)
    return City(synthetic.regions(n_users, seed=seed), grid)


def real_regions(path: Path, k: int, crs: Any) -> geopandas.GeoDataFrame:
    """Return regions of fixes, from the temporary folder where an earlier run left them."""
    state = path.stat()
    key = f"{path.resolve()} {state.st_size} {state.st_mtime_ns} {k} {crs}"
    name = f"{path.stem}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.parquet"
    kept = Path(tempfile.gettempdir()) / f"dpregions-utility-{os.getuid()}" / name
    if kept.exists():
        return geopandas.read_parquet(kept)
    fixes = pd.read_parquet(path, columns=["user_id", "lon", "lat"])
    regions = regions_from_fixes(fixes, k=k, max_diameter=MAX_DIAMETER, crs=crs)
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    regions.to_parquet(kept)
    return regions


def tdrive(data: Path, n: int) -> City:
    grid = Grid.around(116.40, 39.91, side="20km", cell_size=Fraction(20_000, n))
    return City(real_regions(data / "tdrive.parquet", 163, grid.crs), grid)


def cabspotting(data: Path, cell_size: float) -> City:
    grid = Grid.around(-122.4, 37.792, side="3.2km", cell_size=cell_size)
    return City(real_regions(data / "cabspotting.parquet", 480, grid.crs), grid)


def settings(data: Path | None, quick: bool = False) -> list[Setting]:
    """Return what to measure: synthetic cities, and real data where a folder holds them."""
    if quick:
        return [Setting("synthetic N=2,000 n=20", partial(synthetic_city, 2000), checks=1)]
    found = []
    if data is not None and (data / "tdrive.parquet").exists():
        for n in (20, 30, 40):
            goals = TDRIVE_20 if n == 20 else TEN_AT_LEAST
            found.append(Setting(f"T-Drive n={n}", partial(tdrive, data, n), goals=goals))
        goals = dict.fromkeys(Rectangles.SHARES, 2.5)
        found.append(Setting("T-Drive n=10 eps=0.1", partial(tdrive, data, 10), 0.1, goals))
    if data is not None and (data / "cabspotting.parquet").exists():
        for size in (800, 160):
            name = f"Cabspotting d={size / 1000:g}km"
            found.append(Setting(name, partial(cabspotting, data, size)))
    for n_users in (200, 2_000, 20_000, 200_000, 1_000_000):
        name = f"synthetic N={n_users:,} n=20"
        found.append(Setting(name, partial(synthetic_city, n_users)))
    for n, n_users in ((10, 2_000), (10, 200_000), (40, 2_000), (40, 20_000), (40, 200_000)):
        name = f"synthetic N={n_users:,} n={n}"
        found.append(Setting(name, partial(synthetic_city, n_users, n)))
    return found


def consistency(data: ExactData, setting: Setting) -> tuple[int, int, int]:
    """Return negative answers, non-monotone nested pairs and pairs looked at, of some releases."""
    negative = non_monotone = pairs = 0
    for seed in range(setting.checks):
        found = run_footprint(data, Budget(setting.epsilon), "add-remove", StudyNoise(seed))
        looked = paper.inconsistency(found["footprint"].counts)
        negative += looked.negative
        non_monotone += looked.non_monotone
        pairs += looked.pairs
    return negative, non_monotone, pairs


class Ratio(NamedTuple):
    """A ratio of two methods' errors with its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


def bootstrap_ratio(
    errors: Sequence[float] | np.ndarray,
    others: Sequence[float] | np.ndarray,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Ratio:
    """Return the ratio of two methods' median errors, over the same repetitions.

    Parameters
    ----------
    errors, others
        One error a repetition. Repetition `i` of both asked the same rectangles, so they are
        drawn together.
    """
    above, below = np.asarray(errors, np.float64), np.asarray(others, np.float64)
    if above.shape != below.shape or above.ndim != 1 or not above.size:
        raise InputError(
            f"a ratio needs the same repetitions of both methods, got {above.size} and {below.size}"
        )
    drawn = np.random.default_rng(seed).integers(0, above.size, (resamples, above.size))
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where both answer exactly
        value = float(np.median(above) / np.median(below))
        ratios = np.median(above[drawn], axis=1) / np.median(below[drawn], axis=1)
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(ratios, [tail, 1 - tail], method="nearest")
    return Ratio(value, float(low), float(high))


def ratio(table: pd.DataFrame, above: str, below: str, share: float) -> Ratio:
    """Return one method's error over another's at a share, with a 95 % bootstrap interval."""
    sizes = table[(table["question"] == "size") & (table["share"] == share)]
    return _ratio(sizes, above, below)


def l1_ratio(table: pd.DataFrame, above: str, below: str) -> Ratio:
    """Return how many times farther one method's histogram is from the exact one in L1."""
    return _ratio(table[table["question"] == "l1"], above, below)


def _ratio(rows: pd.DataFrame, above: str, below: str) -> Ratio:
    found = rows.sort_values("repetition").set_index("method")["value"]
    return bootstrap_ratio(*(found.loc[[name]].to_numpy() for name in (above, below)))


def best_baseline(table: pd.DataFrame, share: float) -> str:
    """Return the simple baseline that errs least at a share."""
    errors = errors_by_size(table)[share]
    return str(errors[list(SIMPLE_BASELINES)].idxmin())


def rows_of(setting: Setting, table: pd.DataFrame) -> list[Row]:
    """Return one row a size: our error, Round's, their ratio with its interval."""
    errors, rows = errors_by_size(table), []
    for share in errors.columns:
        ours = errors.loc["footprint", share]
        better = ratio(table, "round", "footprint", share)
        best = best_baseline(table, share)
        notes = [
            f"95 %: {better.low:.2f}-{better.high:.2f}",
            f"covert/signed {ratio(table, 'footprint', 'footprint-signed', share).value:.2f}",
            f"ours/{best} {ours / errors.loc[best, share]:.2f}",
        ]
        if errors.loc[best, share] > HOPELESS:
            notes.append("all baselines above 50 %")
        rows.append(
            Row(
                f"{setting.name}, {share:.0%}",
                100 * ours,
                "%",
                "Round",
                100 * errors.loc["round", share],
                better.value,
                f">= {setting.goals[share]:g} x",
                ", ".join(notes),
            )
        )
    return rows


def show_setting(setting: Setting, table: pd.DataFrame, data: ExactData) -> None:
    """Print errors by method and size, and the ratios that are promised."""
    errors = errors_by_size(table)
    shown = Table(title=f"{setting.name}, epsilon = {setting.epsilon:g} ({ExactData.label})")
    shown.add_column("error in %, by size")
    for share in errors.columns:
        shown.add_column(f"{share:.0%}", justify="right")
    for name, values in errors.iterrows():
        shown.add_row(str(name), *(f"{100 * v:.3g}" for v in values))
    shown.add_section()
    pairs = {
        "round / footprint": ("round", "footprint"),
        "footprint / signed": ("footprint", "footprint-signed"),
    }
    for title, (above, below) in pairs.items():
        shown.add_row(title, *(str(ratio(table, above, below, s)) for s in errors.columns))
    best = [best_baseline(table, share) for share in errors.columns]
    against = [
        str(ratio(table, "footprint", name, share))
        for name, share in zip(best, errors.columns, strict=True)
    ]
    shown.add_row("footprint / best baseline", *against)
    shown.add_row("(which)", *best)
    console = Console(width=200)
    console.print(shown)
    console.print(
        f"L1 of the histogram, round / footprint: {l1_ratio(table, 'round', 'footprint')}"
    )
    negative, non_monotone, looked = consistency(data, setting)
    console.print(
        f"{setting.checks} releases: {negative} negative answers, {non_monotone} non-monotone "
        f"among {looked:,} nested pairs"
    )


def markdown(setting: Setting, table: pd.DataFrame, regions: int) -> str:
    """Return a setting's errors and ratios as a Markdown table."""
    errors = errors_by_size(table)
    repetitions = table["repetition"].nunique()
    lines = [
        f"### {setting.name}, epsilon = {setting.epsilon:g}",
        "",
        f"{regions:,} regions in the area, {repetitions} repetitions.",
        "",
        "| error in % | " + " | ".join(f"{share:.0%}" for share in errors.columns) + " |",
        "|---|" + "---:|" * len(errors.columns),
    ]

    def line(title: str, cells: Iterable[str]) -> None:
        lines.append(f"| {title} | " + " | ".join(cells) + " |")

    for name, values in errors.iterrows():
        line(str(name), (f"{100 * v:.3g}" for v in values))
    better = [ratio(table, "round", "footprint", share) for share in errors.columns]
    line("**round / footprint**", (f"**{r.value:.3g}**" for r in better))
    line("its 95 % interval", (f"{r.low:.3g}-{r.high:.3g}" for r in better))
    if any(goal > 1 for goal in setting.goals.values()):
        line("goal", (f"{setting.goals[share]:g}" for share in errors.columns))
    signed = (ratio(table, "footprint", "footprint-signed", share) for share in errors.columns)
    line("footprint / signed", (f"{r.value:.2f}" for r in signed))
    best = [(share, best_baseline(table, share)) for share in errors.columns]
    line(
        "footprint / best baseline",
        (f"{ratio(table, 'footprint', b, s).value:.2f}" for s, b in best),
    )
    lines += [
        "",
        f"L1 of the histogram, round / footprint: {l1_ratio(table, 'round', 'footprint')}.",
    ]
    return "\n".join(lines) + "\n"


PLOTTED = ("T-Drive n=20", "synthetic N=20,000 n=20")
"""What the picture shows of a run that measured more."""

STYLES = {
    "round": ("the paper's Round", "#b2182b", "o"),
    "cell counts": ("cell counts", "#999999", "v"),
    "centroid points": ("centroid points", "#7fbf7b", "^"),
    "four corners": ("four corner histograms", "#e08214", "s"),
    "footprint": ("footprint, covert counts", "#2166ac", "D"),
}


def plot(tables: dict[str, pd.DataFrame], path: Path) -> None:
    """Draw error by size for each method, one panel a setting, with bands.

    A band holds eight of ten repetitions.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(tables), figsize=(5.4 * len(tables), 4.6), sharey=True, squeeze=False
    )
    for axis, (title, table) in zip(axes[0], tables.items(), strict=True):
        for name, (label, colour, marker) in STYLES.items():
            mine = table[(table["method"] == name) & (table["question"] == "size")]
            errors = mine.groupby("share")["value"]
            low, middle, high = (100 * errors.quantile(q) for q in (0.1, 0.5, 0.9))
            strong = name in ("round", "footprint")
            x = 100 * middle.index.to_numpy()
            axis.plot(
                x, middle, color=colour, marker=marker, label=label, ms=5,
                lw=2.2 if strong else 1.3, zorder=3 if strong else 2,
            )  # fmt: skip
            axis.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        axis.set(xscale="log", yscale="log", title=title)
        axis.set_xlabel("size of the rectangle, % of the area")
        axis.set_xticks(
            [100 * s for s in Rectangles.SHARES], [f"{100 * s:g}" for s in Rectangles.SHARES]
        )
        axis.minorticks_off()
        axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("median relative error, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def usual_folder() -> Path | None:
    given = os.environ.get("DPREGIONS_DATA")
    return None if given is None else Path(given)


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure a few repetitions of each setting; `python -m benchmarks.utility` does more."""
    rows = []
    for setting in settings(data or usual_folder(), quick):
        repetitions = 4 if quick else 20
        city = setting.load().exact()
        table = evaluate(city, COMPARED, epsilon=setting.epsilon, repetitions=repetitions)
        rows += rows_of(setting, table)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--quick", action="store_true", help="one small city, few repetitions")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--placements", type=int, default=100, help="rectangles of each size")
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--save", type=Path, help="folder for the tables of errors, as CSV")
    parser.add_argument("--markdown", type=Path, help="file for the tables, as Markdown")
    parser.add_argument("--plot", type=Path, help="picture of the errors by size (PNG)")
    args = parser.parse_args()
    repetitions = 4 if args.quick else args.repetitions
    drawn, texts = {}, []
    for setting in settings(args.data, args.quick):
        if args.only not in setting.name:
            continue
        start = time.perf_counter()
        data = setting.load().exact()
        table = evaluate(
            data,
            COMPARED,
            epsilon=setting.epsilon,
            repetitions=repetitions,
            placements=args.placements,
        )
        show_setting(setting, table, data)
        print(f"{repetitions} repetitions, {time.perf_counter() - start:.0f} s", flush=True)
        drawn[f"{setting.name}, epsilon = {setting.epsilon:g}"] = table
        texts.append(markdown(setting, table, data.n_regions))
        if args.save:
            args.save.mkdir(parents=True, exist_ok=True)
            table.to_csv(args.save / f"{setting.name.replace(' ', '_')}.csv", index=False)
    if args.markdown:
        args.markdown.write_text("\n".join(texts))
    if args.plot and drawn:
        wanted = {title: table for title, table in drawn.items() if title.startswith(PLOTTED)}
        plot(wanted or drawn, args.plot)


if __name__ == "__main__":
    main()
