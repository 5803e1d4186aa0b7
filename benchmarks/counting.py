"""Counting for a release: all cores against one thread, and against an earlier state.

CPU seconds stand beside the wall's: threads must not buy time by waste. The earlier state is a
checkout of it (--today FOLDER), which counts the same regions in a process of its own; the two take
turns, so that what else the machine does hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import shapely

from benchmarks import earlier_counting
from benchmarks.euler import make_regions
from benchmarks.report import Row, show
from dpregions import Grid
from dpregions.engines.local import count
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import read_outlines
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy import Budget

SIDE, MAX_DIAMETER = 20, 2
FORMS = {"shapely": "shapely polygons", "arrow": "Arrow WKB"}


class Timed(NamedTuple):
    """Seconds by the clock, and of the processor."""

    wall: float
    cpu: float


def timed(work: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu)


def in_turns(*works: Callable[[], Timed], times: int = 5) -> list[Timed]:
    """Return the fastest run of each, run in turns."""
    rounds = [[work() for work in works] for _ in range(times)]
    return [min(runs) for runs in zip(*rounds, strict=True)]


def earlier_state(today: Path, folder: Path, table: pa.Table) -> subprocess.Popen[str]:
    """Start counting by an earlier state; it waits for lines."""
    path = str(folder / "regions.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    job = {"side": SIDE, "max_diameter": MAX_DIAMETER}
    (folder / "job.json").write_text(json.dumps(job))
    args = [sys.executable, str(earlier_counting.__file__), str(folder)]
    env = os.environ | {"PYTHONPATH": str(today / "src")}
    there = subprocess.Popen(
        args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert there.stdout is not None and there.stdout.readline() == "ready\n"
    return there


def asked(there: subprocess.Popen[str], form: str) -> Timed:
    assert there.stdin is not None and there.stdout is not None
    there.stdin.write(f"{form}\n")
    there.stdin.flush()
    return Timed(*map(float, there.stdout.readline().split()))


def run(quick: bool = False, today: Path | None = None) -> list[Row]:
    """Measure; `python -m benchmarks.counting --today FOLDER` has the earlier state beside it."""
    n = 50_000 if quick else 1_000_000
    grid = Grid(0, 0, 1, SIDE, SIDE)
    bound = Bound.of(grid, MAX_DIAMETER, "shrink")
    shapes = make_regions(n, SIDE)
    table = pa.table({"geometry": pa.array(shapely.to_wkb(shapes), pa.binary())})
    inputs = {"shapely": shapes, "arrow": table}
    rows = []
    for name, kind in MECHANISMS.items():
        prepared = kind().prepare(grid, bound, Budget(1), "add-remove")

        def counted(form: str, workers: int | None, prepared: Any = prepared) -> Timed:
            batches = read_outlines(inputs[form], grid, bound)
            return timed(lambda: count(batches, prepared.tally, workers))

        for form, words in FORMS.items():
            counted(form, None)  # compile or load the cache
            ours, alone = in_turns(partial(counted, form, None), partial(counted, form, 1))
            what = f"{name}: count {n:,} {words}, {SIDE} x {SIDE}"
            note = f"CPU {ours.cpu:.2f} s, alone {alone.cpu:.2f} s"
            ratio = alone.wall / ours.wall
            rows.append(Row(what, ours.wall, "s", "one thread", alone.wall, ratio, "", note))
        if name == "footprint" and today is not None:
            rows += beside(today, table, counted)
    return rows


def beside(today: Path, table: pa.Table, counted: Callable[[str, int | None], Timed]) -> list[Row]:
    """Return rows against an earlier state, which counted by footprints alone."""
    rows, peer = [], "an earlier state"
    with tempfile.TemporaryDirectory(prefix="dpregions-counting-") as folder:
        there = earlier_state(today, Path(folder), table)
        for form, words in FORMS.items():
            ours, before = in_turns(partial(counted, form, None), partial(asked, there, form))
            what = f"footprint: count {len(table):,} {words}, {SIDE} x {SIDE}"
            note = f"CPU {ours.cpu:.2f} s, before {before.cpu:.2f} s"
            note += f", load {os.getloadavg()[0]:.1f}"
            ratio = before.wall / ours.wall
            rows.append(Row(what, ours.wall, "s", peer, before.wall, ratio, "1.6 x", note))
        there.communicate()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    parser.add_argument("--today", type=Path, help="a checkout of the earlier state")
    parser.add_argument("--quick", action="store_true", help="few regions")
    args = parser.parse_args()
    show("Counting for a release", run(args.quick, args.today))


if __name__ == "__main__":
    main()
