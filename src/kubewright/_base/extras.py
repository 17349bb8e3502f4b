"""Import an optional dependency, or say which extra installs it.

Called by the module that owns such a library. Modules that can do without it (`metrics`, `tracing`, `loop`) fall back
instead.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from kubewright.errors import ExtraMissing

__all__ = ("optional",)


def optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or ExtraMissing with the command that installs it: `optional("jinja2", extra="cli", purpose=...)`.

    `purpose` begins the sentence: "Rendering a project".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != top:
            raise  # it is installed, but a module it needs is not: our message would mislead
        raise ExtraMissing(
            f"{purpose} needs `{top}`, which is not installed; run: pip install 'kubewright[{extra}]'"
        ) from error
