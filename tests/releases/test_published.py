"""Releases: what they are, what they hide, what they say."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from fractions import Fraction

import geopandas
import numpy as np
import pytest

import dpregions as dpr
from dpregions.errors import (
    InputError,
    InputTypeError,
    PrivacyError,
)
from dpregions.geometry.doubled import SignedTable
from dpregions.mechanisms.known import MECHANISMS as METHODS
from dpregions.mechanisms.paper.pipeline import post_process
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.noise import SystemNoise
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import Terms, release_with
from dpregions.releases.published import Release
from support.small_releases import (
    GRID,
    paper_study,
    study,
    town,
)

# What a release is


@pytest.mark.parametrize(("method", "sensitivity"), [("paper", 25), ("footprint", 1)])
def test_a_release_says_every_public_parameter(method, sensitivity):
    release = dpr.release(town(), GRID, epsilon=0.5, max_diameter=2, method=method)
    assert release.grid == GRID
    assert release.method == method
    assert release.epsilon == 0.5
    assert release.budget == Budget(0.5)
    assert release.neighbours == "add-remove"
    assert release.unit == "user"
    assert release.privacy_unit == PrivacyUnit("add-remove", "user")
    assert release.sensitivity == sensitivity
    assert sum(budget.epsilon for _, budget in release.spending) == Fraction(1, 2)
    assert release.max_diameter == 2
    assert release.oversize == "shrink"
    assert release.version == dpr.__version__
    assert release.private is True
    assert release.noise == SystemNoise.label


def test_the_footprint_mechanism_is_the_default():
    assert dpr.release(town(), GRID, epsilon=1, max_diameter=2).method == "footprint"


def test_the_papers_release_spends_everything_on_all_components():
    release = paper_study()
    assert release.spending == (("all 63 components", Budget(1)),)
    assert release.outcome.columns().lists == {}
    with pytest.raises(PrivacyError, match="no set of regions"):
        release.to_regions()


def test_a_release_holds_whole_numbers_and_those_published_obey_the_constraints():
    release = dpr.release(town(), GRID, epsilon=1, max_diameter=2, method="paper")
    for array in (release.counts, release.signed):
        assert array.dtype == np.int64
        assert array.shape == GRID.doubled_shape
    assert (release.counts >= 0).all()
    assert (release.signed < 0).any()
    assert dpr.paper.violations(release.counts) == {"C1": 0, "C2": 0, "C3": 0}
    np.testing.assert_array_equal(release.counts, post_process(release.signed).counts)


@pytest.mark.parametrize("method", METHODS)
def test_two_releases_of_the_same_data_differ(method):
    first, second = (
        dpr.release(town(), GRID, epsilon=1, max_diameter=2, method=method) for _ in range(2)
    )
    assert (first.signed != second.signed).any()


def restored(release: Release) -> list[Release]:
    return [
        release,
        copy.copy(release),
        copy.deepcopy(release),
        pickle.loads(pickle.dumps(release)),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_a_release_cannot_be_changed_nor_can_a_copy_of_it(method):
    for release in restored(study(method=method)):
        for field in dataclasses.fields(release):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(release, field.name, None)
        for array in (release.counts, release.signed):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0] = 1


@pytest.mark.parametrize("method", METHODS)
def test_a_copy_answers_as_the_release_does(method):
    first, *others = restored(study(method=method))
    for other in others:
        assert other.describe() == first.describe()
        assert other.interval(0, 0, 3, 2) == first.interval(0, 0, 3, 2)
        np.testing.assert_array_equal(other.counts, first.counts)


def test_a_release_does_not_share_its_arrays_with_whoever_made_them():
    first = study()
    counts = first.counts.copy()
    other = dataclasses.replace(first.outcome, counts=counts)
    counts[:] = 7
    np.testing.assert_array_equal(other.counts, first.counts)


def test_two_releases_on_the_same_terms_are_not_equal():
    one, other = (dpr.release(town(), GRID, epsilon=1, max_diameter=2) for _ in range(2))
    assert one != other and len({one, other}) == 2
    assert one == one and one in {one}


def test_what_was_spent_must_add_up_to_epsilon():
    made = study()
    with pytest.raises(PrivacyError, match="does not add up"):
        dataclasses.replace(made, budget=Budget(2))


def test_arrays_of_another_grid_are_refused():
    with pytest.raises(InputError, match=r"counts must have shape \(7, 9\)"):
        dataclasses.replace(study().outcome, counts=np.zeros((3, 3), int))


def test_a_study_takes_the_defaults_of_a_release():
    public = inspect.signature(dpr.release).parameters
    private = inspect.signature(Terms).parameters
    assert private.keys() == public.keys() - {"regions", "user_id", "unit", "ledger", "dataset"}
    assert all(public[name].default == terms.default for name, terms in private.items())
    whose = inspect.signature(release_with).parameters
    for name in ("user_id", "unit"):
        assert whose[name].default == public[name].default


def test_the_public_function_takes_neither_seed_nor_noise():
    names = set(inspect.signature(dpr.release).parameters)
    assert names == {
        "regions",
        "unit",
        "grid",
        "epsilon",
        "max_diameter",
        "method",
        "neighbours",
        "user_id",
        "oversize",
        "workload",
        "favour",
        "covert",
        "by",
        "groups",
        "crs",
        "ledger",
        "dataset",
        "period",
        "sign_off",
        "allow_epsilon",
    }
    for name in ("seed", "noise", "rng", "random_state"):
        with pytest.raises(TypeError, match=name):
            dpr.release(town(), GRID, epsilon=1, max_diameter=2, **{name: 1})


# What it hides


def parts_of(value: object, seen: set[int] | None = None):
    """Yield a value and everything reachable from it through attributes and containers."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        inner = list(value)
    elif isinstance(value, np.ndarray):
        inner = [] if value.base is None else [value.base]
    else:
        inner = [*getattr(value, "__dict__", {}).values()]
    for part in inner:
        yield from parts_of(part, seen)


@pytest.mark.parametrize("method", METHODS)
def test_a_release_holds_nothing_exact(method):
    regions = town(400)
    exact = dpr.EulerHistogram.from_regions(regions, GRID, user_id="user_id", max_diameter=2)
    sums = SignedTable(exact.counts)._sums
    secrets = [exact.counts, sums, exact.faces, np.asarray(regions.geometry)]
    release = dpr.release(regions, GRID, epsilon=1, max_diameter=2, method=method)
    for whole in (release, pickle.loads(pickle.dumps(release))):
        parts = list(parts_of(whole))
        assert any(part is whole.counts for part in parts)
        assert not any(isinstance(part, dpr.EulerHistogram) for part in parts)
        assert not any(isinstance(part, geopandas.GeoDataFrame) for part in parts)
        for array in (part for part in parts if isinstance(part, np.ndarray)):
            assert not any(np.array_equal(array, secret) for secret in secrets)
        # Whole numbers of the catalogue and the levels may be anything; they are public.
        public = list(
            parts_of([getattr(whole.outcome, name, None) for name in ("bodies", "reading")])
        )
        held = [part for part in parts if not any(part is known for known in public)]
        assert not any(isinstance(part, int) and part == 400 for part in held)
    assert exact.counts.tobytes() not in pickle.dumps(release)


def test_what_a_release_says_does_not_depend_on_the_data():
    few, many = paper_study(town(3)), paper_study(town(500))
    assert few.describe() == many.describe()
    assert repr(few) == repr(many)


def test_secret_and_released_do_not_turn_into_each_other():
    exact = dpr.EulerHistogram.from_regions(town(), GRID)
    assert not isinstance(exact, Release)
    with pytest.raises(TypeError):
        exact + study()
    with pytest.raises(InputTypeError, match="got EulerHistogram"):
        dpr.release(exact, GRID, epsilon=1, max_diameter=2)


# What it says


def test_describe_says_relation_unit_epsilon_and_sensitivity_in_words():
    text = dpr.release(
        town(), GRID, epsilon=0.5, max_diameter=2, neighbours="replace-one", method="paper"
    ).describe()
    for words in (
        "epsilon = 0.5",
        "pure differential privacy",
        "replace-one, unit = user",
        "one user's data replaced by any other, or moved away",
        "at most 50 (L1)",
        "diameter at most 2.0 units (longer ones shrunk to it)",
        "all 63 components with epsilon 0.5, noise of scale 100",
        "method 'paper' (norm='l1'),",
        repr(GRID),
        dpr.__version__,
        "Not promised",
    ):
        assert words in text
    assert "NOT PRIVATE" not in text


def test_describe_says_what_intervals_allow_for():
    noise = "Intervals: they allow for the noise, by its law"
    claim = "they are not part of the privacy claim."
    by_footprint, by_paper = study().describe(), study(method="paper").describe()
    assert f"{noise}, and for detail that was not measured, by rules" in by_footprint
    assert f"{noise}; {claim}" in by_paper and claim in by_footprint
    assert "Intervals:" not in study(covert=True).describe()


def test_describe_follows_the_unit_the_relation_and_the_rule_for_long_regions():
    text = paper_study(user_id=None, oversize="drop").describe()
    assert "add-remove, unit = record" in text
    assert "one record more or fewer" in text
    assert "one region a record" in text
    assert "longer ones left out" in text
    assert "at most 25 (L1)" in text


def test_a_study_release_is_stamped_not_private_wherever_it_is_shown():
    release = study()
    assert release.private is False
    assert "NOT PRIVATE" in repr(release)
    assert "NOT PRIVATE" in release.describe()
    assert "do not publish" in release.describe()
    assert "seeded" in release.noise
    assert "NOT PRIVATE" not in repr(dpr.release(town(), GRID, epsilon=1, max_diameter=2))


@pytest.mark.parametrize("method", METHODS)
def test_a_study_release_repeats_with_its_seed(method):
    first, again, other = (study(noise=StudyNoise(seed), method=method) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.counts, again.counts)
    np.testing.assert_array_equal(first.signed, again.signed)
    assert (first.signed != other.signed).any()
