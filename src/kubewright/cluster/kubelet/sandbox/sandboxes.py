"""A running container as a process in it would see it: its host name, environment and files.

`kubelet` says which pods there are; `Sandboxes.enter` makes the inside of a container when somebody wants to run a
command in it, and keeps its files until the container ends. The ConfigMaps, Secrets and fields that the pod refers to
are read at that moment. Nothing in here runs.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Final, final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.client.client import Client
from kubewright.cluster.kubelet.pods.lifecycle import PodLifecycle
from kubewright.cluster.kubelet.sandbox.files import Files
from kubewright.cluster.kubelet.sandbox.host_names import host_name, hosts_file
from kubewright.errors import ApiError
from kubewright.k8s.core.v1 import (
    ConfigMap,
    Container,
    EnvVarSource,
    EphemeralContainer,
    KeyToPath,
    Pod,
    Secret,
    Volume,
)

__all__ = ("Sandbox", "Sandboxes")

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE: Final = re.compile(r"\$\$|\$\(([^()]+)\)")
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@final
class Sandbox(msgspec.Struct):
    """The inside of one container."""

    hostname: str
    folder: str
    """Where a command starts."""
    environment: dict[str, str]
    files: Files


@final
class _Known(msgspec.Struct, frozen=True):
    pod: Pod
    life: PodLifecycle
    host_ip: str
    pod_ip: str


@final
class Sandboxes:
    """The containers that run on the simulated nodes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods: dict[tuple[str, str], _Known] = {}
        self._files: dict[str, Files] = {}

    def note(self, pod: Pod, life: PodLifecycle, *, host_ip: str, pod_ip: str) -> None:
        """A pod as it is now; files of containers that run no more are forgotten."""
        self._pods[pod.metadata.namespace, pod.metadata.name] = _Known(pod, life, host_ip, pod_ip)
        for container in life.containers.values():
            if container.phase != "running":
                self._files.pop(container.container_id, None)

    def forget(self, namespace: str, name: str) -> None:
        """The pod is gone."""
        known = self._pods.pop((namespace, name), None)
        for container in known.life.containers.values() if known is not None else ():
            self._files.pop(container.container_id, None)

    def knows(self, namespace: str, name: str) -> bool:
        """Whether there is such a pod on these nodes."""
        return (namespace, name) in self._pods

    def is_running(self, namespace: str, name: str, container: str) -> bool:
        """Whether a container can be entered."""
        found = self._pods.get((namespace, name))
        life = found.life.containers.get(container) if found is not None else None
        return life is not None and life.phase == "running"

    def is_up(self, namespace: str, name: str) -> bool:
        """Whether a pod has a network that can be reached: one of its containers runs."""
        found = self._pods.get((namespace, name))
        return found is not None and any(life.phase == "running" for life in found.life.containers.values())

    def ports(self, namespace: str, name: str) -> frozenset[int]:
        """The ports that running containers of a pod declare."""
        known = self._pods[namespace, name]
        return frozenset(
            port.container_port
            for container in _containers(known.pod)
            if known.life.containers[container.name].phase == "running"
            for port in container.ports or ()
        )

    async def enter(self, namespace: str, name: str, container: str) -> Sandbox | None:
        """The inside of a running container; None if it does not run."""
        if not self.is_running(namespace, name, container):
            return None
        known = self._pods[namespace, name]
        pod = known.pod
        spec = next(item for item in _containers(pod) if item.name == container)
        files = self._files.setdefault(known.life.containers[container].container_id, _fresh(known))
        await self._mount(known, spec, files)
        return Sandbox(
            hostname=host_name(pod),
            folder=spec.working_dir or "/",
            environment=await self._environment(known, spec),
            files=files,
        )

    async def _environment(self, known: _Known, spec: Container | EphemeralContainer) -> dict[str, str]:
        pod = known.pod
        found = {"PATH": _PATH, "HOSTNAME": host_name(pod)}
        for source in spec.env_from or ():
            data: Mapping[str, bytes] = {}
            if source.config_map_ref is not None:
                data = await self._config(pod, source.config_map_ref.name or "")
            elif source.secret_ref is not None:
                data = await self._secret(pod, source.secret_ref.name or "")
            found.update({f"{source.prefix or ''}{key}": value.decode(errors="replace") for key, value in data.items()})
        for item in spec.env or ():
            if item.value_from is None:
                found[item.name] = _expanded(item.value or "", found)
            elif (value := await self._value(known, item.value_from)) is not None:
                found[item.name] = value
        found.setdefault("HOME", "/root")
        return found

    async def _value(self, known: _Known, source: EnvVarSource) -> str | None:
        pod = known.pod
        if source.field_ref is not None:
            return _field(known, source.field_ref.field_path)
        data: Mapping[str, bytes] = {}
        key = ""
        if source.config_map_key_ref is not None:
            key = source.config_map_key_ref.key
            data = await self._config(pod, source.config_map_key_ref.name or "")
        elif source.secret_key_ref is not None:
            key = source.secret_key_ref.key
            data = await self._secret(pod, source.secret_key_ref.name or "")
        value = data.get(key)
        return None if value is None else value.decode(errors="replace")

    async def _mount(self, known: _Known, spec: Container | EphemeralContainer, files: Files) -> None:
        pod = known.pod
        volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
        for mount in spec.volume_mounts or ():
            volume = volumes.get(mount.name)
            content = await self._content(known, volume) if volume is not None else None
            if content is not None and mount.sub_path:
                if mount.sub_path in content:
                    files.put(mount.mount_path, content[mount.sub_path])
                continue
            files.mount(mount.mount_path, content)
        if pod.spec.automount_service_account_token is not False:
            files.put(f"{_ACCOUNT}/namespace", pod.metadata.namespace.encode())

    async def _content(self, known: _Known, volume: Volume) -> Mapping[str, bytes] | None:
        """The files of a volume; None if it is one that a container writes to."""
        pod = known.pod
        if volume.config_map is not None:
            return _chosen(await self._config(pod, volume.config_map.name or ""), volume.config_map.items)
        if volume.secret is not None:
            return _chosen(await self._secret(pod, volume.secret.secret_name or ""), volume.secret.items)
        if volume.downward_api is not None:
            return {
                item.path: _field(known, item.field_ref.field_path).encode()
                for item in volume.downward_api.items or ()
                if item.field_ref is not None
            }
        if volume.projected is None:
            return None
        found: dict[str, bytes] = {}
        for source in volume.projected.sources or ():
            if source.config_map is not None:
                found.update(_chosen(await self._config(pod, source.config_map.name or ""), source.config_map.items))
            if source.secret is not None:
                found.update(_chosen(await self._secret(pod, source.secret.name or ""), source.secret.items))
            for item in (source.downward_api.items or ()) if source.downward_api is not None else ():
                if item.field_ref is not None:
                    found[item.path] = _field(known, item.field_ref.field_path).encode()
        return found

    async def _config(self, pod: Pod, name: str) -> dict[str, bytes]:
        try:
            found = await self._client.get(ConfigMap, ObjectKey(pod.metadata.namespace, name))
        except ApiError:  # optional, or gone since the container started
            return {}
        plain = {key: value.encode() for key, value in (found.data or {}).items()}
        return plain | {key: _bytes(value) for key, value in (found.binary_data or {}).items()}

    async def _secret(self, pod: Pod, name: str) -> dict[str, bytes]:
        try:
            found = await self._client.get(Secret, ObjectKey(pod.metadata.namespace, name))
        except ApiError:
            return {}
        return {key: _bytes(value) for key, value in (found.data or {}).items()}


def _containers(pod: Pod) -> Iterator[Container | EphemeralContainer]:
    yield from pod.spec.init_containers or ()
    yield from pod.spec.containers
    yield from pod.spec.ephemeral_containers or ()


def _fresh(known: _Known) -> Files:
    files, pod = Files(), known.pod
    files.put("/etc/hostname", f"{host_name(pod)}\n".encode())
    files.put("/etc/hosts", hosts_file(pod, known.pod_ip).encode())
    search = f"{pod.metadata.namespace}.svc.cluster.local svc.cluster.local cluster.local"
    files.put("/etc/resolv.conf", f"search {search}\nnameserver 10.96.0.10\noptions ndots:5\n".encode())
    return files


def _bytes(value: bytes | str) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else bytes(value)


def _chosen(data: Mapping[str, bytes], items: list[KeyToPath] | None) -> dict[str, bytes]:
    if not items:
        return dict(data)
    return {item.path: data[item.key] for item in items if item.key in data}


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes replaces it; a name nobody knows stays, `$$` is one."""
    return _REFERENCE.sub(lambda found: "$" if found[0] == "$$" else known.get(found[1], found[0]), text)


def _field(known: _Known, path: str) -> str:
    """A field of the pod, as the downward API gives it."""
    pod = known.pod
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        values = pod.metadata.labels if keyed[1] == "labels" else pod.metadata.annotations
        return (values or {}).get(keyed[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = (pod.metadata.labels if path == "metadata.labels" else pod.metadata.annotations) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(pairs.items()))
    fields = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": known.host_ip,
        "status.hostIPs": known.host_ip,
        "status.podIP": known.pod_ip,
        "status.podIPs": known.pod_ip,
    }
    return fields.get(path) or ""
