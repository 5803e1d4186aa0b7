"""The catalogue of patterns as text, to travel inside a release file.

JSON of a few arrays of whole numbers, each the base64 of zlib of its little-endian bytes. Making
the catalogue anew would need the very version of the software that made the release. Reading
trusts nothing: sizes are bounded before anything is unpacked.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import ReleaseFileError
from dpregions.geometry.lattice import STEPS
from dpregions.mechanisms.footprint.buckets import MOST_CELLS_WIDE
from dpregions.mechanisms.footprint.catalogue import CORNERS, PATTERNS_A_FOOTPRINT, Catalogue

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMIT = 1 << 24
"""Most characters of a catalogue's text: footprints 24 cells wide need a third of it."""

_DTYPES = {
    "heights": "<u1",
    "widths": "<u1",
    "spans": "<i1",
    "times": "<i4",
    "corners": "<u1",
    "xy": "<i4",
}


def catalogue_to_text(catalogue: Catalogue) -> str:
    """Return a catalogue as text; `catalogue_from_text` reads it back to the last bit."""
    corners = np.diff(catalogue.offsets)
    fields: dict[str, Any] = {"side": catalogue.side, "patterns": len(catalogue)}
    for name, dtype in _DTYPES.items():
        values = corners if name == "corners" else getattr(catalogue, name)
        packed = zlib.compress(values.astype(dtype).tobytes(), 9)
        fields[name] = base64.b64encode(packed).decode("ascii")
    return json.dumps(fields)


def catalogue_from_text(text: str) -> Catalogue:
    """Return the catalogue that `catalogue_to_text` wrote; refuse anything else."""
    fields = json.loads(text)
    if not isinstance(fields, dict) or fields.keys() != {"side", "patterns", *_DTYPES}:
        raise ReleaseFileError("the catalogue of patterns has other fields than it must")
    side, n = fields["side"], fields["patterns"]
    whole = all(type(value) is int for value in (side, n))
    if not whole or not 1 <= side <= MOST_CELLS_WIDE or not 1 <= n <= side**2 * _MOST:
        raise ReleaseFileError("the catalogue of patterns has a size that none has")
    arrays = {
        name: _unpacked(fields[name], name, shape)
        for name, shape in {
            "heights": (n,),
            "widths": (n,),
            "spans": (n, 2 * side - 1, 2),
            "times": (n,),
            "corners": (n,),
        }.items()
    }
    n_corners = int(arrays["corners"].sum(dtype=np.int64))
    arrays["xy"] = _unpacked(fields["xy"], "xy", (n_corners, 2))
    _refuse_impossible(side, **arrays)
    spans = arrays.pop("spans").astype(np.int16)
    return Catalogue.of(
        side, spans=spans, **{name: values.astype(np.int64) for name, values in arrays.items()}
    )


# Of each footprint the most frequent patterns, its diamond among them or not.
_MOST = PATTERNS_A_FOOTPRINT


def _unpacked(text: object, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = np.dtype(_DTYPES[name])
    wanted = math.prod(shape) * dtype.itemsize
    if not isinstance(text, str):
        raise ReleaseFileError(f"the catalogue's {name} are no text")
    unpack = zlib.decompressobj()
    try:
        raw = unpack.decompress(base64.b64decode(text, validate=True), wanted + 1)
    except (zlib.error, ValueError):
        raise ReleaseFileError(f"the catalogue's {name} cannot be unpacked") from None
    if len(raw) != wanted or not unpack.eof:
        raise ReleaseFileError(f"the catalogue's {name} are not of its size")
    return np.frombuffer(raw, dtype).reshape(shape)


def _refuse_impossible(
    side: int,
    heights: NDArray[Any],
    widths: NDArray[Any],
    spans: NDArray[Any],
    times: NDArray[Any],
    corners: NDArray[Any],
    xy: NDArray[Any],
) -> None:
    """Refuse values that no catalogue has; what is computed from them stays in range."""
    size = heights.astype(np.int64) * (side + 1) + widths
    line = np.arange(2 * side - 1)
    low, high = spans[:, :, 0], spans[:, :, 1]
    outside = line >= 2 * heights[:, None].astype(np.int64) - 1
    empty = (low == 1) & (high == 0)
    inside = (low >= 0) & (low <= high) & (high < widths[:, None])
    good = (
        all(((v >= 1) & (v <= side)).all() for v in (heights, widths))
        and (np.diff(size) >= 0).all()
        and np.bincount(size).max() <= _MOST
        and np.where(outside, empty, empty | inside).all()
        and (times >= 1).all()
        and ((corners >= 3) & (corners <= CORNERS)).all()
        and ((xy >= 0) & (xy <= side * STEPS)).all()
    )
    if not good:
        raise ReleaseFileError("the catalogue of patterns holds values that none has")
