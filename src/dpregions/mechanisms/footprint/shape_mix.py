"""The mix of shapes: noisy counts of them over the whole area, and what they make of the prior.

The catalogue says how often each pattern of a footprint size occurs; real regions may be thinner,
fuller or lean another way, all of them alike. Sees noisy counts and public values alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpregions.mechanisms.footprint.fits import combine, split
from dpregions.mechanisms.footprint.shapes import CLASSES, groups_of_patterns, n_groups
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.least_squares import sums

if TYPE_CHECKING:
    from dpregions.arrays import Floats
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.measuring import Measured

_ROUNDS = 8
"""Of fitting patterns' weights to groups' counts: a group holds several sizes."""


def reshaped(
    known: Catalogue,
    sizes: Floats,
    noisy: Floats,
    variance: float,
    tuning: Tuning = TUNING,
) -> Catalogue:
    """Return the catalogue with weights of patterns moved towards noisy counts of their groups.

    `sizes` says how many regions of each footprint size there are, ``[h, w]``, as far as that is
    known. Each family's regions are split among its classes of shapes as the covert fit splits a
    part: between what the catalogue expects and what was counted, none negative.
    """
    group = groups_of_patterns(known)
    h, w = known.heights, known.widths
    weights, n = known.weights, n_groups(known.side)
    expected = np.bincount(group, weights * sizes[h, w], n).astype(np.float64)
    there = np.flatnonzero((expected > 0) & (np.arange(n) > 0))
    if not len(there):
        return known
    family, up = np.unique((there - 1) // CLASSES, return_inverse=True)
    total = sums(up, expected[there], len(family))
    believed = max(tuning.believed, tuning.believed_mix * math.sqrt(len(there)))
    noise = np.full(len(there), variance)
    wanted = expected.copy()
    wanted[there] = np.maximum(
        split(total, up, expected[there], noisy[there], noise, tuning, believed),
        tuning.least_mix * expected[there],
    )
    size = h * (known.side + 1) + w
    for _ in range(_ROUNDS):
        now = np.bincount(group, weights * sizes[h, w], n)
        weights = weights * np.divide(wanted, now, out=np.ones(n), where=now > 0)[group]
        weights = weights / np.bincount(size, weights)[size]
    return replace(known, weights=weights)


def shaped(measured: Measured, tuning: Tuning = TUNING) -> Measured:
    """Return the same measurements, on buckets whose shapes are mixed as they say."""
    from dpregions.mechanisms.footprint.expectation import expected_letters

    if measured.shapes is None:
        return measured
    tree, buckets = measured.hierarchy, measured.hierarchy.buckets
    total = max(float(combine(measured)[0][0][0]), 1.0)
    letters = np.bincount(buckets.letters, expected_letters(measured, tuning))
    sizes = np.zeros((buckets.side + 1, buckets.side + 1))
    sizes[buckets.heights, buckets.widths] = total * letters / letters.sum()
    known = reshaped(
        buckets.catalogue, sizes, measured.shapes.values, measured.shapes.variance, tuning
    )
    return replace(measured, hierarchy=replace(tree, buckets=buckets.shaped_as(known)))
