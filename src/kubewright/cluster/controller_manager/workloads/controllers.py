"""All workload controllers, as one list for a manager.

    manager = Manager(*workload_controllers(), config=config)

Each call creates new instances: they keep the selectors of one cluster, so one list belongs to one manager. Called by
`planes.controllers`.
"""

from __future__ import annotations

from typing import Any

from kubewright._base.clock import Clock, SystemClock
from kubewright.cluster.controller_manager.workloads.daemonset import daemon_set_controller
from kubewright.cluster.controller_manager.workloads.deployment import deployment_controller
from kubewright.cluster.controller_manager.workloads.jobs.cronjob import cron_job_controller
from kubewright.cluster.controller_manager.workloads.jobs.job import job_controller
from kubewright.cluster.controller_manager.workloads.replicaset import (
    replica_set_controller,
    replication_controller_controller,
)
from kubewright.cluster.controller_manager.workloads.statefulset import stateful_set_controller
from kubewright.controllers.declaration import Declaration

__all__ = ("workload_controllers",)


def workload_controllers(*, clock: Clock | None = None) -> list[Declaration[Any]]:
    """New workload controllers; `clock` must be that of the manager."""
    time = clock or SystemClock()
    return [
        deployment_controller(time),
        replica_set_controller(time),
        replication_controller_controller(time),
        stateful_set_controller(time),
        daemon_set_controller(time),
        job_controller(time),
        cron_job_controller(time),
    ]
