"""Peak memory of releases, by size, beside the figures that the guards go by.

Each measurement is a process of its own, at two sizes: what the peak grows by from one to the
other, divided by what the size grows by. The guards' figures (`dpregions.memory`) are to be no
smaller.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import shapely

import dpregions as dpr
from benchmarks.report import Row, show
from dpregions import memory
from dpregions.geometry.grid import COUNT
from dpregions.mechanisms.footprint.mechanism import FootprintOutcome
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with

WARM = 6


def resident(name: str) -> int:
    """Return this process's resident memory now (VmRSS) or at its peak (VmHWM), in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {name} in /proc/self/status")


def points(n: int, grid: dpr.Grid) -> np.ndarray:
    """Return n points in the area of a grid."""
    return shapely.points(np.random.default_rng(0).random((n, 2)) * grid.shape[::-1])


def made(method: str, n: int, k: float, *, private: bool = False) -> dpr.Release:
    """Return a release on n x n cells of regions up to k cells long."""
    grid = dpr.Grid(0, 0, 1, n, n)
    terms: dict[str, Any] = {"epsilon": 1, "max_diameter": k, "method": method, "user_id": None}
    if private:
        return dpr.release(points(1000, grid), grid, **terms)
    return release_with(StudyNoise(0), points(1000, grid), grid, **terms)


def buckets(release: dpr.Release) -> int:
    """Return how many buckets a release has."""
    outcome = release.outcome
    if not isinstance(outcome, FootprintOutcome) or outcome.reading is None:
        return 0
    return len(outcome.reading.measured.hierarchy.buckets)


def prepared(what: str, n: int, k: float, path: str) -> tuple[Callable[[], Any], int]:
    """Return the work to measure, and how large it is in what its figure is about."""
    if what == "count":
        grid = dpr.Grid(0, 0, 1, n, n)
        some = points(1000, grid)
        return lambda: dpr.EulerHistogram.from_regions(some, grid).count(0, 0, 1, 1), (
            grid.n_components
        )
    if what == "regions":
        grid = dpr.Grid(0, 0, 1, 20, 20)
        terms = {"epsilon": 100, "max_diameter": k, "user_id": None}
        release = release_with(StudyNoise(0), points(n, grid), grid, **terms)
        return release.to_regions, n
    verb, method = what.split()
    if verb == "release":

        def work() -> dpr.Release:
            release = made(method, n, k, private=True)
            release.save(path)
            return release

        return work, (2 * n - 1) ** 2
    # By a process of its own: what it frees would hide what reading asks for.
    subprocess.run([*COMMAND, "write", method, str(n), str(k), path], check=True)
    return lambda: dpr.load(path), (2 * n - 1) ** 2


COMMAND = [sys.executable, "-m", "benchmarks.memory"]


def probe(what: str, n: int, k: float) -> None:
    """Print by how many bytes the peak grows, the size, and the number of buckets."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.parquet"
        prepared(what, WARM, k, path)[0]()
        work, size = prepared(what, n, k, path)
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = resident("VmRSS")
        found = work()
        grown = resident("VmHWM") - before
        print(grown, size, buckets(found) if isinstance(found, dpr.Release) else 0)


def measured(what: str, n: int, k: float) -> tuple[int, int, int]:
    """Return what a probe in a process of its own prints."""
    args = [*COMMAND, "probe", *what.split(), str(n), str(k)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(args, capture_output=True, text=True, check=True, env=env)
    grown, size, n_buckets = map(int, done.stdout.split())
    return grown, size, n_buckets


def slope(title: str, what: str, sizes: tuple[int, int], k: float, figure: int, unit: str) -> Row:
    """Return by how many bytes the peak grows from one size to the other, per one of its unit."""
    (low, few, fewer), (high, many, more) = (measured(what, n, k) for n in sizes)
    each = (high - low) / (more - fewer if unit == "bucket" else many - few)
    return Row(f"{title}, {k:g} cells long", each, f"bytes per {unit}", goal=f"< {figure}")


def run(quick: bool = False) -> list[Row]:
    """Measure everything; `quick` on small sizes, to see that it runs."""
    if not Path("/proc/self/clear_refs").exists():
        return [Row("peak memory is measured on Linux only", 0, "bytes")]
    small = (8, 12)

    def of(what: str, sizes: tuple[int, int], k: float, figure: int, unit: str) -> Row:
        return slope(what, what, small if quick else sizes, k, figure, unit)

    rows = [of("count", (1000, 2000), 1, COUNT, "component")]
    if quick:
        return rows
    rows += [
        of("release paper", (200, 400), 1, memory.PAPER, "component"),
        of("load paper", (500, 1000), 1, memory.LOADED, "component"),
        of("regions", (50_000, 200_000), 2, memory.BODY, "region"),
    ]
    for n, k in ((200, 1), (100, 3), (40, 12)):
        sizes = (n, 2 * n)
        figure = memory.COMPONENT + memory.BUCKET
        rows.append(of("release footprint", sizes, k, figure, "bucket"))
        figure = memory.LOADED + memory.LOADED_ENTRY + memory.LOADED_BUCKET + 16 * 3
        rows.append(of("load footprint", sizes, k, figure, "bucket"))
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["probe"]:
        *words, cells, length = sys.argv[2:]
        probe(" ".join(words), int(cells), float(length))
    elif sys.argv[1:2] == ["write"]:
        made(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])).save(sys.argv[5])
    else:
        show("Peak memory", run("--quick" in sys.argv))
