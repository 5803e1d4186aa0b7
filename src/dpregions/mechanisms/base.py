"""The seam: what a mechanism is, from public terms to a private outcome.

A `Mechanism` is a public record of its options. `prepare` settles and refuses everything that
public values decide. A `Tally` is secret: threads, files and machines each count into one of
their own, and tallies add up in any order. `publish` is the only line where a secret tally meets
noise. An `Outcome` is private: what was published, how far off it may be, and its columns in a
release file. Nothing outside a mechanism's package asks which mechanism it has. One of your own is
released as ``release(method=Mine())``; its files are read once it is in `known.MECHANISMS`
(docs/how-to/mechanism.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from dpregions.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.choices import Neighbours
    from dpregions.geometry.cells import Selection
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.layers import Layer
    from dpregions.geometry.outlines import Bound, Outlines
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource
    from dpregions.releases.statement import Statement


class Tally(Protocol):
    """Counts of regions on their way to noise. Secret."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes at most: so many threads as have room for theirs count."""

    def add(self, outlines: Outlines) -> None:
        """Count more regions, one for each user."""

    def __iadd__(self, other: Any) -> Self:
        """Add the tally of other users."""


class MarkedTally(Tally, Protocol):
    """A tally that keeps only a few whole numbers of each region, the same number of all. Secret.

    Engines hold these for each user until all of a user's regions were seen, and send them from
    machine to machine. For a tally without marks this machine holds outlines instead.
    """

    @property
    def n_marks(self) -> int:
        """How many numbers it keeps of a region."""

    def marks(self, outlines: Outlines) -> NDArray[np.int64]:
        """Return what each region adds, one row each; of an empty outline anything."""

    def add_marks(self, marks: NDArray[np.int64], times: NDArray[np.int64] | None = None) -> None:
        """Count regions by their marks, each so many times: as `add` does with their outlines."""


class SparseTally(Tally, Protocol):
    """A tally that can be taken apart: numbered entries, which machines sum one by one. Secret."""

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of entries that are not 0, and their values."""

    def add_entries(self, index: NDArray[np.int64], value: NDArray[np.int64]) -> None:
        """Add entries of other users."""


class Cost(NamedTuple):
    """What a release takes at most, from public values alone."""

    draws: int
    """Of noise."""
    memory: int
    """Bytes, from counting to its saved file; what is held of users comes on top."""
    file: int
    """Bytes of the release file, about."""


class Prepared(Protocol):
    """A mechanism with everything settled that public values decide.

    One that has `cost` tells what a release takes before anything is spent.
    """

    @property
    def sensitivity(self) -> int:
        """How far neighbouring data move what each measurement counts (L1)."""

    def tally(self) -> Any:
        """Return an empty `Tally`."""

    def publish(self, tally: Any, noise: NoiseSource) -> Outcome:
        """Return what is published of a tally: the only line where it meets noise."""


class Mechanism(Protocol):
    """A frozen record of a mechanism's public options."""

    name: ClassVar[str]
    """The word for it: in `release`, on the command line, in a file."""

    # One that declares `half_for_one: ClassVar[bool] = True` promises more of what it prepares for
    # replace-one: with one region more or fewer, every result is as likely up to exp(epsilon / 2).
    # Whoever draws noise for twice the sensitivity of one region may. Groups that users may change
    # between then cost as much as one of them; of other mechanisms the costs add up.

    def prepare(
        self, grid: Domain, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> Prepared:
        """Settle what public values decide; refuse what cannot work.

        A region touches at most ``grid.most_touched(bound)`` components. Under replace-one two
        regions differ between neighbours: `PrivacyUnit(neighbours).sensitivity_factor`.
        """

    @classmethod
    def layout(cls, *, covert: bool) -> Layout:
        """Return the columns that a file has beside those of every release."""

    @classmethod
    def outcome(cls, held: Held) -> Outcome:
        """Return the outcome that a file holds, once each value is one that it may have."""


@dataclass(frozen=True)
class Layout:
    """The columns and texts of a mechanism in a release file."""

    lists: Mapping[str, Mapping[str, type[np.generic]]] = field(default_factory=dict)
    """Columns of lists of records: the fields of each and their types."""
    texts: Mapping[str, int] = field(default_factory=dict)
    """Texts in the file's metadata, and the most characters that each may have."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Lists on rows of the file's table, flat: the row of each entry, and its fields."""

    row: NDArray[np.int64]
    """Of the table, which has the components of the doubled array row by row."""
    fields: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Columns:
    """What a mechanism keeps in a file, by the names of its `Layout`."""

    lists: Mapping[str, Entries] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Held:
    """What a file holds. As read, the statement is checked and the rest is not."""

    statement: Statement
    counts: NDArray[np.int64]
    signed: NDArray[np.float64] | None
    """None in a covert release, and where it follows from the mechanism's columns."""
    options: Mapping[str, Any]
    """What `Outcome.options` gave, as JSON brings it back."""
    columns: Columns


@dataclass(frozen=True, eq=False)
class Outcome(ABC):
    """What a mechanism published. Private.

    Attributes
    ----------
    counts : numpy.ndarray
        Whole numbers >= 0 for every face, edge and vertex (read only).
    signed : numpy.ndarray or None
        The signed estimate of every component (read only); None where it was left out, or where
        `estimates` makes it.
    spending : tuple
        What was measured and with which share of epsilon; they sum to it exactly.
    """

    answers_shapes: ClassVar[bool] = False
    """Whether queries may be answered as drawn; else they are about the cells they touch."""

    grid: Domain
    counts: NDArray[np.int64]
    signed: NDArray[Any] | None
    spending: tuple[tuple[str, Budget], ...]

    def __post_init__(self) -> None:
        for name in ("counts", "signed"):
            if getattr(self, name) is None:
                continue
            array = np.array(getattr(self, name))
            if name == "counts" and (array.dtype.kind not in "iu" or (array < 0).any()):
                raise InputError("counts must be whole numbers of 0 or more")
            if array.shape != self.grid.counts_shape:
                raise InputError(
                    f"{name} must have shape {self.grid.counts_shape} on {self.grid!r}, "
                    f"got {array.shape}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the constructor: arrays come back checked and read only."""
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        return partial(type(self), **given), ()

    @property
    def is_covert(self) -> bool:
        """Whether it was published without its signed part."""
        return self.signed is None

    def estimates(self) -> NDArray[Any] | None:
        """Return the signed estimate of every component; None in a covert outcome.

        An outcome whose `signed` follows from its other parts may make it here, when it is asked.
        """
        return self.signed

    def covert(self) -> Self:
        """Return the outcome without its signed part: no estimates and no intervals."""
        return replace(self, signed=None)

    def count(self, selection: Selection) -> NDArray[np.int64]:
        """Return the count of each selected query."""
        return selection.sums(self.count_table)

    def estimate(self, selection: Selection) -> NDArray[Any]:
        """Return the signed estimate of each selected query."""
        return selection.sums(self.signed_table)

    def estimate_of(self, cells: tuple[int, int, int, int]) -> Any:
        """Return the same of one rectangle of cells, without the cost of arrays."""
        return self.signed_table.rectangle(*cells)

    @cached_property
    def count_table(self) -> Any:
        """The counts, ready to be summed over queries."""
        return self.grid.table(self.counts)

    @cached_property
    def signed_table(self) -> Any:
        """The same of `estimates`; of an outcome that has them."""
        estimates = self.estimates()
        assert estimates is not None
        return self.grid.table(estimates)

    def bounds(self, selection: Selection, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends of an interval for each selected query: true counts are never negative.

        Takes an outcome that has a signed part.
        """
        middle, width = self.estimate(selection), self.half_widths(selection, confidence)
        return np.maximum(middle - width, 0), np.maximum(middle + width, 0)

    def worst_bounds(
        self, selection: Selection, confidence: float
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return `bounds` that hold whatever detail was not measured; here all was measured."""
        return self.bounds(selection, confidence)

    def readings(
        self, selection: Selection, confidence: float
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return what `estimate` and `bounds` do, for who wants both."""
        return self.estimate(selection), *self.bounds(selection, confidence)

    def reading_of(
        self, cells: tuple[int, int, int, int], confidence: float
    ) -> tuple[float, float, float] | None:
        """Return the same of one rectangle of cells; None: there is no short cut."""
        return None

    @abstractmethod
    def half_widths(self, selection: Selection, confidence: float) -> NDArray[Any]:
        """Return how far the true count of each selected query is from its estimate, at most."""

    @abstractmethod
    def deviations(self, selection: Selection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the standard deviations of each estimate: from noise, and from shapes."""

    def to_regions(self) -> Layer:
        """Return the synthetic regions that `counts` are the exact histogram of."""
        raise PrivacyError("this release is not known to be the histogram of any set of regions")

    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the corners of distinct bodies, where each one's start, and how often it is."""
        raise PrivacyError("this release is not known to be the histogram of any set of regions")

    def on(self, grid: Domain) -> Outcome:
        """Return what this outcome says of another domain."""
        raise PrivacyError(
            "this release is not known to be the histogram of any set of regions, so it can be "
            "asked on its own cells alone: release by footprints, which publish regions"
        )

    def options(self) -> dict[str, Any]:
        """Return the mechanism's options and what it chose, as JSON's values."""
        return {}

    def columns(self) -> Columns:
        """Return what a file keeps beside the statement, counts and estimates."""
        return Columns()
