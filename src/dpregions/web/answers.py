"""A question -> what a release answers, as JSON's values: what was asked, and what was answered.

The numbers are those of `Release.count`, `estimate` and `interval`, and nothing is worked out here.
Asked and answered are told apart: a rectangle in degrees is answered for the rectangle of cells
around it, or as drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpregions.crs import degrees_remedy, read_crs, reproject, same_crs
from dpregions.errors import DPRegionsError
from dpregions.geometry.grid import Grid
from dpregions.web.costs import refuse_costly
from dpregions.web.problems import Problem
from dpregions.web.questions import OWN, WGS84, Manner, Question, shape_of

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
        "answered": found | {"crs": shown.crs},
        "privacy": shown.privacy,
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
    crs = None if crs == OWN else crs
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
        properties = (feature.get("properties") or {}) | {
            "dpregions": numbers | found | {"crs": shown.crs}
        }
        answered.append(feature | {"properties": properties})
    said = {"release": shown.id, "privacy": shown.privacy}
    if is_one:
        return answered[0] | {"dpregions": said}
    return body | {"features": answered, "dpregions": said}


@dataclass(frozen=True)
class Asked:
    """A question as `Release.count` takes it.

    Attributes
    ----------
    query : tuple
        Four bounds or a shape; nothing where `labels` are given.
    within : Within, optional
    crs : str, optional
    labels : list, optional
        Of a partition's cells.
    cells : tuple of int, optional
        The rectangle of cells that the bounds are those of.
    snapped : str, optional
        What was answered in place of the shape: "touched" or "enclosing".
    cut : bool
        Of an enclosing rectangle: whether the shape reaches beyond the area.
    """

    query: tuple[Any, ...] = ()
    within: Within | None = None
    crs: str | None = None
    labels: list[Any] | None = None
    cells: tuple[int, int, int, int] | None = None
    snapped: str | None = None
    cut: bool = False


def asked_of(release: Release, question: Question, default: Snap | None = None) -> Asked:
    """Return what a question asks; `default` is how a shape is answered if nothing is said."""
    grid = release.grid
    if question.labels is not None:
        return Asked(labels=_known_labels(grid, question.labels))
    if question.cells is not None:
        squares = Grid.needed(grid, "a rectangle of cells by rows and columns")
        return _of_cells(squares, question.cells)
    shape, crs = question.shape, question.crs
    if question.radius is not None:
        shape, crs = _circle(question, grid), None
    snap = question.snap or default or _default_snap(release, question)
    if snap == "enclosing":
        return _around(grid, shape, crs)
    if snap == "touched":
        return Asked((shape,), "cells", crs, snapped="touched")
    return Asked((shape,), None if release.asked.answers_shapes else "shape", crs)


def _of_cells(grid: Grid, cells: tuple[int, int, int, int]) -> Asked:
    bounds = tuple(float(side) for side in grid.cell_bounds(*cells))
    return Asked(bounds, "cells", cells=cells)


def _around(grid: Domain, shape: Any, crs: str | None) -> Asked:
    """Return the smallest rectangle of cells around a shape."""
    squares = Grid.needed(grid, "snap=enclosing", ": give snap=drawn or snap=touched")
    row0, row1, col0, col1 = cells = squares.cell_range(*squares.enclosing(shape, crs=crs))
    if row1 < row0 or col1 < col0:
        return Asked((shape,), "cells", crs, snapped="enclosing")  # outside, which is for it to say
    cut = bool(squares.select((shape,), crs, within="shape", stacklevel=None).cut(squares)[0])
    return replace(_of_cells(squares, cells), snapped="enclosing", cut=cut)


def _known_labels(partition: Any, labels: tuple[str, ...]) -> list[Any]:
    """Return a partition's own labels for their texts."""
    known = {str(label): label for label in partition.labels}
    if missing := [label for label in labels if label not in known]:
        raise Problem(
            "query",
            422,
            f"there is no cell {missing[0][:80]!r} in this release",
            parameter="cells",
        )
    return [known[label] for label in labels]


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


def _circle(question: Question, grid: Domain) -> Any:
    """Return the circle around a point, in the release's CRS."""
    import numpy as np
    import shapely

    point = question.shape
    if question.crs is not None and grid.crs is not None:
        (xy,) = reproject(shapely.get_coordinates(point), read_crs(question.crs), grid.crs)
        if not np.isfinite(xy).all():
            raise Problem(
                "query", 422, "the point has no place in the release's CRS", parameter="point"
            )
        point = shapely.Point(xy)
    try:
        with np.errstate(all="ignore"):  # what overflows is refused, here or by who selects
            return point.buffer(question.radius)
    except shapely.errors.GEOSException:
        raise Problem(
            "query",
            422,
            f"radius {question.radius:g} around this point gives no circle of finite numbers: "
            f"give smaller ones",
            parameter="radius",
        ) from None


def refuse_wide(selection: Any, limits: Limits) -> None:
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


def _answered(
    release: Release, question: Question, confidence: float, limits: Limits
) -> dict[str, Any]:
    """Return the numbers of a question, and what they are about."""
    if question.shape is not None:
        refuse_costly(release, question.shape, question.crs, limits)
    asked = asked_of(release, question)
    if asked.cells is not None:
        return _looked_up(release, asked.cells, asked, confidence)
    given: Any = {"within": asked.within, "crs": asked.crs, "cells": asked.labels}
    selection = release.select(asked.query, **given, quiet=True)
    refuse_wide(selection, limits)
    return _said(release, asked, selection, confidence)


def _looked_up(
    release: Release, cells: tuple[int, int, int, int], asked: Asked, confidence: float
) -> dict[str, Any]:
    """Return the answer about a rectangle of cells, by look-ups alone."""
    numbers = release.answer_cells(cells, confidence) | {"outside": False}
    if not release.covert:
        numbers["confidence"] = confidence
    return {
        "cells": cells,
        "bounds": asked.query,
        "within": "cells",
        "exact": True,
        "snapped": asked.snapped,
        "cut": asked.cut,
        "numbers": numbers,
    }


def _said(release: Release, asked: Asked, selection: Any, confidence: float) -> dict[str, Any]:
    """Return the numbers of one selected query, and how it was answered."""
    grid = release.grid
    answers = release.answers(selection, confidence, estimates=True)
    found = {name: values[0].item() for name, values in answers.items()}
    outside = found["outside"]
    numbers: dict[str, Any] = {"count": found["count"], "outside": outside}
    if not release.covert:
        # Beyond the area nothing is known: a count of 0 there says nothing.
        read = {name: None if outside else found[name] for name in ("estimate", "low", "high")}
        numbers |= read | {"confidence": confidence}
    said = {
        "cells": None,
        "bounds": None,
        "snapped": asked.snapped,
        **{name: found[name] for name in ("within", "exact", "cut")},
    }
    if asked.labels is not None:
        said["labels"] = asked.labels
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
