"""Put the containers of sets into a pod that is about to be created.

The result depends on the pod and the sets alone, and injecting twice is the same as injecting once: the API server may
ask again after another webhook changed the pod, and people create pods from copies of injected ones. What was injected
is known by the variable `IS_INJECTED` and is replaced where it stands; a container of the pod's own is never touched.
If it has the name of a sidecar, the pod is refused. Pure; `webhooks.v1.pod` calls it.
"""

from collections.abc import Iterable, Sequence

from kubewright import FieldErrors
from kubewright.api import copy_of, from_tree, to_tree
from kubewright.k8s.core.v1 import Container, EnvVar, LocalObjectReference, Pod, Volume

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.hashes import revision_of
from sidecarset.records import BrokenRecordError, Record, records_of, write

__all__ = ("MARKER", "inject")

MARKER = EnvVar(name="IS_INJECTED", value="true")
"""What every injected container has among its environment variables."""


def inject(pod: Pod, sets: Sequence[SidecarSet], errors: FieldErrors) -> None:
    """Change the pod, or say why not. The sets are those that select it, valid and with their defaults filled in."""
    chosen = sorted(
        (item for item in sets if not item.spec.injection_strategy.paused), key=lambda item: item.metadata.name
    )
    if not chosen:
        return
    injection = _Injection(pod, errors)
    for sidecarset in chosen:
        injection.add(sidecarset)
    injection.place()
    records = _kept_records(pod, sets) | {item.metadata.name: _record(item) for item in chosen}
    write(pod.metadata.annotations, records)


def _kept_records(pod: Pod, sets: Iterable[SidecarSet]) -> dict[str, Record]:
    """Of a copy of an injected pod: the records of sets that still select it, though they are paused now."""
    names = {item.metadata.name for item in sets}
    try:
        return {name: record for name, record in records_of(pod).items() if name in names}
    except BrokenRecordError:
        return {}


def _record(sidecarset: SidecarSet) -> Record:
    spec = sidecarset.spec
    names = [container.name for container in (*spec.containers, *spec.init_containers)]
    return Record(revision_of(spec), tuple(names), sidecarset.metadata.generation)


class _Injection:
    """One pod on its way: what is to be put where, gathered set by set."""

    def __init__(self, pod: Pod, errors: FieldErrors) -> None:
        self._pod = pod
        self._errors = errors
        self._before: list[Container] = []
        self._after: list[Container] = []
        self._init: list[Container] = []
        self._brought_by: dict[str, str] = {}

    def add(self, sidecarset: SidecarSet) -> None:
        """Everything that one set brings."""
        spec, owner = sidecarset.spec, sidecarset.metadata.name
        for sidecar in spec.containers:
            place = self._before if sidecar.pod_inject_policy == "BeforeAppContainer" else self._after
            self._bring(owner, sidecar, "containers", place)
        for init in spec.init_containers:
            self._bring(owner, init, "initContainers", self._init)
        self._add_volumes(sidecarset)
        present = self._pod.spec.image_pull_secrets or []
        names = {reference.name for reference in present}
        missing = [LocalObjectReference(name=item.name) for item in spec.image_pull_secrets if item.name not in names]
        if missing:
            self._pod.spec.image_pull_secrets = [*present, *missing]

    def place(self) -> None:
        """Put what was gathered into the pod, around what it has."""
        spec = self._pod.spec
        spec.containers = [*self._before, *spec.containers, *self._after]
        if self._init:
            self._init.sort(key=lambda container: container.name)
            spec.init_containers = [*(spec.init_containers or ()), *self._init]

    def _bring(self, owner: str, sidecar: Container, field: str, place: list[Container]) -> None:
        name = sidecar.name
        if name in self._brought_by:
            self._refuse(field, f"SidecarSets {self._brought_by[name]} and {owner} both bring a container {name}")
            return
        self._brought_by[name] = owner
        container = _marked(sidecar)
        spec = self._pod.spec
        for present_in, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or [])):
            for index, present in enumerate(containers):
                if present.name != name:
                    continue
                if present_in == field and _is_marked(present):
                    containers[index] = container
                else:
                    self._refuse(
                        f"{present_in}[{index}].name",
                        f"SidecarSet {owner} brings a container {name}, and the pod has one of its own; rename one",
                    )
                return
        place.append(container)

    def _add_volumes(self, sidecarset: SidecarSet) -> None:
        """Those that are mounted. One that is there already has to be the same."""
        spec = sidecarset.spec
        mounted = {name for container in (*spec.containers, *spec.init_containers) for name in _volumes_of(container)}
        for volume in spec.volumes:
            if volume.name in mounted:
                self._add_volume(sidecarset.metadata.name, volume)

    def _add_volume(self, owner: str, volume: Volume) -> None:
        volumes = self._pod.spec.volumes or []
        for index, present in enumerate(volumes):
            if present.name == volume.name:
                if to_tree(present) != to_tree(volume):
                    self._refuse(
                        f"volumes[{index}].name",
                        f"SidecarSet {owner} brings another volume {volume.name} than the pod has; rename one",
                    )
                return
        self._pod.spec.volumes = [*volumes, copy_of(volume)]

    def _refuse(self, field: str, detail: str) -> None:
        self._errors.add(f"spec.{field}", detail)


def _marked(sidecar: Container) -> Container:
    """A container for a pod: without what only a set knows, and with the marker."""
    tree = to_tree(sidecar)
    tree.pop("podInjectPolicy", None)
    container = from_tree(Container, tree)
    container.env = [*(variable for variable in container.env or () if variable.name != MARKER.name), MARKER]
    return container


def _is_marked(container: Container) -> bool:
    return any(variable == MARKER for variable in container.env or ())


def _volumes_of(container: Container) -> set[str]:
    mounts = {mount.name for mount in container.volume_mounts or ()}
    return mounts | {device.name for device in container.volume_devices or ()}
