"""Scramble 64 bits (numba): the finaliser of splitmix64, for keys and hashes.

Numbers that are alike come out unlike. It hides nothing: who knows the result knows the number.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True)
def scrambled(z):
    """Return 64 bits that all depend on all of `z`; one to one."""
    z += GOLDEN
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))
