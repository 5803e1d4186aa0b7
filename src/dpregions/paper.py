"""The paper's pipeline, on plain arrays: the public face of `mechanisms.paper`."""

from dpregions.extras import need
from dpregions.mechanisms.paper.pipeline import *  # noqa: F403

need("curator")
