"""The levels of the adaptive tree: blocks of cells and classes of sizes that halve step by step.

A region is one point: its footprint's centre cell and its size. A node of a level is a block of
cells and a class of sizes. Points have keys, the steps down the tree as bits, so that a node is a
range of keys. Owns which nodes there are, what of them is expected beforehand, and the keys. All of
it is public but the keys of regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from dpregions.errors import PrivacyError
from dpregions.mechanisms.footprint.ellipses import size_prior
from dpregions.mechanisms.footprint.sizes import filed_under, known_sizes
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from dpregions.arrays import Bools, Floats, Ints

_MOST_BITS = 55
"""Of a key: a tally tells groups of shapes apart by seven more."""
_LEAST_PRIOR = 1e-9
"""Prior chance of a size at least, beside the likeliest one's."""


class Rung(NamedTuple):
    """A level: blocks of `block` x `block` cells, sizes in classes of `wide` x `wide`."""

    block: int
    wide: int
    shift: int
    """How many bits of a key lie below its nodes."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """The levels of a grid, from all regions down to single sizes in single cells.

    Attributes
    ----------
    side : int
        Footprints are up to so many cells wide and high.
    filed : int64, (side + 1, side + 1, 2)
        The size that a region with a footprint is filed under.
    prior : float64, (side + 1, side + 1)
        How likely each size is beforehand; 0 where no body has it.
    """

    alphabet: ClassVar[str] = "sizes by key"

    n_rows: int
    n_cols: int
    side: int
    filed: Ints
    prior: Floats

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        """The levels, coarse to fine: places first, then places and sizes, then sizes."""
        wide = 1 << (self.side - 1).bit_length()
        block = 1 << (max(self.n_rows, self.n_cols) - 1).bit_length()
        block = max(block, wide // 2)
        steps = [(block, wide)]
        while (block, wide) != (1, 1):
            place, size = block > 1, wide > 1 and (block <= max(wide // 2, 1))
            block, wide = (block // 2 if place else 1), (wide // 2 if size else wide)
            steps.append((block, wide))
        shifts = [2 * (b.bit_length() - 1) + 2 * (s.bit_length() - 1) for b, s in steps]
        if shifts[0] > _MOST_BITS:
            raise PrivacyError(f"a grid of {self.n_rows} x {self.n_cols} cells is too large")
        return tuple(Rung(b, s, shift) for (b, s), shift in zip(steps, shifts, strict=True))

    @cached_property
    def _split(self) -> list[tuple[bool, bool]]:
        """Of each step down: whether blocks halve, and whether classes do."""
        found = []
        for above, below in zip(self.rungs, self.rungs[1:], strict=False):
            found.append((below.block < above.block, below.wide < above.wide))
        return found

    def __len__(self) -> int:
        """Return how many keys there are."""
        return 1 << self.rungs[0].shift

    def keys(self, row: Ints, col: Ints, height: Ints, width: Ints) -> Ints:
        """Return the keys of centre cells and sizes."""
        key = np.zeros(len(row), np.int64)
        tall, wide = np.subtract(height, 1), np.subtract(width, 1)
        for rung, (places, sizes) in zip(self.rungs[1:], self._split, strict=True):
            if places:
                bit = rung.block.bit_length() - 1
                key = key << 2 | (row >> bit & 1) << 1 | col >> bit & 1
            if sizes:
                bit = rung.wide.bit_length() - 1
                key = key << 2 | (tall >> bit & 1) << 1 | wide >> bit & 1
        return key

    def points(self, key: Ints, level: int = -1) -> tuple[Ints, Ints, Ints, Ints]:
        """Return row and column of blocks, and classes of heights and widths, of a level's nodes.

        `key` has the bits down to that level; classes are numbered from 0.
        """
        key = np.array(key, np.int64)
        row, col, tall, wide = (np.zeros(len(key), np.int64) for _ in range(4))
        steps = list(zip(self.rungs[1:], self._split, strict=True))
        if level >= 0:
            steps = steps[:level]
        place = size = 0
        for _, (places, sizes) in reversed(steps):
            if sizes:
                tall |= (key >> 1 & 1) << size
                wide |= (key & 1) << size
                key, size = key >> 2, size + 1
            if places:
                row |= (key >> 1 & 1) << place
                col |= (key & 1) << place
                key, place = key >> 2, place + 1
        return row, col, tall, wide

    def numbers(self, places: Ints, _spans: object) -> Ints:
        """Return the key of each footprint: row, column, height and width. Secret where these are.

        Shapes do not matter here.
        """
        row, col, height, width = places.T
        tall, wide = self.filed[height, width].T
        return self.keys(row + (tall - 1) // 2, col + (wide - 1) // 2, tall, wide)

    def there(self, level: int, key: Ints) -> Bools:
        """Say which nodes any region may be in: blocks on the grid, sizes that fit there."""
        rung = self.rungs[level]
        row, col, tall, wide = self.points(key, level)
        found = self._has_size[level][tall, wide]
        for at, n, least in (
            (row * rung.block, self.n_rows, tall * rung.wide + 1),
            (col * rung.block, self.n_cols, wide * rung.wide + 1),
        ):
            before = (least - 1) // 2
            found &= (at <= n - least + before) & (at + rung.block > before) & (least <= n)
        return found

    @cached_property
    def _has_size(self) -> list[Bools]:
        """Of each level, which classes hold a size that some body has."""
        return [self._in_classes(self.prior > 0, level) > 0 for level in range(len(self.rungs))]

    def _in_classes(self, values: Floats | Bools, level: int) -> Floats:
        """Return the sums of values of sizes in the classes of a level."""
        wide, full = self.rungs[level].wide, self.rungs[0].wide
        padded = np.zeros((full, full))
        padded[: self.side, : self.side] = values[1:, 1:]
        n = full // wide
        return padded.reshape(n, wide, n, wide).sum(axis=(1, 3))

    def children(self, level: int, key: Ints, below: int) -> tuple[Ints, Ints]:
        """Return the nodes of a lower level below some nodes, and which of these each is below.

        In order of keys, where the nodes are.
        """
        bits = self.rungs[level].shift - self.rungs[below].shift
        made = (key[:, None] << bits) + np.arange(1 << bits)
        up = np.repeat(np.arange(len(key)), 1 << bits)
        made = made.ravel()
        good = self.there(below, made)
        return made[good], up[good]

    def n_children(self, level: int, below: int) -> int:
        """Return how many nodes of a lower level one has, about: sizes end at `side`."""
        above, rung = self.rungs[level], self.rungs[below]
        classes = -(-min(above.wide, self.side) // rung.wide)
        rows, cols = (-(-min(above.block, n) // rung.block) for n in (self.n_rows, self.n_cols))
        return int(rows * cols * classes**2)

    @property
    def n_places(self) -> Floats:
        """How many places a footprint of each size has on the grid."""
        at = np.arange(self.side + 1)
        rows, cols = (np.maximum(n - at + 1, 0) for n in (self.n_rows, self.n_cols))
        return np.outer(rows, cols).astype(np.float64)

    def weights(self, level: int, key: Ints, mix: Floats) -> Floats:
        """Return how much of all regions is expected in each node, sizes spread evenly over places.

        `mix` is how many regions of each size there are, up to a factor.
        """
        from dpregions.mechanisms.footprint.tree.kernel import node_weights

        rung = self.rungs[level]
        places = self.n_places
        each = np.divide(mix, places, out=np.zeros_like(mix), where=places > 0)
        row, col, tall, wide = self.points(key, level)
        inner = self._in_classes(each, level) * rung.block**2
        return node_weights(
            row * rung.block, col * rung.block, rung.block, tall, wide, rung.wide, each, inner,
            self.n_rows, self.n_cols,
        )  # fmt: skip


def ladder_of(
    shape: tuple[int, int],
    side: int,
    bound: int,
    tuning: Tuning = TUNING,
) -> Ladder:
    """Return the levels of a grid for footprints of up to `side` cells, bodies within `bound`."""
    sizes, (n_rows, n_cols), at = known_sizes(side, bound), shape, np.arange(side + 1)
    prior = size_prior(side, bound, tuning.least_aspect, tuning.length_power)
    # Every size that a region may be filed under has a little.
    there = sizes & np.outer((at > 0) & (at <= n_rows), (at > 0) & (at <= n_cols))
    prior = np.where(there, np.maximum(prior, _LEAST_PRIOR * prior.max()), 0.0)
    return Ladder(n_rows, n_cols, side, filed_under(sizes), prior / prior.sum())
