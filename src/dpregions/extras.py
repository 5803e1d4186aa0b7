"""Packages that not everyone installs, and the extra of dpregions that each comes with.

The one place that says what to install: a package that is missing is named with its extra, whoever
finds out. Whoever only reads releases needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from dpregions.errors import MissingExtraError

EXTRA_OF = {
    "geopandas": "curator",
    "numba": "curator",
    "opendp": "curator",
    "pandas": "curator",
    "pyogrio": "curator",
    "matplotlib": "plot",
    "scipy": "plot",
    "rasterio": "raster",
    "xarray": "raster",
    "duckdb": "db",
    "psycopg": "db",
    "sqlalchemy": "db",
    "pyspark": "spark",
    "fastapi": "web",
    "uvicorn": "web",
}
"""The extra of each package, by the name it is imported by."""

_NAMES = {"duckdb": "DuckDB", "sqlalchemy": "SQLAlchemy"}


@contextmanager
def named() -> Iterator[None]:
    """Import packages of extras; of one that is missing, name the extra.

    Examples
    --------
    >>> with named():
    ...     import pandas
    """
    try:
        yield
    except ImportError as error:
        found = missing(error)
        if found is None:
            raise
        raise found from None


def missing(error: ImportError) -> MissingExtraError | None:
    """Return the error that names the extra of what could not be imported, if it is of one."""
    package = (error.name or "").partition(".")[0]
    if isinstance(error, MissingExtraError) or package not in EXTRA_OF:
        return None
    return MissingExtraError(_NAMES.get(package, package), EXTRA_OF[package])


def need(extra: str) -> None:
    """Refuse to go on where a package of an extra is missing; loads none of them."""
    for package, of in EXTRA_OF.items():
        if of == extra and not is_there(package):
            raise MissingExtraError(_NAMES.get(package, package), extra)


def is_there(package: str) -> bool:
    """Say whether a package is installed, without loading it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # taken out of reach, or half loaded
        return False
