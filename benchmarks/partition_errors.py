"""Errors and 95 % intervals on sets of Voronoi cells: the default mechanism beside the paper's.

Study on exact data: not a private release. Sets of neighbouring cells of random and of crowded
sites, on the synthetic city, and on T-Drive where its file is given (--data FOLDER, or
DPREGIONS_DATA for `make bench`). The same sets are asked of every release.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.report import Row
from benchmarks.utility import City, synthetic_city, tdrive, usual_folder
from dpregions import Partition
from dpregions.errors import DPRegionsWarning
from dpregions.planning.exact_data import outlines_that_count
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with

MAX_DIAMETER = "2km"
SITES = 400
SIZES = (1, 4, 20, 80, 200)
GOALS = (15.0, 10.0, 4.0, 2.0, 1.0)
"""Median errors in per cent that are promised on T-Drive, by the number of cells."""
CROWDED_GOALS = tuple(goal * 4 / 3 for goal in GOALS)
LEAST = 0.93
"""The goal of 95 % intervals: they hold the true count at least so often, at every size."""
QUERIES = 40


def random_sites(bounds: tuple[float, ...], seed: int) -> np.ndarray:
    """Return sites that are spread evenly."""
    xmin, ymin, xmax, ymax = bounds
    return np.random.default_rng(seed).uniform([xmin, ymin], [xmax, ymax], (SITES, 2))


def crowded_sites(bounds: tuple[float, ...], seed: int) -> np.ndarray:
    """Return sites of which two thirds crowd about the centre (sigma 2.5 km)."""
    xmin, ymin, xmax, ymax = bounds
    rng = np.random.default_rng(seed)
    middle = np.array([(xmin + xmax) / 2, (ymin + ymax) / 2])
    crowd = rng.normal(middle, 2_500, (4 * SITES, 2))
    inside = ((crowd > [xmin, ymin]) & (crowd < [xmax, ymax])).all(axis=1)
    rest = rng.uniform([xmin, ymin], [xmax, ymax], (SITES - 2 * SITES // 3, 2))
    return np.concatenate([crowd[inside][: 2 * SITES // 3], rest])


class Truth:
    """Which cells each region touches: how many touch a set of them."""

    def __init__(self, regions: Any, cells: Partition) -> None:
        bound = cells.bound(MAX_DIAMETER, "shrink")
        self.n, bodies, faces = 0, [], []
        for outlines in outlines_that_count(regions, cells, bound, "user_id"):
            offsets, items = cells.touched(outlines)
            body = self.n + np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            face = items < cells.n_faces
            bodies.append(body[face])
            faces.append(items[face])
            self.n += len(offsets) - 1
        self.body, self.face = np.concatenate(bodies), np.concatenate(faces)

    def count(self, cells: np.ndarray) -> int:
        """Return how many regions touch some cells."""
        return len(np.unique(self.body[np.isin(self.face, cells)]))


SITES_BY_KIND = {"random": random_sites, "crowded": crowded_sites}


def neighbouring(cells: Partition, seed: int, n: int = QUERIES) -> dict[int, list[np.ndarray]]:
    """Return n sets of cells of each size: each the nearest ones to some cell."""
    middles = cells.to_geodataframe().geometry.representative_point()
    xy = np.stack([middles.x, middles.y], axis=-1)
    rng = np.random.default_rng(seed)
    found = {}
    for size in SIZES:
        chosen = rng.choice(len(xy), n, replace=False)
        far = ((xy[chosen, None] - xy) ** 2).sum(axis=2)
        found[size] = list(np.argsort(far, axis=1)[:, :size])
    return found


def measured(
    regions: Any,
    cells: Partition,
    methods: Sequence[str],
    releases: int,
    epsilon: float = 1.0,
    n_sets: int = QUERIES,
) -> pd.DataFrame:
    """Return a row for every method, release and set of cells.

    How far the count is off, in per cent of the true count or of a thousandth of all regions if
    that is more; whether the interval holds the true count; its width; and the true count.
    """
    truth, rows = Truth(regions, cells), []
    sets = neighbouring(cells, 0, n_sets)
    exact = {size: np.array([truth.count(one) for one in some]) for size, some in sets.items()}
    labels = np.array(cells.labels, dtype=object)
    asked = {size: [list(labels[one]) for one in some] for size, some in sets.items()}
    for method in methods:
        for seed in range(releases):
            made = release_with(
                StudyNoise(seed), regions, cells, epsilon=epsilon, max_diameter=MAX_DIAMETER,
                method=method,
            )  # fmt: skip
            for size, true in exact.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DPRegionsWarning)
                    count = made.count(cells=asked[size])
                    low, high = made.interval(cells=asked[size])
                off = 100 * np.abs(count - true) / np.maximum(true, 0.001 * truth.n)
                frame = {"method": method, "cells": size, "seed": seed, "off": off}
                frame |= {"held": (low <= true) & (true <= high)}
                rows.append(pd.DataFrame(frame | {"width": high - low, "truth": true}))
    return pd.concat(rows, ignore_index=True)


def by_size(table: pd.DataFrame) -> pd.DataFrame:
    """Return figures in per cent by method and number of cells.

    The median error of the sets, in the mean of all releases; how often intervals hold; their mean
    width, of the mean true count.
    """
    medians = table.groupby(["method", "cells", "seed"])["off"].median()
    found = table.groupby(["method", "cells"])
    width = found["width"].mean() / found["truth"].mean()
    held = found["held"].mean()
    error = medians.groupby(["method", "cells"]).mean()
    return pd.DataFrame({"error": error, "held": 100 * held, "width": 100 * width})


def cities(folder: Path | None, n_users: int = 10_000) -> dict[str, City]:
    """Return what is counted, by name, each with a grid over its area."""
    found = {f"synthetic N={n_users:,}": synthetic_city(n_users)}
    if folder is not None and (folder / "tdrive.parquet").exists():
        found["T-Drive"] = tdrive(folder, 20)
    return found


def goals_of(city: str, kind: str) -> tuple[float, ...] | None:
    """Return the errors that are promised, by size; None where none are."""
    if city != "T-Drive":
        return None
    return GOALS if kind == "random" else CROWDED_GOALS


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure a few releases; `python -m benchmarks.partition_errors` does more."""
    rows = []
    for name, (regions, grid) in cities(data or usual_folder(), 2_000 if quick else 10_000).items():
        for kind, sites in SITES_BY_KIND.items():
            cells = Partition.voronoi(sites(grid.bounds, 1), grid.bounds, crs=grid.crs)
            releases, n_sets = (1, 8) if quick else (10, QUERIES)
            table = measured(regions, cells, ("footprint", "paper"), releases, n_sets=n_sets)
            found, goals = by_size(table), goals_of(name, kind)
            for i, size in enumerate(SIZES):
                ours, peer = (
                    found.loc[(method, size), "error"] for method in ("footprint", "paper")
                )
                what = f"{name}, {kind} sites: {size} cells"
                promised = f"{goals[i]:.3g} %" if goals else ""
                note = f"intervals hold {found.loc[('footprint', size), 'held']:.1f} %"
                rows.append(Row(what, ours, "%", "paper", peer, peer / ours, promised, note))
    return rows


def markdown(title: str, figures: pd.DataFrame, goals: Sequence[float] | None, note: str) -> str:
    """Return figures by size as a Markdown table."""
    lines = [f"### {title}", "", note, ""]
    lines += ["| in % | " + " | ".join(f"{size} cells" for size in SIZES) + " |"]
    lines += ["|---|" + "---:|" * len(SIZES)]
    names = {
        "error": "median error",
        "held": f"95 % intervals hold (goal: {LEAST:.0%})",
        "width": "their mean width, of the mean count",
    }
    for method in figures.index.unique("method"):
        for column, name in names.items():
            values = " | ".join(f"{v:.3g}" for v in figures.loc[method, column])
            lines.append(f"| {method}: {name} | {values} |")
    if goals is not None:
        lines.append("| goal of the error | " + " | ".join(f"{v:.3g}" for v in goals) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partition_errors", description=__doc__
    )
    parser.add_argument("--data", type=Path, default=usual_folder(), help="folder of *.parquet")
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--sets", type=int, default=QUERIES, help="of cells, of each size")
    parser.add_argument("--only", default="", help="cities and sites whose name holds this text")
    parser.add_argument("--paper", action="store_true", help="the paper's pipeline as well")
    args = parser.parse_args()
    methods = ("footprint", "paper") if args.paper else ("footprint",)
    for name, (regions, grid) in cities(args.data).items():
        for kind, sites in SITES_BY_KIND.items():
            title = f"{name}, {kind} sites"
            if args.only not in title:
                continue
            start = time.perf_counter()
            cells = Partition.voronoi(sites(grid.bounds, 1), grid.bounds, crs=grid.crs)
            table = measured(regions, cells, methods, args.releases, n_sets=args.sets)
            note = f"{args.releases} releases, {args.sets} sets of each size, epsilon = 1."
            print(markdown(title, by_size(table), goals_of(name, kind), note))
            print(f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
