"""What every namespace has from the start: the `default` ServiceAccount, and the CA certificate of the API server.

Both are made again when somebody deletes them, as long as the namespace lives. Registered by
`housekeeping_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from kubewright.api.dynamic import metadata_of
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.cache.changes import Change
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import on
from kubewright.errors import AlreadyExists, NotFound
from kubewright.k8s.core.v1 import ConfigMap, Namespace, ServiceAccount

__all__ = ("root_certificates", "service_accounts")

_CERTIFICATE: Final = "kube-root-ca.crt"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def service_accounts(*names: str) -> Declaration[Namespace]:
    """Keeps ServiceAccounts, `default` if none is named, in every namespace."""
    wanted = names or ("default",)

    def to_namespace(change: Change[Any]) -> Iterable[ObjectKey]:
        return (ObjectKey("", change.key.namespace),) if change.key.name in wanted else ()

    async def reconcile(namespace: Namespace, ctx: Context) -> None:
        for name in wanted:
            key = ObjectKey(namespace.metadata.name, name)
            if await ctx.client.find(ServiceAccount, key) is None:
                # The namespace may be deleted, or go away altogether, at any moment.
                with suppress(AlreadyExists, NotFound):
                    await ctx.client.create(ServiceAccount(metadata=ObjectMeta(name=key.name, namespace=key.namespace)))

    watch = Watch(ServiceAccount, to_namespace, when=on("deleted"))
    return controller(Namespace, name="serviceaccount-controller", watches=[watch], concurrency=4)(reconcile)


def root_certificates(certificate: bytes) -> Declaration[Namespace]:
    """Keeps the CA certificate, PEM, in the ConfigMap `kube-root-ca.crt` of every namespace."""
    data = {"ca.crt": certificate.decode()}

    def to_namespace(change: Change[Any]) -> Iterable[ObjectKey]:
        return (ObjectKey("", change.key.namespace),) if change.key.name == _CERTIFICATE else ()

    async def reconcile(namespace: Namespace, ctx: Context) -> None:
        key = ObjectKey(namespace.metadata.name, _CERTIFICATE)
        present = await ctx.client.find(ConfigMap, key)
        if present is None:
            annotations = {"kubernetes.io/description": _DESCRIPTION}
            metadata = ObjectMeta(name=key.name, namespace=key.namespace, annotations=annotations)
            with suppress(AlreadyExists, NotFound):
                await ctx.client.create(ConfigMap(metadata=metadata, data=dict(data)))
        elif present.data != data:
            present.data = dict(data)
            await ctx.client.patch(present)

    # Metadata is enough to see that it was touched; the cache need not hold every ConfigMap of the cluster for it.
    watch = Watch(metadata_of(ConfigMap), to_namespace)
    name = "root-ca-certificate-publisher-controller"
    return controller(Namespace, name=name, watches=[watch], concurrency=4)(reconcile)
