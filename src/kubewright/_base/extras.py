"""Import a dependency that is installed only by those who want its feature.

Asked by the one module that owns such a library. Who can do without simply falls back (`metrics`, `tracing`, `loop`)
and does not ask here.
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
            raise  # it is there, and something it needs is not: another sentence would mislead
        raise ExtraMissing(
            f"{purpose} needs `{top}`, which is not installed; run: pip install 'kubewright[{extra}]'"
        ) from error
