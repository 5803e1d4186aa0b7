"""A tally for each of several disjoint groups, counted in one pass. Secret.

Engines take it for any other tally: what tells groups apart travels with the outlines, with the
marks or with the numbers of entries. Which of a user's rows counts is settled over all groups, so
that each user is in one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from dpregions.arrays import Ints


def grouped_tally(tally: Callable[[], Any], n_groups: int) -> GroupedTally:
    """Return an empty tally of each group, with what tallies of its kind offer to engines."""
    parts = [tally() for _ in range(n_groups)]
    if hasattr(parts[0], "add_marks"):
        return _GroupedMarks(parts)
    return _GroupedEntries(parts) if hasattr(parts[0], "add_entries") else GroupedTally(parts)


class GroupedTally:
    """One tally for each group. Secret."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def add(self, outlines: Any) -> None:
        """Count more regions, which are `intake.groups.GroupedOutlines`."""
        for number in np.unique(outlines.groups[outlines.groups >= 0]):
            self.parts[number].add(outlines.of_group(number))

    def __iadd__(self, other: GroupedTally) -> Self:
        """Add the tallies of other users."""
        for i, theirs in enumerate(other.parts):
            self.parts[i] += theirs
        return self

    @property
    def nbytes(self) -> int:
        """How much memory it takes at most."""
        return sum(part.nbytes for part in self.parts)


class _GroupedMarks(GroupedTally):
    """The same where a tally keeps marks of a region: the first one is its group."""

    @property
    def n_marks(self) -> int:
        """How many marks a region has: its group's number, and its own."""
        return 1 + int(self.parts[0].n_marks)

    def marks(self, outlines: Any) -> Ints:
        """Return the group and the marks of each region; of an empty outline anything."""
        return np.column_stack([outlines.groups, self.parts[0].marks(outlines)])

    def add_marks(self, marks: Ints, times: Ints | None = None) -> None:
        """Count regions by their marks, each so many times."""
        for number in np.unique(marks[:, 0]):
            rows = marks[:, 0] == number
            some = None if times is None else times[rows]
            self.parts[number].add_marks(np.ascontiguousarray(marks[rows, 1:]), some)


class _GroupedEntries(GroupedTally):
    """The same where a tally can be taken apart: the groups' entries by turns."""

    def entries(self) -> tuple[Ints, Ints]:
        """Return the numbers of entries that are not 0, and their values."""
        found = [part.entries() for part in self.parts]
        numbers = [index * len(self.parts) + i for i, (index, _) in enumerate(found)]
        return np.concatenate(numbers), np.concatenate([value for _, value in found])

    def add_entries(self, index: Ints, value: Ints) -> None:
        """Add entries of other users."""
        index, number = np.divmod(index, len(self.parts))
        for i, part in enumerate(self.parts):
            part.add_entries(index[number == i], value[number == i])
