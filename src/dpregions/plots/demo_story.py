"""The demo's pictures: what is secret, what is published, how well it answers, and what for.

Draws regions and exact counts, so it is for synthetic data only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.geometry.grid import Grid
from dpregions.plots import blank_figure
from dpregions.plots.double_counting import draw_double_counting

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas

    from dpregions.cli.story import Answer
    from dpregions.euler import EulerHistogram
    from dpregions.releases.published import Release

_INK, _REGION, _TRUTH = "#22303c", "#2a7f9e", "#d1495b"


TWICE = 8, 11, 8, 12
"""First and last row, first and last column of the query that is counted twice over."""


def draw_story(
    regions: geopandas.GeoDataFrame,
    release: Release,
    exact: EulerHistogram,
    answers: list[Answer],
    path: Path,
    twice: Path,
) -> None:
    """Save a picture of what was published beside the truth, and one of what it is for."""
    _draw_answers(regions, release, answers, path)
    query = Grid.needed(exact.grid, "this picture").cell_bounds(*TWICE)
    draw_double_counting(regions, exact, query, twice)


def _draw_answers(
    regions: geopandas.GeoDataFrame, release: Release, answers: list[Answer], path: Path
) -> None:
    """Save a picture of the regions, the published counts, and answers beside the truth."""
    figure = blank_figure(figsize=(13.5, 4.9), layout="compressed")
    xmin, ymin, xmax, ymax = release.grid.bounds
    extent = (xmin, xmax, ymin, ymax)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1])
    regions.plot(ax=left, facecolor=_REGION, edgecolor=_REGION, alpha=0.16, linewidth=0.4)
    left.set_title("Secret: regions, one a user (synthetic)")
    faces = release.counts[::2, ::2]
    image = middle.imshow(faces, origin="lower", extent=extent, cmap="YlGnBu", aspect="equal")
    figure.colorbar(image, ax=middle, shrink=0.8)
    middle.set_title(f"Published, ε = {release.epsilon:g}: regions by cell")
    for axes in (left, middle):
        axes.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
        axes.set(xticks=[], yticks=[], xlabel="", ylabel="")

    at = np.arange(len(answers))[::-1]
    truth = np.array([a.touching for a in answers])
    low, high = (np.array([getattr(a, end) for a in answers]) for end in ("low", "high"))
    released = np.array([a.released for a in answers])
    right.hlines(at, low, high, color=_REGION, linewidth=7, alpha=0.35, label="95 % interval")
    right.plot(released, at, "o", color=_REGION, label="published count")
    right.plot(truth, at, "|", color=_TRUTH, markersize=16, markeredgewidth=2, label="truth")
    right.set_yticks(at, [a.query for a in answers])
    right.set(xscale="log", box_aspect=1, xlabel="regions touching the query")
    right.set_ylim(-0.6, len(answers) - 0.1)
    right.set_title("Answers beside the truth (synthetic)")
    right.legend(loc="upper right", frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    right.tick_params(colors=_INK)
    figure.savefig(path, dpi=110)
