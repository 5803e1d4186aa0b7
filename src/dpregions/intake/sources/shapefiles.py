"""Shapefiles, also zipped: geometries (.shp) by their index (.shx), ids from the table (.dbf).

Owns which files belong together and whether each is whole. Only parts of the Shapefile that was
asked for are opened, whatever else lies beside them or in the archive. A row and a geometry of one
number are one record.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from dpregions.errors import InputError
from dpregions.intake.arrow import RegionStream, attempt
from dpregions.intake.sources import dbf, records
from dpregions.intake.sources.requests import Request
from dpregions.intake.sources.shapes import shape_wkb
from dpregions.memory import memory_bytes
from dpregions.readable_files import refuse_unreadable

if TYPE_CHECKING:
    from pyproj import CRS

_ZIP_KINDS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_KINDS = (OSError, struct.error, ValueError, *_ZIP_KINDS)
_PARTS = (".shp", ".shx", ".dbf")
_HEAD = 100
_CODE, _VERSION = (9994).to_bytes(4, "big"), (1000).to_bytes(4, "little")
_ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class _Part:
    """One file of a Shapefile, in a folder or in an archive."""

    name: str
    size: int
    open: Callable[[], AbstractContextManager[IO[bytes]]]

    def head(self, size: int) -> bytes:
        with self.open() as file:
            return file.read(size)


Parts = dict[str, _Part]
"""The files of one Shapefile by their suffix."""


def open_shapefile(path: Path, request: Request) -> RegionStream:
    """Open a Shapefile by its .shp, or one in a .zip; several need `layer`."""
    records.refuse_useless(request)
    damaged = records.damaged(path)
    found = _zipped(path) if path.suffix.lower() == ".zip" else {path.stem: _beside(path)}
    for parts in found.values():
        _refuse_missing(path, parts)
        attempt(partial(_refuse_partial, path, parts), (OSError, *_ZIP_KINDS), damaged)
    parts = found[records.one_layer(path, list(found), request.layer)]
    table = attempt(lambda: _read_table(parts), _KINDS, damaged)
    ids = request.id_columns([field.name for field in table.fields])
    readers = [dbf.id_reader(table.field(name)) for name in ids]
    at_once = min(_ROWS_AT_ONCE, request.chunk_rows)
    rows = _records(parts, table, readers, at_once)
    crs = _crs(path, parts)
    return records.stream(path, rows, _KINDS, ids, request, crs)


def _beside(path: Path) -> Parts:
    there = [p for p in path.parent.iterdir() if p.stem == path.stem and p.is_file()]
    for part in there:
        refuse_unreadable(part)
    parts = [_Part(p.name, p.stat().st_size, partial(_opened, p)) for p in there]
    return {part.name[-4:].lower(): part for part in parts}


def _opened(path: Path) -> IO[bytes]:
    return open(path, "rb")


def _zipped(path: Path) -> dict[str, Parts]:
    """Return the Shapefiles of an archive by their names, all of which lie in one folder."""
    no_zip = InputError(f"{path} is cut short, damaged or not a zip file")
    with attempt(
        lambda: zipfile.ZipFile(path), (*_ZIP_KINDS, OSError, ValueError), no_zip
    ) as zipped:
        # A Mac adds files of its own, which begin with ._ and only look like parts.
        entries = [i for i in zipped.infolist() if not PurePosixPath(i.filename).match("._*")]
    stems = {i.filename[:-4] for i in entries if i.filename.lower().endswith((".shp", ".dbf"))}
    if not stems:
        raise InputError(f"{path} holds no Shapefile (.shp)")
    if len({PurePosixPath(stem).parent for stem in stems}) > 1:
        raise InputError(f"{path} holds Shapefiles in several folders: unpack it, and open one")
    found: dict[str, Parts] = {PurePosixPath(stem).name: {} for stem in sorted(stems)}
    for entry in entries:
        if entry.filename[:-4] in stems:
            part = _Part(entry.filename, entry.file_size, partial(_unzipped, path, entry))
            found[PurePosixPath(part.name[:-4]).name][part.name[-4:].lower()] = part
    return found


@contextmanager
def _unzipped(path: Path, entry: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    """Open a part of an archive; whole in memory, as going back in it would unpack it again."""
    if entry.file_size > memory_bytes() / 4:
        raise InputError(f"{path} is too large to be unpacked in memory: unpack it, and open one")
    with zipfile.ZipFile(path) as archive:
        yield io.BytesIO(archive.read(entry))


def _refuse_missing(path: Path, parts: Parts) -> None:
    missing = [suffix for suffix in _PARTS if suffix not in parts]
    if missing:
        raise InputError(
            f"{path}: a Shapefile is several files, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing here"
        )


def _refuse_partial(path: Path, parts: Parts) -> None:
    """Compare the parts of one Shapefile with the lengths in their headers."""
    for suffix in _PARTS:
        head = parts[suffix].head(_HEAD)
        if len(head) < 32 or parts[suffix].size < _stated_size(suffix, head):
            raise InputError(f"{path}: its {suffix} is cut short")
        if suffix != ".dbf" and (head[:4], head[28:32]) != (_CODE, _VERSION):
            raise records.damaged(path)


def _stated_size(suffix: str, head: bytes) -> int:
    if suffix == ".dbf":
        return dbf.stated_size(head)
    return max(_HEAD, 2 * int(struct.unpack_from(">I", head, 24)[0]))


def _read_table(parts: Parts) -> dbf.TableHeader:
    """Return the header of the table; fail where it has not a row for each geometry."""
    start = struct.unpack_from("<H", parts[".dbf"].head(32), 8)[0]
    table = dbf.read_header(parts[".dbf"].head(start))
    if table.n_rows != (_stated_size(".shx", parts[".shx"].head(_HEAD)) - _HEAD) // 8:
        raise ValueError
    return table


def _crs(path: Path, parts: Parts) -> CRS | None:
    """Return the CRS, as its authority has it: a Shapefile's own words leave much out."""
    if ".prj" not in parts:
        return None
    wkt = attempt(lambda: parts[".prj"].head(1 << 20), _KINDS, records.damaged(path))
    crs = records.stated_crs(path, wkt.decode("utf-8", "replace").strip("\ufeff \0\r\n\t"))
    known = None if crs is None else crs.to_authority(min_confidence=90)
    return crs if known is None else records.stated_crs(path, None, *known)


def _records(
    parts: Parts,
    table: dbf.TableHeader,
    readers: list[Callable[[bytes], str | None]],
    at_once: int,
) -> Iterator[records.Record]:
    """Yield the rows that were not deleted, each with its geometry."""
    with ExitStack() as stack:
        shapes, index, rows = (stack.enter_context(parts[suffix].open()) for suffix in _PARTS)
        index.seek(_HEAD)
        rows.seek(table.start)
        for start in range(0, table.n_rows, at_once):
            count = min(at_once, table.n_rows - start)
            places = struct.iter_unpack(">ii", _exactly(index, 8 * count))
            block = _exactly(rows, table.row * count)
            for i, place in enumerate(places):
                row = block[i * table.row : (i + 1) * table.row]
                if not dbf.is_deleted(row):
                    yield [read(row) for read in readers], _shape(shapes, *place)


def _shape(shapes: IO[bytes], place: int, length: int) -> bytes | None:
    """Return the geometry at a place, which counts in pairs of bytes as the length does."""
    if length <= 0:
        return None
    shapes.seek(2 * place + 8)
    return shape_wkb(_exactly(shapes, 2 * length))


def _exactly(file: IO[bytes], size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found
