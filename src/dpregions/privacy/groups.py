"""Disjoint groups of users: their public list, and what a release by groups costs.

Each user counts in one group at most, so what the groups cost together is the dearest of them, not
their sum (docs/groups.md has the proof, for both neighbour relations). Nothing here sees a row:
which group a row is in is for `intake/groups.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.privacy.budget import Budget

if TYPE_CHECKING:
    from dpregions.choices import Neighbours

LONGEST_LABEL = 100
"""Most characters of a label, and of the name of the column."""

_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")


@dataclass(frozen=True)
class Groups:
    """The groups that a release is made by. Public.

    Attributes
    ----------
    by : str
        The column whose values are the groups.
    labels : tuple of str
        The list, chosen without looking at the data.
    only : str or None
        The one group that is spoken of; None: all of them together.
    """

    MOST: ClassVar[int] = 1000

    by: str
    labels: tuple[str, ...]
    only: str | None = None

    @classmethod
    def of(cls, by: Any, groups: Any) -> Groups | None:
        """Return the groups that arguments name, None for none; refuse what is no list."""
        if by is None and groups is None:
            return None
        if by is None or groups is None:
            raise InputError(
                *(Argument("by", ""), " and ", Argument("groups", ""), " go together: name the "),
                "column of groups, and list the groups, which are public",
                argument="by" if by is None else "groups",
            )
        if not isinstance(by, str):
            raise InputTypeError(Argument("by"), f" must name a column, got {type(by).__name__}")
        if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
            raise InputTypeError(
                Argument("groups"),
                f" must be a list of values of {by!r}, got {type(groups).__name__}",
            )
        return cls(by, tuple(map(_label, groups)))

    def __post_init__(self) -> None:
        if not self.is_label(self.by):
            raise InputError(
                Argument("by"), f" must be a name of 1 to {LONGEST_LABEL} printable characters"
            )
        if not self.labels:
            raise InputError(
                Argument("groups"), " is empty: list the groups, chosen without looking at the data"
            )
        if len(self.labels) > self.MOST:
            raise InputError(
                Argument("groups"), f" has {len(self.labels):,} groups, more than {self.MOST:,}"
            )
        for label in self.labels:
            if not self.is_label(label):
                raise InputError(
                    Argument("groups"),
                    f" has {label!r}: a group is text of 1 to {LONGEST_LABEL} printable characters",
                )
        repeated = [label for i, label in enumerate(self.labels) if label in self.labels[:i]]
        if repeated:
            raise InputError(
                Argument("groups"),
                f" has {repeated[0]!r} more than once: a user counts in one group, so list each "
                f"once",
            )
        if self.only is not None and self.only not in self.labels:
            raise InputError(
                Argument("group", repr(self.only)),
                f" is none of the groups: there are {self.in_words()}",
            )

    @staticmethod
    def is_label(text: Any) -> bool:
        """Say whether something is a short line of text, which may be published and printed."""
        return isinstance(text, str) and text.isprintable() and 0 < len(text) <= LONGEST_LABEL

    def alone(self, label: Any) -> Groups:
        """Return the same, where one group is spoken of."""
        return replace(self, only=_label(label))

    def cost(self, each: Budget, neighbours: Neighbours, half_for_one: bool) -> Budget:
        """Return what all groups cost together, each released with a budget.

        Parameters
        ----------
        each : Budget
            Of each group.
        neighbours : {"add-remove", "replace-one"}
            Under add-remove one group differs between neighbours. Under replace-one a user may
            leave one group for another: two groups differ, each by one region.
        half_for_one : bool
            Whether the mechanism declares that it is epsilon/2-private then (`Mechanism`).
        """
        if neighbours == "add-remove" or half_for_one:
            return each
        return Budget(each.epsilon * len(self.labels))

    def in_words(self) -> str:
        """Return the list as text, cut short where it is long."""
        listed = ", ".join(self.labels[:12])
        return listed if len(self.labels) <= 12 else f"{listed} and {len(self.labels) - 12} more"

    def spellings(self) -> dict[str, int]:
        """Return the group of each value, as `intake.ids.id_text` writes values.

        Text is in the group of its name, and a whole number or a truth value in that of its
        digits or its word.
        """
        import json

        found = {json.dumps(label): i for i, label in enumerate(self.labels)}
        bare = {
            label: i
            for i, label in enumerate(self.labels)
            if _WHOLE_NUMBER.fullmatch(label) or label in ("true", "false")
        }
        return found | bare


def _label(value: Any) -> str:
    """Return a value of the list as text."""
    if isinstance(value, str):
        return str(value)
    value = getattr(value, "item", lambda: value)()  # numpy's
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise InputTypeError(
        Argument("groups"),
        f" has {value!r}: groups are text, whole numbers or truth values",
    )
