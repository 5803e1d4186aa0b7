"""The words that public arguments take, each list spelled here alone.

Imports nothing heavy, so that the command line can offer them before anything else is loaded.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from dpregions.errors import Argument, PrivacyError

Neighbours: TypeAlias = Literal["add-remove", "replace-one"]
Unit: TypeAlias = Literal["user", "record", "trajectory"]
Method: TypeAlias = Literal["footprint", "paper"]
Oversize: TypeAlias = Literal["shrink", "drop"]
FixUnit: TypeAlias = Literal["user", "trajectory"]
TraceFormat: TypeAlias = Literal["auto", "tdrive", "geolife", "cabspotting", "table"]
Kind: TypeAlias = Literal["faces", "edges", "vertices"]
What: TypeAlias = Literal["components", "faces", "edges", "vertices", "regions"]


def refuse_other(value: str, words: Any, name: str) -> None:
    """Refuse an argument that is none of the words, and name them."""
    if value not in get_args(words):
        quoted = " or ".join(map(repr, get_args(words)))
        raise PrivacyError(Argument(name), f" must be {quoted}, got {value!r}.")
