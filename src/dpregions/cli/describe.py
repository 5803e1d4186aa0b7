"""`dpregions describe`: what a release file promises, in words or as JSON.

Reads the file alone; everything it prints is public. A release of a study is called what it is.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

import typer

from dpregions.cli.options import AsJson


def describe(
    file: Annotated[Path, typer.Argument(help="A release file.")],
    as_json: AsJson = False,
) -> None:
    """Say what a release promises: epsilon, unit, bound, grid, what was measured.

    With --json every public parameter; --grid of other commands takes that
    file, for another release on the same grid.

    Example: dpregions describe city.parquet
    """
    from dpregions.releases.published import load

    release = load(file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    if as_json:
        found = {**release.stated(), "sha256": sha256}
        typer.echo(json.dumps(found, indent=2))
        return
    if not release.private:
        typer.echo("NOT PRIVATE. A study made this file with seeded noise: DO NOT PUBLISH IT.\n")
    typer.echo(release.describe())
    xmin, ymin, xmax, ymax = release.grid.bounds
    typer.echo(
        f"Area: {release.grid.n_rows} rows and {release.grid.n_cols} columns of cells, "
        f"x from {xmin!r} to {xmax!r}, y from {ymin!r} to {ymax!r}."
    )
    typer.echo(
        "Holds: whole counts and signed estimates with intervals."
        if release.signed is not None
        else "Holds: whole counts only (covert): no estimates, no intervals."
    )
    typer.echo(f"SHA-256 of the file: {sha256}")
