"""The paper's pipeline, on plain arrays: the public face of `mechanisms.paper`."""

from dpregions import extras
from dpregions.mechanisms.paper.pipeline import *  # noqa: F403

extras.need("curator")
