"""SecretCertificates: the webhooks' certificates, made by the operator itself and shared by its replicas in a Secret.

    certificates = SecretCertificates(client, operator="shop", namespace="shop-system", hosts=service.hosts)

Every replica runs one. Whoever comes first makes the authority and the certificate; the others, also those that start
at the same instant, take what is there, because each write says which version it follows and only one can win. All of
them watch the Secret, and any of them takes a step of `rotation` when it is due. Deleting the Secret replaces the
authority, in the same order and without a request being lost. The client must not wait for leadership: every
replica serves.
"""

from __future__ import annotations

import contextlib
from asyncio import Event
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta
from random import Random
from typing import Final, final

from kubewright._base.backoff import Backoff
from kubewright._base.certificates import certificates_in
from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks, within
from kubewright.api.names import ObjectKey
from kubewright.cache.cache import Cache
from kubewright.cache.informer import Informer
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.errors import AlreadyExists, ConfigError, Conflict, DecodeError, KubewrightError
from kubewright.k8s.core.v1 import Secret
from kubewright.webhooks.certificates.rotation import Lifetimes, Material, announced, due, fresh, step
from kubewright.webhooks.certificates.secret_store import SecretStore, material_in
from kubewright.webhooks.certificates.trust import Latest

__all__ = ("SecretCertificates",)

_PATIENCE: Final = 5.0
"""Between two looks at whether a new authority is trusted everywhere."""
_LONGEST_SLEEP: Final = 24 * 3600.0
"""However far the next step is: a clock may have been set meanwhile."""


@final
class SecretCertificates:
    """A source of certificates for the webhook server, and of the authorities to trust. `run` keeps it going."""

    name = "webhook certificates"
    needs_leader = False

    def __init__(
        self,
        client: Client,
        *,
        operator: str,
        namespace: str,
        hosts: Iterable[str],
        secret: str = "",
        lifetimes: Lifetimes | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        """`hosts` are the names of the Service; `secret` is `<operator>-webhook-certs` unless named."""
        self._hosts = frozenset(hosts)
        if not self._hosts:
            raise ConfigError(f"the webhook certificate of {operator} needs a host; give the names of its Service")
        self._client = client
        self._operator = operator
        self._lifetimes = lifetimes or Lifetimes()
        self._clock = clock or SystemClock()
        self._store = SecretStore(
            client, name=secret or f"{operator}-webhook-certs", namespace=namespace, owner=operator
        )
        self._backoff = Backoff(clock=self._clock, rng=rng or Random(), initial=0.2)
        self._cache = Cache(client)
        self._wake = Event()
        self._rotation_asked = False
        self._requirements: list[Callable[[bytes], bool]] = []
        self._material: Latest[Material] = Latest()
        self._bundle: Latest[bytes] = Latest()
        self._given: bytes | None = None
        self._problem = ""
        self._log = Logger("kubewright.webhooks", secret=f"{namespace}/{self._store.name}")

    # For the server -----------------------------------------------------------------------------------------

    async def current(self) -> tuple[bytes, bytes]:
        """The serving certificate and its key; waits until the Secret is there."""
        serving = (await self._material.other_than(None)).serving
        self._given = serving.certificate
        return serving.certificate, serving.key

    async def changed(self) -> None:
        """Returns when there is another serving certificate than `current` gave last."""
        material = await self._material.other_than(None)
        while material.serving.certificate == self._given:
            material = await self._material.other_than(material)

    # For those who spread trust -----------------------------------------------------------------------------

    def bundles(self) -> AsyncIterator[bytes]:
        """The authorities to trust, and again whenever they change."""
        return self._bundle.each()

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        """Promote a new authority only when this says that its bundle has arrived."""
        self._requirements.append(trusted)

    # For people ---------------------------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """What keeps the certificates from being made or renewed, in a sentence; empty if nothing does."""
        return self._problem or next((problem.sentence for problem in self._cache.problems()), "")

    def rotate(self) -> None:
        """Replace the authority now, in the usual order: announce, wait until it is trusted, use it."""
        self._rotation_asked = True
        self._wake.set()

    def __str__(self) -> str:
        return f"the Secret {self._store.namespace}/{self._store.name}"

    # Life ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the Secret and take the steps that are due, until cancelled."""
        tasks = Tasks(self.name)
        scope = Scope(namespaces=(self._store.namespace,), fields=f"metadata.name={self._store.name}")
        with self._cache.use(Secret, scope=scope) as informer:
            informer.subscribe(lambda _: self._wake.set())
            tasks.start(self._cache.run(), name="watch")
            tasks.start(self._keep(informer), name="rotation")
            try:
                await tasks.wait_failure()
            finally:
                await tasks.stop()

    async def _keep(self, informer: Informer[Secret]) -> None:
        await informer.wait_for_sync()
        key = ObjectKey(self._store.namespace, self._store.name)
        while True:
            self._wake.clear()
            delay = await self._attempt(informer.store.get(key))
            with contextlib.suppress(TimeoutError):
                await within(self._wake.wait(), delay, clock=self._clock)

    async def _attempt(self, secret: Secret | None) -> float:
        """Take what the Secret says and every step that is due; how long to rest then."""
        try:
            material = await self._settled(secret)
        except (AlreadyExists, Conflict):  # another replica was quicker; the watch brings what it wrote
            return self._backoff.next_delay()
        except KubewrightError as error:
            if str(error) != self._problem:
                self._log.error("the webhook certificates cannot be kept", error=error)
            self._problem = str(error)
            return self._backoff.next_delay()
        self._backoff.reset()
        self._problem = ""
        seconds = (due(material, lifetimes=self._lifetimes) - self._clock.now()) / timedelta(seconds=1)
        return min(max(seconds, _PATIENCE), _LONGEST_SLEEP)

    async def _settled(self, secret: Secret | None) -> Material:
        if secret is None:
            secret = self._wrote(await self._store.create(self._first()))
        self._store.check_owner(secret)
        try:
            material = material_in(secret.data or {})
        except DecodeError as error:
            self._log.warning("the Secret is not whole and is made anew", error=error)
            trusted = certificates_in((secret.data or {}).get("ca.crt", b""))
            material = self._first(retired=trusted)
            secret = self._wrote(await self._store.replace(secret, material))
        self._publish(material)
        while (following := self._following(material)) is not None:
            secret = self._wrote(await self._store.replace(secret, following))
            self._rotation_asked = False
            material = following
            self._publish(material)
        return material

    def _following(self, material: Material) -> Material | None:
        now = self._clock.now()
        if self._rotation_asked and material.successor is None:
            return announced(material, self._operator, lifetimes=self._lifetimes, now=now)
        return step(
            material,
            self._operator,
            hosts=self._hosts,
            lifetimes=self._lifetimes,
            now=now,
            trusted=all(trusted(material.bundle) for trusted in self._requirements),
        )

    def _first(self, retired: Iterable[bytes] = ()) -> Material:
        """What to store where nothing usable is: what this replica serves, to be replaced in order, or all new."""
        now = self._clock.now()
        known = self._material.value
        if known is not None:
            return announced(known, self._operator, lifetimes=self._lifetimes, now=now)
        return fresh(self._operator, hosts=self._hosts, lifetimes=self._lifetimes, now=now, retired=retired)

    def _publish(self, material: Material) -> None:
        known = self._material.value
        if known is None or known.serving != material.serving:
            self._log.info("a webhook certificate is there", rotated=known is not None)
        self._material.set(material)
        self._bundle.set(material.bundle)

    def _wrote(self, secret: Secret) -> Secret:
        self._cache.wrote(secret)
        return secret
