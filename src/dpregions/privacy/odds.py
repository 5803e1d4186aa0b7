"""How sure anybody may become by a budget, in words.

Owns how such bounds are rounded: up, as a bound that is rounded down would not hold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpregions.privacy.budget import Budget

_BEYOND_WORDS = 1e9
"""Odds that grow more than this are not told apart."""


def surest(budget: Budget, prior: float) -> str:
    """Return how sure a guess may become, in percent: never less than it may."""
    percent = _rounded_up(100 * budget.posterior(prior), 1)
    return "as good as 100 %" if percent >= 100 else f"{percent:g} %"


def odds_change(budget: Budget) -> str:
    """Return how many times the odds of a guess may change: never less than they may."""
    if budget.epsilon > math.log(_BEYOND_WORDS):
        return "over a billion"
    odds = math.exp(float(budget))
    digits = 1 if odds < 100 else 0
    return f"{_rounded_up(odds, digits):,.{digits}f}"


def _rounded_up(bound: float, digits: int) -> float:
    return math.ceil(10**digits * bound) / 10**digits
