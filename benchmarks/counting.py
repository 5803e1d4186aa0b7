"""Counting for a release, by either mechanism: all cores against one thread.

CPU seconds stand beside the wall's: threads must not buy time by waste.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.euler import make_regions
from benchmarks.report import Row
from dpregions import Grid
from dpregions.engines.local import count
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import read_outlines
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy import Budget

SIDE, MAX_DIAMETER = 20, 2


def timed(work: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Return wall and CPU seconds of the fastest run."""
    found = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(found)


def run(*, quick: bool = False) -> list[Row]:
    n = 50_000 if quick else 1_000_000
    grid = Grid(0, 0, 1, SIDE, SIDE)
    bound = Bound.of(grid, MAX_DIAMETER, "shrink")
    regions = make_regions(n, SIDE)
    rows = []
    for name, kind in MECHANISMS.items():
        prepared = kind().prepare(grid, bound, Budget(1), "add-remove")

        def counted(workers: int | None, some: Any = regions, prepared: Any = prepared) -> Any:
            return count(read_outlines(some, grid, bound), prepared.tally, workers)

        counted(None, regions[:10_000])  # compile or load the cache
        (ours, cpu), (alone, cpu_alone) = timed(lambda: counted(None)), timed(lambda: counted(1))
        what = f"{name}: count {n:,} regions, {SIDE} x {SIDE}"
        note = f"CPU {cpu:.2f} s, alone {cpu_alone:.2f} s"
        rows.append(Row(what, ours, "s", "one thread", alone, alone / ours, "1.6 x", note))
    return rows
