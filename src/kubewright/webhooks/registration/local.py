"""Laptop: webhooks of an operator that runs on somebody's machine, outside of the cluster, for as long as it runs.

The API server calls a URL with an address of this machine. The configurations carry the process in their names and are
deleted when it stops; a CRD gets back the conversion it had. What a process that was killed has left behind is
found by its label and cleaned up by the next one that starts on the same machine.
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
from kubewright.webhooks.registration.manifests import conversion_stanza, converted_crds
from kubewright.webhooks.registration.registrar import Registrar
from kubewright.webhooks.registration.targets import CRD, KINDS

__all__ = ("LocalWebhooks", "reachable_address")

_PROCESS: Final = "kubewright.io/local-process"
_URL: Final = "kubewright.io/local-url"
_BEFORE: Final = "kubewright.io/conversion-before"
_PARTING: Final = 10.0
"""Seconds to clean up in."""
_TRIES: Final = 5


def reachable_address(server: str) -> str:
    """The address of this machine at which the API server can call it: loopback if it runs here too.

    Nothing is sent; the routing table says which address of ours a packet to the server would have.
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    try:
        found = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise ConfigError(
            f"the API server {server} cannot be found from here ({error.strerror or error}), so it is unknown at which "
            "address it could call the webhooks; give the address"
        ) from None
    family, _, _, _, target = found[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(target)
        except OSError as error:
            raise ConfigError(
                f"there is no way from here to the API server {server} ({error.strerror}), so it is unknown at which "
                "address it could call the webhooks; give the address"
            ) from None
        return str(probe.getsockname()[0]).partition("%")[0]


@final
class LocalWebhooks:
    """Registers the webhooks of this process, and takes them away again. `certificates` are what to serve with."""

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
        """`server` is the API server, from which the address is worked out unless `address` says it.

        A cluster in containers needs the address: its loopback is not this machine's.
        """
        if not server and not address:
            raise ConfigError("webhooks on a laptop need the API server's address, or the one at which it is to call")
        self._client = client
        self._declarations = tuple(declarations)
        self._operator = operator
        self._machine = socket.gethostname()
        self.address = address or reachable_address(server)
        self.port = port
        self.url = f"https://{_in_url(self.address)}:{port}"
        hosts = {self.address, "localhost", "127.0.0.1", "::1"}
        self.certificates = LocalCertificates(hosts, name=operator, clock=clock)
        self._marks = {_PROCESS: f"{self._machine}/{os.getpid()}", _URL: self.url}
        self._crds = converted_crds(self._declarations)
        self._registration = self._registered(clock)
        self._ready = asyncio.Event()
        self._log = Logger("kubewright.webhooks", operator=operator, url=self.url)

    async def wait_ready(self) -> None:
        """Returns when the webhooks are registered."""
        await self._ready.wait()

    async def run(self) -> None:
        """Register, keep, and clean up when cancelled."""
        await self.sweep()
        tasks = Tasks(self.name)
        try:
            for crd in self._crds:
                await self._take_over(crd)
            if self._registration is not None:
                tasks.start(self._registration.run(), name="registration")
                await self._registration.wait_ready()
            self._log.info("the cluster calls webhooks on this machine")
            self._ready.set()
            await (tasks.wait_failure() if len(tasks) else asyncio.get_running_loop().create_future())
        finally:
            await tasks.stop()
            await self._leave()

    async def sweep(self) -> None:
        """Clean up after processes on this machine that ended without doing so."""
        labels = {LOCAL_LABEL: self._operator}
        for kind in (*KINDS.values(), CRD):
            for obj in await self._client.list(kind, labels=labels):
                if self._is_stale(obj):
                    self._log.info("cleaning up after a process that is gone", kind=obj.kind, target=obj.metadata.name)
                    await self._restore(obj)

    async def make_way(self) -> None:
        """Before CRDs are installed that point elsewhere: `sweep`, and see that nobody else converts their versions."""
        await self.sweep()
        for name in self._crds:
            if (crd := await self._client.find(CRD, name)) is not None:
                _refuse_if_taken(crd)

    # inside

    def _registered(self, clock: Clock | None) -> Registrar | None:
        asked = [item for item in self._declarations if isinstance(item, AdmissionDeclaration)]
        if not asked:
            return None
        machine = re.sub(r"[^a-z0-9]+", "-", self._machine.lower()).strip("-")[:40]
        return Registrar(
            self._client,
            asked,
            self.certificates,
            operator=self._operator,
            prefix=f"{self._operator}-local-{machine}-{os.getpid()}",
            url=self.url,
            labels={LOCAL_LABEL: self._operator},
            annotations=self._marks,
            clock=clock,
        )

    def _is_stale(self, obj: DynamicObject) -> bool:
        """Whether what made an object is gone: it ran here, and ended or had the port that is ours now."""
        machine, _, process = obj.metadata.annotations.get(_PROCESS, "").rpartition("/")
        if machine != self._machine:
            return False
        return obj.metadata.annotations.get(_URL) == self.url or not _is_alive(process)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_PARTING):
                if self._registration is not None:
                    await self._registration.remove()
                for name in self._crds:
                    with contextlib.suppress(NotFound):
                        await self._restore(await self._client.get(CRD, name))
        except (KubewrightError, TimeoutError) as error:
            self._log.warning("the local webhooks could not be removed; the next start does it", error=error)

    async def _take_over(self, name: str) -> None:
        """Point the conversion of a CRD here, and write down what it was."""
        stanza = conversion_stanza(url=self.url, ca_bundle=self.certificates.bundle)
        for _ in range(_TRIES):
            try:
                crd = await self._client.get(CRD, name)
            except NotFound:
                self._log.warning("a CRD with conversion is not installed; start again when it is", crd=name)
                return
            _refuse_if_taken(crd)
            crd.metadata.labels[LOCAL_LABEL] = self._operator
            before = json.dumps(crd.get("spec.conversion") or {"strategy": "None"}, sort_keys=True)
            crd.metadata.annotations.update({**self._marks, _BEFORE: before})
            crd["spec"]["conversion"] = stanza
            with contextlib.suppress(Conflict):
                await self._client.patch(crd, optimistic_lock=True)
                return
        raise ConfigError(f"the CRD {name} changes all the time, so its conversion cannot be set; try again")

    async def _restore(self, obj: DynamicObject) -> None:
        """Undo what a local process did to an object."""
        if type(obj) is not CRD:
            with contextlib.suppress(NotFound, Conflict):  # gone, or another by now
                await self._client.delete(obj)
            return
        for _ in range(_TRIES):
            annotations = obj.metadata.annotations
            if obj.metadata.labels.pop(LOCAL_LABEL, None) is None:
                return
            obj["spec"]["conversion"] = json.loads(annotations.pop(_BEFORE, '{"strategy": "None"}'))
            for mark in self._marks:
                annotations.pop(mark, None)
            with contextlib.suppress(Conflict):
                await self._client.patch(obj, optimistic_lock=True)
                return
            obj = await self._client.get(CRD, obj.metadata.name)


def _refuse_if_taken(crd: DynamicObject) -> None:
    if LOCAL_LABEL in crd.metadata.labels:
        by = crd.metadata.annotations.get(_PROCESS, "another process")
        raise ConfigError(f"the conversion of {crd.metadata.name} is served by {by} already; stop that one first")


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:  # it is somebody else's
        return True
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    return True


def _in_url(address: str) -> str:
    try:
        return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        return address
