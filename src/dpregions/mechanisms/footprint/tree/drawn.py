"""Shapes as drawn on an adaptive tree: bodies are laid into the leaves at their border.

Sees noisy counts and public values alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.mechanisms.footprint.bodies import Bodies, sample_of_sizes
from dpregions.mechanisms.footprint.reading import LaidOut
from dpregions.mechanisms.footprint.tree.filling import summed
from dpregions.mechanisms.least_squares import sums

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tree.grown import Grown
    from dpregions.mechanisms.footprint.tree.reading import TreeReading

_SAMPLES = 16
"""Bodies laid into each leaf at the border of a shape, where they may meet it."""
_NOTHING = 1e-9
"""Regions of a leaf below which its cells are taken to be alike."""
_LEAST_PART = 0.01
"""Share of its cells' share that a window holds at least: a density is an expectation."""


@dataclass(frozen=True, eq=False)
class DrawnLeaves:
    """Leaves as boxes that hold all their regions, and bodies to lay into them."""

    reading: TreeReading
    catalogue: Catalogue
    grid: Grid

    @cached_property
    def _boxes(self) -> Any:
        """The boxes, in a search tree."""
        import shapely

        leaves, ladder = self.reading.leaves, self.reading.leaves.ladder
        tall = np.minimum((leaves.tall + 1) * leaves.step, ladder.side)
        wide = np.minimum((leaves.wide + 1) * leaves.step, ladder.side)
        low = np.maximum(leaves.row - (tall - 1) // 2, 0)
        left = np.maximum(leaves.col - (wide - 1) // 2, 0)
        high = np.minimum(leaves.row + leaves.block + tall // 2, ladder.n_rows)
        right = np.minimum(leaves.col + leaves.block + wide // 2, ladder.n_cols)
        corner = np.array([self.grid.xmin, self.grid.ymin] * 2)
        ends = np.stack([left, low, right, high], axis=-1) * self.grid.cell_size + corner
        return shapely.STRtree(shapely.box(*ends.T))

    def touched(self, shape: Any) -> tuple[Ints, Floats, Floats]:
        """Return leaves that a shape may touch, and the shares of their bodies that do.

        The second share is of bodies as small as their footprints allow. At the border no share
        is quite 0 or 1: some bodies were laid, not all.
        """
        import shapely

        near = np.sort(self._boxes.query(shape, predicate="intersects"))
        share, least = np.ones((2, len(near)))
        inside = np.isin(near, self._boxes.query(shape, predicate="contains"), kind="sort")
        border = np.flatnonzero(~inside)
        if len(border):
            shapely.prepare(shape)
            windows, part = self._windows(near[border], shape)
            bodies = self._laid(near[border], windows)
            whole = bodies.polygons(self.grid)
            share[border], least[border] = (
                part
                * (shapely.intersects(shape, some).reshape(len(border), -1).sum(axis=1) + 0.5)
                / (_SAMPLES + 1)
                for some in (whole, _shrunk(whole, bodies))
            )
        return near, share, np.minimum(share, least)

    def _windows(self, which: Ints, shape: Any) -> tuple[Ints, Floats]:
        """Return where bodies of some leaves are centred that may meet a shape, and their share.

        First and last rows and columns of cells; a share of all of a leaf's regions.
        """
        leaves, ladder, grid = self.reading.leaves, self.reading.leaves.ladder, self.grid
        ends = np.array(shape.bounds) - [grid.xmin, grid.ymin] * 2
        left, low, right, high = np.floor(ends / grid.cell_size).astype(np.int64)
        found = []
        for first, last, at, size, n in (
            (low, high, leaves.row, leaves.tall, ladder.n_rows),
            (left, right, leaves.col, leaves.wide, ladder.n_cols),
        ):
            widest = np.minimum((size[which] + 1) * leaves.step[which], ladder.side)
            start, stop = at[which], np.minimum(at[which] + leaves.block[which], n) - 1
            # Footprints reach (widest - 1) // 2 below their centres and widest // 2 above.
            found.append(np.clip(first - widest // 2, start, stop))
            found.append(np.clip(last + (widest - 1) // 2, start, stop))
        windows = np.stack(found, axis=-1)
        held = self._held_in(*windows.T)
        blocks = [
            leaves.row,
            leaves.row + leaves.block - 1,
            leaves.col,
            leaves.col + leaves.block - 1,
        ]
        ends_of = [
            np.minimum(v[which], n - 1)
            for v, n in zip(blocks, (ladder.n_rows,) * 2 + (ladder.n_cols,) * 2, strict=True)
        ]
        whole = self._held_in(*ends_of)
        cells = [(r1 - r0 + 1) * (c1 - c0 + 1) for r0, r1, c0, c1 in (windows.T, np.stack(ends_of))]
        even = cells[0] / cells[1]
        part = np.divide(held, whole, out=even.copy(), where=whole > _NOTHING)
        return windows, np.clip(part, _LEAST_PART * even, 1.0)

    def _held_in(self, row0: Ints, row1: Ints, col0: Ints, col1: Ints) -> Floats:
        """Return how many regions are expected to be centred in rectangles of cells."""
        t = self._density_sums
        return t[row1 + 1, col1 + 1] - t[row0, col1 + 1] - t[row1 + 1, col0] + t[row0, col0]

    @cached_property
    def _density_sums(self) -> Floats:
        return summed(self.reading.density)

    def read(self, shape: Any) -> tuple[float, float, float]:
        """Return the estimate of a shape, and its deviations from noise and from what is unknown.

        Real bodies may be far smaller than the catalogue's, all of them alike: what smaller ones
        would touch less counts as doubt about shapes.
        """
        r = self.reading
        which, share, least = self.touched(shape)
        leaf = r.grown.leaves[which]
        estimate = float(r.grown.fitted[leaf] @ share)
        noise = math.sqrt(self._variance.of(leaf, share))
        either = share * (1 - share)
        coarse = r.grown.level[leaf] < len(r.grown.ladder.rungs) - 1
        held = r.held[which] + np.where(coarse, np.sqrt(r.grown.gathered[1][leaf]), 0.0)
        unsure = either * held
        rough = r.shape_deviation(
            unsure[coarse].sum(), (unsure * held)[coarse].sum(), unsure[~coarse].sum()
        )
        smaller = float(r.held[which] @ (share - least))
        return estimate, noise, math.hypot(rough, r.tuning.size_doubt * smaller)

    @cached_property
    def _variance(self) -> LeafVariance:
        return LeafVariance(self.reading.grown)

    def _laid(self, which: Ints, windows: Ints | None = None) -> Bodies:
        """Return bodies in some leaves, as many in each; centred in windows of them, if given."""
        from dpregions.mechanisms.footprint.tree import kernel

        r, leaves = self.reading, self.reading.leaves
        if windows is None:
            last = leaves.row + leaves.block - 1, leaves.col + leaves.block - 1
            ends = [leaves.row, last[0], leaves.col, last[1]]
            limits = (leaves.ladder.n_rows - 1,) * 2 + (leaves.ladder.n_cols - 1,) * 2
            windows = np.stack(
                [np.minimum(v[which], n) for v, n in zip(ends, limits, strict=True)], axis=-1
            )
        place: Any = kernel.place_samples  # numba infers its arguments
        found = place(
            windows, leaves.tall[which], leaves.wide[which], leaves.step[which], _SAMPLES,
            r.density, r.grown.mix, *r.density.shape,
        )  # fmt: skip
        return sample_of_sizes(self.catalogue, *found.T)

    def laid_out(self, most: int) -> Iterator[LaidOut]:
        """Yield bodies of every leaf, each with its share of the leaf's signed fit."""
        r = self.reading
        fit = r.grown.fitted[r.grown.leaves]
        batch = max(most // _SAMPLES, 1)
        for start in range(0, len(fit), batch):
            which = np.arange(start, min(start + batch, len(fit)))
            coords, starts, _ = self._laid(which).corners(self.grid)
            yield LaidOut(coords, starts, np.repeat(fit[which] / _SAMPLES, _SAMPLES))


def _shrunk(polygons: Any, bodies: Bodies) -> Any:
    """Return bodies made smaller towards their middles: h - 2 of a footprint's h cells are left."""
    import shapely

    c = bodies.catalogue
    n = shapely.get_num_coordinates(polygons)
    middle = shapely.get_coordinates(shapely.centroid(polygons)).repeat(n, axis=0)
    cells = np.stack([c.widths, c.heights], axis=-1)[bodies.pattern]
    left = (np.maximum(cells - 2, 0) / cells).repeat(n, axis=0)
    xy = middle + (shapely.get_coordinates(polygons) - middle) * left
    return shapely.set_coordinates(polygons.copy(), xy)


@dataclass(frozen=True, eq=False)
class LeafVariance:
    """The noise variance of weighted sums of a tree's leaves; public."""

    grown: Grown

    @cached_property
    def _below(self) -> Floats:
        """The sum of the children's variances, of each node."""
        grown = self.grown
        return sums(grown.parent[1:], grown.gathered[1][1:], len(grown))

    def of(self, leaf: Ints, share: Floats) -> float:
        """Return the variance of a sum of leaves, each by its share.

        As in `reading.QueryVariance`: up the tree, through the touched nodes alone.
        """
        grown, spread = self.grown, self.grown.gathered[1]
        ends = [part.stop for part in grown.generations]
        depth = np.searchsorted(ends, leaf, side="right")
        at, slope, rest = (np.empty(0, v.dtype) for v in (leaf, share, share))
        for d in range(len(ends) - 1, -1, -1):
            own = depth == d
            at = np.concatenate([at, leaf[own]])
            slope = np.concatenate([slope, share[own]])
            rest = np.concatenate([rest, np.zeros(int(own.sum()))])
            if d == 0:
                break
            nodes, place = np.unique(grown.parent[at], return_inverse=True)
            carried = slope * spread[at]
            whole = self._below[nodes]
            mean = sums(place, carried, len(nodes)) / whole
            rest = sums(place, rest + slope * carried, len(nodes)) - mean**2 * whole
            at, slope = nodes, mean
        return max(float((rest + slope**2 * spread[at]).sum()), 0.0)
