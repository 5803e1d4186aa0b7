"""The release file: one Parquet file, one row a component, everything else in its metadata.

Owns the columns, the checksum, and what `load` accepts. The file holds what the release holds and
nothing more: rows are all there in a fixed order, so it depends on the secret data only through
the released values, and the same release always gives the same bytes. Reading trusts nothing.
The checksum finds damage, not forgery: whoever alters a file on purpose can compute it anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.bodies import Bodies
from dpregions.buckets import Buckets, refuse_too_many
from dpregions.catalogue_text import LIMIT as CATALOGUE_LIMIT
from dpregions.catalogue_text import catalogue_from_text, catalogue_to_text
from dpregions.errors import DPRegionsError, InputError, ReleaseFileError
from dpregions.footprint import Measurements, measurements_of
from dpregions.hierarchy import Hierarchy
from dpregions.release_statement import LIMIT as STATEMENT_LIMIT
from dpregions.release_statement import (
    Statement,
    canonical,
    parse_statement,
    read_statement,
    statement_of,
)
from dpregions.releases import Release
from dpregions.whole_files import replacing

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from dpregions.catalogue import Catalogue
    from dpregions.grid import Grid

STATEMENT, CATALOGUE = "dpregions", "dpregions_catalogue"
"""Keys of the file's metadata."""

KINDS = ("face", "edge", "vertex")
_MAGIC = b"PAR1"
_FOOTER_LIMIT = 1 << 26
_EXACT = 1 << 53
"""Whole numbers up to this are floats."""


class _Entries(NamedTuple):
    """Lists on rows of the table, flat: the row of each entry, and its fields."""

    row: NDArray[np.int64]
    fields: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class _Columns:
    """What a release holds beside its statement; None where it has no such column."""

    count: NDArray[np.int64]
    estimate: NDArray[np.float64] | None
    bodies: _Entries | None
    measured: _Entries | None
    catalogue: str | None


_ENTRY_TYPES = {
    "bodies": {"pattern": np.int32, "times": np.int64},
    "measured": {"level": np.int16, "group": np.int32, "value": np.int64},
}


def save(release: Release, path: Path | str) -> None:
    """Write a release to a file, whole or not at all; see `Release.save`."""
    import pyarrow.parquet as pq

    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder: give the name of a file, such as city.parquet")
    if not target.absolute().parent.is_dir():
        raise InputError(f"there is no folder {target.absolute().parent}: make it first")
    table, metadata = _table(release)
    options = {"compression": "zstd", "store_schema": False, "write_page_checksum": True}
    with (
        replacing(target) as part,
        pq.ParquetWriter(part, table.schema, use_dictionary=["kind", "sign"], **options) as writer,
    ):
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)


def load(path: Path | str) -> Release:
    """Read a release from a file that `Release.save` wrote.

    Checks version, checksum, shape and ranges. The checksum finds damage; it cannot find a
    forgery, so get files from whom you trust.

    Parameters
    ----------
    path : pathlib.Path or str

    Returns
    -------
    Release
        It answers exactly as the saved one did.

    Examples
    --------
    >>> import dpregions as dpr
    >>> city = dpr.synthetic.regions(500)
    >>> made = dpr.release(city, dpr.synthetic.grid(), epsilon=1, max_diameter="2km")
    >>> made.save("city.parquet")  # doctest: +SKIP
    >>> dpr.load("city.parquet").count(0, 0, 1, 1)  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise ReleaseFileError(f"{path}: there is no such file")
    with _refusing(path):
        statement, columns = _read(path)
        return _release(statement, columns)


def checksum(release: Release) -> str:
    """Return the checksum that a release's file carries."""
    return _checksum(statement_of(release), _columns(release))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn whatever a bad file sets off into one error that names the file and the remedy."""
    import pyarrow as pa

    remedy = "get the file anew from whoever released it"
    try:
        yield
    except ReleaseFileError as error:
        raise ReleaseFileError(f"{path} is not a whole release: {error}; {remedy}") from None
    except DPRegionsError as error:
        raise ReleaseFileError(f"{path} is not a whole release ({error}); {remedy}") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        first = (str(error).splitlines() or [""])[0][:200]
        raise ReleaseFileError(
            f"{path} is damaged, or no Parquet file ({first}); {remedy}"
        ) from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise ReleaseFileError(
            f"{path} is damaged: reading it ends in {type(error).__name__}; {remedy}"
        ) from None


# Release -> columns -> table


def _columns(release: Release) -> _Columns:
    """Return a release's values in the file's types."""
    footprint, covert = release.method == "footprint", release.signed is None
    if (release.bodies is not None) != footprint or (release.measurements is not None) != (
        footprint and not covert
    ):
        raise InputError("this release lacks its bodies or measurements, and cannot be saved")
    estimate = None if covert else np.asarray(release.signed).ravel().astype(np.float64)
    if estimate is not None and not (estimate == np.asarray(release.signed).ravel()).all():
        raise InputError(f"an estimate beyond {_EXACT:,} cannot be saved exactly")
    bodies, measurements = release.bodies, release.measurements
    return _Columns(
        release.counts.ravel(),
        estimate,
        None if bodies is None else _body_entries(bodies, release.grid),
        None if measurements is None else _measured_entries(measurements, release.grid),
        None if bodies is None else catalogue_to_text(bodies.catalogue),
    )


def _face(grid: Grid, row: NDArray[np.int64], col: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the table that holds a cell's face."""
    return 2 * row * grid.doubled_shape[1] + 2 * col


def _body_entries(bodies: Bodies, grid: Grid) -> _Entries:
    tallied = bodies.tallied()
    fields: dict[str, NDArray[Any]] = {
        "pattern": tallied.pattern.astype(np.int32),
        "times": tallied.times,
    }
    return _Entries(_face(grid, tallied.row, tallied.col), fields)


def _measured_entries(measurements: Measurements, grid: Grid) -> _Entries:
    """Return noisy counts, each on the face at the lower left of its part's block."""
    measured = measurements.measured
    found = _measured_places(measured.hierarchy, measurements.strategy.weights, grid)
    values = np.concatenate([v.astype(np.int64) for v in measured.values if v is not None])
    order = np.lexsort((found.fields["group"], found.fields["level"], found.row))
    fields = {name: field[order] for name, field in (found.fields | {"value": values}).items()}
    return _Entries(found.row[order], fields)


def _measured_places(tree: Hierarchy, weights: tuple[int, ...], grid: Grid) -> _Entries:
    """Return where the counts of the measured levels belong, level by level, part by part."""
    rows, levels, groups = [], [], []
    for level in _measured_levels(weights):
        row, col, group = tree.anchors(level)
        rows.append(_face(grid, row, col))
        levels.append(np.full(len(row), level, np.int16))
        groups.append(group.astype(np.int32))
    fields: dict[str, NDArray[Any]] = {
        "level": np.concatenate(levels),
        "group": np.concatenate(groups),
    }
    return _Entries(np.concatenate(rows), fields)


def _measured_levels(weights: tuple[int, ...]) -> list[int]:
    """Return the levels that were measured: the first always is, before the others are chosen."""
    return [level for level, weight in enumerate(weights) if weight or level == 0]


def _layout(grid: Grid) -> dict[str, NDArray[Any]]:
    """Return the columns that a grid alone decides: kind (a number of `KINDS`), sign, row, col."""
    rows, cols = grid.doubled_shape
    row = np.repeat(np.arange(rows, dtype=np.int32), cols)
    col = np.tile(np.arange(cols, dtype=np.int32), rows)
    kind = ((row & 1) + (col & 1)).astype(np.int8)
    return {"kind": kind, "sign": 1 - 2 * (kind & 1), "row": row, "col": col}


def _schema(*, estimate: bool, bodies: bool, measured: bool) -> pa.Schema:
    import pyarrow as pa

    def entries(name: str) -> Any:
        fields = [
            pa.field(field, pa.from_numpy_dtype(dtype), nullable=False)
            for field, dtype in _ENTRY_TYPES[name].items()
        ]
        return pa.list_(pa.field("element", pa.struct(fields), nullable=False))

    types: dict[str, Any] = {
        "kind": pa.string(),
        "sign": pa.int8(),
        "row": pa.int32(),
        "col": pa.int32(),
        "count": pa.int64(),
    }
    types |= {"estimate": pa.float64()} if estimate else {}
    types |= {"bodies": entries("bodies")} if bodies else {}
    types |= {"measured": entries("measured")} if measured else {}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


def _table(release: Release) -> tuple[pa.Table, dict[str, str]]:
    """Return a release as a table and the file's metadata."""
    import pyarrow as pa

    columns, statement = _columns(release), statement_of(release)
    schema = _schema(
        estimate=columns.estimate is not None,
        bodies=columns.bodies is not None,
        measured=columns.measured is not None,
    )
    layout: dict[str, Any] = _layout(release.grid)
    codes = pa.array(layout["kind"])
    layout["kind"] = pa.DictionaryArray.from_arrays(codes, pa.array(KINDS)).cast(pa.string())
    arrays = layout | {"count": columns.count}
    if columns.estimate is not None:
        arrays["estimate"] = columns.estimate
    for name, entries in (("bodies", columns.bodies), ("measured", columns.measured)):
        if entries is not None:
            arrays[name] = _lists(entries, schema.field(name).type, len(columns.count))
    metadata = {STATEMENT: canonical({**statement, "checksum": _checksum(statement, columns)})}
    if columns.catalogue is not None:
        metadata[CATALOGUE] = columns.catalogue
    table = pa.Table.from_arrays([pa.array(arrays[name]) for name in schema.names], schema=schema)
    return table, metadata


def _lists(entries: _Entries, kind: pa.ListType, n: int) -> pa.ListArray:
    """Return the lists on the n rows of the table."""
    import pyarrow as pa

    struct = kind.value_type
    values = [pa.array(entries.fields[struct.field(i).name]) for i in range(struct.num_fields)]
    flat = pa.StructArray.from_arrays(values, fields=list(struct))
    ends = np.cumsum(np.bincount(entries.row, minlength=n))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, flat, type=kind)


def _checksum(statement: dict[str, Any], columns: _Columns) -> str:
    """Return the SHA-256 of everything in the file but itself and what the grid decides."""
    digest = hashlib.sha256()

    def add(name: str, data: bytes | memoryview) -> None:
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)

    def add_array(name: str, values: NDArray[Any]) -> None:
        little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        add(f"{name} {little.dtype.str}", little.tobytes())

    rest = {name: value for name, value in statement.items() if name != "checksum"}
    add(STATEMENT, canonical(rest).encode())
    add(CATALOGUE, (columns.catalogue or "").encode())
    add_array("count", columns.count)
    if columns.estimate is not None:
        add_array("estimate", columns.estimate)
    for name, entries in (("bodies", columns.bodies), ("measured", columns.measured)):
        if entries is not None:
            add_array(f"{name} row", entries.row)
            for field, values in entries.fields.items():
                add_array(f"{name} {field}", values)
    return f"sha256:{digest.hexdigest()}"


# File -> columns -> release


def _read(path: Path) -> tuple[Statement, _Columns]:
    """Return what a file holds, once its sizes, its schema and its checksum are right."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(path, "rb") as raw:
        _check_footer(raw)
        file = pq.ParquetFile(
            pa.PythonFile(raw, "r"),
            read_dictionary=["kind"],
            thrift_string_size_limit=_FOOTER_LIMIT,
            thrift_container_size_limit=1 << 20,
            page_checksum_verification=True,
        )
        found = {key.decode(): value for key, value in (file.metadata.metadata or {}).items()}
        text, catalogue = _texts(found)
        fields = read_statement(text)
        statement = parse_statement(fields)
        _check_sizes(file, statement)
        table = file.read()
    columns = _columns_of(table, statement.grid, catalogue)
    if _checksum(fields, columns) != statement.checksum:
        raise ReleaseFileError("its checksum does not fit: it was damaged or altered")
    return statement, columns


def _check_footer(raw: Any) -> None:
    """Refuse a file that is cut short, before any of its own lengths is believed."""
    size = os.fstat(raw.fileno()).st_size
    head = raw.read(4)
    raw.seek(max(size - 8, 0))
    tail = raw.read(8)
    if size < 12 or head != _MAGIC or tail[4:] != _MAGIC:
        raise ReleaseFileError("it is no Parquet file, or its end is missing")
    length = int.from_bytes(tail[:4], "little")
    if length > min(size - 12, _FOOTER_LIMIT):
        raise ReleaseFileError("it is cut short, or its footer is too long")
    raw.seek(0)


def _texts(found: dict[str, bytes]) -> tuple[str, str | None]:
    if STATEMENT not in found:
        raise ReleaseFileError(f"it is a Parquet file without the metadata {STATEMENT!r}")
    if found.keys() - {STATEMENT, CATALOGUE}:
        raise ReleaseFileError("it has metadata that a release has not")
    limits = {STATEMENT: STATEMENT_LIMIT, CATALOGUE: CATALOGUE_LIMIT}
    for name, data in found.items():
        if len(data) > limits[name]:
            raise ReleaseFileError(f"its metadata {name!r} are too long")
    catalogue = found.get(CATALOGUE)
    return found[STATEMENT].decode(), None if catalogue is None else catalogue.decode()


def _check_sizes(file: Any, statement: Statement) -> None:
    """Refuse another schema, or other numbers of rows, before a row is read."""
    footprint = statement.fields["method"] == "footprint"
    schema = _schema(
        estimate=not statement.covert,
        bodies=footprint,
        measured=footprint and not statement.covert,
    )
    held = file.metadata
    # Read as a dictionary, `kind` shows as one: the schema proper is that of the file.
    if held.schema.to_arrow_schema().remove_metadata() != schema:
        raise ReleaseFileError("its columns are not those of a release")
    if held.num_rows != statement.grid.n_components:
        raise ReleaseFileError(
            f"it has {held.num_rows:,} rows where its grid has {statement.grid.n_components:,} "
            f"components"
        )
    groups = [held.row_group(i) for i in range(held.num_row_groups)]
    if sum(group.num_rows for group in groups) != held.num_rows:
        raise ReleaseFileError("its groups of rows do not add up")


def _columns_of(table: pa.Table, grid: Grid, catalogue: str | None) -> _Columns:
    """Return a table's columns as arrays; refuse rows that are not the grid's."""
    table.validate(full=True)
    if table.num_rows != grid.n_components or any(c.null_count for c in table.columns):
        raise ReleaseFileError("it has missing values")
    layout = _layout(grid)
    kind = table["kind"].unify_dictionaries().combine_chunks()
    names = kind.dictionary.to_pylist() if table.num_rows else []
    code = np.array([KINDS.index(name) if name in KINDS else -1 for name in names], np.int8)
    same = np.array_equal(code[kind.indices.to_numpy()], layout["kind"])
    for name in ("sign", "row", "col"):
        same = same and np.array_equal(table[name].to_numpy(), layout[name])
    if not same:
        raise ReleaseFileError("its rows are not the components of its grid, in their order")
    names = table.column_names
    return _Columns(
        table["count"].to_numpy(),
        table["estimate"].to_numpy() if "estimate" in names else None,
        _entries_of(table["bodies"]) if "bodies" in names else None,
        _entries_of(table["measured"]) if "measured" in names else None,
        catalogue,
    )


def _entries_of(column: pa.ChunkedArray) -> _Entries:
    lists = column.combine_chunks()
    flat = lists.flatten()
    row = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    fields = {f.name: flat.field(i).to_numpy() for i, f in enumerate(flat.type)}
    return _Entries(row, fields)


def _release(statement: Statement, columns: _Columns) -> Release:
    """Return the release, once its values are such as a release may have."""
    grid, estimate = statement.grid, columns.estimate
    counts = columns.count.reshape(grid.doubled_shape)
    if (counts < 0).any() or counts.sum(dtype=np.float64) >= 2**62:
        raise ReleaseFileError("it has counts that are negative or out of range")
    if estimate is not None and not np.isfinite(estimate).all():
        raise ReleaseFileError("it has estimates that are not finite")
    signed: NDArray[Any] | None = None
    if estimate is not None:
        signed = estimate.reshape(grid.doubled_shape)
    bodies = measurements = None
    if statement.fields["method"] == "paper":
        if columns.catalogue is not None:
            raise ReleaseFileError("it has a catalogue that its method has no use for")
        signed = None if signed is None else _whole(signed)
    else:
        if columns.catalogue is None or columns.bodies is None:
            raise ReleaseFileError("it lacks the catalogue of patterns")
        known = catalogue_from_text(columns.catalogue)
        bodies = _bodies(columns.bodies, known, grid, counts)
        if columns.measured is not None:
            measurements = _measurements(columns.measured, known, statement)
    return Release(
        **statement.fields, counts=counts, signed=signed, bodies=bodies, measurements=measurements
    )


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64]:
    if (np.abs(values) > _EXACT).any() or (values != np.rint(values)).any():
        raise ReleaseFileError("it has estimates that are no whole numbers")
    return values.astype(np.int64)


def _cells(entries: _Entries, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    row, col = np.divmod(entries.row, grid.doubled_shape[1])
    if ((row & 1) | (col & 1)).any():
        raise ReleaseFileError("it has lists on rows that are no faces")
    return row >> 1, col >> 1


def _bodies(entries: _Entries, known: Catalogue, grid: Grid, counts: NDArray[np.int64]) -> Bodies:
    row, col = _cells(entries, grid)
    pattern, times = entries.fields["pattern"].astype(np.int64), entries.fields["times"]
    good = (pattern >= 0) & (pattern < len(known)) & (times >= 1) & (times <= counts.max())
    if not good.all():
        raise ReleaseFileError("it has bodies out of range")
    again = (np.diff(entries.row) == 0) & (np.diff(pattern) <= 0)
    inside = (row + known.heights[pattern] <= grid.n_rows) & (
        col + known.widths[pattern] <= grid.n_cols
    )
    bodies = Bodies(known, pattern, row, col, times)
    if again.any() or not inside.all():
        raise ReleaseFileError("it has bodies out of order or beyond the area")
    if not np.array_equal(bodies.counts_on(*grid.shape), counts):
        raise ReleaseFileError("its counts are not those of its bodies")
    return bodies


def _measurements(entries: _Entries, known: Catalogue, statement: Statement) -> Measurements:
    grid, strategy = statement.grid, statement.strategy
    assert strategy is not None
    refuse_too_many(known.side, *grid.shape)
    tree = Hierarchy.of(Buckets.of(known, strategy.alphabet, *grid.shape), strategy.levels)
    for coarse, fine, up in zip(tree.part, tree.part[1:], tree.parent, strict=False):
        if not np.array_equal(up[fine], coarse):
            raise ReleaseFileError("its levels do not refine each other")
    places = _measured_places(tree, strategy.weights, grid)
    order = np.lexsort((places.fields["group"], places.fields["level"], places.row))
    same = np.array_equal(places.row[order], entries.row) and all(
        np.array_equal(places.fields[name][order], entries.fields[name])
        for name in ("level", "group")
    )
    if not same or (np.abs(entries.fields["value"]) > _EXACT).any():
        raise ReleaseFileError("its measurements are not those of its strategy")
    level, value = entries.fields["level"], entries.fields["value"]
    levels = _measured_levels(strategy.weights)
    noisy = {i: value[level == i] for i in levels}
    shares = dict(zip(levels, (share for _, share in statement.fields["spending"]), strict=True))
    factor = statement.fields["privacy_unit"].sensitivity_factor
    if factor != statement.fields["sensitivity"]:
        raise ReleaseFileError("its sensitivity is not that of its neighbour relation")
    return measurements_of(tree, strategy, noisy, shares, factor)
