"""Bodies on a complex against exact rationals: which components each touches, and F - E + V = 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions import EulerHistogram, Grid, Partition
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.intake.regions import outlines_of as grid_outlines_of
from support.exact_bodies import hull_of, outlines_of, touched_by
from support.partitions import AREA, bricks, convex_partitions, grazing_bodies


def lists(ragged):
    return [part.tolist() for part in np.split(ragged.items, ragged.offsets[1:-1])]


def eulers(partition, outlines):
    """Return F - E + V of each body that has an outline."""
    offsets, items = partition.touched(outlines)
    signs = 1 - 2 * (partition.kinds[items].astype(int) & 1)
    sums = np.concatenate([[0], np.cumsum(signs)])
    return (sums[offsets[1:]] - sums[offsets[:-1]])[np.diff(outlines.offsets) > 0]


def ragged(shapes):
    coords, owner = shapely.get_coordinates(np.array(shapes, object), return_index=True)
    return coords, np.searchsorted(owner, np.arange(len(shapes) + 1)).astype(np.int64)


class TestTheShiftRule:
    @settings(max_examples=150)
    @given(convex_partitions(), st.data())
    def test_bodies_touch_what_they_touch_when_moved_in_exact_rationals(self, partition, data):
        bodies = data.draw(grazing_bodies(partition))
        found = lists(partition.touched(outlines_of(bodies)))
        assert found == [touched_by(partition.complex, body) for body in bodies]

    @given(convex_partitions(), st.data())
    def test_bodies_on_strictly_convex_cells_have_f_minus_e_plus_v_of_one(self, partition, data):
        bodies = outlines_of(data.draw(grazing_bodies(partition, 12)))
        if not partition.complex.is_strict:
            return
        found = eulers(partition, bodies)
        if partition.complex.area.size:
            assert (found == 1).all()
        else:  # a body may lie beside the cells
            assert np.isin(found, (0, 1)).all()

    def test_a_point_on_a_vertex_touches_one_face_and_nothing_else(self):
        partition = Partition.from_grid(Grid(0, 0, 1, 2, 2))
        found = partition.touched(outlines_of([[(1 << 20, 1 << 20)]]))
        assert found.items.tolist() == [3]  # moved right, then up

    def test_a_segment_along_an_edge_touches_the_cells_on_one_side_of_it(self):
        partition = Partition.from_grid(Grid(0, 0, 1, 2, 2))
        up = [(1 << 20, 1 << 18), (1 << 20, 3 << 18)]
        assert lists(partition.touched(outlines_of([up]))) == [[1]]

    @settings(max_examples=40)
    @given(st.integers(0, 2**32))
    def test_non_convex_cells_too_follow_the_rule_and_count_once(self, seed):
        partition = districts(seed)
        rng = np.random.default_rng(seed)
        c = partition.complex
        corners = np.stack([c.x, c.y], -1)[rng.integers(c.x.size, size=(8, 4))].astype(int)
        corners += rng.choice([0, 1, 1 << 27, -(1 << 28)], (8, 4, 2))
        bodies = [hull_of([tuple(p) for p in body]) for body in corners]
        found = lists(partition.touched(outlines_of(bodies)))
        assert found == [touched_by(c, body) for body in bodies]


def districts(seed, n=40, n_districts=7):
    """Return Voronoi cells joined into ragged districts, without the outermost of them."""
    rng = np.random.default_rng(seed)
    cells = Partition.voronoi(rng.uniform(0, 8, (n, 2)), AREA).to_geodataframe().geometry.values
    seeds = rng.choice(n, n_districts, replace=False)
    middle = shapely.centroid(np.asarray(cells))
    nearest = np.argmin(shapely.distance(middle[:, None], middle[seeds]), axis=1)
    for _ in range(20):  # a few attempts at districts without holes, in one piece
        joined = [shapely.union_all(np.asarray(cells)[nearest == d]) for d in range(n_districts)]
        good = [j for j in joined if j.geom_type == "Polygon" and not j.interiors]
        if len(good) == n_districts:
            break
        nearest[rng.integers(n)] = rng.integers(n_districts)
    return (
        Partition.from_polygons(good, convex=False)
        if len(good) == n_districts
        else districts(seed + 1)
    )


class TestTheGridAsAPartition:
    @settings(max_examples=60)
    @given(
        st.integers(1, 4),
        st.integers(1, 4),
        st.sampled_from([1, 0.7, 1 / 3]),
        st.lists(
            st.lists(
                st.tuples(st.integers(-3, 12), st.integers(-3, 12), st.integers(-1, 1)),
                min_size=1,
                max_size=5,
            ),
            min_size=1,
            max_size=12,
        ),
        st.one_of(st.none(), st.sampled_from([0.4, 1.0, 2.3])),
        st.sampled_from(["shrink", "drop"]),
    )
    def test_counts_are_those_of_the_grid(self, n_rows, n_cols, cell, corners, limit, oversize):
        grid = Grid(0.1, -0.2, cell, n_rows, n_cols)
        shapes = [
            shapely.MultiPoint(
                [(0.1 + x * cell / 4 + n * 1e-9, -0.2 + y * cell / 4) for x, y, n in b]
            )
            for b in corners
        ]
        on_grid = EulerHistogram.from_regions(
            shapes, grid, max_diameter=limit, oversize=oversize
        ).counts
        partition = Partition.from_grid(grid)
        bound = None if limit is None else Bound.of(grid, limit, oversize)
        tally = partition.counter()
        tally.add(partition.outlines(*ragged(shapes), bound))
        np.testing.assert_array_equal(tally.histogram(), as_components(on_grid, partition))

    def test_many_random_bodies_count_as_on_the_grid(self):
        grid = Grid(0, 0, 1, 30, 40)
        rng = np.random.default_rng(3)
        places = rng.uniform(-3, 43, (20_000, 1, 2)) + rng.normal(0, 1.5, (20_000, 5, 2))
        shapes = shapely.multipoints(places)
        bound = Bound.of(grid, 3, "shrink")
        outlines = grid_outlines_of(shapes, None, grid, bound)
        partition = Partition.from_grid(grid)
        ours = partition.outlines(places.reshape(-1, 2), np.arange(0, 100_001, 5), bound)
        tally, whole = partition.counter(), partition.counter()
        tally.add(ours)
        whole.add(outlines)
        expected = EulerHistogram.from_regions(shapes, grid, max_diameter=3).counts
        np.testing.assert_array_equal(tally.histogram(), as_components(expected, partition))
        np.testing.assert_array_equal(whole.histogram(), tally.histogram())

    def test_a_body_at_the_far_end_of_coordinates_counts_as_on_the_grid(self):
        grid = Grid(0, 0, 1, 3, 4)
        far = 2.0**27
        shapes = [
            shapely.Polygon([(-far, -1), (far, 1.3), (far, 4), (-far, 2)]),
            shapely.LineString([(-far, -far / 2), (far, far / 2 + 1)]),
            shapely.box(-far, -far, far, far),
        ]
        partition = Partition.from_grid(grid)
        tally = partition.counter()
        tally.add(partition.outlines(*ragged(shapes)))
        expected = EulerHistogram.from_regions(shapes, grid).counts
        assert expected.sum() > 12
        np.testing.assert_array_equal(tally.histogram(), as_components(expected, partition))


def as_components(counts, partition):
    """Return a grid's doubled array in the order of its partition's components."""
    found = np.empty(partition.n_components, np.int64)
    grid_x, grid_y = partition.complex.origin
    size = partition.step * 2**20
    for kind in ("faces", "edges", "vertices"):
        frame = partition.to_geodataframe(kind)
        middle = shapely.centroid(np.asarray(frame.geometry.array))
        col = np.rint((shapely.get_x(middle) - grid_x) / size * 2).astype(int) - 1
        row = np.rint((shapely.get_y(middle) - grid_y) / size * 2).astype(int) - 1
        found[frame["component"]] = counts[row, col]
    return found


class TestBodiesAsTheyAreTaken:
    @settings(max_examples=60)
    @given(convex_partitions(), st.data())
    def test_every_body_has_f_minus_e_plus_v_of_one_and_keeps_the_bound_and_the_cap(
        self, partition, data
    ):
        bodies = data.draw(grazing_bodies(partition, 12))
        shapes = [shapely.MultiPoint(partition.to_coordinates(np.array(b))) for b in bodies]
        steps = data.draw(st.sampled_from([1 << 26, 1 << 29, 1 << 40]))
        caps = [cap for cap in (1, 5, 9) if cap <= partition.n_components]
        cap = data.draw(st.sampled_from([None, *caps]))
        bound = Bound(0, steps, False)
        partition = partition if cap is None else partition.capped(cap)
        outlines = partition.outlines(*ragged(shapes), bound)
        found = eulers(partition, outlines)
        beside = not partition.complex.area.size
        assert np.isin(found, (0, 1) if beside else (1,)).all()
        touched = np.diff(partition.touched(outlines).offsets)
        assert cap is None or touched.max() <= cap
        for body in np.split(outlines.xy, outlines.offsets[1:-1]):
            assert hull_of([tuple(p) for p in body.tolist()]) == [tuple(p) for p in body.tolist()]
            if steps is not None and len(body):
                far = max(
                    (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2
                    for a in body.tolist()
                    for b in body.tolist()
                )
                assert far <= steps**2

    def test_bodies_along_snapped_t_junctions_are_mended(self):
        """Corners of rotated bricks are off their lines by a step: some bodies give 0."""
        partition = Partition.from_polygons(bricks(15, 7, 17.0))
        assert partition.is_convex and not partition.complex.is_strict
        c = partition.complex
        rng = np.random.default_rng(0)
        offsets, items = c.edge_points
        raw = []
        points = np.stack([c.x, c.y], axis=-1).astype(np.int64)
        for edge in range(c.n_edges):
            u, v = points[items[offsets[edge]]], points[items[offsets[edge + 1] - 1]]
            way = v - u
            side = np.array([-way[1], way[0]])
            for _ in range(3):
                a, b = u - way * rng.integers(1, 8) // 8, v + way * rng.integers(1, 8) // 8
                raw.append(
                    hull_of([tuple(a), tuple(b), tuple(a + side // 3), tuple(b + side // 5)])
                )
        inside = shapely.Polygon(c.area).buffer(-(1 << 20))
        raw = [b for b in raw if inside.contains(shapely.MultiPoint(b))]
        wrong = eulers(partition, outlines_of(raw)) != 1
        assert wrong.any()  # else there is nothing to mend
        coords, starts = ragged(
            [shapely.MultiPoint(partition.to_coordinates(np.array(b))) for b in raw]
        )
        mended = partition.outlines(coords, starts)
        assert (np.diff(mended.offsets) > 0).all()
        assert (eulers(partition, mended) == 1).all()
        moved = [
            shapely.hausdorff_distance(shapely.MultiPoint(a), shapely.MultiPoint(b))
            for a, b in zip(raw, np.split(mended.xy, mended.offsets[1:-1]), strict=True)
        ]
        assert max(moved) < 1000  # a thousandth of a thousandth of the area

    def test_a_body_across_the_border_is_cut_to_the_area(self):
        partition = Partition.voronoi([(2, 2), (6, 6), (2, 6)], shapely.Point(4, 4).buffer(4))
        shape = shapely.box(-5, 3, 4, 5)
        outlines = partition.outlines(*ragged([shape]))
        cut = shapely.Polygon(partition.to_coordinates(outlines.xy))
        expected = shape.intersection(partition.area)
        assert cut.symmetric_difference(expected).area < 1e-6

    @pytest.mark.parametrize(
        "shape",
        [
            shapely.box(20, 20, 30, 30),
            shapely.Point(math.nan, 1),
            shapely.Point(math.inf, 1),
            shapely.Point(1e300, 1),
            shapely.Point(1e12, 1e12),
            shapely.Polygon(),
        ],
        ids=str,
    )
    def test_what_is_no_place_or_beside_the_area_has_an_empty_outline(self, shape):
        partition = Partition.voronoi([(2, 2), (6, 6)], AREA)
        coords, starts = ragged([shapely.Point(1, 1), shape, shapely.Point(7, 7)])
        outlines = partition.outlines(coords, starts)
        assert np.diff(outlines.offsets).tolist() == [1, 0, 1]

    def test_a_longer_body_is_dropped_where_that_is_asked(self):
        partition = Partition.voronoi([(2, 2), (6, 6)], AREA)
        shapes = [shapely.LineString([(1, 1), (7, 7)]), shapely.LineString([(1, 1), (2, 1)])]
        bound = Bound(0, partition.in_steps(3), True)
        outlines = partition.outlines(*ragged(shapes), bound)
        assert np.diff(outlines.offsets).tolist() == [0, 2]


class TestSizesOfBodies:
    @pytest.mark.parametrize("corners", [63, 64, 65, 300])
    def test_bodies_of_many_corners_touch_what_the_rule_says(self, corners):
        rng = np.random.default_rng(5)
        partition = Partition.voronoi(rng.uniform(0, 8, (30, 2)), AREA)
        turn = 2 * np.pi * np.arange(corners) / corners
        ring = (2**29 + 2**28 * np.stack([np.cos(turn), np.sin(turn)], -1)).astype(np.int64)
        body = hull_of([tuple(p) for p in ring.tolist()])
        assert len(body) == corners
        found = partition.touched(outlines_of([body, body[:3]]))
        assert lists(found) == [touched_by(partition.complex, b) for b in (body, body[:3])]

    def test_multiplicities_and_parts_add_up(self):
        partition = Partition.hexagons(AREA, 2)
        rng = np.random.default_rng(0)
        shapes = shapely.multipoints(rng.uniform(0, 8, (40, 3, 2)))
        outlines = partition.outlines(*ragged(shapes))
        one, other, weighted = partition.counter(), partition.counter(), partition.counter()
        one.add(outlines)
        other.add(outlines)
        other += one
        weighted.add_times(outlines, np.full(40, 2))
        np.testing.assert_array_equal(other.histogram(), 2 * one.histogram())
        np.testing.assert_array_equal(weighted.histogram(), (one * 2).histogram())
        offsets, items = partition.touched(outlines)
        assert offsets[-1] == items.size
        np.testing.assert_array_equal(
            np.bincount(items, minlength=partition.n_components), one.histogram()
        )
        assert one.nbytes == 8 * partition.n_components

    def test_no_bodies_count_nothing(self):
        partition = Partition.hexagons(AREA, 2)
        empty = Outlines(np.zeros((0, 2), np.int64), np.zeros(1, np.int64))
        tally = partition.counter()
        tally.add(empty)
        assert not tally.histogram().any()
        assert partition.touched(empty).items.size == 0
