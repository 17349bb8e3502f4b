"""The rows of workload kinds: Deployment, the sets, Job, CronJob, HorizontalPodAutoscaler, PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.printers.ages import age_of, human_duration, parse_timestamp, timestamp_since
from kubewright.apiserver.printers.texts import (
    NONE,
    UNKNOWN,
    UNSET,
    container_cells,
    labels_text,
    list_with_more,
    name_of,
    number,
    selector_text,
    status_of,
)

__all__ = (
    "autoscaler_cells",
    "budget_cells",
    "controller_cells",
    "cron_job_cells",
    "daemon_set_cells",
    "deployment_cells",
    "job_cells",
    "replica_set_cells",
    "revision_cells",
    "scale_cells",
    "stateful_set_cells",
)

_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def deployment_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Deployment."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    return [
        name_of(tree),
        f"{number(status, 'readyReplicas')}/{number(spec, 'replicas')}",
        number(status, "updatedReplicas"),
        number(status, "availableReplicas"),
        age_of(tree, now),
        *container_cells(peek(spec, "template", "spec")),
        selector_text(spec.get("selector"), empty="", invalid="<invalid>"),
    ]


def replica_set_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ReplicaSet."""
    return [*_replicas(tree, now), selector_text(peek(tree, "spec", "selector"))]


def controller_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ReplicationController."""
    return [*_replicas(tree, now), labels_text(peek(tree, "spec", "selector"))]


def _replicas(tree: Tree, now: datetime) -> list[Any]:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    return [
        name_of(tree),
        number(spec, "replicas"),
        number(status, "replicas"),
        number(status, "readyReplicas"),
        age_of(tree, now),
        *container_cells(peek(spec, "template", "spec")),
    ]


def stateful_set_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a StatefulSet."""
    ready = f"{number(tree, 'status', 'readyReplicas')}/{number(tree, 'spec', 'replicas')}"
    return [name_of(tree), ready, age_of(tree, now), *container_cells(peek(tree, "spec", "template", "spec"))]


def daemon_set_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a DaemonSet."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    pod_spec = peek(spec, "template", "spec")
    return [
        name_of(tree),
        number(status, "desiredNumberScheduled"),
        number(status, "currentNumberScheduled"),
        number(status, "numberReady"),
        number(status, "updatedNumberScheduled"),
        number(status, "numberAvailable"),
        labels_text(peek(pod_spec, "nodeSelector")),
        age_of(tree, now),
        *container_cells(pod_spec),
        selector_text(spec.get("selector")),
    ]


def job_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Job."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    wanted, at_once = spec.get("completions"), number(spec, "parallelism")
    if wanted is None:
        wanted = f"1 of {at_once}" if at_once > 1 else "1"
    started, ended = parse_timestamp(status.get("startTime")), parse_timestamp(status.get("completionTime"))
    return [
        name_of(tree),
        _job_state(tree),
        f"{number(status, 'succeeded')}/{wanted}",
        "" if started is None else human_duration((ended or now) - started),
        age_of(tree, now),
        *container_cells(peek(spec, "template", "spec")),
        selector_text(spec.get("selector")),
    ]


def _job_state(tree: Tree) -> str:
    conditions = items(tree.get("status"), "conditions")
    for state in ("Complete", "Failed"):
        if status_of(conditions, state) == "True":
            return state
    if peek(tree, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((state for state in _JOB_STATES if status_of(conditions, state) == "True"), "Running")


def cron_job_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a CronJob."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    suspend, last = spec.get("suspend"), status.get("lastScheduleTime")
    job = peek(spec, "jobTemplate", "spec")
    return [
        name_of(tree),
        text(spec, "schedule"),
        NONE if spec.get("timeZone") is None else spec["timeZone"],
        UNSET if suspend is None else str(suspend),
        len(items(status, "active")),
        NONE if last is None else timestamp_since(last, now),
        age_of(tree, now),
        *container_cells(peek(job, "template", "spec")),
        selector_text(peek(job, "selector")),
    ]


def revision_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ControllerRevision."""
    owner = next((one for one in items(tree.get("metadata"), "ownerReferences") if one.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [name_of(tree), controller, number(tree, "revision"), age_of(tree, now)]


def budget_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a PodDisruptionBudget."""
    spec = tree.get("spec") or {}
    limits = ("N/A" if spec.get(name) is None else str(spec[name]) for name in ("minAvailable", "maxUnavailable"))
    return [name_of(tree), *limits, number(tree, "status", "disruptionsAllowed"), age_of(tree, now)]


def scale_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Scale."""
    return [name_of(tree), number(tree, "spec", "replicas"), number(tree, "status", "replicas"), age_of(tree, now)]


def autoscaler_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a HorizontalPodAutoscaler of autoscaling/v2."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    target, least = spec.get("scaleTargetRef"), spec.get("minReplicas")
    return [
        name_of(tree),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        _metrics(items(spec, "metrics"), items(status, "currentMetrics")),
        UNSET if least is None else str(least),
        number(spec, "maxReplicas"),
        number(status, "currentReplicas"),
        age_of(tree, now),
    ]


def _metrics(specs: list[Tree], statuses: list[Tree]) -> str:
    if not specs:
        return NONE
    words = []
    for index, spec in enumerate(specs):
        printer = _METRICS.get(text(spec, "type"))
        status = statuses[index] if index < len(statuses) else {}
        words.append("<unknown type>" if printer is None else printer(spec, status))
    return list_with_more(words, 2, separator=", ")


def _value_metric(source: str) -> Callable[[Tree, Tree], str]:
    def print_metric(spec: Tree, status: Tree) -> str:
        target, current = peek(spec, source, "target") or {}, peek(status, source, "current")
        if (average := target.get("averageValue")) is not None:
            return f"{peek(current, 'averageValue') or UNKNOWN}/{average} (avg)"
        return f"{_quantity(current, 'value')}/{target.get('value') or _NIL}"

    return print_metric


def _resource_metric(source: str) -> Callable[[Tree, Tree], str]:
    def print_metric(spec: Tree, status: Tree) -> str:
        target, current = peek(spec, source, "target") or {}, peek(status, source, "current")
        name = text(spec, source, "name")
        if (average := target.get("averageValue")) is not None:
            return f"{name}: {_quantity(current, 'averageValue')}/{average}"
        wanted, used = target.get("averageUtilization"), peek(current, "averageUtilization")
        shown = UNKNOWN if used is None else f"{used}%"
        return f"{name}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"

    return print_metric


def _pods_metric(spec: Tree, status: Tree) -> str:
    wanted = peek(spec, "pods", "target", "averageValue") or _NIL
    return f"{_quantity(peek(status, 'pods', 'current'), 'averageValue')}/{wanted}"


_NIL: Final = "<nil>"
"""What kube-apiserver prints for a metric without a value."""


def _quantity(current: Tree | None, name: str) -> str:
    return UNKNOWN if current is None else str(current.get(name) or _NIL)


_METRICS: Final[dict[str, Callable[[Tree, Tree], str]]] = {
    "External": _value_metric("external"),
    "Object": _value_metric("object"),
    "Pods": _pods_metric,
    "Resource": _resource_metric("resource"),
    "ContainerResource": _resource_metric("containerResource"),
}
