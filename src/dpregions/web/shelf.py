"""The releases that a server has: a table made at start, by ids that are never a path.

An id is the file's name as a slug and seven digits of its SHA-256. The bytes of each file are read
once and kept, so what is sent is what was checked, whatever becomes of the file.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dpregions.crs import crs_label
from dpregions.errors import InputError, ReleaseFileError
from dpregions.releases.published import Release, load

_DIGITS = 7
_PER_SECOND = 700_000
"""Components that are prepared in a second, about: it tells clients when to come back."""


class Shown:
    """A release on the shelf.

    Attributes
    ----------
    id : str
    name : str
        Of its file, without the suffix.
    release : Release
    file : bytes
        The release file.
    digest : str
        SHA-256 of the file, in hexadecimal digits.
    """

    def __init__(self, name: str, release: Release, file: bytes) -> None:
        self.name, self.release, self.file = name, release, file
        self.digest = hashlib.sha256(file).hexdigest()
        self.id = f"{_slug(name)}-{self.digest[:_DIGITS]}"
        self._ready = threading.Event()
        self._made: dict[str, bytes] = {}
        self._making = threading.Lock()

    @classmethod
    def from_file(cls, path: Path) -> Shown:
        """Read a release file."""
        file = path.read_bytes() if path.is_file() else b""
        release = load(path)
        if path.read_bytes() != file:
            raise ReleaseFileError(f"{path} was replaced while it was read: start again")
        return cls(path.stem, release, file)

    @classmethod
    def from_release(cls, name: str, release: Release) -> Shown:
        """Take a release that is in memory: its file is made here."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "release.parquet"
            release.save(path)
            return cls(name, release, path.read_bytes())

    @cached_property
    def crs(self) -> str | None:
        """The short name of the release's CRS."""
        crs = self.release.grid.crs
        return None if crs is None else crs_label(crs)

    @cached_property
    def privacy(self) -> dict[str, Any]:
        """What goes with every number."""
        release = self.release
        return {
            "epsilon": str(release.budget),
            "unit": release.unit,
            "neighbours": release.neighbours,
            "private": release.private,
        }

    @property
    def is_ready(self) -> bool:
        """Whether intervals are answered at once."""
        return self._ready.is_set()

    @property
    def seconds_to_wait(self) -> int:
        """About how long `warm` takes."""
        return 1 + self.release.grid.n_components // _PER_SECOND

    def warm(self) -> None:
        """Do what the first answers would have to wait for."""
        release = self.release
        bounds = release.grid.bounds
        for within in ("cells", "shape") if release.asked.answers_shapes else ("cells",):
            selection = release.select(bounds, within=within, crs=None, quiet=True)
            release.answers(selection)
        self._ready.set()

    def packed(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return bytes for the page, compressed: made and packed once, by one thread."""
        with self._making:
            if name not in self._made:
                self._made[name] = gzip.compress(make(), 6, mtime=0)
            return self._made[name]


class Shelf(Mapping[str, Shown]):
    """All releases of a server, by their ids."""

    def __init__(self, shown: Iterable[Shown]) -> None:
        self._shown: dict[str, Shown] = {}
        for one in shown:
            known = self._shown.setdefault(one.id, one)
            if known.digest != one.digest:
                raise InputError(f"two releases have the id {one.id}: rename one of the files")
        if not self._shown:
            raise InputError("give at least one release to serve")

    @classmethod
    def of(cls, releases: Mapping[str, Release] | Iterable[Path | str]) -> Shelf:
        """Return the shelf of releases by their names, or of release files."""
        if isinstance(releases, Mapping):
            return cls(Shown.from_release(name, release) for name, release in releases.items())
        return cls(Shown.from_file(Path(path)) for path in releases)

    def __getitem__(self, id: str) -> Shown:
        return self._shown[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shown)

    def __len__(self) -> int:
        return len(self._shown)

    def warm(self) -> None:
        """Prepare every release, one after another."""
        for shown in self._shown.values():
            shown.warm()


def _slug(name: str) -> str:
    """Return a name in lower-case letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "release"
