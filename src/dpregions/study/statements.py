"""A statement that the paper prints, beside what was measured.

Study on exact data: not a private release. A verdict is computed from a table; the reasons are
ours and shown where the verdict asks for them. Each experiment judges its own statements.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["agrees", "differs", "not measured"]


class Finding(NamedTuple):
    """One statement of the paper, what was measured, and whether they agree."""

    printed: str
    measured: str
    verdict: Verdict
    why: str = ""


def judged(printed: str, measured: str, holds: bool, why: str, always: str = "") -> Finding:
    """Return the verdict on a statement, with the reasons that it asks for."""
    reasons = " ".join(text for text in (always, "" if holds else why) if text)
    return Finding(printed, measured, "agrees" if holds else "differs", reasons)


def absent(printed: str, needed: str) -> Finding:
    """Return that a statement was not measured, and what would measure it."""
    return Finding(printed, f"needs {needed}", "not measured")
