"""`Partition`: what it is made of, what it refuses and by which names, and how it is saved."""

from __future__ import annotations

import base64
import json
import zlib

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions import Grid, Partition
from dpregions.errors import CRSError, GridError, InputError, InputTypeError, MissingExtraError
from support.partitions import AREA, bricks, convex_partitions, site_lists

SITES = [(1, 1), (6, 2), (3, 6), (7, 7)]
UTM = "EPSG:32650"


def frame(shapes, crs=UTM, **columns):
    return geopandas.GeoDataFrame(columns, geometry=list(shapes), crs=crs)


SLIVER = [(0, 0), (100, 0), (0, 1)]


def packed(ring, scale=1):
    """A ring as partition JSON has it."""
    steps = (np.array(ring) * scale).astype("<i4")
    return base64.b64encode(zlib.compress(steps.tobytes())).decode()


def sizes(partition):
    return partition.n_faces, partition.n_edges, partition.n_vertices


class TestVoronoi:
    @settings(max_examples=150)
    @given(site_lists())
    def test_every_place_lies_in_the_cell_of_its_nearest_site(self, sites):
        apart = np.hypot(*(sites[:, None] - sites).transpose(2, 0, 1))
        np.fill_diagonal(apart, np.inf)
        if apart.min() <= 256 * 2.0**-27:
            with pytest.raises(GridError, match="nearer than"):
                Partition.voronoi(sites, AREA)
            return
        partition = Partition.voronoi(sites, AREA)
        assert partition.is_convex
        assert partition.n_faces == len(sites)
        rng = np.random.default_rng(0)
        places = rng.uniform(0, 8, (300, 2))
        away = np.hypot(*(places[:, None] - sites).transpose(2, 0, 1))
        nearest, two = np.argmin(away, axis=1), np.sort(away, axis=1)[:, :2]
        clear = two[:, 1] - two[:, 0] > 1e-6
        faces = np.asarray(partition.to_geodataframe().geometry.array)
        holds = shapely.intersects(faces[nearest], shapely.points(places))
        assert holds[clear].all()

    @pytest.mark.parametrize("jitter", [0, 1e-12, 1e-10, 1e-9])
    def test_a_square_lattice_of_sites_has_vertices_of_degree_four(self, jitter):
        x, y = np.meshgrid(np.arange(9) + 0.5, np.arange(9) + 0.5)
        sites = np.stack([x.ravel(), y.ravel()], -1)
        sites += np.random.default_rng(0).uniform(-jitter, jitter, sites.shape)
        partition = Partition.voronoi(sites, (0, 0, 9, 9))
        assert sizes(partition) == (81, 144, 64)
        assert np.diff(partition.complex.vertex_faces.offsets).tolist() == [4] * 64

    @pytest.mark.parametrize("n", [3, 4, 7, 64])
    def test_sites_on_a_circle_share_one_vertex_though_geos_gets_them_wrong(self, n):
        turn = 2 * np.pi * np.arange(n) / n
        sites = 5 * np.stack([np.cos(turn), np.sin(turn)], -1)
        partition = Partition.voronoi(sites, shapely.Point(0, 0).buffer(10, 64))
        assert sizes(partition) == (n, n, 1)

    @pytest.mark.parametrize("end", [(50, 0), (0, 50), (50, 50)])
    def test_sites_on_a_line_have_no_vertices(self, end):
        sites = np.linspace(0.01, 0.99, 50)[:, None] * end
        assert sizes(Partition.voronoi(sites, (0, 0, 50, 50))) == (50, 49, 0)

    def test_four_sites_that_geos_is_known_to_get_wrong(self):
        """From the reports libgeos 1040 and shapely 2264: nearly on a circle."""
        for sites in (
            [(6.6584, 53.583), (6.6576, 53.5836), (6.657, 53.5848), (6.6572, 53.5842)],
            [(366.9976, -45.61), (366.2382, -45.3397), (366.0603, -45.1618), (365.79, -44.4024)],
        ):
            x, y = np.array(sites).T
            partition = Partition.voronoi(sites, (x.min(), y.min(), x.max(), y.max()))
            assert sizes(partition)[0] == 4
            assert partition.is_convex

    def test_labels_are_the_callers(self):
        masts = frame(shapely.points(SITES), mast=list("abcd"))
        assert Partition.voronoi(masts, AREA, labels="mast").labels == ("a", "b", "c", "d")
        assert Partition.voronoi(masts, AREA, labels=[4, 3, 2, 1]).labels == (4, 3, 2, 1)
        assert Partition.voronoi(masts.set_index("mast"), AREA).labels == ("a", "b", "c", "d")
        assert Partition.voronoi(SITES, AREA).labels == (0, 1, 2, 3)
        assert all(type(v) is int for v in Partition.voronoi(masts, AREA).labels)

    @pytest.mark.parametrize(
        ("sites", "area", "why"),
        [
            ([], AREA, "sites are 0: two or more"),
            (np.zeros((0, 2)), AREA, "sites are 0: two or more"),
            ([(1, 1)], AREA, "two or more"),
            ([shapely.Point(1, 1), None], AREA, "not points: 1"),
            ([(1, 1), (1, 1)], AREA, "0 and 1 are the same or nearer"),
            ([(1, 1), (5, 5), (5 + 1e-7, 5)], AREA, "1 and 2"),
            ([(1, 1), (9, 1), (1, -3)], AREA, "outside the area: 1, 2"),
            ([(1, 1), (np.nan, 1)], AREA, "not finite: 1"),
            ([*shapely.points(SITES).tolist(), shapely.box(0, 0, 1, 1)], AREA, "not points: 4"),
            (SITES, (0, 0, 0, 8), "xmin < xmax"),
            (SITES, (0, 0, np.inf, 8), "finite"),
            (SITES, (0, 0, np.nan, 8), "finite"),
            (SITES, (8, 8, 0, 0), "xmin < xmax"),
            (SITES, ("0", 0, "wide", 8), "four numbers"),
            (SITES, shapely.Polygon([(0, 0), (9, 9), (0, 9), (9, 0)]), "valid"),
            (SITES, (1e12, 1e12, 1e12 + 1e-3, 1e12 + 1e-3), "too small"),
        ],
    )
    def test_bad_sites_and_areas_are_refused_by_name(self, sites, area, why):
        with pytest.raises((GridError, InputTypeError), match=why):
            Partition.voronoi(sites, area)

    def test_an_area_may_be_bounds_in_any_list_or_that_of_another_domain(self):
        made = Partition.voronoi(SITES, AREA)
        assert Partition.voronoi(SITES, np.array(AREA, float)) == made
        assert Partition.voronoi(SITES, Grid(0, 0, 1, n_rows=8, n_cols=8)) == made
        assert Partition.voronoi(SITES, made).bounds == made.bounds
        there = Partition.hexagons((0, 0, 8000, 8000), "2km", crs=UTM)
        assert Partition.voronoi(np.array(SITES) * 1000.0, there).crs == there.crs

    @pytest.mark.parametrize("sites", ["abc", [1, 2, 3], [(1, 2, 3)], 7, [("a", "b")]])
    def test_what_are_no_sites_is_refused(self, sites):
        with pytest.raises(InputTypeError, match="sites"):
            Partition.voronoi(sites, AREA)

    @pytest.mark.parametrize("area", ["city", None, shapely.Point(1, 1), [1, 2, 3]])
    def test_what_is_no_area_is_refused(self, area):
        with pytest.raises(InputTypeError, match="area"):
            Partition.voronoi(SITES, area)

    def test_a_citys_border_is_refused_with_the_remedy(self):
        city = shapely.Polygon([(0, 0), (8, 0), (8, 8), (4, 5), (0, 8)])
        ring = shapely.Point(4, 4).buffer(4).difference(shapely.Point(4, 4).buffer(1))
        for area in (city, ring):
            for make in (lambda a: Partition.voronoi(SITES, a), lambda a: Partition.hexagons(a, 1)):
                with pytest.raises(GridError, match=r"convex_hull.*from_polygons"):
                    make(area)
        assert Partition.voronoi(SITES, city.convex_hull).n_faces == 4

    @pytest.mark.parametrize(
        ("labels", "why"),
        [
            ([1, 2], "give one each"),
            ("mast", "not a column"),
            ([1, 1, 2, 2], "more than once: 1, 2"),
        ],
    )
    def test_bad_labels_are_refused(self, labels, why):
        with pytest.raises(GridError, match=why):
            Partition.voronoi(SITES, AREA, labels=labels)

    @pytest.mark.parametrize(
        ("label", "why"),
        [
            ("a\nb", r"labels='a\\nb' is not a line .* use a short name"),
            ("\x1b[2J", r"'\\x1b\[2J' is not a line"),
            ("\u202e", r"'\\u202e' is not a line"),
            ("\ud800", r"'\\ud800' is not a line"),
            ("x" * 201, r"'x{40}'\.\.\. is not a line of at most 200"),
            (2**63, "labels=0x8000000000000000.* beyond .* use text"),
            (-(10**4000), r"labels=-0x\w{1,40}\.\.\. is beyond"),
        ],
    )
    def test_a_label_that_no_terminal_or_file_should_get_is_refused(self, label, why):
        with pytest.raises(GridError, match=why) as caught:
            Partition.voronoi(SITES, AREA, labels=["a", label, 3, "d"])
        assert str(caught.value).isprintable() and len(str(caught.value)) < 200
        values = json.loads(Partition.voronoi(SITES, AREA).to_json())
        with pytest.raises(GridError, match=why):
            Partition.from_json(json.dumps(values | {"labels": ["a", label, 3, "d"]}))

    def test_the_longest_labels_are_kept(self):
        labels = ["x" * 200, 2**63 - 1, -(2**63), "Zürich 北京"]
        partition = Partition.voronoi(SITES, AREA, labels=labels)
        assert Partition.from_json(partition.to_json()).labels == tuple(labels)

    def test_labels_that_json_would_not_keep_are_refused(self):
        with pytest.raises(InputTypeError, match="texts or whole numbers"):
            Partition.voronoi(SITES, AREA, labels=[(1, 2), (3, 4), (5, 6), (7, 8)])


class TestHexagons:
    @settings(max_examples=40)
    @given(st.floats(0.7, 9), st.sampled_from([0, 30.0]), st.integers(3, 9))
    def test_hexagons_cover_the_area_and_are_as_wide_as_asked(self, size, angle, n):
        area = shapely.affinity.rotate(shapely.box(*AREA), angle)
        area = area if n < 5 else shapely.Point(4, 4).buffer(4, n)
        partition = Partition.hexagons(area, size)
        faces = np.asarray(partition.to_geodataframe().geometry.array)
        assert abs(shapely.union_all(faces).intersection(area).area / area.area - 1) < 1e-7
        whole = shapely.area(faces) > size**2 * np.sqrt(3) / 2 - 1e-6
        if whole.any():
            x0, _, x1, _ = shapely.bounds(faces[whole][0])
            assert x1 - x0 == pytest.approx(size)
            assert (shapely.area(faces) < size**2 * np.sqrt(3) / 2 + 1e-6).all()
        assert partition.is_convex
        assert partition.complex.is_sealed

    def test_a_size_is_a_length_with_its_unit(self):
        area = frame([shapely.box(0, 0, 5000, 5000)])
        assert Partition.hexagons(area, "1km") == Partition.hexagons(area, 1000)
        with pytest.raises(CRSError, match="unit"):
            Partition.hexagons(AREA, "1km")

    @pytest.mark.parametrize("size", [0, -1, "a", None])
    def test_bad_sizes_are_refused(self, size):
        with pytest.raises((InputError, InputTypeError), match="size"):
            Partition.hexagons(AREA, size)

    def test_too_many_hexagons_are_refused_before_they_are_made(self):
        with pytest.raises(GridError, match="larger size"):
            Partition.hexagons(AREA, 1e-5)


class TestPolygons:
    @settings(max_examples=40)
    @given(convex_partitions())
    def test_the_faces_of_a_partition_make_it_again(self, partition):
        # Hexagons are cut a little beyond the area, where their union is ragged.
        faces = partition.to_geodataframe()
        again = Partition.from_polygons(faces, labels="label", convex=False)
        assert sizes(again) == sizes(partition)
        assert again.labels == partition.labels

    def test_one_large_cell_among_small_ones_has_its_sides_split(self):
        small = [shapely.box(x, y, x + 1, y + 1) for x in range(4) for y in range(4)]
        cells = [c for c in small if not shapely.box(1, 1, 3, 3).contains(c)]
        partition = Partition.from_polygons([*cells, shapely.box(1, 1, 3, 3)])
        assert sizes(partition) == (13, 20, 8)

    def test_corners_within_the_tolerance_become_one(self):
        rng = np.random.default_rng(0)
        shaken = [
            shapely.transform(c, lambda xy: xy + rng.uniform(-1e-3, 1e-3, xy.shape)[[*range(4), 0]])
            for c in bricks(5, 4)
        ]
        with pytest.raises(GridError, match=r"overlap|gap|tile"):
            Partition.from_polygons(shaken)
        partition = Partition.from_polygons(shaken, tolerance=1e-2)
        assert sizes(partition) == sizes(Partition.from_polygons(bricks(5, 4)))

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (lambda b: np.delete(b, 7), r"gap between .*6"),
            (lambda b: np.where(np.arange(len(b)) == 7, shapely.buffer(b, 0.2), b), "overlap: .*7"),
            (lambda b: np.append(b, b[7]), "overlap: 7 and 22"),
            (lambda b: np.where(np.arange(len(b)) == 7, shapely.buffer(b, -0.2), b), "piece|gap|7"),
            (lambda b: np.append(b, shapely.box(50, 50, 51, 51)), "apart.*|22"),
            (lambda b: np.append(b, shapely.box(8, 5, 9, 6)), "22"),
            (lambda b: np.append(b, shapely.box(2, 1.2, 3, 1.4)), "overlap: .*22"),
        ],
    )
    def test_cells_that_do_not_tile_are_refused_by_their_labels(self, change, why):
        wall = bricks(5, 4)
        assert len(wall) == 22
        with pytest.raises(GridError, match=why):
            Partition.from_polygons(change(wall))

    def test_names_in_errors_are_the_callers(self):
        wall = frame(bricks(2, 2), name=[f"brick {i}" for i in range(5)])
        wall.loc[len(wall)] = ["late", wall.geometry.iloc[1]]
        with pytest.raises(GridError, match="'brick 1' and 'late'"):
            Partition.from_polygons(wall, labels="name")

    @pytest.mark.parametrize(
        ("shape", "why"),
        [
            (None, "null or empty: 1"),
            (shapely.Polygon(), "null or empty: 1"),
            (shapely.Point(1, 1), "something else.*: 1"),
            (shapely.MultiPolygon([shapely.box(1, 0, 2, 1), shapely.box(3, 0, 4, 1)]), "explode"),
            (shapely.box(1, 0, 4, 4).difference(shapely.box(2, 1, 3, 2)), "hole.*: 1"),
            (shapely.Polygon([(1, 0), (2, 1), (1, 1), (2, 0)]), "not valid.*: 1"),
            (shapely.Polygon([(1, 0), (np.inf, 1), (1, 1)]), "finite: 1"),
        ],
    )
    def test_what_is_no_cell_is_refused_by_its_label(self, shape, why):
        cells = geopandas.GeoSeries([shapely.box(0, 0, 1, 1), shape])
        with pytest.raises(GridError, match=why):
            Partition.from_polygons(cells)

    def test_a_multipolygon_of_one_part_is_a_cell(self):
        cells = [shapely.MultiPolygon([shapely.box(0, 0, 1, 1)]), shapely.box(1, 0, 2, 1)]
        assert Partition.from_polygons(cells).n_faces == 2

    def test_cells_that_are_not_convex_need_to_be_asked_for_and_are_flagged(self):
        ell = shapely.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
        cells = frame([ell, shapely.box(1, 1, 2, 2)], name=["ell", "rest"])
        with pytest.raises(GridError, match=r"'ell'.*convex=False"):
            Partition.from_polygons(cells, labels="name")
        partition = Partition.from_polygons(cells, labels="name", convex=False)
        assert not partition.is_convex
        assert "NOT CONVEX" in repr(partition)
        with pytest.raises(GridError, match="not their union"):
            Partition.from_polygons([shapely.box(0, 0, 1, 1), shapely.box(0, 1, 2, 2)])

    @pytest.mark.parametrize("convex", ["no", "False", None, 0])
    def test_whether_cells_must_be_convex_is_true_or_false(self, convex):
        with pytest.raises(InputTypeError, match="convex must be True or False"):
            Partition.from_polygons(bricks(2, 2), convex=convex)

    @pytest.mark.parametrize("tolerance", [0, -1, "x", 3.0])
    def test_bad_tolerances_are_refused(self, tolerance):
        with pytest.raises(InputError, match="tolerance"):
            Partition.from_polygons(bricks(2, 2), tolerance=tolerance)

    @pytest.mark.parametrize("cells", [[], "abc", 3, [1, 2], np.zeros((2, 2))])
    def test_what_are_no_polygons_is_refused(self, cells):
        with pytest.raises((GridError, InputTypeError), match="polygons"):
            Partition.from_polygons(cells)

    def test_a_cell_below_the_tolerance_is_refused_by_its_label(self):
        cells = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 1.001, 1), shapely.box(1.001, 0, 2, 1)]
        with pytest.raises(GridError, match=r"area of their own.*: 1"):
            Partition.from_polygons(cells, tolerance=0.01)


class TestGrids:
    def test_cells_are_the_grids_row_by_row(self):
        grid = Grid(0.1, 0.2, 0.7, n_rows=2, n_cols=3, crs=UTM)
        partition = Partition.from_grid(grid)
        assert partition.bounds == grid.bounds
        assert partition.crs == grid.crs
        faces = partition.to_geodataframe().geometry
        assert faces.geom_equals(grid.to_geodataframe().geometry).all()

    def test_a_grid_beyond_1024_cells_a_side_is_refused_with_the_remedy(self):
        with pytest.raises(GridError, match="larger cells"):
            Partition.from_grid(Grid(0, 0, 1, 2, 1025))

    def test_what_is_no_grid_is_refused(self):
        with pytest.raises(InputTypeError, match="Grid"):
            Partition.from_grid(AREA)

    def test_a_bound_in_steps_is_the_grids(self):
        assert Partition.from_grid(Grid(0, 0, 2 / 3, 3, 3)).in_steps(2) == 3 << 20


class TestCRS:
    def test_degrees_are_refused_with_the_remedy(self):
        masts = frame(shapely.points(SITES), crs=4326)
        with pytest.raises(CRSError, match="estimate_utm_crs"):
            Partition.voronoi(masts, AREA)
        with pytest.raises(CRSError, match="geographic"):
            Partition.voronoi(SITES, AREA, crs=4326)

    def test_two_crs_are_refused(self):
        masts, area = frame(shapely.points(SITES)), frame([shapely.box(*AREA)], crs="EPSG:32651")
        with pytest.raises(CRSError, match="32651"):
            Partition.voronoi(masts, area)
        with pytest.raises(CRSError, match="reproject"):
            Partition.voronoi(masts, AREA, crs="EPSG:32651")

    def test_a_frame_without_a_crs_beside_one_with_is_refused(self):
        masts, area = frame(shapely.points(SITES), crs=None), frame([shapely.box(*AREA)])
        with pytest.raises(CRSError, match="set_crs"):
            Partition.voronoi(masts, area)
        assert Partition.voronoi(masts, area, crs=UTM).crs is not None

    def test_the_crs_is_carried(self):
        partition = Partition.voronoi(frame(shapely.points(SITES)), AREA)
        assert partition.crs.to_epsg() == 32650
        assert partition.to_geodataframe("vertices").crs.to_epsg() == 32650
        assert "EPSG:32650" in repr(partition)

    def test_lengths_are_those_of_the_crs(self):
        partition = Partition.hexagons(frame([shapely.box(0, 0, 5000, 5000)]), "1km")
        assert partition.length("2/3 km") * 3 == 2000
        steps = partition.in_steps("1km")
        assert steps * partition.step <= 1000 < (steps + 1) * partition.step


class TestWhatItIs:
    @settings(max_examples=30)
    @given(convex_partitions())
    def test_frames_hold_every_component_by_its_number(self, partition):
        frames = [partition.to_geodataframe(kind) for kind in ("faces", "edges", "vertices")]
        numbers = pd.concat(frames)["component"].tolist()
        assert numbers == list(range(partition.n_components))
        assert [len(f) for f in frames] == list(sizes(partition))
        assert frames[0]["label"].tolist() == list(partition.labels)
        edges = frames[1].set_geometry("geometry")
        beside = frames[0].set_index("label").geometry
        for line, one, other in zip(edges.geometry, edges["label"], edges["other"], strict=True):
            assert line.distance(beside[one]) < 1e-9 and line.distance(beside[other]) < 1e-9

    def test_an_unknown_kind_is_refused(self):
        with pytest.raises(InputError, match="kind"):
            Partition.hexagons(AREA, 3).to_geodataframe("cells")

    def test_equality_is_of_cells_labels_and_crs(self):
        one = Partition.voronoi(SITES, AREA)
        assert one == Partition.voronoi(SITES, AREA)
        assert hash(one) == hash(Partition.voronoi(SITES, AREA))
        assert one != Partition.voronoi(SITES, AREA, labels=list("abcd"))
        assert one != Partition.voronoi(SITES, AREA, crs=UTM)
        assert Partition.voronoi(SITES, AREA, crs=UTM) != Partition.voronoi(SITES, AREA, crs=32651)
        assert one != Partition.voronoi(SITES[:3], AREA)
        assert one != "partition"

    def test_it_says_how_large_it_is(self):
        partition = Partition.voronoi(SITES, AREA)
        assert repr(partition) == "Partition(4 cells by voronoi, 5 edges, 2 vertices)"
        assert partition.size_in_words == "a partition of 4 cells (11 components)"
        assert partition.n_cells == 4
        assert partition.bounds == pytest.approx(AREA)
        assert partition.area.area == pytest.approx(64)

    def test_it_is_drawn(self):
        pytest.importorskip("matplotlib")
        axes = Partition.hexagons(AREA, 2).plot(edgecolor="red")
        (drawn,) = axes.collections
        assert len(drawn.get_paths()) == Partition.hexagons(AREA, 2).n_faces
        assert Partition.hexagons(AREA, 2).plot(ax=axes) is axes

    def test_without_matplotlib_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "matplotlib.collections", None)
        with pytest.raises(MissingExtraError, match=r"dpregions\[plot\]"):
            Partition.hexagons(AREA, 2).plot()

    @pytest.mark.parametrize("cap", [0, -3, 2.5, True, "9", 4])
    def test_a_cap_that_is_not_an_odd_whole_number_is_refused(self, cap):
        with pytest.raises(GridError, match=r"cap must be a whole number|cap=4 is even"):
            Partition.voronoi(SITES, AREA).capped(cap)


class TestSaved:
    @settings(max_examples=60)
    @given(convex_partitions())
    def test_text_and_back_is_the_same_partition(self, partition):
        again = Partition.from_json(partition.to_json())
        assert again == partition
        assert again.to_json() == partition.to_json()
        assert again.complex.is_strict == partition.complex.is_strict
        assert again.made_by == partition.made_by

    def test_a_file_is_geoparquet_for_people_and_exact_for_us(self, tmp_path):
        masts = frame(shapely.points(SITES), mast=["a", "b", "ü", "d"])
        partition = Partition.voronoi(masts, AREA, labels="mast")
        partition.to_file(tmp_path / "masts.parquet")
        assert Partition.from_file(tmp_path / "masts.parquet") == partition
        seen = geopandas.read_parquet(tmp_path / "masts.parquet")
        assert seen["label"].tolist() == ["a", "b", "ü", "d"]
        assert seen.crs == masts.crs
        assert [p.name for p in tmp_path.iterdir()] == ["masts.parquet"]

    def test_labels_of_two_types_are_texts_for_people_and_themselves_for_us(self, tmp_path):
        partition = Partition.voronoi(SITES, AREA, labels=["a", 1, "1", -7])
        partition.to_file(tmp_path / "masts.parquet")
        assert Partition.from_file(tmp_path / "masts.parquet").labels == ("a", 1, "1", -7)
        seen = geopandas.read_parquet(tmp_path / "masts.parquet")
        assert seen["label"].tolist() == ["a", "1", "1", "-7"]

    def test_other_files_are_refused(self, tmp_path):
        (tmp_path / "text").write_text("no")
        frame(shapely.points(SITES)).to_parquet(tmp_path / "other.parquet")
        for name in ("text", "other.parquet", "missing"):
            with pytest.raises(GridError, match=r"Partition\.to_file"):
                Partition.from_file(tmp_path / name)

    def test_damage_anywhere_in_a_file_is_refused_by_its_name(self, tmp_path):
        """Arrow ended the process on some footers: it is shown whole files alone."""
        Partition.voronoi(SITES, AREA).to_file(tmp_path / "whole.parquet")
        whole, path = (tmp_path / "whole.parquet").read_bytes(), tmp_path / "bad.parquet"
        flipped = [(at, bytes([whole[at] ^ 1 << at % 8])) for at in range(0, len(whole), 5)]
        damaged = [whole[:at] + byte + whole[at + 1 :] for at, byte in flipped]
        damaged += [whole[:at] for at in range(0, len(whole), 97)]
        for data in damaged:
            path.write_bytes(data)
            with pytest.raises(GridError, match=r"bad\.parquet is not .*Partition\.to_file"):
                Partition.from_file(path)

    @settings(max_examples=200)
    @given(st.data())
    def test_altered_text_is_refused_or_still_a_partition(self, data):
        text = Partition.voronoi(SITES, AREA).to_json()
        values = json.loads(text)
        name = data.draw(st.sampled_from(sorted(values)))
        wild = st.one_of(
            st.none(),
            st.integers(-(2**70), 2**70),
            st.floats(),
            st.text(max_size=8),
            st.lists(st.integers(0, 3), max_size=4),
            st.just({"a": 1}),
        )
        if isinstance(values[name], str) and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(values[name])))
            values[name] = (
                values[name][:at] + data.draw(st.sampled_from("AQgx/=")) + (values[name][at + 1 :])
            )
        else:
            values[name] = data.draw(wild)
        try:
            made = Partition.from_json(json.dumps(values))
        except (InputError, InputTypeError):
            return
        made.complex.check()
        assert made.n_faces == 4

    @pytest.mark.parametrize(
        "text", ["", "[]", "3", '{"dpregions": "grid"}', "{", "[" * 100_000, None, 3]
    )
    def test_what_is_no_partitions_text_is_refused(self, text):
        with pytest.raises(GridError, match="JSON"):
            Partition.from_json(text)

    @pytest.mark.parametrize("name", ["n_faces", "n_points", "n_corners", "n_area"])
    def test_a_size_beyond_all_bounds_is_refused_before_anything_is_unpacked(self, name):
        values = json.loads(Partition.voronoi(SITES, AREA).to_json())
        for size in (-1, 10**9, 10**30, 4.0, True):
            with pytest.raises(GridError, match=name):
                Partition.from_json(json.dumps(values | {name: size}))

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"step": 2.0**-901}, "beyond"),
            ({"step": 2.0**901}, "not on its lattice|beyond"),
            ({"origin": [2.0**40, 0.0]}, "too small beside coordinates"),
            ({"origin": [0.0, -(2.0**40)]}, "too small beside coordinates"),
            ({"origin": [0.1, 0.0]}, "not on its lattice"),
            ({"slack": (2**30 >> 6) + 3}, "slack"),
            ({"slack": -1}, "slack"),
            ({"n_area": 0, "area": packed([])}, "voronoi has no area"),
            ({"area": packed([[0, 0], [9, 0], [9, 9], [0, 9]])}, "not that of its cells"),
            (
                {"area": packed([[0, 0], [1, 0], [0, 1]], 2**30), "n_area": 3},
                "not that of its cells",
            ),
            ({"cap": 4}, "odd"),
            ({"cap": 0}, "odd"),
            ({"cap": -3}, "odd"),
            ({"cap": 13}, "cap=13 is more than the 11 components there are: leave it out"),
            ({"cap": 10**4000 + 1}, "is more than the 11 components"),
        ],
        ids=range(15),
    )
    def test_what_no_constructor_makes_is_refused(self, change, why):
        values = json.loads(Partition.voronoi(SITES, AREA).to_json())
        Partition.from_json(json.dumps(values | {"cap": 11}))
        with pytest.raises(GridError, match=why):
            Partition.from_json(json.dumps(values | change))

    def test_cells_far_from_0_and_of_a_wide_tolerance_read_back(self):
        """Their lattices and areas are at the limits of what is read."""
        far = 2.0**23 - 1
        boxes = [shapely.box(far + x, -far, far + x + 1, 1 - far) for x in range(2)]
        bent = shapely.Polygon([(1, 0), (2, 0), (2, 1), (1, 1), (1.01, 0.5)])
        bends = [shapely.Polygon([(0, 0), (1, 0), (1.01, 0.5), (1, 1), (0, 1)]), bent]
        for partition in (
            Partition.from_polygons(boxes),
            Partition.from_polygons(bends, tolerance=0.02),
            Partition.voronoi([(far, far), (far + 1, far)], (far - 1, far - 1, far + 2, far + 1)),
            Partition.voronoi([(0.5, 0.001), (99, 0.001)], shapely.Polygon(SLIVER)),
            Partition.hexagons(shapely.Polygon(SLIVER), 20),
        ):
            assert Partition.from_json(partition.to_json()) == partition

    def test_a_zip_bomb_is_refused(self):
        values = json.loads(Partition.voronoi(SITES, AREA).to_json())
        bomb = base64.b64encode(zlib.compress(bytes(1 << 26), 9)).decode()
        with pytest.raises(GridError, match="size"):
            Partition.from_json(json.dumps(values | {"x": bomb}))
