"""`dpregions plan`: errors to expect and a recommendation, before any budget is spent.

Owns the command. It takes public parameters only: no option names the data that will be released.
The files it may read are a grid's and a proxy's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpregions.choices import Neighbours
from dpregions.cli import areas, options
from dpregions.errors import InputError

if TYPE_CHECKING:
    from dpregions.geometry.grid import Grid


def plan(
    max_diameter: Annotated[
        str, typer.Option(help="Largest diameter of a region, for example 2km.")
    ],
    epsilon: Annotated[str, typer.Option(help="Epsilons to compare, for example 0.1,1/3,1.")],
    regions: Annotated[str, typer.Option(help="About how many regions: a public guess.")],
    side: areas.Side = None,
    cell: Annotated[
        str | None, typer.Option(help="Sides of a cell to compare, for example 500m,1km,2km.")
    ] = None,
    around: areas.Around = None,
    grid: areas.GridFile = None,
    bounds: areas.Bounds = None,
    bounds_crs: areas.BoundsCrs = None,
    align: areas.Aligned = None,
    query: Annotated[
        str | None,
        typer.Option(help="Sides of queries, or shares of the area, for example 1km,2km,50%."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The error aimed at, for example 5%: asks for advice.")
    ] = None,
    method: Annotated[str, typer.Option(help="Methods to compare.")] = "footprint,paper",
    neighbours: Annotated[Neighbours, typer.Option(help="What epsilon is about.")] = "add-remove",
    shape: Annotated[
        str | None,
        typer.Option(
            help="The kind of city: even, districts, skewed, malls, corridor, thin, small, "
            "scattered or wide. By default the range over several kinds is shown."
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="PROXY",
            help="Rehearse on regions like these: a file that is public or a proxy, never the data "
            "itself. Needs the place (--around or --grid).",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the errors to draw, for example plan.png.")
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict errors from public parameters, before any budget is spent.

    Rehearses the mechanisms on made-up cities of that size, or on a proxy
    (--like); never opens the data. Made-up cities need no place: --side will do.

    Example: dpregions plan --side 20km --cell 500m,1km,2km --max-diameter 2km
    --epsilon 0.1,0.5,1 --regions 10000 --query 2km,5km --target 5%
    """
    from dpregions.planning import planner

    if plot is not None:
        _refuse_plot(plot, overwrite)
    asked = areas.Asked(grid, None, around, side, cell, bounds, bounds_crs, align)
    grids = _grids(asked)
    bare = grids[0].crs is None
    if like is not None and grid is None and not asked.by_place:
        raise InputError("--like needs the place of the area: give --around LON,LAT or --grid FILE")
    public: dict[str, Any] = {
        "max_diameter": options.read_length(max_diameter, "--max-diameter", bare=bare),
        "n_regions": regions.replace(",", ""),
        "epsilons": [options.read_epsilon(text) for text in _split(epsilon, "--epsilon")],
        "target": target,
        "methods": _split(method, "--method"),
        "neighbours": neighbours,
        "shape": shape,
        "like": like,
    }
    if query is not None:
        sizes = _split(query, "--query")
        public["queries"] = [
            text if text.endswith("%") else options.read_length(text, "--query", bare=bare)
            for text in sizes
        ]
    with options.notes(), options.progress_bar("rehearsing") as progress:
        made = planner.plan(grids, **public, progress=progress)
    if plot is not None:
        from dpregions.plots import plan as picture

        picture.draw_plan(made, plot)
    if as_json:
        typer.echo(json.dumps(made.as_dict() | ({"plot": str(plot)} if plot else {})))
        return
    typer.echo(str(made))
    if plot is not None:
        typer.echo(f"\nPicture: {plot}")


def _refuse_plot(path: Path, overwrite: bool) -> None:
    """Complain about the picture before the work, not after it."""
    from dpregions.plots import need_plot

    options.refuse_output(path, [], overwrite=overwrite, named="--plot")
    need_plot(path)


def _grids(asked: areas.Asked) -> list[Grid]:
    """Return the grids that the options describe, one a cell size."""
    from dpregions.planning import planner

    if asked.grid is not None:
        return [asked.read_grid()]
    if asked.cell is None or (asked.side is None and not asked.by_place):
        raise InputError("give the public area by --side 20km --cell 500m,1km, or by --grid FILE")
    cells = _split(asked.cell, "--cell")
    if asked.by_place:
        found = [asked._replace(cell=cell).read_grid() for cell in cells]
    else:
        if asked.align is not None or asked.bounds_crs is not None:
            raise InputError("--align and --bounds-crs need the place: give --around or --bounds")
        sizes = [options.read_length(cell, "--cell") for cell in cells]
        side = areas.read_sides(str(asked.side))
        if isinstance(side, tuple):
            raise InputError(
                f"--side {asked.side}: an area that is not square needs its place, --around LON,LAT"
            )
        found = planner.square_grids(side, sizes)
    if asked.side is not None:
        areas.say_area(asked.side, found)
    return found


def _split(text: str, name: str) -> list[str]:
    """Return the parts of a list with commas; refuse an empty one."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(f"{name} {text!r} has an empty part: write values with commas between")
    return parts
