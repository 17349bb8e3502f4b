"""Put the containers of sets into a pod that is about to be created.

The result depends on the pod and the sets alone, and injecting twice is the same as injecting once: the API server may
ask again after others changed the pod, and people create pods from copies of injected ones. What was injected is known
by the variable `IS_INJECTED`: the set is merged into it where it stands, and what others added to it stays
(`sidecarset.merge`). Without a record of what was injected, it is replaced. A container of the pod's own is never
touched; if it has the name of a sidecar, the pod is refused. Pure; `webhooks.v1.pod` calls it.
"""

from collections.abc import Iterable, Mapping, Sequence

from kubewright import FieldErrors
from kubewright.api import copy_of, from_tree, to_tree
from kubewright.k8s.core.v1 import Container, EnvVar, LocalObjectReference, Pod, Volume

from sidecarset.api.v1alpha1.sidecarset import SidecarSet, SidecarSetSpec
from sidecarset.hashes import revision_of
from sidecarset.merge import CONTAINER, Fields, fields_of, merge, shape_of_volume
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
    earlier = _records(pod)
    injection = _Injection(pod, earlier, errors)
    for sidecarset in chosen:
        injection.take_out(sidecarset)
    for sidecarset in chosen:
        injection.add(sidecarset)
    injection.place()
    selecting = {item.metadata.name for item in sets}
    # Of a copy of an injected pod, also the records of sets that still select it, though they are paused now.
    kept = {name: record for name, record in earlier.items() if name in selecting}
    write(pod.metadata.annotations, kept | {item.metadata.name: _record(item) for item in chosen})


def _records(pod: Pod) -> dict[str, Record]:
    """What was injected before; whatever stands in a broken record is written anew."""
    try:
        return records_of(pod)
    except BrokenRecordError:
        return {}


def _record(sidecarset: SidecarSet) -> Record:
    spec = sidecarset.spec
    containers = [_marked(item) for item in (*spec.containers, *spec.init_containers)]
    volumes = [to_tree(volume) for volume in _mounted_volumes(spec)]
    fields: Fields = {
        "containers": {item.name: fields_of(to_tree(item), CONTAINER) for item in containers},
        "volumes": {tree["name"]: fields_of(tree, shape_of_volume(tree)) for tree in volumes},
    }
    names = tuple(item.name for item in containers)
    return Record(revision_of(spec), names, sidecarset.metadata.generation, fields)


class _Injection:
    """One pod on its way: what is to be put where, gathered set by set."""

    def __init__(self, pod: Pod, earlier: Mapping[str, Record], errors: FieldErrors) -> None:
        self._pod = pod
        self._earlier = earlier
        self._errors = errors
        self._before: list[Container] = []
        self._after: list[Container] = []
        self._init: list[Container] = []
        self._brought_by: dict[str, str] = {}
        self._unused: set[str] = set()
        """Volumes that are not wanted any more, unless somebody else mounts them."""

    def take_out(self, sidecarset: SidecarSet) -> None:
        """What the set brought to a pod of which this is a copy, and brings no more, or somewhere else."""
        record, spec, pod = self._earlier.get(sidecarset.metadata.name), sidecarset.spec, self._pod.spec
        if record is None:
            return
        pod.containers = _without(pod.containers, record, spec.containers)
        if pod.init_containers:
            pod.init_containers = _without(pod.init_containers, record, spec.init_containers)
        self._unused |= set(record.fields.get("volumes", {})) - {volume.name for volume in spec.volumes}

    def add(self, sidecarset: SidecarSet) -> None:
        """Everything that one set brings."""
        spec, owner = sidecarset.spec, sidecarset.metadata.name
        for sidecar in spec.containers:
            place = self._before if sidecar.pod_inject_policy == "BeforeAppContainer" else self._after
            self._bring(owner, sidecar, "containers", place)
        for init in spec.init_containers:
            self._bring(owner, init, "initContainers", self._init)
        for volume in _mounted_volumes(spec):
            self._add_volume(owner, volume)
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
        mounted = {name for item in (*spec.containers, *(spec.init_containers or ())) for name in _volumes_of(item)}
        spec.volumes = [item for item in spec.volumes or () if item.name in mounted or item.name not in self._unused]

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
                    containers[index] = self._merged(owner, present, container)
                else:
                    self._refuse(
                        f"{present_in}[{index}].name",
                        f"SidecarSet {owner} brings a container {name}, and the pod has one of its own; rename one",
                    )
                return
        place.append(container)

    def _merged(self, owner: str, present: Container, container: Container) -> Container:
        """The container of a set, with what others have added to it since it was injected."""
        fields = self._brought(owner, "containers", container.name)
        if fields is None:
            return container
        return from_tree(Container, merge(to_tree(present), to_tree(container), fields, CONTAINER))

    def _brought(self, owner: str, field: str, name: str) -> Fields | None:
        """What a set brought at an earlier injection; None if that is not known."""
        record = self._earlier.get(owner)
        return None if record is None else record.fields.get(field, {}).get(name)

    def _add_volume(self, owner: str, volume: Volume) -> None:
        """One that was injected before is the set's own; any other of that name has to be the same."""
        volumes = self._pod.spec.volumes or []
        for index, present in enumerate(volumes):
            if present.name == volume.name:
                fields = self._brought(owner, "volumes", volume.name)
                if fields is not None:
                    volumes[index] = _merged_volume(present, volume, fields)
                elif to_tree(present) != to_tree(volume):
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


def _without(containers: Iterable[Container], record: Record, brought: Iterable[Container]) -> list[Container]:
    """Without those that were injected and are not brought any more."""
    former = set(record.containers) - {item.name for item in brought}
    return [item for item in containers if item.name not in former or not _is_marked(item)]


def _is_marked(container: Container) -> bool:
    return any(variable == MARKER for variable in container.env or ())


def _merged_volume(present: Volume, volume: Volume, earlier: Fields) -> Volume:
    """The volume of a set, with what others have added to it; nothing of them stays if it is of another kind now."""
    there, wanted = to_tree(present), to_tree(volume)
    if there.keys() != wanted.keys():
        return copy_of(volume)
    return from_tree(Volume, merge(there, wanted, earlier, shape_of_volume(wanted)))


def _mounted_volumes(spec: SidecarSetSpec) -> list[Volume]:
    """The volumes that the containers of a set mount."""
    mounted = {name for container in (*spec.containers, *spec.init_containers) for name in _volumes_of(container)}
    return [volume for volume in spec.volumes if volume.name in mounted]


def _volumes_of(container: Container) -> set[str]:
    mounts = {mount.name for mount in container.volume_mounts or ()}
    return mounts | {device.name for device in container.volume_devices or ()}
