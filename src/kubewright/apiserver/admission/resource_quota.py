"""The ResourceQuota plugin: refuses what would exceed a quota of its namespace.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota. Several servers share its quotas, so it
reserves: before a write it adds the usage to the quota's status, with the version it read. Here one process writes, so
the plugin counts what is in the store and keeps no numbers of its own. Between its check and the write nothing may run,
or two writes could both have what is left for one; a conversion webhook, which a write waits for after validation, has
been called before (`verbs.registry`). The controller that writes the status of quotas (`controllers.resource_quotas`)
counts in the same way.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.api.quantity import Quantity
from kubewright.apiserver.admission.quota_evaluator import Amounts, counted_by, in_scope, missing, usage
from kubewright.apiserver.builtin.trees import peek
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("QuotaUsage", "ResourceQuota")

_NOTHING: Final = Quantity(0)
_GROWS_BY_UPDATE: Final = ("services", "persistentvolumeclaims")
"""Core kinds whose usage may rise with an update."""


@final
class QuotaUsage:
    """Counts what the objects in the store use of a quota."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock) -> None:
        self._store = store
        self._catalog = catalog
        self._clock = clock

    def used_by(self, quota: Tree, names: Container[str]) -> Amounts:
        """How much of these names is used."""
        wanted = [name for name in quota["spec"]["hard"] if name in names]
        result = dict.fromkeys(wanted, _NOTHING)
        now, namespace = self._clock.now(), str(quota["metadata"]["namespace"])
        for kind in dict.fromkeys(counted_by(name) for name in wanted):
            resource = self.resource(*kind)
            if resource is None:
                continue
            for entry in self._store.table(resource.table).entries(namespace):
                tree = decode_json(entry.value)
                if in_scope(quota, resource.plural, tree):
                    for name, amount in usage(*kind, tree, now).items():
                        if name in result:
                            result[name] += amount
        return result

    def resource(self, group: str, plural: str) -> Resource | None:
        """The resource a quota counts, in any version."""
        return next((item for item in self._catalog if (item.kind.group, item.plural) == (group, plural)), None)


@final
class ResourceQuota:
    """Checks writes in namespaces that have a quota, when they are committed."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock) -> None:
        self._quotas = store.table("/resourcequotas")
        self._usage = QuotaUsage(store, catalog, clock)
        self._clock = clock

    def handles(self, attributes: Attributes) -> bool:
        """Whether there is a quota, and the write may use more of it."""
        if not len(self._quotas) or not attributes.namespace:
            return False
        resource, is_core = attributes.resource, not attributes.resource.kind.group
        if attributes.subresource:
            resized = is_core and resource.plural == "pods" and attributes.subresource == "resize"
            return resized and attributes.operation == "UPDATE" and self._has_quota(attributes)
        if attributes.operation == "UPDATE":
            return is_core and resource.plural in _GROWS_BY_UPDATE and self._has_quota(attributes)
        return attributes.operation == "CREATE" and self._has_quota(attributes)

    def _has_quota(self, attributes: Attributes) -> bool:
        return next(self._quotas.entries(attributes.namespace), None) is not None

    def check_commit(self, attributes: Attributes) -> None:
        """Refuse what exceeds a quota, by what is in the store now."""
        resource, tree = attributes.resource, attributes.object
        assert tree is not None
        kind = resource.kind.group, resource.plural
        total = usage(*kind, tree, self._clock.now())
        before = usage(*kind, attributes.old, self._clock.now()) if attributes.old is not None else {}
        delta = {name: amount - before.get(name, _NOTHING) for name, amount in total.items()}
        for entry in self._quotas.entries(attributes.namespace):
            quota = decode_json(entry.value)
            hard = peek(quota, "spec", "hard") or {}
            names = [name for name in hard if counted_by(name) == kind]
            if not names or not in_scope(quota, resource.plural, tree):
                continue
            label = quota["metadata"]["name"]
            if kind == ("", "pods") and (unstated := missing(names, tree)):
                raise admission_forbidden(attributes, f"failed quota: {label}: {unstated}")
            # An update may bring an object into the scope of a quota, which then has not counted it before.
            was_counted = attributes.old is not None and in_scope(quota, resource.plural, attributes.old)
            rise = delta if was_counted else total
            requested = {name: rise[name] for name in names if rise.get(name, _NOTHING) > _NOTHING}
            if requested:
                self._check(attributes, quota, requested)

    def _check(self, attributes: Attributes, quota: Tree, requested: Amounts) -> None:
        hard = {name: Quantity(quota["spec"]["hard"][name]) for name in requested}
        used = self._usage.used_by(quota, requested)
        exceeded = sorted(name for name in requested if used[name] + requested[name] > hard[name])
        if exceeded:
            more, present, limited = (_text(amounts, exceeded) for amounts in (requested, used, hard))
            label = quota["metadata"]["name"]
            why = f"exceeded quota: {label}, requested: {more}, used: {present}, limited: {limited}"
            raise admission_forbidden(attributes, why)


def _text(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name].canonical}" for name in names)
