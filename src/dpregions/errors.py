"""Every error and warning dpregions raises, in one tree.

Reads as documentation: catch `DPRegionsError` for all of them, or the branch you can
handle. Each also is the built-in a caller would expect (`ValueError`, `TypeError`,
`OSError`, `ImportError`). A message names the public value that was wrong and the remedy. It never
holds anything about a single record of the secret data. `error.argument` is the name of the
argument it is about, None where it is about none.

    DPRegionsError
    ├── InputError (ValueError)       an argument is unusable
    │   ├── GridError                 grid parameters
    │   ├── CRSError                  coordinate reference systems do not fit
    │   ├── QueryError                a query is unusable
    │   ├── ReleaseFileError          a file is no whole release
    │   │   └── TooLargeError         a release is more than this machine holds
    │   ├── PrivacyError              epsilon, bound, unit or neighbour relation
    │   ├── PolicyError               the site's policy refuses the release, or is not understood
    │   └── LedgerError               no such ledger or data set, or not for this release
    │       └── OverBudgetError       more epsilon than the data set has left
    ├── InputTypeError (TypeError)    an argument is of a kind we do not read
    ├── LedgerUnavailableError (OSError)  the ledger's file cannot be locked, read or written
    ├── SourceError (OSError)         a source failed while it was read: a database is down
    ├── OutputError (OSError)         a file cannot be written whole: a full disk, perhaps
    ├── UnforeseenError (RuntimeError)    something nobody foresaw, by its type alone
    └── MissingExtraError (ImportError)   an optional dependency is absent

    DPRegionsWarning (UserWarning)
    ├── LedgerWarning                 the ledger could not be told what became of a release
    ├── SettingWarning                a public setting protects or bounds next to nothing
    ├── OutsideAreaWarning            a query lies wholly outside the grid's area: counts 0
    └── ApproximateCountWarning       a query's cells form no rectangle: the count is approximate
"""

from __future__ import annotations

from typing import NamedTuple

from dpregions.installation import install_command


class Argument(NamedTuple):
    """An argument named in a message: `k`, with its value `k=3`, with an empty one `k=`."""

    name: str
    value: str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"


class InPython(str):
    """Words of a message for callers in Python alone: the command line leaves them out."""


class QueryNumber(int):
    """A query named in a message, one of several, by its number from 0."""

    def __str__(self) -> str:
        return f"query {int(self)}"


Part = str | Argument | QueryNumber


class _Message(Exception):
    """Text in parts, so that the command line can say an argument as its option.

    Parameters
    ----------
    *parts
        Joined as they are, without a space between them.
    argument : str, optional
        The name of the argument the message is about; by default the first that it names.
    """

    def __init__(self, *parts: Part, argument: str | None = None) -> None:
        super().__init__("".join(map(str, parts)))
        self.parts = parts
        named = (part.name for part in parts if isinstance(part, Argument))
        self.argument = next(named, None) if argument is None else argument


class DPRegionsError(_Message):
    """Base of every error raised by dpregions."""


class InputError(DPRegionsError, ValueError):
    """An argument is unusable; the message says which, with its value and the remedy."""


class GridError(InputError):
    """The parameters do not make a grid."""


class CRSError(InputError):
    """Two coordinate reference systems do not fit, or one is missing or not metric."""


class QueryError(InputError):
    """A query is unusable: reversed, not finite, null."""


class PrivacyError(InputError):
    """A privacy parameter is unusable: epsilon, the bound, the unit, the neighbour relation."""


class PolicyError(InputError):
    """The site's policy refuses this release, or cannot be understood and so refuses all."""


class LedgerError(InputError):
    """The ledger is missing, damaged or something else, or has no account for this release."""


class OverBudgetError(LedgerError):
    """More epsilon was asked for than the data set has left."""


class ReleaseFileError(InputError):
    """A file is not a release, or is damaged, altered or of a newer format."""


class TooLargeError(ReleaseFileError):
    """The release may be whole, but is more than this machine holds."""


class InputTypeError(DPRegionsError, TypeError):
    """An argument is of a kind that cannot be read here."""


class LedgerUnavailableError(DPRegionsError, OSError):
    """The ledger's file cannot be locked, read or written now; nothing was changed in it."""


class SourceError(DPRegionsError, OSError):
    """A source failed on the way: a database that is down or drops, a stream that breaks."""


class OutputError(DPRegionsError, OSError):
    """A file cannot be written whole; what was there before is as it was."""


class UnforeseenError(DPRegionsError, RuntimeError):
    """Work on records failed in a way that nobody foresaw; the message names its type alone."""


class MissingExtraError(DPRegionsError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, what: str = "this") -> None:
        super().__init__(
            f"{what} needs {package}, of the extra dpregions[{extra}], which is not installed: "
            f"{install_command(extra)}"
        )


class DPRegionsWarning(_Message, UserWarning):
    """Base of every warning issued by dpregions."""


class LedgerWarning(DPRegionsWarning):
    """The ledger could not be told what became of a release; its debit stands."""


class SettingWarning(DPRegionsWarning):
    """A public setting is allowed but odd: an epsilon or a bound so large that it does nothing."""


class OutsideAreaWarning(DPRegionsWarning):
    """A query lies wholly outside the grid's area and counts 0."""


class ApproximateCountWarning(DPRegionsWarning):
    """A query's cells do not form a rectangle, so its count is an approximation."""


def printable(text: str) -> str:
    """Return one line of text with nothing in it that a terminal would act on."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
