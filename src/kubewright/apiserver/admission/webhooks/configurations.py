"""The configured admission webhooks, compiled when a configuration changes and not when a write needs them.

`Webhook` is one webhook of one configuration. `Configurations` watches a table of configurations and finds the webhooks
with a rule for a write; without any configuration that costs one look at an empty tuple. Whether a webhook is called
depends on the object too, which `matcher` decides.
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

__all__ = (
    "EXEMPT_RESOURCES",
    "Configurations",
    "ResourceRule",
    "Webhook",
    "WebhookInvocation",
    "equivalent_resources",
    "rule_of",
    "selector_of",
)

EXEMPT_RESOURCES: Final = frozenset(
    {
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
"""Resources that no webhook and no policy sees: a mistake in one of them must stay correctable."""
_GROUP: Final = "admissionregistration.k8s.io"


@final
@dataclass(frozen=True, slots=True)
class ResourceRule:
    """One entry of `rules`."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str

    def matches(self, verb: str, resource: Resource, subresource: str) -> bool:
        """Whether the rule matches a write, in this version of the resource."""
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
    """Compile a rule of a configuration."""
    pairs = (str(name).partition("/") for name in tree.get("resources") or ())
    return ResourceRule(
        frozenset(tree.get("operations") or ()),
        frozenset(tree.get("apiGroups") or ()),
        frozenset(tree.get("apiVersions") or ()),
        tuple((name, sub) for name, _, sub in pairs),
        str(tree.get("scope") or "*"),
    )


def selector_of(tree: Mapping[str, Any] | None) -> Selector | None:
    """Compile a label selector; None for one that selects everything."""
    return Selector.from_structured(tree) if tree and any(tree.values()) else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Webhook:
    """One webhook."""

    name: str
    configuration: str
    index: int
    """Its position among all webhooks."""
    rules: tuple[ResourceRule, ...]
    fails_closed: bool
    """The failurePolicy Fail: a write fails if the webhook cannot be called."""
    equivalent: bool
    """The matchPolicy Equivalent: rules match writes in other versions too."""
    namespaces: Selector | None
    objects: Selector | None
    conditions: tuple[Expression, ...]
    timeout: int
    dry_run: bool
    """Whether it may be called for a dry run."""
    versions: tuple[str, ...]
    target: WebhookTarget
    reinvocable: bool
    """The reinvocationPolicy IfNeeded."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class WebhookInvocation:
    """A webhook with a rule for a write, and the version of the resource that the rule matched."""

    webhook: Webhook
    matched: Resource


@final
class Configurations:
    """Watches the configurations in a table."""

    def __init__(self, table: Table, catalog: Catalog, addresses: ServiceResolver) -> None:
        self._table = table
        self._catalog = catalog
        self._addresses = addresses
        self._webhooks: tuple[Webhook, ...] = ()
        self._stale = True
        self._generation = 0
        self._found: dict[tuple[str, Resource, str], tuple[WebhookInvocation, ...]] = {}
        table.watch(self)

    def deliver(self, change: Change) -> None:
        """A configuration was created, changed or deleted."""
        self._stale = True

    def table_gone(self) -> None:
        """Never called: the table stays."""

    def invocations(self, attributes: Attributes) -> tuple[WebhookInvocation, ...]:
        """The webhooks with a rule for this write, in the order they are called."""
        if self._stale:
            self._compile()
        if not self._webhooks:
            return ()
        if self._generation != self._catalog.generation:
            self._found, self._generation = {}, self._catalog.generation
        key = (attributes.operation, attributes.resource, attributes.subresource)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look_up(*key)
        return found

    def _look_up(self, verb: str, resource: Resource, subresource: str) -> tuple[WebhookInvocation, ...]:
        if resource.kind.group == _GROUP and resource.plural in EXEMPT_RESOURCES:
            return ()
        if subresource == "binding" and verb != "CREATE":
            return ()  # a step of a binding or an eviction, for which they have been called
        found = []
        others = equivalent_resources(self._catalog, resource)
        for webhook in self._webhooks:
            matched = _matched_resource(webhook, verb, resource, subresource, others)
            if matched is not None:
                found.append(WebhookInvocation(webhook, matched))
        return tuple(found)

    def _compile(self) -> None:
        self._stale = False
        self._found = {}
        webhooks: list[Webhook] = []
        for entry in self._table.entries():
            tree = decode_json(entry.value)
            for webhook in tree.get("webhooks") or ():
                webhooks.append(_webhook_of(tree["metadata"]["name"], len(webhooks), webhook, self._addresses))
        self._webhooks = tuple(webhooks)


def equivalent_resources(catalog: Catalog, resource: Resource) -> tuple[Resource, ...]:
    """The other versions in which the same objects are served."""
    return tuple(item for item in catalog if item is not resource and item.table == resource.table)


def _matched_resource(
    webhook: Webhook, verb: str, resource: Resource, subresource: str, others: tuple[Resource, ...]
) -> Resource | None:
    if any(rule.matches(verb, resource, subresource) for rule in webhook.rules):
        return resource
    if webhook.equivalent:
        for rule in webhook.rules:
            for other in others:
                if rule.matches(verb, other, subresource):
                    return other
    return None


def _webhook_of(configuration: str, index: int, tree: Mapping[str, Any], addresses: ServiceResolver) -> Webhook:
    environment = Scope().environment()
    return Webhook(
        name=str(tree["name"]),
        configuration=configuration,
        index=index,
        rules=tuple(map(rule_of, tree.get("rules") or ())),
        fails_closed=tree.get("failurePolicy") != "Ignore",
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
        reinvocable=tree.get("reinvocationPolicy") == "IfNeeded",
    )


def _has(given: frozenset[str], wanted: str) -> bool:
    return wanted in given or "*" in given
