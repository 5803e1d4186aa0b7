"""A release's public parameters as JSON text, and back: what a release file says about itself.

Epsilons are written as fractions, so nothing of the promise is rounded. Reading trusts nothing:
every value is checked for its kind and range before anything is made of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, get_args

from dpregions.crs import crs_label, unit_label
from dpregions.errors import CRSError, ReleaseFileError
from dpregions.geometry.grid import Grid
from dpregions.mechanisms.footprint.buckets import Alphabet
from dpregions.mechanisms.footprint.choice import Strategy
from dpregions.mechanisms.footprint.levels import Grouping, Level
from dpregions.privacy.budget import MOST_DIGITS, Budget, PrivacyUnit

if TYPE_CHECKING:
    from dpregions.releases.published import Release

FORMAT, FORMAT_VERSION = "dpregions release", 1
NOT_RECORDED = "budget not recorded"
LIMIT = 1 << 20
"""Most characters of the statement: a CRS takes a few thousand of them."""

_NO_VERSION = 1_000_000
_MOST_LEVELS = 16
_MOST_BLOCK = 1 << 30
_LONGEST_LINE = 500
_DEEPEST_CRS, _LONGEST_CRS_TEXT = 20, 10_000
_USUAL_CRS = "use one of the usual CRSs, such as EPSG:32632"
_FRACTION = re.compile(rf"[0-9]{{1,{MOST_DIGITS}}}(/[0-9]{{1,{MOST_DIGITS}}})?")


class NewerFormatError(ReleaseFileError):
    """The file is of a format that this software does not know yet."""


@dataclass(frozen=True)
class Statement:
    """What was read: the fields of a `Release` that are no arrays, and what it measured."""

    fields: dict[str, Any]
    covert: bool
    strategy: Strategy | None
    checksum: str

    @property
    def grid(self) -> Grid:
        """The grid."""
        grid: Grid = self.fields["grid"]
        return grid


def statement_of(release: Release) -> dict[str, Any]:
    """Return every public parameter of a release as JSON's values, without a checksum."""
    measured = release.measurements
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software_version": release.version,
        "partition": "grid",
        "grid": json.loads(release.grid.to_json()),
        "method": release.method,
        "epsilon": str(release.budget.epsilon),
        "neighbours": release.neighbours,
        "unit": release.unit,
        "sensitivity": release.sensitivity,
        "max_diameter": release.max_diameter,
        "oversize": release.oversize,
        "private": release.private,
        "noise": release.noise,
        "spending": [
            {"what": what, "epsilon": str(share.epsilon)} for what, share in release.spending
        ],
        "covert": release.signed is None,
        "strategy": None if measured is None else _strategy_fields(measured.strategy),
        "ledger_entry": release.ledger_entry or NOT_RECORDED,
    }


def refuse_unwritable(grid: Grid) -> None:
    """Refuse a grid whose CRS no release file brings back: a release on it would be lost."""
    try:
        same = _grid(json.loads(grid.to_json())) == grid
    except ReleaseFileError as error:
        raise CRSError(f"a release file cannot keep the grid: {error}; {_USUAL_CRS}") from None
    if not same:
        raise CRSError(f"a release file cannot keep the grid's CRS; {_USUAL_CRS}")


def canonical(statement: dict[str, Any]) -> str:
    """Return JSON text that is the same for the same values, whatever wrote it."""
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read_statement(text: str) -> dict[str, Any]:
    """Return the JSON of a statement, once its format and version are known ones."""
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ReleaseFileError("its statement is no JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ReleaseFileError('its statement lacks "format": "dpregions release"')
    version = found.get("format_version")
    if type(version) is int and FORMAT_VERSION < version < _NO_VERSION:
        raise NewerFormatError(
            f"this release has format version {version}, and this software reads up to "
            f"{FORMAT_VERSION}: upgrade dpregions"
        )
    if version != FORMAT_VERSION or type(version) is not int:
        raise ReleaseFileError("it has a format version that never was")
    return found


def parse_statement(found: dict[str, Any]) -> Statement:
    """Return what a statement says, each value checked."""
    wanted = {
        "format": str,
        "format_version": int,
        "software_version": str,
        "partition": str,
        "grid": dict,
        "method": str,
        "epsilon": str,
        "neighbours": str,
        "unit": str,
        "sensitivity": int,
        "max_diameter": float,
        "oversize": str,
        "private": bool,
        "noise": str,
        "spending": list,
        "covert": bool,
        "strategy": dict,
        "ledger_entry": str,
        "checksum": str,
    }
    _check_fields(found, wanted, "its statement", optional=("strategy",))
    for name in ("software_version", "noise", "ledger_entry"):
        _one_line(found[name], name)
    _one_of(found["partition"], ("grid",), "partition")
    _one_of(found["method"], ("footprint", "paper"), "method")
    _one_of(found["oversize"], ("shrink", "drop"), "oversize")
    if found["sensitivity"] < 1 or not 0 < found["max_diameter"] < float("inf"):
        raise ReleaseFileError("its sensitivity or max_diameter is out of range")
    budget = _budget(found["epsilon"])
    spending = tuple(_spent(part) for part in found["spending"])
    if sum(share.epsilon for _, share in spending) != budget.epsilon:
        raise ReleaseFileError("what it spent does not add up to its epsilon")
    entry = found["ledger_entry"]
    fields = {
        "grid": _grid(found["grid"]),
        "method": found["method"],
        "budget": budget,
        "privacy_unit": PrivacyUnit(found["neighbours"], found["unit"]),
        "sensitivity": found["sensitivity"],
        "max_diameter": found["max_diameter"],
        "oversize": found["oversize"],
        "private": found["private"],
        "noise": found["noise"],
        "spending": spending,
        "version": found["software_version"],
        "ledger_entry": None if entry == NOT_RECORDED else entry,
    }
    covert, strategy = found["covert"], found["strategy"]
    if (strategy is not None) != (found["method"] == "footprint" and not covert):
        raise ReleaseFileError("it has a strategy without measurements, or the other way round")
    made = None if strategy is None else _strategy(strategy, len(spending))
    return Statement(fields, covert, made, found["checksum"])


def _strategy_fields(strategy: Strategy) -> dict[str, Any]:
    levels = [{"block": level.block, "letters": level.letters} for level in strategy.levels]
    return {
        "alphabet": strategy.alphabet,
        "levels": levels,
        "weights": list(strategy.weights),
        "mix": strategy.mix,
    }


def _strategy(found: dict[str, Any], n_spent: int) -> Strategy:
    wanted = {"alphabet": str, "levels": list, "weights": list, "mix": int}
    _check_fields(found, wanted, "its strategy")
    _one_of(found["alphabet"], get_args(Alphabet), "alphabet")
    levels, weights = [], found["weights"]
    for level in found["levels"]:
        _check_fields(level, {"block": int, "letters": str}, "a level")
        _one_of(level["letters"], get_args(Grouping), "letters")
        levels.append(Level(level["block"], level["letters"]))
    good = (
        2 <= len(levels) == len(weights) <= _MOST_LEVELS
        and all(type(weight) is int and weight >= 0 for weight in weights)
        and all(1 <= level.block <= _MOST_BLOCK for level in levels[1:])
        and levels[0] == Level(0, "all")
        and levels[-1] == Level(1, "letters")
        and weights[0] == 0
        and found["mix"] >= 0
        and 1 + sum(weight > 0 for weight in [*weights, found["mix"]]) == n_spent
    )
    if not good:
        raise ReleaseFileError("its strategy is none that could have been followed")
    return Strategy(found["alphabet"], tuple(levels), tuple(weights), found["mix"])


def _grid(found: dict[str, Any]) -> Grid:
    numbers = ("xmin", "ymin", "cell_size", "n_rows", "n_cols")
    if not all(type(found.get(name)) in (int, float) for name in numbers):
        raise ReleaseFileError("its grid has fields that are no numbers")
    crs = found.get("crs")
    if crs is not None:
        _check_projjson(crs)
    try:
        grid = Grid.from_json(json.dumps(found))
        named = "" if grid.crs is None else crs_label(grid.crs) + unit_label(grid.crs)
        grid.to_json()
    except CRSError:
        raise ReleaseFileError("its CRS is none that a grid may have") from None
    except RuntimeError:  # pyproj's own, which quotes what it read
        raise ReleaseFileError("its CRS cannot be read") from None
    if grid.crs is not None:
        _one_line(grid.crs.name + named, "CRS")
    return grid


def _check_projjson(crs: Any) -> None:
    """Refuse what no CRS of a grid is, before pyproj and PROJ's own parser see it.

    Of the CRSs in PROJ's database the deepest is of 9 levels and the longest text of 1,750
    characters; what is bound to a transformation is never bound again.
    """
    # PROJJSON has a type; without one pyproj would read the fields as options of PROJ.
    if not (isinstance(crs, dict) and isinstance(crs.get("type"), str)):
        raise ReleaseFileError("its CRS is no PROJJSON")
    level: list[tuple[Any, bool]] = [(crs, False)]
    for _ in range(_DEEPEST_CRS):
        below: list[tuple[Any, bool]] = []
        for value, bound in level:
            if isinstance(value, dict):
                binds = value.get("type") == "BoundCRS"
                if binds and bound:
                    raise ReleaseFileError("its CRS is bound to transformations twice over")
                below += [(v, bound or binds) for v in (*value.keys(), *value.values())]
            elif isinstance(value, list):
                below += [(v, bound) for v in value]
            elif isinstance(value, str):
                _one_line(value, "CRS", _LONGEST_CRS_TEXT)
        level = below
    if level:
        raise ReleaseFileError("its CRS is nested deeper than any is")


def _spent(part: Any) -> tuple[str, Budget]:
    _check_fields(part, {"what": str, "epsilon": str}, "what it spent")
    return _one_line(part["what"], "spending"), _budget(part["epsilon"])


def _budget(text: str) -> Budget:
    if not _FRACTION.fullmatch(text) or not int(text.partition("/")[2] or 1):
        raise ReleaseFileError("an epsilon of it is no fraction")
    return Budget(Fraction(text))


def _check_fields(
    found: Any, wanted: dict[str, type], what: str, optional: tuple[str, ...] = ()
) -> None:
    if not isinstance(found, dict) or found.keys() != wanted.keys():
        raise ReleaseFileError(f"{what} has other fields than it must")
    for name, kind in wanted.items():
        missing = name in optional and found[name] is None
        if not missing and type(found[name]) is not kind:
            raise ReleaseFileError(f"{what} has a {name} that is no {kind.__name__}")


def _one_line(text: str, name: str, longest: int = _LONGEST_LINE) -> str:
    """Refuse text that would do more on a terminal than be read."""
    if not text.isprintable() or len(text) > longest:
        raise ReleaseFileError(f"its {name} is no line of printable text")
    return text


def _one_of(value: str, options: tuple[str, ...], name: str) -> None:
    if value not in options:
        raise ReleaseFileError(f"its {name} is none of {', '.join(options)}")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
