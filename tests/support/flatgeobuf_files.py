"""FlatGeobuf files made by hand: what no writer would write can be told to a reader."""

from __future__ import annotations

import struct

from shapely import Point

MAGIC = b"fgb\x03fgb\x00"
LONG, ULONG, DOUBLE, TEXT, JSON, TIME, BINARY = 7, 8, 10, 11, 12, 13, 14
_FORMS = {LONG: "<q", ULONG: "<Q", DOUBLE: "<d"}


class Vector:
    def __init__(self, content, count):
        self.content, self.count = content, count


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return Vector(raw + b"\0", len(raw))


def numbers(form, values):
    return Vector(struct.pack(f"<{len(values)}{form}", *values), len(values))


def flat(fields):
    """Return the bytes of a table, a dict of bytes (numbers), vectors, tables and lists."""
    made = bytearray(4)
    struct.pack_into("<I", made, 0, _put(made, fields))
    return bytes(made)


def _put(made, node):
    """Append a node after all that is there, and return its place."""
    if isinstance(node, Vector):
        made += struct.pack("<I", node.count) + node.content
        return len(made) - len(node.content) - 4
    if isinstance(node, list):
        place = len(made)
        made += struct.pack("<I", len(node)) + bytes(4 * len(node))
        shared = {}
        for i, child in enumerate(node):
            at = place + 4 + 4 * i
            if id(child) not in shared:
                shared[id(child)] = _put(made, child)
            struct.pack_into("<I", made, at, shared[id(child)] - at)
        return place
    slots, body, later = [0] * (max(node, default=-1) + 1), bytearray(4), []
    for number, value in node.items():
        slots[number] = len(body)
        if isinstance(value, bytes):
            body += value
        else:
            later.append((len(body), value))
            body += bytes(4)
    vtable = struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), len(body), *slots)
    struct.pack_into("<i", body, 0, len(vtable))
    made += vtable
    place = len(made)
    made += body
    for at, value in later:
        struct.pack_into("<I", made, place + at, _put(made, value) - (place + at))
    return place


def geometry(kind=1, xy=(1.0, 2.0), ends=None, parts=None):
    made = {1: numbers("d", xy), 6: bytes([kind])}
    if ends is not None:
        made[0] = numbers("I", ends)
    if parts is not None:
        made[7] = parts
    return made


def value(column, kind, given):
    """Return one value of a feature's properties."""
    if kind in _FORMS:
        return struct.pack("<H", column) + struct.pack(_FORMS[kind], given)
    return struct.pack("<HI", column, len(given)) + given


def feature(properties=b"", shape=None):
    fields = {1: Vector(properties, len(properties))}
    if shape is not None:
        fields[0] = shape
    return flat(fields)


def framed(content):
    return struct.pack("<I", len(content)) + content


def file(features, kind=LONG, names=("user_id",), geometry_type=0, count=None):
    """Return a file of features with columns of one kind, and without an index."""
    columns = [{0: text(name), 1: bytes([kind])} for name in names]
    header = {
        2: bytes([geometry_type]),
        7: columns,
        8: struct.pack("<Q", len(features) if count is None else count),
        9: struct.pack("<H", 0),
        10: {1: struct.pack("<i", 32632)},
    }
    return MAGIC + framed(flat(header)) + b"".join(map(framed, features))


def of_ids(kind, ids):
    """Return a file with a point for each id; None is an id that is not there."""
    given = [b"" if user is None else value(0, kind, user) for user in ids]
    return file([feature(properties, geometry()) for properties in given], kind)


POINT = Point(1, 2).wkb
