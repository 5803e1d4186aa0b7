"""Counting on Spark: one pass of Python over the rows, the rest is Spark SQL's.

Workers turn rows into contributions (`worker`); of each user's, Spark keeps the one with the
smallest key, and counts what is left. Only sparse counts reach this process, where noise is drawn
once. Every step is a function of its rows, so that a task that is retried, or run twice at once,
counts once. Spark's own messages, which may quote a record, are never passed on.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpregions._version import __version__
from dpregions.crs import match_crs, one_crs, read_crs
from dpregions.engines.worker import Job, contributed, summed
from dpregions.errors import (
    Argument,
    DPRegionsError,
    InputError,
    InputTypeError,
    MissingExtraError,
    SourceError,
)
from dpregions.intake.arrow import geometry_field
from dpregions.intake.ids import IdColumns, id_names, one_column, refuse_kind
from dpregions.intake.users import exact_ids

if TYPE_CHECKING:
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound
    from dpregions.mechanisms.base import Tally

T = TypeVar("T", bound="Tally")
Made = TypeVar("Made")

PACKAGES = ("numpy", "pyarrow", "pyproj", "shapely", "numba")
"""Beside this one, packages that workers need in the versions that this process has."""
_LOOKED_AT = 16
"""Tasks in which workers are looked at, at most."""
_LOOKED_AT_ALREADY: set[str] = set()
"""Applications of Spark whose workers were looked at."""


def count(
    frame: Any,
    grid: Domain,
    bound: Bound | None,
    tally: Callable[[], T],
    *,
    user_id: Any = None,
    crs: Any = None,
) -> T:
    """Return the tally of all regions of a Spark DataFrame, one for each user.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A column of WKB, and those of the ids.
    grid, bound, user_id, crs
        As `intake.regions.read_outlines` takes them; ids must be columns.
    tally : callable
        Makes an empty tally.
    """
    whole: Any = tally()
    if not hasattr(whole, "add_marks") and not hasattr(whole, "add_entries"):
        raise InputTypeError(
            f"{type(whole).__name__} cannot be counted on Spark: it has neither marks nor entries, "
            f"see docs/how-to/engines.md"
        )
    job, kinds = _job(frame, grid, bound, whole, user_id, crs)
    use_own_python(frame.sparkSession)
    check_workers(frame.sparkSession)
    rows = frame.select(*[frame[f"`{name}`"] for name in (*job.ids, job.geometry)])
    if hasattr(whole, "add_marks"):
        found = _collected(lambda: _counted_marks(rows, job, kinds))
        marks = [found.column(i).to_numpy() for i in range(found.num_columns - 1)]
        whole.add_marks(np.stack(marks, axis=1), found.column(found.num_columns - 1).to_numpy())
    else:
        found = _collected(lambda: _summed_entries(rows, job, kinds))
        whole.add_entries(*(column.to_numpy() for column in found.columns))
    return whole


def _job(
    frame: Any, grid: Domain, bound: Bound | None, tally: Any, user_id: Any, crs: Any
) -> tuple[Job, list[str]]:
    """Return what workers need to know, and the types of ids in Spark's words; refuse the rest."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        schema = to_arrow_schema(frame.schema)
    except Exception as error:
        failure = type(error).__name__
    else:
        failure = ""
    if failure:
        raise InputTypeError(
            "the DataFrame has columns that Arrow does not know: select the ids and WKB, with "
            "Sedona ST_AsBinary(geometry), before it is released"
        )
    geometry, carried = geometry_field(schema)
    if user_id is not None and not isinstance(user_id, str | IdColumns):
        raise InputTypeError(
            Argument("user_id"), " must name a column of a Spark DataFrame, or be None"
        )
    names = [] if user_id is None else id_names(user_id, schema.names)
    kinds = []
    for name in names:
        kind = schema.field(name).type
        refuse_kind(name, kind)
        ids, _ = exact_ids(pa.array([], kind))
        kinds.append("long" if ids.type == pa.int64() else "binary")
    source = one_crs(carried, None if crs is None else read_crs(crs), "the regions")
    match_crs(source, grid, "regions")
    return Job(grid, bound, source, tally, tuple(names), geometry), kinds


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


def session_at(master: str) -> Any:
    """Return a Spark session at a master's URL; refuse where there is no Spark, Java or master."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark") from None
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("dpregions")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        return builder.getOrCreate()
    except Exception as error:
        kind = type(error).__name__
    raise InputError(
        Argument("master", repr(master)),
        f" gives no Spark session ({kind}): Java 17 or later must be on the path, and the address "
        f"one that Spark knows (local[2], spark://host:7077, yarn)",
    )


def open_parquet(
    session: Any, source: str, ids: list[str], geometry: str | None, stated: Any
) -> tuple[Any, Any]:
    """Return the regions of Parquet files as a Spark DataFrame, and their CRS.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    source : str
        A file, a folder of files or any address that Spark reads.
    ids : list of str
        The columns that make an id.
    geometry : str or None
        The column of WKB; None: the one that a file here marks, or the only one.
    stated : CRS or None
        Of files that carry none, or that are not here: Spark does not read the metadata.
    """
    import pyarrow.parquet as pq

    carried, path = None, Path(source)
    if path.is_file():
        try:
            schema = pq.read_schema(path)
        except Exception:
            schema = None
        if schema is None:
            raise InputError(f"{path} is cut short, damaged or not Parquet", argument="source")
        geometry, carried = geometry_field(schema, geometry)
    try:
        frame = session.read.parquet(source)
        names = list(frame.columns)
    except Exception as error:
        kind = type(error).__name__
    else:
        kind = ""
    if kind:
        raise InputError(
            f"Spark cannot read the source as Parquet ({kind}): it takes files, folders and "
            f"addresses of Parquet alone",
            argument="source",
        )
    for name in ids:
        one_column(name, names, "user_id")
    if geometry is not None:
        one_column(geometry, names, "geometry")
        frame = frame.withColumnRenamed(geometry, "geometry").select(*ids, "geometry")
    return frame, one_crs(carried, stated, "the regions")
