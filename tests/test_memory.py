"""Work that a machine does not hold is refused before it begins, and before it is paid for."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import dpregions as dpr
from dpregions import memory
from dpregions.errors import GridError, InputError, PrivacyError, ReleaseFileError
from dpregions.geometry.grid import COUNT
from dpregions.mechanisms.footprint import bodies
from dpregions.mechanisms.footprint.buckets import n_buckets_of_sizes
from dpregions.mechanisms.footprint.choice import n_affordable
from dpregions.memory import LOADED, LOADED_ENTRY
from support.release_files import GRID, assert_same, forged, made

# What a process may use


def test_the_least_limit_of_a_group_and_those_above_it_counts(tmp_path):
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text("1000\n")
    (tmp_path / "memory.max").write_text("2000\n")
    assert memory._limits(tmp_path, "/a/b", "memory.max") == [1000, 2000]
    # Inside a container the path is that of the host, and only the root is there.
    assert memory._limits(tmp_path, "/x/y", "memory.max") == [2000]
    assert memory._limits(tmp_path / "none", "/", "memory.max") == []


def test_a_limit_of_the_shell_counts():
    script = (
        "import resource; from dpregions.memory import memory_bytes; whole = memory_bytes();"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30));"
        "print(whole > 1 << 30, memory_bytes() == 1 << 30)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_machine_that_tells_nothing_refuses_nothing(monkeypatch):
    small_machine(monkeypatch, math.inf)
    memory.refuse_beyond(1e30, "anything")


def test_there_are_as_many_workers_as_cores_that_a_process_may_use():
    assert memory.n_workers() == memory.n_cores() >= 1
    for system, cores in (
        ({"sched_getaffinity": lambda _: {0, 3, 5}, "cpu_count": lambda: 8}, 3),
        ({"cpu_count": lambda: 5}, 5),
        ({"cpu_count": lambda: None}, 1),
    ):
        assert memory.n_cores(SimpleNamespace(**system)) == cores


def test_workers_hold_a_quarter_of_memory_at_most_and_one_always_works(monkeypatch):
    small_machine(monkeypatch, 8000)
    found = [memory.n_workers(each, cores=8) for each in (1, 250, 600, 2000, 9000)]
    assert found == [8, 8, 3, 1, 1]


# Before the debit


def small_machine(monkeypatch, n_bytes):
    """Stand for a machine of so much memory: every guard asks it, and no caller tells it."""
    monkeypatch.setattr(memory, "memory_bytes", lambda: float(n_bytes))


@pytest.mark.parametrize("method", ["paper", "footprint"])
def test_a_release_that_memory_does_not_hold_costs_nothing(method, ledger, monkeypatch):
    ledger.create("city", 10, unit="record")
    terms = {"method": method, "private": True, "ledger": ledger, "dataset": "city"}
    made(**terms)
    spent = ledger.account("city").spent
    small_machine(monkeypatch, 80 * GRID.n_components)  # enough for the counts alone
    with pytest.raises((GridError, PrivacyError), match=r"takes about .* GiB of memory: use larg"):
        made(**terms)
    assert ledger.account("city").spent == spent


def test_the_paper_s_method_needs_what_was_measured_of_it(monkeypatch):
    small_machine(monkeypatch, memory.PAPER * GRID.n_components)
    made(method="paper")
    small_machine(monkeypatch, memory.PAPER * GRID.n_components - 1)
    with pytest.raises(GridError, match="paper"):
        made(method="paper")


def test_footprints_need_room_for_every_alphabet_they_may_choose(monkeypatch):
    # Whatever is chosen, after the debit it could be shapes, which have more buckets than sizes.
    known = made(epsilon=0.01).outcome.bodies.catalogue
    most = n_affordable(known, *GRID.shape)
    assert most > n_buckets_of_sizes(known.side, *GRID.shape)
    needed = memory.COMPONENT * GRID.n_components + memory.BUCKET * most
    small_machine(monkeypatch, needed)
    made(epsilon=0.01)
    small_machine(monkeypatch, needed - 1)
    with pytest.raises(PrivacyError, match=f"{most:,} buckets"):
        made(epsilon=0.01)


def test_a_grid_needs_room_for_its_counts(monkeypatch):
    small_machine(monkeypatch, COUNT * GRID.n_components - 1)
    with pytest.raises(GridError, match=r"counting on a grid of 4 x 5 cells \(63 components\)"):
        dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)


# Release files


@pytest.mark.parametrize("method", ["paper", "footprint"])
def test_a_release_too_large_to_read_is_not_called_damaged(method, tmp_path, monkeypatch):
    release = made(method=method)
    release.save(tmp_path / "a")
    small_machine(monkeypatch, memory.LOADED * GRID.n_components - 1)
    with pytest.raises(ReleaseFileError, match=r"a: reading .* read it on a larger one$"):
        dpr.load(tmp_path / "a")


def test_a_release_of_too_many_buckets_to_read_is_not_called_damaged(tmp_path, monkeypatch):
    release, path = made(), tmp_path / "city.parquet"
    release.save(path)
    small_machine(monkeypatch, 1 << 17)
    dpr.load(path)
    lists = release.outcome.columns().lists.values()
    n_entries = sum(len(entries.row) + GRID.n_components for entries in lists)  # or an empty list
    small_machine(monkeypatch, LOADED * GRID.n_components + LOADED_ENTRY * n_entries)
    with pytest.raises(ReleaseFileError, match=r"buckets takes .* read it on a larger one$"):
        dpr.load(path)


def crowded(times):
    """A covert release of one body, so many times."""
    release = made(covert=True)
    tallied = release.outcome.bodies.tallied()
    one = dataclasses.replace(
        tallied,
        **{name: getattr(tallied, name)[:1] for name in ("pattern", "witness", "row", "col")},
        times=np.array([times]),
    )
    counts = one.counts_on(*GRID.shape)
    outcome = dataclasses.replace(release.outcome, bodies=one, counts=counts)
    return dataclasses.replace(release, outcome=outcome)


def test_a_small_file_of_very_many_bodies_is_asked_for_no_polygons(tmp_path):
    crowded(10**15).save(tmp_path / "a")
    loaded = dpr.load(tmp_path / "a")
    assert loaded.count(*GRID.bounds) == 10**15
    assert loaded.count(*GRID.bounds, within="shape") == 10**15  # one polygon, so many times
    with pytest.raises(InputError, match=r"1,000,000,000,000,000 synthetic regions takes about"):
        loaded.to_regions()


def test_polygons_made_in_batches_are_those_made_at_once(monkeypatch):
    release = made(n=200)
    whole = release.to_regions()
    # `to_regions` has no option for it, and 30,000 bodies take long to make.
    monkeypatch.setattr(bodies, "_BATCH", 7)
    assert release.to_regions().equals(whole)
    assert len(crowded(50).to_regions()) == 50
    assert len(crowded(0).to_regions()) == 0


WATCHED = """
import json, sys
import dpregions as dpr
from dpregions.errors import ReleaseFileError
def resident(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) * 1024
paths = json.load(sys.stdin)
dpr.load(paths.pop(0))
grown = []
for path in paths:
    open("/proc/self/clear_refs", "w").write("5")
    before = resident("VmRSS")
    try:
        dpr.load(path)
        found = "loaded"
    except ReleaseFileError as error:
        found = str(error)
    grown.append((resident("VmHWM") - before, found))
print(json.dumps(grown))
"""


def peaks(good, paths):
    """What loading each file adds to the memory of a process, and what came of it."""
    given = json.dumps([str(good), *map(str, paths)])
    args = [sys.executable, "-c", WATCHED]
    done = subprocess.run(args, input=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def one_list(name, n):
    """Return a change of a table: n entries of zeros in one list, which pack to next to nothing."""

    def changed(table):
        kind = table.schema.field(name).type
        fields = list(kind.value_type)
        zeros = [pa.array(np.zeros(n, field.type.to_pandas_dtype())) for field in fields]
        offsets = pa.array(np.repeat([0, n], [1, table.num_rows]).astype(np.int32))
        flat = pa.StructArray.from_arrays(zeros, fields=fields)
        lists = pa.ListArray.from_arrays(offsets, flat, type=kind)
        return table.set_column(table.schema.get_field_index(name), table.schema.field(name), lists)

    return changed


def grid_of(n_rows, n_cols):
    return lambda fields: fields | {"grid": fields["grid"] | {"n_rows": n_rows, "n_cols": n_cols}}


def longer(n):
    """Return a change of a table: its first row n times over, as of a grid of n x 1 cells."""
    return lambda table: table.take(pa.array(np.zeros(2 * n - 1, np.int64)))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_small_forged_files_ask_for_little_memory(good, tmp_path):
    path = good[1]
    packed = {"compression": "zstd"}
    files = [
        forged(path, tmp_path / "bodies", table=one_list("bodies", 3_000_000), **packed),
        forged(path, tmp_path / "measured", table=one_list("measured", 3_000_000), **packed),
        forged(path, tmp_path / "rows", table=longer(1_500_000), fields=grid_of(1_500_000, 1),
               use_dictionary=True, **packed),
        *(
            forged(path, tmp_path / f"grid {i}", fields=grid_of(*shape))
            for i, shape in enumerate([(10**6, 10**6), (10_000, 10_000), (32, 1), (63, 1), (1, 32)])
        ),
    ]  # fmt: skip
    assert all(file.stat().st_size < 500_000 for file in files)
    for file, (grown, found) in zip(files, peaks(path, files), strict=True):
        assert "not a whole release" in found, (file.name, found)
        assert grown < 50 * file.stat().st_size + 20_000_000, (file.name, grown, found)


@pytest.mark.parametrize(
    "options",
    [
        {"data_page_version": "2.0"},
        {"use_dictionary": False, "column_encoding": {"kind": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "column_encoding": {"count": "DELTA_BINARY_PACKED"}},
    ],
)
def test_pages_that_unpack_in_other_ways_are_refused(options, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", **options)
    with pytest.raises(ReleaseFileError, match="pages that Arrow does not write"):
        dpr.load(bad)


@pytest.mark.parametrize("n", [40, 400])
def test_an_honest_release_of_zeros_is_read(n, tmp_path):
    grid = dpr.Grid(0, 0, 1, n_rows=20 * n, n_cols=64)
    release = made(grid, 0, method="paper", covert=True, epsilon=10**6)
    assert not release.counts.any()
    release.save(tmp_path / "a")
    assert grid.n_components < 64 * (tmp_path / "a").stat().st_size / 3
    loaded = dpr.load(tmp_path / "a")
    np.testing.assert_array_equal(loaded.counts, release.counts)


def test_a_release_over_several_groups_of_rows_reads_back(tmp_path):
    grid = dpr.Grid(0, 0, 1, n_rows=600, n_cols=600)
    release = made(grid, 100, method="paper")
    release.save(tmp_path / "a")
    loaded = dpr.load(tmp_path / "a")
    np.testing.assert_array_equal(loaded.counts, release.counts)
    np.testing.assert_array_equal(loaded.signed, release.signed)


def test_a_footprint_release_reads_back_where_memory_is_just_enough(tmp_path, monkeypatch):
    release = made()
    release.save(tmp_path / "a")
    small_machine(monkeypatch, 1 << 20)
    assert_same(dpr.load(tmp_path / "a"), release)
