"""What some code loads in an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = ("numba", "geopandas", "shapely", "pandas", "matplotlib", "opendp", "pyarrow", "scipy")


def imported_by(code, packages=HEAVY):
    """Return which of the packages are loaded after some code ran in a fresh interpreter."""
    report = f"import json, sys; print(json.dumps([m for m in {packages} if m in sys.modules]))"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert result.stderr == ""
    return json.loads(result.stdout.splitlines()[-1])
