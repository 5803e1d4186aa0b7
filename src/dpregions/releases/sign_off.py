"""The sign-off sheet: the curator's duties as questions, whose answers a release publishes.

Owns the questions, the blank sheet, and which answers are taken. The software cannot see where a
number came from; here somebody says so, under their name.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpregions.errors import Argument, InputError, InputTypeError

QUESTIONS = {
    "grid": "Who chose the area and its cells, and from which public source?",
    "max_diameter": "Who chose the largest diameter, and from which public source?",
    "epsilon": "Who chose epsilon, and why is it small enough?",
    "settings": "On what were settings tried? Never on the secret data.",
    "ids": "What makes sure that one person has one id?",
    "other_releases": "Which other releases of the same people are there, and what did they cost?",
    "secrets": "Who keeps the regions and all that is exact, and where?",
    "approved": "Who approves of this release, and when?",
}

LONGEST = 300
"""Most characters of an answer."""

BLANK = "# Sign-off sheet. Answer every question: the answers are published with the release.\n" + (
    "".join(f'\n# {question}\n{name} = ""\n' for name, question in QUESTIONS.items())
)
"""A sheet without answers, as TOML."""


def answers_of(given: Any) -> tuple[tuple[str, str], ...]:
    """Return the answers of a sheet, a file's path or a dict of them; refuse one that lacks any."""
    if given is None:
        return ()
    if isinstance(given, str | os.PathLike):
        given = _file(Path(given))
    if not isinstance(given, Mapping):
        raise InputTypeError(
            Argument("sign_off"),
            f" must be the path of a sheet or a dict of answers, got {type(given).__name__}",
        )
    if unknown := [name for name in given if name not in QUESTIONS]:
        raise InputError(
            Argument("sign_off"),
            f" answers {unknown[0]!r}, which nobody asked: questions are {', '.join(QUESTIONS)}",
        )
    return tuple((name, _answer(name, given.get(name, ""))) for name in QUESTIONS)


def _file(path: Path) -> dict[str, Any]:
    shown = Argument("sign_off", f"'{path}'")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(shown, f" cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        raise InputError(
            shown, " is no sheet of TOML text: 'dpregions sign-off' writes a blank one"
        ) from None


def _answer(name: str, said: Any) -> str:
    plain = isinstance(said, str) and said.isprintable() and len(said) <= LONGEST
    if not plain or not said.strip():
        raise InputError(
            Argument("sign_off"),
            f" does not answer {name!r}: {QUESTIONS[name]} Answer in one line of at most "
            f"{LONGEST} characters",
        )
    return said.strip()
