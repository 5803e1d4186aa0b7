"""`make bench`: every benchmark, one table each, and all figures in bench_output/."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.report import save, show

TITLES = {
    "polygon_queries": "Polygon queries on the synthetic city",
    "shapes": "Queries as drawn: study on exact data, not a private release",
    "euler": "Exact Euler histograms",
    "partitions": "Partitions: Voronoi cells made, counted on and asked",
    "partition_errors": "Errors on Voronoi cells: study on exact data, not a private release",
    "counting": "Counting for a release: all cores against one thread",
    "scale": "Counting at scale, from GeoParquet",
    "cost": "What is said before a release, and what it takes",
    "fixes": "From GPS fixes to regions",
    "serving": "Answers over HTTP",
    "isotonic": "Order-constrained fits",
    "memory": "Peak memory beside the figures that guards go by",
    "coverage": "How often intervals hold the true count: study on exact data",
    "plan": "Errors predicted from public parameters, and measured on the synthetic city",
    "utility": "Errors by size: study on exact data, not a private release",
    "people": "Errors where people are: study on exact data, not a private release",
    "trees": "Adaptive trees: study on exact data, not a private release",
    "tree_scale": "Adaptive trees on large grids",
    "calibrate": "What moves when a tuned number is halved or doubled",
}


def main() -> None:
    quick = "--quick" in sys.argv
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or list(TITLES)
    results = {}
    for name in chosen:
        results[name] = import_module(f"benchmarks.{name}").run(quick=quick)
        show(TITLES[name], results[name])
    save(Path("bench_output") / "results.json", results)


if __name__ == "__main__":
    main()
