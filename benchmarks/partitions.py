"""Partitions of Voronoi cells: made and certified, counted on, and asked.

Counting is measured in CPU seconds of one thread, against one GeoPandas join with the faces, one
with the edges and one with the vertices; the counts must be the same.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import geopandas
import numpy as np
import shapely

from benchmarks.euler import SJOIN, sjoin_histogram
from benchmarks.report import Row, best_of, show
from dpregions import Partition
from dpregions.engines.local import count
from dpregions.errors import DPRegionsWarning
from dpregions.geometry.outlines import Outlines
from dpregions.geometry.partition_counts import PartitionCounts
from dpregions.intake.regions import read_outlines

SPACING = 1000.0


def diagram(n: int) -> Partition:
    """Return the Voronoi cells of n random sites, `SPACING` apart in the mean."""
    side = SPACING * n**0.5
    sites = np.random.default_rng(1).uniform(0, side, (n, 2))
    return Partition.voronoi(sites, (0, 0, side, side))


def regions_on(partition: Partition, n: int, diameter: float) -> np.ndarray:
    """Return n convex polygons of 8 corners on a circle, inside the area."""
    rng = np.random.default_rng(2)
    xmin, ymin, xmax, ymax = partition.bounds
    angles = np.sort(rng.uniform(0, 2 * np.pi, (n, 8)), axis=1)
    low, high = (xmin + diameter, ymin + diameter), (xmax - diameter, ymax - diameter)
    centres = rng.uniform(low, high, (n, 2))[:, None]
    return shapely.polygons(centres + diameter / 2 * np.stack([np.cos(angles), np.sin(angles)], -1))


def bodies_of(partition: Partition, regions: np.ndarray) -> Outlines:
    """Return regions as bodies."""
    coords = shapely.get_coordinates(regions)
    starts = np.concatenate([[0], np.cumsum(shapely.get_num_coordinates(regions))])
    return partition.outlines(coords, starts)


def counted(partition: Partition, regions: np.ndarray) -> np.ndarray:
    """Return the histogram of regions, in this thread."""
    tally = partition.counter()
    tally.add(bodies_of(partition, regions))
    return tally.histogram()


def in_threads(partition: Partition, regions: np.ndarray) -> PartitionCounts:
    """Return the tally of regions in batches, on all cores."""
    return count(read_outlines(regions, partition, None), partition.counter)


def cpu(n: int, work: Callable[[], Any]) -> float:
    """Return the least CPU time of n runs."""
    times = []
    for _ in range(n):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def counting(n_cells: int, n_regions: int) -> list[Row]:
    partition = diagram(n_cells)
    frames = [partition.to_geodataframe(kind) for kind in ("faces", "edges", "vertices")]
    frames = [frame.set_index("component") for frame in frames]
    rows = []
    for spacings, goal in ((2.0, "15 x"), (0.5, "8 x")):
        regions = regions_on(partition, n_regions, spacings * SPACING)
        counted(partition, regions[:10])  # compile or load the cache
        ours = cpu(5, lambda regions=regions: counted(partition, regions))
        wall = best_of(5, lambda regions=regions: in_threads(partition, regions))
        peer = cpu(2, lambda regions=regions: sjoin_histogram(regions, frames))
        expected = np.zeros(partition.n_components, np.int64)
        for part in sjoin_histogram(regions, frames):
            expected[part.index] = part
        counts = counted(partition, regions)
        bodies = bodies_of(partition, regions)
        kernel = cpu(3, lambda bodies=bodies: partition.counter().add(bodies))
        rows.append(
            Row(
                f"count, {n_cells:,} cells, {n_regions:,} regions of {spacings:g} spacings, CPU",
                ours,
                peer=SJOIN,
                peer_value=peer,
                ratio=peer / ours,
                goal=goal,
                note=f"{int((counts != expected).sum())} counts differ; wall on all cores "
                f"{wall:.3g} s; {counts.sum() / n_regions:.1f} components touched in the mean",
            )
        )
        rate = n_regions / kernel / 1e6
        rows.append(
            Row(f"walk alone, {spacings:g} spacings", rate, "M regions/s", goal="0.3 to 1.2")
        )
    return rows


def making(n_cells: int) -> list[Row]:
    diagram(50)  # compile or load the cache
    build = best_of(2, lambda: diagram(n_cells))
    text = diagram(n_cells).to_json()
    load = best_of(2, lambda: Partition.from_json(text))
    return [
        Row(f"make and certify {n_cells:,} Voronoi cells", build, goal="5 s or less"),
        Row(
            f"load and certify {n_cells:,} cells", load, note=f"{len(text) / 2**20:.2f} MiB of text"
        ),
    ]


def asking(n_cells: int, n_queries: int) -> list[Row]:
    partition = diagram(n_cells)
    counts = np.ones(partition.n_components, np.int64)
    rng = np.random.default_rng(3)
    places = rng.uniform(*partition.bounds[::2], (n_queries, 2))
    districts = geopandas.GeoSeries(shapely.buffer(shapely.points(places), 3 * SPACING))

    def ask() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DPRegionsWarning)
            partition.select((districts,)).sums(counts)

    ask()
    what = f"{n_queries:,} polygons of 6 spacings in one call, {n_cells:,} cells"
    return [Row(what, best_of(3, ask))]


def run(quick: bool = False) -> list[Row]:
    """Measure everything; `quick` on small sizes, to see that it runs."""
    if quick:
        return [*making(200), *counting(200, 500), *asking(200, 20)]
    return [*making(10_000), *counting(10_000, 100_000), *asking(10_000, 1000)]


if __name__ == "__main__":
    show("Partitions", run("--quick" in sys.argv))
