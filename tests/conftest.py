"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: default, ci (repeatable) or thorough.

And what several test files share: a database server, a Spark, an empty ledger, a release with its
file, and patches of the world outside or of what no caller can pass through a command.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from dpregions.privacy.ledger import Ledger
    from dpregions.releases.published import Release

# Compiled code makes the first example slow and the others fast: no deadline an example.
_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
_USUAL = "ci" if os.environ.get("CI") else "default"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _USUAL))


@pytest.fixture(scope="session")
def postgis() -> Iterator[str]:
    """The URL of a PostgreSQL server with PostGIS, started for the tests and stopped after."""
    import psycopg

    from support import postgis_server

    binaries = postgis_server.binaries()
    if binaries is None:
        pytest.skip(f"no PostgreSQL with PostGIS: {postgis_server.HOW_TO_GET_IT}")
    with postgis_server.running(binaries, password="hunter2-secret") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION postgis")
        yield url


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real Spark of two threads, which tries a task three times and reads 200 rows at once."""
    pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    from dpregions.intake.sources import spark_files

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        made = spark_files.session_at("local[2,3]")
    made.conf.set("spark.sql.shuffle.partitions", "3")
    made.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger whose file is not there yet."""
    from dpregions.privacy.ledger import Ledger

    return Ledger(tmp_path / "budget.ledger")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Path]:
    """A private release by footprints, and its file."""
    from support.release_files import made

    path = tmp_path_factory.mktemp("good") / "good.parquet"
    release = made(private=True)
    release.save(path)
    return release, path


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network: libraries would reach for it without telling."""

    def asked(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", asked)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full when a file is to take its name, which no test can bring about."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger in use is given up on at once: a person waits a minute, and has no option for it."""
    from dpregions.privacy import ledger_file

    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)


@pytest.fixture
def few_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rehearsals, for tests that do not look at the figures: `plan` has no option for it."""
    from dpregions.planning import rehearsal

    monkeypatch.setattr(rehearsal, "REPETITIONS", 3)
