"""Damaged GeoParquet: read or refused in our words, and nothing that it holds is told."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import DPRegionsError
from support.small_chunks import open_in_chunks

GRID = dpr.Grid(0, 0, 1, n_rows=6, n_cols=6)
FILES = 400


def sound(folder) -> bytes:
    corners = np.random.default_rng(0).random((2, 300)) * 5
    shapes = list(shapely.to_wkb(shapely.box(*corners, *(corners + 0.5))))
    table = pa.table({"user_id": [f"Canary {i}" for i in range(300)], "geometry": shapes})
    pq.write_table(table, folder / "sound.parquet", row_group_size=100)
    return (folder / "sound.parquet").read_bytes()


def damaged(data: bytes, seed: int) -> bytes:
    """Return the file with a few bytes changed, left out or put in; half of them in its footer."""
    chance = random.Random(seed)
    found = bytearray(data)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(footer if chance.random() < 0.5 else 0, len(found))
        way = chance.random()
        if way < 0.7:
            found[at] = chance.randrange(256)
        elif way < 0.85:
            del found[at : at + chance.randrange(1, 9)]
        else:
            found[at:at] = chance.randbytes(chance.randrange(1, 9))
    return bytes(found)


def test_damaged_files_are_read_or_refused_and_tell_nothing(tmp_path, recwarn, capfd):
    data = sound(tmp_path)
    path = tmp_path / "damaged.parquet"
    told = []
    for seed in range(FILES):
        path.write_bytes(damaged(data, seed))
        try:
            regions = dpr.open_regions(path)
            dpr.EulerHistogram.from_regions(regions, GRID, user_id="user_id")
        except DPRegionsError as error:
            told.append(f"{error} {error.__cause__}")
    assert FILES / 4 < len(told) < FILES
    assert not any("Canary" in words for words in told)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def test_ids_that_are_not_utf_8_are_ids_and_are_never_shown(tmp_path):
    """It ended in a traceback that quoted the id: "Wrapping Jos... failed"."""
    raw = pa.array(["José".encode("latin-1"), "Josè".encode("latin-1"), None, b"x"])
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)
    shapes = [shapely.Point(1.5, 1.5).wkb] * 4
    pq.write_table(pa.table({"user_id": text, "geometry": shapes}), tmp_path / "a.parquet")
    for method in ("paper", "footprint"):
        regions = dpr.open_regions(tmp_path / "a.parquet")
        dpr.release(regions, GRID, epsilon=1, max_diameter=1, method=method)
    regions = dpr.open_regions(tmp_path / "a.parquet")
    assert dpr.EulerHistogram.from_regions(regions, GRID, user_id="user_id").counts.max() == 3


def test_a_dictionary_of_ids_that_are_not_utf_8_is_read_too(tmp_path):
    """Categories of pandas are stored so; one such id made the whole file unreadable."""
    raw = pa.array(["José".encode("latin-1"), b"ann", None, b"ann", b""])
    odd = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)
    shapes = [shapely.Point(1.5, 1.5).wkb] * 5
    for ids, users in ((odd, 2), (pa.array(list("abcab")), 3)):
        table = pa.table({"user_id": ids.dictionary_encode(), "geometry": shapes})
        pq.write_table(table, tmp_path / "a.parquet")
        regions = dpr.open_regions(tmp_path / "a.parquet")
        found = dpr.EulerHistogram.from_regions(regions, GRID, user_id="user_id")
        assert found.counts.max() == users


def test_a_file_is_read_by_groups_of_rows_and_not_as_a_whole(tmp_path):
    """With `pre_buffer` Arrow held the whole column of regions."""
    shapes = [np.random.default_rng(i).bytes(100_000) for i in range(100)]
    table = pa.table({"user_id": range(100), "geometry": pa.array(shapes, pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    before, held = pa.total_allocated_bytes(), 0
    for _ in open_in_chunks(tmp_path / "a.parquet", user_id=None, chunk_rows=5):
        held = max(held, pa.total_allocated_bytes() - before)
    assert held < 5_000_000


def test_times_of_the_old_kind_are_not_ids(tmp_path):
    """Arrow wraps far ones round: two ids would be one."""
    times = pa.array([0, 2**61, 1], pa.timestamp("us"))
    table = pa.table({"user_id": times, "geometry": [shapely.Point(1.5, 1.5).wkb] * 3})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(DPRegionsError, match="INT96"):
        dpr.open_regions(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.list_(pa.int64())])
@pytest.mark.parametrize("rows", [0, 3])
def test_a_column_that_cannot_be_ids_is_refused_whatever_it_holds(kind, rows, tmp_path):
    table = pa.table({"user_id": pa.nulls(rows, kind), "geometry": pa.nulls(rows, pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DPRegionsError, match="cannot be ids"):
        dpr.open_regions(tmp_path / "a.parquet")
