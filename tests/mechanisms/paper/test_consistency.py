"""What C1-C3 say, what they do not, and the measure of consistency that they are not."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpregions import EulerHistogram, Grid
from dpregions.errors import InputError, InputTypeError
from dpregions.geometry.doubled import SignedTable
from dpregions.mechanisms.paper import consistency
from dpregions.mechanisms.paper.consistency import (
    Inconsistency,
    inconsistency,
    n_constraints,
    violations,
)
from support import oracle_lp

NONE_BROKEN = {"C1": 0, "C2": 0, "C3": 0}

sides = st.integers(1, 4).map(lambda cells: 2 * cells - 1)
shapes = st.tuples(sides, sides)
arrays = shapes.flatmap(lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(-3, 6)))


def violations_one_by_one(counts: np.ndarray) -> dict[str, int]:
    """Each component against those above it, each block summed by hand."""
    broken = dict(NONE_BROKEN)
    n_rows, n_cols = counts.shape
    for i, j in product(range(n_rows), range(n_cols)):
        if (i + j) % 2:  # an edge: its faces lie along the odd index
            di, dj = i % 2, j % 2
            broken["C1"] += counts[i, j] > counts[i - di, j - dj]
            broken["C1"] += counts[i, j] > counts[i + di, j + dj]
        elif i % 2:
            for edge in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                broken["C2"] += counts[i, j] > counts[edge]
            total = sum(
                (-1) ** (a + b) * int(counts[i + a, j + b])
                for a, b in product((-1, 0, 1), repeat=2)
            )
            broken["C3"] += total < 0
    return {name: int(n) for name, n in broken.items()}


def inconsistency_one_by_one(counts: np.ndarray) -> Inconsistency:
    """Every rectangle summed component by component, every nested pair compared."""
    n_rows, n_cols = (counts.shape[0] + 1) // 2, (counts.shape[1] + 1) // 2
    sign = np.where(np.add.outer(np.arange(counts.shape[0]), np.arange(counts.shape[1])) % 2, -1, 1)
    answer = {
        (a, b, c, d): (sign * counts)[2 * a : 2 * b + 1, 2 * c : 2 * d + 1].sum()
        for a in range(n_rows)
        for b in range(a, n_rows)
        for c in range(n_cols)
        for d in range(c, n_cols)
    }
    pairs = [
        (inner, outer)
        for inner, outer in product(answer, repeat=2)
        if outer[0] <= inner[0] <= inner[1] <= outer[1]
        and outer[2] <= inner[2] <= inner[3] <= outer[3]
    ]
    return Inconsistency(
        rectangles=len(answer),
        negative=sum(value < 0 for value in answer.values()),
        pairs=len(pairs),
        non_monotone=sum(answer[inner] > answer[outer] for inner, outer in pairs),
    )


def checkered_block(n: int = 4) -> np.ndarray:
    """All faces and edges 1, all vertices 0."""
    counts = np.ones((2 * n - 1, 2 * n - 1), dtype=np.int64)
    counts[1::2, 1::2] = 0
    return counts


# The paper's constraints


def test_twenty_by_twenty_cells_have_the_papers_3325_constraints():
    assert n_constraints(20, 20) == {"C1": 1520, "C2": 1444, "C3": 361}
    assert sum(n_constraints(20, 20).values()) == 3325


@given(st.integers(1, 6), st.integers(1, 6))
def test_constraints_are_as_many_as_the_linear_program_has_rows(n_rows, n_cols):
    matrices = oracle_lp.constraints((2 * n_rows - 1, 2 * n_cols - 1))
    assert n_constraints(n_rows, n_cols) == {name: a.shape[0] for name, a in matrices.items()}


@given(arrays)
def test_violations_are_those_found_one_by_one(counts):
    assert violations(counts) == violations_one_by_one(counts)


@given(arrays)
def test_violations_name_the_families_that_the_linear_program_finds_broken(counts):
    broken = {name for name, n in violations(counts).items() if n}
    assert broken == set(oracle_lp.violated(counts)) - {"x >= 0"}


def test_each_side_of_each_constraint_counts_once():
    tall_edge = np.array([[1, 5, 1], [0, 0, 0], [1, 0, 1]])
    assert violations(tall_edge) == {"C1": 2, "C2": 0, "C3": 1}
    tall_vertex = np.array([[9, 1, 9], [1, 2, 1], [9, 1, 9]])
    assert violations(tall_vertex) == {"C1": 0, "C2": 4, "C3": 0}


def test_percentages_are_of_each_familys_own_number():
    tall_vertex = np.array([[9, 1, 9], [1, 2, 5], [9, 1, 9]])
    assert violations(tall_vertex, percent=True) == {"C1": 0.0, "C2": 75.0, "C3": 0.0}
    assert violations([[3, 1, 3]], percent=True) == {"C1": 0.0, "C2": 0.0, "C3": 0.0}


@given(shapes.flatmap(lambda s: hnp.arrays(np.float64, s, elements=st.floats(0, 1e6))))
def test_rounding_of_floats_never_breaks_c3_where_c1_and_v_above_0_hold(counts):
    face, vertex = counts[::2, ::2], counts[1::2, 1::2]
    counts[::2, 1::2] = np.minimum(face[:, :-1], face[:, 1:])
    counts[1::2, ::2] = np.minimum(face[:-1], face[1:])
    vertex[...] = 0  # as small as may be: nothing helps the faces
    assert violations(counts) == NONE_BROKEN


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int8", "int16", "float32"])
def test_narrow_and_unsigned_counts_neither_wrap_nor_lose_their_sign(dtype):
    counts = np.full((3, 3), 100)
    counts[1::2, ::2] = counts[::2, 1::2] = 120
    counts[1, 1] = 0
    assert violations(counts.astype(dtype)) == violations(counts) == {"C1": 8, "C2": 0, "C3": 1}
    assert inconsistency(counts.astype(dtype)) == inconsistency(counts)
    assert inconsistency(counts).negative == 1


# Real consistency


def test_a_block_that_passes_c1_to_c3_may_still_answer_minus_8():
    counts = checkered_block()
    assert violations(counts) == NONE_BROKEN
    assert counts[::2, ::2].sum() - counts[::2, 1::2].sum() - counts[1::2, ::2].sum() == -8
    measured = inconsistency(counts)
    assert measured == inconsistency_one_by_one(counts)
    assert measured.negative > 0
    assert measured.non_monotone > 0


@given(arrays)
def test_inconsistency_is_that_found_one_by_one(counts):
    assert inconsistency(counts) == inconsistency_one_by_one(counts)


@pytest.mark.parametrize("shape", [(1, 1), (1, 13), (13, 1), (5, 11), (11, 5)])
def test_inconsistency_of_rows_columns_and_oblong_grids(shape):
    counts = np.random.default_rng(1).integers(-4, 9, shape)
    assert inconsistency(counts) == inconsistency_one_by_one(counts)
    assert inconsistency(counts.T) == inconsistency(counts)


def test_a_sample_of_large_grids_finds_the_shares_that_all_pairs_have():
    counts = np.random.default_rng(2).integers(0, 9, (13, 17))
    every = inconsistency(counts)
    sample = partial(consistency._sampled_pairs, SignedTable(counts), 7, 9, 200_000)
    sampled = sample(seed=1)
    assert sampled.rectangles == sampled.pairs == 200_000
    # Shares of 200,000 are within 0.0056 at five standard deviations.
    assert sampled.negative / 200_000 == pytest.approx(every.negative / every.rectangles, abs=0.006)
    assert sampled.non_monotone / 200_000 == pytest.approx(
        every.non_monotone / every.pairs, abs=0.006
    )
    assert sample(seed=1) == sampled != sample(seed=2)


def test_a_long_row_of_cells_is_sampled_and_not_held_as_all_pairs():
    n = consistency.SAMPLED_PAIRS
    assert inconsistency(np.ones((1, 2 * 150 - 1), dtype=int)) == (n, 0, n, 0)


quarters = st.integers(-3, 19).map(lambda q: q / 4)
bodies = st.lists(st.tuples(quarters, quarters), min_size=1, max_size=5)


@given(st.lists(bodies, max_size=6), st.integers(1, 4), st.integers(1, 4))
def test_exact_histograms_have_no_inconsistency(bodies, n_rows, n_cols):
    grid = Grid(0, 0, 1, n_rows, n_cols)
    regions = [shapely.MultiPoint(points) for points in bodies]
    counts = EulerHistogram.from_regions(regions, grid).counts
    assert violations(counts) == NONE_BROKEN
    assert inconsistency(counts)[1::2] == (0, 0)


# Arrays that are none


@pytest.mark.parametrize("check", [violations, inconsistency])
@pytest.mark.parametrize(
    ("counts", "error", "words"),
    [
        (np.zeros((4, 4)), InputError, r"\(4, 4\)"),
        (np.zeros((3, 4)), InputError, "odd shape"),
        (np.zeros((0, 3)), InputError, "odd shape"),
        (np.zeros(3), InputError, r"\(3,\)"),
        (5, InputError, "shape"),
        ([[np.nan]], InputError, "finite"),
        ([[np.inf, 0, 1]], InputError, "finite"),
        ([[2**63]], InputError, "between"),
        ([["1"]], InputTypeError, "numbers"),
        ([[True]], InputTypeError, "numbers"),
        ([[None]], InputTypeError, "numbers"),
    ],
)
def test_arrays_that_are_no_doubled_array_are_refused(check, counts, error, words):
    with pytest.raises(error, match=words):
        check(counts)
