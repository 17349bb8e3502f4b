"""What happens to a pod before it is stored: the sidecars of every set that selects it are put into it.

The sets and namespaces come from memory, so the API server waits for no further request. A set that is itself broken
is passed over with a warning: it must not keep every pod of the cluster from being created.
"""

from collections.abc import Iterable

from kubewright import AdmissionRequest, Client, FieldErrors, NotFound, Warnings, mutate
from kubewright.cache import CacheReader
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import Namespace, Pod

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.defaults import defaulted
from sidecarset.injection import inject
from sidecarset.selection import INJECTION, Selection, is_open, takes_part
from sidecarset.validation import faults_of

__all__ = ("inject_sidecars",)

_COVERED = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-public", "kube-system"]},
        {"key": INJECTION, "operator": "NotIn", "values": ["disabled"]},
    ]
}
"""The namespaces of the cluster are not asked about; the generated manifests leave out the operator's own as well."""


@mutate(
    Pod,
    on="create",
    path="/mutate-v1-pod",
    reinvocation_policy="IfNeeded",
    timeout_seconds=5,
    namespace_selector=_COVERED,
    reads=[SidecarSet, Namespace],
)
async def inject_sidecars(
    pod: Pod,
    request: AdmissionRequest,
    cached: CacheReader,
    client: Client,
    errors: FieldErrors,
    warnings: Warnings,
) -> None:
    """Inject every set that selects the pod."""
    if request.subresource or not takes_part(pod):
        return
    namespace = await _namespace(request.namespace, cached, client)
    if is_open(request.namespace, namespace):
        inject(pod, _selecting(pod, namespace, cached.list(SidecarSet), warnings), errors)


async def _namespace(name: str, cached: CacheReader, client: Client) -> Namespace | None:
    """From memory; one that is too new for that is asked for once."""
    try:
        return cached.get(Namespace, name)
    except NotFound:
        return await client.find(Namespace, name)


def _selecting(
    pod: Pod, namespace: Namespace | None, sets: Iterable[SidecarSet], warnings: Warnings
) -> list[SidecarSet]:
    """The sets that select a pod, with their defaults filled in."""
    found = []
    for sidecarset in sets:
        try:
            if not Selection.of(sidecarset.spec).covers(pod.metadata.labels, namespace):
                continue
        except DecodeError as error:
            warnings.add(f"SidecarSet {sidecarset.metadata.name} is passed over, its selector is broken: {error}")
            continue
        if sidecarset.metadata.deletion_timestamp is not None:
            continue
        whole = defaulted(sidecarset)
        if faults := faults_of(whole):
            warnings.add(f"SidecarSet {sidecarset.metadata.name} is passed over, it is not valid: {faults}")
            continue
        found.append(whole)
    return found
