"""What a release promises: epsilon, held exactly, the neighbour relation and the unit.

Pure epsilon only: another kind of noise would be another budget type and another `NoiseSource`,
not an option of these. Nothing here reads regions, a grid or a file.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import ClassVar, TypeAlias

from dpregions.choices import Neighbours, Unit, refuse_other
from dpregions.errors import Argument, PrivacyError, SettingWarning
from dpregions.lengths import positive, short_text

BudgetLike: TypeAlias = "Budget | Fraction | Decimal | float"

LARGE_EPSILON = 20
"""Above this an epsilon protects next to nothing, and a warning says so.

exp(20) is 485 million: the odds of a guess about one person may grow that many times, from a draw
out of a whole population to even. Noise changes a count that gets all of it once in 240 million
times.
"""

_LARGEST_EXPONENT = 700.0
"""exp(-700) is the smallest there is in floating point, about; a guess is then certain anyway."""


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

    # An epsilon beyond these could be paid for, and its shares then not be written or read back.
    MOST_DIGITS: ClassVar[int] = 700
    MOST_GIVEN_DIGITS: ClassVar[int] = 350

    epsilon: Fraction

    def __init__(self, epsilon: BudgetLike) -> None:
        held = epsilon.epsilon if isinstance(epsilon, Budget) else positive(epsilon, "epsilon")
        _refuse_longer(held, self.MOST_DIGITS)
        object.__setattr__(self, "epsilon", held)

    def __float__(self) -> float:
        return float(self.epsilon)

    def __repr__(self) -> str:
        return f"Budget(epsilon={short_text(self.epsilon)})"

    def __str__(self) -> str:
        return short_text(self.epsilon)

    def refuse_long(self) -> None:
        """Refuse an epsilon of so many digits that its shares might have too many."""
        _refuse_longer(self.epsilon, self.MOST_GIVEN_DIGITS)

    def refuse_large(self, *, allowed: bool = False) -> None:
        """Refuse an epsilon that protects next to nothing, unless it is allowed by name."""
        if self.epsilon > LARGE_EPSILON and allowed is not True:
            raise PrivacyError(
                Argument("epsilon", str(self)),
                f" protects next to nothing: above {LARGE_EPSILON}, the odds of a guess about one "
                f"person may grow more than {math.exp(LARGE_EPSILON) / 1e6:.0f} million times. "
                f"Choose a smaller one, such as 1; whoever can answer for it gives ",
                Argument("allow_epsilon", "True"),
            )

    def split(self, *weights: Fraction | Decimal | float) -> tuple[Budget, ...]:
        """Return one share for each weight, in proportion; the shares sum to this budget exactly.

        Spending every share in turn, each on the whole data, costs this budget (sequential
        composition, also when a later step looks at what an earlier one gave out).
        """
        if not weights:
            raise PrivacyError(
                "A budget is split by one weight or more, for example split(1, 3).",
                argument="weights",
            )
        parts = [positive(weight, "weights") for weight in weights]
        return tuple(Budget(self.epsilon * part / sum(parts)) for part in parts)

    def posterior(self, prior: float = 0.5) -> float:
        """Return how sure anybody may become of a guess about one unit, at most.

        Epsilon in the words of a board: whoever was this sure beforehand that a user is in the
        data (or that the user's data are this and not that) is at most so sure after seeing
        everything that was published. The odds grow by exp(epsilon) at most.

        Parameters
        ----------
        prior : float
            How sure somebody is beforehand, between 0 and 1: 0.5 is fifty-fifty.

        Examples
        --------
        >>> f"{Budget(1).posterior():.3f}, {Budget(1).posterior(0.01):.3f}"
        '0.731, 0.027'
        """
        if isinstance(prior, bool) or not isinstance(prior, Real) or not 0 <= prior <= 1:
            raise PrivacyError(
                Argument("prior", repr(prior)),
                " is no probability: give a number from 0 to 1, such as 0.5",
            )
        sure = float(prior)
        return sure / (sure + (1 - sure) * math.exp(-min(float(self), _LARGEST_EXPONENT)))

    def surest(self, prior: float = 0.5) -> str:
        """Return `posterior` in words, rounded up: a bound that is rounded down does not hold."""
        percent = _rounded_up(100 * self.posterior(prior), 1)
        return "as good as 100 %" if percent >= 100 else f"{percent:g} %"

    def odds_change(self) -> str:
        """Return in words how many times the odds of a guess change at most, rounded up."""
        odds = math.exp(min(float(self), _LARGEST_EXPONENT))
        digits = 1 if odds < 100 else 0
        return f"{_rounded_up(odds, digits):,.{digits}f}" if odds < 1e9 else "over a billion"

    @staticmethod
    def warn_large(budgets: Iterable[Budget], stacklevel: int) -> None:
        """Warn of epsilons that protect next to nothing."""
        if large := [str(budget) for budget in budgets if budget.epsilon > LARGE_EPSILON]:
            warnings.warn(
                SettingWarning(
                    f"epsilon {', '.join(large)} protects next to nothing: above {LARGE_EPSILON}, "
                    f"the odds of a guess about one person may grow more than "
                    f"{math.exp(LARGE_EPSILON) / 1e6:.0f} million times. Choose a smaller one, "
                    f"such as 1",
                    argument="epsilon",
                ),
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
        refuse_other(self.neighbours, Neighbours, "neighbours", PrivacyError)
        refuse_other(self.unit, Unit, "unit", PrivacyError)

    @property
    def sensitivity_factor(self) -> int:
        """How many regions differ between two neighbours: 1, or 2 under replace-one."""
        return 2 if self.neighbours == "replace-one" else 1

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


def _refuse_longer(epsilon: Fraction, digits: int) -> None:
    if max(epsilon.numerator, epsilon.denominator) >= 10**digits:
        raise PrivacyError(
            Argument("epsilon"), f" is a fraction of more than {digits} digits: round it down."
        )


def _rounded_up(bound: float, digits: int) -> float:
    return math.ceil(10**digits * bound) / 10**digits
