"""Whether outlines are witnesses of their patterns, without compiled code.

A release file brings its witnesses along, and reading trusts nothing: each must be a convex outline
within the bound that touches just what its pattern says. Commands that read a file must start at
once, so this is numpy's; the rule is the one of `geometry/touch_kernel.py`, tested equal to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.geometry.lattice import STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH = 1 << 14
"""Outlines looked at together: it bounds the memory."""


def are_witnesses(
    xy: NDArray[np.int64],
    offsets: NDArray[np.int64],
    heights: NDArray[np.int64],
    widths: NDArray[np.int64],
    spans: NDArray[np.int16],
    pattern: NDArray[np.int64],
    bound: int,
) -> bool:
    """Say whether every outline has its pattern and is convex and at most `bound` steps long.

    Outlines have three corners at least, in lattice steps from their footprint's lower left.
    """
    for start in range(0, len(pattern), _BATCH):
        of = pattern[start : start + _BATCH]
        ends = offsets[start : start + len(of) + 1]
        corners, ends = xy[ends[0] : ends[-1]], ends - ends[0]
        size = np.stack([widths[of], heights[of]], axis=-1)
        body = np.repeat(np.arange(len(of)), np.diff(ends))
        inside = (corners >= 0) & (corners < size[body] * STEPS)
        if not (inside.all() and _convex(corners, ends) and _short(corners, ends, bound)):
            return False
        if not np.array_equal(_spans(corners, ends, spans.shape[1]), spans[of]):
            return False
    return True


def _later(ends: NDArray[np.int64], by: int) -> NDArray[np.int64]:
    """Return the corner so many places further round each outline, or back."""
    sizes = np.diff(ends)
    first, n = np.repeat(ends[:-1], sizes), np.repeat(sizes, sizes)
    return first + (np.arange(ends[-1]) - first + by) % n


def _convex(xy: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
    """Whether outlines turn left at every corner, and once round in all."""
    (x, y), following = (xy[_later(ends, 1)] - xy).T, _later(ends, 1)
    lower = (y < 0) | ((y == 0) & (x < 0))
    rounds = np.add.reduceat(lower & ~lower[following], ends[:-1])
    return bool((x * y[following] > y * x[following]).all() and (rounds == 1).all())


def _short(xy: NDArray[np.int64], ends: NDArray[np.int64], bound: int) -> bool:
    """Whether no two corners of an outline are further apart than the bound."""
    most = int(np.diff(ends).max(initial=0))
    apart = (((xy[_later(ends, by)] - xy) ** 2).sum(axis=1) for by in range(1, most // 2 + 1))
    return all(bool((square <= bound**2).all()) for square in apart)


def _spans(xy: NDArray[np.int64], ends: NDArray[np.int64], n_lines: int) -> NDArray[np.int64]:
    """Return the first and last cell column of convex outlines on each doubled row."""
    n, none = len(ends) - 1, 1 << 30
    low, high = np.full((n, n_lines), none), np.full((n, n_lines), -none)
    body = np.repeat(np.arange(n), np.diff(ends))
    col, row = (xy // STEPS).T
    np.minimum.at(low, (body, 2 * row), col)
    np.maximum.at(high, (body, 2 * row), col)
    before = xy[_later(ends, -1)]
    for line in range(1, int(row.max(initial=0)) + 1):
        at = line * STEPS
        # Counter-clockwise: the right side goes up, the left side down; one edge of each.
        for up, lower, upper in ((True, before, xy), (False, xy, before)):
            crossing = np.flatnonzero((lower[:, 1] < at) & (upper[:, 1] >= at))
            (x0, y0), (x1, y1), of = lower[crossing].T, upper[crossing].T, body[crossing]
            col = (x0 + (x1 - x0) * (at - y0) // (y1 - y0)) // STEPS
            for d in (2 * line - 2, 2 * line - 1, 2 * line):
                if up:
                    high[of, d] = np.maximum(high[of, d], col)
                else:
                    low[of, d] = np.minimum(low[of, d], col)
    hit = low <= high
    return np.stack([np.where(hit, low, 1), np.where(hit, high, 0)], axis=-1)
