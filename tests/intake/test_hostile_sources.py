"""Input made to take all memory or time: read in bounds, or refused; no row stops the others."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import dpregions as dpr
from dpregions import EulerHistogram, Grid
from dpregions.errors import GridError
from dpregions.intake.sources.parquet_files import BATCH_BYTES
from dpregions.memory import memory_bytes

GRID = Grid(0, 0, 1, 8, 8)
SMALL = shapely.box(1, 1, 2, 2)


@pytest.fixture(scope="module")
def endless() -> shapely.Polygon:
    """Return a polygon of ten million vertices."""
    angle = np.linspace(0, 2 * np.pi, 10_000_001)
    ring = np.stack([4 + np.cos(angle), 4 + np.sin(angle)], axis=1)
    ring[-1] = ring[0]
    return shapely.Polygon(ring)


def test_a_polygon_of_ten_million_vertices_is_its_hull(endless):
    found = EulerHistogram.from_regions([endless, SMALL], GRID, max_diameter=2)
    assert found.count(0, 0, 8, 8) == 2


def test_as_wkb_it_counts_nowhere_and_its_neighbours_count(endless):
    table = pa.table({"geometry": pa.array([endless.wkb, SMALL.wkb], pa.binary())})
    found = EulerHistogram.from_regions(table, GRID, max_diameter=2)
    assert found.count(0, 0, 8, 8) == 1


@pytest.mark.skipif(memory_bytes() > 80 * 2**30, reason="this machine holds such a grid")
def test_a_grid_of_a_billion_cells_is_refused_for_its_memory():
    with pytest.raises(GridError, match=r"31623 x 31623 cells .* takes about .* use larger cells"):
        Grid(0, 0, 1, 31_623, 31_623)


@pytest.mark.parametrize("kind", ["geometry", "user_id"])
def test_a_small_file_of_long_repeated_values_is_read_a_few_rows_at_a_time(kind, tmp_path):
    """A file of a few kilobytes that says the same 15 MB two hundred times: 3 GB."""
    n, long = 200, 15 << 20
    wkb, user = SMALL.wkb, b"u"
    if kind == "geometry":
        wkb = wkb.ljust(long, b"\0")  # bytes after a geometry's end do not matter
    else:
        user = user.ljust(long, b"u")
    same = np.zeros(n, np.int32)
    columns = {"user_id": user, "geometry": wkb}
    arrays = [
        pa.DictionaryArray.from_arrays(same, pa.array([value], pa.binary()))
        for value in columns.values()
    ]
    path = tmp_path / "small.parquet"
    about = {"columns": {"geometry": {"encoding": "WKB", "crs": None}}}
    geo = {"geo": json.dumps(about | {"version": "1.1.0", "primary_column": "geometry"})}
    schema = pa.schema([(name, a.type) for name, a in zip(columns, arrays, strict=True)], geo)
    table = pa.table(arrays, schema=schema)
    pq.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 20_000
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in dpr.open_regions(path):
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == n
    assert most < 3 * BATCH_BYTES
