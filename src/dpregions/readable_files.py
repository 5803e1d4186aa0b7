"""Files to be read: one rule, and one set of words, for a file that the system does not give us.

Such a file is missing, is a folder, or is not ours to read: never "damaged".
"""

from __future__ import annotations

import os
from pathlib import Path

from dpregions.errors import InputError


def refuse_unreadable(
    path: Path | str,
    *,
    named: str | None = None,
    remedy: str = "",
    error: type[InputError] = InputError,
    argument: str | None = None,
) -> None:
    """Refuse a file that is missing, is a folder, or may not be read.

    Parameters
    ----------
    path : pathlib.Path or str
    named : str, optional
        What the message calls the file: ``--grid area.json``, for instance. By default its path.
    remedy : str, optional
        Where such files come from, for the end of the message.
    error : type, optional
        What to raise.
    argument : str, optional
        The argument that the file was given as.
    """
    try:
        with open(path, "rb"):
            return
    except OSError as failure:
        why = _why_not(failure)
    raise error(f"{named or path}: {why}{remedy and f'; {remedy}'}", argument=argument)


def _why_not(failure: OSError) -> str:
    if isinstance(failure, FileNotFoundError):
        return "there is no such file"
    if isinstance(failure, IsADirectoryError):
        return "this is a folder: name a file"
    if isinstance(failure, PermissionError):
        return "permission denied: you may not read this file, so ask its owner"
    return os.strerror(failure.errno) if failure.errno else type(failure).__name__
