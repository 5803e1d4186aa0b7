"""Counts on a complex: the tables that the walk over it reads, and sums of what bodies touch.

Components lie along a Hilbert curve inside, so that what is near in the plane is near in memory;
whoever reads a histogram or a list sees the order of the complex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from dpregions.curve import along_curve
from dpregions.geometry.complexes import ACROSS, Complex, Ragged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.complex_kernel import Walk
    from dpregions.geometry.outlines import Outlines

_BUCKETS_A_FACE = 8
_MOST_LINES = 1 << 10
_COARSE = 14
"""Bits of a place that say nothing about the order of faces."""
_ONCE = np.zeros(0, np.int64)


class Counting(NamedTuple):
    """A walk, and the number in the complex of each of its components."""

    walk: Walk
    number: NDArray[np.int64]

    @classmethod
    def of(cls, complex_: Complex) -> Counting:
        """Return the tables for a complex that was checked."""
        from dpregions.geometry.complex_kernel import Walk
        from dpregions.geometry.tiling_kernel import face_buckets

        c, n_faces = complex_, complex_.n_faces
        sizes = np.diff(c.offsets)
        low, high = _face_bounds(c)
        middle = (low + high) // 2
        col, row = np.clip(middle, 0, ACROSS - 1) >> _COARSE
        faces = np.argsort(along_curve(row, col), kind="stable")
        first = np.concatenate([[0], np.cumsum(sizes[faces])])
        sides = np.repeat(c.offsets[:-1][faces] - first[:-1], sizes[faces]) + np.arange(first[-1])
        face_rank = _rank(faces, n_faces)
        points = _by_appearance(c.points[sides])
        point_rank = _rank(points, c.x.size)
        edges = _by_appearance(c.side_edge[sides])
        edge_rank = _rank(edges, c.n_edges)
        vertex = np.full(c.x.size, -1)
        vertex[c.vertices] = np.arange(c.n_vertices)
        vertices = _by_appearance(vertex[points])
        vertex_rank = _rank(vertices, c.n_vertices)

        twin, edge = c.side_twin[sides], c.side_edge[sides]
        inner = twin >= 0
        segment = np.unique(np.where(inner, np.minimum(sides, twin), sides), return_inverse=True)[1]
        beyond = np.where(inner, face_rank[c.side_face[twin]], -1)
        component = np.where(inner, n_faces + edge_rank[edge], -1)
        table = np.stack([point_rank[c.points[sides]], beyond, component, segment], axis=-1)
        at = vertex[points]
        of_point = np.where(at >= 0, n_faces + c.n_edges + vertex_rank[at], -1)
        x, y = c.x[points].astype(np.int64), c.y[points].astype(np.int64)
        n_lines = min(int((_BUCKETS_A_FACE * n_faces) ** 0.5), _MOST_LINES)
        lines = [_lines_at(v, n_lines) for v in middle]
        ring = table[:, 0].astype(np.int64)
        bucket_faces, bucket_list = face_buckets(x, y, first, ring, *lines)
        borders = np.flatnonzero(~inner)
        bucket_borders, which = _border_buckets(c, sides[borders], lines)
        number = np.concatenate([faces, n_faces + edges, n_faces + c.n_edges + vertices])
        walk = Walk(
            x=x.astype(np.int32),
            y=y.astype(np.int32),
            vertex=of_point.astype(np.int32),
            first=first.astype(np.int32),
            sides=np.ascontiguousarray(table, dtype=np.int32),
            n_segments=int(segment.max()) + 1,
            n_components=c.n_components,
            x_lines=lines[0],
            y_lines=lines[1],
            bucket_faces=bucket_faces,
            faces=bucket_list,
            bucket_borders=bucket_borders,
            borders=borders[which].astype(np.int32),
            border_face=face_rank[c.side_face[sides[borders[which]]]].astype(np.int32),
            is_open=not (c.area.size and c.is_sealed),
            is_bent=bool((c.border_turns < 0).any()),
        )
        return cls(walk, number)

    def touched(self, outlines: Outlines) -> Ragged:
        """Return the components that each body touches, in ascending order."""
        from dpregions.geometry.complex_kernel import touched_lists

        offsets, items = touched_lists(self.walk, outlines.xy, outlines.offsets)
        body = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        n = np.int64(self.walk.n_components)
        return Ragged(offsets, np.sort(body * n + self.number[items]) - body * n)


class PartitionCounts:
    """Counts of bodies on a partition while they are added.

    Parts are summed in any order with ``+=``; `histogram` leaves them as they are.
    """

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._counts = np.zeros(counting.number.size, np.int64)

    def add(self, outlines: Outlines) -> None:
        """Add bodies by their outlines."""
        self.add_times(outlines, _ONCE)

    def add_times(self, outlines: Outlines, times: NDArray[np.int64]) -> None:
        """Add bodies by their outlines, each so many times."""
        from dpregions.geometry.complex_kernel import add_bodies

        add_bodies(self._counting.walk, outlines.xy, outlines.offsets, times, self._counts)

    def __iadd__(self, other: PartitionCounts) -> Self:
        """Add what another part on the same partition counted."""
        self._counts += other._counts
        return self

    def __mul__(self, times: int) -> PartitionCounts:
        """Return what so many bodies give where there is one."""
        made = PartitionCounts(self._counting)
        made._counts = times * self._counts
        return made

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where counts are not 0, in the order of the walk, and the counts."""
        index = np.flatnonzero(self._counts)
        return index, self._counts[index]

    def add_entries(self, index: NDArray[np.int64], value: NDArray[np.int64]) -> None:
        """Add counts of other parts."""
        np.add.at(self._counts, index, value)

    def histogram(self) -> NDArray[np.int64]:
        """Return the count of each component: faces, then edges, then vertices."""
        counts = np.empty_like(self._counts)
        counts[self._counting.number] = self._counts
        return counts

    @property
    def nbytes(self) -> int:
        """How much memory it holds."""
        return self._counts.nbytes


def _face_bounds(c: Complex) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest x and y of each face, (2, n_faces) each."""
    xy = np.stack([c.x[c.points], c.y[c.points]]).astype(np.int64)
    starts = c.offsets[:-1]
    return np.minimum.reduceat(xy, starts, axis=1), np.maximum.reduceat(xy, starts, axis=1)


def _rank(order: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return where each of n numbers stands in an order, and -1 where there is none, at -1."""
    rank = np.full(n + 1, -1)
    rank[order] = np.arange(n)
    return rank


def _by_appearance(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values, -1 left out, as they first appear."""
    values = values[values >= 0]
    distinct, at = np.unique(values, return_index=True)
    return distinct[np.argsort(at, kind="stable")].astype(np.int64)


def _lines_at(values: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return up to n - 1 lines with about as many values between any two."""
    ordered = np.sort(values)
    return np.unique(ordered[(np.arange(1, n) * ordered.size) // max(n, 1)])


def _border_buckets(
    c: Complex, sides: NDArray[np.int64], lines: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of some sides reach into each bucket, by their boxes."""
    spans = []
    for v, line in zip((c.x, c.y), lines, strict=True):
        ends = np.sort([v[c.points[sides]], v[c.side_end[sides]]], axis=0)
        spans.append(np.searchsorted(line, ends, side="right"))
    (col0, col1), (row0, row1) = spans
    wide, high = col1 - col0 + 1, row1 - row0 + 1
    which = np.repeat(np.arange(sides.size), wide * high)
    place = np.arange(which.size) - np.repeat(np.cumsum(wide * high) - wide * high, wide * high)
    columns = lines[0].size + 1
    bucket = (row0[which] + place // wide[which]) * columns + col0[which] + place % wide[which]
    order = np.argsort(bucket, kind="stable")
    sizes = np.bincount(bucket, minlength=columns * (lines[1].size + 1))
    return np.concatenate([[0], np.cumsum(sizes)]), which[order]
