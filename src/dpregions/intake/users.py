"""Whose each row is, as words of fixed size: equal words are one user, whatever batch they are in.

Owns how the ids of a stream are compared without a table of all of them. Whole numbers, truth
values and times are their own word, and decimal numbers two, exactly. Text and bytes are two words
of a keyed hash whose key is drawn afresh for each reading: two of n users share them with a chance
below n**2 / 2**129, which is 2e-21 for a billion. What is no id (`intake/ids.py`) has no words.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.intake.geometries import bytes_and_offsets, nulls_of
from dpregions.intake.ids import stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Bools, Ints


class Users(NamedTuple):
    """The users of some rows. Secret."""

    words: NDArray[np.uint64]
    """One row of words for each row."""
    there: Bools
    """Which rows have a user."""

    @classmethod
    def numbered(cls, codes: Ints) -> Users:
        """Return users that are numbers already, -1 for none."""
        return cls(codes.view(np.uint64)[:, None], codes >= 0)


class UserWords:
    """How the ids of one reading become words: the key of its hash. Secret."""

    def __init__(self) -> None:
        self._key = np.frombuffer(os.urandom(16), np.uint64)

    def of(self, columns: list[Any]) -> Users:
        """Return the users of rows whose ids are in one Arrow column, or in several together."""
        parts = [self._of_column(column) for column in columns]
        if len(parts) == 1:
            return parts[0]
        words = np.ascontiguousarray(np.concatenate([part.words for part in parts], axis=1))
        there = np.logical_and.reduce([part.there for part in parts])
        size = 8 * words.shape[1]
        return Users(self._hashed(words.view(np.uint8).reshape(-1), _even(len(words), size)), there)

    def _of_column(self, column: Any) -> Users:
        import pyarrow as pa

        column = stored(column)
        kind, there = column.type, ~nulls_of(column)
        if pa.types.is_null(kind) or kind == pa.binary(0):
            return Users(np.zeros((len(column), 1), np.uint64), np.zeros(len(column), np.bool_))
        if kind == pa.large_binary():
            octets, offsets = bytes_and_offsets(column)
            return Users(self._hashed(octets, offsets), there & (np.diff(offsets) > 0))
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
            size = kind.byte_width
            octets = _read_only(np.frombuffer(column.buffers()[1], np.uint8))
            octets = octets[column.offset * size : (column.offset + len(column)) * size]
            if size == 16:
                return Users(octets.view(np.uint64).reshape(-1, 2), there)
            return Users(self._hashed(octets, _even(len(column), size)), there)
        return Users(_whole(column)[:, None], there)

    def _hashed(self, octets: Any, offsets: Ints) -> NDArray[np.uint64]:
        from dpregions.intake.hash_kernel import hashes

        return hashes(_read_only(octets), offsets, self._key)


def _whole(column: Any) -> NDArray[np.uint64]:
    """Return values of at most 64 bits, each as one word; those of nulls do not matter."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
    wide = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
    return wide.view(np.uint64)


def _even(n: int, size: int) -> Ints:
    return np.arange(n + 1) * size


def _read_only(octets: Any) -> Any:
    octets = octets.view()
    octets.flags.writeable = False  # so that the hash is compiled once
    return octets


def exact_ids(column: Any) -> tuple[Any, Bools]:
    """Return ids as an Arrow array of whole numbers or of bytes, and which rows have one.

    For engines that compare ids themselves: equal values are one user, and only these.
    """
    import pyarrow as pa

    column = stored(column)
    kind, there = column.type, ~nulls_of(column)
    if pa.types.is_null(kind) or kind == pa.binary(0):
        return pa.array(np.zeros(len(column), np.int64)), np.zeros(len(column), np.bool_)
    if kind == pa.large_binary():
        there &= np.diff(bytes_and_offsets(column)[1]) > 0
        return column.cast(pa.binary()), there
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        fixed = pa.binary(kind.byte_width)
        buffers = [None, column.buffers()[1]]
        bare = pa.Array.from_buffers(fixed, len(column), buffers, offset=column.offset)
        return bare.cast(pa.binary()), there
    return pa.array(_whole(column).view(np.int64)), there
