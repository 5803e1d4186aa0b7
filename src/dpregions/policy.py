"""The site's policy: what every release made with this installation is held to.

Owns where the policy's file is, what may stand in it, and the refusal of a release that breaks it.
A file that is there and cannot be understood refuses every release; it is never passed over. A
guard rail for curators who mean well: whoever installs their own copy has their own policy.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from dpregions.choices import Unit
from dpregions.errors import Argument, InputError, PolicyError
from dpregions.lengths import positive, short_text

INSTALLED = Path("etc", "dpregions", "policy.toml")
"""Where the file is below the folder of the Python installation or environment (`sys.prefix`)."""

VARIABLE = "DPREGIONS_POLICY"
"""The environment variable that names a policy, where none is installed."""


@dataclass(frozen=True)
class Policy:
    """What releases are held to.

    Attributes
    ----------
    path : pathlib.Path
        Its file.
    digest : str
        The SHA-256 of the file, as releases record it.
    ledger : bool or pathlib.Path
        Whether a ledger must pay for each release, or which.
    max_epsilon : Fraction or None
        The most that one release may cost.
    unit : str or None
        The only unit that may be protected.
    sign_off : bool
        Whether each release needs a sign-off sheet.
    """

    path: Path
    digest: str
    ledger: bool | Path = False
    max_epsilon: Fraction | None = None
    unit: str | None = None
    sign_off: bool = False

    def refuse(
        self,
        *,
        epsilon: Fraction,
        unit: str | None,
        ledger: str | os.PathLike[str] | None,
        signed: bool,
    ) -> None:
        """Refuse a release that breaks the policy. A `unit` of None is not known yet."""
        said = f"; the site's policy {self.path} asks for it"
        if self.ledger is not False and ledger is None:
            raise PolicyError(
                Argument("ledger"), f" is missing: no release without one{said}", argument="ledger"
            )
        if isinstance(self.ledger, Path) and not _same(self.ledger, ledger):
            raise PolicyError(
                Argument("ledger", f"'{ledger}'"), f" is not {self.ledger}: use that one{said}"
            )
        if self.max_epsilon is not None and epsilon > self.max_epsilon:
            raise PolicyError(
                Argument("epsilon", short_text(epsilon)),
                f" is more than {short_text(self.max_epsilon)}, the most for one release: ask for "
                f"less{said}",
            )
        if self.unit is not None and unit is not None and unit != self.unit:
            raise PolicyError(
                Argument("unit", repr(unit)),
                f" is not {self.unit!r}: protect each {self.unit}{said}",
            )
        if self.sign_off and not signed:
            raise PolicyError(
                Argument("sign_off"), f" is missing: fill in a sheet, 'dpregions sign-off'{said}"
            )


def site_policy(
    prefix: str | os.PathLike[str] = sys.prefix,
    environ: Mapping[str, str] = os.environ,
    base: str | os.PathLike[str] = sys.base_prefix,
) -> Policy | None:
    """Return the policy of this installation, None where there is none.

    The file below `prefix` wins over one below `base`, the Python that a virtual environment was
    made from, and both over the one that the environment names.
    """
    for where in (prefix, base):
        installed = Path(where) / INSTALLED
        if _is_there(installed):
            return _read(installed)
    named = environ.get(VARIABLE)
    return _read(Path(named)) if named else None


def _is_there(path: Path) -> bool:
    """Whether anything is at a path: also a link that leads nowhere, or what may not be seen."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _read(path: Path) -> Policy:
    try:
        text = path.read_bytes()
        found = tomllib.loads(text.decode())
    except OSError as error:
        raise _useless(path, f"it cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is no text"
        raise _useless(path, f"it is no TOML: {why}") from None
    readers = {"ledger": _ledger, "max_epsilon": _epsilon, "unit": _unit, "sign_off": _yes_or_no}
    if unknown := sorted(found.keys() - readers.keys()):
        known = ", ".join(readers)
        raise _useless(path, f"{', '.join(map(repr, unknown))} is no rule; rules are {known}")
    try:
        rules: dict[str, Any] = {name: readers[name](value) for name, value in found.items()}
    except InputError as error:
        raise _useless(path, str(error)) from None
    return Policy(path, hashlib.sha256(text).hexdigest(), **rules)


def _useless(path: Path, why: str) -> PolicyError:
    return PolicyError(
        f"the site's policy {path} is not understood, so nothing is released: {why}. Have it "
        f"mended by who looks after this installation"
    )


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"sign_off must be true or false, got {value!r}")
    return value


def _ledger(value: Any) -> bool | Path:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise InputError(f"ledger must be true, false or a file's whole path, got {value!r}")
    return Path(value)


def _epsilon(value: Any) -> Fraction:
    if isinstance(value, str):
        top, _, bottom = value.partition("/")
        if not all(part.isdecimal() and len(part) <= 100 for part in (top, bottom or "1")):
            raise InputError(f"max_epsilon must be a number or a fraction, got {value!r}")
        if not int(bottom or 1):
            raise InputError(f"max_epsilon must be a number or a fraction, got {value!r}")
        value = Fraction(int(top), int(bottom or 1))
    return positive(value, "max_epsilon")


def _unit(value: Any) -> str:
    if value not in get_args(Unit):
        raise InputError(f"unit must be one of {', '.join(get_args(Unit))}, got {value!r}")
    return str(value)


def _same(one: Path, other: str | os.PathLike[str] | None) -> bool:
    return other is not None and os.path.realpath(one) == os.path.realpath(other)
