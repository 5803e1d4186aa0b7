"""Small partitions put together one ring at a time, slow and literal, to judge the fast code by.

Rings have whole coordinates and share their corners: no T-junctions. What a body touches is asked
of shapely, after an explicit small shift that stands for the infinitesimal one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import shapely

Point = tuple[int, int]

SCALE, SHIFT = 2.0**22, (2.0**11, 1.0)
"""Coordinates below 2**9, times SCALE, moved by SHIFT: by (e, e**2), where e = 2**-11.

Cross products are whole numbers, and the shift changes them by less than 1: only ties are decided.
"""


@dataclass
class SmallPartition:
    """Faces, inner edges and inner vertices of conforming rings."""

    rings: list[list[Point]]
    edge_faces: list[tuple[int, int]] = field(default_factory=list)
    edges: list[tuple[Point, Point]] = field(default_factory=list)
    vertices: list[Point] = field(default_factory=list)
    edges_at: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        face_of: dict[tuple[Point, Point], int] = {}
        for face, ring in enumerate(self.rings):
            if not shapely.LinearRing(ring).is_ccw:
                ring.reverse()
            face_of |= dict.fromkeys(sides(ring), face)
        at = defaultdict(list)
        for (a, b), face in face_of.items():
            if a < b and (b, a) in face_of:
                for end in (a, b):
                    at[end].append(len(self.edges))
                self.edges.append((a, b))
                self.edge_faces.append((face, face_of[b, a]))
        border = {end for a, b in face_of if (b, a) not in face_of for end in (a, b)}
        self.vertices = sorted(at.keys() - border)
        self.edges_at = [at[vertex] for vertex in self.vertices]
        assert len(self.rings) - len(self.edges) + len(self.vertices) == 1

    @property
    def segments(self) -> np.ndarray:
        """The edges as rows x, y, x, y."""
        return np.array(self.edges, np.int64).reshape(-1, 4)

    @property
    def vertex_edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Which edges end at each vertex, as offsets and members."""
        offsets = np.cumsum([0, *map(len, self.edges_at)])
        return offsets, np.array([e for edges in self.edges_at for e in edges], np.int64)

    def components(self, scale: float = 1.0) -> np.ndarray:
        """Faces, edges and vertices as geometries."""
        shapes = [
            *map(shapely.Polygon, self.rings),
            *map(shapely.LineString, self.edges),
            *map(shapely.Point, self.vertices),
        ]
        return shapely.transform(np.array(shapes), lambda xy: xy * scale)

    def touched(self, bodies: np.ndarray) -> np.ndarray:
        """How many faces, edges and vertices each body touches, by the boundary rule."""
        moved = shapely.transform(bodies, lambda xy: xy * SCALE + SHIFT)
        return self._counts(self.components(SCALE), moved)

    def touched_in_general_position(self, bodies: np.ndarray) -> np.ndarray:
        """The same without the shift, for bodies of any coordinates that graze nothing."""
        return self._counts(self.components(), bodies)

    def _counts(self, components: np.ndarray, bodies: np.ndarray) -> np.ndarray:
        body, component = shapely.STRtree(components).query(bodies, predicate="intersects")
        ends = [len(self.rings), len(self.rings) + len(self.edges)]
        found = np.zeros((len(bodies), 3), np.int64)
        np.add.at(found, (body, np.searchsorted(ends, component, side="right")), 1)
        return found


def sides(ring: Sequence[Point]) -> Iterable[tuple[Point, Point]]:
    return zip(ring, [*ring[1:], ring[0]], strict=True)


def squares(n_rows: int, n_cols: int, side: int) -> SmallPartition:
    return SmallPartition(
        [
            [(x, y), (x + side, y), (x + side, y + side), (x, y + side)]
            for y in range(0, n_rows * side, side)
            for x in range(0, n_cols * side, side)
        ]
    )


def hexagons(n_rows: int, n_cols: int, half_width: int, half_height: int) -> SmallPartition:
    """Hexagons in rows, as high as 4 half-heights, their border left ragged."""
    corners = [(0, 2), (-1, 1), (-1, -1), (0, -2), (1, -1), (1, 1)]
    rings = [
        [
            ((2 * col + row % 2 + 1 + i) * half_width, (3 * row + 2 + j) * half_height)
            for i, j in corners
        ]
        for row in range(n_rows)
        for col in range(n_cols)
    ]
    return SmallPartition(rings)


def triangles(points: Sequence[Point]) -> SmallPartition:
    """Delaunay's triangles: convex to the last bit, with vertices of many degrees."""
    made = shapely.delaunay_triangles(shapely.MultiPoint(points))
    return SmallPartition([whole_ring(part) for part in made.geoms])


def voronoi(sites: np.ndarray, steps: int = 1 << 20) -> SmallPartition:
    """Cells of sites in the unit square, on a lattice of so many steps."""
    area = shapely.box(0, 0, 1, 1)
    cells = shapely.voronoi_polygons(shapely.MultiPoint(sites), extend_to=area)
    clipped = shapely.intersection(np.array(cells.geoms), area)
    return SmallPartition([whole_ring(cell, steps) for cell in clipped])


def whole_ring(polygon: shapely.Polygon, steps: int = 1) -> list[Point]:
    ring = [(round(x * steps), round(y * steps)) for x, y in polygon.exterior.coords[:-1]]
    return [point for point, after in sides(ring) if point != after]


def discs(centres: np.ndarray, diameter: float) -> np.ndarray:
    return shapely.buffer(shapely.points(centres), diameter / 2, quad_segs=16)


def reuleaux(centres: np.ndarray, turns: np.ndarray, diameter: float) -> np.ndarray:
    """Reuleaux triangles: no body of this diameter needs a larger disc about it."""
    corner = np.array([[math.cos(a), math.sin(a)] for a in np.arange(3) * 2 * math.pi / 3])
    corner *= diameter / math.sqrt(3)
    arcs = np.concatenate(
        [
            corner[k] + diameter * np.column_stack([np.cos(a), np.sin(a)])
            for k in range(3)
            for a in [(k * 2 / 3 + 5 / 6 + np.linspace(0, 1 / 3, 12)) * math.pi]
        ]
    )
    cos, sin = np.cos(turns)[:, None], np.sin(turns)[:, None]
    x, y = arcs.T
    turned = np.stack([x * cos - y * sin, x * sin + y * cos], axis=2)
    return shapely.convex_hull(shapely.multipoints(turned + centres[:, None]))
