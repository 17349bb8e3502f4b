"""Claims that ask for admin access to devices others use: only in namespaces with the label that allows it.

Users of a namespace usually may not set its labels. kube-apiserver does this while it validates the object, not in
admission (pkg/registry/resource/utils.go, `AuthorizedForAdmin`); here it needs the store, which validation does not
have, so it is the first plugin that validates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import invalid

__all__ = ("DeviceAdminAccess",)

_LABEL: Final = "resource.kubernetes.io/admin-access"
_RESULTS: Final = "status.allocation.devices.results"
_SPECS: Final = {"resourceclaims": ("spec",), "resourceclaimtemplates": ("spec", "spec")}


@final
class DeviceAdminAccess:
    """Validates new ResourceClaims and templates, and what is allocated to a claim."""

    def __init__(self, store: Store) -> None:
        self._namespaces = store.table("/namespaces")

    def handles(self, attributes: Attributes) -> bool:
        resource = attributes.resource
        if resource.kind.group != "resource.k8s.io" or resource.plural not in _SPECS:
            return False
        if attributes.subresource:
            return (resource.plural, attributes.subresource) == ("resourceclaims", "status")
        return attributes.operation == "CREATE"  # the spec is immutable

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        path = _requested_at(attributes, attributes.object)
        if path and not self._is_allowed(attributes.namespace):
            why = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
            error = FieldError(path, "Forbidden", why)
            raise invalid(attributes.resource.kind, text(attributes.object, "metadata", "name"), [error])

    def _is_allowed(self, namespace: str) -> bool:
        entry = self._namespaces.get(namespace)
        return entry is not None and peek(decode_json(entry.value), "metadata", "labels", _LABEL) == "true"


def _requested_at(attributes: Attributes, tree: Tree) -> str:
    """The path of the first field that asks for admin access; empty if none does, or if it was granted before."""
    if attributes.subresource:
        granted = _first(_RESULTS, _results(attributes.old or {}))
        return "" if granted else _first(_RESULTS, _results(tree))
    requests = items(peek(tree, *_SPECS[attributes.resource.plural], "devices"), "requests")
    # A request for the first available of several devices may not ask for it at all; v1beta1 has no `exactly`.
    return _first("spec.devices.requests", [request.get("exactly") or request for request in requests])


def _results(claim: Tree) -> list[Tree]:
    return items(peek(claim, "status", "allocation", "devices"), "results")


def _first(path: str, devices: Iterable[Tree]) -> str:
    return next((f"{path}[{index}].adminAccess" for index, one in enumerate(devices) if one.get("adminAccess")), "")
