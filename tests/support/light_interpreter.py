"""An interpreter that has what `pip install dpregions` brings, and nothing of the extras."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def light_command(*args: object, cwd: Path):
    """Run the command line there."""
    code = "from dpregions.cli.start import main\nsys.argv[0] = 'dpregions'\nmain()"
    return run_light(code, *args, cwd=cwd, check=False)


def answers_of(code: str, *args: object):
    """Return what code prints as JSON in its last line."""
    return json.loads(run_light(code, *args).stdout.splitlines()[-1])
