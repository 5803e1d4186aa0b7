"""Pictures (matplotlib and scipy, the extra `plot`): each module draws one, when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpregions import extras
from dpregions.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


def need_plot(path: Path | None = None) -> None:
    """Refuse a picture that cannot be drawn, before anything is made for it.

    Where the extra `plot` is not there in full, say how to get it.
    """
    for package in ("matplotlib", "matplotlib.backends.backend_agg", "scipy"):
        with extras.named():
            import_module(package)
    if path is None:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if path.suffix.lstrip(".").lower() not in FigureCanvasAgg.get_supported_filetypes():
        raise InputError(
            f"{path} names no kind of picture that can be drawn: end it in .png, .svg or .pdf"
        )


def blank_figure(**options: Any) -> Figure:
    """Return a figure to draw on; where the extra `plot` is absent, say how to get it."""
    need_plot()
    from matplotlib.figure import Figure

    return Figure(**options)


def write(axes: Any, text: str, at: Any, offset: tuple[int, int], **style: Any) -> None:
    """Write a small text beside a place, so many points from it."""
    axes.annotate(text, at, offset, textcoords="offset points", size=8.5, **style)
