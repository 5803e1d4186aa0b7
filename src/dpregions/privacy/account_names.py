"""Names of accounts in a ledger, and what is declared of them: which text is one, which look alike.

A name is published with every release and read by people, so it must show all that it is made
of: printable, on one line, nothing invisible. One name has one spelling here, Unicode's composed
form (NFC), in whichever form it is given. Nothing here opens a ledger.
"""

from __future__ import annotations

import unicodedata

from dpregions.errors import Argument, InputError, InputTypeError

LONGEST, LONGEST_FACT = 100, 300

# What counts as printable and shows as nothing, or as a blank that is not a space: joiners,
# fillers, selectors of variants, empty patterns. Python tells of format characters itself.
_UNSEEN = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x16FE4, 0x1D159),
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
)
_INVISIBLE = frozenset(map(chr, _UNSEEN))


def account_name(text: object) -> str:
    """Return a data set's name as a ledger writes it, or refuse what cannot be one."""
    if not isinstance(text, str):
        raise InputTypeError(
            f"a data set's name is text, got {type(text).__name__}", argument="dataset"
        )
    name = unicodedata.normalize("NFC", text)
    plain = name.isprintable() and "/" not in name and name == name.strip()
    if not (plain and 0 < len(name) <= LONGEST and _is_visible(name)):
        # In ASCII, so that what is invisible in it shows.
        raise InputError(
            f"{text!a} is no name for a data set: give 1 to {LONGEST} printable characters "
            f"without a slash, no space at either end, and none that is invisible",
            argument="dataset",
        )
    return name


def fact(text: object, argument: str) -> str:
    """Return what is declared of an account as a ledger writes it, or refuse what cannot be."""
    if not isinstance(text, str):
        raise InputTypeError(Argument(argument), f" is text, got {type(text).__name__}")
    said = unicodedata.normalize("NFC", text)
    if not (said.isprintable() and said == said.strip() and 0 < len(said) <= LONGEST_FACT):
        raise InputError(
            Argument(argument, f"{text!a}"),
            f" cannot be published with releases: give 1 to {LONGEST_FACT} printable characters, "
            f"no space at either end",
        )
    return said


def look_alike(name: str) -> str:
    """Return a text that two names share if they differ in case, width, style or spaces alone.

    Unicode's compatibility caseless matching. Letters of different scripts stay apart, such as
    Latin and Cyrillic "a", which many fonts draw the same.
    """
    folded = unicodedata.normalize("NFD", name).casefold()
    folded = unicodedata.normalize("NFKD", folded).casefold()
    return " ".join(unicodedata.normalize("NFKD", folded).split())


def _is_visible(name: str) -> bool:
    """Whether every character shows, and no mark at the beginning joins what stands before."""
    starts = unicodedata.category(name[0])[0] != "M"
    return starts and _INVISIBLE.isdisjoint(name)
