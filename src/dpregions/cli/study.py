"""`dpregions study`: the paper's experiments, rerun on a folder of data or on a made-up city.

Owns the command and its words. What it writes is about exact data and no private release; it
says so each time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpregions.cli.options import AsJson, progress_bar
from dpregions.errors import InputError

if TYPE_CHECKING:
    from dpregions.study.runner import Made


def study(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments to run; all of them by default.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for tables, pictures and report.html.")
    ] = Path("study_output"),
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with tdrive.parquet, geolife.parquet, cabspotting.parquet."),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(help="Which of tdrive,geolife,cabspotting,synthetic to study."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods to compare, with commas; all by default.")
    ] = None,
    repetitions: Annotated[int, typer.Option(help="Runs of each method at each setting.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    show: Annotated[
        bool, typer.Option("--list", help="Show the experiments, methods and data sets.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rerun the paper's experiments; without --data, smaller and on a made-up city.

    Shows exact figures beside private ones: a study on exact data, not a
    private release. A run that was stopped goes on where it was.

    Example: dpregions study sizes shapes --data DATA --out study_output
    """
    from dpregions.study import runner
    from dpregions.study.datasets import chosen_datasets
    from dpregions.study.experiments import chosen_experiments

    choices = runner.choices()
    if show:
        _show_choices(choices, as_json)
        return
    plan = runner.Plan(
        chosen_experiments(experiments or []),
        chosen_datasets(_names(datasets), data),
        data,
        tuple(choices["methods"] if methods is None else _names(methods) or ()),
        repetitions,
        seed,
    )
    with progress_bar("study", time_left=True) as progress:
        made = runner.run_study(out, plan, progress=progress)
    _print_result(made, as_json)


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) < len(names):
        raise InputError(f"{text!r} names something twice: name each once")
    return [name for name in names if name]


def _show_choices(choices: dict[str, dict[str, str]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(choices))
        return
    for kind, members in choices.items():
        typer.echo(f"{kind}:")
        for name, title in members.items():
            typer.echo(f"  {name:<16} {title}".rstrip())


def _print_result(made: Made, as_json: bool) -> None:
    from dpregions.planning.exact_data import ExactData

    if as_json:
        facts = {
            "label": ExactData.label,
            "report": str(made.report),
            "tables": {name: str(path) for name, path in made.tables.items()},
            "statements": [found._asdict() for found in made.findings],
        }
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"Wrote {made.report}, with its tables and pictures beside it.")
    for found in made.findings:
        if found.verdict != "not measured":
            typer.echo(f"  {found.verdict}: {found.printed}. Here: {found.measured}.")
    typer.echo(f"This is a {ExactData.label}.")
