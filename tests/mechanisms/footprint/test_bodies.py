"""Bodies as a multiset: the order they are kept in, and the memory that millions of them take."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dpregions.mechanisms.footprint.bodies import Bodies, bodies_of_sizes
from dpregions.mechanisms.footprint.catalogue import catalogue

KNOWN = catalogue(3, 2 << 20)


def some_bodies(n: int, reach: int, seed: int = 0) -> Bodies:
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, reach, (2, n))
    pattern = rng.integers(0, len(KNOWN), n)
    witness = rng.integers(0, 3, n)
    return Bodies(KNOWN, pattern, witness, row, col, rng.integers(1, 5, n))


@pytest.mark.parametrize("reach", [6, 1 << 20, 1 << 40], ids=["few", "many", "beyond 64 bits"])
def test_tallied_bodies_are_the_same_multiset_in_order_each_but_once(reach: int) -> None:
    given = some_bodies(500, reach)
    found = given.tallied()
    wanted: dict[tuple[int, ...], int] = {}
    for *body, times in zip(
        *(v.tolist() for v in (given.row, given.col, given.pattern, given.witness, given.times)),
        strict=True,
    ):
        wanted[tuple(body)] = wanted.get(tuple(body), 0) + times
    columns = found.row, found.col, found.pattern, found.witness, found.times
    assert [tuple(v) for v in np.stack(columns).T.tolist()] == [
        (*body, wanted[body]) for body in sorted(wanted)
    ]


def test_no_bodies_are_tallied_too() -> None:
    assert len(some_bodies(0, 5).tallied().times) == 0


def peak_of(work: object) -> int:
    tracemalloc.start()
    try:
        work()  # type: ignore[operator]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bodies_are_made_in_less_than_five_times_their_own_memory() -> None:
    n = 100_000
    rng = np.random.default_rng(1)
    row, col = rng.integers(0, 1000, (2, n))
    size = rng.integers(1, 3, (2, n))
    made = bodies_of_sizes(KNOWN, row, col, *size)
    own = sum(v.nbytes for v in (made.pattern, made.witness, made.row, made.col, made.times))
    assert peak_of(lambda: bodies_of_sizes(KNOWN, row, col, *size)) < 5 * own


def test_bodies_are_counted_in_the_memory_of_their_counts() -> None:
    given = some_bodies(100, 500)
    own = given.counts_on(503, 503).nbytes
    assert peak_of(lambda: given.counts_on(503, 503)) < 1.2 * own
