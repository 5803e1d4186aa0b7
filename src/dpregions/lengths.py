"""Lengths and exact numbers as people write them: read exactly, and shown.

A length is a number in the units of a coordinate reference system, or text with its unit
("1km", "500 m", "2/3 km"). Numbers are taken at their decimal face value, so that 2.1 is three
times 0.7, which it is not in binary floating point: how many cells a bound spans follows from it.
"""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING

from dpregions.errors import Argument, CRSError, InputError, InputTypeError, PrivacyError

if TYPE_CHECKING:
    from pyproj import CRS

    from dpregions.geometry.domain import Domain

US_FOOT = "US survey foot"
"""Two millionths longer than the foot of other countries: 4 m where coordinates are 2,000 km."""

METRES = {
    "mm": Fraction(1, 1000),
    "cm": Fraction(1, 100),
    "m": Fraction(1),
    "km": Fraction(1000),
    "ft": Fraction(3048, 10000),
    "ftUS": Fraction(1200, 3937),
    "yd": Fraction(9144, 10000),
    "mi": Fraction(1609344, 1000),
    "nmi": Fraction(1852),
}
_UNITS = {name.lower(): metres for name, metres in METRES.items()}
_TEXT = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:\s*/\s*(0*[1-9]\d*))?\s*([A-Za-z]+)\s*"
)

# A length such as 2/3 has no decimal form. Its float is off by 2**-53 of it, and the float's
# shortest decimal by as much again: the quotient of two such lengths by less than 1e-15, or some
# times that where a length was computed from others. A difference of 1e-12 is a nanometre in a
# kilometre: nobody means it. No promise depends on this number, see `quotient`.
_FLOAT_ERROR = Fraction(1, 10**12)

# Numbers further out than this have no use, and their floats have no inverse.
_SMALLEST = Fraction(1, 10**300)


def exact(value: Real | Fraction | float) -> Fraction:
    """Return a finite number as the fraction its shortest decimal form denotes."""
    if isinstance(value, Fraction | int):
        return Fraction(value)
    return Fraction(repr(float(value)))


def positive(value: object, name: str) -> Fraction:
    """Return a number above 0 as the fraction it is written as; refuse everything else."""
    argument = Argument(name)
    if value is None:
        raise PrivacyError(argument, " is missing: give a number greater than 0.")
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise PrivacyError(
            argument,
            f" must be a number greater than 0, got {value!r} of type {type(value).__name__}.",
        )
    if not isinstance(value, Rational) and not math.isfinite(value):
        raise PrivacyError(argument, f" must be finite, got {value!r}: give a number above 0.")
    number = Fraction(value) if isinstance(value, Decimal) else exact(value)
    if number <= 0:
        raise PrivacyError(argument, f" must be greater than 0, got {short_text(number)}.")
    if not _SMALLEST <= number <= 1 / _SMALLEST:
        raise PrivacyError(argument, " must lie between 1e-300 and 1e300.")
    return number


def whole_number(value: int, name: str, error: type[InputError] = PrivacyError) -> int:
    """Return a whole number of 1 or more as an int; refuse everything else by an error."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise error(Argument(name), f" must be a whole number of 1 or more, got {value!r}.")
    return int(value)


def quotient(length: Fraction, other: Fraction) -> Fraction:
    """Return how many times one length is another, whole where it is so up to float error.

    A bound in cells is this number, and both what is enforced (in lattice steps, by floor) and
    what noise is calibrated to (in cells, by ceiling) follow from it: they agree either way.

    Examples
    --------
    >>> quotient(Fraction(2), exact(20 / 30)), quotient(exact(2.1), exact(0.8))
    (Fraction(3, 1), Fraction(21, 8))
    """
    ratio = length / other
    whole = round(ratio)
    return Fraction(whole) if abs(ratio - whole) <= _FLOAT_ERROR * whole else ratio


def short_text(value: Fraction) -> str:
    """Return a fraction as decimals where a float's shortest form is exactly it, else as p/q."""
    try:
        shown = repr(float(value))
    except OverflowError:
        shown = "0"
    if Fraction(shown) == value:
        return shown
    # Python limits the digits that it writes of an int; of a Decimal it writes all.
    parts = [value.numerator] if value.denominator == 1 else [value.numerator, value.denominator]
    return "/".join(str(Decimal(part)) for part in parts)


def positive_length(value: object, *, name: str, crs: CRS | None) -> Fraction:
    """Return a positive length in the units of `crs`, exactly.

    Parameters
    ----------
    value : number or str
        A number in CRS units, or text such as ``"1km"``, ``"500 m"`` or ``"2/3 km"``.
    name : str
        The argument that the length is, for an error message.
    crs : pyproj.CRS or None
        Text needs one: without it the unit of a coordinate is unknown.
    """
    if isinstance(value, str):
        length = _from_text(value, name=name, crs=crs)
    elif isinstance(value, Real) and not isinstance(value, bool):
        if not isinstance(value, int | Fraction) and not math.isfinite(value):
            raise InputError(Argument(name), f" must be a finite number, got {value!r}")
        length = exact(value)
    else:
        raise InputTypeError(
            Argument(name),
            f" must be a number or a text such as '1km', got {value!r} "
            f"of type {type(value).__name__}",
        )
    if length <= 0:
        raise InputError(Argument(name), f" must be greater than 0, got {value!r}")
    if length > sys.float_info.max:
        raise InputError(Argument(name), f" must be at most {sys.float_info.max}, got {value!r}")
    return length


def _from_text(text: str, *, name: str, crs: CRS | None) -> Fraction:
    match = _TEXT.fullmatch(text)
    if match is None or match[3].lower() not in _UNITS:
        raise InputError(
            Argument(name, repr(text)),
            f" is not a length: write a number and one of the units {', '.join(METRES)}, for "
            f"example '2/3 km', '1km' or '500 m'",
        )
    if crs is None:
        raise CRSError(
            Argument(name, repr(text)),
            " has a unit, but without a CRS the unit of a coordinate is unknown: give ",
            Argument(name),
            " as a number in coordinate units, or give a CRS",
        )
    number = Fraction(match[1]) / int(match[2] or 1)
    return number * _UNITS[match[3].lower()] / metres_per_unit(crs)


def metres_per_unit(crs: CRS) -> Fraction:
    """Return how many metres one coordinate unit of a projected CRS is."""
    axis = crs.axis_info[0]
    if axis.unit_name == US_FOOT:  # whose length in metres has no decimal form
        return METRES["ftUS"]
    return exact(axis.unit_conversion_factor)


def shown_length(length: float, grid: Domain) -> str:
    """Return a length in CRS units as people write it."""
    if grid.crs is None:
        return f"{length:g}"
    metres = length * float(metres_per_unit(grid.crs))
    return f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"


def shown_area(grid: Domain) -> str:
    """Return an area's width and height as people write them."""
    xmin, ymin, xmax, ymax = grid.bounds
    return f"{shown_length(xmax - xmin, grid)} x {shown_length(ymax - ymin, grid)}"


def shown_degrees(extent: tuple[float, ...]) -> str:
    """Return west, south, east and north as people read them, to some 10 m."""
    west, south, east, north = (f"{value:.4f}" for value in extent)
    return f"longitude {west} to {east}, latitude {south} to {north}"


def shown_percent(share: float) -> str:
    """Return a share as a percentage of two digits, in full."""
    percent = 100 * share
    if percent == 0:
        return "0 %"
    digits = max(1 - math.floor(math.log10(percent)), 0)
    whole = round(percent, 1 - math.floor(math.log10(percent)))
    text = f"{whole:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"
