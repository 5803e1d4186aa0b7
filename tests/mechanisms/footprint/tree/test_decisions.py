"""Where a tree opens, and all that follows, is decided by noisy counts: the data have no say."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint import choice, tree
from dpregions.mechanisms.footprint.mechanism import Footprint, PreparedFootprint
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.prepared import PreparedTree
from dpregions.privacy.budget import Budget
from support.footprint_releases import study, town
from support.tree_growth import Watched, grown_by, ladder_on
from support.watched_noise import Scripted

GRID = dpr.Grid(0, 0, 1, 12, 10)
WAY = Adaptive(0.15, 64)
ROOT = Path(__file__).parents[4]
PACKAGE = "dpregions.mechanisms.footprint"
SECRET = {"keyed", "meter", "prepared"}
"""Modules of the tree that see exact counts, or the tally."""

DATA = {
    "nobody": np.array([], object),
    "a town": town(GRID, 2, n=400),
    "another": town(GRID, 2, n=900, seed=7),
    "one corner": np.array([shapely.Point(0.5, 0.5)] * 500, object),
}


def scripted(regions, seed: int, **changes):
    noise = Scripted(seed, 600)
    return study(regions, GRID, noise=noise, strategy=WAY, **changes), noise


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("diameter", [1, 4])
def test_with_the_same_noisy_answers_any_data_make_the_same_tree_and_release(neighbours, diameter):
    terms = {"neighbours": neighbours, "max_diameter": diameter}
    for seed in range(2):
        made = [scripted(regions, seed, **terms) for regions in DATA.values()]
        first, asked = made[0][0], made[0][1].asked
        assert first.outcome.reading.measured.n_parts > 20
        for release, noise in made[1:]:
            # The same parts were asked for, by the same shares, though their counts differ.
            assert [(len(v), *rest) for v, *rest in noise.asked] == [
                (len(v), *rest) for v, *rest in asked
            ]
            assert any((v != w).any() for (v, *_), (w, *_) in zip(noise.asked, asked, strict=True))
            one, other = (r.outcome.columns() for r in (first, release))
            assert one.texts == other.texts
            for name, entries in one.lists.items():
                np.testing.assert_array_equal(entries.row, other.lists[name].row)
                np.testing.assert_equal(entries.fields, other.lists[name].fields)
            np.testing.assert_array_equal(first.counts, release.counts)
            np.testing.assert_array_equal(first.signed, release.signed)
            assert first.spending == release.spending


def test_other_noisy_answers_from_the_same_data_make_another_tree():
    trees = [scripted(DATA["a town"], seed)[0].outcome.reading.measured for seed in range(6)]
    forms = {tuple((b.level, *b.nodes.tolist()) for b in made.batches) for made in trees}
    assert len(forms) > 3


@pytest.mark.parametrize("diameter", [2, 3])
def test_growth_asks_for_the_next_parts_by_the_answers_so_far_alone(diameter):
    """Answers that differ from some call on: up to it, and with it, the same parts are asked."""
    ladder = ladder_on((8, 8), diameter)

    def growth(seed, switch):
        rng, other, calls = np.random.default_rng(seed), np.random.default_rng(99), iter(range(999))

        def answers(level, nodes):
            later = next(calls) >= switch
            return (other if later else rng).integers(0, 4000 if later else 300, len(nodes))

        meter = Watched(answers)
        grown_by(ladder, Adaptive(0.15, 16), 3000.0, meter)
        return [(level, *nodes.tolist(), share) for level, nodes, share in meter.asked]

    whole = growth(1, 999)
    assert len(whole) >= 3
    parted = 0
    for switch in range(len(whole)):
        changed = growth(1, switch)
        assert changed[: switch + 1] == whole[: switch + 1]
        parted += changed != whole
    assert parted


def prepared_by(how=WAY) -> PreparedTree:
    return Footprint(strategy=how).prepare(
        GRID, Bound.of(GRID, 2, "shrink"), Budget(1), "add-remove"
    )


def test_what_comes_after_the_noise_holds_no_exact_count():
    """The measurements that bodies are made of have noisy counts and public terms alone."""
    prepared, noise = prepared_by(), Scripted(3, 600)
    tally = prepared.tally()
    tally.add(outlines_of(DATA["a town"], None, GRID, Bound.of(GRID, 2, "shrink")))
    found = prepared.measured(600.0, tally, noise)
    assert {part.name for part in fields(found)} == {
        "ladder", "how", "shares", "factor", "total", "sizes", "shapes", "batches", "spread",
    }  # fmt: skip
    exact = {values.tobytes() for values, *_ in noise.asked if len(values) > 4}
    held = [*found.sizes, *(batch.values for batch in found.batches)]
    assert exact and not exact & {np.asarray(v).tobytes() for v in held}
    one = prepared.post_process(found)
    other = prepared_by().post_process(replace(found))
    np.testing.assert_array_equal(one.counts, other.counts)


def test_a_tree_chosen_beside_other_strategies_counts_regions_as_one_that_was_fixed():
    """The tally is then of buckets, or of whole patterns: it has the same keys."""
    for diameter, shape in ((1, (5, 5)), (2, (12, 10)), (1 + 1e-6, (6, 6)), (3.7, (9, 9))):
        grid = dpr.Grid(0, 0, 1, *shape)
        bound = Bound.of(grid, diameter, "shrink")
        fixed, free = (
            Footprint(strategy=how).prepare(grid, bound, Budget(1), "add-remove")
            for how in (WAY, None)
        )
        assert isinstance(fixed, PreparedTree) and isinstance(free, PreparedFootprint)
        tallies = fixed.tally(), free.tally()
        for tally in tallies:
            tally.add(outlines_of(town(grid, diameter, n=500), None, grid, bound))
        chosen = free.with_strategy(WAY)
        np.testing.assert_array_equal(chosen.ladder.prior > 0, fixed.ladder.prior > 0)
        one, other = (t.keyed(p.ladder) for t, p in zip(tallies, (fixed, chosen), strict=True))
        np.testing.assert_array_equal(one, other)
        assert fixed.ladder.there(len(fixed.ladder.rungs) - 1, one[0]).all()


# Who may import whom


def contract() -> dict[str, list[str]]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        found = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (one,) = [c for c in found if c["name"].startswith("What runs after the noise cannot import")]
    return one


def modules() -> dict[str, ast.Module]:
    folder = Path(tree.__path__[0])
    return {p.stem: ast.parse(p.read_text()) for p in folder.glob("*.py") if p.stem != "__init__"}


def test_the_contract_keeps_all_of_the_tree_but_where_noise_is_added_from_exact_counts():
    listed = set(contract()["source_modules"])
    wanted = {f"{PACKAGE}.tree.{name}" for name in modules().keys() - SECRET}
    assert f"{PACKAGE}.tree.growing" in wanted
    assert wanted <= listed and f"{PACKAGE}.choice" in listed
    assert contract()["type"] == "forbidden"
    forbidden = set(contract()["forbidden_modules"])
    assert {f"{PACKAGE}.tree.meter", f"{PACKAGE}.tally", "dpregions.intake"} <= forbidden


def imported_by(parsed: ast.Module) -> set[str]:
    """The modules that are imported anywhere in one, but for types alone."""
    found, waiting = set(), list(parsed.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        waiting += ast.iter_child_nodes(node)
    return found


def test_exact_counts_by_key_are_for_the_meter_and_for_made_up_cities():
    keyed = f"{PACKAGE}.tree.keyed"
    assert {name for name, parsed in modules().items() if keyed in imported_by(parsed)} == {"meter"}
    assert keyed in imported_by(ast.parse(Path(choice.__file__).read_text()))
    meter = f"{PACKAGE}.tree.meter"
    users = {name for name, parsed in modules().items() if meter in imported_by(parsed)}
    assert users == {"prepared"}
