"""API priority and fairness, as far as clients see it: the FlowSchema and priority level of each request.

Every response has the two in its headers, the status of a FlowSchema says whether its priority level exists, and a
metric has the seats of each level. Requests are classified but never queued: the event loop serves one at a time, and
the router rejects those beyond the seats of all levels, which wait for a webhook or another server. The router
classifies every request, so the results are cached until a FlowSchema or a priority level changes. Upstream:
k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go and rule.go.
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
"""The concurrency limit of kube-apiserver by default: max-requests-inflight and max-mutating-requests-inflight."""
_MAX_CLASSIFIED: Final = 4096
_ACCOUNT: Final = "system:serviceaccount:"

Headers = Mapping[str, str]


@final
class FlowControl:
    """Watches FlowSchemas and priority levels, and classifies requests by them."""

    def __init__(self, store: Store, catalog: Catalog, registry: Registry, clock: Clock, metrics: Metrics) -> None:
        found = catalog.of_kind(GroupVersionKind(_GROUP, "v1", "FlowSchema"))
        assert found is not None
        self._resource = found
        self._schemas = store.table(found.table)
        self._levels = store.table(f"{_GROUP}/prioritylevelconfigurations")
        self._registry = registry
        self._clock = clock
        self._by_precedence: list[tuple[Tree, Headers]] | None = None
        self._classified: dict[tuple[str, ...], Headers] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unwatch: list[Callable[[], None]] = []
        name = "apiserver_flowcontrol_nominal_limit_seats"
        self._seats = metrics.gauge(name, "Seats of each priority level.", labels=("priority_level",))
        self._measured: set[str] = set()
        metrics.before_exposition(self._measure)

    # start and stop

    def start(self) -> None:
        """Start to watch, and to keep the status of FlowSchemas."""
        if self._task is None:
            self._unwatch = [table.watch(self) for table in (self._schemas, self._levels)]
            self._wake.set()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="flow control")

    @property
    def running(self) -> bool:
        """Whether the controller runs."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """Stop watching."""
        for unwatch in self._unwatch:
            unwatch()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    def deliver(self, change: Change) -> None:
        """A FlowSchema or a priority level was added, changed or deleted."""
        self._by_precedence = None
        self._classified.clear()
        self._wake.set()

    def table_gone(self) -> None:
        """Never: both kinds are built in."""

    # classification

    def response_headers(self, user: User, info: RequestInfo) -> Headers:  # hot
        """The response headers with the FlowSchema and the priority level of a request."""
        place = info.path if info.is_path else f"{info.resource}/{info.subresource}"
        key = (info.verb, info.group, place, info.namespace, user.name, *user.groups)
        found = self._classified.get(key)
        if found is None:
            if len(self._classified) >= _MAX_CLASSIFIED:
                self._classified.clear()
            found = self._classified[key] = self._classify(user, info)
        return found

    def _classify(self, user: User, info: RequestInfo) -> Headers:
        if self._by_precedence is None:
            self._by_precedence = self._sort_schemas()
        for spec, headers in self._by_precedence:
            for rule in items(spec, "rules"):
                if _matches_subjects(rule, user) and _matches_request(rule, info):
                    return headers
        return {}

    def _sort_schemas(self) -> list[tuple[Tree, Headers]]:
        levels = {entry.key: decode_json(entry.value)["metadata"]["uid"] for entry in self._levels.entries()}
        trees = [decode_json(entry.value) for entry in self._schemas.entries()]
        trees.sort(key=lambda tree: (tree["spec"].get("matchingPrecedence") or 0, tree["metadata"]["name"]))
        found: list[tuple[Tree, Headers]] = []
        for tree in trees:
            level = levels.get(_level_of(tree))
            if level is not None:
                names = ("X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid")
                found.append((tree["spec"], dict(zip(names, (tree["metadata"]["uid"], level), strict=True))))
        return found

    # status and metrics

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for entry in tuple(self._schemas.entries()):
                try:
                    await self._sync_status(entry)
                except StatusError:  # another write came first, and its event wakes this task again
                    continue
                except Exception:
                    _LOG.exception("the status of a FlowSchema was not updated", extra={"schema": entry.key})

    async def _sync_status(self, entry: Entry) -> None:
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
        for dropped in self._measured - shares.keys():
            self._seats.remove(dropped)
        self._measured = set(shares)
        for name, share in shares.items():
            self._seats.child(name).set(math.ceil(_SEATS * share / total))


def _level_of(tree: Tree) -> str:
    return str(peek(tree, "spec", "priorityLevelConfiguration", "name") or "")


def _shares(level: Tree) -> int:
    spec = level.get("spec") or {}
    part = spec.get("limited" if spec.get("type") == "Limited" else "exempt") or {}
    return int(part.get("nominalConcurrencyShares") or 0)


def _matches_subjects(rule: Tree, user: User) -> bool:
    return any(_matches_subject(subject, user) for subject in items(rule, "subjects"))


def _matches_subject(subject: Tree, user: User) -> bool:
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


def _matches_request(rule: Tree, info: RequestInfo) -> bool:
    if info.is_resource:
        return any(_matches_resource_rule(one, info) for one in items(rule, "resourceRules"))
    return any(
        _contains(one.get("verbs"), info.verb) and any(_matches_url(url, info.path) for url in one["nonResourceURLs"])
        for one in items(rule, "nonResourceRules")
    )


def _matches_resource_rule(rule: Tree, info: RequestInfo) -> bool:
    name = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (
        _contains(rule.get("verbs"), info.verb)
        and _contains(rule.get("apiGroups"), info.group)
        and _contains(rule.get("resources"), name)
    ):
        return False
    if not info.namespace:
        return bool(rule.get("clusterScope"))
    return _contains(rule.get("namespaces"), info.namespace)


def _contains(listed: Sequence[Any] | None, wanted: str) -> bool:
    return listed is not None and ("*" in listed or wanted in listed)


def _matches_url(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("/*") and path.startswith(pattern.rstrip("*")))
