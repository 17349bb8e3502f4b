"""Keeps namespaces within their ResourceQuotas: refuses what would be too much, and says what is used.

A judge, the last one to be asked: nothing may come between its yes and the write. It counts what is in the store at
that moment, so it needs no books and cannot be wrong by a race. A task beside it keeps the status of quotas, which
kube-controller-manager does elsewhere; here it is a matter of the store, and holds for every kind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.quantity import Quantity
from kubewright.apiserver.admission.quota_evaluator import Amounts, counted_by, in_scope, missing, usage
from kubewright.apiserver.builtin.trees import peek
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.storage.store import Change, Store, Table
from kubewright.apiserver.verbs.write import WriteHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import StatusError, forbidden

__all__ = ("ResourceQuota",)

_LOG: Final = logging.getLogger("kubewright.apiserver")
_NOTHING: Final = Quantity(0)
_CHANGES_COUNT: Final = ("services", "persistentvolumeclaims")
"""Core kinds that may cost more after an update."""


@final
class ResourceQuota:
    """The judge, and the keeper of the status."""

    def __init__(self, store: Store, catalog: Catalog, writes: WriteHandler, clock: Clock) -> None:
        self._store = store
        self._catalog = catalog
        self._writes = writes
        self._clock = clock
        found = catalog.of_kind(GroupVersionKind("", "v1", "ResourceQuota"))
        assert found is not None
        self._resource = found
        self._quotas = store.table(found.table)
        self._followed: dict[str, tuple[Table, Callable[[], None]]] = {}
        self._namespaces: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # life

    def start(self) -> None:
        """Keep the status of what is there, and follow."""
        if self._task is not None:
            return
        self._follow(self._resource.table)
        for entry in self._quotas.entries():
            self._look_at(entry.key.partition("/")[0])
        self._task = asyncio.get_running_loop().create_task(self._work(), name="quotas")

    async def stop(self) -> None:
        """Follow no longer."""
        for _, leave in self._followed.values():
            leave()
        self._followed.clear()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    # what admission asks

    def handles(self, attributes: Attributes) -> bool:
        """Whether there is a quota, and the write may cost something."""
        if not attributes.namespace or not len(self._quotas):
            return False
        resource, core = attributes.resource, not attributes.resource.kind.group
        if attributes.subresource:
            resized = core and resource.plural == "pods" and attributes.subresource == "resize"
            return resized and attributes.verb == "UPDATE" and self._has_quota(attributes)
        if attributes.verb == "UPDATE":
            return core and resource.plural in _CHANGES_COUNT and self._has_quota(attributes)
        return attributes.verb == "CREATE" and self._has_quota(attributes)

    async def mutate(self, attributes: Attributes) -> None:
        """It changes nothing."""

    async def validate(self, attributes: Attributes) -> None:
        """Refuse what no quota leaves room for."""
        resource, tree = attributes.resource, attributes.object
        assert tree is not None
        kind = resource.kind.group, resource.plural
        cost = usage(*kind, tree, self._clock.now())
        before = usage(*kind, attributes.old, self._clock.now()) if attributes.old is not None else {}
        more = {name: amount - before.get(name, _NOTHING) for name, amount in cost.items()}
        for entry in self._quotas.entries(attributes.namespace):
            quota = decode_json(entry.value)
            hard = peek(quota, "spec", "hard") or {}
            names = [name for name in hard if counted_by(name) == kind]
            if not names or not in_scope(quota, resource.plural, tree):
                continue
            label = quota["metadata"]["name"]
            if kind == ("", "pods") and (silent := missing(names, tree)):
                raise _refused(attributes, f"failed quota: {label}: {silent}")
            # What comes under a quota by this update was not counted for it before.
            counted = attributes.old is not None and in_scope(quota, resource.plural, attributes.old)
            extra = more if counted else cost
            asked = {name: extra[name] for name in names if extra.get(name, _NOTHING) > _NOTHING}
            if asked:
                self._check(attributes, quota, asked)

    def _check(self, attributes: Attributes, quota: Tree, asked: Amounts) -> None:
        hard = {name: Quantity(quota["spec"]["hard"][name]) for name in asked}
        used = self._used(quota, asked)
        exceeded = sorted(name for name in asked if used[name] + asked[name] > hard[name])
        if exceeded:
            requested, present, limited = (_shown(amounts, exceeded) for amounts in (asked, used, hard))
            label = quota["metadata"]["name"]
            why = f"exceeded quota: {label}, requested: {requested}, used: {present}, limited: {limited}"
            raise _refused(attributes, why)

    def _has_quota(self, attributes: Attributes) -> bool:
        return next(self._quotas.entries(attributes.namespace), None) is not None

    # counting

    def _used(self, quota: Tree, names: Container[str]) -> Amounts:
        """How much of these names is used."""
        wanted = [name for name in quota["spec"]["hard"] if name in names]
        result = dict.fromkeys(wanted, _NOTHING)
        now, namespace = self._clock.now(), str(quota["metadata"]["namespace"])
        for kind in dict.fromkeys(counted_by(name) for name in wanted):
            resource = self._find(*kind)
            if resource is None:
                continue
            for entry in self._store.table(resource.table).entries(namespace):
                tree = decode_json(entry.value)
                if in_scope(quota, resource.plural, tree):
                    for name, amount in usage(*kind, tree, now).items():
                        if name in result:
                            result[name] += amount
        return result

    def _find(self, group: str, plural: str) -> Resource | None:
        return next((item for item in self._catalog if (item.kind.group, item.plural) == (group, plural)), None)

    # the status

    def deliver(self, change: Change) -> None:
        """Something that is counted came, changed or went, or a quota did."""
        self._look_at(change.key.partition("/")[0])

    def table_gone(self) -> None:
        """A kind is served no more; what it counted is looked at when it comes back."""

    def _look_at(self, namespace: str) -> None:
        if next(self._quotas.entries(namespace), None) is not None:
            self._namespaces[namespace] = None
            self._wake.set()

    def _follow(self, name: str) -> None:
        found = self._store.table(name)
        known = self._followed.get(name)
        if known is None or known[0] is not found:
            self._followed[name] = (found, found.watch(self))

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._namespaces:
                namespace = next(iter(self._namespaces))
                del self._namespaces[namespace]
                for entry in tuple(self._quotas.entries(namespace)):
                    try:
                        await self._settle(entry.key)
                    except StatusError:  # somebody wrote meanwhile, and has woken this task by it
                        continue
                    except Exception:
                        _LOG.exception("the status of a quota could not be kept", extra={"quota": entry.key})

    async def _settle(self, key: str) -> None:
        entry = self._quotas.get(key)
        if entry is None:
            return
        quota: Tree = decode_json(entry.value)
        hard = peek(quota, "spec", "hard") or {}
        for group, plural in dict.fromkeys(counted_by(name) for name in hard):
            resource = self._find(group, plural)
            if resource is not None:
                self._follow(resource.table)
        used = {name: amount.canonical for name, amount in self._used(quota, hard).items()} if hard else {}
        status = {"hard": dict(hard), "used": used} if hard else {}
        if (quota.get("status") or {}) != status:
            quota["status"] = status
            await self._writes.put_back(self._resource, entry, quota)


def _refused(attributes: Attributes, why: str) -> StatusError:
    return forbidden(attributes.resource.group_resource, attributes.name, why)


def _shown(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name].canonical}" for name in names)
