"""The card of a release: a draft in the registry's own fields, from public values alone."""

from __future__ import annotations

import dataclasses
import json

import pytest
import yaml

import dpregions as dpr
from dpregions.errors import PrivacyError
from support.command_line import run
from support.release_files import made


def test_the_card_has_the_registrys_fields(good):
    release, _ = good
    deployment = release.card()["deployment"]
    assert [*deployment] == [
        *("product", "dp_flavor", "privacy_loss", "model", "accounting", "implementation"),
        "resources",
    ]
    loss = deployment["privacy_loss"]
    assert loss["privacy_unit"] == f"{release.unit.capitalize()}-level"
    assert loss["privacy_parameters"] == {"epsilon": 1.0}
    assert deployment["dp_flavor"]["name"] == "Pure DP"
    assert "largest diameter of a region" in deployment["dp_flavor"]["unprotected_quantities"]
    model = deployment["model"]
    assert (model["release_type"], model["access_type"]) == ("One release", "Non-interactive")
    assert {"post_processing", "composition"} <= deployment["accounting"].keys()
    assert {"mechanisms", "justification"} <= deployment["implementation"].keys()
    assert "OpenDP" in deployment["implementation"]["mechanisms"]


def test_what_was_recorded_fills_the_card(good):
    release = dataclasses.replace(
        good[0],
        ledger_entry="862e1821547b2910/taxis/2",
        declared=(("source", "the rides"), ("period", "June 2026"), ("owner", "A. Ride")),
        sign_off=(
            ("epsilon", "the council, as other cities do"),
            ("settings", "made-up cities"),
        ),
    )
    deployment = release.card()["deployment"]
    assert deployment["product"]["name"] == "taxis"
    assert deployment["product"]["data_curators"] == ["A. Ride"]
    assert "June 2026" in deployment["product"]["description"]
    assert "862e1821547b2910/taxis/2" in deployment["accounting"]["composition"]
    assert deployment["implementation"]["justification"] == "the council, as other cities do"
    assert good[0].card()["deployment"]["implementation"]["justification"] == ""


def test_the_command_writes_yaml_or_json_that_say_the_same(good):
    release, path = good
    text = run("describe", path, "--card").stdout
    assert yaml.safe_load(text) == release.card()
    assert json.loads(run("describe", path, "--card", "--json").stdout) == release.card()


def test_a_card_on_other_cells_and_without_a_crs(tmp_path):
    plane = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
    assert made(plane, private=True).card()["deployment"]["product"]["data_product_region"] == ""


def test_a_study_has_no_card():
    with pytest.raises(PrivacyError, match="this is a study's release, not private"):
        made().card()
