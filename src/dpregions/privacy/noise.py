"""The only way to noise: integer Laplace noise, calibrated to a sensitivity and an epsilon.

Exact rational arithmetic until the scale, which is rounded towards more noise. The noise of the
release path takes no seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpregions.arrays import Ints
from dpregions.errors import Argument, InputTypeError, OverBudgetError, PrivacyError
from dpregions.lengths import whole_number
from dpregions.memory import n_workers
from dpregions.privacy.budget import Budget, BudgetLike

if TYPE_CHECKING:
    from dpregions.privacy.ledger import Receipt

# Past the upper end a draw may leave int64 and nothing of any count is left; below the lower
# end no draw ever differs from 0, so a larger scale costs nothing and keeps floats in range.
MAX_SCALE = 2.0**40
MIN_SCALE = 2.0**-40

# Large enough that OpenDP's call (which leaves Python free to run other threads) dwarfs the
# conversion of its lists, small enough to keep every core busy on a city's histogram.
_CHUNK = 8192


def loss_of(scale: float, sensitivity: int) -> Fraction:
    """Return the epsilon that integer Laplace noise of this scale gives, exactly.

    Moving the counts by at most `sensitivity` in L1 changes the probability of any output by
    at most exp(sensitivity / scale).
    """
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"The noise scale must be a finite number above 0, got {scale!r}.")
    return whole_number(sensitivity, "sensitivity") / Fraction(scale)


def scale_for(epsilon: BudgetLike, sensitivity: int) -> float:
    """Return the smallest usable noise scale whose loss is at most epsilon.

    The loss stays at most epsilon after it is rounded up to a float, which is how OpenDP
    reports it; so the scale may be a few units in the last place above sensitivity / epsilon.
    """
    budget = Budget(epsilon)
    wanted = whole_number(sensitivity, "sensitivity") / budget.epsilon
    if wanted > MAX_SCALE:
        raise PrivacyError(
            f"epsilon = {budget} at sensitivity {sensitivity} needs noise of scale "
            f"{float(wanted):.3g}, which drowns any count: give a larger epsilon, a smaller ",
            Argument("max_diameter"),
            " or larger cells.",
            argument="epsilon",
        )
    scale = max(_float_at_least(wanted), MIN_SCALE)
    while _float_at_least(loss_of(scale, sensitivity)) > budget.epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


class NoiseSource(Protocol):
    """Where a mechanism gets its noise: the one seam between releases and studies.

    A mechanism takes one of these, and what it makes carries `private` and `label`. The public
    `release` has no such argument: it always uses `SystemNoise`.
    """

    @property
    def private(self) -> bool:
        """Whether what is made with this noise may be published."""

    @property
    def label(self) -> str:
        """What a release says about its noise."""

    @property
    def software(self) -> tuple[tuple[str, str], ...]:
        """What draws the noise beside this software: names and versions, for the record."""

    def add(self, values: Ints, *, epsilon: BudgetLike, sensitivity: int) -> Ints:
        """Return the values with independent integer Laplace noise on every one of them."""

    def allot(self, budget: Budget) -> NoiseSource:
        """Return noise for measurements that cost a budget together, though their shares are more.

        They do where parts are disjoint: each region is in few of them. A meter that adds up all
        shares cannot know that, so whoever takes this accounts for every region himself.
        """


@dataclass(frozen=True, slots=True)
class SystemNoise:
    """Noise for releases: OpenDP's exact sampler, fed by the operating system; takes no seed."""

    private: ClassVar[bool] = True
    label: ClassVar[str] = "integer Laplace noise (OpenDP), randomness of the operating system"

    def __init__(self) -> None:
        # What cannot be loaded must fail here, before a budget pays for noise.
        import opendp.domains
        import opendp.measurements
        import opendp.metrics
        import opendp.mod  # noqa: F401

    @property
    def software(self) -> tuple[tuple[str, str], ...]:
        """OpenDP and Python, with their versions."""
        from importlib.metadata import version
        from platform import python_version

        return ("OpenDP", version("opendp")), ("Python", python_version())

    def add(self, values: Ints, *, epsilon: BudgetLike, sensitivity: int) -> Ints:
        """Return the values with independent integer Laplace noise on every one of them."""
        return add_integer_laplace(values, epsilon=epsilon, sensitivity=sensitivity)

    def allot(self, budget: Budget) -> SystemNoise:
        """Return itself: it meters nothing."""
        del budget
        return self


class MeteredNoise:
    """Noise within a budget: no draw goes beyond it. With a `debit`, that is before the first."""

    def __init__(
        self, noise: NoiseSource, budget: Budget, debit: Callable[[], Receipt] | None = None
    ) -> None:
        self.entry: Receipt | None = None
        self.private, self.label, self.software = noise.private, noise.label, noise.software
        self._noise, self._left, self._debit = noise, budget.epsilon, debit

    def add(self, values: Ints, *, epsilon: BudgetLike, sensitivity: int) -> Ints:
        """Return the values with noise, once it is paid for."""
        share = Budget(epsilon)
        self._pay(share)
        return self._noise.add(values, epsilon=share, sensitivity=sensitivity)

    def allot(self, budget: Budget) -> NoiseSource:
        """Return the noise within, once the budget is paid."""
        self._pay(budget)
        return self._noise.allot(budget)

    def _pay(self, share: Budget) -> None:
        if share.epsilon > self._left:
            raise OverBudgetError(
                f"a draw of noise at epsilon {share} goes beyond the budget: it was not made. "
                f"This is a fault of the mechanism"
            )
        if self.entry is None and self._debit is not None:
            self.entry = self._debit()
        self._left -= share.epsilon


def add_integer_laplace(
    values: ArrayLike,
    *,
    epsilon: BudgetLike,
    sensitivity: int,
    workers: int | None = None,
    chunk: int = _CHUNK,
) -> Ints:
    """Return whole numbers with independent integer Laplace noise on every one, epsilon-DP.

    Every component is noised, empty ones too: which are empty is itself secret. Each draw has
    exactly P(Y = m) proportional to exp(-|m| / scale) with the scale of `scale_for`. A sum
    that leaves int64 stops at its end, which looks only at the noised value and costs nothing.

    Parameters
    ----------
    values : array of int
        The exact counts, any shape.
    epsilon : number or Budget
        The privacy loss allowed for the whole array.
    sensitivity : int
        How far, in L1, the array of a neighbouring dataset may be from this one.
    workers, chunk : int
        How many threads draw, by default as many as there are cores, and how many draws a call
        of theirs makes.

    Returns
    -------
    numpy.ndarray
        int64, of the shape of `values`.
    """
    counts = whole_counts(values)
    noise = _laplace(Budget(epsilon), sensitivity)
    flat, noised = counts.reshape(-1), np.empty(counts.size, dtype=np.int64)

    def fill(start: int) -> None:
        part = slice(start, start + chunk)
        noised[part] = noise(flat[part].tolist())

    # OpenDP's generator keeps one state a thread, seeded from the system: the threads
    # share the mechanism, which holds no state, and no stream.
    with ThreadPoolExecutor(workers or n_workers()) as pool:
        list(pool.map(fill, range(0, flat.size, chunk)))
    return noised.reshape(counts.shape)


def _laplace(budget: Budget, sensitivity: int) -> Callable[[list[int]], list[int]]:
    """Return OpenDP's mechanism, once its own account of the loss agrees with ours."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    # "contrib" is OpenDP's switch for every constructor, proven ones such as this included.
    enable_features("contrib")
    scale = scale_for(budget, sensitivity)
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    mechanism: Any = make_laplace(*space, scale=scale)
    loss = Fraction(mechanism.map(int(sensitivity)))
    if loss > budget.epsilon:
        raise PrivacyError(
            f"OpenDP accounts a loss of {float(loss)!r} for noise of scale {scale!r} at "
            f"sensitivity {sensitivity}, above epsilon = {budget}: nothing was noised. This is "
            "a fault of dpregions; a slightly larger epsilon may avoid it."
        )
    return lambda values: mechanism(values)


def whole_counts(values: ArrayLike) -> Ints:
    """Return an array of whole numbers as int64; refuse anything that is not whole by type."""
    counts = np.asarray(values)
    if counts.dtype.kind not in "iu" or not np.can_cast(counts.dtype, np.int64):
        raise InputTypeError(
            f"Integer noise is added to arrays of whole numbers that fit in int64, got dtype "
            f"{counts.dtype}: convert the exact counts with .astype(numpy.int64)."
        )
    return counts.astype(np.int64, copy=False)


def _float_at_least(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
