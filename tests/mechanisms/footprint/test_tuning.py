"""Tuned numbers: each has words and a use, none hides elsewhere, and only a record changes one."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpregions as dpr
from dpregions.mechanisms import footprint
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.known import chosen
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with

FOLDER = Path(footprint.__path__[0])
FIELDS = [field.name for field in fields(Tuning)]

HARMLESS = {
    0.0, 0.5, 1.0,  # ends, halves and wholes
    1e-9, 1e-300,  # what a division needs
    20.0, 0.001,  # a floor of regions and of relative errors
}  # fmt: skip


def tree_of(module: str) -> ast.Module:
    return ast.parse((FOLDER / f"{module}.py").read_text())


def words() -> dict[str, str]:
    """What stands below each field."""
    (record,) = (n for n in tree_of("tuning").body if isinstance(n, ast.ClassDef))
    found = {}
    for field, below in zip(record.body, record.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            found[field.target.id] = below.value.value
    return found


@pytest.mark.parametrize("name", FIELDS)
def test_a_number_says_where_it_came_from_and_what_moves_with_it(name):
    lines = words()[name].splitlines()
    said = " ".join(map(str.strip, lines))
    assert re.search(r"\b(Set|Tried|As in)\b", said), "where it came from"
    assert re.search(r"\b(Halved|Left out)\b.* \d", said), "what moves"
    assert len(lines) <= 4


@pytest.mark.parametrize("module", ["fits", "expectation", "reading", "choice"])
def test_no_tuned_number_is_left_in_the_code(module):
    numbers = {n.value for n in ast.walk(tree_of(module)) if isinstance(n, ast.Constant)}
    assert {n for n in numbers if isinstance(n, float)} <= HARMLESS


def test_every_number_is_used():
    modules = (path for path in FOLDER.rglob("*.py") if path.stem != "tuning")
    nodes = (node for path in modules for node in ast.walk(ast.parse(path.read_text())))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert set(FIELDS) <= used


def test_a_release_by_word_has_todays_numbers():
    assert chosen("footprint").tuning is TUNING
    assert chosen("footprint", ["1km"]).tuning is TUNING
    assert "tuning" not in inspect.signature(dpr.release).parameters


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        ({}, set()),
        ({"shape_crowd": 20.0, "shape_clumping": 0.1, "clumping": 0.9}, {"interval"}),
        ({"doubt": 0.1}, {"count", "estimate", "interval"}),
        ({"least_total": Fraction(1, 5)}, {"count", "estimate", "interval"}),
    ],
)
def test_a_record_passes_its_numbers_down(changes, moved):
    grid, regions = dpr.synthetic.grid("20km", "2km"), dpr.synthetic.regions(400)
    x, y = grid.xmin, grid.ymin
    query = x + np.array([100, 2100]), y + 100, x + np.array([5900, 9900]), y + 7900
    terms = {"epsilon": 1, "max_diameter": "2km"}

    def answers(method):
        made = release_with(StudyNoise(3), regions, grid, method=method, **terms)
        found = made.count(*query), made.estimate(*query), np.array(made.interval(*query))
        return dict(zip(("count", "estimate", "interval"), found, strict=True))

    today, other = answers("footprint"), answers(Footprint(tuning=replace(TUNING, **changes)))
    assert {name for name in today if not np.array_equal(today[name], other[name])} == moved


def test_a_release_with_another_tuning_is_not_saved(tmp_path):
    method = Footprint(tuning=replace(TUNING, clumping=0.5))
    city, terms = dpr.synthetic.regions(50), {"epsilon": 1, "max_diameter": "2km"}
    made = release_with(StudyNoise(0), city, dpr.synthetic.grid(), method=method, **terms)
    with pytest.raises(dpr.errors.InputError, match="another tuning cannot be saved"):
        made.save(tmp_path / "city.parquet")
    assert not list(tmp_path.iterdir())
