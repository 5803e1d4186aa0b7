"""WKB is walked before GEOS sees it: what passes is read as shapely reads it alone, or is None."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
import shapely

from dpregions import Grid
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.intake import wkb_kernel as _wkb
from dpregions.intake.geometries import MAX_BYTES, MAX_NESTING, coordinates, decoded

ODD = [0.0, 1.0, 2.0, 3.0, np.nan, np.inf, 1e308, -1e-320]
CURVES = {8: "circular string", 9: "compound curve", 10: "curve polygon", 11: "multicurve"}
CURVES |= {12: "multisurface", 13: "curve", 14: "surface", 15: "polyhedral surface", 16: "tin"}
CURVES |= {17: "triangle"}


def walkable(*records: bytes) -> list[bool]:
    data = np.frombuffer(b"".join(records), np.uint8)
    data.flags.writeable = False
    offsets = np.cumsum([0, *map(len, records)])
    return _wkb.walkable(data, offsets, MAX_NESTING).tolist()


def collection(*parts: bytes) -> bytes:
    return struct.pack("<BII", 1, 7, len(parts)) + b"".join(parts)


def nested(depth: int, inside: bytes) -> bytes:
    return struct.pack("<BII", 1, 7, 1) * depth + inside


class Wkb:
    """Writes WKB of every kind: both byte orders, ISO and extended, Z, M, an SRID, nested."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def any(self, depth: int = 0) -> bytes:
        return self.of(int(self.rng.integers(1, 8 if depth < 3 else 7)), depth)

    def of(self, kind: int, depth: int) -> bytes:
        big, z, m = (bool(v) for v in self.rng.integers(2, size=3))
        order, width = "<>"[big], 2 + z + m
        form = self.rng.choice(["iso", "extended", "with srid"])
        code = kind + 1000 * z + 2000 * m
        if form != "iso":
            code = kind | 0x80000000 * z | 0x40000000 * m | 0x20000000 * (form == "with srid")
        head = struct.pack(order + "BI", not big, code)
        head += struct.pack(order + "I", 4326) if form == "with srid" else b""

        def counted(parts: list[bytes]) -> bytes:
            return struct.pack(order + "I", len(parts)) + b"".join(parts)

        def point() -> bytes:
            odd = self.rng.choice(ODD, width, p=[0.235] * 4 + [0.015] * 4)
            return struct.pack(f"{order}{width}d", *odd)

        def ring() -> bytes:
            points = [point() for _ in range(self.rng.choice([0, 3, 4]))]
            return counted(points + points[:1])

        n = int(self.rng.choice([0, 1, 2, 3]))
        if kind == 1:
            empty = struct.pack(f"{order}{width}d", *[np.nan] * width)
            return head + (point() if n else empty)
        if kind == 2:
            return head + counted([point() for _ in range(n)])
        if kind == 3:
            return head + counted([ring() for _ in range(n)])
        parts = [self.any(depth + 1) if kind == 7 else self.of(kind - 3, depth) for _ in range(n)]
        return head + counted(parts)

    def mutated(self, wkb: bytes) -> bytes:
        octets, rng = bytearray(wkb), self.rng
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(octets) + 1))
            match rng.choice(["byte", "small", "cut", "insert", "lose", "type", "count"]):
                case "byte":
                    octets[at : at + 1] = rng.bytes(1)
                case "small":
                    octets[at : at + 1] = bytes([rng.choice([*range(18), 32, 64, 128, 255])])
                case "cut":
                    del octets[at:]
                case "insert":
                    octets[at:at] = self.any()
                case "lose":
                    del octets[at : at + int(rng.choice([1, 4, 8]))]
                case "type":
                    known = [*range(18), 1001, 2003, 3007, 1008, 4001, 5001, 0x10001, 2**32 - 1]
                    octets[1:5] = struct.pack("<I", int(rng.choice(known)))
                case "count":
                    octets[at : at + 4] = b"\xff\xff\xff\xff"
        return bytes(octets)


class PlainWkb(Wkb):
    """Writes what is read without objects, for the most part: and a few that only look like it."""

    def any(self, depth: int = 0) -> bytes:
        return self.of(int(self.rng.choice([1, 3, 3, 3, 6, 6])), depth)

    def of(self, kind: int, depth: int) -> bytes:
        z, m, srid, iso = (bool(v) for v in self.rng.integers(2, size=4))
        return self.like(kind, z, m, srid and not iso, iso)

    def like(self, kind: int, z: bool, m: bool, srid: bool, iso: bool) -> bytes:
        code = kind + 1000 * z + 2000 * m
        if not iso:
            code = kind | 0x80000000 * z | 0x40000000 * m | 0x20000000 * srid
        head = struct.pack("<BI", 1, code) + (struct.pack("<I", 4326) if srid else b"")
        width, rng = 2 + z + m, self.rng
        if kind == 1:
            return head + rng.choice([*range(5), np.nan], width).astype("<f8").tobytes()
        n = int(rng.integers(0, 4))
        if kind == 6:
            odd = rng.random() < 0.05
            parts = [self.like(3, z ^ odd, m, srid and rng.random() < 0.5, iso) for _ in range(n)]
            return head + struct.pack("<I", n) + b"".join(parts)
        return head + struct.pack("<I", n) + b"".join(self.ring(width) for _ in range(n))

    def ring(self, width: int) -> bytes:
        rng = self.rng
        xy = rng.choice([*range(-2, 7), 1.5, 2.25, -0.0], (int(rng.integers(3, 9)), width))
        if rng.random() < 0.03:
            xy.flat[rng.integers(xy.size)] = rng.choice(ODD)
        if rng.random() < 0.97:
            xy[-1, :2] = xy[0, :2]
        return struct.pack("<I", len(xy)) + xy.astype("<f8").tobytes()


def read_here(*records: bytes) -> np.ndarray:
    """Return what the kernel says of each record: how many points it has, or who is to read it."""
    data = np.frombuffer(b"".join(records), np.uint8)
    data.flags.writeable = False
    offsets = np.cumsum([0, *map(len, records)])
    null = np.zeros(len(records), np.bool_)
    return _wkb.points_in(data, offsets, null, MAX_BYTES, MAX_NESTING)


GRID = Grid(0, 0, 1, n_rows=5, n_cols=4)
BOUNDS = [None, Bound.of(GRID, 1.7, "shrink"), Bound.of(GRID, 3, "drop")]


def outlines(records: object, bound: Bound | None) -> list[list[list[int]]]:
    found = Outlines.of(*coordinates(records), GRID, bound)
    return [part.tolist() for part in np.split(found.xy, found.offsets[1:-1])]


def alone(wkb: bytes) -> shapely.Geometry | None:
    """Return what shapely makes of one record that passed: without an exception."""
    with np.errstate(all="ignore"):
        return shapely.from_wkb(wkb, on_invalid="ignore")


def written(geometry: shapely.Geometry | None) -> bytes | None:
    with np.errstate(all="ignore"):
        return shapely.to_wkb(geometry, output_dimension=4, include_srid=True)


class TestEverythingThatGeosReads:
    def test_all_types_orders_forms_and_dimensions_pass_and_are_read_as_shapely_reads_them(self):
        writer = Wkb(0)
        records = [writer.any() for _ in range(4000)]
        assert all(walkable(*records))
        found = decoded(pa.array(records, pa.binary()))
        assert [written(g) for g in found] == [written(alone(wkb)) for wkb in records]
        assert {shapely.get_type_id(g) for g in found if g} == {0, 1, 3, 4, 5, 6, 7}
        assert np.mean(found != np.array(None)) > 0.7  # the rest: open rings, lines of a point

    def test_what_shapely_writes_passes(self):
        texts = ["POINT (1 2)", "POINT EMPTY", "LINESTRING Z (0 0 1, 1 1 1)", "POLYGON M EMPTY"]
        texts += ["MULTIPOINT ((0 0), EMPTY)", "MULTIPOLYGON ZM (((0 0 1 1, 1 0 1 1, 1 1 1 1, "]
        texts[-1] += "0 0 1 1)))"
        texts += [f"GEOMETRYCOLLECTION ({', '.join(texts[:2])}, GEOMETRYCOLLECTION EMPTY)"]
        shapes = shapely.set_srid(shapely.from_wkt(texts), 4326)
        for flavor in ("extended", "iso"):
            for order in (0, 1):
                options = {"byte_order": order, "include_srid": flavor == "extended"}
                records = shapely.to_wkb(shapes, flavor=flavor, output_dimension=4, **options)
                assert walkable(*records) == [True] * len(shapes)
                assert shapely.equals_identical(decoded(records), shapes).all()

    def test_bytes_after_the_end_are_ignored(self):
        point = shapely.Point(1, 2).wkb
        assert walkable(point + b"\x00more") == [True]
        assert decoded([point + b"\x00more"]).tolist() == [shapely.Point(1, 2)]


class TestMutants:
    @pytest.mark.parametrize("seed", range(3))
    def test_each_becomes_what_shapely_alone_makes_of_it_or_none_in_any_company(self, seed):
        writer = Wkb(seed)
        records = [writer.mutated(writer.any()) for _ in range(5000)]
        passed = walkable(*records)
        found = decoded(pa.array(records, pa.large_binary()))
        assert 0.1 < np.mean(passed) < 0.9
        for record, fine, geometry in zip(records, passed, found, strict=True):
            expected = alone(record) if fine else None
            assert written(geometry) == written(expected)

    def test_every_truncation_is_refused(self):
        writer = Wkb(5)
        for record in (writer.any() for _ in range(200)):
            assert not any(walkable(*(record[:n] for n in range(len(record)))))


class TestPointsWithoutObjects:
    """Compiled code reads plain records; shapely, which reads the others, is its oracle."""

    @pytest.mark.parametrize("seed", range(3))
    def test_outlines_are_those_of_shapely(self, seed):
        writer = PlainWkb(seed)
        records = [writer.any() for _ in range(4000)]
        assert np.mean(read_here(*records) >= 0) > 0.7
        column = pa.array(records, pa.binary())
        for bound in BOUNDS:
            assert outlines(column, bound) == outlines(decoded(column), bound)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("writer", [Wkb, PlainWkb])
    def test_outlines_of_mutants_are_those_of_shapely(self, writer, seed):
        writer = writer(seed)
        records = [writer.mutated(writer.any()) for _ in range(4000)]
        found = read_here(*records)
        assert (found > 0).sum() > 100 and (found == _wkb.FOR_GEOS).any()
        column = pa.array(records, pa.large_binary())
        for bound in BOUNDS:
            assert outlines(column, bound) == outlines(decoded(column), bound)

    def test_every_ordinate_is_read_where_it_is(self):
        texts = ["POINT (1 2)", "POLYGON ((0 0, 2 0, 2 3, 0 0), (1 0.5, 1.5 0.5, 1.5 1, 1 0.5))"]
        texts += ["MULTIPOLYGON (((0 0, 2 0, 2 3, 0 0)), ((3 3, 4 3, 4 4, 3 3)))", "POLYGON EMPTY"]
        plain = shapely.set_srid(shapely.from_wkt(texts), 4326)
        high = shapely.force_3d(plain, 7.0)
        for shapes in (plain, high):
            for flavor in ("extended", "iso"):
                options = {"flavor": flavor, "include_srid": flavor == "extended"}
                records = shapely.to_wkb(shapes, byte_order=1, **options)
                assert (read_here(*records) == shapely.get_num_coordinates(shapes)).all()
                coords, starts = coordinates(pa.array(records, pa.binary()))
                assert coords.tolist() == shapely.get_coordinates(shapes).tolist()
                assert np.diff(starts).tolist() == [1, 8, 8, 0]

    def test_rows_for_geos_lie_between_the_others(self):
        shapes = shapely.from_wkt(["POINT (1 2)", "LINESTRING (3 4, 5 6)", "POINT (7 8)"])
        records = [
            *shapely.to_wkb(shapes),
            None,
            b"",
            b"odd",
            shapely.to_wkb(shapes[0], byte_order=0),
        ]
        for column in (pa.array(records, pa.binary()), pa.array([None, *records])[1:]):
            coords, starts = coordinates(column)
            assert coords.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8], [1, 2]]
            assert starts.tolist() == [0, 1, 3, 4, 4, 4, 4, 5]

    def test_what_only_looks_plain_is_for_geos(self):
        ring = [(0, 0), (2, 0), (2, 2), (0, 0)]

        def polygon(points: list[tuple[float, float]]) -> bytes:
            head = struct.pack("<BIII", 1, 3, 1, len(points))
            return head + np.array(points, "<f8").tobytes()

        unclosed, short, signed = [*ring[:3], (0, 1)], ring[:2] + ring[:1], [*ring[:3], (-0.0, 0)]
        found = read_here(*map(polygon, (ring, unclosed, short, signed)))
        assert found.tolist() == [4, *[_wkb.FOR_GEOS] * 3]

    def test_a_null_has_no_points_whatever_bytes_are_behind_it(self):
        point = shapely.Point(1, 2).wkb
        whole = pa.array([point, point])
        hidden = pa.Array.from_buffers(
            pa.binary(), 2, [pa.py_buffer(b"\x02"), *whole.buffers()[1:]]
        )
        assert hidden.to_pylist() == [None, point]
        assert coordinates(hidden)[1].tolist() == [0, 0, 1]

    def test_the_longest_record_is_read_and_one_more_byte_is_not(self):
        point = shapely.Point(1, 2).wkb
        records = [point.ljust(MAX_BYTES, b"\0"), point.ljust(MAX_BYTES + 1, b"\0")]
        assert coordinates(pa.array(records))[1].tolist() == [0, 1, 1]

    def test_every_truncation_is_refused(self):
        writer = PlainWkb(5)
        for record in (writer.any() for _ in range(100)):
            assert (read_here(*(record[:n] for n in range(len(record)))) == _wkb.REFUSED).all()


class TestRefused:
    @pytest.mark.parametrize("kind", CURVES, ids=CURVES.values())
    def test_curves_and_surfaces_are_refused_by_themselves_and_within_collections(self, kind):
        curve, point = struct.pack("<BII", 1, kind, 0), shapely.Point(1, 1).wkb
        odd = [curve, collection(curve), collection(point, collection(curve)), collection(point)]
        assert walkable(*odd) == [False, False, False, True]
        iso = struct.pack("<BII", 1, kind + 1000, 0)
        assert walkable(iso, collection(iso), point) == [False, False, True]

    @pytest.mark.parametrize("code", [0, 18, 99, 1000, 4001, 5001, 0x10001, 2**29 - 1, 2**32 - 1])
    def test_unknown_types_are_refused(self, code):
        assert walkable(struct.pack("<BIdd", 1, code, 1, 1)) == [False]

    @pytest.mark.parametrize("order", [2, 48, 49, 255])
    def test_an_unknown_byte_order_is_refused(self, order):
        """GEOS would take the order of what it read before, and shapely read '0' as hex."""
        point = bytes([order]) + shapely.Point(1, 1).wkb[1:]
        assert walkable(point, collection(point)) == [False, False]
        assert decoded([point, shapely.Point(1, 1).wkb.hex().encode()]).tolist() == [None, None]

    @pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 7])
    @pytest.mark.parametrize("order", "<>")
    def test_counts_beyond_the_bytes_are_refused(self, kind, order):
        for count in (2, 2**28, 2**31, 2**32 - 1):
            head = struct.pack(order + "BII", order == "<", kind, count)
            assert walkable(head, head + bytes(4)) == [False, False]

    @pytest.mark.parametrize("kind", [4, 5, 6])
    def test_parts_of_another_type_are_refused(self, kind):
        parts = {4: "POINT (0 0)", 5: "LINESTRING (0 0, 1 1)", 6: "POLYGON ((0 0, 1 1, 1 0, 0 0))"}
        heads = struct.pack("<BII", 1, kind, 1)
        records = [heads + shapely.from_wkt(text).wkb for text in parts.values()]
        assert walkable(*records) == [kind == own for own in parts]
        assert walkable(heads + collection()) == [False]

    def test_offsets_that_lead_nowhere_are_refused(self):
        data = np.frombuffer(shapely.Point(1, 1).wkb, np.uint8)
        for offsets in ([-1, 21], [0, 22], [21, 0], [2**62, -(2**62)]):
            assert not _wkb.walkable(data, np.array(offsets, np.int64), MAX_NESTING).any()


class TestNesting:
    @pytest.mark.parametrize("text", ["POINT (1 2)", "MULTIPOINT ((1 2), (3 4))", "POINT EMPTY"])
    def test_collections_nest_to_the_bound_and_no_deeper(self, text):
        inside = shapely.from_wkt(text).wkb
        records = [nested(MAX_NESTING, inside), nested(MAX_NESTING + 1, inside)]
        assert walkable(*records) == [True, False]
        found = decoded(records)
        assert shapely.get_num_coordinates(found[0]) == shapely.get_num_coordinates(
            shapely.from_wkb(inside)
        )
        assert found[1] is None

    def test_the_bound_is_on_depth_not_on_how_many_there_are(self):
        several = collection(*[nested(MAX_NESTING - 1, shapely.Point(1, 1).wkb)] * 40)
        assert walkable(several) == [True]

    def test_a_record_nested_a_hundred_thousand_deep_is_none_and_the_process_lives(self):
        deep = nested(100_000, shapely.Point(1, 1).wkb)
        assert decoded([deep, shapely.Point(1, 1).wkb]).tolist() == [None, shapely.Point(1, 1)]
