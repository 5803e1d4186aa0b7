"""The catalogue of patterns as text, to travel inside a release file.

JSON of a few arrays of whole numbers, each the base64 of zlib of its little-endian bytes: first the
lowest byte of every number, then the next. Corners are kept as steps from one to the next. Making
the catalogue anew would need the very version of the software that made the release. Reading
trusts nothing: sizes are bounded before anything is unpacked, and every witness is checked.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import ReleaseFileError
from dpregions.geometry.lattice import STEPS
from dpregions.mechanisms.footprint.buckets import MOST_CELLS_WIDE
from dpregions.mechanisms.footprint.catalogue import Catalogue
from dpregions.mechanisms.footprint.ellipses import CORNERS
from dpregions.mechanisms.footprint.sizes import MOST_SIDE, PATTERNS_A_FOOTPRINT, patterns_kept
from dpregions.mechanisms.footprint.witness_check import are_witnesses
from dpregions.mechanisms.footprint.witnesses import OF_A_SIZE
from dpregions.packed_bytes import packed, unpacked

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMIT = 1 << 25
"""Most characters of a catalogue's text: one of all footprints up to 24 cells wide needs two fifths
of it, one of each size up to 65 cells wide three fifths."""
_MOST_WITNESSES = 1 << 20
"""Witnesses of a catalogue: those of all sizes up to 24 or up to 65 cells wide are 600,000 at most.
It bounds the memory and the time that reading takes."""

_DTYPES = {
    "heights": "<u1",
    "widths": "<u1",
    "spans": "<i1",
    "times": "<i4",
    "witnesses": "<u1",
    "corners": "<u1",
    "xy": "<u4",
}


def catalogue_to_text(catalogue: Catalogue) -> str:
    """Return a catalogue as text; `catalogue_from_text` reads it back to the last bit."""
    fields: dict[str, Any] = {"side": catalogue.side, "patterns": len(catalogue)}
    made = {
        "witnesses": np.diff(catalogue.starts),
        "corners": np.diff(catalogue.offsets),
        "xy": _steps(catalogue.xy),
    }
    for name, dtype in _DTYPES.items():
        values = made[name] if name in made else getattr(catalogue, name)
        planes = values.astype(dtype).ravel().view(np.uint8).reshape(values.size, -1).T
        fields[name] = packed(planes.tobytes())
    return json.dumps(fields)


def _steps(xy: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the steps from corner to corner, signs in the last bit: 0, -1, 1, -2, ..."""
    steps = xy.astype(np.int32)
    steps[1:] -= xy[:-1].astype(np.int32)
    return (steps << 1) ^ (steps >> 31)


def _from_steps(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the corners that `_steps` was given, in the same memory: there are many."""
    signs = -(steps & 1)
    steps >>= 1
    steps ^= signs
    return np.cumsum(steps, axis=0, out=steps)


def catalogue_from_text(text: str, bound: int) -> Catalogue:
    """Return the catalogue that `catalogue_to_text` wrote; refuse anything else.

    `bound` is the most that a witness is long, in lattice steps.
    """
    fields = json.loads(text)
    if not isinstance(fields, dict) or fields.keys() != {"side", "patterns", *_DTYPES}:
        raise ReleaseFileError("the catalogue of patterns has other fields than it must")
    side, n = fields["side"], fields["patterns"]
    whole = all(type(value) is int for value in (side, n))
    if not whole or not 1 <= side <= MOST_SIDE or not 1 <= n <= _most_patterns(side).sum():
        raise ReleaseFileError("the catalogue of patterns has a size that none has")
    arrays = {
        name: _unpacked(fields[name], name, shape)
        for name, shape in {
            "heights": (n,),
            "widths": (n,),
            "spans": (n, 2 * side - 1, 2),
            "times": (n,),
            "witnesses": (n,),
        }.items()
    }
    n_witnesses = int(arrays["witnesses"].sum(dtype=np.int64))
    if n_witnesses > _MOST_WITNESSES:
        raise ReleaseFileError("the catalogue of patterns has more witnesses than any has")
    arrays["corners"] = _unpacked(fields["corners"], "corners", (n_witnesses,))
    n_corners = int(arrays["corners"].sum(dtype=np.int64))
    arrays["xy"] = _from_steps(_unpacked(fields["xy"], "xy", (n_corners, 2)).astype(np.int64))
    _refuse_impossible(side, **arrays)
    spans = arrays.pop("spans").astype(np.int16)
    whole_numbers = {name: values.astype(np.int64, copy=False) for name, values in arrays.items()}
    known = Catalogue.of(side, spans=spans, **whole_numbers)
    pattern = np.repeat(np.arange(n), np.diff(known.starts))
    what = known.heights, known.widths, known.spans
    if not are_witnesses(known.xy, known.offsets, *what, pattern, bound):
        raise ReleaseFileError("the catalogue of patterns has witnesses that are none")
    return known


def _most_patterns(side: int) -> NDArray[np.int64]:
    """Return how many patterns of each size ``[h, w]`` a catalogue has at most.

    Where it may be a whole one, as many as that keeps of a footprint; else what one of sizes keeps.
    """
    most = np.zeros((side + 1, side + 1), np.int64)
    for h in range(1, side + 1):
        for w in range(1, side + 1):
            most[h, w] = PATTERNS_A_FOOTPRINT if side <= MOST_CELLS_WIDE else patterns_kept(h, w)
    return most


def _unpacked(text: object, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = np.dtype(_DTYPES[name])
    wanted = math.prod(shape) * dtype.itemsize
    raw = unpacked(text, wanted, f"the catalogue's {name}", ReleaseFileError)
    planes = np.frombuffer(raw, np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype).reshape(shape)


def _refuse_impossible(
    side: int,
    heights: NDArray[Any],
    widths: NDArray[Any],
    spans: NDArray[Any],
    times: NDArray[Any],
    witnesses: NDArray[Any],
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
        and (np.bincount(size, minlength=(side + 1) ** 2) <= _most_patterns(side).ravel()).all()
        and np.where(outside, empty, empty | inside).all()
        and (times >= 1).all()
        and ((witnesses >= 1) & (witnesses <= OF_A_SIZE)).all()
        and ((corners >= 3) & (corners <= CORNERS)).all()
        and ((xy >= 0) & (xy <= side * STEPS)).all()
    )
    if not good:
        raise ReleaseFileError("the catalogue of patterns holds values that none has")
