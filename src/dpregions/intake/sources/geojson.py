"""GeoJSON, read by a reader of our own: a collection of features, or a sequence of them.

Owns what the file is: one FeatureCollection, or a sequence of features and geometries (each in
its line, or after a record separator, RFC 8142; one alone is a sequence too). That and the CRS
are told by the brackets of the file and by the members of the collection, never by a feature.
Broken brackets and quotes are refused without position or text; a feature is read by itself
(`geojson_features.py`), and one that is too long, too deep or not JSON counts nowhere.

GeoJSON declares no columns. So a property that no feature has cannot be refused, as a single
feature that has it would decide: features without it count nowhere. No other file is opened.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.crs import read_crs
from dpregions.errors import Argument, CRSError, DPRegionsWarning, InputError
from dpregions.intake.arrow import RegionStream, attempt, in_our_words
from dpregions.intake.ids import NumberToken
from dpregions.intake.sources.geojson_features import COLLECTIONS, DEEPEST, row
from dpregions.intake.sources.records import record_batch, record_schema
from dpregions.intake.sources.requests import Request

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

UNDECLARED = DPRegionsWarning(
    "GeoJSON declares no columns: features without the property that ",
    Argument("user_id", ""),
    " names count nowhere, and a release does not tell how many; 'dpregions check' does",
)
"""What is true of every GeoJSON file, to be shown to those who name a column of ids."""

BLOCK_BYTES = 1 << 22
"""Bytes of the file that are read at once."""

FEATURE_BYTES = 1 << 24
"""A longer feature counts nowhere: as Python's objects it would take a hundred times as much."""

OUTER_BYTES = FEATURE_BYTES
"""What may stand in a collection beside its lists."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SURVEY_SHARE = 0.1


def open_geojson(path: Path, request: Request, block_bytes: int = BLOCK_BYTES) -> RegionStream:
    """Open a GeoJSON file; it is read twice, first for its brackets and its CRS."""
    request.refuse_useless("GeoJSON")
    if request.geometry is not None:
        raise InputError(
            Argument("geometry", ""), " has no use for GeoJSON: its features mark their geometry"
        )
    names = request.id_columns(None)
    if any(re.search("[\ud800-\udfff]", name) for name in names):
        raise InputError(
            Argument("user_id", ""), " is not text that UTF-8 can hold: name another property"
        )
    damaged = InputError(f"{path} is cut short, damaged or not GeoJSON")
    _refuse_too_deep_a_call()
    survey = attempt(lambda: _Survey.of(path, block_bytes, request), (OSError,), damaged)
    # A file that names no CRS is in WGS 84, unless the caller states another.
    unnamed = read_crs("OGC:CRS84") if request.crs is None else None
    wanted, carried = _described(path, survey, damaged, unnamed)
    schema = record_schema(names)
    batches = _batches(path, wanted, names, schema, request, block_bytes)
    batches = in_our_words(batches, (OSError,), damaged)
    stream = request.stream(batches, schema, names, "geometry", carried)
    stream.spells_values = True
    stream.note = UNDECLARED if names else None
    return stream


# What the file is.


class _Survey(NamedTuple):
    """The outermost objects of a file: how many there are, and what the first one says.

    `members` are those of the first, in order, its lists empty; None where they cannot be read.
    """

    n_objects: int
    too_long: bool
    members: list[tuple[str, Any]] | None

    @classmethod
    def of(cls, path: Path, block_bytes: int, request: Request) -> _Survey:
        """Read a file to its end, or raise OSError where its brackets are broken."""
        from dpregions.intake.sources.json_frames import SURVEY

        frames = _Frames(path, SURVEY, OUTER_BYTES, block_bytes)
        outer, too_long = bytearray(), False
        for texts in frames:
            for text in texts:
                too_long |= text is None or len(outer) + len(text) > OUTER_BYTES
                outer += b"" if text is None or too_long else text
            request.show(_SURVEY_SHARE * frames.share)
        members = None if too_long else _members(outer.decode("utf-8", "replace"))
        return cls(frames.n_objects, too_long, members)


def _members(text: str) -> list[tuple[str, Any]] | None:
    found: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found[:] = pairs  # the outermost object ends last
        return dict(pairs)

    try:
        json.loads(text, object_pairs_hook=keep, parse_int=NumberToken)
    except ValueError:
        return None
    return found


def _described(
    path: Path, survey: _Survey, damaged: InputError, unnamed: CRS | None
) -> tuple[int, CRS | None]:
    """Return which array holds the features, SEQUENCE for none, and the CRS."""
    from dpregions.intake.sources.json_frames import SEQUENCE

    outer = dict(survey.members or ())
    if outer.get("type") == "FeatureCollection":
        if survey.n_objects > 1:
            raise InputError(
                f"{path} goes on after its collection of features: write one collection, or a "
                f"sequence of features, each in its line"
            )
        names = [name for name, _ in survey.members or ()]
        lists = [name for name, value in survey.members or () if type(value) is list]
        if any(names.count(name) > 1 for name in ("type", "crs", "features")):
            raise damaged
        if "features" not in lists:
            raise InputError(f"{path} is a collection of features without a list of them")
        return lists.index("features"), _crs(path, outer) if "crs" in outer else unnamed
    if survey.n_objects == 1 and survey.too_long:
        raise InputError(
            f"{path} is not GeoJSON, or holds more than {OUTER_BYTES >> 20} MiB beside its lists "
            f"of features and positions: leave that out"
        )
    if survey.n_objects == 1 and survey.members is None:
        raise damaged
    if survey.n_objects == 1 and (outer.get("type") == "Topology" or "geometryType" in outer):
        raise InputError(
            f"{path} is TopoJSON or Esri JSON, not GeoJSON: convert it, for example by ogr2ogr"
        )
    # A single feature goes the way of several: what it says of itself decides nothing else.
    return SEQUENCE, unnamed


_CRS_NAMES = re.compile(
    r"(?:urn:(?:x-)?ogc:def:crs:([a-z]+):[0-9.]*:|https?://www\.opengis\.net/def/crs/([a-z]+)/"
    r"[0-9.]+/|([a-z]+):)([a-z0-9]{1,12})",
    re.I | re.ASCII,
)


def _crs(path: Path, outer: dict[str, Any]) -> CRS | None:
    """Return the CRS that the outermost object names (GeoJSON 2008)."""
    member = outer["crs"]
    if member is None:
        return None
    error = CRSError(
        f"{path}: its member crs cannot be read. Give it the name of a CRS, such as EPSG:25832, "
        f"or leave it out where positions are degrees (WGS 84)"
    )
    properties = member.get("properties") if type(member) is dict else None
    named = properties.get("name") if type(properties) is dict else None
    if type(named) is not str or member.get("type") != "name":
        raise error
    parts = _CRS_NAMES.fullmatch(named)
    if parts is None:
        raise error
    authority = parts[1] or parts[2] or parts[3]
    return attempt(lambda: read_crs(f"{authority.upper()}:{parts[4]}"), (CRSError,), error)


# The features.


class _Frames:
    """The spans of a file that `_json_frames` finds, as lists of texts, a list for each block.

    A text is None where it is longer than `most` or nested too deep. Raises OSError where the
    brackets are broken.
    """

    def __init__(self, path: Path, wanted: int, most: int, block_bytes: int) -> None:
        self._path, self._wanted, self._most = path, wanted, most
        self._block_bytes = block_bytes
        self.n_objects = 0
        self.share = 0.0

    def __iter__(self) -> Iterator[list[bytes | None]]:
        from dpregions.intake.sources import json_frames as kernel

        state, kinds = kernel.at_the_start()
        spans = np.empty((self._block_bytes // 2 + 1, 3), np.int64)
        begun = bytearray()
        with open(self._path, "rb") as file:
            size = max(1, os.fstat(file.fileno()).st_size)
            if file.read(3) != _BYTE_ORDER_MARK:
                file.seek(0)
            while block := file.read(self._block_bytes):
                bytes_of = np.frombuffer(block, np.uint8)
                n = kernel.scan(bytes_of, state, kinds, self._wanted, spans)
                if n == kernel.BROKEN:
                    raise OSError  # our words are found by those who open the file
                self.share = file.tell() / size
                yield [self._text(begun, block, *span) for span in spans[:n].tolist()]
                if state[kernel.OPEN]:
                    self._begin(begun, block, -int(state[kernel.START]))
        self.n_objects = int(state[kernel.N_OBJECTS])
        if state[kernel.DEPTH]:
            raise OSError

    def _text(
        self, begun: bytearray, block: bytes, first: int, last: int, depth: int
    ) -> bytes | None:
        if last - first > self._most or depth > DEEPEST:
            return None
        return block[first:last] if first >= 0 else bytes(begun) + block[:last]

    def _begin(self, begun: bytearray, block: bytes, length: int) -> None:
        """Keep what is there of a text that goes on in the next block, unless it is too long."""
        if length <= len(block):
            begun[:] = block[-length:]
        else:
            begun += block
        if length > self._most:
            begun.clear()


def _batches(
    path: Path,
    wanted: int,
    names: list[str],
    schema: pyarrow.Schema,
    request: Request,
    block_bytes: int,
) -> Iterator[pyarrow.RecordBatch]:
    """Yield ids and regions, a batch for each block: `RegionStream` cuts them to its chunks."""
    frames = _Frames(path, wanted, FEATURE_BYTES, block_bytes)
    for texts in frames:
        _refuse_too_deep_a_call()
        # A list for each column: Python would search tuples of rows for cycles, again and again.
        columns: list[list[Any]] = [[] for _ in schema]
        for text in texts:
            values = row(b"" if text is None else text, names)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        if texts:
            yield record_batch(columns, schema)
        request.show(_SURVEY_SHARE + (1 - _SURVEY_SHARE) * frames.share)
    request.show(1.0)


def _refuse_too_deep_a_call() -> None:
    """Refuse every file where the deepest of features could not be read: none decides that."""
    error = InputError(
        "GeoJSON is read within too many calls of functions for Python's recursion limit: raise "
        "it, or call from fewer"
    )
    attempt(lambda: row(_DEEPEST, []), (RecursionError,), error)


def _deepest() -> bytes:
    """Return a feature that is a little deeper than any that is read."""
    inner = '{"type":"MultiPolygon","coordinates":[[[[0,0]]]]}'
    for _ in range(COLLECTIONS):
        inner = f'{{"type":"GeometryCollection","geometries":[{inner}]}}'
    lists = "[" * (DEEPEST + 16) + "]" * (DEEPEST + 16)
    return f'{{"type":"Feature","geometry":{inner},"lists":{lists}}}'.encode()


_DEEPEST = _deepest()
