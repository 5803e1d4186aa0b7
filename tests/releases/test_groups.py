"""Releases by disjoint groups: each group and all of them, their file, their price, refusals."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import geopandas
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely

import dpregions as dpr
from dpregions.engines.groups import GroupedTally
from dpregions.errors import InputError, InputTypeError, PrivacyError, QueryError, ReleaseFileError
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.known import MECHANISMS
from dpregions.mechanisms.paper.mechanism import Paper
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.groups import Groups
from dpregions.privacy.ledger import Ledger
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases import make
from dpregions.releases.groups import GroupsOutcome
from dpregions.sealed_files import seal
from support.footprint_releases import BLOCKS, PLAIN, SHAPES
from support.grouped_towns import AGES, grouped_town, study_by_age
from support.releases_on_cells import study_on, town_on, voronoi
from support.small_releases import GRID
from support.watched_noise import NoNoise, Spy, Untouched

PLANS = {
    "paper": "paper",
    "chosen": "footprint",
    "sizes": Footprint(strategy=PLAIN),
    "blocks": Footprint(strategy=BLOCKS),
    "patterns": Footprint(strategy=SHAPES),
    "tree": Footprint(strategy=Adaptive(0.3, 4)),
}
RECTANGLES = ((0, 0, 1, 1), (1, 1, 4, 3), (0, 0, 5, 4))


def rectangles():
    return tuple(np.array(RECTANGLES, float).T)


# What is counted


def test_the_sum_over_groups_without_noise_is_the_release_without_noise():
    regions = grouped_town()
    apart = study_by_age(regions, noise=NoNoise(), method="paper")
    whole = make.release_with(NoNoise(), regions, GRID, epsilon=1, max_diameter=2, method="paper")
    assert (apart.signed == whole.signed).all()
    assert (sum(apart.group(age).signed for age in AGES) == whole.signed).all()
    exact = dpr.EulerHistogram.from_regions(regions, GRID, max_diameter=2, user_id="user_id")
    assert (apart.estimate(*rectangles()) == exact.count(*rectangles())).all()


@pytest.mark.parametrize("plan", ["sizes", "blocks", "patterns"])
def test_what_the_groups_measure_adds_up_to_what_all_users_measure(plan):
    """Of footprints the exact totals: shapes are then read from each group's own counts."""
    regions, spies = grouped_town(), (Spy(1), Spy(1))
    study_by_age(regions, noise=spies[0], method=PLANS[plan])
    terms = {"epsilon": 1, "max_diameter": 2, "method": PLANS[plan]}
    make.release_with(spies[1], regions, GRID, **terms)
    of_groups = [values.sum() for values, *_ in spies[0].asked if values.size == 1]
    of_all = [values.sum() for values, *_ in spies[1].asked if values.size == 1]
    assert len(of_groups) == len(AGES) and sum(of_groups) == of_all[0] > 50


def test_a_group_is_released_as_if_it_were_alone():
    regions = grouped_town()
    apart = study_by_age(regions, noise=NoNoise(), method=Footprint(strategy=BLOCKS))
    alone = make.release_with(
        NoNoise(),
        regions[regions["age"] == AGES[1]],
        GRID,
        epsilon=1,
        max_diameter=2,
        method=Footprint(strategy=BLOCKS),
    )
    mine = apart.group(AGES[1])
    assert (mine.counts == alone.counts).all() and (mine.signed == alone.signed).all()
    assert mine.spending == alone.spending and mine.budget == alone.budget


def test_empty_groups_are_released_too_and_get_noise():
    made = study_by_age(grouped_town(ages=AGES[:2]), method="paper")
    assert made.group(AGES[2]).signed.any()


def test_values_that_are_not_listed_contribute_nothing_and_nothing_is_said(recwarn):
    regions = grouped_town(ages=(*AGES, "secret"))
    regions.loc[3, "age"] = None
    listed = regions[regions["age"].isin(AGES)]
    found, wanted = study_by_age(regions), study_by_age(listed)
    assert (found.signed == wanted.signed).all() and found.describe() == wanted.describe()
    assert not len(recwarn)


def test_a_user_in_several_groups_counts_in_one_of_them():
    regions = pd.concat([grouped_town(40, seed) for seed in range(3)], ignore_index=True)
    made = study_by_age(regions, noise=NoNoise(), method="paper")
    exact = dpr.EulerHistogram.from_regions(regions, GRID, max_diameter=2, user_id="user_id")
    assert made.estimate(0, 0, 5, 4) == exact.count(0, 0, 5, 4)
    turned = study_by_age(regions[::-1], noise=NoNoise(), method="paper")
    assert all((turned.group(age).signed == made.group(age).signed).all() for age in AGES)


def test_groups_may_be_numbers():
    regions = grouped_town()
    regions["age"] = regions["age"].map(dict(zip(AGES, (1, 2, 3), strict=True)))
    made = study_by_age(regions, groups=[1, 2, 3])
    assert made.groups.labels == ("1", "2", "3")
    assert (made.group(2).signed == study_by_age().group(AGES[1]).signed).all()


# What it answers


@pytest.mark.filterwarnings("ignore::dpregions.errors.ApproximateCountWarning")
@pytest.mark.parametrize("plan", PLANS)
def test_all_groups_answer_what_the_groups_answer_together(plan):
    made = study_by_age(method=PLANS[plan])
    parts = [made.group(age) for age in AGES]
    drawn = geopandas.GeoSeries([shapely.Point(2, 2).buffer(1.1), shapely.box(0.2, 0.3, 4, 2.7)])
    for query, options in ((rectangles(), {}), ((drawn,), {"within": parts[0]._rule(None)})):
        counts = [part.count(*query, **options) for part in parts]
        np.testing.assert_array_equal(made.count(*query, **options), sum(counts))
        estimates = sum(part.estimate(*query, **options) for part in parts)
        np.testing.assert_allclose(made.estimate(*query, **options), estimates)
    assert made.count(1, 1, 4, 3) == sum(part.count(1, 1, 4, 3) for part in parts)
    assert made.estimate(1, 1, 4, 3) == pytest.approx(
        sum(part.estimate(1, 1, 4, 3) for part in parts)
    )
    assert (made.counts == sum(part.counts for part in parts)).all()
    np.testing.assert_allclose(made.signed, sum(part.signed for part in parts))
    error = [part.expected_error(*rectangles()) for part in parts]
    whole = made.expected_error(*rectangles())
    np.testing.assert_allclose(whole.noise, np.sqrt(sum(e.noise**2 for e in error)))
    np.testing.assert_allclose(whole.shape, sum(e.shape for e in error))


@pytest.mark.parametrize("plan", PLANS)
def test_intervals_of_all_groups_hold_what_they_promise(plan):
    """On five groups, four of which are small. Answers of one release are not independent."""
    ages, levels = list("abcde"), np.array([0.5, 0.8, 0.95])
    asked = np.array([*RECTANGLES, (2, 0, 3, 4), (0, 3, 5, 4), (3, 2, 5, 4)], float).T
    n = 8 if plan == "patterns" else 25
    held = np.zeros((n, len(levels)))
    for seed in range(n):
        regions = grouped_town(300, seed, ages=ages)
        regions["age"] = np.where(regions.index % 3, "a", regions["age"])
        truth = dpr.EulerHistogram.from_regions(regions, GRID, max_diameter=2).count(*asked)
        changes = {"groups": ages, "method": PLANS[plan], "user_id": None}
        made = study_by_age(regions, noise=StudyNoise(seed), **changes)
        for i, level in enumerate(levels):
            low, high = made.interval(*asked, confidence=level)
            held[seed, i] = np.mean((low <= truth) & (truth <= high))
    assert (held.mean(axis=0) > levels - 3.5 * np.sqrt(levels * (1 - levels) / n)).all()


def test_an_interval_of_all_groups_is_narrower_than_those_of_the_groups_together():
    made = study_by_age(method="paper")
    (low, high), parts = made.interval(0, 0, 5, 4), [made.group(age) for age in AGES]
    ends = [part.interval(0, 0, 5, 4) for part in parts]
    assert high - made.estimate(0, 0, 5, 4) < sum(h for _, h in ends) - sum(
        part.estimate(0, 0, 5, 4) for part in parts
    )
    assert low >= 0


def test_ends_that_leave_detail_open_are_those_of_the_groups_at_once():
    """One part in three of the failures that all of them may have."""
    made = study_by_age(method=PLANS["sizes"])
    each = [made.group(a).interval(0, 0, 3, 3, detail="worst", confidence=0.98) for a in AGES]
    found = made.interval(0, 0, 3, 3, detail="worst", confidence=0.94)
    np.testing.assert_allclose(found, np.sum(each, axis=0))


def test_made_up_regions_come_with_their_groups():
    made = study_by_age()
    bodies = made.to_regions()
    again = dpr.EulerHistogram.from_regions(bodies, GRID)
    assert (again.counts == made.counts).all()
    for age in AGES:
        assert (bodies["group"] == age).sum() == len(made.group(age).to_regions())


def test_corners_are_those_of_all_groups_bodies():
    made = study_by_age()
    xy, offsets, times = made.outcome.corners()
    assert times.sum() == len(made.to_regions()) and offsets[-1] == len(xy)
    rings = [xy[start:end] for start, end in pairwise(offsets)]
    parts = [made.group(age).outcome.corners() for age in AGES]
    wanted = [xy[at:end] for xy, o, _ in parts for at, end in pairwise(o)]
    assert all(map(np.array_equal, rings, wanted)) and len(rings) == len(wanted) == len(times)
    assert times.tolist() == [n for _, _, each in parts for n in each]


def test_tables_and_pictures_are_of_all_groups():
    made = study_by_age()
    assert made.to_geodataframe()["count"].sum() == made.counts[::2, ::2].sum()
    assert made.cell_arrays()["count"].shape == (4, 5)
    assert "<table>" in made._repr_html_()


def test_a_covert_release_by_groups_has_whole_counts_alone():
    made = study_by_age(covert=True)
    assert made.signed is None and made.group(AGES[0]).signed is None
    assert made.count(0, 0, 5, 4) == sum(made.group(age).count(0, 0, 5, 4) for age in AGES)
    with pytest.raises(PrivacyError, match="covert"):
        made.interval(0, 0, 5, 4)


@pytest.mark.filterwarnings("ignore::dpregions.errors.ApproximateCountWarning")
@pytest.mark.parametrize("method", MECHANISMS)
def test_groups_on_a_partition(method, tmp_path):
    cells = voronoi()
    regions = geopandas.GeoDataFrame(
        {"age": np.array(AGES)[np.arange(200) % 3]}, geometry=town_on(cells), crs=cells.crs
    )
    # Of footprints without estimates, which take seconds on a partition.
    terms = {"method": method, "covert": method == "footprint", "by": "age", "groups": AGES}
    made = study_on(cells, regions, **terms, crs=None)
    parts = [made.group(age) for age in AGES]
    asked = [["mast 3", "mast 4"], ["mast 7"]]
    counts = made.count(cells=asked)
    assert (counts == sum(part.count(cells=asked) for part in parts)).all()
    made.save(tmp_path / "town.parquet")
    found = dpr.load(tmp_path / "town.parquet")
    assert found.stated() == made.stated() and (found.counts == made.counts).all()
    if not made.covert:
        assert (found.signed == made.signed).all()
        assert made.estimate(cells=asked[1]) == sum(p.estimate(cells=asked[1]) for p in parts)


def test_groups_are_asked_on_other_cells(tmp_path):
    made, squares = study_by_age(covert=True), dpr.Partition.from_grid(dpr.Grid(0, 0, 1, 4, 5))
    elsewhere = made.on(squares)
    assert (elsewhere.counts == sum(made.group(a).on(squares).counts for a in AGES)).all()
    assert elsewhere.count(0, 0, 5, 4) == made.count(0, 0, 5, 4)
    elsewhere.save(tmp_path / "elsewhere.parquet")
    found = dpr.load(tmp_path / "elsewhere.parquet")
    assert (found.counts == elsewhere.counts).all() and found.stated() == elsewhere.stated()


# Its file


@pytest.mark.parametrize("covert", [False, True])
@pytest.mark.parametrize("plan", PLANS)
def test_a_file_keeps_every_group_and_all_of_them(plan, covert, tmp_path):
    made = study_by_age(method=PLANS[plan], covert=covert)
    made.save(tmp_path / "town.parquet")
    found = dpr.load(tmp_path / "town.parquet")
    assert found.stated() == made.stated() and found.describe() == made.describe()
    for one, other in [(found, made), *((found.group(a), made.group(a)) for a in AGES)]:
        assert (one.counts == other.counts).all()
        assert (one.count(*rectangles()) == other.count(*rectangles())).all()
        if not covert:
            np.testing.assert_array_equal(
                one.interval(*rectangles()), other.interval(*rectangles())
            )
    made.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "town.parquet").read_bytes()


def test_groups_of_different_plans_share_a_file(tmp_path):
    """A busy group is measured by another plan than one with hardly anybody, or by a tree."""
    made = study_by_age()
    tree = study_by_age(method=PLANS["tree"])
    parts = (made.outcome.parts[0], tree.outcome.parts[1], made.outcome.parts[2])
    each = Budget(1)
    mixed = replace(made, outcome=GroupsOutcome.of(GRID, parts, made.groups, each, each))
    assert [part.signed is None for part in parts] == [False, True, False]
    mixed.save(tmp_path / "mixed.parquet")
    found = dpr.load(tmp_path / "mixed.parquet")
    np.testing.assert_array_equal(found.interval(*rectangles()), mixed.interval(*rectangles()))
    estimates = pq.read_table(tmp_path / "mixed.parquet")["estimate"].to_numpy()
    wanted = [mixed.group(age).signed.ravel() for age in AGES]
    np.testing.assert_allclose(estimates, np.concatenate(wanted))


def test_one_group_is_saved_as_any_release(tmp_path):
    one = study_by_age().group(AGES[1])
    one.save(tmp_path / "one.parquet")
    found = dpr.load(tmp_path / "one.parquet")
    assert found.stated() == one.stated() and not found.is_of_groups
    assert found.groups.only == AGES[1]
    assert "group" not in pq.read_schema(tmp_path / "one.parquet").names


def test_the_column_group_tells_whose_rows_are_whose(tmp_path):
    made = study_by_age()
    made.save(tmp_path / "town.parquet")
    table = pq.read_table(tmp_path / "town.parquet").to_pandas()
    assert table["group"].tolist() == np.repeat(AGES, GRID.n_components).tolist()
    mine = table[table["group"] == AGES[2]]
    assert (mine["count"].to_numpy() == made.group(AGES[2]).counts.ravel()).all()


def test_it_is_copied_and_pickled_whole():
    made = study_by_age()
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (other.counts == made.counts).all() and other.groups == made.groups


def forged(folder, change):
    """Write a file of groups, change its table and statement, and seal it again."""
    study_by_age(method="paper").save(folder / "town.parquet")
    table = pq.read_table(folder / "town.parquet")
    said = json.loads(pq.read_metadata(folder / "town.parquet").metadata[b"dpregions"])
    table = change(table.replace_schema_metadata(), said)
    path = folder / "forged.parquet"
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    options = {"compression": "zstd", "store_schema": False, "use_dictionary": ["group", "kind"]}
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"dpregions": text})
    seal(path)
    return path


def _others(table, said):
    said["groups"]["labels"] = ["x", "y", "z"]
    return table


def _turned(table, said):
    return table.take(np.roll(np.arange(len(table)), GRID.n_components))


def _fewer(table, said):
    said["groups"]["labels"] = said["groups"]["labels"][:2]
    said["mechanism"]["groups"] = said["mechanism"]["groups"][:2]
    return table


def _untold(table, said):
    said["mechanism"]["groups"].pop()
    return table


def _cheaper(table, said):
    said["epsilon"] = "1/2"
    said["spending"][0]["epsilon"] = "1/2"
    return table


def _dearer_group(table, said):
    part = said["mechanism"]["groups"][1]
    part["epsilon"] = part["spending"][0]["epsilon"] = "2"
    return table


def _no_group_column(table, said):
    return table.drop_columns("group")


def _claimed_plain(table, said):
    said["groups"] = {}
    return table


def _repeated(table, said):
    said["groups"]["labels"][1] = said["groups"]["labels"][0]
    return table


def _other_fields(table, said):
    said["groups"]["more"] = 1
    return table


FORGERIES = (_others, _turned, _fewer, _untold, _cheaper, _dearer_group, _no_group_column,
             _claimed_plain, _repeated, _other_fields)  # fmt: skip


def test_a_file_that_is_sealed_again_is_read(tmp_path):
    assert dpr.load(forged(tmp_path, lambda table, said: table)).is_of_groups


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_a_file_whose_groups_are_not_those_it_states_is_refused(change, tmp_path):
    with pytest.raises(ReleaseFileError, match="not a whole release"):
        dpr.load(forged(tmp_path, change))


# What it costs


@dataclass(frozen=True)
class Undeclared(Paper):
    """The paper's mechanism, as if it did not say what one region more or fewer costs."""

    half_for_one: ClassVar[bool] = False


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "town.ledger")
    made.create("town", 2)
    made.create("moving", 2, neighbours="replace-one")
    return made


def paid(ledger, dataset="town", **changes):
    terms = {"epsilon": 0.25, "max_diameter": 2, "by": "age", "groups": AGES} | changes
    return dpr.release(grouped_town(), GRID, ledger=ledger, dataset=dataset, **terms)


@pytest.mark.parametrize("method", MECHANISMS)
@pytest.mark.parametrize(("dataset", "neighbours"), [("town", "add-remove"),
                                                     ("moving", "replace-one")])  # fmt: skip
def test_groups_are_debited_once_as_one_of_them(ledger, dataset, neighbours, method):
    made = paid(ledger, dataset, neighbours=neighbours, method=method)
    account = ledger.account(dataset)
    assert account.spent == Fraction(1, 4) and len(account.entries) == 2
    assert account.entries[1].what.endswith("3 groups by 'age'")
    assert made.budget == Budget(0.25) and made.group(AGES[0]).budget == Budget(0.25)
    assert made.group(AGES[0]).ledger_entry == made.ledger_entry
    assert "together they cost epsilon 0.25, as each of them does" in made.describe()
    assert made.compare(made.group(AGES[0])).together == Budget(0.25)


def test_the_card_of_groups_names_no_scale_that_nothing_was_measured_with(ledger):
    made = paid(ledger, method="paper")
    loss, accounting = (made.card()["deployment"][part] for part in ("privacy_loss", "accounting"))
    assert loss["privacy_parameters_description"] == (
        "each group by itself, as its own statement says"
    )
    assert (
        "measurements of each group add up to epsilon = 0.25, as much as all groups cost"
        in accounting["composition"]
    )
    one = made.group(AGES[0]).card()["deployment"]["privacy_loss"]
    assert one["privacy_parameters_description"].endswith("noise of scale 100")


def test_groups_of_a_mechanism_that_declares_nothing_are_debited_with_their_sum(ledger, tmp_path):
    made = paid(ledger, "moving", neighbours="replace-one", method=Undeclared())
    assert ledger.account("moving").spent == Fraction(3, 4)
    assert made.budget == Budget(0.75) and made.group(AGES[0]).budget == Budget(0.25)
    assert "adds up to epsilon 0.75" in made.describe()
    one = made.group(AGES[0])
    for comparison in (one.compare(made), made.compare(one)):
        assert comparison.together == Budget(0.75)
        assert "it cost epsilon = 0.75, once" in comparison.describe()
    accounting = made.card()["deployment"]["accounting"]
    assert "shares of all measurements add up to epsilon = 0.75" in accounting["composition"]
    made.save(tmp_path / "town.parquet")
    assert dpr.load(tmp_path / "town.parquet").budget == Budget(0.75)
    paid(ledger, "town", method=Undeclared())  # nobody changes group: one of them differs
    assert ledger.account("town").spent == Fraction(1, 4)


def test_every_group_draws_with_its_whole_epsilon_and_its_own_noise():
    spy = Spy(1)
    study_by_age(noise=spy, method="paper", epsilon=0.5)
    assert [(share, s) for _, share, s, _ in spy.asked] == [(Budget(0.5), 25)] * 3
    noise = [noisy - values for values, *_, noisy in spy.asked]
    assert not (noise[0] == noise[1]).all() and not (noise[1] == noise[2]).all()


def test_the_debit_comes_before_the_first_draw_of_any_group(ledger):
    seen = []

    class Watched(NoNoise):
        def add(self, values, *, epsilon, sensitivity):
            seen.append(ledger.account("town").spent)
            return super().add(values, epsilon=epsilon, sensitivity=sensitivity)

    with ledger.paying(Watched(), "town", Budget(0.25), PrivacyUnit(), "watched") as noise:
        study_by_age(noise=noise, epsilon=0.25, method="paper")
    assert seen == [Fraction(1, 4)] * 3


# What is refused, before anything is spent


def refused(ledger, error, match, regions=None, **changes):
    terms = {"epsilon": 0.25, "max_diameter": 2, "by": "age", "groups": AGES} | changes
    regions = grouped_town() if regions is None else regions
    with pytest.raises(error, match=match):
        dpr.release(regions, GRID, ledger=ledger, dataset="town", **terms)
    assert ledger.account("town").spent == 0


def test_what_is_no_release_by_groups_is_refused_and_nothing_is_spent(ledger):
    refused(ledger, InputError, "by='sex' is no column: there are user_id, age", by="sex")
    refused(ledger, InputError, "groups is empty", groups=[])
    refused(ledger, InputError, "more than once", groups=["a", "a"])
    refused(ledger, InputError, "go together", by=None)
    refused(ledger, InputError, "go together", groups=None)
    bare = list(grouped_town().geometry)
    refused(ledger, InputError, "have no columns", regions=bare, user_id=range(90))
    twice = pd.concat([grouped_town(), grouped_town()[["age"]]], axis=1)
    refused(ledger, InputError, "several columns", regions=twice)


def test_more_groups_than_the_machine_holds_are_refused_before_a_region_is_read():
    many = dpr.Grid(0, 0, 1, 3000, 3000)
    with pytest.raises(InputError, match="a release of 900 groups"):
        dpr.release(
            grouped_town(), many, epsilon=1, max_diameter=2, method="paper", by="age",
            groups=range(900),
        )  # fmt: skip


def test_a_tally_of_all_is_none_of_groups():
    terms = make.Terms(grid=GRID, epsilon=1, max_diameter=2, by="age", groups=AGES)
    with pytest.raises(InputTypeError, match="takes a tally of groups"):
        make.release_tally(terms.prepared.tally(), terms, unit="user")
    grouped = GroupedTally([terms.prepared.tally() for _ in AGES])
    assert make.release_tally(grouped, terms, unit="user").is_of_groups


def test_a_group_is_asked_of_a_release_by_groups_alone():
    made = study_by_age()
    with pytest.raises(InputError, match="group='x' is none of the groups: there are 18-25"):
        made.group("x")
    with pytest.raises(QueryError, match="this release is of one group"):
        made.group(AGES[0]).group(AGES[0])
    plain = make.release_with(StudyNoise(1), grouped_town(), GRID, epsilon=1, max_diameter=2)
    with pytest.raises(QueryError, match="was not made by groups"):
        plain.group(AGES[0])
    assert plain.groups is None and made.groups == Groups("age", AGES)


def test_no_noise_is_drawn_where_something_is_refused():
    with pytest.raises(InputError, match="is no column"):
        study_by_age(noise=Untouched(), by="sex")
