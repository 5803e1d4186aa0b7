"""PostGIS by SQLAlchemy URL and SQL: a read-only transaction, a cursor on the server, chunks.

Nothing that a driver says is passed on, nor kept as an error's cause or context: it may hold
the URL with its password, the SQL, and records. Our messages name the host and the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dpregions import extras
from dpregions.crs import read_crs
from dpregions.errors import (
    Argument,
    CRSError,
    DPRegionsError,
    InputError,
    InputTypeError,
    MissingExtraError,
    SourceError,
)
from dpregions.intake.arrow import RegionStream, attempt
from dpregions.intake.sources.records import record_batch
from dpregions.intake.sources.requests import Request
from dpregions.intake.sources.sql import chosen_geometry, query_of

if TYPE_CHECKING:
    import pyarrow
    import sqlalchemy
    from pyproj import CRS

_SRID_FLAG = 0x20000000
_INTEGERS = ("int2", "int4", "int8")
_TEXTS = ("text", "varchar", "bpchar", "name", "uuid", "bytea", "bool", "date", "timestamp")
_AS_ID = {
    **dict.fromkeys(_INTEGERS, "{}"),
    **dict.fromkeys((*_TEXTS, "timestamptz"), "convert_to({}::text, getdatabaseencoding())"),
    "numeric": "convert_to(trim_scale(nullif({}, 'NaN'))::text, getdatabaseencoding())",
}
"""How ids are asked for, by type: two that PostgreSQL calls equal must come as one, as 1.0 and
1.00. Text comes as the bytes that the database has: not all of them can be made UTF-8. Of other
types that is not known (citext, interval), and floats are not ids: both are refused."""
_GEOMETRIES = ("geometry", "geography")

_STATES = {
    "28": "it refused the login",
    "3D": "there is no such database",
    "42501": "the user may not read it",
    "42P01": "there is no such table",
    "42703": "there is no such column",
    "42883": "there is no such function or operator",
    "42601": "its syntax is wrong",
    "25": "it writes, and only reading is allowed",
    "57014": "it was cancelled, or took longer than the server allows",
}
"""What the first characters of an SQLSTATE mean, as far as a user can do something about it."""


def open_postgis(url: str, request: Request) -> RegionStream:
    """Open a query on a PostGIS database."""
    with extras.named():
        import sqlalchemy
    request.refuse_useless("PostGIS", "sql")
    sql = query_of(request, "PostGIS")
    database = Database.at(sqlalchemy, url)
    query = database.asked(
        lambda connection: _query(connection, sql, request), "refused the SQL", InputError
    )
    batches = _batches(database, query, _accepted(query, request.crs), request)
    try:
        schema = next(batches)
        carried = _carried(query.srid, request.crs)
        return request.stream(batches, schema, schema.names[:-1], "geometry", carried)
    except BaseException:
        database.close()
        raise


class Query(NamedTuple):
    """The SQL that is sent: the user's in brackets, and of its columns the needed ones."""

    sql: str
    schema: pyarrow.Schema
    """The ids, then the geometry."""
    srid: int
    """That of all regions, as the column declares it; 0 for none."""


class Database:
    """A database that answers or fails in our words."""

    def __init__(self, engine: sqlalchemy.Engine, name: str) -> None:
        self._connection: sqlalchemy.Connection | None = None
        self._engine, self.name = engine, name

    @classmethod
    def at(cls, sqlalchemy: Any, url: str) -> Database:
        """Return the database at a URL, which is not connected to yet."""
        bad = InputError(
            "the database's URL cannot be read: write postgresql://USER@HOST:PORT/DATABASE. In a "
            "password, @ is written %40, : is %3A and / is %2F"
        )
        if url.count("@") > 1:  # the part of a password after the first would pass for the host
            raise bad
        unreadable = (sqlalchemy.exc.ArgumentError, ValueError)
        parsed = attempt(lambda: sqlalchemy.make_url(url), unreadable, bad)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.drivername == "postgresql+psycopg":
            # Without an encoding, psycopg gives bytes where SQLAlchemy expects text.
            wanted = {"connect_timeout": "10", "client_encoding": "utf8"}
            parsed = parsed.set(query={**wanted, **parsed.query})
        host = parsed.host or "this machine"
        # Where @HOST was forgotten, the password stands at the place of the port.
        port = f":{parsed.port}" if parsed.port and "@" in url else ""
        name = f"{parsed.database or 'the database'} at {host}{port}"
        if not re.fullmatch(r"[\w .:$+\-]+", name):
            raise bad
        missing = MissingExtraError("the database driver that the URL names", "db")
        engine = attempt(
            lambda: attempt(
                lambda: sqlalchemy.create_engine(parsed, poolclass=sqlalchemy.NullPool),
                (ImportError,),
                missing,
            ),
            (sqlalchemy.exc.SQLAlchemyError, TypeError),
            bad,
        )
        return cls(engine, name)

    def asked(
        self,
        question: Callable[[sqlalchemy.Connection], Any],
        failing: str,
        kind: type[DPRegionsError] = SourceError,
    ) -> Any:
        """Return the answer to a question; raise ours, without context, where it fails."""
        import sqlalchemy

        # A driver raises more than SQLAlchemy wraps, so all but our own errors are meant here.
        state, own, connected = None, None, False
        lost = "is down, cannot be reached, does not exist or refused the login"
        try:
            if self._connection is None:
                self._connection = self._engine.connect().execution_options(
                    postgresql_readonly=True, no_parameters=True
                )
            connected, lost = True, "dropped the connection: nothing was released"
            return question(self._connection)
        except DPRegionsError as error:
            own = error
        except sqlalchemy.exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
            connected = connected and not error.connection_invalidated and state != "57P01"
        except Exception:
            connected = False
        self.close()
        if own is not None:
            raise own
        meaning = next((_STATES[s] for s in _STATES if (state or "").startswith(s)), None)
        if not connected and meaning is None:
            raise SourceError(f"{self.name} {lost}")
        known = f" (SQLSTATE {state}{f': {meaning}' if meaning else ''})" if state else ""
        raise kind(f"{self.name} {failing}{known}")

    def chunks(self, sql: str, size: int) -> Generator[list[Any]]:
        """Yield the rows of a query from a cursor on the server."""
        # By hand, in SQL: drivers' own server cursors complain where a reading is given up.
        declare = f"DECLARE regions NO SCROLL CURSOR FOR {sql}"
        fetch = f"FETCH FORWARD {size} FROM regions"
        try:
            self.asked(lambda c: c.exec_driver_sql(declare), "refused the SQL", InputError)
            failing = "failed while it sent the regions"
            while rows := self.asked(lambda c: c.exec_driver_sql(fetch).all(), failing):
                yield rows
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the connection, whatever state it is in."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = None
        self._engine.dispose()


def _query(connection: sqlalchemy.Connection, sql: str, request: Request) -> Query:
    """Look at the columns that the SQL returns, without running it to the end."""
    import pyarrow as pa

    found = connection.exec_driver_sql("SELECT oid, typname FROM pg_type").all()
    type_names = {int(oid): str(name) for oid, name in found}
    result = connection.exec_driver_sql(f"SELECT * FROM ({sql}\n) AS regions LIMIT 0")
    described: Any = result.cursor.description if result.cursor is not None else ()
    names = [str(column[0]) for column in described]
    kinds = [type_names.get(column[1], "") for column in described]
    # Drivers other than psycopg do not tell the modifier: then no SRID is declared.
    raw = getattr(result.cursor, "pgresult", None)
    modifiers = [-1 if raw is None else raw.fmod(i) for i in range(len(names))]
    result.close()
    ids = request.id_columns(names)
    marked = [n for n, kind in zip(names, kinds, strict=True) if kind in _GEOMETRIES]
    possible = [n for n, kind in zip(names, kinds, strict=True) if kind == "bytea"]
    geometry = chosen_geometry(request.geometry, names, marked, possible)
    place = names.index(geometry)
    kind = kinds[place]
    if geometry not in marked and kind != "bytea":
        raise InputTypeError(
            Argument("geometry", repr(geometry)),
            f" is of type {kind or 'unknown'}: return a geometry, for example "
            f"ST_GeomFromText({geometry}, 4326) of WKT, or WKB (bytea)",
        )
    if geometry in ids:
        raise InputError(
            Argument("user_id", repr(request.user_id)), " is the column of regions: name another"
        )
    quote = connection.dialect.identifier_preparer.quote_identifier
    id_kinds = [kinds[names.index(name)] for name in ids]
    for name, id_kind in zip(ids, id_kinds, strict=True):
        if id_kind not in _AS_ID:
            raise InputTypeError(
                Argument("user_id", repr(name)),
                f" is of type {id_kind or 'unknown'}, of which one user may have "
                f"several spellings, or several users one: cast it to bigint or text, for example "
                f"lower({name}::text)",
            )
    types = [pa.int64() if kind in _INTEGERS else pa.large_binary() for kind in id_kinds]
    fields = [*zip(ids, types, strict=True), ("geometry", pa.binary())]
    columns = [_AS_ID[k].format(quote(n)) for n, k in zip(ids, id_kinds, strict=True)]
    sent = f"SELECT {', '.join([*columns, quote(geometry)])} FROM ({sql}\n) AS regions"
    srid = _declared_srid(kind, modifiers[place])
    if kind == "geometry" and not srid and request.crs is None:
        raise CRSError(
            Argument("geometry", repr(geometry)),
            f" declares no SRID, so that each row may have another: cast it, for example "
            f"{geometry}::geometry(Geometry, 4326), give ",
            Argument("crs", ""),
            f", or return ST_AsBinary({geometry}) for coordinates without a CRS",
        )
    return Query(sent, pa.schema(fields), srid)


def _declared_srid(kind: str, modifier: int) -> int:
    """Return the SRID that a column's type declares for all its rows; 0 for none."""
    if kind == "geography" and modifier < 0:
        return 4326
    if kind not in _GEOMETRIES or modifier < 0:
        return 0
    # As PostGIS packs it into the modifier of the type: 20 bits and a sign.
    return ((modifier & 0x0FFFFF00) - (modifier & 0x10000000)) >> 8


def _wkb(value: Any) -> tuple[bytes | None, int | None]:
    """Return a geometry as WKB, and its SRID: 0 where it has none, None where it is null."""
    if isinstance(value, str):  # of type geometry: EWKB in hexadecimal digits
        try:
            value = bytes.fromhex(value)
        except ValueError:
            return None, None
    if value is None or len(value) < 5:
        return None, None
    value = bytes(value)
    order: Literal["little", "big"] = "little" if value[0] == 1 else "big"
    kind = int.from_bytes(value[1:5], order)
    if not kind & _SRID_FLAG or len(value) < 9:
        return value, 0
    plain = (kind & ~_SRID_FLAG).to_bytes(4, order)
    return value[:1] + plain + value[9:], int.from_bytes(value[5:9], order)


def _accepted(query: Query, stated: CRS | None) -> set[int] | None:
    """Return the SRIDs of rows that are in the CRS of the regions; None: any, as it was stated."""
    if query.srid or stated is None:
        return {0, query.srid}
    code = stated.to_epsg()
    return None if code is None else {0, code}


def _batches(
    database: Database, query: Query, accepted: set[int] | None, request: Request
) -> Iterator[Any]:
    """Yield the schema once the first rows are there, then ids and WKB.

    A row of another SRID than the regions' has no region, by itself.
    """

    def region(value: Any) -> bytes | None:
        wkb, srid = _wkb(value)
        return wkb if accepted is None or srid in accepted else None

    with closing(database.chunks(query.sql, request.chunk_rows)) as rows:
        first = next(rows, [])
        yield query.schema
        for chunk in chain([first], rows):
            ids = [[row[i] for row in chunk] for i in range(len(query.schema) - 1)]
            yield record_batch([*ids, [region(row[-1]) for row in chunk]], query.schema)
    request.show(1.0)  # how many rows there are is not known before


def _carried(srid: int, stated: CRS | None) -> CRS | None:
    if srid == 0:
        return None
    try:
        return read_crs(f"EPSG:{srid}")
    except CRSError:
        if stated is not None:
            return None
    unknown = f"SRID {srid} is no EPSG code that pyproj knows: state the CRS by "
    raise CRSError(unknown, Argument("crs", ""))
