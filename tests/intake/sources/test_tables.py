"""Tables of fixes in Parquet and CSV: columns by their declared types, rows by themselves."""

import dataclasses
import gzip
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.errors import InputError, InputTypeError
from dpregions.extraction.fixes import regions_from_batches, regions_from_fixes
from dpregions.intake.sources import tables, traces
from dpregions.intake.sources.traces import read_fixes
from support.fix_tables import all_of, fixes_table, write


def as_read(table, path):
    """Return a table as its file gives it: the ids of CSV are text."""
    return table if path.suffix == ".parquet" else table.astype({"user_id": str})


def in_chunks_of_7(reader):
    """Return a reader that holds so few rows of a Parquet file at once."""
    return dataclasses.replace(reader, _stream=partial(tables.stream, rows=7))


@pytest.mark.parametrize("sort", [True, False], ids=["sorted", "scattered"])
@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz"])
@pytest.mark.parametrize("batch", [1, 9, 10**6])
def test_each_user_is_whole_in_exactly_one_batch(tmp_path, name, sort, batch):
    table = fixes_table(sort=sort)
    reader = in_chunks_of_7(read_fixes(write(table, tmp_path / name), batch_fixes=batch))
    batches = list(reader)
    users = [set(part["user_id"]) for part in batches]
    assert sum(map(len, users)) == len(set().union(*users))
    key = ["user_id", "t", "lon"]
    found = pd.concat(batches).sort_values(key, ignore_index=True)
    expected = as_read(table, tmp_path / name).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)
    assert reader.report.lines == reader.report.kept == len(table)
    if batch == 9:
        assert max(map(len, batches)) < len(table)


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=6), st.integers(1, 8))
def test_chunks_are_put_together_to_whole_users(chunks, least):
    users = sorted(user for chunk in chunks for user in chunk)
    cuts = np.cumsum([len(chunk) for chunk in chunks])[:-1] if chunks else []
    frames = [pd.DataFrame({"user_id": part}) for part in np.split(np.array(users, int), cuts)]
    batches = list(traces._whole_users(frames, least))
    assert [user for part in batches for user in part["user_id"]] == users
    owners = [user for part in batches for user in part["user_id"].unique()]
    assert len(owners) == len(set(owners))


def test_a_user_in_two_files_is_one_user(tmp_path):
    table = fixes_table(n_users=3)
    write(table[::2], tmp_path / "a.parquet")
    write(table[1::2], tmp_path / "b.parquet")
    batches = list(read_fixes(tmp_path, batch_fixes=1))
    assert sum(part["user_id"].nunique() for part in batches) == 3


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_bad_rows_of_a_table_are_skipped_and_counted(tmp_path, suffix):
    table = fixes_table().astype({"user_id": object, "t": object})
    table.loc[0, "lat"] = 400
    table.loc[1, "lon"] = np.nan
    table.loc[2, "user_id"] = None
    table["t"] = pd.to_datetime(table["t"])
    table.loc[3, "t"] = pd.Timestamp("1970-01-01")
    table["user_id"] = table["user_id"].map(lambda u: u if u is None else f"u{u}")
    path = write(table, tmp_path / f"a.{suffix}")
    if suffix == "csv":
        path.write_text(path.read_text() + "u9,2008-05-01,9\nu9,2008-05-01,9,48,1\n")
    reader = read_fixes(path)
    assert len(all_of(reader)) == 36
    report = reader.report
    assert report.wrong_fields == (3 if suffix == "csv" else 1)
    assert (report.wrong_places, report.wrong_clocks) == (2, 1)


def test_columns_may_have_other_names_and_seconds_and_no_time(tmp_path):
    table = fixes_table()
    seconds = table.assign(t=table["t"].astype("int64") // 10**6)
    names = {"user_id": "taxi", "lon": "x", "lat": "y", "t": "when"}
    path = write(seconds.rename(columns=names), tmp_path / "a.csv")
    found = all_of(read_fixes(path, user_id="taxi", lon="x", lat="y", time="when"))
    pd.testing.assert_frame_equal(found, as_read(table, path))
    bare = write(table.drop(columns="t"), tmp_path / "bare.parquet")
    assert list(all_of(read_fixes(bare)).columns) == ["user_id", "lon", "lat"]


def test_ids_of_csv_are_text_whatever_they_look_like(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user_id,lon,lat\n7,9,48\n007,9,48\n12,9,48\n")
    assert all_of(read_fixes(path))["user_id"].tolist() == ["7", "007", "12"]
    path.write_text("user_id,lon,lat\n7,9,48\n12,9,48\n")
    assert all_of(read_fixes(path))["user_id"].tolist() == ["7", "12"]


def test_text_with_zones_and_dictionaries_are_read(tmp_path):
    table = fixes_table()
    zoned = table.assign(
        t=table["t"].dt.tz_localize("UTC").astype(str),
        user_id=table["user_id"].astype(str).astype("category"),
    )
    found = all_of(read_fixes(write(zoned, tmp_path / "a.parquet")))
    assert found["t"].tolist() == table["t"].tolist()
    assert found["user_id"].tolist() == table["user_id"].astype(str).tolist()


def test_reading_in_batches_gives_the_regions_of_the_whole_table(tmp_path):
    table = fixes_table(n=300)
    recipe = {"k": 20, "max_diameter": "1km", "crs": 32632}
    reader = read_fixes(write(table, tmp_path / "a.parquet"), batch_fixes=50)
    batched, whole = regions_from_batches(reader, **recipe), regions_from_fixes(table, **recipe)
    assert batched["user_id"].tolist() == whole["user_id"].tolist()
    assert batched.geometry.geom_equals(whole.geometry).all()


def test_swapped_coordinates_are_said_in_the_report_alone(tmp_path):
    table = fixes_table().assign(lon=39.9, lat=116.4)
    reader = read_fixes(write(table, tmp_path / "a.csv"))
    assert list(reader) == []
    assert reader.report.off_the_globe == reader.report.latitudes == len(table)
    assert reader.report.as_dict()["swapped_axes_suspected"] is True
    assert "longitude and latitude may be swapped" in str(reader.report)
    table.loc[::2, "lat"] = 48.5
    reader = read_fixes(write(table, tmp_path / "a.csv"))
    assert len(all_of(reader)) == len(table) / 2
    assert "swapped" not in str(reader.report)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_more_fix_off_the_globe_tips_nothing(tmp_path, suffix):
    rows = pd.DataFrame({"user_id": ["ann", "bob"], "lon": 9.0, "lat": [48.5, 400.0]})
    for bad in (rows, pd.concat([rows, rows[1:], rows[1:]])):
        found = all_of(read_fixes(write(bad, tmp_path / f"a.{suffix}")))
        assert found["user_id"].tolist() == ["ann"]


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_files_that_are_not_what_they_are_called_are_clear_errors(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match="empty or cannot be read"):
        list(read_fixes(tmp_path / name))
    if name == "a.parquet":
        (tmp_path / name).write_bytes(b"secret row" * 9)
        with pytest.raises(InputError, match="cannot be read") as caught:
            list(read_fixes(tmp_path / name))
        assert "secret" not in str(caught.value)


def test_empty_files_alone_make_no_batch(tmp_path):
    (tmp_path / "1.txt").write_text("\n\n")
    reader = read_fixes(tmp_path)
    assert list(reader) == []
    for more, columns in (
        ({}, ["user_id", "geometry"]),
        ({"unit": "trajectory", "gap": "1h"}, ["user_id", "trajectory", "geometry"]),
    ):
        found = regions_from_batches(reader, k=1, max_diameter=1, crs=32650, **more)
        assert found.empty
        assert list(found.columns) == columns
        assert found.crs == 32650
        assert found.attrs == {"dpregions_unit": more.get("unit", "user")}


def test_compressed_csv_is_a_table(tmp_path):
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("user_id,lon,lat\n1,9,48\n")
    assert len(all_of(read_fixes(path))) == 1


@pytest.mark.parametrize("damage", ["cut", "garbled", "not compressed"])
def test_damaged_compression_is_a_clear_error(tmp_path, damage):
    path = write(fixes_table(n=9000), tmp_path / "a.csv.gz")
    data = bytearray(path.read_bytes())
    if damage == "garbled":
        data[2000:2400] = bytes(400)
    path.write_bytes({"cut": data[:-500], "garbled": data}.get(damage, b"user_id,lon,lat\n"))
    with pytest.raises(InputError, match=r"a\.csv\.gz is cut short or damaged"):
        list(read_fixes(path))


def test_a_file_without_a_header_is_told_so_without_its_first_record(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,1700000000,9.00013,48.49231\nb,1700000000,9.1,48.5\n")
    with pytest.raises(InputError, match="is there a header") as caught:
        list(read_fixes(path))
    assert not any(secret in str(caught.value) for secret in ("9.000", "48.49", "17000"))
    table = write(fixes_table(), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"lon='x' is no column of .*: there are user_id, t, lon"):
        list(read_fixes(table, lon="x"))


@pytest.mark.parametrize("name", ["user_id", "lon", "lat", "t"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_needed_column_that_is_there_twice_is_refused(tmp_path, name, suffix):
    table = pa.Table.from_pandas(fixes_table(), preserve_index=False)
    table = table.append_column("spare", pa.array(["x"] * len(table)))
    names = [name if column == "spare" else column for column in table.column_names]
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        frame = table.to_pandas()
        frame.columns = names
        frame.to_csv(path, index=False)
    else:
        pq.write_table(table.rename_columns(names), path)
    with pytest.raises(InputError, match="names several columns of"):
        list(read_fixes(path))


@pytest.mark.parametrize("name", ["user_id", "lon", "lat", "t"])
@pytest.mark.parametrize("kind", ["list", "struct"])
def test_nested_columns_are_refused_without_a_value(tmp_path, name, kind):
    table = pa.Table.from_pandas(fixes_table(), preserve_index=False)
    values = [[777] if kind == "list" else {"a": 777}] * len(table)
    table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputTypeError, match=r"holds (list|struct)") as caught:
        list(read_fixes(tmp_path / "a.parquet"))
    assert "777" not in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [
        pa.date32(),
        pa.date64(),
        pa.timestamp("ns", "Asia/Shanghai"),
        pa.dictionary(pa.int8(), pa.string()),
    ],
)
def test_times_of_every_type_are_read(tmp_path, kind):
    table = pa.table({"user_id": [1, 1], "lon": [9.0, 9.0], "lat": [48.5, 48.5]})
    day = pa.array(["2008-02-02", None]).cast(kind if "dict" in str(kind) else pa.date32())
    pq.write_table(table.append_column("t", day.cast(kind)), tmp_path / "a.parquet")
    found = all_of(read_fixes(tmp_path / "a.parquet"))
    assert found["t"].dt.floor("D").tolist() == [pd.Timestamp("2008-02-02")]


FAR = [2**31 - 1, -(2**31), 1, None]


ID_COLUMNS = {
    "string_view": pa.array(["a", "b", "", None], pa.string()).cast(pa.string_view()),
    "dictionary": pa.array(["a", "b", "", None]).dictionary_encode(),
    "bytes": pa.array([b"\xff", b"a\x00", b"a", b""], pa.binary()),
    "fixed bytes": pa.array([b"\xff\x00", b"\x00\x00", b"ab", None], pa.binary(2)),
    "uint64": pa.array([2**63 + 1, 2**63 + 2, None, None], pa.uint64()),
    "decimal": pa.array([1, 2, None, None]).cast(pa.decimal128(30, 2)),
    "bool": pa.array([True, False, None, None]),
    "date": pa.array(FAR, pa.int32()).cast(pa.date32()),
    "date in milliseconds": pa.array([86_400_000, 0, None, None]).cast(pa.date64()),
    "timestamp": pa.array([2**62, 2**62 + 1, None, -(2**63)]).cast(pa.timestamp("us")),
    "zoned": pa.array([2**62, 2**62 + 1, None, 5]).cast(pa.timestamp("ns", "Asia/Shanghai")),
    "time": pa.array([1, 2, 3, None]).cast(pa.time64("ns")),
    "duration": pa.array([1, 2, 2**63 - 1, None]).cast(pa.duration("ns")),
}


@pytest.mark.parametrize("batch", [1, 100])
@pytest.mark.parametrize("kind", ID_COLUMNS)
def test_ids_of_every_exact_type_are_read(tmp_path, kind, batch):
    ids = ID_COLUMNS[kind]
    ids = pa.concat_arrays([ids, ids[:1]])  # so that rows of one user lie apart
    table = pa.table({"user_id": ids, "lon": [9.0] * 5, "lat": [48.5] * 5})
    pq.write_table(table, tmp_path / "a.parquet")
    reader = read_fixes(tmp_path / "a.parquet", batch_fixes=batch)
    found = regions_from_batches(reader, k=9, max_diameter="1km", crs=32632)
    missing = {None, "", b""}
    if kind == "timestamp":
        missing.add(-(2**63))
        ids = ids.cast(pa.int64())
    if pa.types.is_temporal(ids.type):
        ids = ids.cast(pa.int32() if kind == "date" else pa.int64())
    assert len(found) == len(set(ids.to_pylist()) - missing)
    assert reader.report.kept == sum(value not in missing for value in ids.to_pylist())


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("rows", [0, 2])
def test_ids_declared_as_floats_are_refused_whatever_they_hold(tmp_path, kind, rows):
    ids = pa.array(np.arange(rows, dtype=kind.to_pandas_dtype()), kind)
    table = pa.table({"user_id": ids, "lon": [9.0] * rows, "lat": [48.5] * rows})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputTypeError, match="no user's id: make it whole numbers or text"):
        list(read_fixes(tmp_path / "a.parquet"))


@pytest.mark.parametrize("sort", [True, False], ids=["sorted", "scattered"])
def test_large_ids_stay_apart_beside_a_row_without_one(tmp_path, sort):
    table = fixes_table(n=90, sort=sort)
    table["user_id"] += 2**60
    recipe = {"k": 20, "max_diameter": "1km", "crs": 32632}
    expected = regions_from_fixes(table, **recipe)
    nobody = table.iloc[:1].astype({"user_id": "Int64"}).assign(user_id=pd.NA)
    rows = pd.concat([table[:40].astype({"user_id": "Int64"}), nobody, table[40:]])
    reader = in_chunks_of_7(read_fixes(write(rows, tmp_path / "a.parquet"), batch_fixes=20))
    found = regions_from_batches(reader, **recipe)
    assert found["user_id"].dtype == "int64"
    assert found["user_id"].tolist() == expected["user_id"].tolist()
    assert found.geometry.geom_equals(expected.geometry).all()
    assert reader.report.wrong_fields == 1


def test_ids_of_two_files_have_one_type_or_are_refused(tmp_path):
    def ids(name, kind):
        table = pa.table({"user_id": pa.array([-1, 7]).cast(kind), "lon": [9.0] * 2})
        pq.write_table(table.append_column("lat", table["lon"]), tmp_path / name)

    ids("a.parquet", pa.int32())
    ids("b.parquet", pa.int64())
    batches = list(read_fixes(tmp_path, batch_fixes=1))
    assert sum(part["user_id"].nunique() for part in batches) == 2
    ids("b.parquet", pa.string())
    with pytest.raises(InputError, match=r"int32 in .*a\.parquet and large_string in .*b\."):
        list(read_fixes(tmp_path))


good_rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.one_of(
            st.integers(1_200_000_000, 1_200_009_999).map(str),
            st.just("20080202"),
            st.sampled_from(["2008-02-02", "2008-02-02 13:33:52.5", "2008-02-02T13:33:52Z"]),
        ),
        st.floats(8.99, 9.01).map(repr),
        st.floats(48.49, 48.51).map(repr),
    ),
    min_size=1,
    max_size=8,
)


bad_rows = st.tuples(
    st.just(9),
    st.sampled_from(["oops", "", "20080202", "2008-02-02", "1200000000", "now"]),
    st.sampled_from(["9", "here", "", " 9.0", "nan", "+9"]),
    st.sampled_from(["48.5", "?", "400", "1e999"]),
)


@given(good_rows, bad_rows, st.integers(0, 8))
def test_one_bad_row_changes_no_other_users_fixes(tmp_path_factory, good, bad, place):
    folder = tmp_path_factory.mktemp("rows")

    def others(rows):
        path = folder / "a.csv"
        lines = ["user_id,t,lon,lat", *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
        found = pd.concat([pd.DataFrame({"user_id": ["9"]}), *read_fixes(path)])
        return found[found["user_id"] != "9"].to_numpy().tolist()

    assert others([*good[:place], bad, *good[place:]]) == others(good)
