"""The Node and Lease objects of simulated nodes: registration, status and heartbeats.

As pkg/kubelet/kubelet_node_status.go: it registers the nodes, posts their status every five minutes and renews their
leases every ten seconds, unless `failure_injection` stops the kubelet of a node. A deleted node stays deleted until
this process restarts. Registered by `planes.simulated_nodes`.
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

__all__ = ("Nodes", "extended_resource_changes", "node_names", "node_status")

LEASE_NAMESPACE: Final = "kube-node-lease"
NOT_READY: Final = "node.kubernetes.io/not-ready"

_LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_POST_SECONDS: Final = 300.0
_CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
_ANNOTATIONS: Final = {
    "simulation.kubewright.io/node": "true",
    # How long a kubelet may cache ConfigMaps and Secrets; the TTL controller sets more than 0 only in large clusters.
    "node.alpha.kubernetes.io/ttl": "0",
}
_HEALTHY_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)

_log = Logger("kubewright.cluster.kubelet")


@final
class Nodes:
    """Registers nodes and keeps them Ready; a runnable that is ready when all nodes are."""

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
        failures: FailureInjection | None = None,
        version: str = "",
        clock: Clock | None = None,
    ) -> None:
        """`names` are `node-1` and so on by default. `capacity` overrides the default of 32 CPUs, 256 GiB and 1000
        pods.

        `server` is the `KubeletServer` whose port the node status has; without one it has none. `version` is the
        kubelet version, by default that of the API server.
        """
        if count < 1 and not names:
            raise ConfigError(f"{count} simulated nodes cannot run pods; ask for 1 or more")
        self.names = node_names(count, names)
        self._client = client
        self._labels = dict(labels or {})
        self._taints = tuple(taints)
        self._capacity = {**_CAPACITY, **(capacity or {})}
        self._address = address
        self._server = server
        self._failures = failures or FailureInjection()
        self._version = version
        self._clock = clock or SystemClock()
        self._posted: dict[str, datetime] = {}
        self._ready = asyncio.Event()

    def __contains__(self, name: object) -> bool:
        return name in self.names

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Register the nodes and send heartbeats until cancelled."""
        if self._server is not None:
            await self._server.wait_ready()
        if not self._version:
            response = await self._client.request("GET", "/version")
            self._version = str(decode_tree(response.body).get("gitVersion", ""))
        numbered = enumerate(self.names, start=1)
        await asyncio.gather(*(self._register(name, number) for number, name in numbered))
        self._ready.set()
        while True:
            self._failures.recovered.clear()
            for name in self.names:
                if name not in self._failures:
                    await self._heartbeat(name)
            with suppress(TimeoutError):
                await within(self._failures.recovered.wait(), _RENEW_SECONDS, clock=self._clock)

    # --- registration ---

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
            created = await self._client.create(node)
        except AlreadyExists:
            created = await self._client.get(Node, name)
        await self._post_status(created)
        # The admission plugin TaintNodesByCondition taints a new node not-ready. The node lifecycle controller would
        # remove the taint, but there may be none.
        taints = [taint for taint in created.spec.taints or () if taint.key != NOT_READY]
        if len(taints) != len(created.spec.taints or ()):
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

    # --- heartbeats ---

    async def _heartbeat(self, name: str) -> None:
        try:
            await self._renew_lease(name)
            await self._sync_status(name)
        except NotFound:
            return  # the node was deleted
        except (ApiError, TransportError) as error:
            _log.warning("a simulated node could not report", node=name, error=str(error))

    async def _sync_status(self, name: str) -> None:
        """Post the status every five minutes, and when another controller marked the node not ready."""
        node = await self._client.get(Node, name)
        if is_silent(node):
            return  # silent since a moment ago: do not correct what the node lifecycle controller reports
        if changes := extended_resource_changes(node):
            patch = {"status": {"allocatable": changes}}
            await self._client.patch_by_name(Node, name, patch, patch_type="strategic", subresource="status")
        ready = next((item for item in node.status.conditions or () if item.type == "Ready"), None)
        since_last_post = self._clock.now() - self._posted.get(name, self._clock.now())
        if since_last_post >= timedelta(seconds=_POST_SECONDS) or ready is None or ready.status != "True":
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
        await self._client.patch_by_name(Node, node.metadata.name, patch, patch_type="strategic", subresource="status")
        self._posted[node.metadata.name] = self._clock.now()

    async def _renew_lease(self, name: str) -> None:
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


def node_names(count: int, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The given names, or `node-1` and so on."""
    return tuple(names) or tuple(f"node-{number}" for number in range(1, count + 1))


def node_status(
    node: Node, *, capacity: Mapping[str, Quantity], address: str, port: int, version: str, now: datetime
) -> NodeStatus:
    """The status of a healthy node."""
    return NodeStatus(
        capacity=dict(capacity),
        allocatable=dict(capacity),
        addresses=[
            NodeAddress(type="InternalIP", address=address),
            # kube-apiserver prefers the address type Hostname, so it must resolve to this machine.
            NodeAddress(type="Hostname", address="localhost" if address == "127.0.0.1" else address),
        ],
        conditions=_conditions(node, now),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port)) if port else None,
        node_info=_system_info(node, version),
    )


def extended_resource_changes(node: Node) -> dict[str, str | None]:
    """Changes of `allocatable` that make extended resources, such as `example.com/dongle`, equal to `capacity`.

    Users patch extended resources into `capacity`, and the kubelet copies them. None removes a resource.
    """
    capacity, allocatable = node.status.capacity or {}, node.status.allocatable or {}
    changes: dict[str, str | None] = {
        name: str(capacity[name]) for name in capacity if "/" in name and allocatable.get(name) != capacity[name]
    }
    return changes | {name: None for name in allocatable if "/" in name and name not in capacity}


def _conditions(node: Node, now: datetime) -> list[NodeCondition]:
    known = {item.type: item for item in node.status.conditions or ()}
    conditions = []
    for kind, status, reason, message in _HEALTHY_CONDITIONS:
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


def _system_info(node: Node, version: str) -> NodeSystemInfo:
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
