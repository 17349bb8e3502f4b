"""The ConfigMaps and Secrets a pod cannot do without, and what is said when they are not there.

Pure but for the questions it asks: `find` reads an object or says it is missing. Service-account tokens and everything
marked optional are taken for granted. Called by `kubelet` before containers start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Literal, final

import msgspec

from kubewright.cluster.kubelet.pods.lifecycle import Missing
from kubewright.k8s.core.v1 import Container, EphemeralContainer, Pod, Volume

__all__ = ("Find", "Kind", "Reference", "missing_of", "references_of")

Kind = Literal["configmap", "secret"]
Find = Callable[[Kind, str], Awaitable[frozenset[str] | None]]
"""The keys of an object by kind and name; None if there is no such object."""


@final
class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """One object, or keys of it."""

    kind: Kind
    name: str
    keys: tuple[str, ...] = ()
    volume: str = ""
    """The volume that needs it, or nothing if a container does."""
    container: str = ""


def references_of(pod: Pod) -> tuple[Reference, ...]:
    """Everything the pod refers to and that is not optional."""
    found = [need for volume in pod.spec.volumes or () for need in _volume(volume)]
    groups: Iterable[Container | EphemeralContainer] = (
        *(pod.spec.init_containers or ()),
        *pod.spec.containers,
        *(pod.spec.ephemeral_containers or ()),
    )
    found.extend(need for container in groups for need in _environment(container))
    return tuple(found)


async def missing_of(pod: Pod, find: Find) -> Missing:
    """What of it is not there."""
    volumes: list[str] = []
    containers: dict[str, str] = {}
    for need in references_of(pod):
        reason = await _reason(pod, need, find)
        if reason is None:
            continue
        if need.volume:
            volumes.append(f'MountVolume.SetUp failed for volume "{need.volume}" : {reason}')
        else:
            containers.setdefault(need.container, reason)
    return Missing(volumes=tuple(volumes), containers=containers)


async def _reason(pod: Pod, need: Reference, find: Find) -> str | None:
    keys = await find(need.kind, need.name)
    if keys is None:
        return f'{need.kind} "{need.name}" not found'
    for key in need.keys:
        if key not in keys:
            if need.volume:
                return "references non-existent config key: " + key if need.kind == "configmap" else (
                    "references non-existent secret key: " + key
                )  # fmt: skip
            title = "ConfigMap" if need.kind == "configmap" else "Secret"
            return f"couldn't find key {key} in {title} {pod.metadata.namespace}/{need.name}"
    return None


def _volume(volume: Volume) -> Iterator[Reference]:
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


def _environment(container: Container | EphemeralContainer) -> Iterator[Reference]:
    for source in container.env_from or ():
        if source.config_map_ref is not None and not source.config_map_ref.optional:
            yield Reference(kind="configmap", name=source.config_map_ref.name or "", container=container.name)
        if source.secret_ref is not None and not source.secret_ref.optional:
            yield Reference(kind="secret", name=source.secret_ref.name or "", container=container.name)
    for item in container.env or ():
        origin = item.value_from
        if origin is None:
            continue
        if (plain := origin.config_map_key_ref) is not None and not plain.optional:
            yield Reference(kind="configmap", name=plain.name or "", keys=(plain.key,), container=container.name)
        if (hidden := origin.secret_key_ref) is not None and not hidden.optional:
            yield Reference(kind="secret", name=hidden.name or "", keys=(hidden.key,), container=container.name)
