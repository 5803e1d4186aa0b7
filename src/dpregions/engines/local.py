"""Counting on this machine: batches in threads, then one tally of all.

Tallies add up in any order, and which of a user's regions counts does not depend on any, so the
result does not depend on who counted what. Where regions have users, what each contributes is held
until all are read; beyond a limit of memory, users are counted share by share in as many passes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import chain, islice
from operator import iadd
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpregions.engines.contributions import contributions, numbered
from dpregions.engines.user_table import Share, UserTable
from dpregions.errors import InputError
from dpregions.memory import gibibytes, memory_bytes, n_workers
from dpregions.unforeseen import READING, foreseen

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.geometry.outlines import Outlines
    from dpregions.intake.regions import Batch, Reading
    from dpregions.mechanisms.base import Tally

T = TypeVar("T", bound="Tally")
Made = TypeVar("Made")

MEMORY_SHARE = 4
"""One part in so many of the memory is for what users contribute."""
_AT_ONCE = 1 << 20
"""Marks that are added to a tally at once."""


def count(
    reading: Reading,
    tally: Callable[[], T],
    workers: int | None = None,
    limit: float | None = None,
) -> T:
    """Return the tally of all regions, one for each user.

    Parameters
    ----------
    reading : Reading
        As `intake.regions.read_outlines` gives it: batches are pulled one at a time, and made in
        the threads.
    tally : callable
        Makes an empty tally.
    workers : int, optional
        How many threads; by default as many as the machine has room for.
    limit : float, optional
        Bytes that may be held of users, by default a quarter of the memory.
    """
    if reading.has_users:
        limit = limit or memory_bytes() / MEMORY_SHARE
        return _count_users(reading, tally, workers or n_workers(), limit)

    def add_batches(batches: Iterator[Batch]) -> T:
        part = tally()
        for batch in batches:
            part.add(batch.outlines)
        return part

    return reduce(iadd, _in_threads(reading, add_batches, workers, lambda: tally().nbytes))


def _in_threads(
    reading: Reading,
    work: Callable[[Iterator[Batch]], Made],
    workers: int | None,
    bytes_each: Callable[[], int],
) -> list[Made]:
    """Return what each thread makes of the batches that it gets; alone where there is one batch."""
    batches = iter(reading)
    head = list(islice(batches, 2))
    left: Iterator[Callable[[], Batch]] = chain(head, batches)
    lock = threading.Lock()

    def own() -> Iterator[Batch]:
        while True:
            with lock:
                make = next(left, None)
            if make is None:
                return
            yield make()

    def run() -> Made:
        nonlocal left
        try:
            return work(own())
        except BaseException:
            left = iter(())  # the others stop too
            raise

    if len(head) < 2:
        return [foreseen(run, READING)]
    workers = workers or n_workers(bytes_each())
    with ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(foreseen, run, READING) for _ in range(workers)]
        try:
            return [part.result() for part in parts]
        except BaseException:
            left = iter(())  # so that leaving does not wait for all of the input
            raise


def _count_users(reading: Reading, tally: Callable[[], T], workers: int, limit: float) -> T:
    """Return the tally of regions that have users, in as many passes as the limit asks for."""
    whole, seed = tally(), UserTable.new_seed()
    kind = _Marks if hasattr(whole, "add_marks") else _Outlines
    shares = [Share()]
    while shares:
        held = kind(whole, shares.pop(), seed)

        def take_in(batches: Iterator[Batch], held: Any = held) -> None:
            for batch in batches:
                held.put(batch)
                shares.extend(held.halve_beyond(limit, reading.can_repeat))

        _in_threads(reading, take_in, workers, lambda: 0)
        held.add_to(whole)
    return whole


class _Held:
    """What users contribute in one pass. Secret."""

    def __init__(self, tally: Any, share: Share, seed: int) -> None:
        self._tally, self._seed, self._share = tally, seed, share
        self._lock = threading.Lock()
        self._table: UserTable | None = None

    def _table_for(self, width: int, n_marks: int) -> UserTable:
        with self._lock:
            if self._table is None:
                self._table = UserTable(width, n_marks, self._share, self._seed)
            return self._table

    @property
    def nbytes(self) -> int:
        return 0 if self._table is None else self._table.nbytes

    def halve_beyond(self, limit: float, can_repeat: bool) -> list[Share]:
        """Leave one half of the users for another pass where all take too much memory."""
        left: list[Share] = []
        with self._lock:
            while self._table is not None and self.nbytes > limit and self._table.is_divisible:
                if not can_repeat:
                    raise InputError(
                        f"what the users of these regions contribute takes more than "
                        f"{gibibytes(limit)} of memory, and a stream cannot be read again for the "
                        f"rest of them: write the regions to a file, GeoParquet for instance, "
                        f"which is then read in several passes"
                    )
                left.append(self._table.halve())
                self._drop_lost()
        return left

    def _drop_lost(self) -> None:
        """Let go of what belongs to nobody any more."""


class _Marks(_Held):
    """Of each user, the marks of the region that counts."""

    def put(self, batch: Batch) -> None:
        _, found = contributions(batch, self._tally)
        self._table_for(found.user.shape[1], found.marks.shape[1]).put(found)

    def add_to(self, tally: Any) -> None:
        marks = np.empty((0, 1), np.int64) if self._table is None else self._table.marks()
        for start in range(0, len(marks), _AT_ONCE):
            tally.add_marks(marks[start : start + _AT_ONCE])


class _Outlines(_Held):
    """Of each user, the outline that counts, for a tally that takes outlines alone."""

    def __init__(self, tally: Any, share: Share, seed: int) -> None:
        super().__init__(tally, share, seed)
        self._kept: dict[int, tuple[Ints, Outlines]] = {}
        self._n = self._bytes = 0

    def put(self, batch: Batch) -> None:
        with self._lock:
            number, self._n = self._n, self._n + 1
        rows, found = numbered(batch, number)
        table = self._table_for(found.user.shape[1], 1)
        with self._lock:  # between the two, nobody may look for what is lost
            won = rows[table.put(found)]
            self._keep(number, won, batch.outlines.taken(won))

    def _keep(self, number: int, rows: Ints, outlines: Outlines) -> None:
        """Keep the outlines of a batch that stand for a user; `rows` are their numbers in it."""
        self._kept[number] = rows, outlines
        self._bytes += rows.nbytes + outlines.xy.nbytes + outlines.offsets.nbytes

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._bytes

    def _drop_lost(self) -> None:
        standing = list(self._standing())
        self._kept, self._bytes = {}, 0
        for number, rows, some in standing:
            self._keep(number, rows, some)

    def add_to(self, tally: Any) -> None:
        for _, _, some in self._standing():
            tally.add(some)

    def _standing(self) -> Iterator[tuple[int, Ints, Outlines]]:
        """Yield the outlines that still stand for a user, batch by batch."""
        if self._table is None:
            return
        marks = np.sort(self._table.marks()[:, 0])
        for number, (rows, some) in self._kept.items():
            low, high = np.searchsorted(marks, [number << 32, (number + 1) << 32])
            left = marks[low:high] - (number << 32)
            if len(left):
                yield number, left, some.taken(np.searchsorted(rows, left))
