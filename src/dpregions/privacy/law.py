"""The law of the noise: integer (discrete) Laplace, one draw, the largest of many, a sum of many.

P(Y = m) = (1 - a) / (1 + a) * a**|m| with a = exp(-1 / scale), for every whole number m.
Everything here is computed from that law with a stated error; nothing is fitted or simulated.
This module never draws noise and never sees a count: intervals and utility bounds are public,
so they may depend on the scale and on how many components a query sums, and on nothing else.

The noise is symmetric, so a signed sum of n draws (an Euler query) has the law of a plain one.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, overload

import numpy as np

from dpregions.errors import Argument, PrivacyError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from dpregions.arrays import Floats, Ints

SUM_ERROR = 1e-12
"""Bound on the absolute error of every probability computed for a sum."""

SMALLEST_FAILURE = 1e-9
"""Least 1 - confidence for a sum: below, `SUM_ERROR` would no longer be negligible."""

# Aliasing and truncation may each take this much of SUM_ERROR; rounding takes the rest.
_PART = 1e-13
_BLOCK = 4096


def decay(scale: float) -> float:
    """Return a = exp(-1 / scale), the ratio of the probabilities of m + 1 and m >= 0."""
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"The noise scale must be a finite number above 0, got {scale!r}.")
    return math.exp(-1 / scale)


def pmf(m: ArrayLike, scale: float) -> Floats:
    """Return P(Y = m)."""
    a = decay(scale)
    weight = -math.expm1(-1 / scale) / (1 + a)
    return np.asarray(weight * np.exp(-np.abs(np.asarray(m, dtype=np.float64)) / scale))


def tail(m: ArrayLike, scale: float) -> Floats:
    """Return P(|Y| >= m) for whole numbers m: 2 a**m / (1 + a), and 1 for m <= 0."""
    m = np.asarray(m, dtype=np.float64)
    far = 2 * np.exp(-np.maximum(m, 0) / scale) / (1 + decay(scale))
    return np.asarray(np.where(m > 0, far, 1.0))


def variance(scale: float) -> float:
    """Return the variance of one draw, 2 a / (1 - a)**2 (close to 2 * scale**2)."""
    return 2 * decay(scale) / math.expm1(-1 / scale) ** 2


def half_width(scale: float, confidence: float) -> int:
    """Return the smallest m with P(|Y| <= m) >= confidence."""
    return _smallest(1 - checked_confidence(confidence), scale)


def max_half_width(n_terms: int, scale: float, failure: float) -> int:
    """Return the smallest m with P(one of n independent draws lies outside -m..m) <= failure."""
    if n_terms < 1 or not 0 < failure < 1:
        raise PrivacyError(
            "The largest of n draws needs n of 1 or more and a failure probability strictly "
            f"between 0 and 1, got n = {n_terms!r} and failure = {failure!r}."
        )
    # 1 - (1 - p)**n <= failure, solved for p without cancellation.
    return _smallest(-math.expm1(math.log1p(-failure) / n_terms), scale)


def _smallest(failure: float, scale: float) -> int:
    # From 2 a**(m+1) / (1+a) <= failure. The logarithm may be off by a rounding error at a
    # step of the law, so the two neighbours are tried against the law itself.
    guess = math.ceil(-scale * math.log(failure * (1 + decay(scale)) / 2)) - 1
    m = max(guess - 1, 0)
    while float(tail(m + 1, scale)) > failure:
        m += 1
    return m


def sum_tail(m: ArrayLike, n_terms: int, scale: float) -> Floats:
    """Return P(|S| >= m), S the sum of `n_terms` independent draws, to within `SUM_ERROR`."""
    m = np.asarray(m, dtype=np.int64)
    law = _SumLaw(np.atleast_1d(_checked_counts(n_terms)), scale)
    inside = [law.inside(np.array([value - 1]))[0] for value in m.reshape(-1).tolist()]
    return np.asarray(np.clip(1 - np.array(inside).reshape(m.shape), 0.0, 1.0))


@overload
def sum_half_width(n_terms: int, scale: float, confidence: float) -> int: ...
@overload
def sum_half_width(n_terms: NDArray[np.integer], scale: float, confidence: float) -> Ints: ...
def sum_half_width(
    n_terms: int | NDArray[np.integer], scale: float, confidence: float
) -> int | Ints:
    """Return the smallest m with P(|S| <= m) >= confidence, S the sum of `n_terms` draws.

    The answer is on the safe side: a probability within `SUM_ERROR` of the confidence does
    not count as reaching it.

    Parameters
    ----------
    n_terms : int or array of int
        How many components are summed, 0 or more; each distinct number is worked out once.
    scale : float
        The scale of each draw.
    confidence : float
        Between 0 and 1 - `SMALLEST_FAILURE`.

    Examples
    --------
    >>> sum_half_width(1, 25.0, 0.95), sum_half_width(9, 25.0, 0.95)
    (75, 210)
    """
    failure = 1 - checked_confidence(confidence)
    if confidence > 1 - SMALLEST_FAILURE:
        raise PrivacyError(
            f"A confidence of {confidence!r} is too close to 1 for an interval: "
            f"give at most 1 - {SMALLEST_FAILURE:g}.",
            argument="confidence",
        )
    distinct, where = np.unique(_checked_counts(n_terms), return_inverse=True)
    widths = np.empty(distinct.shape, dtype=np.int64)
    for rows, law in _blocks(distinct, scale):
        widths[rows] = law.half_width(failure)
    found = widths[where].reshape(np.shape(n_terms))
    return int(found) if np.ndim(n_terms) == 0 else found


def checked_confidence(confidence: object) -> float:
    """Return a confidence as a float; refuse what is not a number strictly between 0 and 1."""
    # numpy's numbers are Real, its bool is not; Python's bool lies at 0 or 1.
    value = float(confidence) if isinstance(confidence, Real) else math.nan
    if not 0 < value < 1:
        raise PrivacyError(
            Argument("confidence"),
            f" must lie strictly between 0 and 1, got {confidence!r}: write 0.95 for 95 percent.",
        )
    return value


def _checked_counts(n_terms: ArrayLike) -> Ints:
    n = np.asarray(n_terms)
    if n.dtype.kind not in "iu" or (n < 0).any():
        raise PrivacyError("n_terms must be whole numbers, 0 or more.")
    return n.astype(np.int64)


def _blocks(n: Ints, scale: float) -> list[tuple[slice, _SumLaw]]:
    """Cut a rising array of distinct n into slices, each with the law of its sums."""
    # Below 16 terms the number of frequencies changes a lot with n, above hardly at all.
    cuts = np.searchsorted(n, np.arange(1, 17)).tolist()
    starts = sorted({*cuts, *range(0, n.size, _BLOCK)} - {n.size})
    stops = [*starts[1:], n.size]
    return [(slice(i, j), _SumLaw(n[i:j], scale)) for i, j in zip(starts, stops, strict=False)]


class _SumLaw:
    """P(|S| <= m) for a column of sums, by inversion of the characteristic function.

    One draw has phi(t) = 1 / (1 + x), x = 4 a sin(t/2)**2 / (1-a)**2, so S has phi**n. With
    K frequencies t_j = 2 pi j / K,

        sum over j of phi(t_j)**n * D_m(t_j) / K,   D_m(t) = sin((m + 1/2) t) / sin(t / 2),

    is exactly P(|S mod K| <= m): it errs by at most P(|S| >= K - m), which a Chernoff bound
    keeps under _PART by the choice of K. Frequencies past the J-th are left out: with
    |D_m| <= pi / t and x >= 4 a t**2 / (pi (1-a))**2 =: v they amount to at most the integral
    of (1+v)**-n dv / (2 v) past V = v(t_J), at most (1+V)**(1-n) / (2 V (n-1)). So a sum of a
    million terms needs some tens of frequencies, although it spreads over millions of values.
    """

    def __init__(self, n: Ints, scale: float) -> None:
        a = decay(scale)
        self.n, self.scale = n.astype(np.float64), scale
        # (1-a)**2 / 4a; without it (a underflows) the noise is 0 but for a chance of 1e-300.
        self.spread = math.expm1(-1 / scale) ** 2 / (4 * a) if a > 1e-300 else math.inf
        self.closed = bool(n[0] <= 1) or math.isinf(self.spread)
        if self.closed:
            return
        reach = self._chernoff(_PART)
        self.period = 2 * reach + 1
        terms = self.n - 1
        with np.errstate(over="ignore"):
            v = np.minimum(np.expm1(-math.log(_PART) / terms), _PART ** (-1 / self.n))
        last = np.ceil(0.5 * np.sqrt(v * self.spread) * self.period)
        j = np.arange(1, int(np.minimum(last, reach).max()) + 1)
        self.t = 2 * np.pi * j / self.period[:, None]
        half = np.sin(self.t / 2)
        weight = np.exp(-self.n[:, None] * np.log1p(half**2 / self.spread)) / half
        weight[j > reach[:, None]] = 0.0
        self.weight = 2 * weight / self.period[:, None]

    def inside(self, m: Ints) -> Floats:
        """Return P(|S| <= m), one m for each sum."""
        if self.closed:
            one = 1 - tail(m + 1, self.scale) if not math.isinf(self.spread) else 1.0
            return np.where(m < 0, 0.0, np.where(self.n == 0, 1.0, one))
        known = np.clip(m, -1, (self.period - 1) / 2)[:, None]
        waves = np.einsum("ij,ij->i", self.weight, np.sin((known + 0.5) * self.t))
        return np.asarray((2 * known[:, 0] + 1) / self.period + waves)

    def half_width(self, failure: float) -> Ints:
        """Return the smallest m with P(|S| <= m) >= 1 - failure, one for each sum."""
        if self.closed:
            width = 0 if math.isinf(self.spread) else _smallest(failure, self.scale)
            return np.where(self.n == 0, 0, width)
        wanted = 1 - failure + SUM_ERROR
        low = np.full(self.n.shape, -1, dtype=np.int64)
        high = self._chernoff(failure / 2).astype(np.int64)
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            reached = self.inside(middle) >= wanted
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.asarray(high)

    def _chernoff(self, failure: float) -> Floats:
        """Return a whole number w for each sum with P(|S| >= w) <= failure.

        E exp(theta S) = (1 - u)**-n with u = sinh(theta/2)**2 / spread, for any u below 1; the
        best of a range of u is taken.
        """
        u = np.concatenate([0.5 ** np.arange(1, 50), 1 - 0.5 ** np.arange(1.5, 10)])
        theta = 2 * np.arcsinh(np.sqrt(u * self.spread))
        exponent = math.log(2 / failure) - self.n[:, None] * np.log1p(-u)
        return np.asarray(np.ceil((exponent / theta).min(axis=1)))
