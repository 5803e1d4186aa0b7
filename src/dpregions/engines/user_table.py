"""The table of users: for each, the smallest key so far and what that region adds. Secret.

Compact: some 40 bytes for each user with whole numbers as ids and one mark, 50 with text. It lies
in shards that grow one by one, so that growing takes little more, and threads meet seldom. Beyond a
limit of bytes it keeps one half of its users, told by a hash: the others are for another pass.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Bools, Ints
    from dpregions.engines.contributions import Contributions

SHARDS = 16
"""Parts of a table, by four bits of the hash."""
_FULL = 0.8
_GROWTH = 1.25
_LEAST = 64
_MOST_SHARES = 1 << 24


class Share(NamedTuple):
    """Users whose hash leaves a rest; a share and the other half of it are all of the one above."""

    of: int = 1
    rest: int = 0

    def halves(self) -> tuple[Share, Share]:
        """Return the two shares that this one consists of."""
        return Share(2 * self.of, self.rest), Share(2 * self.of, self.rest + self.of)

    def holds(self, hashes: NDArray[np.uint64]) -> Bools:
        """Say whose hash is in this share."""
        bits = hashes >> np.uint64(32) & np.uint64(0xFFFFFF)
        return bits & np.uint64(self.of - 1) == np.uint64(self.rest)


class UserTable:
    """What counts for each user of one share. Secret.

    Parameters
    ----------
    width, n_marks : int
        Words of a user, and marks of a region.
    share : Share
        Whom it holds.
    seed : int
        Of the hash, the same for all passes over one source.
    """

    def __init__(self, width: int, n_marks: int, share: Share, seed: int) -> None:
        self.share = share
        self._seed = np.uint64(seed)
        self._shards = [_Shard(width, n_marks, self._seed) for _ in range(SHARDS)]

    @staticmethod
    def new_seed() -> int:
        """Return a seed that nobody knows."""
        return int.from_bytes(os.urandom(8), "little")

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(shard.nbytes for shard in self._shards)

    @property
    def is_divisible(self) -> bool:
        """Whether half of its users would take less memory."""
        return self.share.of < _MOST_SHARES and sum(s.n for s in self._shards) > SHARDS * _LEAST

    def put(self, found: Contributions) -> Bools:
        """Take in contributions; say which of them stand for their users now."""
        from dpregions.engines.user_kernel import hashed

        hashes = hashed(found.user, self._seed)
        shard = (hashes >> np.uint64(60)).astype(np.int64)
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(SHARDS + 1))
        won = np.zeros(len(hashes), np.bool_)
        for i, part in enumerate(self._shards):
            rows = order[ends[i] : ends[i + 1]]
            with part.lock:  # the share is looked at within: it may have been halved just now
                part.put(rows[self.share.holds(hashes[rows])], hashes, found, won)
        return won

    def halve(self) -> Share:
        """Keep one half of the users, and from now on take in no others; return the other half."""
        self.share, other = self.share.halves()
        for part in self._shards:
            with part.lock:
                part.keep(self.share)
        return other

    def marks(self) -> Ints:
        """Return the marks of all users."""
        return np.concatenate([part.marks[part.used] for part in self._shards])


class _Shard:
    """Users whose hashes start alike."""

    def __init__(self, width: int, n_marks: int, seed: np.uint64) -> None:
        self.lock = threading.Lock()
        self.n, self._seed = 0, seed
        self._make(_LEAST, width, n_marks)

    def _make(self, room: int, width: int, n_marks: int) -> None:
        self.used = np.zeros(room, np.bool_)
        self._users = np.empty((room, width), np.uint64)
        self._keys = np.empty((room, 2), np.uint64)
        self.marks = np.empty((room, n_marks), np.int64)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.used, self._users, self._keys, self.marks))

    def put(self, rows: Ints, hashes: NDArray[np.uint64], found: Contributions, won: Bools) -> None:
        """Take in some rows, in a larger table where they might fill this one."""
        from dpregions.engines.user_kernel import put

        wanted = (self.n + len(rows)) / _FULL
        if wanted > len(self.used):
            self._rebuild(max(wanted, _GROWTH * len(self.used)), Share())
        held = self.used, self._users, self._keys, self.marks
        self.n += put(rows, hashes, *found, *held, won)

    def keep(self, share: Share) -> None:
        """Keep the users of a share."""
        self._rebuild(_LEAST, share)

    def _rebuild(self, room: float, share: Share) -> None:
        """Move to a table with room for so many, and leave out who is not of a share."""
        from dpregions.engines.user_kernel import hashed, put

        user, key, marks = (a[self.used] for a in (self._users, self._keys, self.marks))
        hashes = hashed(user, self._seed)
        rows = np.flatnonzero(share.holds(hashes))
        self._make(int(max(room, len(rows) / _FULL)) + 1, user.shape[1], marks.shape[1])
        held = self.used, self._users, self._keys, self.marks
        won = np.empty(len(user), np.bool_)
        self.n = put(rows, hashes, user, key, marks, *held, won)
