"""A tree in which every branch is alike has the fits of the strategy that measures the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpregions.mechanisms.footprint.fits import covert_fit, signed_fit
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy, Level
from dpregions.mechanisms.footprint.measuring import integer_variance
from dpregions.mechanisms.footprint.tree.growing import Batch
from dpregions.mechanisms.footprint.tree.grown import Grown
from dpregions.mechanisms.footprint.tree.ladder import Ladder
from dpregions.privacy.budget import Budget
from support.tree_growth import every_key, every_point
from support.trees import buckets_of, measured_of

LEAVES = Level(1, "letters")
PLANS = {
    "sizes alone": (WHOLE, LEAVES),
    "blocks of 2": (WHOLE, Level(2, "all"), LEAVES),
    "cells": (WHOLE, Level(1, "all"), LEAVES),
    "blocks of 4, blocks of 2": (WHOLE, Level(4, "all"), Level(2, "all"), LEAVES),
}
# Shapes whose sides are no powers of 2: nodes at the border are cut, as blocks are.
SHAPES = [(6, 5), (5, 7)]


def variance(share) -> float:
    return integer_variance(Budget(share), 1)


class Pair:
    """The same noisy counts as a strategy's and as a tree's."""

    def __init__(self, shape, levels, seed) -> None:
        buckets = self.buckets = buckets_of(shape, 1)
        prior = np.zeros((3, 3))
        prior[buckets.heights, buckets.widths] = buckets.weights
        self.ladder = ladder = Ladder(*shape, 2, buckets.filed, prior / prior.sum())
        # Both expect sizes as the prior has them, evenly over their places.
        self.expected = (buckets.weights / np.diff(buckets.starts))[buckets.letters]
        self.keys = ladder.keys(*buckets.points(np.arange(len(buckets))))
        rng, hierarchy = np.random.default_rng(seed), Hierarchy.of(buckets, levels)
        exact = rng.poisson(rng.gamma(0.3, 4, len(buckets)))
        shares = [Fraction(1, 20), *[Fraction(1, n + 2) for n in range(1, len(levels))]]
        values, batches = [], []
        for at, share in zip(levels, shares, strict=True):
            noisy = hierarchy.sums(at, exact) + rng.integers(
                -6, 7, hierarchy.sizes[levels.index(at)]
            )
            values.append(noisy)
            if at != WHOLE:
                batches.append(self.batch(at, hierarchy.parts(at), noisy, share))
        spread = [variance(share) for share in shares]
        self.measured = measured_of(hierarchy, values, spread)
        total = float(values[0][0]), spread[0]
        self.grown = Grown.of(ladder, ladder.prior, total, batches, variance)

    def batch(self, at, part, noisy, share) -> Batch:
        """The counts of a strategy's level, as those of the nodes that are the same parts."""
        wide = 1 if at.letters == "letters" else 2
        (level,) = [
            i for i, r in enumerate(self.ladder.rungs) if (r.block, r.wide) == (at.block, wide)
        ]
        node = self.keys >> self.ladder.rungs[level].shift
        nodes, first, which = np.unique(node, return_index=True, return_inverse=True)
        found = part[first]
        np.testing.assert_array_equal(found[which], part)  # the very same parts
        return Batch(level, nodes, share, noisy[found])

    def of_buckets(self, fit: np.ndarray) -> np.ndarray:
        """Counts of a tree's leaves, single sizes in single cells, in the order of buckets."""
        leaf = self.grown.leaves
        assert (self.grown.level[leaf] == len(self.ladder.rungs) - 1).all()
        return fit[leaf][np.searchsorted(self.grown.keys[leaf], self.keys)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_uniform_tree_has_the_signed_fit_of_its_strategy(shape, plan, seed):
    pair = Pair(shape, PLANS[plan], seed)
    wanted = signed_fit(pair.measured, pair.expected)
    np.testing.assert_allclose(pair.of_buckets(pair.grown.fitted), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_uniform_tree_has_the_covert_fit_of_its_strategy(shape, plan, seed):
    pair = Pair(shape, PLANS[plan], seed)
    wanted = covert_fit(pair.measured, pair.expected)
    found = pair.of_buckets(pair.grown.held())
    assert (found >= 0).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("plan", PLANS)
def test_children_sum_to_their_nodes_in_both_fits(plan):
    grown = Pair((6, 5), PLANS[plan], 3).grown
    for fit in (grown.fitted, grown.held()):
        below = np.bincount(grown.parent[1:], fit[1:], len(grown))
        inner = ~grown.is_leaf
        np.testing.assert_allclose(below[inner], fit[inner], rtol=1e-9, atol=1e-9)


def test_the_signed_fit_of_a_ragged_tree_is_weighted_least_squares():
    """Some branches end early, and one leaf is measured twice: beside the normal equations."""
    pair = Pair((6, 5), PLANS["blocks of 4, blocks of 2"], 5)
    ladder, rng = pair.ladder, np.random.default_rng(7)
    blocks, _ = ladder.children(0, np.zeros(1, np.int64), 1)
    opened, closed = blocks[:2], blocks[2:]
    below, _ = ladder.children(1, opened, 3)

    def batch(level, nodes, share):
        return Batch(level, nodes, share, rng.integers(-9, 50, len(nodes)))

    batches = [
        batch(1, blocks, Fraction(3, 10)),
        batch(1, closed, Fraction(7, 10)),
        batch(3, below, Fraction(7, 10)),
    ]
    grown = Grown.of(ladder, ladder.prior, (90.0, 40.0), batches, variance)
    keys = np.sort(every_key(ladder))
    assert len(keys) == len(every_point(ladder))
    rows, seen, precision = [np.ones(len(keys))], [90.0], [1 / 40.0]
    for one in batches:
        node = keys >> ladder.rungs[one.level].shift
        rows += [node == at for at in one.nodes]
        seen += one.values.tolist()
        precision += [1 / variance(one.share)] * len(one.nodes)
    weight = np.sqrt(precision)
    matrix, wanted = np.array(rows) * weight[:, None], np.array(seen) * weight
    best, *_ = np.linalg.lstsq(matrix, wanted, rcond=None)
    for i in range(len(grown)):
        inside = keys >> ladder.rungs[grown.level[i]].shift == grown.keys[i]
        assert grown.fitted[i] == pytest.approx(best[inside].sum(), abs=1e-6)
