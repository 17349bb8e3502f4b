"""What holds where a field is left out: what the API server would fill in if the containers were in a pod.

Filled in before anything is compared or hashed, so that what is injected, what comes back from the API server and
what is recorded are the same. Pure functions, used by the webhook and, for sets that no webhook has seen, by
everybody else through `defaulted`.
"""

from kubewright import ObjectMeta, Quantity
from kubewright.api import copy_of, to_tree
from kubewright.k8s.core.v1 import (
    Container,
    DownwardAPIVolumeFile,
    EmptyDirVolumeSource,
    EnvVarSource,
    HTTPGetAction,
    Probe,
    ResourceRequirements,
    ServiceAccountTokenProjection,
    Volume,
)

from sidecarset.api.v1alpha1.sidecarset import SidecarSet, SidecarSetSpec

__all__ = ("defaulted", "fill_in")

_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600


def defaulted(sidecarset: SidecarSet) -> SidecarSet:
    """A copy with everything filled in."""
    copy = copy_of(sidecarset)
    fill_in(copy.spec)
    return copy


def fill_in(spec: SidecarSetSpec) -> None:
    """Fill in containers and volumes; the schema has done the rest."""
    for container in (*spec.containers, *spec.init_containers):
        _fill_in_container(container)
    for volume in spec.volumes:
        _fill_in_volume(volume)


def _fill_in_container(container: Container) -> None:
    container.image_pull_policy = container.image_pull_policy or _pull_policy(container.image or "")
    container.termination_message_path = container.termination_message_path or "/dev/termination-log"
    container.termination_message_policy = container.termination_message_policy or "File"
    container.resources = _resources(container.resources or ResourceRequirements())
    for port in container.ports or ():
        port.protocol = port.protocol or "TCP"
    for variable in container.env or ():
        if variable.value_from is not None:
            _fill_in_references(variable.value_from)
    for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
        if probe is not None:
            _fill_in_probe(probe)
    if container.lifecycle is not None:
        for handler in (container.lifecycle.post_start, container.lifecycle.pre_stop):
            if handler is not None and handler.http_get is not None:
                _fill_in_request(handler.http_get)


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"


def _resources(resources: ResourceRequirements) -> ResourceRequirements:
    """What may be used is what is asked for, where nothing is said about that."""
    if resources.limits:
        resources.requests = {**resources.limits, **(resources.requests or {})}
    return resources


def _fill_in_probe(probe: Probe) -> None:
    probe.timeout_seconds = probe.timeout_seconds or 1
    probe.period_seconds = probe.period_seconds or 10
    probe.success_threshold = probe.success_threshold or 1
    probe.failure_threshold = probe.failure_threshold or 3
    if probe.http_get is not None:
        _fill_in_request(probe.http_get)
    if probe.grpc is not None:
        probe.grpc.service = probe.grpc.service or ""


def _fill_in_request(request: HTTPGetAction) -> None:
    request.path = request.path or "/"
    request.scheme = request.scheme or "HTTP"


def _fill_in_references(holder: EnvVarSource | DownwardAPIVolumeFile) -> None:
    if holder.field_ref is not None:
        holder.field_ref.api_version = holder.field_ref.api_version or "v1"
    if holder.resource_field_ref is not None and holder.resource_field_ref.divisor is None:
        holder.resource_field_ref.divisor = Quantity("0")


def _fill_in_volume(volume: Volume) -> None:
    if to_tree(volume).keys() <= {"name"}:
        volume.empty_dir = EmptyDirVolumeSource()
    if volume.ephemeral is not None and (template := volume.ephemeral.volume_claim_template) is not None:
        template.metadata = template.metadata or ObjectMeta()
        template.spec.volume_mode = template.spec.volume_mode or "Filesystem"
    if volume.image is not None:
        volume.image.pull_policy = volume.image.pull_policy or _pull_policy(volume.image.reference or "")
    if volume.iscsi is not None:
        volume.iscsi.iscsi_interface = volume.iscsi.iscsi_interface or "default"
    for files in (volume.config_map, volume.secret, volume.downward_api, volume.projected):
        if files is not None and files.default_mode is None:
            files.default_mode = _FILE_MODE
    if volume.host_path is not None:
        volume.host_path.type = volume.host_path.type or ""
    for item in (volume.downward_api.items or ()) if volume.downward_api is not None else ():
        _fill_in_references(item)
    for source in (volume.projected.sources or ()) if volume.projected is not None else ():
        if source.service_account_token is not None:
            _fill_in_token(source.service_account_token)


def _fill_in_token(token: ServiceAccountTokenProjection) -> None:
    token.expiration_seconds = token.expiration_seconds or _TOKEN_SECONDS
