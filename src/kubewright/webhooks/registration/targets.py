"""Targets: watches the objects that point at the webhooks, two webhook configurations and the CRDs with conversion.

Objects given by name are watched by name, so that a role needs to allow no others; the rest by label selector. Targets
only reads; `CaInjector` and `Registrar` write. The event `changed` is set whenever one of the objects is added, changed
or deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final, final

from kubewright.api.dynamic import Dynamic, DynamicObject
from kubewright.api.names import ObjectKey
from kubewright.cache.cache import Cache
from kubewright.cache.informer import Informer
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.errors import ConfigError, DecodeError

__all__ = ("CRD", "KINDS", "MUTATING", "VALIDATING", "Targets")

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
MUTATING: Final = Dynamic(
    _ADMISSION, "MutatingWebhookConfiguration", plural="mutatingwebhookconfigurations", namespaced=False
)
VALIDATING: Final = Dynamic(
    _ADMISSION, "ValidatingWebhookConfiguration", plural="validatingwebhookconfigurations", namespaced=False
)
CRD: Final = Dynamic(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
KINDS: Final = {"mutating": MUTATING, "validating": VALIDATING}
_CRD_PROJECTION: Final = ("spec.conversion",)
"""The cache drops the rest of a CRD, which is mostly its schema: large, and not needed here."""


@final
class Targets:
    """A live copy of the watched objects."""

    def __init__(
        self,
        client: Client,
        *,
        mutating: Iterable[str] = (),
        validating: Iterable[str] = (),
        crds: Iterable[str] = (),
        labels: str = "",
    ) -> None:
        """Objects by name, or all three kinds by a label selector."""
        named = [(MUTATING, name) for name in mutating]
        named += [(VALIDATING, name) for name in validating]
        named += [(CRD, name) for name in crds]
        scopes = [(kind, Scope(fields=f"metadata.name={name}", projection=_projection(kind))) for kind, name in named]
        if labels:
            scopes += [
                (kind, Scope(labels=labels, projection=_projection(kind))) for kind in (MUTATING, VALIDATING, CRD)
            ]
        if not scopes:
            raise ConfigError("no webhook configuration is named; give names, or a label selector")
        self.changed = asyncio.Event()
        self._scopes = scopes
        self._cache = Cache(client)
        self._informers: list[Informer[DynamicObject]] = []
        self._running = asyncio.Event()

    async def run(self) -> None:
        """Watch the objects until cancelled."""
        with ExitStack() as stack:
            self._informers = [stack.enter_context(self._cache.use(kind, scope=scope)) for kind, scope in self._scopes]
            for informer in self._informers:
                informer.subscribe(lambda _: self.changed.set())
            self._running.set()
            await self._cache.run()

    async def wait_for_sync(self) -> None:
        """Returns when every watch has its initial list."""
        await self._running.wait()
        for informer in self._informers:
            await informer.wait_for_sync()

    def objects(self) -> list[DynamicObject]:
        """Every object, each once."""
        found: dict[tuple[str, str], DynamicObject] = {}
        for informer in self._informers:
            for key in tuple(informer.store.keys()):
                obj = _decoded(informer, key)
                if obj is not None:
                    found[informer.kind.__name__, key.name] = obj
        return list(found.values())

    def find(self, kind: type[DynamicObject], name: str) -> DynamicObject | None:
        """The object of this kind and name, or None."""
        found = (_decoded(each, ObjectKey("", name)) for each in self._informers if each.kind is kind)
        return next((obj for obj in found if obj is not None), None)

    def wrote(self, obj: DynamicObject) -> None:
        """Put an object this process has written into the cache, as the server returned it."""
        self._cache.record_write(obj)

    @property
    def problem(self) -> str:
        """Why the objects cannot be watched, in a sentence."""
        return next((problem.sentence for problem in self._cache.problems()), "")


def _decoded(informer: Informer[DynamicObject], key: ObjectKey) -> DynamicObject | None:
    try:
        return informer.store.get(key)
    except DecodeError:  # reported by the cache
        return None


def _projection(kind: type[DynamicObject]) -> tuple[str, ...] | None:
    return _CRD_PROJECTION if kind is CRD else None
