"""Arrays by what they hold: the words of signatures. For types alone, nothing here runs."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[np.object_]
Numbers: TypeAlias = NDArray[Any]
"""Of integers or of floats, whichever the counts are."""
