"""``python -m docs.pictures [FOLDER]``: draw the pictures of the docs again, here in docs/images.

The others in that folder are drawn by what their pages show: plan.png by a command, release_map.png
by a block of Python, utility.png by a benchmark on real data, those of the explorer by
`docs.pictures.explorer`, which needs a browser.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from docs.pictures.adaptive_tree import draw_adaptive_tree
from docs.pictures.catalogue import draw_catalogue
from docs.pictures.footprint_steps import draw_footprint_steps
from docs.pictures.partitions import draw_partitions
from docs.pictures.running_example import draw_running_example
from dpregions import EulerHistogram, synthetic
from dpregions.plots.double_counting import draw_double_counting
from dpregions.plots.extraction import plot_extraction

IMAGES = Path(__file__).parents[1] / "images"


def draw_city(path: Path) -> None:
    """Save the picture of what an Euler histogram is for, on the synthetic city."""
    regions, grid = synthetic.regions(2000), synthetic.grid()
    exact = EulerHistogram.from_regions(regions, grid)
    draw_double_counting(regions, exact, grid.cell_bounds(8, 11, 8, 12), path)


def draw_extraction(path: Path) -> None:
    """Save the picture of how a made-up user's fixes become a region."""
    fixes = synthetic.example_user()
    figure = plot_extraction(fixes, k=400, max_diameter="2km", crs="EPSG:32632")
    figure.savefig(path, dpi=110, facecolor="white")


PICTURES: dict[str, Callable[[Path], object]] = {
    "adaptive_tree": draw_adaptive_tree,
    "catalogue": draw_catalogue,
    "double_counting": draw_city,
    "extraction": draw_extraction,
    "partitions": draw_partitions,
    "footprint_steps": draw_footprint_steps,
    "running_example": draw_running_example,
}


def main(folder: Path) -> None:
    """Draw every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw(folder / f"{name}.png")
        print(folder / f"{name}.png", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
