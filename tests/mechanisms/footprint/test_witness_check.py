"""Witnesses of a file are checked: convex, within the bound, touching just what is recorded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.geometry.grid import Grid
from dpregions.geometry.outlines import Outlines
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.witness_check import are_witnesses

STEPS = 1 << 20
SIDE = 3
points = st.tuples(st.integers(0, SIDE * STEPS - 1), st.integers(0, SIDE * STEPS - 1))
near_lines = st.tuples(
    *[st.tuples(st.integers(0, SIDE - 1), st.integers(0, 3)).map(lambda v: v[0] * STEPS + v[1])] * 2
)


def outline(corners: list[tuple[int, int]]) -> Outlines:
    grid = Grid(0, 0, 1, SIDE, SIDE)
    xy = np.array(corners) / STEPS
    return Outlines.of(xy, np.array([0, len(xy)]), grid, None)


def check(found: Outlines, height: int, width: int, spans: np.ndarray, bound: int) -> bool:
    size = np.array([height]), np.array([width])
    return are_witnesses(found.xy, found.offsets, *size, spans, np.zeros(1, np.int64), bound)


@given(st.lists(points | near_lines, min_size=3, max_size=12, unique=True))
def test_any_convex_outline_is_a_witness_of_what_the_kernel_says_it_touches(corners):
    found = outline(corners)
    if len(found.xy) < 3:
        return
    places, spans = found.footprints(SIDE, SIDE, SIDE)
    row, col, height, width = places[0]
    moved = Outlines(found.xy - np.array([col, row]) * STEPS, found.offsets)
    longest = max(int(((a - b) ** 2).sum()) for a in moved.xy for b in moved.xy)
    bound = int(np.ceil(np.sqrt(longest)))
    assert check(moved, height, width, spans, bound)
    assert not check(moved, height, width, spans, bound - 2)
    other = spans.copy()
    other[0, 0, 1] += 1
    assert not check(moved, height, width, other, bound)


def test_all_witnesses_of_a_catalogue_pass():
    c = catalogue(3, 2 * STEPS)
    of = np.repeat(np.arange(len(c)), np.diff(c.starts))
    assert are_witnesses(c.xy, c.offsets, c.heights, c.widths, c.spans, of, 2 * STEPS)
    turned = np.roll(of, 1)
    assert not are_witnesses(c.xy, c.offsets, c.heights, c.widths, c.spans, turned, 2 * STEPS)


SQUARE = [(10, 10), (90, 10), (90, 90), (10, 90)]


@pytest.mark.parametrize(
    ("corners", "good"),
    [
        (SQUARE, True),
        (SQUARE[::-1], False),  # clockwise
        ([SQUARE[0], SQUARE[2], SQUARE[1], SQUARE[3]], False),  # a bow tie
        ([*SQUARE[:2], (90, 50), *SQUARE[2:]], False),  # a corner on a straight side
        ([*SQUARE[:2], (50, 50), *SQUARE[2:]], False),  # a dent
        ([*SQUARE, *SQUARE], False),  # twice round
        ([(10, 10), (10, 10), (10, 10)], False),
        ([(-1, 10), *SQUARE[1:]], False),
    ],
)
def test_an_outline_must_be_strictly_convex_and_inside_its_footprint(corners, good):
    spans = np.array([[[0, 0]]], np.int16)
    xy = np.array(corners)
    assert check(Outlines(xy, np.array([0, len(xy)])), 1, 1, spans, 1000) is good


def test_a_pentagram_turns_left_everywhere_but_twice_round():
    angle = np.arange(5) * 4 * np.pi / 5
    xy = np.rint(1000 + 900 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)).astype(np.int64)
    spans = np.array([[[0, 0]]], np.int16)
    assert not check(Outlines(xy, np.array([0, 5])), 1, 1, spans, 10_000)
