"""The autoscaling/v1 Scale of built-in workloads: `scale_of` reads it, `with_scale` writes it, for `verbs.scale`."""

from __future__ import annotations

from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.trees import Tree, peek

__all__ = ("has_scale", "scale_of", "with_scale")

_SCALABLE: Final = (
    ("", "ReplicationController"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
)
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_SIGNS: Final = {"In": "in", "NotIn": "notin"}


def has_scale(gvk: GroupVersionKind) -> bool:
    """Whether a built-in kind has the scale subresource."""
    return (gvk.group, gvk.kind) in _SCALABLE


def scale_of(gvk: GroupVersionKind, obj: Tree) -> Tree:
    """The Scale of a workload; a new tree."""
    metadata = obj.get("metadata") or {}
    replicas = peek(obj, "spec", "replicas") or 0
    status: Tree = {"replicas": peek(obj, "status", "replicas") or 0}
    selector = _selector(gvk, obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _METADATA if metadata.get(name)},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def with_scale(obj: Tree, scale: Tree) -> Tree:
    """The workload with the replicas of a Scale; a new tree that shares the rest."""
    spec = {**(obj.get("spec") or {}), "replicas": peek(scale, "spec", "replicas") or 0}
    metadata = dict(obj.get("metadata") or {})
    version = peek(scale, "metadata", "resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    return {**obj, "metadata": metadata, "spec": spec}


def _selector(gvk: GroupVersionKind, obj: Tree) -> str:
    selector = peek(obj, "spec", "selector") or {}
    labels = selector if gvk.kind == "ReplicationController" else selector.get("matchLabels") or {}
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for rule in (selector.get("matchExpressions") or []) if gvk.kind != "ReplicationController" else []:
        key, operator = rule.get("key", ""), rule.get("operator", "")
        if operator in _SIGNS:
            terms.append((key, f"{key} {_SIGNS[operator]} ({','.join(sorted(rule.get('values') or []))})"))
        else:
            terms.append((key, f"!{key}" if operator == "DoesNotExist" else key))
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))
