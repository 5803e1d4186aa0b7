"""`dpregions demo`: the main job on the synthetic city, from regions to private answers.

Shows exact figures beside private ones, which is allowed only because the city is made up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from dpregions.releases import Release

N_USERS = 2000
EPSILON = 1
MAX_DIAMETER = "2km"

QUERIES = {
    "one cell in the centre": (10, 10, 10, 10),
    "2 x 2 km in the centre": (9, 10, 9, 10),
    "4 x 6 km, south-west": (2, 5, 3, 8),
    "the western half": (0, 19, 0, 9),
    "the whole area": (0, 19, 0, 19),
}
"""Rectangles of cells: first and last row, first and last column."""


class Answer(NamedTuple):
    """One query of the demo: the truth, what cell counts say, what is published."""

    query: str
    touching: int
    sum_of_cells: int
    released: int
    low: float
    high: float


class Demo(NamedTuple):
    """What the demo made."""

    answers: list[Answer]
    release: Release
    picture: Path


def run(out: Path) -> Demo:
    """Count and release the synthetic city's regions, and draw them."""
    from dpregions import synthetic
    from dpregions.euler import EulerHistogram
    from dpregions.plots.double_counting import draw_double_counting
    from dpregions.releases import release

    grid = synthetic.grid()
    regions = synthetic.regions(N_USERS)
    hist = EulerHistogram.from_regions(regions, grid, user_id="user_id")
    published = release(regions, grid, epsilon=EPSILON, max_diameter=MAX_DIAMETER)
    answers = []
    for name, (row0, row1, col0, col1) in QUERIES.items():
        bounds = grid.cell_bounds(row0, row1, col0, col1)
        cells = int(hist.faces[row0 : row1 + 1, col0 : col1 + 1].sum())
        low, high = published.interval(*bounds)
        answers.append(
            Answer(name, hist.count(*bounds), cells, published.count(*bounds), low, high)
        )
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "double_counting.png"
    draw_double_counting(regions, hist, grid.cell_bounds(8, 11, 8, 12), picture)
    return Demo(answers, published, picture)
