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


def groups_of_patterns(catalogue: Catalogue) -> Ints:
    """Return the group of each of the catalogue's patterns."""
    from dpregions.mechanisms.footprint.kernel import shape_groups

    side = catalogue.side + 1
    itself = np.indices((side, side)).transpose(1, 2, 0)
    found: Ints = shape_groups(itself, catalogue.heights, catalogue.widths, catalogue.spans)
    return found
