"""Hot loops of the table of users (numba): look up, take the smaller key, move to a larger table.

A table is open addressing with linear probing; a user's slot follows from a hash with a seed, so
that nobody can choose ids that crowd. Which row of a user stays does not depend on their order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpregions.bit_mixing import scrambled

_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def hashed(users, seed):
    """Return 64 bits for each user, a function of its words and a seed."""
    found = np.empty(users.shape[0], np.uint64)
    for i in range(users.shape[0]):
        z = seed
        for j in range(users.shape[1]):
            z = scrambled(z ^ users[i, j])
        found[i] = z
    return found


@njit(cache=True, nogil=True)
def put(rows, hashes, users, keys, marks, used, t_users, t_keys, t_marks, won):
    """Put rows into a table that has room for them; return how many users are new.

    Of a user's rows the one with the smallest key stays; equal keys are equal regions. `won[i]`
    says whether row i stays for now.
    """
    n, new = used.size, 0
    for row in rows:
        at = np.int64(((hashes[row] & _LOW) * np.uint64(n)) >> np.uint64(32))
        while used[at] and not _same(t_users, at, users, row):
            at += 1
            if at == n:
                at = 0
        if not used[at]:
            used[at] = True
            new += 1
            t_users[at] = users[row]
        elif keys[row, 0] > t_keys[at, 0] or (
            keys[row, 0] == t_keys[at, 0] and keys[row, 1] >= t_keys[at, 1]
        ):
            continue
        t_keys[at], t_marks[at] = keys[row], marks[row]
        won[row] = True
    return new


@njit(cache=True, nogil=True)
def _same(t_users, at, users, row):
    same = True
    for j in range(users.shape[1]):
        same &= t_users[at, j] == users[row, j]
    return same
