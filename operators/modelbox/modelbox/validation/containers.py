"""Containers, their environment, and what they mount."""

from collections.abc import Iterable, Iterator

from kubewright import FieldErrors
from kubewright.k8s.core.v1 import Container, EnvVar, VolumeMount

from modelbox.api.v1.modelbox import ModelBox, ModelBoxSpec
from modelbox.defaults import container_name_of

__all__ = ("check_containers",)


def check_containers(modelbox: ModelBox, errors: FieldErrors) -> None:
    """That every container of the pod can be told from the others, has an image, and mounts what there is."""
    spec = modelbox.spec
    seen = {container_name_of(modelbox)}
    for path, container in _extra_containers(spec):
        if container.name in seen:
            errors.duplicate(f"{path}.name", container.name)
        seen.add(container.name)
        if not container.image:
            errors.required(f"{path}.image", "every container needs an image")
        _check_keys(path, container, errors)
        _check_mounts(f"{path}.volumeMounts", container.volume_mounts or (), spec, errors)
        _check_env(f"{path}.env", container.env or (), errors)
    _check_mounts("spec.volumeMounts", spec.volume_mounts, spec, errors)
    _check_env("spec.envs", spec.envs, errors)


def _extra_containers(spec: ModelBoxSpec) -> Iterator[tuple[str, Container]]:
    for place, container in enumerate(spec.containers):
        yield f"spec.containers[{place}]", container
    for place, container in enumerate(spec.init_containers):
        yield f"spec.initContainers[{place}]", container


def _check_keys(path: str, container: Container, errors: FieldErrors) -> None:
    """Server-side apply tells the items of a list apart by these, and refuses a list that has one twice."""
    ports = [(port.container_port, port.protocol or "TCP") for port in container.ports or ()]
    variables = [variable.name for variable in container.env or ()]
    mounts = [mount.mount_path for mount in container.volume_mounts or ()]
    for name, keys in (("ports", ports), ("env", variables), ("volumeMounts", mounts)):
        for place, key in enumerate(keys):
            if key in keys[:place]:
                errors.duplicate(f"{path}.{name}[{place}]", key)


def _check_mounts(path: str, mounts: Iterable[VolumeMount], spec: ModelBoxSpec, errors: FieldErrors) -> None:
    volumes = {volume.name for volume in spec.volumes}
    for place, mount in enumerate(mounts):
        if mount.name not in volumes:
            errors.add(f"{path}[{place}].name", "no volume has that name; add it to spec.volumes", type="NotFound")


def _check_env(path: str, variables: Iterable[EnvVar], errors: FieldErrors) -> None:
    for place, variable in enumerate(variables):
        if variable.value and variable.value_from is not None:
            errors.add(f"{path}[{place}].valueFrom", "may not be given together with value")
