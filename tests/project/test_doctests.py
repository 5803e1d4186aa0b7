"""The examples in docstrings are true, and the tests that the docs point to exist."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

MODULES = {
    "mechanisms.paper.bounds": 2,
    "mechanisms.paper.consistency": 1,
    "cities": 3,
    "curator": 5,
    "euler": 5,
    "geometry.grid": 6,
    "geometry.rectangles": 2,
    "intake.sources.opening": 5,
    "mechanisms.paper.isotonic": 2,
    "lengths": 0,
    "privacy.law": 1,
    "mechanisms.paper.pipeline": 1,
    "mechanisms.paper.sensitivity": 1,
    "planning.planner": 2,
    "planning.advice": 1,
    "planning.expected": 1,
    "planning.arguments": 1,
    "privacy.budget": 1,
    "releases.make": 4,
    "study.coverage": 2,
    "synthetic": 2,
}
"""The modules, each with how many examples it has at least."""


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, attempted = doctest.testmod(import_module(f"dpregions.{name}"))
    assert failed == 0
    assert attempted >= MODULES[name]


def test_every_test_that_the_docs_name_exists():
    root = Path(__file__).parents[2]
    tests = "".join(page.read_text() for page in (root / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"def (test_\w+)", tests))
    defined |= {page.stem for page in (root / "tests").rglob("test_*.py")}
    for page in sorted((root / "docs").rglob("*.md")):
        named = set(re.findall(r"\b(test_\w+)", page.read_text()))
        assert named <= defined, f"{page.name}: {sorted(named - defined)}"
