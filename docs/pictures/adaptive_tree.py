"""The adaptive tree on a made-up town: its leaves, beside blocks of one size.

Draws secret regions beside a study's releases, so it is for made-up regions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely
from shapely.affinity import rotate

from docs.pictures.numbered_grid import INK, draw_title, save_small
from dpregions.geometry.grid import Grid
from dpregions.mechanisms.footprint.measuring import Measurement, Strategy
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.plots import blank_figure
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

GRID = Grid(0, 0, 1, n_rows=64, n_cols=64)
TERMS = {"epsilon": 1, "max_diameter": 1, "user_id": None}
N_REGIONS = 5_000
TREE = Adaptive(0.15, 64)
UNIFORM = 4
"""Cells along a block of the uniform plan."""

_PLACES = (  # middle, standard deviation, share of all regions
    (19.0, 43.5, 1.3, 0.45),
    (24.0, 39.0, 3.5, 0.2),
    (48.5, 18.5, 1.0, 0.15),
    (52.0, 50.0, 1.6, 0.05),
)


class Blocks(NamedTuple):
    """Blocks of cells and how many regions each is found to hold."""

    row: NDArray[np.int64]
    col: NDArray[np.int64]
    side: NDArray[np.int64]
    held: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreePicture:
    """What the panels show: made-up regions, and two studies' releases of them."""

    regions: list[shapely.Polygon]
    tree: Release
    leaves: Blocks
    """Leaves of the same block but other sizes are taken together."""
    plan: Release
    blocks: Blocks


def draw_adaptive_tree(path: Path) -> TreePicture:
    """Save a made-up town, the leaves of a tree over it, and a plan of equal blocks."""
    picture = _picture()
    figure = blank_figure(figsize=(15, 5.5))
    axes = figure.subplots(1, 3)
    figure.subplots_adjust(left=0.01, right=0.93, bottom=0.02, top=0.89, wspace=0.04)
    _draw_regions(axes[0], picture.regions)
    leaves, blocks = picture.leaves, picture.blocks
    _draw_blocks(axes[1], leaves)
    least, most = leaves.side.min(), leaves.side.max()
    note = f"{len(leaves.row):,} blocks of {least} to {most} cells a side"
    draw_title(axes[1], "An adaptive tree, opened", note)
    image = _draw_blocks(axes[2], blocks)
    note = f"{len(blocks.row):,} blocks of {UNIFORM} cells a side"
    draw_title(axes[2], "A uniform plan", note)
    bar = figure.colorbar(image, cax=figure.add_axes((0.94, 0.08, 0.011, 0.75)), extend="min")
    bar.set_label("regions found for each cell of a block", color=INK)
    save_small(figure, path)
    return picture


def _picture() -> TreePicture:
    regions = _town()
    tree = _released(regions, TREE)
    reading = tree.outcome.reading
    leaves = reading.leaves
    found = np.stack([leaves.row, leaves.col, leaves.block])
    blocks, at = np.unique(found, axis=1, return_inverse=True)
    held = np.bincount(at.ravel(), reading.held)
    measured = ((UNIFORM, "all", 94), (1, "letters", 0), (0, "letters", 6))
    plan = _released(regions, Strategy("sizes", tuple(Measurement(*m) for m in measured)))
    return TreePicture(regions, tree, Blocks(*blocks, held), plan, _equal(plan))


def _released(regions: list[shapely.Polygon], strategy: Strategy | Adaptive) -> Release:
    return release_with(StudyNoise(3), regions, GRID, method=Footprint(strategy=strategy), **TERMS)


def _equal(plan: Release) -> Blocks:
    """Return the blocks of the plan and what its fit has in them."""
    buckets, held = plan.outcome.reading.measured.hierarchy.buckets, plan.outcome.reading.held
    row, col, _, _ = buckets.points(np.arange(len(buckets)))
    n = GRID.n_cols // UNIFORM
    number = np.arange(n * n)
    side = np.full(n * n, UNIFORM)
    found = np.bincount(row // UNIFORM * n + col // UNIFORM, held, n * n)
    return Blocks(number // n * UNIFORM, number % n * UNIFORM, side, found)


def _town() -> list[shapely.Polygon]:
    """Make up a skewed town: a centre and its suburbs, two villages, a road, few elsewhere."""
    rng = np.random.default_rng(11)
    kind = rng.choice(6, N_REGIONS, p=[*(share for *_, share in _PLACES), 0.1, 0.05])
    xy = rng.uniform(0.5, 63.5, (N_REGIONS, 2))
    for i, (x, y, spread, _) in enumerate(_PLACES):
        here = kind == i
        xy[here] = rng.normal((x, y), spread, (here.sum(), 2))
    road = np.flatnonzero(kind == len(_PLACES))
    along = rng.random((len(road), 1))
    ends = np.array([(x, y) for x, y, *_ in _PLACES[:3:2]])
    xy[road] = ends[0] + along * (ends[1] - ends[0]) + rng.normal(0, 0.25, (len(road), 2))
    xy = np.clip(xy, 0.5, 63.5)
    length, aspect = rng.uniform(0.4, 0.95, N_REGIONS), rng.uniform(0.4, 1, N_REGIONS)
    turn = rng.uniform(0, 180, N_REGIONS)
    circle = np.linspace(0, 2 * np.pi, 13)[:-1]
    shapes = np.stack([np.cos(circle), np.sin(circle)], axis=-1)
    return [
        rotate(shapely.Polygon(middle + shapes * (size / 2, size * slim / 2)), angle)
        for middle, size, slim, angle in zip(xy, length, aspect, turn, strict=True)
    ]


def _draw_regions(axes: Any, regions: list[shapely.Polygon]) -> None:
    from matplotlib.collections import PolyCollection

    drawn = [shapely.get_coordinates(region) for region in regions]
    axes.add_collection(PolyCollection(drawn, facecolor="#2a7f9e", alpha=0.25, linewidth=0))
    _frame(axes)
    draw_title(axes, "Secret regions", f"made up, {len(regions):,} on 64 × 64 cells")


def _draw_blocks(axes: Any, blocks: Blocks) -> Any:
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    x, y, side = blocks.col, blocks.row, blocks.side
    corners = np.stack(
        [
            np.stack([x, x + side, x + side, x], axis=-1),
            np.stack([y, y, y + side, y + side], axis=-1),
        ],
        axis=-1,
    )
    colours = colormaps["YlGnBu"].with_extremes(under="white")
    drawn = PolyCollection(corners, cmap=colours, norm=LogNorm(0.02, 200), edgecolor="#8b98a5")
    drawn.set_linewidth(0.35)
    drawn.set_array(np.maximum(blocks.held / side**2, 1e-9))  # none at all has no logarithm
    axes.add_collection(drawn)
    _frame(axes)
    return drawn


def _frame(axes: Any) -> None:
    axes.set(xlim=(0, 64), ylim=(0, 64), aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color(INK)
