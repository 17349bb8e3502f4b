"""What is wrong with a set, taken by itself. All faults are found, not only the first.

A pure function of one set, so that the webhook, the injection and the reconciler, which may meet sets that no webhook
has seen, all ask the same. What it may not share with other sets is in `sidecarset.clashes`.
"""

from collections.abc import Iterator

from kubewright import FieldErrors, IntOrString, Selector, Warnings
from kubewright.api import dns1123_label_errors, is_percent, scaled_value
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import Container
from kubewright.k8s.meta.v1 import LabelSelector

from sidecarset.api.v1alpha1.sidecarset import SidecarSet, SidecarSetSpec

__all__ = ("check", "faults_of", "warn")


def faults_of(sidecarset: SidecarSet) -> FieldErrors:
    """What is wrong; empty, and so false, if nothing is."""
    errors = FieldErrors()
    check(sidecarset, errors)
    return errors


def check(sidecarset: SidecarSet, errors: FieldErrors) -> None:
    """Find everything that is wrong."""
    spec = sidecarset.spec
    for problem in dns1123_label_errors(sidecarset.metadata.name):
        errors.add("metadata.name", problem)
    _check_selector("spec.selector", spec.selector, errors)
    if spec.namespace_selector is not None:
        _check_selector("spec.namespaceSelector", spec.namespace_selector, errors)
    _check_containers(spec, errors)
    _check_volumes(spec, errors)
    _check_strategy(spec, errors)


def warn(sidecarset: SidecarSet, warnings: Warnings) -> None:
    """Say what is not wrong, but odd."""
    spec = sidecarset.spec
    used = {name for _, container in _containers(spec) for _, name in _mounts(container)}
    for volume in spec.volumes:
        if volume.name not in used:
            warnings.add(f"spec.volumes: {volume.name} is mounted by none of the containers, so no pod gets it")


def _check_selector(path: str, selector: LabelSelector, errors: FieldErrors) -> None:
    try:
        if Selector.from_structured(selector).selects_everything:
            errors.required(path, "an empty selector would select everything; name at least one label")
    except DecodeError as error:
        errors.add(path, str(error))


def _check_containers(spec: SidecarSetSpec, errors: FieldErrors) -> None:
    if not spec.containers and not spec.init_containers:
        errors.required("spec.containers", "there is nothing to inject; name at least one container or init container")
    names: set[str] = set()
    for path, container in _containers(spec):
        for problem in dns1123_label_errors(container.name):
            errors.add(f"{path}.name", problem)
        if container.name in names:
            errors.duplicate(f"{path}.name")
        names.add(container.name)
        if not container.image:
            errors.required(f"{path}.image", "the container has no image")
        elif container.image != container.image.strip():
            errors.add(f"{path}.image", "must not have leading or trailing whitespace")
    if spec.update_strategy.type != "NotUpdate":
        for index, container in enumerate(spec.init_containers):
            if container.restart_policy == "Always":
                errors.forbidden(
                    f"spec.initContainers[{index}].restartPolicy",
                    "an init container that never ends is not updated in place; set updateStrategy.type to NotUpdate",
                )


def _check_volumes(spec: SidecarSetSpec, errors: FieldErrors) -> None:
    names: set[str] = set()
    for index, volume in enumerate(spec.volumes):
        for problem in dns1123_label_errors(volume.name):
            errors.add(f"spec.volumes[{index}].name", problem)
        if volume.name in names:
            errors.duplicate(f"spec.volumes[{index}].name")
        names.add(volume.name)
    for path, container in _containers(spec):
        for place, name in _mounts(container):
            if name not in names:
                errors.add(f"{path}.{place}.name", "there is no volume of this name in spec.volumes")


def _check_strategy(spec: SidecarSetSpec, errors: FieldErrors) -> None:
    path, strategy = "spec.updateStrategy", spec.update_strategy
    if strategy.selector is not None:
        _check_selector(f"{path}.selector", strategy.selector, errors)
        if strategy.partition not in (0, "0%"):
            errors.forbidden(f"{path}.partition", "a selector and a partition cannot be used together")
    _check_share(f"{path}.partition", strategy.partition, least=0, errors=errors)
    _check_share(f"{path}.maxUnavailable", strategy.max_unavailable, least=1, errors=errors)


def _check_share(path: str, share: IntOrString, *, least: int, errors: FieldErrors) -> None:
    if isinstance(share, int):
        if share < least:
            errors.add(path, f"must be at least {least}")
    elif not is_percent(share) or not least <= scaled_value(share, 100, round_up=True) <= 100:
        errors.add(path, f"must be a number, or a percentage from {least}% to 100%")


def _containers(spec: SidecarSetSpec) -> Iterator[tuple[str, Container]]:
    """Every container, and where it stands."""
    for index, container in enumerate(spec.containers):
        yield f"spec.containers[{index}]", container
    for index, init in enumerate(spec.init_containers):
        yield f"spec.initContainers[{index}]", init


def _mounts(container: Container) -> Iterator[tuple[str, str]]:
    """Every name of a volume in a container, and where it stands in it."""
    for index, mount in enumerate(container.volume_mounts or ()):
        yield f"volumeMounts[{index}]", mount.name
    for index, device in enumerate(container.volume_devices or ()):
        yield f"volumeDevices[{index}]", device.name
