"""Readers: every user whole in one batch, bad lines skipped, figures in the report alone."""

import os

import pandas as pd
import pytest

from dpregions.errors import InputError, InputTypeError
from dpregions.extraction.fixes import regions_from_batches
from dpregions.intake.sources.traces import NOT_PRIVATE, read_fixes
from support.fix_tables import all_of, fixes_table, write


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


def test_unusable_paths_and_options_are_clear_errors(tmp_path, tdrive):
    (tmp_path / "b").mkdir()
    table = write(fixes_table(), tmp_path / "b" / "a.csv")
    for call, words in [
        (lambda: read_fixes(tmp_path / "none"), "there is no such file"),
        (lambda: read_fixes([]), "no paths"),
        (lambda: read_fixes(tdrive, format="gpx"), "format='gpx' is unknown"),
        (lambda: read_fixes(tdrive), "several formats"),
        (lambda: read_fixes(tdrive, format="geolife"), "no fixes found"),
        (lambda: read_fixes(table, batch_fixes=0), "batch_fixes"),
        (
            lambda: list(read_fixes(table, lon="x")),
            "lon='x' is no column of .*: there are user_id, t, lon, lat",
        ),
    ]:
        with pytest.raises(InputError, match=words):
            call()
    with pytest.raises(InputTypeError, match="must name columns"):
        read_fixes(table, lon=3)
