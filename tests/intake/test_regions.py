"""Intake: every input form, one region a user, the bound, and records that are trouble."""

from __future__ import annotations

import datetime
import io
import math

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from shapely import Point

from dpregions import EulerHistogram, Grid
from dpregions.errors import (
    CRSError,
    DPRegionsError,
    InputError,
    InputTypeError,
    PrivacyError,
    UnforeseenError,
)
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import read_outlines, read_unit
from support.region_forms import GRID, SHAPES, UTM, arrow_table, geoseries, histogram, wkb


def parquet_table():
    file = io.BytesIO()
    frame = geopandas.GeoDataFrame({"user_id": range(5)}, geometry=geoseries(crs=32650))
    frame.to_parquet(file)
    return pa.parquet.read_table(io.BytesIO(file.getvalue()))


class ArrowStream:
    """Anything with the Arrow stream protocol, of no type we know."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


FORMS = {
    "a GeoDataFrame": lambda: geopandas.GeoDataFrame(geometry=geoseries()),
    "a GeoDataFrame with its geometry under another name": lambda: geopandas.GeoDataFrame(
        {"home": geoseries()}, geometry="home"
    ),
    "a GeoSeries": geoseries,
    "a GeometryArray": lambda: geoseries().array,
    "a list": lambda: list(SHAPES),
    "a tuple": lambda: tuple(SHAPES),
    "an array": lambda: SHAPES,
    "a generator": lambda: (shape for shape in SHAPES),
    "a Series of geometries": lambda: pd.Series(SHAPES, dtype=object),
    "a list of WKB": wkb,
    "a list of geometries and WKB": lambda: [*wkb()[:2], *SHAPES[2:]],
    "a list of bytearrays and memoryviews": lambda: [
        bytearray(wkb()[0]),
        memoryview(wkb()[1]),
        *wkb()[2:],
    ],
    "an object array of WKB": lambda: np.array(wkb(), dtype=object),
    "a bytes array of WKB": lambda: np.array(wkb(), dtype="S"),
    "a Series of WKB": lambda: pd.Series(wkb()),
    "a DataFrame of WKB": lambda: pd.DataFrame({"n": range(5), "geometry": wkb()}),
    "an Arrow array": lambda: pa.array(wkb(), pa.binary()),
    "an Arrow chunked array": lambda: pa.chunked_array([wkb()[:2], wkb()[2:]], pa.binary()),
    "an Arrow array of large binaries": lambda: pa.array(wkb(), pa.large_binary()),
    "an Arrow table": arrow_table,
    "an Arrow table with its WKB under another name": lambda: arrow_table().rename_columns(
        ["user_id", "shape"]
    ),
    "an Arrow record batch": lambda: arrow_table().to_batches()[0],
    "an Arrow reader": lambda: arrow_table().to_reader(max_chunksize=2),
    "an Arrow stream of unknown type": lambda: ArrowStream(arrow_table()),
    "an Arrow stream without columns": lambda: ArrowStream(
        pa.chunked_array([wkb()[:2], wkb()[2:]], pa.binary())
    ),
    "a GeoDataFrame's Arrow stream": lambda: geopandas.GeoDataFrame(
        geometry=geoseries()
    ).to_arrow(),
    "a GeoSeries' Arrow array": lambda: geoseries().to_arrow(),
}


class TestForms:
    @pytest.mark.parametrize("form", FORMS)
    def test_every_form_gives_the_same_counts(self, form):
        assert histogram(FORMS[form]()) == histogram(list(SHAPES))

    @pytest.mark.parametrize("form", FORMS)
    def test_every_form_takes_an_array_of_ids(self, form):
        ids = np.array([1, 1, 2, 2, 2])
        assert histogram(FORMS[form](), user_id=ids) == histogram(list(SHAPES), user_id=ids)

    def test_trailing_zero_bytes_of_wkb_are_kept(self):
        points = [Point(0.5, 0.5), Point(1, 2), Point(2, 0)]  # 2.0 and 0.0 end in zero bytes
        array = np.array([p.wkb for p in points])
        assert array.dtype.kind == "S"
        assert histogram(array) == histogram(points)

    def test_a_geoparquet_file_read_by_pyarrow_keeps_its_crs(self):
        grid = Grid(0, 0, 1, 4, 5, crs=32650)
        assert histogram(parquet_table(), grid) == histogram(geoseries(crs=32650), grid)
        by_user = histogram(parquet_table(), grid, user_id="user_id")
        assert by_user == histogram(geoseries(crs=32650), grid)

    @pytest.mark.parametrize(
        "arrow",
        [
            lambda: geoseries(crs=32650).to_arrow(),
            lambda: geopandas.GeoDataFrame(geometry=geoseries(crs=32650)).to_arrow(),
            lambda: ArrowStream(geopandas.GeoDataFrame(geometry=geoseries(crs=32650)).to_arrow()),
        ],
    )
    def test_arrow_from_geopandas_keeps_its_crs(self, arrow):
        grid = Grid(0, 0, 1, 4, 5, crs=32650)
        assert histogram(arrow(), grid) == histogram(geoseries(crs=32650), grid)
        with pytest.raises(CRSError, match="the regions are in EPSG:32650, but the grid has no"):
            histogram(arrow())

    def test_a_reader_is_read_in_batches(self):
        parts = read_outlines(arrow_table().to_reader(max_chunksize=2), GRID, None)
        assert [len(make().outlines.offsets) - 1 for make in parts] == [2, 2, 1]

    def test_the_input_is_left_as_it_was(self):
        values = np.array([shapely.Point(1, 1).wkb, None, Point(2, 2)], dtype=object)
        before = values.copy()
        histogram(values)
        assert values.tolist() == before.tolist()

    @pytest.mark.parametrize(
        "source",
        [
            None,
            5,
            "POINT (1 1)",
            b"wkb",
            Point(1, 1),
            shapely.MultiPoint([(1, 1)]),
            np.array(["POINT (1 1)"]),
            pd.Series(["POINT (1 1)"], dtype="string"),
            np.zeros((3, 2)),
            pa.table({"a": [1, 2]}),
            pa.table({"a": [b"1"], "b": [b"2"]}),
            pa.array([1, 2]),
            pd.DataFrame({"x": [1.0]}),
            pd.Series([1.0]),
            geopandas.GeoDataFrame({"a": [1]}),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_what_is_no_input_is_refused_by_its_type(self, source):
        with pytest.raises(InputTypeError):
            histogram(source)

    @pytest.mark.parametrize("odd", ["POINT (1 1)", 5, [0, 0], np.zeros(2), {}, math.nan, pd.NA])
    def test_what_is_no_region_among_regions_counts_nowhere_by_itself(self, odd):
        assert histogram([*SHAPES, odd]) == histogram(SHAPES)
        assert not histogram([odd]).counts.any()

    def test_a_frame_of_pandas_is_read_by_its_columns_and_not_by_way_of_arrow(self):
        """Arrow infers one type for a column: a date before 1,000 times made one user of them."""
        times = [datetime.datetime(2020, 1, 1, 0, 0, i) for i in range(4)]
        ids = [datetime.date(2020, 1, 1), *times]
        for shapes in (SHAPES, wkb()):
            frame = pd.DataFrame({"user_id": ids, "geometry": pd.Series(shapes, dtype=object)})
            assert histogram(frame, user_id="user_id") == histogram(SHAPES)
            assert histogram(frame.rename(columns={"geometry": "wkb"})) == histogram(SHAPES)
        mixed = frame.assign(user_id=pd.Series(["a", b"a", 1, True, "\ud800"], dtype=object))
        assert histogram(mixed, user_id="user_id") == histogram(SHAPES)
        with pytest.raises(InputTypeError, match="column named geometry or geom or wkb"):
            histogram(frame.rename(columns={"geometry": "shape"}))

    def test_native_geoarrow_is_refused_with_the_remedy(self):
        arrow = geopandas.GeoDataFrame(geometry=[Point(1, 1)]).to_arrow(
            geometry_encoding="geoarrow"
        )
        with pytest.raises(InputTypeError, match=r"geoarrow.point: give WKB"):
            histogram(arrow)

    def test_a_geoparquet_column_that_was_left_out_is_refused(self):
        with pytest.raises(InputError, match="is no column: there are user_id"):
            histogram(parquet_table().select(["user_id"]), Grid(0, 0, 1, 4, 5, crs=32650))


class TestCRS:
    def frame(self):
        x, y = np.meshgrid(np.linspace(447_050, 448_900, 9), np.linspace(4_418_050, 4_419_900, 9))
        return geopandas.GeoSeries(
            shapely.buffer(shapely.points(x.ravel(), y.ravel()), 70), crs=32650
        )

    def test_regions_in_another_crs_are_reprojected(self):
        here = histogram(self.frame(), UTM)
        degrees = self.frame().to_crs(4326)
        assert histogram(degrees, UTM) == here
        assert histogram(degrees.to_frame("geometry").to_arrow(), UTM) == here
        assert histogram(degrees.to_wkb().tolist(), UTM, crs=4326) == here
        assert histogram(self.frame().to_crs(3857), UTM) == here
        assert here.counts.sum() > 81

    def test_a_degenerate_axis_order_is_x_then_y(self):
        place = geopandas.GeoSeries([Point(116.4, 39.93)], crs=4326)
        grid = Grid.around(116.4, 39.93, side=300, cell_size=100)
        assert histogram(place, grid).faces[1, 1] == 1

    def test_regions_without_a_crs_beside_a_grid_with_one(self):
        with pytest.raises(CRSError, match=r"carry no CRS, but the grid is in EPSG:32650.*crs="):
            histogram(list(SHAPES), UTM)
        with pytest.raises(CRSError, match=r"set_crs"):
            histogram(geoseries(), UTM)
        with pytest.raises(CRSError, match="carry no CRS"):
            histogram(arrow_table(), UTM)

    def test_regions_with_a_crs_beside_a_grid_without_one(self):
        message = r"the regions are in EPSG:4326, but the grid has no CRS.*Grid\(\.\.\., crs="
        with pytest.raises(CRSError, match=message):
            histogram(geoseries(crs=4326))
        with pytest.raises(CRSError, match=message):
            histogram(geoseries(crs=4326).array)
        with pytest.raises(CRSError, match=message):
            histogram(list(SHAPES), crs=4326)

    def test_two_crs_that_differ(self):
        with pytest.raises(CRSError, match="regions carry EPSG:32650, but crs=EPSG:4326 was given"):
            histogram(self.frame(), UTM, crs=4326)
        assert histogram(self.frame(), UTM, crs=32650) == histogram(self.frame(), UTM)

    def test_a_crs_that_cannot_be_read(self):
        with pytest.raises(CRSError, match="crs='nonsense' is no CRS"):
            histogram(list(SHAPES), UTM, crs="nonsense")

    def test_places_that_the_projection_does_not_have_count_nowhere(self):
        wild = [Point(400, 100), Point(math.inf, 0), Point(math.nan, 1), Point(1e300, 1), None]
        series = geopandas.GeoSeries([*wild, Point(116.39, 39.915)], crs=4326)
        assert histogram(series, UTM).counts.sum() == 1

    def test_no_regions_can_be_reprojected(self):
        assert not histogram(geopandas.GeoSeries([], crs=4326), UTM).counts.any()


class TestReadingOutlines:
    """`read_outlines`, the one function by which others read regions."""

    @pytest.mark.parametrize("batch", [1, 2, 5, None])
    @pytest.mark.parametrize("user_id", [None, [1, 1, 2, 3, 3]])
    def test_every_batch_size_gives_the_outlines_of_the_whole(self, user_id, batch):
        bound = Bound.of(GRID, 2, "shrink")
        whole = [make().outlines for make in read_outlines(SHAPES, GRID, bound, user_id=user_id)]
        makers = list(read_outlines(SHAPES, GRID, bound, user_id=user_id, batch=batch))
        made = [make() for make in reversed(makers)][::-1]  # in any order, and after the reading
        parts = [outlines for outlines, _ in made]
        assert len(whole) == 1
        assert all(len(part.offsets) - 1 <= (batch or 5) for part in parts)
        assert np.array_equal(np.concatenate([part.xy for part in parts]), whole[0].xy)
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        assert np.array_equal(sizes, np.diff(whole[0].offsets))
        for _, users in made:
            assert (users is None) == (user_id is None)

    def test_the_unit_is_settled_before_a_row_is_read(self):
        table = arrow_table().replace_schema_metadata({"dpregions_unit": "trajectory"})
        bare = ArrowStream(table)
        with pytest.raises(PrivacyError, match="marked as one for each trajectory"):
            read_unit(bare, "user_id", None)
        shown, ids, unit = read_unit(ArrowStream(arrow_table()), "user_id", None)
        assert (ids, unit, shown.schema.names) == ("user_id", "user", ["user_id", "geometry"])
        assert read_unit(SHAPES, None, None)[1:] == (None, "record")

    def test_a_crs_on_one_side_is_refused_before_a_batch_is_asked_for(self):
        with pytest.raises(CRSError, match=r"the regions carry no CRS.* or give crs="):
            read_outlines(SHAPES, UTM, None)
        with pytest.raises(CRSError, match="the grid has no CRS"):
            read_outlines(geoseries(4326), GRID, None)

    def test_regions_are_reprojected_to_the_grids_crs(self):
        there = geopandas.GeoSeries([Point(447_050, 4_418_050)], crs=32650)
        (make,) = read_outlines(there.to_crs(4326), UTM, None)
        (near,) = make().outlines.xy.tolist()
        assert [v / (1 << 20) for v in near] == pytest.approx([0.5, 0.5], abs=1e-5)

    def test_what_nobody_foresaw_is_told_by_its_type_alone(self):
        class Broken:
            """A bound that fails where it is applied."""

            @property
            def steps(self):
                raise KeyError("Mrs Canary, 471")

        makers = list(read_outlines(SHAPES, GRID, Broken()))
        with pytest.raises(UnforeseenError, match=r"^reading the regions .*\(KeyError\)") as caught:
            makers[0]()
        assert "Canary" not in str(caught.value)
        assert caught.value.__context__ is None


def test_every_error_is_in_the_tree():
    for call in (lambda: histogram(5), lambda: histogram(SHAPES, user_id="a")):
        with pytest.raises(DPRegionsError):
            call()


@pytest.mark.parametrize(
    ("crs", "place", "far"),
    [
        (32632, (48.5, 9.0), True),  # UTM zone 32N beside an area off Somalia: axes swapped
        (32632, (9.0, 48.5), False),
        (32632, (25.0, 48.5), False),  # two zones on
        (4326, (48.5, 9.0), False),
        (32601, (179.9, 50.0), False),  # across the antimeridian
        (32632, (9.0, -40.0), True),
    ],
)
def test_a_crs_made_for_another_part_of_the_earth_is_refused_before_any_record(crs, place, far):
    grid = Grid.around(*place, side="20km", cell_size="1km")
    regions = geopandas.GeoSeries([], crs=crs)
    if not far:
        EulerHistogram.from_regions(regions, grid, user_id=None)
        return
    with pytest.raises(CRSError, match=r"far from the grid's area .* lon before lat"):
        EulerHistogram.from_regions(regions, grid, user_id=None)
