"""Counting on this machine: one tally for each thread, batch by batch, then their sum.

Tallies add up in any order, so the result does not depend on who counted what.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import chain, islice
from operator import iadd
from typing import TYPE_CHECKING, TypeVar

from dpregions.memory import n_workers
from dpregions.unforeseen import READING, foreseen

if TYPE_CHECKING:
    from dpregions.geometry.outlines import Outlines
    from dpregions.mechanisms.base import Tally

T = TypeVar("T", bound="Tally")


def count(
    batches: Iterator[Callable[[], Outlines]], tally: Callable[[], T], workers: int | None = None
) -> T:
    """Return the tally of all batches.

    Parameters
    ----------
    batches : iterator of callables
        Each makes the outlines of some regions, as `intake.regions.read_outlines` gives them:
        pulled one at a time, made in the threads.
    tally : callable
        Makes an empty tally.
    workers : int, optional
        How many threads; by default as many as the machine has room for.
    """
    head = list(islice(batches, 2))
    work: Iterator[Callable[[], Outlines]] = chain(head, batches)
    lock = threading.Lock()

    def next_batch() -> Callable[[], Outlines] | None:
        with lock:
            return next(work, None)

    def add_batches() -> T:
        nonlocal work
        part = tally()
        try:
            while (outlines := next_batch()) is not None:
                part.add(outlines())
        except BaseException:
            work = iter(())  # the others stop too
            raise
        return part

    if len(head) < 2:
        return foreseen(add_batches, READING)
    workers = workers or n_workers(tally().nbytes)
    with ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(foreseen, add_batches, READING) for _ in range(workers)]
        try:
            return reduce(iadd, (part.result() for part in parts))
        except BaseException:
            work = iter(())  # so that leaving does not wait for all of the input
            raise
