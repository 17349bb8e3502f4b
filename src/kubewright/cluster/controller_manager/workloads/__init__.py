"""The controllers that turn workloads into pods, as kube-controller-manager has them, written with this framework.

`workload_controllers` is all of them; a manager runs them against any API server whose own are switched off. Each
module has one controller, or one thing several of them need.
"""

from kubewright.cluster.controller_manager.workloads.factory import workload_controllers

__all__ = ("workload_controllers",)
