"""The public choices of an extraction, checked before any row is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, get_args

from dpregions.choices import FixUnit
from dpregions.crs import crs_label, read_crs
from dpregions.errors import (
    Argument,
    CRSError,
    InputError,
    InputTypeError,
    InPython,
    Part,
    PrivacyError,
)
from dpregions.lengths import positive_length

if TYPE_CHECKING:
    from pyproj import CRS

NAMES = ("user_id", "lon", "lat", "t")
"""The columns of fixes, as this package calls them."""


@dataclass(frozen=True)
class Recipe:
    """How many fixes make a region, how wide it is, where it is measured and whose it is.

    `user_id`, `lon`, `lat` and `time` are the names of columns; `gap` is in microseconds.
    """

    k: int
    diameter: float
    crs: CRS
    unit: FixUnit
    gap: int | None
    user_id: str
    lon: str
    lat: str
    time: str

    @classmethod
    def of(
        cls,
        k: Any,
        max_diameter: Any,
        crs: Any,
        unit: Any,
        gap: Any,
        names: tuple[str, str, str, str] = NAMES,
    ) -> Recipe:
        """Return a recipe of the arguments of `regions_from_fixes`, or refuse them."""
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise InputTypeError(Argument("k"), f" must be a whole number of fixes, got {k!r}")
        if k < 1:
            raise InputError(Argument("k"), f" must be at least 1, got {k}: a region needs a fix")
        target = _metric_crs(crs)
        exact = positive_length(max_diameter, name="max_diameter", crs=target)
        diameter = float(exact)
        if Fraction(diameter) > exact:
            diameter = math.nextafter(diameter, 0.0)
        if unit not in get_args(FixUnit):
            given = Argument("unit", repr(unit))
            raise PrivacyError(given, " is unknown: use 'user' or 'trajectory'")
        trajectory = Argument("unit", "'trajectory'")
        if gap is None and unit == "trajectory":
            example = Argument("gap", "'20min'")
            raise InputError(trajectory, " needs a gap, for example ", example, argument="gap")
        if gap is not None and unit == "user":
            useless = Argument("gap", repr(gap)), " has no use with ", Argument("unit", "'user'")
            raise InputError(*useless, ": add ", trajectory, ", or leave it out")
        pause = None if gap is None else _microseconds(gap)
        return cls(min(int(k), 1 << 62), diameter, target, unit, pause, *names)

    @property
    def columns(self) -> dict[str, str]:
        """The names of the columns that are read, by ours."""
        names = dict(zip(NAMES, (self.user_id, self.lon, self.lat, self.time), strict=True))
        if self.gap is None:
            del names["t"]
        return names

    def with_our_columns(self) -> Recipe:
        """Return the same for a table whose columns have our names."""
        user_id, lon, lat, time = NAMES
        return replace(self, user_id=user_id, lon=lon, lat=lat, time=time)


def _metric_crs(value: Any) -> CRS:
    if value is None:
        raise _unmetric(Argument("crs"), " is missing: distances need a projected CRS")
    crs = read_crs(value)
    label = f"{crs_label(crs)} ({crs.name})"
    if crs.is_geographic:
        raise _unmetric(f"{label} is geographic: degrees are not distances")
    if not (crs.is_projected or crs.is_engineering):
        raise _unmetric(f"{label} is not a projected CRS")
    if _is_world_mercator(crs):
        raise _unmetric(
            f"{label} stretches lengths away from the equator: its metres are not metres on the "
            f"ground"
        )
    return crs


def _unmetric(*why: Part) -> CRSError:
    zone = InPython(", for example Grid.around(lon, lat, ...).crs, the UTM zone")
    return CRSError(*why, "; use a projected one", zone, argument="crs")


def _is_world_mercator(crs: CRS) -> bool:
    """Say whether a CRS is Web Mercator, or a Mercator not made for a strip of the Earth."""
    for part in filter(None, (crs, crs.source_crs, *crs.sub_crs_list)):
        method = part.coordinate_operation.method_name if part.coordinate_operation else ""
        area = part.area_of_use
        if "Pseudo Mercator" in method:
            return True
        if method.startswith("Mercator") and (area is None or area.north - area.south > 60):
            return True
    return False


def _microseconds(gap: Any) -> int:
    import pandas as pd

    given = Argument("gap", repr(gap))
    remedy = "write a time with its unit, for example '20min' or '1h'"
    if isinstance(gap, int | float):
        raise InputTypeError(given, f" has no unit: {remedy}")
    try:
        pause = pd.Timedelta(gap)
    except (ValueError, TypeError):
        raise InputError(given, f" is not a time: {remedy}") from None
    if pd.isna(pause) or pause <= pd.Timedelta(0):
        raise InputError(given, f" must be longer than 0: {remedy}")
    return int(pause / pd.Timedelta(microseconds=1))
