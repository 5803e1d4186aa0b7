"""The paper's pipeline, on plain arrays: Euler -> DiffPriv -> LinProg -> Round.

After Fanaeepour and Rubinstein, "Differentially-Private Counting of Users' Spatial Regions".
Each step is one function; `run` is the sequence. Exact counts reach `diff_priv` and the first line
of `run`. Everything after that sees noisy counts and public parameters, and nothing else. Which
count may not exceed which is told by an `Order`; the one of doubled arrays unless said otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from dpregions.errors import InputError
from dpregions.mechanisms.paper.bounds import utility_bound
from dpregions.mechanisms.paper.consistency import (
    Inconsistency,
    inconsistency,
    violations,
)
from dpregions.mechanisms.paper.order import DOUBLED, Order
from dpregions.mechanisms.paper.sensitivity import cells_spanned
from dpregions.mechanisms.paper.sensitivity import euler_sensitivity as euler_sensitivity
from dpregions.privacy.noise import SystemNoise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from dpregions.choices import Neighbours
    from dpregions.privacy.budget import BudgetLike
    from dpregions.privacy.noise import NoiseSource

__all__ = [
    "Inconsistency",
    "diff_priv",
    "inconsistency",
    "lin_prog",
    "round_counts",
    "sensitivity",
    "utility_bound",
    "violations",
]

Norm = Literal["l1", "linf"]
NORMS: tuple[Norm, ...] = ("l1", "linf")


def sensitivity(
    max_diameter: Fraction | float,
    cell_size: Fraction | float,
    neighbours: Neighbours = "add-remove",
) -> int:
    """Return the L1 sensitivity of the Euler histogram: (2k+1)**2, k = ceil(B / d).

    Twice that for "replace-one". Valid only for regions whose bound was enforced.

    Examples
    --------
    >>> sensitivity(2, 1), sensitivity(2.1, 0.7), sensitivity(2, 1, "replace-one")
    (25, 49, 50)
    """
    return euler_sensitivity(cells_spanned(max_diameter, cell_size), neighbours)


def diff_priv(
    counts: ArrayLike, epsilon: BudgetLike, sensitivity: int, order: Order = DOUBLED
) -> NDArray[np.int64]:
    """Return counts with integer Laplace noise on every one, negatives cut to 0.

    The noise has scale sensitivity / epsilon and comes from the operating system: no seed.

    Parameters
    ----------
    counts : array of int
        The exact Euler histogram: the only secret this module ever sees.
    epsilon : number or Budget
        The privacy loss of the whole array.
    sensitivity : int
        How far the histogram of a neighbouring dataset may be in L1, see `sensitivity`.
    order : Order
        That of the partition counted on.
    """
    order.checked(counts)
    noisy = SystemNoise().add(np.asarray(counts), epsilon=epsilon, sensitivity=sensitivity)
    return np.maximum(noisy, 0)


def lin_prog(noisy: ArrayLike, norm: Norm = "l1", order: Order = DOUBLED) -> NDArray[Any]:
    """Return the nearest array that satisfies C1, C2, C3 and x >= 0.

    Parameters
    ----------
    noisy : array
        Counts in the shape of `order`, a doubled array by default; any sign.
    norm : {"l1", "linf"}
        "l1": least absolute deviations, the floor of the mean of the lowest and the highest
        optimum, whole numbers for whole numbers. "linf": the smallest largest deviation.
    order : Order
        That of the partition counted on.
    """
    if norm not in NORMS:
        raise InputError(f"norm={norm!r} is unknown: use 'l1' or 'linf'")
    return order.fit_l1(noisy) if norm == "l1" else order.fit_linf(noisy)


def round_counts(consistent: ArrayLike, order: Order = DOUBLED) -> NDArray[np.int64]:
    """Return the nearest whole numbers, halves up.

    Rounding keeps order, so C1 and C2 stay; C3 follows from C1 and non-negative vertices, so
    it stays too. Whole numbers stay as they are.
    """
    array = order.checked(consistent)
    if array.dtype == np.int64:
        return array.copy()
    whole = np.floor(array)
    # Not floor(array + 0.5): that sum is itself rounded, next to a half and past 2**52.
    return (whole + (array - whole >= 0.5)).astype(np.int64)


class PaperSteps(NamedTuple):
    """What each step gave; all private, all public."""

    signed: NDArray[np.int64]
    """Counts with noise, negatives kept: unbiased."""
    noisy: NDArray[np.int64]
    """DiffPriv: negatives cut to 0."""
    consistent: NDArray[Any]
    """LinProg."""
    counts: NDArray[np.int64]
    """Round."""


def run(
    counts: NDArray[np.int64],
    *,
    epsilon: BudgetLike,
    sensitivity: int,
    noise: NoiseSource,
    norm: Norm = "l1",
    order: Order = DOUBLED,
) -> PaperSteps:
    """Run the pipeline on exact counts; the exact counts end at the first line."""
    signed = noise.add(counts, epsilon=epsilon, sensitivity=sensitivity)
    return post_process(signed, norm, order)


def post_process(
    signed: NDArray[np.int64], norm: Norm = "l1", order: Order = DOUBLED
) -> PaperSteps:
    """Run everything after the noise."""
    noisy = np.maximum(signed, 0)
    consistent = lin_prog(noisy, norm, order)
    return PaperSteps(signed, noisy, consistent, round_counts(consistent, order))
