"""The privacy statement and the only way to noise: budget, unit, sensitivity, integer Laplace.

Owns what a release promises (epsilon, neighbour relation, unit), the lemma that bounds how far
one region moves an Euler histogram, and the noise calibrated to it. All of it is exact rational
arithmetic until the scale, which is rounded towards more noise. Nothing here reads regions, a
grid or a file, and the noise of the release path takes no seed. Pure epsilon only: another kind
of noise would be another budget type and another `NoiseSource`, not an option of these.
"""

from __future__ import annotations

import math
import operator
import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpregions.errors import InputTypeError, PrivacyError, SettingWarning
from dpregions.lengths import exact

IntArray: TypeAlias = NDArray[np.int64]
Neighbours: TypeAlias = Literal["add-remove", "replace-one"]
Unit: TypeAlias = Literal["user", "record", "trajectory"]
BudgetLike: TypeAlias = "Budget | Fraction | Decimal | float"

NEIGHBOURS: tuple[Neighbours, ...] = get_args(Neighbours)
UNITS: tuple[Unit, ...] = get_args(Unit)

# Past the upper end a draw may leave int64 and nothing of any count is left; below the lower
# end no draw ever differs from 0, so a larger scale costs nothing and keeps floats in range.
MAX_SCALE = 2.0**40
MIN_SCALE = 2.0**-40

# Numbers further out than this have no use, and their floats have no inverse.
_SMALLEST = Fraction(1, 10**300)

LARGE_EPSILON = 20
"""Above this an epsilon protects next to nothing, and a warning says so.

exp(20) is 485 million: the odds of a guess about one person may grow that many times, from a draw
out of a whole population to even. Noise changes a count that gets all of it once in 240 million
times.
"""

# An epsilon beyond these could be paid for, and its shares then not be written or read back.
MOST_DIGITS = 700
MOST_GIVEN_DIGITS = 350

# Large enough that OpenDP's call (which leaves Python free to run other threads) dwarfs the
# conversion of its lists, small enough to keep every core busy on a city's histogram.
_CHUNK = 8192


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Budget:
    """A pure differential privacy budget, epsilon > 0, held exactly.

    Parameters
    ----------
    epsilon : number, Fraction, Decimal or Budget
        A float counts at its decimal face value: 0.1 is one tenth.

    Examples
    --------
    >>> Budget(0.1).split(1, 2)
    (Budget(epsilon=1/30), Budget(epsilon=1/15))
    """

    epsilon: Fraction

    def __init__(self, epsilon: BudgetLike) -> None:
        held = epsilon.epsilon if isinstance(epsilon, Budget) else _positive(epsilon, "epsilon")
        _refuse_longer(held, MOST_DIGITS)
        object.__setattr__(self, "epsilon", held)

    def __float__(self) -> float:
        return float(self.epsilon)

    def __repr__(self) -> str:
        return f"Budget(epsilon={short_text(self.epsilon)})"

    def __str__(self) -> str:
        return short_text(self.epsilon)

    def refuse_long(self) -> None:
        """Refuse an epsilon of so many digits that its shares might have too many."""
        _refuse_longer(self.epsilon, MOST_GIVEN_DIGITS)

    def split(self, *weights: Fraction | Decimal | float) -> tuple[Budget, ...]:
        """Return one share for each weight, in proportion; the shares sum to this budget exactly.

        Spending every share in turn, each on the whole data, costs this budget (sequential
        composition, also when a later step looks at what an earlier one gave out).
        """
        if not weights:
            raise PrivacyError("A budget is split by one weight or more, for example split(1, 3).")
        parts = [_positive(weight, "A weight of a split") for weight in weights]
        return tuple(Budget(self.epsilon * part / sum(parts)) for part in parts)


def warn_large(budgets: Iterable[Budget], stacklevel: int) -> None:
    """Warn of epsilons that protect next to nothing."""
    if large := [str(budget) for budget in budgets if budget.epsilon > LARGE_EPSILON]:
        warnings.warn(
            f"epsilon {', '.join(large)} protects next to nothing: above {LARGE_EPSILON}, the odds "
            f"of a guess about one person may grow more than {math.exp(LARGE_EPSILON) / 1e6:.0f} "
            f"million times. Choose a smaller one, such as 1",
            SettingWarning,
            stacklevel=stacklevel + 1,
        )


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whose presence is hidden, and what two neighbouring datasets are.

    Parameters
    ----------
    neighbours : {"add-remove", "replace-one"}
        "add-remove": one dataset is the other plus one unit. "replace-one": one unit has other
        data, or none in the area; it costs twice the sensitivity.
    unit : {"user", "record", "trajectory"}
        What contributes one region.
    """

    neighbours: Neighbours = "add-remove"
    unit: Unit = "user"

    def __post_init__(self) -> None:
        one_of(self.neighbours, NEIGHBOURS, "neighbours")
        one_of(self.unit, UNITS, "unit")

    @property
    def sensitivity_factor(self) -> int:
        """How many regions differ between two neighbours: 1, or 2 under replace-one."""
        return sensitivity_factor(self.neighbours)

    def describe(self) -> str:
        """Return the relation in plain words."""
        change = {
            "add-remove": f"one {self.unit} more or fewer",
            "replace-one": f"one {self.unit}'s data replaced by any other, or moved away",
        }[self.neighbours]
        who = {
            "user": "All of a user's data is protected together.",
            "record": "One record is protected: a person with several records is protected less.",
            "trajectory": "One trajectory is protected: a person with several of them is "
            "protected less.",
        }[self.unit]
        return (
            f"With {change}, every possible result is as likely as before, up to a factor "
            f"exp(epsilon) ({self.neighbours}, unit = {self.unit}). {who}"
        )


def sensitivity_factor(neighbours: Neighbours) -> int:
    """Return how many regions differ between two neighbouring datasets."""
    one_of(neighbours, NEIGHBOURS, "neighbours")
    return 2 if neighbours == "replace-one" else 1


def cells_spanned(max_diameter: Fraction | float, cell_size: Fraction | float) -> int:
    """Return k = ceil(max_diameter / cell_size), the bound in cells that intake enforces.

    Both count at their decimal face value: 2.1 over 0.7 is 3, where floats say 4.
    """
    return math.ceil(
        _positive(max_diameter, "max_diameter") / _positive(cell_size, "The cell size")
    )


def euler_sensitivity(
    k: int,
    neighbours: Neighbours = "add-remove",
    n_rows: int | None = None,
    n_cols: int | None = None,
) -> int:
    """Return the L1 sensitivity of the Euler histogram for regions at most k cells wide and high.

    Lemma. Let each region's extent be at most k cell sides in x and in y. Then neighbouring
    datasets have Euler histograms at L1 distance at most factor * (2k+1)**2.

    Proof. By the boundary rule each coordinate lies in exactly one cell, so an interval of
    length at most k cells lies in at most k + 1 consecutive cells and crosses at most the k
    lines between them: it touches at most 2k + 1 doubled rows, and likewise columns. A
    component is one doubled row and one doubled column, so a region touches at most
    (2k+1)**2 of them, and adds at most 1 to each. A grid with fewer doubled rows (2 n_rows - 1)
    or columns cuts the product down. Add-remove neighbours differ by one region; replace-one
    neighbours by one taken away and one added, hence the factor 2 (the triangle inequality,
    reached by two regions without a common component).

    Parameters
    ----------
    k : int
        The bound that was *enforced* on every region, in whole cells (see `cells_spanned`).
    neighbours : {"add-remove", "replace-one"}
        The neighbour relation.
    n_rows, n_cols : int, optional
        The grid's size in cells, if it is to cut the bound down.

    Examples
    --------
    >>> [euler_sensitivity(k) for k in (1, 2, 3, 13)]
    [9, 25, 49, 729]
    """
    reach = 2 * whole_number(k, "k") + 1
    rows = reach if n_rows is None else min(reach, 2 * whole_number(n_rows, "n_rows") - 1)
    cols = reach if n_cols is None else min(reach, 2 * whole_number(n_cols, "n_cols") - 1)
    return rows * cols * sensitivity_factor(neighbours)


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
            f"{float(wanted):.3g}, which drowns any count: give a larger epsilon, a smaller "
            "max_diameter or larger cells."
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

    def add(self, values: IntArray, *, epsilon: BudgetLike, sensitivity: int) -> IntArray:
        """Return the values with independent integer Laplace noise on every one of them."""


@dataclass(frozen=True, slots=True)
class SystemNoise:
    """Noise for releases: OpenDP's exact sampler, fed by the operating system; takes no seed."""

    private: ClassVar[bool] = True
    label: ClassVar[str] = "integer Laplace noise (OpenDP), randomness of the operating system"

    def __init__(self) -> None:
        # What cannot be loaded must fail here, before a budget pays for noise.
        import opendp.prelude  # noqa: F401

    def add(self, values: IntArray, *, epsilon: BudgetLike, sensitivity: int) -> IntArray:
        """Return the values with independent integer Laplace noise on every one of them."""
        return add_integer_laplace(values, epsilon=epsilon, sensitivity=sensitivity)


def add_integer_laplace(values: ArrayLike, *, epsilon: BudgetLike, sensitivity: int) -> IntArray:
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

    Returns
    -------
    numpy.ndarray
        int64, of the shape of `values`.
    """
    counts = whole_counts(values)
    noise = _laplace(Budget(epsilon), sensitivity)
    flat, noised = counts.reshape(-1), np.empty(counts.size, dtype=np.int64)

    def fill(start: int) -> None:
        part = slice(start, start + _CHUNK)
        noised[part] = noise(flat[part].tolist())

    # OpenDP's generator keeps one state a thread, seeded from the system: the threads
    # share the mechanism, which holds no state, and no stream.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(0, flat.size, _CHUNK)))
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


def whole_counts(values: ArrayLike) -> IntArray:
    """Return an array of whole numbers as int64; refuse anything that is not whole by type."""
    counts = np.asarray(values)
    if counts.dtype.kind not in "iu" or not np.can_cast(counts.dtype, np.int64):
        raise InputTypeError(
            f"Integer noise is added to arrays of whole numbers that fit in int64, got dtype "
            f"{counts.dtype}: convert the exact counts with .astype(numpy.int64)."
        )
    return counts.astype(np.int64, copy=False)


def whole_number(value: int, name: str) -> int:
    """Return a whole number of 1 or more as an int; refuse everything else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool | np.bool_):
        raise PrivacyError(f"{name} must be a whole number of 1 or more, got {value!r}.")
    return number


def one_of(value: str, options: tuple[str, ...], name: str) -> None:
    """Refuse a value that is none of the options, and name them."""
    if value not in options:
        quoted = " or ".join(repr(option) for option in options)
        raise PrivacyError(f"{name} must be {quoted}, got {value!r}.")


def _positive(value: object, name: str) -> Fraction:
    if value is None:
        raise PrivacyError(f"{name} is missing: give a number greater than 0.")
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise PrivacyError(
            f"{name} must be a number greater than 0, got {value!r} of type {type(value).__name__}."
        )
    if not isinstance(value, Rational) and not math.isfinite(value):
        raise PrivacyError(f"{name} must be finite, got {value!r}: give a number above 0.")
    number = Fraction(value) if isinstance(value, Decimal) else exact(value)
    if number <= 0:
        raise PrivacyError(f"{name} must be greater than 0, got {short_text(number)}.")
    if not _SMALLEST <= number <= 1 / _SMALLEST:
        raise PrivacyError(f"{name} must lie between 1e-300 and 1e300.")
    return number


def _refuse_longer(epsilon: Fraction, digits: int) -> None:
    if max(epsilon.numerator, epsilon.denominator) >= 10**digits:
        raise PrivacyError(f"epsilon is a fraction of more than {digits} digits: round it down.")


def _float_at_least(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def short_text(value: Fraction) -> str:
    """Return a fraction as decimals where a float's shortest form is exactly it, else as p/q."""
    try:
        shown = repr(float(value))
    except OverflowError:
        shown = "0"
    if Fraction(shown) == value:
        return shown
    # Python limits the digits that it writes of an int; of a Decimal it writes all.
    parts = [value.numerator] if value.denominator == 1 else [value.numerator, value.denominator]
    return "/".join(str(Decimal(part)) for part in parts)
