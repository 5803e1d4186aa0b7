"""Sizes of footprints: which there are within a bound, and which one a footprint is filed under.

A size is there when a diamond has it, the body of that footprint whose extent is as small as can
be, with room to move by `CLEAR` lattice steps. Everything here follows from the bound and the
number of cells alone and is quick also where catalogues are large: it comes before any noise. It
never sees data.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpregions.geometry.grid import Grid
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.mechanisms.footprint.witnesses import CLEAR, clear_footprints

if TYPE_CHECKING:
    from dpregions.arrays import Bools, Floats, Ints

MOST_SIDE = 65
"""Widest footprint of any catalogue, in cells: a limit of the file format, which refuses more."""
PATTERNS_A_FOOTPRINT = 64
"""Patterns kept of each size: another limit of the file format."""
LEAST_PATTERNS, _FULL_CELLS = 12, 24
"""Patterns kept of large footprints, and the cells up to which all may be kept; between, fewer as
there are more cells. This is for catalogues of some sizes alone: of large footprints nearly every
ellipse has a pattern of its own, and a dozen that are spread evenly over turns stand for all."""

_INSET = 0.23
"""How far a diamond's tips reach into their cells: far enough to be clear of the sides."""
_WAISTS = (0.6, 0.47, 0.29), (0.57, 0.43, 0.31), (0.63, 0.45, 0.27)
"""Where a diamond is widest: as a share of one that spans one or two cells, or within the middle
cell of a longer one, odd or even. Any fractions do whose sides pass no vertex of the grid within
`CLEAR`: round ones, such as a half, would. The others stand in where the first pass one after all,
as 14 of 175,000 did within random bounds of 40 to 64 cells. Not tuned: a diamond only sees to it
that a footprint has a witness."""
DIAMONDS = len(_WAISTS)
"""Diamonds that are tried for each size."""


def diamond(h: int, w: int, bound: int, number: int = 0) -> Floats:
    """Return the corners of a diamond with footprint h x w whose extent is as small as can be.

    There are `DIAMONDS` of each size. The first is one of a whole catalogue's bodies, which has
    ellipses besides where the bound is a part of a cell: there it is too long over one cell.
    """
    (left, x, right), (bottom, y, top) = (_tips_and_waist(n, bound, number) for n in (w, h))
    return np.array([[left, y], [x, bottom], [right, y], [x, top]])


def _tips_and_waist(n: int, bound: int, number: int) -> tuple[float, float, float]:
    """Return where a diamond over n cells begins, is widest and ends along an axis."""
    # To touch n cells it must span n - 2 whole ones. What the bound leaves is for its two tips,
    # and half of that is not used: outlines are snapped, moved and held against a tighter bound.
    spanned = max(n - 2, 0) if number else n - 2
    inset = min(_INSET, max(bound / STEPS - spanned, 0.0) / 4)
    low, high = (1 - inset, n - 1 + inset) if n > 1 else (0.5 - inset, 0.5 + inset)
    short, odd, even = _WAISTS[number]
    if n <= 2:  # its whole extent may be far less than a cell
        return low, low + short * (high - low), high
    return low, n // 2 + (odd if n % 2 else even), high


def patterns_kept(height: int, width: int) -> int:
    """Return how many patterns of a size a catalogue of some sizes keeps at most."""
    fewer = math.isqrt(PATTERNS_A_FOOTPRINT**2 * _FULL_CELLS // (height * width))
    return min(max(fewer, LEAST_PATTERNS), PATTERNS_A_FOOTPRINT)


@lru_cache(maxsize=64)
def known_sizes(side: int, bound: int) -> Bools:
    """Say which footprints ``[h, w]`` up to `side` cells some body within `bound` steps has.

    An ellipse of the catalogue keeps a larger distance from the bound than a diamond does, and
    spans as many whole cells: a size without a diamond has none.
    """
    known = np.zeros((side + 1, side + 1), np.bool_)
    big = side + 1
    tight = Bound(side, bound - CLEAR, True)
    for number in range(DIAMONDS):
        sizes = np.argwhere(~known[1:, 1:]) + 1
        if not len(sizes):
            break
        points = np.concatenate([diamond(h, w, bound, number) for h, w in sizes.tolist()])
        starts = 4 * np.arange(len(sizes) + 1)
        bodies = Outlines.of(points, starts, Grid(0, 0, 1, big, big), tight)
        places, _, clear = clear_footprints(bodies, big, side)
        there = clear & (places[:, 2:] == sizes).all(axis=1)
        known[tuple(sizes[there].T)] = True
    known.flags.writeable = False
    return known


def filed_under(known: Bools) -> Ints:
    """Return the size that each footprint is filed under: its own, or cut down to a known one.

    ``[h, w]`` first, then the height and the width. Only a bound within a few lattice steps of
    a whole number of cells leaves a footprint without a witness. The rule looks at the footprint
    alone. The size 1 x 1 must be known.
    """
    if not known[1, 1]:
        raise ValueError("no body is known that touches one cell alone")
    side = len(known) - 1
    table = np.ones((side + 1, side + 1, 2), np.int64)
    for h in range(1, side + 1):
        for w in range(1, side + 1):
            if known[h, w]:
                table[h, w] = h, w
            else:  # one cell less of the longer side, whose own entry stands already
                table[h, w] = table[h - 1, w] if h >= w else table[h, w - 1]
    return table
