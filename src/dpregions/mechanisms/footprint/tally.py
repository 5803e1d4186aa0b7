"""The tally of the footprint mechanism: how many regions are in each bucket. Secret.

Sparse from the start: it holds the buckets that somebody is in, sorted, each with a number. Tallies
of different users add up in any order. Buckets are numbered as `Buckets` does, or by the keys of a
`Ladder`, where they are too many for any array of them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Self

import numpy as np

from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.shapes import n_groups

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.geometry.outlines import Outlines
    from dpregions.mechanisms.footprint.tree.ladder import Ladder

Numbered = tuple["Ints", "Ints"]
"""Buckets in order, and how many regions are in each."""

_NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)
_MANY = 1 << 23
"""Buckets that a tally is taken to hold at most, where there are more."""


class FootprintTally:
    """Regions by bucket, of the finest alphabet that may be measured, and by shape. Secret."""

    n_marks = 1

    def __init__(self, buckets: Buckets | Ladder) -> None:
        self._buckets = buckets
        self._parts: list[Numbered] = []
        # Buckets of sizes are told apart by groups of shapes too; patterns have theirs already.
        self._patterns: Buckets | None = None
        if isinstance(buckets, Buckets) and buckets.alphabet == "patterns":
            self._patterns = buckets
        self._groups = n_groups(buckets.side) if self._patterns is None else 1

    @property
    def alphabet(self) -> str:
        """What its buckets tell apart."""
        return self._buckets.alphabet

    def add(self, outlines: Outlines) -> None:
        """Count more regions; those that touch no cell are in no bucket."""
        self.add_marks(self.marks(outlines))

    def marks(self, outlines: Outlines) -> Ints:
        """Return the bucket of each region with its group of shapes, -1 for none, as one number.

        That is all that a tally keeps of a region.
        """
        from dpregions.mechanisms.footprint.kernel import shape_groups

        b = self._buckets
        places, spans = outlines.footprints(b.n_rows, b.n_cols, b.side, empty=True)
        if self._patterns is not None:
            return self._patterns.numbers(places, spans)[:, None]
        inside = places[:, 2] > 0
        places, spans = places[inside], spans[inside]
        numbers = np.full(len(inside), -1)
        group = shape_groups(b.filed, places[:, 2], places[:, 3], spans)
        numbers[inside] = self._groups * b.numbers(places, spans) + group
        return numbers[:, None]

    def add_marks(self, marks: Ints, times: Ints | None = None) -> None:
        """Count regions by their marks, each so many times."""
        there = marks[:, 0] >= 0
        numbers = marks[there, 0]
        if times is not None:
            self._hold(_merged((numbers, times[there]), _NOTHING))
        elif self._groups * len(self._buckets) <= 4 * len(numbers):  # quicker than sorting
            n = np.bincount(numbers)
            used = np.flatnonzero(n)
            self._hold((used, n[used]))
        else:
            self._hold(np.unique(numbers, return_counts=True))

    def __iadd__(self, other: FootprintTally) -> Self:
        """Add the tally of other users."""
        for part in other._parts:
            self._hold(part)
        return self

    def __mul__(self, times: int) -> FootprintTally:
        """Return the tally of so many regions where this one has one."""
        made = FootprintTally(self._buckets)
        made._parts = [(number, times * n) for number, n in self._parts]
        return made

    @property
    def nbytes(self) -> int:
        """How much memory it takes at most: number and count of each bucket, twice to merge."""
        return 4 * 8 * min(self._groups * len(self._buckets), _MANY)

    @property
    def total(self) -> int:
        """How many regions touch the area."""
        return sum(int(n.sum()) for _, n in self._parts)

    def counts(self, buckets: Buckets) -> Ints:
        """Return how many regions are in each bucket of an alphabet, this one or a coarser."""
        mine = self._buckets
        assert isinstance(mine, type(buckets))
        counts = np.zeros(len(buckets), np.int64)
        for number, n in self._parts:
            np.add.at(counts, mine.within(buckets, number // self._groups), n)
        return counts

    @property
    def shapes(self) -> Ints:
        """How many regions are in each group of shapes, in the whole area."""
        counts = np.zeros(n_groups(self._buckets.side), np.int64)
        for number, n in self._parts:
            some = self._patterns
            np.add.at(counts, number % self._groups if some is None else some.shapes(number), n)
        return counts

    def keyed(self, ladder: Ladder) -> Numbered:
        """Return keys in order, and how many regions have each."""
        number, n = reduce(_merged, self._parts, _NOTHING)
        number = number // self._groups
        if not isinstance(self._buckets, type(ladder)):
            number = ladder.keys(*self._buckets.points(number))
        return _merged((number, n), _NOTHING)

    def _hold(self, part: Numbered) -> None:
        """Keep a part, merged with those before it that are not twice as long.

        So each part is less than half as long as the one before it: there are few of them, and
        each entry is merged a logarithm of times.
        """
        while self._parts and len(self._parts[-1][0]) <= 2 * len(part[0]):
            part = _merged(self._parts.pop(), part)
        self._parts.append(part)


def _merged(one: Numbered, other: Numbered) -> Numbered:
    number = np.concatenate([one[0], other[0]])
    n = np.concatenate([one[1], other[1]])
    order = np.argsort(number, kind="stable")
    number, n = number[order], n[order]
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    return number[starts], np.add.reduceat(n, starts) if len(n) else n
