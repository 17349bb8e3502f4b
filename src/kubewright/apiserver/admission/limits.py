"""The arithmetic of one LimitRange: defaults for the containers of a pod, and what is beyond its limits.

Pure functions on trees, called by the plugin in `limit_ranger` for each LimitRange of a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.defaults.resources import sum_of_containers
from kubewright.apiserver.builtin.trees import Tree, items, peek, section

__all__ = ("apply_defaults", "claim_problems", "pod_problems", "summary")

_ANNOTATION: Final = "kubernetes.io/limit-ranger"

Amounts = dict[str, str]


def apply_defaults(limit_range: Tree, pod: Tree) -> None:
    """Give containers that name no limits or requests those of the namespace; changes the pod in place."""
    requests: Amounts = {}
    limits: Amounts = {}
    for limit in items(limit_range.get("spec"), "limits"):
        if limit.get("type") == "Container":
            requests.update(limit.get("defaultRequest") or {})
            limits.update(limit.get("default") or {})
    notes: list[str] = []
    for name, word in (("containers", "container"), ("initContainers", "init container")):
        for container in items(pod.get("spec"), name):
            given = _give(container, "limits", limits), _give(container, "requests", requests)
            for what, names in (("request", given[1]), ("limit", given[0])):
                if names:
                    notes.append(f"{', '.join(names)} {what} for {word} {container.get('name', '')}")
    if notes:
        annotations = section(section(pod, "metadata"), "annotations")
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def pod_problems(limit_range: Tree, pod: Tree) -> list[str]:
    """Why the pod is not within the limits; empty if it is."""
    problems: list[str] = []
    spec = pod.get("spec") or {}
    for limit in items(limit_range.get("spec"), "limits"):
        if limit.get("type") == "Container":
            for container in (*items(spec, "containers"), *items(spec, "initContainers")):
                resources = container.get("resources") or {}
                requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
                problems += _check(limit, requests, limits)
        elif limit.get("type") == "Pod":
            whole = spec.get("resources") or {}
            requests = {**sum_of_containers(spec, "requests"), **(whole.get("requests") or {})}
            limits = {**sum_of_containers(spec, "limits"), **(whole.get("limits") or {})}
            problems += _check(limit, requests, limits)
    return problems


def claim_problems(limit_range: Tree, claim: Tree) -> list[str]:
    """Why the claim is not within the limits; empty if it is."""
    problems: list[str] = []
    requests = peek(claim, "spec", "resources", "requests") or {}
    for limit in items(limit_range.get("spec"), "limits"):
        if limit.get("type") != "PersistentVolumeClaim":
            continue
        for name, least in (limit.get("min") or {}).items():
            problems += _least(limit["type"], name, least, requests, {})
        for name, most in (limit.get("max") or {}).items():
            usage = f"maximum {name} usage per {limit['type']} is {most}"
            if name not in requests:
                problems.append(f"{usage}.  No request is specified")
            elif Quantity(requests[name]) > Quantity(most):
                problems.append(f"{usage}, but request is {requests[name]}")
    return problems


def summary(problems: Iterable[str]) -> str:
    """All problems in one line, each once."""
    once = list(dict.fromkeys(problems))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _give(container: Tree, which: str, amounts: Amounts) -> list[str]:
    if not amounts:
        return []
    present = section(section(container, "resources"), which)
    names = sorted(name for name in amounts if name not in present)
    for name in names:
        present[name] = amounts[name]
    return names


def _check(limit: Tree, requests: Amounts, limits: Amounts) -> list[str]:
    kind = limit.get("type", "")
    problems: list[str] = []
    for name, least in (limit.get("min") or {}).items():
        problems += _least(kind, name, least, requests, limits)
    for name, most in (limit.get("max") or {}).items():
        problems += _most(kind, name, most, requests, limits)
    for name, ratio in (limit.get("maxLimitRequestRatio") or {}).items():
        problems += _ratio(kind, name, ratio, requests, limits)
    return problems


def _least(kind: str, name: str, least: str, requests: Amounts, limits: Amounts) -> list[str]:
    usage = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        return [f"{usage}.  No request is specified"]
    if Quantity(requests[name]) < Quantity(least):
        return [f"{usage}, but request is {requests[name]}"]
    if name in limits and Quantity(limits[name]) < Quantity(least):
        return [f"{usage}, but limit is {limits[name]}"]
    return []


def _most(kind: str, name: str, most: str, requests: Amounts, limits: Amounts) -> list[str]:
    usage = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        return [f"{usage}.  No limit is specified"]
    if Quantity(limits[name]) > Quantity(most):
        return [f"{usage}, but limit is {limits[name]}"]
    if name in requests and Quantity(requests[name]) > Quantity(most):
        return [f"{usage}, but request is {requests[name]}"]
    return []


def _ratio(kind: str, name: str, ratio: str, requests: Amounts, limits: Amounts) -> list[str]:
    rule = f"{name} max limit to request ratio per {kind} is {ratio}"
    if not Quantity(requests.get(name, "0")):
        return [f"{rule}, but no request is specified or request is 0"]
    if not Quantity(limits.get(name, "0")):
        return [f"{rule}, but no limit is specified or limit is 0"]
    found = Quantity(limits[name]).milli_value / Quantity(requests[name]).milli_value
    if found * 1000 > Quantity(ratio).milli_value:
        return [f"{rule}, but provided ratio is {found:f}"]
    return []
