"""How answers are judged: errors relative to the truth.

Study on exact data: not a private release. Nothing here knows how an answer was made, and
what is asked comes from `geometry.rectangles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FLOOR = 0.001
"""Errors are relative to the true answer, or to this share of all regions where that is more."""


def relative_errors(
    answers: ArrayLike, truth: ArrayLike, n_regions: int, floor: float = FLOOR
) -> NDArray[np.float64]:
    """Return how far answers are off, relative to the truth or to a floor of all regions.

    Examples
    --------
    >>> relative_errors([110, 2], [100, 0], n_regions=1000).tolist()
    [0.1, 2.0]
    """
    truth = np.asarray(truth, np.float64)
    scale = np.maximum(truth, max(floor * n_regions, np.finfo(float).tiny))
    return np.abs(np.asarray(answers, np.float64) - truth) / scale
