"""Counting on a real Spark of this machine: the same integers as the local engine, to the last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions import EulerHistogram, Grid, Partition
from dpregions.engines import local
from dpregions.engines.choice import tally_of
from dpregions.errors import CRSError, InputError, InputTypeError, SourceError
from dpregions.intake.regions import read_outlines
from dpregions.intake.sources import spark_files
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy import Budget
from dpregions.privacy.groups import Groups
from dpregions.privacy.ledger import Ledger
from support.command_line import run

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")

GRID = Grid(0, 0, 1, 8, 9)
CELLS = Partition.voronoi(np.random.default_rng(4).uniform(0, 8, (12, 2)), shapely.box(0, 0, 8, 8))
N = 1_500


def city(ids: str = "text") -> pa.Table:
    """Return regions of users who have several, some without a user, some that are nowhere."""
    rng = np.random.default_rng(0)
    middle = rng.uniform(-1, 10, (N, 2))
    shapes = shapely.buffer(shapely.points(middle), rng.uniform(0, 2, N), quad_segs=1)
    shapes[::50] = None
    shapes[1::70] = shapely.MultiPoint([(1, 1), (2, 3)])  # which GEOS reads
    wkb = [None if shape is None else shape.wkb for shape in shapes]
    wkb[7] = b"no WKB"
    users = rng.integers(0, N // 3, N)
    values = [f"u{user}" for user in users] if ids == "text" else users.tolist()
    values[::31] = [None] * len(values[::31])
    if ids == "text":
        values[5:40:7] = [""] * len(values[5:40:7])
    return pa.table({"user_id": values, "geometry": pa.array(wkb, pa.binary())})


@pytest.fixture(scope="module")
def frames(spark):
    """Return the city as Spark has it, by its ids: in skewed parts, users across all of them."""
    made = {}
    for ids in ("text", "numbers"):
        table = city(ids)
        most, rest = (spark.createDataFrame(part) for part in (table[:1400], table[1400:]))
        made[ids] = most.coalesce(1).union(rest.repartition(4)).cache()
    return made


def exact(prepared: object, tally: object) -> np.ndarray:
    if hasattr(tally, "histogram"):
        return tally.histogram()
    if hasattr(tally, "tallies"):
        parts = zip(prepared.prepared, tally.tallies, strict=True)
        return np.concatenate([one.counts(of._finest) for of, one in parts])
    return tally.counts(prepared._finest)


@pytest.mark.parametrize(
    ("method", "grid", "ids"),
    [
        ("footprint", GRID, "text"),
        ("footprint", GRID, None),
        ("footprint", CELLS, "numbers"),
        ("paper", GRID, "numbers"),
        ("paper", GRID, None),
        ("paper", CELLS, "text"),
    ],
    ids=lambda value: getattr(value, "form", value),
)
def test_spark_and_the_local_engine_give_the_same_tally(frames, method, grid, ids):
    bound = grid.bound(2, "shrink")
    prepared = MECHANISMS[method]().prepare(grid, bound, Budget(1), "add-remove")
    user_id = None if ids is None else "user_id"
    frame = frames[ids or "text"]
    if ids == "numbers":
        frame = frame.orderBy("geometry").coalesce(1)  # another order, in one part
    found = tally_of(frame, grid, bound, prepared.tally, user_id=user_id)
    reading = read_outlines(city(ids or "text"), grid, bound, user_id=user_id)
    wanted = exact(prepared, local.count(reading, prepared.tally))
    assert wanted.sum() > 100
    assert np.array_equal(exact(prepared, found), wanted)


@pytest.mark.parametrize("large", [True, False])
def test_bytes_with_offsets_of_64_bits_are_the_same_bytes(spark, frames, large):
    """An option of Spark's that a site may have set: outlines would run into each other."""
    option = "spark.sql.execution.arrow.useLargeVarTypes"
    bound = GRID.bound(2, "shrink")
    prepared = MECHANISMS["paper"]().prepare(GRID, bound, Budget(1), "add-remove")
    before = spark.conf.get(option, "false")
    spark.conf.set(option, str(large).lower())
    try:
        found = tally_of(frames["text"], GRID, bound, prepared.tally, user_id="user_id")
    finally:
        spark.conf.set(option, before)
    reading = read_outlines(city("text"), GRID, bound, user_id="user_id")
    wanted = exact(prepared, local.count(reading, prepared.tally))
    assert np.array_equal(exact(prepared, found), wanted)


def test_a_task_that_fails_at_first_counts_once(frames):
    def fails_at_first(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        if context.attemptNumber() == 0 and context.partitionId() % 2 == 0:
            raise RuntimeError("a machine is lost")

    frame = frames["text"].mapInArrow(fails_at_first, frames["text"].schema)
    found = EulerHistogram.from_regions(frame, GRID, user_id="user_id", max_diameter=2)
    wanted = EulerHistogram.from_regions(city(), GRID, user_id="user_id", max_diameter=2)
    assert found == wanted


def test_two_columns_are_one_id(spark):
    table = city("numbers").append_column("trajectory", pa.array(np.arange(N) % 2))
    frame = spark.createDataFrame(table)
    options = {"epsilon": 20, "max_diameter": 2, "unit": "trajectory"}
    made = dpr.release(frame, GRID, **options)
    here = dpr.release(table, GRID, **options)
    assert made.unit == "trajectory"
    assert abs(made.count(0, 0, 9, 8) - here.count(0, 0, 9, 8)) < 20


def test_a_release_of_a_spark_frame_is_paid_for(frames, tmp_path):
    ledger = Ledger(tmp_path / "book")
    ledger.create("city", total=1)
    made = dpr.release(
        frames["text"], GRID, epsilon=1, max_diameter=2, ledger=ledger, dataset="city"
    )
    assert made.unit == "user" and made.private
    assert ledger.account("city").spent == 1


class TestRefused:
    def refused(self, frame, tmp_path, match, error=InputError, **options):
        ledger = Ledger(tmp_path / "book")
        ledger.create("city", total=1)
        given = {"epsilon": 1, "max_diameter": 2, "ledger": ledger, "dataset": "city"} | options
        grid = given.pop("grid", GRID)
        with pytest.raises(error, match=match) as caught:
            dpr.release(frame, grid, **given)
        assert ledger.account("city").spent == 0
        return caught.value

    def test_a_missing_column_of_ids(self, frames, tmp_path):
        self.refused(frames["text"], tmp_path, "'nobody' is no column", user_id="nobody")

    def test_floats_as_ids(self, frames, tmp_path):
        frame = frames["text"].withColumn("weight", frames["text"]["user_id"].cast("double"))
        self.refused(frame, tmp_path, "cannot be ids", InputTypeError, user_id="weight")

    def test_ids_that_are_not_a_column(self, frames, tmp_path):
        ids = np.arange(N)
        self.refused(frames["text"], tmp_path, "must name a column", InputTypeError, user_id=ids)

    def test_no_wkb(self, frames, tmp_path):
        self.refused(frames["text"].select("user_id"), tmp_path, "no WKB column", InputTypeError)

    def test_a_crs_on_one_side(self, frames, tmp_path):
        utm = Grid(0, 0, 1, 8, 9, crs=32632)
        self.refused(frames["text"], tmp_path, "carry no CRS", CRSError, grid=utm)

    def test_what_spark_says_of_a_record_is_not_passed_on(self, frames, tmp_path):
        def broken(batches):
            raise ValueError("Mrs Canary, 471")
            yield from batches

        frame = frames["text"].mapInArrow(broken, frames["text"].schema)
        error = self.refused(frame, tmp_path, r"failed \(PythonException\)", SourceError)
        assert "Canary" not in str(error) + repr(vars(error))
        assert error.__cause__ is None and error.__context__ is None


def test_ctrl_c_ends_the_counting_and_spends_nothing(spark, tmp_path):
    def slow(batches):
        import time

        time.sleep(60)
        yield from batches

    ledger = Ledger(tmp_path / "book")
    ledger.create("city", total=1)
    frame = spark.createDataFrame(city()[:10])
    slowly = frame.mapInArrow(slow, frame.schema)
    terms = {"epsilon": 1, "max_diameter": 2, "ledger": ledger, "dataset": "city"}
    start = time.monotonic()
    threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        dpr.release(slowly, GRID, **terms)
    assert time.monotonic() - start < 50
    assert ledger.account("city").spent == 0


class Lasting:
    """A session that a command does not stop, as others use it too."""

    def __init__(self, session):
        self.session = session

    def __getattr__(self, name):
        return getattr(self.session, name)

    def stop(self):
        pass


class Kept(spark_files.SparkRegions):
    """Regions whose session goes on when they are closed."""

    def __exit__(self, *_):
        pass


def test_the_command_releases_a_file_on_spark(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark_files, "session_at", lambda master: Lasting(spark))
    monkeypatch.setattr(spark_files, "SparkRegions", Kept)
    city = dpr.synthetic.regions(400)
    city.to_parquet("homes.parquet")
    terms = ["--epsilon", 20, "--max-diameter", "2km", "--engine", "spark", "--master", "local[2]"]
    area = ["--around", "9.0,48.5", "--side", "20km", "--cell", "1km"]
    done = run("release", "homes.parquet", "-o", "made.parquet", *terms, *area)
    assert done.exit_code == 0, done.output
    made = dpr.load("made.parquet")
    assert abs(made.count(*made.grid.bounds) - 400) < 20
    for more, words in {
        ("--user-id", "nobody"): "'nobody' is no column",
        ("--layer", "a"): "--layer has no use for Spark",
    }.items():
        done = run("release", "homes.parquet", "-o", "other.parquet", *terms, *area, *more)
        assert done.exit_code != 0 and words in done.stderr.replace("\n", " ")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but no more")
    done = run("release", "broken.parquet", "-o", "other.parquet", *terms, *area)
    assert done.exit_code != 0 and "damaged or not Parquet" in done.stderr


@pytest.mark.parametrize(
    ("setting", "master"), [({"PATH": "", "JAVA_HOME": ""}, "local[1]"), ({}, "nonsense://x")]
)
def test_no_java_and_an_unknown_master_are_told(setting, master):
    code = f"from dpregions.intake.sources.spark_files import session_at\nsession_at({master!r})"
    env = {**os.environ, **setting}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert f"master='{master}' gives no Spark session" in done.stderr
    assert "Java 17 or later must be on the path" in done.stderr


@pytest.mark.parametrize(("method", "ids"), [("footprint", "user_id"), ("paper", None)])
def test_groups_are_counted_on_spark_as_here(spark, method, ids):
    """A user with equal regions in two groups is in the first listed, on both engines."""
    table = city()
    ages = np.random.default_rng(1).choice(["young", "old", "unlisted"], N)
    table = pa.concat_tables([table, table.slice(0, 90)])
    table = table.append_column("age", pa.array([*ages, *np.roll(ages[:90], 1)]))
    listed = Groups("age", ("old", "young", "nobody"))
    prepared = MECHANISMS[method]().prepare(GRID, GRID.bound(2, "shrink"), Budget(1), "add-remove")

    def counted(regions):
        bound, options = GRID.bound(2, "shrink"), {"user_id": ids, "groups": listed}
        made = tally_of(regions, GRID, bound, prepared.tally, **options)
        return [exact(prepared, part) for part in made.parts]

    for found, wanted in zip(counted(spark.createDataFrame(table)), counted(table), strict=True):
        assert np.array_equal(found, wanted)
    assert counted(table)[0].sum() > 50 and not counted(table)[2].any()
