"""Workers of a real Spark of this machine that lack something: told before anything is read."""

from __future__ import annotations

import sys

import pytest
import shapely

import dpregions as dpr
from dpregions import Grid
from dpregions.errors import InputError, SourceError
from dpregions.intake.sources import spark_workers
from dpregions.privacy.ledger import Ledger

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")


@pytest.fixture
def fresh(spark, monkeypatch):
    """Return the context of a Spark whose workers nobody looked at; afterwards they are as ever."""
    context = spark.sparkContext
    environment, python = dict(context.environment), context.pythonExec
    monkeypatch.setattr(spark_workers, "_LOOKED_AT_ALREADY", set())
    yield context
    context.environment, context.pythonExec = environment, python


@pytest.fixture
def refused(spark, tmp_path):
    """Return how a release is refused, which costs nothing."""
    ledger = Ledger(tmp_path / "book")
    ledger.create("city", total=1)
    wkb = bytearray(shapely.box(1, 1, 2, 2).wkb)
    frame = spark.createDataFrame([(1, wkb)], "user_id long, geometry binary")

    def refused(words: str, error: type[Exception] = InputError) -> None:
        terms = {"epsilon": 1, "max_diameter": 2, "ledger": ledger, "dataset": "city"}
        with pytest.raises(error, match=words):
            dpr.release(frame, Grid(0, 0, 1, 4, 4), **terms)
        assert ledger.account("city").spent == 0

    return refused


def test_another_version_of_a_package(fresh, refused, monkeypatch):
    there = "Python 3.*, dpregions .*"
    monkeypatch.setattr(spark_workers, "versions", lambda: ("Python 2.7", "dpregions 9"))
    refused(f"workers have {there}, but this process has Python 2.7, dpregions 9: install the same")


def test_this_package_is_missing(fresh, refused, tmp_path):
    (tmp_path / "dpregions").mkdir()
    (tmp_path / "dpregions" / "__init__.py").write_text("raise ImportError")
    fresh.environment = {**fresh.environment, "PYTHONPATH": str(tmp_path)}
    refused("workers have .*dpregions missing, .*but this process has .*: install the same there")


def test_no_folder_for_compiled_kernels(fresh, refused):
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    fresh.environment = {**fresh.environment, **nowhere}
    refused(r"no folder to keep compiled kernels in.*spark\.executorEnv\.NUMBA_CACHE_DIR")


def test_a_python_without_packages(fresh, spark, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    # Not by way of a release: on this machine workers run the Python of this process.
    fresh.pythonExec = str(bare)
    with pytest.raises(InputError, match=r"could not be started \(\w+\), and nothing was read"):
        spark_workers.found_on_workers(spark, 1)


def test_a_worker_that_joins_later_with_other_packages(fresh, spark, refused, monkeypatch):
    spark_workers.Workers(spark)
    monkeypatch.setattr(spark_workers, "versions", lambda: ("Python 2.7",))
    refused(r"counting on Spark failed \(PythonException\), and nothing", SourceError)
