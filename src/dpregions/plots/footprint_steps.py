"""The footprint mechanism in nine panels: a region, its bucket, noise, fit, bodies, a query.

Draws exact counts beside seeded noise, so it is for made-up regions only; the docs use it.
Regions are at most one cell long: then a footprint is one cell, two or four, and its middle is
the middle of a face, an edge or a vertex, where its bucket's number is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.euler import EulerHistogram
from dpregions.geometry.grid import Grid
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.catalogue import Catalogue, catalogue
from dpregions.mechanisms.footprint.mechanism import FootprintOutcome
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.plots import blank_figure
from dpregions.plots.numbered_grid import (
    FAINT,
    INK,
    LINE,
    RED,
    draw_counts,
    draw_grid,
    draw_query,
    draw_title,
    outside,
    sum_in_words,
)
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release

if TYPE_CHECKING:
    from pathlib import Path

    import shapely
    from numpy.typing import NDArray

GRID = Grid(0, 0, 1, n_rows=4, n_cols=5)
MAX_DIAMETER = 1
EPSILON = 1
SEED = 5
N_REGIONS = 160
QUERY = (1, 2, 1, 3)
"""Rows and columns of the query's cells: first and last of each."""

_EXAMPLES = (  # middle, length, width over length, turn: one region of each footprint
    (1.1, 2.05, 0.92, 0.75, 25.0),
    (3.5, 3.5, 0.62, 0.7, 60.0),
    (4.05, 0.5, 0.8, 0.6, 10.0),
    (3.45, 2.0, 0.85, 0.55, 80.0),
)
_SIZES = {(1, 1): "#2a7f9e", (1, 2): "#e09f3e", (2, 1): "#1c7c54", (2, 2): "#7d5ba6"}
_PLATES = {(1, 1): (0.36, 0.3), (1, 2): (0.47, 0.27), (2, 1): (0.36, 0.46), (2, 2): (0.46, 0.46)}


@dataclass(frozen=True, eq=False)
class FootprintPicture:
    """What the panels show: made-up regions, their secret counts, and a study's release."""

    regions: list[shapely.Polygon]
    exact: NDArray[np.int64]
    """Regions in each bucket."""
    noisy: NDArray[np.float64]
    fitted: NDArray[np.float64]
    bodies: Bodies
    release: Release
    true_answer: int
    answer: int


def draw_footprint_steps(path: Path | str) -> FootprintPicture:
    """Save the picture of the mechanism on a small grid; return what each step gave.

    Parameters
    ----------
    path : pathlib.Path or str
        The PNG to write. The noise is seeded, so the picture is always the same.
    """
    figure = blank_figure(figsize=(13.5, 13.3))
    found = _steps()
    buckets, bodies = _buckets(), found.bodies
    figure.subplots_adjust(left=0.012, right=0.988, bottom=0.012, top=0.9, wspace=0.06, hspace=0.24)
    panels = figure.subplots(3, 3).ravel()
    for axes in panels[:8]:
        draw_grid(axes, GRID)

    first = _ellipse(*_EXAMPLES[0])
    touched = EulerHistogram.from_regions([first], GRID, max_diameter=MAX_DIAMETER).counts
    _draw_touched(panels[0], first, touched)
    draw_title(panels[0], "1  One region, many counters", f"it touches {touched.sum()} components")

    _draw_footprints(panels[1])
    draw_title(
        panels[1], "2  One region, one footprint", "the rows and columns of cells it touches"
    )

    for region in found.regions:
        _draw_polygon(panels[2], region, INK, fill=0.05, line=0.0)
    _draw_buckets(panels[2], buckets, found.exact, _whole)
    note = f"{len(found.regions)} regions, each in one bucket; written at its middle"
    draw_title(panels[2], "3  Counts of buckets (secret)", note)

    _draw_buckets(panels[3], buckets, found.noisy, _whole)
    draw_title(
        panels[3], "4  Noise on every bucket", "empty ones too; the total was measured first"
    )

    _draw_buckets(panels[4], buckets, found.fitted, lambda v: f"{v:.1f}" if v >= 0.05 else "0")
    draw_title(panels[4], "5  The fit", "none below 0, the sum kept")

    _draw_buckets(panels[5], buckets, _held(bodies, buckets), _whole)
    draw_title(panels[5], "6  Whole numbers", "rounded along a curve through the area")

    made = found.release.to_regions().geometry
    for body, size in zip(made, _sizes_of(bodies), strict=True):
        _draw_polygon(panels[6], body, _SIZES[size], fill=0.07, line=0.7)
    note = f"{len(made)} shapes from the catalogue; equal ones coincide"
    draw_title(panels[6], "7  Bodies", note)

    counts = found.release.counts
    draw_query(panels[7], GRID, QUERY, inset=0.22, fill=0.08, line=2.2)
    special = {FAINT: outside(GRID, QUERY)}
    draw_counts(panels[7], counts, special, sizes=(15.0, 10.5, 9.5), pads=(0.12, 0.18), rim=LINE)
    draw_title(panels[7], "8  Their Euler histogram", f"query: {sum_in_words(counts, QUERY)}")

    _draw_answers(panels[8], found)
    draw_title(panels[8], "9  Regions that touch the red query", "with the 95 % interval")

    spent = found.release.spending
    figure.suptitle(
        f"Diameter at most {MAX_DIAMETER} cell. Epsilon {EPSILON:g}: {spent[0][1]} for the total, "
        f"{spent[-1][1]} for the {len(buckets)} buckets, of sensitivity 1. "
        "Seeded noise: not private.",
        x=0.0155,
        y=0.983,
        ha="left",
        fontsize=12,
        color=INK,
    )
    _save(figure, path)
    return found


def _save(figure: Any, path: Path | str) -> None:
    """Save a figure as a small PNG: few colours are plenty for it."""
    from PIL import Image  # matplotlib needs it too

    drawn = BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(160).save(path, format="PNG", optimize=True)


def _steps() -> FootprintPicture:
    """Run the mechanism on made-up regions with seeded noise."""
    regions = _made_up_regions()
    release = release_with(
        StudyNoise(SEED),
        regions,
        GRID,
        epsilon=EPSILON,
        max_diameter=MAX_DIAMETER,
        user_id=None,
    )
    outcome = release.outcome
    assert isinstance(outcome, FootprintOutcome) and outcome.reading is not None
    measured = outcome.reading.measured
    finest = measured.levels[-1]
    assert finest is not None
    shapes = np.array(regions, dtype=object)
    buckets = _buckets()
    tally = FootprintTally(buckets)
    tally.add(outlines_of(shapes, None, GRID, Bound.of(GRID, MAX_DIAMETER, "shrink")))
    query = GRID.cell_bounds(*QUERY)
    exact = EulerHistogram.from_regions(regions, GRID, max_diameter=MAX_DIAMETER)
    return FootprintPicture(
        regions=regions,
        exact=tally.counts(buckets),
        noisy=finest.values[measured.hierarchy.part[-1]],
        fitted=outcome.reading.held,
        bodies=outcome.bodies,
        release=release,
        true_answer=exact.count(*query),
        answer=release.count(*query),
    )


def _catalogue() -> Catalogue:
    return catalogue(2, MAX_DIAMETER * STEPS)


def _buckets() -> Buckets:
    return Buckets.of(_catalogue(), "sizes", *GRID.shape)


def _made_up_regions() -> list[shapely.Polygon]:
    rng = np.random.default_rng(5)
    quarter = rng.random((N_REGIONS, 1))
    busy = rng.normal((1.5, 2.3), (0.5, 0.45), (N_REGIONS, 2))
    quiet = rng.normal((3.5, 1.5), (0.7, 0.6), (N_REGIONS, 2))
    middles = np.clip(np.where(quarter < 0.6, busy, quiet), 0.05, (4.95, 3.95))
    return [
        _ellipse(x, y, rng.uniform(0.3, 0.99), rng.uniform(0.4, 1.0), rng.uniform(0, 180))
        for x, y in middles
    ]


def _ellipse(x: float, y: float, length: float, ratio: float, degrees: float) -> shapely.Polygon:
    import shapely

    at = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    turn = np.radians(degrees)
    u, v = np.cos(at) * length / 2, np.sin(at) * length * ratio / 2
    return shapely.Polygon(
        np.column_stack(
            [x + u * np.cos(turn) - v * np.sin(turn), y + u * np.sin(turn) + v * np.cos(turn)]
        )
    )


def _held(bodies: Bodies, buckets: Buckets) -> NDArray[np.int64]:
    """Return how many bodies are in each bucket."""
    sizes = np.array(_sizes_of(bodies))
    letters = buckets.letter_of_size[sizes[:, 0], sizes[:, 1]]
    row, col = bodies.row.repeat(bodies.times), bodies.col.repeat(bodies.times)
    return np.bincount(buckets.number(letters, row, col), minlength=len(buckets))


def _sizes_of(bodies: Bodies) -> list[tuple[int, int]]:
    """Return the height and width of each body's footprint."""
    pattern, known = bodies.pattern.repeat(bodies.times), bodies.catalogue
    sizes = known.heights[pattern], known.widths[pattern]
    return [(int(h), int(w)) for h, w in zip(*sizes, strict=True)]


def _whole(value: float) -> str:
    return f"{value:.0f}".replace("-", "−")


def _draw_polygon(axes: Any, shape: Any, colour: str, *, fill: float, line: float) -> None:
    from matplotlib.patches import Polygon

    xy = np.array(shape.exterior.coords)
    axes.add_patch(Polygon(xy, facecolor=colour, alpha=fill, linewidth=0, zorder=1))
    axes.add_patch(Polygon(xy, fill=False, edgecolor=colour, linewidth=line, zorder=2))


def _draw_touched(axes: Any, region: Any, touched: NDArray[np.int64]) -> None:
    """Draw a region and the faces, edges and vertices it touches."""
    from matplotlib.patches import Rectangle

    for i, j in np.argwhere(touched):
        x, y = (j + 1) / 2, (i + 1) / 2
        if i % 2 == 0 and j % 2 == 0:
            axes.add_patch(Rectangle((j / 2, i / 2), 1, 1, facecolor=RED, alpha=0.13, zorder=0))
        elif i % 2 and j % 2:
            axes.scatter(x, y, s=70, color=RED, zorder=4)
        else:
            ends = ((x, x), (y - 0.5, y + 0.5)) if j % 2 else ((x - 0.5, x + 0.5), (y, y))
            axes.plot(*ends, color=RED, linewidth=3.6, solid_capstyle="butt", zorder=3)
    _draw_polygon(axes, region, INK, fill=0.18, line=1.8)
    axes.text(2.25, 2.6, "4 faces\n4 edges\n1 vertex", fontsize=13, color=RED, va="top")


def _draw_footprints(axes: Any) -> None:
    """Draw one region of each footprint, the footprint, and the place of its bucket's number."""
    from matplotlib.patches import Rectangle

    for example in _EXAMPLES:
        region = _ellipse(*example)
        row0, row1, col0, col1 = GRID.cell_range(*region.bounds)
        height, width = row1 - row0 + 1, col1 - col0 + 1
        colour = _SIZES[height, width]
        axes.add_patch(Rectangle((col0, row0), width, height, facecolor=colour, alpha=0.16))
        axes.add_patch(
            Rectangle((col0, row0), width, height, fill=False, edgecolor=colour, lw=2.2, zorder=2)
        )
        _draw_polygon(axes, region, INK, fill=0.12, line=1.2)
        _draw_plate(axes, height, width, row0, col0, "1", 1.0)


def _draw_buckets(
    axes: Any, buckets: Buckets, values: NDArray[Any], text: Callable[[float], str]
) -> None:
    """Write the number of each bucket on a plate at its middle; the plate's shape is its size."""
    h, w = (sizes[buckets.letters] for sizes in (buckets.heights, buckets.widths))
    for height, width, row, col, value in zip(h, w, *buckets.places, values, strict=True):
        _draw_plate(axes, height, width, row, col, text(value), value)


def _draw_plate(
    axes: Any, height: int, width: int, row: int, col: int, text: str, value: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y, colour = col + width / 2, row + height / 2, _SIZES[height, width]
    across, up = _PLATES[height, width]
    empty = text == "0"
    face, edge = ("white", LINE) if empty else (colour, "white")
    if value < 0:
        face, edge = "white", RED
    box = FancyBboxPatch(
        (x - across / 2 + 0.04, y - up / 2 + 0.04),
        across - 0.08,
        up - 0.08,
        boxstyle="round,pad=0.04,rounding_size=0.06",
        facecolor=face,
        edgecolor=edge,
        linewidth=0.9,
        zorder=5,
    )
    axes.add_patch(box)
    ink = RED if value < 0 else (FAINT if empty else "white")
    axes.text(
        x,
        y - 0.005,
        text,
        ha="center",
        va="center_baseline",
        fontsize=10.5 if len(text) < 3 else 8.5,
        fontweight="normal" if empty else "bold",
        color=ink,
        zorder=6,
    )


def _draw_answers(axes: Any, found: FootprintPicture) -> None:
    """Draw the truth, the count, and the estimate in its interval, on one scale."""
    query = GRID.cell_bounds(*QUERY)
    estimate = found.release.estimate(*query)
    low, high = found.release.interval(*query)
    rows = ((2, "true, secret", found.true_answer, INK), (1, "count", found.answer, RED))
    for y, label, value, colour in rows:
        axes.barh(y, value, height=0.46, color=colour, alpha=0.85)
        number = {"ha": "right", "va": "center", "fontsize": 14, "fontweight": "bold"}
        axes.text(value - 3, y, f"{value}", color="white", **number)
        axes.text(0, y + 0.31, label, va="bottom", fontsize=11.5, color=INK)
    axes.plot([low, high], [0, 0], color=_SIZES[1, 1], linewidth=5, solid_capstyle="round")
    axes.scatter(estimate, 0, s=90, color="white", edgecolor=_SIZES[1, 1], linewidth=2.4, zorder=3)
    axes.text(0, 0.31, "estimate and interval", va="bottom", fontsize=11.5, color=INK)
    axes.text(high + 4, 0, f"{estimate:.1f}", va="center", fontsize=13, color=INK)
    axes.axvline(found.true_answer, color=INK, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0)
    axes.set(xlim=(0, 1.25 * high), ylim=(-0.55, 2.75), xticks=[], yticks=[])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(LINE)


_SHEET = (((1, 1), (1, 2), (1, 3), (2, 2)), ((2, 3),), ((3, 3),))
"""The footprints on each line of the catalogue's picture."""


def draw_catalogue(path: Path | str) -> Catalogue:
    """Save a picture of the catalogue for regions of two cells; return the catalogue.

    Patterns with their witnesses, the likeliest of each footprint first. All of it is public.
    """
    figure = blank_figure(figsize=(13.5, 5.2))
    known = catalogue(3, 2 * STEPS)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.97))
    across, y = 30.6, 0.0
    for line in _SHEET:
        x, tallest = 0.0, max(height for height, _ in line)
        y -= tallest + 1.5
        for height, width in line:
            patterns = np.arange(known.first[height, width], known.last[height, width])
            likely = patterns[np.argsort(-known.weights[patterns], kind="stable")]
            shown = likely[: int((across - x) // (width + 0.8))]
            note = f"{height} × {width}: {len(patterns)} " + (
                "pattern" if len(patterns) == 1 else "patterns"
            )
            if len(shown) < len(likely):
                note += f", the likeliest {len(shown)}"
            axes.text(x, y + height + 0.25, note, fontsize=11, fontweight="bold", color=INK)
            for pattern in shown:
                _draw_pattern(axes, known, pattern, x, y)
                x += width + 0.8
            x += max(0.9, 3.4 - width) if len(patterns) == 1 else 0.9
    axes.set(xlim=(-0.2, across), ylim=(y - 0.8, 0), aspect="equal", anchor="NW")
    axes.set_axis_off()
    _save(figure, path)
    return known


def _draw_pattern(axes: Any, known: Catalogue, pattern: int, x: float, y: float) -> None:
    """Draw one pattern's components, its witness, and its share among its footprint's."""
    from matplotlib.patches import Polygon, Rectangle

    height, width = int(known.heights[pattern]), int(known.widths[pattern])
    for i, (low, high) in enumerate(known.spans[pattern][: 2 * height - 1]):
        for j in range(2 * low, 2 * high + 1):
            at = (x + (j + 1) / 2, y + (i + 1) / 2)
            if i % 2 == 0 and j % 2 == 0:
                corner = (x + j / 2, y + i / 2)
                axes.add_patch(Rectangle(corner, 1, 1, facecolor=RED, alpha=0.13, zorder=0))
            elif i % 2 and j % 2:
                axes.scatter(*at, s=16, color=RED, zorder=4)
            else:
                dx, dy = (0.0, 0.5) if j % 2 else (0.5, 0.0)
                ends = (at[0] - dx, at[0] + dx), (at[1] - dy, at[1] + dy)
                axes.plot(*ends, color=RED, linewidth=1.9, solid_capstyle="butt", zorder=3)
    xs, ys = x + np.arange(width + 1), y + np.arange(height + 1)
    axes.vlines(xs, y, y + height, color=LINE, linewidth=0.8, zorder=1)
    axes.hlines(ys, x, x + width, color=LINE, linewidth=0.8, zorder=1)
    outline = known.xy[known.offsets[pattern] : known.offsets[pattern + 1]] / STEPS + (x, y)
    axes.add_patch(Polygon(outline, facecolor=INK, alpha=0.18, zorder=2))
    axes.add_patch(Polygon(outline, fill=False, edgecolor=INK, linewidth=1.3, zorder=5))
    share = f"{100 * known.weights[pattern]:.0f} %"
    axes.text(x + width / 2, y - 0.12, share, fontsize=9.5, color=INK, ha="center", va="top")
