"""What one region stands for: the privacy unit of a release, and the ids that count once each.

Owns the rule that the unit is the caller's word. A file or a frame may be marked as holding one
region for each trajectory; the mark never changes what is promised, it only makes another promise
an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpregions.choices import Unit
from dpregions.errors import Argument, InputError, PrivacyError
from dpregions.intake.ids import EACH_ROW, IdColumns, one_column
from dpregions.privacy.budget import PrivacyUnit

UNIT_ATTRIBUTE = "dpregions_unit"
"""Key, in a frame's `attrs` and in a file's metadata, of what one of its regions stands for."""

TRAJECTORY = "trajectory"
"""The column of a trajectory's number, which counts within its user."""

_RECORD = Argument("unit", "'record'")
_TRAJECTORIES = Argument("unit", "'trajectory'")


def stated_unit(metadata: Mapping[bytes, bytes] | None) -> str | None:
    """Return what one region stands for, where a file's or a schema's metadata say so."""
    unit = (metadata or {}).get(UNIT_ATTRIBUTE.encode())
    return unit.decode("utf-8", "replace") if unit else None


def mark_of(regions: Any) -> str | None:
    """Return what one region stands for, as regions of any kind say themselves."""
    attrs = getattr(regions, "attrs", None)
    if isinstance(attrs, Mapping) and UNIT_ATTRIBUTE in attrs:
        return str(attrs[UNIT_ATTRIBUTE])
    metadata = getattr(getattr(regions, "schema", None), "metadata", None)
    return stated_unit(metadata) if isinstance(metadata, Mapping) else None


def protected(user_id: Any, unit: Unit | None, *, marked: str | None = None) -> tuple[Any, Unit]:
    """Return the ids that count once each, and what one of them is.

    Parameters
    ----------
    user_id : str, array or None
        The column of user ids, or the ids; None: each row is its own record.
    unit : {"user", "record", "trajectory"} or None
        What the caller promises to protect; None: "user" with ids and "record" without.
    marked : str, optional
        What one region stands for, as the regions say themselves.
    """
    if unit is not None:
        PrivacyUnit(unit=unit)  # which refuses an unknown one
    if user_id is None:
        if unit in ("user", "trajectory"):
            raise PrivacyError(
                Argument("unit", repr(unit)),
                f" needs ids, as each {unit} counts once: name their column by ",
                *(Argument("user_id", ""), ", or protect rows with ", _RECORD),
            )
        return None, "record"
    if unit == "record":
        raise PrivacyError(
            *(_RECORD, " counts each row by itself, but ", Argument("user_id")),
            *(" is given: use ", EACH_ROW),
        )
    if unit == "trajectory" and isinstance(user_id, str) and user_id == TRAJECTORY:
        raise PrivacyError(
            Argument("user_id", repr(user_id)),
            " is a trajectory's number, which counts within its user: name the column of users, "
            "and both are read",
        )
    if unit == "trajectory":
        return (IdColumns((user_id, TRAJECTORY)) if isinstance(user_id, str) else user_id), unit
    if marked == "trajectory":
        raise PrivacyError(
            "these regions are marked as one for each trajectory, so a release of them protects "
            "a trajectory and not a user: say so by ",
            _TRAJECTORIES,
            ". To protect users, extract one region for each user",
        )
    return user_id, "user"


def id_columns(
    user_id: str | None,
    unit: Unit | None,
    *,
    marked: str | None = None,
    columns: Sequence[str] | None = None,
) -> list[str]:
    """Return the columns that make an id, of those that a source declares (None: it does not).

    A trajectory has two: its user's and its own. They are also read of a source that is marked.
    """
    if user_id is None:
        return []
    names = [user_id]
    if columns is None:
        return [*names, TRAJECTORY] if unit == "trajectory" else names
    one_column(user_id, list(columns), "user_id")
    if unit == "trajectory" and TRAJECTORY not in columns:
        raise InputError(
            _TRAJECTORIES,
            f" needs a column {TRAJECTORY!r} beside {user_id!r}: there are {', '.join(columns)}",
        )
    if unit == "trajectory" or (marked == "trajectory" and TRAJECTORY in columns):
        one_column(TRAJECTORY, list(columns), "user_id")
        names.append(TRAJECTORY)
    return names
