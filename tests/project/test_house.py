"""The house: imports go down, in no circle, and the map that is committed is the code's."""

from __future__ import annotations

import re

import pytest

from docs.pictures import house

LAYERS = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["dpregions.attic", "dpregions.kitchen", "dpregions.cellar | dpregions.well"]
"""


@pytest.fixture(scope="module")
def ours() -> house.House:
    return house.House.read()


@pytest.fixture
def built(tmp_path):
    """Return what reads a house that is written as {file: code}."""
    (tmp_path / "pyproject.toml").write_text(LAYERS)
    files = {f"{name}/__init__.py": "" for name in ("attic", "kitchen", "cellar")}

    def build(more: dict[str, str]) -> house.House:
        for name, code in (files | {"__init__.py": "", "well.py": ""} | more).items():
            path = tmp_path / "dpregions" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        return house.House.read(tmp_path / "dpregions", tmp_path / "pyproject.toml")

    return build


def test_no_import_goes_up_or_round_and_few_names_cross(ours):
    assert ours.problems() == []


def test_the_committed_picture_is_what_the_code_draws_today(ours):
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawn(ours), "run make map"


def test_the_table_of_contributing_has_every_package_in_its_order_and_what_it_calls(ours):
    text = (house.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", text, re.MULTILINE)
    rows = rows[rows.index(("package", "owns", "may call")) + 1 :]
    labels = [f"`{name}/`" if name in ours.folders else f"`{name}.py`" for name in ours.rooms]
    assert [name for name, _, _ in rows] == [*labels, "the ground"]
    for room, (_, _, may) in zip(ours.rooms, rows, strict=False):
        named = set(re.findall(r"`(\w+)(?:/|\.py)`", may))
        below = set(ours.rooms[ours.rooms.index(room) + 1 :])
        if may.startswith("all below"):
            named = below - named
        while "what they rest on" in may and (more := set().union(*map(ours.calls, named)) - named):
            named |= more
        assert ours.calls(room) <= named & below, f"{room} calls more than CONTRIBUTING.md says"


def test_names_are_counted_once_for_each_package_and_types_apart(built):
    made = built(
        {
            "attic/one.py": "from dpregions.kitchen.stove import cook, Pan\n",
            "attic/two.py": "def late():\n    from dpregions.kitchen.stove import cook\n",
            "cellar/__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from dpregions.kitchen.stove import Oven, Pan\n",
            "kitchen/stove.py": "from dpregions.kitchen import table\nfrom dpregions import well\n",
            "kitchen/table.py": "import dpregions.cellar\n",
        }
    )
    assert made.names("kitchen") == ["stove.Pan", "stove.cook"]
    assert made.names("kitchen", for_types=True) == ["stove.Oven"]
    assert made.names("kitchen", by="attic") == ["stove.Pan", "stove.cook"]
    assert made.names("cellar") == ["*"]
    assert made.n_names() == 3  # the well is not a folder
    assert made.problems() == []
    assert made.rooms == ["attic", "kitchen", "cellar", "well"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"cellar/wine.py": "def late():\n    from dpregions.attic import roof\n"},
            "dpregions.cellar.wine imports dpregions.attic, which is not below it",
        ),
        ({"well.py": "import dpregions.cellar\n"}, "dpregions.well imports dpregions.cellar"),
        ({"cellar/wine.py": "import dpregions\n"}, "dpregions.cellar.wine imports dpregions, "),
        (
            {
                "attic/a.py": "from dpregions.attic import b\n",
                "attic/b.py": "def late():\n    from dpregions.attic.a import x\n",
            },
            "in a circle: dpregions.attic.a -> dpregions.attic.b -> dpregions.attic.a",
        ),
        ({"shed.py": ""}, "shed is in no layer"),
    ],
)
def test_what_the_map_forbids_is_told(built, more, words):
    assert words in "\n".join(built(more).problems())


def test_two_circles_are_both_told(built):
    pair = {"a.py": "from dpregions.{0}.b import x\n", "b.py": "from dpregions.{0}.a import x\n"}
    rooms = ("attic", "cellar")
    made = built({f"{r}/{name}": code.format(r) for r in rooms for name, code in pair.items()})
    assert len(made.problems()) == 2


def test_too_many_names_are_told(built):
    made = built({"attic/a.py": "from dpregions.cellar import x, y\n"})
    assert made.problems(most_names=1)[0].startswith("2 names cross between packages, more than 1")
