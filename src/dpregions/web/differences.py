"""What one release counts more than another, as JSON's values: `Release.compare` over HTTP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpregions.web.answers import asked_of
from dpregions.web.costs import refuse_costly

if TYPE_CHECKING:
    from dpregions.web.questions import Question
    from dpregions.web.settings import Limits
    from dpregions.web.shelf import Shown


def difference(
    first: Shown, second: Shown, question: Question, confidence: float, limits: Limits
) -> dict[str, Any]:
    """Return what `second` counts more than `first`, with the interval of the difference."""
    comparison = first.release.compare(second.release)
    if question.shape is not None:
        for shown in (first, second):
            refuse_costly(shown.release, question.shape, question.crs, limits)
    # On other cells, what is drawn alone is about the same area.
    asked = asked_of(first.release, question, None if comparison.same_cells else "drawn")
    found = comparison.answers(
        *asked.query,
        cells=asked.labels,
        within=asked.within,
        crs=asked.crs,
        confidence=confidence,
        quiet=True,
    )
    answer = {name: values[0].item() for name, values in found.items()}
    outside = math.isnan(answer["low"])
    low, high = (None if outside else answer[name] for name in ("low", "high"))
    together = comparison.together
    return {
        "first": first.id,
        "second": second.id,
        "counts": [answer.pop("first"), answer.pop("second")],
        "difference": answer["difference"],
        "low": low,
        "high": high,
        "confidence": confidence,
        "may_be_equal": outside or answer["low"] <= 0 <= answer["high"],
        "outside": outside,
        "asked": question.echo,
        "answered": {
            "cells": asked.cells,
            "within": answer["within"],
            "exact": answer["exact"],
            "snapped": asked.snapped,
        },
        "together": None if together is None else {"epsilon": str(together)},
        "statement": comparison.describe(),
        "privacy": [first.privacy, second.privacy],
    }
