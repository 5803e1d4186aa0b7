"""The names that columns of longitude and latitude go by, where nobody names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

USUAL = ("lon", "lat")
"""What callers' arguments are by default."""

PLACE_NAMES = (USUAL, ("longitude", "latitude"), ("lng", "lat"), ("long", "lat"))


def place_columns(names: Sequence[Any]) -> tuple[str, str] | None:
    """Return the columns of longitude and latitude among some names, in any case of letters.

    None where there is no such pair, or where one of its names is there twice.

    Examples
    --------
    >>> place_columns(["id", "Longitude", "Latitude"])
    ('Longitude', 'Latitude')
    """
    known = [name.lower() for name in names if isinstance(name, str)]
    there = {name.lower(): name for name in names if isinstance(name, str)}
    for pair in PLACE_NAMES:
        if all(known.count(name) == 1 for name in pair):
            return there[pair[0]], there[pair[1]]
    return None


def places_asked(lon: str, lat: str, names: Sequence[Any]) -> tuple[str, str]:
    """Return the columns that a caller means: those that are named, if not by default."""
    if (lon, lat) != USUAL or (lon in names and lat in names):
        return lon, lat
    return place_columns(names) or USUAL
