"""Running containers as a process in them would see them: host name, environment and files.

`kubelet` reports the pods; `SandboxManager.open_container` builds the inside of a container for an exec, and keeps its
files until the container ends. It reads the ConfigMaps, Secrets and fields that the pod refers to at each exec. Starts
no process. Called by `streaming_handlers`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Final, final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.client.client import Client
from kubewright.cluster.kubelet.pods.expansion import ARGUMENTS_LIMIT, ArgumentListTooLong, expand
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

__all__ = ("ContainerSandbox", "SandboxManager")

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEYED_FIELD: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@final
class ContainerSandbox(msgspec.Struct):
    """The inside of one container."""

    hostname: str
    folder: str
    """The working directory."""
    environment: dict[str, str]
    files: Files


@final
class _PodEntry(msgspec.Struct, frozen=True):
    pod: Pod
    lifecycle: PodLifecycle
    host_ip: str
    pod_ip: str


@final
class SandboxManager:
    """The pods on the simulated nodes, and the files of their running containers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods: dict[tuple[str, str], _PodEntry] = {}
        self._files: dict[str, Files] = {}

    def update_pod(self, pod: Pod, lifecycle: PodLifecycle, *, host_ip: str, pod_ip: str) -> None:
        """Update a pod; remove the files of containers that are not running."""
        self._pods[pod.metadata.namespace, pod.metadata.name] = _PodEntry(pod, lifecycle, host_ip, pod_ip)
        for container in lifecycle.containers.values():
            if container.phase != "running":
                self._files.pop(container.container_id, None)

    def remove_pod(self, namespace: str, name: str) -> None:
        """Remove a deleted pod."""
        entry = self._pods.pop((namespace, name), None)
        for container in entry.lifecycle.containers.values() if entry is not None else ():
            self._files.pop(container.container_id, None)

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod is on these nodes."""
        return (namespace, name) in self._pods

    def is_running(self, namespace: str, name: str, container: str) -> bool:
        """Whether a container is running."""
        found = self._pods.get((namespace, name))
        lifecycle = found.lifecycle.containers.get(container) if found is not None else None
        return lifecycle is not None and lifecycle.phase == "running"

    def is_reachable(self, namespace: str, name: str) -> bool:
        """Whether the network of a pod is reachable: one of its containers is running."""
        found = self._pods.get((namespace, name))
        return found is not None and any(
            lifecycle.phase == "running" for lifecycle in found.lifecycle.containers.values()
        )

    def ports(self, namespace: str, name: str) -> frozenset[int]:
        """The ports that running containers of a pod declare."""
        entry = self._pods[namespace, name]
        return frozenset(
            port.container_port
            for container in _containers(entry.pod)
            if entry.lifecycle.containers[container.name].phase == "running"
            for port in container.ports or ()
        )

    async def open_container(self, namespace: str, name: str, container: str) -> ContainerSandbox | None:
        """The inside of a running container; None if it does not run.

        Raises `ArgumentListTooLong` if its environment is too large for any program.
        """
        if not self.is_running(namespace, name, container):
            return None
        entry = self._pods[namespace, name]
        pod = entry.pod
        spec = next(item for item in _containers(pod) if item.name == container)
        files = self._files.setdefault(entry.lifecycle.containers[container].container_id, _new_files(entry))
        await self._mount(entry, spec, files)
        return ContainerSandbox(
            hostname=host_name(pod),
            folder=spec.working_dir or "/",
            environment=await self._environment(entry, spec),
            files=files,
        )

    async def _environment(self, entry: _PodEntry, spec: Container | EphemeralContainer) -> dict[str, str]:
        pod = entry.pod
        found = {"PATH": _PATH, "HOSTNAME": host_name(pod)}
        for source in spec.env_from or ():
            data: Mapping[str, bytes] = {}
            if source.config_map_ref is not None:
                data = await self._config(pod, source.config_map_ref.name or "")
            elif source.secret_ref is not None:
                data = await self._secret(pod, source.secret_ref.name or "")
            found.update({f"{source.prefix or ''}{key}": value.decode(errors="replace") for key, value in data.items()})
        size = sum(len(name) + len(value) for name, value in found.items())
        for item in spec.env or ():
            if item.value_from is None:
                found[item.name] = expand(item.value or "", found)
            elif (value := await self._value(entry, item.value_from)) is not None:
                found[item.name] = value
            size += len(item.name) + len(found.get(item.name, ""))
            if size > ARGUMENTS_LIMIT:
                raise ArgumentListTooLong
        found.setdefault("HOME", "/root")
        return found

    async def _value(self, entry: _PodEntry, source: EnvVarSource) -> str | None:
        pod = entry.pod
        if source.field_ref is not None:
            return _field_value(entry, source.field_ref.field_path)
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

    async def _mount(self, entry: _PodEntry, spec: Container | EphemeralContainer, files: Files) -> None:
        pod = entry.pod
        volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
        for mount in spec.volume_mounts or ():
            volume = volumes.get(mount.name)
            content = await self._content(entry, volume) if volume is not None else None
            if content is not None and mount.sub_path:
                if mount.sub_path in content:
                    files.add_file(mount.mount_path, content[mount.sub_path])
                continue
            files.mount(mount.mount_path, content)
        if pod.spec.automount_service_account_token is not False:
            files.add_file(f"{_ACCOUNT}/namespace", pod.metadata.namespace.encode())

    async def _content(self, entry: _PodEntry, volume: Volume) -> Mapping[str, bytes] | None:
        """The files of a volume; None if it is writable and initially empty."""
        pod = entry.pod
        if volume.config_map is not None:
            return _projected(await self._config(pod, volume.config_map.name or ""), volume.config_map.items)
        if volume.secret is not None:
            return _projected(await self._secret(pod, volume.secret.secret_name or ""), volume.secret.items)
        if volume.downward_api is not None:
            return {
                item.path: _field_value(entry, item.field_ref.field_path).encode()
                for item in volume.downward_api.items or ()
                if item.field_ref is not None
            }
        if volume.projected is None:
            return None
        found: dict[str, bytes] = {}
        for source in volume.projected.sources or ():
            if source.config_map is not None:
                found.update(_projected(await self._config(pod, source.config_map.name or ""), source.config_map.items))
            if source.secret is not None:
                found.update(_projected(await self._secret(pod, source.secret.name or ""), source.secret.items))
            for item in (source.downward_api.items or ()) if source.downward_api is not None else ():
                if item.field_ref is not None:
                    found[item.path] = _field_value(entry, item.field_ref.field_path).encode()
        return found

    async def _config(self, pod: Pod, name: str) -> dict[str, bytes]:
        try:
            found = await self._client.get(ConfigMap, ObjectKey(pod.metadata.namespace, name))
        except ApiError:  # optional, or deleted since the container started
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


def _new_files(entry: _PodEntry) -> Files:
    files, pod = Files(), entry.pod
    files.add_file("/etc/hostname", f"{host_name(pod)}\n".encode())
    files.add_file("/etc/hosts", hosts_file(pod, entry.pod_ip).encode())
    search = f"{pod.metadata.namespace}.svc.cluster.local svc.cluster.local cluster.local"
    files.add_file("/etc/resolv.conf", f"search {search}\nnameserver 10.96.0.10\noptions ndots:5\n".encode())
    return files


def _bytes(value: bytes | str) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else bytes(value)


def _projected(data: Mapping[str, bytes], items: list[KeyToPath] | None) -> dict[str, bytes]:
    if not items:
        return dict(data)
    return {item.path: data[item.key] for item in items if item.key in data}


def _field_value(entry: _PodEntry, path: str) -> str:
    """The value of a field of the pod in the downward API."""
    pod = entry.pod
    keyed = _KEYED_FIELD.fullmatch(path)
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
        "status.hostIP": entry.host_ip,
        "status.hostIPs": entry.host_ip,
        "status.podIP": entry.pod_ip,
        "status.podIPs": entry.pod_ip,
    }
    return fields.get(path) or ""
