"""`Grid`: the public domain of a histogram, and every boundary rule.

A grid is a public choice, never read off the data. This module owns what a grid may be, and
how the doubled array of faces, edges and vertices is laid out. The arithmetic of the rules
along one axis is in `lattice.py`; the rule for bodies, compiled, in `hull_kernel.py` (tested
equal to `Grid.snap`).

- Lines: line `i` is at the float `xmin + i * cell_size`, exactly, for everyone.
- Bodies: a line belongs to the cell on its right or top. Rows are settled before columns.
- Queries: a query with area is its interior; read to the nearest lattice step, so that a
  bound within half a step of a line lies on it. A query without area follows the body rule.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpregions.crs import crs_label, projected_crs, utm_zone
from dpregions.errors import (
    Argument,
    GridError,
    InputError,
    InputTypeError,
)
from dpregions.geometry.aligned import aligned, aligned_crs, refuse_unaligned
from dpregions.geometry.counted_grid import CountedGrid
from dpregions.geometry.lattice import REACH, STEPS, axis_range, axis_ranges, steps
from dpregions.lengths import exact, positive_length, quotient
from dpregions.memory import refuse_beyond

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from pyproj import CRS

    from dpregions.choices import Align


COUNT = 24
"""Bytes of memory per component of an exact histogram: the counts, what a build adds up in, and
the table that queries read. `benchmarks/memory.py` measures it."""


@dataclass(frozen=True, init=False, repr=False)
class Grid(CountedGrid):
    """A rectangle of square cells in a projected plane.

    Parameters
    ----------
    xmin, ymin : float
        The lower left corner of the area, in CRS units. Row 0 is at `ymin`.
    cell_size : float or str
        The side of a cell: a number in CRS units, or text such as ``"1km"`` or ``"2/3 km"``.
    n_rows, n_cols : int
        How many cells the area has along y and along x.
    crs : optional
        Anything `pyproj.CRS` reads; a projected one. None for a plane without one.

    Examples
    --------
    >>> from dpregions import Grid
    >>> Grid(0, 0, 1, n_rows=2, n_cols=3)
    Grid(xmin=0.0, ymin=0.0, cell_size=1.0, n_rows=2, n_cols=3)
    """

    xmin: float
    ymin: float
    cell_size: float
    n_rows: int
    n_cols: int
    crs: CRS | None = field(hash=False)  # equal CRS may differ in their own hash

    def __init__(
        self,
        xmin: float,
        ymin: float,
        cell_size: float | str | Fraction,
        n_rows: int,
        n_cols: int,
        crs: Any = None,
    ) -> None:
        crs = projected_crs(crs)
        cell = positive_length(cell_size, name="cell_size", crs=crs)
        values = {
            "xmin": _finite("xmin", xmin),
            "ymin": _finite("ymin", ymin),
            "cell_size": float(cell),
            "_exact_cell": cell,
            "n_rows": _whole("n_rows", n_rows),
            "n_cols": _whole("n_cols", n_cols),
            "crs": crs,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._refuse_absurd()

    @classmethod
    def around(
        cls,
        lon: float,
        lat: float,
        side: float | str | tuple[float | str, float | str],
        cell_size: float | str,
        *,
        crs: Any = None,
        align: Align | None = None,
    ) -> Self:
        """Make a grid centred on a place, in the place's UTM zone.

        Parameters
        ----------
        lon, lat : float
            The centre, in degrees (WGS 84).
        side, cell_size : float or str
            Lengths: numbers are metres (in units of `crs`, where one is given). A pair is the
            width and the height. Sides are rounded up to whole cells.
        crs : optional
            Another projected CRS to use instead of the UTM zone.
        align : {"round", "inspire"}, optional
            Lines at multiples of the cell, so that grids of one cell size fit each other: in the
            same CRS, or in that of the INSPIRE grids (EPSG:3035). The area grows to such lines.

        Examples
        --------
        >>> from dpregions import Grid
        >>> Grid.around(116.40, 39.91, side=("30km", "20km"), cell_size="1km").shape
        (20, 30)
        """
        from pyproj import Transformer

        lon, lat = _finite("lon", lon), _finite("lat", lat)
        if not -180 <= lon <= 180 or not -90 <= lat <= 90:
            raise GridError(
                f"lon={lon}, lat={lat} is no place on Earth: lon must be within -180..180 and "
                f"lat within -90..90 (are the two swapped?)",
                argument="lon" if not -180 <= lon <= 180 else "lat",
            )
        stated = aligned_crs(align, projected_crs(crs))
        crs = projected_crs(utm_zone(lon, lat)) if stated is None else stated
        cell = positive_length(cell_size, name="cell_size", crs=crs)
        refuse_unaligned(align, cell, crs)
        centre = Transformer.from_crs(4326, crs, always_xy=True).transform(lon, lat)
        if not all(map(math.isfinite, centre)):
            raise GridError(
                f"lon={lon}, lat={lat} cannot be projected to {crs.name}", argument="crs"
            )
        sides = side if isinstance(side, tuple | list) and len(side) == 2 else (side, side)
        places = []
        for middle, given in zip(centre, sides, strict=True):
            whole = positive_length(given, name="side", crs=crs)
            if cell > whole:
                raise GridError(
                    Argument("cell_size", repr(cell_size)),
                    " is larger than the area, ",
                    Argument("side", repr(given)),
                    ": use smaller cells",
                )
            if align is not None:
                low, n = aligned(exact(middle) - whole / 2, exact(middle) + whole / 2, cell)
                places.append((float(low), n))
                continue
            n = math.ceil(quotient(whole, cell))
            # Corners on a binary millimetre: lines are then exact for every whole cell size.
            places.append((round((middle - float(n * cell / 2)) * 1024) / 1024, n))
        (xmin, n_cols), (ymin, n_rows) = places
        return cls(xmin, ymin, cell, n_rows, n_cols, crs=crs)

    @classmethod
    def from_bounds(
        cls,
        xmin: float,
        ymin: float,
        xmax: float,
        ymax: float,
        *,
        cell_size: float | str | None = None,
        n_rows: int | None = None,
        n_cols: int | None = None,
        crs: Any = None,
        align: Align | None = None,
    ) -> Self:
        """Make the grid whose lower left corner is given and which covers the bounds.

        Parameters
        ----------
        xmin, ymin, xmax, ymax : float
            The area, in CRS units. It is a public choice: never take it from the data.
            Its upper right corner moves out to whole cells.
        cell_size : float or str
            The side of a cell: a number in CRS units, or text such as ``"1km"``.
        n_rows, n_cols : int
            How many cells the area has, in place of `cell_size`: the area is cut into squares
            whose side need not be a decimal number.
        crs : optional
            Anything `pyproj.CRS` reads; a projected one.
        align : {"round", "inspire"}, optional
            With `cell_size`: the area grows to lines at multiples of the cell, as in `around`.

        Examples
        --------
        >>> from dpregions import Grid
        >>> Grid.from_bounds(0, 0, 2.1, 1.4, cell_size=0.7).shape
        (2, 3)
        >>> Grid.from_bounds(0, 0, 20, 20, n_rows=30, n_cols=30).cells_spanned(2)
        3
        """
        crs = aligned_crs(align, projected_crs(crs))
        bounds = {"xmin": xmin, "ymin": ymin, "xmax": xmax, "ymax": ymax}
        x0, y0, x1, y1 = (exact(_finite(name, value)) for name, value in bounds.items())
        if x1 <= x0 or y1 <= y0:
            raise GridError(
                f"bounds {bounds} have no area: xmax > xmin and ymax > ymin needed",
                argument="xmax" if x1 <= x0 else "ymax",
            )
        height, width = y1 - y0, x1 - x0
        if cell_size is not None:
            if n_rows is not None or n_cols is not None:
                raise GridError(
                    *("give ", Argument("cell_size"), ", or ", Argument("n_rows"), " and "),
                    *(Argument("n_cols"), ", not both"),
                )
            cell = positive_length(cell_size, name="cell_size", crs=crs)
            if align is not None:
                refuse_unaligned(align, cell, crs)
                (left, n_cols), (low, n_rows) = aligned(x0, x1, cell), aligned(y0, y1, cell)
                return cls(float(left), float(low), cell, n_rows, n_cols, crs=crs)
            n_rows, n_cols = (math.ceil(quotient(side, cell)) for side in (height, width))
        elif align is not None:
            raise GridError(
                *(Argument("align"), " needs ", Argument("cell_size"), ", whose multiples it takes")
            )
        elif n_rows is not None and n_cols is not None:
            cell = _square(height, width, n_rows, n_cols)
        else:
            raise GridError(
                *("the size of cells is missing: give ", Argument("cell_size"), ", or "),
                *(Argument("n_rows"), " and ", Argument("n_cols")),
            )
        return cls(xmin, ymin, cell, n_rows, n_cols, crs=crs)

    @classmethod
    def needed(cls, domain: object, what: str, remedy: str = "") -> Grid:
        """Return a domain that is a grid; refuse any other, saying what needs one."""
        if not isinstance(domain, Grid):
            raise InputError(f"{what} needs a grid, and {domain!r} is not one{remedy}")
        return domain

    def _refuse_absurd(self) -> None:
        far = max(abs(self.xmin), abs(self.ymin), abs(self.xmax), abs(self.ymax))
        if not math.isfinite(far):
            raise GridError(f"{self!r} reaches beyond the largest number: use smaller values")
        size = self.cell_size  # text such as "1e-400m" is positive, and 0 as a float
        if not (size > 0 and math.isfinite(REACH * size) and math.isfinite(STEPS / size)):
            raise GridError(
                Argument("cell_size", str(size)),
                " leaves no room for coordinates in floating point: use another unit of length",
            )
        if self.cell_size < 4 * math.ulp(far):
            raise GridError(
                Argument("cell_size", str(size)),
                f" is too small beside coordinates up to {far}: neighbouring lines fall together; "
                f"use larger cells or a nearer origin",
            )
        refuse_beyond(
            COUNT * self.n_components, f"counting on {self.size_in_words}", error=GridError
        )

    @property
    def xmax(self) -> float:
        """The right side of the area."""
        return self.xmin + self.n_cols * self.cell_size

    @property
    def ymax(self) -> float:
        """The upper side of the area."""
        return self.ymin + self.n_rows * self.cell_size

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The area as ``(xmin, ymin, xmax, ymax)``."""
        return self.xmin, self.ymin, self.xmax, self.ymax

    def length(self, value: float | str, name: str = "length") -> Fraction:
        """Return a positive length in CRS units, exactly; text such as ``"2km"`` is read."""
        return positive_length(value, name=name, crs=self.crs)

    def cells_spanned(self, max_diameter: float | str) -> int:
        """Return k, how many cell sides a body of this diameter spans: ceil(B / d), exactly.

        Where B / d is a whole number up to float error (2 over 20/30), k is that number.
        """
        return math.ceil(self.in_cells(max_diameter, "max_diameter"))

    def in_cells(self, value: float | str, name: str = "length") -> Fraction:
        """Return a positive length in cell sides, both as they were written; see `quotient`."""
        cell: Fraction = self._exact_cell  # type: ignore[attr-defined]
        return quotient(self.length(value, name), cell)

    def cell_bounds(
        self, row0: int, row1: int, col0: int, col1: int
    ) -> tuple[float, float, float, float]:
        """Return the rectangle of the cells ``row0..row1 x col0..col1``, ends included.

        Of arrays, arrays of bounds.
        """
        ends = ((row0, row1, self.n_rows), (col0, col1, self.n_cols))
        if not all(_are_within(first, last, n) for first, last, n in ends):
            raise GridError(
                f"there are no cells in rows {row0}..{row1}, columns {col0}..{col1}: first and "
                f"last row lie within 0..{self.n_rows - 1}, columns within 0..{self.n_cols - 1}"
            )
        return (
            self.xmin + col0 * self.cell_size,
            self.ymin + row0 * self.cell_size,
            self.xmin + (col1 + 1) * self.cell_size,
            self.ymin + (row1 + 1) * self.cell_size,
        )

    def snap(self, x: ArrayLike, y: ArrayLike, *, nearest: bool = False) -> NDArray[np.int64]:
        """Return coordinates as integer lattice steps from the lower left corner.

        By floor as bodies are read, or to the nearest step as queries are. Exact on lines:
        a coordinate equal to line `i` is at ``i * 2**20``.

        Returns
        -------
        numpy.ndarray
            int64, shape ``(n, 2)``.
        """
        axes = ((np.asarray(x), self.xmin), (np.asarray(y), self.ymin))
        return np.stack([steps(v, origin, self.cell_size, nearest) for v, origin in axes], axis=-1)

    def cell_ranges(
        self,
        xmin: NDArray[np.float64],
        ymin: NDArray[np.float64],
        xmax: NDArray[np.float64],
        ymax: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Return the cells that query rectangles touch inside the area.

        Returns
        -------
        numpy.ndarray
            Rows ``row0, row1, col0, col1`` (ends included), shape ``(4, n)``; a rectangle
            wholly outside the area has ``row1 < row0`` or ``col1 < col0``.
        """
        area = (xmax > xmin) & (ymax > ymin)
        rows = axis_ranges(ymin, ymax, area, self.ymin, self.cell_size, self.n_rows)
        cols = axis_ranges(xmin, xmax, area, self.xmin, self.cell_size, self.n_cols)
        return np.stack([*rows, *cols])

    def cell_range(
        self, xmin: float, ymin: float, xmax: float, ymax: float
    ) -> tuple[int, int, int, int]:
        """Return what `cell_ranges` does, for one rectangle, without the cost of arrays."""
        area = xmax > xmin and ymax > ymin
        return (
            *axis_range(ymin, ymax, area, self.ymin, self.cell_size, self.n_rows),
            *axis_range(xmin, xmax, area, self.xmin, self.cell_size, self.n_cols),
        )

    def to_json(self) -> str:
        """Return the grid as JSON text; `from_json` reads it back to an equal grid."""
        crs = None if self.crs is None else self.crs.to_json_dict()
        fields: dict[str, Any] = {"dpregions": "grid", "version": 1}
        cell: Fraction = self._exact_cell  # type: ignore[attr-defined]
        if cell != exact(self.cell_size):
            fields["exact_cell_size"] = str(cell)
        names = ("xmin", "ymin", "cell_size", "n_rows", "n_cols")
        return json.dumps(fields | {n: getattr(self, n) for n in names} | {"crs": crs})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the grid that `to_json` wrote."""
        names = {"xmin", "ymin", "cell_size", "n_rows", "n_cols", "crs"}
        try:
            fields = json.loads(text)
        except (json.JSONDecodeError, TypeError) as error:
            raise GridError(f"this is not a grid's JSON: {error}", argument="text") from None
        if not isinstance(fields, dict) or fields.get("dpregions") != "grid":
            raise GridError('this is not a grid\'s JSON: no field "dpregions": "grid"')
        if fields.get("version") != 1:
            raise GridError(
                f"grid JSON of version {fields.get('version')!r}; this release reads version 1"
            )
        if missing := sorted(names - fields.keys()):
            raise GridError(f"grid JSON lacks {', '.join(missing)}")
        given = {name: fields[name] for name in names}
        cell = _fraction(fields.get("exact_cell_size"))
        if cell is not None and float(cell) == given["cell_size"]:
            given["cell_size"] = cell
        return cls(**given)

    def __repr__(self) -> str:
        """Return the constructor's call, the CRS by its short name."""
        fields = f"xmin={self.xmin}, ymin={self.ymin}, cell_size={self.cell_size}"
        crs = "" if self.crs is None else f", crs={crs_label(self.crs)!r}"
        return f"Grid({fields}, n_rows={self.n_rows}, n_cols={self.n_cols}{crs})"


def _fraction(text: object) -> Fraction | None:
    """Return a fraction written as text by `str`, None where there is none."""
    # No other text that Fraction reads: "1e999999999" would take all time and memory.
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,400}(/0*[1-9]\d{0,400})?", text):
        return None
    return Fraction(text)


def _square(height: Fraction, width: Fraction, n_rows: int, n_cols: int) -> Fraction:
    """Return the side of the squares that so many rows and columns cut an area into."""
    across, up = width / _whole("n_cols", n_cols), height / _whole("n_rows", n_rows)
    if quotient(across, up) != 1:
        raise GridError(
            f"n_rows={n_rows} and n_cols={n_cols} make cells {float(across):g} wide and "
            f"{float(up):g} high, which are not squares: choose them in the proportions of the "
            f"area, {float(height):g} high and {float(width):g} wide, or give cell_size"
        )
    return across


def _are_within(first: Any, last: Any, n: int) -> bool:
    """Whether rows or columns are there, from the first to the last; of arrays, all of them."""
    if isinstance(first, int) and isinstance(last, int):  # without the cost of arrays
        return 0 <= first <= last < n
    first, last = np.asarray(first), np.asarray(last)
    return bool(np.all((first >= 0) & (last >= first) & (last < n)))


def _finite(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise GridError(
            Argument(name), " is beyond the largest number: use a smaller one"
        ) from None
    except (TypeError, ValueError):
        raise InputTypeError(Argument(name), f" must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise GridError(Argument(name), f" must be finite, got {number}")
    return number


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputTypeError(Argument(name), f" must be a whole number, got {value!r}")
    number = value.__index__()
    if number < 1:
        raise GridError(Argument(name), f" must be at least 1, got {number}")
    if number >= 1 << 53:
        raise GridError(Argument(name), " must be below 2**53: use larger cells or a smaller area")
    return int(number)
