"""What processes outside the cluster have registered: how to tell that one has ended, and how to undo what it did.

A killed process leaves webhook configurations that nobody serves, and every request that they match is refused. So
whoever starts on the same machine removes them, of whatever operator, with webhooks of its own or without:
`LocalWebhooks` when it registers, and a manager without webhooks through `DeadWebhooks`. `kubewright doctor` and
`kubewright uninstall` look for them, too. Registering is in `local`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from random import Random
from typing import Final, final

from kubewright._base.backoff import Backoff
from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright.api.dynamic import DynamicObject
from kubewright.client.client import Client
from kubewright.errors import Conflict, Forbidden, KubewrightError, NotFound
from kubewright.webhooks.certificates.trust import LOCAL_LABEL
from kubewright.webhooks.registration.calls import calls_of
from kubewright.webhooks.registration.targets import CRD, KINDS

__all__ = (
    "MAX_ATTEMPTS",
    "PREVIOUS_CONVERSION",
    "PROCESS",
    "DeadWebhooks",
    "has_ended",
    "marks",
    "remove_dead",
    "undo",
)

PROCESS: Final = "kubewright.io/local-process"
"""An annotation: machine and process id of who registered the object."""
_URL: Final = "kubewright.io/local-url"
PREVIOUS_CONVERSION: Final = "kubewright.io/conversion-before"
"""An annotation: what `spec.conversion` of a CRD was before."""
MAX_ATTEMPTS: Final = 5
"""How often a change of a CRD is tried while others change it."""

_log = Logger("kubewright.webhooks")


def marks(url: str) -> dict[str, str]:
    """The annotations by which an object that this process registers is told from those of others."""
    return {PROCESS: f"{socket.gethostname()}/{os.getpid()}", _URL: url}


async def remove_dead(client: Client, *, url: str = "") -> None:
    """Undo what processes of this machine have registered that have ended, or that had the URL that is ours now."""
    for kind in (*KINDS.values(), CRD):
        for obj in await client.list(kind, labels=LOCAL_LABEL):
            if await has_ended(obj, url=url):
                _log.info("cleaning up after a process that has ended", kind=obj.kind, target=obj.metadata.name)
                await undo(client, obj)


async def has_ended(obj: DynamicObject, *, url: str = "") -> bool:
    """Whether the process that registered an object is known to be gone.

    It ran here, and its process id is free, or nobody serves its webhooks any more: ids are given again. Of a process
    on another machine nobody here can tell.
    """
    machine, _, process = obj.metadata.annotations.get(PROCESS, "").rpartition("/")
    if machine != socket.gethostname():
        return False
    if (url and obj.metadata.annotations.get(_URL) == url) or not _is_alive(process):
        return True
    answers = [await call.problem() for call in calls_of(obj)]
    return any(answer is not None and answer.certain for answer in answers)


async def undo(client: Client, obj: DynamicObject) -> None:
    """Undo what a local process did to an object: delete the configuration, give the CRD its conversion back."""
    if type(obj) is not CRD:
        with contextlib.suppress(NotFound, Conflict):  # deleted, or recreated by somebody else
            await client.delete(obj)
        return
    for _ in range(MAX_ATTEMPTS):
        annotations = obj.metadata.annotations
        if obj.metadata.labels.pop(LOCAL_LABEL, None) is None:
            return
        obj["spec"]["conversion"] = json.loads(annotations.pop(PREVIOUS_CONVERSION, '{"strategy": "None"}'))
        for annotation in (PROCESS, _URL):
            annotations.pop(annotation, None)
        with contextlib.suppress(Conflict):
            await client.patch(obj, optimistic_lock=True)
            return
        obj = await client.get(CRD, obj.metadata.name)


@final
class DeadWebhooks:
    """A runnable: removes them once, when a manager without webhooks of its own starts outside a cluster."""

    name = "dead webhooks"
    needs_leader = False
    may_end = True

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._backoff = Backoff(clock=clock, rng=Random(), initial=0.2)
        self._clock = clock
        self._tried = asyncio.Event()

    async def wait_ready(self) -> None:
        """Return when it was tried: a server that does not answer is waited for elsewhere."""
        await self._tried.wait()

    async def run(self) -> None:
        """Try until it is done; who may not see them cannot have registered any."""
        told = ""
        while True:
            try:
                await remove_dead(self._client)
            except Forbidden:
                return
            except KubewrightError as error:
                if str(error) != told:
                    _log.warning("webhooks of ended processes cannot be looked for; trying again", error=error)
                told = str(error)
            else:
                return
            finally:
                self._tried.set()
            await self._clock.sleep(self._backoff.next_delay())


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:  # it is alive and belongs to another user
        return True
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    return True
