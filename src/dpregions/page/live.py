"""A release as a map in a notebook that talks to the kernel (extra `notebook`).

The page is the single file in its sandboxed frame; what the file does not know it asks here, and
what is drawn on it comes back as `selection`.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import numpy as np
import traitlets

from dpregions.errors import DPRegionsError, DPRegionsWarning
from dpregions.geometry.grid import Grid
from dpregions.page.single_file import STATIC, page_html

if TYPE_CHECKING:
    import geopandas

    from dpregions.choices import Within
    from dpregions.releases.published import Release

_MOST_SHAPES = 1000


class LiveExplorer(anywidget.AnyWidget):
    """The explorer of one release in a notebook; made by ``Release.explore(live=True)``.

    Attributes
    ----------
    selection : geopandas.GeoDataFrame
        What is asked and saved on the map, with `count`, `low` and `high`.
    """

    _esm = Path(STATIC / "live.js")
    page = traitlets.Unicode().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)

    def __init__(self, release: Release, name: str, confidence: float) -> None:
        page = page_html(release, name=name, confidence=confidence, live=True)
        super().__init__(page=page)
        self._release, self._confidence = release, confidence
        self.on_msg(self._reply)

    @property
    def selection(self) -> geopandas.GeoDataFrame:
        """What is asked and saved on the map: `name`, `count`, `low`, `high`, `exact`, geometry.

        In the CRS of the release's grid; the numbers are the library's, of this moment.
        """
        import geopandas

        features = self.asked.get("features", [])
        shapes = self._shapes(features, bool(self.asked.get("plain")))
        names = [feature["properties"].get("name", "") for feature in features]
        frame = geopandas.GeoDataFrame({"name": names}, geometry=shapes, crs=self._release.grid.crs)
        columns = self._columns(features, shapes)
        for place, (name, values) in enumerate(columns.items(), start=1):
            frame.insert(place, name, values)
        return frame

    def _reply(self, _widget: Any, question: dict[str, Any], _buffers: Any) -> None:
        """Answer a question of the page, under the number that it came with."""
        try:
            said: dict[str, Any] = {"answers": self._answers(question["question"])}
        except DPRegionsError as error:
            said = {"trouble": str(error)}
        self.send({"id": question["id"], **said})

    def _answers(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        if "cells" in question:
            features: list[Any] = [{"properties": {"cells": question["cells"]}}]
            shapes = None
        else:
            features = question["features"][:_MOST_SHAPES]
            shapes = self._shapes(features, question["plain"])
        columns = self._columns(features, shapes)
        return [
            dict(zip(columns, values, strict=True))
            for values in zip(*(column.tolist() for column in columns.values()), strict=True)
        ]

    def _columns(self, features: list[Any], shapes: Any) -> dict[str, Any]:
        """Return what the release answers of features: of cells by their numbers, else as drawn."""
        parts = []
        for i, feature in enumerate(features):
            cells = feature["properties"].get("cells")
            grid = self._release.grid
            rectangle = cells is not None
            query = (
                Grid.needed(grid, "rows and columns").cell_bounds(*cells)
                if rectangle
                else (shapes[i],)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DPRegionsWarning)  # what it says is in the answer
                rule: Within | None = "cells" if rectangle else None
                chosen = self._release.select(query, within=rule, crs=None)
                parts.append(self._release.answers(chosen, self._confidence))
        names = ["count", "exact", "within"] if self._release.covert else list(_COLUMNS)
        none = [np.zeros(0)]
        return {name: np.concatenate([part[name] for part in parts] or none) for name in names}

    def _shapes(self, features: list[Any], plain: bool) -> Any:
        """Return the geometries of features in the CRS of the grid."""
        import geopandas
        import shapely

        found = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
        crs = self._release.grid.crs
        if plain or crs is None:
            return found
        return geopandas.GeoSeries(found, crs=4326).to_crs(crs).to_numpy()


_COLUMNS = ("count", "low", "high", "exact", "within")
