"""Where the command begins: Ctrl-C at any time ends it in one line, with exit code 130.

Imports next to nothing, so that an interrupt while modules load is met as well. What was spent by
then is in the notes of the error that the interrupt becomes: whoever spends budget adds one.
"""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn


class Interrupted(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, which typer takes for itself."""


def main() -> None:
    """Run the command line."""
    usual = signal.signal(signal.SIGINT, _interrupt)
    try:
        from dpregions.cli.app import main as run

        run()
    except (Interrupted, KeyboardInterrupt) as stopped:
        spent = "; ".join(getattr(stopped, "__notes__", ())) or "no budget was spent"
        print(f"dpregions: interrupted; {spent}", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, usual)


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise Interrupted
