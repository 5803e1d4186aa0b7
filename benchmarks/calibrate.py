"""What moves when a tuned number of the footprint mechanism is halved or doubled.

Each field of `mechanisms.footprint.tuning.Tuning` is changed by itself. The same made-up cities are
then released with the same seeds, and errors are held against those of today's numbers; for the
numbers that only intervals depend on, how often a 95 % interval holds the true count. Study on
exact data: not a private release.

    python -m benchmarks.calibrate --quick             a minute of computing
    python -m benchmarks.calibrate --markdown FILE     all settings: half an hour of computing
    python -m benchmarks.calibrate --fields doubt,reach --seeds 20
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.report import Row
from benchmarks.utility import synthetic_city
from dpregions.geometry.cells import select
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.mechanism import Footprint, FootprintOutcome
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.planning.exact_data import ExactData, relative_errors
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.coverage import inside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.mechanisms.footprint.measuring import Strategy

FIELDS = tuple(field.name for field in fields(Tuning))
INTERVALS = (
    "clumping",
    "tree_clumping",
    "place_doubt",
    "mix_doubt",
    "shape_crowd",
    "shape_clumping",
    "shape_doubt",
)
"""Fields that no answer depends on: their intervals are looked at instead."""
AT_MOST = dict.fromkeys(
    ("clumping", "tree_clumping", "shape_clumping", "crowd_share", "district_share"), 1.0
)
"""Shares of a whole, which cannot be doubled."""
PLACEMENTS, INTERVAL_PLACEMENTS = 60, 12
"""Rectangles of each size for errors; the first of them for intervals, which take longer."""
DRAWS, INTERVAL_DRAWS = 6, 16
"""Releases of each city. What to measure is chosen once, which takes far longer."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Setting:
    """A made-up city's users, on n x n cells of 20 km, and an epsilon."""

    n_users: int
    n: int
    epsilon: float

    @property
    def name(self) -> str:
        """What the setting is called."""
        return f"N={self.n_users:,} n={self.n} eps={self.epsilon:g}"


SETTINGS = (
    Setting(500, 4, 1.0),
    Setting(200, 20, 1.0),
    Setting(2_000, 20, 1.0),
    Setting(20_000, 20, 1.0),
    Setting(10_000, 10, 0.1),
    Setting(100_000, 10, 1.0),
    Setting(20_000, 40, 0.4),
)
"""From few regions to many for each bucket, so that every kind of plan is chosen somewhere."""
QUICK = (SETTINGS[2], SETTINGS[4])


@dataclass(frozen=True)
class Change:
    """One field with another value."""

    field: str
    how: str
    tuning: Tuning


def changes(names: Sequence[str] = FIELDS) -> Iterator[Change]:
    """Yield each field halved and doubled; plans are left out, counts stay whole."""
    for name in names:
        value: Any = getattr(TUNING, name)
        if isinstance(value, tuple):
            yield Change(name, "left out", replace(TUNING, **{name: ()}))
            continue
        half = max(value // 2, 1) if isinstance(value, int) else value / 2
        double = min(2 * value, AT_MOST.get(name, 2 * value))
        for how, other in (("halved", half), ("doubled", double)):
            yield Change(name, how, replace(TUNING, **{name: other}))


def measure(
    setting: Setting, seed: int, names: Sequence[str] = FIELDS, draws: int = DRAWS
) -> pd.DataFrame:
    """Return errors and intervals of one city, today's and with each change.

    One row for each change and size of rectangle: `error` is the median over placements, `held`
    the share of intervals with the true count, `width` their mean width, all as means over draws
    of noise; `other_plan` is whether something else is measured than today. What does not apply
    is missing.
    """
    city = _City.of(setting, seed)
    plan, today = city.released(TUNING, range(100 * seed, 100 * seed + draws))
    tables = [city.errors(today).assign(field="", how="today", other_plan=False)]
    for change in changes([name for name in names if name not in INTERVALS]):
        other, made = city.released(change.tuning, range(100 * seed, 100 * seed + draws))
        found = city.errors(made).assign(other_plan=other != plan)
        tables.append(found.assign(field=change.field, how=change.how))
    of_intervals = [name for name in names if name in INTERVALS]
    if of_intervals:
        # One draw decides the whole area: other ones in each setting.
        seeds = np.random.default_rng([setting.n_users, setting.n, seed, 1]).integers(
            2**62, size=max(INTERVAL_DRAWS * draws // DRAWS, 1)
        )
        _, today = city.released(TUNING, seeds.tolist())
        tables.append(city.intervals(today).assign(field="", how="today"))
        for change in changes(of_intervals):
            found = city.intervals([_read_with(change.tuning, made) for made in today])
            tables.append(found.assign(field=change.field, how=change.how))
    table = pd.concat(tables).reset_index(names="size")
    columns = ["field", "how", "size", "error", "other_plan", "held", "width"]
    return table.reindex(columns=columns).assign(setting=setting.name, seed=seed)


def _read_with(tuning: Tuning, made: FootprintOutcome) -> FootprintOutcome:
    assert made.reading is not None
    return replace(made, reading=replace(made.reading, tuning=tuning))


@dataclass(frozen=True)
class _City:
    """A made-up city, and what is asked of it."""

    data: ExactData
    budget: Budget
    asked: dict[str, NDArray[np.int64]]

    @classmethod
    def of(cls, setting: Setting, seed: int) -> _City:
        data = synthetic_city(setting.n_users, setting.n, seed).exact()
        rng = np.random.default_rng([setting.n_users, setting.n, seed])
        shape, all_of_them = data.grid.shape, Rectangles(*data.grid.shape)
        asked = {
            _nearest_share(h * w / (shape[0] * shape[1])): all_of_them.placed(
                h, w, PLACEMENTS, rng, turned=True
            )
            for h, w in all_of_them.sizes()
        }
        return cls(data, Budget(setting.epsilon), asked)

    def released(
        self, tuning: Tuning, seeds: Iterable[int]
    ) -> tuple[Strategy, list[FootprintOutcome]]:
        """Return what is measured, chosen once for the true total, and an outcome for each seed."""
        data, mechanism = self.data, Footprint(tuning=tuning)
        prepared = mechanism.prepare(data.grid, data.bound, self.budget, "add-remove")
        plan = prepared.strategy(float(data.n_regions))
        fixed = prepared.with_strategy(plan)
        tally = fixed.tally()
        for outlines in data.outlines:
            tally.add(outlines)
        return plan, [fixed.publish(tally, StudyNoise(seed)) for seed in seeds]

    def errors(self, outcomes: list[FootprintOutcome]) -> pd.DataFrame:
        """Return the median relative error by size."""
        truth, n, found = self.data.truth, self.data.n_regions, {}
        answers = [SignedTable(made.counts) for made in outcomes]
        for size, cells in self.asked.items():
            exact = truth.answers(cells)
            off = [np.median(relative_errors(a.answers(cells), exact, n)) for a in answers]
            found[size] = {"error": np.mean(off)}
        return pd.DataFrame.from_dict(found, orient="index")

    def intervals(self, outcomes: list[FootprintOutcome]) -> pd.DataFrame:
        """Return how often intervals hold the true count, and how wide they are, by size."""
        grid, found = self.data.grid, {}
        for size, all_cells in self.asked.items():
            cells = all_cells[:, :INTERVAL_PLACEMENTS]
            exact, selection = self.data.truth.answers(cells), select(grid, inside(cells, grid))
            bounds = [made.bounds(selection, CONFIDENCE) for made in outcomes]
            low, high = np.array(bounds).swapaxes(0, 1)
            held = (low <= exact) & (exact <= high)
            found[size] = {"held": held.mean(), "width": (high - low).mean()}
        return pd.DataFrame.from_dict(found, orient="index")


def _nearest_share(share: float) -> str:
    """Return the share of the default workload that a rectangle stands for: 14 x 14 of 400: 50%."""
    return f"{min(Rectangles.SHARES, key=lambda one: abs(one - share)):.0%}"


def error_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return each change's errors relative to today's: mean over sizes, by setting, and of all.

    `off` is the standard error of the mean of all, by leaving out one seed after the other.
    """
    errors = table.dropna(subset="error")
    of_settings = _ratios(errors)
    found = of_settings.assign(mean=of_settings.mean(axis=1))
    found["off"] = np.nan
    seeds = errors["seed"].unique()
    if len(seeds) > 1:
        left = [_ratios(errors[errors["seed"] != seed]).mean(axis=1) for seed in seeds]
        found["off"] = np.sqrt(len(seeds) - 1) * np.std(left, axis=0)
    of_cities = errors.drop_duplicates(["field", "how", "setting", "seed"])
    found["other_plan"] = of_cities.groupby(["field", "how"])["other_plan"].mean().astype(float)
    return found


def _ratios(errors: pd.DataFrame) -> pd.DataFrame:
    """Return changes by settings: the mean over sizes of the ratio of errors, seeds together."""
    each = errors.groupby(["setting", "size", "field", "how"])["error"].mean()
    today = each.xs(("", "today"), level=("field", "how"))
    changed = each.drop(index="", level="field")
    ratio = changed / today.reindex(changed.index.droplevel(["field", "how"])).to_numpy()
    return ratio.groupby(["field", "how", "setting"]).mean().unstack()


def coverage(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share of intervals with the true count by size, and widths beside today's."""
    rows = table.dropna(subset="held")
    if rows.empty:
        return rows
    held = rows.pivot_table("held", ["field", "how"], "size", sort=False)
    each = rows.groupby(["setting", "size", "field", "how"])["width"].mean()
    today = each.xs(("", "today"), level=("field", "how"))
    ratio = each / today.reindex(each.index.droplevel(["field", "how"])).to_numpy()
    held = held[
        [share for share in map("{:.0%}".format, Rectangles.SHARES) if share in held.columns]
    ]
    return held.assign(width=ratio.groupby(["field", "how"]).mean())


def markdown(table: pd.DataFrame) -> str:
    """Return errors, and intervals if they were looked at, as Markdown."""
    ratios, held = error_ratios(table), coverage(table)
    names = [s.name for s in SETTINGS if s.name in ratios.columns]
    lines = _head(*names, "mean", "other plan")
    for change in changes():
        if (change.field, change.how) in ratios.index:
            row = ratios.loc[(change.field, change.how)]
            off = "" if pd.isna(row["off"]) else f" ± {row['off']:.3f}"
            cells = [f"{row[one]:.2f}" for one in names]
            cells += [f"{row['mean']:.3f}{off}", f"{row['other_plan']:.0%}"]
            lines.append(_line(change.field, change.how, cells))
    if not held.empty:
        sizes = [size for size in held.columns if size != "width"]
        lines += ["", *_head(*sizes, "width")]
        for name, how in [("", "today"), *((c.field, c.how) for c in changes(INTERVALS))]:
            if (name, how) in held.index:
                row = held.loc[(name, how)]
                cells = [f"{100 * row[size]:.1f}" for size in sizes]
                lines.append(_line(name, how, [*cells, f"{row['width']:.2f}"]))
    return "\n".join(lines) + "\n"


def _head(*titles: str) -> list[str]:
    names = " | ".join(("number", "today", "changed", *titles))
    return [f"| {names} |", "|---|---:|---|" + "---:|" * len(titles)]


def _line(name: str, how: str, cells: list[str]) -> str:
    return f"| {name} | {_shown(name) if name else ''} | {how} | " + " | ".join(cells) + " |"


def _shown(name: str) -> str:
    value = getattr(TUNING, name)
    return f"{len(value)} plans" if isinstance(value, tuple) else str(value)


def rows_of(table: pd.DataFrame) -> list[Row]:
    """Return one row for each change: its errors relative to today's, or its coverage."""
    rows = [
        Row(f"{name} {how}", found["mean"], "x", note=f"another plan in {found['other_plan']:.0%}")
        for (name, how), found in error_ratios(table).iterrows()
    ]
    for (name, how), found in coverage(table).iterrows():
        held = 100 * found.drop("width").mean()
        note = f"of 95 % intervals hold; width {found['width']:.2f} of today's"
        rows.append(Row(f"{name} {how}".strip(), held, "%", note=note))
    return rows


def run(quick: bool = False) -> list[Row]:
    """Measure a few fields; `python -m benchmarks.calibrate` measures them all."""
    if quick:
        some = ("doubt", "good_enough", "plans_of_sizes", "clumping")
        return rows_of(measure(Setting(500, 8, 1.0), 0, some, draws=2))
    return rows_of(pd.concat([measure(setting, 0) for setting in QUICK]))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibrate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="two settings, one city each")
    parser.add_argument("--fields", default=",".join(FIELDS), help="names, with commas between")
    parser.add_argument("--seeds", type=int, help="cities of each setting (3; quick: 1)")
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--save", type=Path, help="file for every figure, as CSV")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    args = parser.parse_args()
    names = args.fields.split(",")
    if unknown := set(names) - set(FIELDS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; fields are {', '.join(FIELDS)}")
    seeds = range(args.seeds or (1 if args.quick else 3))
    settings = [s for s in (QUICK if args.quick else SETTINGS) if args.only in s.name]
    start, tables = time.perf_counter(), []
    jobs = [(setting, seed) for seed in seeds for setting in settings]
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        for table in pool.map(partial(measure, names=names), *zip(*jobs, strict=True)):
            tables.append(table)
            print(f"{len(tables)} of {len(jobs)}, {time.perf_counter() - start:.0f} s", flush=True)
            if args.save:
                pd.concat(tables).to_csv(args.save, index=False)
    text = markdown(pd.concat(tables))
    if args.markdown:
        args.markdown.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
