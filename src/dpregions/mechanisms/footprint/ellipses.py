"""The random ellipses that the prior of shapes and sizes rests on, and those of one size alone.

As long as `longest` times a uniform number to `length_power`, as slim as `least_aspect` at most,
turned and placed at random. Owns their law: how many there are, their outlines, how wide an
outline is, the prior of footprint sizes that follows, and draws given a size. Public parameters
and fixed seeds alone; nothing here sees data.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.geometry.lattice import STEPS
from dpregions.mechanisms.footprint.sizes import known_sizes
from dpregions.mechanisms.footprint.witnesses import CLEAR

if TYPE_CHECKING:
    from dpregions.arrays import Floats

CORNERS = 12
"""Corners of an ellipse's outline: a limit of the file format, which refuses more."""
_ELLIPSES, _ELLIPSES_PER_CELL = 40_000, 400
"""Ellipses drawn, and more for each cell of the largest footprint: as many as take a second."""
_SAMPLES, _BATCH = 1 << 19, 1 << 16
"""Ellipses whose extents give the prior of sizes, and how many are looked at together."""
_SHAPES = 1 << 13
"""Turns and aspects that the ellipses of one size are chosen among."""
_SPREAD = 0.8191725133961645, 0.6710436067037893, 0.5497004779019703
"""Multiples of these three, less whole numbers, fill a cube evenly."""
_GOLDEN = (5**0.5 - 1) / 2


def n_ellipses(side: int) -> int:
    """Return how many ellipses a whole catalogue is drawn from."""
    return _ELLIPSES + _ELLIPSES_PER_CELL * side**2


def longest(side: int, bound: int) -> float:
    """Return the length of the longest ellipse, in cells: a few lattice steps within the bound."""
    return min((bound - 4 * CLEAR) / STEPS, float(side))


def outlines_of(along: Floats, across: Floats, turn: Floats, x: Floats, y: Floats) -> Floats:
    """Return the corners of ellipses about (x, y): shape (ellipses, corners, 2)."""
    angle = np.arange(CORNERS) * 2 * np.pi / CORNERS
    u, v = np.cos(angle) * along[:, None] / 2, np.sin(angle) * across[:, None] / 2
    turn, x, y = turn[:, None], x[:, None], y[:, None]
    return np.stack(
        [x + np.cos(turn) * u - np.sin(turn) * v, y + np.sin(turn) * u + np.cos(turn) * v], axis=-1
    )


class Shapes(NamedTuple):
    """Ellipses up to their length and place; how wide and high outlines of length 1 are."""

    turn: Floats
    aspect: Floats
    wide: Floats
    high: Floats

    @classmethod
    def of(cls, turn: Floats, aspect: Floats) -> Shapes:
        """Return shapes by their turns and aspects: the outline's corners say how wide it is."""
        angle = np.arange(CORNERS // 2) * 2 * np.pi / CORNERS
        u, v = np.cos(angle), np.sin(angle) * aspect[:, None]
        cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
        wide, high = np.abs(cos * u - sin * v), np.abs(sin * u + cos * v)
        return cls(turn, aspect, wide.max(axis=1), high.max(axis=1))


def _even(n: int, which: int, start: int = 0) -> Floats:
    """Return n numbers between 0 and 1 that are spread evenly, jointly for each `which`."""
    return np.mod(0.5 + _SPREAD[which] * np.arange(1 + start, n + start + 1), 1.0)


@lru_cache(maxsize=16)
def size_prior(side: int, bound: int, least_aspect: float, length_power: float) -> Floats:
    """Return the prior probability of each footprint size ``[h, w]``.

    That of a whole catalogue's ellipses and diamonds, whatever their patterns, without drawing
    one. A catalogue counts only the patterns that it keeps: where a size has many more, as from
    about 5 x 5 cells, its own prior of it is smaller.
    """
    known = known_sizes(side, bound)
    share = np.zeros((side + 2) ** 2)
    most = longest(side, bound)
    for start in range(0, _SAMPLES, _BATCH):
        turn, slim, u = (_even(_BATCH, which, start) for which in range(3))
        shapes = Shapes.of(np.pi * turn, least_aspect + (1 - least_aspect) * slim)
        along = most * u**length_power
        # So long a body touches one more cell than the whole ones it spans, or two more.
        (rows, up), (cols, right) = (
            divmod(np.minimum(along * extent, side), 1) for extent in (shapes.high, shapes.wide)
        )
        for more, chance in ((1, 1 - up), (2, up)):
            for beside, chance_beside in ((1, 1 - right), (2, right)):
                at = np.minimum(rows + more, side + 1) * (side + 2)
                at += np.minimum(cols + beside, side + 1)
                share += np.bincount(at.astype(np.int64), chance * chance_beside, len(share))
    within = share.reshape(side + 2, side + 2)[:-1, :-1] / _SAMPLES
    # Turned by a quarter, an ellipse is as likely; so are the sizes.
    drawn = np.where(known, n_ellipses(side) * (within + within.T) / 2, 0.0) + known
    prior: Floats = drawn / drawn.sum()
    prior.flags.writeable = False
    return prior


@lru_cache(maxsize=8)
def _shapes(least_aspect: float) -> Shapes:
    """Return shapes of the prior, by turn."""
    turn, slim = np.pi * _even(_SHAPES, 0), _even(_SHAPES, 1)
    order = np.argsort(turn)
    return Shapes.of(turn[order], (least_aspect + (1 - least_aspect) * slim)[order])


@lru_cache(maxsize=8)
def _slim_shapes(least_aspect: float) -> Shapes:
    """Return shapes slimmer than the prior's, most of them nearly along an axis, by turn."""
    quarter, off = np.divmod(4 * _even(_SHAPES, 0), 1)
    turn = np.pi / 2 * (quarter % 2) + np.pi / 4 * off**2 * np.where(quarter < 2, 1, -1)
    order = np.argsort(turn)
    return Shapes.of(turn[order], (least_aspect * _even(_SHAPES, 1) ** 2)[order])


def ellipses_of_size(
    h: int, w: int, n: int, few: int, most: float, least_aspect: float, length_power: float
) -> Floats:
    """Return outlines of n random ellipses at most `most` cells long that have footprint h x w.

    In cells from the footprint's lower left corner, in an order any beginning of which is spread
    evenly over turns. Where the prior has fewer than `few` shapes of such a footprint, slimmer
    ellipses than it knows take part too; none come back where there are none still. The seed is
    the size's own.
    """
    rng = np.random.default_rng([h, w])
    shapes = _shapes(least_aspect)
    along, chance = _lengths(shapes, h, w, most, length_power, rng)
    if np.count_nonzero(chance) < few:
        slim = _slim_shapes(least_aspect)
        more = _lengths(slim, h, w, most, length_power, rng)
        shapes = Shapes(*map(np.concatenate, zip(shapes, slim, strict=True)))
        along, chance = np.concatenate([along, more[0]]), np.concatenate([chance, more[1]])
    upper = np.cumsum(chance)
    if not upper[-1] > 0:
        return np.empty((0, CORNERS, 2))
    at = (np.arange(n) + rng.random()) / n * upper[-1]
    # Fractions of multiples of the golden ratio are spread evenly over every stretch of them.
    order = np.argsort(np.arange(n) * _GOLDEN % 1.0)
    which = np.searchsorted(upper, at[order], side="right").clip(max=len(upper) - 1)
    along = along[which]
    x, y = (
        _middles(along * extent[which], cells, rng)
        for extent, cells in ((shapes.wide, w), (shapes.high, h))
    )
    return outlines_of(along, along * shapes.aspect[which], shapes.turn[which], x, y)


def _lengths(
    shapes: Shapes, h: int, w: int, most: float, length_power: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return a random length of each shape that may give it a footprint h x w, and how likely.

    A body with the extent e touches n cells along an axis with chance 1 - abs(e - (n - 1)).
    """
    short = np.maximum(np.maximum((w - 2) / shapes.wide, (h - 2) / shapes.high), 0.0)
    long = np.minimum(np.minimum(w / shapes.wide, h / shapes.high), most)
    low, high = ((np.minimum(end, most) / most) ** (1 / length_power) for end in (short, long))
    along = most * (low + (high - low) * rng.random(len(low))) ** length_power
    chance = np.maximum(high - low, 0.0)
    for extent, cells in ((shapes.wide, w), (shapes.high, h)):
        chance *= np.maximum(1 - np.abs(along * extent - (cells - 1)), 0.0)
    return along, chance


def _middles(extent: Floats, cells: int, rng: np.random.Generator) -> Floats:
    """Return random middles of bodies that touch just so many cells along an axis."""
    low, high = np.maximum(cells - 1 - extent, 0.0), np.minimum(cells - extent, 1.0)
    middles: Floats = low + (high - low) * rng.random(len(extent)) + extent / 2
    return middles
