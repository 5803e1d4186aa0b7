"""What several commands share: the grid's options, lengths, outputs, progress.

Everything here speaks of options as they are typed (`--around`), not of Python's arguments; what
errors of the library are about becomes options in `in_options` alone.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpregions.atomic_files import try_out
from dpregions.choices import Unit
from dpregions.errors import (
    Argument,
    DPRegionsError,
    DPRegionsWarning,
    GridError,
    InputError,
    InputTypeError,
    InPython,
)
from dpregions.readable_files import refuse_unreadable

if TYPE_CHECKING:
    import geopandas

    from dpregions.geometry.domain import Domain
    from dpregions.geometry.grid import Grid


GridFile = Annotated[
    Path | None,
    typer.Option("--grid", help="The grid as JSON, as Grid.to_json and describe --json write it."),
]
PartitionFile = Annotated[
    Path | None,
    typer.Option(
        "--partition", help="Instead of --grid: other cells, as Partition.to_file writes them."
    ),
]
Around = Annotated[
    str | None,
    typer.Option("--around", metavar="LON,LAT", help="Instead of --grid: the area's centre."),
]
Side = Annotated[str | None, typer.Option("--side", help="Side of the area, for example 20km.")]
Cell = Annotated[str | None, typer.Option("--cell", help="Side of a cell, for example 1km.")]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file (GeoParquet, GeoPackage, FlatGeobuf, GeoJSON, Shapefile, CSV, DuckDB) or a "
        "database, postgresql://HOST/DATABASE.",
    ),
]
Sql = Annotated[
    str | None, typer.Option("--sql", help="The query, for databases: users and a geometry.")
]
Layer = Annotated[str | None, typer.Option("--layer", help="The layer, in a file with several.")]
Geometry = Annotated[
    str | None, typer.Option("--geometry", help="The column of regions, where it is not marked.")
]
UserId = Annotated[
    str | None, typer.Option("--user-id", help="The column of users; by default user_id.")
]
EachRow = Annotated[
    bool, typer.Option("--each-row", help="Each row is its own user: protects rows, not users.")
]
ReleaseUnit = Annotated[
    Unit | None,
    typer.Option(
        "--unit", help="What is protected: by default a user, or a record with --each-row."
    ),
]
SourceCrs = Annotated[
    str | None, typer.Option("--crs", help="CRS of a source that carries none, e.g. EPSG:4326.")
]
Lon = Annotated[
    str | None, typer.Option("--lon", help="For CSV: the column of longitudes, each row a point.")
]
Lat = Annotated[str | None, typer.Option("--lat", help="For CSV: the column of latitudes.")]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="LABEL", help="Of a release by groups: this group alone."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it is there.")]
AllowEpsilon = Annotated[
    bool,
    typer.Option("--allow-epsilon", help="Take an epsilon above 20: it promises next to nothing."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Result as JSON.")]


def read_grid(grid: Path | None, around: str | None, side: str | None, cell: str | None) -> Grid:
    """Return the grid that --grid, or --around with --side and --cell, describe."""
    from dpregions.geometry.grid import Grid

    places = {"--around": around, "--side": side, "--cell": cell}
    given = [name for name, value in places.items() if value is not None]
    if (grid is None) == (not given):
        raise InputError(
            "give the public area by --grid FILE.json, by --around LON,LAT --side 20km --cell 1km, "
            "or where a command takes it by --partition FILE"
        )
    if grid is not None:
        refuse_unreadable(grid, named=f"--grid {grid}")
        try:
            text = grid.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(f"--grid {grid}: this is not JSON, as it is not text") from None
        try:
            return Grid.from_json(_grid_of_release(text))
        except (InputError, InputTypeError) as error:  # about fields of the file, not options
            raise InputError(f"--grid {grid}: {error}") from None
    missing = [name for name, value in places.items() if value is None]
    if missing:
        raise InputError(f"{', '.join(given)} needs {' and '.join(missing)} too")
    assert around is not None and side is not None and cell is not None
    lon, lat = read_place(around, "--grid FILE")
    made = Grid.around(lon, lat, side=read_length(side), cell_size=read_length(cell))
    say_area(side, [made])
    return made


def read_area(
    grid: Path | None,
    partition: Path | None,
    around: str | None,
    side: str | None,
    cell: str | None,
) -> Domain:
    """Return the cells that --partition, or what `read_grid` takes, describe."""
    if partition is None:
        return read_grid(grid, around, side, cell)
    if any(value is not None for value in (grid, around, side, cell)):
        raise InputError("give the public area by --partition, or as a grid, not both")
    from dpregions.geometry.partition import Partition

    return Partition.from_file(partition)


def say_area(side: str, grids: Sequence[Grid]) -> None:
    """Say which area was made where --side is no whole number of cells."""
    from dpregions.lengths import shown_area, shown_length

    made = [
        f"{shown_area(grid)} with cells of {shown_length(grid.cell_size, grid)}"
        for grid in grids
        if grid.in_cells(read_length(side)).denominator > 1
    ]
    if made:
        say(f"--side {side} is no whole number of cells: the area is {', '.join(made)}")


def area_in_words(area: Domain) -> str:
    """Return how large an area is and where it lies, for a person to see a mistake in."""
    from dpregions.crs import degrees_of
    from dpregions.lengths import shown_area, shown_degrees

    words = f"{shown_area(area)}, {area.cells_in_words}"
    if area.crs is None:
        return f"{words}, nowhere on Earth, as it has no CRS"
    extent = degrees_of(area.bounds, area.crs)
    return words if extent is None else f"{words}, {shown_degrees(extent)}"


def _grid_of_release(text: str) -> str:
    """Return the grid in what `describe --json` printed; any other text as it is."""
    try:
        found = json.loads(text)
        grid = found["grid"] if "format" in found else found
        other = grid.get("dpregions") == "partition"
        text = json.dumps(grid) if "format" in found else text
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return text
    if other:
        raise InputError("these are not the cells of a grid: give their file by --partition")
    return text


_OPTIONS = {
    "cell_size": "--cell",
    "cell_sizes": "--cell",
    "grids": "--cell",
    "n_regions": "--regions",
    "epsilons": "--epsilon",
    "queries": "--query",
    "total": "--epsilon",
    "folder": "--data",
}
"""Arguments whose options have other names than theirs."""

_FLAGS = {
    Argument("user_id", "None"): "--each-row",
    Argument("allow_epsilon", "True"): "--allow-epsilon",
}
"""Values of arguments that are options by themselves."""


def in_options(message: DPRegionsError | DPRegionsWarning) -> str:
    """Return what an error or a warning says, with options in place of arguments.

    "user_id='x' is no column" becomes "--user-id 'x' is no column".
    """
    parts = (part for part in message.parts if not isinstance(part, InPython))
    return "".join(_option(part) if isinstance(part, Argument) else str(part) for part in parts)


def _option(argument: Argument) -> str:
    name = _OPTIONS.get(argument.name, f"--{argument.name.replace('_', '-')}")
    return _FLAGS.get(argument, f"{name} {argument.value or ''}".rstrip())


def read_users(user_id: str | None, each_row: bool) -> str | None:
    """Return the column of users that --user-id names, None for --each-row."""
    if each_row and user_id is not None:
        raise InputError("give one of --user-id and --each-row: a row counts, or a user does")
    return None if each_row else user_id or "user_id"


def read_place(around: str, polar: str) -> tuple[float, float]:
    """Return the longitude and latitude of --around; `polar` is the option for another CRS."""
    from dpregions.crs import utm_zone

    try:
        lon, lat = (float(part) for part in around.split(","))
    except ValueError:
        lon = lat = math.nan
    if not (abs(lon) <= 180 and abs(lat) <= 90):
        raise InputError(
            f"--around {around!r} is no place on Earth: write LON,LAT in degrees, for example "
            f"116.4,39.9"
        )
    try:
        utm_zone(lon, lat)
    except GridError:
        raise InputError(
            f"--around {around!r} lies beyond UTM: give a projected CRS for the pole by {polar}"
        ) from None
    return lon, lat


def read_length(text: str) -> float | str:
    """Return a bare number, in units of the CRS, as one; other text as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def read_epsilon(text: str) -> Fraction:
    """Return --epsilon exactly: decimals, or a fraction such as 1/3."""
    try:
        # Not Fraction(text): it would write out all the digits of 1e999999999.
        top, _, bottom = text.partition("/")
        parts = Decimal(top), Decimal(bottom or 1)
        usable = all(p.is_finite() and p > 0 and abs(p.adjusted()) <= 300 for p in parts)
    except InvalidOperation:
        usable = False
    if not usable:
        raise InputError(
            f"--epsilon {text} is no privacy loss: give a number above 0, for example 0.5 or 1/3"
        )
    return Fraction(parts[0]) / Fraction(parts[1])


def say(note: str) -> None:
    """Print a note, one line on stderr."""
    typer.echo(f"dpregions: note: {note}", err=True)


@contextmanager
def notes() -> Iterator[None]:
    """Print warnings as notes that speak of options, as they come: also where the work fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries: they may quote what they read
        warnings.simplefilter("always", DPRegionsWarning)
        warnings.showwarning = lambda message, *place, **more: say(in_options(message))
        yield


def refuse_output(
    output: Path,
    inputs: list[Path],
    *,
    overwrite: bool,
    named: str = "--output",
    what: str = "",
) -> None:
    """Refuse an output before the work, not after it: the one rule for whatever writes a file.

    It must not be there, unless `overwrite`; nor be an input; and its folder must take it.

    Parameters
    ----------
    output : pathlib.Path
    inputs : list of pathlib.Path
        Files that are read, or may be.
    overwrite : bool
        Whether --overwrite was given.
    named : str
        The option, or the argument, that it was given as.
    what : str
        What a file that is there may be, for the message.
    """
    shown = f"{named} {output}"
    try:
        str(output).encode()
    except UnicodeEncodeError:  # bytes that are no text, which Arrow cannot open
        raise InputError(f"{named} {str(output)!r} is no text: choose another name") from None
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise InputError(f"{shown}: give a file in a folder that exists")
    if output.exists() and any(path.exists() and output.samefile(path) for path in inputs):
        raise InputError(f"{shown} is one of the inputs: choose another name")
    if os.path.lexists(output) and not overwrite:
        raise InputError(
            f"{shown} is there already{what}: choose another name, or give --overwrite"
        )
    try:
        try_out(output)
    except OSError as error:
        raise InputError(f"{shown} cannot be written: {error.strerror}") from None


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show what is being done, on a terminal, by name alone."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: None
        return
    with console.status("") as status:
        yield status.update


@contextmanager
def progress_bar(what: str, *, time_left: bool = False) -> Iterator[Callable[[float], None] | None]:
    """Show the share done, on a terminal; nothing else, as sizes and counts are secret.

    The time left is for work whose length is no secret.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress, TimeRemainingColumn

    columns = Progress.get_default_columns()
    if not time_left:
        columns = tuple(c for c in columns if not isinstance(c, TimeRemainingColumn))
    # Steps may be a minute apart, and the time left is judged by all of them.
    period = 3600.0
    with Progress(*columns, console=console, transient=True, speed_estimate_period=period) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


def read_polygons(path: Path, option: str) -> geopandas.GeoDataFrame:
    """Return the geometries of a file, whatever its format, or say why an option cannot have it."""
    import geopandas

    if not os.path.isdir(path):  # some formats are folders
        refuse_unreadable(path, named=f"{option} {path}")
    parquet = path.suffix.lower() in (".parquet", ".geoparquet", ".pq")
    try:
        frame = geopandas.read_parquet(path) if parquet else geopandas.read_file(path)
    except Exception as error:  # readers of many formats raise as many kinds
        first = (str(error).splitlines() or [""])[0]
        raise InputError(f"{option} {path} cannot be read: {first}") from None
    if not isinstance(frame, geopandas.GeoDataFrame) or frame.active_geometry_name is None:
        raise InputError(f"{option} {path} has no geometries")
    return frame
