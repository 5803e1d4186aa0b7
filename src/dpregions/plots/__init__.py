"""Pictures (matplotlib, the extra `plot`): each module draws one, and imports it when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpregions.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def blank_figure(**options: Any) -> Figure:
    """Return a figure to draw on; where matplotlib is absent, say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return Figure(**options)
