"""An adaptive tree in a release file: its noisy counts, from which all else follows.

Owns which counts are kept and the checks that make them a tree again. Reading trusts nothing:
every node has all of its children or none, so that each path spends its budget exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.errors import ReleaseFileError, TooLargeError
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.base import Columns, Entries
from dpregions.mechanisms.footprint import codec
from dpregions.mechanisms.footprint.catalogue_text import catalogue_to_text
from dpregions.mechanisms.footprint.shapes import n_groups
from dpregions.mechanisms.footprint.sizes import MOST_SIDE
from dpregions.mechanisms.footprint.tree.growing import MOST_PARTS, Adaptive, Batch
from dpregions.mechanisms.footprint.tree.grown import Form
from dpregions.mechanisms.footprint.tree.ladder import ladder_of
from dpregions.mechanisms.footprint.tree.measured import TreeMeasured, TreeShares
from dpregions.mechanisms.footprint.tree.mix import groupings
from dpregions.mechanisms.footprint.tuning import TUNING
from dpregions.memory import LOADED, PART, refuse_beyond
from dpregions.privacy.budget import Budget
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from fractions import Fraction

    from dpregions.arrays import Bools, Ints
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.base import Held
    from dpregions.mechanisms.footprint.bodies import Bodies
    from dpregions.mechanisms.footprint.tree.ladder import Ladder

_TOTAL, _SIZES, _SHAPES, _NODES, _AGAIN = 0, 1, 3, 4, 1000
"""What the numbers of levels in a file begin at: counts of all regions, of groups of sizes and of
shapes, of nodes, and of leaves that were measured once more."""
_MOST_LISTED = 4 * MOST_PARTS
"""Most children that are looked at together: those beyond the grid are among them."""
_EXACT = 1 << 53
"""Whole numbers up to this are floats."""


def is_of_a_tree(options: Mapping[str, Any]) -> bool:
    """Whether the options of a file are those of a tree."""
    said = options.get("strategy")
    return isinstance(said, dict) and "detail" in said


def strategy_fields(how: Adaptive) -> dict[str, Any]:
    """Return how a tree opened, as JSON's values."""
    return vars(how).copy()


def columns_of(grid: Grid, bodies: Bodies, measured: TreeMeasured | None) -> Columns:
    """Return what a file keeps of an outcome."""
    lists = {"bodies": codec.body_entries(bodies, grid)}
    if measured is not None:
        lists["measured"] = _entries(measured, grid)
    return Columns(lists, {"catalogue": catalogue_to_text(bodies.catalogue)})


def _entries(measured: TreeMeasured, grid: Grid) -> Entries:
    """Return noisy counts, each on the face at the lower left of its node's block."""
    zero = np.zeros(1, np.int64)
    found: list[tuple[Any, ...]] = [(zero, zero + _TOTAL, zero, zero + round(measured.total))]
    for i, values in enumerate(measured.sizes):
        none = np.zeros(len(values), np.int64)
        found.append((none, none + _SIZES + i, np.arange(len(values)), values))
    none = np.zeros(len(measured.shapes), np.int64)
    found.append((none, none + _SHAPES, np.arange(len(none)), measured.shapes))
    ladder, seen = (
        measured.ladder,
        [np.zeros(1, np.int64)] + [zero[:0]] * len(measured.ladder.rungs),
    )
    for level, nodes, _, values in measured.batches:
        rung = ladder.rungs[level]
        row, col, tall, wide = ladder.points(nodes, level)
        face = codec.face(grid, row * rung.block, col * rung.block)
        again = np.isin(nodes, seen[level])
        seen[level] = np.concatenate([seen[level], nodes])
        number = level + np.where(again, _AGAIN, _NODES)
        found.append((face, number, tall * _classes(ladder, level) + wide, values))
    row, number, group, values = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((group, number, row))
    fields: dict[str, Any] = {"level": number.astype(np.int16), "group": group.astype(np.int32)}
    fields["value"] = values.astype(np.int64)
    return Entries(row[order], {name: field[order] for name, field in fields.items()})


def _classes(ladder: Ladder, level: int) -> int:
    """Return how many classes of heights a level has, and of widths."""
    return ladder.rungs[0].wide // ladder.rungs[level].wide


def read(held: Held, grid: Grid) -> tuple[Bodies, TreeMeasured, Adaptive]:
    """Return the bodies of a file and what its tree measured."""
    said, options = held.statement, held.options
    if held.signed is not None or options.keys() != {"strategy"}:
        raise ReleaseFileError("it has columns or options that no tree has")
    bodies = codec.read_bodies(held, grid)
    how = _strategy(options["strategy"])
    entries = held.columns.lists["measured"]
    refuse_beyond(
        LOADED * grid.n_components + PART * len(entries.row),
        f"reading this release with {len(entries.row):,} counts of parts",
        "read it on a larger one",
        TooLargeError,
    )
    if len(entries.row) > MOST_PARTS + 2 * MOST_SIDE**2:
        raise ReleaseFileError("it has more parts than any tree")
    bound, side = Bound.of(grid, said.max_diameter, said.oversize), bodies.catalogue.side
    if side != min(bound.k + 1, max(grid.shape)):
        raise ReleaseFileError("its catalogue is of another bound")
    return bodies, _measured(held, grid, ladder_of(grid.shape, side, bound.steps), how), how


def _measured(held: Held, grid: Grid, ladder: Ladder, how: Adaptive) -> TreeMeasured:
    said = held.statement
    n = len(groupings(ladder.side))
    spent = [share for _, share in said.spending]
    if len(spent) != n + 2 + (n > 0):
        raise ReleaseFileError("what it spent is not what a tree measures")
    shares = TreeShares.of(ladder.side, spent[0], Budget(sum(s.epsilon for s in spent[1:])))
    shapes = [] if shares.shapes is None else [shares.shapes]
    if [shares.first, *shares.mix, *shapes, shares.path] != spent:
        raise ReleaseFileError("what it spent is not in a tree's shares")
    found = _Found.of(held.columns.lists["measured"], grid, ladder, n)
    batches = tuple(_batches(found, ladder, how, shares.path.epsilon))
    for batch in batches:
        scale_for(batch.share, said.sensitivity)  # refuses a share that none is measured with
    if len({share.epsilon for share in shares.mix}) > 1:
        raise ReleaseFileError("what it spent is not what a tree measures")
    made = TreeMeasured(
        ladder,
        how,
        shares,
        said.sensitivity,
        float(found.total),
        found.sizes,
        found.shapes,
        batches,
    )
    if [what for what, _ in made.spending] != [what for what, _ in said.spending]:
        raise ReleaseFileError("it says that it measured something else")
    return made


class _Found(NamedTuple):
    """The counts of a file: of all, of sizes, of nodes, and which of these once more."""

    total: int
    sizes: tuple[Ints, ...]
    shapes: Ints
    level: Ints
    keys: Ints
    again: Bools
    values: Ints

    @classmethod
    def of(cls, entries: Entries, grid: Grid, ladder: Ladder, n_sizes: int) -> _Found:
        """Return what the entries are, once they are in order and in range."""
        number, group, value = (
            entries.fields[name].astype(np.int64) for name in ("level", "group", "value")
        )
        order = np.lexsort((group, number, entries.row))
        places = np.stack([entries.row, number, group])
        again = (np.diff(places[:, order], axis=1) == 0).all(axis=0)
        # Not by absolute values: the least whole number of 64 bits has none.
        beyond = (value > _EXACT) | (value < -_EXACT)
        if (order != np.arange(len(order))).any() or again.any() or beyond.any():
            raise ReleaseFileError("its measurements are out of order or out of range")
        total = value[number == _TOTAL]
        sizes = tuple(value[number == _SIZES + i] for i in range(n_sizes))
        wanted = [(int(g.tall.max()) + 1) * (int(g.wide.max()) + 1) for g in groupings(ladder.side)]
        shapes = value[number == _SHAPES]
        first = number < _NODES
        good = (
            len(total) == 1
            and [len(v) for v in sizes] == wanted
            and not entries.row[first].any()
            and len(shapes) == (n_groups(ladder.side) if wanted else 0)
        )
        if not good or first.sum() != 1 + sum(wanted) + len(shapes):
            raise ReleaseFileError(
                "its total or its counts of sizes and shapes are not those of a tree"
            )
        number, group, value = number[~first], group[~first], value[~first]
        more = number >= _AGAIN
        level = number - np.where(more, _AGAIN, _NODES)
        keys = _keys(ladder, grid, level, entries.row[~first], group)
        return cls(int(total[0]), sizes, shapes, level, keys, more, value)


def _keys(ladder: Ladder, grid: Grid, level: Ints, face: Ints, group: Ints) -> Ints:
    """Return the keys of nodes by their lower left faces and classes."""
    if (level < 0).any() or (level >= len(ladder.rungs)).any() or (group < 0).any():
        raise ReleaseFileError("it has parts of no level")
    row, col = np.divmod(face, grid.doubled_shape[1])
    row, odd = np.divmod(row, 2)
    col, other = np.divmod(col, 2)
    n = np.array([_classes(ladder, i) for i in range(len(ladder.rungs))])[level]
    block, wide, shift = (np.array(v)[level] for v in zip(*ladder.rungs, strict=True))
    tall, across = np.divmod(group, n)
    if odd.any() or other.any() or (tall >= n).any() or (row % block).any() or (col % block).any():
        raise ReleaseFileError("it has parts where none are")
    return ladder.keys(row, col, tall * wide + 1, across * wide + 1) >> shift


def _batches(found: _Found, ladder: Ladder, how: Adaptive, budget: Fraction) -> Iterator[Batch]:
    """Yield the counts of nodes with their shares, which follow from the tree's form.

    A node takes its part of what is left on its path, and a leaf all of it.
    """
    level = np.concatenate([np.zeros(1, np.int64), found.level])
    keys = np.concatenate([np.zeros(1, np.int64), found.keys])
    form, node = Form.of(ladder, level, keys)
    node = node[1:]
    if len(found.keys) > how.most_parts:
        raise ReleaseFileError("it has more parts than it says")
    _check_form(ladder, how, form)
    depth = np.repeat(np.arange(len(form.steps)), [s.stop - s.start for s in form.steps])
    inner = np.zeros(len(form.keys), np.bool_)
    inner[form.parent[1:]] = True
    more = np.zeros(len(form.keys), np.bool_)
    more[node[found.again]] = True
    once = np.bincount(node[~found.again], minlength=len(more))
    if (
        (more & inner).any()
        or once[0]
        or (once[1:] != 1).any()
        or (found.again.sum() != more.sum())
    ):
        raise ReleaseFileError("it has parts that were measured too often, or not at all")
    # The root was counted apart, so it spends nothing unless it is a leaf.
    before = np.maximum(depth[node] - 1, 0) + found.again * (depth[node] > 0)
    last = ~inner[node] & (found.again | ~more[node])
    kinds = np.stack([found.again, found.level, before, last], axis=-1)
    for kind in np.unique(kinds, axis=0).tolist():
        which = np.flatnonzero((kinds == kind).all(axis=1))
        which = which[np.argsort(found.keys[which])]
        _, at, steps, ends = kind
        left = budget * (1 - TUNING.tree_first) ** steps
        share = left if ends else left * TUNING.tree_first
        yield Batch(int(at), found.keys[which], share, found.values[which])


def _check_form(ladder: Ladder, how: Adaptive, form: Form) -> None:
    """Refuse a tree in which a node has some of its children, or of several levels."""
    for below in form.steps[1:]:
        up, level = form.parent[below], form.level[below]
        ends = np.flatnonzero(np.append(np.diff(up) != 0, True)) + 1
        starts = np.concatenate([[0], ends[:-1]])
        parents = up[starts]
        if (level != np.repeat(level[starts], ends - starts)).any():
            raise ReleaseFileError("it has parts of several levels below one")
        pairs = np.stack([form.level[parents], level[starts]], axis=-1)
        for high, low in np.unique(pairs, axis=0).tolist():
            some = np.flatnonzero((pairs == (high, low)).all(axis=1))
            # Before they are listed: a file may claim anything.
            bits = ladder.rungs[high].shift - ladder.rungs[low].shift
            few = ladder.n_children(high, low) <= how.most_children
            if not (few or low == high + 1) or len(some) << bits > _MOST_LISTED:
                raise ReleaseFileError("it opened further than it says")
            keys = form.keys[parents[some]]
            order = np.argsort(keys)
            wanted, _ = ladder.children(high, keys[order], low)
            there = _runs(form.keys[below], starts[some[order]], ends[some[order]])
            if not np.array_equal(there, wanted):
                raise ReleaseFileError("it lacks parts below one that was opened")


def _runs(values: Ints, starts: Ints, ends: Ints) -> Ints:
    """Return some runs of values, one after the other."""
    n = ends - starts
    at = np.repeat(starts - np.cumsum(n) + n, n) + np.arange(n.sum())
    return values[at]


def _strategy(said: dict[str, Any]) -> Adaptive:
    kinds = {"detail": float, "most_children": int, "most_parts": int}
    if said.keys() != kinds.keys() or any(type(said[k]) is not v for k, v in kinds.items()):
        raise ReleaseFileError("its strategy has other fields than it must")
    return Adaptive(**said)
