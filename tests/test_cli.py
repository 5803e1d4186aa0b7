import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dpregions import __version__
from dpregions.cli import app, main

run = CliRunner().invoke


def test_version_is_shown():
    assert __version__ in run(app, ["--version"]).output


def test_the_demo_counts_releases_and_draws(tmp_path):
    result = run(app, ["demo", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    answers = json.loads(result.stdout)["answers"]
    assert all(a["touching"] <= a["sum_of_cells"] for a in answers)
    assert answers[-1]["sum_of_cells"] > 2 * answers[-1]["touching"]
    assert all(a["low"] <= a["high"] for a in answers)
    # The total's noise has scale 20: this fails once in ten million runs.
    assert abs(answers[-1]["released"] - answers[-1]["touching"]) < 20 * 17
    assert (tmp_path / "double_counting.png").read_bytes()[:4] == b"\x89PNG"


def test_an_unknown_command_is_exit_code_2():
    assert run(app, ["nonsense"]).exit_code == 2


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_1(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "argv", ["dpregions", "demo", "--out", str(tmp_path / "file" / "x")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err.startswith("dpregions: failed:")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['dpregions', '--help']\n"
        "from dpregions.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numba', 'geopandas', 'pandas', 'shapely', 'matplotlib', 'opendp', 'scipy'}\n"
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 0
