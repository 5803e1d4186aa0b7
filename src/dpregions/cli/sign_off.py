"""`dpregions sign-off`: a blank sheet of the curator's duties, for `release --sign-off`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpregions.atomic_files import replacing
from dpregions.cli.options import Overwrite, refuse_output


def sign_off(
    output: Annotated[Path, typer.Argument(metavar="SHEET", help="The file to write, TOML.")],
    overwrite: Overwrite = False,
) -> None:
    """Write a blank sign-off sheet: who chose what, from which public source.

    Fill it in, and give it to release --sign-off: the answers are published
    with the release.

    Example: dpregions sign-off june.toml
    """
    from dpregions.releases.sign_off import BLANK

    refuse_output(output, [], overwrite=overwrite, named="SHEET")
    with replacing(output, fresh=not overwrite) as part:
        part.write_text(BLANK, encoding="utf-8")
    typer.echo(f"Wrote {output}: answer its questions, then give it to release --sign-off.")
