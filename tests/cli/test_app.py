import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpregions import __version__
from dpregions.cli.app import app
from dpregions.errors import InputError
from dpregions.privacy.ledger import Ledger
from support import command_line

run = CliRunner().invoke


def test_version_is_shown():
    assert __version__ in run(app, ["--version"]).output


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's folder and what it said as JSON."""
    folder = tmp_path_factory.mktemp("demo")
    result = run(app, ["demo", "--out", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


def test_the_demo_tells_the_whole_story(demo):
    folder, told = demo
    for name in ("fixes.parquet", "regions.parquet", "budget.db", "city.parquet"):
        assert (folder / name).stat().st_size
    assert all(Path(picture).read_bytes()[:4] == b"\x89PNG" for picture in told["pictures"])
    assert told["page"] == str(folder / "map.html")
    assert (folder / "map.html").read_text().startswith("<!doctype html>")
    assert told["epsilon"] == "1.0"
    assert "ledger entry" in told["statement"] or "Ledger:" in told["statement"]
    (account,) = Ledger(folder / "budget.db").accounts()
    assert (account.total, account.spent) == (2, 1)


def test_the_demo_never_touches_a_ledger_or_release_of_somebody_else(tmp_path):
    ledger = tmp_path / "budget.db"
    Ledger(ledger).create("mine", 1)
    before = ledger.read_bytes()
    result = run(app, ["demo", "--out", str(tmp_path)])
    assert isinstance(result.exception, InputError)
    assert "which no demo made: choose another folder" in str(result.exception)
    assert ledger.read_bytes() == before
    assert list(tmp_path.iterdir()) == [ledger]


def test_the_demo_counts_each_region_once(demo):
    answers = demo[1]["answers"]
    assert all(a["touching"] <= a["sum_of_cells"] for a in answers)
    assert answers[-1]["sum_of_cells"] > 2 * answers[-1]["touching"]
    assert all(a["low"] <= a["high"] for a in answers)
    # The total's noise has scale 20: this fails once in ten million runs.
    assert abs(answers[-1]["released"] - answers[-1]["touching"]) < 20 * 17


def test_an_unknown_command_is_exit_code_2():
    assert run(app, ["nonsense"]).exit_code == 2


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_1(tmp_path):
    (tmp_path / "file").write_text("")
    stopped = command_line.run("demo", "--out", tmp_path / "file" / "x")
    assert stopped.exit_code == 1
    assert stopped.stderr.startswith("dpregions: failed:")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['dpregions', '--help']\n"
        "from dpregions.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numba', 'geopandas', 'pandas', 'shapely', 'matplotlib', 'opendp', 'scipy'}\n"
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 0
