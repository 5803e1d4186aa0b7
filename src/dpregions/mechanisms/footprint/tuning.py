"""The tuned numbers of the footprint mechanism: accuracy or the width of intervals moves with them.

Each says what it is, where it came from and what moves when it is halved or doubled: the error
relative to today's (1.05: 5 % more) as a mean over made-up cities and sizes of rectangles, and in
brackets where it moves most (N users on n x n cells). `benchmarks/calibrate.py` measures that
again, `docs/lab-calibration.md` has the tables. All are public constants: none may follow from
data. Numbers that only keep arithmetic in range or bound memory and time stand where they are
used.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpregions.mechanisms.footprint.levels import Grouping

Words = tuple[tuple[int, "Grouping", int], ...]
"""Measurements below the total: the side of blocks in cells (0: the whole area), the letters
counted apart, and the weight in what is left."""

_SIZES: tuple[Words, ...] = (
    ((2, "all", 3), (1, "letters", 7)),
    ((2, "all", 1), (1, "letters", 9)),
    ((2, "all", 0), (1, "letters", 10)),
    ((1, "all", 0), (1, "letters", 10)),
)
_BLOCKS: tuple[Words, ...] = (
    ((32, "all", 10), (8, "all", 30), (2, "all", 54), (1, "letters", 0), (0, "letters", 6)),
    ((16, "all", 30), (4, "all", 64), (1, "letters", 0), (0, "letters", 6)),
    ((2, "all", 94), (1, "letters", 0), (0, "letters", 6)),
)
_JOINED: tuple[Words, ...] = (
    ((1, "joined", 97), (1, "letters", 0), (0, "letters", 3)),
    ((4, "all", 0), (1, "joined", 97), (1, "letters", 0), (0, "letters", 3)),
)
_CELLS: tuple[Words, ...] = (
    ((4, "all", 20), (1, "all", 74), (1, "letters", 0), (0, "letters", 6)),
)
_CLASSES: tuple[Words, ...] = (
    ((2, "all", 34), (2, "classes", 60), (1, "letters", 0), (0, "letters", 6)),
    ((2, "all", 30), (2, "classes", 10), (1, "classes", 54), (1, "letters", 0), (0, "letters", 6)),
)
_SHAPES: tuple[Words, ...] = (
    ((2, "all", 1), (1, "classes", 4), (1, "letters", 5)),
    ((2, "all", 2), (1, "letters", 8)),
    ((2, "all", 0), (1, "all", 0), (1, "classes", 0), (1, "letters", 10)),
)


@dataclass(frozen=True)
class Tuning:
    """Every tuned number, with today's value as its default."""

    # The budget: `mechanism.total_share`.

    least_total: Fraction = Fraction(1, 50)
    """The total's smallest share of the budget, on grids of 50 x 50 cells and more. Set by hand; on
    T-Drive n = 20 it took 3.71 to 3.61 % at 1 % of the area, 0.13 to 0.27 at 100 %. Halved 1.00,
    doubled 0.99 (0.91 at N=20,000, n=40)."""
    most_total: Fraction = Fraction(1, 4)
    """The total's largest share, on grids of up to 4 x 4 cells. Set by hand; nothing was measured
    on such grids. Halved 1.09 (1.60 at N=500, n=4), doubled 1.00."""

    # The grid that regions of a partition are measured on: `bases.PreparedBases.chosen`.

    base_crowd: float = 24.0
    """Regions, times epsilon, in a cell up to which the coarsest grid is measured. Set on T-Drive
    (N=10,000, 400 sites; cells a half and a quarter as wide: 1.17 and 1.42 at one cell) and a
    synthetic city. Halved 1.00, doubled 1.03 (N=100,000)."""
    finer_base: float = 3.0
    """How many times as many regions take cells half as wide. Set on a synthetic city (N=100,000,
    400 sites: 16, 10 and 9.8 % at one cell). Halved 1.00, doubled 1.03 (N=100,000)."""

    shape_mix: Fraction = Fraction(1, 50)
    """Share of what the total leaves that counts shapes in the whole area, where sizes are
    measured. Set on T-Drive and synthetic cities. Halved 1.00 (0.97 at N=20,000, n=40), doubled
    1.01 (1.07 at N=200, n=20)."""

    # The public prior of shapes and sizes: `catalogue`.

    least_aspect: float = 0.3
    """How slim the prior's ellipses are at most, width to length. Set by hand, nothing measured;
    the synthetic city's regions go down to 0.2. Halved 0.99, doubled 1.02 (1.11 at N=500, n=4)."""
    length_power: float = 0.5
    """Lengths of the prior's ellipses: the bound times a uniform number to this power. Set by hand,
    nothing measured; larger: smaller regions. Halved 1.00 (0.88 at N=20,000, n=20), doubled
    1.00."""

    # The covert fit: `fits.split`.

    doubt: float = 4.0
    """How many times over the variance about the prior is taken. Set on T-Drive n = 20: 1 instead
    of 4 took 3.81 to 4.13 % at 1 % of the area. Halved 1.00, doubled 1.00."""
    believed: float = 2.0
    """Standard deviations of noise beyond which an outlier is believed. Set on T-Drive n = 20: with
    4 it was 3.69 instead of 3.81 % at 1 % of the area, 0.302 instead of 0.287 at 50 %. Halved 1.00
    (1.05 at N=20,000, n=20), doubled 1.01 (1.06 at N=200, n=20)."""
    unevenness_guess: float = 0.3
    """The unevenness that children are weighed by while it is estimated. Set by hand, nothing
    measured. Halved 1.00, doubled 1.00."""
    least_unevenness: float = 1e-3
    """The least unevenness that is believed in. Set by hand, nothing measured. Halved 1.00, doubled
    1.00."""

    # What is expected of detail that was not measured: `expectation`.

    group_discount: float = 0.5
    """Standard deviations of noise taken off a group of letters' noisy total. Set by hand, nothing
    measured. Halved 1.00, doubled 1.00."""
    group_floor: float = 0.25
    """Standard deviations of noise that every group of letters keeps. Set by hand, nothing
    measured. Halved 1.00, doubled 1.00."""
    believed_mix: float = 0.4
    """`believed` of a mix, for each root of its number of sizes: many stray by chance. Set by hand,
    nothing measured. Halved 1.00, doubled 1.00."""
    least_mix: float = 0.005
    """Part of its prior count that every size keeps, so that no bucket is ruled out. Set by hand,
    nothing measured. Halved 1.00, doubled 1.00."""
    reach: float = 0.35
    """Standard deviation of the bell of surroundings, in sides of the measured blocks. Set on
    T-Drive n = 10, where 0.35 to 1 made 11.2 to 11.4 % at one cell. Halved 1.01, doubled 1.00 (1.05
    at N=20,000, n=40)."""
    even_density: float = 0.1
    """Part of the mean density that every place is taken to have. Set by hand, nothing measured.
    Halved 1.01 (1.05 at N=200, n=20), doubled 1.00."""
    smoothings: int = 3
    """How often density and counts are taken from each other. Tried from 1 to 10 on T-Drive n = 10:
    11.2 to 11.4 % at one cell. Halved 1.00, doubled 1.00."""

    # The adaptive tree: `tree.growing`.

    rehearsed_side: int = 64
    """Cells a side up to which a tree is tried beside the other strategies; on larger grids it is
    what is measured. Set by hand. Halved 1.06 (N=20,000, n=40), doubled 0.99 (N=20,000,
    n=100, three releases)."""
    fine_detail: float = 0.03
    """`Adaptive.detail` on large grids where regions are up to three cells wide. Set on T-Drive n =
    40 and two made-up countries. Halved 1.04, doubled 0.98 (N=50,000, n=128)."""
    coarse_detail: float = 0.15
    """`Adaptive.detail` on large grids where regions are wider. Set on T-Drive n = 100 and
    Cabspotting. Halved 1.10, doubled 1.12 (N=20,000, n=100)."""
    tree_children: int = 64
    """`Adaptive.most_children` on large grids. Set on T-Drive, Cabspotting, GeoLife and made-up
    countries. Halved 1.05 (1.20 at N=20,000, n=100), doubled 1.00."""
    tree_first: Fraction = Fraction(3, 10)
    """Share of a node's budget that measures its children, where these may open further. Set as
    `tree_children`. Halved 0.98 (1.07 at N=20,000, n=100), doubled 1.25 (1.50 at N=50,000,
    n=128)."""
    tree_chance: float = 0.3
    """How much chance alone leaves unknown inside a part, beside `Adaptive.detail`. Set as
    `tree_children`. Halved 1.02, doubled 1.06."""
    tree_crowd: float = 2.0
    """Children with so many times their fair share must want to open, or none of them is kept open.
    Set as `tree_children`. Halved 1.07, doubled 1.03 (1.21 at N=20,000, n=100)."""
    tree_mix: Fraction = Fraction(1, 32)
    """Share of what the total leaves that measures the mix of sizes. Set as `tree_children`. Halved
    1.04, doubled 1.03 (1.12 at N=20,000, n=100)."""

    # The shape part of intervals: `reading`. No answer moves with these.

    clumping: float = 0.7
    """How much regions of an unmeasured part fall the same way, at least: 0 not at all, 1 entirely;
    more where noisy counts say so. Set by coverage on T-Drive, Cabspotting and made-up cities.
    Halved and doubled: widths 1.00 of today's."""
    tree_clumping: float = 0.5
    """The same of a tree's leaves, which are smaller where regions are many. Set as `clumping`.
    Halved: widths 0.98 of today's; doubled: 1.04."""
    place_doubt: float = 0.3
    """How far the mix of sizes and places inside unmeasured parts may be off, all of them alike.
    Set as `clumping`. Halved: widths 0.97 of today's; doubled: 1.09."""
    unsure_leaf: float = 0.1
    """What p(1 - p) is at least, p the share of a tree's leaf that touches a query which cuts it.
    Set by coverage on Cabspotting d = 0.16 km, where regions keep to one side of leaves. Left out:
    62 and 64 % where least were held, at epsilon = 0.5 and 5."""
    unsure_bucket: float = 0.04
    """The same of regions of one size at one place. Set by coverage on Cabspotting d = 0.8 km,
    where nearly all regions touch the middle. Left out: 43 % where least were held, epsilon = 5."""
    unsure_pattern: float = 0.0003
    """The same of regions of one pattern: some had none of the catalogue's and are filed under the
    nearest. Set by coverage on the synthetic city of 200,000. Left out: 75 % where least were held,
    epsilon = 5."""
    shape_clumping: float = 0.3
    """How much regions of one bucket are alike in shape. Set by coverage on made-up cities. Halved:
    widths 1.00 of today's; doubled: 1.01."""
    mix_doubt: float = 1.5
    """How far the prior's chances are off, in their spread, where sizes are not known. Set by
    coverage where the bound is far larger than regions: 82 and 74 % without. Halved: widths 0.99 of
    today's and 98.2 % held up to 25 % of the area; doubled: 1.03 and 98.2 %; today 98.2 %."""
    shape_crowd: float = 2.0
    """How many times over chance counts: regions that are alike fall the same way. Set by coverage
    on T-Drive and the synthetic city. Halved: widths 1.00 of today's and 98.1 % held up to 25 % of
    the area; doubled: 1.00 and 98.2 %; today 98.2 %."""
    shape_doubt: float = 1.0
    """How far the prior's chances of shapes are off, in their spread. Set by coverage on T-Drive
    and the synthetic city. Halved: widths 0.99 of today's and 97.9 % held up to 25 % of the area;
    doubled: 1.02 and 98.4 %; today 98.2 %."""
    size_doubt: float = 0.5
    """How far regions are smaller than the catalogue's, as a share of what the least bodies touch
    less; for queries as drawn. Set by coverage on GeoLife, whose regions lie within cells. Halved:
    widths 0.95 of today's, 92.3 % held where least were; doubled: 1.15 and 96.5 %; today 94.5 %."""

    # How candidates are tried out: `choice.choose`. More trials cost time.

    good_enough: float = 0.003
    """Relative errors well below this are not worth budget that other sizes could use. Set on 12
    settings of T-Drive, Cabspotting and synthetic cities, where 0.01 chose alike in eleven.
    Halved 1.00, doubled 1.00."""
    near_tie: float = 0.08
    """How much more the mean log error of an earlier candidate may be, and it is still chosen. Set
    on the same: with 0.03 trees were chosen on T-Drive n = 10, at 0.85 of the accuracy.
    Halved 0.97 (0.79 at N=500, n=4), doubled 1.05 (1.35 at N=2,000, n=20)."""
    total_step: float = 1.4
    """How many times more regions the next rung of totals has. Set by hand: a choice for a fifth
    more or fewer regions differs little. Halved 0.98 (0.85 at N=500, n=4), doubled 1.03 (1.35 at
    N=2,000, n=20)."""
    behind: float = 0.8
    """How much more a candidate's mean log error may be to be tried further: after n
    cities, of two or more, this over the root of n. Set so that racing chose as trying all does in
    51 of 51 cases on 19 kinds of data. Halved 0.99 (0.85 at N=500, n=4), doubled 1.00."""
    proxy_side: int = 40
    """Cells along the largest grid that is tried out as it is; larger ones (none here) are shrunk.
    Set by hand, for speed. Halved 0.97 (0.77 at N=20,000, n=40), doubled 1.00."""
    proxy_regions: int = 40_000
    """Regions that are made up at most; more become more epsilon. Set by hand, for speed. Halved
    1.00, doubled 1.04 (1.27 at N=100,000, n=10)."""
    least_trials: int = 6
    """Cities tried at least, on large grids: one of each kind. Set by hand, for speed. Halved 0.99
    (0.91 at N=20,000, n=40), doubled 1.00."""
    most_trials: int = 24
    """Cities tried at most, on small grids. Set by hand, for speed. Halved 1.04 (1.27 at N=100,000,
    n=10), doubled 1.00."""
    tried_buckets: int = 30_000
    """Buckets tried in all: it says how many cities between the two. Set by hand, for speed. Halved
    1.00, doubled 1.00."""
    trial_queries: int = 48
    """Rectangles of each size that a city is asked. Set by hand, for speed. Halved 1.10 (1.33 at
    N=200, n=20), doubled 1.00."""

    # The made-up cities they are tried on: `made_up.cities`.

    stray_mean: float = -0.4
    """How much larger bodies are than the prior's, in its standard deviations of sizes. Set by
    hand: real ones are mostly smaller, since bounds are set with room to spare. Halved 1.02 (1.11
    at N=500, n=4), doubled 1.04 (1.27 at N=100,000, n=10)."""
    stray_spread: float = 0.8
    """How much that differs between cities. Set by hand, nothing measured. Halved 1.00, doubled
    1.02 (1.27 at N=100,000, n=10)."""
    fullness: float = 1.0
    """How much more of their footprints regions fill than the prior's. Set by hand, nothing
    measured. Halved 1.00, doubled 1.00."""
    most_spots: float = 0.4
    """Share of bodies in hot spots, in the roughest city. Set by hand, nothing measured. Halved
    0.98 (0.86 at N=20,000, n=20), doubled 1.01 (1.33 at N=200, n=20)."""
    bodies_per_spot: int = 40
    """Bodies for each hot spot there is. Set by hand, nothing measured. Halved 1.03 (1.33 at N=200,
    n=20), doubled 1.03 (1.17 at N=200, n=20)."""
    spot_crowding: float = 2.0
    """How uneven spots are: the power of a uniform number that says which one. Set by hand, nothing
    measured. Halved 1.00, doubled 1.00."""
    districts: int = 24
    """Districts of a city. As in `synthetic`, which is no independent evidence for it. Halved 1.10
    (1.33 at N=200, n=20), doubled 1.02 (1.11 at N=500, n=4)."""
    district_share: float = 0.85
    """Share of bodies in districts; the others are spread over the countryside. As in `synthetic`.
    Halved 1.05 (1.27 at N=100,000, n=10), doubled 1.05 (1.27 at N=100,000, n=10)."""
    district_scatter: float = 0.22
    """Standard deviation of districts' middles, in sides of the area. As in `synthetic`. Halved
    0.99 (1.27 at N=100,000, n=10), doubled 1.02 (1.11 at N=500, n=4)."""
    narrowest_district: float = 0.02
    """Standard deviation of the narrowest district, in sides of the area. As in `synthetic`. Halved
    1.00, doubled 1.00."""
    widest_district: float = 0.08
    """Standard deviation of the widest district, in sides of the area. As in `synthetic`. Halved
    1.02 (1.17 at N=200, n=20), doubled 1.02 (1.27 at N=100,000, n=10)."""
    countryside: float = 0.25
    """Standard deviation of the countryside, in sides of the area. As in `synthetic`. Halved 1.02
    (1.11 at N=500, n=4), doubled 1.00."""

    small_stray: float = -2.5
    """`stray_mean` of a city whose bodies are far smaller than the bound. Set by hand. Halved 1.00,
    doubled 1.00."""
    thin_fullness: float = -6.0
    """`fullness` of a city of thin bodies. Set by hand. Halved 1.00, doubled 1.00."""
    crowd_share: float = 0.8
    """Share of bodies in a centre, in malls or in corridors. Set by hand. Halved 1.02 (1.27 at
    N=2,000, n=20), all of them 0.98 (0.89 at N=500, n=4)."""
    crowd_area: float = 0.02
    """Share of the area that the centre has. Set by hand. Halved 1.00, doubled 1.00."""
    malls: int = 4
    """Places that most of a city's bodies are at. Set by hand. Halved and doubled 0.98 (0.85 at
    N=500, n=4)."""
    corridors: int = 3
    """Straight corridors of a city. Set by hand. Halved and doubled 0.98 (0.85 at N=500, n=4)."""
    corridor_width: float = 0.01
    """Standard deviation of bodies about a corridor, in sides of the area. Set by hand. Halved
    1.00, doubled 1.00."""

    # The candidates: `choice.candidates`, in the order in which near ties are broken. Plans that
    # were never within 5 % of the best on 19 kinds of data are not among them.

    plans_of_sizes: tuple[Words, ...] = _SIZES
    """Sizes at every place. Set from runs on T-Drive and synthetic cities: "What to measure" in the
    results. Left out 1.07 (1.41 at N=500, n=4) among the earlier candidates."""
    plans_of_blocks: tuple[Words, ...] = _BLOCKS
    """Blocks and the mix of sizes. Set with fixed plans on T-Drive and the synthetic city. Left out
    1.18 (2.18 at N=200, n=20) among the earlier candidates."""
    plans_of_joined: tuple[Words, ...] = _JOINED
    """Of four sizes: one and two cells joined. Of nine it cost more than it gave. Set on T-Drive n
    = 10, epsilon = 0.1: 13.8 to 11.3 % at one cell. Left out 1.00."""
    plans_of_cells: tuple[Words, ...] = _CELLS
    """Of more sizes: cells and the mix of sizes. Set as those of blocks. Left out 1.02 (1.15 at
    N=2,000, n=20) among the earlier candidates."""
    plans_of_classes: tuple[Words, ...] = _CLASSES
    """Of 25 sizes and more: classes of similar sizes, and the mix. Set on T-Drive n = 40: 1.13 %
    against 1.16 without the mix (geometric mean over sizes, four releases). Left out 1.00, on
    cities of up to nine sizes each."""
    trees: tuple[tuple[float, int], ...] = ((0.15, 64), (0.03, 64))
    """Adaptive trees: how far they open, and into how many parts at once. Set on T-Drive,
    Cabspotting and synthetic cities; into 256 parts they were chosen where others were better. Left
    out 1.04 (1.35 at N=2,000, n=20)."""
    tree_side: int = 16
    """Cells along the longer side from which on trees are tried. Set on grids of 4 and 10 cells a
    side (T-Drive, Cabspotting, synthetic cities), where plans were better by 2 to 50 %. Halved 1.02
    (1.12 at N=10,000, n=10), doubled 1.05 (1.35 at N=2,000, n=20)."""
    plans_of_shapes: tuple[Words, ...] = _SHAPES
    """Whole patterns, where regions are many. Set from the same runs as those of sizes. Left out
    1.16 (2.13 at N=100,000, n=10)."""


TUNING = Tuning()
"""What releases are made and read with."""
