"""Defaults of webhook configurations and admission policies."""

from __future__ import annotations

from kubewright.apiserver.builtin.trees import Tree, fill, items, section

__all__ = (
    "default_mutating_webhooks",
    "default_policy",
    "default_policy_binding",
    "default_validating_webhooks",
)

_HTTPS = 443


def default_validating_webhooks(configuration: Tree) -> None:
    """ValidatingWebhookConfiguration: failure policy Fail, ten seconds, empty selectors."""
    for webhook in items(configuration, "webhooks"):
        _default_webhook(webhook)


def default_mutating_webhooks(configuration: Tree) -> None:
    """MutatingWebhookConfiguration: the same, and no reinvocation."""
    for webhook in items(configuration, "webhooks"):
        _default_webhook(webhook)
        fill(webhook, "reinvocationPolicy", "Never")


def default_policy(policy: Tree) -> None:
    """ValidatingAdmissionPolicy: failure policy Fail, empty selectors."""
    spec = section(policy, "spec")
    fill(spec, "failurePolicy", "Fail")
    _default_match(spec.get("matchConstraints"))


def default_policy_binding(binding: Tree) -> None:
    """ValidatingAdmissionPolicyBinding: empty selectors."""
    _default_match((binding.get("spec") or {}).get("matchResources"))


def _default_webhook(webhook: Tree) -> None:
    fill(webhook, "failurePolicy", "Fail")
    _default_selection(webhook)
    fill(webhook, "timeoutSeconds", 10)
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None:
        fill(service, "port", _HTTPS)
    for rule in items(webhook, "rules"):
        fill(rule, "scope", "*")


def _default_match(match: Tree | None) -> None:
    if match is None:
        return
    _default_selection(match)
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in items(match, name):
            fill(rule, "scope", "*")


def _default_selection(holder: Tree) -> None:
    fill(holder, "matchPolicy", "Equivalent")
    fill(holder, "namespaceSelector", {})
    fill(holder, "objectSelector", {})
