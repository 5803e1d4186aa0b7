"""An oracle for bodies on a complex: exact rationals, an explicit shift, every component tried.

A body is moved by (e, e * e) with e = 2**-80, far below what integers of 31 bits can tell apart.
All coordinates times 2**160 are whole, so Python's integers have them exactly. No walk, no masks,
no folded ties: nothing is shared with the kernel.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dpregions.geometry.complexes import Complex
from dpregions.geometry.outlines import Outlines

_SCALE = 2**160
_SHIFT = 2**80, 1  # e and e * e, times the scale

Point = tuple[int, int]


def outlines_of(bodies: list[list[Point]]) -> Outlines:
    """Return bodies, given as hulls, as the library holds them."""
    offsets = np.concatenate([[0], np.cumsum([len(body) for body in bodies])]).astype(np.int64)
    xy = np.array([p for body in bodies for p in body], np.int64).reshape(-1, 2)
    return Outlines(xy, offsets)


def hull_of(points: list[Point]) -> list[Point]:
    """Return the strict convex hull, counter-clockwise (Andrew's chains, on Python's integers)."""
    points = sorted({(int(x), int(y)) for x, y in points})
    if len(points) < 3:
        return points
    chains = []
    for ordered in (points, points[::-1]):
        chain: list[Point] = []
        for p in ordered:
            while len(chain) > 1 and _cross(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        chains.append(chain[:-1])
    return chains[0] + chains[1]


def touched_by(c: Complex, body: list[Point]) -> list[int]:
    """Return the components that a body touches, ascending."""
    moved = [(x * _SCALE + _SHIFT[0], y * _SCALE + _SHIFT[1]) for x, y in body]
    at = [(int(x) * _SCALE, int(y) * _SCALE) for x, y in zip(c.x, c.y, strict=True)]
    found = []
    for face in range(c.n_faces):
        ring = [at[p] for p in c.ring(face)]
        sides = zip(ring, ring[1:] + ring[:1], strict=True)
        if any(_in_ring(p, ring) for p in moved) or any(_meets(moved, *side) for side in sides):
            found.append(face)
    offsets, items = c.edge_points
    for edge in range(c.n_edges):
        chain = [at[p] for p in items[offsets[edge] : offsets[edge + 1]]]
        if any(_meets(moved, *side) for side in pairwise(chain)):
            found.append(c.n_faces + edge)
    for number, vertex in enumerate(c.vertices):
        if len(moved) > 2 and _in_ring(at[vertex], moved):
            found.append(c.n_faces + c.n_edges + number)
    return found


def _cross(a: Point, b: Point, p: Point) -> int:
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def _in_ring(p: Point, ring: list[Point]) -> bool:
    """Whether a point is inside a ring, by the winding number; it is never on the ring."""
    winding = 0
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        side = _cross(a, b, p)
        assert side != 0 or not min(a[1], b[1]) <= p[1] <= max(a[1], b[1])
        if a[1] <= p[1] < b[1] and side > 0:
            winding += 1
        elif b[1] <= p[1] < a[1] and side < 0:
            winding -= 1
    return winding != 0


def _meets(body: list[Point], u: Point, v: Point) -> bool:
    """Whether a segment has an end in a body, or crosses one of its sides."""
    if len(body) < 2:
        return False
    if len(body) > 2 and (_in_ring(u, body) or _in_ring(v, body)):
        return True
    sides = zip(body, body[1:] + body[:1], strict=True)
    return any(_cross_each_other(a, b, u, v) for a, b in sides)


def _cross_each_other(a: Point, b: Point, u: Point, v: Point) -> bool:
    one, other = _cross(a, b, u), _cross(a, b, v)
    three, four = _cross(u, v, a), _cross(u, v, b)
    assert one and other and three and four, "the shift leaves every line"
    return (one > 0) != (other > 0) and (three > 0) != (four > 0)
