"""One process: start order, leader election, health, metrics, stop. Its names are imported when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.manager.manager import Manager
    from kubewright.manager.operator import Operator, load_operator
    from kubewright.manager.options import ManagerOptions
    from kubewright.manager.process import run
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.manager.manager": ("Manager",),
            "kubewright.manager.operator": ("Operator", "load_operator"),
            "kubewright.manager.options": ("ManagerOptions",),
            "kubewright.manager.process": ("run",),
        },
    )

__all__ = ("Manager", "ManagerOptions", "Operator", "load_operator", "run")
