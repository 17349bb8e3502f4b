"""Defaults of workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, Job, CronJob."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.defaults.pods import default_template
from kubewright.apiserver.builtin.defaults.volumes import default_claim
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items, peek, section

__all__ = (
    "TEMPLATE_GENERATION",
    "default_cron_job",
    "default_daemon_set",
    "default_deployment",
    "default_job",
    "default_pod_template",
    "default_replica_set",
    "default_replication_controller",
    "default_stateful_set",
)

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation with the template generation of a DaemonSet."""

_ROLLING: Final = "RollingUpdate"
_MOST: Final = 2**31 - 1


def default_deployment(deployment: Tree) -> None:
    """Deployment: one replica, a rolling update of 25%."""
    spec = section(deployment, "spec")
    fill(spec, "replicas", 1)
    strategy = section(spec, "strategy")
    fill_empty(strategy, "type", _ROLLING)
    if strategy["type"] == _ROLLING:
        rolling = section(strategy, "rollingUpdate")
        fill(rolling, "maxUnavailable", "25%")
        fill(rolling, "maxSurge", "25%")
    fill(spec, "revisionHistoryLimit", 10)
    fill(spec, "progressDeadlineSeconds", 600)
    default_template(spec)


def default_replica_set(replica_set: Tree) -> None:
    """ReplicaSet: one replica."""
    spec = section(replica_set, "spec")
    fill(spec, "replicas", 1)
    default_template(spec)


def default_daemon_set(daemon_set: Tree) -> None:
    """DaemonSet: a rolling update of one node at a time."""
    spec = section(daemon_set, "spec")
    strategy = section(spec, "updateStrategy")
    fill_empty(strategy, "type", _ROLLING)
    if strategy["type"] == _ROLLING:
        rolling = section(strategy, "rollingUpdate")
        fill(rolling, "maxUnavailable", 1)
        fill(rolling, "maxSurge", 0)
    elif strategy.get("rollingUpdate") is not None:
        for name in ("maxUnavailable", "maxSurge"):
            fill(strategy["rollingUpdate"], name, 0)
    fill(spec, "revisionHistoryLimit", 10)
    default_template(spec)
    # For old clients; `preparation.others` increases it.
    fill_empty(section(section(daemon_set, "metadata"), "annotations"), TEMPLATE_GENERATION, "0")


def default_stateful_set(stateful_set: Tree) -> None:
    """StatefulSet: one replica, ordered, with retained claims."""
    spec = section(stateful_set, "spec")
    fill_empty(spec, "podManagementPolicy", "OrderedReady")
    strategy = section(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
        section(strategy, "rollingUpdate")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == _ROLLING and rolling is not None:
        fill(rolling, "partition", 0)
    retention = section(spec, "persistentVolumeClaimRetentionPolicy")
    fill_empty(retention, "whenDeleted", "Retain")
    fill_empty(retention, "whenScaled", "Retain")
    fill(spec, "replicas", 1)
    fill(spec, "revisionHistoryLimit", 10)
    default_template(spec)
    for claim in items(spec, "volumeClaimTemplates"):
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        default_claim(claim)


def default_replication_controller(controller: Tree) -> None:
    """ReplicationController: one replica; selector and labels of the template."""
    spec = section(controller, "spec")
    fill(spec, "replicas", 1)
    labels = peek(spec, "template", "metadata", "labels")
    if labels:
        fill_empty(spec, "selector", dict(labels))
        fill_empty(section(controller, "metadata"), "labels", dict(labels))
    if spec.get("template") is not None:
        default_template(spec)


def default_pod_template(template: Tree) -> None:
    """PodTemplate."""
    default_template(template)


def default_job(job: Tree) -> None:
    """Job: one completion, six retries."""
    spec = section(job, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, "parallelism", 1)
    fill(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _MOST)
    labels = peek(spec, "template", "metadata", "labels")
    if labels:
        # The same dict: `create_job` adds labels to the template, and in Go the two maps are one.
        fill_empty(section(job, "metadata"), "labels", labels)
    _default_job_spec(spec)
    fill(spec, "completionMode", "NonIndexed")
    fill(spec, "suspend", False)
    failed = spec.get("podFailurePolicy") is not None
    fill(spec, "podReplacementPolicy", "Failed" if failed else "TerminatingOrFailed")
    fill(spec, "manualSelector", False)


def default_cron_job(cron_job: Tree) -> None:
    """CronJob; its jobs get their defaults when they are created."""
    spec = section(cron_job, "spec")
    fill_empty(spec, "concurrencyPolicy", "Allow")
    fill(spec, "suspend", False)
    fill(spec, "successfulJobsHistoryLimit", 3)
    fill(spec, "failedJobsHistoryLimit", 1)
    _default_job_spec(section(section(spec, "jobTemplate"), "spec"))


def _default_job_spec(spec: Tree) -> None:
    default_template(spec)
    for rule in items(spec.get("podFailurePolicy"), "rules"):
        for pattern in items(rule, "onPodConditions"):
            fill_empty(pattern, "status", "True")
