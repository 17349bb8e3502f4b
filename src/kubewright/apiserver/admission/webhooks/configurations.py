"""The webhooks that are configured, ready to be asked: compiled when a configuration changes, not when one is needed.

`Hook` is one webhook of one configuration. `Configurations` follows a table of configurations and says quickly which
hooks have rules for a write; without any configuration that is one look at an empty tuple. What depends on the object
itself is decided in `matcher`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.api.selectors import Selector
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.expressions.environment import Expression, Scope, compile_expression
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_target import WebhookTarget, target_of_client_config
from kubewright.apiserver.storage.store import Change, Table
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.cel import BOOL

__all__ = ("EXEMPT", "Candidate", "Configurations", "Hook", "ResourceRule", "equivalents", "rule_of", "selector_of")

EXEMPT: Final = frozenset(
    {
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
"""What no webhook and no policy is asked about: a mistake in one of them must stay correctable."""
_GROUP: Final = "admissionregistration.k8s.io"


@final
@dataclass(frozen=True, slots=True)
class ResourceRule:
    """One entry of `rules`: which writes are meant."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str

    def matches(self, verb: str, resource: Resource, subresource: str) -> bool:
        """Whether a write is meant, in that version of the resource."""
        return (
            _has(self.operations, verb)
            and _has(self.groups, resource.kind.group)
            and _has(self.versions, resource.kind.version)
            and any(name in ("*", resource.plural) and sub in ("*", subresource) for name, sub in self.resources)
            and self._in_scope(resource)
        )

    def _in_scope(self, resource: Resource) -> bool:
        return self.scope == "*" or (self.scope == "Namespaced") == resource.namespaced


def rule_of(tree: Mapping[str, Any]) -> ResourceRule:
    """From the form inside a configuration."""
    pairs = (str(name).partition("/") for name in tree.get("resources") or ())
    return ResourceRule(
        frozenset(tree.get("operations") or ()),
        frozenset(tree.get("apiGroups") or ()),
        frozenset(tree.get("apiVersions") or ()),
        tuple((name, sub) for name, _, sub in pairs),
        str(tree.get("scope") or "*"),
    )


def selector_of(tree: Mapping[str, Any] | None) -> Selector | None:
    """A selector that may leave something out; None for one that takes everything."""
    return Selector.from_structured(tree) if tree and any(tree.values()) else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """One webhook."""

    name: str
    configuration: str
    index: int
    """Its place among all webhooks."""
    rules: tuple[ResourceRule, ...]
    fails: bool
    """Whether a write fails when the webhook cannot be asked."""
    equivalent: bool
    """Whether a write in another version is meant, too."""
    namespaces: Selector | None
    objects: Selector | None
    conditions: tuple[Expression, ...]
    timeout: int
    dry_run: bool
    """Whether it may be asked about a dry run."""
    versions: tuple[str, ...]
    target: WebhookTarget
    again: bool
    """Whether it wants to see what later webhooks made of its work."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A webhook with a rule for a write, and the version of the resource the rule is about."""

    hook: Hook
    shown: Resource


@final
class Configurations:
    """Follows the configurations in a table."""

    def __init__(self, table: Table, catalog: Catalog, addresses: ServiceResolver) -> None:
        self._table = table
        self._catalog = catalog
        self._addresses = addresses
        self._hooks: tuple[Hook, ...] = ()
        self._stale = True
        self._generation = 0
        self._found: dict[tuple[str, Resource, str], tuple[Candidate, ...]] = {}
        table.watch(self)

    def deliver(self, change: Change) -> None:
        """A configuration came, changed or went."""
        self._stale = True

    def table_gone(self) -> None:
        """Never: the table stays."""

    def candidates(self, attributes: Attributes) -> tuple[Candidate, ...]:
        """The webhooks with a rule for this write, in the order they are asked."""
        if self._stale:
            self._compile()
        if not self._hooks:
            return ()
        if self._generation != self._catalog.generation:
            self._found, self._generation = {}, self._catalog.generation
        key = (attributes.operation, attributes.resource, attributes.subresource)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look_up(*key)
        return found

    def _look_up(self, verb: str, resource: Resource, subresource: str) -> tuple[Candidate, ...]:
        if resource.kind.group == _GROUP and resource.plural in EXEMPT:
            return ()
        if subresource == "binding" and verb != "CREATE":
            return ()  # a step of a binding or an eviction, about which they have been asked
        found = []
        others = equivalents(self._catalog, resource)
        for hook in self._hooks:
            shown = _shown(hook, verb, resource, subresource, others)
            if shown is not None:
                found.append(Candidate(hook, shown))
        return tuple(found)

    def _compile(self) -> None:
        self._stale = False
        self._found = {}
        hooks: list[Hook] = []
        for entry in self._table.entries():
            tree = decode_json(entry.value)
            for webhook in tree.get("webhooks") or ():
                hooks.append(_hook(tree["metadata"]["name"], len(hooks), webhook, self._addresses))
        self._hooks = tuple(hooks)


def equivalents(catalog: Catalog, resource: Resource) -> tuple[Resource, ...]:
    """The other versions in which the same objects are served."""
    return tuple(item for item in catalog if item is not resource and item.table == resource.table)


def _shown(
    hook: Hook, verb: str, resource: Resource, subresource: str, others: tuple[Resource, ...]
) -> Resource | None:
    if any(rule.matches(verb, resource, subresource) for rule in hook.rules):
        return resource
    if hook.equivalent:
        for rule in hook.rules:
            for other in others:
                if rule.matches(verb, other, subresource):
                    return other
    return None


def _hook(configuration: str, index: int, tree: Mapping[str, Any], addresses: ServiceResolver) -> Hook:
    environment = Scope().environment()
    return Hook(
        name=str(tree["name"]),
        configuration=configuration,
        index=index,
        rules=tuple(map(rule_of, tree.get("rules") or ())),
        fails=tree.get("failurePolicy") != "Ignore",
        equivalent=tree.get("matchPolicy", "Equivalent") == "Equivalent",
        namespaces=selector_of(tree.get("namespaceSelector")),
        objects=selector_of(tree.get("objectSelector")),
        conditions=tuple(
            compile_expression(str(item.get("expression")), environment, BOOL)
            for item in tree.get("matchConditions") or ()
        ),
        timeout=int(tree.get("timeoutSeconds") or 10),
        dry_run=tree.get("sideEffects") in ("None", "NoneOnDryRun"),
        versions=tuple(tree.get("admissionReviewVersions") or ()),
        target=target_of_client_config(tree.get("clientConfig") or {}, addresses),
        again=tree.get("reinvocationPolicy") == "IfNeeded",
    )


def _has(given: frozenset[str], wanted: str) -> bool:
    return wanted in given or "*" in given
