"""What a release file holds, as plain arrays: release -> columns -> release.

Owns which values are kept, how they are laid on the rows of the file, the checksum over them,
and the checks that make columns a release again. It knows nothing of Parquet.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.errors import InputError, ReleaseFileError
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import Buckets, refuse_too_many
from dpregions.mechanisms.footprint.catalogue_text import catalogue_from_text, catalogue_to_text
from dpregions.mechanisms.footprint.choice import n_affordable
from dpregions.mechanisms.footprint.levels import MIX, Hierarchy
from dpregions.mechanisms.footprint.mechanism import Measurements, measurements_of
from dpregions.mechanisms.paper.sensitivity import euler_sensitivity
from dpregions.memory import LOADED, LOADED_BUCKET, LOADED_ENTRY, refuse_beyond
from dpregions.privacy.noise import scale_for
from dpregions.releases.published import Release
from dpregions.releases.statement import Statement, canonical

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.catalogue import Catalogue
    from dpregions.mechanisms.footprint.choice import Strategy

_EXACT = 1 << 53
"""Whole numbers up to this are floats."""


class TooLargeError(ReleaseFileError):
    """The release may be whole, but is more than this machine holds."""


class Entries(NamedTuple):
    """Lists on rows of the table, flat: the row of each entry, and its fields."""

    row: NDArray[np.int64]
    fields: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Columns:
    """What a release holds beside its statement; None where it has no such column."""

    count: NDArray[np.int64]
    estimate: NDArray[np.float64] | None
    bodies: Entries | None
    measured: Entries | None
    catalogue: str | None


def columns_of(release: Release) -> Columns:
    """Return a release's values in the file's types."""
    footprint, covert = release.method == "footprint", release.signed is None
    if (release.bodies is not None) != footprint or (release.measurements is not None) != (
        footprint and not covert
    ):
        raise InputError("this release lacks its bodies or measurements, and cannot be saved")
    estimate = None if covert else np.asarray(release.signed).ravel().astype(np.float64)
    if estimate is not None and not (estimate == np.asarray(release.signed).ravel()).all():
        raise InputError(f"an estimate beyond {_EXACT:,} cannot be saved exactly")
    bodies, measurements = release.bodies, release.measurements
    return Columns(
        release.counts.ravel(),
        estimate,
        None if bodies is None else _body_entries(bodies, release.grid),
        None if measurements is None else _measured_entries(measurements, release.grid),
        None if bodies is None else catalogue_to_text(bodies.catalogue),
    )


def _face(grid: Grid, row: NDArray[np.int64], col: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the table that holds a cell's face."""
    return 2 * row * grid.doubled_shape[1] + 2 * col


def _body_entries(bodies: Bodies, grid: Grid) -> Entries:
    tallied = bodies.tallied()
    fields: dict[str, NDArray[Any]] = {
        "pattern": tallied.pattern.astype(np.int32),
        "times": tallied.times,
    }
    return Entries(_face(grid, tallied.row, tallied.col), fields)


def _measured_entries(measurements: Measurements, grid: Grid) -> Entries:
    """Return noisy counts, each on the face at the lower left of its part's block."""
    measured = measurements.measured
    found = _measured_places(measured.hierarchy, measurements.strategy, grid)
    noisy = [v for v in (*measured.values, measured.mix) if v is not None]
    values = np.concatenate(noisy).astype(np.int64)
    order = np.lexsort((found.fields["group"], found.fields["level"], found.row))
    fields = {name: field[order] for name, field in (found.fields | {"value": values}).items()}
    return Entries(found.row[order], fields)


def _measured_places(tree: Hierarchy, strategy: Strategy, grid: Grid) -> Entries:
    """Return where the counts of the measured levels belong, level by level, part by part."""
    rows, levels, groups = [], [], []
    for level in _measured_levels(strategy):
        row, col, group = tree.anchors(level)
        rows.append(_face(grid, row, col))
        levels.append(np.full(len(row), level, np.int16))
        groups.append(group.astype(np.int32))
    fields: dict[str, NDArray[Any]] = {
        "level": np.concatenate(levels),
        "group": np.concatenate(groups),
    }
    return Entries(np.concatenate(rows), fields)


def _measured_levels(strategy: Strategy) -> list[int]:
    """Return the levels that were measured, the mix last.

    The first always is, before the others are chosen.
    """
    levels = [level for level, weight in enumerate(strategy.weights) if weight or level == 0]
    return levels + [MIX] * (strategy.mix > 0)


def checksum_of(statement: dict[str, Any], columns: Columns) -> str:
    """Return the SHA-256 of everything in the file but itself and what the grid decides."""
    digest = hashlib.sha256()

    def add(name: str, data: bytes | memoryview) -> None:
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)

    def add_array(name: str, values: NDArray[Any]) -> None:
        little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        add(f"{name} {little.dtype.str}", little.view(np.uint8).data)

    rest = {name: value for name, value in statement.items() if name != "checksum"}
    add("statement", canonical(rest).encode())
    add("catalogue", (columns.catalogue or "").encode())
    add_array("count", columns.count)
    if columns.estimate is not None:
        add_array("estimate", columns.estimate)
    for name, entries in (("bodies", columns.bodies), ("measured", columns.measured)):
        if entries is not None:
            add_array(f"{name} row", entries.row)
            for field, values in entries.fields.items():
                add_array(f"{name} {field}", values)
    return f"sha256:{digest.hexdigest()}"


def release_of(statement: Statement, columns: Columns) -> Release:
    """Return the release, once its values are such as a release may have."""
    grid, estimate = statement.grid, columns.estimate
    counts = columns.count.reshape(grid.doubled_shape)
    if (counts < 0).any() or counts.sum(dtype=np.float64) >= 2**62:
        raise ReleaseFileError("it has counts that are negative or out of range")
    if estimate is not None and not np.isfinite(estimate).all():
        raise ReleaseFileError("it has estimates that are not finite")
    signed: NDArray[Any] | None = None
    if estimate is not None:
        signed = estimate.reshape(grid.doubled_shape)
    _check_terms(statement)
    bodies = measurements = None
    if statement.fields["method"] == "paper":
        if columns.catalogue is not None:
            raise ReleaseFileError("it has a catalogue that its method has no use for")
        signed = None if signed is None else _whole(signed)
    else:
        if columns.catalogue is None or columns.bodies is None:
            raise ReleaseFileError("it lacks the catalogue of patterns")
        known = catalogue_from_text(columns.catalogue)
        bodies = _bodies(columns.bodies, known, grid, counts)
        if columns.measured is not None:
            measurements = _measurements(columns.measured, known, statement)
    return Release(
        **statement.fields, counts=counts, signed=signed, bodies=bodies, measurements=measurements
    )


def _check_terms(statement: Statement) -> None:
    """Refuse a sensitivity, or a number of shares, that the method cannot have had."""
    fields, grid = statement.fields, statement.grid
    unit, bound = fields["privacy_unit"], fields["max_diameter"]
    possible = {unit.sensitivity_factor}
    if fields["method"] == "paper":
        # The file has the float next to the bound that was enforced, which may be a fraction.
        near = (math.nextafter(bound, 0), bound, math.nextafter(bound, math.inf))
        spans = {grid.cells_spanned(length) for length in near}
        possible = {euler_sensitivity(k, unit.neighbours, *grid.shape) for k in spans}
        if len(fields["spending"]) != 1:
            raise ReleaseFileError("it spent in parts what its method spends at once")
    if fields["sensitivity"] not in possible:
        raise ReleaseFileError("its sensitivity is not that of its bound and neighbour relation")
    for _, share in fields["spending"]:
        scale_for(share, fields["sensitivity"])


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64]:
    if (np.abs(values) > _EXACT).any() or (values != np.rint(values)).any():
        raise ReleaseFileError("it has estimates that are no whole numbers")
    return values.astype(np.int64)


def _cells(entries: Entries, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    row, col = np.divmod(entries.row, grid.doubled_shape[1])
    if ((row & 1) | (col & 1)).any():
        raise ReleaseFileError("it has lists on rows that are no faces")
    return row >> 1, col >> 1


def _bodies(entries: Entries, known: Catalogue, grid: Grid, counts: NDArray[np.int64]) -> Bodies:
    row, col = _cells(entries, grid)
    pattern, times = entries.fields["pattern"].astype(np.int64), entries.fields["times"]
    good = (pattern >= 0) & (pattern < len(known)) & (times >= 1) & (times <= counts.max())
    if not good.all():
        raise ReleaseFileError("it has bodies out of range")
    again = (np.diff(entries.row) == 0) & (np.diff(pattern) <= 0)
    inside = (row + known.heights[pattern] <= grid.n_rows) & (
        col + known.widths[pattern] <= grid.n_cols
    )
    bodies = Bodies(known, pattern, row, col, times)
    if again.any() or not inside.all():
        raise ReleaseFileError("it has bodies out of order or beyond the area")
    if not np.array_equal(bodies.counts_on(*grid.shape), counts):
        raise ReleaseFileError("its counts are not those of its bodies")
    return bodies


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


def _measurements(entries: Entries, known: Catalogue, statement: Statement) -> Measurements:
    grid, strategy = statement.grid, statement.strategy
    assert strategy is not None
    _refuse_buckets(known, strategy, grid, len(entries.row))
    tree = Hierarchy.of(Buckets.of(known, strategy.alphabet, *grid.shape), strategy.levels)
    for coarse, fine, up in zip(tree.part, tree.part[1:], tree.parent, strict=False):
        if not np.array_equal(up[fine], coarse):
            raise ReleaseFileError("its levels do not refine each other")
    places = _measured_places(tree, strategy, grid)
    order = np.lexsort((places.fields["group"], places.fields["level"], places.row))
    same = np.array_equal(places.row[order], entries.row) and all(
        np.array_equal(places.fields[name][order], entries.fields[name])
        for name in ("level", "group")
    )
    if not same or (np.abs(entries.fields["value"]) > _EXACT).any():
        raise ReleaseFileError("its measurements are not those of its strategy")
    level, value = entries.fields["level"], entries.fields["value"]
    levels = _measured_levels(strategy)
    noisy = {i: value[level == i] for i in levels}
    shares = dict(zip(levels, (share for _, share in statement.fields["spending"]), strict=True))
    weights = {**dict(enumerate(strategy.weights)), MIX: strategy.mix}
    if len({shares[i].epsilon / weights[i] for i in levels if weights[i]}) > 1:
        raise ReleaseFileError("what it spent is not in proportion to its strategy's weights")
    return measurements_of(tree, strategy, noisy, shares, statement.fields["sensitivity"])
