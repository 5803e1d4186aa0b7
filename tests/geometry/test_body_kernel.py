"""Bodies cut to a convex area: they keep to their buffers, whatever the ring, and to the area."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from dpregions.geometry.body_kernel import _cut
from dpregions.geometry.hull_kernel import hull

STRAIGHT = np.array(
    [[0, 0], *zip(np.cumsum(4 * np.arange(60, 20, -1)), range(1, 41), strict=True), [3240, 540]]
)
"""Forty sides that are nearly one line: a corner to the nearest step is outside several of them."""

FAR = [
    [-485485, -35619],
    [1547467, 6273],
    [1774496, 83723],
    [1334287, 159551],
    [-1409067, 99324],
    [-1858575, -25372],
]


def cut(body, ring, cut=_cut.py_func):
    """Cut a body in the room that `outlines` gives it. Python's arrays refuse an index beyond."""
    room = len(body) + len(ring) + 4
    hx, hy, xs, ys = np.zeros((4, room), np.int64)
    hx[: len(body)], hy[: len(body)] = np.array(body).T
    m = cut(hx, hy, len(body), ring, xs, ys)
    return np.stack([hx[:m], hy[:m]], axis=-1)


def test_a_ring_of_nearly_straight_sides_is_cut_to_in_the_room_there_is():
    """It needed three corners more than that, and wrote them beyond the arrays."""
    found = shapely.Polygon(cut(FAR, STRAIGHT))
    wanted = shapely.Polygon(FAR) & shapely.Polygon(STRAIGHT)
    assert found.is_valid and found.area > 0.99 * wanted.area
    assert shapely.hausdorff_distance(found, wanted) < 300  # along sides that are nearly one line
    assert found.within(wanted.buffer(1.5))


def test_what_is_no_hull_is_cut_in_the_room_there_is():
    """A comb crosses a side at each tooth: no signs of floats may lead beyond the arrays."""
    comb = [[x, 900 * (x % 2) - 450] for x in range(60)]
    square = np.array([[-100, 0], [100, 0], [100, 1000], [-100, 1000]])
    found = shapely.Polygon(cut(comb, square))
    assert found.is_valid and found.within(shapely.box(-100, 0, 100, 1000))


@pytest.mark.parametrize("seed", range(20))
def test_a_cut_body_is_a_strict_hull_next_to_the_intersection(seed):
    rng = np.random.default_rng(seed)
    ring = [np.rint(3000 * np.array([np.cos(a), np.sin(a)])) for a in np.arange(0, 6, 0.3)]
    ring = np.array(ring).astype(np.int64)
    x, y = rng.integers(-6000, 6000, (2, 9))
    hx, hy = np.zeros((2, 12), np.int64)
    m = hull(x, y, 9, hx, hy)
    body = np.stack([hx[:m], hy[:m]], axis=-1)
    found = cut(body, ring, _cut)
    wanted = shapely.Polygon(body) & shapely.Polygon(ring)
    assert shapely.hausdorff_distance(shapely.Polygon(found), wanted) < 30
    assert shapely.Polygon(found).symmetric_difference(wanted).area < 3 * wanted.length
    edges = np.roll(found, -1, axis=0) - found
    after = np.roll(edges, -1, axis=0)
    assert (edges[:, 0] * after[:, 1] - edges[:, 1] * after[:, 0] > 0).all()
