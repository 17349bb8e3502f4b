"""ServiceAccountController and RootCACertPublisher: objects that every namespace has.

The `default` ServiceAccount and the ConfigMap `kube-root-ca.crt` with the CA certificate of the API server. Both are
created again when they are deleted, until the namespace terminates. After pkg/controller/serviceaccount and
pkg/controller/certificates/rootcacertpublisher. Registered by `controllers`.
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

__all__ = ("root_ca_cert_publisher", "service_account_controller")

_CONFIG_MAP: Final = "kube-root-ca.crt"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def service_account_controller(*names: str) -> Declaration[Namespace]:
    """Ensures that every namespace has these ServiceAccounts, by default `default`."""
    account_names = names or ("default",)

    def to_namespace(change: Change[Any]) -> Iterable[ObjectKey]:
        return (ObjectKey("", change.key.namespace),) if change.key.name in account_names else ()

    async def reconcile(namespace: Namespace, ctx: Context) -> None:
        for name in account_names:
            key = ObjectKey(namespace.metadata.name, name)
            if await ctx.client.find(ServiceAccount, key) is None:
                # The namespace may terminate or be deleted at any time.
                with suppress(AlreadyExists, NotFound):
                    await ctx.client.create(ServiceAccount(metadata=ObjectMeta(name=key.name, namespace=key.namespace)))

    watch = Watch(ServiceAccount, to_namespace, when=on("deleted"))
    return controller(Namespace, name="serviceaccount-controller", watches=[watch], concurrency=4)(reconcile)


def root_ca_cert_publisher(certificate: bytes) -> Declaration[Namespace]:
    """Publishes the CA certificate, PEM, in the ConfigMap `kube-root-ca.crt` of every namespace."""
    data = {"ca.crt": certificate.decode()}

    def to_namespace(change: Change[Any]) -> Iterable[ObjectKey]:
        return (ObjectKey("", change.key.namespace),) if change.key.name == _CONFIG_MAP else ()

    async def reconcile(namespace: Namespace, ctx: Context) -> None:
        key = ObjectKey(namespace.metadata.name, _CONFIG_MAP)
        existing = await ctx.client.find(ConfigMap, key)
        if existing is None:
            annotations = {"kubernetes.io/description": _DESCRIPTION}
            metadata = ObjectMeta(name=key.name, namespace=key.namespace, annotations=annotations)
            with suppress(AlreadyExists, NotFound):
                await ctx.client.create(ConfigMap(metadata=metadata, data=dict(data)))
        elif existing.data != data:
            existing.data = dict(data)
            await ctx.client.patch(existing)

    # Watch metadata only, so that the cache does not hold the data of all ConfigMaps.
    watch = Watch(metadata_of(ConfigMap), to_namespace)
    name = "root-ca-certificate-publisher-controller"
    return controller(Namespace, name=name, watches=[watch], concurrency=4)(reconcile)
