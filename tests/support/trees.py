"""Small hierarchies of levels, levels as plain matrices, and measurements made by hand."""

from __future__ import annotations

from functools import cache

import numpy as np

from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.levels import MIX, WHOLE, Hierarchy, Level
from dpregions.mechanisms.footprint.measuring import Measured

STEPS = 1 << 20
LEAVES = Level(1, "letters")
LEVELS = [
    (WHOLE, LEAVES),
    (WHOLE, Level(2, "all"), LEAVES),
    (WHOLE, Level(2, "all"), Level(2, "classes"), LEAVES),
    (WHOLE, Level(4, "all"), Level(2, "all"), Level(1, "all"), LEAVES),
    (WHOLE, Level(4, "all"), Level(4, "classes"), Level(1, "classes"), LEAVES),
    (WHOLE, Level(4, "all"), Level(1, "joined"), LEAVES),
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


def measured_of(tree: Hierarchy, values, variances, mix=None, mix_variance=np.inf) -> Measured:
    """Measurements of a tree's levels, in their order: None where a level was not measured.

    Where the mix of letters was measured too, it is given with its variance.
    """
    given = dict(zip((*tree.levels, MIX), (*values, mix), strict=True))
    noise = dict(zip((*tree.levels, MIX), (*variances, mix_variance), strict=True))
    counts = {level: np.asarray(value) for level, value in given.items() if value is not None}
    spread = {level: noise[level] for level in counts}
    return Measured.of(tree, counts, spread, 1, lambda variance, _: float(variance))
