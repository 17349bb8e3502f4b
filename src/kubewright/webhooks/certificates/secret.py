"""SecretCertificates: the operator makes its own webhook certificates and its replicas share them in a Secret.

    certificates = SecretCertificates(client, operator="shop", namespace="shop-system", hosts=service.hosts)

Every replica runs one. The first replica creates the authority and the certificate; the others, also those that start
at the same instant, use what is there, because every write carries a resourceVersion and only one can succeed. All of
them watch the Secret, and any of them takes a step of `certificates.rotation` when it is due. Deleting the Secret
replaces the authority, in the same steps and without losing a request. The client must not be fenced by leader
election: every replica serves.
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
from kubewright.webhooks.certificates.rotation import (
    CertificateState,
    Lifetimes,
    announce_successor,
    new_state,
    next_state,
    next_step_at,
)
from kubewright.webhooks.certificates.secret_store import SecretStore, state_from_secret
from kubewright.webhooks.certificates.trust import WatchedValue

__all__ = ("SecretCertificates",)

_TRUST_POLL_SECONDS: Final = 5.0
"""How often to check whether every caller trusts an announced authority."""
_MAX_SLEEP_SECONDS: Final = 24 * 3600.0
"""The longest sleep, however far the next step is: somebody may set the clock meanwhile."""


@final
class SecretCertificates:
    """A certificate source for the webhook server, and a source of the authorities to trust."""

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
        self._rotation_requested = False
        self._requirements: list[Callable[[bytes], bool]] = []
        self._state: WatchedValue[CertificateState] = WatchedValue()
        self._bundle: WatchedValue[bytes] = WatchedValue()
        self._served: bytes | None = None
        self._problem = ""
        self._log = Logger("kubewright.webhooks", secret=f"{namespace}/{self._store.name}")

    # CertificateSource: for the server ----------------------------------------------------------------------

    async def current(self) -> tuple[bytes, bytes]:
        """The serving certificate and its key; waits until the Secret exists."""
        serving = (await self._state.wait_other_than(None)).serving
        self._served = serving.certificate
        return serving.certificate, serving.key

    async def changed(self) -> None:
        """Returns when the serving certificate differs from the one that `current` returned last."""
        state = await self._state.wait_other_than(None)
        while state.serving.certificate == self._served:
            state = await self._state.wait_other_than(state)

    # BundleSource: for the CA injector and the registrar ----------------------------------------------------

    def bundles(self) -> AsyncIterator[bytes]:
        """The authorities to trust, and again whenever they change."""
        return self._bundle.each()

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        """Promote a new authority only after `trusted` returned True for its bundle."""
        self._requirements.append(trusted)

    # For people and the readiness probe ---------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """Why certificates cannot be made or renewed, in a sentence; empty if all is well."""
        return self._problem or next((problem.sentence for problem in self._cache.problems()), "")

    def rotate(self) -> None:
        """Replace the authority now, in the usual steps: announce, wait until it is trusted, promote."""
        self._rotation_requested = True
        self._wake.set()

    def __str__(self) -> str:
        return f"the Secret {self._store.namespace}/{self._store.name}"

    # Runnable -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch the Secret and take the steps that are due, until cancelled."""
        tasks = Tasks(self.name)
        scope = Scope(namespaces=(self._store.namespace,), fields=f"metadata.name={self._store.name}")
        with self._cache.use(Secret, scope=scope) as informer:
            informer.subscribe(lambda _: self._wake.set())
            tasks.start(self._cache.run(), name="watch")
            tasks.start(self._rotate_when_due(informer), name="rotation")
            try:
                await tasks.wait_failure()
            finally:
                await tasks.stop()

    async def _rotate_when_due(self, informer: Informer[Secret]) -> None:
        await informer.wait_for_sync()
        key = ObjectKey(self._store.namespace, self._store.name)
        while True:
            self._wake.clear()
            delay = await self._attempt(informer.store.get(key))
            with contextlib.suppress(TimeoutError):
                await within(self._wake.wait(), delay, clock=self._clock)

    async def _attempt(self, secret: Secret | None) -> float:
        """Read the Secret and take every step that is due; returns the seconds until the next attempt."""
        try:
            state = await self._reconcile(secret)
        except (AlreadyExists, Conflict):  # another replica wrote first; the watch delivers its write
            return self._backoff.next_delay()
        except KubewrightError as error:
            if str(error) != self._problem:
                self._log.error("the webhook certificates cannot be renewed", error=error)
            self._problem = str(error)
            return self._backoff.next_delay()
        self._backoff.reset()
        self._problem = ""
        seconds = (next_step_at(state, lifetimes=self._lifetimes) - self._clock.now()) / timedelta(seconds=1)
        return min(max(seconds, _TRUST_POLL_SECONDS), _MAX_SLEEP_SECONDS)

    async def _reconcile(self, secret: Secret | None) -> CertificateState:
        if secret is None:
            secret = self._remember_write(await self._store.create(self._initial_state()))
        self._store.check_owner(secret)
        try:
            state = state_from_secret(secret.data or {})
        except DecodeError as error:
            self._log.warning("the Secret is incomplete; replacing its content", error=error)
            trusted = certificates_in((secret.data or {}).get("ca.crt", b""))
            state = self._initial_state(retired=trusted)
            secret = self._remember_write(await self._store.replace(secret, state))
        self._publish(state)
        while (changed := self._next_state(state)) is not None:
            secret = self._remember_write(await self._store.replace(secret, changed))
            self._rotation_requested = False
            state = changed
            self._publish(state)
        return state

    def _next_state(self, state: CertificateState) -> CertificateState | None:
        now = self._clock.now()
        if self._rotation_requested and state.successor is None:
            return announce_successor(state, self._operator, lifetimes=self._lifetimes, now=now)
        return next_state(
            state,
            self._operator,
            hosts=self._hosts,
            lifetimes=self._lifetimes,
            now=now,
            trusted=all(trusted(state.bundle) for trusted in self._requirements),
        )

    def _initial_state(self, retired: Iterable[bytes] = ()) -> CertificateState:
        """The state to write when the Secret is missing or unreadable: ours with a successor, or a new one."""
        now = self._clock.now()
        known = self._state.value
        if known is not None:
            return announce_successor(known, self._operator, lifetimes=self._lifetimes, now=now)
        return new_state(self._operator, hosts=self._hosts, lifetimes=self._lifetimes, now=now, retired=retired)

    def _publish(self, state: CertificateState) -> None:
        known = self._state.value
        if known is None or known.serving != state.serving:
            self._log.info("got a webhook certificate", rotated=known is not None)
        self._state.set(state)
        self._bundle.set(state.bundle)

    def _remember_write(self, secret: Secret) -> Secret:
        self._cache.record_write(secret)
        return secret
