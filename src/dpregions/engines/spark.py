"""Counting on Spark: one pass of Python over the rows, the rest is Spark SQL's.

Workers turn rows into contributions (`worker`); of each user's, Spark keeps the one with the
smallest key, and counts what is left. Only sparse counts reach this process, where noise is drawn
once. Every step is a function of its rows, so that a task that is retried, or run twice at once,
counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpregions.engines.worker import Job, contributed, summed
from dpregions.errors import InputTypeError
from dpregions.intake.sources.spark_workers import Workers

if TYPE_CHECKING:
    from dpregions.intake.elsewhere import Elsewhere
    from dpregions.mechanisms.base import Tally

T = TypeVar("T", bound="Tally")


def count(reading: Elsewhere, tally: Callable[[], T]) -> T:
    """Return the tally of all regions of a Spark DataFrame, one for each user.

    Parameters
    ----------
    reading : Elsewhere
        As `intake.regions.read_outlines` gives it for a DataFrame.
    tally : callable
        Makes an empty tally.
    """
    whole: Any = tally()
    if not hasattr(whole, "add_marks") and not hasattr(whole, "add_entries"):
        raise InputTypeError(
            f"{type(whole).__name__} cannot be counted on Spark: it has neither marks nor entries, "
            f"see docs/how-to/engines.md"
        )
    frame, job = reading.frame, Job(replace(reading, frame=None), whole)
    workers = Workers(frame.sparkSession)
    rows = frame.select(*[frame[f"`{name}`"] for name in reading.columns])
    kinds = [*reading.kinds]
    if hasattr(whole, "add_marks"):
        found = workers.collected(lambda: _counted_marks(workers, rows, job, kinds), "counting")
        marks = [found.column(i).to_numpy() for i in range(found.num_columns - 1)]
        whole.add_marks(np.stack(marks, axis=1), found.column(found.num_columns - 1).to_numpy())
    else:
        found = workers.collected(lambda: _summed_entries(workers, rows, job, kinds), "counting")
        whole.add_entries(*(column.to_numpy() for column in found.columns))
    return whole


def _counted_marks(workers: Workers, rows: Any, job: Job, kinds: list[str]) -> Any:
    """Return marks and how many regions have them, as an Arrow table."""
    from pyspark.sql import functions as sql

    n = job.tally.n_marks
    marks = [f"c{len(kinds) + 1 + i}" for i in range(n)]
    found = _contributions(workers, rows, job, kinds, ["long"] * n)
    if kinds:
        best = sql.min_by(sql.struct(*marks), sql.col(f"c{len(kinds)}")).alias("best")
        found = found.groupBy(*[f"c{i}" for i in range(len(kinds))]).agg(best).select("best.*")
    return found.groupBy(*marks).agg(sql.count("*").alias("n")).toArrow()


def _summed_entries(workers: Workers, rows: Any, job: Job, kinds: list[str]) -> Any:
    """Return entries of a tally and their values, as an Arrow table."""
    from pyspark.sql import functions as sql

    outline = f"c{len(kinds) + 1}"
    found = _contributions(workers, rows, job, kinds, ["binary"])
    if kinds:
        best = sql.min_by(outline, f"c{len(kinds)}").alias(outline)
        found = found.groupBy(*[f"c{i}" for i in range(len(kinds))]).agg(best)
    parts = workers.map(found.select(outline), summed, job, "index long, n long")
    return parts.groupBy("index").agg(sql.sum("n").alias("n")).toArrow()


def _contributions(
    workers: Workers, rows: Any, job: Job, kinds: list[str], marks: list[str]
) -> Any:
    """Return the contributions of rows: ids, key and marks, named c0, c1 and so on."""
    types = [*kinds, "binary", *marks]
    schema = ", ".join(f"c{i} {kind}" for i, kind in enumerate(types))
    return workers.map(rows, contributed, job, schema)
