"""Groups of shapes: how much of its footprint a body fills, and which way it leans.

Every region is in exactly one group, so counts of them over the whole area have sensitivity 1. A
group is a family of footprint sizes times a class of shapes. Few cells have few patterns, so small
sizes have families of their own: 2 x 2, 2 x 3, 3 x 3, 2 x more, then up to 6, up to 12 and more
cells. Footprints that are one cell wide have one shape, and are all in the first group. Everything
here is public; `kernel.shape_group` says which group a footprint is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Ints
    from dpregions.mechanisms.footprint.catalogue import Catalogue

CLASSES = 15
"""Of shapes: five of how full a footprint is, times three of which way it leans."""

_FULL = (0.4, 0.6, 0.8, 0.95)
"""Shares of touched cells that classes begin at."""

_AT_ONCE = 1 << 20
"""Cells of patterns that are looked at together: it bounds the memory."""
_FAMILIES_UP_TO = {1: 0, 2: 1, 3: 3, 6: 5, 12: 6}
"""How many families footprints of up to so many cells a side have; wider ones have one more."""


def n_groups(side: int) -> int:
    """Return how many groups footprints of up to `side` cells a side fall into."""
    families = next((n for most, n in _FAMILIES_UP_TO.items() if side <= most), 7)
    return 1 + CLASSES * families


def groups_of_patterns(catalogue: Catalogue) -> Ints:
    """Return the group of each of the catalogue's patterns, as `kernel.shape_group` has it.

    In whole-array steps: a release is loaded by them, and must not wait for a compiler.
    """
    step = max(_AT_ONCE // catalogue.side**2, 1)
    parts = (slice(start, start + step) for start in range(0, len(catalogue), step))
    found = [
        _groups(catalogue.heights[at], catalogue.widths[at], catalogue.spans[at]) for at in parts
    ]
    return np.concatenate(found)


def _groups(heights: Ints, widths: Ints, spans: NDArray[np.int16]) -> Ints:
    h, w = heights[:, None, None], widths[:, None, None]
    row, col = np.ogrid[: heights.max(), : widths.max()]
    first, last = (spans[:, ::2, end][:, : heights.max(), None] for end in (0, 1))
    arm = np.where((row < h) & (col < w), (2 * row - h + 1) * (2 * col - w + 1), 0)
    touched = (row < h) & (first <= col) & (col <= last)
    filled, lean, whole = (v.sum(axis=(1, 2)) for v in (touched, arm * touched, np.abs(arm)))
    full = filled / (heights * widths)
    level = sum((full >= least).astype(np.int64) for least in _FULL)
    leaning = (12 * lean > whole).astype(np.int64) - (12 * lean < -whole)
    short, long = (end(heights, widths) for end in (np.minimum, np.maximum))
    family = np.where(short == 2, 3, 4 + (long > 6) + (long > 12))
    family = np.where(long <= 3, short + long - 4, family)
    found: Ints = np.where(short < 2, 0, 1 + CLASSES * family + 3 * level + 1 + leaning)
    return found
