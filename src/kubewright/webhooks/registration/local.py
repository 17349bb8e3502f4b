"""LocalWebhooks: registers the webhooks of an operator that runs outside the cluster, for as long as it runs.

The API server calls a URL with an address of this machine. The configurations have the process id in their names and
are deleted when the process stops; a CRD gets back its previous conversion. What a killed process left behind is
removed by the next process on the same machine; see `local_processes`. `kubewright dev`, `kubewright run` and
`kubewright.testing` use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import re
import socket
from collections.abc import Iterable
from typing import Final, final
from urllib.parse import urlsplit

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks
from kubewright.api.dynamic import DynamicObject
from kubewright.client.client import Client
from kubewright.errors import ConfigError, Conflict, KubewrightError, NotFound
from kubewright.webhooks.admission.declarations import AdmissionDeclaration
from kubewright.webhooks.certificates.local import LocalCertificates
from kubewright.webhooks.certificates.trust import LOCAL_LABEL
from kubewright.webhooks.registration.local_processes import (
    MAX_ATTEMPTS,
    PREVIOUS_CONVERSION,
    PROCESS,
    marks,
    remove_dead,
    undo,
)
from kubewright.webhooks.registration.manifests import conversion_stanza, converted_crds
from kubewright.webhooks.registration.registrar import Registrar
from kubewright.webhooks.registration.targets import CRD

__all__ = ("LocalWebhooks", "reachable_address")

_CLEAN_UP_SECONDS: Final = 10.0
"""How long cleaning up may take on exit."""


def reachable_address(server: str) -> str:
    """The address of this machine at which the API server can call it: loopback if it runs here too.

    Connecting a UDP socket sends nothing: the routing table says which local address a packet to the server would have.
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    try:
        found = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise ConfigError(
            f"the API server {server} cannot be found from here ({error.strerror or error}), so the address at which "
            "it could call the webhooks is unknown; give the address"
        ) from None
    family, _, _, _, target = found[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(target)
        except OSError as error:
            raise ConfigError(
                f"there is no route from here to the API server {server} ({error.strerror}), so the address at which "
                "it could call the webhooks is unknown; give the address"
            ) from None
        return str(probe.getsockname()[0]).partition("%")[0]


@final
class LocalWebhooks:
    """Registers the webhooks of this process and removes them on exit. Serve with its `certificates`."""

    name = "local webhooks"
    needs_leader = False

    def __init__(
        self,
        client: Client,
        declarations: Iterable[object],
        *,
        operator: str,
        port: int,
        server: str = "",
        address: str = "",
        clock: Clock | None = None,
    ) -> None:
        """`server` is the URL of the API server, from which `address` is derived unless given.

        A cluster in containers needs `address`: its loopback is not this machine's.
        """
        if not server and not address:
            raise ConfigError(
                "local webhooks need the API server's URL, or the address at which it is to call; give one"
            )
        self._client = client
        self._declarations = tuple(declarations)
        self._operator = operator
        self._machine = socket.gethostname()
        self.address = address or reachable_address(server)
        self.port = port
        self.url = f"https://{_in_url(self.address)}:{port}"
        hosts = {self.address, "localhost", "127.0.0.1", "::1"}
        self.certificates = LocalCertificates(hosts, name=operator, clock=clock)
        self._annotations = marks(self.url)
        self._crds = converted_crds(self._declarations)
        self._registrar = self._new_registrar(clock)
        self._ready = asyncio.Event()
        self._converts = False
        self._log = Logger("kubewright.webhooks", operator=operator, url=self.url)

    async def wait_ready(self) -> None:
        """Returns when the webhooks are registered."""
        await self._ready.wait()

    async def run(self) -> None:
        """Register the webhooks, keep them registered, and remove them when cancelled."""
        tasks = Tasks(self.name)
        try:
            if not self._converts:
                await self.remove_stale()
                await self.take_conversions()
            if self._registrar is not None:
                tasks.start(self._registrar.run(), name="registration")
                await self._registrar.wait_ready()
            self._log.info("the cluster calls webhooks on this machine")
            self._ready.set()
            await (tasks.wait_failure() if len(tasks) else asyncio.get_running_loop().create_future())
        finally:
            await tasks.stop()
            await self._clean_up()

    async def remove_stale(self) -> None:
        """Clean up after processes on this machine that ended without doing so."""
        await remove_dead(self._client, url=self.url)

    async def release_conversions(self) -> None:
        """Before installing CRDs whose conversion points elsewhere: `remove_stale`, then fail if a live process
        converts.
        """
        await self.remove_stale()
        for name in self._crds:
            if (crd := await self._client.find(CRD, name)) is not None:
                _refuse_if_taken(crd)

    async def take_conversions(self) -> None:
        """Point the conversion of the CRDs here: `run` does it, unless it was done before.

        A list of a kind with several versions needs it. So where the caches start before `run`, call
        `release_conversions` and this before them, and `restore_conversions` when they have stopped.
        """
        self._converts = True
        for crd in self._crds:
            await self._take_conversion(crd)

    async def restore_conversions(self) -> None:
        """Give the CRDs that are converted here the conversion that they had before; leave alone any other."""
        for name in self._crds:
            crd = await self._client.find(CRD, name)
            if crd is not None and self._annotations.items() <= crd.metadata.annotations.items():
                with contextlib.suppress(NotFound):
                    await undo(self._client, crd)

    def _new_registrar(self, clock: Clock | None) -> Registrar | None:
        declared = [item for item in self._declarations if isinstance(item, AdmissionDeclaration)]
        if not declared:
            return None
        machine = re.sub(r"[^a-z0-9]+", "-", self._machine.lower()).strip("-")[:40]
        return Registrar(
            self._client,
            declared,
            self.certificates,
            operator=self._operator,
            prefix=f"{self._operator}-local-{machine}-{os.getpid()}",
            url=self.url,
            labels={LOCAL_LABEL: self._operator},
            annotations=self._annotations,
            clock=clock,
        )

    async def _clean_up(self) -> None:
        try:
            async with asyncio.timeout(_CLEAN_UP_SECONDS):
                if self._registrar is not None:
                    await self._registrar.remove()
                await self.restore_conversions()
        except (KubewrightError, TimeoutError) as error:
            self._log.warning("the local webhooks could not be removed; the next start does it", error=error)

    async def _take_conversion(self, name: str) -> None:
        """Point the conversion of a CRD here, and record its previous conversion in an annotation."""
        stanza = conversion_stanza(url=self.url, ca_bundle=self.certificates.bundle)
        for _ in range(MAX_ATTEMPTS):
            try:
                crd = await self._client.get(CRD, name)
            except NotFound:
                self._log.warning("a CRD with conversion is not installed; install it and start again", crd=name)
                return
            _refuse_if_taken(crd)
            crd.metadata.labels[LOCAL_LABEL] = self._operator
            before = json.dumps(crd.get("spec.conversion") or {"strategy": "None"}, sort_keys=True)
            crd.metadata.annotations.update({**self._annotations, PREVIOUS_CONVERSION: before})
            crd["spec"]["conversion"] = stanza
            with contextlib.suppress(Conflict):
                await self._client.patch(crd, optimistic_lock=True)
                return
        raise ConfigError(f"the CRD {name} changes all the time, so its conversion could not be set; try again")


def _refuse_if_taken(crd: DynamicObject) -> None:
    if LOCAL_LABEL in crd.metadata.labels:
        process = crd.metadata.annotations.get(PROCESS, "another process")
        raise ConfigError(f"the conversion of {crd.metadata.name} is served by {process} already; stop that one first")


def _in_url(address: str) -> str:
    try:
        return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        return address
