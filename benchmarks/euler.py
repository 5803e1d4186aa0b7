"""Exact Euler histograms against the straightforward GeoPandas and shapely way."""

from __future__ import annotations

import subprocess
import sys
import time

import geopandas
import numpy as np
import shapely

from benchmarks.report import Row, best_of, show
from dpregions import EulerHistogram, Grid
from dpregions.geometry import touch_kernel as _touch
from dpregions.intake.regions import outlines_of

SJOIN = "geopandas.sjoin with faces, edges, vertices"


def make_regions(n: int, side: float) -> np.ndarray:
    """Return n convex polygons of 8 vertices, 2 cells across, anywhere in the area."""
    rng = np.random.default_rng(1)
    angles = np.sort(rng.uniform(0, 2 * np.pi, (n, 8)), axis=1)
    centres = rng.uniform(0, side, (n, 1, 2))
    return shapely.polygons(centres + np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def sjoin_histogram(regions: np.ndarray, components: list[geopandas.GeoDataFrame]) -> list:
    """Count regions by component as one would without this library."""
    frame = geopandas.GeoDataFrame(geometry=regions)
    return [
        geopandas.sjoin(part, frame, predicate="intersects").groupby(level=0).size()
        for part in components
    ]


def build(n_regions: int, n: int, part: int) -> list[Row]:
    grid = Grid(0, 0, 1, n, n)
    regions = make_regions(n_regions, n)
    EulerHistogram.from_regions(regions[:10], grid)  # compile or load the cache
    ours = best_of(5, lambda: EulerHistogram.from_regions(regions, grid))

    # The peer on one part of the area, as densely covered; its time grows with the area.
    share = (part / n) ** 2
    small = Grid(0, 0, 1, part, part)
    components = [small.to_geodataframe(kind) for kind in ("faces", "edges", "vertices")]
    few = make_regions(round(n_regions * share), part)
    peer = best_of(1, lambda: sjoin_histogram(few, components)) / share

    outlines = outlines_of(regions, None, grid, None)
    steps = np.zeros((2 * n - 1, 2 * n), np.int64)
    kernel = best_of(3, lambda: _touch.add_bodies(outlines.xy, outlines.offsets, n, n, steps))
    return [
        Row(
            f"build, {n_regions:,} regions, {n} x {n}, from shapely",
            ours,
            peer=SJOIN,
            peer_value=peer,
            ratio=peer / ours,
            goal="50 x",
            note=f"peer measured on {len(few):,} regions, {part} x {part} cells, and multiplied",
        ),
        Row("kernel, one core", n_regions / kernel / 1e6, "M regions/s", goal="2"),
    ]


def query(n_regions: int, n: int, n_queries: int, n_peer: int) -> list[Row]:
    grid = Grid(0, 0, 1, n, n)
    regions = make_regions(n_regions, n)
    hist = EulerHistogram.from_regions(regions, grid)
    ends = np.sort(np.random.default_rng(2).integers(0, n + 1, (2, 2, n_queries)), axis=0)
    ends = ends.astype(float)
    ends[1] = np.maximum(ends[1], ends[0] + 1)
    ends -= ends[1] > n
    bounds = (*ends[0], *ends[1])
    hist.count(0, 0, 1, 1)
    ours = best_of(3, lambda: hist.count(*bounds))
    tree = shapely.STRtree(regions)
    boxes = shapely.box(*(b[:n_peer] for b in bounds))
    peer = best_of(1, lambda: [len(tree.query(box, predicate="intersects")) for box in boxes])
    rate, peer_rate = n_queries / ours, n_peer / peer
    scalar = best_of(3, lambda: [hist.count(10.0, 10.0, 15.5, 14.5) for _ in range(1000)])
    return [
        Row(
            f"{n_queries:,} rectangles in one call",
            rate,
            "queries/s",
            "STRtree.query(intersects), one by one",
            peer_rate,
            rate / peer_rate,
            "1,000 x",
            f"peer measured on {n_peer} rectangles",
        ),
        Row("one rectangle, four numbers", scalar * 1e3, "µs", goal="< 20"),
    ]


MEMORY = """
import sys, threading, time
from benchmarks.euler import make_regions
from dpregions import EulerHistogram, Grid
n, n_regions = int(sys.argv[1]), int(sys.argv[2])
regions, grid = make_regions(n_regions, n), Grid(0, 0, 1, n, n)
EulerHistogram.from_regions(regions[:10], Grid(0, 0, 1, 10, 10))
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before = peak = resident()
def watch():
    global peak
    while True:
        peak = max(peak, resident())
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
EulerHistogram.from_regions(regions, grid)
print(peak - before)
"""


def memory(n_regions: int, n: int) -> list[Row]:
    args = [sys.executable, "-c", MEMORY, str(n), str(n_regions)]
    grown = int(subprocess.run(args, capture_output=True, text=True, check=True).stdout)
    histogram = 8 * (2 * n - 1) ** 2
    row = Row(
        f"memory of a build, {n} x {n}",
        grown / 2**20,
        "MiB",
        "the histogram itself",
        histogram / 2**20,
        grown / histogram,
        "one a worker, and a batch",
    )
    return [row]


def import_time() -> list[Row]:
    def run(statement: str) -> float:
        args = [sys.executable, "-c", statement]
        return best_of(5, lambda: subprocess.run(args, check=True))

    return [Row("import dpregions", run("import dpregions") - run("pass"), goal="< 0.5")]


def run(quick: bool = False) -> list[Row]:
    """Measure everything; `quick` on small sizes, to see that it runs."""
    if quick:
        return [*build(2000, 20, 10), *query(2000, 20, 1000, 10), *memory(1000, 20)]
    start = time.perf_counter()
    rows = [
        *build(1_000_000, 1000, 500),
        *query(1_000_000, 1000, 1_000_000, 100),
        *memory(1_000_000, 2000),
        *import_time(),
    ]
    print(f"measured in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return rows


if __name__ == "__main__":
    show("Exact Euler histograms", run("--quick" in sys.argv))
