"""Runs the attacks one after the other, each on a server that is back to where it began, and says what each cost."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.security.harness.attack import Attack, Target, Where
from tests.security.harness.exchange import Answer, Peer
from tests.security.harness.limits import CONNECTION_MEMORY, HOLD_LIMIT, MEMORY_LIMIT
from tests.security.harness.watched_process import Cost, WatchedProcess

__all__ = ("Outcome", "measured", "peers_of", "run_attacks")

_DEADLINE: Final = 180.0
"""Seconds an attack may take in all; a server that is held for longer is replaced."""
_HUNG: Final = 10.0
"""Seconds after which a loop that does not turn is given up."""
_KEPT: Final = 40_000_000
"""Bytes that may remain before the server is replaced, so that one attack is not charged to the next."""
_MODULES: Final[dict[Where, str]] = {
    "apiserver": "served_cluster",
    "probes": "served_operator",
    "metrics": "served_operator",
    "webhooks": "served_operator",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attack."""

    attack: Attack
    answer: str
    cost: Cost
    internal_error: bool = False

    @property
    def faults(self) -> Iterator[str]:
        """Each rule it broke."""
        if self.cost.hold > HOLD_LIMIT:
            yield "held"
        if self.cost.memory > MEMORY_LIMIT + self.attack.connections * CONNECTION_MEMORY and not self.attack.grows:
            yield "memory"
        if self.internal_error:
            yield "internal error"
        if not self.answer.isdecimal() and self.answer not in ("cut", "late"):  # it died, hung, or was never attacked
            yield self.answer


def peers_of(ready: dict[str, Any], where: Where) -> dict[str, Peer]:
    """How each user reaches a watched server."""
    if where != "apiserver":
        authority = base64.b64decode(ready[where].get("ca", "")).decode()
        tls = ssl.create_default_context(cadata=authority) if authority else None
        return dict.fromkeys(("anonymous", "admin"), Peer("127.0.0.1", int(ready[where]["port"]), tls))
    peers = {who: Peer.of_kubeconfig(Path(path)) for who, path in ready["users"].items()}
    peers["anonymous"] = Peer.of_kubeconfig(Path(ready["users"]["nobody"]), certificate=False)
    return peers


async def run_attacks(attacks: Iterable[Attack], *, alone: bool = False) -> AsyncIterator[Outcome]:
    """Each outcome when it is known."""
    by_module: dict[str, list[Attack]] = {}
    for attack in attacks:
        by_module.setdefault(_MODULES[attack.where], []).append(attack)
    for module, group in by_module.items():
        async with _watched(module, alone=alone) as watched:
            for attack in group:
                outcome = await measured(watched, attack)
                yield outcome
                if outcome.answer in ("died", "hung") or attack.spoils or outcome.cost.kept > _KEPT:
                    await watched.restart()


@asynccontextmanager
async def _watched(module: str, *, alone: bool) -> AsyncIterator[WatchedProcess]:
    arguments = ("--alone",) if alone and module == "served_cluster" else ()
    async with WatchedProcess(module, *arguments) as watched:
        yield watched


async def measured(watched: WatchedProcess, attack: Attack) -> Outcome:
    """Run one attack."""
    target = Target(peers_of(watched.ready, attack.where), attack.by)
    try:
        if attack.prepare is not None:
            async with asyncio.timeout(_DEADLINE):
                await attack.prepare(target.as_user("admin"))
            await watched.settle()
        await watched.begin()
    except (TimeoutError, OSError, RuntimeError):
        return Outcome(attack, "died" if not watched.alive else "hung", watched.glance())
    answer = await _run(watched, attack, target)
    said = "died" if not watched.alive else str(answer)
    cost = watched.glance()
    target.close()
    if said not in ("died", "hung"):
        await watched.settle(seconds=1)
        try:
            cost = await watched.cost()
        except (TimeoutError, RuntimeError):
            said = "hung" if watched.alive else "died"
            cost = watched.glance()
    return Outcome(attack, said, cost, isinstance(answer, Answer) and answer.is_internal_error)


async def _run(watched: WatchedProcess, attack: Attack, target: Target) -> Answer | str:
    """The answer, or a word for none, by the deadline; sooner if the loop is as good as dead."""

    async def whole() -> Answer:
        answer = await attack.action(target)
        await watched.settle(seconds=attack.seconds, at_least=2.0 if attack.spoils else 0.0)
        return answer

    attacking = asyncio.create_task(whole())
    observing = asyncio.create_task(watched.observe(until=_HUNG))
    await asyncio.wait((attacking, observing), timeout=_DEADLINE, return_when=asyncio.FIRST_COMPLETED)
    for task in (attacking, observing):
        task.cancel()
    answer, _ = await asyncio.gather(attacking, observing, return_exceptions=True)
    if watched.held > _HUNG:
        return "hung"
    if isinstance(answer, Answer):
        return answer
    return "late" if isinstance(answer, asyncio.CancelledError) else type(answer).__name__
