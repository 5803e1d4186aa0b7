"""The words that public arguments take, each list spelled here alone.

Imports nothing heavy, so that the command line can offer them before anything else is loaded.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from dpregions.errors import Argument, InputError

Neighbours: TypeAlias = Literal["add-remove", "replace-one"]
Unit: TypeAlias = Literal["user", "record", "trajectory"]
Method: TypeAlias = Literal["footprint", "paper"]
Favour: TypeAlias = Literal["people", "places"]
Oversize: TypeAlias = Literal["shrink", "drop"]
FixUnit: TypeAlias = Literal["user", "trajectory"]
TraceFormat: TypeAlias = Literal["auto", "tdrive", "geolife", "cabspotting", "table"]
Every: TypeAlias = Literal["release", "day", "week", "month", "quarter", "year"]
Kind: TypeAlias = Literal["faces", "edges", "vertices"]
Within: TypeAlias = Literal["cells", "shape"]
Detail: TypeAlias = Literal["likely", "worst"]
Engine: TypeAlias = Literal["local", "spark"]
Align: TypeAlias = Literal["round", "inspire"]
What: TypeAlias = Literal["components", "faces", "edges", "vertices", "regions"]


def refuse_other(value: str, words: Any, name: str, error: type[InputError] = InputError) -> None:
    """Refuse an argument that is none of the words, and name them, by an error of its kind."""
    if value not in get_args(words):
        quoted = " or ".join(map(repr, get_args(words)))
        raise error(Argument(name), f" must be {quoted}, got {value!r}.")
