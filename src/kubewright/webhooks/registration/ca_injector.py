"""CaInjector: writes the authorities to trust into the webhook configurations and CRDs of this operator.

    CaInjector(client, certificates, Targets(client, labels="kubewright.io/inject-webhook-ca=shop"))

For manifests that somebody else applies: it writes only `caBundle`, with a JSON patch that fails if the entry has
changed. Every replica runs it, since all read the same bundle from the same Secret. It does not change objects of
cert-manager's injector, nor objects that local webhooks have pointed at a process. `Registrar` writes the whole object
instead.
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
from kubewright.webhooks.registration.sync_loop import RESYNC_SECONDS, SyncLoop
from kubewright.webhooks.registration.targets import CRD, Targets

__all__ = ("INJECT_LABEL", "CaInjector", "injection")

INJECT_LABEL: Final = "kubewright.io/inject-webhook-ca"
"""On objects whose `caBundle` an operator writes; the value is the operator's name."""
_CERT_MANAGER: Final = "cert-manager.io/inject-"


def injection(obj: DynamicObject, bundle: bytes) -> list[dict[str, Any]]:
    """The JSON patch that gives an object exactly this bundle; empty if it has it, or if another injector owns it."""
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
            # A JSON patch addresses a list by index, and somebody may have reordered the list since it was read.
            operations.append({"op": "test", "path": f"/webhooks/{index}/name", "value": webhook["name"]})
            operations.append({"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": wanted})
    return operations


@final
class CaInjector:
    """Keeps `caBundle` current in every target."""

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
        self._loop = SyncLoop(
            self.name,
            source,
            targets,
            self._inject,
            failure_message="the webhook authorities could not be written; trying again",
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
        """Why a bundle cannot be written, in a sentence; empty if all is well."""
        return self._loop.problem

    async def wait_ready(self) -> None:
        """Returns when every target has had the bundle once."""
        await self._loop.wait_ready()

    async def run(self) -> None:
        """Keep the targets current until cancelled."""
        await self._loop.run()

    async def _inject(self, bundle: bytes) -> float:
        for obj in self._targets.objects():
            if patch := injection(obj, bundle):
                written = await self._client.patch_by_name(type(obj), obj.key, patch, patch_type="json")
                self._targets.wrote(written)
                self._log.info("the webhook authorities were written", kind=obj.kind, target=obj.metadata.name)
        return RESYNC_SECONDS
