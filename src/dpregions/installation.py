"""How this package was installed, and so the command that adds an extra to it.

Installers note where a package came from (PEP 610): nothing, if from a package index.
"""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

NAME = "dpregions"


def install_command(extra: str) -> str:
    """Return the command that installs an extra in the way in which the package is installed."""
    return command_from(_noted(), extra)


def command_from(noted: dict[str, Any], extra: str) -> str:
    """Return that command for what an installer noted; an empty dict stands for an index.

    Examples
    --------
    >>> command_from({}, "plot")
    "pip install 'dpregions[plot]'"
    >>> command_from({"url": "file:///src/dpregions", "dir_info": {"editable": True}}, "plot")
    "pip install -e '/src/dpregions[plot]'"
    """
    url = noted.get("url")
    if not isinstance(url, str):
        return f"pip install {shlex.quote(f'{NAME}[{extra}]')}"
    if isinstance(folder := noted.get("dir_info"), dict):
        path = url2pathname(urlparse(url).path)
        edit = "-e " if folder.get("editable") else ""
        return f"pip install {edit}{shlex.quote(f'{path}[{extra}]')}"
    source = url
    if isinstance(vcs := noted.get("vcs_info"), dict):
        wanted = vcs.get("requested_revision")
        source = f"{vcs.get('vcs')}+{url}" + (f"@{wanted}" if wanted else "")
    return f"pip install {shlex.quote(f'{NAME}[{extra}] @ {source}')}"


def _noted() -> dict[str, Any]:
    """Return what the installer noted, if anything: it must not keep an error from being said."""
    try:
        noted = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}
