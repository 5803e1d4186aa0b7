"""The paper's pipeline, on plain arrays: the public face of `mechanisms.paper`."""

from dpregions.mechanisms.paper.pipeline import (
    Inconsistency,
    diff_priv,
    inconsistency,
    lin_prog,
    round_counts,
    sensitivity,
    utility_bound,
    violations,
)

__all__ = [
    "Inconsistency",
    "diff_priv",
    "inconsistency",
    "lin_prog",
    "round_counts",
    "sensitivity",
    "utility_bound",
    "violations",
]
