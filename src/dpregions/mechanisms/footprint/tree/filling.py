"""What lies inside the leaves of a tree, where nothing was measured: places, sizes, bodies.

A leaf's regions lie towards its crowded neighbours, and have the sizes of the mix. Sees noisy
counts and public values alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.curve import along_curve
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.tree.grown import Grown


class Leaves:
    """The leaves of a tree: blocks of cells and classes of sizes."""

    def __init__(self, grown: Grown) -> None:
        ladder = grown.ladder
        self.ladder, self.which = ladder, grown.leaves
        self.level = grown.level[self.which]
        self.block, self.step = (
            np.array([getattr(rung, name) for rung in ladder.rungs])[self.level]
            for name in ("block", "wide")
        )
        found = np.zeros((4, len(self.which)), np.int64)
        for level in np.unique(self.level):
            here = self.level == level
            found[:, here] = ladder.points(grown.keys[self.which[here]], int(level))
        row, col, self.tall, self.wide = found
        self.row, self.col = row * self.block, col * self.block


def density_of(leaves: Leaves, held: Floats, tuning: Tuning = TUNING) -> Floats:
    """Return how many regions are expected to be centred in each cell.

    In blocks of several cells more towards crowded neighbours, of which only the blocks' means
    are looked at; each leaf keeps its sum.
    """
    from dpregions.mechanisms.footprint.tree import kernel

    shape = leaves.ladder.n_rows, leaves.ladder.n_cols
    flat, found = np.zeros(shape), np.zeros(shape)  # not one array of both: `found` outlives
    blocks = np.unique(leaves.block)
    parts = [np.flatnonzero(leaves.block == block) for block in blocks]
    for block, here in zip(blocks, parts, strict=True):
        place = leaves.row[here], leaves.col[here]
        kernel.spread_evenly(*place, block, held[here], flat)
    for block, here in zip(blocks, parts, strict=True):
        means = _block_means(flat, int(block))
        place = leaves.row[here], leaves.col[here]
        kernel.spread_by_surroundings(*place, block, held[here], means, tuning.even_density, found)
    return found


def _block_means(density: Floats, block: int) -> Floats:
    """Return the mean density of blocks of cells, those at the border cut."""
    if block == 1:
        return density
    n_rows, n_cols = density.shape
    rows, cols = np.arange(0, n_rows, block), np.arange(0, n_cols, block)
    total = np.add.reduceat(np.add.reduceat(density, rows, axis=0), cols, axis=1)
    cells = np.outer(np.diff(np.append(rows, n_rows)), np.diff(np.append(cols, n_cols)))
    return total / cells


def summed(density: Floats) -> Floats:
    """Return the summed-area table of a density, a row and column of 0 first."""
    found = np.zeros((density.shape[0] + 1, density.shape[1] + 1))
    np.cumsum(density, axis=0, out=found[1:, 1:])
    np.cumsum(found[1:, 1:], axis=1, out=found[1:, 1:])
    return found


def placed_bodies(leaves: Leaves, held: Floats, density: Floats, mix: Floats) -> Ints:
    """Return row, column, height and width of footprints whose numbers follow the leaves' counts.

    Leaves are taken along a curve that keeps neighbours together, and the running sum is rounded:
    any run of neighbours is off by less than one body.
    """
    at = along_curve(leaves.row, leaves.col) // leaves.block**2 * leaves.block**2
    order = np.lexsort((leaves.wide, leaves.tall, at))
    running = np.rint(np.cumsum(held[order])).astype(np.int64)
    times = running - np.concatenate([np.zeros(1, np.int64), running[:-1]])
    return placed(leaves, order[times > 0], times[times > 0], density, mix)


def placed(leaves: Leaves, which: Ints, times: Ints, density: Floats, mix: Floats) -> Ints:
    """Return row, column, height and width of so many footprints in each of some leaves."""
    from dpregions.mechanisms.footprint.tree import kernel

    # Each class of each level deals its sizes by itself.
    full = leaves.ladder.rungs[0].wide
    classes = np.array([full // rung.wide for rung in leaves.ladder.rungs])
    starts = np.concatenate([[0], np.cumsum(classes**2)])
    turn = starts[leaves.level] + leaves.tall * classes[leaves.level] + leaves.wide
    of_leaves = (
        leaves.row, leaves.col, leaves.block, leaves.tall, leaves.wide, leaves.step, turn,
    )  # fmt: skip
    place: Any = kernel.place_bodies  # numba infers its arguments
    found: Ints = place(
        *(v[which] for v in of_leaves), times, density, mix, int(starts[-1]), *density.shape
    )
    return found
