"""The NamespaceLifecycle plugin: nothing is created in a namespace that is missing or terminating.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go. Three namespaces are
never deleted.
"""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from kubewright.api.kinds import GroupResource
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.status_errors import forbidden, not_found, status_error

__all__ = ("NamespaceLifecycle",)

_NAMESPACES: Final = GroupResource("", "namespaces")
_IMMORTAL: Final = ("default", "kube-system", "kube-public")


class _Status(msgspec.Struct):
    phase: str = ""


class _Meta(msgspec.Struct):
    deletion_timestamp: str | None = msgspec.field(default=None, name="deletionTimestamp")


class _Namespace(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


_decode: Final = msgspec.json.Decoder(_Namespace).decode


@final
class NamespaceLifecycle:
    """Handles creates in namespaces, and deletes of namespaces."""

    def __init__(self, store: Store) -> None:
        self._namespaces = store.table("/namespaces")

    def handles(self, attributes: Attributes) -> bool:
        if attributes.operation == "CREATE":
            return bool(attributes.namespace)
        return attributes.operation == "DELETE" and attributes.resource.table == "/namespaces"

    async def mutate(self, attributes: Attributes) -> None:
        if attributes.operation == "DELETE":
            if attributes.name in _IMMORTAL:
                raise forbidden(_NAMESPACES, attributes.name, "this namespace may not be deleted")
            return
        entry = self._namespaces.get(attributes.namespace)
        if entry is None:
            raise not_found(_NAMESPACES, attributes.namespace)
        namespace = _decode(entry.value)
        if namespace.metadata.deletion_timestamp or namespace.status.phase == "Terminating":
            raise _terminating(attributes)


def _terminating(attributes: Attributes) -> Exception:
    resource, namespace = attributes.resource.group_resource, attributes.namespace
    meta = (attributes.object or {}).get("metadata") or {}
    name = attributes.name or str(meta.get("generateName", ""))
    details: dict[str, Any] = {
        "name": name,
        "group": resource.group,
        "kind": resource.resource,
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ],
    }
    message = (
        f'{resource} "{name}" is forbidden: unable to create new content in namespace {namespace}'
        " because it is being terminated"
    )
    return status_error(403, "Forbidden", message, details=details)
