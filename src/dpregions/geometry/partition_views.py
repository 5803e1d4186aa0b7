"""A partition as people see it: layers of its components, and a picture of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.errors import Argument, InputError
from dpregions.geometry.layers import Layer

if TYPE_CHECKING:
    from dpregions.choices import Kind
    from dpregions.geometry.partition import Partition


def layer_of(partition: Partition, kind: Kind) -> Layer:
    """Return the faces, inner edges or inner vertices as geometries, by their numbers."""
    import shapely

    if kind not in ("faces", "edges", "vertices"):
        raise InputError(
            Argument("kind", repr(kind)), " is unknown: use 'faces', 'edges' or 'vertices'"
        )
    c, shapes = partition.complex, np.zeros(0, object)
    xy = partition.to_coordinates(np.stack([c.x, c.y], axis=-1))
    labels = partition.labels
    columns: dict[str, Any] = {}
    if kind == "faces":
        columns["component"] = np.arange(c.n_faces)
        columns["label"] = list(labels)
        rings = shapely.linearrings(xy[c.points], indices=c.side_face)
        shapes = np.asarray(shapely.polygons(rings))
    elif kind == "edges":
        columns["component"] = c.n_faces + np.arange(c.n_edges)
        for name, faces in zip(("label", "other"), c.edge_faces.T.tolist(), strict=True):
            columns[name] = [labels[face] for face in faces]
        offsets, items = c.edge_points
        if c.n_edges:
            which = np.repeat(np.arange(c.n_edges), np.diff(offsets))
            shapes = np.asarray(shapely.linestrings(xy[items], indices=which))
    else:
        columns["component"] = c.n_faces + c.n_edges + np.arange(c.n_vertices)
        shapes = np.asarray(shapely.points(xy[c.vertices]))
    return Layer(columns, shapes, partition.crs)


def drawn(partition: Partition, ax: Any, style: dict[str, Any]) -> Any:
    """Draw the cells on axes, new ones by default, and return them."""
    with extras.named():
        from matplotlib.collections import PolyCollection
        from matplotlib.figure import Figure
    c = partition.complex
    xy = partition.to_coordinates(np.stack([c.x, c.y], axis=-1))
    ax = Figure().add_subplot() if ax is None else ax
    rings = [xy[c.ring(face)] for face in range(c.n_faces)]
    look: dict[str, Any] = {"edgecolor": "0.4", "linewidth": 0.6}
    if "array" not in style:  # else its values colour the faces
        look["facecolor"] = "none"
    ax.add_collection(PolyCollection(rings, **look | style))
    ax.autoscale_view()
    ax.set_aspect("equal")
    return ax
