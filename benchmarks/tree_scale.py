"""Large releases by adaptive trees, with real noise: processor time, memory, errors, intervals.

Regions are made up (`benchmarks.trees.country_regions`). Each measurement is a process of its
own; memory is what the peak grows by while the release is made, beyond the regions. Seconds are
the processor's, all threads together; those of the wall are in the notes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import dpregions as dpr
from benchmarks.memory import resident
from benchmarks.report import Row, best_of, show
from benchmarks.trees import PLACEMENTS, country_regions
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import relative_errors

GB = 1e9
PIECE = 200_000
"""Regions that are made up at once, where they are streamed."""
SHARE = 0.01
"""Size of the rectangles whose error is looked at."""


class Timed:
    """Seconds of a piece of work, of the processor and of the wall."""

    def __init__(self, work: Callable[[], Any]) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        self.result = work()
        self.cpu, self.wall = time.process_time() - cpu, time.perf_counter() - wall


class Streamed:
    """Regions as an Arrow stream, made up piece by piece, and the seconds that took."""

    def __init__(self, n_regions: int, n: int, k: float) -> None:
        self._of, self.seconds = (n_regions, n, k), 0.0

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        n_regions, n, k = self._of
        for piece in range(-(-n_regions // PIECE)):
            start = time.thread_time()
            regions = country_regions(min(PIECE, n_regions - piece * PIECE), n, k, piece)
            batch = pa.record_batch([pa.array(shapely.to_wkb(regions))], schema=schema)
            self.seconds += time.thread_time() - start
            yield batch

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        marked = {"ARROW:extension:name": "geoarrow.wkb"}
        schema = pa.schema([pa.field("geometry", pa.binary(), metadata=marked)])
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(schema))
        return reader.__arrow_c_stream__(requested_schema)


def probe(n: int, n_regions: int, k: float, path: str) -> dict[str, float]:
    """Make one release with real noise; return its figures."""
    grid = dpr.Grid(0, 0, 1, n, n)
    terms: dict[str, Any] = {"epsilon": 1, "max_diameter": k, "user_id": None}
    small = dpr.Grid(0, 0, 1, 80, 80)
    dpr.release(country_regions(500, 80, 2.0), small, epsilon=1, max_diameter=2, user_id=None)
    stream = Streamed(n_regions, n, k) if n_regions > 2_000_000 else None
    regions: Any = country_regions(n_regions, n, k) if stream is None else stream
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    done = Timed(lambda: dpr.release(regions, grid, **terms))
    made: dpr.Release = done.result
    outcome: Any = made.outcome
    found = {
        "cpu": done.cpu - (0.0 if stream is None else stream.seconds),
        "wall": done.wall,
        "grown": resident("VmHWM") - before,
        "parts": outcome.reading.measured.n_parts,
        "detail": outcome.strategy.detail,
    }
    saved = Timed(lambda: made.save(path))
    found |= {"save": saved.cpu, "file": Path(path).stat().st_size}
    exact = dpr.EulerHistogram.from_regions(regions, grid)
    sizes = Rectangles(n, n)
    rng = np.random.default_rng(1)
    cells = sizes.placed(*sizes.shape_of(SHARE), PLACEMENTS, rng, turned=True)
    asked = tuple(np.asarray(side, np.float64) for side in grid.cell_bounds(*cells))
    off = relative_errors(made.count(*asked), exact.count(*asked), n_regions)
    return found | {"error": float(np.median(off))}


def read(path: str) -> dict[str, float]:
    """Load a release; return how long it and its answers take."""
    first = Timed(lambda: dpr.load(path))
    made: dpr.Release = first.result
    n = made.grid.shape[0]
    third = n / 3
    box = (third // 1, third // 1, third // 1 + n // 10, third // 1 + n // 10)
    opened = Timed(lambda: made.interval(*box))
    made.count(*box)
    found = {"load": first.cpu, "first": opened.cpu, "first wall": opened.wall}
    found["load again"] = Timed(lambda: dpr.load(path)).cpu
    found["interval"] = best_of(50, lambda: made.interval(*box))
    rng = np.random.default_rng(0)
    corners = rng.integers(0, n // 2, (300, 2)).astype(float)
    far = corners + rng.integers(1, n // 2, (300, 2))
    many = [(x, y, u, v) for (x, y), (u, v) in zip(corners.tolist(), far.tolist(), strict=True)]
    times = [_seconds(lambda box=box: made.interval(*box)) for box in many]
    found["any interval"] = float(np.median(times))
    found["worst interval"] = float(np.quantile(times, 0.95))
    found["count"] = best_of(20, lambda: [made.count(*box) for _ in range(100)]) / 100
    found["estimate"] = Timed(lambda: made.estimate(*box)).cpu
    cells = Timed(lambda: made.cell_intervals())
    return found | {"cells": cells.cpu, "cells wall": cells.wall}


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(*args: Any) -> dict[str, float]:
    """Return what a probe in a process of its own finds."""
    command = [sys.executable, "-m", "benchmarks.tree_scale", *map(str, args)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def release_rows(n: int, n_regions: int, k: float, seconds: float, most: float) -> Iterator[Row]:
    """Yield the figures of a large release, and of its file as it is read again."""
    name = f"{n} x {n}, N={n_regions:,}, k={k:g}"
    with tempfile.TemporaryDirectory(prefix="dpregions-trees-") as folder:
        path = f"{folder}/release.parquet"
        made = measured("probe", n, n_regions, k, path)
        note = f"{made['wall']:.1f} s of the wall, {made['parts']:,.0f} parts, load {load():.1f}"
        yield Row(f"{name}: release", made["cpu"], "s", goal=f"< {seconds:g}", note=note)
        yield Row(f"{name}: memory grown", made["grown"] / GB, "GB", goal=f"< {most:g}")
        goal = "<= 1" if n == 1000 else ""
        yield Row(f"{name}: error at {SHARE:.0%}", 100 * made["error"], "%", goal=goal)
        yield Row(f"{name}: file", made["file"] / 1e6, "MB", note=f"saved in {made['save']:.2g} s")
        if n <= 1000:
            yield from read_rows(name, n, measured("read", path))


def read_rows(name: str, n: int, read: dict[str, float]) -> Iterator[Row]:
    note = f"{read['load again']:.2g} once everything is imported"
    yield Row(f"{name}: load", read["load"], "s", note=note)
    goal = "< 0.3" if n == 512 else ""
    yield Row(f"{name}: first interval after loading", read["first"], "s", goal=goal)
    goal, note = "< 2" if n == 900 else "", f"95 % of them below {1e3 * read['worst interval']:.2g}"
    yield Row(f"{name}: interval of a rectangle", 1e3 * read["any interval"], "ms", "", None, None,
              goal, note)  # fmt: skip
    yield Row(f"{name}: count of four numbers", 1e6 * read["count"], "us", goal="< 10")
    yield Row(f"{name}: first estimate of four numbers", read["estimate"], "s")
    goal = "< 5" if n == 1000 else ""
    note = f"{read['cells wall']:.1f} s of the wall"
    yield Row(f"{name}: {n * n:,} cell intervals", read["cells"], "s", goal=goal, note=note)


def load() -> float:
    """Return how many processes of this machine wanted to run, over the last minute."""
    return os.getloadavg()[0]


LARGE = (
    (512, 300_000, 2.0, 40, 1.0),
    (900, 800_000, 2.0, 40, 1.0),
    (1000, 1_000_000, 2.0, 40, 1.0),
    (1000, 1_000_000, 50.0, 40, 1.0),
    (4096, 10_000_000, 10.0, 300, 4.0),
)


def run(quick: bool = False) -> list[Row]:
    """Measure everything; `quick` on a small grid, to see that it runs."""
    if not Path("/proc/self/clear_refs").exists():
        return [Row("peak memory is measured on Linux only", 0, "bytes")]
    sizes = [(80, 2_000, 2.0, 40, 1.0)] if quick else LARGE
    return [row for size in sizes for row in release_rows(*size)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tree_scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small grid")
    parser.add_argument("--only", type=int, help="the grid of so many cells a side")
    args = parser.parse_args()
    for size in LARGE:
        if args.only in (None, size[0]) and not args.quick:
            show(f"{size[0]} x {size[0]}, k = {size[2]:g}", list(release_rows(*size)))
    if args.quick:
        show("Small", run(quick=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["probe"]:
        side, n_made, length, where = sys.argv[2:]
        print(json.dumps(probe(int(side), int(n_made), float(length), where)))
    elif sys.argv[1:2] == ["read"]:
        print(json.dumps(read(sys.argv[2])))
    else:
        main()
