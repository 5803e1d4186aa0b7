"""Bytes as text inside JSON: base64 of zlib. Reading never unpacks more than is wanted."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpregions.errors import InputError


def packed(raw: bytes) -> str:
    """Return bytes as text; `unpacked` reads it back."""
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def unpacked(text: object, wanted: int, what: str, error: type[InputError]) -> bytes:
    """Return so many bytes out of text; refuse anything else by an error that says what it is."""
    if not isinstance(text, str):
        raise error(f"{what} are not text")
    unpack = zlib.decompressobj()
    try:
        raw = unpack.decompress(base64.b64decode(text, validate=True), wanted + 1)
    except (zlib.error, ValueError):
        raise error(f"{what} cannot be unpacked") from None
    if len(raw) != wanted or not unpack.eof:
        raise error(f"{what} are not of its size")
    return raw
