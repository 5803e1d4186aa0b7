"""Numbers as a study's pictures, tables and sentences write them: few digits, no exponent."""

from __future__ import annotations


def percent(value: float) -> str:
    """Return a percentage in three digits, without an exponent."""
    if 0 < value < 0.001:
        return "less than 0.001 %"
    return f"{float(f'{value:.3g}'):,.12g} %"


def times_as(above: float, below: float) -> str:
    """Return how many times as much one value is, in two digits."""
    if not below > 0:
        return "beyond measure"
    return f"{float(f'{above / below:.2g}'):,.12g} times"


def duration(seconds: float) -> str:
    """Return a time in two digits, in a unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{float(f'{seconds / size:.2g}'):,.12g} {unit}"
    return f"{float(f'{seconds / 1e-6:.2g}'):,.12g} µs"


def short(value: float) -> str:
    """Return a number in two digits, without an exponent."""
    return "< 0.001" if 0 < value < 0.001 else f"{float(f'{value:.2g}'):,.12g}"
