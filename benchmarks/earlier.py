"""Releases by an earlier state of the package, in a process of its own.

As a script it runs with that state's `src` as PYTHONPATH and imports nothing of the present one.
Its folder holds what to release (`regions.parquet`, `grid.json`, `job.json`) and, where intervals
are asked for, the queries of each release (`0.queries.npy`: xmin, ymin, xmax, ymax); it puts there
the counts of each release (`0.npy`), or the ends of its intervals (`0.ends.npy`), and what was
measured (`made.json`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import geopandas
import numpy as np


@contextmanager
def released(
    state: Path, regions: Any, grid: Any, job: dict[str, Any], queries: Sequence[Any] = ()
) -> Iterator[tuple[Path, list[tuple[str, float]]]]:
    """Let a checkout of an earlier state make releases; give its folder and what it measured.

    `job` holds `epsilon`, `max_diameter`, `user_id` and the `seeds` of the noise.
    """
    with tempfile.TemporaryDirectory(prefix="dpregions-earlier-") as name:
        folder = Path(name)
        regions.to_parquet(folder / "regions.parquet")
        (folder / "grid.json").write_text(grid.to_json())
        (folder / "job.json").write_text(json.dumps(job))
        for number, asked in enumerate(queries):
            np.save(folder / f"{number}.queries.npy", np.asarray(asked))
        env = os.environ | {"PYTHONPATH": str(state / "src")}
        subprocess.run([sys.executable, __file__, name], check=True, env=env)
        yield folder, json.loads((folder / "made.json").read_text())


def main(folder: Path) -> None:
    from dpregions import Grid  # where an earlier state has it

    job = json.loads((folder / "job.json").read_text())
    regions = geopandas.read_parquet(folder / "regions.parquet")
    grid = Grid.from_json((folder / "grid.json").read_text())
    asked = (folder / "0.queries.npy").exists()
    made = _intervals(folder, job, regions, grid) if asked else _counts(folder, job, regions, grid)
    (folder / "made.json").write_text(json.dumps(list(made)))


def _counts(folder: Path, job: dict[str, Any], regions: Any, grid: Any) -> Iterator[Any]:
    from dpregions import footprint
    from dpregions.privacy import Budget
    from dpregions.study.baselines import ExactData
    from dpregions.study.noise import StudyNoise

    data = ExactData.of(regions, grid, job["max_diameter"], user_id=job["user_id"])
    for number, seed in enumerate(job["seeds"]):
        start = time.process_time()
        steps = footprint.run(
            data.outlines,
            grid,
            data.bound,
            budget=Budget(job["epsilon"]),
            neighbours="add-remove",
            noise=StudyNoise(seed),
        )
        seconds = time.process_time() - start
        np.save(folder / f"{number}.npy", steps.counts)
        yield ["; ".join(what for what, _ in steps.spending), seconds]


def _intervals(folder: Path, job: dict[str, Any], regions: Any, grid: Any) -> Iterator[Any]:
    from dpregions.releasing import release_with
    from dpregions.study.noise import StudyNoise

    public = {name: job[name] for name in ("epsilon", "max_diameter", "user_id")}
    for number, seed in enumerate(job["seeds"]):
        start = time.process_time()
        release = release_with(StudyNoise(seed), regions, grid, **public)
        query = np.load(folder / f"{number}.queries.npy")
        np.save(folder / f"{number}.ends.npy", [*release.interval(*query), release.count(*query)])
        yield ["; ".join(what for what, _ in release.spending), time.process_time() - start]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
