"""Which group a row is in: by its own value, in every form that a column has."""

from __future__ import annotations

import json
from decimal import Decimal

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.engines.choice import tally_of
from dpregions.errors import InputError
from dpregions.geometry.outlines import Bound
from dpregions.intake.groups import GroupedOutlines, group_numbers
from dpregions.intake.regions import outlines_of
from dpregions.privacy.groups import Groups
from support.small_releases import GRID

NAMED = Groups("age", ("young", "7", "true", "é", "07"))
VALUES = ["young", "7", 7, 7.0, "07", True, "true", "é", "old", 8, "", None, "Young", 7.5, b"7"]
NUMBERS = [0, 1, 1, 1, 4, 2, 2, 3, -1, -1, -1, -1, -1, -1, -1]


def test_text_is_in_the_group_of_its_name_and_a_number_in_that_of_its_digits():
    column = pd.Series(VALUES, dtype=object).array
    assert group_numbers(column, NAMED).tolist() == NUMBERS


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pd.array([7, 8, None], "Int64"), [1, -1, -1]),
        (pd.Series([7.0, np.nan]).array, [1, -1]),
        (np.array([7, 8]), [1, -1]),
        (np.array([True, False]), [2, -1]),
        (np.array(["young", "x"]), [0, -1]),
        (pd.Categorical(["young", "é", None]), [0, 3, -1]),
        (pd.array(["young", "é", None], "string[pyarrow]"), [0, 3, -1]),
        (pd.array([7, None], pd.ArrowDtype(pa.int32())), [1, -1]),
        (pd.Series([np.int64(7), np.str_("young"), Decimal(7)], dtype=object).array, [1, 0, -1]),
        (pa.array(["young", None, "é"]), [0, -1, 3]),
        (pa.array(["young", None, "é"]).dictionary_encode(), [0, -1, 3]),
        (pa.chunked_array([["young"], ["x", "7"]]), [0, -1, 1]),
        (pa.array([7, 8], pa.uint8()), [1, -1]),
        (pa.array([7.0, 7.5, None]), [1, -1, -1]),
        (pa.array([True, None]), [2, -1]),
        (pa.array([b"young", b"\xff\xfe"]), [0, -1]),
        (pa.array(["young", "x"]).slice(1), [-1]),
        (pa.nulls(2), [-1, -1]),
        (pa.array([], pa.string()), []),
        (pa.array([7, 8], pa.date32()), [-1, -1]),
    ],
    ids=str,
)
def test_a_value_is_in_the_same_group_in_every_kind_of_column(column, numbers):
    assert group_numbers(column, NAMED).tolist() == numbers


def test_what_cannot_be_looked_at_is_in_no_group():
    class Odd:
        def __getattribute__(self, name):
            raise RuntimeError("no")

    values = np.empty(2, object)
    values[0], values[1] = Odd(), "young"
    assert group_numbers(values, NAMED).tolist() == [-1, 0]


@given(st.lists(st.one_of(st.sampled_from(VALUES), st.text(max_size=3), st.integers())))
def test_the_group_of_a_row_does_not_depend_on_its_company(values):
    together = group_numbers(pd.Series(values, dtype=object).array, NAMED)
    alone = [group_numbers(pd.Series([v], dtype=object).array, NAMED)[0] for v in values]
    assert together.tolist() == alone


def test_texts_of_readers_without_types_are_not_read_twice():
    """A value that is the text '"7"', quotes included, is not the text 7."""
    spelled = pa.array([json.dumps("7"), "7", json.dumps('"7"'), json.dumps("x"), None])
    assert group_numbers(spelled, NAMED, spelled=True).tolist() == [1, 1, -1, -1, -1]
    assert group_numbers(spelled, NAMED).tolist() == [-1, 1, -1, -1, -1]


# Which of a user's rows counts


def outlines(shapes):
    return outlines_of(np.array(shapes, object), None, GRID, Bound.of(GRID, 2, "shrink"))


SHAPES = [shapely.box(i / 3, 0.2, i / 3 + 0.4, 0.7) for i in range(8)]


def test_rows_of_no_group_have_empty_outlines():
    made = GroupedOutlines.grouped(outlines(SHAPES[:3]), np.array([1, -1, 0]))
    sizes = np.diff(made.offsets)
    assert sizes[1] == 0 and sizes[0] == sizes[2] > 0
    plain = outlines([SHAPES[2]])
    assert (made.of_group(0).xy == plain.xy).all()
    assert (made.taken(np.array([2])).groups == [0]).all()


def test_keys_order_rows_as_outlines_do_and_equal_outlines_by_group():
    plain, groups = outlines(SHAPES), np.arange(8) % 3
    keys = GroupedOutlines.grouped(plain, groups).keys()
    assert (np.lexsort(keys.T[::-1]) == np.lexsort(plain.keys().T[::-1])).all()
    same = GroupedOutlines.grouped(outlines([SHAPES[0]] * 3), np.array([2, 0, 1])).keys()
    assert np.lexsort(same.T[::-1]).tolist() == [1, 2, 0]


def test_marked_outlines_come_back_with_their_groups():
    made = GroupedOutlines.grouped(outlines(SHAPES), np.arange(8) % 3)
    back = GroupedOutlines.of_marked(made.marked())
    assert (back.xy == made.xy).all() and (back.offsets == made.offsets).all()
    assert (back.groups == made.groups).all()


def several(n_rows: int, seed: int) -> geopandas.GeoDataFrame:
    """Users with several rows in several groups, some of them alike but for the group."""
    rng = np.random.default_rng(seed)
    shapes = np.array(SHAPES, object)[rng.integers(0, len(SHAPES), n_rows)]
    who = {"user_id": rng.integers(0, 6, n_rows), "age": rng.choice(["young", "é", "x"], n_rows)}
    return geopandas.GeoDataFrame(who, geometry=shapes)


def counts_of(frame, groups, method="footprint", **options):
    from dpregions.mechanisms.known import MECHANISMS
    from dpregions.privacy.budget import Budget

    bound = GRID.bound(2, "shrink")
    prepared = MECHANISMS[method]().prepare(GRID, bound, Budget(1), "add-remove")

    def exact(tally):
        return tally.histogram() if method == "paper" else tally.counts(prepared._finest)

    if groups is None:
        return exact(tally_of(frame, GRID, bound, prepared.tally, **options))
    made = tally_of(frame, GRID, bound, prepared.tally, groups=groups, **options)
    return np.array([exact(part) for part in made.parts])


@given(st.integers(0, 10**6))
@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_a_user_in_several_groups_counts_in_one_whatever_the_order_of_rows(method, seed):
    frame, listed = several(30, seed), Groups("age", ("é", "young"))
    found = counts_of(frame, listed, method, user_id="user_id")
    other = frame.sample(frac=1, random_state=seed)
    assert (counts_of(other, listed, method, user_id="user_id") == found).all()
    known = frame[frame["age"] != "x"]
    assert (found.sum(axis=0) == counts_of(known, None, method, user_id="user_id")).all()


@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_without_users_each_row_counts_in_its_group(method):
    frame, listed = several(40, 1), Groups("age", ("é", "young", "none is here"))
    found = counts_of(frame, listed, method, user_id=None)
    for part, label in zip(found, listed.labels, strict=True):
        mine = frame[frame["age"] == label]
        assert (part == counts_of(mine, None, method, user_id=None)).all()


# Every source


def written(folder, kind):
    frame = several(60, 3).set_crs("EPSG:32632")
    path = folder / f"town.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "csv":
        table = pd.DataFrame(frame.drop(columns="geometry"))
        table.assign(wkt=frame.geometry.to_wkt(rounding_precision=-1)).to_csv(path, index=False)
    else:
        frame.to_file(path)
    return frame, path


@pytest.mark.parametrize("kind", ["parquet", "csv", "gpkg", "fgb", "shp"])
def test_groups_are_read_from_every_kind_of_file(tmp_path, kind):
    frame, path = written(tmp_path, kind)
    listed = Groups("age", ("young", "é"))
    opened = dpr.open_regions(path, by="age", crs="EPSG:32632" if kind == "csv" else None)
    assert "age" in opened.columns
    cells = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5, crs="EPSG:32632")
    options = {"user_id": "user_id", "groups": listed}

    found = tally_of(opened, cells, cells.bound(2, "shrink"), cells.counter, **options)
    wanted = tally_of(frame, cells, cells.bound(2, "shrink"), cells.counter, **options)
    for one, other in zip(found.parts, wanted.parts, strict=True):
        assert (one.histogram() == other.histogram()).all() and one.histogram().sum() > 0


def test_groups_are_read_from_geojson(tmp_path):
    frame = several(60, 3).set_crs("EPSG:4326")
    frame["age"] = frame["age"].map({"young": 7, "é": "é", "x": "x"})
    rows = [
        json.dumps({
            "type": "Feature",
            "properties": {"user_id": int(row.user_id), "age": row.age},
            "geometry": shapely.geometry.mapping(row.geometry),
        })
        for row in frame.itertuples()
    ]  # fmt: skip
    path = tmp_path / "town.geojson"
    path.write_text(f'{{"type": "FeatureCollection", "features": [{", ".join(rows)}]}}')
    cells = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5, crs="EPSG:32632")
    opened = dpr.open_regions(path, by="age")
    assert opened.spells_values
    numbers = np.concatenate(
        [
            group_numbers(batch.column("age"), Groups("age", ("7", "é")), spelled=True)
            for batch in opened
        ]
    )
    assert numbers.tolist() == [{7: 0, "é": 1, "x": -1}[age] for age in frame["age"]]
    assert cells.crs is not None


@pytest.mark.parametrize("kind", ["parquet", "csv", "gpkg", "fgb", "shp"])
def test_a_file_without_the_column_of_groups_is_refused_by_name(tmp_path, kind):
    _, path = written(tmp_path, kind)
    with pytest.raises(InputError, match="'sex' is no column") as caught:
        dpr.open_regions(path, by="sex", crs="EPSG:32632" if kind == "csv" else None)
    assert caught.value.argument == "by"
