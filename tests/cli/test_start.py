"""Ctrl-C ends every command in one line, whenever it comes."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

import dpregions as dpr
from dpregions.cli import start
from dpregions.privacy.ledger import Ledger

AT_IMPORT = """
import os, signal, sys
wanted = sys.argv.pop(1)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from dpregions.cli.start import main
main()
"""
AT_SAVE = """
import os, signal, sys
import dpregions.releases.file as file
file.replacing = lambda *args, **options: os.kill(os.getpid(), signal.SIGINT)
from dpregions.cli.start import main
main()
"""


@pytest.fixture
def folder(tmp_path):
    dpr.synthetic.regions(30).to_parquet(tmp_path / "city.parquet")
    Ledger(tmp_path / "city.ledger").create("town", 1)
    return tmp_path


def ended(folder, code, *first):
    area = ("--around", "9.0,48.5", "--side", "8km", "--cell", "1km", "--max-diameter", "2km")
    paid = ("--epsilon", "0.5", "--ledger", "city.ledger", "--dataset", "town")
    command = ("release", "city.parquet", "-o", "release.parquet", *area, *paid)
    args = [sys.executable, "-c", code, *first, *command]
    done = subprocess.run(args, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 130 and done.stdout == ""
    *before, last = done.stderr.splitlines()
    assert all(line.startswith("dpregions: area:") for line in before)
    return last


@pytest.mark.parametrize("module", ["typer", "dpregions.cli.release", "pandas", "pyarrow.parquet"])
def test_an_interrupt_while_modules_load_is_one_line(folder, module):
    assert ended(folder, AT_IMPORT, module) == "dpregions: interrupted; no budget was spent"
    assert Ledger(folder / "city.ledger").account("town").spent == 0


def test_an_interrupt_after_the_debit_says_what_was_spent(folder):
    said = ended(folder, AT_SAVE)
    assert said.startswith("dpregions: interrupted; epsilon 0.5 is spent, and the release was not")
    assert Ledger(folder / "city.ledger").account("town").spent == 0.5


def test_an_interrupt_by_another_hand_is_one_line_too(monkeypatch, capsys):
    usual = signal.getsignal(signal.SIGINT)
    monkeypatch.setitem(sys.modules, "dpregions.cli.app", SimpleNamespace(main=interrupted))
    with pytest.raises(SystemExit) as end:
        start.main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "dpregions: interrupted; no budget was spent\n"
    assert signal.getsignal(signal.SIGINT) is usual


def interrupted():
    raise KeyboardInterrupt
