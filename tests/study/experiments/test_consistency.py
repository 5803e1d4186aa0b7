"""Contradictions: by hand, in every method, and in fractions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpregions import paper
from dpregions.study.datasets import Setting
from dpregions.study.experiments.base import Unit, measure
from dpregions.study.experiments.consistency import (
    CONSISTENCY,
    FRACTION,
    KINDS,
    next_non_monotone,
)
from dpregions.study.harness import implied_histogram
from dpregions.study.methods import EULER
from dpregions.study.methods.baselines import CellSums
from support.small_studies import TINY, source


def test_next_pairs_by_hand():
    assert next_non_monotone(np.array([[1, 1, 1]])) == 0
    # Each cell answers 1 and both together 0.
    assert next_non_monotone(np.array([[1, 2, 1]])) == 100
    # The left cell answers 2, the right one 0, both 1: one of two pairs.
    assert next_non_monotone(np.array([[2, 1, 0]])) == 50


@given(hnp.arrays(np.int64, (5, 7), elements=st.integers(0, 3)))
def test_every_contradiction_begins_with_one_row_or_column(counts):
    assert (next_non_monotone(counts) == 0) == (paper.inconsistency(counts).non_monotone == 0)


def test_what_violates_which_constraints(tmp_path):
    table = measure(source(tmp_path), Unit(CONSISTENCY.measure, Setting(TINY, 10), 0, 2))
    mean = table.groupby("method").mean()
    kinds = list(KINDS)
    assert mean.loc[[EULER, "footprint"], kinds].eq(0).all(axis=None)
    assert mean.loc[["lin-prog", "round"], ["C1", "C2", "C3"]].eq(0).all(axis=None)
    assert mean.loc["diff-priv", kinds].gt(0).all()
    assert table[kinds].le(100).all(axis=None) and table[kinds].ge(0).all(axis=None)


def test_fractions_are_compared_exactly():
    """Sums of thirds in floats would contradict themselves."""
    cells = np.full((4, 4), 1 / 3)
    whole = np.rint(FRACTION * implied_histogram(CellSums(cells), 4, 4)).astype(np.int64)
    assert paper.violations(whole) == {"C1": 0, "C2": 0, "C3": 0}
    assert next_non_monotone(whole) == 0


def test_contradictions_are_percentages_of_pairs_of_rectangles():
    titles = [title for kind, title in KINDS.items() if "non_monotone" in kind]
    assert len(titles) == 2 and all("% of pairs" in title for title in titles)
