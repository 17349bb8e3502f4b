"""The ConfigMaps and Secrets a pod refers to, and the kubelet's messages for missing ones.

Pure except for the callback that reads the objects. Ignores optional references and service-account tokens. Called by
`kubelet` before containers start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Literal, final

import msgspec

from kubewright.cluster.kubelet.pods.lifecycle import MissingReferences
from kubewright.k8s.core.v1 import Container, EphemeralContainer, Pod, Volume

__all__ = ("FindKeys", "Reference", "ReferenceKind", "find_missing", "pod_references")

ReferenceKind = Literal["configmap", "secret"]
FindKeys = Callable[[ReferenceKind, str], Awaitable[frozenset[str] | None]]
"""Returns the keys of an object by kind and name; None if there is no such object."""


@final
class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to an object, or to keys of it."""

    kind: ReferenceKind
    name: str
    keys: tuple[str, ...] = ()
    volume: str = ""
    """The volume that refers to it; empty if the environment of a container does."""
    container: str = ""


def pod_references(pod: Pod) -> tuple[Reference, ...]:
    """The references of a pod that are not optional."""
    found = [reference for volume in pod.spec.volumes or () for reference in _volume_references(volume)]
    groups: Iterable[Container | EphemeralContainer] = (
        *(pod.spec.init_containers or ()),
        *pod.spec.containers,
        *(pod.spec.ephemeral_containers or ()),
    )
    found.extend(reference for container in groups for reference in _environment_references(container))
    return tuple(found)


async def find_missing(pod: Pod, find: FindKeys) -> MissingReferences:
    """The references whose object or key does not exist."""
    volumes: list[str] = []
    containers: dict[str, str] = {}
    for reference in pod_references(pod):
        reason = await _missing_reason(pod, reference, find)
        if reason is None:
            continue
        if reference.volume:
            volumes.append(f'MountVolume.SetUp failed for volume "{reference.volume}" : {reason}')
        else:
            containers.setdefault(reference.container, reason)
    return MissingReferences(volumes=tuple(volumes), containers=containers)


async def _missing_reason(pod: Pod, reference: Reference, find: FindKeys) -> str | None:
    keys = await find(reference.kind, reference.name)
    if keys is None:
        return f'{reference.kind} "{reference.name}" not found'
    for key in reference.keys:
        if key not in keys:
            if reference.volume:
                return "references non-existent config key: " + key if reference.kind == "configmap" else (
                    "references non-existent secret key: " + key
                )  # fmt: skip
            title = "ConfigMap" if reference.kind == "configmap" else "Secret"
            return f"couldn't find key {key} in {title} {pod.metadata.namespace}/{reference.name}"
    return None


def _volume_references(volume: Volume) -> Iterator[Reference]:
    if volume.config_map is not None and not volume.config_map.optional:
        keys = tuple(item.key for item in volume.config_map.items or ())
        yield Reference(kind="configmap", name=volume.config_map.name or "", keys=keys, volume=volume.name)
    if volume.secret is not None and not volume.secret.optional:
        keys = tuple(item.key for item in volume.secret.items or ())
        yield Reference(kind="secret", name=volume.secret.secret_name or "", keys=keys, volume=volume.name)
    for source in (volume.projected.sources or ()) if volume.projected is not None else ():
        if source.config_map is not None and not source.config_map.optional:
            yield Reference(kind="configmap", name=source.config_map.name or "", volume=volume.name)
        if source.secret is not None and not source.secret.optional:
            yield Reference(kind="secret", name=source.secret.name or "", volume=volume.name)


def _environment_references(container: Container | EphemeralContainer) -> Iterator[Reference]:
    for source in container.env_from or ():
        if source.config_map_ref is not None and not source.config_map_ref.optional:
            yield Reference(kind="configmap", name=source.config_map_ref.name or "", container=container.name)
        if source.secret_ref is not None and not source.secret_ref.optional:
            yield Reference(kind="secret", name=source.secret_ref.name or "", container=container.name)
    for item in container.env or ():
        value_from = item.value_from
        if value_from is None:
            continue
        if (config_map_key := value_from.config_map_key_ref) is not None and not config_map_key.optional:
            yield Reference(
                kind="configmap", name=config_map_key.name or "", keys=(config_map_key.key,), container=container.name
            )
        if (secret_key := value_from.secret_key_ref) is not None and not secret_key.optional:
            yield Reference(kind="secret", name=secret_key.name or "", keys=(secret_key.key,), container=container.name)
