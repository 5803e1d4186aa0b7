"""A disk that fills up, by the system's own limit on the size of files."""

from contextlib import contextmanager

import pytest


@contextmanager
def file_size_limit(n_bytes):
    """Make writing beyond so many bytes fail, as on a full disk."""
    resource = pytest.importorskip("resource")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
