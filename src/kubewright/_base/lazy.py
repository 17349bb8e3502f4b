"""Import the public names of a package when they are first used, so that importing the package costs nothing.

    if TYPE_CHECKING:
        from kubewright.client.client import Client
    else:
        __getattr__, __dir__ = lazy(__name__, {"kubewright.client.client": ("Client",)})

Only the `__init__` of packages use it (PEP 562). It stands below `else`, because type checkers that saw a module
`__getattr__` would accept every name. `tests/unit/test_exports.py` holds the two lists and `__all__` together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ("lazy",)


def lazy(package: str, exports: Mapping[str, tuple[str, ...]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; `exports` says which names are in which module."""
    modules = {name: module for module, names in exports.items() for name in names}

    def get(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)  # the next use finds it without coming here
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__dict__["__all__"])

    return get, names
