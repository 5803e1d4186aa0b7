"""`plan`: errors to expect and a recommendation, from public parameters alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions._lazy import lazily

if TYPE_CHECKING:
    from dpregions.planning.planner import plan

__all__ = ["plan"]

__getattr__, __dir__ = lazily(__name__, {"plan": "planner"})
