"""The workload controllers of kube-controller-manager: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob.

`workload_controllers` returns all of them; a manager can run them against any API server without a
kube-controller-manager.
"""

from kubewright.cluster.controller_manager.workloads.controllers import workload_controllers

__all__ = ("workload_controllers",)
