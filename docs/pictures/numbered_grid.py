"""A small grid with the count of each face, edge and vertex written at its place.

What the pictures of the mechanisms share. A picture owns its grid, its query and its sizes;
nothing here computes a count.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid

    Cells = tuple[int, int, int, int]

INK, FAINT, LINE, RED = "#22303c", "#aab4bd", "#c3ccd4", "#d1495b"


def draw_title(axes: Any, title: str, note: str) -> None:
    """Write a panel's title, and a note below it."""
    axes.set_title(title, loc="left", fontsize=14.5, fontweight="bold", color=INK, pad=27)
    axes.annotate(
        note,
        (0, 1),
        xytext=(0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=11,
        color=INK,
    )


def draw_grid(axes: Any, grid: Grid) -> None:
    """Draw the lines of a grid of unit cells at the origin."""
    xs, ys = np.arange(grid.n_cols + 1), np.arange(grid.n_rows + 1)
    axes.vlines(xs, 0, grid.n_rows, color=LINE, linewidth=1.1, zorder=1)
    axes.hlines(ys, 0, grid.n_cols, color=LINE, linewidth=1.1, zorder=1)
    axes.set(xlim=(-0.03, grid.n_cols + 0.03), ylim=(-0.03, grid.n_rows + 0.03))
    axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def draw_query(
    axes: Any, grid: Grid, cells: Cells, *, inset: float, fill: float, line: float
) -> None:
    """Draw a query's cells; inset, the line leaves the numbers on the border readable."""
    from matplotlib.patches import Rectangle

    x0, y0, x1, y1 = grid.cell_bounds(*cells)
    corner, width, height = (x0 + inset, y0 + inset), x1 - x0 - 2 * inset, y1 - y0 - 2 * inset
    axes.add_patch(Rectangle(corner, width, height, facecolor=RED, alpha=fill, zorder=0))
    axes.add_patch(
        Rectangle(corner, width, height, fill=False, edgecolor=RED, linewidth=line, zorder=3)
    )


def draw_counts(
    axes: Any,
    counts: NDArray[Any],
    colours: dict[str, NDArray[np.bool_]] | None = None,
    *,
    sizes: tuple[float, float, float],
    pads: tuple[float, float],
    rim: str | None = None,
) -> None:
    """Write each count at its place: faces plain, edges on a white plate, vertices in a disc.

    Sizes are of faces, edges and vertices; pads of plates and discs. A disc's rim has the
    colour of its number unless another is given.
    """
    for (i, j), count in np.ndenumerate(counts):
        colour = INK
        for special, where in (colours or {}).items():
            colour = special if where[i, j] else colour
        kind = i % 2 + j % 2
        plate: dict[str, Any] | None = None
        if kind == 1:
            plate = {"boxstyle": f"round,pad={pads[0]}", "facecolor": "white", "edgecolor": "none"}
        elif kind == 2:
            style = f"circle,pad={pads[1]}"
            plate = {"boxstyle": style, "facecolor": "white", "edgecolor": rim or colour}
        axes.text(
            (j + 1) / 2,
            (i + 1) / 2,
            f"{count}",
            ha="center",
            va="center_baseline" if kind else "center",
            fontsize=sizes[kind],
            fontweight="normal" if kind else "bold",
            color=colour,
            bbox=plate,
            zorder=4,
        )


def outside(grid: Grid, cells: Cells) -> NDArray[np.bool_]:
    """Return which faces, edges and vertices are not summed for a query."""
    beyond = np.ones(grid.doubled_shape, np.bool_)
    beyond[_doubled(cells)] = False
    return beyond


def sum_in_words(counts: NDArray[np.int64], cells: Cells) -> str:
    """Return the signed sum of a query as people write it."""
    part = counts[_doubled(cells)]
    faces, vertices = part[::2, ::2].sum(), part[1::2, 1::2].sum()
    edges = part.sum() - faces - vertices
    return f"F − E + V = {faces} − {edges} + {vertices} = {faces - edges + vertices}"


def _doubled(cells: Cells) -> tuple[slice, slice]:
    row0, row1, col0, col1 = cells
    return slice(2 * row0, 2 * row1 + 1), slice(2 * col0, 2 * col1 + 1)


def save_small(figure: Any, path: Path | str) -> None:
    """Save a figure as a small PNG: few colours are plenty for it."""
    from PIL import Image  # matplotlib needs it too

    drawn = BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(160).save(path, format="PNG", optimize=True)
