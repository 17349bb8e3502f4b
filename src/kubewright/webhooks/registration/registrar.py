"""Registrar: applies the webhook configurations of this operator to the cluster, and again when somebody changes them.

    Registrar(client, [default_cache, validate_cache], certificates, operator="shop", service=service)

An option for people who do not want to apply generated manifests. It writes both webhook configurations, and
`spec.conversion` of CRDs that exist, by server-side apply: at the start, when somebody else has changed them, and when
the authorities to trust change. Only `remove` deletes: an operator that stops, or is installed without any
declaration, leaves what is there. A webhook that is no longer declared goes with the next apply.

Replicas of two versions may run at the same time. An annotation holds a digest of the declarations an object was
written from. A replica that finds another digest on an object it wrote yields to the other version, and writes again
only if that digest stays for five minutes, because by then the other version is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright.api.codec import encode_tree
from kubewright.api.dynamic import DynamicObject
from kubewright.api.metadata import ObjectMeta
from kubewright.client.client import Client
from kubewright.errors import ConfigError, NotFound
from kubewright.webhooks.certificates.trust import LOCAL_LABEL, BundleSource
from kubewright.webhooks.registration.ca_injector import injection
from kubewright.webhooks.registration.manifests import (
    ServiceReference,
    configuration_name,
    conversion_stanza,
    converted_crds,
    webhook_configurations,
)
from kubewright.webhooks.registration.sync_loop import RESYNC_SECONDS, SyncLoop
from kubewright.webhooks.registration.targets import CRD, KINDS, Targets

__all__ = ("DECLARED_BY", "REGISTERED_LABEL", "Registrar")

REGISTERED_LABEL: Final = "kubewright.io/webhooks-of"
"""On objects that an operator has registered; the value is its name."""
DECLARED_BY: Final = "kubewright.io/declared-by"
"""An annotation: a digest of the declarations that an object was written from."""
_YIELD_SECONDS: Final = 300.0


@final
class Registrar:
    """Keeps the webhook configurations of an operator applied."""

    name = "webhook registration"
    needs_leader = False

    def __init__(
        self,
        client: Client,
        declarations: Iterable[object],
        source: BundleSource,
        *,
        operator: str,
        service: ServiceReference | None = None,
        url: str = "",
        exclude_namespaces: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        prefix: str = "",
        conversion: bool = True,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        """`prefix` begins the names of the configurations and is the operator's name unless given.

        With `conversion=False` CRDs are left alone.
        """
        self._client = client
        self._declarations = tuple(declarations)
        self._operator = operator
        self._service = service
        self._url = url
        self._exclude = exclude_namespaces
        self._labels = {REGISTERED_LABEL: operator, **(labels or {})}
        self._annotations = dict(annotations or {})
        self._prefix = prefix or operator
        self._crds = converted_crds(self._declarations) if conversion else ()
        self._clock = clock or SystemClock()
        names = {type_: configuration_name(type_, self._prefix) for type_ in KINDS}
        self._targets = Targets(
            client, mutating=[names["mutating"]], validating=[names["validating"]], crds=self._crds
        )  # fmt: skip
        self._digest = hashlib.sha256(encode_tree([self._trees(b""), list(self._crds)])).hexdigest()[:16]
        if not self._trees(b"") and not self._crds:
            raise ConfigError(f"{operator} declares no webhook, so there is nothing to register; leave it out")
        self._written: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._yielded_since: dict[tuple[str, str], float] = {}
        self._log = Logger("kubewright.webhooks", operator=operator)
        self._loop = SyncLoop(
            self.name,
            source,
            self._targets,
            self._apply_all,
            failure_message="the webhooks could not be registered; trying again",
            log=self._log,
            clock=self._clock,
            rng=rng,
        )
        source.require(self.trusted)

    def trusted(self, bundle: bytes) -> bool:
        """Whether every registered object has this bundle."""
        return self._loop.bundle is not None and not any(injection(obj, bundle) for obj in self._targets.objects())

    @property
    def problem(self) -> str:
        """Why the webhooks cannot be registered, in a sentence; empty if all is well."""
        return self._loop.problem

    async def wait_ready(self) -> None:
        """Returns when everything has been registered once."""
        await self._loop.wait_ready()

    async def run(self) -> None:
        """Keep everything applied until cancelled."""
        await self._loop.run()

    async def remove(self) -> None:
        """Delete both webhook configurations. CRDs keep their conversion: their stored objects may need it."""
        for type_, kind in KINDS.items():
            with contextlib.suppress(NotFound):
                live = await self._client.get(kind, configuration_name(type_, self._prefix))
                if live.metadata.labels.get(REGISTERED_LABEL) == self._operator:
                    await self._client.delete(live)

    def _trees(self, bundle: bytes) -> list[dict[str, Any]]:
        return webhook_configurations(
            self._declarations,
            name=self._prefix,
            ca_bundle=bundle,
            exclude_namespaces=self._exclude,
            service=self._service,
            url=self._url,
        )

    async def _apply_all(self, bundle: bytes) -> float:
        for wanted in self._wanted_objects(bundle):
            live = self._targets.find(type(wanted), wanted.metadata.name)
            if live is not None and self._belongs_to_another_version(live):
                if patch := injection(live, bundle):  # all versions read one bundle from one Secret
                    self._targets.wrote(
                        await self._client.patch_by_name(type(live), live.key, patch, patch_type="json")
                    )
                continue
            key = _key(wanted)
            if live is not None and self._written.get(key) == (live.metadata.resource_version, bundle):
                continue
            applied = await self._client.apply(wanted, field_manager=f"{self._operator}-webhooks", force=True)
            self._targets.wrote(applied)
            self._written[key] = (applied.metadata.resource_version, bundle)
            if live is None or live.metadata.resource_version != applied.metadata.resource_version:
                self._log.info("the webhooks were registered", kind=wanted.kind, target=wanted.metadata.name)
        return _YIELD_SECONDS if self._yielded_since else RESYNC_SECONDS

    def _wanted_objects(self, bundle: bytes) -> list[DynamicObject]:
        annotations = {**self._annotations, DECLARED_BY: self._digest}
        trees = {tree["metadata"]["name"]: tree["webhooks"] for tree in self._trees(bundle)}
        wanted = []
        for type_, kind in KINDS.items():
            name = configuration_name(type_, self._prefix)
            live = self._targets.find(kind, name)
            # A configuration that only an earlier version needed is emptied, not deleted: the role may not allow
            # deleting, and its entries would call webhooks that this version does not serve.
            if name in trees or (live is not None and live.metadata.labels.get(REGISTERED_LABEL) == self._operator):
                metadata = ObjectMeta(name=name, labels=dict(self._labels), annotations=dict(annotations))
                wanted.append(kind(metadata=metadata, content={"webhooks": trees.get(name, [])}))
        for name in self._crds:
            live = self._targets.find(CRD, name)
            # A CRD that is not installed yet gets its conversion once the watch delivers it.
            if live is not None and LOCAL_LABEL not in live.metadata.labels:
                stanza = conversion_stanza(service=self._service, url=self._url, ca_bundle=bundle)
                metadata = ObjectMeta(name=name, annotations={DECLARED_BY: self._digest})
                wanted.append(CRD(metadata=metadata, content={"spec": {"conversion": stanza}}))
        return wanted

    def _belongs_to_another_version(self, live: DynamicObject) -> bool:
        """Whether another version of this operator, which started later, has written this object."""
        key = _key(live)
        if live.metadata.annotations.get(DECLARED_BY, self._digest) == self._digest or key not in self._written:
            self._yielded_since.pop(key, None)
            return False
        now = self._clock.monotonic()
        return now - self._yielded_since.setdefault(key, now) < _YIELD_SECONDS


def _key(obj: DynamicObject) -> tuple[str, str]:
    return obj.kind, obj.metadata.name
