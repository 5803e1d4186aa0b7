"""How many components of a partition one body can touch, proven before any body is seen.

By Jung's theorem a body of diameter B lies in a disc of radius B / sqrt(3) about one of its own
points, so it touches nothing beyond that radius. Owns the search for the disc that reaches most.
The result is never below the truth, as noise is calibrated to it. Everything here is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from dpregions.errors import Argument, GridError, InputError
from dpregions.lengths import whole_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MOST_SQUARES = 2_000_000
"""Squares of centres looked at before a bound that is not the maximum will do."""

_WIDEST = 5 << 28
"""No partition is so wide in lattice steps: an area has 2**30. Products stay exact below it."""

_MOST_BUCKETS = 1 << 12
"""Along a side, where all lies almost on one line."""


@dataclass(frozen=True)
class Reach:
    """How many components the best disc reaches."""

    most: int
    """No disc reaches more."""
    found: int
    """As many as the disc about `centre` reaches: `most`, unless the search was cut short."""
    centre: tuple[int, int]
    """Where that is, in lattice steps."""


def most_touched(
    segments: ArrayLike, owners: ArrayLike, diameter: int, *, euler: bool, cap: int | None = None
) -> int:
    """Return the most components that one body of so large a diameter touches, or may touch.

    With `euler` every body has F - E + V = 1, so one that touches E edges touches 2 E + 1
    components, and edges alone need to be reached. Without, each component counts by itself.

    Parameters
    ----------
    segments : int array (m, 4)
        What components consist of, as x, y, x, y in lattice steps: with `euler` those of the
        edges; without, also those of the faces' rings (the border's too) and each vertex as a
        segment without length.
    owners : int array (m,)
        The number of the component that each segment belongs to; a component counts once.
    diameter : int
        The bound on bodies in lattice steps, as enforced.
    euler : bool
        Whether F - E + V = 1 is enforced for each body.
    cap : int, optional
        A lower number that is enforced. It is odd where `euler` holds, as such counts are.

    Examples
    --------
    A cross of four edges about one vertex. A body of diameter 3 may touch all that there is:

    >>> cross = [[0, 0, 9, 0], [0, 0, 0, 9], [0, 0, -9, 0], [0, 0, 0, -9]]
    >>> most_touched(cross, range(4), 3, euler=True)
    9
    """
    reached = widest_reach(segments, owners, diameter).most
    # A disc that reaches no segment lies in one face. One that reaches any reaches its own face's
    # ring first, so that faces without a segment in reach are never touched beside others.
    bound = 2 * reached + 1 if euler else max(reached, 1)
    if cap is None:
        return bound
    most = odd_cap(cap) if euler else whole_number(cap, "cap", GridError)
    return min(most, bound)


def odd_cap(cap: int) -> int:
    """Return a cap on touched components: where F - E + V = 1, a body touches an odd number."""
    most = whole_number(cap, "cap", GridError)
    if most % 2 == 0:
        raise GridError(
            Argument("cap", str(most)),
            f" is even: a region touches an odd number of components here (F - E + V = 1). "
            f"Use {most - 1} or {most + 1}",
        )
    return most


def widest_reach(
    segments: ArrayLike, owners: ArrayLike, diameter: int, most_squares: int = MOST_SQUARES
) -> Reach:
    """Return the most components within diameter / sqrt(3) of any one point.

    Branch and bound on squares of lattice points, exact: a square whose points cannot reach more
    than was found is left, any other split. A point of the plane has a lattice point within
    sqrt(1/2), and distances are off by less than 2**-18, so with two steps added to the radius no
    point of the plane reaches more than the best lattice point. Nor need points outside the convex
    hull be asked: the nearest point of the hull is nearer to all that is in it.

    Parameters
    ----------
    segments, owners, diameter
        As for `most_touched`.
    most_squares : int
        If so many squares do not settle it, `most` is above the maximum; it still holds.
    """
    parts = np.ascontiguousarray(segments, np.int64).reshape(-1, 4)
    diameter, n_owners = index(diameter), np.size(owners)
    if diameter < 0 or n_owners != len(parts):
        raise InputError(
            f"{len(parts)} segments, {n_owners} owners and a diameter of {diameter} steps: give "
            f"one owner for each segment, and a diameter of 0 or more"
        )
    if len(parts) == 0:
        return Reach(0, 0, (0, 0))
    from dpregions.geometry.jung_kernel import bucketed, search

    _, owner = np.unique(np.asarray(owners, np.int64), return_inverse=True)
    ends = parts.reshape(-1, 2)
    extent = int(np.ptp(ends, axis=0).max())
    if extent >= _WIDEST:
        raise InputError(f"segments over {extent} steps: a lattice has at most {_WIDEST - 1}")
    radius = min(math.isqrt(diameter**2 // 3) + 1, _WIDEST * 2) + 2
    buckets = _buckets_over(ends)
    root = 1 << extent.bit_length()
    offsets, members = bucketed(parts, buckets)
    found = search(parts, owner, radius, buckets, offsets, members, root, most_squares)
    most, best, x, y = map(int, found)
    return Reach(most, best, (x, y))


def _buckets_over(ends: NDArray[np.int64]) -> tuple[int, int, int, int, int]:
    """Return equal squares over all points, about one for each: corner, side, columns and rows."""
    (x0, y0), (width, height) = ends.min(axis=0).tolist(), (np.ptp(ends, axis=0) + 1).tolist()
    side = max(math.isqrt(2 * width * height // len(ends)), max(width, height) // _MOST_BUCKETS, 1)
    return x0, y0, side, width // side + 1, height // side + 1
