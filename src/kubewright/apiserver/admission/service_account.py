"""The ServiceAccount plugin: gives each new pod a service account, and mounts the account's token.

kube-apiserver: plugin/pkg/admission/serviceaccount/admission.go. A controller creates the account `default` when it
sees a namespace, so a client that creates a namespace and then a pod is often faster. kube-apiserver looks again ten
times before it refuses the pod; this plugin waits that long for the account to appear in the store.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright._base.tasks import within
from kubewright.apiserver.builtin.pod_references import secret_names
from kubewright.apiserver.builtin.trees import Tree, items, peek, section
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.storage.store import Change, Store, Table
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("ServiceAccount",)

_DEFAULT: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"
_PATIENCE: Final = 1.35  # nine pauses of 100 to 200 ms each
_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105  # the name of a volume
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  # a mount path
# One hour and seven seconds: by which kube-apiserver recognizes the volumes it has added.
_TOKEN_SECONDS: Final = 3607
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SYSTEM_RANDOM: Final = random.Random()  # the name of a volume is no secret


@final
class ServiceAccount:
    """Mutates new pods; mirror pods, which a kubelet creates, stay as they are and may refer to no credentials."""

    def __init__(self, store: Store, clock: Clock, *, chance: random.Random = _SYSTEM_RANDOM) -> None:
        self._accounts = store.table("/serviceaccounts")
        self._clock = clock
        self._chance = chance

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.table == "/pods" and attributes.operation == "CREATE" and not attributes.subresource

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        pod = attributes.object
        if peek(pod, "metadata", "annotations", _MIRROR) is not None:
            _check_mirror_pod(attributes, pod)
            return
        spec = section(pod, "spec")
        name = spec.get("serviceAccountName") or _DEFAULT
        account = await self._account(attributes.namespace, name)
        if account is None:
            key = f"{attributes.namespace}/{name}"
            why = f'error looking up service account {key}: serviceaccount "{name}" not found'
            raise admission_forbidden(attributes, why)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        automount = spec.get("automountServiceAccountToken")
        if automount is None:
            automount = account.get("automountServiceAccountToken")
        if automount is not False:
            _mount_token(spec, self._chance)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]

    async def _account(self, namespace: str, name: str) -> Tree | None:
        key = key_of(namespace, name)
        if name == _DEFAULT and self._accounts.get(key) is None:
            await self._wait_for(key)
        entry = self._accounts.get(key)
        return None if entry is None else decode_json(entry.value)

    async def _wait_for(self, key: str) -> None:
        arrival = _Arrival(self._accounts, key)
        try:
            await within(arrival.seen.wait(), _PATIENCE, clock=self._clock)
        except TimeoutError:
            return  # `mutate` looks once more and refuses the pod
        finally:
            arrival.stop()


@final
class _Arrival:
    """Watches a table for one key."""

    def __init__(self, table: Table, key: str) -> None:
        self.seen = asyncio.Event()
        self._key = key
        self.stop = table.watch(self)

    def deliver(self, change: Change) -> None:
        if change.key == self._key and change.new is not None:
            self.seen.set()

    def table_gone(self) -> None:
        self.seen.set()


def _check_mirror_pod(attributes: Attributes, pod: Tree) -> None:
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        raise admission_forbidden(attributes, "a mirror pod may not reference service accounts")
    if next(secret_names(pod), None):
        raise admission_forbidden(attributes, "a mirror pod may not reference secrets")
    sources = [source for volume in items(spec, "volumes") for source in items(volume.get("projected"), "sources")]
    if any(source.get("serviceAccountToken") is not None for source in sources):
        raise admission_forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _mount_token(spec: Tree, chance: random.Random) -> None:
    volumes = items(spec, "volumes")
    present = next((v["name"] for v in volumes if (v.get("name") or "").startswith(_TOKEN_VOLUME)), "")
    name = present or _TOKEN_VOLUME + "".join(chance.choice(_ALPHABET) for _ in range(5))
    needed = False
    for container in (*items(spec, "initContainers"), *items(spec, "containers")):
        # A container that mounts something of its own at this path gets no token.
        if all(mount.get("mountPath") != _TOKEN_PATH for mount in items(container, "volumeMounts")):
            mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
            container["volumeMounts"] = [*items(container, "volumeMounts"), mount]
            needed = True
    if needed and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Tree:
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 0o644,
    }
