"""Release files: read back exactly, readable by others, and refused unless whole."""

from __future__ import annotations

import dataclasses
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
from dpregions.errors import InputError, ReleaseFileError
from dpregions.geometry.lattice import STEPS
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.catalogue_text import catalogue_from_text, catalogue_to_text
from dpregions.mechanisms.footprint.levels import MIX
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases import file as release_file
from dpregions.releases.file import STATEMENT
from dpregions.releases.make import release_with
from dpregions.sealed_files import seal
from support.full_disks import file_size_limit
from support.release_files import CATALOGUE, GRID, assert_same, forged, made, statement

ROOT = Path(__file__).parents[2]


KINDS = [
    {"method": method, "covert": covert, "neighbours": neighbours}
    for method in ("footprint", "paper")
    for covert in (False, True)
    for neighbours in ("add-remove", "replace-one")
]


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
    assert release.outcome.strategy.alphabet == "patterns"
    release.save(tmp_path / "a.parquet")
    assert_same(release, dpr.load(tmp_path / "a.parquet"))


def test_a_release_of_joined_sizes_reads_back_exactly(tmp_path):
    grid = dpr.Grid(0, 0, 1, n_rows=10, n_cols=10, crs="EPSG:32632")
    release = made(grid, 9000, max_diameter=1, epsilon=0.1)
    assert MIX in release.outcome.strategy.weights
    release.save(tmp_path / "city.parquet")
    assert_same(release, dpr.load(tmp_path / "city.parquet"))


def test_polygons_answer_as_before(good):
    release, path = good
    other = dpr.load(path)
    triangle = shapely.Polygon([(0.2, 0.2), (4.5, 0.4), (1.1, 3.7)])
    assert release.count(triangle) == other.count(triangle)
    assert release.interval(triangle) == other.interval(triangle)
    with pytest.warns(dpr.errors.ApproximateCountWarning):
        by_cells = release.count(triangle, within="cells")
    with pytest.warns(dpr.errors.ApproximateCountWarning):
        assert other.count(triangle, within="cells") == by_cells


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
    bound = (side - 1) * STEPS or STEPS // 2
    known = catalogue(side, bound)
    other = catalogue_from_text(catalogue_to_text(known), bound)
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
    assert statement(tmp_path / "a.parquet")["mechanism"] == {}


def test_rows_and_public_parameters_do_not_depend_on_the_data(tmp_path):
    for name, n in (("few", 0), ("many", 500)):
        made(n=n, method="paper").save(tmp_path / name)
    few, many = (pq.read_table(tmp_path / name) for name in ("few", "many"))
    assert few.drop(["count", "estimate"]).equals(many.drop(["count", "estimate"]))
    texts = [statement(tmp_path / name) for name in ("few", "many")]
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


def test_a_failed_save_leaves_the_old_file(good, tmp_path):
    release, _ = good
    target = tmp_path / "a.parquet"
    target.write_bytes(b"old")
    with file_size_limit(good[1].stat().st_size - 1), pytest.raises(OSError, match="too large"):
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


def test_a_file_made_as_save_makes_it_is_read(good, tmp_path):
    release, path = good
    assert_same(release, dpr.load(forged(path, tmp_path / "a.parquet")))


FUZZ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import dpregions as dpr
from dpregions.errors import ReleaseFileError
path, target, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
whole = open(path, "rb").read()
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
        dpr.load(target)
    except ReleaseFileError:
        refused += 1
    else:
        assert data == whole
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
from dpregions.sealed_files import SEAL
path, target = sys.argv[1:]
whole = open(path, "rb").read()
start = whole.index(SEAL)
digest, stop = start + len(SEAL), start + len(SEAL) + 32
refused = 0
for bit in range(0, 8 * len(whole), 251):
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    flipped[digest:stop] = hashlib.sha256(flipped[:start] + flipped[stop:]).digest()
    open(target, "wb").write(flipped)
    try:
        loaded = dpr.load(target)
    except ReleaseFileError:
        refused += 1
    else:  # a noisy count or a word of it is another: that is a forgery, and no damage
        assert loaded.describe() and (loaded.counts >= 0).all()
        loaded.interval(0, 0, 2, 2)
print(refused)
"""


def test_damage_under_a_forged_seal_is_refused_or_loads_as_a_release(tmp_path):
    path = tmp_path / "a.parquet"
    made().save(path)
    args = [sys.executable, "-c", RESEALED, path, tmp_path / "bad.parquet"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_a_bound_that_no_float_is_reads_back(tmp_path):
    grid = dpr.Grid(0, 0, "10m", n_rows=20, n_cols=20, crs="EPSG:2263")  # in feet
    spans = [
        (grid.cells_spanned(f"{k}0m"), grid.cells_spanned(float(grid.length(f"{k}0m"))))
        for k in range(1, 8)
    ]
    assert all(exact == rounded for exact, rounded in spans)
    for k in range(1, 8):
        terms = {"epsilon": 1, "max_diameter": f"{k}0m", "method": "paper", "crs": grid.crs}
        release = release_with(StudyNoise(0), [shapely.Point(1, 1)], grid, user_id=None, **terms)
        release.save(tmp_path / "a")
        assert dpr.load(tmp_path / "a").sensitivity == (2 * k + 1) ** 2
    # A fraction that the tolerance of k takes one way and the float next to it the other.
    grid = dpr.Grid(0, 0, 1000, n_rows=20, n_cols=20, crs="EPSG:32632")
    terms = {"epsilon": 1, "max_diameter": "3000.000000003000000001 m", "method": "paper"}
    release = release_with(StudyNoise(0), [], grid, user_id=None, crs=grid.crs, **terms)
    release.save(tmp_path / "a")
    assert dpr.load(tmp_path / "a").sensitivity == release.sensitivity == 81


def test_what_is_read_is_what_was_checked(good, tmp_path, monkeypatch):
    release, path = good
    target = tmp_path / "a.parquet"
    target.write_bytes(path.read_bytes())

    # Another process may write at the very moment between the check and the reading.
    def checked(file, limit):
        start = check(file, limit)
        target.write_bytes(b"PAR1" + bytes(len(path.read_bytes()) - 8) + b"PAR1")
        return start

    check = release_file.check_seal
    monkeypatch.setattr(release_file, "check_seal", checked)
    assert_same(dpr.load(target), release)


def test_metadata_beyond_all_bounds_are_refused(good, tmp_path):
    for extra in ({STATEMENT: " " * (1 << 21)}, {CATALOGUE: " " * (1 + (1 << 24))}, {"more": "x"}):
        bad = forged(good[1], tmp_path / "bad", metadata=extra)
        with pytest.raises(ReleaseFileError, match=r"metadata|statement is longer"):
            dpr.load(bad)


@pytest.mark.parametrize("key", [f"{STATEMENT}_{STATEMENT}", "catalogue", f"{STATEMENT}_more"])
def test_no_other_metadata_stand_in_for_those_of_a_release(key, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", metadata={key: "{}"})
    with pytest.raises(ReleaseFileError, match="metadata that a release has not"):
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
    for path, why in ((tmp_path, "this is a folder"), (tmp_path / "none", "there is no such file")):
        with pytest.raises(ReleaseFileError, match=f"{path.name}: {why}"):
            dpr.load(path)


def test_a_release_of_an_unknown_mechanism_is_not_saved(good, tmp_path):
    with pytest.raises(InputError, match=r"'magic' is unknown: .*enter a mechanism"):
        dataclasses.replace(good[0], method="magic").save(tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_statement_and_an_outcome_that_do_not_belong_together_make_no_release(good):
    for wrong in ({"covert": True}, {"grid": dpr.Grid(0, 0, 1, 2, 2)}):
        with pytest.raises(InputError, match="not of this statement"):
            dataclasses.replace(good[0], **wrong)


@pytest.mark.parametrize("method", ["paper", "footprint"])
@pytest.mark.parametrize(
    "grid",
    [
        dpr.Grid(0, 0, 20 / 30, n_rows=6, n_cols=6, crs="EPSG:32632"),
        dpr.Grid.from_bounds(0, 0, 4, 4, n_rows=6, n_cols=6, crs="EPSG:32632"),
        dpr.Grid(0, 0, "2/3 m", n_rows=6, n_cols=6, crs="EPSG:32632"),
    ],
)
@pytest.mark.parametrize("max_diameter", [2, "6/3 m"])
def test_a_release_on_cells_of_two_thirds_reads_back(method, grid, max_diameter, tmp_path):
    terms = {"epsilon": 1, "user_id": None, "crs": grid.crs, "method": method}
    regions = [shapely.box(i, i, i + 1, i + 1.5) for i in range(4)]
    release = release_with(StudyNoise(0), regions, grid, max_diameter=max_diameter, **terms)
    assert release.sensitivity == (49 if method == "paper" else 1)
    release.save(tmp_path / "a")
    loaded = dpr.load(tmp_path / "a")
    assert_same(loaded, release)
    assert loaded.grid.in_cells(2) == 3
    assert loaded.grid.cells_spanned(loaded.max_diameter) == 3
