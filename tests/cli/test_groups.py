"""Releases by groups on the command line: made, asked, described, exported, refused."""

from __future__ import annotations

import json
from fractions import Fraction

import geopandas
import numpy as np
import pytest

import dpregions as dpr
from dpregions.io.region_files import save_regions
from dpregions.privacy.ledger import Ledger
from support.command_line import run

AREA = ("--around", "9.0,48.5", "--side", "10km", "--cell", "1km")
TERMS = ("--epsilon", 0.5, "--max-diameter", "2km", *AREA)
BY = ("--by", "age", "--groups", "young, old,nobody")
PAID = ("--ledger", "city.ledger", "--dataset", "taxis")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with regions, a ledger and a release by groups."""
    folder = tmp_path_factory.mktemp("groups")
    regions = dpr.synthetic.regions(300)
    regions["age"] = np.array(["young", "old", "unlisted"])[np.arange(300) % 3]
    save_regions(regions, folder / "regions.parquet")
    Ledger(folder / "city.ledger").create("taxis", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = run("release", "regions.parquet", "-o", "city.parquet", *TERMS, *BY, *PAID)
    assert done.exit_code == 0, done.output
    (folder / "said").write_text(done.stdout)
    return folder


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


BOUNDS = tuple(map(repr, dpr.Grid.around(9.0, 48.5, side="10km", cell_size="1km").bounds))


def test_a_release_by_groups_is_made_paid_once_and_says_so(folder):
    said = (folder / "said").read_text()
    assert "Groups: 3 by 'age': young, old, nobody." in said
    assert Ledger("city.ledger").account("taxis").spent == Fraction(1, 2)
    assert dpr.load("city.parquet").groups.labels == ("young", "old", "nobody")


def test_each_group_is_asked_and_all_of_them():
    whole = json.loads(run("query", "city.parquet", *BOUNDS, "--json").stdout)
    counts = [
        json.loads(run("query", "city.parquet", *BOUNDS, "--group", label, "--json").stdout)[
            "count"
        ]
        for label in ("young", "old", "nobody")
    ]
    assert whole["count"] == sum(counts)


def test_a_group_is_described_by_itself():
    assert "Groups: 3 by 'age'" in run("describe", "city.parquet").stdout
    said = run("describe", "city.parquet", "--group", "old").stdout
    assert "Group: old, one of 3 by 'age'" in said
    stated = json.loads(run("describe", "city.parquet", "--group", "old", "--json").stdout)
    assert stated["groups"]["only"] == "old"


def test_a_group_is_exported_and_all_of_them():
    assert run("export", "city.parquet", "old.gpkg", "--group", "old").exit_code == 0
    assert run("export", "city.parquet", "all.gpkg", "--what", "regions").exit_code == 0
    bodies = geopandas.read_file("all.gpkg")
    assert set(bodies["group"]) <= {"young", "old", "nobody"}
    cells = geopandas.read_file("old.gpkg", layer="faces")
    assert cells["count"].sum() == dpr.load("city.parquet").group("old").counts[::2, ::2].sum()


def test_what_a_release_by_groups_takes_is_that_of_all_of_them():
    terms = ("release", "regions.parquet", "-o", "x.parquet", *TERMS, "--dry-run", "--json")
    one, three = (json.loads(run(*terms, *more).stdout) for more in ((), BY))
    assert three["draws"] == 3 * one["draws"] and three["file"] == 3 * one["file"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--by", "sex", "--groups", "f,m"), "--by 'sex' is no column"),
        (("--by", "age", "--groups", ""), "--groups"),
        (("--by", "age", "--groups", "young,young"), "'young' more than once"),
        (("--by", "age"), "--by and --groups go together"),
        (("--groups", "young"), "--by and --groups go together"),
    ],
)
def test_what_is_no_release_by_groups_is_refused_before_it_is_paid(more, message):
    done = run("release", "regions.parquet", "-o", "x.parquet", *TERMS, *more, *PAID)
    assert done.exit_code == 2 and message in done.stderr
    assert Ledger("city.ledger").account("taxis").spent == Fraction(1, 2)


def test_a_group_that_is_not_there_is_refused():
    done = run("query", "city.parquet", *BOUNDS, "--group", "middle")
    assert done.exit_code == 2
    assert "--group 'middle' is none of the groups: there are young, old, nobody" in done.stderr
