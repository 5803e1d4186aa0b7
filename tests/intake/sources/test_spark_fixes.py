"""Fixes on a real Spark of this machine become the regions that the same table becomes here."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions import EulerHistogram, Grid, regions_from_fixes
from dpregions.errors import InputError, InputTypeError, PrivacyError
from dpregions.extraction.hulls import regions_of
from dpregions.extraction.recipe import Recipe
from dpregions.intake.sources.spark_fixes import Extraction, extracted
from support.small_fixes import ORIGIN, UTM

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")

N, N_USERS = 6_000, 60
RECIPE = {"k": 30, "max_diameter": "2km", "crs": UTM}
GRID = Grid(*(ORIGIN - 10_000), 1_000, 20, 20, crs=UTM)


def fixes(ids: str = "text") -> pd.DataFrame:
    """Return fixes of users of many and of few, some of nobody and some that are nowhere."""
    rng = np.random.default_rng(2)
    user = np.minimum(rng.geometric(0.1, N), N_USERS)  # one has a tenth, the last a few
    home = rng.normal(0, 0.05, (N_USERS + 1, 2))[user]
    lon, lat = (np.array([9.0, 48.5]) + home + rng.normal(0, 0.01, (N, 2))).T
    lat[::97] = 400.0
    lon[::89] = np.nan
    named = [f"u{i}" for i in user] if ids == "text" else user.tolist()
    values = pd.Series(named, dtype="string" if ids == "text" else "Int64")
    values[::53] = pd.NA
    if ids == "text":
        values[::59] = ""
    t = pd.Timestamp("2024-05-01", tz="UTC") + pd.to_timedelta(rng.integers(0, 3_000, N), "min")
    return pd.DataFrame({"user_id": values, "t": t, "lon": lon, "lat": lat})


def on_spark(session, table: pd.DataFrame):
    """Return a table as Spark has it: in skewed parts, users across all of them."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    most, rest = (session.createDataFrame(part) for part in (arrow[:5_000], arrow[5_000:]))
    return most.coalesce(1).union(rest.repartition(4))


def in_order(frame, *by: str) -> list[tuple[object, ...]]:
    """Return what Spark made, region by region, in order of user."""
    columns = [*by, "geometry"]
    rows = sorted(tuple(row[name] for name in columns) for row in frame.collect())
    return [(*ids, shapely.from_wkb(bytes(wkb))) for *ids, wkb in rows]


@pytest.mark.parametrize("ids", ["text", "numbers"])
def test_spark_makes_the_regions_of_the_whole_table(spark, ids):
    table = fixes(ids)
    made = in_order(regions_from_fixes(on_spark(spark, table), **RECIPE), "user_id")
    wanted = regions_from_fixes(table, **RECIPE).sort_values("user_id")
    assert [user for user, _ in made] == wanted["user_id"].tolist()
    assert shapely.equals_identical([shape for _, shape in made], wanted.geometry).all()
    assert len(made) > 50


def test_trajectories_are_numbered_in_order_of_time(spark):
    table = fixes().rename(columns={"user_id": "who", "t": "at", "lon": "x", "lat": "y"})
    names = {"user_id": "who", "time": "at", "lon": "x", "lat": "y"}
    options = {**RECIPE, **names, "unit": "trajectory", "gap": "20min"}
    made = in_order(regions_from_fixes(on_spark(spark, table), **options), "user_id", "trajectory")
    wanted = regions_from_fixes(table, **options).sort_values(["user_id", "trajectory"])
    assert [row[:2] for row in made] == [*zip(wanted["user_id"], wanted["trajectory"], strict=True)]
    assert shapely.equals_identical([row[2] for row in made], wanted.geometry).all()
    assert wanted["trajectory"].max() > 2


def test_a_release_takes_them_with_their_crs_and_counts_what_it_counts_here(spark):
    regions = regions_from_fixes(on_spark(spark, fixes()), **RECIPE)
    here = regions_from_fixes(fixes(), **RECIPE)
    options = {"user_id": "user_id", "max_diameter": "2km"}
    assert EulerHistogram.from_regions(regions, GRID, **options) == EulerHistogram.from_regions(
        here, GRID, **options
    )
    made = dpr.release(regions, GRID, epsilon=20, max_diameter="2km")
    assert made.unit == "user"
    assert abs(made.count(*GRID.bounds) - len(here)) < 10


def test_regions_of_trajectories_say_so_also_from_a_file_that_spark_wrote(spark, tmp_path):
    regions = regions_from_fixes(on_spark(spark, fixes()), **RECIPE, unit="trajectory", gap="20min")
    regions.write.parquet(str(tmp_path / "trips"))
    again = spark.read.parquet(str(tmp_path / "trips"))
    terms = {"epsilon": 20, "max_diameter": "2km"}
    for frame in (regions, again):
        with pytest.raises(PrivacyError, match=r"marked as one for each trajectory"):
            dpr.release(frame, GRID, **terms)
    assert dpr.release(again, GRID, **terms, unit="trajectory").unit == "trajectory"


def test_a_task_that_fails_at_first_makes_each_region_once(spark):
    def fails_at_first(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        if context.attemptNumber() == 0 and context.partitionId() % 2 == 0:
            raise RuntimeError("a machine is lost")

    frame = on_spark(spark, fixes())
    made = regions_from_fixes(frame.mapInArrow(fails_at_first, frame.schema), **RECIPE)
    again = made.mapInArrow(fails_at_first, made.schema)
    users = [row.user_id for row in again.collect()]
    assert sorted(users) == sorted(regions_from_fixes(fixes(), **RECIPE)["user_id"])


def test_users_that_a_collation_takes_for_one_stay_two(spark):
    from pyspark.sql import functions as sql

    table = fixes()
    table["user_id"] = np.where(np.arange(N) % 2, table["user_id"], table["user_id"].str.upper())
    frame = on_spark(spark, table)
    frame = frame.withColumn("user_id", sql.collate("user_id", "UTF8_LCASE"))
    users = [row.user_id for row in regions_from_fixes(frame, **RECIPE).collect()]
    assert sorted(users) == sorted(regions_from_fixes(table, **RECIPE)["user_id"])


@pytest.mark.parametrize("least", [1, 10, 200, 10_000])
@pytest.mark.parametrize("batch", [1, 7, 500])
def test_a_worker_makes_the_same_of_batches_of_any_size(least, batch):
    table = fixes()[:900].sort_values("user_id", kind="stable")
    recipe = Recipe.of(30, "2km", UTM, "user", None)
    batches = pa.Table.from_pandas(table, preserve_index=False).to_batches(max_chunksize=batch)
    job = Extraction(partial(regions_of, recipe=recipe), least)
    made = pa.Table.from_batches([*extracted(job, iter(batches))])
    wanted = regions_from_fixes(table, **RECIPE)
    found = dict(zip(made["user_id"].to_pylist(), made["geometry"].to_pylist(), strict=True))
    assert len(found) == made.num_rows
    assert found == dict(zip(wanted["user_id"], wanted.geometry.to_wkb(), strict=True))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"user_id": "who"}, InputError, "user_id='who' is no column: there are user_id, t, lon"),
        ({"lon": "x"}, InputError, "lon='x' is no column"),
        ({"user_id": "lon"}, InputTypeError, "user_id='lon' holds double, which is no user's id"),
        ({"lat": "t"}, InputTypeError, "lat='t' holds timestamp.*, which is no latitude"),
        ({"unit": "trajectory", "gap": "1h", "time": "when"}, InputError, "time='when' is no"),
        ({"k": 0}, InputError, "k must be at least 1"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_anything_runs(spark, change, error, words):
    frame = spark.createDataFrame(pa.Table.from_pandas(fixes()[:2], preserve_index=False))
    with pytest.raises(error, match=words):
        regions_from_fixes(frame, **{**RECIPE, **change})


def test_fixes_that_are_released_as_they_are_hear_of_the_step_between(spark):
    frame = spark.createDataFrame(pa.Table.from_pandas(fixes()[:2], preserve_index=False))
    with pytest.raises(InputTypeError, match=r"regions_from_fixes"):
        dpr.release(frame, GRID, epsilon=1, max_diameter="2km")
