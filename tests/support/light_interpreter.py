"""An interpreter that has what `pip install dpregions` brings, and nothing of the extras."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from dpregions.extras import EXTRA_OF

BARRED = sorted({*EXTRA_OF, "llvmlite"})

_HOOK = f"""
import importlib.abc, sys
class Barred(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BARRED}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Barred())
"""


def run_light(code: str, *args: object, cwd: Path | None = None, check: bool = True):
    """Run code where no package of an extra can be imported; `sys.argv[1:]` are the arguments."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _HOOK + code, *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd or Path(__file__).parent,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


class Told(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


def light_commands(*commands: tuple[object, ...], cwd: Path) -> list[Told]:
    """Run commands there, one after another in one interpreter, which takes long to start."""
    told = answers_of(_COMMANDS, json.dumps([[*map(str, args)] for args in commands]), cwd=cwd)
    return [Told(*each) for each in told]


_COMMANDS = """
import contextlib, io, json
from dpregions.cli.start import main
told = []
for args in json.loads(sys.argv[1]):
    sys.argv[:] = ["dpregions", *args]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


def answers_of(code: str, *args: object, cwd: Path | None = None):
    """Return what code prints as JSON in its last line."""
    return json.loads(run_light(code, *args, cwd=cwd).stdout.splitlines()[-1])
