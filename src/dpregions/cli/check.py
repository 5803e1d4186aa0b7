"""`dpregions check`: exact figures about a source of regions, for its curator only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpregions.cli import areas, options

if TYPE_CHECKING:
    from dpregions.curator import Check


def check(
    source: options.Source,
    max_diameter: Annotated[
        str | None, typer.Option(help="Largest diameter of a region, as for a release: 2km.")
    ] = None,
    grid: areas.GridFile = None,
    partition: areas.PartitionFile = None,
    around: areas.Around = None,
    side: areas.Side = None,
    cell: areas.Cell = None,
    bounds: areas.Bounds = None,
    bounds_crs: areas.BoundsCrs = None,
    align: areas.Aligned = None,
    sql: options.Sql = None,
    layer: options.Layer = None,
    geometry: options.Geometry = None,
    user_id: options.UserId = None,
    each_row: options.EachRow = False,
    unit: options.ReleaseUnit = None,
    crs: options.SourceCrs = None,
    lon: options.Lon = None,
    lat: options.Lat = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="OTHER", help="Another source: how many ids are in both."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is wrong with regions: exact, not private, do not publish.

    For the curator's eyes: rows that would count nowhere, and why; regions
    longer than --max-diameter; users with several rows; axes that seem
    swapped. With --against, how many ids two sources share: releases of the
    same people add up, whatever they are called. Spends no budget. A release
    never looks at this.

    Example: dpregions check regions.gpkg --max-diameter 2km
    --around 9.0,48.5 --side 20km --cell 1km
    """
    users = options.read_users(user_id, each_row)
    area = areas.Asked(grid, partition, around, side, cell, bounds, bounds_crs, align).read()
    length: float | str | None = max_diameter
    if max_diameter is not None:
        length = options.read_length(max_diameter, "--max-diameter", bare=area.crs is None)
    with options.progress_bar("checking") as progress:
        from dpregions.curator import check_regions
        from dpregions.intake.sources.opening import open_regions

        with open_regions(
            source,
            sql=sql,
            layer=layer,
            geometry=geometry,
            user_id=users,
            unit=unit,
            crs=crs,
            lon=lon,
            lat=lat,
            progress=progress,
        ) as regions:
            found = check_regions(regions, area, max_diameter=length, user_id=users)
        shared = None
        if against is not None:
            from dpregions.curator import shared_ids

            asked: dict[str, Any] = {"user_id": users, "unit": unit, "crs": crs}
            mine = asked | {"sql": sql, "layer": layer, "geometry": geometry}
            with (
                open_regions(source, **mine, lon=lon, lat=lat) as one,
                open_regions(against, **asked, lon=lon, lat=lat) as other,
            ):
                shared = shared_ids(one, other, user_id=users)
    if as_json:
        more = {} if shared is None else {"against": {"source": against, **shared._asdict()}}
        typer.echo(json.dumps(found.as_dict() | more))
        return
    _print_table(found)
    if shared is not None:
        typer.echo(
            f"{shared.shared:,} ids are in both: {source} has {shared.ids:,}, {against} "
            f"{shared.other_ids:,}. Epsilons of releases of the same people add up: keep them in "
            f"one account."
        )


_MEANINGS = {
    "skipped": "lines of wrong fields (do not count)",
    "rows": "rows",
    "null": "  without a region",
    "unreadable": "  that no reader understands",
    "empty": "  with an empty region",
    "not_finite": "  with a coordinate that is no number",
    "outside": "  outside the area",
    "counted_rows": "  that touch the area",
    "invalid": "invalid regions (the hull is taken)",
    "not_convex": "not convex regions (the hull is taken)",
    "oversized": "longer than --max-diameter (shrunk or dropped)",
    "users": "users",
    "users_with_several_rows": "  with several rows (one counts)",
    "most_rows_of_a_user": "  most rows of one user",
    "rows_without_user": "rows without a user (do not count)",
    "inside_if_swapped": "outside, but inside with x and y exchanged",
    "beyond_degrees": "latitudes beyond 90 degrees",
}


def _print_table(found: Check) -> None:
    from rich.console import Console
    from rich.table import Table

    from dpregions.curator import LABEL

    figures = found.as_dict()
    table = Table(title=LABEL.upper(), show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, meaning in _MEANINGS.items():
        if figures[name] is not None:
            table.add_row(meaning, f"{figures[name]:,}")
    console = Console()
    console.print(table)
    console.print(f"CRS of the regions: {found.crs}; of the grid: {found.grid_crs}.")
    if found.outside:
        console.print(
            f"{found.outside:,} of {found.rows:,} outside; with axes exchanged "
            f"{found.inside_if_swapped:,} inside."
        )
    if found.swapped_axes_suspected:
        console.print("Axes seem swapped: x is longitude or easting, y latitude or northing.")
