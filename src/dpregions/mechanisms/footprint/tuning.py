"""The tuned numbers of the footprint mechanism: accuracy or the width of intervals moves with them.

Each says what it is, where it came from and what moves when it is halved or doubled: the mean
ratio of errors to today's over made-up cities, `docs/lab-calibration.md`. `benchmarks/calibrate.py`
measures that again. All are public constants: none may follow from data. Numbers that only keep
arithmetic in range or bound memory and time stand where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpregions.mechanisms.footprint.levels import Grouping

Words = tuple[tuple[int, "Grouping", int], ...]
"""Measurements below the total: the side of blocks in cells (0: the whole area), the letters
counted apart, and the weight in what is left."""

_SIZES: tuple[Words, ...] = (
    ((1, "all", 0), (1, "letters", 10)),
    ((2, "all", 0), (1, "letters", 10)),
    ((2, "all", 1), (1, "letters", 9)),
    ((2, "all", 3), (1, "letters", 7)),
    ((4, "all", 1), (2, "all", 3), (1, "letters", 6)),
    ((4, "all", 2), (1, "all", 3), (1, "letters", 5)),
)
_BLOCKS: tuple[Words, ...] = (
    ((2, "all", 94), (1, "letters", 0), (0, "letters", 6)),
    ((4, "all", 94), (1, "letters", 0), (0, "letters", 6)),
    ((4, "all", 34), (2, "all", 60), (1, "letters", 0), (0, "letters", 6)),
)
_JOINED: tuple[Words, ...] = (
    ((1, "joined", 97), (1, "letters", 0), (0, "letters", 3)),
    ((4, "all", 0), (1, "joined", 97), (1, "letters", 0), (0, "letters", 3)),
)
_CELLS: tuple[Words, ...] = (
    ((1, "all", 94), (1, "letters", 0), (0, "letters", 6)),
    ((4, "all", 20), (1, "all", 74), (1, "letters", 0), (0, "letters", 6)),
)
_CLASSES: tuple[Words, ...] = (
    ((2, "all", 4), (2, "classes", 6), (1, "letters", 0)),
    ((4, "all", 2), (2, "all", 3), (2, "classes", 4), (1, "letters", 0)),
    ((4, "all", 1), (4, "classes", 3), (1, "classes", 5), (1, "letters", 0)),
    ((2, "all", 3), (2, "classes", 1), (1, "classes", 6), (1, "letters", 0)),
    ((8, "all", 2), (4, "all", 3), (4, "classes", 4), (1, "letters", 0)),
)
_SHAPES: tuple[Words, ...] = (
    ((2, "all", 0), (1, "all", 0), (1, "classes", 0), (1, "letters", 10)),
    ((2, "all", 2), (1, "letters", 8)),
    ((1, "all", 0), (1, "classes", 3), (1, "letters", 7)),
    ((2, "all", 1), (1, "classes", 4), (1, "letters", 5)),
    ((4, "all", 1), (2, "all", 1), (1, "all", 1), (1, "classes", 3), (1, "letters", 4)),
)


@dataclass(frozen=True)
class Tuning:
    """Every tuned number, with today's value as its default."""

    # The budget: `mechanism.total_share`.

    least_total: Fraction = Fraction(1, 50)
    """TODO"""
    most_total: Fraction = Fraction(1, 4)
    """TODO"""

    # The public prior of shapes and sizes: `catalogue`.

    least_aspect: float = 0.3
    """TODO"""
    length_power: float = 0.5
    """TODO"""

    # The covert fit: `fits.split`.

    doubt: float = 4.0
    """TODO"""
    believed: float = 2.0
    """TODO"""
    unevenness_guess: float = 0.3
    """TODO"""
    least_unevenness: float = 1e-3
    """TODO"""

    # What is expected of detail that was not measured: `expectation`.

    group_discount: float = 0.5
    """TODO"""
    group_floor: float = 0.25
    """TODO"""
    believed_mix: float = 0.4
    """TODO"""
    least_mix: float = 0.005
    """TODO"""
    reach: float = 0.35
    """TODO"""
    even_density: float = 0.1
    """TODO"""
    smoothings: int = 3
    """TODO"""

    # The shape part of intervals: `reading`. No answer moves with these.

    clumping: float = 0.7
    """TODO"""
    mix_doubt: float = 1.5
    """TODO"""
    shape_crowd: float = 2.0
    """TODO"""
    shape_doubt: float = 1.0
    """TODO"""

    # How candidates are tried out: `choice.choose`. More trials cost time.

    good_enough: float = 0.05
    """TODO"""
    proxy_side: int = 40
    """TODO"""
    proxy_regions: int = 40_000
    """TODO"""
    least_trials: int = 4
    """TODO"""
    most_trials: int = 12
    """TODO"""
    tried_buckets: int = 30_000
    """TODO"""
    trial_queries: int = 48
    """TODO"""

    # The made-up cities they are tried on: `choice._city`.

    stray_mean: float = -0.4
    """TODO"""
    stray_spread: float = 0.8
    """TODO"""
    fullness: float = 1.0
    """TODO"""
    most_spots: float = 0.4
    """TODO"""
    bodies_per_spot: int = 40
    """TODO"""
    spot_crowding: float = 2.0
    """TODO"""
    districts: int = 24
    """TODO"""
    district_share: float = 0.85
    """TODO"""
    district_scatter: float = 0.22
    """TODO"""
    narrowest_district: float = 0.02
    """TODO"""
    widest_district: float = 0.08
    """TODO"""
    countryside: float = 0.25
    """TODO"""

    # The candidates: `choice.candidates`. Left out instead of halved.

    plans_of_sizes: tuple[Words, ...] = _SIZES
    """TODO"""
    plans_of_blocks: tuple[Words, ...] = _BLOCKS
    """TODO"""
    plans_of_joined: tuple[Words, ...] = _JOINED
    """TODO"""
    plans_of_cells: tuple[Words, ...] = _CELLS
    """TODO"""
    plans_of_classes: tuple[Words, ...] = _CLASSES
    """TODO"""
    plans_of_shapes: tuple[Words, ...] = _SHAPES
    """TODO"""


TUNING = Tuning()
"""What releases are made and read with."""
