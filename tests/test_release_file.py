"""Release files: read back exactly, readable by others, and refused unless whole."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions import release_file
from dpregions.buckets import Buckets
from dpregions.catalogue import catalogue
from dpregions.catalogue_text import catalogue_from_text, catalogue_to_text
from dpregions.errors import InputError, ReleaseFileError
from dpregions.grid import STEPS
from dpregions.release_columns import checksum_of, columns_of, release_of
from dpregions.release_file import CATALOGUE, STATEMENT, checksum, seal
from dpregions.release_statement import canonical, parse_statement, statement_of
from dpregions.releasing import release_with
from dpregions.study.noise import StudyNoise

ROOT = Path(__file__).parents[1]
GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5, crs="EPSG:32632")
KINDS = [
    {"method": method, "covert": covert, "neighbours": neighbours}
    for method in ("footprint", "paper")
    for covert in (False, True)
    for neighbours in ("add-remove", "replace-one")
]


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


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A private release by footprints, and its file."""
    path = tmp_path_factory.mktemp("good") / "good.parquet"
    release = made(private=True)
    release.save(path)
    return release, path


def assert_same(one, other):
    """Two releases hold the same and answer the same, to the last bit."""
    for name in (
        "grid",
        "method",
        "budget",
        "privacy_unit",
        "sensitivity",
        "max_diameter",
        "oversize",
        "private",
        "noise",
        "spending",
        "version",
        "ledger_entry",
    ):
        assert getattr(one, name) == getattr(other, name), name
    assert one.describe() == other.describe()
    assert checksum(one) == checksum(other)
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
    if one.bodies is not None:
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


# Read back


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_release_reads_back_exactly(kind, tmp_path):
    for grid in (GRID, dpr.Grid(-3.5, 0.1, 0.7, n_rows=3, n_cols=2)):
        release = made(grid, **kind)
        release.save(tmp_path / "a.parquet")
        assert_same(release, dpr.load(tmp_path / "a.parquet"))


def test_a_private_release_reads_back_exactly(good):
    release, path = good
    assert release.private
    assert_same(release, dpr.load(path))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_small_release_reads_back_exactly(tmp_path, data):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    size, corner = data.draw(st.sampled_from([1, 0.7, 1000])), data.draw(st.sampled_from([0, -2.1]))
    grid = dpr.Grid(corner, corner, size, *shape, crs=data.draw(st.sampled_from([None, 32632])))
    release = made(
        grid,
        data.draw(st.integers(0, 30)),
        seed=data.draw(st.integers(0, 99)),
        max_diameter=data.draw(st.sampled_from([0.5, 1, 2])),
        epsilon=data.draw(st.sampled_from([Fraction(1, 3), 2, 100])),
        oversize=data.draw(st.sampled_from(["shrink", "drop"])),
        **data.draw(st.sampled_from(KINDS)),
    )
    release.save(tmp_path / "a.parquet")
    assert_same(release, dpr.load(tmp_path / "a.parquet"))


def test_a_release_of_measured_shapes_reads_back_exactly(tmp_path):
    release = made(n=2000, epsilon=50)
    assert release.measurements.strategy.alphabet == "patterns"
    release.save(tmp_path / "a.parquet")
    assert_same(release, dpr.load(tmp_path / "a.parquet"))


def test_a_release_of_joined_sizes_reads_back_exactly(tmp_path):
    grid = dpr.Grid(0, 0, 1, n_rows=10, n_cols=10, crs="EPSG:32632")
    release = made(grid, 9000, max_diameter=1, epsilon=0.1)
    assert release.measurements.strategy.mix
    release.save(tmp_path / "city.parquet")
    assert_same(release, dpr.load(tmp_path / "city.parquet"))


def test_polygons_answer_as_before(good):
    release, path = good
    other = dpr.load(path)
    triangle = shapely.Polygon([(0.2, 0.2), (4.5, 0.4), (1.1, 3.7)])
    with pytest.warns(dpr.errors.ApproximateCountWarning):
        assert release.count(triangle) == other.count(triangle)
    with pytest.warns(dpr.errors.ApproximateCountWarning):
        assert release.interval(triangle) == other.interval(triangle)


def test_exact_values_of_the_grid_and_of_epsilon_read_back(tmp_path):
    grid = dpr.Grid(0, 0, "100ft", 3, 3, crs="EPSG:32632")
    release = made(grid, epsilon=Fraction(1, 7), max_diameter=1)
    release.save(tmp_path / "a.parquet")
    other = dpr.load(tmp_path / "a.parquet")
    assert other.budget.epsilon == Fraction(1, 7)
    assert other.grid.to_json() == grid.to_json()


def test_the_longest_epsilon_reads_back(tmp_path):
    epsilon = Fraction(10**349 + 1, 10**349)
    release = made(epsilon=epsilon)
    release.save(tmp_path / "a")
    assert dpr.load(tmp_path / "a").budget.epsilon == epsilon


def test_a_ledger_entry_travels_and_its_lack_is_said(good, tmp_path):
    release, path = good
    assert statement(path)["ledger_entry"] == "budget not recorded"
    paid = dataclasses.replace(release, ledger_entry="city 7")
    paid.save(tmp_path / "a.parquet")
    assert dpr.load(tmp_path / "a.parquet").ledger_entry == "city 7"
    assert dpr.load(path).ledger_entry is None


def test_a_study_stays_marked_as_not_private(tmp_path):
    made().save(tmp_path / "a.parquet")
    assert "NOT PRIVATE" in dpr.load(tmp_path / "a.parquet").describe()


@pytest.mark.parametrize("side", [1, 2, 3, 7])
def test_the_catalogue_reads_back_to_the_last_bit(side):
    known = catalogue(side, (side - 1) * STEPS or STEPS // 2)
    other = catalogue_from_text(catalogue_to_text(known))
    for field in dataclasses.fields(known):
        mine, theirs = getattr(known, field.name), getattr(other, field.name)
        np.testing.assert_array_equal(mine, theirs)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype


# What the file is


def test_the_same_release_gives_the_same_bytes(good, tmp_path):
    release, path = good
    release.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    dpr.load(path).save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()


def test_a_covert_file_holds_nothing_signed(tmp_path):
    made(covert=True).save(tmp_path / "a.parquet")
    names = pq.read_schema(tmp_path / "a.parquet").names
    assert names == ["kind", "sign", "row", "col", "count", "bodies"]
    assert statement(tmp_path / "a.parquet")["strategy"] is None


def test_rows_and_public_parameters_do_not_depend_on_the_data(tmp_path):
    for name, n in (("few", 0), ("many", 500)):
        made(n=n, method="paper").save(tmp_path / name)
    few, many = (pq.read_table(tmp_path / name) for name in ("few", "many"))
    assert few.drop(["count", "estimate"]).equals(many.drop(["count", "estimate"]))
    texts = [statement(tmp_path / name) for name in ("few", "many")]
    assert texts[0].pop("checksum") != texts[1].pop("checksum")
    assert texts[0] == texts[1]


def test_pandas_and_polars_read_the_file_without_help(good):
    release, path = good
    for frame in (pd.read_parquet(path), pl.read_parquet(path)):
        assert list(frame.columns)[:6] == ["kind", "sign", "row", "col", "count", "estimate"]
        counts = np.zeros(GRID.doubled_shape, int)
        counts[frame["row"].to_numpy(), frame["col"].to_numpy()] = frame["count"].to_numpy()
        np.testing.assert_array_equal(counts, release.counts)
    faces = pd.read_parquet(path).query("kind == 'face'")
    assert len(faces) == GRID.n_rows * GRID.n_cols
    held = sum(body["times"] for bodies in faces["bodies"] for body in bodies)
    assert held == len(release.to_regions())


def test_the_sql_of_the_docs_counts_a_rectangle_in_duckdb(good, monkeypatch):
    release, path = good
    page = (ROOT / "docs" / "file-format.md").read_text()
    sql = page.split("```sql\n")[1].split("```")[0]
    assert "city.parquet" in sql and "BETWEEN 2 * 8 AND 2 * 12" in sql
    for row0, row1, col0, col1 in ((0, 3, 0, 4), (1, 2, 1, 3), (2, 2, 0, 0)):
        mine = sql.replace("city.parquet", str(path))
        mine = mine.replace("row BETWEEN 2 * 8 AND 2 * 12", f"row BETWEEN 2*{row0} AND 2*{row1}")
        mine = mine.replace("col BETWEEN 2 * 8 AND 2 * 12", f"col BETWEEN 2*{col0} AND 2*{col1}")
        count, estimate = duckdb.sql(mine).fetchall()[0]
        bounds = GRID.cell_bounds(row0, row1, col0, col1)
        assert count == release.count(*bounds)
        assert estimate == pytest.approx(release.estimate(*bounds))


# Saving


def test_a_folder_or_a_missing_folder_is_refused(good, tmp_path):
    release, _ = good
    with pytest.raises(InputError, match="is a folder"):
        release.save(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        release.save(tmp_path / "none" / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(good, tmp_path, monkeypatch):
    release, _ = good
    target = tmp_path / "a.parquet"
    target.write_bytes(b"old")
    monkeypatch.setattr("dpregions.release_file.seal", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        release.save(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


KILLER = """
import os, random, signal, sys, time
import dpregions as dpr
target, *paths = sys.argv[1:]
releases = [dpr.load(path) for path in paths]
whole = {open(path, "rb").read() for path in paths}
seen = set()
for _ in range(20):
    child = os.fork()
    if not child:
        while True:
            for release in releases:
                release.save(target)
    time.sleep(random.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen.add(open(target, "rb").read())
    dpr.load(target)
assert seen <= whole, "a part of a file"
print(len(seen))
"""


def test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path):
    target, one, two = (tmp_path / name for name in ("target", "one", "two"))
    made(seed=1).save(one)
    made(seed=2).save(two)
    target.write_bytes(one.read_bytes())
    args = [sys.executable, "-c", KILLER, target, one, two]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


# Loading what is no whole release


def statement(path):
    """The statement of a file, as JSON's values."""
    return json.loads(pq.read_metadata(path).metadata[STATEMENT.encode()])


def what_json_says(fields):
    """Whether fields are JSON at all: an infinite number is not."""
    return float("inf") not in fields.values()


def forged(path, target, *, table=None, fields=None, catalogue=None, sum_anew=True, **options):
    """Write a file as save does, with other contents: seal and checksum are those of the whole."""
    release = dpr.load(path)
    table = pq.read_table(path) if table is None else table(pq.read_table(path))
    found = fields(statement(path)) if fields else statement(path)
    if sum_anew and table.num_rows == release.counts.size and isinstance(found, dict):
        columns = columns_of(release)
        if "count" in table.column_names and table["count"].type == pa.int64():
            columns = dataclasses.replace(columns, count=table["count"].to_numpy())
        if catalogue is not None:
            columns = dataclasses.replace(columns, catalogue=catalogue)
        if what_json_says(found):
            found["checksum"] = checksum_of(found, columns)
    text = found if isinstance(found, str) else json.dumps(found)
    known = pq.read_metadata(path).metadata[CATALOGUE.encode()].decode()
    metadata = {STATEMENT: text, CATALOGUE: catalogue or known} | options.pop("metadata", {})
    with pq.ParquetWriter(target, table.schema, store_schema=False, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    seal(target)
    return target


def test_a_file_made_as_save_makes_it_is_read(good, tmp_path):
    release, path = good
    assert_same(release, dpr.load(forged(path, tmp_path / "a.parquet")))


FUZZ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import dpregions as dpr
from dpregions.errors import ReleaseFileError
from dpregions.release_file import checksum
path, target, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
whole, wanted = open(path, "rb").read(), checksum(dpr.load(path))
damaged = [whole[:n] for n in range(0, len(whole), 3 * step)]
for bit in range(0, 8 * len(whole), 5 * step):
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    damaged.append(bytes(flipped))
for start in range(0, len(whole), 3 * step):
    damaged.append(whole[:start] + bytes(64) + whole[start + 64 :])
    damaged.append(whole[:start] + whole[start + 7 :])
refused = 0
for data in damaged:
    open(target, "wb").write(data)
    try:
        loaded = dpr.load(target)
    except ReleaseFileError:
        refused += 1
    else:
        assert checksum(loaded) == wanted and data == whole
print(refused, len(damaged))
"""


@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_damage_anywhere_is_refused(method, tmp_path):
    path = tmp_path / "a.parquet"
    made(method=method).save(path)
    args = [sys.executable, "-c", FUZZ, path, tmp_path / "bad.parquet", "23"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    refused, tried = map(int, done.stdout.split())
    assert refused >= tried - 5 and tried > 500  # zeros written over zeros are no damage


RESEALED = """
import hashlib, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import dpregions as dpr
from dpregions.errors import ReleaseFileError
from dpregions.release_file import SEAL, checksum
path, target = sys.argv[1:]
whole, wanted = open(path, "rb").read(), checksum(dpr.load(path))
start = whole.index(SEAL)
digest, stop = start + len(SEAL), start + len(SEAL) + 32
refused = 0
for bit in range(0, 8 * len(whole), 113):
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    flipped[digest:stop] = hashlib.sha256(flipped[:start] + flipped[stop:]).digest()
    open(target, "wb").write(flipped)
    try:
        loaded = dpr.load(target)
    except ReleaseFileError:
        refused += 1
    else:
        assert checksum(loaded) == wanted
print(refused)
"""


def test_damage_under_a_forged_seal_never_loads_as_something_else(tmp_path):
    path = tmp_path / "a.parquet"
    made().save(path)
    args = [sys.executable, "-c", RESEALED, path, tmp_path / "bad.parquet"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def change(**values):
    return lambda fields: fields | values


def nested(*keys, value):
    """Return a change of one field, deep in the statement."""

    def changed(fields):
        place = fields
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return fields

    return changed


STATEMENTS = {
    "no JSON": lambda _: "{",
    "a list": lambda _: "[]",
    "deep": lambda _: "[" * 200_000,
    "deep grid": lambda f: json.dumps(f | {"grid": 7}).replace("7", "[" * 5000 + "]" * 5000),
    "another format": change(format="dpregions grid"),
    "no version": change(format_version=None),
    "version 0": change(format_version=0),
    "true version": change(format_version=True),
    "one field less": lambda f: {k: v for k, v in f.items() if k != "noise"},
    "one field more": change(created="now"),
    "another method": change(method="magic"),
    "paper": change(method="paper"),
    "covert": change(covert=True),
    "epsilon too large": change(epsilon="2"),
    "epsilon in words": change(epsilon="one"),
    "epsilon with an exponent": change(epsilon="1e999999999"),
    "epsilon over 0": change(epsilon="1/0"),
    "epsilon of many digits": change(epsilon="9" * 100_000),
    "negative epsilon": change(epsilon="-1"),
    "a partition": change(partition="voronoi"),
    "unit": change(unit="household"),
    "neighbours": change(neighbours="none"),
    "other neighbours": change(neighbours="replace-one"),
    "sensitivity 0": change(sensitivity=0),
    "sensitivity 5": change(sensitivity=5),
    "diameter": change(max_diameter=float("inf")),
    "text for a diameter": change(max_diameter="2km"),
    "oversize": change(oversize="keep"),
    "private in words": change(private="yes"),
    "no spending": change(spending=[]),
    "odd spending": change(spending=[1]),
    "no strategy": change(strategy=None),
    "odd strategy": change(strategy={}),
    "weights": nested("strategy", "weights", value=[1, 1, 1]),
    "levels": nested("strategy", "levels", value=[]),
    "blocks": nested("strategy", "levels", 1, "block", value=10**30),
    "finest level": nested("strategy", "levels", -1, "block", value=2),
    "a grid of 10^9 cells": nested("grid", "n_rows", value=200_000_000),
    "a grid of 10^30 cells": nested("grid", "n_rows", value=10**30),
    "another grid": nested("grid", "n_rows", value=5),
    "a turned grid": lambda f: f | {"grid": f["grid"] | {"n_rows": 5, "n_cols": 4}},
    "text for a cell": nested("grid", "cell_size", value="1e999999999km"),
    "exact cell": nested("grid", "exact_cell_size", value="1e999999999"),
    "cells of 0": nested("grid", "cell_size", value=0),
    "no grid": change(grid=None),
    "CRS in words": nested("grid", "crs", value="EPSG:32632"),
    "CRS of options": nested("grid", "crs", value={"init": "epsg:32632"}),
    "degrees": nested("grid", "crs", value={"type": "GeographicCRS"}),
    "a ledger entry": change(ledger_entry=None),
    "a ledger entry of colours": change(ledger_entry="\x1b[31mred"),
    "a version of two lines": change(software_version="0.1\nPrivacy: perfect"),
    "a noise of many words": change(noise="very " * 1000),
    "spending that rings": nested("spending", 0, "what", value="\a"),
    "a CRS of colours": nested("grid", "crs", "name", value="\x1b[31mred"),
}  # fmt: skip


@pytest.mark.parametrize("what", STATEMENTS)
def test_a_statement_that_cannot_be_is_refused(what, good, tmp_path):
    _, path = good
    if what == "exact cell":  # not the float's: it is ignored, not computed
        assert dpr.load(forged(path, tmp_path / "bad", fields=STATEMENTS[what])).grid == GRID
        return
    bad = forged(path, tmp_path / "bad", fields=STATEMENTS[what])
    with pytest.raises(ReleaseFileError, match="bad"):
        dpr.load(bad)


@pytest.mark.parametrize(
    "change",
    [
        change(sensitivity=24),
        change(sensitivity=1),
        change(max_diameter=3.0),
        change(neighbours="replace-one"),
        change(spending=[{"what": "half", "epsilon": "1/2"}] * 2),
        change(epsilon="1/10" + "0" * 20, spending=[{"what": "x", "epsilon": "1/10" + "0" * 20}]),
    ],
)
def test_a_paper_release_that_cannot_be_is_refused(change, tmp_path):
    release = made(dpr.Grid(0, 0, 1, n_rows=8, n_cols=9, crs="EPSG:32632"), method="paper")
    fields = change(statement_of(release))
    text = canonical({**fields, "checksum": checksum_of(fields, columns_of(release))})
    with pytest.raises(ReleaseFileError), release_file._refusing(tmp_path):
        release_of(parse_statement(json.loads(text)), columns_of(release))


def test_shares_out_of_proportion_to_the_strategy_are_refused():
    grid = dpr.Grid(0, 0, 1, n_rows=10, n_cols=10, crs="EPSG:32632")
    release = made(grid, 9000, max_diameter=1, epsilon=0.1)
    fields = statement_of(release) | {"checksum": ""}
    release_of(parse_statement(fields), columns_of(release))
    assert len(fields["spending"]) > 2
    for place, change in ((1, Fraction(1, 1000)), (2, -Fraction(1, 1000))):
        share = fields["spending"][place]
        share["epsilon"] = str(Fraction(share["epsilon"]) + change)
    with pytest.raises(ReleaseFileError, match="not in proportion"):
        release_of(parse_statement(fields), columns_of(release))


def test_a_bound_that_no_float_is_reads_back(tmp_path):
    grid = dpr.Grid(0, 0, "10m", n_rows=20, n_cols=20, crs="EPSG:2263")  # in feet
    spans = [
        (grid.cells_spanned(f"{k}0m"), grid.cells_spanned(float(grid.length(f"{k}0m"))))
        for k in range(1, 8)
    ]
    assert any(exact != rounded for exact, rounded in spans)
    for k in range(1, 8):
        terms = {"epsilon": 1, "max_diameter": f"{k}0m", "method": "paper", "crs": grid.crs}
        release = release_with(StudyNoise(0), [shapely.Point(1, 1)], grid, user_id=None, **terms)
        release.save(tmp_path / "a")
        assert dpr.load(tmp_path / "a").sensitivity == (2 * k + 1) ** 2


def test_what_is_read_is_what_was_checked(good, tmp_path, monkeypatch):
    release, path = good
    target = tmp_path / "a.parquet"
    target.write_bytes(path.read_bytes())

    def checked(file):
        check(file)
        target.write_bytes(b"PAR1" + bytes(len(path.read_bytes()) - 8) + b"PAR1")

    check = release_file._check_seal
    monkeypatch.setattr(release_file, "_check_seal", checked)
    assert_same(dpr.load(target), release)


def test_a_newer_format_asks_for_an_upgrade(good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(format_version=2, surprise=1))
    with pytest.raises(ReleaseFileError, match=r"format version 2.*upgrade dpregions"):
        dpr.load(bad)


def test_an_altered_statement_is_refused_by_its_checksum(good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(noise="none"), sum_anew=False)
    with pytest.raises(ReleaseFileError, match="checksum"):
        dpr.load(bad)


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
    """Return a release's columns with some fields of lists altered."""
    columns = columns_of(release)
    entries = getattr(columns, name)
    fields = {k: changes.get(k, lambda v: v)(v.copy()) for k, v in entries.fields.items()}
    return dataclasses.replace(columns, **{name: entries._replace(fields=fields)})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("bodies", {"pattern": lambda v: v - 1000}),
        ("bodies", {"pattern": lambda v: v + 1000}),
        ("bodies", {"pattern": lambda v: v[::-1].copy()}),
        ("bodies", {"times": lambda v: v * 0}),
        ("bodies", {"times": lambda v: v + 1}),
        ("bodies", {"times": lambda v: v + 2**62}),
        ("measured", {"level": lambda v: v + 1}),
        ("measured", {"group": lambda v: v - 1}),
        ("measured", {"value": lambda v: v + 2**60}),
    ],
)
def test_lists_that_cannot_be_are_refused_whatever_the_checksum(name, changes, good, tmp_path):
    release, path = good
    columns = altered_entries(release, name, **changes)
    fields = statement_of(release)
    text = canonical({**fields, "checksum": checksum_of(fields, columns)})

    def altered(table):
        i, kind = table.schema.get_field_index(name), table.schema.field(name).type
        entries = getattr(columns, name)
        rows = [[] for _ in range(table.num_rows)]
        for row, *values in zip(entries.row, *entries.fields.values(), strict=True):
            rows[row].append(dict(zip(entries.fields, map(int, values), strict=True)))
        return table.set_column(i, table.schema.field(i), [pa.array(rows, kind)])

    bad = forged(path, tmp_path / "bad", table=altered, fields=lambda _: text)
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
        lambda f: {k: v for k, v in f.items() if k != "times"},
        lambda f: [],
    ],
)
def test_a_catalogue_that_cannot_be_is_refused(change, good, tmp_path):
    text = catalogue_to_text(good[0].bodies.catalogue)
    bad = forged(good[1], tmp_path / "bad", catalogue=json.dumps(change(json.loads(text))))
    with pytest.raises(ReleaseFileError, match="catalogue"):
        dpr.load(bad)


def test_metadata_beyond_all_bounds_are_refused(good, tmp_path):
    for extra in ({STATEMENT: " " * (1 << 21)}, {CATALOGUE: " " * (1 << 25)}, {"more": "x"}):
        bad = forged(good[1], tmp_path / "bad", metadata=extra)
        with pytest.raises(ReleaseFileError, match="metadata"):
            dpr.load(bad)


def test_a_footer_that_claims_to_be_huge_is_refused(good, tmp_path):
    whole = good[1].read_bytes()
    for claim in (200_000_000, 2**32 - 1, len(whole), 0):
        (tmp_path / "bad").write_bytes(whole[:-8] + claim.to_bytes(4, "little") + b"PAR1")
        with pytest.raises(ReleaseFileError, match="bad"):
            dpr.load(tmp_path / "bad")


def test_foreign_files_are_refused(tmp_path):
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"count": [1, 2]}), foreign)
    with pytest.raises(ReleaseFileError, match=r"is no release file: .*by 'dpregions release'"):
        dpr.load(foreign)
    seal(foreign)
    with pytest.raises(ReleaseFileError, match="without the metadata"):
        dpr.load(foreign)
    for data in (b"", b"PAR1", b"a,b\n1,2\n", os.urandom(5000), b"PAR1" + bytes(20) + b"PAR1"):
        foreign.write_bytes(data)
        with pytest.raises(ReleaseFileError, match="Parquet file"):
            dpr.load(foreign)


def test_a_missing_file_or_a_folder_is_refused_by_name(tmp_path):
    for path in (tmp_path, tmp_path / "none.parquet"):
        with pytest.raises(ReleaseFileError, match=f"{path.name}.*no such file"):
            dpr.load(path)


def test_a_release_without_its_parts_is_not_saved(good, tmp_path):
    with pytest.raises(InputError, match="lacks its bodies"):
        dataclasses.replace(good[0], bodies=None).save(tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


# Errors of rectangles, without the compiled kernel


@pytest.mark.parametrize("alphabet", ["sizes", "patterns"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 6)])
def test_rectangles_weigh_buckets_as_masks_do(alphabet, shape):
    from dpregions.queries import Selection

    grid = dpr.Grid(0, 0, 1, *shape)
    buckets = Buckets.of(catalogue(3, 2 * STEPS), alphabet, *shape)
    rows, cols = shape
    ranges = np.array(
        [(a, b, c, d) for a in range(rows + 1) for b in range(max(a - 1, 0), rows)
         for c in range(cols + 1) for d in range(max(c - 1, 0), cols)]).T  # fmt: skip
    which, chance = buckets.weigh_rectangles(ranges)
    whole = np.zeros((ranges.shape[1], len(buckets)))
    whole[:, which] = chance
    for i in range(ranges.shape[1]):
        signs = Selection(ranges[:, i : i + 1]).signs(0, grid)
        np.testing.assert_allclose(whole[i], buckets.weigh(signs), atol=1e-12)


def test_errors_of_rectangles_are_those_of_their_masks():
    from dpregions import footprint
    from dpregions.queries import select

    for release in (made(), made(max_diameter=4), made(n=2000, epsilon=50)):
        row0, col0 = np.divmod(np.arange(20), 5)
        bounds = GRID.cell_bounds(row0 // 2, row0, col0 // 2, col0)
        selection = select(GRID, bounds)
        noise, shape = footprint.rectangle_deviations(release.measurements, selection.ranges)
        for i in range(20):
            mask = selection.signs(i, GRID)
            wanted = footprint.deviations(release.measurements, mask)
            assert (noise[i], shape[i]) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
