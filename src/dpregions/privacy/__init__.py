"""Budget, unit, neighbour relation, sensitivity, noise and its law, and the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions._lazy import lazily

if TYPE_CHECKING:
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.ledger import Ledger

__all__ = ["Budget", "Ledger"]

__getattr__, __dir__ = lazily(__name__, {"Budget": "budget", "Ledger": "ledger"})
