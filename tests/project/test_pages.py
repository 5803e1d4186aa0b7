"""Pages as text: tables with as many columns as headings, links to headings that are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import dpregions

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def lines_of(page: Path) -> list[tuple[int, str]]:
    """The numbered lines of a page outside of blocks of code."""
    found, inside = [], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            found.append((number, line))
    return found


def columns(row: str) -> int:
    """How many cells a row of a table has: bars that are escaped or in code do not part them."""
    bare = re.sub(r"`[^`]*`", "", row).replace(r"\|", "")
    return bare.strip().strip("|").count("|") + 1


@EACH
def test_every_row_of_a_table_has_as_many_cells_as_its_head(page):
    head, before = None, -1
    for number, line in lines_of(page):
        if not line.lstrip().startswith("|"):
            head = None
            continue
        if head is None or number != before + 1:
            head = columns(line)
        before = number
        assert columns(line) == head, f"line {number}: {columns(line)} cells under {head}"


def test_the_count_of_cells_sees_a_row_that_is_too_short():
    assert columns("| a | b |") == 2 != columns("| a |") == 1
    assert columns(r"| `x | y` | b \| c |") == 2


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and package indexes make them."""
    found = set()
    for _, line in lines_of(page):
        if line.startswith("#"):
            bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#")).strip().lower()
            found.add(re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", bare)))
    return found


@EACH
def test_links_to_headings_lead_to_one(page):
    for number, line in lines_of(page):
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", line):
            other = page if not target else (page.parent / target).resolve()
            if other.suffix == ".md":
                assert anchor in headings(other), f"line {number}: {target}#{anchor}"


def test_the_citation_is_of_this_version_and_licence():
    """Both are written by hand there: CITATION.cff has no way to name a file."""
    said = dict(
        line.split(": ", 1)
        for line in (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
        if re.match(r"[\w-]+: ", line)
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert said["license"] == project["license"]
    assert said["version"] == dpregions.__version__
