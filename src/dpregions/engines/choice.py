"""Which engine counts: the one that the regions are in already.

A Spark DataFrame is counted where it is, anything else on this machine. What engines have to do,
and how another one does it, is told in docs/how-to/engines.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dpregions.engines import local
from dpregions.engines.groups import grouped_tally
from dpregions.intake.regions import read_outlines

if TYPE_CHECKING:
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound
    from dpregions.mechanisms.base import Tally
    from dpregions.privacy.groups import Groups

T = TypeVar("T", bound="Tally")


def tally_of(
    regions: Any,
    grid: Domain,
    bound: Bound | None,
    tally: Callable[[], T],
    *,
    user_id: Any = None,
    crs: Any = None,
    groups: Groups | None = None,
) -> T:
    """Return the tally of all regions, one for each user; secret.

    Parameters
    ----------
    regions, grid, bound, user_id, crs, groups
        As `intake.regions.read_outlines` takes them; or a Spark DataFrame.
    tally : callable
        Makes an empty tally. With groups there is one for each: ``engines.groups.GroupedTally``.
    """
    if groups is not None:
        tally = _of_groups(tally, groups)
    reading: Any = read_outlines(regions, grid, bound, user_id=user_id, crs=crs, groups=groups)
    if reading.frame is None:
        return local.count(reading, tally)
    from dpregions.engines import spark

    return spark.count(reading, tally)


def _of_groups(tally: Callable[[], Any], groups: Groups) -> Callable[[], Any]:
    return lambda: grouped_tally(tally, len(groups.labels))
