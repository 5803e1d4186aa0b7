"""CSV in blocks of whole records: framing, bytes as they are, and one record never another's."""

import csv
import dataclasses
import gzip
import io
import random
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

import dpregions as dpr
from dpregions import EulerHistogram, synthetic
from dpregions.curator import check_regions
from dpregions.errors import DPRegionsError, InputError
from dpregions.extraction.fixes import regions_from_batches
from dpregions.intake.ids import plain_text
from dpregions.intake.sources import csv_blocks, tables
from dpregions.intake.sources.traces import read_fixes
from support.small_chunks import open_in_chunks

GRID = synthetic.grid(cell_size="2km")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


def rows_of(path, columns=("a", "b"), block=1 << 23, longest=1 << 27):
    """Return the rows in bytes, and how many were left out."""
    batches = list(csv_blocks.blocks(path, list(columns), block, longest))
    rows = [tuple(row.values()) for batch, _ in batches for row in batch.to_pylist()]
    return rows, sum(left_out for _, left_out in batches)


def written(path, data):
    path.write_bytes(data)
    return path


def quoted(rows, ends="\n"):
    text = io.StringIO(newline="")
    # Python quotes those line ends alone that it writes itself.
    quoting = csv.QUOTE_MINIMAL if ends == "\r\n" else csv.QUOTE_ALL
    csv.writer(text, lineterminator=ends, quoting=quoting).writerows([("a", "b"), *rows])
    return text.getvalue().encode()


fields = st.text(st.sampled_from('ab,"\n\r\t é\x00;'), max_size=6)
tables_of_two = st.lists(st.tuples(fields, fields), max_size=6)
blocks = st.integers(1, 40)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(tables_of_two, line_ends, blocks)
def test_rows_in_blocks_of_any_size_are_those_of_pythons_csv(folder, rows, ends, block):
    path = written(folder / "a.csv", quoted(rows, ends))
    expected = [tuple(field.encode() for field in row) for row in rows]
    assert rows_of(path, block=block) == (expected, 0)
    with open(path, newline="", encoding="utf-8") as file:
        theirs = list(csv.reader(file, strict=True))[1:]
    assert [tuple(row) for row in theirs] == rows


@given(st.lists(st.lists(fields, min_size=1, max_size=3).map(tuple), max_size=6), blocks, st.data())
def test_a_row_taken_away_takes_no_other_with_it(folder, rows, block, data):
    rows = [row for row in rows if row != ("",)]
    assume(rows)
    taken = data.draw(st.integers(0, len(rows) - 1))
    for part in (rows, rows[:taken] + rows[taken + 1 :]):
        kept = [tuple(field.encode() for field in row) for row in part if len(row) == 2]
        found = rows_of(written(folder / "a.csv", quoted(part)), block=block)
        assert found == (kept, len(part) - len(kept))


@given(st.binary(max_size=40), blocks, st.integers(3, 20))
def test_any_bytes_are_read_the_same_in_blocks_of_any_size(folder, data, block, longest):
    """As one block, or refused as in one block; the longest record is the same in both."""

    def outcome(size):
        try:
            return rows_of(path, block=size, longest=longest)
        except InputError as error:
            return str(error)

    path = written(folder / "a.csv", b"a,b\n" + data.replace(b"x", b'"').replace(b"y", b",\n"))
    assert outcome(block) == outcome(1 << 20)


@given(st.text(st.sampled_from('ab, "\n\r'), max_size=12))
def test_what_is_well_framed_is_what_arrow_reads(folder, text):
    path = written(folder / "a.csv", b"a,b\n" + text.encode() + b"\n")
    try:
        found = rows_of(path)[0]
    except InputError:
        return
    data = pa.BufferReader(path.read_bytes())
    options = (
        arrow_csv.ReadOptions(use_threads=False),
        arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip"),
        arrow_csv.ConvertOptions(column_types={"a": pa.binary(), "b": pa.binary()}),
    )
    theirs = arrow_csv.read_csv(data, *options)
    assert found == [tuple(row.values()) for row in theirs.to_pylist()]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (b'a"b,c', (b'a"b', b"c")),
        (b"6'2\",c", (b"6'2\"", b"c")),
        (b' "x",c', (b' "x"', b"c")),
        (b'"x" ,c', (b"x ", b"c")),
        (b'"",""""', (b"", b'"')),
        (b'"x,\r\n""y""",z', (b'x,\r\n"y"', b"z")),
    ],
)
def test_quotes_open_at_the_start_of_a_field_alone(tmp_path, text, row):
    assert rows_of(written(tmp_path / "a.csv", b"a,b\n" + text)) == ([row], 0)


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b'"x"y,z', "do not go in pairs"),
        (b'"ann,9\n"bob",9', "do not go in pairs"),
        (b'"ann,9\nbob,9\n', "is cut short: it ends within quotes"),
        (b'ann,"9', "is cut short: it ends within quotes"),
    ],
)
def test_quotes_that_would_swallow_another_row_are_refused_without_it(
    tmp_path, record, words, block
):
    path = written(tmp_path / "a.csv", b"a,b\neve,9\n" + record)
    with pytest.raises(InputError, match=words) as caught:
        rows_of(path, block=block)
    assert not any(name in str(caught.value) for name in ("ann", "bob", "eve"))


def test_blank_lines_and_a_mark_at_the_start_are_nothing(tmp_path):
    data = b'\xef\xbb\xbf\n\r\n"a",b\n\n\n' + b"\r\n" * 30 + b"1,2\r3,4\n\n"
    for block in (1, 2, 5, 100):
        path = written(tmp_path / "a.csv", data)
        assert csv_blocks.column_names(path, block) == ["a", "b"]
        assert rows_of(path, block=block) == ([(b"1", b"2"), (b"3", b"4")], 0)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_a_file_without_a_first_line_is_refused(tmp_path, data):
    with pytest.raises(InputError, match="no first line names its columns"):
        csv_blocks.column_names(written(tmp_path / "a.csv", data))


def test_names_that_are_no_utf_8_are_escaped(tmp_path):
    path = written(tmp_path / "a.csv", "Jos\u00e9,b\n1,2\n".encode("latin-1"))
    assert csv_blocks.column_names(path) == [r"Jos\xe9", "b"]


@pytest.mark.parametrize("block", [1, 10, 64])
def test_a_record_that_is_too_long_is_left_out_by_itself(tmp_path, block):
    fitting, longer, long = (b'"' + b"\n" * size + b'",1' for size in (16, 17, 45))
    for before in range(12):
        rows = [b"1" * before + b",2", longer, b"3,4", fitting, long, longer, b"5,6", long]
        path = written(tmp_path / "a.csv", b"a,b\n" + b"\n".join(rows))
        found, left_out = rows_of(path, block=block, longest=len(fitting))
        assert [second for _, second in found] == [b"2", b"4", b"1", b"6"]
        assert left_out == 4


def test_a_record_longer_than_a_block_is_a_record(tmp_path):
    hole = "x" * (3 * csv_blocks.CSV_BLOCK)
    rows = [("1", "2"), (hole, "\n"), ("3", "4")]
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(quoted(rows))
    found, left_out = rows_of(path)
    assert [second for _, second in found] == [b"2", b"\n", b"4"]
    assert (len(found[1][0]), left_out) == (len(hole), 0)


# Through the readers.


@pytest.mark.parametrize("shift", range(0, 70, 3))
def test_a_quoted_line_end_at_a_blocks_end_loses_no_row(tmp_path, shift):
    noisy = '"' + "z" * shift + "\n" * 9 + '"'
    lines = ["user_id,lon,lat,note", f"ann,9,48.5,{noisy}", "bob,9,48.5,", "eve,9,48.5,x"]
    path = written(tmp_path / "a.csv", "\n".join(lines).encode())
    reader = dataclasses.replace(read_fixes(path), _stream=partial(tables.stream, block=64))
    users = [user for batch in reader for user in batch["user_id"]]
    assert users == ["ann", "bob", "eve"]
    stream = open_in_chunks(path, csv_block=64)
    assert [user for batch in stream for user in batch["user_id"].to_pylist()] == users


def counted(path, **options):
    stream = open_in_chunks(path, crs=4326, **options)
    return EulerHistogram.from_regions(stream, GRID, user_id="user_id")


POINT = b"POINT (9 48.5)"


@pytest.mark.parametrize("names", [["José", "Josè"], ["é", "è", r"\xe9", r"\\xe9"]])
def test_ids_of_other_bytes_than_utf_8_are_different_users(tmp_path, names):
    raw = [name.encode("latin-1") for name in names]
    lines = [b"user_id,wkt", *(name + b"," + POINT for name in [*raw, *raw])]
    path = written(tmp_path / "a.csv", b"\n".join(lines))
    assert counted(path).count(*GRID.bounds) == len(names)
    ids = [user for batch in dpr.open_regions(path) for user in batch["user_id"].to_pylist()]
    assert ids == [plain_text(name) for name in [*raw, *raw]]
    lines = [b"user_id,lon,lat", *(name + b",9,48.5" for name in raw)]
    path = written(tmp_path / "a.csv", b"\n".join(lines))
    found = regions_from_batches(read_fixes(path), k=1, max_diameter=1, crs=32632)
    assert sorted(found["user_id"]) == sorted(map(plain_text, raw))


@pytest.mark.parametrize(
    ("head", "good", "bad"),
    [
        (b"user_id,wkt", b"ann," + POINT, b"bob,Main Street 471"),
        (b"user_id,wkt", b"ann," + POINT, b"bob,POINT (9 \xff48.5)"),
        (b"user_id,wkt", b"ann," + POINT, b"bob,POLYGON ((1 2, 3 4, 5 6, 1 2))"),
        (b"user_id,lon,lat", b"ann,9,48.5", b'bob,"9,0","48,5"'),
        (b"user_id,lon,lat", b"ann,9,48.5", b"bob,9,0,48,5"),
        (b"user_id,lon,lat", b"ann,9,48.5", b"bob,500000,5372000"),
        (b"user_id,lon,lat", b"ann,9,48.5", b"bob,48.5,139.7"),
        (b"user_id,lon,lat", b"ann,9,48.5", b"bob,9.0\xff,48.5"),
    ],
)
def test_the_only_region_of_a_file_decides_nothing_for_others(tmp_path, head, good, bad):
    counts = []
    for lines in ([bad, bad], [good], [bad, bad, good]):
        path = written(tmp_path / "a.csv", b"\n".join([head, *lines, b""]))
        counts.append(counted(path).count(*GRID.bounds))
    assert counts == [0, 1, 1]


def test_the_check_tells_of_a_file_without_regions(tmp_path):
    lines = ["user_id,wkt", "ann,Main Street", 'bob,"POINT (48.5 9)"', "eve,POLYGON ((1 2, 3 4))"]
    path = written(tmp_path / "a.csv", "\n".join(lines).encode())
    found = check_regions(dpr.open_regions(path, crs=4326), GRID)
    assert (found.rows, found.skipped, found.null, found.outside) == (2, 1, 1, 1)


raw_ids = st.one_of(
    st.binary(max_size=4),
    st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([b"1", b"1.0", b"01", b"1e0", b"nan", b"NULL", b"\\xe9", b"\xe9", b"\x00"]),
    st.integers(-(2**65), 2**65).map(lambda number: str(number).encode()),
)
places = st.tuples(
    st.one_of(st.floats(8.99, 9.01).map(repr), st.sampled_from(["", "here", "nan", "+9", " 9"])),
    st.one_of(st.floats(48.49, 48.51).map(repr), st.sampled_from(["48.5", "400", "1e999", "?"])),
    st.sampled_from(["1200000000", "2008-02-02", "oops", "", "2008-02-02 13:33:52.5", "2008"]),
)
users = st.dictionaries(raw_ids, st.lists(places, min_size=1, max_size=3), max_size=3)


def as_csv(path, rows):
    def field(raw):
        return b'"' + raw.replace(b'"', b'""') + b'"'

    lines = [b",".join(map(field, (user, *(t.encode() for t in row)))) for user, row in rows]
    return written(path, b"user_id,lon,lat,t\n" + b"\n".join(lines))


def as_parquet(path, rows):
    raw = pa.array([user for user, _ in rows], pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    columns = [pa.array([row[i] for _, row in rows], pa.string()) for i in range(3)]
    pq.write_table(pa.table([text, *columns], names=["user_id", "lon", "lat", "t"]), path)
    return path


RECIPE = {"k": 3, "max_diameter": "1km", "crs": 32632}
TRIPS = {**RECIPE, "unit": "trajectory", "gap": "1h"}


@pytest.mark.parametrize("write", [as_csv, as_parquet], ids=["CSV", "Parquet"])
@given(
    users=users,
    order=st.randoms(use_true_random=False),
    batch=st.integers(1, 9),
    recipe=st.sampled_from([RECIPE, TRIPS]),
)
def test_the_users_of_a_file_are_the_sum_of_each_alone(folder, write, users, order, batch, recipe):
    rows = [(user, row) for user, theirs in users.items() for row in theirs]
    order.shuffle(rows)
    path = folder / ("a.csv" if write is as_csv else "a.parquet")

    def found(part):
        reader = read_fixes(write(path, part), batch_fixes=batch)
        regions = regions_from_batches(reader, **recipe)
        return list(zip(regions["user_id"], shapely.to_wkb(regions.geometry), strict=True))

    alone = [found([row for row in rows if row[0] == user]) for user in users]
    assert sorted(found(rows)) == sorted(region for part in alone for region in part)
    for user, part in zip(users, alone, strict=True):
        assert {name for name, _ in part} <= {plain_text(user)} - {""}


@given(users=users, order=st.randoms(use_true_random=False), block=st.integers(1, 64))
def test_the_regions_of_a_csv_file_are_the_sum_of_each_users(folder, users, order, block):
    rows = [(user, row) for user, theirs in users.items() for row in theirs]
    order.shuffle(rows)

    def total(part):
        path = as_csv(folder / "b.csv", part)
        return counted(path, csv_block=block).counts

    alone = [total([row for row in rows if row[0] == user]) for user in users]
    assert np.array_equal(total(rows), sum(alone, start=total([])))


values = st.one_of(
    st.sampled_from(["1", "1.", ".5", "+9", " 9", "9 ", "-0", "1e5", "1e999", "nan", "inf", "0x1"]),
    st.sampled_from(["2008", "200802", "20080202", "2008-02", "2008-02-02", "2008-02-02T13", "T"]),
    st.sampled_from(["2008-02-02 13:33:52Z", "2008-02-02 24:00:00", "0001-01-01", "2008-W05"]),
    st.datetimes().map(str),
    st.floats().map(repr),
    st.text(st.sampled_from("0123456789-:. Te+Z"), max_size=12),
    st.text(max_size=3),
)


@given(st.lists(st.one_of(values.map(lambda text: text.encode()), st.binary(max_size=3))))
def test_numbers_and_times_of_a_column_are_those_of_each_value(raw):
    column = pa.array(raw, pa.binary())
    begin, end = np.datetime64("1980-01-06"), np.datetime64("2100-01-01")

    def usable(read, part):
        """Return values, None for those that no fix may have."""
        found = read(part)
        good = np.isfinite(found) if read is tables.numbers else (found >= begin) & (found < end)
        return [value if fine else None for value, fine in zip(found, good, strict=True)]

    for read in (tables.numbers, tables.times):
        alone = [usable(read, column[i : i + 1])[0] for i in range(len(raw))]
        assert usable(read, column) == alone


def test_long_digits_are_read_in_linear_time():
    long = b"1" * 1_000_000 + b"x"
    assert np.isnan(tables.numbers(pa.array([long, b"y"], pa.binary()))).all()


CANARY = b"canary-471"


def mutated(data, rng):
    """Return bytes with a few of them changed, taken out, doubled or cut off."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(data)), rng.randint(1, 9)
        change = rng.randrange(6)
        if change == 0:
            data[at] = rng.randrange(256)
        elif change == 1:
            data[at : at + size] = rng.randbytes(size)
        elif change == 2:
            del data[at : at + size]
        elif change == 3:
            data[at:at] = data[at : at + size]
        elif change == 4:
            data[at:at] = rng.choice([b'"', b",", b"\n", b"\x00", b"\xff", b'""', b"\r"])
        elif rng.random() < 0.3:
            del data[at + 1 :]
    return bytes(data)


def originals(folder):
    rows = [(CANARY + b'"\xff"%d' % i, ("9.0", "48.5", "2008-02-02")) for i in range(9)]
    fixes = as_parquet(folder / "a.parquet", rows).read_bytes()
    yield "a.csv", as_csv(folder / "a.csv", rows).read_bytes()
    yield "a.csv.gz", gzip.compress((folder / "a.csv").read_bytes())
    yield "a.parquet", fixes
    plain = pd.DataFrame({"user_id": range(9), "lon": 9.0, "lat": 48.5, "t": 1.2e9})
    plain.to_parquet(folder / "a.parquet", compression=None, row_group_size=4)
    yield "b.parquet", (folder / "a.parquet").read_bytes()


def words_of(read, path):
    """Return in which words a reading is refused, if it is."""
    try:
        read(path)
    except DPRegionsError as error:
        return f"{error} {error.__cause__ or ''}"
    return ""


def regions_of(path):
    return regions_from_batches(read_fixes(path), **TRIPS)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_read_or_refused_in_our_words(tmp_path, seed, capfd, recwarn):
    rng = random.Random(seed)
    for name, data in list(originals(tmp_path)):
        for _ in range(50):
            path = written(tmp_path / name, mutated(data, rng))
            for read in (regions_of, counted) if "csv" in name else (regions_of,):
                assert "canary" not in words_of(read, path)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
