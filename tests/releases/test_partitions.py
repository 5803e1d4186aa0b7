"""Releases on partitions: made by both mechanisms, saved, read back, shown and exported."""

from __future__ import annotations

import json

import geopandas
import numpy as np
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions import Grid
from dpregions.errors import (
    DPRegionsWarning,
    GridError,
    InputError,
    OutsideAreaWarning,
    QueryError,
    ReleaseFileError,
)
from dpregions.io.exports import STATEMENT_KEY, export
from dpregions.releases.file import STATEMENT, save
from dpregions.releases.statement import refuse_unwritable
from dpregions.sealed_files import seal
from support.releases_on_cells import (
    AREA,
    CRS,
    PARTITIONS,
    WITH_CAP,
    districts,
    hexagons,
    ring_points,
    squares,
    study_on,
    town_on,
    voronoi,
)
from support.small_releases import HARDLY_ANY_NOISE

METHODS = ("footprint", "paper")
BOTH = pytest.mark.parametrize("method", METHODS)
EACH = pytest.mark.parametrize("name", PARTITIONS)

quiet = pytest.mark.filterwarnings("ignore::dpregions.errors.ApproximateCountWarning")


@pytest.fixture(scope="module")
def made():
    """Releases by partition and method, each made once."""
    kept = {}

    def of(name, method="footprint", **changes):
        key = (name, method, *changes.items())
        if key not in kept:
            kept[key] = study_on(WITH_CAP[name](), method=method, **changes)
        return kept[key]

    return of


@quiet
@EACH
@BOTH
def test_a_release_reads_back_to_the_last_bit(made, name, method, tmp_path):
    one = made(name, method)
    one.save(tmp_path / "a.parquet")
    other = dpr.load(tmp_path / "a.parquet")
    assert other.grid == one.grid
    assert (other.grid.labels, other.grid.cap) == (one.grid.labels, one.grid.cap)
    assert (other.base, other.sensitivity) == (one.base, one.sensitivity)
    assert other.stated() == one.stated() and other.describe() == one.describe()
    np.testing.assert_array_equal(other.counts, one.counts)
    np.testing.assert_array_equal(other.signed, one.signed)
    assert other.signed.dtype == one.signed.dtype
    sets = [list(one.grid.labels[:n]) for n in (1, 2, 5)]
    np.testing.assert_array_equal(other.count(cells=sets), one.count(cells=sets))
    np.testing.assert_array_equal(other.estimate(cells=sets), one.estimate(cells=sets))
    np.testing.assert_array_equal(other.interval(cells=sets), one.interval(cells=sets))
    other.save(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@BOTH
def test_a_covert_release_reads_back_without_estimates(made, method, tmp_path):
    one = made("voronoi", method, covert=True)
    one.save(tmp_path / "a.parquet")
    other = dpr.load(tmp_path / "a.parquet")
    assert other.signed is None
    np.testing.assert_array_equal(other.counts, one.counts)


def test_what_was_asked_elsewhere_is_saved_as_it_is_asked(made, tmp_path):
    one = made("voronoi").on(hexagons())
    one.save(tmp_path / "a.parquet")
    other = dpr.load(tmp_path / "a.parquet")
    assert other.grid == hexagons() and other.base == one.base
    np.testing.assert_array_equal(other.counts, one.counts)


@pytest.mark.parametrize("name", ["voronoi", "polygons", "grid", "capped"])
def test_with_no_noise_the_papers_release_is_the_exact_histogram(name):
    cells, regions = WITH_CAP[name](), town_on(WITH_CAP[name]())
    made = study_on(cells, regions, method="paper", epsilon=HARDLY_ANY_NOISE)
    exact = dpr.EulerHistogram.from_regions(regions, cells, max_diameter=2.0, crs=CRS)
    if cells.cap is None:
        np.testing.assert_array_equal(made.signed, exact.counts)
    else:
        assert (made.signed <= exact.counts).all()


def test_the_cells_of_a_grid_have_exactly_the_grids_histogram():
    cells, regions = squares(), town_on(squares(), 500)
    grid = dpr.Grid(0, 0, 1, n_rows=8, n_cols=10, crs=CRS)
    given = {"max_diameter": 2.0, "crs": CRS}
    one = dpr.EulerHistogram.from_regions(regions, cells, **given)
    other = dpr.EulerHistogram.from_regions(regions, grid, **given)
    np.testing.assert_array_equal(one.faces, other.faces.ravel())
    assert np.sort(one.counts).tolist() == np.sort(other.counts.ravel()).tolist()
    assert one.count(2, 1, 7, 5) == other.count(2, 1, 7, 5)
    bound = cells.bound(2.0, "shrink")
    assert cells.most_touched(bound) <= grid.most_touched(grid.bound(2.0, "shrink"))


# Sensitivity


@pytest.mark.parametrize("name", WITH_CAP)
def test_the_papers_sensitivity_is_the_most_that_a_region_touches(made, name):
    cells = WITH_CAP[name]()
    most = cells.most_touched(cells.bound(2.0, "shrink"))
    assert made(name, "paper").sensitivity == most
    assert made(name, "paper", neighbours="replace-one").sensitivity == 2 * most
    if cells.cap is not None:
        assert most == cells.cap == 7
        with pytest.raises(GridError, match="without any cap"):
            made(name, "footprint")
        return
    assert made(name, "footprint").sensitivity == 1
    assert made(name, "footprint", neighbours="replace-one").sensitivity == 2


@given(st.sampled_from(sorted(WITH_CAP)), st.integers(0, 2**32), st.floats(0.2, 6))
@settings(max_examples=25)
def test_no_region_ever_touches_more_components_than_the_sensitivity(name, seed, diameter):
    cells, rng = WITH_CAP[name](), np.random.default_rng(seed)
    bound = cells.bound(diameter, "shrink")
    turns = rng.uniform(0, 2 * np.pi, (200, 5))
    reach = diameter * rng.uniform(0.4, 2, (200, 1, 1)) / 2
    homes = rng.uniform(AREA[:2], AREA[2:], (200, 1, 2))
    corners = homes + reach * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    bodies = cells.outlines(*ring_points(shapely.convex_hull(shapely.multipoints(corners))), bound)
    touched = np.diff(cells.touched(bodies).offsets)
    assert 0 < touched.max() <= cells.most_touched(bound)


# What a release says and shows


@EACH
@BOTH
def test_words_name_the_cells_and_the_grid_that_was_measured(made, name, method):
    one = made(name, method)
    said = one.describe()
    assert repr(one.grid) in said and one.grid.cells_in_words in said
    assert (f"measured on {one.base!r}" in said) == (method == "footprint")
    assert repr(one.grid) in repr(one)
    html = one._repr_html_()
    assert one.grid.cells_in_words in html and "<img" not in html
    if name == "polygons":
        assert "NOT CONVEX" in said and "NOT CONVEX" in repr(one)


@EACH
def test_a_map_has_a_colour_for_each_cell(made, name):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    one = made(name)
    ax = one.plot()
    (drawn,) = ax.collections
    assert drawn.get_array().tolist() == one.counts[: one.grid.n_cells].tolist()
    assert ax.get_xlim()[0] <= AREA[0] and ax.get_xlim()[1] >= AREA[2]
    plt.close(ax.figure)


@EACH
@pytest.mark.parametrize("kind", ["faces", "edges", "vertices"])
def test_frames_have_the_components_of_a_kind_with_their_counts(made, name, kind):
    one = made(name)
    frame = one.to_geodataframe(kind)
    assert frame.crs == CRS
    numbers = frame["component"].to_numpy()
    assert (one.grid.kinds[numbers] == ["faces", "edges", "vertices"].index(kind)).all()
    np.testing.assert_array_equal(frame["count"], one.counts[numbers])
    if kind != "faces":
        np.testing.assert_array_equal(frame["estimate"], one.signed[numbers])
    else:  # what the interval of a cell is around
        each = [[label] for label in one.grid.labels]
        np.testing.assert_array_equal(frame["estimate"], one.estimate(cells=each))
        assert frame["label"].tolist() == list(one.grid.labels)


@pytest.mark.parametrize("suffix", [".gpkg", ".parquet", ".fgb", ".geojson"])
@pytest.mark.parametrize("name", ["voronoi", "polygons"])
def test_exports_hold_the_cells_their_counts_and_the_statement(made, name, suffix, tmp_path):
    one, path = made(name), tmp_path / f"cells{suffix}"
    assert export(one, path, "faces") == "faces"
    if suffix == ".parquet":
        found = geopandas.read_parquet(path)
    else:
        found = geopandas.read_file(path, layer="faces" if suffix == ".gpkg" else None)
    assert sorted(found["label"]) == sorted(one.grid.labels)
    found = found.set_index("label").loc[list(one.grid.labels)]
    assert found["count"].tolist() == one.counts[: one.grid.n_cells].tolist()
    if suffix == ".parquet":
        assert one.describe() in pq.read_metadata(path).metadata[STATEMENT_KEY].decode()


def test_components_and_synthetic_regions_are_exported_too(made, tmp_path):
    one = made("voronoi")
    export(one, tmp_path / "all.gpkg")
    for kind in ("faces", "edges", "vertices"):
        found = geopandas.read_file(tmp_path / "all.gpkg", layer=kind)
        np.testing.assert_array_equal(found["count"], one.to_geodataframe(kind)["count"])
    export(one, tmp_path / "regions.parquet", "regions")
    bodies = geopandas.read_parquet(tmp_path / "regions.parquet")
    exact = dpr.EulerHistogram.from_regions(bodies, voronoi(), user_id=None)
    np.testing.assert_array_equal(exact.counts, one.counts)


def on_four_cells(labels):
    sites = [(1, 1), (8, 2), (3, 7), (9, 6)]
    return study_on(dpr.Partition.voronoi(sites, AREA, labels=labels, crs=CRS))


def test_whole_numbers_stay_whole_in_a_file_of_all_components_though_vertices_have_no_label(
    tmp_path,
):
    labels = [2**60 + i for i in range(4)]  # as floats they would all be the same
    one = on_four_cells(labels)
    export(one, tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    for name in ("label", "other"):
        assert table.schema.field(name).type == "int64"
    kinds, found = table["kind"].to_pylist(), table["label"].to_pylist()
    assert [label for kind, label in zip(kinds, found, strict=True) if kind == "face"] == labels
    assert {label for kind, label in zip(kinds, found, strict=True) if kind == "vertex"} == {None}
    export(one, tmp_path / "all.fgb")
    info = pyogrio.read_info(tmp_path / "all.fgb")
    assert dict(zip(info["fields"], info["dtypes"], strict=True))["label"] == "int64"


@pytest.mark.parametrize("suffix", [".gpkg", ".parquet", ".fgb", ".geojson"])
def test_labels_of_which_some_are_numbers_and_some_texts_are_written_as_texts(suffix, tmp_path):
    path = tmp_path / f"cells{suffix}"
    export(on_four_cells(["a", 1, 2, 3]), path, "faces")
    found = (
        geopandas.read_parquet(path)
        if suffix == ".parquet"
        else geopandas.read_file(path, layer="faces")
    )
    assert sorted(found["label"]) == ["1", "2", "3", "a"]


def test_a_raster_of_other_cells_than_a_grids_is_refused(made, tmp_path):
    with pytest.raises(InputError, match=r"needs a grid.*export to \.gpkg or \.parquet"):
        export(made("voronoi"), tmp_path / "cells.tif")
    assert not list(tmp_path.iterdir())


# Files whose statement was altered, with a seal that fits


def forged(path, target, change):
    """Write a file again with an altered statement and a fresh seal."""
    table, metadata = pq.read_table(path), pq.read_metadata(path).metadata
    found = json.loads(metadata[STATEMENT.encode()])
    change(found)
    texts = {key.decode(): text.decode() for key, text in metadata.items()}
    texts = {key: text for key, text in texts.items() if key.startswith(STATEMENT)}
    options = {"use_dictionary": ["kind"], "store_schema": False, "compression": "zstd"}
    with pq.ParquetWriter(target, table.schema.remove_metadata(), **options) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(texts | {STATEMENT: json.dumps(found)})
    seal(target)
    return target


def in_grid(**changes):
    return lambda found: found["grid"].update(changes)


def swap_arrays(found):
    found["grid"]["x"], found["grid"]["y"] = found["grid"]["y"], found["grid"]["x"]


def fewer_labels(found):
    found["grid"]["labels"].pop()


def twice_a_label(found):
    found["grid"]["labels"][0] = found["grid"]["labels"][1]


def no_base(found):
    found["base"] = {}


def base_of_a_partition(found):
    found["base"] = found["grid"]


DAMAGES = {
    "arrays swapped": swap_arrays,
    "a label fewer": fewer_labels,
    "a label twice": twice_a_label,
    "no base": no_base,
    "another base": lambda found: found["base"].update(n_rows=found["base"]["n_rows"] + 1),
    "a partition as base": base_of_a_partition,
    "another kind": lambda found: found.update(partition="hexagons"),
    "a grid's kind": lambda found: found.update(partition="grid"),
    "a step that is not a power of two": in_grid(step=0.3),
    "an origin of text": in_grid(origin=["0", "0"]),
    "faces": in_grid(n_faces=39),
    "huge": in_grid(n_points=10**12),
    "a field more": in_grid(more=1),
    "another version": in_grid(version=2),
    "arrays that are not packed": in_grid(points="AAAA"),
    "an even cap": in_grid(cap=4),
    "a cap of text": in_grid(cap="7"),
    "a CRS of text": in_grid(crs="EPSG:32632"),
    "a geographic CRS": in_grid(crs={"type": "GeographicCRS", "name": "x"}),
    "slack": in_grid(slack=-1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_partition_in_a_sealed_file_is_refused(made, damage, tmp_path):
    made("voronoi").save(tmp_path / "good.parquet")
    forged(tmp_path / "good.parquet", tmp_path / "same.parquet", lambda found: None)
    dpr.load(tmp_path / "same.parquet")
    bad = forged(tmp_path / "good.parquet", tmp_path / "bad.parquet", DAMAGES[damage])
    with pytest.raises(ReleaseFileError, match=r"bad\.parquet"):
        dpr.load(bad)


@pytest.mark.parametrize("crs", [{"proj": "utm", "zone": 33}, "EPSG:32632", {"type": 3}])
def test_a_crs_inside_the_grid_of_a_partition_is_checked_as_any_other(made, crs, tmp_path):
    """It reached pyproj unseen, which reads such fields as options of PROJ."""
    made("grid").save(tmp_path / "good.parquet")

    def damage(found):
        found["grid"]["grid"]["crs"] = crs

    bad = forged(tmp_path / "good.parquet", tmp_path / "bad.parquet", damage)
    with pytest.raises(ReleaseFileError, match=r"bad\.parquet .*its CRS is no PROJJSON"):
        dpr.load(bad)


def test_cells_that_no_file_keeps_are_refused_before_any_work(made, tmp_path):
    cells = voronoi()
    refuse_unwritable(cells)
    length = len(cells.to_json())
    with pytest.raises(GridError, match=r"cannot keep these cells.*fewer cells.*shorter labels"):
        refuse_unwritable(cells, limit=length)
    made("voronoi").save(tmp_path / "a.parquet")
    said = len(pq.read_metadata(tmp_path / "a.parquet").metadata[STATEMENT.encode()])
    refuse_unwritable(cells, limit=said + (1 << 17))


def test_a_release_asked_on_cells_that_no_file_keeps_is_not_saved(made, tmp_path):
    """It was saved, and could not be loaded."""
    with pytest.raises(InputError, match=r"cannot keep .*shorter labels"):
        save(made("voronoi"), tmp_path / "a.parquet", limit=1000)
    assert not list(tmp_path.iterdir())


def moved(**changes):
    """Return a change of the base."""
    return lambda found: found["base"].update(changes)


ELSEWHERE = {
    "another CRS": moved(crs=json.loads(Grid(0, 0, 1, 1, 1, crs="EPSG:32651").to_json())["crs"]),
    "no CRS": moved(crs=None),
    "another place": moved(xmin=1e6),
    "a grid": lambda found: found.update(grid=found["base"], partition="grid"),
}


@pytest.mark.parametrize("change", ELSEWHERE)
def test_a_file_whose_base_is_elsewhere_is_refused_by_its_name(made, change, tmp_path):
    """It was loaded, and failed at the first question."""
    made("voronoi").save(tmp_path / "good.parquet")
    bad = forged(tmp_path / "good.parquet", tmp_path / "bad.parquet", ELSEWHERE[change])
    with pytest.raises(
        ReleaseFileError, match=r"bad\.parquet is not a whole release: .*(base|area)"
    ):
        dpr.load(bad)


@pytest.mark.parametrize("cols", [5, 4])
def test_a_papers_release_with_a_base_is_refused_by_its_name(cols, tmp_path):
    grid = Grid(0, 0, 1, n_rows=4, n_cols=5, crs=CRS)
    study_on(grid, method="paper").save(tmp_path / "good.parquet")
    other = json.loads(Grid(0, 0, 1, n_rows=4, n_cols=cols, crs=CRS).to_json())

    def change(found):
        found["base"], found["grid"] = found["grid"], other | {"xmin": 1.0}

    bad = forged(tmp_path / "good.parquet", tmp_path / "bad.parquet", change)
    with pytest.raises(ReleaseFileError, match=r"bad\.parquet is not a whole release"):
        dpr.load(bad)


def test_a_papers_release_with_another_cap_is_refused(made, tmp_path):
    made("capped", "paper").save(tmp_path / "good.parquet")
    for cap in (5, None):
        bad = forged(tmp_path / "good.parquet", tmp_path / "bad.parquet", in_grid(cap=cap))
        with pytest.raises(ReleaseFileError, match="sensitivity"):
            dpr.load(bad)


# What is warned of


def test_sets_that_are_not_convex_are_warned_of_by_the_papers_release_alone(made):
    some = list(districts().labels[:3])
    with pytest.warns(DPRegionsWarning, match="not a convex set"):
        made("polygons", "paper").count(cells=some)
    assert made("polygons").count(cells=some) > 0


@BOTH
def test_answers_as_drawn_count_nobody_twice(made, method):
    # The union of the districts that it touches is a rectangle, but they are not convex.
    shape = shapely.Point(5, 4).buffer(4.9)
    one = made("polygons", method)
    if method == "paper":
        with pytest.warns(DPRegionsWarning, match="not a convex set"):
            selection = one.select((shape,), within=None, crs=None)
    else:
        selection = one.select((shape,), within=None, crs=None)
    found = one.answers(selection)
    assert found["exact"].tolist() == [method == "footprint"]
    assert found["within"].tolist() == ["shape" if method == "footprint" else "cells"]


@pytest.mark.parametrize("ask", ["count", "estimate", "interval", "expected_error"])
@pytest.mark.parametrize("whole", [False, True])
def test_cells_of_a_partition_are_not_passed_over_by_a_release_on_a_grid(made, ask, whole):
    one = made("voronoi")
    on_its_grid = one.on(one.base)
    with pytest.raises(QueryError, match="cells are labels of a partition's cells"):
        getattr(on_its_grid, ask)(*(one.base.bounds if whole else ()), cells=["mast 1"])


@BOTH
def test_a_neighbour_of_the_area_has_nobody_by_either_method(made, method):
    one = made("voronoi", method)
    _, ymin, xmax, ymax = one.grid.bounds
    with pytest.warns(OutsideAreaWarning, match="no cell of the partition"):
        assert one.count(shapely.box(xmax, ymin, xmax + 5, ymax)) == 0


def test_a_point_asked_within_cells_is_not_taken_as_drawn(made):
    selection = made("voronoi", "paper").select((shapely.Point(3, 3),), within="cells", crs=None)
    assert selection.as_drawn.tolist() == [False]
    assert selection.n_cells.tolist() == [1]
