"""A reading of an adaptive tree: its fits, and how far estimates of rectangles may be off.

Rectangles walk down the tree along their border. Sees noisy counts and public values alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.mechanisms.footprint.border import NODE, Border, Letters, Parts, Shares, Unsure
from dpregions.mechanisms.footprint.reading import clumping_of, variance_of_detail
from dpregions.mechanisms.footprint.tree.filling import Leaves, density_of, placed_bodies, summed
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.worst import WorstCase, reaches, reaches_of_groups
from dpregions.mechanisms.least_squares import sums

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.buckets import Buckets
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.tree.grown import Grown
    from dpregions.mechanisms.footprint.tree.measured import TreeMeasured

_TINY = 1e-12
"""Density of a cell at least, so that a leaf that holds nothing can be shared out."""
_MOST_TABLE = 8
"""Cells up to which a side of a footprint has chances of its own; larger ones are all alike."""
_APART = 4
"""Classes up to so wide take part size by size; of wider ones as many groups along each axis."""


@dataclass(frozen=True, eq=False)
class TreeReading:
    """What a tree says of any query, and how far that may be off."""

    measured: TreeMeasured
    tuning: Tuning = TUNING

    @cached_property
    def grown(self) -> Grown:
        """The tree."""
        return self.measured.grown(self.tuning)

    @cached_property
    def leaves(self) -> Leaves:
        """Where its leaves are."""
        return Leaves(self.grown)

    @cached_property
    def held(self) -> Floats:
        """The non-negative counts of leaves that the bodies follow."""
        found: Floats = self.grown.held(self.tuning)[self.grown.leaves]
        return found

    @cached_property
    def density(self) -> Floats:
        """How many regions are expected to be centred in each cell."""
        return density_of(self.leaves, self.held, self.tuning)

    def footprints(self) -> Ints:
        """Return row, column, height and width of the footprints that the bodies have."""
        return placed_bodies(self.leaves, self.held, self.density, self.grown.mix)

    def held_by(self, buckets: Buckets) -> Floats:
        """Return what each bucket of a small grid is expected to hold."""
        ladder, leaves = self.grown.ladder, self.leaves
        row, col, height, width = buckets.points(np.arange(len(buckets)))
        shift = np.array([rung.shift for rung in ladder.rungs])[leaves.level]
        first = self.grown.keys[self.grown.leaves] << shift
        leaf = np.searchsorted(first, ladder.keys(row, col, height, width), side="right") - 1
        each = self.grown.mix[height, width] / ladder.n_places[height, width]
        weight = (self.density[row, col] + _TINY) * each
        return self.held[leaf] * weight / sums(leaf, weight, len(leaves.level))[leaf]

    def border(self, catalogue: Catalogue) -> Border:
        """Return the tree as rectangles walk down it."""
        grown, ladder = self.grown, self.grown.ladder
        groups, letters = self._letters(catalogue)
        nodes = np.zeros(len(grown), NODE)
        for level in np.unique(grown.level):
            here = np.flatnonzero(grown.level == level)
            row, col, tall, wide = ladder.points(grown.keys[here], int(level))
            block = ladder.rungs[level].block
            nodes["row"][here], nodes["col"][here] = row * block, col * block
            nodes["side"][here] = min(block, max(ladder.n_rows, ladder.n_cols))
            nodes["group"][here] = groups[int(level)][tall, wide]
        nodes["spread"], nodes["fit"] = grown.gathered[1], grown.fitted
        held = np.zeros(len(grown))
        held[grown.leaves] = self.held
        detail = grown.is_leaf & (grown.level < len(ladder.rungs) - 1)
        # A leaf may hold more than it was found to.
        nodes["held"] = held + np.where(detail, np.sqrt(grown.gathered[1]), 0.0)
        nodes["detail"] = detail
        shares = Shares.by_density(summed(self.density))
        unsure = Unsure(self.tuning.unsure_leaf, self.tuning.unsure_bucket)
        return Border(Parts.of(grown.parent, nodes), letters, shares, unsure)

    def _letters(self, catalogue: Catalogue) -> tuple[list[Ints], Letters]:
        """Return the group of each class of each level, and the sizes in them.

        Of wide classes a few sizes stand for all.
        """
        ladder, mix = self.grown.ladder, self.grown.mix
        n_places = ladder.n_places
        weight = np.divide(mix, n_places, out=np.zeros_like(mix), where=n_places > 0)
        heights: list[Ints] = []
        widths: list[Ints] = []
        weights: list[Floats] = []
        members: list[Ints] = []
        groups: list[Ints] = []
        n_letters = 0
        for rung in ladder.rungs:
            n = ladder.rungs[0].wide // rung.wide
            found = np.full((n, n), -1, np.int64)
            if groups and len(groups[-1]) == n:
                groups.append(groups[-1])
                continue
            for tall in range(n):
                for wide in range(n):
                    least = tall * rung.wide + 1, wide * rung.wide + 1
                    h, w, v = _sizes_in(weight, *least, rung.wide)
                    if not len(h):
                        continue
                    found[tall, wide] = len(members)
                    members.append(np.arange(n_letters, n_letters + len(h)))
                    n_letters += len(h)
                    heights.append(h)
                    widths.append(w)
                    weights.append(v)
            groups.append(found)
        h, w, v = np.concatenate(heights), np.concatenate(widths), np.concatenate(weights)
        known = {
            (i, j): _table(catalogue, i, j)
            for i, j in np.unique(np.stack([h, w]), axis=1).T.tolist()
            if max(i, j) <= _MOST_TABLE and catalogue.has(i, j)
        }
        tables = [known.get((i, j)) for i, j in zip(h.tolist(), w.tolist(), strict=True)]
        shape = ladder.n_rows, ladder.n_cols
        return groups, Letters.of(shape, h, w, members, v, tables)

    @cached_property
    def worst(self) -> WorstCase:
        """What bounds rectangles whatever regions do inside leaves; made when the first is asked.

        A node has all sizes of its class, also those that the mix has none of.
        """
        grown, ladder = self.grown, self.grown.ladder
        shape = ladder.n_rows, ladder.n_cols
        of_size = reaches(ladder.filed, shape)
        height, width = np.nonzero(ladder.prior > 0)
        row, col, side = np.zeros((3, len(grown)), np.int64)
        reach = np.zeros((len(grown), 2, 2, 2), np.int64)
        for level in np.unique(grown.level):
            rung, here = ladder.rungs[level], np.flatnonzero(grown.level == level)
            up, right, tall, wide = ladder.points(grown.keys[here], int(level))
            row[here], col[here], side[here] = up * rung.block, right * rung.block, rung.block
            n = ladder.rungs[0].wide // rung.wide
            group = (height - 1) // rung.wide * n + (width - 1) // rung.wide
            reach[here] = reaches_of_groups(of_size, height, width, group, n * n)[tall * n + wide]
        spread, fit = grown.gathered[1], grown.fitted
        return WorstCase.of(
            grown.parent, grown.generations, spread, fit, (row, col, side), reach, shape
        )

    @cached_property
    def clumping(self) -> float:
        """How much regions inside a leaf fall the same way, judged by leaves with one parent.

        They stray from their expected shares by noise, by chance, and by this.
        """
        grown = self.grown
        best, spread = grown.gathered
        leaf = grown.leaves[grown.leaves > 0]
        above = best[grown.parent[leaf]]
        least = self.tuning.tree_clumping
        return clumping_of(best[leaf], spread[leaf], above, grown.shares[leaf], least)

    def shape_deviation(self, detail: Any, detail_squares: Any, bucket: Any) -> Any:
        """Return the deviation from what was not measured: inside leaves, and shapes."""
        t = self.tuning
        shapes = t.shape_crowd * bucket + (t.shape_doubt * bucket) ** 2
        most = max(float(self.grown.gathered[0][0]), 1.0)
        inside = variance_of_detail(detail, detail_squares, self.clumping, most)
        return np.sqrt(shapes + inside + (t.place_doubt * detail) ** 2)


def _sizes_in(weight: Floats, h0: int, w0: int, wide: int) -> tuple[Ints, Ints, Floats]:
    """Return the sizes of a class and their weights; of a wide one a few that stand for all.

    The least stands for itself: it has a place in every node of its class that there is.
    """
    ends = min(h0 + wide, len(weight)), min(w0 + wide, len(weight))
    part = weight[h0 : ends[0], w0 : ends[1]]
    i, j = np.nonzero(part)
    h, w, v = i + h0, j + w0, part[i, j]
    if wide <= _APART:
        return h, w, v
    step, n = wide // _APART, _APART**2 + 1
    group = np.where((h == h0) & (w == w0), n - 1, i // step * _APART + j // step)
    total = np.bincount(group, v, n)
    used = np.flatnonzero(total)
    mean = [np.rint(np.bincount(group, v * x, n)[used] / total[used]) for x in (h, w)]
    return mean[0].astype(np.int64), mean[1].astype(np.int64), total[used].astype(np.float64)


def _table(catalogue: Catalogue, height: int, width: int) -> Floats:
    """Return the sums of a size's signed mean Euler array, a row and column of 0 first."""
    mean = catalogue.mean_of(height, width)[: 2 * height - 1, : 2 * width - 1]
    signs = (-1.0) ** np.add.outer(np.arange(2 * height - 1), np.arange(2 * width - 1))
    table = np.zeros((2 * height, 2 * width))
    table[1:, 1:] = np.cumsum(np.cumsum(mean * signs, axis=0), axis=1)
    return table
