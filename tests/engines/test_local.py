"""Counting on this machine: one region for each user, the same in any order, batch and pass."""

from __future__ import annotations

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions import EulerHistogram, Grid
from dpregions.engines.local import count
from dpregions.engines.user_table import Share, UserTable
from dpregions.errors import InputError, SourceError
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of, read_outlines
from dpregions.mechanisms.known import MECHANISMS
from dpregions.privacy import Budget
from dpregions.privacy.ledger import Ledger

GRID = Grid(0, 0, 1, 8, 9)
BOUND = Bound.of(GRID, 2, "shrink")
TINY = 40_000
"""A limit of bytes that a few thousand users are beyond."""
PREPARED = {
    name: kind().prepare(GRID, BOUND, Budget(1), "add-remove") for name, kind in MECHANISMS.items()
}


def city(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middle = rng.uniform(-1, 10, (n, 2))
    return shapely.buffer(shapely.points(middle), rng.uniform(0, 2, n), quad_segs=1)


def exact(name: str, tally: object) -> np.ndarray:
    if name == "paper":
        return tally.histogram()
    prepared = PREPARED[name]
    return tally.counts(prepared._finest)


def chosen_one_by_one(shapes: np.ndarray, users: list[object]) -> list[object]:
    """Return the region of each user with the smallest key, in Python: the oracle."""
    best: dict[object, tuple[tuple[int, ...], object]] = {}
    found = outlines_of(shapes, None, GRID, BOUND)
    for shape, user, key, size in zip(
        shapes, users, found.keys().tolist(), np.diff(found.offsets), strict=True
    ):
        if user in (None, "") or not size:
            continue
        if user not in best or tuple(key) < best[user][0]:
            best[user] = tuple(key), shape
    return [shape for _, shape in best.values()]


def table_of(shapes: np.ndarray, users: list[object], chunk: int = 100) -> pa.Table:
    table = pa.table({"user_id": users, "geometry": shapely.to_wkb(shapes)})
    return pa.Table.from_batches(table.to_batches(max_chunksize=chunk))


def counted(name: str, regions: object, **options: object) -> np.ndarray:
    workers, limit = options.pop("workers", None), options.pop("limit", None)
    reading = read_outlines(regions, GRID, BOUND, user_id="user_id", **options)
    return exact(name, count(reading, PREPARED[name].tally, workers, limit))


@pytest.mark.parametrize("name", PREPARED)
class TestOneRegionForEachUser:
    @given(
        st.lists(st.sampled_from([None, "", "ann", "bob", "cem", "dee"]), min_size=1, max_size=40),
        st.integers(0, 9),
        st.sampled_from([1, 3, 100]),
        st.randoms(use_true_random=False),
    )
    @settings(max_examples=30)
    def test_it_is_the_one_with_the_smallest_key_in_any_order(
        self, name, users, seed, batch, random
    ):
        shapes = city(len(users), seed)
        shapes[: len(users) // 5] = shapely.Point(99, 99)  # which contributes nothing
        alone = read_outlines(chosen_one_by_one(shapes, users), GRID, BOUND)
        wanted = exact(name, count(alone, PREPARED[name].tally))
        order = random.sample(range(len(users)), len(users))
        mixed = table_of(shapes[order], [users[i] for i in order], chunk=7)
        assert np.array_equal(counted(name, mixed, batch=batch), wanted)

    @pytest.mark.parametrize("ids", [int, str], ids=["whole numbers", "text"])
    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("limit", [None, TINY], ids=["one pass", "several passes"])
    def test_threads_and_passes_do_not_matter(self, name, ids, workers, limit):
        n = 6_000
        users = [ids(user) for user in np.random.default_rng(1).integers(0, n, n)]
        shapes = city(n)
        wanted = counted(name, table_of(shapes, users, n), workers=1, batch=n)
        options = {"workers": workers, "limit": limit, "batch": 500}
        assert np.array_equal(counted(name, table_of(shapes, users), **options), wanted)
        assert wanted.sum() > 0

    def test_a_frame_and_its_arrow_form_count_alike(self, name):
        users = [f"u{i % 70}" for i in range(200)]
        shapes = city(200)
        frame = geopandas.GeoDataFrame({"user_id": users}, geometry=shapes)
        assert np.array_equal(counted(name, frame), counted(name, table_of(shapes, users)))

    def test_a_file_is_read_once_more_for_each_share(self, name, tmp_path):
        users = np.arange(5_000)
        path = tmp_path / "city.parquet"
        table = table_of(city(5_000), users)
        pq.write_table(table, path)
        opened = []
        stream = dpr.open_regions(path)
        reopen = stream.reopen

        def watched():
            opened.append(1)
            return reopen()

        stream.reopen = watched
        found = counted(name, stream, limit=TINY, batch=400)
        assert np.array_equal(found, counted(name, table))
        assert len(opened) >= 3

    def test_a_stream_that_cannot_be_read_again_is_refused_beyond_the_limit(self, name):
        table = table_of(city(5_000), np.arange(5_000))
        with pytest.raises(InputError, match=r"cannot be read again .* GeoParquet"):
            counted(name, table.to_reader(), limit=TINY)
        few = table[:500]
        assert np.array_equal(counted(name, few.to_reader(), limit=TINY), counted(name, few))

    def test_ids_beside_arrow_data_must_be_as_many(self, name):
        table = table_of(city(10), list(range(10)))
        for n in (9, 11):
            reading = read_outlines(table, GRID, BOUND, user_id=np.arange(n))
            with pytest.raises(InputError, match="differ in length"):
                count(reading, PREPARED[name].tally)


def test_a_stream_beyond_memory_spends_nothing(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "book.db")
    ledger.create("city", total=1)
    monkeypatch.setattr("dpregions.engines.local.memory_bytes", lambda: 4.0 * TINY)
    reader = table_of(city(5_000), np.arange(5_000)).to_reader()
    with pytest.raises(InputError, match="cannot be read again"):
        dpr.release(reader, GRID, epsilon=1, max_diameter=2, ledger=ledger, dataset="city")
    assert ledger.account("city").spent == 0


@pytest.mark.parametrize("trouble", [OSError("Canary, 471"), pa.ArrowInvalid("Canary, 471")])
@pytest.mark.parametrize("user_id", [None, "user_id"])
def test_a_stream_that_ends_early_spends_nothing(tmp_path, trouble, user_id):
    ledger = Ledger(tmp_path / "book.db")
    unit = "record" if user_id is None else "user"
    ledger.create("city", total=1, unit=unit)
    table = table_of(city(500), np.arange(500))

    class Cut:
        """A file that is read batch by batch, and comes to an end too early."""

        schema = table.schema

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.RecordBatchReader.from_batches(self.schema, self).__arrow_c_stream__()

        def __iter__(self):
            yield from table.to_batches()[:3]
            raise trouble

    options = {"max_diameter": 2, "ledger": ledger, "dataset": "city", "user_id": user_id}
    with pytest.raises(SourceError, match="nothing was released") as caught:
        dpr.release(Cut(), GRID, epsilon=1, **options)
    assert "471" not in str(caught.value)
    assert ledger.account("city").spent == 0


@pytest.mark.parametrize("user_id", [None, "user_id"])
def test_a_stream_is_not_held(user_id):
    """Neither the geometries nor the ids of rows that were read stay, with users or without."""
    wkb = shapely.to_wkb(shapely.buffer(shapely.points(np.full((500, 2), 4.0)), 1, quad_segs=64))
    schema = pa.schema([("user_id", pa.int64()), ("geometry", pa.binary())])
    before, most, size = pa.total_allocated_bytes(), 0, 0

    def batches():
        nonlocal most, size
        for i in range(60):
            made = pa.record_batch([np.arange(500) + 500 * i, pa.array(wkb)], schema=schema)
            size = made.nbytes
            most = max(most, pa.total_allocated_bytes() - before)
            yield made

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    reading = read_outlines(reader, GRID, BOUND, user_id=user_id)
    count(reading, PREPARED["footprint"].tally, 2)
    assert size > 1_000_000
    assert most < 12 * size


def test_more_bytes_than_arrow_can_join_are_counted():
    """Bytes of one column beyond 2 GiB, with ids, were an error of Arrow's own."""
    long = shapely.Point(4.5, 4.5).wkb.ljust(1 << 23, b"\0")  # what follows a geometry is ignored
    wkb = pa.array([long] * 20, pa.binary())
    parts = [pa.table({"user_id": np.arange(20) + 20 * i, "geometry": wkb}) for i in range(14)]
    table = pa.concat_tables(parts)  # which copies nothing
    assert sum(chunk.nbytes for chunk in table["geometry"].chunks) > 2**31
    found = EulerHistogram.from_regions(table, GRID, user_id="user_id", max_diameter=2)
    assert found.count(4, 4, 5, 5) == 280


class TestTableOfUsers:
    def test_shares_are_halves_of_each_other(self):
        hashes = np.random.default_rng(0).integers(0, 2**64, 1000, np.uint64)
        shares, left = [], [Share()]
        while left:
            share = left.pop()
            if share.of == 8:
                shares.append(share)
            else:
                left += share.halves()
        held = np.array([share.holds(hashes) for share in shares])
        assert len(shares) == 8 and (held.sum(axis=0) == 1).all() and held.any(axis=1).all()

    def test_a_user_with_whole_numbers_takes_some_forty_bytes(self):
        from dpregions.engines.contributions import Contributions

        table, n = UserTable(1, 1, Share(), 0), 200_000
        for start in range(0, n, 10_000):
            users = np.arange(start, start + 10_000, dtype=np.uint64)[:, None]
            keys = np.zeros((10_000, 2), np.uint64)
            table.put(Contributions(users, keys, users.astype(np.int64)))
        assert 33 * n < table.nbytes < 56 * n
        assert np.array_equal(np.sort(table.marks()[:, 0]), np.arange(n))
