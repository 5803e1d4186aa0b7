"""What several commands share: the grid's options, lengths, outputs, progress.

Everything here speaks of options as they are typed (`--around`), not of Python's arguments; what
errors of the library are about becomes options in `in_options` alone.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from dpregions.atomic_files import try_out
from dpregions.choices import Unit
from dpregions.errors import (
    Argument,
    DPRegionsError,
    DPRegionsWarning,
    InputError,
    InPython,
)

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


def read_length(text: str, named: str, *, bare: bool = False) -> float | str:
    """Return a length as it is written; refuse a number without a unit, unless it may be `bare`.

    A plane without a CRS has no metres: there a number is all there is. Elsewhere "20" would be
    20 m where 20 km were meant.
    """
    try:
        number = float(text)
    except ValueError:
        return text
    if bare or not math.isfinite(number):
        return number
    number_text = text.strip()
    raise InputError(
        f"{named} {text} has no unit: write {number_text}km or {number_text}m, whichever is meant"
    )


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
    said = ""
    with console.status("") as status:

        def show(stage: str) -> None:
            nonlocal said
            if stage != said:
                said = stage
                status.update(stage)

        yield show


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
