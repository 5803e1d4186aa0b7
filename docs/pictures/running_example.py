"""The paper's running example in six panels: two bodies, the four steps, and a query.

Draws exact counts beside seeded noise, so it is for made-up bodies only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from docs.pictures.numbered_grid import (
    FAINT,
    INK,
    RED,
    draw_counts,
    draw_grid,
    draw_query,
    draw_title,
    outside,
    sum_in_words,
)
from dpregions.euler import EulerHistogram
from dpregions.geometry.grid import Grid
from dpregions.mechanisms.paper import pipeline as paper
from dpregions.plots import blank_figure
from dpregions.privacy.seeded import StudyNoise

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

GRID = Grid(0, 0, 1, n_rows=3, n_cols=4)
BODIES = (
    ((0.35, 0.45), (1.25, 0.25), (1.75, 0.85), (1.45, 1.6), (0.6, 1.55)),
    ((1.6, 1.25), (2.45, 0.6), (3.3, 1.45), (3.1, 2.2), (2.45, 2.45)),
)
MAX_DIAMETER = 2
EPSILON = 12.5
"""Far weaker than anything to publish: noise of scale 2, so that the numbers stay small."""

SEED = 50
QUERY = (0, 1, 1, 2)
"""Rows and columns of the query's cells: first and last of each."""

_BODIES = ("#2a7f9e", "#e09f3e")
_CHANGED = "#1c7c54"
_LOOK: dict[str, Any] = {"sizes": (20.0, 12.0, 10.5), "pads": (0.16, 0.22)}


def draw_running_example(path: Path | str) -> paper.PaperSteps:
    """Save the picture of the pipeline on two bodies; return what each step gave.

    Parameters
    ----------
    path : pathlib.Path or str
        The PNG to write. The noise is seeded, so the picture is always the same.
    """
    import shapely

    figure = blank_figure(figsize=(13.5, 8.6))
    shapes = [shapely.Polygon(body) for body in BODIES]
    exact = EulerHistogram.from_regions(shapes, GRID, max_diameter=MAX_DIAMETER)
    sensitivity = paper.sensitivity(MAX_DIAMETER, GRID.cell_size)
    steps = paper.run(
        exact.counts, epsilon=EPSILON, sensitivity=sensitivity, noise=StudyNoise(SEED)
    )

    figure.subplots_adjust(left=0.012, right=0.988, bottom=0.02, top=0.85, wspace=0.05, hspace=0.27)
    panels = figure.subplots(2, 3).ravel()
    for axes in panels:
        draw_grid(axes, GRID)
    _draw_bodies(panels[0], line=1.8)
    _draw_bodies(panels[1], line=0.0)
    draw_query(panels[0], GRID, QUERY, inset=0.0, fill=0.07, line=2.4)
    draw_title(panels[0], "1  Two bodies and a query", "both touch the red rectangle")

    draw_counts(panels[1], exact.counts, **_LOOK)
    draw_title(panels[1], "2  Euler", "how many bodies touch each face, edge and vertex")

    draw_counts(panels[2], steps.noisy, {RED: _above_its_bound(steps.noisy)}, **_LOOK)
    draw_title(panels[2], "3  DiffPriv", "noise on every count, cut at 0; red breaks C1 or C2")

    draw_counts(panels[3], steps.consistent, {_CHANGED: steps.consistent != steps.noisy}, **_LOOK)
    draw_title(panels[3], "4  LinProg", "the nearest counts that obey C1 to C3; green changed")

    draw_counts(panels[4], steps.counts, **_LOOK)
    draw_title(panels[4], "5  Round", "integer noise: whole numbers already, none changed")

    draw_query(panels[5], GRID, QUERY, inset=0.2, fill=0.07, line=2.4)
    draw_counts(panels[5], steps.counts, {FAINT: outside(GRID, QUERY)}, **_LOOK)
    draw_title(panels[5], "6  A query", f"{sum_in_words(steps.counts, QUERY)}   (true: 2)")

    figure.suptitle(
        f"Diameter at most {MAX_DIAMETER} cells: sensitivity {sensitivity}. Epsilon {EPSILON:g}: "
        f"noise of scale {sensitivity / EPSILON:g}. Seeded noise: not private.",
        x=0.0155,
        y=0.975,
        ha="left",
        fontsize=12,
        color=INK,
    )
    figure.savefig(path, dpi=100)
    return steps


def _above_its_bound(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an edge is above one of its faces (C1), or a vertex above an edge (C2)."""
    above = np.zeros(counts.shape, np.bool_)
    for axis in (0, 1):
        mark, values = above.swapaxes(0, axis), counts.swapaxes(0, axis)
        mark[1::2] |= (values[1::2] > values[:-1:2]) | (values[1::2] > values[2::2])
    return above


def _draw_bodies(axes: Any, line: float) -> None:
    from matplotlib.patches import Polygon

    for body, colour in zip(BODIES, _BODIES, strict=True):
        axes.add_patch(Polygon(body, facecolor=colour, alpha=0.22, zorder=0))
        axes.add_patch(Polygon(body, fill=False, edgecolor=colour, linewidth=line, zorder=2))
