"""The public area as options: a file of it, or a place, or bounds; and an area in words.

Owns these options, how they go together, and the grid they make. An area is chosen without looking
at the data, so nothing here reads any.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dpregions.choices import Align
from dpregions.cli.options import read_length, say
from dpregions.errors import GridError, InputError, InputTypeError
from dpregions.readable_files import refuse_unreadable

if TYPE_CHECKING:
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
Side = Annotated[
    str | None,
    typer.Option("--side", help="Side of the area, for example 20km; or 30kmx20km, width first."),
]
Cell = Annotated[str | None, typer.Option("--cell", help="Side of a cell, for example 1km.")]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds", metavar="XMIN,YMIN,XMAX,YMAX", help="Instead of --around: the area's bounds."
    ),
]
BoundsCrs = Annotated[
    str | None,
    typer.Option("--bounds-crs", help="CRS of --bounds: EPSG:25832, or EPSG:4326 for degrees."),
]
Aligned = Annotated[
    Align | None,
    typer.Option(
        "--align",
        help="Lines at multiples of the cell (round), or those of the INSPIRE grid (inspire).",
    ),
]


class Asked(NamedTuple):
    """An area as it was asked for, option by option."""

    grid: Path | None = None
    partition: Path | None = None
    around: str | None = None
    side: str | None = None
    cell: str | None = None
    bounds: str | None = None
    bounds_crs: str | None = None
    align: Align | None = None

    @property
    def by_place(self) -> bool:
        """Whether an option says where the area is."""
        return self.around is not None or self.bounds is not None

    def read(self) -> Domain:
        """Return the cells that the options describe, and say it where the area grew."""
        if self.partition is not None:
            if any(value is not None for value in self._replace(partition=None)):
                raise InputError("give the public area by --partition, or as a grid, not both")
            from dpregions.geometry.partition import Partition

            return Partition.from_file(self.partition)
        made = self.read_grid()
        if self.side is not None:
            say_area(self.side, [made])
        return made

    def read_grid(self) -> Grid:
        """Return the grid that --grid, --around with --side, or --bounds describe."""
        options = {
            "--around": self.around,
            "--side": self.side,
            "--cell": self.cell,
            "--bounds": self.bounds,
            "--bounds-crs": self.bounds_crs,
            "--align": self.align,
        }
        given = [name for name, value in options.items() if value is not None]
        if (self.grid is None) == (not given):
            raise InputError(
                "give the public area by --grid FILE.json, by --around LON,LAT --side 20km --cell "
                "1km, by --bounds XMIN,YMIN,XMAX,YMAX --bounds-crs EPSG:25832 --cell 1km, or where "
                "a command takes it by --partition FILE"
            )
        if self.grid is not None:
            return _grid_of_file(self.grid)
        by_bounds = self.bounds is not None
        wanted = ("--bounds", "--bounds-crs") if by_bounds else ("--around", "--side")
        known = (*wanted, "--cell", "--align")
        if others := [name for name in given if name not in known]:
            raise InputError(f"{others[0]} has no use beside {wanted[0]}: leave one of them out")
        if missing := [name for name in (*wanted, "--cell") if options[name] is None]:
            raise InputError(f"{', '.join(given)} needs {' and '.join(missing)} too")
        return self._around_bounds() if by_bounds else self._around_place()

    def _around_place(self) -> Grid:
        from dpregions.geometry.grid import Grid

        assert self.around is not None and self.side is not None and self.cell is not None
        lon, lat = read_place(self.around, "--bounds and --bounds-crs")
        side, cell = read_sides(self.side), read_length(self.cell, "--cell")
        return Grid.around(lon, lat, side, cell, align=self.align)

    def _around_bounds(self) -> Grid:
        from dpregions.crs import reached_from, read_crs
        from dpregions.geometry.grid import Grid

        assert self.bounds is not None and self.cell is not None
        bounds, crs = _four_numbers(self.bounds), read_crs(self.bounds_crs)
        if crs.is_geographic:
            bounds, crs = reached_from(bounds, crs, 3035 if self.align == "inspire" else None)
        cell = read_length(self.cell, "--cell")
        return Grid.from_bounds(*bounds, cell_size=cell, crs=crs, align=self.align)


def read_sides(text: str) -> float | str | tuple[float | str, float | str]:
    """Return the side of --side, or its width and height."""
    sides = [read_length(side.strip(), "--side") for side in text.split("x")]
    if len(sides) > 2 or "" in sides:
        raise InputError(f"--side {text} is no side: write 20km, or width and height, 30kmx20km")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def read_place(around: str, polar: str) -> tuple[float, float]:
    """Return the longitude and latitude of --around; `polar` is the option for another CRS."""
    from dpregions.crs import utm_zone

    try:
        lon, lat = (float(part) for part in around.split(","))
    except ValueError:
        lon = lat = math.nan
    if not (abs(lon) <= 180 and abs(lat) <= 90):
        exchanged = abs(lat) <= 180 and abs(lon) <= 90
        raise InputError(
            f"--around {around!r} is no place on Earth: "
            + (
                f"with axes exchanged it is one, {lat:g},{lon:g}. Longitude comes first"
                if exchanged
                else "write LON,LAT in degrees, for example 116.4,39.9"
            )
        )
    try:
        utm_zone(lon, lat)
    except GridError:
        raise InputError(
            f"--around {around!r} lies beyond UTM: give a projected CRS for the pole by {polar}"
        ) from None
    return lon, lat


def say_area(side: str, grids: Sequence[Grid]) -> None:
    """Say which area was made where --side is no whole number of cells."""
    from dpregions.lengths import shown_area, shown_length

    sides = read_sides(side)
    lengths = sides if isinstance(sides, tuple) else (sides,)
    made = [
        f"{shown_area(grid)} with cells of {shown_length(grid.cell_size, grid)}"
        for grid in grids
        if any(grid.in_cells(length).denominator > 1 for length in lengths)
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


def _four_numbers(text: str) -> tuple[float, float, float, float]:
    try:
        xmin, ymin, xmax, ymax = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--bounds {text!r} is no rectangle: write XMIN,YMIN,XMAX,YMAX, four numbers"
        ) from None
    return xmin, ymin, xmax, ymax


def _grid_of_file(path: Path) -> Grid:
    from dpregions.geometry.grid import Grid

    refuse_unreadable(path, named=f"--grid {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"--grid {path}: this is not JSON, as it is not text") from None
    try:
        return Grid.from_json(_grid_of_release(text))
    except (InputError, InputTypeError) as error:  # about fields of the file, not options
        raise InputError(f"--grid {path}: {error}") from None


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
