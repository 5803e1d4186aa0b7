"""Partitions of buckets: blocks of cells times groups of letters, and the chain that a fit climbs.

Every region is in one part of each partition, so its counts have sensitivity 1. In a `Hierarchy`
each level refines the one before. Everything here is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.shapes import n_groups

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.mechanisms.footprint.buckets import Buckets

Grouping = Literal["all", "joined", "classes", "letters", "shapes"]


@dataclass(frozen=True)
class Level:
    """A partition: blocks of `block` x `block` cells (0: the whole area), letters grouped."""

    block: int
    letters: Grouping


WHOLE = Level(0, "all")
"""The number of regions in the area."""

MIX = Level(0, "letters")
"""The number of regions of each letter in the whole area. Blocks do not refine it."""

SHAPES = Level(0, "shapes")
"""The number of regions of each group of shapes in the whole area, where letters are sizes: these
do not tell shapes apart, so it is counted beside them."""

BESIDE = (MIX, SHAPES)
"""What is counted beside the chain of blocks."""

_CLASS_GROWTH = 1.6
"""How much longer the sides of one class of sizes are than those of the class before. Set by hand,
and now a part of the file format: counts of classes can be read only with the growth they were
made with, so it is not in `tuning`."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels from coarse to fine, from one part for all buckets to one part for each.

    `part[l][i]` is the part of level `l` that bucket `i` is in, `parent[l][j]` the part of
    level `l` that part `j` of level `l + 1` is in.
    """

    buckets: Buckets
    levels: tuple[Level, ...]
    part: tuple[Ints, ...]
    parent: tuple[Ints, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, buckets: Buckets, levels: tuple[Level, ...]) -> Hierarchy:
        """Return the hierarchy of some levels."""
        part = [_parts(buckets, level) for level in levels]
        sizes = tuple(int(p.max()) + 1 for p in part)
        parent = []
        for coarse, fine, n in zip(part, part[1:], sizes[1:], strict=False):
            up = np.zeros(n, np.int64)
            up[fine] = coarse
            if not np.array_equal(up[fine], coarse):
                raise PrivacyError("the levels of a strategy do not refine each other")
            parent.append(up)
        return cls(buckets, levels, tuple(part), tuple(parent), sizes)

    def n_parts(self, level: Level) -> int:
        """Return how many parts a partition has."""
        if level == SHAPES:
            return n_groups(self.buckets.side)
        return int(self.parts(level).max()) + 1

    def parts(self, level: Level) -> Ints:
        """Return the part of a partition that each bucket is in, whether of the chain or not."""
        if level in self.levels:
            return self.part[self.levels.index(level)]
        return _parts(self.buckets, level)

    def sums(self, level: Level, counts: Ints) -> Ints:
        """Return the counts of a partition's parts from counts of buckets."""
        part = self.parts(level)
        total = np.bincount(part, counts, minlength=int(part.max()) + 1)
        return np.rint(total).astype(np.int64)

    def describe(self, level: Level) -> str:
        """Return what a partition counts in plain words."""
        n = f"{self.n_parts(level):,}"
        if level == WHOLE:
            return "the number of regions in the area"
        if level == MIX:
            return f"{n} counts of regions by size of footprint in the area"
        if level == SHAPES:
            return f"{n} counts of regions by shape in the area"
        what = {
            "all": "regions",
            "joined": "regions by size of footprint, of one and two cells together,",
            "classes": "regions by class of size",
            "letters": f"regions by {self.buckets.alphabet[:-1]} of footprint",
        }[level.letters]
        where = "cell" if level.block == 1 else f"block of {level.block} x {level.block} cells"
        return f"{n} counts of {what} centred in each {where}"

    def anchors(self, level: Level) -> tuple[Ints, Ints, Ints]:
        """Return each part's place, the lower left cell of its block, and group of letters.

        Parts are numbered by place, row by row, then by group.
        """
        if level == SHAPES:
            groups = np.arange(self.n_parts(level))
            return np.zeros_like(groups), np.zeros_like(groups), groups
        part = self.parts(level)
        member = np.zeros(int(part.max()) + 1, np.int64)
        member[part] = np.arange(len(self.buckets))
        block = level.block or max(self.buckets.n_rows, self.buckets.n_cols)
        row, col = (place[member] // block * block for place in self.buckets.centres)
        groups = letter_groups(self.buckets, level.letters)
        return row, col, groups[self.buckets.letters[member]]


def _parts(buckets: Buckets, level: Level) -> Ints:
    """Return the part of each bucket, numbered without gaps."""
    block = level.block or max(buckets.n_rows, buckets.n_cols)
    row, col = buckets.centres
    groups = letter_groups(buckets, level.letters)
    place = (row // block) * -(-buckets.n_cols // block) + col // block
    part = place * (int(groups.max()) + 1) + groups[buckets.letters]
    used = np.bincount(part) > 0
    return (np.cumsum(used) - 1)[part]


def letter_groups(buckets: Buckets, letters: Grouping) -> Ints:
    """Return the group of each letter: all one, classes of similar size, or each its own.

    Joined: footprints of one and of two cells together, since all of them touch the cell they
    are counted in; every larger size by itself.
    """
    if letters == "letters":
        return np.arange(len(buckets.heights))
    if letters == "all":
        return np.zeros(len(buckets.heights), np.int64)
    if letters == "joined":
        size = buckets.heights * (buckets.catalogue.side + 1) + buckets.widths
        small = buckets.heights * buckets.widths <= 2
        return np.unique(np.where(small, 0, size), return_inverse=True)[1]
    ends = [1]
    while ends[-1] <= buckets.catalogue.side:
        ends.append(max(ends[-1] + 1, round(ends[-1] * _CLASS_GROWTH)))
    height = np.searchsorted(ends, buckets.heights, side="right")
    width = np.searchsorted(ends, buckets.widths, side="right")
    _, group = np.unique(height * len(ends) + width, return_inverse=True)
    return group
