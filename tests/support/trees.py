"""Small hierarchies of levels, and levels as plain matrices."""

from __future__ import annotations

from functools import cache

import numpy as np

from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.levels import Hierarchy, Level

STEPS = 1 << 20
TOTAL = Level(0, "all")
LEAVES = Level(1, "letters")
LEVELS = [
    (TOTAL, LEAVES),
    (TOTAL, Level(2, "all"), LEAVES),
    (TOTAL, Level(2, "all"), Level(2, "classes"), LEAVES),
    (TOTAL, Level(4, "all"), Level(2, "all"), Level(1, "all"), LEAVES),
    (TOTAL, Level(4, "all"), Level(4, "classes"), Level(1, "classes"), LEAVES),
    (TOTAL, Level(4, "all"), Level(1, "joined"), LEAVES),
]


@cache
def buckets_of(shape=(3, 4), k=1, alphabet="sizes") -> Buckets:
    known = catalogue(min(k + 1, max(shape)), k * STEPS)
    return Buckets.of(known, alphabet, *shape)


@cache
def tree_of(i: int, shape=(3, 4), k=1, alphabet="sizes") -> Hierarchy:
    return Hierarchy.of(buckets_of(shape, k, alphabet), LEVELS[i])


def matrix(tree: Hierarchy, level: int) -> np.ndarray:
    """The level as a matrix: one row a part, one column a bucket."""
    rows = np.zeros((tree.sizes[level], len(tree.buckets)))
    rows[tree.part[level], np.arange(len(tree.buckets))] = 1
    return rows
