"""The most components that one body touches: proven, never exceeded, and nearly reached."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import chain, combinations, product

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions.errors import GridError, InputError
from dpregions.geometry.jung import most_touched, widest_reach
from support.small_partitions import (
    SmallPartition,
    discs,
    hexagons,
    reuleaux,
    sides,
    squares,
    triangles,
    voronoi,
)


def bound(partition: SmallPartition, diameter: int, cap: int | None = None) -> int:
    edges = partition.segments
    return most_touched(edges, np.arange(len(edges)), diameter, euler=True, cap=cap)


def lattice_reach(segments: np.ndarray, owners: np.ndarray, diameter: int) -> np.ndarray:
    """How many components each lattice point about the segments reaches, in whole numbers."""
    radius = math.isqrt(diameter * diameter // 3) + 3
    low, high = segments.min() - 2, segments.max() + 2
    x, y = np.meshgrid(np.arange(low, high + 1), np.arange(low, high + 1))
    reached = defaultdict(lambda: np.zeros(x.shape, bool))
    for (ax, ay, bx, by), owner in zip(segments.tolist(), owners.tolist(), strict=True):
        dx, dy, ex, ey = bx - ax, by - ay, x - ax, y - ay
        along, squared = dx * ex + dy * ey, dx * dx + dy * dy
        before, after = along <= 0, along >= squared
        between = (dx * ey - dy * ex) ** 2 <= radius**2 * squared
        to_start, to_end = ex**2 + ey**2, (x - bx) ** 2 + (y - by) ** 2
        near = np.where(
            before, to_start <= radius**2, np.where(after, to_end <= radius**2, between)
        )
        reached[owner] |= near
    return np.sum(list(reached.values()), axis=0)


def test_jungs_disc_about_a_triangle_reaches_what_a_disc_of_the_diameter_does_not():
    # Three points 1000 apart. The disc about them has radius 577.35, one of diameter 1000 has 500.
    points = [[0, 0, 0, 0], [1000, 0, 1000, 0], [500, 866, 500, 866]]
    assert widest_reach(points, range(3), 1000).most == 3
    assert widest_reach(points, range(3), 990).most == 2
    assert most_touched(points, range(3), 1000, euler=True) == 7
    assert most_touched(points, range(3), 1000, euler=False) == 3


def test_a_chain_of_segments_is_one_edge():
    chain_of_four = [[0, 0, 5, 0], [5, 0, 5, 5], [5, 5, 9, 9], [0, 9, 9, 9]]
    assert widest_reach(chain_of_four, [7, 7, 7, 2], 30).most == 2


@pytest.mark.parametrize("euler", [True, False])
def test_a_partition_of_one_face_has_one_component_to_touch(euler):
    assert most_touched(np.zeros((0, 4), int), [], 100, euler=euler) == 1
    far_apart = [[0, 0, 0, 0], [10**9, 0, 10**9, 0]]
    assert most_touched(far_apart, [0, 1], 0, euler=euler) == (3 if euler else 1)


whole = st.integers(0, 40)
some_segments = st.lists(
    st.tuples(whole, whole, whole, whole, st.integers(0, 6)), min_size=1, max_size=12
)


@given(some_segments, st.integers(0, 70))
@settings(deadline=None)
def test_the_search_finds_the_best_of_all_lattice_points(rows, diameter):
    table = np.array(rows, np.int64)
    reach = widest_reach(table[:, :4], table[:, 4], diameter)
    everywhere = lattice_reach(table[:, :4], table[:, 4], diameter)
    assert reach.most == reach.found == everywhere.max()


@given(some_segments, st.integers(0, 70), st.integers(0, 60))
@settings(deadline=None)
def test_a_search_that_is_cut_short_still_bounds_the_maximum(rows, diameter, most_squares):
    table = np.array(rows, np.int64)
    whole = widest_reach(table[:, :4], table[:, 4], diameter)
    cut = widest_reach(table[:, :4], table[:, 4], diameter, most_squares)
    assert cut.found <= whole.most <= cut.most <= len(np.unique(table[:, 4]))


@given(st.integers(0, 10**6), st.floats(0.05, 0.9), st.integers(2, 40))
@settings(deadline=None, max_examples=30)
def test_no_point_between_lattice_points_reaches_more(seed, share, n_sites):
    rng = np.random.default_rng(seed)
    steps = 1 << 20
    partition = voronoi(rng.random((n_sites, 2)), steps)
    diameter = int(share * steps)
    most = widest_reach(partition.segments, np.arange(len(partition.edges)), diameter).most
    side = np.linspace(0, steps, 60)
    centres = np.concatenate([np.array(list(product(side, side))), rng.random((400, 2)) * steps])
    tree = shapely.STRtree([shapely.LineString(edge) for edge in partition.edges])
    where, _ = tree.query(
        shapely.points(centres), predicate="dwithin", distance=diameter / math.sqrt(3)
    )
    assert np.bincount(where, minlength=1).max() <= most


# Bodies


FAN = [(0, 0), (60, 0), (60, 60), (0, 60), (30, 30), (30, 0), (60, 30), (30, 60), (0, 30)]
SMALL = {
    "squares": squares(3, 3, 20),
    "hexagons": hexagons(3, 3, 9, 5),
    "strips": SmallPartition(
        [[(x, 0), (x + 12, 0), (x + 12, 60), (x, 60)] for x in range(0, 60, 12)]
    ),
    "slanted strips": SmallPartition(
        [[(x, 0), (x + 12, 0), (x + 36, 60), (x + 24, 60)] for x in range(0, 60, 12)]
    ),
    "a fan of eight": triangles(FAN),
    "triangles": triangles([*FAN[:4], (17, 12), (41, 20), (25, 37), (50, 44), (9, 50)]),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("diameter", [0, 9, 21, 40])
def test_no_body_of_small_partitions_touches_more_than_the_bound(name, diameter):
    # All points, segments and triangles with corners on components' own corners, halfway between
    # them, and on a raster: sides along edges, corners on vertices, and what only grazes.
    partition = SMALL[name]
    area = shapely.union_all([shapely.Polygon(ring) for ring in partition.rings])
    own = np.array([*chain.from_iterable(partition.edges), *np.add(partition.edges, 0).mean(1)])
    raster = np.array(list(product(range(3, 60, 14), repeat=2)))
    places = np.unique(np.concatenate([own, raster]), axis=0)
    inside = area.buffer(-0.25, join_style="mitre")
    places = places[shapely.contains_properly(inside, shapely.points(places))]
    bodies = np.array(
        [
            shapely.MultiPoint(corners).convex_hull
            for n in (1, 2, 3)
            for corners in combinations(places.tolist(), n)
            if max((math.dist(a, b) for a, b in combinations(corners, 2)), default=0) <= diameter
        ]
    )
    bodies = bodies[shapely.contains(inside, bodies)]  # the border of hexagons is ragged
    touched = partition.touched(bodies[:: max(len(bodies) // 6000, 1)])
    faces, edges, vertices = touched.T
    np.testing.assert_array_equal(faces - edges + vertices, 1)
    np.testing.assert_array_equal(touched.sum(axis=1), 2 * edges + 1)
    assert touched.sum(axis=1).max() <= bound(partition, diameter)


def test_a_body_as_wide_as_its_bound_reaches_three_edges_that_no_disc_of_that_diameter_does():
    # A triangle whose corners are cut off 570 from its middle; those of the body are at 577.
    turns = np.radians([90, 210, 330])
    out, aside = np.stack([np.cos(turns), np.sin(turns)], -1), np.radians(90)
    across = np.stack([np.cos(turns + aside), np.sin(turns + aside)], -1)
    tips, near, far = (
        np.rint(1000 + away * out + half * across).astype(int)
        for away, half in ((693, 0), (570, 71), (570, -71))
    )
    corners = [[tips[i], near[i], far[i]] for i in range(3)]
    middle = [point for i in range(3) for point in (far[i], near[i])]
    rings = [[tuple(map(int, point)) for point in ring] for ring in (*corners, middle)]
    partition = SmallPartition(rings)
    body = shapely.Polygon(1000 + 1000 / math.sqrt(3) * out)
    assert body.length / 3 <= 1000 + 1e-9
    assert partition.touched(np.array([body])).tolist() == [[4, 3, 0]]
    assert bound(partition, 1000) == 7
    assert bound(partition, 960) == 5


@pytest.mark.parametrize(
    ("diameters", "n_sites"), [(1, 100), (2, 100), (1, 400), (2, 400), (4, 400)]
)
def test_bodies_on_random_voronoi_cells_come_within_1_4_times_of_the_bound(diameters, n_sites):
    rng = np.random.default_rng(n_sites + diameters)
    partition = voronoi(rng.random((n_sites, 2)))
    cells = shapely.minimum_bounding_circle([shapely.Polygon(ring) for ring in partition.rings])
    diameter = int(diameters * shapely.length(cells).mean() / math.pi)
    reach = widest_reach(partition.segments, np.arange(len(partition.edges)), diameter)
    assert reach.found == reach.most
    spread = rng.normal(0, diameter / 8, (1500, 2))
    centres = np.clip(np.array(reach.centre) + spread, 1, (1 << 20) - 1)
    everywhere = rng.random((3000, 2)) * (1 << 20)
    bodies = [
        discs(np.concatenate([centres, everywhere]), diameter),
        reuleaux(np.concatenate([centres, everywhere]), rng.random(4500) * 2 * math.pi, diameter),
    ]
    area = shapely.box(0, 0, 1 << 20, 1 << 20)
    touched = partition.touched_in_general_position(
        shapely.intersection(np.concatenate(bodies), area)
    )
    np.testing.assert_array_equal(touched @ [1, -1, 1], 1)
    most = touched.sum(axis=1).max()
    assert most <= bound(partition, diameter) <= 1.4 * most


@pytest.mark.parametrize(("sides", "expected"), [(1, 15), (2, 35), (4, 105)])
def test_square_cells_have_the_bound_worked_out_by_hand(sides, expected):
    # Within 0.577, 1.155 and 2.309 sides of the best point lie 7, 17 and 52 edges.
    side = 1 << 12
    assert bound(squares(8, 8, side), sides * side) == expected


@pytest.mark.parametrize("across", [True, False])
def test_collinear_sites_have_strips_and_no_vertices(across):
    sites = np.column_stack([np.linspace(0.05, 0.95, 10), np.full(10, 0.5)])
    partition = voronoi(sites if across else sites[:, ::-1])
    assert len(partition.edges) == 9
    assert partition.vertices == []
    # A disc of radius 0.1155 B is 2 B / sqrt(3) = 2.3 strips wide: three lines, where they fit.
    assert bound(partition, int(0.2 * (1 << 20))) == 2 * 3 + 1
    assert bound(partition, 2 << 20) == 2 * 9 + 1


def test_the_widest_lattice_does_not_overflow():
    width = 1 << 30
    corners = [
        [0, 0, width, width],
        [0, width, width, 0],
        [0, 0, 0, 0],
        [width, width, width, width],
    ]
    assert widest_reach(corners, range(4), 2 * width).most == 4
    assert widest_reach(corners, range(4), 1).most == 2
    with pytest.raises(InputError, match="at most"):
        widest_reach([[0, 0, 1 << 31, 0]], [0], 1)


@pytest.mark.parametrize(("owners", "diameter"), [([0], 5), ([0, 1, 2], 5), ([0, 1], -1)])
def test_segments_without_owners_and_negative_diameters_are_refused(owners, diameter):
    with pytest.raises(InputError, match=rf"2 segments, {len(owners)} owners.*{diameter} steps"):
        widest_reach([[0, 0, 1, 1], [2, 2, 3, 3]], owners, diameter)


def test_a_diameter_is_whole_so_that_none_is_rounded_down():
    with pytest.raises(TypeError):
        widest_reach([[0, 0, 1, 1]], [0], 3.9)


# Districts: F - E + V is not enforced


def districts(seed: int, n_sites: int, n_districts: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Voronoi cells joined into ragged districts: their components, and the segments of each."""
    rng = np.random.default_rng(seed)
    cells = voronoi(rng.random((n_sites, 2)))
    middles = [np.mean(ring, axis=0) for ring in cells.rings]
    seats = rng.random((n_districts, 2)) * (1 << 20)
    label = [
        int(np.hypot(*(seats - m).T * rng.uniform(0.5, 1.5, n_districts)).argmin()) for m in middles
    ]
    of_pair, at = defaultdict(list), defaultdict(set)
    for edge, (f, g) in zip(cells.edges, cells.edge_faces, strict=True):
        for end in edge:
            at[end] |= {label[f], label[g]}
        if label[f] != label[g]:
            of_pair[frozenset((label[f], label[g]))].append(edge)
    polygons = [
        shapely.union_all(
            [shapely.Polygon(r) for r, m in zip(cells.rings, label, strict=True) if m == k]
        )
        for k in sorted(set(label))
    ]
    lines = [shapely.line_merge(shapely.MultiLineString(edges)) for edges in of_pair.values()]
    vertices = [shapely.Point(v) for v in cells.vertices if len(at[v]) >= 3]
    components = np.array([*polygons, *shapely.get_parts(lines), *vertices])
    segments = []
    for component in components:
        rings = shapely.get_parts(shapely.boundary(component)) if component.area else [component]
        xy = [np.array(ring.coords) for ring in rings]
        segments.append(
            np.concatenate(
                [np.column_stack([c[: max(len(c) - 1, 1)], c[1:] if len(c) > 1 else c]) for c in xy]
            )
        )
    return components, segments


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.01, 0.1, 0.3])
def test_no_body_on_ragged_districts_touches_more_than_faces_edges_and_vertices_in_reach(
    seed, share
):
    components, segments = districts(seed, 150, 12)
    owners = np.repeat(np.arange(len(segments)), [len(s) for s in segments])
    diameter = int(share * (1 << 20))
    rows = np.concatenate(segments).astype(np.int64)
    most = most_touched(rows, owners, diameter, euler=False)
    rng = np.random.default_rng(seed)
    centres, turns = rng.random((3000, 2)) * (1 << 20), rng.random(3000) * 2 * math.pi
    bodies = np.concatenate([discs(centres, diameter), reuleaux(centres, turns, diameter)])
    body, _ = shapely.STRtree(components).query(bodies, predicate="intersects")
    touched = np.bincount(body)
    assert touched.max() <= most <= 2.5 * touched.max()


def test_a_face_around_another_is_reached_by_its_inner_ring():
    outer, hole = [(0, 0), (90, 0), (90, 90), (0, 90)], [(40, 40), (50, 40), (50, 50), (40, 50)]
    rows = [(*a, *b) for ring in (outer, hole) for a, b in sides(ring)]
    island = [(*a, *b) for a, b in sides(hole)]
    owners = [0] * 8 + [1] * 4 + [2] * 4  # the face around, the island, the edge between them
    assert most_touched([*rows, *island, *island], owners, 2, euler=False) == 3


# The cap


def test_a_cap_lowers_the_bound_and_never_lifts_it():
    partition = SMALL["squares"]
    full = bound(partition, 20)
    assert bound(partition, 20, cap=full - 2) == full - 2
    assert bound(partition, 20, cap=full + 2) == full
    assert bound(partition, 20, cap=1) == 1


def test_an_even_cap_is_refused_where_counts_are_odd_and_taken_where_they_are_not():
    with pytest.raises(GridError, match=r"cap=30 is even.*29 or 31"):
        bound(SMALL["squares"], 20, cap=30)
    many = [[0, 0, k, 9] for k in range(50)]
    assert most_touched(many, range(50), 9, euler=False, cap=30) == 30


@pytest.mark.parametrize("cap", [0, -3, 2.5, True, "9"])
def test_a_cap_is_a_whole_number_above_0(cap):
    with pytest.raises(GridError, match="cap must be a whole number"):
        bound(SMALL["squares"], 20, cap=cap)
