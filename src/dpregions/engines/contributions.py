"""Contributions: a batch of regions -> whose each is, its key, and what it adds to a tally.

The one function that every engine runs on its batches. Of a user's contributions the one with the
smallest key counts: a function of the outline alone, so the choice is the same in every order,
batch, thread and engine. A row without a user or without an outline makes none: the first cannot be
told apart from another row of somebody, the second adds nothing. Secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Ints
    from dpregions.intake.regions import Batch


class Contributions(NamedTuple):
    """What some rows contribute, one row each. Secret."""

    user: NDArray[np.uint64]
    """Words that are equal for rows of one user, and only for these."""
    key: NDArray[np.uint64]
    """Two words that order a user's rows, and are equal for equal outlines."""
    marks: Ints
    """What `Tally.add_marks` takes: all that a tally keeps of a region."""


def contributions(batch: Batch, tally: Any) -> tuple[Ints, Contributions]:
    """Return which rows of a batch contribute, and what.

    Parameters
    ----------
    batch : Batch
        Of a source that has users.
    tally : Tally
        One that has `marks`.
    """
    return _of_rows(batch, tally.marks)


def numbered(batch: Batch, number: int) -> tuple[Ints, Contributions]:
    """Return the same for a tally without marks: the number of the batch and the row's in it."""
    return _of_rows(batch, lambda some: (number << 32) + np.arange(len(some.offsets) - 1)[:, None])


def _of_rows(batch: Batch, marks: Any) -> tuple[Ints, Contributions]:
    outlines, users = batch
    assert users is not None
    rows = np.flatnonzero(users.there & (np.diff(outlines.offsets) > 0))
    user = np.ascontiguousarray(users.words[rows])
    key, found = outlines.keys()[rows], marks(outlines)[rows]
    return rows, Contributions(user, key, np.ascontiguousarray(found))
