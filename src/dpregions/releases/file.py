"""The release file: one Parquet file, one row for each component, everything else in its metadata.

Owns the file's columns, and what `load` accepts; its seal is that of `sealed_files.py`. The file
holds what the release holds and nothing more: all rows are there in a fixed order, so it depends on
the secret data only through the released values, and the same release always gives the same bytes.
Reading trusts nothing.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.atomic_files import replacing
from dpregions.errors import (
    DPRegionsError,
    InputError,
    PrivacyError,
    ReleaseFileError,
    TooLargeError,
    printable,
)
from dpregions.mechanisms.base import Columns, Entries, Held
from dpregions.mechanisms.known import chosen
from dpregions.memory import LOADED, LOADED_ENTRY, refuse_beyond
from dpregions.privacy.groups import Groups
from dpregions.readable_files import refuse_unreadable
from dpregions.releases.columns import held_by, outcome_of
from dpregions.releases.groups import GroupsOutcome
from dpregions.releases.parquet_pages import claims_of
from dpregions.releases.statement import LIMIT as STATEMENT_LIMIT
from dpregions.releases.statement import (
    SHORTER,
    GroupStated,
    OtherFormatError,
    canonical,
    parse_groups,
    parse_statement,
    read_statement,
)
from dpregions.sealed_files import UnsealedError, check_seal, footer_start, seal

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from dpregions.geometry.domain import Domain
    from dpregions.mechanisms.base import Layout, Outcome
    from dpregions.releases.parquet_pages import Claims
    from dpregions.releases.published import Release
    from dpregions.releases.statement import Statement

STATEMENT = "dpregions"
"""Key of the statement in the file's metadata; a mechanism's texts have it before their names."""

KINDS = ("face", "edge", "vertex")
GROUP = "group"
"""The column of groups, first in a file that has them: their components one below the other."""
_FOOTER_LIMIT = 5 << 23
"""Most bytes of a footer: the texts in it have limits of their own, 33 MiB together."""
_MOST_ENTRIES = 1 << 25
_MOST_A_BYTE = 64
"""Most components, and most entries of lists, per byte of a file's columns. Of releases that are 0
everywhere 18 were measured, on grids 64 cells wide: row and col take most of such a file."""


class _ForeignFileError(ReleaseFileError):
    """The file is none of dpregions, as far as can be seen."""


def save(
    release: Release, path: Path | str, *, fresh: bool = False, limit: int = STATEMENT_LIMIT
) -> str:
    """Write a release to a file, whole or not at all; return the SHA-256 of its bytes.

    With `fresh`, a file that is there is not replaced: FileExistsError. See `Release.save`.
    """
    import pyarrow.parquet as pq

    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder: give the name of a file, such as city.parquet")
    if not target.absolute().parent.is_dir():
        raise InputError(f"there is no folder {target.absolute().parent}: make it first")
    table, metadata = _table(release)
    if len(metadata[STATEMENT]) > limit:
        raise InputError(f"a release file cannot keep what this release is asked on. {SHORTER}")
    options = {"compression": "zstd", "store_schema": False}
    with replacing(target, fresh=fresh) as part:
        with pq.ParquetWriter(
            part, table.schema, use_dictionary=[GROUP, "kind"], **options
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(metadata)
        seal(part)
        # Of what was written here: another process may replace the file at any time.
        with open(part, "rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
    return digest


def read(path: Path | str) -> tuple[Statement, Outcome]:
    """Return what a file says and holds; see `load`, which makes a release of it."""
    path = Path(path)
    refuse_unreadable(path, error=ReleaseFileError, argument="path")
    with open(path, "rb") as raw, _refusing(path):
        return _read(raw)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn whatever a bad file sets off into one error that names the file and the remedy."""
    remedy = "get the file anew from whoever released it"
    try:
        yield
        return
    except (OtherFormatError, TooLargeError) as error:
        found = f"{path}: {error}"
    except (_ForeignFileError, UnsealedError) as error:
        found = (
            f"{path} is no release file: {error}. Regions become a release by 'dpregions release'; "
            f"if it was one, {remedy}"
        )
    except ReleaseFileError as error:
        found = f"{path} is not a whole release: {error}; {remedy}"
    except DPRegionsError as error:
        found = f"{path} is not a whole release ({error}); {remedy}"
    except Exception as error:
        # Other libraries quote what they read, and a file may hold anything: the type alone.
        found = f"{path} is damaged (it ends in {type(error).__name__}); {remedy}"
    raise ReleaseFileError(printable(found), argument="path") from None


def _layout(rows: Domain) -> dict[str, NDArray[Any]]:
    """Return the columns that a domain alone decides: kind (a number of `KINDS`), sign, places."""
    kind = rows.kinds.ravel()
    return {"kind": kind, "sign": 1 - 2 * (kind & 1), **rows.places()}


def _schema(layout: Layout, rows: Domain, *, estimates: bool) -> pa.Schema:
    import pyarrow as pa

    types: dict[str, Any] = {
        "kind": pa.string(),
        "sign": pa.int8(),
    }
    types |= dict.fromkeys(rows.place_names, pa.int32()) | {"count": pa.int64()}
    types |= {"estimate": pa.float64()} if estimates else {}
    for name, kinds in layout.lists.items():
        fields = [
            pa.field(field, pa.from_numpy_dtype(kind), nullable=False)
            for field, kind in kinds.items()
        ]
        types[name] = pa.list_(pa.field("element", pa.struct(fields), nullable=False))
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


def _table(release: Release) -> tuple[pa.Table, dict[str, str]]:
    """Return a release as a table and the file's metadata."""
    metadata = {STATEMENT: canonical(release.stated())}
    if release.is_of_groups:
        table, texts = _groups_table(release)
    else:
        table, texts = _one_table(release)
    return table, metadata | {f"{STATEMENT}_{name}": text for name, text in texts.items()}


def _groups_table(release: Release) -> tuple[pa.Table, dict[str, str]]:
    """Return the tables of all groups, one below the other, and their texts.

    A text that is that of the first group is there once. Where some groups have estimates of their
    own, so have all rows: those of the others follow from what the mechanism keeps.
    """
    import pyarrow as pa

    assert release.groups is not None
    tables, texts = [], dict[str, str]()
    each = [release.group(label) for label in release.groups.labels]
    filled = any(one.outcome.signed is not None for one in each)
    for i, (label, one) in enumerate(zip(release.groups.labels, each, strict=True)):
        table, own = _one_table(one, filled=filled)
        name = pa.array([label]).dictionary_encode()
        column = pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), name.dictionary)
        field = pa.field(GROUP, pa.string(), nullable=False)
        tables.append(table.add_column(0, field, column.cast(pa.string())))
        texts |= own if not i else {f"{n}_{i}": t for n, t in own.items() if t != texts[n]}
    return pa.concat_tables(tables), texts


def _one_table(release: Release, *, filled: bool = False) -> tuple[pa.Table, dict[str, str]]:
    """Return a release, or one group of it, as a table and its mechanism's texts."""
    import pyarrow as pa

    held = held_by(release, filled=filled)
    layout = chosen(release.method).layout(covert=release.covert)
    schema = _schema(layout, release.rows, estimates=held.signed is not None)
    arrays: dict[str, Any] = _layout(release.rows)
    codes = pa.array(arrays["kind"])
    arrays["kind"] = pa.DictionaryArray.from_arrays(codes, pa.array(KINDS)).cast(pa.string())
    arrays["count"] = held.counts.ravel()
    if held.signed is not None:
        arrays["estimate"] = held.signed.ravel()
    for name, entries in held.columns.lists.items():
        arrays[name] = _lists(entries, schema.field(name).type, held.counts.size)
    table = pa.Table.from_arrays([pa.array(arrays[name]) for name in schema.names], schema=schema)
    return table, dict(held.columns.texts)


def _lists(entries: Entries, kind: pa.ListType, n: int) -> pa.ListArray:
    """Return the lists on the n rows of the table."""
    import pyarrow as pa

    struct = kind.value_type
    values = [pa.array(entries.fields[struct.field(i).name]) for i in range(struct.num_fields)]
    flat = pa.StructArray.from_arrays(values, fields=list(struct))
    ends = np.cumsum(np.bincount(entries.row, minlength=n))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, flat, type=kind)


def _read(raw: Any) -> tuple[Statement, Outcome]:
    """Return what a file says and holds, once its seal, its sizes and its schema are right."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    footer_start(raw, _FOOTER_LIMIT)  # no need to read all of what is no Parquet file
    raw.seek(0)
    data = raw.read()  # once: Arrow sees the very bytes that were checked
    columns_end, footer = check_seal(io.BytesIO(data), _FOOTER_LIMIT)
    claims = claims_of(data, columns_end, footer)
    limits = {"thrift_string_size_limit": _FOOTER_LIMIT, "pre_buffer": False}
    limits["thrift_container_size_limit"] = 1 << 14
    source = pa.BufferReader(data)
    metadata = pq.ParquetFile(source, **limits).metadata
    fields = _statement(metadata.metadata or {})
    _check_claims(claims, columns_end)  # texts in the footer allow for no entries
    statement = parse_statement(fields)
    try:
        layout = chosen(statement.method).layout(covert=statement.covert)
    except PrivacyError as error:
        raise OtherFormatError(f"this installation does not know its mechanism: {error}") from None
    groups = statement.groups
    is_of_groups = groups is not None and groups.only is None
    parts = [GroupStated(statement, True, fields["mechanism"])]
    if is_of_groups:
        parts = parse_groups(statement, fields["mechanism"])
    n_rows = [part.statement.rows.n_components for part in parts]
    _check_schema(metadata, parts[0].statement, layout, sum(n_rows), is_of_groups)
    texts = _texts(metadata.metadata, layout, len(parts))
    named = [GROUP, "kind"] if is_of_groups else ["kind"]
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=named, **limits)
    column = partial(_column, file, sum(n_rows))
    if groups is None or not is_of_groups:
        return statement, _outcome(column, parts[0], layout, texts[0])
    whole = cache(column)  # each group has a part of it
    _check_groups(whole(GROUP), groups.labels, n_rows)
    outcomes, start = [], 0
    for part, own, n in zip(parts, texts, n_rows, strict=True):
        sliced = partial(_slice, whole, start, n)
        outcomes.append(_outcome(sliced, part, layout, own))
        start += n
    each = parts[0].statement.budget
    made = GroupsOutcome.of(statement.grid, outcomes, groups, each, statement.budget)
    if made.spending != statement.spending:
        raise ReleaseFileError("what its groups spent is not what it says")
    return statement, made


def _column(file: pq.ParquetFile, n: int, name: str) -> Any:
    """Return a column of n rows; refuse missing values."""
    if name not in file.schema_arrow.names:
        return None
    table = file.read([name], use_threads=False)
    table.validate(full=True)
    if table.num_rows != n or table[name].null_count:
        raise ReleaseFileError("it has missing values")
    return table[name].unify_dictionaries().combine_chunks()


def _slice(column: Callable[[str], Any], start: int, n: int, name: str) -> Any:
    """Return a column's rows of one group."""
    found = column(name)
    return None if found is None else found.slice(start, n)


def _check_groups(column: Any, labels: tuple[str, ...], n_rows: list[int]) -> None:
    """Refuse rows that are not those of the groups, one group below the other."""
    names = column.dictionary.to_pylist()
    code = np.array([labels.index(name) if name in labels else -1 for name in names], np.int64)
    wanted = np.repeat(np.arange(len(labels)), n_rows)
    if not np.array_equal(code[_values(column.indices)], wanted):
        raise ReleaseFileError("its rows are not those of its groups, in their order")


def _statement(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """Return the statement, which is no longer than it may be."""
    text = metadata.get(STATEMENT.encode())
    if text is None:
        raise _ForeignFileError(f"it is a Parquet file without the metadata {STATEMENT!r}")
    if len(text) > STATEMENT_LIMIT:
        raise ReleaseFileError("its statement is longer than any")
    return read_statement(text.decode())


def _texts(metadata: dict[bytes, bytes], layout: Layout, n: int) -> list[dict[str, str]]:
    """Return the texts of a mechanism for each of n groups, which are the first one's but for some.

    Refuse longer ones, and any other metadata.
    """
    own: list[dict[str, str]] = [{} for _ in range(n)]
    known = 1
    for name, most in layout.texts.items():
        for i in range(n):
            text = metadata.get(f"{STATEMENT}_{name}{f'_{i}' if i else ''}".encode())
            if text is not None and len(text) <= most:
                own[i][name] = text.decode()
                known += 1
    if len(metadata) != known:
        raise ReleaseFileError("it has metadata that a release has not, or longer ones")
    return [own[0] | texts for texts in own]


def _check_claims(claims: Claims, size: int) -> None:
    """Refuse more rows, entries or bytes than a file of its size, or this machine, can hold."""
    rows, most = claims.rows, _MOST_A_BYTE * size
    if not 0 < rows <= most:
        raise ReleaseFileError("it has more rows than any release of its size")
    lists = {name: n for name, n in claims.values.items() if "." in name}
    if {n for name, n in claims.values.items() if name not in lists} != {rows}:
        raise ReleaseFileError("its columns are not as long as it has rows")
    entries = sum(
        max(n for name, n in lists.items() if name.startswith(f"{of}."))
        for of in {name.partition(".")[0] for name in lists}
    )
    if entries > min(most, _MOST_ENTRIES + 2 * rows) or claims.dictionary > Groups.MOST:
        raise ReleaseFileError("it has more entries than any release of its size")
    if claims.unpacked > 64 * (rows + entries):
        raise ReleaseFileError("its columns are larger than those of any release")
    refuse_beyond(
        LOADED * rows + LOADED_ENTRY * entries,
        f"reading this release of {rows:,} components",
        "read it on a larger one",
        TooLargeError,
    )


def _check_schema(
    held: Any, statement: Statement, layout: Layout, n: int, is_of_groups: bool
) -> None:
    """Refuse another schema, or another number of rows, before one is read."""
    import pyarrow as pa

    names = held.schema.to_arrow_schema().names
    # A mechanism whose estimates follow from its own columns keeps none; that is for it to say.
    estimates = "estimate" in names and not statement.covert
    schema = _schema(layout, statement.rows, estimates=estimates)
    if is_of_groups:
        schema = schema.insert(0, pa.field(GROUP, pa.string(), nullable=False))
    if held.schema.to_arrow_schema().remove_metadata() != schema:
        raise ReleaseFileError("its columns are not those of a release")
    if held.num_rows != n:
        raise ReleaseFileError(f"it has {held.num_rows:,} rows where its grid has {n:,} components")


def _outcome(
    column: Callable[[str], Any], part: GroupStated, layout: Layout, texts: dict[str, str]
) -> Outcome:
    """Return what columns hold, read one after another; refuse other rows."""
    rows = part.statement.rows
    _check_layout(column, rows)
    estimate = column("estimate") if part.estimates else None
    signed = None if estimate is None else _values(estimate).reshape(rows.counts_shape)
    counts = _values(column("count")).reshape(rows.counts_shape)
    columns = Columns({name: _entries_of(column(name)) for name in layout.lists}, texts)
    return outcome_of(Held(part.statement, counts, signed, part.options, columns))


def _check_layout(column: Callable[[str], Any], rows: Domain) -> None:
    """Refuse rows that are not a domain's components, in their order."""
    layout = _layout(rows)
    kind = column("kind")
    names = kind.dictionary.to_pylist()
    code = np.array([KINDS.index(name) if name in KINDS else -1 for name in names], np.int8)
    same = np.array_equal(code[_values(kind.indices)], layout["kind"])
    for name in layout.keys() - {"kind"}:
        same = same and np.array_equal(_values(column(name)), layout[name])
    if not same:
        raise ReleaseFileError("its rows are not the components of its grid, in their order")


def _entries_of(lists: pa.ListArray) -> Entries:
    offsets = _values(lists.offsets)
    flat = lists.values[int(offsets[0]) : int(offsets[-1])]
    row = np.repeat(np.arange(len(lists)), np.diff(offsets))
    fields = {f.name: _values(flat.field(i)) for i, f in enumerate(flat.type)}
    return Entries(row, fields)


def _values(array: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of numbers as numpy's; Arrow's own way there imports pandas."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.zeros(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
