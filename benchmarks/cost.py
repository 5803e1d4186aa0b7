"""What `--dry-run` says of a release beside what the release then takes.

Each release runs in a process of its own, from a GeoParquet file of octagons with two rows for each
user. What is said holds at most; draws of the paper's method are exact.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import Row, show
from benchmarks.scale import write_file

SETTINGS = (
    ("footprint", 20, 100_000),
    ("footprint", 40, 1_000_000),
    ("footprint", 200, 1_000_000),
    ("paper", 50, 100_000),
    ("paper", 200, 1_000_000),
)
"""Method, cells along a side, rows of the file."""

RELEASE = """
import json, os, sys, threading, time
source, output, method, side = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
start = time.process_time()
import numpy as np
import dpregions as dpr
from dpregions.privacy.noise import SystemNoise
from dpregions.releases.file import save
draws, add = 0, SystemNoise.add
def counted(self, values, **terms):
    global draws
    draws += np.size(values)
    return add(self, values, **terms)
SystemNoise.add = counted
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
peak = 0
def watch():
    global peak
    while True:
        peak = max(peak, resident())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
grid = dpr.Grid(0, 0, 1, side, side)
made = dpr.release(dpr.open_regions(source), grid, epsilon=1, max_diameter=2, method=method)
save(made, output)
seconds = time.process_time() - start
print(json.dumps([draws, peak, os.path.getsize(output), seconds]))
"""


def said(folder: Path, method: str, side: int, rows: int) -> list[float]:
    """Return draws, bytes of memory and of the file, and seconds, as the command says them."""
    grid = folder / "grid.json"
    grid.write_text(_grid(side))
    command = [sys.executable, "-m", "dpregions.cli.app", "release"]
    command += [str(folder / "none.parquet"), "-o", str(folder / "other.parquet"), "--epsilon", "1"]
    command += ["--max-diameter", "2", "--grid", str(grid), "--method", method]
    done = _output([*command, "--dry-run", "--json"])
    users = done["bytes_per_user"] * rows / 2
    seconds = done["seconds"] + done["seconds_per_million"] * rows / 1e6
    return [done["draws"], done["memory"] + users, done["file"], seconds]


def _grid(side: int) -> str:
    from dpregions import Grid

    return Grid(0, 0, 1, side, side).to_json()


def _output(command: list[str]) -> Any:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
    return json.loads(done.stdout.splitlines()[-1])


def run(quick: bool = False) -> list[Row]:
    """Measure; `python -m benchmarks.cost` prints the table."""
    rows: list[Row] = []
    names = ("draws", "MB of memory", "MB of file", "s")
    with tempfile.TemporaryDirectory(prefix="dpregions-cost-") as name:
        folder = Path(name)
        for method, side, n in SETTINGS[:1] if quick else SETTINGS:
            path, output = folder / f"{n}-{side}.parquet", folder / "made.parquet"
            if not path.exists():
                write_file(path, n, side)
            args = [str(path), str(output), method, str(side)]
            took = _output([sys.executable, "-W", "ignore", "-c", RELEASE, *args])
            what = f"{method}, {side} x {side}, {n:,} rows"
            for unit, before, after in zip(names, said(folder, method, side, n), took, strict=True):
                scale = 1e6 if unit.startswith("MB") else 1.0
                a, b = after / scale, before / scale
                rows.append(Row(what, a, unit, "said", b, b / a, ">= 1 x"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small release")
    args = parser.parse_args()
    show(f"What is said before a release, load {os.getloadavg()[0]:.1f}", run(args.quick))


if __name__ == "__main__":
    main()
