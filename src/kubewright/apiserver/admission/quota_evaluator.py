"""What an object uses of the ResourceQuotas of its namespace, and which of their names and scopes it falls under.

Pure functions, called by `resource_quota`. They follow kube-apiserver's evaluators (pkg/quota/v1/evaluator/core).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from kubewright.api.quantity import Quantity
from kubewright.api.times import parse_time, seconds_after
from kubewright.apiserver.builtin.defaults.resources import sum_of_containers
from kubewright.apiserver.builtin.preparation.pods import qos_class
from kubewright.apiserver.builtin.trees import Tree, items, peek

__all__ = ("Amounts", "counted_by", "in_scope", "missing", "usage")

Amounts = dict[str, Quantity]

_ONE: Final = Quantity(1)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_MANDATORY: Final = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_BY_POD: Final = frozenset(
    ("pods", *_COMPUTE, *(f"{way}.{name}" for way in ("requests", "limits") for name in _COMPUTE))
)
_BY_SERVICE: Final = frozenset(("services", "services.nodeports", "services.loadbalancers"))
_PLAIN_COUNTS: Final = frozenset(("configmaps", "replicationcontrollers", "resourcequotas", "secrets"))
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES: Final = 32
"""The most devices a claim can get, which a claim for all devices is counted with."""
_RESOURCE_CLAIMS: Final = ("resource.k8s.io", "resourceclaims")


def counted_by(name: str) -> tuple[str, str]:
    """Group and plural of the objects that a resource name of a quota counts."""
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return group, plural
    if name in _BY_SERVICE:
        return "", "services"
    if name in _PLAIN_COUNTS:
        return "", name
    if name in ("persistentvolumeclaims", "requests.storage") or _OF_CLASS in name:
        return "", "persistentvolumeclaims"
    return _RESOURCE_CLAIMS if name.endswith(_DEVICES) else ("", "pods")


def usage(group: str, plural: str, tree: Tree, now: datetime) -> Amounts:
    """What one object uses."""
    result = {f"count/{plural}.{group}" if group else f"count/{plural}": _ONE}
    if (group, plural) == _RESOURCE_CLAIMS:
        result |= _device_usage(tree)
    if group:
        return result
    if plural == "pods":
        result |= _pod_usage(tree, now)
    elif plural == "services":
        result |= _service_usage(tree.get("spec") or {})
    elif plural == "persistentvolumeclaims":
        result |= _claim_usage(tree)
    elif plural in _PLAIN_COUNTS:
        result[plural] = _ONE
    return result


def in_scope(quota: Tree, plural: str, tree: Tree) -> bool:
    """Whether the scopes of a quota match an object; only pods and volume claims can match any."""
    spec = quota.get("spec") or {}
    chosen = [{"scopeName": scope, "operator": "Exists"} for scope in items(spec, "scopes")]
    chosen += items(spec.get("scopeSelector"), "matchExpressions")
    if plural == "persistentvolumeclaims":
        return all(_has_attributes(selector, tree) for selector in chosen)
    return not chosen or (plural == "pods" and all(_matches(selector, tree) for selector in chosen))


def missing(names: Iterable[str], pod: Tree) -> str:
    """The error for containers that lack requests or limits which a quota makes mandatory; empty without one."""
    spec = pod.get("spec") or {}
    if any(peek(spec, "resources", way) for way in ("requests", "limits")):
        return ""
    unstated: dict[str, set[str]] = {}
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        resources = container.get("resources") or {}
        stated = _compute(resources.get("requests") or {}, resources.get("limits") or {})
        for name in _MANDATORY.intersection(names) - stated.keys():
            unstated.setdefault(name, set()).add(str(container.get("name", "")))
    if not unstated:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(unstated[name]))}" for name in sorted(unstated))


def _pod_usage(pod: Tree, now: datetime) -> Amounts:
    if _is_over(pod, now):
        return {}
    spec = pod.get("spec") or {}
    overhead = spec.get("overhead") or {}
    totals: list[Mapping[str, str]] = []
    for way in ("requests", "limits"):
        total = {**sum_of_containers(spec, way), **(peek(spec, "resources", way) or {})}
        for name, amount in overhead.items():
            if way == "requests" or name in total:
                total[name] = (Quantity(total.get(name, 0)) + Quantity(amount)).canonical
        totals.append(total)
    return {"pods": _ONE, **_compute(*totals)}


def _is_over(pod: Tree, now: datetime) -> bool:
    """Finished, or terminating beyond its grace period, which happens on a lost node."""
    if peek(pod, "status", "phase") in ("Failed", "Succeeded"):
        return True
    deleted, grace = (peek(pod, "metadata", name) for name in ("deletionTimestamp", "deletionGracePeriodSeconds"))
    if not deleted or grace is None:
        return False
    return now > seconds_after(parse_time(deleted), grace)


def _compute(requests: Mapping[str, str], limits: Mapping[str, str]) -> Amounts:
    found: Amounts = {}
    for name, amount in requests.items():
        value = Quantity(amount)
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = value
        if name in _COMPUTE or name.startswith("hugepages-") or "/" in name:
            found[f"requests.{name}"] = value
    for name in _COMPUTE:
        if name in limits:
            found[f"limits.{name}"] = Quantity(limits[name])
    return found


def _service_usage(spec: Tree) -> Amounts:
    kind, ports = spec.get("type"), items(spec, "ports")
    result = {"services": _ONE, "services.nodeports": Quantity(0), "services.loadbalancers": Quantity(0)}
    if kind == "LoadBalancer":
        result["services.loadbalancers"] = _ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if kind in ("NodePort", "LoadBalancer"):
        result["services.nodeports"] = Quantity(len(ports))
    return result


def _claim_usage(claim: Tree) -> Amounts:
    spec = claim.get("spec") or {}
    storage_class = peek(claim, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    storage_class = storage_class or spec.get("storageClassName")
    result = {"persistentvolumeclaims": _ONE}
    if storage_class:
        result[f"{storage_class}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    storage = peek(spec, "resources", "requests", "storage")
    if storage is not None:
        result["requests.storage"] = Quantity(storage)
        if storage_class:
            result[f"{storage_class}{_OF_CLASS}requests.storage"] = Quantity(storage)
    return result


def _device_usage(claim: Tree) -> Amounts:
    result: Amounts = {}
    for request in items(peek(claim, "spec", "devices"), "requests"):
        # Only one of several alternatives is allocated: each class counts the most it could be.
        most: Amounts = {}
        for choice in items(request, "firstAvailable") or [request.get("exactly") or {}]:
            name = f"{choice.get('deviceClassName', '')}{_DEVICES}"
            most[name] = max(most.get(name, Quantity(0)), _devices(choice))
        for name, amount in most.items():
            result[name] = result.get(name, Quantity(0)) + amount
    return result


def _devices(choice: Tree) -> Quantity:
    if choice.get("allocationMode") == "All":
        return Quantity(_MOST_DEVICES)
    return Quantity(choice.get("count") or 0)


def _has_attributes(selector: Tree, claim: Tree) -> bool:
    """Whether a scope matches the volume attributes classes of a claim: desired, current or target."""
    if selector.get("scopeName") != "VolumeAttributesClass":
        return False
    names = {
        peek(claim, "spec", "volumeAttributesClassName"),
        peek(claim, "status", "currentVolumeAttributesClassName"),
        peek(claim, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    } - {None, ""}
    return any(_is_named(selector, name) for name in names or {""})


def _matches(selector: Tree, pod: Tree) -> bool:
    spec = pod.get("spec") or {}
    scope = selector.get("scopeName")
    if scope in ("Terminating", "NotTerminating"):
        return ((spec.get("activeDeadlineSeconds") or -1) >= 0) is (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(spec) == "BestEffort") is (scope == "BestEffort")
    if scope == "PriorityClass":
        return _is_named(selector, spec.get("priorityClassName") or "")
    return scope == "CrossNamespacePodAffinity" and _looks_across(spec.get("affinity") or {})


def _is_named(selector: Tree, name: str) -> bool:
    operator, values = selector.get("operator"), selector.get("values") or ()
    if operator == "Exists":
        return bool(name)
    if operator == "DoesNotExist":
        return not name
    return (name in values) if operator == "In" else (name not in values)


def _looks_across(affinity: Tree) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = items(rules, "requiredDuringSchedulingIgnoredDuringExecution")
        weighted = items(rules, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in (*terms, *(item.get("podAffinityTerm") or {} for item in weighted)):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False
