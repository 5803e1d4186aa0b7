"""Records read one by one: how many are held at once, and which do not fit."""

import pytest

from dpregions.intake.sources.records import record_batches
from dpregions.intake.sources.requests import Request

ROWS = [([str(i)], b"x" * i) for i in range(7)]


def batched(rows, request=None, **limits):
    batches = list(record_batches(rows, ["user_id"], request or Request(), len(rows), **limits))
    columns = [[value for b in batches for value in b.column(i).to_pylist()] for i in (0, 1)]
    return [([user], wkb) for user, wkb in zip(*columns, strict=True)], batches


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_batches_make_no_difference_to_the_records(size):
    found, batches = batched(ROWS, Request(chunk_rows=size))
    assert found == ROWS
    assert max(batch.num_rows for batch in batches) == min(size, len(ROWS))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_batch_is_handed_on_once_it_holds_so_many_bytes(size):
    found, batches = batched(ROWS, batch_bytes=size)
    assert found == ROWS
    assert (len(batches) == 1) == (size == 100)


def test_a_record_too_long_for_arrow_counts_nowhere():
    rows = [(["1"], b"place"), (["x" * 40], b"place"), (["2"], b"place")]
    found, _ = batched(rows, longest=30)
    assert found == [rows[0], ([None], None), rows[2]]
