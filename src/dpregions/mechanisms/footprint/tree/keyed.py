"""Counts by key: how many points lie below any node. Secret where the points are regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.mechanisms.footprint.tree.ladder import Ladder


class KeyedCounts:
    """Points by their keys, in order, and how many have each."""

    def __init__(self, ladder: Ladder, keys: Ints, counts: Ints) -> None:
        self._ladder, self._keys = ladder, keys
        self._sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])

    def of_nodes(self, level: int, nodes: Ints) -> Ints:
        """Return how many points lie in some nodes of a level."""
        shift = self._ladder.rungs[level].shift
        first, last = (np.searchsorted(self._keys, at << shift) for at in (nodes, nodes + 1))
        found: Ints = self._sums[last] - self._sums[first]
        return found

    def of_sizes(self, tall: Ints, wide: Ints) -> Ints:
        """Return how many points lie in groups of sizes: those of heights by those of widths."""
        _, _, height, width = self._ladder.points(self._keys)
        n = int(wide.max()) + 1
        found = np.zeros((int(tall.max()) + 1) * n, np.int64)
        np.add.at(found, tall[height + 1] * n + wide[width + 1], np.diff(self._sums))
        return found
