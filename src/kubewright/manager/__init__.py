"""One process: start order, leader election, health, metrics, stop. Its names are imported when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.manager.clusters import ManagedCluster
    from kubewright.manager.entry_point import run_operator
    from kubewright.manager.leader_election.elector import LeaderElector
    from kubewright.manager.manager import Manager
    from kubewright.manager.operator import Operator, load_operator
    from kubewright.manager.options import ManagerOptions
    from kubewright.manager.process import run
    from kubewright.manager.runnables import Runnable, RunnableGroup
    from kubewright.manager.setup import setup_with_manager
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.manager.clusters": ("ManagedCluster",),
            "kubewright.manager.entry_point": ("run_operator",),
            "kubewright.manager.leader_election.elector": ("LeaderElector",),
            "kubewright.manager.manager": ("Manager",),
            "kubewright.manager.operator": ("Operator", "load_operator"),
            "kubewright.manager.options": ("ManagerOptions",),
            "kubewright.manager.process": ("run",),
            "kubewright.manager.runnables": ("Runnable", "RunnableGroup"),
            "kubewright.manager.setup": ("setup_with_manager",),
        },
    )

__all__ = (
    "LeaderElector",
    "ManagedCluster",
    "Manager",
    "ManagerOptions",
    "Operator",
    "Runnable",
    "RunnableGroup",
    "load_operator",
    "run",
    "run_operator",
    "setup_with_manager",
)
