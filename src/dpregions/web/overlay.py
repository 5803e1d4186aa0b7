"""Areas to draw over the map, read once at start: GeoJSON by itself, others as a query has them."""

from __future__ import annotations

import json
from pathlib import Path

from dpregions.errors import Argument, InputError
from dpregions.io import layer_files
from dpregions.io.area_files import read_areas
from dpregions.web.problems import Problem
from dpregions.web.questions import features_of
from dpregions.web.settings import Limits

_OVERLAY = Argument("overlay")
_LIMITS = Limits(features=50_000, vertices=2_000_000)
"""Of an overlay: the page draws it as it is."""


def read_overlay(path: Path) -> bytes:
    """Return areas as GeoJSON in longitude and latitude."""
    if path.suffix.lower() not in (".geojson", ".json"):
        return _converted(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(_OVERLAY, f" {path} cannot be read: {error.strerror}") from None
    try:
        return json.dumps(features_of(data, _LIMITS)).encode()
    except Problem as problem:
        raise InputError(_OVERLAY, f" {path}: {problem.detail}") from None


def _converted(path: Path) -> bytes:
    areas = read_areas(path, _OVERLAY)
    if areas.crs is None:
        raise InputError(_OVERLAY, f" {path} names no CRS: save it with one")
    return layer_files.geojson(areas, path.stem)
