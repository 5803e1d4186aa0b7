"""What each step after the noise is worth: fits and rounding beside simpler ones, on one city."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpregions as dpr
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.bodies import make_bodies
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from support.footprint_releases import BLOCKS

SIZES = [(2, 2), (4, 5), (10, 10), (20, 20)]


def rounded(fit, order):
    """Whole numbers whose running sums along an order are those of the fit, rounded."""
    whole = np.empty(len(fit))
    whole[order] = np.diff(np.rint(np.cumsum(fit[order])), prepend=0)
    return whole


@pytest.fixture(scope="module")
def error():
    """The median error in percent of each way, by size of query: the table of the docs."""
    grid, city = dpr.synthetic.grid(), dpr.synthetic.regions(10_000)
    bound = Bound.of(grid, "2km", "shrink")
    secret = dpr.EulerHistogram.from_regions(city, grid, user_id="user_id", max_diameter="2km")
    truth = SignedTable(secret.counts)
    prepared = Footprint(strategy=BLOCKS).prepare(grid, bound, Budget(1), "add-remove")
    tally = prepared.tally()
    tally.add(outlines_of(np.asarray(city.geometry.array, object), city.crs, grid, bound))
    tried = {}

    def judge(name, histogram):
        table = SignedTable(histogram)
        for i, (h, w) in enumerate(SIZES):
            row, col = (at.ravel() for at in np.mgrid[: 21 - h, : 21 - w])
            cells = np.stack([row, row + h - 1, col, col + w - 1])
            true = truth.rectangles(*cells)
            off = np.abs(table.rectangles(*cells) - true) / np.maximum(true, 0.001 * tally.total)
            tried.setdefault((name, i), []).append(100 * off)

    for seed in range(20):
        reading = prepared.publish(tally, StudyNoise(seed)).reading
        buckets, signed, fit = reading.measured.hierarchy.buckets, reading.fitted, reading.held
        cut = np.maximum(signed, 0)
        by_row = np.lexsort((buckets.letters, buckets.centres[1], buckets.centres[0]))
        judge("signed", buckets.expand(signed))
        judge("cut", buckets.expand(cut))
        judge("cut and scaled", buckets.expand(cut * signed.sum() / cut.sum()))
        judge("top-down", buckets.expand(fit))
        judge("each rounded", buckets.expand(np.rint(fit)))
        judge("along rows", buckets.expand(rounded(fit, by_row)))
        judge("bodies", make_bodies(buckets, fit).counts_on(*grid.shape))
    exact, at = tally.counts(buckets).astype(float), np.arange(5)
    tall, wide = 2 * buckets.heights[:, None, None] - 1, 2 * buckets.widths[:, None, None] - 1
    full = ((at[:, None] < tall) & (at < wide)).astype(float)
    judge("no noise, rectangles", replace(buckets, means=full).expand(exact))
    judge("no noise, prior", buckets.expand(exact))
    return {key: float(np.median(np.concatenate(off))) for key, off in tried.items()}


def test_shapes_by_the_prior_are_nearer_than_full_rectangles(error):
    assert error["no noise, prior", 0] < 0.6 * error["no noise, rectangles", 0]


def test_cutting_at_0_is_out_of_the_question_scaled_or_not(error):
    assert error["cut", 0] > 4 * error["bodies", 0]
    assert error["cut", 3] > 50 * error["bodies", 3]
    assert error["cut and scaled", 2] > 5 * error["bodies", 2]


def test_rounding_each_bucket_by_itself_is_worse_for_the_whole(error):
    assert error["each rounded", 3] > 2 * error["bodies", 3]


@pytest.mark.parametrize("size", range(len(SIZES)))
def test_bodies_cost_next_to_nothing_beside_the_signed_fit(error, size):
    assert error["bodies", size] < 1.1 * error["signed", size]
    assert error["bodies", size] < 1.1 * error["along rows", size]
