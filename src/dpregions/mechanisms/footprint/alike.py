"""Many queries of one height and width, such as all cells: what they share is made once.

A footprint's chance to touch such a query depends only on how far apart they lie, and so does what
is sampled inside leaves of one side. Public values alone; answers are the same, up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dpregions.arrays import Bools, Floats, Ints
    from dpregions.mechanisms.footprint.border import Letters, Parts

_MOST = 1 << 24
"""Numbers that a table of what queries share may have."""
_WIDEST = 64
"""Cells along a side of a leaf up to which sums over its places are kept."""


class Alike(NamedTuple):
    """What queries of one height and width share; `none` for queries that share nothing."""

    tall: int
    wide: int
    chances: Floats
    """To touch a query, of each letter, by how far the query begins from its place."""
    starts: Ints
    """Where each letter's begin."""
    misses: Floats
    """Sums over the places sampled in a leaf, of each letter in its group."""
    miss_starts: Ints
    miss_sides: Ints
    """The side of leaves that a group's are for; 0 for none."""
    mixed: Floats
    """Chances of groups, their letters by weight, by how far a query begins from a centre cell."""
    mixed_starts: Ints
    """Where each group's begin; -1 for none."""
    mixed_weights: Floats
    """Sums of the letters' weights."""

    @classmethod
    def none(cls) -> Alike:
        """Return what queries share that are not alike: nothing."""
        no, nowhere = np.zeros(1), np.zeros(1, np.int64)
        return cls(0, 0, no, nowhere, no, nowhere, nowhere, no, nowhere, no)

    @classmethod
    def of(cls, parts: Parts, letters: Letters, few: int, tall: int, wide: int) -> Alike:
        """Return what is shared, or nothing where that would be too much to keep."""
        from dpregions.mechanisms.footprint.alike_kernel import (
            chances_alike,
            misses_alike,
            mixed_alike,
        )

        own = _first_alike(letters)
        height, width = (letters.letters[name].astype(np.int64) for name in ("height", "width"))
        mine = own == np.arange(len(own))
        sizes = np.where(mine, (height + tall - 1) * (width + wide - 1), 0)
        if sizes.sum() > _MOST:
            return cls.none()
        starts = (np.cumsum(sizes) - sizes)[own]
        chances = chances_alike(
            letters.letters, own, starts, sizes.sum(), letters.tables, tall, wide
        )
        sides = _sides_of_leaves(parts, len(letters.groups), few)
        of_member = np.repeat(sides, letters.groups["end"] - letters.groups["begin"])
        h, w = height[letters.members], width[letters.members]
        sizes = 4 * (of_member + h + tall - 2) * (of_member + w + wide - 2) * (of_member > 0)
        if sizes.sum() > _MOST:
            sides[:], of_member[:], sizes[:] = 0, 0, 0
        miss_starts = np.cumsum(sizes) - sizes
        misses = misses_alike(
            letters.letters, letters.members, of_member, miss_starts, max(int(sizes.sum()), 1),
            chances, starts, tall, wide,
        )  # fmt: skip
        small, groups = _small_leaves(parts, len(letters.groups), few), letters.groups
        sizes = (groups["highest"].astype(np.int64) + tall - 1) * (groups["widest"] + wide - 1)
        sizes = np.where(small, sizes, 0)
        mixed_starts = np.where(small, np.cumsum(sizes) - sizes, -1)
        mixed = mixed_alike(
            letters.letters, groups, letters.members, mixed_starts, max(int(sizes.sum()), 1),
            chances, starts, tall, wide,
        )  # fmt: skip
        weights = np.add.reduceat(letters.letters["weight"][letters.members], groups["begin"])
        return cls(
            tall, wide, chances, starts, misses, miss_starts, sides, mixed, mixed_starts, weights
        )


def _first_alike(letters: Letters) -> Ints:
    """Return the first letter with the same chances as each: large ones go by their size alone."""
    given = letters.letters
    own = np.arange(len(given))
    plain = np.flatnonzero(given["table"] < 0)
    size = given["height"][plain].astype(np.int64) << 32 | given["width"][plain]
    _, first, which = np.unique(size, return_index=True, return_inverse=True)
    own[plain] = plain[first[which]]
    return own


def _sides_of_leaves(parts: Parts, n_groups: int, few: int) -> Ints:
    """Return the least side of the leaves of each group that are sampled; 0 where none is."""
    nodes = parts.nodes
    side = nodes["side"].astype(np.int64)
    used = (nodes["n"] == 0) & (few > 0) & (side * side > few) & (side <= _WIDEST)
    found = np.full(n_groups, _WIDEST + 1)
    np.minimum.at(found, nodes["group"][used], side[used])
    return np.where(found > _WIDEST, 0, found)


def _small_leaves(parts: Parts, n_groups: int, few: int) -> Bools:
    """Return which groups have leaves all of whose cells are gone through."""
    nodes = parts.nodes
    side = nodes["side"].astype(np.int64)
    found = np.zeros(n_groups, np.bool_)
    found[nodes["group"][(nodes["n"] == 0) & (side * side <= few)]] = True
    return found
