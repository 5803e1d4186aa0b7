"""`dpregions describe`: what a release file promises, in words or as JSON.

Reads the file alone; everything it prints is public. A release of a study is called what it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dpregions.cli.options import AsJson, Group

_LONG = ("labels", "x", "y", "sizes", "points", "area")
"""Fields of a partition that are as long as it has cells."""


def describe(
    file: Annotated[Path, typer.Argument(help="A release file.")],
    group: Group = None,
    card: Annotated[
        bool,
        typer.Option("--card", help="A draft for the OpenDP registry of deployments, as YAML."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a release promises: epsilon, unit, bound, grid, what was measured.

    With --json every public parameter; --grid of other commands takes that
    file, for another release on the same grid. Of a partition the corners and
    labels of its cells are left out, which may be millions: ask for its own
    file, which --partition takes. With --card a draft of an entry in a registry
    of deployments, as YAML, or JSON with --json: fill in what is empty.

    Example: dpregions describe city.parquet
    """
    from dpregions.releases.published import load

    release = load(file)
    release = release if group is None else release.group(group)
    if card:
        found = release.card()
        typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(_yaml(found)))
        return
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    if as_json:
        found = {**_shortened(release.stated()), "sha256": sha256}
        typer.echo(json.dumps(found, indent=2))
        return
    if not release.private:
        typer.echo("NOT PRIVATE. A study made this file with seeded noise: DO NOT PUBLISH IT.\n")
    typer.echo(release.describe())
    xmin, ymin, xmax, ymax = release.grid.bounds
    typer.echo(
        f"Area: {release.grid.cells_in_words}, "
        f"x from {xmin!r} to {xmax!r}, y from {ymin!r} to {ymax!r}."
    )
    typer.echo(
        "Holds: whole counts only (covert): no estimates, no intervals."
        if release.covert
        else "Holds: whole counts and signed estimates with intervals."
    )
    typer.echo(f"SHA-256 of the file: {sha256}")


def _yaml(fields: dict[str, Any], indent: str = "") -> Iterator[str]:
    """Yield lines of YAML: nested fields, whose values are written as JSON, which YAML reads."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _yaml(value, indent + "  ")
        else:
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}"


def _shortened(stated: dict[str, Any]) -> dict[str, Any]:
    """Return a statement without what is as long as a partition has cells, which is named."""
    grid = stated["grid"]
    left_out = [name for name in _LONG if name in grid]
    if not left_out:
        return stated
    short = {name: value for name, value in grid.items() if name not in _LONG}
    return stated | {"grid": short | {"left_out": left_out}}
