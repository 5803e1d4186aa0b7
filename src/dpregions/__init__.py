"""dpregions: differentially private counting of users' spatial regions.

The public names below load their module on first use, so `import dpregions` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpregions._version import __version__

if TYPE_CHECKING:
    from dpregions.euler import EulerHistogram
    from dpregions.extraction.fixes import regions_from_fixes
    from dpregions.geometry.grid import Grid
    from dpregions.io.sources import open_regions
    from dpregions.releases.file import load
    from dpregions.releases.make import release
    from dpregions.releases.published import Release

_HOME = {
    "EulerHistogram": "euler",
    "Grid": "geometry.grid",
    "Release": "releases.published",
    "load": "releases.file",
    "open_regions": "io.sources",
    "regions_from_fixes": "extraction.fixes",
    "release": "releases.make",
}
_SUBMODULES = ("errors", "paper", "synthetic")

__all__ = [
    "EulerHistogram",
    "Grid",
    "Release",
    "load",
    "open_regions",
    "regions_from_fixes",
    "release",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"dpregions.{_HOME[name]}"), name)
    elif name in _SUBMODULES:
        value = import_module(f"dpregions.{name}")
    else:
        raise AttributeError(f"module 'dpregions' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
