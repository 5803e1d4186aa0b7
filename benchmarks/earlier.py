"""Releases by an earlier state of the package, for `benchmarks.trees`: a script, run by itself.

It runs in a process of its own with that state's `src` as PYTHONPATH, and imports nothing of the
present one. Its folder holds what to release (`regions.parquet`, `grid.json`, `job.json`); it puts
there the counts of each release (`0.npy`, ...) and what was measured (`made.json`).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import geopandas
import numpy as np


def main(folder: Path) -> None:
    from dpregions import Grid, footprint  # where an earlier state has them
    from dpregions.privacy import Budget
    from dpregions.study.baselines import ExactData
    from dpregions.study.noise import StudyNoise

    job = json.loads((folder / "job.json").read_text())
    regions = geopandas.read_parquet(folder / "regions.parquet")
    grid = Grid.from_json((folder / "grid.json").read_text())
    data = ExactData.of(regions, grid, job["max_diameter"], user_id=job["user_id"])
    made = []
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
        made.append(["; ".join(what for what, _ in steps.spending), seconds])
    (folder / "made.json").write_text(json.dumps(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
