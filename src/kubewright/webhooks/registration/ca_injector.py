"""Bundles: puts the authorities to trust into the objects that point at the webhooks, and keeps them there.

    Bundles(client, certificates, Targets(client, labels="kubewright.io/inject-webhook-ca=shop"))

For manifests that somebody else applies: only `caBundle` is written, by a patch that fails if the entry is not what it
was. All replicas run it, since they all read the same bundle from the same Secret. What cert-manager looks after, or
what a laptop has pointed at itself, is left alone. Where the operator writes the whole object, see `registration`.
"""

from __future__ import annotations

import base64
from random import Random
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright.api.dynamic import DynamicObject
from kubewright.client.client import Client
from kubewright.webhooks.certificates.trust import LOCAL_LABEL, BundleSource
from kubewright.webhooks.registration.sync_loop import REST, SyncLoop
from kubewright.webhooks.registration.targets import CRD, Targets

__all__ = ("INJECT_LABEL", "CaInjector", "injection")

INJECT_LABEL: Final = "kubewright.io/inject-webhook-ca"
"""On objects whose bundle an operator keeps right; the value is the operator's name."""
_CERT_MANAGER: Final = "cert-manager.io/inject-"


def injection(obj: DynamicObject, bundle: bytes) -> list[dict[str, Any]]:
    """The JSON patch that makes an object trust exactly this bundle; empty if it does, or is not to be touched."""
    if LOCAL_LABEL in obj.metadata.labels or any(name.startswith(_CERT_MANAGER) for name in obj.metadata.annotations):
        return []
    wanted = base64.b64encode(bundle).decode()
    operations: list[dict[str, Any]] = []
    if type(obj) is CRD:
        conversion = obj.get("spec.conversion") or {}
        config = (conversion.get("webhook") or {}).get("clientConfig")
        if conversion.get("strategy") == "Webhook" and config is not None and config.get("caBundle") != wanted:
            operations.append({"op": "test", "path": "/spec/conversion/strategy", "value": "Webhook"})
            path = "/spec/conversion/webhook/clientConfig/caBundle"
            operations.append({"op": "add", "path": path, "value": wanted})
        return operations
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        if webhook.get("clientConfig", {}).get("caBundle") != wanted:
            # The list may have been reordered since it was read.
            operations.append({"op": "test", "path": f"/webhooks/{index}/name", "value": webhook["name"]})
            operations.append({"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": wanted})
    return operations


@final
class CaInjector:
    """Keeps the bundle right in every target."""

    name = "webhook authorities"
    needs_leader = False

    def __init__(
        self,
        client: Client,
        source: BundleSource,
        targets: Targets,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        self._client = client
        self._targets = targets
        self._log = Logger("kubewright.webhooks")
        self._upkeep = SyncLoop(
            self.name,
            source,
            targets,
            self._inject,
            complaint="the webhook authorities could not be written; trying again",
            log=self._log,
            clock=clock or SystemClock(),
            rng=rng,
        )
        source.require(self.trusted)

    def trusted(self, bundle: bytes) -> bool:
        """Whether every target has this bundle."""
        return not any(injection(obj, bundle) for obj in self._targets.objects())

    @property
    def problem(self) -> str:
        """What keeps a bundle from being written, in a sentence; empty if nothing does."""
        return self._upkeep.problem

    async def wait_ready(self) -> None:
        """Returns when every target has been right once."""
        await self._upkeep.wait_ready()

    async def run(self) -> None:
        """Keep the targets right until cancelled."""
        await self._upkeep.run()

    async def _inject(self, bundle: bytes) -> float:
        for obj in self._targets.objects():
            if patch := injection(obj, bundle):
                written = await self._client.patch_by_name(type(obj), obj.key, patch, form="json")
                self._targets.wrote(written)
                self._log.info("the webhook authorities were written", kind=obj.kind, target=obj.metadata.name)
        return REST
