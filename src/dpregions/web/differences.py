"""What one release counts more than another, as JSON's values: `Release.compare` over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpregions.web.answers import asked_of, privacy_of

if TYPE_CHECKING:
    from dpregions.web.questions import Question
    from dpregions.web.shelf import Shown


def difference(
    first: Shown, second: Shown, question: Question, confidence: float
) -> dict[str, Any]:
    """Return what `second` counts more than `first`, with the interval of the difference."""
    comparison = first.release.compare(second.release)
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
    together = comparison.together
    return {
        "first": first.id,
        "second": second.id,
        "counts": [answer.pop("first"), answer.pop("second")],
        **{name: answer[name] for name in ("difference", "low", "high")},
        "confidence": confidence,
        "may_be_equal": answer["low"] <= 0 <= answer["high"],
        "asked": question.echo,
        "answered": {
            "cells": asked.cells,
            "within": answer["within"],
            "exact": answer["exact"],
            "snapped": asked.snapped,
        },
        "together": None if together is None else {"epsilon": str(together)},
        "statement": comparison.describe(),
        "privacy": [privacy_of(shown.release) for shown in (first, second)],
    }
