"""Patterns of footprints with their witnesses: a page of the catalogue. All of it is public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from docs.pictures.numbered_grid import INK, LINE, RED, save_small
from dpregions.geometry.lattice import STEPS
from dpregions.mechanisms.footprint.catalogue import Catalogue, catalogue
from dpregions.plots import blank_figure

if TYPE_CHECKING:
    from pathlib import Path

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
    save_small(figure, path)
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
    witness = known.starts[pattern]
    outline = known.xy[known.offsets[witness] : known.offsets[witness + 1]] / STEPS + (x, y)
    axes.add_patch(Polygon(outline, facecolor=INK, alpha=0.18, zorder=2))
    axes.add_patch(Polygon(outline, fill=False, edgecolor=INK, linewidth=1.3, zorder=5))
    share = f"{100 * known.weights[pattern]:.0f} %"
    axes.text(x + width / 2, y - 0.12, share, fontsize=9.5, color=INK, ha="center", va="top")
