"""A study's data set of sixty made-up users, and where its measurements come from."""

from __future__ import annotations

from dataclasses import replace

from dpregions.study.datasets import SYNTHETIC
from dpregions.study.experiments.base import Source
from dpregions.study.methods import METHODS

TINY = replace(SYNTHETIC, n_users=60, n=10)


def source(tmp_path, *methods, seed=0):
    return Source(methods or tuple(METHODS), seed, None, tmp_path)
