"""The picture of what an Euler histogram is for: regions, counts, and one query counted twice over.

Draws exact counts, so it is for synthetic data only; the demo and the docs use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpregions.geometry.grid import Grid
from dpregions.plots import blank_figure

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas

    from dpregions.euler import EulerHistogram
    from dpregions.geometry.grid import Grid

_INK, _REGION, _QUERY = "#22303c", "#2a7f9e", "#d1495b"


def draw_double_counting(
    regions: geopandas.GeoDataFrame,
    hist: EulerHistogram,
    query: tuple[float, float, float, float],
    path: Path,
) -> None:
    """Save a picture of regions, their counts by cell, and a query answered in two ways.

    Parameters
    ----------
    regions : geopandas.GeoDataFrame
    hist : EulerHistogram
        Of these regions.
    query : tuple
        ``xmin, ymin, xmax, ymax``, in the grid's CRS.
    path : pathlib.Path
        The PNG to write.
    """
    figure = blank_figure(figsize=(13.5, 4.9), layout="constrained")
    from matplotlib.patches import Rectangle

    grid = Grid.needed(hist.grid, "this picture")
    row0, row1, col0, col1 = grid.cell_range(*query)
    cells = hist.faces[row0 : row1 + 1, col0 : col1 + 1]
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.12, 0.62])

    regions.plot(ax=left, facecolor=_REGION, edgecolor=_REGION, alpha=0.16, linewidth=0.4)
    left.set_title("Regions, one a user (synthetic)")
    extent = (grid.xmin, grid.xmax, grid.ymin, grid.ymax)
    image = middle.imshow(hist.faces, origin="lower", extent=extent, cmap="YlGnBu", aspect="equal")
    figure.colorbar(image, ax=middle, shrink=0.8, label="regions touching the cell")
    middle.set_title("Faces of the Euler histogram")
    for axes in (left, middle):
        _frame(axes, grid)
        width, height = query[2] - query[0], query[3] - query[1]
        axes.add_patch(
            Rectangle(query[:2], width, height, fill=False, edgecolor=_QUERY, linewidth=2.2)
        )

    answers = {"faces − edges\n+ vertices": hist.count(*query), "sum of\ncells": int(cells.sum())}
    bars = right.bar(list(answers), list(answers.values()), color=[_REGION, "#c8cdd2"], width=0.62)
    right.bar_label(bars, fmt="{:,.0f}", fontsize=12, color=_INK, padding=2)
    right.set_title("Regions touching the red query")
    right.set_yticks([])
    right.margins(y=0.12)
    right.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=110)


def _frame(axes: Any, grid: Grid) -> None:
    xs = [grid.xmin + i * grid.cell_size for i in range(grid.n_cols + 1)]
    ys = [grid.ymin + i * grid.cell_size for i in range(grid.n_rows + 1)]
    axes.vlines(xs, grid.ymin, grid.ymax, color=_INK, linewidth=0.25, alpha=0.5)
    axes.hlines(ys, grid.xmin, grid.xmax, color=_INK, linewidth=0.25, alpha=0.5)
    axes.set(xlim=(grid.xmin, grid.xmax), ylim=(grid.ymin, grid.ymax), aspect="equal")
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
