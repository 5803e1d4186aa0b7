"""What is written for others: exports of a release, files of extracted regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions._lazy import lazily

if TYPE_CHECKING:
    from dpregions.io.exports import export

__all__ = ["export"]

__getattr__, __dir__ = lazily(__name__, {"export": "exports"})
