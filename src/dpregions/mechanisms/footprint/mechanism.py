"""The footprint mechanism: noise on footprints instead of on the Euler histogram.

A region touches many components but has one footprint, so a histogram of footprints has
sensitivity 1 where the Euler histogram has (2k+1)**2. The sequence: a noisy total; a choice of
what else to measure, from public parameters and that total; noisy counts of the chosen levels, or
of a tree that opens where they are large; two fits to them; bodies that realise the non-negative
one. Exact counts are seen in `PreparedFootprint._measured` and in `tree.meter` alone, and noise is
added there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from dpregions.choices import Favour, refuse_other
from dpregions.errors import Argument, InputTypeError, PrivacyError
from dpregions.geometry.grid import Grid
from dpregions.mechanisms.base import Cost, Held, Layout
from dpregions.mechanisms.footprint import codec
from dpregions.mechanisms.footprint.bases import PreparedBases
from dpregions.mechanisms.footprint.bodies import make_bodies, refuse_coarse_floats
from dpregions.mechanisms.footprint.buckets import (
    Alphabet,
    Buckets,
    can_be_listed,
    refuse_too_many,
)
from dpregions.mechanisms.footprint.catalogue import Catalogue, catalogue
from dpregions.mechanisms.footprint.choice import (
    choose,
    may_measure_shapes,
    n_affordable,
)
from dpregions.mechanisms.footprint.fits import combine
from dpregions.mechanisms.footprint.levels import SHAPES, WHOLE, Hierarchy
from dpregions.mechanisms.footprint.measuring import Measured, Strategy, measure
from dpregions.mechanisms.footprint.outcome import FootprintOutcome
from dpregions.mechanisms.footprint.reading import Reading
from dpregions.mechanisms.footprint.sizes import MOST_SIDE
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.mechanisms.footprint.tree import codec as tree_codec
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from dpregions.mechanisms.footprint.tree.outcome import TreeOutcome
from dpregions.mechanisms.footprint.tree.prepared import PreparedTree
from dpregions.mechanisms.footprint.tree.reading import TreeReading
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.workload import ALL_SIZES, Workload
from dpregions.memory import BUCKET, COMPONENT, FILE, PART, refuse_beyond
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.choices import Neighbours
    from dpregions.geometry.bases import Base
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.outlines import Bound
    from dpregions.privacy.noise import NoiseSource

MOST_NOISE = 1_000_000
"""Largest scale of the total's noise: it is made up of bodies, one by one."""
FEW_CELLS_WIDE = 3
"""Regions up to so many cells wide are laid out for as fine ones where a tree is measured."""
LEAST_STEPS = 128
"""Smallest bound in lattice steps that the catalogue has witnesses for."""


@dataclass(frozen=True)
class Footprint:
    """Noise on footprints, then bodies that are consistent by construction.

    Parameters
    ----------
    workload : sequence or geometries, optional
        Sizes of the rectangles that matter, each a side or a pair (width, height), numbers or
        text ("2km"); or polygons (districts) in the grid's CRS or with one of their own. The budget
        is laid out for them. By default all sizes matter alike.
    favour : {"people", "places"}
        Whether it is laid out for queries where people are as well, or for all places alike.
    strategy : Strategy or Adaptive, optional
        What to measure, fixed beforehand; by default it is chosen for the noisy total, and on
        grids of more than 64 cells a side it is an adaptive tree.
    tuning : Tuning, optional
        For calibration and tests: other numbers than today's. A file does not keep them: read
        back, intervals are by today's.
    """

    name: ClassVar[str] = "footprint"
    half_for_one: ClassVar[bool] = True

    workload: Any = None
    favour: Favour = "people"
    strategy: Strategy | Adaptive | None = None
    tuning: Tuning = field(default=TUNING, repr=False)

    def __post_init__(self) -> None:
        refuse_other(self.favour, Favour, "favour")
        if not isinstance(self.strategy, Strategy | Adaptive | None):
            raise InputTypeError(
                Argument("strategy"), f" must be a Strategy or Adaptive, got {self.strategy!r}"
            )
        if not isinstance(self.tuning, Tuning):
            raise InputTypeError(Argument("tuning"), f" must be a Tuning, got {self.tuning!r}")

    @overload
    def prepare(
        self, grid: Grid, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> PreparedFootprint | PreparedTree: ...

    @overload
    def prepare(
        self, grid: Domain, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> PreparedFootprint | PreparedTree | PreparedBases: ...

    def prepare(
        self, grid: Domain, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> PreparedFootprint | PreparedTree | PreparedBases:
        """Settle budget shares and the catalogue; refuse what cannot be measured or held."""
        bases = grid.bases(bound)
        share = total_share(bases[0].grid, self.tuning)
        first, rest = budget.split(share, 1 - share)
        factor = PrivacyUnit(neighbours).sensitivity_factor
        if isinstance(grid, Grid) and self._is_for_a_tree(bases[0]):
            return self._tree_on(bases[0], first, rest, factor)
        prepared = [self._on(bases[0], first, rest, factor, 0)]
        for finer in bases[1:]:
            held = sum(one.tally().nbytes for one in prepared)
            try:
                prepared.append(self._on(finer, first, rest, factor, held))
            except PrivacyError:  # more than can be measured: coarser ones will do
                break
        if len(bases) == 1:
            return prepared[0]
        for base in bases:
            refuse_coarse_floats(base.grid)  # or its bodies could not be counted on the cells
        made = PreparedBases(tuple(prepared), bases[: len(prepared)], self.tuning)
        if self.tuning != TUNING:
            made.try_out()
        return made

    def _is_for_a_tree(self, base: Base) -> bool:
        """Whether public values alone say that a tree is measured: so they do on large grids."""
        if self.strategy is not None:
            return isinstance(self.strategy, Adaptive)
        shape, side = base.grid.shape, _side(base)
        return max(shape) > self.tuning.rehearsed_side or not can_be_listed(side, *shape)

    def _tree_on(self, base: Base, first: Budget, rest: Budget, factor: int) -> PreparedTree:
        """Settle everything for a tree on a grid; refuse what cannot be measured or held."""
        grid, side = base.grid, _side(base)
        how = self.strategy
        if not isinstance(how, Adaptive):
            t = self.tuning
            detail = t.fine_detail if base.bound.k <= FEW_CELLS_WIDE else t.coarse_detail
            how = Adaptive(detail, t.tree_children)
        _refuse_hopeless(first, rest, factor, base.bound)
        if side > MOST_SIDE:
            raise PrivacyError(
                f"regions on these cells are up to {side} cells wide, more than {MOST_SIDE}: use "
                f"larger cells or a smaller ",
                Argument("max_diameter"),
            )
        refuse_beyond(
            COMPONENT * grid.n_components + PART * how.most_parts,
            f"a release by a tree of up to {how.most_parts:,} parts on {grid.size_in_words}",
            ("use larger cells or a smaller area, or a Footprint whose ", Argument("strategy"),
             " is Adaptive with a smaller most_parts"),
            PrivacyError,
        )  # fmt: skip
        Workload.of(self.workload, grid)  # refuses what is not one
        listed = can_be_listed(side, 1, 1)
        known = catalogue(side, base.bound.steps, self.tuning) if listed else None
        made = PreparedTree(
            grid, base.bound.steps, side, first, rest, factor, how, known, self.tuning
        )
        made.try_out()
        return made

    def _on(
        self, base: Base, first: Budget, rest: Budget, factor: int, held: int
    ) -> PreparedFootprint:
        """Settle everything for one grid, beside so many bytes that are held already."""
        grid, bound, side = base.grid, base.bound, _side(base)
        workload = Workload.of(self.workload, grid)
        if isinstance(self.strategy, Adaptive):
            raise PrivacyError("a tree is measured on a grid, not for a partition's cells")
        _refuse_hopeless(first, rest, factor, bound)
        n_sizes = refuse_too_many(side, *grid.shape)
        known = catalogue(side, bound.steps, self.tuning)
        # Whether shapes are measured is decided after the debit: both must fit before it.
        _refuse_beyond_memory(grid, max(n_sizes, n_affordable(known, *grid.shape)), held)
        trees = base.area is None
        prepared = PreparedFootprint(
            grid, bound.steps, first, rest, factor, known, self.strategy, workload, self.favour,
            trees, self.tuning,
        )  # fmt: skip
        # What is chosen after the debit must work: a strategy or a tuning of one's own is tried.
        if self.strategy is not None or self.tuning != TUNING:
            prepared.try_out()
        return prepared

    @classmethod
    def layout(cls, *, covert: bool) -> Layout:
        """Return bodies, noisy counts unless covert, and the catalogue."""
        return codec.layout(covert=covert)

    @classmethod
    def outcome(cls, held: Held) -> FootprintOutcome:
        """Return the outcome of a file."""
        said = held.statement
        grid = Grid.needed(said.rows, "the footprint mechanism")
        if tree_codec.is_of_a_tree(held.options):
            found, grown, how = tree_codec.read(held, grid)
            found = replace(found, catalogue=grown.shaped(found.catalogue))
            read = TreeReading(grown)
            return TreeOutcome(grid, held.counts, None, said.spending, found, read, how)
        bodies, measured, strategy, area = codec.read(held, grid)
        reading = None if measured is None else Reading(measured)
        return FootprintOutcome(
            grid, held.counts, held.signed, said.spending, bodies, reading, strategy, area
        )


@dataclass(frozen=True, eq=False)
class PreparedFootprint:
    """What is settled before a region is looked at: budget, sensitivity, catalogue."""

    grid: Grid
    bound: int
    """In lattice steps."""
    first: Budget
    """For the total."""
    rest: Budget
    """For what is chosen after it."""
    sensitivity: int
    """Of every measurement: 2 under replace-one."""
    known: Catalogue
    fixed: Strategy | None
    workload: Workload = ALL_SIZES
    favour: Favour = "people"
    trees: bool = True
    """Whether an adaptive tree may be chosen."""
    tuning: Tuning = TUNING

    def cost(self) -> Cost:
        """Return what a release takes where every bucket of the finest alphabet is measured."""
        buckets, components = len(self._finest), self.grid.n_components
        memory = COMPONENT * components + BUCKET * buckets
        return Cost(2 * buckets, memory, FILE * (buckets + components))  # with levels above

    @property
    def laid_out_for(self) -> str:
        """The queries that the budget is laid out for, in words."""
        if self.fixed is not None:
            return ""
        where = {"people": "where people are and everywhere", "places": "everywhere alike"}
        return f"{self.workload.in_words()}, {where[self.favour]}"

    def tally(self) -> FootprintTally:
        """Return an empty tally, of the finest alphabet that may be measured."""
        return FootprintTally(self._finest)

    @cached_property
    def _finest(self) -> Buckets:
        if self.fixed is not None:
            return self._buckets(self.fixed.alphabet)
        shapes = may_measure_shapes(self.known, *self.grid.shape, self.tuning)
        return self._buckets("patterns" if shapes else "sizes")

    def _buckets(self, alphabet: Alphabet) -> Buckets:
        return Buckets.of(self.known, alphabet, *self.grid.shape)

    def strategy(self, n_regions: float) -> Strategy | Adaptive:
        """Return what to measure, given a total that is noisy or public."""
        if self.fixed is not None:
            return self.fixed
        return choose(
            self.known,
            *self.grid.shape,
            epsilon=float(self.rest),
            n_regions=n_regions,
            spent=float(self.first),
            factor=self.sensitivity,
            workload=self.workload,
            favour=self.favour,
            trees=self.trees,
            tuning=self.tuning,
        )

    def try_out(self) -> None:
        """Refuse a strategy that cannot be measured on this grid, or whose shares are too small."""
        try:
            strategy = self.strategy(0.0)
        except (ArithmeticError, LookupError, ValueError) as error:
            raise PrivacyError(
                f"no strategy can be chosen with this tuning ({type(error).__name__})"
            ) from error
        if isinstance(strategy, Adaptive):
            self._as_tree(strategy).try_out()
            return
        shapes = strategy.alphabet == "patterns"
        if shapes and not n_affordable(self.known, *self.grid.shape):
            raise PrivacyError(
                "shapes cannot be measured on so many cells: use a strategy of sizes"
            )
        self._tree(strategy)
        for share in strategy.shares(self.first, self.rest).values():
            scale_for(share, self.sensitivity)

    def with_strategy(self, strategy: Strategy | Adaptive) -> PreparedFootprint | PreparedTree:
        """Return the same with what to measure fixed."""
        if isinstance(strategy, Adaptive):
            return self._as_tree(strategy)
        return replace(self, fixed=strategy)

    def _as_tree(self, how: Adaptive) -> PreparedTree:
        """Return the same, where a tree is measured."""
        return PreparedTree(
            self.grid, self.bound, self.known.side, self.first, self.rest, self.sensitivity, how,
            self.known, self.tuning,
        )  # fmt: skip

    def _tree(self, strategy: Strategy) -> Hierarchy:
        if strategy is self.fixed:
            return self._fixed_tree
        return Hierarchy.of(self._buckets(strategy.alphabet), strategy.levels)

    @cached_property
    def _fixed_tree(self) -> Hierarchy:
        """Of the fixed strategy, made once: rehearsals publish again and again."""
        assert self.fixed is not None
        return Hierarchy.of(self._buckets(self.fixed.alphabet), self.fixed.levels)

    def measured_total(self, tally: FootprintTally, noise: NoiseSource) -> NDArray[np.int64]:
        """Return the noisy number of regions."""
        return noise.add(
            np.array([tally.total], np.int64), epsilon=self.first, sensitivity=self.sensitivity
        )

    def _measured(
        self,
        strategy: Strategy,
        total: NDArray[np.int64],
        tally: FootprintTally,
        noise: NoiseSource,
    ) -> Measured:
        """Return the noisy total with what is chosen for it, measured."""
        tree = self._tree(strategy)
        shares = strategy.shares(self.first, self.rest)
        exact = tally.counts(tree.buckets)
        noisy = measure(tree, exact, tally.shapes, shares, self.sensitivity, noise)
        noisy = {WHOLE: total, **noisy}
        return Measured.of(tree, noisy, shares, self.sensitivity)

    def publish(self, tally: FootprintTally, noise: NoiseSource) -> FootprintOutcome:
        """Measure with noise; from there on there are only noisy counts."""
        return self.publish_beside(self.measured_total(tally, noise), tally, noise)

    def publish_beside(
        self, total: NDArray[np.int64], tally: FootprintTally, noise: NoiseSource
    ) -> FootprintOutcome:
        """Measure the rest, where the total is measured already."""
        strategy = self.strategy(float(total[0]))
        if isinstance(strategy, Adaptive):
            return self._as_tree(strategy).publish_beside(total, tally, noise)
        return self.post_process(strategy, self._measured(strategy, total, tally, noise))

    def post_process(self, strategy: Strategy, measured: Measured) -> FootprintOutcome:
        """Fit the noisy counts and make bodies of them."""
        reading = Reading(measured, self.tuning)
        tree = reading.measured.hierarchy
        bodies = make_bodies(tree.buckets, reading.held)
        shares = strategy.shares(self.first, self.rest)
        return FootprintOutcome(
            grid=self.grid,
            counts=bodies.counts_on(*self.grid.shape),
            signed=tree.buckets.expand(reading.fitted),
            spending=tuple((tree.describe(level), share) for level, share in shares.items()),
            bodies=bodies,
            reading=reading,
            strategy=strategy,
        )

    # What rehearsals ask of a fixed strategy.

    @property
    def n_buckets(self) -> int:
        """How many buckets get noise."""
        return len(self._fixed_tree.buckets)

    def expected_counts(self, tally: FootprintTally, noise: NoiseSource) -> NDArray[np.float64]:
        """Return about what `publish` gives as counts, without making bodies one by one."""
        assert self.fixed is not None
        total = self.measured_total(tally, noise)
        reading = Reading(self._measured(self.fixed, total, tally, noise), self.tuning)
        return reading.measured.hierarchy.buckets.expand(reading.held)

    def total_variances(self) -> tuple[float, float]:
        """Return the variance of the noisy total, by itself and after the fit."""
        assert self.fixed is not None
        tree, shares = self._fixed_tree, self.fixed.shares(self.first, self.rest)
        empty = np.zeros(len(tree.buckets), np.int64)
        nothing = {
            level: np.zeros(tree.n_parts(level), np.int64)
            if level == SHAPES
            else tree.sums(level, empty)
            for level in shares
        }
        measured = Measured.of(tree, nothing, shares, self.sensitivity)
        return measured.noisy[WHOLE].variance, float(combine(measured)[1][0][0])


def total_share(grid: Grid, tuning: Tuning = TUNING) -> Fraction:
    """Return the share of the budget for the total, which the choice of levels rests on.

    One over the square root of the number of cells: the total is then as precise as the sum
    of all cells of a plain histogram of points at the whole budget.
    """
    share = Fraction(1, math.isqrt(grid.n_rows * grid.n_cols))
    return min(max(share, tuning.least_total), tuning.most_total)


def _side(base: Base) -> int:
    """Return how many cells wide a region's footprint is at most."""
    return min(base.bound.k + 1, max(base.grid.shape))


def _refuse_beyond_memory(grid: Grid, n_buckets: int, held: int) -> None:
    """Refuse more buckets and components than this machine holds."""
    refuse_beyond(
        COMPONENT * grid.n_components + BUCKET * n_buckets + held,
        f"a release by footprints on {grid.size_in_words} with {n_buckets:,} buckets",
        ("use larger cells, a smaller area or a smaller ", Argument("max_diameter")),
        PrivacyError,
    )


def _refuse_hopeless(share: Budget, rest: Budget, factor: int, bound: Bound) -> None:
    """Refuse noise that makes up more bodies than a machine holds, and bodies without extent."""
    if bound.steps < LEAST_STEPS:
        raise PrivacyError(
            Argument("max_diameter"),
            " is too small beside the grid's cells for any body within it: use smaller cells or a "
            "larger ",
            Argument("max_diameter"),
        )
    scale = factor / share.epsilon
    if scale > MOST_NOISE:
        whole = Budget(share.epsilon + rest.epsilon)
        raise PrivacyError(
            f"with epsilon = {whole}, of which {share} is for the number of regions, the noise of "
            f"that has scale {float(scale):.3g}, more than {MOST_NOISE:,}: give a larger epsilon",
            argument="epsilon",
        )
