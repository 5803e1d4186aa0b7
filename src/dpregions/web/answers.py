"""A question -> what a release answers, as JSON's values: what was asked, and what was answered.

The numbers are those of `Release.count`, `estimate` and `interval`, and nothing is worked out here.
Asked and answered are told apart: a rectangle in degrees is answered for the rectangle of cells
around it, or as drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpregions.crs import crs_label, degrees_remedy, read_crs, reproject, same_crs
from dpregions.errors import DPRegionsError
from dpregions.geometry.grid import Grid
from dpregions.web.problems import Problem
from dpregions.web.questions import WGS84, Manner, Question, shape_of

if TYPE_CHECKING:
    from dpregions.choices import Within
    from dpregions.geometry.domain import Domain
    from dpregions.releases.published import Release
    from dpregions.web.questions import Snap
    from dpregions.web.settings import Limits
    from dpregions.web.shelf import Shown
    from dpregions.web.work import Deadline


def answer(shown: Shown, question: Question, confidence: float, limits: Limits) -> dict[str, Any]:
    """Return the answer to one question."""
    found = _answered(shown.release, question, confidence, limits)
    return {
        "release": shown.id,
        **found.pop("numbers"),
        "asked": question.echo,
        "answered": found,
        "privacy": privacy_of(shown.release),
    }


def privacy_of(release: Release) -> dict[str, Any]:
    """Return what goes with every number."""
    return {
        "epsilon": str(release.budget),
        "unit": release.unit,
        "neighbours": release.neighbours,
        "private": release.private,
    }


def is_quick(shown: Shown, question: Question) -> bool:
    """Whether a question is a look-up: a rectangle of cells of a grid."""
    return question.cells is not None and isinstance(shown.release.grid, Grid)


def answer_features(
    shown: Shown,
    body: dict[str, Any],
    manner: Manner,
    limits: Limits,
    deadline: Deadline,
) -> dict[str, Any]:
    """Return the features as they came, each with its answer in `properties.dpregions`.

    Coordinates are longitude and latitude, as RFC 7946 has it, unless `manner` says otherwise;
    for a release without a CRS, those of its plane.
    """
    release, crs = shown.release, manner.crs
    if crs is None and release.grid.crs is not None:
        crs = WGS84
    is_one = body["type"] == "Feature"
    answered = []
    for i, feature in enumerate([body] if is_one else body["features"]):
        deadline.check()
        where = f"features[{i}]"
        shape = shape_of(feature["geometry"], where)
        question = Question(echo={}, shape=shape, crs=crs, snap=manner.snap)
        try:
            found = _answered(release, question, manner.confidence, limits)
        except DPRegionsError as error:
            problem = Problem.of(error)
            raise Problem(
                problem.kind,
                problem.status,
                f"{where}: {problem.detail}",
                parameter=problem.parameter,
            ) from None
        numbers = found.pop("numbers")
        properties = (feature.get("properties") or {}) | {"dpregions": numbers | found}
        answered.append(feature | {"properties": properties})
    said = {"release": shown.id, "privacy": privacy_of(release)}
    if is_one:
        return answered[0] | {"dpregions": said}
    return body | {"features": answered, "dpregions": said}


def _answered(
    release: Release, question: Question, confidence: float, limits: Limits
) -> dict[str, Any]:
    """Return the numbers of a question, and what they are about."""
    if question.labels is not None:
        return _of_labels(release, question.labels, confidence)
    if question.cells is not None:
        grid = Grid.needed(release.grid, "a rectangle of cells by rows and columns")
        return _of_cells(release, grid, question.cells, confidence)
    return _of_shape(release, question, confidence, limits)


def _of_cells(
    release: Release, grid: Grid, cells: tuple[int, int, int, int], confidence: float
) -> dict[str, Any]:
    """Return the answer about a rectangle of cells, by look-ups alone."""
    bounds = [float(side) for side in grid.cell_bounds(*cells)]
    numbers: dict[str, Any] = {"count": release.count(*bounds), "outside": False}
    if not release.covert:
        low, high = release.interval(*bounds, confidence=confidence)
        numbers |= {"estimate": float(release.estimate(*bounds)), "low": float(low)}
        numbers |= {"high": float(high), "confidence": confidence}
    said = {"within": "cells", "exact": True, "snapped": None, "cut": False}
    about = {"cells": list(cells), "bounds": bounds}
    return _place(release) | about | said | {"numbers": numbers}


def _of_labels(release: Release, labels: tuple[str, ...], confidence: float) -> dict[str, Any]:
    """Return the answer about cells of a partition, by their labels as text."""
    partition: Any = release.grid
    known = {str(label): label for label in partition.labels}
    if missing := [label for label in labels if label not in known]:
        raise Problem(
            "query",
            422,
            f"there is no cell {missing[0][:80]!r} in this release",
            parameter="cells",
        )
    cells = [known[label] for label in labels]
    selection = partition.select((), cells=cells, once=release.asked.answers_shapes)
    said = _said(release, selection, confidence)
    return _place(release) | {"labels": list(labels)} | said | {"snapped": None}


def _of_shape(
    release: Release, question: Question, confidence: float, limits: Limits
) -> dict[str, Any]:
    """Return the answer about a shape: as drawn, or the cells it touches, or those around it."""
    shape, crs = question.shape, question.crs
    if question.radius is not None:
        shape, crs = _circle(question, release.grid), None
    snap = question.snap or _default_snap(release, question)
    if snap == "enclosing":
        return _of_cells_around(release, shape, crs, confidence)
    within: Within | None = "cells" if snap == "touched" else None
    if snap == "drawn" and not release.asked.answers_shapes:
        within = "shape"  # which is refused, with the reason
    selection = release.select((shape,), within=within, crs=crs)
    _refuse_wide(selection, limits)
    found = _said(release, selection, confidence)
    return _place(release) | found | {"snapped": "touched" if snap == "touched" else None}


def _default_snap(release: Release, question: Question) -> Snap:
    """Return how a shape is answered where nothing is said.

    A rectangle in another CRS is no rectangle here: the cells around it are, so nobody counts
    twice. All else is answered as drawn, if the release has bodies to lay on it.
    """
    grid, crs = release.grid, question.crs
    turned = crs is not None and (grid.crs is None or not same_crs(read_crs(crs), grid.crs))
    if question.is_bbox and turned and isinstance(grid, Grid):
        return "enclosing"
    return "drawn" if release.asked.answers_shapes else "touched"


def _of_cells_around(
    release: Release, shape: Any, crs: str | None, confidence: float
) -> dict[str, Any]:
    """Return the answer about the smallest rectangle of cells around a shape."""
    grid = Grid.needed(release.grid, "snap=enclosing", ": give snap=drawn or snap=touched")
    row0, row1, col0, col1 = cells = grid.cell_range(*grid.enclosing(shape, crs=crs))
    if row1 < row0 or col1 < col0:
        nowhere = release.select((shape,), within="cells", crs=crs)
        return _place(release) | _said(release, nowhere, confidence) | {"snapped": "enclosing"}
    cut = bool(grid.select((shape,), crs, within="shape").cut(grid)[0])
    return _of_cells(release, grid, cells, confidence) | {"snapped": "enclosing", "cut": cut}


def _circle(question: Question, grid: Domain) -> Any:
    """Return the circle around a point, in the release's CRS."""
    point = question.shape
    if question.crs is not None and grid.crs is not None:
        import numpy as np
        import shapely

        (xy,) = reproject(shapely.get_coordinates(point), read_crs(question.crs), grid.crs)
        if not np.isfinite(xy).all():
            raise Problem(
                "query", 422, "the point has no place in the release's CRS", parameter="point"
            )
        point = shapely.Point(xy)
    return point.buffer(question.radius)


def _refuse_wide(selection: Any, limits: Limits) -> None:
    """Refuse what costs too much: shapes, or cells in no rectangle, with too many cells around."""
    ranges = getattr(selection, "ranges", None)
    if ranges is None or not (selection.shapes or selection.masks):
        return
    row0, row1, col0, col1 = ranges[:, 0].tolist()
    n = (row1 - row0 + 1) * (col1 - col0 + 1)
    if n > limits.cells:
        raise Problem(
            "too-large",
            422,
            f"the shape lies in a rectangle of {n:,} cells, of at most {limits.cells:,}: ask about "
            f"a rectangle (snap=enclosing), or in parts",
        )


def _said(release: Release, selection: Any, confidence: float) -> dict[str, Any]:
    """Return the numbers of one selected query, and how it was answered."""
    grid = release.grid
    found = {
        name: values[0].item() for name, values in release.answers(selection, confidence).items()
    }
    numbers: dict[str, Any] = {
        name: found[name] for name in ("count", "low", "high") if name in found
    }
    if not release.covert:
        estimate = float(release.asked.estimate(selection)[0])
        numbers |= {"estimate": estimate, "confidence": confidence}
    outside = numbers["outside"] = bool(selection.outside[0])
    said = {
        "within": found["within"],
        "exact": found["exact"],
        "cut": bool(selection.cut(grid)[0]),
    }
    if isinstance(grid, Grid) and found["within"] == "cells" and found["exact"] and not outside:
        cells = selection.ranges[:, 0].tolist()
        said |= {"cells": cells, "bounds": [float(side) for side in grid.cell_bounds(*cells)]}
    if outside and (note := _degrees_note(grid, selection)):
        said["note"] = note
    return said | {"numbers": numbers}


def _degrees_note(grid: Domain, selection: Any) -> str:
    if selection.bounds is None:
        return ""
    remedy = degrees_remedy(grid.crs, selection.bounds)
    return "".join(map(str, remedy)).removeprefix("; ")


def _place(release: Release) -> dict[str, Any]:
    crs = release.grid.crs
    return {"cells": None, "bounds": None, "crs": None if crs is None else crs_label(crs)}
