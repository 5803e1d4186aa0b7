"""The same process, for a while, as a user who owns nothing and may read next to nothing."""

import os
from contextlib import contextmanager

import pytest

_NOBODY = 65534


@contextmanager
def as_nobody():
    """Take this process's rights to files away for a while; whoever is not root has few already."""
    if not hasattr(os, "seteuid"):
        pytest.skip("users have no numbers on this system")
    usual = os.geteuid()
    if usual == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(usual)
