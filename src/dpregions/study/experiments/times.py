"""The experiment `times`: seconds of each step, on the machine that runs the study.

Study on exact data: not a private release. This table alone differs from run to run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import paper, synthetic
from dpregions.privacy.seeded import StudyNoise
from dpregions.study import charts
from dpregions.study.experiments import base
from dpregions.study.harness import Row, Trial
from dpregions.study.methods import EULER
from dpregions.study.statements import Finding, absent, judged
from dpregions.study.words import duration, percent, times_as

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.arrays import Ints
    from dpregions.privacy.noise import NoiseSource

PREPARATION = ("read the fixes", "fixes to regions", "Euler")
"""Steps before any noise, done once."""
PAPER = ("diff-priv", "lin-prog", "round")
"""The paper's steps, timed one by one."""
GEOLIFE_SECONDS = 196.0
"""What was printed; half and twice of it are taken as the same."""


def times(source: base.Source, unit: base.Unit) -> Iterator[Row]:
    """Yield the seconds that each step takes, on this machine and beside what else it does."""
    if unit.first == 0:
        yield from _preparation_times(source, unit)
    trial = source.trial(unit.setting)
    steps = _timed_steps(trial, unit.setting.sensitivity)
    for step in steps.values():
        step(StudyNoise(0))  # compile and load, once
    for repetition in range(unit.first, unit.last):
        for name, step in steps.items():
            noise = trial.noise(repetition, name)
            yield {"repetition": repetition, "step": name, "seconds": _seconds(step, noise)}


def _preparation_times(source: base.Source, unit: base.Unit) -> Iterator[Row]:
    data = unit.setting.data
    data.regions_of(synthetic.fixes(3))  # compile, once
    start = time.perf_counter()
    fixes = data.fixes(source.folder)
    read = time.perf_counter()
    regions = data.regions_of(fixes)
    extracted = time.perf_counter()
    unit.setting.exact(regions).counts  # noqa: B018 - counted on first use
    counted = time.perf_counter()
    seconds = (read - start, extracted - read, counted - extracted)
    for step, value in zip(PREPARATION, seconds, strict=True):
        yield {"repetition": 0, "step": step, "seconds": value}


def _timed_steps(trial: Trial, sensitivity: int) -> dict[str, Callable[[NoiseSource], object]]:
    """Return what is timed: the paper's steps one by one, other methods whole."""
    data, budget = trial.data, trial.budget
    steps: dict[str, Callable[[NoiseSource], object]] = {}

    def diff_priv(noise: NoiseSource) -> Ints:
        return np.maximum(noise.add(data.counts, epsilon=budget, sensitivity=sensitivity), 0)

    noisy = diff_priv(StudyNoise(trial.seed))
    consistent = paper.lin_prog(noisy)
    of_paper = (
        diff_priv,
        lambda _: paper.lin_prog(noisy),
        lambda _: paper.round_counts(consistent),
    )
    for name, method in trial.methods.items():
        if name == "paper":
            steps |= dict(zip(PAPER, of_paper, strict=True))
        elif name != EULER:
            steps[name] = partial(method, data, budget, trial.neighbours)
    return steps


def _seconds(step: Callable[[Any], object], argument: Any) -> float:
    start = time.perf_counter()
    step(argument)
    return time.perf_counter() - start


def _draw(table: pd.DataFrame, source: base.Source) -> base.Pictures:
    parts = base.datasets_of(table)
    steps = [step for step in (*PREPARATION, *charts.STYLES) if step in set(table["step"])]
    figure, axes = charts.new_figure(1, len(parts), 4.2, 0.42 * len(steps) + 1.5, sharey=True)
    for axis, mine in zip(axes[0], parts.values(), strict=True):
        part = mine.set_index("step").loc[steps]
        charts.draw_dots(axis, steps, part, "seconds", duration)
        axis.set_xlim(table["seconds"].min() / 3, table["seconds"].max() * 12)
        axis.axvline(1, color=charts.PALE, lw=1, zorder=1)
        axis.xaxis.set_major_formatter(lambda value, _: duration(value))
        axis.tick_params(axis="x", labelsize=8)
        axis.set_title(charts.heading(part))
    yield "times", figure


def _say(part: pd.DataFrame) -> str:
    seconds = part.set_index("step")["seconds"]
    before = ", ".join(f"{step} {duration(seconds[step])}" for step in PREPARATION)
    steps = [step for step in charts.STYLES if step in seconds.index]
    after = ", ".join(f"{charts.label_of(step)} {duration(seconds[step])}" for step in steps)
    return f"once: {before}. Each time: {after}."


def _under_a_second(table: pd.DataFrame | None) -> Finding:
    printed = "DiffPriv, LinProg and Round take under a second each"
    rows = None if table is None else table[table["step"].isin(PAPER)]
    if rows is None or rows.empty:
        return absent(printed, "the experiment times with the method paper")
    longest = rows.groupby("step", sort=False)["seconds"].max()
    return judged(
        printed,
        ", ".join(f"{charts.label_of(step)} at most {duration(longest[step])}" for step in PAPER),
        bool(longest.max() < 1),
        "This machine is slower, or busy.",
    )


def _total(table: pd.DataFrame | None) -> Finding:
    printed = "GeoLife: 196 s in total"
    steps = {*PREPARATION, *PAPER}
    rows = None if table is None else table[table["dataset"] == "geolife"]
    if rows is None or not steps <= set(rows["step"]):
        return absent(printed, "the experiment times on geolife with the method paper")
    total = float(rows.loc[rows["step"].isin(steps), "seconds"].sum())
    before = float(rows.loc[rows["step"].isin(PREPARATION[:2]), "seconds"].sum())
    holds = GEOLIFE_SECONDS / 2 <= total <= 2 * GEOLIFE_SECONDS
    if total < GEOLIFE_SECONDS:
        how = f", {times_as(GEOLIFE_SECONDS, total)} as fast"
        why = "Another machine; extraction is compiled here, and is quicker with fewer fixes."
    else:
        how = f", {times_as(total, GEOLIFE_SECONDS)} as long"
        why = "This machine is slower, or busy, or the file has more fixes."
    return judged(
        printed,
        f"{total:.3g} s from the file of fixes to Round{'' if holds else how}; "
        f"{percent(100 * before / total)} of it is reading and extraction",
        holds,
        why,
    )


TIMES = base.Experiment(
    name="times",
    title="Running time by step",
    about="Seconds on this machine, while it may do other work, on 20 x 20 cells. Compiling is "
    "left out. Reading, extraction and the exact histogram are done once, the other "
    "steps in each repetition. This table alone differs from run to run.",
    measure=base.Measure("times", times, once=base.READING, each=0.1),
    settings=base.fine,
    columns=(*base.WHERE, "step", "seconds", *base.SPREAD),
    summary=lambda raw: base.spread(raw.groupby("step", sort=False)["seconds"], "seconds"),
    draw=_draw,
    say=_say,
    judges=(_under_a_second, _total),
)
