"""The doubled array: made of outlines or spans, in parts or whole, and summed over rectangles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import box

from dpregions import EulerHistogram, Grid
from dpregions.errors import InputError
from dpregions.geometry import doubled
from dpregions.geometry.doubled import SignedTable, SpanCounts, doubled_array
from dpregions.intake.regions import outlines_of

GRID = Grid(0, 0, 1, n_rows=3, n_cols=4)
BOXES = [box(0.5, 0.5, 2.5, 1.5), box(3.2, 2.2, 3.4, 2.4), box(-1, -1, 9, 9)]


def outlines(boxes):
    return outlines_of(np.array(boxes, object), None, GRID, None)


def test_parts_added_in_any_order_are_the_whole_histogram():
    whole = EulerHistogram.from_regions(BOXES, GRID).counts
    parts = [SpanCounts(*GRID.shape) for _ in BOXES]
    for part, shape in zip(parts, BOXES, strict=True):
        part.add(outlines([shape]))
    last, *others = parts[::-1]
    for other in others:
        last += other
    np.testing.assert_array_equal(last.histogram(), whole)


@pytest.mark.parametrize("n", [682, 683, 1_400])
def test_many_bodies_at_once_count_as_one_by_one(n):
    """Ends of spans are noted before they are added, 4,096 at once; a body has six of them here."""
    shapes = [BOXES[0]] * n
    at_once, each = SpanCounts(*GRID.shape), SpanCounts(*GRID.shape)
    at_once.add(outlines(shapes))
    for shape in shapes:
        each.add(outlines([shape]))
    np.testing.assert_array_equal(at_once.histogram(), each.histogram())
    assert at_once.histogram()[2, 2] == n


def test_a_histogram_can_be_taken_before_more_is_added():
    counts = SpanCounts(*GRID.shape)
    counts.add(outlines(BOXES[:1]))
    before = counts.histogram()
    counts.add(outlines(BOXES[1:]))
    np.testing.assert_array_equal(before, EulerHistogram.from_regions(BOXES[:1], GRID).counts)
    np.testing.assert_array_equal(
        counts.histogram(), EulerHistogram.from_regions(BOXES, GRID).counts
    )


def test_patterns_count_the_cells_and_the_edges_between_them_so_many_times():
    counts = SpanCounts(2, 4)
    # Three cells in a row; and an L, whose middle line is crossed at its left.
    spans = np.array([[[0, 2], [1, 0], [1, 0]], [[0, 1], [0, 0], [0, 0]]], np.int16)
    row, col, times = np.array([0, 0]), np.array([0, 2]), np.array([2, 5])
    counts.add_patterns(row, col, spans, np.array([0, 1]), times)
    assert counts.histogram().tolist() == [
        [2, 2, 2, 2, 7, 5, 5], [0, 0, 0, 0, 5, 0, 0], [0, 0, 0, 0, 5, 0, 0]
    ]  # fmt: skip
    assert counts.nbytes == 3 * 8 * 8


def test_many_patterns_are_counted_by_a_compiled_loop_with_the_same_counts(monkeypatch):
    rng = np.random.default_rng(0)
    spans = np.sort(rng.integers(0, 4, (9, 7, 2)), axis=2).astype(np.int16)
    spans[rng.random((9, 7)) < 0.3] = 1, 0
    bodies = rng.integers(0, 5, 200), rng.integers(0, 5, 200)
    which, times = rng.integers(0, 9, 200), rng.integers(1, 4, 200)
    found = []
    for limit in (0, 1 << 20):  # the only way to a large number of bodies in a small test
        monkeypatch.setattr(doubled, "_COMPILED", limit)
        counts = SpanCounts(9, 9)
        counts.add_patterns(*bodies, spans, which, times)
        found.append(counts.histogram())
    np.testing.assert_array_equal(*found)
    assert found[0].any()


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 99), st.booleans())
def test_a_rectangle_sums_faces_and_vertices_less_edges(n_rows, n_cols, seed, whole):
    rng = np.random.default_rng(seed)
    shape = 2 * n_rows - 1, 2 * n_cols - 1
    counts = rng.integers(-9, 9, shape) if whole else rng.normal(size=shape)
    table = SignedTable(counts)
    sign = np.where(np.indices(shape).sum(axis=0) % 2, -1, 1)
    for row0, row1 in zip(*np.triu_indices(n_rows), strict=True):
        for col0, col1 in zip(*np.triu_indices(n_cols), strict=True):
            part = slice(2 * row0, 2 * row1 + 1), slice(2 * col0, 2 * col1 + 1)
            expected = pytest.approx((counts * sign)[part].sum(), abs=1e-9)
            assert table.rectangle(row0, row1, col0, col1) == expected
            assert table.rectangles(row0, row1, col0, col1) == expected
    assert table.rectangles(*np.zeros((4, 3), int)).dtype == counts.dtype


@pytest.mark.parametrize("counts", [[[-(2**63)]], np.array([[2**63]], np.uint64), [[1.7e308]]])
def test_counts_that_would_wrap_or_overflow_are_refused(counts):
    with pytest.raises(InputError, match="between"):
        doubled_array(counts)


def test_narrow_and_unsigned_integers_become_int64():
    assert doubled_array(np.array([[250]], np.uint8)).dtype == np.int64
    assert doubled_array(np.array([[1.5]], np.float32)).dtype == np.float64
