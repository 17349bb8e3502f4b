"""Who may have devices that others use: claims that ask for admin access, in namespaces that are marked for it.

The mark is a label of the namespace, which its users usually cannot set. `admission` asks here once an object is known
to be well formed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.trees import Tree, items, peek

__all__ = ("admin_access_errors", "asks_for_admin_access")

_LABEL: Final = "resource.kubernetes.io/admin-access"
_SPECS: Final = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}


def asks_for_admin_access(gvk: GroupVersionKind, obj: Tree, old: Tree | None, subresource: str) -> str:
    """The first field that asks for it, or nothing; what was granted before is not asked for again."""
    if gvk.group != "resource.k8s.io":
        return ""
    if gvk.kind == "ResourceClaim" and subresource == "status":
        granted = _first("status.allocation.devices.results", _results(old or {}))
        return "" if granted else _first("status.allocation.devices.results", _results(obj))
    if gvk.kind not in _SPECS or old is not None or subresource:
        return ""
    requests = items(peek(obj, *_SPECS[gvk.kind], "devices"), "requests")
    # What several devices would do for may not ask for it at all; older versions have no level between.
    return _first("spec.devices.requests", [request.get("exactly") or request for request in requests])


def admin_access_errors(path: str, namespace: Tree | None) -> list[FieldError]:
    """Why the namespace does not allow it; empty if it does."""
    if peek(namespace or {}, "metadata", "labels", _LABEL) == "true":
        return []
    why = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
    return [FieldError(path, "Forbidden", why)]


def _results(claim: Tree) -> list[Tree]:
    return items(peek(claim, "status", "allocation", "devices"), "results")


def _first(path: str, asked: Iterable[Tree]) -> str:
    return next((f"{path}[{index}].adminAccess" for index, one in enumerate(asked) if one.get("adminAccess")), "")
