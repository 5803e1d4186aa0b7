"""What tests of file formats share: records of a file, files gone wrong, an oracle of ids."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import shapely

import dpregions as dpr
from dpregions.errors import DPRegionsError

CANARY = "canary-4711"


def records(path, user_id="user_id", **options):
    """Return the ids and the geometries that are read from a file, row by row."""
    return records_of(dpr.open_regions(path, user_id=user_id, **options))


def records_of(batches):
    """Return the ids and the geometries of batches, row by row."""
    batches = list(batches)
    ids = [value for batch in batches for value in batch.column(0).to_pylist()]
    shapes = [value for batch in batches for value in batch.column("geometry").to_pylist()]
    return list(zip(ids, shapes, strict=True))


def ids_of(path, user_id="user_id", **options):
    return [user for user, _ in records(path, user_id, **options)]


def wkt_of(path, **options):
    shapes = [shape for _, shape in records(path, **options)]
    return [None if s is None else shapely.from_wkb(s).wkt for s in shapes]


def refused(path, kind=DPRegionsError, **options):
    """Return the words in which a file is refused, when it is opened or read."""
    with pytest.raises(kind) as caught:
        list(dpr.open_regions(path, **options))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def number_or_text(value):
    """Return what tells ids apart, by Python's own arithmetic; None for no id."""
    if value is None or value in ("", b""):
        return None
    if isinstance(value, int | float):
        return ("number", Fraction(value) if abs(value) != float("inf") else value)
    return (type(value).__name__, value)


def same_partition(found, expected):
    """Say whether two lists call the same rows one user, and the same rows nobody's."""
    if [f is None for f in found] != [e is None for e in expected]:
        return False
    pairs = set(zip(found, expected, strict=True))
    return len(pairs) == len({f for f, _ in pairs}) == len({e for _, e in pairs})


def mutants(whole, count, seed=13):
    """Yield a file's bytes with something wrong: cut, overwritten, moved, repeated."""
    draw = random.Random(seed)
    odd = [b"\0", b"\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\1"]
    for _ in range(count):
        made = bytearray(whole)
        for _ in range(draw.choice((1, 1, 2, 8))):
            at, other = draw.randrange(len(made)), draw.randrange(len(made))
            kind = draw.randrange(6)
            if kind <= 2:
                made[at] = draw.randrange(256)
            elif kind == 3:
                piece = draw.choice(odd)
                made[at : at + len(piece)] = piece
            elif kind == 4:
                made[at : at + 16] = made[other : other + 16]
            elif draw.random() < 0.3:
                del made[max(1, at) :]
        yield bytes(made)


def survives(path, **options):
    """Read a file that may be broken: our errors alone, which quote nothing."""
    caught = None
    try:
        list(dpr.open_regions(path, **options))
    except DPRegionsError as error:
        caught = error
    assert caught is None or (CANARY not in str(caught) and caught.__context__ is None)
    return caught is None
