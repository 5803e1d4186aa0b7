"""The footprint mechanism's columns in a release file: noisy counts, bodies, the catalogue.

Owns what of an outcome is kept and the checks that make it an outcome again. Reading trusts
nothing. It knows nothing of Parquet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import ReleaseFileError, TooLargeError
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.base import Columns, Entries, Layout
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import Buckets, refuse_too_many
from dpregions.mechanisms.footprint.catalogue_text import (
    LIMIT,
    catalogue_from_text,
    catalogue_to_text,
)
from dpregions.mechanisms.footprint.choice import n_affordable
from dpregions.mechanisms.footprint.levels import WHOLE, Hierarchy, Level
from dpregions.mechanisms.footprint.measuring import Measured, Measurement, Strategy
from dpregions.memory import LOADED, LOADED_BUCKET, LOADED_ENTRY, refuse_beyond

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.base import Held
    from dpregions.mechanisms.footprint.catalogue import Catalogue

Fields = dict[str, type[np.generic]]
_BODIES: Fields = {"pattern": np.int32, "witness": np.int16, "times": np.int64}
_MEASURED: Fields = {"level": np.int16, "group": np.int32, "value": np.int64}
_MOST_CORNERS = 100_000
_EXACT = 1 << 53
"""Whole numbers up to this are floats."""


def layout(*, covert: bool) -> Layout:
    """Return the columns of a file."""
    lists = {"bodies": _BODIES} if covert else {"bodies": _BODIES, "measured": _MEASURED}
    return Layout(lists, {"catalogue": LIMIT})


def columns_of(
    grid: Grid, bodies: Bodies, measured: Measured | None, strategy: Strategy | None
) -> Columns:
    """Return what a file keeps of an outcome."""
    lists = {"bodies": body_entries(bodies, grid)}
    if measured is not None and strategy is not None:
        lists["measured"] = _measured_entries(measured, strategy, grid)
    return Columns(lists, {"catalogue": catalogue_to_text(bodies.catalogue)})


def read(held: Held, grid: Grid) -> tuple[Bodies, Measured | None, Strategy | None, Any]:
    """Return the bodies of a file, and unless it is covert its measurements."""
    said, options = held.statement, held.options
    if options.keys() - {"area"} != (set() if said.covert else {"strategy"}):
        raise ReleaseFileError("it has a strategy without measurements, or the other way round")
    bodies = read_bodies(held, grid)
    area = _area(options["area"], grid) if "area" in options else None
    if said.covert:
        return bodies, None, None, area
    if held.signed is None:
        raise ReleaseFileError("it lacks the column of estimates")
    strategy = _strategy(options["strategy"], len(said.spending))
    return bodies, _measured(held, bodies.catalogue, grid, strategy), strategy, area


def read_bodies(held: Held, grid: Grid) -> Bodies:
    """Return the bodies of a file, of a catalogue of patterns, which its counts are of."""
    said = held.statement
    if said.sensitivity != said.privacy_unit.sensitivity_factor:
        raise ReleaseFileError("its sensitivity is not that of its bound and neighbour relation")
    if "catalogue" not in held.columns.texts:
        raise ReleaseFileError("it lacks the catalogue of patterns")
    bound = Bound.of(grid, said.max_diameter, said.oversize)
    known = catalogue_from_text(held.columns.texts["catalogue"], bound.steps)
    return _bodies(held.columns.lists["bodies"], known, grid, held.counts)


def face(grid: Grid, row: NDArray[np.int64], col: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the table that holds a cell's face."""
    return 2 * row * grid.doubled_shape[1] + 2 * col


def body_entries(bodies: Bodies, grid: Grid) -> Entries:
    """Return bodies, each on the face at the lower left of its footprint."""
    tallied = bodies.tallied()
    fields: dict[str, NDArray[Any]] = {
        "pattern": tallied.pattern.astype(np.int32),
        "witness": tallied.witness.astype(np.int16),
        "times": tallied.times,
    }
    return Entries(face(grid, tallied.row, tallied.col), fields)


def _measured_levels(strategy: Strategy) -> dict[int, Level]:
    """Return the partitions that were measured, by their numbers in the file.

    0 is the total, which always is; the others are numbered as in the strategy, from 1.
    """
    measured = {i: m.level for i, m in enumerate(strategy.measurements, start=1) if m.weight}
    return {0: WHOLE, **measured}


def _measured_places(tree: Hierarchy, strategy: Strategy, grid: Grid) -> Entries:
    """Return where the counts of what was measured belong, level by level, part by part."""
    rows, numbers, groups = [], [], []
    for number, level in _measured_levels(strategy).items():
        row, col, group = tree.anchors(level)
        rows.append(face(grid, row, col))
        numbers.append(np.full(len(row), number, np.int16))
        groups.append(group.astype(np.int32))
    fields: dict[str, NDArray[Any]] = {
        "level": np.concatenate(numbers),
        "group": np.concatenate(groups),
    }
    return Entries(np.concatenate(rows), fields)


def _in_order(entries: Entries) -> NDArray[np.int64]:
    return np.lexsort((entries.fields["group"], entries.fields["level"], entries.row))


def _measured_entries(measured: Measured, strategy: Strategy, grid: Grid) -> Entries:
    """Return noisy counts, each on the face at the lower left of its part's block."""
    found = _measured_places(measured.hierarchy, strategy, grid)
    noisy = [measured.noisy[level].values for level in _measured_levels(strategy).values()]
    values = np.concatenate(noisy).astype(np.int64)
    order = _in_order(found)
    fields = {name: field[order] for name, field in (found.fields | {"value": values}).items()}
    return Entries(found.row[order], fields)


def _measured(held: Held, known: Catalogue, grid: Grid, strategy: Strategy) -> Measured:
    said, entries = held.statement, held.columns.lists["measured"]
    _refuse_buckets(known, strategy, grid, len(entries.row))
    tree = Hierarchy.of(Buckets.of(known, strategy.alphabet, *grid.shape), strategy.levels)
    places = _measured_places(tree, strategy, grid)
    order = _in_order(places)
    same = np.array_equal(places.row[order], entries.row) and all(
        np.array_equal(places.fields[name][order], entries.fields[name])
        for name in ("level", "group")
    )
    value = entries.fields["value"]
    # Not by absolute values: the least whole number of 64 bits has none.
    if not same or ((value > _EXACT) | (value < -_EXACT)).any():
        raise ReleaseFileError("its measurements are not those of its strategy")
    levels = _measured_levels(strategy)
    noisy = {level: value[entries.fields["level"] == i] for i, level in levels.items()}
    spent = (share for _, share in said.spending)
    shares = dict(zip(levels.values(), spent, strict=True))
    if len({shares[at].epsilon / weight for at, weight in strategy.weights.items()}) > 1:
        raise ReleaseFileError("what it spent is not in proportion to its strategy's weights")
    return Measured.of(tree, noisy, shares, said.sensitivity)


def _refuse_buckets(known: Catalogue, strategy: Strategy, grid: Grid, n_entries: int) -> None:
    """Refuse more buckets than any release has, or than this machine holds."""
    n = refuse_too_many(known.side, *grid.shape)
    if strategy.alphabet == "patterns":
        n = n_affordable(known, *grid.shape)
        if not n:
            raise ReleaseFileError("it has more patterns than were ever measured on its grid")
    buckets = (LOADED_BUCKET + 16 * len(strategy.levels)) * n
    refuse_beyond(
        buckets + LOADED * grid.n_components + LOADED_ENTRY * n_entries,
        f"reading this release with {n:,} buckets",
        "read it on a larger one",
        TooLargeError,
    )


def _bodies(entries: Entries, known: Catalogue, grid: Grid, counts: NDArray[np.int64]) -> Bodies:
    row, col = np.divmod(entries.row, grid.doubled_shape[1])
    if ((row & 1) | (col & 1)).any():
        raise ReleaseFileError("it has lists on rows that are no faces")
    row, col = row >> 1, col >> 1
    pattern, witness = (entries.fields[name].astype(np.int64) for name in ("pattern", "witness"))
    times = entries.fields["times"]
    good = (pattern >= 0) & (pattern < len(known)) & (times >= 1) & (times <= counts.max())
    good &= (witness >= 0) & (witness < np.diff(known.starts)[np.where(good, pattern, 0)])
    if not good.all():
        raise ReleaseFileError("it has bodies out of range")
    number = known.starts[pattern] + witness
    again = (np.diff(entries.row) == 0) & (np.diff(number) <= 0)
    inside = (row + known.heights[pattern] <= grid.n_rows) & (
        col + known.widths[pattern] <= grid.n_cols
    )
    bodies = Bodies(known, pattern, witness, row, col, times)
    if again.any() or not inside.all():
        raise ReleaseFileError("it has bodies out of order or beyond the area")
    if not np.array_equal(bodies.counts_on(*grid.shape), counts):
        raise ReleaseFileError("its counts are not those of its bodies")
    return bodies


def options_of(strategy: Strategy | None, area: Any) -> dict[str, Any]:
    """Return what a statement says of an outcome: its strategy unless covert, its area if any."""
    said = {} if strategy is None else {"strategy": strategy_fields(strategy)}
    return said if area is None else said | {"area": _ring(area)}


def _ring(area: Any) -> list[list[float]]:
    corners: list[list[float]] = [list(corner) for corner in area.exterior.coords]
    return corners


def _area(found: Any, grid: Grid) -> Any:
    """Return the area of a statement, once it is a polygon inside the grid, or nearly."""
    import shapely

    good = isinstance(found, list) and 4 <= len(found) <= _MOST_CORNERS
    if not good or not all(
        type(corner) is list and [type(v) for v in corner] == [float, float] for corner in found
    ):
        raise ReleaseFileError("its area is not a ring of numbers")
    corners = np.array(found)
    low, high = np.add(np.reshape(grid.bounds, (2, 2)), [[-grid.cell_size], [grid.cell_size]])
    if not ((corners >= low) & (corners <= high)).all() or found[0] != found[-1]:
        raise ReleaseFileError("its area is not one inside its grid")
    area = shapely.Polygon(corners)
    if not area.is_valid or not area.area > 0:
        raise ReleaseFileError("its area is not a polygon")
    return area


def strategy_fields(strategy: Strategy) -> dict[str, Any]:
    """Return a strategy as JSON's values."""
    return {
        "alphabet": strategy.alphabet,
        "measurements": [measurement._asdict() for measurement in strategy.measurements],
    }


def _strategy(found: Any, n_spent: int) -> Strategy:
    """Return the strategy of a statement, once it is one that could have been followed."""
    fields = {"block": int, "letters": str, "weight": int}
    good = _has(found, {"alphabet": str, "measurements": list})
    if not good or not all(_has(one, fields) for one in found["measurements"]):
        raise ReleaseFileError("its strategy has other fields than it must")
    strategy = Strategy(
        found["alphabet"], tuple(Measurement(**one) for one in found["measurements"])
    )
    if 1 + len(strategy.weights) != n_spent:
        raise ReleaseFileError("what it spent is not what its strategy measures")
    return strategy


def _has(found: Any, fields: dict[str, type]) -> bool:
    """Whether a value is an object of just these fields, each of its kind."""
    return (
        isinstance(found, dict)
        and found.keys() == fields.keys()
        and all(type(found[name]) is kind for name, kind in fields.items())
    )
