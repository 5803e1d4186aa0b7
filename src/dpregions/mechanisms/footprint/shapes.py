"""Groups of shapes: how much of its footprint a body fills, and which way it leans.

Every region is in exactly one group, so counts of them over the whole area have sensitivity 1. A
group is a family of footprint sizes times a class of shapes; footprints that are one cell wide have
one shape and are all in the first. Everything here is public: it says how groups are numbered, and
which one a footprint or a pattern of the catalogue is in.
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

_FAMILIES_UP_TO = {1: 0, 2: 1, 3: 3, 6: 5, 12: 6}
"""How many families footprints of up to so many cells a side have; wider ones have one more."""


def n_groups(side: int) -> int:
    """Return how many groups footprints of up to `side` cells a side fall into."""
    families = next((n for most, n in _FAMILIES_UP_TO.items() if side <= most), 7)
    return 1 + CLASSES * families


def families(heights: Ints, widths: Ints) -> Ints:
    """Return the family of each size, from 0; -1 where a footprint is one cell wide.

    Few cells have few patterns, so small sizes have families of their own: 2 x 2, 2 x 3, 3 x 3,
    2 x more, then up to 6, up to 12 and more cells.
    """
    short, long = np.minimum(heights, widths), np.maximum(heights, widths)
    found = 4 + (long > 6) + (long > 12)
    found = np.where(short == 2, 3, found)
    for at, (a, b) in enumerate(((2, 2), (2, 3), (3, 3))):
        found = np.where((short == a) & (long == b), at, found)
    return np.where(short < 2, -1, found)


def groups_of(places: Ints, spans: NDArray[np.int16], filed: Ints) -> Ints:
    """Return the group of each footprint. Secret where footprints are.

    `places` and `spans` as in `Outlines.footprints`; `filed` is the size each is filed under.
    """
    from dpregions.mechanisms.footprint.kernel import shape_classes

    height, width = places[:, 2], places[:, 3]
    under = filed[height, width]
    family = families(under[:, 0], under[:, 1])
    found = shape_classes(height, width, spans)
    return np.where(family < 0, 0, 1 + CLASSES * family + found)


def groups_of_patterns(catalogue: Catalogue) -> Ints:
    """Return the group of each of the catalogue's patterns."""
    from dpregions.mechanisms.footprint.kernel import shape_classes

    h, w = catalogue.heights, catalogue.widths
    family = families(h, w)
    return np.where(family < 0, 0, 1 + CLASSES * family + shape_classes(h, w, catalogue.spans))
