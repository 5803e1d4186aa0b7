"""The whole command line in this process, which owns the messages and exit codes of errors."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest import mock

import pytest

from dpregions.cli import start as cli


def run(*args, stdin=""):
    """Run a command; return its exit code and what it said."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["dpregions", *map(str, args)]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    said = {"stdout": out.getvalue(), "stderr": err.getvalue()}
    return SimpleNamespace(exit_code=ended.value.code, output="".join(said.values()), **said)
