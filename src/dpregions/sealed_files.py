"""The seal of Parquet files: a digest of a file's bytes, between its columns and its footer.

Readers find both by their places, and never look between. Arrow must not be shown a damaged footer:
it may end the process. The seal finds damage, not forgery: whoever alters a file on purpose can
make it anew. Every refusal is words about the file alone; callers name it and add the remedy.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from dpregions.errors import ReleaseFileError

if TYPE_CHECKING:
    from pathlib import Path

SEAL = b"dpregions seal 1"
_MAGIC = b"PAR1"


class UnsealedError(ReleaseFileError):
    """The file is Parquet, but without a seal."""


def seal(path: Path) -> None:
    """Put the seal into a Parquet file that has none."""
    with open(path, "rb+") as file:
        start = footer_start(file, path.stat().st_size)
        digest = _digest(file, start, start)
        file.seek(start)
        footer = file.read()
        file.seek(start)
        file.write(SEAL + digest + footer)


def footer_start(file: Any, limit: int) -> int:
    """Return where a Parquet file's footer begins, once it can be one, of at most `limit` bytes."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(4)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    if size < 12 or head != _MAGIC or tail[4:] != _MAGIC:
        raise ReleaseFileError("it is no Parquet file, or its end is missing")
    length = int.from_bytes(tail[:4], "little")
    if length > min(size - 12, limit):
        raise ReleaseFileError("it is cut short, or its footer is too long")
    return size - 8 - length


def check_seal(file: Any, limit: int) -> tuple[int, int]:
    """Refuse a file whose bytes are not those that were written, before Arrow sees it.

    Return where its seal begins and where its footer does.
    """
    footer = footer_start(file, limit)
    start = footer - len(SEAL) - hashlib.sha256().digest_size
    file.seek(max(start, 0))
    if start < 4 or file.read(len(SEAL)) != SEAL:
        raise UnsealedError("it is a Parquet file without the seal of dpregions")
    sealed = file.read(footer - start - len(SEAL))
    if _digest(file, start, footer) != sealed:
        raise ReleaseFileError("its bytes do not fit its seal: it was damaged or altered")
    return start, footer


def _digest(file: Any, stop: int, resume: int) -> bytes:
    """Return the SHA-256 of a file's bytes but those from `stop` to `resume`."""
    digest = hashlib.sha256()
    file.seek(0)
    while piece := file.read(min(1 << 20, stop - file.tell())):
        digest.update(piece)
    file.seek(resume)
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.digest()
