"""Which API objects belong to which node: those that the pods bound to it refer to.

    node <- pod <- Secret, ConfigMap, ServiceAccount, ResourceClaim, claim
    node <- pod <- claim <- PersistentVolume <- Secret
    node <- VolumeAttachment, ResourceSlice

`NodeGraph` counts, for each object, the pods of each node that refer to it. It is made when the first node asks, and
changed pods and volumes are decoded when the next one does, so it costs nothing where no node logs in. Called by
`node_authorizer`. Upstream: plugin/pkg/auth/authorizer/node/graph.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

from msgspec import Struct

from kubewright.apiserver.builtin.pod_references import (
    claim_names,
    config_map_names,
    resource_claim_names,
    secret_names,
    volume_secrets,
)
from kubewright.apiserver.builtin.trees import Tree, text
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.storage.store import Change, Store, Table
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("NodeGraph",)

_MIRROR: Final = "kubernetes.io/config.mirror"

Reference = tuple[str, str]
"""The plural of a resource, and the key of an object of it."""


class _Pod(Struct, frozen=True):
    node: str
    references: frozenset[Reference]


class _Volume(Struct, frozen=True):
    claim: str
    secrets: frozenset[str]


@final
class NodeGraph:
    """The objects of each node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pods: dict[str, _Pod] = {}
        self._volumes: dict[str, _Volume] = {}
        self._nodes: dict[Reference, dict[str, int]] = {}
        """How many pods of each node refer to an object."""
        self._volumes_of_secret: dict[str, set[str]] = {}
        self._changed_pods = _ChangedKeys(store.table("/pods"))
        self._changed_volumes = _ChangedKeys(store.table("/persistentvolumes"))

    def reaches(self, node: str, plural: str, key: str) -> bool:
        """Whether an object belongs to a node."""
        self._update()
        if plural == "persistentvolumes":
            return self._reaches_volume(node, key)
        if plural in ("pods", "volumeattachments", "resourceslices"):
            return self._bound_node(plural, key) == node
        if node in self._nodes.get((plural, key), ()):
            return True
        return plural == "secrets" and any(
            self._reaches_volume(node, volume) for volume in self._volumes_of_secret.get(key, ())
        )

    def _reaches_volume(self, node: str, name: str) -> bool:
        volume = self._volumes.get(name)
        return volume is not None and node in self._nodes.get(("persistentvolumeclaims", volume.claim), ())

    def _bound_node(self, plural: str, key: str) -> str:
        """The node that an object itself names."""
        group = {"volumeattachments": "storage.k8s.io", "resourceslices": "resource.k8s.io"}.get(plural, "")
        entry = self._store.table(f"{group}/{plural}").get(key)
        return "" if entry is None else text(decode_json(entry.value), "spec", "nodeName")

    def _update(self) -> None:
        for key, tree in self._changed_pods.take():
            self._set_pod(key, None if tree is None else _read_pod(tree))
        for key, tree in self._changed_volumes.take():
            self._set_volume(key, None if tree is None else _read_volume(tree))

    def _set_pod(self, key: str, pod: _Pod | None) -> None:
        old = self._pods.pop(key, None)
        if pod is not None:
            self._pods[key] = pod
        if old == pod:
            return
        for reference in old.references if old is not None else ():
            assert old is not None
            nodes = self._nodes[reference]
            nodes[old.node] -= 1
            if not nodes[old.node]:
                del nodes[old.node]
                if not nodes:
                    del self._nodes[reference]
        for reference in pod.references if pod is not None else ():
            assert pod is not None
            nodes = self._nodes.setdefault(reference, {})
            nodes[pod.node] = nodes.get(pod.node, 0) + 1

    def _set_volume(self, name: str, volume: _Volume | None) -> None:
        old = self._volumes.pop(name, None)
        for secret in old.secrets if old is not None else ():
            self._volumes_of_secret[secret].discard(name)
            if not self._volumes_of_secret[secret]:
                del self._volumes_of_secret[secret]
        if volume is not None:
            self._volumes[name] = volume
            for secret in volume.secrets:
                self._volumes_of_secret.setdefault(secret, set()).add(name)


@final
class _ChangedKeys:
    """The keys of a table whose objects have changed since they were last taken; at first all."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._keys: dict[str, None] = {entry.key: None for entry in table.entries()}
        table.watch(self)

    def deliver(self, change: Change) -> None:
        self._keys[change.key] = None

    def table_gone(self) -> None:
        """Never: the table stays."""

    def take(self) -> Iterator[tuple[str, Any]]:
        """The changed objects, decoded; None for one that is gone."""
        keys, self._keys = self._keys, {}
        for key in keys:
            entry = self._table.get(key)
            yield key, None if entry is None else decode_json(entry.value)


def _read_pod(pod: Tree) -> _Pod | None:
    node, meta = text(pod, "spec", "nodeName"), pod["metadata"]
    # A node creates mirror pods itself: they must not give it more.
    if not node or _MIRROR in (meta.get("annotations") or {}):
        return None
    named = {
        "serviceaccounts": (text(pod, "spec", "serviceAccountName"),),
        "secrets": secret_names(pod),
        "configmaps": config_map_names(pod),
        "persistentvolumeclaims": claim_names(pod),
        "resourceclaims": resource_claim_names(pod),
    }
    references = (
        (plural, key_of(meta["namespace"], name)) for plural, names in named.items() for name in names if name
    )
    return _Pod(node, frozenset(references))


def _read_volume(volume: Tree) -> _Volume | None:
    claim = text(volume, "spec", "claimRef", "name")
    if not claim:
        return None
    secrets = frozenset(key_of(namespace, name) for namespace, name in volume_secrets(volume) if namespace and name)
    return _Volume(key_of(text(volume, "spec", "claimRef", "namespace"), claim), secrets)
