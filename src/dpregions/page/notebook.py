"""A release as a map in a notebook: the single file in a frame of its own.

The frame is sandboxed and holds everything, so it works offline, in JupyterLab as in HTML that
nbconvert makes of it, and outlives the kernel.
"""

from __future__ import annotations

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dpregions.atomic_files import PUBLIC, replacing
from dpregions.errors import MissingExtraError
from dpregions.page.single_file import page_html

if TYPE_CHECKING:
    from dpregions.page.live import LiveExplorer
    from dpregions.releases.published import Release

_HEIGHT = 620


def explorer(release: Release, name: str, confidence: float, live: bool) -> Explorer | LiveExplorer:
    """Return what shows a release in a notebook; see `Release.explore`."""
    if not live:
        return Explorer(release, name, confidence)
    try:
        from dpregions.page.live import LiveExplorer
    except ModuleNotFoundError:
        raise MissingExtraError("anywidget", "notebook") from None
    return LiveExplorer(release, name, confidence)


class Explorer:
    """The explorer of one release, which a notebook shows; `save` writes it to a file.

    Made by `Release.explore`.
    """

    def __init__(self, release: Release, name: str, confidence: float) -> None:
        self.release = release
        self.name = name
        self.confidence = confidence

    @cached_property
    def html(self) -> str:
        """The page as the text of one HTML file."""
        return page_html(self.release, name=self.name, confidence=self.confidence)

    def save(self, path: Path | str) -> None:
        """Write the page to an HTML file that any browser opens, whole or not at all."""
        with replacing(Path(path), mode=PUBLIC) as part:
            part.write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'title="Map of {escape(self.name)}" width="100%" height="{_HEIGHT}" '
            f'style="border:1px solid #8884;border-radius:8px"></iframe>'
        )

    def __repr__(self) -> str:
        """Return one line that says what to do."""
        return f"<Explorer of {self.release!r}: show it in a notebook, or save('map.html')>"
