"""Small releases and their files: made, compared to the last bit, and forged."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow.parquet as pq
import shapely

import dpregions as dpr
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.file import STATEMENT
from dpregions.releases.make import release_with
from dpregions.releases.statement import Statement
from dpregions.sealed_files import seal

GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5, crs="EPSG:32632")
CATALOGUE = f"{STATEMENT}_catalogue"


def made(grid=GRID, n=60, *, seed=0, max_diameter=2, private=False, **changes):
    """A release of random boxes, with seeded noise unless it is to be private."""
    rng = np.random.default_rng(seed)
    side = min(max_diameter, 2) * grid.cell_size * 0.7
    x, y = (
        rng.uniform(low - side / 2, high, n)
        for low, high in ((grid.xmin, grid.xmax), (grid.ymin, grid.ymax))
    )
    boxes = shapely.box(x, y, x + side * rng.random(n), y + side * rng.random(n))
    given = {"epsilon": 1, "max_diameter": max_diameter * grid.cell_size, "user_id": None}
    given |= {"crs": grid.crs, **changes}
    return (
        dpr.release(boxes, grid, **given)
        if private
        else release_with(StudyNoise(seed), boxes, grid, **given)
    )


def assert_same(one, other):
    """Two releases hold the same and answer the same, to the last bit."""
    for field in dataclasses.fields(Statement):
        assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert one.describe() == other.describe()
    assert one.stated() == other.stated()
    mine, theirs = one.outcome.columns(), other.outcome.columns()
    assert mine.texts == theirs.texts
    assert mine.lists.keys() == theirs.lists.keys()
    for name, entries in mine.lists.items():
        np.testing.assert_array_equal(entries.row, theirs.lists[name].row)
        np.testing.assert_equal(entries.fields, theirs.lists[name].fields)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.counts.dtype == other.counts.dtype
    rows, cols = one.grid.shape
    row0, row1, col0, col1 = np.array(
        [
            (a, b, c, d)
            for a in range(rows)
            for b in range(a, rows)
            for c in range(cols)
            for d in range(c, cols)
        ]
    ).T
    queries = one.grid.cell_bounds(row0, row1, col0, col1)
    np.testing.assert_array_equal(one.count(*queries), other.count(*queries))
    if one.method == "footprint":
        assert one.to_regions().equals(other.to_regions())
    assert (one.signed is None) == (other.signed is None)
    if one.signed is not None:
        assert one.signed.dtype == other.signed.dtype
        np.testing.assert_array_equal(one.estimate(*queries), other.estimate(*queries))
        for mine, theirs in zip(one.interval(*queries), other.interval(*queries), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for mine, theirs in zip(
            one.expected_error(*queries), other.expected_error(*queries), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)


# Loading what is no whole release


def statement(path):
    """The statement of a file, as JSON's values."""
    return json.loads(pq.read_metadata(path).metadata[STATEMENT.encode()])


def forged(path, target, *, table=None, fields=None, catalogue=None, **options):
    """Write a file as save does, with other contents: the seal is that of the whole."""
    table = pq.read_table(path) if table is None else table(pq.read_table(path))
    found = fields(statement(path)) if fields else statement(path)
    text = found if isinstance(found, str) else json.dumps(found)
    known = pq.read_metadata(path).metadata[CATALOGUE.encode()].decode()
    metadata = {STATEMENT: text, CATALOGUE: catalogue or known} | options.pop("metadata", {})
    options = {"use_dictionary": ["kind"], "store_schema": False} | options
    with pq.ParquetWriter(target, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    seal(target)
    return target
