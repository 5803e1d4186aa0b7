"""A budget in words: never surer, and never larger odds, than is said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.privacy.budget import Budget


@given(st.floats(0.001, 20), st.floats(0.001, 0.999))
def test_what_is_said_is_never_less_than_may_be(epsilon, prior):
    said, may = Budget(epsilon).surest(prior), 100 * Budget(epsilon).posterior(prior)
    assert said == "as good as 100 %" or may <= float(said.removesuffix(" %")) < may + 0.11
    times = float(Budget(epsilon).odds_change().replace(",", ""))
    step = 0.11 if math.exp(epsilon) < 100 else 1.01
    assert math.exp(epsilon) <= times < math.exp(epsilon) + step


@pytest.mark.parametrize(
    ("epsilon", "sure", "times"),
    [(0.1, "52.5 %", "1.2"), (1, "73.2 %", "2.8"), (5, "99.4 %", "149"),
     (10, "as good as 100 %", "22,027"), (1000, "as good as 100 %", "over a billion")],
)  # fmt: skip
def test_a_bound_is_rounded_up(epsilon, sure, times):
    assert (Budget(epsilon).surest(), Budget(epsilon).odds_change()) == (sure, times)
