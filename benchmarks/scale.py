"""Counting at scale: from GeoParquet with and without users, by size, and on Spark.

CPU seconds stand beside the wall's, of all threads and processes; ratios are of CPU seconds in one
run, as the machine may do other things too. Each job runs in a process of its own, which tells its
memory. The earlier state is a checkout of it (--today FOLDER); Spark is measured where it is
installed (--spark). `--millions 1 5 20` says for which sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from benchmarks.report import Row, show

SIDE, MAX_DIAMETER = 1000, 2
USERS_SIDE = 200
PIECE = 250_000


Measured = tuple[float, float, float]
"""Seconds by the clock, of the processor, and bytes grown."""


def write_file(path: Path, n: int, side: int) -> None:
    """Write convex octagons two cells across as plain GeoParquet; two rows for each user."""
    crs = {"version": "1.1.0", "primary_column": "geometry"}
    crs["columns"] = {"geometry": {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": None}}
    fields = [("user_id", pa.int64()), ("geometry", pa.binary())]
    schema = pa.schema(fields, metadata={"geo": json.dumps(crs)})
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, PIECE):
            size = min(PIECE, n - start)
            angles = np.sort(rng.uniform(0, 2 * np.pi, (size, 8)), axis=1)
            middle = rng.uniform(0, side, (size, 1, 2))
            ring = middle + np.stack([np.cos(angles), np.sin(angles)], axis=-1)
            wkb = pa.array(shapely.to_wkb(shapely.polygons(ring)), pa.binary())
            users = rng.integers(0, max(n // 2, 1), size)
            writer.write_table(pa.table([users, wkb], schema=schema))


def few_of(path: Path) -> Path:
    """Return where a few regions are, by which a job compiles its kernels first."""
    return path.with_suffix(".few.parquet")


OURS = """
import sys, time, threading, json
path, side, users, method = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "users", sys.argv[4]
import dpregions as dpr
grid = dpr.Grid(0, 0, 1, side, side)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def counted(regions):
    given = {"user_id": "user_id" if users else None}
    if method == "euler":
        return dpr.EulerHistogram.from_regions(regions, grid, **given)
    from dpregions.engines.choice import tally_of
    from dpregions.mechanisms.known import MECHANISMS
    from dpregions.privacy import Budget
    bound = grid.bound(2, "shrink")
    prepared = MECHANISMS[method]().prepare(grid, bound, Budget(1), "add-remove")
    return tally_of(regions, grid, bound, prepared.tally, **given)
def opened(path):
    return dpr.open_regions(path, user_id="user_id" if users else None)
counted(opened(path.replace(".parquet", ".few.parquet")))
before = peak = resident()
def watch():
    global peak
    while True:
        peak = max(peak, resident())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
wall, cpu = time.perf_counter(), time.process_time()
counted(opened(path))
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, peak - before]))
"""

GEOPANDAS = """
import sys, time, json
import geopandas
path, side = sys.argv[1], int(sys.argv[2])
import dpregions as dpr
grid = dpr.Grid(0, 0, 1, side, side)
parts = [grid.to_geodataframe(kind) for kind in ("faces", "edges", "vertices")]
wall, cpu = time.perf_counter(), time.process_time()
frame = geopandas.read_parquet(path)
for part in parts:
    geopandas.sjoin(part, frame, predicate="intersects").groupby(level=0).size()
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, 0]))
"""

SPARK = """
import sys, time, json, os
path, side = sys.argv[1], int(sys.argv[2])
import dpregions as dpr
from dpregions.intake.sources.spark_files import session_at
from dpregions.engines.choice import tally_of
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy import Budget
def family():
    found, parents = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        found[int(name)] = sum(map(int, fields[11:15]))
    total, mine = 0, {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        if not more:
            break
        mine |= more
    return sum(found.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK")
session = session_at("local[2]")
session.sparkContext.setLogLevel("OFF")
grid = dpr.Grid(0, 0, 1, side, side)
bound = grid.bound(2, "shrink")
prepared = MECHANISMS["footprint"]().prepare(grid, bound, Budget(1), "add-remove")
times = []
for _ in range(3):
    frame = session.read.parquet(path)
    wall, cpu = time.perf_counter(), family()
    tally_of(frame, grid, bound, prepared.tally, user_id="user_id")
    times.append([time.perf_counter() - wall, family() - cpu, 0])
print(json.dumps(times[-1]))
"""


def job(code: str, *args: Any, source: Path | None = None) -> Measured:
    """Return seconds by the clock, of the processor, and bytes grown, of a job in its process."""
    env = dict(os.environ)
    if source is not None:
        env["PYTHONPATH"] = str(source / "src")
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, args)]
    done = subprocess.run(command, check=True, env=env, stdout=subprocess.PIPE, text=True)
    wall, cpu, grown = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu, grown


def in_turns(*jobs: Callable[[], Measured], times: int) -> list[Measured]:
    """Return the run of each that took the least CPU, run in turns: noise only adds."""
    rounds = [[job() for job in jobs] for _ in range(times)]
    return [min(runs, key=lambda run: run[1]) for runs in zip(*rounds, strict=True)]


def note(wall: float, cpu: float, grown: float, n: int) -> str:
    return f"wall {wall:.2f} s, {n / cpu / 1e6:.2f} M rows a CPU second, {grown / 1e6:.0f} MB grown"


def run(
    quick: bool = False,
    millions: tuple[float, ...] = (1,),
    today: Path | None = None,
    spark: bool = False,
    peer: bool = True,
    times: int = 1,
) -> list[Row]:
    """Measure; `python -m benchmarks.scale` has sizes, the earlier state and Spark."""
    rows: list[Row] = []
    side = 20 if quick else SIDE
    with tempfile.TemporaryDirectory(prefix="dpregions-scale-") as folder:
        for number, million in enumerate((0.01,) if quick else millions):
            n = round(million * 1e6)
            path = Path(folder) / f"{n}.parquet"
            write_file(path, n, side)
            write_file(few_of(path), min(n, 1000), side)
            ours, peers = partial(job, OURS, path, side, "each", "euler"), []
            what = f"histogram of {n:,} rows of GeoParquet, {side} x {side}"
            if peer and number == 0:
                peers = [partial(job, GEOPANDAS, path, side)]
            (wall, cpu, grown), *other = in_turns(ours, *peers, times=times)
            row = Row(what, cpu, "CPU s")
            for _, theirs, _ in other:
                goal, name = "30 x", "GeoPandas, read and join"
                row = Row(row.what, cpu, "CPU s", name, theirs, theirs / cpu, goal)
            rows.append(noted(row, note(wall, cpu, grown, n)))
            path.unlink()
            own = 20 if quick else USERS_SIDE
            rows += with_users(Path(folder), n, own, today, spark, times)
    return rows


def with_users(
    folder: Path, n: int, side: int, today: Path | None, spark: bool, times: int
) -> list[Row]:
    """Return rows about the default method, two rows for each user."""
    path = folder / "users.parquet"
    write_file(path, n, side)
    write_file(few_of(path), min(n, 1000), side)
    here, on_spark = partial(job, OURS, path, side, "users", "footprint"), []
    if spark:
        on_spark = [partial(job, SPARK, path, side)]
    (wall, cpu, grown), *other = in_turns(here, *on_spark, times=times)
    what = f"footprints of {n:,} rows with ids, {n // 2:,} users, {side} x {side}"
    rows = [noted(Row(what, cpu, "CPU s"), note(wall, cpu, grown, n))]
    if today is not None:
        now, before = (
            cpu
            for _, cpu, _ in in_turns(
                partial(job, OURS, path, side, "users", "euler"),
                partial(job, OURS, path, side, "users", "euler", source=today),
                times=times,
            )
        )
        what = f"histogram of {n:,} rows with ids, {side} x {side}"
        rows.append(Row(what, now, "CPU s", "an earlier state", before, before / now, "4 x"))
    for wall, there, _ in other:
        what = "the same on Spark, local[2], warm"
        row = Row(what, there, "CPU s", "local engine", cpu, there / cpu, "<= 5 x")
        rows.append(noted(row, f"wall {wall:.1f} s"))
    return rows


def noted(row: Row, words: str) -> Row:
    return Row(row.what, row.ours, row.unit, row.peer, row.peer_value, row.ratio, row.goal, words)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--millions", type=float, nargs="+", default=[1.0])
    parser.add_argument("--today", type=Path, help="a checkout of the earlier state")
    parser.add_argument("--spark", action="store_true", help="also on Spark")
    parser.add_argument("--no-peer", action="store_true", help="without GeoPandas")
    parser.add_argument("--times", type=int, default=1, help="runs of each, in turns; the best")
    parser.add_argument("--quick", action="store_true", help="few regions")
    args = parser.parse_args()
    sizes = tuple(args.millions)
    rows = run(args.quick, sizes, args.today, args.spark, not args.no_peer, args.times)
    show(f"Counting at scale, load {os.getloadavg()[0]:.1f}", rows)


if __name__ == "__main__":
    main()
