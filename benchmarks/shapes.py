"""Queries as drawn: how far answers are off, beside those about cells, and what intervals hold.

Study on exact data: not a private release. The truth is the number of regions, as counted, that
touch the query as drawn. T-Drive and GeoLife where their Parquet files are given (--data
FOLDER, or DPREGIONS_DATA for `make bench`), and the synthetic city. Regions of real fixes are kept
in the system's temporary folder between runs, never in the project.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
import shapely

from benchmarks.polygon_queries import outline
from benchmarks.report import Row, best_of, show
from benchmarks.utility import synthetic_city, usual_folder
from dpregions.errors import DPRegionsWarning
from dpregions.geometry.cells import select
from dpregions.geometry.lattice import STEPS
from dpregions.mechanisms.footprint.mechanism import Footprint, FootprintOutcome
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.datasets import DATASETS, Setting, exact_data, keep_regions, lacks_regions

LEAST, TIMES = 0.93, 8.0
"""The goals: 95 % intervals hold at least so often; "cells" errs at least so many times as much."""
SIZES = (0.0, 0.1, 0.3, 1.0, 3.0, 8.0)
"""Of queries whose intervals are looked at, in cells; 0: points."""
PLACES = ("busy", "empty")
COMPARED = {"disc": (1, 3, 8), "triangle": (1, 3, 8), "L": (1, 3, 8), "square": (0.5, 1, 2, 5, 10)}
"""Shapes compared with cells, and their sizes in kilometres."""


@dataclass(frozen=True, eq=False)
class City:
    """Regions on a grid, exactly; what is asked of them, and what is true."""

    data: ExactData

    @cached_property
    def _tree(self) -> shapely.STRtree:
        grid, shapes = self.data.grid, []
        corner = np.array([grid.xmin, grid.ymin])
        for batch in self.data.outlines:
            xy = corner + (batch.xy + 0.5) * (grid.cell_size / STEPS)
            for start, stop in zip(batch.offsets, batch.offsets[1:], strict=False):
                kinds = (shapely.Point, shapely.LineString, shapely.Polygon)
                if start < stop:
                    shapes.append(kinds[min(stop - start, 3) - 1](xy[start:stop]))
        return shapely.STRtree(shapes)

    def truth(self, shapes: np.ndarray) -> np.ndarray:
        """Return how many regions touch each shape."""
        query, _ = self._tree.query(shapes, predicate="intersects")
        return np.bincount(query, minlength=len(shapes))

    def centres(self, place: str, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return places in cells as crowded as they are, or in the emptier half of all cells."""
        faces = self.data.counts[::2, ::2].ravel()
        weights = faces if place == "busy" else faces <= np.median(faces)
        cell = rng.choice(faces.size, n, p=weights / weights.sum())
        return np.stack(np.divmod(cell, self.data.grid.n_cols)[::-1], axis=-1) + rng.random((n, 2))

    def queries(
        self, kind: str, size: float, centres: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return shapes so many cells across, about places in cells."""
        grid = self.data.grid
        at = centres * grid.cell_size + [grid.xmin, grid.ymin]
        if not size:
            return shapely.points(at)
        return outline(kind, at, size * grid.cell_size, rng)

    def releases(self, n: int, tuning: Tuning = TUNING) -> Iterator[FootprintOutcome]:
        """Make releases with seeded noise, one after the other; intervals are by a tuning."""
        for number in range(n):
            noise = StudyNoise(int(np.random.default_rng([0, number]).integers(2**62)))
            made = self.data.outcome(Footprint(), Budget(1), "add-remove", noise)
            yield replace(made, reading=replace(made.reading, tuning=tuning))


@dataclass(frozen=True)
class Named:
    """A city by its name, loaded when it is its turn."""

    name: str
    load: Callable[[], City]


def real_city(name: str, folder: Path, n: int = 20) -> City:
    data = DATASETS[name]
    kept = Path(tempfile.gettempdir()) / f"dpregions-shapes-{os.getuid()}"
    if lacks_regions(data, kept):
        keep_regions(data, folder, kept)
    return City(exact_data(Setting(data, n), kept))


def made_up_city(n_users: int) -> City:
    return City(synthetic_city(n_users).exact())


def cities(data: Path | None, quick: bool = False) -> list[Named]:
    """Return what to measure; the first is the one that errors are compared on."""
    if quick:
        return [Named("synthetic N=2,000", partial(made_up_city, 2_000))]
    found = [
        Named(DATASETS[name].title, partial(real_city, name, data))
        for name in ("tdrive", "geolife")
        if data is not None and DATASETS[name].file(data).exists()
    ]
    return [*found, Named("synthetic N=10,000", partial(made_up_city, 10_000))]


def errors(city: City, releases: int, n: int) -> pd.DataFrame:
    """Return the median relative error, in %, of both rules by kind and size of shape."""
    rng = np.random.default_rng(0)
    grid, floor = city.data.grid, 0.001 * city.data.n_regions
    rows = []
    for number, release in enumerate(city.releases(releases)):
        for kind, sizes in COMPARED.items():
            for km in sizes:
                inner = rng.uniform(0.2, 0.8, (n, 2)) * grid.shape[::-1]
                shapes = city.queries(kind, 1000 * km / grid.cell_size, inner, rng)
                truth = city.truth(shapes)
                for rule in ("shape", "cells"):
                    count = release.count(select(grid, (shapes,), within=rule))
                    off = np.abs(count - truth) / np.maximum(truth, floor)
                    rows.append((kind, km, number, rule, 100 * np.median(off)))
    each = pd.DataFrame(rows, columns=["kind", "km", "release", "rule", "error"])
    return each.groupby(["kind", "km", "rule"], sort=False)["error"].mean().unstack()


def coverage(city: City, releases: int, n: int, tuning: Tuning = TUNING) -> pd.DataFrame:
    """Return how often 95 % intervals hold the truth, in %, by place and size; and their widths."""
    rng = np.random.default_rng(1)
    rows = []
    for release in city.releases(releases, tuning):
        for place in PLACES:
            for size in SIZES:
                kinds = list(COMPARED) if size else ["square"]
                for kind in kinds:
                    centres = city.centres(place, max(n // len(kinds), 1), rng)
                    shapes = city.queries(kind, size, centres, rng)
                    truth = city.truth(shapes)
                    chosen = select(city.data.grid, (shapes,), within="shape")
                    low, high = release.bounds(chosen, 0.95)
                    held = (low <= truth) & (truth <= high)
                    off = np.abs(release.count(chosen) - truth)
                    found = zip(held, low > truth, high - low, off, truth, strict=True)
                    rows += [(place, size, *values) for values in found]
    names = ["place", "size", "held", "above", "width", "off", "truth"]
    by_size = pd.DataFrame(rows, columns=names).groupby(["place", "size"], sort=False)
    table = by_size[["held", "above", "width", "off", "truth"]].mean().astype(float)
    return table.assign(held=100 * table["held"], above=100 * table["above"])


def times(city: City, n: int) -> list[Row]:
    """Return how long one polygon and many districts take, once trees are there."""
    rng = np.random.default_rng(2)
    (release,) = city.releases(1)
    grid, rows = city.data.grid, []
    districts = city.queries("disc", 0.7, city.centres("busy", n, rng), rng)
    for what, shapes in (
        ("a disc of 3 cells", city.queries("disc", 3, city.centres("busy", 1, rng), rng)),
        ("an L of 8 cells", city.queries("L", 8, city.centres("busy", 1, rng), rng)),
        (f"{n:,} districts", districts),
    ):
        chosen = select(grid, (shapes,), within="shape")
        release.bounds(chosen, 0.95)
        repeats = 3 if len(shapes) > 1 else 10
        for name, work in (
            ("count", partial(release.count, chosen)),
            ("interval", partial(release.bounds, chosen, 0.95)),
        ):
            rows.append(Row(f"{name} of {what}", 1000 * best_of(repeats, work), "ms"))
    return rows


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure a few releases; `python -m benchmarks.shapes` does more."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPRegionsWarning)
        for i, named in enumerate(cities(data or usual_folder(), quick)):
            city = named.load()
            if i == 0:
                rows += error_rows(named.name, errors(city, 1 if quick else 5, 5 if quick else 100))
                rows += times(city, 20 if quick else 1_000)
            releases, n = (2, 8) if quick else (20, 40)
            rows += coverage_rows(named.name, coverage(city, releases, n), releases)
    return rows


def error_rows(name: str, table: pd.DataFrame) -> list[Row]:
    return [
        Row(
            f"{name}: {kind}, {km:g} km",
            found["shape"],
            "% median error",
            "cells",
            found["cells"],
            found["cells"] / found["shape"],
            goal=f">= {TIMES:g} times",
        )
        for (kind, km), found in table.iterrows()
    ]


def coverage_rows(name: str, table: pd.DataFrame, releases: int) -> list[Row]:
    return [
        Row(
            f"{name}: 95 % intervals, {place}, {size:g} cells"
            if size
            else f"{name}: {place} points",
            found["held"],
            "%",
            goal=f">= {LEAST:.0%}",
            note=f"{releases} releases; mean width {found['width']:.3g}, error {found['off']:.3g}, "
            f"truth {found['truth']:.3g}",
        )
        for (place, size), found in table.iterrows()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=__doc__)
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--quick", action="store_true", help="one small city")
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--queries", type=int, default=40, help="of each size, for each release")
    parser.add_argument("--only", default="", help="cities whose name holds this text")
    parser.add_argument("--size-doubt", type=float, default=TUNING.size_doubt, help="of a tuning")
    parser.add_argument("--skip-errors", action="store_true", help="intervals alone")
    args = parser.parse_args()
    warnings.simplefilter("ignore", DPRegionsWarning)
    for named in cities(args.data, args.quick):
        if args.only not in named.name:
            continue
        start = time.perf_counter()
        city = named.load()
        if not args.skip_errors:
            show(named.name, error_rows(named.name, errors(city, 5, 100)))
            show(named.name, times(city, 1_000))
        print(named.name)
        tuning = replace(TUNING, size_doubt=args.size_doubt)
        print(coverage(city, args.releases, args.queries, tuning).round(3).to_string())
        print(f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
