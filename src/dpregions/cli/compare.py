"""`dpregions compare`: what one release counts more than another, and how sure that is.

Reads release files only, so all it prints is public.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpregions.choices import Within
from dpregions.cli.options import AsJson, notes, say
from dpregions.cli.query import rectangle_of
from dpregions.crs import one_crs, read_crs
from dpregions.errors import InputError

if TYPE_CHECKING:
    from dpregions.geometry.layers import Layer
    from dpregions.releases.compare import Comparison


_FORMS = {"first": "d", "second": "d", "difference": "+d", "low": "+.1f", "high": "+.1f"}
"""How the numbers of an answer are printed."""


def compare(
    first: Annotated[Path, typer.Argument(help="A release file.", metavar="FIRST")],
    second: Annotated[Path, typer.Argument(help="Another one.", metavar="SECOND")],
    bounds: Annotated[
        list[str] | None,
        typer.Argument(metavar="XMIN YMIN XMAX YMAX", help="One rectangle."),
    ] = None,
    polygons: Annotated[
        Path | None, typer.Option(help="GeoParquet, GeoPackage, GeoJSON, ... of areas.")
    ] = None,
    within: Annotated[
        Within | None,
        typer.Option(help="What to ask about: the query as drawn, or the cells it touches."),
    ] = None,
    crs: Annotated[
        str | None,
        typer.Option(help="CRS of the query, EPSG:4326 for instance; else the first release's."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the interval low to high.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Say how many more regions the second release counts than the first.

    The interval low to high holds the true difference. Where it holds 0, the
    two releases do not say which count is larger. Without a rectangle and
    without --polygons it is about the whole area. Releases on two different
    grids are compared where both cover what is asked.

    Example: dpregions compare may.parquet june.parquet 500000 5370000 505000 5375000

    Example: dpregions compare may.parquet june.parquet --polygons districts.gpkg
    """
    from dpregions.releases.published import load

    if bounds and polygons is not None:
        raise InputError("give one query: XMIN YMIN XMAX YMAX, or --polygons FILE")
    comparison = load(first).compare(load(second))
    if not comparison.private:
        say("NOT PRIVATE, a study's file: do not publish")
    given: dict[str, Any] = {"within": within, "crs": crs, "confidence": confidence}
    if polygons is not None:
        from dpregions.io.area_files import read_areas

        _print_rows(comparison, read_areas(polygons, "--polygons"), given, as_json)
        return
    query = tuple(rectangle_of(bounds)) if bounds else comparison.first.grid.bounds
    answer = {name: values[0] for name, values in _answers(comparison, query, given).items()}
    if as_json:
        typer.echo(json.dumps(answer | _facts(comparison, confidence)))
        return
    for name, form in _FORMS.items():
        value = answer[name]
        typer.echo(f"{name:10} {'outside' if value is None else format(value, form)}")
    typer.echo(comparison.describe())


def _answers(
    comparison: Comparison, query: tuple[Any, ...], given: dict[str, Any]
) -> dict[str, list[Any]]:
    """Return lists of the answers, by their names; None for what is outside, which is unknown."""
    with notes():
        found = comparison.answers(*query, **given)
    outside = [math.isnan(low) for low in found["low"]]
    listed: dict[str, list[Any]] = {name: values.tolist() for name, values in found.items()}
    for name in _FORMS:
        values = zip(listed[name], outside, strict=True)
        listed[name] = [None if beyond else value for value, beyond in values]
    return listed


def _print_rows(comparison: Comparison, areas: Layer, given: dict[str, Any], as_json: bool) -> None:
    """Print the rows of a file of areas with the answers beside them."""
    from dpregions.io import layer_files

    stated = None if given["crs"] is None else read_crs(given["crs"])
    crs = one_crs(areas.crs, stated, "the queries")
    answers = _answers(comparison, (areas.shapes,), given | {"crs": crs})
    if taken := [name for name in areas.columns if name in answers]:
        raise InputError(
            f"--polygons has a column {', '.join(taken)} already, which the answer adds: rename it"
        )
    answered = areas.with_columns(**answers)
    if as_json:
        rows = json.loads(layer_files.table_json(answered))
        typer.echo(json.dumps({"areas": rows} | _facts(comparison, given["confidence"])))
        return
    typer.echo(layer_files.table_csv(answered).decode(), nl=False)
    say(comparison.describe().replace("\n", " "))


def _facts(comparison: Comparison, confidence: float) -> dict[str, Any]:
    together = comparison.together
    return {
        "confidence": confidence,
        "together": None if together is None else str(together),
        "statement": comparison.describe(),
        "private": comparison.private,
    }
