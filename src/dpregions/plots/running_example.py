"""The paper's running example in six panels: two bodies, the four steps, and a query.

Draws exact counts beside seeded noise, so it is for made-up bodies only; the docs use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import paper
from dpregions.errors import MissingExtraError
from dpregions.euler import EulerHistogram
from dpregions.grid import Grid
from dpregions.study.noise import StudyNoise

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

_INK, _FAINT, _LINE = "#22303c", "#aab4bd", "#c3ccd4"
_BODIES = ("#2a7f9e", "#e09f3e")
_QUERY, _CHANGED = "#d1495b", "#1c7c54"


def draw_running_example(path: Path | str) -> paper.PaperSteps:
    """Save the picture of the pipeline on two bodies; return what each step gave.

    Parameters
    ----------
    path : pathlib.Path or str
        The PNG to write. The noise is seeded, so the picture is always the same.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    import shapely

    shapes = [shapely.Polygon(body) for body in BODIES]
    exact = EulerHistogram.from_regions(shapes, GRID, max_diameter=MAX_DIAMETER)
    sensitivity = paper.sensitivity(MAX_DIAMETER, GRID.cell_size)
    steps = paper.run(
        exact.counts, epsilon=EPSILON, sensitivity=sensitivity, noise=StudyNoise(SEED)
    )

    figure = Figure(figsize=(13.5, 8.6))
    figure.subplots_adjust(left=0.012, right=0.988, bottom=0.02, top=0.85, wspace=0.05, hspace=0.27)
    panels = figure.subplots(2, 3).ravel()
    for axes in panels:
        _draw_grid(axes)
    _draw_bodies(panels[0], line=1.8)
    _draw_bodies(panels[1], line=0.0)
    _draw_query(panels[0])
    _title(panels[0], "1  Two bodies and a query", "both touch the red rectangle")

    _draw_counts(panels[1], exact.counts)
    _title(panels[1], "2  Euler", "how many bodies touch each face, edge and vertex")

    _draw_counts(panels[2], steps.noisy, {_QUERY: _above_its_bound(steps.noisy)})
    _title(panels[2], "3  DiffPriv", "noise on every count, cut at 0; red breaks C1 or C2")

    _draw_counts(panels[3], steps.consistent, {_CHANGED: steps.consistent != steps.noisy})
    _title(panels[3], "4  LinProg", "the nearest counts that obey C1 to C3; green changed")

    _draw_counts(panels[4], steps.counts)
    _title(panels[4], "5  Round", "integer noise: whole numbers already, none changed")

    inside = np.zeros(GRID.doubled_shape, np.bool_)
    inside[_doubled(QUERY)] = True
    _draw_query(panels[5], inset=0.2)
    _draw_counts(panels[5], steps.counts, {_FAINT: ~inside})
    _title(panels[5], "6  A query", _sum_in_words(steps.counts))

    figure.suptitle(
        f"Diameter at most {MAX_DIAMETER} cells: sensitivity {sensitivity}. Epsilon {EPSILON:g}: "
        f"noise of scale {sensitivity / EPSILON:g}. Seeded noise: not private.",
        x=0.0155,
        y=0.975,
        ha="left",
        fontsize=12,
        color=_INK,
    )
    figure.savefig(path, dpi=100)
    return steps


def _doubled(cells: tuple[int, int, int, int]) -> tuple[slice, slice]:
    row0, row1, col0, col1 = cells
    return slice(2 * row0, 2 * row1 + 1), slice(2 * col0, 2 * col1 + 1)


def _above_its_bound(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an edge is above one of its faces (C1), or a vertex above an edge (C2)."""
    above = np.zeros(counts.shape, np.bool_)
    for axis in (0, 1):
        mark, values = above.swapaxes(0, axis), counts.swapaxes(0, axis)
        mark[1::2] |= (values[1::2] > values[:-1:2]) | (values[1::2] > values[2::2])
    return above


def _sum_in_words(counts: NDArray[np.int64]) -> str:
    part = counts[_doubled(QUERY)]
    faces, vertices = part[::2, ::2].sum(), part[1::2, 1::2].sum()
    edges = part.sum() - faces - vertices
    return f"F − E + V = {faces} − {edges} + {vertices} = {faces - edges + vertices}   (true: 2)"


def _title(axes: Any, title: str, note: str) -> None:
    axes.set_title(title, loc="left", fontsize=14.5, fontweight="bold", color=_INK, pad=27)
    axes.annotate(
        note,
        (0, 1),
        xytext=(0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=11,
        color=_INK,
    )


def _draw_grid(axes: Any) -> None:
    xs, ys = np.arange(GRID.n_cols + 1), np.arange(GRID.n_rows + 1)
    axes.vlines(xs, 0, GRID.n_rows, color=_LINE, linewidth=1.1, zorder=1)
    axes.hlines(ys, 0, GRID.n_cols, color=_LINE, linewidth=1.1, zorder=1)
    axes.set(xlim=(-0.03, GRID.n_cols + 0.03), ylim=(-0.03, GRID.n_rows + 0.03))
    axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _draw_bodies(axes: Any, line: float) -> None:
    from matplotlib.patches import Polygon

    for body, colour in zip(BODIES, _BODIES, strict=True):
        axes.add_patch(Polygon(body, facecolor=colour, alpha=0.22, zorder=0))
        axes.add_patch(Polygon(body, fill=False, edgecolor=colour, linewidth=line, zorder=2))


def _draw_query(axes: Any, inset: float = 0.0) -> None:
    """Draw the query's cells; inset, the line leaves the numbers on the border readable."""
    from matplotlib.patches import Rectangle

    x0, y0, x1, y1 = GRID.cell_bounds(*QUERY)
    corner, width, height = (x0 + inset, y0 + inset), x1 - x0 - 2 * inset, y1 - y0 - 2 * inset
    axes.add_patch(Rectangle(corner, width, height, facecolor=_QUERY, alpha=0.07, zorder=0))
    axes.add_patch(
        Rectangle(corner, width, height, fill=False, edgecolor=_QUERY, linewidth=2.4, zorder=3)
    )


def _draw_counts(
    axes: Any, counts: NDArray[Any], colours: dict[str, NDArray[np.bool_]] | None = None
) -> None:
    """Write each count at its place: faces large, edges on a white plate, vertices in a disc."""
    size = {0: 20.0, 1: 12.0, 2: 10.5}
    for (i, j), count in np.ndenumerate(counts):
        colour = _INK
        for special, where in (colours or {}).items():
            colour = special if where[i, j] else colour
        kind = i % 2 + j % 2
        plate: dict[str, Any] | None = None
        if kind == 1:
            plate = {"boxstyle": "round,pad=0.16", "facecolor": "white", "edgecolor": "none"}
        elif kind == 2:
            plate = {"boxstyle": "circle,pad=0.22", "facecolor": "white", "edgecolor": colour}
        axes.text(
            (j + 1) / 2,
            (i + 1) / 2,
            f"{count}",
            ha="center",
            va="center_baseline" if kind else "center",
            fontsize=size[kind],
            fontweight="bold" if kind == 0 else "normal",
            color=colour,
            bbox=plate,
            zorder=4,
        )
