"""`dpregions query`: how many regions touch a rectangle, many rectangles, or polygons of a file.

Reads release files only, so all it prints is public. For rectangles on the grid's lines it must
stay fast to start: neither numba nor geopandas nor pandas is imported on that path.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from dpregions.atomic_files import replacing
from dpregions.choices import Detail, Within
from dpregions.cli.options import AsJson, Group, Overwrite, notes, refuse_output, say
from dpregions.crs import one_crs, read_crs
from dpregions.errors import DPRegionsError, InputError, QueryError, QueryNumber, printable
from dpregions.readable_files import refuse_unreadable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpregions.geometry.domain import Domain
    from dpregions.geometry.layers import Layer
    from dpregions.releases.published import Release

BOUNDS = ("xmin", "ymin", "xmax", "ymax")
ANSWERS = ("count", "low", "high", "within", "exact", "outside", "cut", "enlarged")
_UNKNOWN = ("count", "low", "high")
"""What is null where a query lies wholly outside the area."""
TABLES = (".csv",)
_DRIVERS = {".gpkg": "GPKG", ".fgb": "FlatGeobuf"}
MAPS = (".parquet", ".geojson", *_DRIVERS)
_LONGEST_FIELD = 1 << 30
"""Outlines as text are longer than Python's limit of 131,072 characters."""


def query(
    file: Annotated[Path, typer.Argument(help="A release file.")],
    bounds: Annotated[
        list[str] | None,
        typer.Argument(metavar="XMIN YMIN XMAX YMAX", help="One rectangle."),
    ] = None,
    rectangles: Annotated[
        str | None,
        typer.Option(help="CSV with columns xmin, ymin, xmax, ymax; - reads standard input."),
    ] = None,
    polygons: Annotated[
        Path | None, typer.Option(help="GeoParquet, GeoPackage, GeoJSON, ... of areas.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The same rows with the answers, format by suffix."),
    ] = None,
    within: Annotated[
        Within | None,
        typer.Option(
            help="What to ask about: the query as drawn (shape), or the cells it touches (cells). "
            "By default shape, but cells of a release made with method paper."
        ),
    ] = None,
    crs: Annotated[
        str | None, typer.Option(help="CRS of the query, EPSG:4326 for instance; else the grid's.")
    ] = None,
    snap: Annotated[
        bool,
        typer.Option("--snap", help="Ask about the smallest rectangle of whole cells around it."),
    ] = False,
    confidence: Annotated[float, typer.Option(help="Of the interval low to high.")] = 0.95,
    group: Group = None,
    detail: Annotated[
        Detail,
        typer.Option(
            help="Of intervals: judge what was not measured (likely), or leave it open, for "
            "rectangles alone (worst)."
        ),
    ] = "likely",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Count the regions that touch a rectangle, with an interval for the true count.

    Bounds are in the release's own CRS unless --crs says otherwise. What
    cuts through cells is answered as drawn, or with --within cells about the
    whole cells it touches; what reaches beyond the area, about the part inside.
    Rectangles and polygons of a file come back as the same rows with count,
    low, high, within (which rule answered), exact (if not, its cells form no
    rectangle and a region may count twice), outside (wholly beyond the area:
    count, low and high are empty), cut (about the part inside the area) and
    enlarged (about whole cells that reach beyond the query). In CSV, low and
    high are rounded outwards to a tenth.

    Example: dpregions query city.parquet 500000 5370000 505000 5375000

    Example: dpregions query city.parquet --polygons districts.gpkg -o counts.gpkg
    """
    from dpregions.releases.published import load

    ways = [bool(bounds), rectangles is not None, polygons is not None]
    if sum(ways) != 1:
        raise InputError(
            "give one query: XMIN YMIN XMAX YMAX, or --rectangles FILE.csv, or --polygons FILE"
        )
    if output is not None:
        if bounds:
            raise InputError("--output is for --rectangles and --polygons: one answer is printed")
        _refuse_suffix(output, (*TABLES, *MAPS) if polygons is not None else TABLES)
        inputs = [Path(given) for given in (file, rectangles, polygons) if given]
        refuse_output(output, inputs, overwrite=overwrite)
    release = load(file)
    release = release if group is None else release.group(group)
    _say_what_it_is(release)
    if bounds:
        rectangle = (*rectangle_of(bounds),)
        found = _answers(release, rectangle, within, crs, confidence, detail, snap)
        _print_one(found, confidence, as_json)
    elif rectangles is not None:
        rows = _read_rectangles(rectangles)
        columns = tuple([_number(row, name, i) for i, row in rows] for name in BOUNDS)
        with _in_lines([line for line, _ in rows]):
            found = _answers(release, columns, within, crs, confidence, detail, snap)
        _write_rows([row for _, row in rows], found, output, as_json)
    elif polygons is not None:
        areas = _read_polygons(polygons, release, crs)
        found = _answers(release, (areas.shapes,), within, areas.crs, confidence, detail, snap)
        _write_areas(areas, found, output, as_json)


def _answers(
    release: Release,
    query: tuple[Any, ...],
    within: Within | None,
    crs: Any,
    confidence: float,
    detail: Detail,
    snap: bool,
) -> Any:
    """Return lists of the answers, by their names; what there is to warn of goes to stderr."""
    with notes():
        try:
            if snap:
                query, crs = _snapped(release, query, crs), None
            selection: Any = release.select(query, within=within, crs=crs)
        except QueryError:
            _say_exchanged(release, query, crs)
            raise
        if selection.outside.all():
            _say_exchanged(release, query, crs)
        found = release.answers(selection, confidence, detail)
        _say_cut(selection.cut(release.grid))
        _say_enlarged(release.grid, selection)
        outside = found["outside"].tolist()
        listed = {k: v.tolist() for k, v in found.items()}
    for name in set(_UNKNOWN) & set(listed):
        values = zip(listed[name], outside, strict=True)
        listed[name] = [None if beyond else value for value, beyond in values]
    return listed


def _outwards(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return answers with intervals rounded to a tenth, so that they hold what they held."""
    ways = {"low": math.floor, "high": math.ceil}
    return {
        name: [None if v is None else ways[name](10 * v) / 10 for v in values]
        if name in ways
        else values
        for name, values in found.items()
    }


def _snapped(release: Release, query: tuple[Any, ...], crs: str | None) -> tuple[Any, ...]:
    """Return the rectangles of whole cells around queries; say which, of one."""
    from dpregions.geometry.grid import Grid

    grid = Grid.needed(release.grid, "--snap")
    found = grid.enclosing(*query, crs=crs)
    if isinstance(found[0], float):
        say(f"about the cells around it, {' '.join(f'{bound:.10g}' for bound in found)}")
    return found


def _say_exchanged(release: Release, query: tuple[Any, ...], crs: str | None) -> None:
    """Say when queries that lie nowhere in the area would lie in it with axes exchanged."""
    if len(query) == 4:
        xmin, ymin, xmax, ymax = query
        turned: tuple[Any, ...] = (ymin, xmin, ymax, xmax)
    else:
        import shapely

        (shapes,) = query
        turned = (shapely.transform(shapes, lambda xy: xy[:, ::-1]),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inside = ~release.select(turned, within="cells", crs=crs).outside
        except DPRegionsError:  # no place at all
            return
    if inside.any():
        which = "it lies" if inside.size == 1 else f"{int(inside.sum())} of {inside.size} lie"
        say(f"with axes exchanged {which} inside: x is longitude or easting, y the other")


def _say_cut(cut: NDArray[np.bool_]) -> None:
    """Say when an answer is about less than was asked: nothing outside the area is counted."""
    n = int(cut.sum())
    which = "the query reaches" if cut.size == 1 else f"{n} of {cut.size} queries reach"
    if n:
        say(f"{which} beyond the area: only what lies inside is counted")


def _say_enlarged(grid: Domain, selection: Any) -> None:
    """Say when an answer is about more than was asked: whole cells are counted."""
    enlarged = selection.enlarged(grid)
    n = int(enlarged.sum())
    if n and enlarged.size == 1:
        say(f"about the whole cells it touches, {selection.cells_in_words(grid)}")
    elif n:
        say(
            f"{n} of {enlarged.size} queries cut through cells: their answers are about the whole "
            f"cells they touch"
        )


@contextmanager
def _in_lines(lines: list[int]) -> Iterator[None]:
    """Let errors speak of lines of the file, not of queries."""
    try:
        yield
    except QueryError as error:
        parts = (f"line {lines[p]}" if isinstance(p, QueryNumber) else p for p in error.parts)
        raise QueryError("--rectangles: ", *parts) from error


def _say_what_it_is(release: Release) -> None:
    if not release.private:
        say("NOT PRIVATE, a study's file: do not publish")
    if release.covert:
        say("a covert release has no intervals, only counts")


def _refuse_options(bounds: list[str]) -> None:
    """Refuse an option that is none: what looks like one may be a negative number."""
    for text in bounds:
        if text.startswith("--") or (text.startswith("-") and not _is_number(text)):
            raise InputError(f"there is no option {text!r}: see dpregions query --help")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def rectangle_of(bounds: list[str]) -> list[float]:
    """Return the four numbers of a rectangle; refuse options, which a negative one looks like."""
    _refuse_options(bounds)
    if len(bounds) != 4:
        raise InputError(f"a rectangle is XMIN YMIN XMAX YMAX, four numbers; got {len(bounds)}")
    for name, text in zip(BOUNDS, bounds, strict=True):
        if not _is_number(text):
            raise InputError(f"{name.upper()} must be a number, got {text!r}")
    return [float(text) for text in bounds]


def _read_rectangles(source: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows of a CSV file with their line numbers."""
    if source == "-":
        return _csv_rows(sys.stdin, "standard input")
    refuse_unreadable(source, named=f"--rectangles {source}")
    try:
        with open(source, newline="", encoding="utf-8-sig") as file:
            return _csv_rows(file, source)
    except UnicodeDecodeError:
        raise InputError(f"--rectangles {source}: this is not CSV, as it is not text") from None


def _csv_rows(file: TextIO, name: str) -> list[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(_LONGEST_FIELD)
    first = file.readline()
    sign = ";" if first.count(";") > first.count(",") else ","
    reader = csv.DictReader(itertools.chain([first], file) if first else file, delimiter=sign)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        line = reader.line_num
        raise InputError(f"--rectangles {name} is no CSV in line {line}: {error}") from None
    columns = list(reader.fieldnames or [])
    if twice := sorted({column for column in columns if columns.count(column) > 1}):
        raise InputError(f"--rectangles {name} has a column {', '.join(twice)} twice: rename one")
    if missing := [column for column in BOUNDS if column not in columns]:
        raise InputError(
            f"--rectangles {name} has no column {', '.join(missing)}: there are "
            f"{printable(', '.join(columns)) or 'none'}"
        )
    _refuse_taken(columns, name)
    for line, row in rows:
        if None in row:
            raise InputError(f"--rectangles {name}: line {line} has more fields than the header")
        if sign == ";":  # spreadsheets that write semicolons write decimal commas
            row.update({b: row[b].replace(",", ".") for b in BOUNDS if row[b] is not None})
    return rows


def _number(row: dict[str, Any], name: str, line: int) -> float:
    text = row[name]
    if text is None or not _is_number(text):
        raise InputError(f"--rectangles: {name} in line {line} must be a number, got {text!r}")
    return float(text)


def _read_polygons(path: Path, release: Release, crs: str | None) -> Layer:
    """Return the polygons of a file, and the CRS that it names or that was stated."""
    from dpregions.io.area_files import read_areas

    areas = read_areas(path, "--polygons")
    if areas.crs is None and crs is None and release.grid.crs is not None:
        raise InputError(f"--polygons {path} names no CRS: say which by --crs, e.g. EPSG:4326")
    _refuse_taken(areas.columns, str(path))
    stated = None if crs is None else read_crs(crs)
    return replace(areas, crs=one_crs(areas.crs, stated, "the queries"))


def _refuse_taken(columns: Iterable[str], name: str) -> None:
    if taken := [column for column in columns if column in ANSWERS]:
        raise InputError(
            f"{name} has a column {', '.join(taken)} already, which the answer adds: rename it"
        )


def _refuse_suffix(output: Path, known: tuple[str, ...]) -> None:
    if output.suffix.lower() not in known:
        raise InputError(f"--output {output}: give a name that ends in {' or '.join(known)}")


def _print_one(found: dict[str, list[Any]], confidence: float, as_json: bool) -> None:
    """Print one answer; what is outside the area is unknown, not 0."""
    answer = {name: values[0] for name, values in found.items()}
    if as_json:
        level = {"confidence": confidence} if "low" in answer else {}
        typer.echo(json.dumps({**answer, **level}))
        return
    shown = {name: values[0] for name, values in _outwards(found).items()}
    for name in _UNKNOWN:
        if name in shown:
            typer.echo(f"{name:5} {'unknown' if shown[name] is None else shown[name]}")


def _write_rows(
    rows: list[dict[str, Any]], found: dict[str, list[Any]], output: Path | None, as_json: bool
) -> None:
    """Write rows of a CSV file with the answers beside them."""
    given = list(rows[0]) if rows else list(BOUNDS)
    in_json = as_json and output is None
    shown = found if in_json else _outwards(found)
    answers = [
        dict(zip(shown, values, strict=True)) for values in zip(*shown.values(), strict=True)
    ]
    whole = [{**row, **answer} for row, answer in zip(rows, answers, strict=True)]
    if in_json:
        numbers = [{name: float(row[name]) for name in BOUNDS} for row in rows]
        typer.echo(json.dumps([row | own for row, own in zip(whole, numbers, strict=True)]))
        return
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*given, *found], lineterminator="\n")
    writer.writeheader()
    writer.writerows(whole)
    _deliver(text.getvalue(), output, as_json)


def _write_areas(
    areas: Layer, found: dict[str, list[Any]], output: Path | None, as_json: bool
) -> None:
    """Write the polygons with the answers beside them."""
    from dpregions.io import layer_files

    suffix = "" if output is None else output.suffix.lower()
    if output is None or suffix in TABLES:
        if as_json and output is None:
            typer.echo(layer_files.table_json(areas.with_columns(**found)))
            return
        told = layer_files.table_csv(areas.with_columns(**_outwards(found)))
        _deliver(told.decode(), output, as_json)
        return
    answered = areas.with_columns(**found)
    name = re.sub(r"\W+", "_", output.stem)
    content = io.BytesIO()  # where GDAL hides that a disk was full, Python says it
    if suffix == ".parquet":
        content.write(layer_files.geoparquet(answered))
    elif suffix == ".geojson":
        content.write(layer_files.geojson_as_given(answered, name))
    else:
        layer_files.write_by_gdal(answered, content, name, _DRIVERS[suffix])
    with replacing(output) as part:
        part.write_bytes(content.getbuffer())
    _report(output, as_json)


def _deliver(text: str, output: Path | None, as_json: bool) -> None:
    if output is None:
        typer.echo(text, nl=False)
        return
    with replacing(output) as part:
        part.write_text(text, encoding="utf-8")
    _report(output, as_json)


def _report(output: Path, as_json: bool) -> None:
    typer.echo(json.dumps({"output": str(output)}) if as_json else f"Wrote {output}.")
