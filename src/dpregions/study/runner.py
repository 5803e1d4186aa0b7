"""Runs a study: cuts it into units, does those that are not done, writes tables and the report.

Study on exact data: not a private release. Owns the order of work and the two processes. It
checks everything it was given before it writes anything.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from dpregions.errors import Argument, InputError
from dpregions.plots import need_plot
from dpregions.study.datasets import DATASETS, DataSet, keep_regions, lacks_regions, refuse_missing
from dpregions.study.experiments import EXPERIMENTS, findings
from dpregions.study.experiments.base import READING, Experiment, Source, Unit, measure
from dpregions.study.folder import StudyFolder, study_settings
from dpregions.study.methods import METHODS

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.study.statements import Finding

CHUNK = 10
"""Repetitions done and saved together."""
PROCESSES = 2


@dataclass(frozen=True)
class Plan:
    """What a run is to do."""

    experiments: list[Experiment]
    datasets: list[DataSet]
    folder: Path | None = None
    """Of data."""
    methods: tuple[str, ...] = tuple(METHODS)
    repetitions: int = 100
    seed: int = 0

    def units(self) -> dict[Unit, None]:
        """Return the units of work, each once, however many experiments share it."""
        return {
            unit: None
            for experiment in self.experiments
            for data in self.datasets
            for unit in units_of(experiment, data, self.repetitions)
        }


@dataclass(frozen=True)
class Made:
    """What a study made."""

    report: Path
    tables: dict[str, Path]
    findings: list[Finding]


def choices() -> dict[str, dict[str, str]]:
    """Return the names of experiments, methods and data sets, each with its title."""
    return {
        "experiments": {name: made.title for name, made in EXPERIMENTS.items()},
        "methods": dict.fromkeys(METHODS, ""),
        "datasets": {name: data.source or data.title for name, data in DATASETS.items()},
    }


def units_of(experiment: Experiment, data: DataSet, repetitions: int) -> list[Unit]:
    """Return the units of work of an experiment on a data set."""
    times = repetitions if experiment.repeated else 1
    return [
        Unit(experiment.measure, setting, first, min(first + CHUNK, times))
        for setting in experiment.settings(data)
        for first in range(0, times, CHUNK)
    ]


def run_study(
    out: Path,
    plan: Plan,
    *,
    progress: Callable[[float], None] | None = None,
    processes: int | None = None,
    measure: Callable[[Source, Unit], pd.DataFrame] = measure,
) -> Made:
    """Run a study, or go on with it, and write its report.

    Parameters
    ----------
    out : Path
        The study's folder: new, empty, or left by an earlier run with the same settings.
    plan : Plan
    progress : callable, optional
        Called with the share of the work done.
    processes : int, optional
        How many work at once; by default two, where the machine has as many cores.
    measure : callable
        What does one unit of work.
    """
    _check(plan)
    settings = study_settings(plan.methods, plan.repetitions, plan.seed)
    folder = StudyFolder.claim(out, settings, plan.datasets, plan.folder)
    source = Source(plan.methods, plan.seed, plan.folder, folder.kept)
    units = plan.units()
    unread = [data for data in plan.datasets if lacks_regions(data, folder.kept)]
    total = len(unread) * READING + sum(unit.cost for unit in units)
    done = 0.0

    def add(seconds: float) -> None:
        nonlocal done
        done += seconds
        if progress is not None:
            progress(done / total)

    add(sum(unit.cost for unit in units if folder.has(unit)))
    for data in unread:
        keep_regions(data, plan.folder, folder.kept)
        add(READING)
    left = sorted((u for u in units if not folder.has(u)), key=lambda unit: -unit.cost)
    if processes is None:
        processes = min(PROCESSES, os.cpu_count() or 1)
    for unit, rows in _measured(partial(measure, source), left, processes):
        folder.write_part(unit, rows)
        add(unit.cost)
    folder.finish([(e.name, d.name) for e in plan.experiments for d in plan.datasets])
    return _write_results(folder, source, plan)


def _check(plan: Plan) -> None:
    unknown = [name for name in plan.methods if name not in METHODS]
    if unknown or not plan.methods:
        raise InputError(
            Argument("methods"),
            f": {', '.join(unknown) or 'nothing'} is no method: choose from {', '.join(METHODS)}",
        )
    if plan.repetitions < 1:
        raise InputError(Argument("repetitions"), f" must be at least 1, got {plan.repetitions}")
    if plan.seed < 0:
        raise InputError(Argument("seed"), f" must be at least 0, got {plan.seed}")
    for experiment in plan.experiments:
        if experiment.needs is not None and experiment.needs not in plan.methods:
            raise InputError(
                f"the experiment {experiment.name} compares with the method {experiment.needs}: "
                f"add it to ",
                Argument("methods"),
                ", or name other experiments",
            )
    if not plan.units():
        names = ", ".join(experiment.name for experiment in plan.experiments)
        where = f"{names} is for T-Drive and the made-up city: add them to "
        raise InputError(where, Argument("datasets"))
    need_plot()
    refuse_missing(plan.datasets, plan.folder)


def _measured(
    measure: Callable[[Unit], pd.DataFrame], units: list[Unit], processes: int
) -> Iterator[tuple[Unit, pd.DataFrame]]:
    if processes == 1 or len(units) <= processes:  # starting a process takes longer
        for unit in units:
            yield unit, measure(unit)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _start_worker)
    try:
        running = {pool.submit(measure, unit): unit for unit in units}
        for future in as_completed(running):
            yield running[future], future.result()
    except BrokenProcessPool:
        raise OSError(
            "a process of the study was ended from outside, for lack of memory perhaps: the same "
            "command goes on where it stopped"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Let a worker end without a word when the study is stopped, or is ended from outside."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _write_results(folder: StudyFolder, source: Source, plan: Plan) -> Made:
    """Write tables, pictures and the report of everything that is finished in the folder."""
    from dpregions.study.report import Section, png, render

    sections, tables = [], {}
    for experiment in EXPERIMENTS.values():
        table = _table(folder, plan, experiment)
        if table is None:
            continue
        folder.write_table(f"{experiment.name}.csv", table)
        pictures = {}
        for stem, figure in experiment.draw(table, source):
            pictures[stem] = png(figure)
            folder.write_bytes(f"{stem}.png", pictures[stem])
        tables[experiment.name] = table
        sections.append(Section(experiment, table, pictures))
    found = findings(tables)
    folder.write_text("report.html", render(sections, found, folder.settings))
    paths = {name: folder.path / f"{name}.csv" for name in tables}
    return Made(folder.path / "report.html", paths, found)


def _table(folder: StudyFolder, plan: Plan, experiment: Experiment) -> pd.DataFrame | None:
    import pandas as pd

    known = {**DATASETS, **{data.name: data for data in plan.datasets}}
    raw = []
    for name, data in known.items():
        if (experiment.name, name) not in folder.finished:
            continue
        units = units_of(experiment, data, plan.repetitions)
        for setting in dict.fromkeys(unit.setting for unit in units):
            parts = [folder.read_part(unit) for unit in units if unit.setting == setting]
            raw.append((setting, pd.concat(parts, ignore_index=True)))
    return experiment.table(raw) if raw else None
