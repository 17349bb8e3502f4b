"""Priority and fairness, as far as it can be seen from outside: which FlowSchema and level a request falls under.

Every answer names both in its head, FlowSchemas say whether their level exists, and a metric how many seats each level
has. Nobody is ever made to wait: one process answers one request after the other anyway. Classification is asked for by
`front` with every request, so its verdicts are kept until a FlowSchema or a level changes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

from kubewright._base.clock import Clock
from kubewright._base.metrics import Metrics
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.times import format_time
from kubewright.apiserver.builtin.trees import Tree, items, peek
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.storage.store import Change, Entry, Store
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User

__all__ = ("FlowControl",)

_LOG: Final = logging.getLogger("kubewright.apiserver")
_GROUP: Final = "flowcontrol.apiserver.k8s.io"
_SEATS: Final = 600
"""How many requests kube-apiserver serves at once, if it is not told otherwise."""
_REMEMBERED: Final = 4096
_ACCOUNT: Final = "system:serviceaccount:"

Heads = Mapping[str, str]


@final
class FlowControl:
    """Follows FlowSchemas and levels, and classifies by them."""

    def __init__(self, store: Store, catalog: Catalog, registry: Registry, clock: Clock, metrics: Metrics) -> None:
        found = catalog.of_kind(GroupVersionKind(_GROUP, "v1", "FlowSchema"))
        assert found is not None
        self._resource = found
        self._schemas = store.table(found.table)
        self._levels = store.table(f"{_GROUP}/prioritylevelconfigurations")
        self._registry = registry
        self._clock = clock
        self._ranked: list[tuple[Tree, Heads]] | None = None
        self._verdicts: dict[tuple[str, ...], Heads] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._leave: list[Callable[[], None]] = []
        name = "apiserver_flowcontrol_nominal_limit_seats"
        self._seats = metrics.gauge(name, "Seats of each priority level.", labels=("priority_level",))
        self._measured: set[str] = set()
        metrics.before_exposition(self._measure)

    # life

    def start(self) -> None:
        """Keep the status of what is there, and follow."""
        if self._task is None:
            self._leave = [table.watch(self) for table in (self._schemas, self._levels)]
            self._wake.set()
            self._task = asyncio.get_running_loop().create_task(self._work(), name="flow control")

    @property
    def running(self) -> bool:
        """Whether FlowSchemas are followed."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """Follow no longer."""
        for leave in self._leave:
            leave()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    def deliver(self, change: Change) -> None:
        """A FlowSchema or a level came, changed or went."""
        self._ranked = None
        self._verdicts.clear()
        self._wake.set()

    def table_gone(self) -> None:
        """Never: both kinds are built in."""

    # classification

    def heads(self, user: User, target: RequestInfo) -> Heads:  # hot
        """What the head of the answer says."""
        place = target.path if not target.resource else f"{target.resource}/{target.subresource}"
        key = (target.verb, target.group, place, target.namespace, user.name, *user.groups)
        found = self._verdicts.get(key)
        if found is None:
            if len(self._verdicts) >= _REMEMBERED:
                self._verdicts.clear()
            found = self._verdicts[key] = self._classify(user, target)
        return found

    def _classify(self, user: User, target: RequestInfo) -> Heads:
        if self._ranked is None:
            self._ranked = self._rank()
        for spec, heads in self._ranked:
            for rule in items(spec, "rules"):
                if _is_of(rule, user) and _is_about(rule, target):
                    return heads
        return {}

    def _rank(self) -> list[tuple[Tree, Heads]]:
        levels = {entry.key: decode_json(entry.value)["metadata"]["uid"] for entry in self._levels.entries()}
        trees = [decode_json(entry.value) for entry in self._schemas.entries()]
        trees.sort(key=lambda tree: (tree["spec"].get("matchingPrecedence") or 0, tree["metadata"]["name"]))
        ranked: list[tuple[Tree, Heads]] = []
        for tree in trees:
            level = levels.get(_level_of(tree))
            if level is not None:
                names = ("X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid")
                ranked.append((tree["spec"], dict(zip(names, (tree["metadata"]["uid"], level), strict=True))))
        return ranked

    # status and metrics

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for entry in tuple(self._schemas.entries()):
                try:
                    await self._settle(entry)
                except StatusError:  # somebody wrote meanwhile, and has woken this task by it
                    continue
                except Exception:
                    _LOG.exception("the status of a FlowSchema could not be kept", extra={"schema": entry.key})

    async def _settle(self, entry: Entry) -> None:
        tree: Tree = decode_json(entry.value)
        name = _level_of(tree)
        exists = self._levels.get(name) is not None
        text = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
        wanted = {
            "type": "Dangling",
            "status": "False" if exists else "True",
            "reason": "Found" if exists else "NotFound",
            "message": f"{text} {'and it exists' if exists else 'but there is no such object'}",
        }
        conditions = items(tree.get("status"), "conditions")
        present = next((one for one in conditions if one.get("type") == "Dangling"), {})
        if all(present.get(key) == value for key, value in wanted.items()):
            return
        same = present.get("status") == wanted["status"] and present.get("lastTransitionTime")
        wanted["lastTransitionTime"] = same or format_time(self._clock.now())
        others = [one for one in conditions if one.get("type") != "Dangling"]
        tree["status"] = {**(tree.get("status") or {}), "conditions": [*others, wanted]}
        await self._registry.put_own_status(self._resource, entry, tree)

    def _measure(self) -> None:
        shares = {entry.key: _shares(decode_json(entry.value)) for entry in self._levels.entries()}
        total = sum(shares.values()) or 1
        for gone in self._measured - shares.keys():
            self._seats.remove(gone)
        self._measured = set(shares)
        for name, share in shares.items():
            self._seats.child(name).set(math.ceil(_SEATS * share / total))


def _level_of(tree: Tree) -> str:
    return str(peek(tree, "spec", "priorityLevelConfiguration", "name") or "")


def _shares(level: Tree) -> int:
    spec = level.get("spec") or {}
    part = spec.get("limited" if spec.get("type") == "Limited" else "exempt") or {}
    return int(part.get("nominalConcurrencyShares") or 0)


def _is_of(rule: Tree, user: User) -> bool:
    return any(_is_subject(subject, user) for subject in items(rule, "subjects"))


def _is_subject(subject: Tree, user: User) -> bool:
    kind = subject.get("kind")
    name = peek(subject, {"User": "user", "Group": "group"}.get(str(kind), "serviceAccount"), "name")
    if kind == "User":
        return name in ("*", user.name)
    if kind == "Group":
        return name == "*" or name in user.groups
    if not user.name.startswith(_ACCOUNT):
        return False
    namespace, _, account = user.name.removeprefix(_ACCOUNT).partition(":")
    return peek(subject, "serviceAccount", "namespace") == namespace and name in ("*", account)


def _is_about(rule: Tree, target: RequestInfo) -> bool:
    if target.resource:
        return any(_is_resource(one, target) for one in items(rule, "resourceRules"))
    return any(
        _has(one.get("verbs"), target.verb) and any(_is_path(url, target.path) for url in one["nonResourceURLs"])
        for one in items(rule, "nonResourceRules")
    )


def _is_resource(rule: Tree, target: RequestInfo) -> bool:
    name = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    if not (
        _has(rule.get("verbs"), target.verb)
        and _has(rule.get("apiGroups"), target.group)
        and _has(rule.get("resources"), name)
    ):
        return False
    if not target.namespace:
        return bool(rule.get("clusterScope"))
    return _has(rule.get("namespaces"), target.namespace)


def _has(listed: Sequence[Any] | None, wanted: str) -> bool:
    return listed is not None and ("*" in listed or wanted in listed)


def _is_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("/*") and path.startswith(pattern.rstrip("*")))
