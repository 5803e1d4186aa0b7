"""Ids: equal values are one user, different values never, and no row changes another."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregions.intake import ids
from dpregions.intake.ids import (
    IdColumns,
    NumberToken,
    both_ways,
    id_text,
    marked_text,
    number_text,
    plain_text,
    text_id,
)


def numbers(values) -> list[int]:
    return ids.user_numbers(values, None, None).tolist()


def groups(codes) -> list[int]:
    """Return codes numbered by first appearance, so that two can be compared; -1 stays."""
    seen: dict[int, int] = {}
    return [-1 if code < 0 else seen.setdefault(code, len(seen)) for code in codes]


class TestNumbers:
    @pytest.mark.parametrize(
        ("spelling", "text"),
        [
            ("1", "1"),
            ("1.0", "1"),
            ("+1e0", "1"),
            ("0.1e1", "1"),
            ("100e-2", "1"),
            ("-0", "0"),
            ("0e999999999999999999999", None),
            ("0.000", "0"),
            ("9223372036854775808", "9223372036854775808"),
            ("1e999", "1e999"),
            ("1.50", "15e-1"),
            ("-2.5e-3", "-25e-4"),
            (".5", "5e-1"),
            ("5.", "5"),
            (".", None),
            ("", None),
            ("e5", None),
            ("1_000", None),
            ("0x1", None),
            ("nan", None),
            ("\u0661", None),
            ("1e" + "9" * 19, None),
        ],
    )
    def test_all_spellings_of_a_number_share_one_text(self, spelling, text):
        assert number_text(spelling) == text

    @given(st.fractions(), st.fractions())
    def test_decimals_are_one_text_exactly_where_they_are_equal(self, a, b):
        one, other = (
            Decimal(f.numerator) / (1 << (f.denominator.bit_length() % 60)) for f in (a, b)
        )
        assert (number_text(str(one)) == number_text(str(other))) == (one == other)

    @given(st.integers(), st.integers(0, 30), st.integers(0, 5))
    def test_zeros_and_exponents_do_not_matter(self, number, zeros, moved):
        spelled = f"{number}.{'0' * zeros}e0"
        assert number_text(spelled) == number_text(str(number)) == id_text(number)
        assert number_text(f"{number}{'0' * moved}e-{moved}") == id_text(number)

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_float_is_the_number_that_it_exactly_is(self, value):
        assert id_text(value) == number_text(format(Decimal(value), "f"))
        if value == int(value):
            assert id_text(value) == id_text(int(value))

    def test_bytes_of_any_length_are_read_in_time(self):
        raw = b"\\x" * 1_000_000 + b"\xe9"
        assert len(plain_text(raw)) == 3_000_004
        assert text_id(raw).endswith('\\x\\xe9"')

    def test_numbers_of_any_length_are_read_in_time(self):
        assert number_text("1" * 1_000_000) == "1" * 1_000_000 + "e0"
        assert id_text(10**5000) == "1e5000"
        assert id_text(NumberToken("9" * 10_000)) == "9" * 10_000 + "e0"


class TestTexts:
    def test_a_text_never_equals_a_number_or_a_truth(self):
        values = ["1", 1, True, b"1", "true", NumberToken("1.0"), "x'31'"]
        texts = [id_text(value) for value in values]
        assert texts == ['"1"', "1", "true", "x'31'", '"true"', "1", "\"x'31'\""]

    def test_nothing_is_no_id(self):
        assert [id_text(v) for v in (None, "", b"", math.nan, [], {})] == [None] * 6
        assert text_id(b"") is None

    @given(st.lists(st.binary(min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
    def test_different_bytes_are_different_texts(self, pair):
        assert text_id(pair[0]) != text_id(pair[1])
        assert plain_text(pair[0]) != plain_text(pair[1])
        for raw in pair:
            plain_text(raw).encode()  # any file can hold it

    @given(st.text(alphabet=st.sampled_from("\\x89ab\u00e9\ud800"), min_size=1, max_size=5))
    def test_escapes_never_pass_for_text(self, text):
        raw = text.encode("utf-8", "surrogatepass")
        broken = raw + b"\xe9"
        assert text_id(broken) != text_id(plain_text(broken).encode())
        assert plain_text(broken) != plain_text(plain_text(broken).encode())

    @given(st.text(min_size=1))
    def test_text_in_utf_8_is_itself(self, text):
        raw = text.encode("utf-8", "surrogatepass")
        if "\\x" not in text and raw.decode("utf-8", "replace") == text:
            assert plain_text(raw) == text
            assert text_id(raw) == id_text(text) == json.dumps(text)

    def test_a_byte_that_is_no_text_is_not_the_escape_of_a_surrogate(self):
        """In JSON, the raw byte 80 and the escape of U+DC80 are two values."""

        def read(raw):
            return marked_text(*map(json.loads, both_ways(raw)))

        assert read(b'"\x80"') == '"\\x80"'
        assert read(b'"\\udc80"') == '"\\udc80"'
        assert read(b'"a\\udc80\x80"') == '"a\\udc80\\x80"'
        assert read(b'"\\\\x80"') == '"\\\\x80"'


ODD = [
    *(1, 1.0, Decimal("1.00"), np.int8(1), np.float32(1), Fraction(1), True, np.True_, "1", b"1"),
    *(2**53, 2**53 + 1, float(2**53), 2**63, -(2**63), Decimal("0.1"), 0.1, np.longdouble("0.1")),
    *(
        "",
        b"",
        None,
        math.nan,
        pd.NA,
        pd.NaT,
        Decimal("NaN"),
        Decimal("sNaN"),
        np.datetime64("NaT"),
    ),
    *("\ud800", "\ud801", "é", "e\u0301", "a\0", "a", "NaN", "None", "2020-01-01", "2020/01/01"),
    *(datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), pd.Timestamp("2020-01-01")),
    *(np.datetime64("2020-01-01"), np.timedelta64(1, "D"), UUID(int=1), (1, "a"), (1.0, "a")),
    *([1], {}, object(), 1j, math.inf, -math.inf, Decimal("1e999999"), Decimal("1E+999999")),
    *(Decimal("Infinity"), np.str_("a"), np.bytes_(b"1"), bytearray(b"1"), memoryview(b"1")),
]


class TestObjects:
    def test_numbers_exactly_equal_are_one_and_nothing_else_is(self):
        one = [1, 1.0, Decimal("1.00"), np.int8(1), np.float32(1), Fraction(1), np.longdouble(1)]
        others = [True, np.True_, "1", b"1", np.bytes_(b"1")]
        assert numbers([*one, *others]) == [*[0] * 7, 1, 1, 2, 3, 3]
        assert numbers([2**53, 2**53 + 1, float(2**53)]) == [0, 1, 0]
        assert numbers([0.1, Decimal("0.1"), Fraction(0.1), 0, -0.0]) == [0, 1, 0, 2, 2]
        assert numbers([Decimal("1e999999"), Decimal("10e999998"), 10**5000]) == [0, 0, 1]
        assert numbers([10**5000, Decimal("1e5000"), Decimal("Infinity"), math.inf]) == [0, 0, 1, 1]

    @given(st.lists(st.sampled_from(range(len(ODD))), min_size=1, max_size=8))
    def test_which_rows_are_one_user_is_the_same_in_any_company(self, rows):
        whole = numbers(ODD)
        assert groups(numbers([ODD[i] for i in rows])) == groups([whole[i] for i in rows])

    def test_a_column_of_a_frame_is_read_like_a_list(self):
        column = pd.Series(np.array([*ODD, None], dtype=object)[:-1])
        assert groups(numbers(column)) == groups(numbers(column.array)) == groups(numbers(ODD))

    def test_texts_with_nul_or_surrogates_stay_apart_whoever_is_beside_them(self):
        """pandas 2 takes texts for one up to a NUL, pandas 3 a surrogate for its own spelling."""
        texts = ["a\0b", "a\0c", "a", "\ud800", "'\\ud800'"]
        assert numbers(texts) == numbers([*texts, None])[:-1] == [0, 1, 2, 3, 4]

    def test_a_masked_array_is_refused(self):
        with pytest.raises(TypeError, match="masked array"):
            numbers(np.ma.array([1, 2], mask=[True, False]))

    def test_an_object_that_cannot_be_looked_at_is_no_id(self):
        class Odd(int):
            def __hash__(self):
                raise RuntimeError("secret")

            __abs__ = __hash__

        assert numbers([1, Odd(5), 2]) in ([0, 1, 2], [0, -1, 1])

    def test_a_list_of_texts_is_read_as_fast_and_the_same(self):
        texts = ["a", "", "\ud800", "b", "\ud801", "a"]
        assert groups(numbers(texts)) == groups(numbers([*texts, 1])[:-1]) == [0, -1, 1, 2, 3, 0]


class TestColumns:
    BIG = (2**60, 2**60 + 1, None, 2**60)

    @pytest.mark.parametrize(
        "column",
        [
            pa.array(BIG),
            pa.array(BIG, pa.uint64()),
            pa.chunked_array([BIG[:2], BIG[2:]]),
            pa.array(BIG, pa.decimal128(38, 0)),
            pa.array(BIG).dictionary_encode(),
            pd.array(BIG, dtype="Int64"),
            pd.array(BIG, dtype=pd.ArrowDtype(pa.int64())),
            pd.Categorical(BIG),
            pd.Series(BIG, dtype=object),
            list(BIG),
        ],
        ids=lambda column: f"{type(column).__name__}",
    )
    def test_a_null_never_makes_floats_of_large_numbers(self, column):
        assert groups(numbers(column)) == [0, 1, -1, 0]

    def test_text_of_arrow_is_compared_as_bytes(self):
        raw = pa.array([b"Jos\xe9", b"Jos\xe8", "José".encode(), b"", None, b"Jos\xe9"])
        for kind in (pa.string(), pa.large_string()):
            size = raw.cast(pa.large_binary() if kind == pa.large_string() else pa.binary())
            text = pa.Array.from_buffers(kind, len(raw), size.buffers(), raw.null_count)
            assert groups(numbers(text)) == [0, 1, 2, -1, -1, 0]
            assert groups(numbers(text.dictionary_encode())) == [0, 1, 2, -1, -1, 0]

    def test_several_columns_are_one_id_and_one_missing_part_is_none(self):
        table = pa.table({"u": ["a", "a", "b", None, "a"], "t": [0, 1, 0, 0, 0]})
        found = ids.user_numbers(IdColumns(("u", "t")), table.column_names, table.column)
        assert groups(found.tolist()) == [0, 1, 2, -1, 0]
