"""A keyed hash of bytes to 128 bits (numba): SipHash-2-4 with the longer result.

Nobody who does not know the key can make two values meet, nor tell a value from its hash. The key
is drawn afresh for each reading of a source, and never kept.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_V0 = np.uint64(0x736F6D6570736575)
_V1 = np.uint64(0x646F72616E646F6D)
_V2 = np.uint64(0x6C7967656E657261)
_V3 = np.uint64(0x7465646279746573)
_LONGER, _SECOND = np.uint64(0xEE), np.uint64(0xDD)


@njit(cache=True, nogil=True)
def hashes(data, offsets, key):
    """Return two words for each value ``data[offsets[i]:offsets[i + 1]]``; `key` has two words."""
    found = np.empty((offsets.size - 1, 2), np.uint64)
    for i in range(offsets.size - 1):
        start, stop = offsets[i], offsets[i + 1]
        v0, v1 = key[0] ^ _V0, key[1] ^ _V1 ^ _LONGER
        v2, v3 = key[0] ^ _V2, key[1] ^ _V3
        at = start
        while at < stop:
            word = np.uint64(0)
            for j in range(min(8, stop - at)):
                word |= np.uint64(data[at + j]) << np.uint64(8 * j)
            if stop - at < 8:
                break
            v0, v1, v2, v3 = _taken_in(v0, v1, v2, v3, word)
            at += 8
        last = np.uint64(0)
        for j in range(stop - at):
            last |= np.uint64(data[at + j]) << np.uint64(8 * j)
        last |= np.uint64((stop - start) & 0xFF) << np.uint64(56)
        v0, v1, v2, v3 = _taken_in(v0, v1, v2, v3, last)
        v2 ^= _LONGER
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        found[i, 0] = v0 ^ v1 ^ v2 ^ v3
        v1 ^= _SECOND
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        found[i, 1] = v0 ^ v1 ^ v2 ^ v3
    return found


@njit(cache=True, nogil=True)
def _taken_in(v0, v1, v2, v3, word):
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@njit(cache=True, nogil=True)
def _turned(v, n):
    return (v << np.uint64(n)) | (v >> np.uint64(64 - n))


@njit(cache=True, nogil=True)
def _round(v0, v1, v2, v3):
    v0 += v1
    v1 = _turned(v1, 13) ^ v0
    v0 = _turned(v0, 32)
    v2 += v3
    v3 = _turned(v3, 16) ^ v2
    v0 += v3
    v3 = _turned(v3, 21) ^ v0
    v2 += v1
    v1 = _turned(v1, 17) ^ v2
    v2 = _turned(v2, 32)
    return v0, v1, v2, v3
