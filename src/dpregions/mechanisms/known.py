"""Which mechanisms there are, by name: the words of `release` and the names in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpregions.errors import Argument, InputError, InputTypeError, InPython, PrivacyError
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.paper.mechanism import Paper

if TYPE_CHECKING:
    from dpregions.choices import Favour
    from dpregions.mechanisms.base import Mechanism

MECHANISMS: dict[str, type[Mechanism]] = {kind.name: kind for kind in (Footprint, Paper)}
"""The mechanisms by name. Another one is known, and its files can be read, once it is here."""


def chosen(
    method: str | Mechanism, workload: Any = None, favour: Favour | None = None
) -> Mechanism:
    """Return the mechanism that a word stands for; a record of one stands for itself."""
    if not isinstance(method, str):
        if isinstance(method, type) or not callable(getattr(method, "prepare", None)):
            raise InputTypeError(
                Argument("method"), f" must be a name or a mechanism, got {type(method).__name__}"
            )
        for name, given in (("workload", workload), ("favour", favour)):
            if given is not None:
                raise InputError(Argument(name), f" goes into the mechanism: Footprint({name}=...)")
        return method
    if method not in MECHANISMS:
        known = " or ".join(map(repr, MECHANISMS))
        own = InPython(", or enter a mechanism of your own in mechanisms.known.MECHANISMS")
        raise PrivacyError(Argument("method", repr(method)), f" is unknown: use {known}", own)
    if workload is None and favour is None:
        return MECHANISMS[method]()
    if method != Footprint.name:
        name = "favour" if workload is None else "workload"
        raise InputError(
            *(Argument(name), " is for ", Argument("method", "'footprint'")),
            f": {method!r} has nothing to lay out",
        )
    return Footprint(workload=workload, favour=favour or "people")
