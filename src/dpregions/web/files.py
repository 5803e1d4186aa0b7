"""Files that a server hands out: exports, made once when they are first asked for; a basemap.

Exports go into a temporary folder of the server's own, which ends with it: the only thing that it
ever writes.
"""

from __future__ import annotations

import re
import tempfile
import threading
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from dpregions.errors import Argument, InputError
from dpregions.geometry.grid import Grid
from dpregions.io.exports import export
from dpregions.page.single_file import page_html
from dpregions.web.problems import Problem
from dpregions.web.settings import Limits
from dpregions.web.shelf import Shown

MEDIA_TYPES = {
    "gpkg": "application/geopackage+sqlite3",
    "parquet": "application/vnd.apache.parquet",
    "fgb": "application/octet-stream",
    "geojson": "application/geo+json",
    "tif": "image/tiff",
    "html": "text/html",
}
"""Of exports, by their suffix."""

_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")


class Exports:
    """The exports of a server, each made once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._making = threading.Lock()
        self._made: dict[tuple[str, str, int], Path] = {}
        self._folder: Any = None

    def file(self, shown: Shown, suffix: str, block: int) -> Path:
        """Return a file with the cells, or blocks of cells, of a release."""
        n = shown.release.grid.n_components // 4 // block**2
        if n > self._limits.exported and suffix not in ("tif", "html"):
            raise Problem(
                "too-large",
                413,
                f"this is an export of about {n:,} cells, of at most {self._limits.exported:,}: "
                f"give a larger block, or export release.parquet by 'dpregions export'",
                parameter="block",
            )
        key = shown.id, suffix, block
        with self._making:
            if key not in self._made:
                self._made[key] = self._make(shown, suffix, block)
            return self._made[key]

    def _make(self, shown: Shown, suffix: str, block: int) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="dpregions-")
        blocks = "" if block == 1 else f"-blocks-{block}"
        path = Path(self._folder.name) / f"{shown.id}{blocks}.{suffix}"
        if suffix == "html":
            text = page_html(shown.release, name=shown.name, checksum=shown.digest)
            path.write_text(text, encoding="utf-8")
        else:
            export(shown.release, path, "faces", block=block)
        return path

    def close(self) -> None:
        """Remove all that was written."""
        if self._folder is not None:
            self._folder.cleanup()


def check_basemap(path: Path) -> None:
    """Refuse what is no PMTiles file, before the server starts."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
    except OSError as error:
        raise InputError(Argument("basemap"), f" {path} cannot be read: {error.strerror}") from None
    if head != b"PMTiles\x03":
        raise InputError(Argument("basemap"), f" {path} is not a PMTiles file of version 3")


def part_of(path: Path, request: Request, media_type: str) -> Response:
    """Return a file, or the range of bytes that is asked for."""
    asked = request.headers.get("range")
    if asked is not None:
        found = _RANGE.fullmatch(asked)
        if found is None or (found[2] and int(found[2]) < int(found[1])):
            raise Problem("input", 400, "Range is one range of bytes here, such as bytes=0-511")
        if int(found[1]) >= path.stat().st_size:
            raise Problem("input", 416, "the range begins beyond the end of the file")
    return FileResponse(path, media_type=media_type, headers={"Cache-Control": "no-cache"})


def side_of(text: str, domain: Any) -> int:
    """Return the side of a block: a power of 2, so that few are ever made."""
    longest = max(domain.shape) if isinstance(domain, Grid) else 1
    side = int(text) if text.isdecimal() and len(text) < 8 else 0
    if side < 1 or side & (side - 1) or side > longest:
        raise Problem(
            "parameter",
            422,
            f"block must be 1, 2, 4, 8, ... up to {longest}, got {text!r}",
            parameter="block",
        )
    return side
