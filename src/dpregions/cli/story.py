"""`dpregions demo`: the whole story on the synthetic city, told with the commands themselves.

Fixes -> regions -> plan -> budget -> release -> questions -> pictures. Each step is a command
that may be typed as it is shown. It ends with the exact truth beside the private answers, which
is allowed only because the city is made up.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dpregions.atomic_files import SECRET, replacing
from dpregions.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from dpregions.euler import EulerHistogram
    from dpregions.releases.published import Release

N_USERS = 2000
PLACE = ("--around", "9.0,48.5", "--side", "20km", "--cell", "1km")
BOUND = ("--max-diameter", "2km")
MADE = (
    *("fixes.parquet", "regions.parquet", "budget.db", "city.parquet", "plan.png", "map.png"),
    "map.html",
)
"""The demo's own files: a later run makes them anew."""
MARKER = ".dpregions-demo"
"""Says that they are the demo's, and not somebody's ledger or release of the same name."""

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
    pictures: list[Path]
    page: Path
    """The map to explore."""
    city: Path
    """The release's file."""


def run(
    command_line: Callable[[list[str]], object],
    out: Path,
    tell: Callable[[str, str | None], None],
) -> Demo:
    """Run the story in a folder; `tell` gets a sentence and the command that follows it."""
    from dpregions import synthetic
    from dpregions.euler import EulerHistogram
    from dpregions.geometry.grid import Grid
    from dpregions.releases.published import load

    def do(sentence: str, *command: str | Path) -> None:
        words = [str(word) for word in command]
        tell(sentence, shlex.join(["dpregions", *words]))
        command_line(words)

    pictures = _can_draw(tell)
    _claim(out)
    fixes, secret, ledger, city, plan, map_, page = (out / name for name in MADE)
    tell(f"A made-up city: a week of GPS fixes of {N_USERS:,} users in {fixes}.", None)
    with replacing(fixes, mode=SECRET) as part:
        synthetic.fixes(N_USERS).to_parquet(part)
    do(
        "One convex region a user, where the user mostly is. Still secret.",
        *("regions", fixes, "-o", secret, "--k", "60", *BOUND, "--around", "9.0,48.5"),
    )
    do(
        "How far would answers err? From public parameters alone; the data are not opened.",
        *("plan", "--side", "20km", "--cell", "1km,2km", *BOUND, "--epsilon", "0.25,0.5,1"),
        *("--regions", str(N_USERS), "--query", "2km,5km", "--target", "10%"),
        *(("--plot", plan) if pictures else ()),
    )
    do(
        "A budget for this data set. Every release is debited before its noise is drawn.",
        *("budget", "create", ledger, "--dataset", "city", "--epsilon", "2"),
    )
    do(
        "The release: differentially private, one file, safe to publish.",
        *("release", secret, "-o", city, *PLACE, *BOUND, "--epsilon", "1"),
        *("--ledger", ledger, "--dataset", "city"),
    )
    do("What is left of the budget.", "budget", "show", ledger)

    published = load(city)
    grid = Grid.needed(published.grid, "the demo")
    bounds = map(repr, grid.cell_bounds(*QUERIES["2 x 2 km in the centre"]))
    do("A question to the file. Any number of them cost nothing more.", "query", city, *bounds)
    do("The release as a map to explore: one file for any browser, offline.", "export", city, page)
    from dpregions.io.region_files import load_regions

    regions = load_regions(secret)
    exact = EulerHistogram.from_regions(regions, grid, user_id="user_id", max_diameter="2km")
    answers = [
        _answer(name, cells, grid.cell_bounds(*cells), published, exact)
        for name, cells in QUERIES.items()
    ]
    if not pictures:
        return Demo(answers, published, [], page, city)
    from dpregions.plots.demo_story import draw_story

    twice = out / "double_counting.png"
    draw_story(regions, published, exact, answers, map_, twice)
    return Demo(answers, published, [map_, twice, plan], page, city)


def _can_draw(tell: Callable[[str, str | None], None]) -> bool:
    """Say at once where there will be no pictures; the story goes on without them."""
    from dpregions.plots import need_plot

    try:
        need_plot()
    except MissingExtraError as missing:
        tell(f"There will be no pictures: {missing}", None)
        return False
    return True


def _claim(out: Path) -> None:
    """Make the folder, or clear it of an earlier demo; refuse one with files of others."""
    there = [name for name in MADE if (out / name).exists()]
    if there and not (out / MARKER).exists():
        raise InputError(f"--out {out} holds {there[0]}, which no demo made: choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).touch()
    for name in there:
        (out / name).unlink()


def _answer(
    name: str,
    cells: tuple[int, int, int, int],
    bounds: tuple[float, float, float, float],
    published: Release,
    exact: EulerHistogram,
) -> Answer:
    """Return one query's answers, private and exact."""
    row0, row1, col0, col1 = cells
    summed = int(exact.faces[row0 : row1 + 1, col0 : col1 + 1].sum())
    low, high = published.interval(*bounds)
    return Answer(name, exact.count(*bounds), summed, published.count(*bounds), low, high)
