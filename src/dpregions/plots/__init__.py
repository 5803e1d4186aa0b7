"""Pictures (matplotlib and scipy, the extra `plot`): each module draws one, when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpregions.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def need_plot() -> None:
    """Refuse to begin where the extra `plot` is not there in full, and say how to get it."""
    for package in ("matplotlib", "scipy"):
        try:
            import_module(package)
        except ImportError:
            raise MissingExtraError(package, "plot") from None


def blank_figure(**options: Any) -> Figure:
    """Return a figure to draw on; where matplotlib is absent, say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return Figure(**options)
