"""The integer complex: what follows from its rings, and a certificate that refuses all damage."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions import Grid, Partition
from dpregions.errors import GridError
from dpregions.geometry.complexes import ACROSS, MARGIN, Complex
from support.partitions import AREA, bricks, convex_partitions

SQUARE = Partition.from_grid(Grid(0, 0, 1, 2, 2)).complex


def changed(c, **values):
    return Complex(**{f.name: getattr(c, f.name) for f in fields(c)} | values)


def rings(c):
    return [[(int(c.x[p]), int(c.y[p])) for p in c.ring(f)] for f in range(c.n_faces)]


def tiles(c):
    """Whether the faces tile one simple ring, by areas and overlaps alone: an independent judge."""
    if len(set(zip(c.x.tolist(), c.y.tolist(), strict=True))) < c.x.size:
        return False
    shapes = [shapely.Polygon(ring) for ring in rings(c)]
    if not all(s.is_valid and s.exterior.is_ccw and s.area > 0 for s in shapes):
        return False
    union = shapely.union_all(np.array(shapes))
    whole = union.geom_type == "Polygon" and not union.interiors
    # Exact: twice an area in steps is a whole number below 2**62, and here they are small.
    return whole and sum(s.area for s in shapes) == union.area


class TestWhatFollowsFromTheRings:
    @given(convex_partitions())
    def test_the_certificate_holds_and_components_fit_together(self, partition):
        c = partition.complex
        c.check()
        assert c.n_faces - c.n_edges + c.n_vertices == 1
        assert c.kinds.tolist() == [0] * c.n_faces + [1] * c.n_edges + [2] * c.n_vertices
        shapes = np.array([shapely.Polygon(ring) for ring in rings(c)])
        for edge, (one, other) in enumerate(c.edge_faces):
            offsets, items = c.edge_points
            chain = items[offsets[edge] : offsets[edge + 1]]
            line = shapely.LineString(np.stack([c.x[chain], c.y[chain]], -1).astype(float))
            assert one < other
            assert shapely.covers(shapes[one].exterior, line)
            assert shapely.covers(shapes[other].exterior, line)
        assert np.array_equal(c.vertex_edges.offsets, c.vertex_faces.offsets)
        for number, vertex in enumerate(c.vertices):
            part = slice(*c.vertex_faces.offsets[number : number + 2])
            faces, edges = c.vertex_faces.items[part], c.vertex_edges.items[part]
            assert len(set(faces)) == len(set(edges)) == len(faces) >= 3
            assert set(faces) == {f for f in range(c.n_faces) if vertex in c.ring(f)}
            assert set(c.edge_faces[edges].ravel()) == set(faces)

    def test_a_square_of_four_cells_has_four_edges_and_one_vertex(self):
        assert (SQUARE.n_faces, SQUARE.n_edges, SQUARE.n_vertices) == (4, 4, 1)
        assert SQUARE.edge_faces.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
        assert sorted(SQUARE.vertex_faces.items.tolist()) == [0, 1, 2, 3]

    def test_a_chain_of_segments_between_two_faces_is_one_edge(self):
        zigzag = [(1, 0), (2, 1), (1, 2), (2, 3)]
        left = shapely.Polygon([(0, 0), *zigzag, (0, 3)])
        right = shapely.Polygon([(4, 0), (4, 3), *zigzag[::-1]])
        c = Partition.from_polygons([left, right], convex=False).complex
        assert (c.n_faces, c.n_edges, c.n_vertices) == (2, 1, 0)
        assert np.diff(c.edge_points.offsets).tolist() == [4]

    def test_two_faces_may_share_two_edges(self):
        c_shape = shapely.Polygon([(0, 0), (4, 0), (4, 1), (1, 1), (1, 2), (4, 2), (4, 3), (0, 3)])
        plug = shapely.Polygon([(1, 1), (4, 1), (4, 1.5), (1, 1.5)])
        other = shapely.Polygon([(1, 1.5), (4, 1.5), (4, 2), (1, 2)])
        c = Partition.from_polygons([c_shape, plug, other], convex=False).complex
        assert (c.n_faces, c.n_edges, c.n_vertices) == (3, 3, 1)

    def test_a_single_cell_is_a_complex_without_edges(self):
        c = Partition.from_polygons([shapely.box(0, 0, 1, 2)]).complex
        assert (c.n_faces, c.n_edges, c.n_vertices, c.border.size) == (1, 0, 0, 4)

    def test_equal_complexes_are_equal_and_hash_alike(self):
        same = changed(SQUARE)
        assert same == SQUARE
        assert hash(same) == hash(SQUARE)
        assert changed(SQUARE, slack=3) != SQUARE
        assert SQUARE != 3


class TestTheCertificate:
    @settings(max_examples=300)
    @given(st.sampled_from(["grid", "voronoi", "bricks", "zigzag"]), st.data())
    def test_what_is_damaged_is_refused_and_what_still_tiles_is_not(self, kind, data):
        """An integer is changed: the certificate agrees with a judge that knows nothing of it."""
        c = SMALL[kind]
        name = data.draw(st.sampled_from(["x", "y", "points", "offsets"]))
        values = np.array(getattr(c, name)).astype(np.int64)
        at = data.draw(st.integers(0, values.size - 1))
        limit = c.x.size + 1 if name == "points" else 40
        step = st.sampled_from([1, -1, 3, -7, 20, -30])
        new = data.draw(st.one_of(st.integers(-2, limit), step.map(lambda d: int(values[at]) + d)))
        values[at] = new
        damaged = changed(c, **{name: values})
        sound = name in ("x", "y") or np.array_equal(values, getattr(c, name))
        try:
            damaged.check()
        except GridError:
            assert not (sound and tiles(damaged))
        else:
            assert tiles(damaged)

    @settings(max_examples=100)
    @given(st.sampled_from(["grid", "voronoi", "bricks"]), st.integers(0, 2**32))
    def test_whatever_the_numbers_are_nothing_but_a_refusal_comes_of_them(self, kind, seed):
        rng, c = np.random.default_rng(seed), SMALL[kind]
        wild = {}
        for name in rng.choice(["x", "y", "points", "offsets", "area"], 2):
            size = int(rng.integers(0, 30))
            limits = [(-3, 12), (-(2**31), 2**31), (0, c.x.size)][rng.integers(3)]
            wild[name] = rng.integers(*limits, (size, 2) if name == "area" else size)
        made = changed(c, **wild)
        try:
            made.check()
        except GridError:
            return
        assert tiles(made)

    @pytest.mark.parametrize(
        ("values", "why"),
        [
            ({"points": [0, 3, 4, 1, 3, 6, 7, 4, 1, 4, 5, 2, 4, 7, 8, 8]}, "twice"),
            ({"points": SQUARE.points[::-1]}, "clockwise|border|twice"),
            ({"offsets": [0, 8, 16]}, "twice"),
            ({"offsets": [0, 4, 8, 12]}, "faces"),
            ({"offsets": [0, 2, 8, 12, 16]}, "three corners"),
            ({"offsets": [0, 2**62, 8, 12, 16]}, "three corners"),
            ({"points": [*SQUARE.points[:-1], 99]}, "not one of its points"),
            ({"x": SQUARE.x * 0}, "twice"),
            ({"x": np.where(SQUARE.x == 0, -MARGIN - 1, SQUARE.x)}, "lattice"),
            ({"y": np.where(SQUARE.y == 0, ACROSS + MARGIN + 1, SQUARE.y)}, "lattice"),
            ({"y": SQUARE.y[:-1]}, "points"),
            ({"slack": -1}, "slack"),
            ({"step": 0.0}, "lattice"),
            ({"step": float("nan")}, "lattice"),
            ({"origin": (float("inf"), 0.0)}, "lattice"),
            ({"area": [[0, 0], [4, 0]]}, "ring"),
            ({"area": [[0, 0], [0, 4], [4, 4]]}, "convex"),
            ({"area": [[0, 0], [4, 0], [4, 4], [2, 1]]}, "convex"),
            ({"area": [[0, 0], [4, 0], [0, 2**30 + 2**13]]}, "lattice"),
            ({"x": [[0]]}, "lists"),
        ],
    )
    def test_each_damage_is_refused_by_its_name(self, values, why):
        with pytest.raises(GridError, match=why):
            changed(SQUARE, **values).check()

    def test_a_ring_that_crosses_itself_is_refused(self):
        bow = changed(SQUARE, x=[0, 0, 4, 4], y=[0, 4, 0, 4], points=[0, 2, 1, 3], offsets=[0, 4])
        with pytest.raises(GridError, match="crosses"):
            bow.check()

    def test_a_ring_that_winds_twice_is_refused(self):
        """A pentagram turns one way throughout, and goes round twice."""
        turn = 2 * np.pi * np.arange(5) * 2 / 5
        x, y = (100 + 90 * np.cos(turn)).astype(int), (100 + 90 * np.sin(turn)).astype(int)
        star = changed(SQUARE, x=x, y=y, points=np.arange(5), offsets=[0, 5])
        with pytest.raises(GridError, match="crosses"):
            star.check()

    def test_two_pieces_and_corner_contacts_are_refused(self):
        apart = {"x": [0, 2, 2, 0, 4, 6, 6], "y": [0, 0, 2, 2, 0, 0, 2]}
        lists = {"points": [0, 1, 2, 3, 4, 5, 6], "offsets": [0, 4, 7]}
        with pytest.raises(GridError, match="more than one ring"):
            changed(SQUARE, **apart, **lists).check()
        with pytest.raises(GridError, match="not one ring"):
            changed(
                SQUARE,
                x=[0, 2, 2, 0, 4, 4],
                y=[0, 0, 2, 2, 2, 4],
                points=[0, 1, 2, 3, 2, 4, 5],
                offsets=[0, 4, 7],
            ).check()


SMALL = {
    "grid": changed(SQUARE, x=SQUARE.x >> 17, y=SQUARE.y >> 17),
    "zigzag": Complex(
        x=[0, 8, 16, 8, 16, 0, 32, 32],
        y=[0, 0, 8, 16, 24, 24, 0, 24],
        points=[0, 1, 2, 3, 4, 5, 1, 6, 7, 4, 3, 2],
        offsets=[0, 6, 12],
        origin=(0.0, 0.0),
        step=1.0,
        area=np.zeros((0, 2)),
        slack=0,
    ),
}


def _small(partition, bits):
    c = partition.complex
    return changed(c, x=c.x >> bits, y=c.y >> bits, area=np.zeros((0, 2)))


SMALL["voronoi"] = _small(Partition.voronoi([(1, 1), (6, 2), (3, 6), (7, 7), (4, 4)], AREA), 24)
SMALL["bricks"] = _small(Partition.from_polygons(bricks(3, 2)), 24)


def test_the_small_complexes_are_complexes():
    for c in SMALL.values():
        c.check()
        assert tiles(c)


class TestConvexity:
    def test_snapped_t_junctions_leave_cells_convex_but_for_the_slack(self):
        straight = Partition.from_polygons(bricks(15, 7)).complex
        turned = Partition.from_polygons(bricks(15, 7, 17.0)).complex
        for c in (straight, turned):
            assert (c.n_faces, c.n_edges, c.n_vertices) == (112, 293, 182)
            assert c.is_convex
        assert straight.is_strict
        assert not turned.is_strict

    def test_a_union_that_is_not_convex_is_not(self):
        ell = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(0, 1, 1, 2)]
        assert not Partition.from_polygons(ell, convex=False).is_convex

    def test_an_area_that_reaches_the_border_is_not_sealed(self):
        c = Partition.voronoi([(1, 1), (6, 2), (3, 6)], AREA).complex
        assert c.is_sealed
        assert c.is_strict
        wide = np.array([[-64, -64], [ACROSS >> 1, -64], [0, ACROSS >> 1]])
        assert not changed(c, area=wide).is_sealed
        beside = changed(c, x=c.x // 4, y=c.y // 4, area=np.array(c.area) // 4 + (ACROSS >> 1))
        assert not beside.is_sealed
