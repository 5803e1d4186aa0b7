"""Readers: every user whole in one batch, bad lines skipped, figures in the report alone."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.errors import InputError, InputTypeError
from dpregions.fixes import regions_from_batches, regions_from_fixes
from dpregions.io import tables, traces
from dpregions.io.traces import NOT_PRIVATE, read_fixes


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
    assert fixes["user_id"].tolist() == [2, 2, 10]
    assert fixes["lon"].tolist() == [116.36, 116.39, 116.51]
    assert fixes["t"].iloc[0] == pd.Timestamp("2008-02-02 13:33:52")


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
    }
    for shown in (str(report), repr(report)):
        assert "exact, not private, do not publish" in shown
        assert "skipped 8 (72.7273%)" in shown
    assert "11" not in repr(reader)


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


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False, row_group_size=11)
    else:
        table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("sort", [True, False], ids=["sorted", "scattered"])
@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz"])
@pytest.mark.parametrize("batch", [1, 9, 10**6])
def test_each_user_is_whole_in_exactly_one_batch(tmp_path, monkeypatch, name, sort, batch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 7)
    table = fixes_table(sort=sort)
    reader = read_fixes(write(table, tmp_path / name), batch_fixes=batch)
    batches = list(reader)
    users = [set(part["user_id"]) for part in batches]
    assert sum(map(len, users)) == len(set().union(*users))
    key = ["user_id", "t", "lon"]
    found = pd.concat(batches).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(found, table.sort_values(key, ignore_index=True))
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
    pd.testing.assert_frame_equal(found, table)
    bare = write(table.drop(columns="t"), tmp_path / "bare.parquet")
    assert list(all_of(read_fixes(bare)).columns) == ["user_id", "lon", "lat"]


def test_ids_that_are_not_plain_numbers_stay_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user_id,lon,lat\n007,9,48\n12,9,48\n")
    assert all_of(read_fixes(path))["user_id"].tolist() == ["007", "12"]


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


def test_swapped_coordinates_are_said(tmp_path):
    table = fixes_table().assign(lon=39.9, lat=116.4)
    reader = read_fixes(write(table, tmp_path / "a.csv"))
    with pytest.raises(InputError, match=r"outside -90\.\.90.*swapped"):
        list(reader)


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
        (lambda: list(read_fixes(table, lon="x")), "lon='x' is no column of .*user_id"),
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
    with pytest.raises(InputError, match="no fixes"):
        regions_from_batches(reader, k=1, max_diameter=1, crs=32650)


def test_compressed_csv_is_a_table(tmp_path):
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("user_id,lon,lat\n1,9,48\n")
    assert len(all_of(read_fixes(path))) == 1
