"""What this package asks of the workers of a Spark session, and how work gets to them.

Owns the look at workers before anything is read: their Python, their packages, and whether they can
keep compiled kernels. Spark's own messages may quote a record, and are never passed on.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from dpregions._version import __version__
from dpregions.errors import DPRegionsError, InputError, SourceError

Made = TypeVar("Made")
Work = Callable[[Any, Iterator[Any]], Iterator[Any]]

PACKAGES = ("numpy", "pyarrow", "pyproj", "shapely", "numba", "pandas", "geopandas")
"""Beside this one, packages that workers need in the versions that this process has."""
_LOOKED_AT = 16
"""Tasks in which workers are looked at, at most."""
_LOOKED_AT_ALREADY: set[str] = set()
"""Applications of Spark whose workers were looked at."""
_NO_KERNELS = "no place for compiled kernels"


class Workers:
    """The workers of a Spark session, once they were looked at.

    Refuses workers that lack a package, or have another version of one, with a clear message. On
    this machine they run this very Python.
    """

    def __init__(self, session: Any) -> None:
        context = getattr(session, "_sc", None)  # a remote session has none
        n, name = 4, None
        if context is not None:
            if context.master.startswith("local"):
                context.pythonExec = sys.executable
            n, name = min(context.defaultParallelism, _LOOKED_AT), context.applicationId
        if name not in _LOOKED_AT_ALREADY:
            _refuse_others(found_on_workers(session, n))
        if name is not None:
            _LOOKED_AT_ALREADY.add(name)

    def map(self, rows: Any, work: Work, job: Any, schema: Any) -> Any:
        """Return what `work` makes of Arrow batches of rows, by a job that is shipped with it.

        Both go to workers as bytes, `work` by its name in this package. A worker that joins after
        the look at the others, with other packages, fails.
        """
        data = pickle.dumps(partial(_run, work, job, versions()))

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            import pickle

            return pickle.loads(data)(batches)

        return rows.mapInArrow(run, schema)

    def collected(self, call: Callable[[], Made], doing: str) -> Made:
        """Return what a job on Spark gives; where it fails, say so without its words."""
        try:
            return call()
        except DPRegionsError:
            raise
        except Exception as error:
            kind, stopped = type(error).__name__, _interrupted(error)
        if stopped:
            raise KeyboardInterrupt
        raise SourceError(
            f"{doing} on Spark failed ({kind}), and nothing was released. What it said is not "
            f"shown, as it may quote a record: see Spark's own logs"
        )


def _interrupted(error: BaseException | None) -> bool:
    """Say whether an error came of Ctrl-C: Spark ends its jobs, and reports these instead."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _refuse_others(found: set[str]) -> None:
    """Refuse workers that have something else than this process."""
    ours = ", ".join(versions())
    other = sorted(found - {ours})
    if other and _NO_KERNELS in other[0]:
        raise InputError(
            "Spark's workers have no folder to keep compiled kernels in, and nothing was read: set "
            "spark.executorEnv.NUMBA_CACHE_DIR to a folder that they may write to"
        )
    if other:
        raise InputError(
            f"Spark's workers have {other[0]}, but this process has {ours}: install the same "
            f"there, or the counts could differ. PYSPARK_PYTHON names the Python of workers"
        )


def found_on_workers(session: Any, n: int) -> set[str]:
    """Return what workers have, as `versions` says it, from some tasks."""
    names, no_kernels = PACKAGES, _NO_KERNELS

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        # Shipped as it is: a worker may lack this package.
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
        if not any(fact.endswith(" missing") for fact in found):
            try:
                from dpregions.intake import wkb_kernel  # noqa: F401
            except RuntimeError:  # numba found no folder that it may write to
                found.append(no_kernels)
        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([", ".join(found)])], ["found"])

    asked = session.range(0, n, 1, n).mapInArrow(look, "found string").distinct()
    try:
        return {row.found for row in asked.collect()}
    except Exception as error:
        kind = type(error).__name__
    raise InputError(
        f"Spark's Python workers could not be started ({kind}), and nothing was read: they need "
        f"the Python and the packages of this process ({', '.join(versions())}). Set "
        f"PYSPARK_PYTHON to theirs, and see Spark's own logs"
    )


@cache
def versions() -> tuple[str, ...]:
    """Return the versions of Python, of this package and of those that workers need, here."""
    found = [f"Python {sys.version_info[0]}.{sys.version_info[1]}", f"dpregions {__version__}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} missing")
    return tuple(found)


def _run(work: Work, job: Any, wanted: tuple[str, ...], batches: Iterator[Any]) -> Iterator[Any]:
    if versions() != wanted:
        raise RuntimeError("a worker has other packages than the driver")
    return work(job, batches)
