"""Every code block and command in README and docs runs.

Python blocks of a page run in order in one namespace; assertions in them are real. Lines
`$ ...` of console blocks run after them, in the same temporary folder. A page that names
DPREGIONS_POSTGIS_URL gets the URL of a real server in it, and is skipped where there is none. One
that imports PySpark meets the Spark of the tests, and is skipped where that is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from shutil import which
from unittest.mock import patch

import pytest

from dpregions.mechanisms.known import MECHANISMS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)

pytestmark = pytest.mark.docs


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text()) if kind == language]


def commands(page: Path) -> list[str]:
    lines = "".join(blocks(page, "console")).splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
@patch.dict(MECHANISMS)  # a mechanism that a page enters there ends with the page
def test_blocks_and_commands_run(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    run(page, request, monkeypatch)


def run(page: Path, request, monkeypatch) -> dict[str, object]:
    """Run a page's Python and commands in this folder; return the names that it made."""
    if "DPREGIONS_POSTGIS_URL" in page.read_text():
        monkeypatch.setenv("DPREGIONS_POSTGIS_URL", request.getfixturevalue("postgis"))
    if "from pyspark" in page.read_text():
        request.getfixturevalue("spark")
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for number, body in enumerate(blocks(page, "python")):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            code = compile(body, f"{page.name} block {number}", "exec", dont_inherit=True)
            exec(code, namespace)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands(page):
        if command.startswith("make "):
            target = command.split()[1]
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
            continue
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return namespace


def has_sf() -> bool:
    """Whether R and its package sf are there. Neither is installed for the tests."""
    asked = "quit(status = !requireNamespace('sf', quietly = TRUE))"
    return bool(which("Rscript")) and not subprocess.run(["Rscript", "-e", asked]).returncode


def test_what_r_counts_is_what_the_release_counts(tmp_path, monkeypatch, request):
    if not has_sf():
        pytest.skip("R with its package sf is not there: apt-get install r-cran-sf")
    page = ROOT / "docs/how-to/r.md"
    monkeypatch.chdir(tmp_path)
    release = run(page, request, monkeypatch)["release"]
    Path("page.R").write_text("".join(blocks(page, "r")))
    done = subprocess.run(["Rscript", "page.R"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count = release.count(*release.grid.cell_bounds(8, 12, 8, 12))
    assert done.stdout.split() == [str(count)]


def test_no_page_leaves_a_mechanism_of_its_own_behind():
    assert [*MECHANISMS] == ["footprint", "paper"]


def test_the_pages_have_blocks_to_run():
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 5


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_the_site_builds_and_works_offline(tmp_path):
    args = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    done = subprocess.run(args, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dpregions regions" in (tmp_path / "commands.html").read_text()
    assert "max_diameter" in (tmp_path / "api.html").read_text()
    pages = [page.read_text() for page in tmp_path.rglob("*.html")]
    loads = re.compile(
        r"""<(?:script|img|iframe|link rel="stylesheet")[^>]+(?:src|href)="https?:"""
    )
    assert len(pages) >= 10
    assert not [found for page in pages for found in loads.findall(page)], "loads from the network"
