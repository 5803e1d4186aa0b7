"""What a release says of itself: every public parameter, as values and as JSON text.

Each parameter is a field of `Statement`, spelled once: its name, its type, and how it is written
and read. Epsilons are written as fractions, so nothing of the promise is rounded. Reading trusts
nothing: every value is checked for its kind and range before anything is made of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from dpregions._version import __version__
from dpregions.choices import Neighbours, Oversize, Unit
from dpregions.crs import crs_label, unit_label
from dpregions.errors import CRSError, GridError, ReleaseFileError
from dpregions.geometry.grid import Grid
from dpregions.geometry.partition import Partition
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.groups import Groups
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from dpregions.geometry.domain import Domain

FORMAT, FORMAT_VERSION = "dpregions release", 5
NOT_RECORDED = "budget not recorded"
NOT_PRIVATE = "NOT PRIVATE: do not publish"
LIMIT = 1 << 24
"""Most characters of the statement: a CRS takes a few thousand of them, a partition millions."""

SHORTER = "Use fewer cells, or cells with fewer corners, or shorter labels"
"""The remedy for a statement that is too long."""

_OTHER_FIELDS = 1 << 17
"""Most characters of all that is neither the domain nor the base: lines, fractions, options."""

_NO_VERSION = 1_000_000
_LONGEST_LINE = 500
_DEEPEST_CRS, _LONGEST_CRS_TEXT = 20, 10_000
_USUAL_CRS = "use one of the usual CRSs, such as EPSG:32632"
_MOST_WORDS, _LONGEST_WORDS = 12, 300
_DIGITS = rf"[0-9]{{1,{Budget.MOST_DIGITS}}}"
_FRACTION = re.compile(rf"{_DIGITS}(/{_DIGITS})?")


_DIGEST = re.compile(r"[0-9a-f]{64}")

Spending = tuple[tuple[str, Budget], ...]
"""What was measured, and with which share of epsilon."""

Words = tuple[tuple[str, str], ...]
"""Names, each with what is said under it, in their order."""


class OtherFormatError(ReleaseFileError):
    """The file is of a format that this software does not read: a newer one, or an older one."""


class _Said(NamedTuple):
    """How a field is said in JSON: under which name, as which kind, and both ways."""

    name: str
    kind: type
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _said(
    name: str,
    kind: type,
    read: Callable[[Any], Any] = _same,
    write: Callable[[Any], Any] = _same,
) -> dict[str, _Said]:
    return {"said": _Said(name, kind, write, read)}


def _spent(spending: Spending) -> list[dict[str, str]]:
    return [{"what": what, "epsilon": _fraction(share)} for what, share in spending]


def _spending(found: list[Any]) -> Spending:
    read = []
    for part in found:
        _check_fields(part, {"what": str, "epsilon": str}, "what it spent")
        read.append((_line("spending")(part["what"]), _budget(part["epsilon"])))
    return tuple(read)


def _fraction(budget: Budget) -> str:
    return str(budget.epsilon)


def _budget(text: str) -> Budget:
    if not _FRACTION.fullmatch(text) or not int(text.partition("/")[2] or 1):
        raise ReleaseFileError("an epsilon of it is no fraction")
    return Budget(Fraction(text))


def _groups_said(groups: Groups | None) -> dict[str, Any]:
    if groups is None:
        return {}
    return {"by": groups.by, "labels": list(groups.labels), "only": groups.only or ""}


def _groups(found: dict[str, Any]) -> Groups | None:
    if not found:
        return None
    _check_fields(found, {"by": str, "labels": list, "only": str}, "its groups")
    if not all(type(label) is str for label in found["labels"]):
        raise ReleaseFileError("its groups are no text")
    return Groups(found["by"], tuple(found["labels"]), found["only"] or None)


def _entered(entry: str | None) -> str:
    return entry or NOT_RECORDED


def _entry(text: str) -> str | None:
    return None if text == NOT_RECORDED else _line("ledger_entry")(text)


def _or_empty(text: str | None) -> str:
    return text or ""


def _digest(name: str) -> Callable[[str], str | None]:
    """Return a reader of a SHA-256 in hexadecimal digits, or of nothing."""

    def read(text: str) -> str | None:
        if text and not _DIGEST.fullmatch(text):
            raise ReleaseFileError(f"its {name} is no SHA-256")
        return text or None

    return read


def _words(name: str) -> Callable[[list[Any]], Words]:
    """Return a reader of pairs of short lines, under names of which none is there twice."""

    def read(found: list[Any]) -> Words:
        pairs = all(isinstance(part, list) and [*map(type, part)] == [str, str] for part in found)
        if not pairs or len(found) > _MOST_WORDS or len({of for of, _ in found}) < len(found):
            raise ReleaseFileError(f"its {name} is no list of names, each with its words")
        line = _line(name, _LONGEST_WORDS)
        return tuple((line(of), line(words)) for of, words in found)

    return read


def _listed(words: Words) -> list[list[str]]:
    return [[of, said] for of, said in words]


def _check_fields(found: Any, wanted: dict[str, type], what: str) -> None:
    if not isinstance(found, dict) or found.keys() != wanted.keys():
        raise ReleaseFileError(f"{what} has other fields than it must")
    for name, kind in wanted.items():
        if type(found[name]) is not kind:
            raise ReleaseFileError(f"{what} has a {name} that is no {kind.__name__}")


def _line(name: str, longest: int = _LONGEST_LINE) -> Callable[[str], str]:
    """Return a check that refuses text which would do more on a terminal than be read."""

    def check(text: str) -> str:
        if not text.isprintable() or len(text) > longest:
            raise ReleaseFileError(f"its {name} is no line of printable text")
        return text

    return check


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


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
        _line("CRS")(grid.crs.name + named)
    return grid


def _domain(found: dict[str, Any]) -> Domain:
    if found.get("dpregions") != "partition":
        return _grid(found)
    # Refuses a CRS, if any, before another reader sees it: that of the cells, or of their grid.
    _grid(_written(Grid(0, 0, 1, 1, 1)) | {"crs": found.get("crs")})
    if "grid" in found:
        if not isinstance(found["grid"], dict):
            raise ReleaseFileError("its grid is no dict")
        _grid(found["grid"])
    return Partition.from_json(json.dumps(found))


def _base(found: dict[str, Any]) -> Grid | None:
    return _grid(found) if found else None


def _written(domain: Domain | None) -> dict[str, Any]:
    written: dict[str, Any] = {} if domain is None else json.loads(domain.to_json())
    return written


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
                _line("CRS", _LONGEST_CRS_TEXT)(value)
        level = below
    if level:
        raise ReleaseFileError("its CRS is nested deeper than any is")


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement:
    """The public parameters of a release.

    Attributes
    ----------
    grid : Grid or Partition
        What it is asked on.
    method : str
        The mechanism's name.
    budget : Budget
        Epsilon, exactly.
    neighbours, unit : str
        The neighbour relation, and whose data is protected together.
    sensitivity : int
        How far neighbouring data move what each measurement counts (L1), enforced.
    max_diameter : float
        The enforced bound on a region, in CRS units.
    oversize : str
        What became of longer regions.
    private : bool
        False only for a study's seeded noise: such a release must not be published.
    noise : str
        Where the noise came from.
    spending : tuple
        What was measured and with which epsilon; they sum to the budget.
    covert : bool
        Whether the signed measurements were left out: no estimates and no intervals.
    laid_out_for : str
        The queries that the budget was laid out for, in words; empty: for none in particular.
    base : Grid or None
        The grid that was measured, where it is not the one that is asked.
    version : str
        Of the software.
    software : tuple
        What drew the noise, beside this software: names and versions.
    groups : Groups or None
        The disjoint groups of users that it was made by, and which one it is of.
    ledger_entry : str or None
        The debit that paid for it: the ledger's random id, data set, number. None: not recorded.
    ledger_digest : str or None
        The debit's link in the ledger's chain, a SHA-256.
    declared : tuple
        What the account was declared to be of: its source, period and owner, where they were.
    policy : str or None
        The SHA-256 of the site's policy that the release was held to. None: there was none.
    sign_off : tuple
        The curator's answers on a sign-off sheet, if one was given.
    """

    grid: Domain = field(metadata=_said("grid", dict, _domain, _written))
    method: str = field(metadata=_said("method", str, _line("method")))
    budget: Budget = field(metadata=_said("epsilon", str, _budget, _fraction))
    neighbours: Neighbours = field(metadata=_said("neighbours", str))
    unit: Unit = field(metadata=_said("unit", str))
    sensitivity: int = field(metadata=_said("sensitivity", int))
    max_diameter: float = field(metadata=_said("max_diameter", float))
    oversize: Oversize = field(metadata=_said("oversize", str))
    private: bool = field(metadata=_said("private", bool))
    noise: str = field(metadata=_said("noise", str, _line("noise")))
    spending: Spending = field(metadata=_said("spending", list, _spending, _spent))
    covert: bool = field(metadata=_said("covert", bool))
    laid_out_for: str = field(
        default="", metadata=_said("laid_out_for", str, _line("laid_out_for"))
    )
    base: Domain | None = field(default=None, metadata=_said("base", dict, _base, _written))
    version: str = field(
        default=__version__, metadata=_said("software_version", str, _line("software_version"))
    )
    software: Words = field(
        default=(), metadata=_said("noise_software", list, _words("noise_software"), _listed)
    )
    ledger_entry: str | None = field(
        default=None, metadata=_said("ledger_entry", str, _entry, _entered)
    )
    ledger_digest: str | None = field(
        default=None, metadata=_said("ledger_digest", str, _digest("ledger_digest"), _or_empty)
    )
    declared: Words = field(
        default=(), metadata=_said("declared", list, _words("declared"), _listed)
    )
    policy: str | None = field(
        default=None, metadata=_said("policy", str, _digest("policy"), _or_empty)
    )
    sign_off: Words = field(
        default=(), metadata=_said("sign_off", list, _words("sign_off"), _listed)
    )
    groups: Groups | None = field(
        default=None, metadata=_said("groups", dict, _groups, _groups_said)
    )

    @property
    def rows(self) -> Domain:
        """The domain whose components are the rows of its file."""
        return self.grid if self.base is None else self.base

    @property
    def may_be_part(self) -> bool:
        """Whether it may be taken out of what was saved: one of its groups, or asked elsewhere."""
        return self.base is not None or (self.groups is not None and self.groups.only is not None)

    @property
    def epsilon(self) -> float:
        """The privacy loss."""
        return float(self.budget)

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """The neighbour relation and whose data is protected together."""
        return PrivacyUnit(self.neighbours, self.unit)

    def stated(self) -> dict[str, Any]:
        """Return every public parameter as JSON's values, but the mechanism's own."""
        said = {how.name: how.write(getattr(self, name)) for name, how in _FIELDS.items()}
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "partition": self.grid.form}
        return head | said


_FIELDS: dict[str, _Said] = {part.name: part.metadata["said"] for part in fields(Statement)}


def refuse_unwritable(domain: Domain, limit: int = LIMIT) -> None:
    """Refuse a domain that no release file brings back: a release on it would be lost."""
    grid = Grid(0, 0, 1, 1, 1, crs=domain.crs)
    try:
        same = _grid(_written(grid)) == grid
    except ReleaseFileError as error:
        raise CRSError(f"a release file cannot keep the grid: {error}; {_USUAL_CRS}") from None
    if not same:
        raise CRSError(f"a release file cannot keep the grid's CRS; {_USUAL_CRS}")
    # The statement may have a base as well, with the same CRS.
    length = len(canonical(_written(domain))) + len(canonical(_written(grid))) + _OTHER_FIELDS
    if length > limit:
        raise GridError(
            f"a release file cannot keep these cells: with all else they take {length:,} "
            f"characters, of at most {limit:,}. {SHORTER}",
            argument="grid",
        )


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
    if type(version) is not int or not 0 < version < _NO_VERSION:
        raise ReleaseFileError("it has a format version that never was")
    if version != FORMAT_VERSION:
        remedy = (
            "upgrade dpregions"
            if version > FORMAT_VERSION
            else "read it with the version of dpregions that made it, or ask for it anew"
        )
        raise OtherFormatError(
            f"this release has format version {version}, and this software reads version "
            f"{FORMAT_VERSION}: {remedy}"
        )
    return found


def parse_statement(found: dict[str, Any]) -> Statement:
    """Return what a statement says, each value checked but the mechanism's own."""
    wanted = {"format": str, "format_version": int, "partition": str, "mechanism": dict}
    _check_fields(found, wanted | {how.name: how.kind for how in _FIELDS.values()}, "its statement")
    said = Statement(**{name: how.read(found[how.name]) for name, how in _FIELDS.items()})
    if found["partition"] != said.grid.form:
        raise ReleaseFileError("its partition is another than its cells are")
    _check_ranges(said)
    return said


_OF_A_GROUP = ("budget", "spending", "base")
"""Fields that each group has of its own."""


class GroupStated(NamedTuple):
    """What a file says of one group."""

    statement: Statement
    estimates: bool
    """Whether its rows hold estimates that are its own."""
    options: dict[str, Any]
    """The mechanism's, as of any release."""


def state_group(one: Statement, estimates: bool, options: dict[str, Any]) -> dict[str, Any]:
    """Return what the statement of all groups says of one, as JSON's values."""
    own = {_FIELDS[name].name: _FIELDS[name].write(getattr(one, name)) for name in _OF_A_GROUP}
    return own | {"estimates": estimates, "mechanism": options}


def parse_groups(whole: Statement, found: dict[str, Any]) -> list[GroupStated]:
    """Return what a statement of all groups says of each, checked as that of any release."""
    groups = whole.groups
    assert groups is not None
    _check_fields(found, {"groups": list}, "its mechanism")
    if len(found["groups"]) != len(groups.labels):
        raise ReleaseFileError("it does not tell each of its groups")
    fields = {name: _FIELDS[name] for name in _OF_A_GROUP}
    wanted = {how.name: how.kind for how in fields.values()}
    wanted |= {"estimates": bool, "mechanism": dict}
    read = []
    for label, part in zip(groups.labels, found["groups"], strict=True):
        _check_fields(part, wanted, "a group of it")
        own = {name: how.read(part[how.name]) for name, how in fields.items()}
        one = replace(whole, groups=groups.alone(label), **own)
        _check_ranges(one)
        read.append(GroupStated(one, part["estimates"], part["mechanism"]))
    each = {one.statement.budget for one in read}
    costs = {
        groups.cost(budget, "replace-one", halves) for budget in each for halves in (True, False)
    }
    if len(each) != 1 or whole.budget not in costs or whole.base is not None:
        raise ReleaseFileError("its groups do not cost what it says")
    return read


def _check_ranges(said: Statement) -> None:
    """Refuse words and numbers that no release has."""
    said.privacy_unit  # noqa: B018  refuses an unknown relation or unit
    if said.oversize not in get_args(Oversize):
        raise ReleaseFileError("its oversize is none of shrink, drop")
    if said.sensitivity < 1 or not 0 < said.max_diameter < float("inf"):
        raise ReleaseFileError("its sensitivity or max_diameter is out of range")
    if sum(share.epsilon for _, share in said.spending) != said.budget.epsilon:
        raise ReleaseFileError("what it spent does not add up to its epsilon")
    for _, share in said.spending:
        scale_for(share, said.sensitivity)
