"""Files of releases by a tree: read back exactly, and refused where they cannot be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpregions as dpr
from dpregions.errors import InputError, ReleaseFileError
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tree import codec
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tuning import Tuning
from support.release_files import GRID, assert_same, forged, made

NODES, AGAIN = codec._NODES, codec._AGAIN
WIDE = dpr.Grid(-3.5, 0.1, 0.7, n_rows=9, n_cols=6)
WAYS = [Adaptive(0.01, 16), Adaptive(3.0, 4), Adaptive(1.0, 16, 25), Adaptive(1e5, 1 << 20)]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_release_by_a_tree_reads_back_exactly_and_is_saved_as_the_same_bytes(
    way, neighbours, tmp_path
):
    for grid, diameter, n in ((GRID, 2, 60), (WIDE, 5, 200), (GRID, 1, 0)):
        terms = {"max_diameter": diameter, "method": Footprint(strategy=way)}
        release = made(grid, n, neighbours=neighbours, **terms)
        one, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
        release.save(one)
        found = dpr.load(one)
        assert_same(release, found)
        assert found.outcome.strategy == way
        spent = release.outcome.reading.measured.batches
        again = found.outcome.reading.measured.batches
        assert shares_of(spent) == shares_of(again)
        found.save(other)
        assert one.read_bytes() == other.read_bytes()


def shares_of(batches) -> dict:
    """The shares of every node, and what came back for each."""
    found: dict = {}
    for level, nodes, share, values in batches:
        for node, value in zip(nodes.tolist(), values.tolist(), strict=True):
            found.setdefault((level, node), set()).add((share, int(value)))
    return found


def test_a_covert_release_by_a_tree_reads_back_without_its_tree(tmp_path):
    release = made(covert=True, method=Footprint(strategy=WAYS[1]))
    release.save(tmp_path / "a.parquet")
    found = dpr.load(tmp_path / "a.parquet")
    assert_same(release, found)
    assert found.signed is None and found.outcome.options() == {}


def test_a_file_of_a_tree_keeps_no_estimates_and_they_follow_from_its_counts(good):
    release, path = good
    assert "estimate" not in pa.parquet.read_schema(path).names
    np.testing.assert_array_equal(dpr.load(path).signed, release.signed)


def test_a_tree_made_with_another_tuning_is_not_saved(tmp_path):
    way = Footprint(strategy=WAYS[1], tuning=Tuning(place_doubt=0.4))
    with pytest.raises(InputError, match="another tuning"):
        made(method=way).save(tmp_path / "a.parquet")


# Damage


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A release by a tree of leaves at several levels, some of them measured once more."""
    path = tmp_path_factory.mktemp("tree") / "good.parquet"
    release = made(WIDE, 400, epsilon=2, method=Footprint(strategy=Adaptive(1.0, 16)))
    level = release.outcome.columns().lists["measured"].fields["level"]
    assert (level >= AGAIN).any() and len(np.unique(level[level < AGAIN])) >= 4
    release.save(path)
    return release, path


def measured(change):
    """Return a change of a file's measurements, given as (row, level, group, value), in order."""

    def changed(table):
        i = table.schema.get_field_index("measured")
        kind = table.schema.field(i).type
        entries = [
            (row, one["level"], one["group"], one["value"])
            for row, some in enumerate(table["measured"].to_pylist())
            for one in some
        ]
        rows = [[] for _ in range(table.num_rows)]
        for row, level, group, value in change(entries):
            rows[row].append({"level": level, "group": group, "value": value})
        return table.set_column(i, table.schema.field(i), [pa.array(rows, kind)])

    return changed


def without(wanted):
    """Leave out the first entry of a kind."""

    def change(entries):
        at = next(i for i, entry in enumerate(entries) if wanted(*entry))
        return entries[:at] + entries[at + 1 :]

    return measured(change)


def altered(wanted, **fields):
    """Alter the first entry of a kind; entries stay in order."""

    def change(entries):
        at = next(i for i, entry in enumerate(entries) if wanted(*entry))
        names = ("row", "level", "group", "value")
        old = dict(zip(names, entries[at], strict=True))
        new = {name: fields[name](old[name]) if name in fields else old[name] for name in names}
        return sorted([*entries[:at], tuple(new.values()), *entries[at + 1 :]])

    return measured(change)


def added(*entry):
    return measured(lambda entries: sorted([*entries, entry]))


def is_node(row, level, group, value):
    return NODES <= level < AGAIN


def is_deep(row, level, group, value):
    return NODES + 2 < level < AGAIN


def is_again(row, level, group, value):
    return level >= AGAIN


def doubled(entries):
    at = next(i for i, entry in enumerate(entries) if is_node(*entry))
    return [*entries[:at], entries[at], *entries[at:]]


DAMAGE = {
    "no measurements": measured(lambda entries: []),
    "no total": without(lambda row, level, *_: level == 0),
    "no count of a size": without(lambda row, level, *_: level == 1),
    "a child missing": without(is_node),
    "a deep child missing": without(is_deep),
    "all children of a level missing": measured(
        lambda entries: [e for e in entries if not is_deep(*e)]),
    "a closing count missing, of some": without(is_again),
    "an entry doubled": measured(doubled),
    "two totals": measured(lambda entries: [entries[0], *entries]),
    "a level below 0": altered(is_node, level=lambda v: -1),
    "a level beyond the last": altered(is_deep, level=lambda v: NODES + 40),
    "a level again beyond the last": altered(is_again, level=lambda v: AGAIN + 40),
    "another level": altered(is_deep, level=lambda v: v - 1),
    "a class below 0": altered(is_node, group=lambda v: -1),
    "a class out of range": altered(is_node, group=lambda v: v + 10**6),
    "another class": altered(is_deep, group=lambda v: v + 1),
    "a huge value": altered(is_node, value=lambda v: (1 << 53) + 1),
    "a hugely negative value": altered(is_node, value=lambda v: -(1 << 62)),
    "the least value": altered(is_node, value=lambda v: -(1 << 63)),
    "a huge total": altered(lambda row, level, *_: level == 0, value=lambda v: 1 << 60),
    "on an edge": altered(is_node, row=lambda v: v + 1),
    "in another block": altered(is_deep, row=lambda v: v + 2),
    "out of order": measured(lambda entries: sorted(entries, key=lambda e: (e[0], -e[1]))),
    "an inner part once more": added(0, AGAIN, 0, 7),
    "a part once more that never was": added(0, AGAIN + 5, 0, 7),
    "a part below a leaf": measured(
        lambda entries: sorted([*entries, *_below_a_leaf(entries)])),
    "an unknown kind of count": added(0, 500, 0, 7),
    "a size in another place": altered(
        lambda row, level, *_: level == 1, row=lambda v: 2),
}  # fmt: skip


def _below_a_leaf(entries):
    row, level, group, _ = next(e for e in entries if is_again(*e) and e[1] < AGAIN + 5)
    return [(row, level - AGAIN + NODES + 1, group, 1)]


@pytest.mark.parametrize("what", DAMAGE)
def test_measurements_that_cannot_be_are_refused_whatever_the_seal(what, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", table=DAMAGE[what])
    with pytest.raises(ReleaseFileError, match="bad"):
        dpr.load(bad)


def test_the_file_that_is_damaged_here_is_read_where_it_is_not(good, tmp_path):
    same = forged(good[1], tmp_path / "same", table=measured(lambda entries: entries))
    assert_same(good[0], dpr.load(same))


def with_strategy(**changes):
    def changed(fields):
        said = fields["mechanism"]["strategy"] | changes
        kept = {name: value for name, value in said.items() if value is not None}
        return fields | {"mechanism": fields["mechanism"] | {"strategy": kept}}

    return changed


def with_shares(change):
    def changed(fields):
        spent = fields["spending"]
        assert spent
        return fields | {"spending": change(spent)}

    return changed


def moved(share):
    """Move epsilon from what is spent first to what is spent last; the sum is the same."""

    def change(spent):
        first, *between, last = [dict(one) for one in spent]
        for one, more in ((first, -share), (last, share)):
            one["epsilon"] = str(Fraction(one["epsilon"]) + more)
        return [first, *between, last]

    return change


def of_sizes(spent):
    """The same, from the counts of sizes to the parts of the tree."""
    return [spent[0], *moved(Fraction(1, 100))(spent[1:])]


STATEMENTS = {
    "a field less": with_strategy(most_parts=None),
    "a field more": with_strategy(more=1),
    "detail as text": with_strategy(detail="1.0"),
    "detail as a whole number": with_strategy(detail=1),
    "detail that cannot be": with_strategy(detail=-1.0),
    "parts beyond the cap": with_strategy(most_parts=3),
    "parts beyond any": with_strategy(most_parts=10**9),
    "children as text": with_strategy(most_children="16"),
    "children beyond what it says": with_strategy(most_children=4),
    "a strategy of levels": lambda f: f | {
        "mechanism": {"strategy": {"alphabet": "sizes", "measurements": []}}},
    "no strategy": lambda f: f | {"mechanism": {}},
    "an option more": lambda f: f | {"mechanism": f["mechanism"] | {"area": []}},
    "a measurement less": with_shares(lambda spent: spent[:-1]),
    "a measurement more": with_shares(lambda spent: [*spent, spent[-1]]),
    "other words": with_shares(lambda s: [*s[:-1], s[-1] | {"what": "parts of a tree"}]),
    "a share less": with_shares(lambda s: [*s[:-1], s[-1] | {"epsilon": "1/10"}]),
    "shares of sizes and parts moved": with_shares(of_sizes),
    "covert": lambda f: f | {"covert": True},
    "the other relation": lambda f: f | {"neighbours": "replace-one"},
}  # fmt: skip


@pytest.mark.parametrize("what", STATEMENTS)
def test_statements_that_a_tree_cannot_have_made_are_refused(what, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=STATEMENTS[what])
    with pytest.raises(ReleaseFileError, match="bad"):
        dpr.load(bad)


def test_a_column_of_estimates_is_refused(good, tmp_path):
    def with_estimates(table):
        at = table.schema.get_field_index("count") + 1
        field = pa.field("estimate", pa.float64(), nullable=False)
        return table.add_column(at, field, [pa.array(good[0].signed.ravel())])

    bad = forged(good[1], tmp_path / "bad", table=with_estimates)
    with pytest.raises(ReleaseFileError, match="no tree has"):
        dpr.load(bad)


def test_a_tree_at_its_cap_is_read_and_one_part_less_is_refused(tmp_path):
    release = made(WIDE, 400, epsilon=2, method=Footprint(strategy=Adaptive(1.0, 16)))
    path = tmp_path / "a.parquet"
    release.save(path)
    n = release.outcome.reading.measured.n_parts
    dpr.load(forged(path, tmp_path / "same", fields=with_strategy(most_parts=n)))
    with pytest.raises(ReleaseFileError, match="more parts than it says"):
        dpr.load(forged(path, tmp_path / "bad", fields=with_strategy(most_parts=n - 1)))
