"""Release files whose columns or catalogue cannot be are refused, whatever their seal says."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest

import dpregions as dpr
from dpregions.errors import ReleaseFileError
from dpregions.mechanisms.footprint.catalogue_text import catalogue_to_text
from support.release_files import forged


def with_column(name, change):
    """Return a change of one column."""

    def changed(table):
        i = table.schema.get_field_index(name)
        values = change(table[name])
        kind = values.type if isinstance(values, pa.Array) else pa.array(values).type
        return table.set_column(i, pa.field(name, kind, nullable=False), [pa.array(values)])

    return changed


def numbers(change):
    return lambda column: pa.array(change(column.to_numpy().copy()))


TABLES = {
    "no rows": lambda t: t.slice(0, 0),
    "a row less": lambda t: t.slice(1),
    "rows twice": lambda t: pa.concat_tables([t, t]),
    "rows swapped": lambda t: t.take([1, 0, *range(2, t.num_rows)]),
    "a column less": lambda t: t.drop(["estimate"]),
    "no counts": lambda t: t.drop(["count"]),
    "a column more": lambda t: t.append_column("exact", t["count"]),
    "columns swapped": lambda t: t.select([1, 0, *range(2, t.num_columns)]),
    "nullable": lambda t: t.cast(pa.schema([f.with_nullable(True) for f in t.schema])),
    "counts as floats": with_column("count", numbers(lambda v: v.astype(float))),
    "small counts": with_column("count", numbers(lambda v: v.astype(np.int32))),
    "counts as text": with_column("count", lambda c: pa.array(list(map(str, c.to_pylist())))),
    "a negative count": with_column("count", numbers(lambda v: v - v.max())),
    "huge counts": with_column("count", numbers(lambda v: v + 2**61)),
    "a count more": with_column("count", numbers(lambda v: v + (np.arange(len(v)) == 3))),
    "no estimate": with_column("estimate", numbers(lambda v: v * np.nan)),
    "another sign": with_column("sign", numbers(lambda v: -v)),
    "another kind": with_column("kind", lambda c: pa.array(["face"] * len(c))),
    "an unknown kind": with_column("kind", lambda c: pa.array(["side"] * len(c))),
    "other rows": with_column("row", numbers(lambda v: v[::-1].copy())),
    "other columns": with_column("col", numbers(lambda v: v + 1)),
    "no bodies": lambda t: t.set_column(
        6, t.schema.field(6), [pa.array([[]] * t.num_rows, t.schema.field(6).type)]),
    "bodies moved": lambda t: t.set_column(
        6, t.schema.field(6), [pa.array(t["bodies"].to_pylist()[::-1], t.schema.field(6).type)]),
    "measurements moved": lambda t: t.set_column(
        7, t.schema.field(7), [pa.array(t["measured"].to_pylist()[::-1], t.schema.field(7).type)]),
}  # fmt: skip


@pytest.mark.parametrize("what", TABLES)
def test_columns_that_cannot_be_are_refused(what, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", table=TABLES[what])
    with pytest.raises(ReleaseFileError, match="bad"):
        dpr.load(bad)


def altered_entries(release, name, **changes):
    """Return a release's lists with some fields altered."""
    entries = release.outcome.columns().lists[name]
    fields = {k: changes.get(k, lambda v: v)(v.copy()) for k, v in entries.fields.items()}
    return dataclasses.replace(entries, fields=fields)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("bodies", {"pattern": lambda v: v - 1000}),
        ("bodies", {"pattern": lambda v: v + 1000}),
        ("bodies", {"pattern": lambda v: v[::-1].copy()}),
        ("bodies", {"witness": lambda v: v - 1000}),
        ("bodies", {"witness": lambda v: v + 1000}),
        ("bodies", {"witness": lambda v: v * 0}),
        ("bodies", {"times": lambda v: v * 0}),
        ("bodies", {"times": lambda v: v + 1}),
        ("bodies", {"times": lambda v: v + 2**62}),
        ("measured", {"level": lambda v: v + 1}),
        ("measured", {"group": lambda v: v - 1}),
        ("measured", {"value": lambda v: v + 2**60}),
        ("measured", {"value": lambda v: np.where(v == v[0], -(2**63), v)}),
    ],
)
def test_lists_that_cannot_be_are_refused_whatever_the_seal(name, changes, good, tmp_path):
    release, path = good
    entries = altered_entries(release, name, **changes)

    def altered(table):
        i, kind = table.schema.get_field_index(name), table.schema.field(name).type
        rows = [[] for _ in range(table.num_rows)]
        for row, *values in zip(entries.row, *entries.fields.values(), strict=True):
            rows[row].append(dict(zip(entries.fields, map(int, values), strict=True)))
        return table.set_column(i, table.schema.field(i), [pa.array(rows, kind)])

    bad = forged(path, tmp_path / "bad", table=altered)
    with pytest.raises(ReleaseFileError, match=r"bodies|measurements"):
        dpr.load(bad)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f | {"side": 100},
        lambda f: f | {"side": "3"},
        lambda f: f | {"patterns": 10**9},
        lambda f: f | {"patterns": f["patterns"] - 1},
        lambda f: f | {"xy": "AAAA"},
        lambda f: f | {"xy": "not base64"},
        lambda f: f | {"xy": 7},
        lambda f: f | {"heights": f["corners"]},
        lambda f: f | {"times": f["xy"]},
        lambda f: f | {"witnesses": f["heights"]},
        lambda f: {k: v for k, v in f.items() if k != "times"},
        lambda f: [],
    ],
)
def test_a_catalogue_that_cannot_be_is_refused(change, good, tmp_path):
    text = catalogue_to_text(good[0].outcome.bodies.catalogue)
    bad = forged(good[1], tmp_path / "bad", catalogue=json.dumps(change(json.loads(text))))
    with pytest.raises(ReleaseFileError, match="catalogue"):
        dpr.load(bad)
