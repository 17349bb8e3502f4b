"""Quantities of resource lists: rounded up to milli, requests from limits, and pod-level resources."""

from __future__ import annotations

from typing import Any, Final

from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.trees import Tree, items
from kubewright.errors import DecodeError

__all__ = ("default_pod_resources", "default_requests", "round_amounts", "round_resources", "sum_of_containers")

_POD_LEVEL: Final = ("cpu", "memory")
_HUGE: Final = "hugepages-"


def round_amounts(tree: Tree | None, *names: str) -> None:
    """Round the quantities of these resource lists up to milli (`SetDefaults_ResourceList`)."""
    for name in names if tree else ():
        amounts = tree.get(name)  # type: ignore[union-attr]  # not None, or there would be no names
        if amounts:
            for resource, amount in amounts.items():
                if _is_fine(amount):
                    amounts[resource] = _rounded(amount)


def round_resources(holder: Tree) -> None:
    """The limits and requests of a container or a claim."""
    resources = holder.get("resources")
    if resources:
        round_amounts(resources, "limits", "requests")


def default_requests(container: Tree) -> None:
    """Set the missing requests of a container to its limits."""
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if limits is not None:
        requests = resources.get("requests")
        if requests is None:
            requests = resources["requests"] = {}
        for resource, amount in limits.items():
            requests.setdefault(resource, amount)


def default_pod_resources(spec: Tree) -> None:
    """Set pod-level requests and huge pages by those of the containers (`DefaultPodLevelResources`)."""
    whole = spec.get("resources")
    if not whole:
        return
    if whole.get("limits") or whole.get("requests"):
        limits = whole.get("limits") or {}
        for resource, amount in sum_of_containers(spec, "limits").items():
            if resource.startswith(_HUGE) and resource not in (whole.get("requests") or {}):
                limits.setdefault(resource, amount)
        if limits:
            whole["limits"] = limits
    if not whole.get("limits"):
        return
    requests = whole.get("requests") or {}
    for resource, amount in sum_of_containers(spec, "requests").items():
        if resource in _POD_LEVEL:
            requests.setdefault(resource, amount)
    for resource, amount in whole["limits"].items():
        if resource in _POD_LEVEL or resource.startswith(_HUGE):
            requests.setdefault(resource, amount)
    if requests:
        whole["requests"] = requests


def sum_of_containers(spec: Tree, which: str) -> dict[str, str]:
    """The resources of all containers: the sum of those that run together, and at least the maximum of init containers.

    k8s.io/component-helpers/resource/helpers.go.
    """
    total: dict[str, Quantity] = {}
    for container in items(spec, "containers"):
        _add(total, _amounts(container, which))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in items(spec, "initContainers"):
        amounts = _amounts(container, which)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(peak, sidecars)
        else:
            at_once = dict(amounts)
            _add(at_once, sidecars)
            _raise(peak, at_once)
    _raise(total, peak)
    return {resource: amount.canonical for resource, amount in total.items()}


def _amounts(container: Tree, which: str) -> dict[str, Quantity]:
    resources = container.get("resources") or {}
    found: dict[str, Quantity] = {}
    for resource, amount in (resources.get(which) or {}).items():
        try:
            found[resource] = Quantity.parse(str(amount))
        except DecodeError:
            continue  # validation reports it
    return found


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for resource, amount in more.items():
        total[resource] = total[resource] + amount if resource in total else amount


def _raise(total: dict[str, Quantity], floor: dict[str, Quantity]) -> None:
    for resource, amount in floor.items():
        if resource not in total or total[resource] < amount:
            total[resource] = amount


def _is_fine(amount: Any) -> bool:
    """Whether the quantity may be finer than milli; a canonical one only with these suffixes."""
    return not isinstance(amount, str) or amount[-1:] in ("n", "u") or "e-" in amount or "." in amount


def _rounded(amount: Any) -> str:
    try:
        milli = Quantity.parse(str(amount)).milli_value
    except DecodeError:
        return str(amount)
    return Quantity(f"{milli}m").canonical
