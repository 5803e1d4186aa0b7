"""Counting by an earlier state of the package, for `benchmarks.counting`: a script, run by itself.

It runs in a process of its own with that state's `src` as PYTHONPATH, and imports nothing of the
present one. Its folder holds what to count (`regions.arrow`, `job.json`). For each line that it
reads, "shapely" or "arrow", it counts once and writes the seconds by the clock and of the
processor: so the two states can take turns.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely


def main(folder: Path) -> None:
    from dpregions import Grid  # where an earlier state has them
    from dpregions.buckets import Buckets, Footprints
    from dpregions.footprint import Terms
    from dpregions.privacy import Budget
    from dpregions.regions import Bound, geometry_batches, outlines_of, read_regions

    job = json.loads((folder / "job.json").read_text())
    with pa.OSFile(str(folder / "regions.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    inputs = {"arrow": table, "shapely": shapely.from_wkb(table["geometry"].to_numpy())}
    n = job["side"]
    grid = Grid(0, 0, 1, n, n)
    bound = Bound.of(grid, job["max_diameter"], "shrink")
    known = Terms.of(grid, bound, Budget(1), "add-remove").known
    buckets = Buckets.of(known, "patterns", n, n)

    def count(regions: Any) -> np.ndarray:
        source = read_regions(regions)
        batches = geometry_batches(source, grid, bound)
        outlines = (outlines_of(batch, source.crs, grid, bound) for batch in batches)
        found = Footprints.of(outlines, n, n, known.side)
        return np.bincount(buckets.numbers(found), minlength=len(buckets))

    for regions in inputs.values():
        count(regions[:10_000])  # compile or load the cache
    print("ready", flush=True)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        count(inputs[line.strip()])
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
