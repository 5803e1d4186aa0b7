"""The picture of partitions: counts on cells of made-up masts, and the same bodies on districts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import shapely

from dpregions import Partition, synthetic
from dpregions.plots import blank_figure
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with

_INK = "#22303c"


def draw_partitions(path: Path) -> None:
    """Save made-up masts with the count of each cell, and the same release on districts."""
    grid = synthetic.grid()
    xmin, ymin, xmax, ymax = grid.bounds
    rng = np.random.default_rng(7)
    masts = rng.uniform([xmin, ymin], [xmax, ymax], (60, 2))
    cells = Partition.voronoi(masts, grid.bounds, crs=grid.crs)
    regions = synthetic.regions(5_000)
    made = release_with(StudyNoise(1), regions, cells, epsilon=1, max_diameter="2km")
    districts = Partition.from_polygons(_districts(cells), convex=False, crs=grid.crs)
    figure = blank_figure(figsize=(13.5, 4.6), layout="compressed")
    left, middle, right = figure.subplots(1, 3)
    regions.plot(ax=left, facecolor="#2a7f9e", edgecolor="#2a7f9e", alpha=0.1, linewidth=0.3)
    cells.plot(left, edgecolor=_INK, linewidth=0.7)
    left.plot(*masts.T, ".", color="#d1495b", markersize=5)
    left.set_title("Secret regions (synthetic), public masts")
    for axes, asked, title in (
        (middle, made, "Published: regions touching each cell"),
        (right, made.on(districts), "The same release, asked on districts"),
    ):
        n = asked.grid.n_cells
        style = {"cmap": "YlGnBu", "edgecolor": "white", "linewidth": 0.8}
        image = asked.grid.draw(axes, asked.counts[:n], style)
        figure.colorbar(image, ax=axes, shrink=0.7)
        axes.set_title(title)
    for axes in (left, middle, right):
        axes.set(xlim=(xmin, xmax), ylim=(ymin, ymax), aspect="equal", xticks=[], yticks=[])
        axes.set(xlabel="", ylabel="")
    figure.savefig(path, dpi=110, facecolor="white")


def _districts(cells: Partition) -> list[shapely.Polygon]:
    """Return twelve ragged districts: cells, joined by the nearest of twelve capitals."""
    shapes = np.asarray(cells.to_geodataframe().geometry.array)
    middles = shapely.get_coordinates(shapely.centroid(shapes))
    xmin, ymin, xmax, ymax = cells.bounds
    x, y = np.meshgrid(np.linspace(xmin, xmax, 9)[1::2], np.linspace(ymin, ymax, 7)[1::2])
    capitals = np.stack([x.ravel(), y.ravel()], axis=-1)
    nearest = ((middles[:, None] - capitals) ** 2).sum(axis=2).argmin(axis=1)
    return [shapely.union_all(shapes[nearest == i]) for i in np.unique(nearest)]
