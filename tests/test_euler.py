"""`EulerHistogram`: what is counted, by eye and by brute force; that it merges and stays secret."""

from __future__ import annotations

import pickle
import pickletools

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString, Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.engines.local import count
from dpregions.errors import ApproximateCountWarning, InputError, InputTypeError, QueryError
from dpregions.geometry.doubled import SpanCounts
from dpregions.geometry.outlines import Bound
from dpregions.intake import regions
from support import oracle, strategies
from support.releases_on_cells import CRS, hexagons, town_on, voronoi

GRID = Grid(0, 0, 1, n_rows=3, n_cols=3)


def histogram(bodies, grid=GRID, **options):
    return EulerHistogram.from_regions(bodies, grid, **options)


def drawn(text):
    """Return a doubled array as drawn: the top line is the top row, '.' is 0."""
    rows = [line.split() for line in text.strip().splitlines()]
    return [[0 if v == "." else int(v) for v in row] for row in rows[::-1]]


class TestByEye:
    """3 x 3 unit cells. Rows and columns 0, 2, 4 are cells; 1 and 3 are the lines between."""

    def test_two_bodies_over_four_cells_each_are_eight_minus_eight_plus_two(self):
        hist = histogram([box(0.5, 0.5, 1.5, 1.5), Polygon([(0.2, 0.9), (1.9, 0.2), (1.8, 1.8)])])
        assert hist.counts.tolist() == drawn("""
            . . . . .
            . . . . .
            2 2 2 . .
            2 2 2 . .
            2 2 2 . .
        """)
        inside = hist.counts[:3, :3]
        faces, vertices = int(inside[::2, ::2].sum()), int(inside[1::2, 1::2].sum())
        edges = int(inside.sum()) - faces - vertices
        assert (faces, edges, vertices) == (8, 8, 2)
        assert hist.count(0, 0, 2, 2) == faces - edges + vertices == 2

    def test_faces_edges_and_vertices_are_views_of_the_counts(self):
        hist = histogram([box(0.5, 0.5, 1.5, 2.5)])
        assert hist.counts.tolist() == drawn("""
            1 1 1 . .
            1 1 1 . .
            1 1 1 . .
            1 1 1 . .
            1 1 1 . .
        """)
        assert hist.faces.tolist() == [[1, 1, 0]] * 3
        assert hist.edges.vertical.tolist() == [[1, 0]] * 3
        assert hist.edges.horizontal.tolist() == [[1, 1, 0]] * 2
        assert hist.vertices.tolist() == [[1, 0]] * 2

    def test_a_triangle_that_misses_a_corner_cell(self):
        hist = histogram([Polygon([(0.5, 0.5), (2.4, 0.5), (0.5, 2.4)])])
        assert hist.counts.tolist() == drawn("""
            1 . . . .
            1 . . . .
            1 1 1 . .
            1 1 1 . .
            1 1 1 1 1
        """)

    def test_a_diagonal_just_over_the_vertices_touches_no_vertex_from_the_wrong_side(self):
        hist = histogram([LineString([(0.5, 0.6), (2.5, 2.6)])])
        assert hist.counts.tolist() == drawn("""
            . . 1 1 1
            . . 1 . .
            1 1 1 . .
            1 . . . .
            1 . . . .
        """)

    def test_the_diagonal_through_vertices_goes_below_each_of_them(self):
        # Vertical lines move further than horizontal ones: it meets them first, then goes up.
        hist = histogram([LineString([(0.5, 0.5), (2.5, 2.5)])])
        assert hist.counts.tolist() == drawn("""
            . . . . 1
            . . . . 1
            . . 1 1 1
            . . 1 . .
            1 1 1 . .
        """)

    def test_the_falling_diagonal_through_vertices_goes_above_each_of_them(self):
        hist = histogram([LineString([(0.5, 2.5), (2.5, 0.5)])])
        assert hist.counts.tolist() == drawn("""
            1 1 1 . .
            . . 1 . .
            . . 1 1 1
            . . . . 1
            . . . . 1
        """)

    def test_a_box_of_exactly_one_cell_reaches_the_lines_on_its_right_and_top(self):
        hist = histogram([box(1, 1, 2, 2)])
        assert hist.counts.tolist() == drawn("""
            . . 1 1 1
            . . 1 1 1
            . . 1 1 1
            . . . . .
            . . . . .
        """)

    @pytest.mark.parametrize(
        ("point", "face"),
        [((1, 1), (1, 1)), ((1, 0.5), (0, 1)), ((0, 0), (0, 0)), ((2.9, 1), (1, 2))],
    )
    def test_a_point_on_a_line_lies_in_the_cell_on_its_right_and_top(self, point, face):
        hist = histogram([Point(point)])
        assert np.argwhere(hist.counts).tolist() == [[2 * face[0], 2 * face[1]]]

    def test_a_segment_along_a_line_belongs_to_the_row_above_it(self):
        hist = histogram([LineString([(0, 1), (2, 1)])])
        assert hist.counts.tolist() == drawn("""
            . . . . .
            . . . . .
            1 1 1 1 1
            . . . . .
            . . . . .
        """)

    def test_what_lies_on_the_right_or_top_side_of_the_area_lies_outside(self):
        outside = [Point(3, 1), Point(1, 3), LineString([(3, 0), (3, 3)]), box(0, 3, 3, 4)]
        assert not histogram(outside).counts.any()
        assert histogram([Point(0, 1), LineString([(0, 0), (0, 3)])]).faces[:, 0].sum() == 4

    def test_a_body_partly_outside_counts_in_the_part_inside(self):
        hist = histogram([box(-5, 1.5, 0.5, 9), Polygon([(2.5, -2), (9, 0.5), (2.5, 0.5)])])
        assert hist.counts.tolist() == drawn("""
            1 . . . .
            1 . . . .
            1 . . . .
            . . . . .
            . . . . 1
        """)

    def test_a_body_larger_than_the_area_is_everywhere_and_counts_once(self):
        hist = histogram([box(-9, -9, 9, 9)])
        assert (hist.counts == 1).all()
        assert hist.count(0, 0, 3, 3) == hist.count(1, 1, 2, 2) == 1

    def test_a_body_beside_the_area_whose_box_overlaps_it_counts_nowhere(self):
        assert not histogram([Polygon([(-3, 2), (1, 6), (-3, 6)])]).counts.any()

    def test_no_regions_are_a_histogram_of_zeros(self):
        hist = histogram([])
        assert not hist.counts.any()
        assert hist.counts.shape == (5, 5)
        assert hist.count(0, 0, 3, 3) == 0

    @pytest.mark.parametrize(
        ("shape", "counts"),
        [((1, 1), [[1]]), ((1, 3), [[1, 1, 1, 0, 0]]), ((3, 1), [[1], [1], [1], [0], [0]])],
    )
    def test_grids_of_one_row_or_column(self, shape, counts):
        hist = histogram([box(0.5, 0.5, 1.5, 1.5)], Grid(0, 0, 1, *shape))
        assert hist.counts.tolist() == counts


class TestAgainstBruteForce:
    @given(strategies.dyadic_worlds(), st.data())
    def test_a_rectangle_counts_the_bodies_that_touch_it(self, world, data):
        grid, bodies = world
        hist = histogram(
            strategies.geometries([strategies.to_floats(b, grid) for b in bodies]), grid
        )
        rectangles = [data.draw(strategies.cell_rectangles(grid.shape)) for _ in range(4)]
        expected = oracle.touches(
            oracle.padded(bodies), [oracle.cells_box(*cells) for cells in rectangles]
        )
        for cells, touching in zip(rectangles, expected.T, strict=True):
            assert hist.count(*grid.cell_bounds(*cells)) == touching.sum()

    @given(strategies.rough_worlds(), st.data())
    def test_so_it_does_on_grids_of_rounded_lines(self, world, data):
        grid, bodies = world
        hist = histogram(strategies.geometries(bodies), grid)
        snapped = [grid.snap(*np.array(body).T).tolist() for body in bodies]
        expected = oracle.touched(oracle.padded(snapped), *grid.shape)
        assert np.array_equal(hist.counts, expected.sum(axis=0))
        cells = data.draw(strategies.cell_rectangles(grid.shape))
        touching = oracle.touches(oracle.padded(snapped), [oracle.cells_box(*cells)])
        assert hist.count(*grid.cell_bounds(*cells)) == touching.sum()

    @given(strategies.rough_worlds(max_bodies=1))
    def test_every_body_alone_sums_to_one_or_to_nothing(self, world):
        grid, bodies = world
        hist = histogram(strategies.geometries(bodies), grid)
        assert hist.count(*grid.bounds) == oracle.euler_sum(hist.counts) == hist.counts.any()

    @given(strategies.rough_worlds(), st.randoms(use_true_random=False))
    def test_row_order_never_matters(self, world, random):
        grid, bodies = world
        shapes = strategies.geometries(bodies)
        before = histogram(shapes, grid)
        random.shuffle(shapes)
        assert histogram(shapes, grid) == before

    @given(strategies.rough_worlds(max_bodies=6), st.integers(0, 6))
    def test_histograms_of_parts_add_up_to_the_whole(self, world, cut):
        grid, bodies = world
        shapes = strategies.geometries(bodies)
        parts = histogram(shapes[:cut], grid) + histogram(shapes[cut:], grid)
        assert parts == histogram(shapes, grid)

    @given(strategies.dyadic_worlds(), st.integers(-2, 2), st.integers(-2, 2))
    def test_grid_and_bodies_moved_together_count_the_same(self, world, right, up):
        grid, bodies = world
        moved = Grid(
            grid.xmin + right * grid.cell_size,
            grid.ymin + up * grid.cell_size,
            grid.cell_size,
            *grid.shape,
        )
        here, there = (
            histogram(strategies.geometries([strategies.to_floats(b, g) for b in bodies]), g)
            for g in (grid, moved)
        )
        assert np.array_equal(here.counts, there.counts)

    def test_thousands_of_bodies_and_rectangles_in_general_position_as_shapely_counts(self):
        rng = np.random.default_rng(7)
        grid = Grid(-20, 30, 0.5, 40, 60)
        n = 4000
        middle = np.c_[rng.uniform(-22, 12, n), rng.uniform(28, 52, n)][:, None]
        size = rng.choice([0.05, 0.4, 1.5, 6], (n, 1, 1))
        coords = middle + rng.uniform(-1, 1, (n, 6, 2)) * size
        coords = np.floor(coords * 2**20) / 2**20  # on the lattice, so that snapping moves nothing
        hulls = shapely.convex_hull(shapely.multipoints(coords.reshape(-1, 2), indices=_owner(n)))
        hist = histogram(hulls, grid)
        row0, col0 = rng.integers(0, 40, 3000), rng.integers(0, 60, 3000)
        row1 = np.minimum(row0 + rng.integers(0, 12, 3000), 39)
        col1 = np.minimum(col0 + rng.integers(0, 20, 3000), 59)
        bounds = grid.cell_bounds(row0, row1, col0, col1)
        pairs = shapely.STRtree(hulls).query(shapely.box(*bounds), predicate="intersects")
        expected = np.bincount(pairs[0], minlength=3000)
        assert np.array_equal(hist.count(*bounds), expected)
        one_by_one = [hist.count(*map(float, b)) for b in np.stack(bounds, axis=-1)]
        assert one_by_one == expected.tolist()


def _owner(n):
    return np.repeat(np.arange(n), 6)


class TestBatches:
    @pytest.fixture
    def city(self):
        rng = np.random.default_rng(3)
        middle = rng.uniform(-1, 11, (700, 2))
        return shapely.buffer(shapely.points(middle), rng.uniform(0, 2, 700), quad_segs=2)

    @pytest.mark.parametrize("batch", [1, 7, 350, 699, 700, 701])
    def test_batches_and_threads_give_the_same_counts(self, city, batch):
        grid = Grid(0, 0, 1, 10, 10)
        bound = Bound.of(grid, 1.5, "shrink")
        for users in (None, np.arange(700) // 2):
            parts = regions.read_outlines(city, grid, bound, user_id=users, batch=batch)
            found = count(parts, lambda: SpanCounts(*grid.shape)).histogram()
            whole = histogram(city, grid, user_id=users, max_diameter=1.5)
            assert np.array_equal(found, whole.counts)

    def test_more_regions_than_a_batch_count_as_the_sum_of_parts(self, city):
        grid = Grid(0, 0, 1, 10, 10)
        n = regions.BATCH // 700 + 2
        many = histogram(np.tile(city, n), grid)
        assert np.array_equal(many.counts, n * histogram(city, grid).counts)


class TestMerging:
    def test_grids_must_match(self):
        other = Grid(0, 0, 1, n_rows=3, n_cols=4)
        with pytest.raises(
            InputError, match=r"different grids cannot be added: .*n_cols=3.*n_cols=4"
        ):
            histogram([]) + histogram([], other)

    def test_a_crs_on_one_side_is_another_grid(self):
        with pytest.raises(InputError, match="different grids"):
            histogram([]) + histogram([], Grid(0, 0, 1, 3, 3, crs=32650), crs=32650)

    def test_only_histograms_can_be_added(self):
        with pytest.raises(TypeError):
            histogram([]) + 1

    def test_equality_looks_at_grid_and_counts(self):
        one = histogram([Point(0.5, 0.5)])
        assert one == histogram([box(0.1, 0.1, 0.2, 0.2)])
        assert one != histogram([])
        assert one != histogram([Point(0.5, 0.5)], Grid(0, 0, 1, 5, 5))
        assert one != "a histogram"
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)


class TestSecrecy:
    def test_the_repr_says_secret_and_holds_no_count(self):
        hist = histogram([Point(0.5, 0.5)] * 4711)
        for text in (repr(hist), str(hist), f"{hist}"):
            assert "SECRET" in text
            assert "4711" not in text
            assert "n_rows=3" in text

    def test_a_pickle_is_labelled_secret_and_comes_back_equal(self):
        hist = histogram([box(0.5, 0.5, 1.5, 1.5)])
        data = pickle.dumps(hist)
        assert pickle.loads(data) == hist
        words = [arg for _, arg, _ in pickletools.genops(data) if isinstance(arg, str)]
        label = next(i for i, word in enumerate(words) if "SECRET" in word)
        assert words.index("counts") > label  # whoever opens the file reads the label first

    def test_a_pickle_without_the_label_is_refused(self):
        hist = histogram([])
        state = hist.__getstate__() | {"label": "public"}
        with pytest.raises(InputTypeError, match="does not hold an EulerHistogram"):
            hist.__setstate__(state)

    def test_counts_cannot_be_changed(self):
        hist = histogram([box(0.5, 0.5, 1.5, 1.5)])
        views = [hist.counts, hist.faces, hist.vertices, *hist.edges]
        again = pickle.loads(pickle.dumps(hist))
        for view in [*views, again.counts, (hist + hist).counts]:
            with pytest.raises(ValueError, match="read-only"):
                view[0, 0] = 5
        with pytest.raises(AttributeError):
            hist.counts = hist.counts

    def test_the_array_it_was_made_from_does_not_reach_in(self):
        counts = np.zeros(GRID.doubled_shape, np.int64)
        hist = EulerHistogram(GRID, counts)
        counts[0, 0] = 9
        assert hist.count(0, 0, 1, 1) == 0
        assert counts.flags.writeable

    @pytest.mark.parametrize(
        "counts",
        [np.zeros((3, 3), int), np.zeros((5, 5)), np.zeros((5, 5), bool), [["a"] * 5] * 5, 0],
    )
    def test_counts_of_another_shape_or_kind_are_refused(self, counts):
        with pytest.raises(InputError, match=r"counts must be integers of shape \(5, 5\)"):
            EulerHistogram(GRID, counts)

    def test_nested_lists_of_integers_are_counts(self):
        assert EulerHistogram(Grid(0, 0, 1, 1, 2), [[1, 2, 3]]).counts.dtype == np.int64


def test_sum_merges_partial_histograms():
    grid = Grid(0, 0, 1, 2, 2)
    parts = [EulerHistogram.from_regions([box(0, 0, 0.5, 0.5)], grid) for _ in range(3)]
    assert sum(parts).count(0, 0, 1, 1) == 3


# On partitions


@pytest.fixture(scope="module")
def on_cells():
    return EulerHistogram.from_regions(town_on(voronoi()), voronoi(), crs=CRS)


def test_a_partitions_histogram_has_faces_edges_and_vertices(on_cells):
    cells = voronoi()
    sizes = [len(part) for part in (on_cells.faces, on_cells.edges, on_cells.vertices)]
    assert sizes == [cells.n_faces, cells.n_edges, cells.n_vertices]
    together = np.concatenate([on_cells.faces, on_cells.edges, on_cells.vertices])
    np.testing.assert_array_equal(together, on_cells.counts)
    inside = shapely.intersects(town_on(cells), cells.area).sum()
    assert on_cells.faces.sum() - on_cells.edges.sum() + on_cells.vertices.sum() == inside
    assert on_cells.count(*cells.bounds) == inside
    faces = cells.to_geodataframe().geometry
    touching = [int(shapely.intersects(town_on(cells), face).sum()) for face in faces]
    assert on_cells.faces.tolist() == touching


def test_cells_of_a_partition_are_not_passed_over_on_a_grid():
    histogram = EulerHistogram.from_regions([shapely.box(0, 0, 1, 1)], GRID, user_id=None)
    for query in ((), GRID.bounds):
        with pytest.raises(QueryError, match="cells are labels of a partition's cells"):
            histogram.count(*query, cells=["mast 1"])


def test_a_partition_is_asked_by_polygon_and_by_cells(on_cells):
    site = shapely.Point(5, 4)
    assert on_cells.count(site) == on_cells.count(site.buffer(1e-3)) > 0
    names = [[label] for label in voronoi().labels]
    np.testing.assert_array_equal(on_cells.count(cells=names), on_cells.faces)
    with pytest.raises(QueryError, match="no mast"):
        on_cells.count(cells=["no mast"])
    with pytest.warns(ApproximateCountWarning, match="not a convex set"):
        on_cells.count(cells=["mast 1", "mast 2", "mast 30"])


def test_partial_histograms_of_a_partition_add_up_and_pickle(on_cells):
    shapes = town_on(voronoi())
    halves = shapes[:70], shapes[70:]
    parts = [EulerHistogram.from_regions(part, voronoi(), crs=CRS) for part in halves]
    assert sum(parts) == on_cells
    assert parts[0] != on_cells
    again = pickle.loads(pickle.dumps(on_cells))
    assert again == on_cells and again.grid == voronoi()
    other = EulerHistogram.from_regions(shapes, hexagons(), crs=CRS)
    with pytest.raises(InputError, match="different grids"):
        on_cells + other
    assert "SECRET" in repr(on_cells) and "40 cells by voronoi" in repr(on_cells)


def test_longer_regions_are_shrunk_or_dropped_on_a_partition():
    long, short = shapely.box(1, 1, 7, 1.5), shapely.box(4, 4, 4.5, 4.5)
    given = {"max_diameter": 2, "crs": CRS}
    dropped = EulerHistogram.from_regions([long, short], voronoi(), oversize="drop", **given)
    alone = EulerHistogram.from_regions([short], voronoi(), **given)
    assert dropped == alone
    shrunk = EulerHistogram.from_regions([long, short], voronoi(), **given)
    whole = EulerHistogram.from_regions([long, short], voronoi(), crs=CRS)
    assert shrunk.count(*voronoi().bounds) == 2
    assert (alone.counts <= shrunk.counts).all()
    assert alone.faces.sum() < shrunk.faces.sum() < whole.faces.sum()
