"""Webhook declarations as objects: two webhook configurations, and the `spec.conversion` of a CRD.

Pure functions with the same output every time. `kubewright generate` writes it to files, `Registrar` applies it to a
running cluster. The API server reaches the webhooks through a Service, or at a URL when the operator runs outside the
cluster. Certificates are made in `webhooks.certificates`; here a bundle is only put in if given.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec

from kubewright.api.names import dns1035_label_errors, dns1123_label_errors
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError
from kubewright.webhooks.admission.declarations import AdmissionDeclaration
from kubewright.webhooks.conversion.declarations import ConversionDeclaration

__all__ = (
    "CONVERT_PATH",
    "Declaration",
    "ServiceReference",
    "client_config",
    "configuration_name",
    "conversion_stanza",
    "converted_crds",
    "webhook_configurations",
)

Tree: TypeAlias = dict[str, Any]
Declaration: TypeAlias = AdmissionDeclaration[Any, Any] | ConversionDeclaration[Any, Any]

CONVERT_PATH: Final = "/convert"
_KINDS: Final = {"mutating": "MutatingWebhookConfiguration", "validating": "ValidatingWebhookConfiguration"}
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label every namespace has, set by the API server."""


@final
class ServiceReference(msgspec.Struct, frozen=True, kw_only=True):
    """The Service in front of the webhooks."""

    name: str = "webhook-service"
    namespace: str = "system"
    port: int = 443

    def __post_init__(self) -> None:
        problems = [*dns1035_label_errors(self.name), *dns1123_label_errors(self.namespace)]
        if problems:
            raise ConfigError(f"the webhook service {self.namespace}/{self.name} has a bad name: {problems[0]}")
        if not 1 <= self.port <= 65535:
            raise ConfigError(f"the port {self.port} of the webhook service {self.name} is not between 1 and 65535")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The DNS names for the serving certificate; the API server asks for the first."""
        inside = f"{self.name}.{self.namespace}.svc"
        return inside, f"{inside}.cluster.local", f"{self.name}.{self.namespace}"


def configuration_name(type: str, prefix: str = "") -> str:  # noqa: A002 - the word of the declarations
    """What the configuration of `mutating` or `validating` webhooks is called."""
    return f"{prefix}-{type}-webhook-configuration" if prefix else f"{type}-webhook-configuration"


def webhook_configurations(
    declarations: Iterable[object],
    *,
    name: str = "",
    service: ServiceReference | None = None,
    url: str = "",
    ca_bundle: bytes = b"",
    exclude_namespaces: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> list[Tree]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration of the declarations.

    An empty one is left out. `name` begins the names of both. Give either the `service` or the `url` to which paths are
    added. The webhooks are not called for objects in `exclude_namespaces`; by default that is the service's own
    namespace, so that an operator that is down cannot block its own pods.
    """
    declared = [item for item in declarations if isinstance(item, AdmissionDeclaration)]
    if exclude_namespaces is None:
        exclude_namespaces = (service.namespace,) if service is not None else ()
    trees = []
    for type_, kind in _KINDS.items():
        webhooks = [
            _webhook(item, client_config(item.path, service=service, url=url, ca_bundle=ca_bundle), exclude_namespaces)
            for item in declared
            if item.type == type_
        ]
        _refuse_duplicate_names(webhooks)
        if webhooks:
            metadata: Tree = {"name": configuration_name(type_, name)}
            if labels:
                metadata["labels"] = dict(labels)
            if annotations:
                metadata["annotations"] = dict(annotations)
            trees.append(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": kind,
                    "metadata": metadata,
                    "webhooks": webhooks,
                }
            )
    return trees


def conversion_stanza(*, service: ServiceReference | None = None, url: str = "", ca_bundle: bytes = b"") -> Tree:
    """The value of `spec.conversion` for a CRD whose versions the operator converts."""
    config = client_config(CONVERT_PATH, service=service, url=url, ca_bundle=ca_bundle)
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


def converted_crds(declarations: Iterable[object]) -> tuple[str, ...]:
    """The names of the CRDs whose versions the declarations convert."""
    names = {_crd_name(item.old) for item in declarations if isinstance(item, ConversionDeclaration)}
    return tuple(sorted(names))


def client_config(path: str, *, service: ServiceReference | None = None, url: str = "", ca_bundle: bytes = b"") -> Tree:
    """How the API server reaches one path of the operator, and which authority it trusts there."""
    if (service is None) == (not url):
        raise ConfigError("webhooks are reached through a service or at a URL: give one of the two")
    config: Tree = {}
    if ca_bundle:
        config["caBundle"] = base64.b64encode(ca_bundle).decode()
    if service is not None:
        config["service"] = {
            "name": service.name, "namespace": service.namespace, "path": path, "port": service.port
        }  # fmt: skip
    else:
        if not url.startswith("https://"):
            raise ConfigError(
                f"the webhook URL {url!r} does not begin with https://, which is all the API server calls"
            )
        config["url"] = f"{url.rstrip('/')}{path}"
    return config


def _webhook(item: AdmissionDeclaration[Any, Any], config: Tree, exclude: Sequence[str]) -> Tree:
    tree: Tree = {
        "admissionReviewVersions": ["v1"],
        "clientConfig": config,
        "failurePolicy": item.failure_policy,
        "matchPolicy": item.match_policy,
        "name": item.name,
        "rules": [_rule(item)],
        "sideEffects": item.side_effects,
        "timeoutSeconds": item.timeout_seconds,
    }
    if item.match_conditions:
        tree["matchConditions"] = [{"name": name, "expression": text} for name, text in item.match_conditions]
    if selector := _excluding(item.namespace_selector, exclude):
        tree["namespaceSelector"] = selector
    if item.object_selector:
        tree["objectSelector"] = item.object_selector
    if item.type == "mutating":
        tree["reinvocationPolicy"] = item.reinvocation_policy
    return dict(sorted(tree.items()))


def _rule(item: AdmissionDeclaration[Any, Any]) -> Tree:
    definition = definition_of(item.kind)
    return {
        "apiGroups": [definition.gvk.group],
        "apiVersions": [definition.gvk.version],
        "operations": list(item.operations),
        "resources": list(item.resources if item.resources is not None else (definition.plural,)),
        "scope": "Namespaced" if definition.namespaced else "Cluster",
    }


def _excluding(selector: Mapping[str, Any] | None, exclude: Sequence[str]) -> Tree:
    """A namespace selector that excludes some namespaces by name."""
    tree = dict(selector or {})
    if exclude:
        expression = {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": sorted(exclude)}
        tree["matchExpressions"] = [*tree.get("matchExpressions", ()), expression]
    return tree


def _refuse_duplicate_names(webhooks: Sequence[Tree]) -> None:
    names = [webhook["name"] for webhook in webhooks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two webhooks are called {name}; tell them apart with name=...")


def _crd_name(kind: type[KubeObject]) -> str:
    definition = definition_of(kind)
    return f"{definition.plural}.{definition.gvk.group}"
