"""The public list of groups, what is no such list, and what groups cost together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpregions.errors import InputError, InputTypeError
from dpregions.privacy.budget import Budget
from dpregions.privacy.groups import LONGEST_LABEL, Groups


def test_no_column_and_no_list_are_no_groups():
    assert Groups.of(None, None) is None


@pytest.mark.parametrize(
    ("by", "groups", "error", "match"),
    [
        ("age", None, InputError, "go together"),
        (None, ["a"], InputError, "go together"),
        (3, ["a"], InputTypeError, "must name a column"),
        ("age", "a,b", InputTypeError, "must be a list"),
        ("age", 7, InputTypeError, "must be a list"),
        ("age", [], InputError, "is empty"),
        ("age", ["a", "b", "a"], InputError, "'a' more than once"),
        ("age", [1, "1"], InputError, "'1' more than once"),
        ("age", ["a", 1.5], InputTypeError, "has 1.5"),
        ("age", ["a", None], InputTypeError, "has None"),
        ("age", [""], InputError, "1 to 100 printable"),
        ("age", ["a\nb"], InputError, "1 to 100 printable"),
        ("age", ["x" * (LONGEST_LABEL + 1)], InputError, "1 to 100 printable"),
        ("a\tb", ["a"], InputError, "must be a name"),
        ("age", range(Groups.MOST + 1), InputError, "1,001 groups, more than 1,000"),
    ],
)
def test_what_is_no_list_of_groups_is_refused(by, groups, error, match):
    with pytest.raises(error, match=match) as caught:
        Groups.of(by, groups)
    assert caught.value.argument in ("by", "groups")


def test_numbers_and_truth_values_are_listed_by_their_words():
    made = Groups.of("zone", [1, np.int64(20), True, "b"])
    assert made is not None and made.labels == ("1", "20", "true", "b")
    assert made.alone(np.int64(20)).only == "20"
    with pytest.raises(InputError, match="'21' is none of the groups: there are 1, 20, true, b"):
        made.alone(21)


def test_groups_cost_as_much_as_one_of_them():
    groups = Groups("age", ("a", "b", "c"))
    assert groups.cost(Budget(0.5), "add-remove", half_for_one=False) == Budget(0.5)
    assert groups.cost(Budget(0.5), "add-remove", half_for_one=True) == Budget(0.5)
    assert groups.cost(Budget(0.5), "replace-one", half_for_one=True) == Budget(0.5)


def test_groups_of_a_mechanism_that_declares_nothing_cost_their_sum_where_users_may_change():
    groups = Groups("age", ("a", "b", "c"))
    found = groups.cost(Budget(0.5), "replace-one", half_for_one=False)
    assert found.epsilon == Fraction(3, 2)


def test_a_long_list_is_cut_short_in_words():
    assert Groups("zone", tuple(map(str, range(20)))).in_words().endswith("10, 11 and 8 more")
