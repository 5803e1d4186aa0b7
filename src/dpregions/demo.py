"""`dpregions demo`: the main job on the synthetic city, from regions to answers and a picture.

Shows exact figures, which is allowed only because the city is made up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from dpregions.euler import EulerHistogram

N_USERS = 2000


class Answer(NamedTuple):
    """One query of the demo, answered two ways."""

    query: str
    cells: int
    touching: int
    sum_of_cells: int


def run(out: Path) -> tuple[list[Answer], Path]:
    """Count the synthetic city's regions and draw them; return the answers and the picture."""
    from dpregions import synthetic
    from dpregions.euler import EulerHistogram
    from dpregions.plots.double_counting import draw_double_counting

    grid = synthetic.grid()
    regions = synthetic.regions(N_USERS)
    hist = EulerHistogram.from_regions(regions, grid, user_id="user_id", max_diameter="2km")
    queries = {
        "one cell in the centre": (10, 10, 10, 10),
        "2 x 2 km in the centre": (9, 10, 9, 10),
        "4 x 6 km, south-west": (2, 5, 3, 8),
        "the western half": (0, 19, 0, 9),
        "the whole area": (0, 19, 0, 19),
    }
    answers = [_answer(hist, name, *cells) for name, cells in queries.items()]
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "double_counting.png"
    draw_double_counting(regions, hist, grid.cell_bounds(8, 11, 8, 12), picture)
    return answers, picture


def _answer(hist: EulerHistogram, name: str, row0: int, row1: int, col0: int, col1: int) -> Answer:
    cells = hist.faces[row0 : row1 + 1, col0 : col1 + 1]
    touching = hist.count(*hist.grid.cell_bounds(row0, row1, col0, col1))
    return Answer(name, cells.size, touching, int(cells.sum()))
