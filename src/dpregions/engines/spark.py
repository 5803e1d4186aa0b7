"""Counting on Spark: one pass of Python over the rows, the rest is Spark SQL's.

Workers turn rows into contributions (`worker`); of each user's, Spark keeps the one with the
smallest key, and counts what is left. Only sparse counts reach this process, where noise is drawn
once. Every step is a function of its rows, so that a task that is retried, or run twice at once,
counts once. Spark's own messages, which may quote a record, are never passed on.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpregions._version import __version__
from dpregions.engines.worker import Job, contributed, summed
from dpregions.errors import DPRegionsError, InputError, InputTypeError, SourceError

if TYPE_CHECKING:
    from dpregions.intake.elsewhere import Elsewhere
    from dpregions.mechanisms.base import Tally

T = TypeVar("T", bound="Tally")
Made = TypeVar("Made")

PACKAGES = ("numpy", "pyarrow", "pyproj", "shapely", "numba")
"""Beside this one, packages that workers need in the versions that this process has."""
_LOOKED_AT = 16
"""Tasks in which workers are looked at, at most."""
_LOOKED_AT_ALREADY: set[str] = set()
"""Applications of Spark whose workers were looked at."""


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
    use_own_python(frame.sparkSession)
    check_workers(frame.sparkSession)
    rows = frame.select(*[frame[f"`{name}`"] for name in reading.columns])
    kinds = [*reading.kinds]
    if hasattr(whole, "add_marks"):
        found = _collected(lambda: _counted_marks(rows, job, kinds))
        marks = [found.column(i).to_numpy() for i in range(found.num_columns - 1)]
        whole.add_marks(np.stack(marks, axis=1), found.column(found.num_columns - 1).to_numpy())
    else:
        found = _collected(lambda: _summed_entries(rows, job, kinds))
        whole.add_entries(*(column.to_numpy() for column in found.columns))
    return whole


def _counted_marks(rows: Any, job: Job, kinds: list[str]) -> Any:
    """Return marks and how many regions have them, as an Arrow table."""
    from pyspark.sql import functions as sql

    n = job.tally.n_marks
    marks = [f"c{len(kinds) + 1 + i}" for i in range(n)]
    found = _contributions(rows, job, kinds, ["long"] * n)
    if kinds:
        best = sql.min_by(sql.struct(*marks), sql.col(f"c{len(kinds)}")).alias("best")
        found = found.groupBy(*[f"c{i}" for i in range(len(kinds))]).agg(best).select("best.*")
    return found.groupBy(*marks).agg(sql.count("*").alias("n")).toArrow()


def _summed_entries(rows: Any, job: Job, kinds: list[str]) -> Any:
    """Return entries of a tally and their values, as an Arrow table."""
    from pyspark.sql import functions as sql

    outline = f"c{len(kinds) + 1}"
    found = _contributions(rows, job, kinds, ["binary"])
    if kinds:
        best = sql.min_by(outline, f"c{len(kinds)}").alias(outline)
        found = found.groupBy(*[f"c{i}" for i in range(len(kinds))]).agg(best)
    parts = found.select(outline).mapInArrow(_shipped("summed", job), "index long, n long")
    return parts.groupBy("index").agg(sql.sum("n").alias("n")).toArrow()


def _contributions(rows: Any, job: Job, kinds: list[str], marks: list[str]) -> Any:
    """Return the contributions of rows: ids, key and marks, named c0, c1 and so on."""
    types = [*kinds, "binary", *marks]
    schema = ", ".join(f"c{i} {kind}" for i, kind in enumerate(types))
    return rows.mapInArrow(_shipped("contributed", job), schema)


def _shipped(work: str, job: Job) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for workers that holds its job as bytes: Spark ships them once a worker."""
    data = pickle.dumps(job)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle

        from dpregions.engines import worker

        return getattr(worker, work)(pickle.loads(data), batches)

    return run


assert (contributed.__name__, summed.__name__) == ("contributed", "summed")  # names that are sent


def _collected(call: Callable[[], Made]) -> Made:
    """Return what a job on Spark gives; where it fails, say so without its words."""
    try:
        return call()
    except DPRegionsError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise SourceError(
        f"counting on Spark failed ({kind}), and nothing was released. What it said is not shown, "
        f"as it may quote a record: see Spark's own logs"
    )


def use_own_python(session: Any) -> None:
    """Let workers on this machine run this very Python, where Spark runs here alone."""
    context = getattr(session, "_sc", None)  # a remote session has none
    if context is not None and context.master.startswith("local"):
        context.pythonExec = sys.executable


def check_workers(session: Any) -> None:
    """Refuse workers that lack a package, or have another version of one, with a clear message."""
    context = getattr(session, "_sc", None)
    n, name = 4, None
    if context is not None:
        n, name = min(context.defaultParallelism, _LOOKED_AT), context.applicationId
    if name in _LOOKED_AT_ALREADY:
        return
    names = PACKAGES

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import sys
        from importlib.metadata import PackageNotFoundError, version

        import pyarrow

        def there(name: str) -> str:
            try:
                return version(name)
            except PackageNotFoundError:
                return "missing"

        try:
            from dpregions._version import __version__ as own
        except ImportError:
            own = "missing"
        found = [f"Python {sys.version_info[0]}.{sys.version_info[1]}", f"dpregions {own}"]
        found += [f"{name} {there(name)}" for name in names]
        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([", ".join(found)])], ["found"])

    asked = session.range(0, n, 1, n).mapInArrow(look, "found string").distinct()
    found = {row.found for row in _started(asked.collect)}
    ours = ", ".join(_versions_here())
    other = sorted(found - {ours})
    if other:
        raise InputError(
            f"Spark's workers have {other[0]}, but this process has {ours}: install the same "
            f"there, or the counts could differ. PYSPARK_PYTHON names the Python of workers"
        )
    if name is not None:
        _LOOKED_AT_ALREADY.add(name)


def _versions_here() -> list[str]:
    found = [f"Python {sys.version_info[0]}.{sys.version_info[1]}", f"dpregions {__version__}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} missing")
    return found


def _started(call: Callable[[], Made]) -> Made:
    """Return what the first look at workers gives."""
    try:
        return call()
    except Exception as error:
        kind = type(error).__name__
    raise InputError(
        f"Spark's Python workers could not be started ({kind}), and nothing was read: they need "
        f"the Python and the packages of this process ({', '.join(_versions_here())}). Set "
        f"PYSPARK_PYTHON to theirs, and see Spark's own logs"
    )
