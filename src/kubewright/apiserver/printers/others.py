"""The rows of other kinds: Node, Namespace, Event, ConfigMap, Secret, Lease, APIService; kinds without a printer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.conversion import convert
from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.printers.ages import age_of, parse_timestamp, timestamp_since
from kubewright.apiserver.printers.texts import NONE, UNKNOWN, name_of, number, status_of

__all__ = (
    "api_service_cells",
    "component_status_cells",
    "config_map_cells",
    "default_cells",
    "event_cells",
    "lease_cells",
    "name_and_age_cells",
    "namespace_cells",
    "node_cells",
    "runtime_class_cells",
    "secret_cells",
)

_CORE_EVENT: Final = GroupVersionKind("", "v1", "Event")
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"
_NO_TIME: Final = "0001-01-01T00:00:00Z"


def default_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a kind without a printer: name and creation time, of which clients make an age.

    k8s.io/apiserver/pkg/registry/rest/table.go.
    """
    return [name_of(tree), text(tree, "metadata", "creationTimestamp") or _NO_TIME]


def name_and_age_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a kind whose columns are name and age."""
    return [name_of(tree), age_of(tree, now)]


def namespace_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Namespace."""
    return [name_of(tree), text(tree, "status", "phase"), age_of(tree, now)]


def config_map_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ConfigMap."""
    return [name_of(tree), len(tree.get("data") or ()) + len(tree.get("binaryData") or ()), age_of(tree, now)]


def secret_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Secret."""
    return [name_of(tree), text(tree, "type"), len(tree.get("data") or ()), age_of(tree, now)]


def lease_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Lease."""
    return [name_of(tree), text(tree, "spec", "holderIdentity"), age_of(tree, now)]


def runtime_class_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a RuntimeClass."""
    return [name_of(tree), text(tree, "handler"), age_of(tree, now)]


def node_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Node."""
    status = tree.get("status") or {}
    info = status.get("nodeInfo") or {}
    return [
        name_of(tree),
        _node_state(tree),
        _roles(peek(tree, "metadata", "labels") or {}),
        age_of(tree, now),
        text(info, "kubeletVersion"),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        *(info.get(name) or UNKNOWN for name in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _node_state(tree: Tree) -> str:
    ready = None
    for condition in items(tree.get("status"), "conditions"):
        if condition.get("type") == "Ready":  # the last one wins
            ready = text(condition, "status")
    state = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if peek(tree, "spec", "unschedulable") else state


def _roles(labels: Tree) -> str:
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE) or "")
    return ",".join(sorted(role for role in roles if role)) or NONE


def _node_address(status: Tree, kind: str) -> str:
    return next((text(one, "address") for one in items(status, "addresses") if one.get("type") == kind), NONE)


def event_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an Event, of either group."""
    event = convert(tree, _CORE_EVENT)
    series, about = event.get("series"), event.get("involvedObject")
    first = timestamp_since(_first(event), now)
    last = timestamp_since(event["lastTimestamp"], now) if parse_timestamp(event.get("lastTimestamp")) else first
    count = number(event, "count") or 1
    if series is not None:
        last, count = timestamp_since(series.get("lastObservedTime"), now), number(series, "count")
    kind, name = text(about, "kind").lower(), text(about, "name")
    return [
        last,
        text(event, "type"),
        text(event, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        _source(event),
        text(event, "message").strip(),
        first,
        count,
        name_of(event),
    ]


def _first(event: Tree) -> Any:
    return event["firstTimestamp"] if parse_timestamp(event.get("firstTimestamp")) else event.get("eventTime")


def _source(event: Tree) -> str:
    component = text(event, "source", "component") or text(event, "reportingComponent")
    instance = text(event, "source", "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def component_status_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ComponentStatus."""
    for condition in items(tree, "conditions"):
        if condition.get("type") == "Healthy":
            state = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [name_of(tree), state, text(condition, "message"), text(condition, "error")]
    return [name_of(tree), "Unknown", "", ""]


def api_service_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an APIService."""
    service = peek(tree, "spec", "service")
    where = "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}"
    conditions = items(tree.get("status"), "conditions")
    state = status_of(conditions, "Available") or "Unknown"
    reason = next((text(one, "reason") for one in conditions if one.get("type") == "Available"), "")
    return [name_of(tree), where, f"{state} ({reason})" if reason and state != "True" else state, age_of(tree, now)]
