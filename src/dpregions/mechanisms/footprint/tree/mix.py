"""The mix of sizes in the whole area: noisy counts of it, and what they make of the prior.

Few sizes are counted each by itself; of many, heights and widths apart, half of the share each.
Sees noisy counts and public values alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.mechanisms.footprint.fits import split
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.tree.ladder import Ladder

_MOST_JOINT = 4
_ROUNDS = 30


class Grouping(NamedTuple):
    """Groups of sizes that are counted: of each height and of each width, the group."""

    tall: Ints
    wide: Ints


def groupings(side: int) -> list[Grouping]:
    """Return what is counted of sizes up to `side`, in order; each is a partition of them."""
    if side == 1:
        return []
    each = np.maximum(np.arange(side + 1) - 1, 0)
    if side <= _MOST_JOINT:
        return [Grouping(each, each)]
    return [Grouping(each, np.zeros_like(each)), Grouping(np.zeros_like(each), each)]


def mix_of(
    ladder: Ladder, total: float, noisy: list[Floats], variance: float, tuning: Tuning = TUNING
) -> Floats:
    """Return how many regions of each size are expected, up to a factor.

    The prior, moved towards the noisy counts as the covert fit splits a part; counts of heights
    and widths apart keep what the prior has of their going together.
    """
    total = max(total, 1.0)
    prior = ladder.prior / ladder.prior.sum() * total
    wanted = []
    for values, (tall, wide) in zip(noisy, groupings(ladder.side), strict=True):
        mean = np.zeros((int(tall.max()) + 1, int(wide.max()) + 1))
        np.add.at(mean, np.ix_(tall[1:], wide[1:]), prior[1:, 1:])
        # Of many groups several stray by two standard deviations by chance.
        believed = max(tuning.believed, tuning.believed_mix * math.sqrt(mean.size))
        whole, noise = np.zeros(mean.size, np.int64), np.full(mean.size, variance)
        found = split(np.array([total]), whole, mean.ravel(), values, noise, tuning, believed)
        wanted.append(np.maximum(found.reshape(mean.shape), tuning.least_mix * mean))
    mix = prior.copy()
    if len(wanted) == 1:
        # Noise is believed too: sizes that no body on this grid has stay at 0.
        mix[1:, 1:] = np.where(prior[1:, 1:] > 0, wanted[0], 0.0)
    for _ in range(_ROUNDS if len(wanted) == 2 else 0):
        for of_groups in wanted:
            now = mix[1:, 1:].sum(axis=int(of_groups.shape[0] > 1), keepdims=True)
            mix[1:, 1:] *= np.divide(of_groups, now, out=np.zeros_like(now), where=now > 0)
    return mix
