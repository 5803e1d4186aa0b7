"""Areas to draw over the map, read once at start: GeoJSON by itself, other formats by geopandas."""

from __future__ import annotations

import json
from pathlib import Path

from dpregions.errors import InputError, MissingExtraError
from dpregions.web.problems import Problem
from dpregions.web.questions import features_of
from dpregions.web.settings import Limits

_LIMITS = Limits(features=50_000, vertices=2_000_000)
"""Of an overlay: the page draws it as it is."""


def read_overlay(path: Path) -> bytes:
    """Return areas as GeoJSON in longitude and latitude."""
    if path.suffix.lower() not in (".geojson", ".json"):
        return _converted(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"--overlay {path} cannot be read: {error.strerror}") from None
    try:
        return json.dumps(features_of(data, _LIMITS)).encode()
    except Problem as problem:
        raise InputError(f"--overlay {path}: {problem.detail}") from None


def _converted(path: Path) -> bytes:
    try:
        import geopandas
    except ImportError:
        raise MissingExtraError("geopandas, to read other files than GeoJSON,", "curator") from None

    try:
        frame = geopandas.read_file(path)
    except Exception as error:  # readers of many formats raise as many kinds
        first = (str(error).splitlines() or [""])[0]
        raise InputError(f"--overlay {path} cannot be read: {first}") from None
    if not isinstance(frame, geopandas.GeoDataFrame) or frame.crs is None:
        raise InputError(f"--overlay {path} has no geometries with a CRS")
    text: str = frame.to_crs(4326).to_json(drop_id=True)
    return text.encode()
