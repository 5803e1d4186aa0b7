"""dpregions: differentially private counting of users' spatial regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions._lazy import lazily
from dpregions._version import __version__

if TYPE_CHECKING:
    from dpregions import errors, paper, synthetic
    from dpregions.euler import EulerHistogram
    from dpregions.extraction.fixes import regions_from_fixes
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.partition import Partition
    from dpregions.intake.sources.opening import open_regions
    from dpregions.releases.make import release
    from dpregions.releases.published import Release, load

__all__ = [
    "EulerHistogram",
    "Grid",
    "Partition",
    "Release",
    "errors",
    "load",
    "open_regions",
    "paper",
    "regions_from_fixes",
    "release",
    "synthetic",
    "__version__",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "EulerHistogram": "euler",
        "Grid": "geometry.grid",
        "Partition": "geometry.partition",
        "Release": "releases.published",
        "load": "releases.published",
        "open_regions": "intake.sources.opening",
        "regions_from_fixes": "extraction.fixes",
        "release": "releases.make",
        "errors": "",
        "paper": "",
        "synthetic": "",
    },
)
