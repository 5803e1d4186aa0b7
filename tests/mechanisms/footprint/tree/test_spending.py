"""Every path of a tree spends its epsilon exactly, whatever noisy counts come back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.errors import InputError, OverBudgetError, PrivacyError
from dpregions.mechanisms.footprint.shapes import n_groups
from dpregions.mechanisms.footprint.tree.growing import MOST_PARTS, Adaptive
from dpregions.mechanisms.footprint.tree.measured import TreeShares
from dpregions.mechanisms.footprint.tree.meter import Meter, Spending
from dpregions.mechanisms.footprint.tree.mix import groupings
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.privacy.budget import Budget
from support.tree_growth import (
    DIAMETERS,
    SHAPES,
    Watched,
    every_key,
    every_point,
    grown_by,
    ladder_on,
    spent_on,
)
from support.watched_noise import NoNoise

LADDER = ladder_on((8, 8), 2)
HUGE = 1 << 62

LADDERS = st.builds(ladder_on, st.sampled_from(SHAPES), st.sampled_from(DIAMETERS))
BUDGETS = st.fractions(Fraction(1, 50), 20)
WAYS = st.builds(
    Adaptive,
    detail=st.sampled_from([1e-3, 0.03, 0.15, 3.0, 1e4]),
    most_children=st.sampled_from([4, 5, 16, 64, 1 << 20]),
    most_parts=st.one_of(st.integers(1, 300), st.just(MOST_PARTS)),
)
TOTALS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, float(HUGE), -float(HUGE)]), st.floats(-1e6, 1e6)
)


@st.composite
def answers(draw):
    """Noisy counts of every kind: plausible, all alike, huge, negative, without any sense."""
    kind = draw(st.sampled_from(["zero", "huge", "negative", "few", "wild", "spiky"]))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))

    def given_out(level, nodes):
        n = len(nodes)
        return {
            "zero": lambda: np.zeros(n, np.int64),
            "huge": lambda: np.full(n, HUGE),
            "negative": lambda: np.full(n, -HUGE),
            "few": lambda: rng.integers(-3, 9, n),
            "wild": lambda: rng.integers(-HUGE, HUGE, n),
            "spiky": lambda: np.where(rng.random(n) < 0.2, 10**6, rng.integers(-5, 6, n)),
        }[kind]()

    return given_out


GROWN = st.tuples(LADDERS, WAYS, TOTALS, answers(), BUDGETS, st.sampled_from([1, 2]))


def watched(grown):
    """Let a tree grow; return its levels, how it was to grow, and what was asked of the noise."""
    ladder, how, total, given_out, budget, factor = grown
    meter = Watched(given_out)
    grown_by(ladder, how, total, meter, budget=budget, factor=factor)
    return ladder, how, meter.asked


@given(GROWN)
def test_a_path_spends_epsilon_whatever_comes_back(grown):
    ladder, _, asked = watched(grown)
    assert set(spent_on(ladder, asked, every_key(ladder))) == {grown[4]}


@given(GROWN)
def test_parts_that_are_measured_together_are_disjoint_and_in_order(grown):
    _, _, asked = watched(grown)
    for _, nodes, share in asked:
        assert (np.diff(nodes) > 0).all()
        assert share > 0


@given(GROWN)
def test_the_children_of_an_opened_node_are_all_measured_empty_ones_too(grown):
    """What is asked for depends on which node opens and into which level, never on its children.

    Of every part that is measured, all parts of its level below the nearest measured one above
    it are measured too, by the same share.
    """
    ladder, _, asked = watched(grown)
    share_of = {}
    for level, nodes, share in asked:
        for node in nodes.tolist():
            share_of.setdefault((level, node), []).append(share)
    keys = every_key(ladder)
    for level, node in share_of:
        above = [
            (up, node >> ladder.rungs[up].shift - ladder.rungs[level].shift) for up in range(level)
        ]
        opened = [at for at in above if at in share_of or at == (0, 0)]
        if not opened:
            continue
        up, parent = opened[-1]
        inside = keys[keys >> ladder.rungs[up].shift == parent]
        wanted = np.unique(inside >> ladder.rungs[level].shift).tolist()
        assert {share_of[level, child][0] for child in wanted} == {share_of[level, node][0]}


@given(GROWN)
def test_there_are_never_more_counts_than_the_cap(grown):
    _, how, asked = watched(grown)
    assert sum(len(nodes) for _, nodes, _ in asked) <= how.most_parts


@pytest.mark.parametrize("most", [1, 2, 5, 16, 40, 41, 100, 600])
def test_at_the_cap_open_nodes_close_with_what_is_left_to_them(most):
    free, capped = (Watched(lambda level, nodes: np.full(len(nodes), 10**4)) for _ in range(2))
    grown_by(LADDER, Adaptive(1.0, 16), 1e6, free)
    grown_by(LADDER, Adaptive(1.0, 16, most), 1e6, capped)
    assert sum(len(nodes) for _, nodes, _ in free.asked) > most
    assert sum(len(nodes) for _, nodes, _ in capped.asked) <= most
    assert set(spent_on(LADDER, capped.asked, every_key(LADDER))) == {1}


def test_a_tree_opens_where_counts_are_large_and_stays_closed_where_they_are_small():
    """Else the tests above would look at one form of tree alone."""
    sizes = []
    for total, each in ((0.0, 0), (100.0, 5), (1e6, 10**4)):
        meter = Watched(lambda level, nodes, each=each: np.full(len(nodes), each))
        grown_by(LADDER, Adaptive(0.15, 64), total, meter)
        sizes.append(sum(len(nodes) for _, nodes, _ in meter.asked))
    assert sizes[0] == 1 < sizes[1] < sizes[2]
    crowded = Watched(lambda level, nodes: np.where(nodes == nodes.min(), 10**5, 0))
    grown_by(LADDER, Adaptive(0.15, 16), 1e5, crowded)
    shares = {share for _, _, share in crowded.asked}
    assert len(shares) > 2  # paths of several lengths


# Shares of the total, of sizes and of the tree


@given(BUDGETS, BUDGETS, st.integers(1, 65))
def test_shares_of_total_sizes_and_paths_sum_to_the_budget(first, rest, side):
    shares = TreeShares.of(side, Budget(first), Budget(rest))
    of_shapes = () if shares.shapes is None else (shares.shapes,)
    spent = (shares.first, *shares.mix, *of_shapes, shares.path)
    assert sum(share.epsilon for share in spent) == first + rest
    assert (shares.shapes is None) == (side == 1)
    assert len(shares.mix) == len(groupings(side))


@pytest.mark.parametrize("side", [1, 2, 4, 5, 20])
def test_every_size_is_in_one_group_of_each_count_of_sizes(side):
    for tall, wide in groupings(side):
        assert len(tall) == len(wide) == side + 1
        n = int(wide.max()) + 1
        groups = np.add.outer(tall[1:] * n, wide[1:])
        assert np.unique(groups).tolist() == list(range((int(tall.max()) + 1) * n))


# What the meter refuses


ROOT = np.zeros(1, np.int64)
CHILDREN, _ = LADDER.children(0, ROOT, 1)
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def test_a_node_measured_twice_beyond_the_budget_is_refused():
    spending = Spending(LADDER, Fraction(1))
    spending.add(1, CHILDREN, HALF)
    spending.add(1, CHILDREN[:1], HALF)
    with pytest.raises(OverBudgetError, match="was not"):
        spending.add(1, CHILDREN, HALF)
    with pytest.raises(OverBudgetError, match="1/1000000"):
        spending.add(0, ROOT, Fraction(1, 10**6))


def test_what_is_spent_above_counts_below_and_the_other_way():
    for first, then in (((0, ROOT), (1, CHILDREN[2:3])), ((1, CHILDREN[2:3]), (0, ROOT))):
        spending = Spending(LADDER, Fraction(1))
        spending.add(*first, 2 * THIRD)
        with pytest.raises(OverBudgetError):
            spending.add(*then, HALF)
        spending.add(*then, THIRD)


def test_parts_that_overlap_are_refused_also_where_there_is_budget_for_both():
    spending = Spending(LADDER, Fraction(100))
    for nodes in (CHILDREN[[0, 0]], CHILDREN[[1, 0]], CHILDREN[[0, 1, 1, 2]]):
        with pytest.raises(OverBudgetError, match="overlap"):
            spending.add(1, nodes, THIRD)
    for outside in (np.array([-1]), np.array([CHILDREN.max() + 1])):
        with pytest.raises(OverBudgetError, match="overlap"):
            spending.add(1, outside, THIRD)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1, 3), Fraction(-5), Fraction(4, 3)])
def test_shares_that_are_not_above_zero_or_beyond_what_is_left_are_refused(share):
    spending = Spending(LADDER, Fraction(1))
    with pytest.raises(OverBudgetError):
        spending.add(1, CHILDREN, share)
    assert set(spending.on(every_key(LADDER))) == {0}


@given(LADDERS, st.data())
def test_the_account_is_that_of_every_key_by_itself(ladder, data):
    """Any measurements in any order: what is kept in steps is what each key would add up."""
    spending, asked, budget = Spending(ladder, Fraction(1)), [], Fraction(1)
    every = np.arange(len(ladder)) if len(ladder) <= 4096 else every_key(ladder)
    for _ in range(data.draw(st.integers(1, 6))):
        level = data.draw(st.integers(0, len(ladder.rungs) - 1))
        n = len(ladder) >> ladder.rungs[level].shift
        nodes = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=12))), np.int64)
        share = data.draw(st.sampled_from([THIRD, Fraction(1, 4), Fraction(2, 3)]))
        after = spent_on(ladder, [*asked, (level, nodes, share)], every)
        if max(after) > budget:
            with pytest.raises(OverBudgetError):
                spending.add(level, nodes, share)
        else:
            spending.add(level, nodes, share)
            asked.append((level, nodes, share))
        now = spent_on(ladder, asked, every)
        assert spending.on(every) == now
        if len(every) == len(ladder):
            for at, rung in enumerate(ladder.rungs):
                node = data.draw(st.integers(0, (len(ladder) >> rung.shift) - 1))
                inside = now[node << rung.shift : (node + 1) << rung.shift]
                found = spending.is_settled(at, np.array([node]))
                assert found == (set(inside) == {budget})


def test_a_path_is_settled_only_when_all_of_it_spent_all():
    spending = Spending(LADDER, Fraction(1))
    spending.add(1, CHILDREN, HALF)
    assert not spending.is_settled(1, CHILDREN)
    spending.add(1, CHILDREN[1:], HALF)
    assert not spending.is_settled(1, CHILDREN)
    assert spending.is_settled(1, CHILDREN[1:])
    assert not spending.is_settled(0, ROOT)
    below, _ = LADDER.children(1, CHILDREN[:1], 2)
    spending.add(2, below, HALF)
    assert spending.is_settled(2, below)


SHAPES = np.arange(n_groups(LADDER.side))
"""Some regions by group of shapes."""


def counted(n: int = 50):
    """Some regions by key."""
    keys = np.sort(every_key(LADDER))
    return keys, np.arange(len(keys)) % 3


def test_a_meter_refuses_before_it_draws():
    noise = NoNoise()
    meter = Meter(LADDER, counted(), SHAPES, Budget(1), 1, noise)
    meter.counts(1, CHILDREN, Budget(HALF))
    drawn = len(noise.calls)
    for refused in (
        lambda: meter.counts(1, CHILDREN, Budget(2 * THIRD)),
        lambda: meter.counts(1, CHILDREN[[0, 0]], Budget(THIRD)),
        lambda: meter.sizes(*groupings(LADDER.side)[0], Budget(2 * THIRD)),
        lambda: meter.shapes(Budget(2 * THIRD)),
    ):
        with pytest.raises(OverBudgetError):
            refused()
    assert len(noise.calls) == drawn == 1


def test_counts_of_shapes_are_charged_to_every_key():
    meter = Meter(LADDER, counted(), SHAPES, Budget(1), 1, NoNoise())
    assert meter.shapes(Budget(THIRD)).tolist() == SHAPES.tolist()
    assert set(meter.spending.on(every_key(LADDER))) == {THIRD}


def test_counts_of_sizes_are_charged_to_every_key():
    meter = Meter(LADDER, counted(), SHAPES, Budget(1), 1, NoNoise())
    meter.sizes(*groupings(LADDER.side)[0], Budget(THIRD))
    assert set(meter.spending.on(every_key(LADDER))) == {THIRD}


def test_a_meter_draws_with_the_share_that_it_charges_and_the_sensitivity_it_has():
    noise = NoNoise()
    meter = Meter(LADDER, counted(), SHAPES, Budget(1), 2, noise)
    meter.sizes(*groupings(LADDER.side)[0], Budget(Fraction(1, 8)))
    meter.counts(1, CHILDREN, Budget(Fraction(1, 4)))
    assert noise.calls == [(0.125, 2), (0.25, 2)]


def test_a_meter_counts_every_region_in_the_node_that_holds_it():
    keys, n = counted()
    meter = Meter(LADDER, (keys, n), SHAPES, Budget(1), 1, NoNoise())
    found = meter.counts(1, CHILDREN, Budget(HALF))
    shift = LADDER.rungs[1].shift
    assert found.tolist() == [int(n[keys >> shift == node].sum()) for node in CHILDREN]


# Adaptive


@pytest.mark.parametrize(
    "wrong",
    [
        {"detail": 0.0}, {"detail": -1.0}, {"detail": float("nan")}, {"detail": float("inf")},
        {"detail": 1e6}, {"detail": 1}, {"detail": "0.1"}, {"most_children": 3},
        {"most_children": 4.0}, {"most_children": True}, {"most_parts": 0}, {"most_parts": -5},
        {"most_parts": MOST_PARTS + 1}, {"most_parts": 1e3},
    ],
    ids=str,
)  # fmt: skip
def test_a_tree_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match="a tree has a detail above 0"):
        Adaptive(**{"detail": 0.1, "most_children": 64} | wrong)


def test_shares_above_one_cannot_be_made():
    assert 0 < TUNING.tree_first < 1
    with pytest.raises(PrivacyError):
        Budget(1).split(TUNING.tree_mix, -TUNING.tree_mix)


def test_every_possible_region_of_the_largest_grid_here_was_looked_at():
    assert len(every_point(LADDER)) == len(np.unique(every_key(LADDER))) > 400
