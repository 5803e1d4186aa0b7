"""The catalogue of some sizes alone: for footprints too wide for a whole one to be drawn.

Each size is drawn by itself, with a seed of its own, from the ellipses of the prior that have it:
what it gets is the same whichever other sizes are asked for. Sizes come from published bodies, so
all of this is public. It never sees data.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.geometry.grid import Grid
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.mechanisms.footprint.catalogue import Catalogue
from dpregions.mechanisms.footprint.ellipses import (
    CORNERS,
    ellipses_of_size,
    longest,
    size_prior,
)
from dpregions.mechanisms.footprint.sizes import (
    DIAMONDS,
    MOST_SIDE,
    diamond,
    known_sizes,
    patterns_kept,
)
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.witnesses import (
    CLEAR,
    LEAST,
    OF_A_SIZE,
    Patterns,
    Witnesses,
    clear_footprints,
    ragged,
    spread_witnesses,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_LARGE_CELLS = 256
"""Beyond so many cells a pattern has one witness, as it was drawn: it pins a body down to a small
part of a cell."""
_TIMES = 1 << 30
"""How often the likeliest size is drawn, as the catalogue's counts have it."""


def catalogue_of_sizes(
    side: int, bound: int, sizes: Iterable[tuple[int, int]], tuning: Tuning = TUNING
) -> Catalogue:
    """Return the catalogue of the patterns of some footprint sizes (height, width) alone.

    All must be among `known_sizes`; where none is asked for, it holds the size 1 x 1. A pattern
    has 16 witnesses or more, but one of a footprint of more than 256 cells has one: such
    a pattern leaves a body hardly any room. Its `prior` is `size_prior` among its own sizes, and
    its `times` are in these proportions: they are not numbers of draws.
    """
    wanted = sorted({(int(h), int(w)) for h, w in sizes}) or [(1, 1)]
    if not 1 <= side <= MOST_SIDE:
        raise ValueError(f"footprints {side} cells wide are wider than {MOST_SIDE}")
    known = known_sizes(side, bound)
    if not all(1 <= h <= side and 1 <= w <= side and known[h, w] for h, w in wanted):
        raise ValueError("some of these sizes no body within the bound has")
    law = longest(side, bound), tuning.least_aspect, tuning.length_power
    prior = size_prior(side, bound, *law[1:])
    found = [_of_size(h, w, bound, *law) for h, w in wanted]
    n = [len(one.draws) for one in found]
    spans = np.empty((sum(n), 2 * side - 1, 2), np.int16)
    spans[:] = 1, 0
    for last, one in zip(np.cumsum(n), found, strict=True):
        spans[last - len(one.draws) : last, : one.spans.shape[1]] = one.spans
    share = np.concatenate([one.draws / one.draws.sum() for one in found])
    heights, widths = np.repeat(np.array(wanted, np.int64), n, axis=0).T
    times = np.rint(_TIMES * share * (prior[heights, widths] / prior.max())).astype(np.int64)
    return Catalogue.of(
        side,
        np.ascontiguousarray(heights),
        np.ascontiguousarray(widths),
        spans=spans,
        times=np.maximum(times, 1),
        witnesses=np.concatenate([one.witnesses for one in found], dtype=np.int64),
        xy=np.concatenate([one.xy for one in found], dtype=np.int64),
        corners=np.concatenate([one.corners for one in found], dtype=np.int64),
    )


class _OfSize(NamedTuple):
    """The patterns of one size, in few bytes: how often each was drawn, and its witnesses."""

    spans: NDArray[np.int16]
    draws: NDArray[np.int64]
    witnesses: NDArray[np.uint8]
    xy: NDArray[np.int32]
    corners: NDArray[np.uint8]


# 30 MB at most: half of all sizes up to 65 cells wide.
@lru_cache(maxsize=1 << 11)
def _of_size(
    h: int, w: int, bound: int, most: float, least_aspect: float, length_power: float
) -> _OfSize:
    """Return the patterns of one size that ellipses have, or the one that a diamond has."""
    side, kept = max(h, w), patterns_kept(h, w)
    ellipses = ellipses_of_size(h, w, kept**2 // 2, kept, most, least_aspect, length_power)
    # Last, so that they are kept where there is room: each is but one body.
    diamonds = [diamond(h, w, bound, number) for number in range(DIAMONDS)]
    points = np.concatenate([ellipses.reshape(-1, 2), *diamonds]) + 1
    ends = np.concatenate([np.full(len(ellipses), CORNERS), np.full(len(diamonds), 4)])
    starts = np.concatenate([[0], np.cumsum(ends)])
    room = side + 2  # a cell on all sides: what reaches out of the footprint must be seen
    tight = Bound(side, bound - CLEAR, True)
    bodies = Outlines.of(points, starts, Grid(0, 0, 1, room, room), tight)
    places, spans, clear = clear_footprints(bodies, room, side)
    shown = np.flatnonzero(clear & (places == (1, 1, h, w)).all(axis=1))
    spans = spans[shown]
    numbers: dict[bytes, int] = {}
    same = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in spans])
    first, draws = np.unique(same, return_index=True, return_counts=True)[1:]
    # Of patterns drawn equally often those drawn first: they are spread over turns.
    chosen = np.sort(np.argsort(-draws, kind="stable")[:kept])
    number = np.full(len(draws), -1)
    number[chosen] = np.arange(len(chosen))
    pattern = number[same]
    vertex, offsets = ragged(bodies.offsets, shown[pattern >= 0])
    drawn = Witnesses(pattern[pattern >= 0], Outlines(bodies.xy[vertex] - STEPS, offsets))
    if h * w > _LARGE_CELLS:
        found = drawn[np.unique(drawn.pattern, return_index=True)[1]]
    else:
        heights, widths = np.full((2, len(chosen)), [[h], [w]])
        # A line that moves by 1 / side of a cell passes a vertex of the grid: one of side cells
        # leaves room for turns of 1 / side**2, and copies that pass one are made in vain.
        nearness = min(1 / (side + 1), 8 / (side + 1) ** 2)
        known = spans[first[chosen]]
        patterns = Patterns(side, bound, heights, widths, known, LEAST, OF_A_SIZE, nearness)
        found = spread_witnesses(patterns, drawn)
    return _OfSize(
        spans[first[chosen], : 2 * h - 1],
        draws[chosen],
        np.bincount(found.pattern).astype(np.uint8),
        found.outlines.xy.astype(np.int32),
        np.diff(found.outlines.offsets).astype(np.uint8),
    )
