"""Files written whole or not at all: a temporary file beside the target, then a rename.

Whoever reads the target sees the old file or the new one, never a part, whenever the writer
is stopped. A writer killed outright may leave a hidden ``.NAME.*.part`` beside it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET, PUBLIC = 0o600, 0o644
"""Modes of files: for the owner's eyes, or as the user's umask allows."""


@contextmanager
def replacing(path: Path | str, *, mode: int = PUBLIC, fresh: bool = False) -> Iterator[Path]:
    """Give a temporary path to write; put it in place of `path` when all went well.

    The data reach the disk before the new name does. After an error nothing is left behind,
    and what was at `path` stays. The temporary file keeps the suffix of `path`, which some
    writers choose their format by. With `fresh`, a file that is at `path` by then is never
    replaced: FileExistsError.
    """
    path = Path(path)
    part, mode = _part_of(path, mode)
    try:
        yield part
        with open(part, "rb+") as written:
            os.fsync(written.fileno())
        os.chmod(part, mode)
        _put(part, path, fresh)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            _name_target(error, part, path)
        raise
    _sync_folder(path.absolute().parent)


def try_out(path: Path | str) -> None:
    """Fail as `replacing` would where its folder or its name cannot be written."""
    _part_of(Path(path), SECRET)[0].unlink()


def _part_of(path: Path, mode: int) -> tuple[Path, int]:
    """Make an empty file beside `path`, the owner's alone; return it, and the mode it is to get.

    The system takes the umask off when it makes the file, which then tells. Asking for the umask
    would set it for a moment, and all threads share it.
    """
    part = path.absolute().parent / f".{path.name}.{secrets.token_hex(8)}.part{path.suffix}"
    try:
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except OSError as error:
        _name_target(error, part, path)
        raise
    try:
        made = stat.S_IMODE(os.fstat(handle).st_mode)
        os.chmod(part, SECRET)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return part, SECRET if mode == SECRET else made


def _name_target(error: OSError, part: Path, path: Path) -> None:
    """Let an error name the file that was to be written, where it names the temporary one or none.

    Nobody looks for a hidden file that is gone by then.
    """
    if error.errno is not None and (error.filename is None or part.name in str(error.filename)):
        error.filename, error.filename2 = str(path), None
    error.args = tuple(
        arg.replace(str(part), str(path)).replace(part.name, path.name)
        if isinstance(arg, str)
        else arg
        for arg in error.args
    )


def _put(part: Path, path: Path, fresh: bool) -> None:
    """Give a written file its name; a fresh one only if nobody has it."""
    if fresh:
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: take the name first
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, SECRET))
        else:
            part.unlink()
            return
    os.replace(part, path)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
