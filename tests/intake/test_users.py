"""Whose each row is, as words: the same rule as for columns that are held as a whole."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.intake.hash_kernel import hashes
from dpregions.intake.ids import IdColumns, user_numbers
from dpregions.intake.users import Users, UserWords

KEY = np.frombuffer(bytes(range(16)), np.uint64)
FIRST_VECTORS = [
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
]
"""Of the authors' reference: the hashes of 0, 1 and 2 bytes that count from 0, by that key."""


def numbers(found: Users) -> list[int]:
    """Return users as numbers in order of appearance, -1 for none."""
    met: dict[bytes, int] = {}
    return [
        met.setdefault(words.tobytes(), len(met)) if there else -1
        for words, there in zip(found.words, found.there, strict=True)
    ]


def in_order(codes: np.ndarray) -> list[int]:
    met: dict[int, int] = {}
    return [-1 if code < 0 else met.setdefault(code, len(met)) for code in codes.tolist()]


DAY, NOON = datetime.date(2024, 5, 6), datetime.datetime(2024, 5, 6, 12)
COLUMNS = {
    "int8": pa.array([1, -1, 1, None, 127], pa.int8()),
    "uint64": pa.array([1, 2**64 - 1, 1, None, 2**63], pa.uint64()),
    "int64": pa.array([1, -1, 1, None, -(2**63)], pa.int64()),
    "bool": pa.array([True, False, True, None]),
    "text": pa.array(["a", "", "a", None, "ä", "a\0", "a" * 7, "a" * 8, "a" * 9, "a" * 17]),
    "large text": pa.array(["a", "", None, "b"], pa.large_string()),
    "bytes": pa.array([b"a", b"", None, b"\xff", b"a"]),
    "view": pa.array(["a", "", None, "much longer than twelve bytes", "a"], pa.string_view()),
    "fixed": pa.array([b"abc", b"abd", None, b"abc"], pa.binary(3)),
    "uuid": pa.array([b"a" * 16, b"b" * 16, None, b"a" * 16], pa.binary(16)),
    "nothing fixed": pa.array([b"", None], pa.binary(0)),
    "decimal": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2"), None], pa.decimal128(9, 2)),
    "small decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal(1)]).cast(
        pa.decimal64(9, 2)
    ),
    "huge decimal": pa.array([decimal.Decimal("1.5"), None], pa.decimal256(60, 2)),
    "date": pa.array([DAY, None, DAY, datetime.date(1, 1, 1)]),
    "date64": pa.array([DAY, None, DAY], pa.date64()),
    "time": pa.array([datetime.time(1), None, datetime.time(2)], pa.time32("s")),
    "times": pa.array([NOON, None, NOON, datetime.datetime(1, 1, 1)], pa.timestamp("us")),
    "zoned": pa.array([NOON, None, NOON], pa.timestamp("ns", "Asia/Tokyo")),
    "duration": pa.array([datetime.timedelta(1), None, datetime.timedelta(1)]),
    "words": pa.array(["a", "b", None, "a", ""]).dictionary_encode(),
    "null": pa.nulls(3),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_words_tell_users_apart_as_numbers_of_a_whole_column_do(name):
    column = COLUMNS[name]
    for part in (column, column[1:], pa.concat_arrays([column, column])[1:]):
        table = pa.table({"id": part})
        wanted = user_numbers("id", ["id"], table.column)
        assert numbers(UserWords().of([part])) == in_order(wanted)


def test_a_null_is_no_user_whatever_is_behind_it():
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([7, 7]).buffers()[1]]
    )
    assert UserWords().of([hidden]).there.tolist() == [False, True]


def test_several_columns_are_one_id_together():
    user = pa.array(["ann", "ann", "bob", None, "ann", ""])
    trip = pa.array([1, 2, 1, 1, 1, 1])
    wanted = user_numbers(
        IdColumns(("u", "t")), ["u", "t"], pa.table({"u": user, "t": trip}).column
    )
    assert numbers(UserWords().of([user, trip])) == in_order(wanted)


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=30), st.integers(1, 9))
def test_batches_do_not_matter(values, size):
    column, words = pa.array(values, pa.string()), UserWords()
    parts = [words.of([column[i : i + size]]) for i in range(0, len(column), size)]
    whole = words.of([column])
    for i, name in enumerate(("words", "there")):
        joined = [part[i] for part in parts] or [whole[i]]
        assert np.array_equal(np.concatenate(joined), getattr(whole, name))


def test_another_reading_has_another_key():
    column = pa.array(["ann"])
    assert not np.array_equal(UserWords().of([column]).words, UserWords().of([column]).words)


def test_whole_numbers_are_compared_exactly():
    column = pa.array([2**53, 2**53 + 1])
    assert UserWords().of([column]).words[:, 0].tolist() == [2**53, 2**53 + 1]


def test_the_hash_is_the_authors():
    data = np.frombuffer(bytes([*b"", 0, 0, 1]), np.uint8)
    data.flags.writeable = False
    found = hashes(data, np.array([0, 0, 1, 3]), KEY)
    assert [words.tobytes().hex() for words in found] == FIRST_VECTORS


def test_the_hash_takes_in_every_byte_and_the_length():
    values = [bytes(n) for n in range(40)]
    values += [bytes([*bytes(i), 1, *bytes(23 - i)]) for i in range(24)]
    found = UserWords().of([pa.array(values[1:])])
    assert len(set(numbers(found))) == len(values) - 1
