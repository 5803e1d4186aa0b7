"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: default, ci (repeatable) or thorough."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Compiled code makes the first example slow and the others fast: no deadline an example.
_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=100, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
_USUAL = "ci" if os.environ.get("CI") else "default"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _USUAL))
