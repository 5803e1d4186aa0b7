"""`dpregions demo`: tells the story of `cli/story.py` on the screen, or its end as JSON."""

from __future__ import annotations

import contextlib
import io
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpregions.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from dpregions.cli.story import Demo


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what it makes.")] = Path(
        "demo_output"
    ),
    as_json: AsJson = False,
) -> None:
    """Tell the whole story on a synthetic city: fixes, regions, plan, budget, release, answers.

    Each step is a command, shown as you would type it.

    Example: dpregions demo --out demo_output
    """
    from dpregions.cli.story import run

    command_line = partial(context.find_root().command, standalone_mode=False)

    if as_json:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            made = run(command_line, out, lambda *_: None)
        typer.echo(json.dumps(_facts(made)))
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    step = 0

    def tell(sentence: str, command: str | None) -> None:
        nonlocal step
        step += 1
        console.print(f"\n[bold]{step}. {escape(sentence)}[/bold]", soft_wrap=True)
        if command is not None:
            console.print(f"[cyan]$ {escape(command)}[/cyan]", soft_wrap=True)

    made = run(command_line, out, tell)
    tell("The truth beside the answers: only because the city is made up may it be shown.", None)
    _show_answers(made, console)
    console.print("\n[bold]Open next[/bold]")
    console.print(f"  {made.page} in any browser: draw a rectangle, read its interval")
    console.print(
        f"  dpregions serve {made.city} shows the same, and answers programs", soft_wrap=True
    )
    for picture in made.pictures:
        console.print(f"  {picture}", soft_wrap=True)
    console.print("  . .venv/bin/activate puts the command dpregions on your path")
    console.print("  docs/tutorial.md explains the steps, docs/privacy.md what is promised")


def _show_answers(made: Demo, console: Console) -> None:
    from rich.table import Table

    table = Table("query")
    for column in ("exact", "sum of its cells", "published", "95 % interval"):
        table.add_column(column, justify="right")
    for a in made.answers:
        interval = f"{a.low:,.0f} to {a.high:,.0f}"
        table.add_row(
            a.query, f"{a.touching:,}", f"{a.sum_of_cells:,}", f"{a.released:,}", interval
        )
    console.print(table)
    console.print(
        "Summing cells counts a region once for every cell it covers; the release counts it once."
    )


def _facts(made: Demo) -> dict[str, object]:
    return {
        "answers": [answer._asdict() for answer in made.answers],
        "epsilon": str(made.release.budget),
        "statement": made.release.describe(),
        "pictures": [str(picture) for picture in made.pictures],
        "page": str(made.page),
    }
