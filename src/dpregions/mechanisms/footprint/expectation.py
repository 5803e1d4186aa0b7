"""What each bucket is expected to hold, where that was not measured: prior, mix, surroundings.

Only shares matter: how a measured count is to be split among the buckets below it. Sizes of
footprints follow the public prior, or a noisy count of each over the area; places follow the
density of regions around them, as the noisy counts have it. Nothing here sees exact data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpregions.mechanisms.footprint.fits import combine, covert_fit, split
from dpregions.mechanisms.footprint.levels import letter_groups
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from dpregions.arrays import Floats
    from dpregions.mechanisms.footprint.measuring import Measured


def expected_buckets(measured: Measured, tuning: Tuning = TUNING) -> Floats:
    """Return how much each bucket is expected to hold beforehand, up to a factor.

    As `expected_letters` says, but within each of the finest measured parts by the density of
    regions around each bucket, which neighbouring parts tell about: a block beside a crowded
    one holds more towards it. Parts keep their sums, so what was measured is not used twice.
    """
    letters = expected_letters(measured, tuning)
    tree, finest = measured.hierarchy, measured.finest
    if finest in (0, len(tree.levels) - 1):
        return letters
    part, n = tree.part[finest], tree.sizes[finest]
    around = _Surroundings(measured, tuning.reach * tree.levels[finest].block)
    held = covert_fit(measured, letters, tuning)
    if not held.any():
        return letters
    from dpregions.mechanisms.footprint import kernel

    inside, share = np.bincount(part, held, n), np.bincount(part, letters, n)
    even = around.sums(around.lattice(letters))[around.at] * (held.sum() / letters.sum())
    found, lattice = letters, around.lattice(held)
    for i in range(tuning.smoothings):
        if i:
            lattice = kernel.on_lattice(found, inside, part, around.at, len(lattice))
        found = kernel.dense_shares(
            letters, around.sums(lattice), around.at, even, tuning.even_density, part, n
        )
    return share[part] * found


class _Surroundings:
    """Sums over what lies around buckets, nearer ones weighing more, as a bell curve has it."""

    def __init__(self, measured: Measured, reach: float) -> None:
        buckets = measured.hierarchy.buckets
        row, col = buckets.places
        # Middles of footprints lie on cells, sides and corners: the lattice of half cells.
        row = 2 * row + buckets.heights[buckets.letters] - 1
        col = 2 * col + buckets.widths[buckets.letters] - 1
        self._shape = 2 * buckets.n_rows - 1, 2 * buckets.n_cols - 1
        self.at = row * self._shape[1] + col
        steps = np.arange(math.ceil(8 * reach) + 1)  # up to four standard deviations
        self._bell = np.exp(-0.5 * (steps / (2 * reach)) ** 2)

    def lattice(self, values: Floats) -> Floats:
        """Return the sum of buckets' values at each place of the lattice."""
        n = self._shape[0] * self._shape[1]
        return np.bincount(self.at, values, n).astype(np.float64, copy=False)

    def sums(self, lattice: Floats) -> Floats:
        """Return the weighted sum around each place of the lattice."""
        from dpregions.mechanisms.footprint.kernel import bell_sums

        return bell_sums(lattice.reshape(self._shape), self._bell).ravel()


def expected_letters(measured: Measured, tuning: Tuning = TUNING) -> Floats:
    """Return how much each bucket is expected to hold beforehand, up to a factor.

    The catalogue's prior, or what a measured mix of letters makes of it, with each group of
    letters weighed by its noisy total over the area at the finest level that tells letters
    apart. Groups lost in the noise keep a little.
    """
    tree, buckets = measured.hierarchy, measured.hierarchy.buckets
    weight = (_mix(measured, tuning) / np.diff(buckets.starts))[buckets.letters]
    for level in range(len(tree.levels) - 1, -1, -1):
        noisy = measured.levels[level]
        if noisy is None or tree.levels[level].letters == "all":
            continue
        group = letter_groups(buckets, tree.levels[level].letters)[buckets.letters]
        of_part = np.zeros(tree.sizes[level], np.int64)
        of_part[tree.part[level]] = group
        total = np.bincount(of_part, noisy.values)
        noise = np.sqrt(np.bincount(of_part) * noisy.variance)
        least = tuning.group_floor * noise
        total = np.maximum(total - tuning.group_discount * noise, least)
        return weight * (total / np.bincount(group, weight))[group]
    return weight


def _mix(measured: Measured, tuning: Tuning) -> Floats:
    """Return how many regions of each letter are expected, up to a factor.

    By the prior; or, where the mix was measured, the best total of all regions split as the
    covert fit splits a part: between prior and measurement, none negative, the sum kept. Then
    each letter is left a little.
    """
    prior = measured.hierarchy.buckets.weights
    if measured.mix is None:
        return prior
    total = max(float(combine(measured)[0][0][0]), 1.0)
    mean = total * prior / prior.sum()
    noise = np.full(len(mean), measured.mix.variance)
    whole = np.zeros(len(mean), np.int64)
    # Of a hundred sizes several stray by two standard deviations by chance.
    believed = max(tuning.believed, tuning.believed_mix * math.sqrt(len(mean)))
    found = split(np.array([total]), whole, mean, measured.mix.values, noise, tuning, believed)
    return np.maximum(found, tuning.least_mix * mean)


def mix_doubt(measured: Measured) -> float:
    """Return how little a measured mix says about sizes: 0 next to without noise, 1 nothing.

    The standard error of the mean size beside the prior's standard deviation of sizes, which
    is about how far real means stray from the prior's.
    """
    if measured.mix is None:
        return 0.0
    buckets = measured.hierarchy.buckets
    size = (buckets.heights + buckets.widths).astype(np.float64)
    off = size - np.average(size, weights=buckets.weights)
    spread = math.sqrt(np.average(off**2, weights=buckets.weights))
    error = math.sqrt(measured.mix.variance * (off**2).sum())
    total = max(float(combine(measured)[0][0][0]), 1.0)
    return min(error / (total * spread), 1.0) if spread else 0.0
