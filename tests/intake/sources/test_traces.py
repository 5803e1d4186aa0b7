"""Readers: every user whole in one batch, bad lines skipped, figures in the report alone."""

import dataclasses
import gzip
import os
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
from dpregions.intake.sources.traces import NOT_PRIVATE, read_fixes


def all_of(reader):
    batches = list(reader)
    return pd.concat(batches, ignore_index=True) if batches else pd.DataFrame()


@pytest.fixture
def tdrive(tmp_path):
    (tmp_path / "10.txt").write_text("10,2008-02-02 15:36:08,116.51,39.92\n")
    (tmp_path / "2.txt").write_text(
        "2,2008-02-02 13:33:52,116.36,39.88\n"
        "2,2008-02-02 13:37:16,116.37\n"  # too few fields
        "2,2008-02-02 13:37:16,116.37,39.88,7\n"  # too many
        "garbage\n"
        "\n"
        "2,2008-02-02 13:38:53,116.38,400\n"
        "2,2008-02-02 13:38:53,nan,39.88\n"
        "2,2008-02-02 13:38:53,here,39.88\n"
        "2,2008-02-30 13:38:53,116.38,39.88\n"  # no such day
        "2,1970-01-01 00:00:00,116.38,39.88\n"  # wrong clock
        "2,2008-02-02 13:42:18,116.39,39.89\n"
    )
    (tmp_path / "3.txt").write_text("")
    return tmp_path


def test_tdrive_files_are_read_and_bad_lines_skipped(tdrive):
    reader = read_fixes(tdrive)
    fixes = all_of(reader)
    assert reader.format == "tdrive"
    assert list(fixes.columns) == ["user_id", "t", "lon", "lat"]
    assert fixes["user_id"].tolist() == ["10", "2", "2"]
    assert fixes["lon"].tolist() == [116.51, 116.36, 116.39]
    assert fixes["t"].iloc[1] == pd.Timestamp("2008-02-02 13:33:52")


def test_files_whose_names_are_no_utf_8_are_different_users(tmp_path):
    for name in (b"Jos\xe9.txt", b"Jos\xe8.txt", rb"Jos\xe9.txt"):
        (tmp_path / os.fsdecode(name)).write_text("1,2008-02-02 15:36:08,116.51,39.92\n")
    found = regions_from_batches(read_fixes(tmp_path), k=1, max_diameter=1, crs=32650)
    assert found["user_id"].tolist() == [r"Jos\\xe9", r"Jos\xe8", r"Jos\xe9"]


def test_the_report_has_the_exact_figures_and_says_that_they_are_not_private(tdrive):
    reader = read_fixes(tdrive)
    all_of(reader)
    report = reader.report
    assert report.as_dict() == {
        "label": NOT_PRIVATE,
        "files": 3,
        "empty_files": 1,
        "lines": 11,
        "kept": 3,
        "wrong_fields": 3,
        "wrong_places": 3,
        "wrong_clocks": 2,
        "latitudes": 8,
        "off_the_globe": 1,
        "swapped_axes_suspected": False,
    }
    for shown in (str(report), repr(report)):
        assert "exact, not private, do not publish" in shown
        assert "skipped 8 (72.7273%)" in shown
    assert "11" not in repr(reader).split(" at 0x")[0]


def test_reading_again_counts_anew(tdrive):
    reader = read_fixes(tdrive)
    assert all_of(reader).equals(all_of(reader))
    assert reader.report.lines == 11


def test_bytes_that_are_no_text_are_bad_lines(tmp_path):
    (tmp_path / "1.txt").write_bytes(
        b"1,2008-02-02 15:36:08,116.51,39.92\r\n\xff\xfe\x00\xff\r\n"
        b"1,2008-02-02 15:\xff6:08,116.51,39.92\r\n1,2008-02-02 15:36:08,116.5\xff,39.92\r\n"
    )
    reader = read_fixes(tmp_path)
    assert len(all_of(reader)) == 1
    assert reader.report.lines == 4


PLT = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0\n0\n"


@pytest.fixture
def geolife(tmp_path):
    for user, day, lines in [
        ("000", "20081023", "39.98,116.31,0,492,39744.1,2008-10-23,02:53:04\n"),
        ("000", "20081024", "39.99,116.32,0,492,39745.1,2008-10-24,02:09:59\nbroken\n"),
        ("017", "20081023", "40.01,116.30,0,-7,36526.1,2000-01-01,23:14:28\n"),  # wrong clock
        ("017", "20081025", ""),
        ("101", "20081025", "40.01,116.30,0,-7,39744.1,2008-10-25,23:14:28"),
    ]:
        folder = tmp_path / "Data" / user / "Trajectory"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{day}.plt").write_text(PLT + lines)
    (tmp_path / "Data" / "000" / "labels.txt").write_text("Start Time\tEnd Time\n")
    return tmp_path / "Data"


def test_geolife_folders_are_users(geolife):
    reader = read_fixes(geolife, format="geolife")
    fixes = all_of(reader)
    assert fixes["user_id"].tolist() == ["000", "000", "101"]
    assert fixes["lat"].tolist() == [39.98, 39.99, 40.01]
    assert fixes["t"].tolist()[1] == pd.Timestamp("2008-10-24 02:09:59")
    assert (reader.report.wrong_clocks, reader.report.empty_files) == (1, 1)


def test_geolife_files_may_be_given_one_by_one(geolife):
    one = geolife / "000" / "Trajectory" / "20081023.plt"
    assert all_of(read_fixes([one]))["user_id"].tolist() == ["000"]


def test_cabspotting_files_are_cabs_in_either_order_of_time(tmp_path):
    (tmp_path / "new_abc.txt").write_text(
        "37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 1 1213084659\n37.7 oops 0 1\n"
    )
    (tmp_path / "_cabs.txt").write_text('<cab id="abc" updates="2"/>\n')
    fixes = all_of(read_fixes(tmp_path))
    assert fixes["user_id"].tolist() == ["abc", "abc"]
    assert fixes["t"].tolist()[0] == pd.Timestamp(1213084687, unit="s")


def fixes_table(n_users=7, n=40, seed=0, sort=True):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "user_id": rng.integers(0, n_users, n),
            "t": pd.Timestamp("2008-05-01") + pd.to_timedelta(rng.integers(0, 9999, n), "s"),
            "lon": rng.normal(9, 0.01, n),
            "lat": rng.normal(48.5, 0.01, n),
        }
    )
    table["t"] = table["t"].astype("datetime64[us]")
    order = ["user_id", "t"] if sort else ["t"]
    return table.sort_values(order, ignore_index=True)


def as_read(table, path):
    """Return a table as its file gives it: the ids of CSV are text."""
    return table if path.suffix == ".parquet" else table.astype({"user_id": str})


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False, row_group_size=11)
    else:
        table.to_csv(path, index=False)
    return path


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


def test_progress_goes_from_low_to_one(tdrive):
    seen = []
    all_of(read_fixes(tdrive, progress=seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 1
    seen = []
    table = write(fixes_table(sort=False), tdrive / "a.parquet")
    all_of(read_fixes(table, batch_fixes=9, progress=seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 1


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


def test_unusable_paths_and_options_are_clear_errors(tmp_path, tdrive):
    (tmp_path / "b").mkdir()
    table = write(fixes_table(), tmp_path / "b" / "a.csv")
    for call, words in [
        (lambda: read_fixes(tmp_path / "none"), "no such file or folder"),
        (lambda: read_fixes([]), "no paths"),
        (lambda: read_fixes(tdrive, format="gpx"), "format='gpx' is unknown"),
        (lambda: read_fixes(tdrive), "several formats"),
        (lambda: read_fixes(tdrive, format="geolife"), "no fixes found"),
        (lambda: read_fixes(table, batch_fixes=0), "batch_fixes"),
        (lambda: list(read_fixes(table, lon="x")), "lon='x' is no column of .*header"),
    ]:
        with pytest.raises(InputError, match=words):
            call()
    with pytest.raises(InputTypeError, match="must name columns"):
        read_fixes(table, lon=3)


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
