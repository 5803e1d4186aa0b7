"""What queries of all databases have in common."""

from __future__ import annotations

from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.intake.arrow import GEOMETRY_NAMES
from dpregions.intake.ids import one_column
from dpregions.intake.sources.requests import Request


def query_of(request: Request, database: str) -> str:
    """Return the SQL, to be put in brackets: without the semicolon at its end."""
    sql = (request.sql or "").strip().rstrip(";").rstrip()
    if not sql:
        raise InputError(
            f"{database} needs a query: give ",
            Argument("sql", ""),
            ", for example SELECT user_id, geom FROM regions",
        )
    return sql


def chosen_geometry(
    wanted: str | None, names: list[str], marked: list[str], possible: list[str]
) -> str:
    """Return the column of regions: the wanted one, the only geometry, or the only WKB."""
    if wanted is not None:
        one_column(wanted, names, "geometry")
        return wanted
    found = marked or [name for name in GEOMETRY_NAMES if name in possible][:1] or possible
    if len(found) == 1:
        one_column(found[0], names, "geometry")
        return found[0]
    if found:
        raise InputError(
            "several geometries: choose one by ",
            Argument("geometry", ""),
            f", of {', '.join(found)}",
        )
    raise InputTypeError(
        f"the SQL returns no geometry: its columns are {', '.join(names)}. Return a column of "
        f"type geometry, or WKB"
    )
