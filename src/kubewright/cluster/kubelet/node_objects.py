"""Simulated nodes as objects: Node and Lease, registered and kept Ready.

What a kubelet does for its node, without a machine: it registers it, posts its status, and renews its lease every ten
seconds, from which controllers see that it lives, unless it is told to be silent (`silence`). A node that somebody
deletes stays deleted until this process starts again. Registered by `node_controllers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, final
from uuid import NAMESPACE_DNS, uuid5

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import within
from kubewright.api.codec import decode_tree, to_tree
from kubewright.api.metadata import ObjectMeta
from kubewright.api.owners import owner_reference
from kubewright.api.quantity import Quantity
from kubewright.api.times import MicroTime, format_micro_time
from kubewright.client.client import Client
from kubewright.cluster.kubelet.failure_injection import FailureInjection, is_silent
from kubewright.cluster.kubelet.server import KubeletServer
from kubewright.errors import AlreadyExists, ApiError, ConfigError, NotFound, TransportError
from kubewright.k8s.coordination.v1 import Lease, LeaseSpec
from kubewright.k8s.core.v1 import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)

__all__ = ("Nodes", "node_status", "to_give_away")

LEASE_NAMESPACE: Final = "kube-node-lease"
NOT_READY: Final = "node.kubernetes.io/not-ready"

_LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_POST_SECONDS: Final = 300.0
_CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
_ANNOTATIONS: Final = {
    "simulation.kubewright.io/node": "true",
    # How long a kubelet may keep what it has read; the controller of a large cluster would say more than 0.
    "node.alpha.kubernetes.io/ttl": "0",
}
_WELL: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)

_log = Logger("kubewright.cluster.kubelet")


@final
class Nodes:
    """A number of nodes, kept alive. A runnable; ready when all of them are."""

    needs_leader = False
    name = "simulated nodes"

    def __init__(
        self,
        client: Client,
        count: int = 1,
        *,
        names: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        capacity: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
        server: KubeletServer | None = None,
        silence: FailureInjection | None = None,
        version: str = "",
        clock: Clock | None = None,
    ) -> None:
        """`names` are `node-1` and so on if not given. `capacity` adds to, or changes, 32 CPUs, 256 GiB and
        1000 pods: nodes that cost nothing are large.

        `server` is the `KubeletServer` whose port the nodes name; without one they name none. `version` is the
        kubelet's, by default that of the API server.
        """
        if count < 1 and not names:
            raise ConfigError(f"{count} simulated nodes cannot run pods; ask for 1 or more")
        self.names = tuple(names) or tuple(f"node-{number}" for number in range(1, count + 1))
        self._client = client
        self._labels = dict(labels or {})
        self._taints = tuple(taints)
        self._capacity = {**_CAPACITY, **(capacity or {})}
        self._address = address
        self._server = server
        self._silence = silence or FailureInjection()
        self._version = version
        self._clock = clock or SystemClock()
        self._posted: dict[str, datetime] = {}
        self._ready = asyncio.Event()

    def __contains__(self, name: object) -> bool:
        return name in self.names

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Register the nodes and keep them alive until cancelled."""
        if self._server is not None:
            await self._server.wait_ready()
        if not self._version:
            answer = await self._client.request("GET", "/version")
            self._version = str(decode_tree(answer.body).get("gitVersion", ""))
        numbered = enumerate(self.names, start=1)
        await asyncio.gather(*(self._register(name, number) for number, name in numbered))
        self._ready.set()
        while True:
            self._silence.ended.clear()
            for name in self.names:
                if name not in self._silence:
                    await self._beat(name)
            with suppress(TimeoutError):
                await within(self._silence.ended.wait(), _RENEW_SECONDS, clock=self._clock)

    # --- registering ---

    async def _register(self, name: str, number: int) -> None:
        node = Node(
            metadata=ObjectMeta(name=name, labels=self._labels_of(name), annotations=dict(_ANNOTATIONS)),
            spec=NodeSpec(
                pod_cidr=f"10.244.{number & 255}.0/24",
                pod_cidrs=[f"10.244.{number & 255}.0/24"],
                provider_id=f"kubewright://{name}",
                taints=list(self._taints) or None,
            ),
        )
        try:
            present = await self._client.create(node)
        except AlreadyExists:
            present = await self._client.get(Node, name)
        await self._post_status(present)
        # A server taints a new node until somebody has seen it ready; there may be nobody else to look.
        taints = [taint for taint in present.spec.taints or () if taint.key != NOT_READY]
        if len(taints) != len(present.spec.taints or ()):
            patch = {"spec": {"taints": [to_tree(taint) for taint in taints] or None}}
            await self._client.patch_by_name(Node, name, patch)

    def _labels_of(self, name: str) -> dict[str, str]:
        return {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
            **self._labels,
        }

    # --- keeping alive ---

    async def _beat(self, name: str) -> None:
        try:
            await self._renew(name)
            await self._post(name)
        except NotFound:
            return  # somebody has deleted it
        except (ApiError, TransportError) as error:
            _log.warning("a simulated node could not report", node=name, error=str(error))

    async def _post(self, name: str) -> None:
        """Say that all is well, now and then, and whenever somebody has said otherwise."""
        node = await self._client.get(Node, name)
        if is_silent(node):
            return  # since a moment ago: what is said of it now is not to be put right
        if changed := to_give_away(node):
            patch = {"status": {"allocatable": changed}}
            await self._client.patch_by_name(Node, name, patch, form="strategic", subresource="status")
        ready = next((item for item in node.status.conditions or () if item.type == "Ready"), None)
        silent = self._clock.now() - self._posted.get(name, self._clock.now())
        if silent >= timedelta(seconds=_POST_SECONDS) or ready is None or ready.status != "True":
            await self._post_status(node)

    async def _post_status(self, node: Node) -> None:
        port = self._server.port if self._server is not None else 0
        now = self._clock.now().replace(microsecond=0)
        status = node_status(
            node,
            capacity={resource: Quantity(amount) for resource, amount in self._capacity.items()},
            address=self._address,
            port=port,
            version=self._version,
            now=now,
        )
        patch = {"status": to_tree(status)}
        await self._client.patch_by_name(Node, node.metadata.name, patch, form="strategic", subresource="status")
        self._posted[node.metadata.name] = self._clock.now()

    async def _renew(self, name: str) -> None:
        now = MicroTime.of(self._clock.now())
        patch = {
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": _LEASE_SECONDS,
                "renewTime": format_micro_time(now),
            }
        }
        try:
            await self._client.patch_by_name(Lease, name, patch, namespace=LEASE_NAMESPACE)
        except NotFound:
            node = await self._client.get(Node, name)
            spec = LeaseSpec(holder_identity=name, lease_duration_seconds=_LEASE_SECONDS, renew_time=now)
            metadata = ObjectMeta(name=name, namespace=LEASE_NAMESPACE, owner_references=[owner_reference(node)])
            await self._client.create(Lease(metadata=metadata, spec=spec))


def node_status(
    node: Node, *, capacity: Mapping[str, Quantity], address: str, port: int, version: str, now: datetime
) -> NodeStatus:
    """The status of a node that is well."""
    return NodeStatus(
        capacity=dict(capacity),
        allocatable=dict(capacity),
        addresses=[
            NodeAddress(type="InternalIP", address=address),
            # API servers call a kubelet by its host name first, so it has to be one that leads here.
            NodeAddress(type="Hostname", address="localhost" if address == "127.0.0.1" else address),
        ],
        conditions=_conditions(node, now),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port)) if port else None,
        node_info=_info(node, version),
    )


def to_give_away(node: Node) -> dict[str, str | None]:
    """What pods may have of the resources that somebody else has put on the node, such as `example.com/dongle`.

    A kubelet gives away as much as the node has; what the node has no longer is None.
    """
    has, gives = node.status.capacity or {}, node.status.allocatable or {}
    found: dict[str, str | None] = {
        name: str(has[name]) for name in has if "/" in name and gives.get(name) != has[name]
    }
    return found | {name: None for name in gives if "/" in name and name not in has}


def _conditions(node: Node, now: datetime) -> list[NodeCondition]:
    known = {item.type: item for item in node.status.conditions or ()}
    conditions = []
    for kind, status, reason, message in _WELL:
        before = known.get(kind)
        since = before.last_transition_time if before is not None and before.status == status else now
        conditions.append(
            NodeCondition(
                type=kind,
                status=status,
                reason=reason,
                message=message,
                last_heartbeat_time=now,
                last_transition_time=since,
            )
        )
    return conditions


def _info(node: Node, version: str) -> NodeSystemInfo:
    identity = uuid5(NAMESPACE_DNS, f"{node.metadata.name}.nodes.kubewright.io")
    return NodeSystemInfo(
        machine_id=identity.hex,
        system_uuid=str(identity),
        boot_id=str(identity),
        kernel_version="0.0.0-simulated",
        os_image="Kubewright simulated node",
        container_runtime_version="containerd://0.0.0-simulated",
        kubelet_version=version,
        kube_proxy_version="",
        operating_system="linux",
        architecture="amd64",
    )
