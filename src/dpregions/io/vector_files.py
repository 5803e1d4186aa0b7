"""GeoPackage, FlatGeobuf, GeoJSON and Shapefile, through GDAL's Arrow stream (pyogrio).

GDAL warns of single records and reads on past the end of a file that was cut short. Here its
warnings are silenced, and a file that ends early is refused.
"""

from __future__ import annotations

import json
import mmap
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from dpregions import arrow_regions
from dpregions.arrow_regions import (
    RegionStream,
    arrow_errors,
    attempt,
    geometry_field,
    in_our_words,
)
from dpregions.crs import read_crs
from dpregions.errors import InputError, InputTypeError
from dpregions.io.requests import Request

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

T = TypeVar("T")

_SOUND_FLATGEOBUF = "OGR_FLATGEOBUF_STREAM_BASE_IMPL"
"""GDAL's own reader of FlatGeobuf makes invalid Arrow data after a null geometry (3.12); with
this option GDAL reads the features one by one."""


def open_vector(path: Path, request: Request) -> RegionStream:
    """Open a file that GDAL reads; several layers need `layer`."""
    import pyogrio

    request.refuse_useless("this format", "layer")
    if request.geometry is not None:
        raise InputError("geometry= has no use for this format: its layers mark their geometry")
    place = str(path)
    if path.suffix.lower() in (".shp", ".zip"):
        place = whole_shapefiles(path)
    damaged = InputError(f"{path} is cut short, damaged or not of the format its name says")
    kinds = (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, *arrow_errors())
    layer = attempt(lambda: _layer(path, place, request.layer), kinds, damaged)
    info = attempt(lambda: _quietly(lambda: pyogrio.read_info(place, layer=layer)), kinds, damaged)
    if info["driver"] == "GeoJSONSeq":
        attempt(lambda: _read_last_line(path), (ValueError, RecursionError), damaged)
    ids = request.id_columns(list(info["fields"]))
    if info["driver"] == "ESRI Shapefile":
        _refuse_rounded(ids, dict(zip(info["fields"], info["ogr_types"], strict=True)))
    batches = in_our_words(_batches(place, layer, ids, info["features"], request), kinds, damaged)
    schema = next(batches)
    geometry, _ = geometry_field(schema)
    return request.stream(batches, schema, ids, geometry, _crs(info["crs"]))


def _layer(path: Path, place: str, wanted: str | None) -> str:
    import pyogrio

    layers = _quietly(lambda: pyogrio.list_layers(place))
    if not len(layers):
        raise OSError  # `attempt` says what it means
    found = [str(name) for name, kind in layers if kind]
    if not found:
        raise InputError(f"{path} has no layer with a geometry")
    if wanted is None and len(found) > 1:
        raise InputError(f"{path} has several layers: choose one by layer=, of {_listed(found)}")
    if wanted is not None and wanted not in found:
        raise InputError(f"layer={wanted!r} is not in {path}: there are {_listed(found)}")
    return wanted or found[0]


def _refuse_rounded(ids: list[str], kinds: dict[str, str]) -> None:
    """Refuse ids that a Shapefile gives as floats: so come whole numbers beyond 18 digits too."""
    for name in ids:
        if kinds[name] == "OFTReal":
            raise InputTypeError(
                f"user_id={name!r} is a decimal or a very long number in this Shapefile, which "
                f"would be rounded, and several users taken for one: make it text or whole "
                f"numbers of up to 18 digits"
            )


def _read_last_line(path: Path) -> None:
    """Read the last of a file's features, a line each, which GDAL leaves out where it is cut."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = len(text)
        while end and text[end - 1 : end].isspace():
            end -= 1
        # RFC 8142 puts a record separator before each, which may then have several lines.
        start = text.rfind(b"\x1e", 0, end)
        start = text.rfind(b"\n", 0, end) if start < 0 else start
        json.loads(text[start + 1 : end])


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _crs(described: str | None) -> CRS | None:
    """Return a layer's CRS; GeoPackage has a name for none."""
    if described is None:
        return None
    crs = read_crs(described)
    return None if crs.name.lower().startswith("undefined") else crs


def _quietly(call: Callable[[], T]) -> T:
    """Return what a call does without GDAL's warnings, which may quote a record."""
    import pyogrio

    before = pyogrio.get_gdal_config_option(_SOUND_FLATGEOBUF)
    pyogrio.set_gdal_config_options({_SOUND_FLATGEOBUF: True})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    finally:
        pyogrio.set_gdal_config_options({_SOUND_FLATGEOBUF: before})


def _batches(
    place: str, layer: str, ids: list[str], n_features: int, request: Request
) -> Iterator[Any]:
    """Yield the schema, then the batches; refuse fewer rows than the file says it has."""
    from pyogrio.raw import open_arrow

    options = {"columns": ids, "layer": layer, "batch_size": arrow_regions.CHUNK_ROWS}
    done = 0
    with ExitStack() as stack:
        arrow = open_arrow(place, use_pyarrow=True, **options)
        _, reader = _quietly(lambda: stack.enter_context(arrow))
        yield reader.schema
        while (batch := _quietly(lambda: _next(reader))) is not None:
            done += batch.num_rows
            yield _sound(batch)
            request.show(done / max(1, n_features))
    if done < n_features:
        raise OSError  # in_our_words says what it means


def _sound(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return a batch that is valid Arrow data, or fail; a text that is none fails nothing."""
    import pyarrow as pa

    columns = [_text(c) if pa.types.is_string(c.type) else c for c in batch.columns]
    batch = pa.record_batch(columns, schema=batch.schema)
    batch.validate(full=True)
    return batch


def _text(column: Any) -> Any:
    """Return a column of text; where bytes are no UTF-8, with an escape for each."""
    import pyarrow as pa

    stored = column.view(pa.binary())
    stored.validate(full=True)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        values = (None if v is None else v.decode("utf-8", "backslashreplace")
                  for v in stored.to_pylist())  # fmt: skip
        return pa.array(values, column.type)
    return column


def _next(reader: Any) -> pyarrow.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


def whole_shapefiles(path: Path) -> str:
    """Return the place of Shapefiles, zipped or not, in GDAL's words.

    Those of which a part is missing or shorter than it says are refused.
    """
    if path.suffix.lower() == ".shp":
        beside = [other for other in path.parent.iterdir() if other.stem == path.stem]
        _refuse_partial(path, [(p.name, p.stat().st_size, _reader(p)) for p in beside])
        return str(path)
    damaged = InputError(f"{path} is cut short, damaged or not a zip file")
    with attempt(lambda: zipfile.ZipFile(path), (zipfile.BadZipFile, OSError), damaged) as archive:
        # A Mac adds files of its own, which begin with ._ and only look like parts.
        entries = [i for i in archive.infolist() if not PurePosixPath(i.filename).match("._*")]
        parts = [(i.filename, i.file_size, _zip_reader(archive, i)) for i in entries]
        stems = {name[:-4] for name, _, _ in parts if name.lower().endswith((".shp", ".dbf"))}
        if not stems:
            raise InputError(f"{path} holds no Shapefile (.shp)")
        for stem in sorted(stems):
            of_stem = [part for part in parts if part[0][:-4] == stem]
            attempt(partial(_refuse_partial, path, of_stem), (zipfile.BadZipFile,), damaged)
    folders = {str(PurePosixPath(stem).parent) for stem in stems}
    if len(folders) > 1:
        raise InputError(f"{path} holds Shapefiles in several folders: unpack it, and open one")
    folder = folders.pop()
    return str(path) if folder == "." else f"/vsizip/{{{path.absolute()}}}/{folder}"


def _reader(path: Path) -> Callable[[], bytes]:
    def head() -> bytes:
        with open(path, "rb") as file:
            return file.read(32)

    return head


def _zip_reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], bytes]:
    def head() -> bytes:
        with archive.open(info) as file:
            return file.read(32)

    return head


def _refuse_partial(path: Path, parts: list[tuple[str, int, Callable[[], bytes]]]) -> None:
    """Compare the parts of one Shapefile with the lengths in their headers."""
    there = {name[-4:].lower(): (size, head) for name, size, head in parts}
    missing = [suffix for suffix in (".shp", ".shx", ".dbf") if suffix not in there]
    if missing:
        raise InputError(
            f"{path}: a Shapefile is several files, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing here"
        )
    for suffix in (".shp", ".shx", ".dbf"):
        size, head = there[suffix]
        start = head()
        if len(start) < 32 or size < _stated_size(suffix, start):
            raise InputError(f"{path}: its {suffix} is cut short")


def _stated_size(suffix: str, head: bytes) -> int:
    if suffix == ".dbf":
        rows, header, row = struct.unpack_from("<IHH", head, 4)
        return int(header + rows * row)
    return 2 * int(struct.unpack_from(">I", head, 24)[0])
