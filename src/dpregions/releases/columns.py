"""What a release file holds, as plain arrays: what a release holds -> columns -> its outcome.

Owns the checks that every release passes, whatever its mechanism; the mechanism checks its own
columns. It knows nothing of Parquet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import same_crs
from dpregions.errors import InputError, ReleaseFileError
from dpregions.geometry.partition import Partition
from dpregions.mechanisms.base import Columns, Entries, Held
from dpregions.mechanisms.known import chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.domain import Domain
    from dpregions.mechanisms.base import Layout, Outcome
    from dpregions.releases.published import Release

_EXACT = 1 << 53
"""Whole numbers up to this are floats."""


def held_by(release: Release, *, filled: bool = False) -> Held:
    """Return what a release holds, in the file's types.

    With `filled`, estimates too that follow from the mechanism's columns.
    """
    mechanism = chosen(release.method)  # by its name: that is all a file has of it
    outcome, estimate = release.outcome, None
    signed = outcome.estimates() if filled else outcome.signed
    if signed is not None:
        estimate = signed.astype(np.float64)
        if not (estimate == signed).all():
            raise InputError(f"an estimate beyond {_EXACT:,} cannot be saved exactly")
    columns = _conformed(outcome.columns(), mechanism.layout(covert=release.covert))
    return Held(release, outcome.counts, estimate, outcome.options(), columns)


def _conformed(columns: Columns, layout: Layout) -> Columns:
    """Return columns in their layout's order and types, as a file brings them back."""
    for name, text in columns.texts.items():
        if len(text) > layout.texts.get(name, -1):
            raise InputError(f"its text {name!r} is longer than its mechanism's layout allows")
    lists = {}
    for name, kinds in layout.lists.items():
        given = columns.lists[name]
        found: dict[str, NDArray[Any]] = {
            field: np.asarray(given.fields[field], kind) for field, kind in kinds.items()
        }
        lists[name] = Entries(np.asarray(given.row, np.int64), found)
    return Columns(lists, columns.texts)


def outcome_of(held: Held) -> Outcome:
    """Return what was published, once the values are such as a release may have."""
    statement, counts, signed = held.statement, held.counts, held.signed
    if (counts < 0).any() or counts.sum(dtype=np.float64) >= 2**62:
        raise ReleaseFileError("it has counts that are negative or out of range")
    if signed is not None and not np.isfinite(signed).all():
        raise ReleaseFileError("it has estimates that are not finite")
    outcome = chosen(statement.method).outcome(held)
    if outcome.is_covert != statement.covert:
        raise ReleaseFileError("it lacks the column of estimates")
    if outcome.grid != statement.rows:
        raise ReleaseFileError("it has a base, which its method never measures")
    if statement.base is not None:
        _refuse_elsewhere(statement.base, statement.grid)
    return outcome


def _refuse_elsewhere(base: Domain, asked: Domain) -> None:
    """Refuse cells that no release measured on this base is asked on."""
    if not isinstance(asked, Partition):
        raise ReleaseFileError("it has a base, but is asked on a grid")
    one, other = base.crs, asked.crs
    if one is not other and (one is None or other is None or not same_crs(one, other)):
        raise ReleaseFileError("its base is in another CRS than its cells")
    here, there = np.reshape(base.bounds, (2, 2)), np.reshape(asked.bounds, (2, 2))
    if (there[0] >= here[1]).any() or (there[1] <= here[0]).any():
        raise ReleaseFileError("its base lies wholly outside its cells")
