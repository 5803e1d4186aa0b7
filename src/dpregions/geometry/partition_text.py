"""A partition as text and as a file: exact, and read without trust.

JSON with arrays of whole numbers, each the base64 of zlib of its little-endian bytes. The integers
are stored, never the sites or polygons they were made of: other versions of GEOS would make other
ones. Reading bounds every size before anything is unpacked, then runs the certificate. The cells
in a file are for people; nobody reads them back.
"""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.atomic_files import replacing
from dpregions.crs import projected_crs
from dpregions.errors import DPRegionsError, GridError, ReleaseFileError
from dpregions.geometry.complexes import (
    ACROSS,
    MARGIN,
    MOST_FACES,
    MOST_POINTS,
    MOST_SLACK,
    Complex,
)
from dpregions.geometry.drawn_cells import checked_labels, convex_ring, grown
from dpregions.geometry.tilings import refuse_step
from dpregions.packed_bytes import packed, unpacked
from dpregions.readable_files import refuse_unreadable
from dpregions.sealed_files import check_seal, footer_start, seal

if TYPE_CHECKING:
    import geopandas
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.geometry.grid import Grid

LIMIT = 1 << 28
"""Most characters of a partition's text."""

_FOOTER_LIMIT = 2 * LIMIT
"""Most bytes of a file's footer: Arrow keeps the metadata twice, once packed as base64."""

_KEY = b"dpregions_partition"
_DTYPES = {"x": "<i4", "y": "<i4", "sizes": "<i4", "points": "<i4", "area": "<i4"}
_NUMBERS = {"n_faces", "n_points", "n_corners", "n_area", "slack"}
_FIELDS = {"dpregions", "version", "made_by", "crs", "labels", "origin", "step"}
_GRID_FIELDS = {"dpregions", "version", "grid"}


def partition_to_text(
    made: Complex,
    labels: tuple[Any, ...],
    crs: CRS | None,
    made_by: str,
    grid: Grid | None,
    cap: int | None,
) -> str:
    """Return a partition as text. Of a grid, the grid: its cells follow from it."""
    fields: dict[str, Any] = {"dpregions": "partition", "version": 1, "cap": cap}
    if grid is not None:
        return json.dumps(fields | {"grid": json.loads(grid.to_json())})
    fields |= {
        "made_by": made_by,
        "crs": None if crs is None else crs.to_json_dict(),
        "labels": list(labels),
        "origin": list(made.origin),
        "step": made.step,
        "slack": made.slack,
        "n_faces": made.n_faces,
        "n_points": made.x.size,
        "n_corners": made.points.size,
        "n_area": len(made.area),
    }
    arrays = {name: np.asarray(getattr(made, name, None)) for name in ("x", "y", "points", "area")}
    arrays["sizes"] = np.diff(made.offsets)
    for name, dtype in _DTYPES.items():
        fields[name] = packed(arrays[name].astype(dtype).tobytes())
    return json.dumps(fields)


def partition_from_text(
    text: str,
) -> tuple[Any, ...]:
    """Return what `partition_to_text` was given; refuse anything else."""
    if not isinstance(text, str) or len(text) > LIMIT:
        raise GridError("this is not a partition's JSON, or it is too long", argument="text")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise GridError("this is not a partition's JSON", argument="text") from None
    if not isinstance(fields, dict) or fields.get("dpregions") != "partition":
        raise GridError('this is not a partition\'s JSON: no field "dpregions": "partition"')
    if fields.get("version") != 1:
        raise GridError(
            f"partition JSON of version {fields.get('version')!r}; this release reads version 1"
        )
    cap = fields.pop("cap", None)
    if cap is not None and (type(cap) is not int or cap < 1 or cap % 2 == 0):
        raise GridError("partition JSON has a cap that is not an odd number of 1 or more")
    if fields.keys() == _GRID_FIELDS:
        from dpregions.geometry.grid import Grid

        return None, None, None, "grid", Grid.from_json(json.dumps(fields["grid"])), cap
    if fields.keys() != _FIELDS | _NUMBERS | _DTYPES.keys():
        raise GridError("partition JSON has other fields than it must")
    _refuse_sizes(fields)
    n_points, n_area = fields["n_points"], fields["n_area"]
    shapes = {
        "x": (n_points,),
        "y": (n_points,),
        "sizes": (fields["n_faces"],),
        "points": (fields["n_corners"],),
        "area": (n_area, 2),
    }
    arrays = {name: _unpacked(fields[name], name, shape) for name, shape in shapes.items()}
    sizes = arrays.pop("sizes").astype(np.int64)
    made = Complex(
        **arrays,
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        origin=tuple(fields["origin"]),
        step=fields["step"],
        slack=fields["slack"],
    )
    made.check()
    _refuse_lattice(made)
    _refuse_area(made, fields["made_by"])
    labels = fields["labels"]
    if not isinstance(labels, list):
        raise GridError("partition JSON has labels that are not a list")
    labels, made_by = checked_labels(labels, made.n_faces), fields["made_by"]
    return made, labels, _crs(fields["crs"]), made_by, None, cap


def _crs(fields: Any) -> CRS | None:
    if fields is not None and not isinstance(fields, dict):
        raise GridError("partition JSON has a CRS that is not one", argument="crs")
    return projected_crs(fields)


def _refuse_sizes(fields: dict[str, Any]) -> None:
    """Refuse numbers that no partition has, before anything is made of them."""
    limits = {
        "n_faces": (1, MOST_FACES),
        "n_points": (3, MOST_POINTS),
        "n_corners": (3, MOST_POINTS),
        "n_area": (0, 1 << 16),
        "slack": (0, MOST_SLACK),
    }
    for name, (low, high) in limits.items():
        if type(fields[name]) is not int or not low <= fields[name] <= high:
            raise GridError(f"partition JSON has a value of {name} that none has")
    origin, step = fields["origin"], fields["step"]
    floats = [*origin, step] if isinstance(origin, list) and len(origin) == 2 else [None]
    if not all(type(v) is float and math.isfinite(v) for v in floats):
        raise GridError("partition JSON has an origin or a step that none has")
    if step <= 0 or math.frexp(step)[0] != 0.5:
        raise GridError("partition JSON has a step that is not a power of two")
    if fields["made_by"] not in ("voronoi", "hexagons", "polygons"):
        raise GridError("partition JSON does not say how it was made")


def _refuse_lattice(made: Complex) -> None:
    """Refuse a step or an origin that no area has, as `Lattice.over` does."""
    if any(math.fmod(v, made.step) for v in made.origin):
        raise GridError("partition JSON has an origin that is not on its lattice")
    # The cells reach a little beyond the area that the lattice was made for.
    x, y = made.origin
    ends = [v + (int(at.max()) - MARGIN) * made.step for v, at in ((x, made.x), (y, made.y))]
    refuse_step(made.step, ACROSS * made.step, max(map(abs, (*made.origin, *ends))))


def _refuse_area(made: Complex, made_by: str) -> None:
    """Refuse an area that is not the hull of the cells, but for what constructors leave out."""
    import shapely

    if not made.area.size:
        if made_by != "polygons":
            raise GridError(f"partition JSON of {made_by} has no area")
        return
    xy = np.stack([made.x[made.border], made.y[made.border]], axis=-1)
    whole = convex_ring(shapely.MultiPoint(xy).convex_hull)
    area, least = shapely.Polygon(made.area), grown(whole, -(2.0 * (made.slack + 4) + MARGIN))
    inside = grown(whole, MARGIN).covers(area)
    if not inside or not area.buffer(2).covers(least):
        raise GridError("partition JSON has an area that is not that of its cells")


def _unpacked(text: object, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = np.dtype(_DTYPES[name])
    wanted = math.prod(shape) * dtype.itemsize
    raw = unpacked(text, wanted, f"the partition's {name}", GridError)
    return np.frombuffer(raw, dtype).reshape(shape)


def write_partition(path: Path, cells: geopandas.GeoDataFrame, text: str) -> None:
    """Write cells as GeoParquet with the partition's text in the metadata, whole or not at all."""
    import pyarrow.parquet as pq

    content = io.BytesIO()
    cells.to_parquet(content, index=False)
    table = pq.read_table(content)
    metadata = {**(table.schema.metadata or {}), _KEY: text.encode()}
    with replacing(path) as part:
        pq.write_table(table.replace_schema_metadata(metadata), part, compression="zstd")
        seal(part)


def read_partition(path: Path) -> str:
    """Return the text of the partition in a file; the cells are not read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    remedy = "write one with Partition.to_file"
    refuse_unreadable(path, error=GridError, remedy=remedy)
    try:
        with open(path, "rb") as raw:
            footer_start(raw, _FOOTER_LIMIT)  # no need to read all of what is no Parquet file
            raw.seek(0)
            data = raw.read()  # once: Arrow sees the very bytes that were checked
        check_seal(io.BytesIO(data), _FOOTER_LIMIT)
        limits = {"thrift_string_size_limit": _FOOTER_LIMIT, "thrift_container_size_limit": 1 << 20}
        with pq.ParquetFile(pa.BufferReader(data), **limits) as file:
            text = (file.schema_arrow.metadata or {})[_KEY].decode()
    except ReleaseFileError as error:
        raise GridError(f"{path} is not a file of a partition: {error}; {remedy}") from None
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError, DPRegionsError):
        raise GridError(f"{path} is not a file of a partition: {remedy}") from None
    return text
