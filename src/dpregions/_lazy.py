"""Public names of a package that load their module on first use (PEP 562): imports stay fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, home: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`.

    `home` says of each public name the module below the package that has it; "" where the name
    is itself a module.
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home[name] or name}")
        value = getattr(module, name) if home[name] else module
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(home)
