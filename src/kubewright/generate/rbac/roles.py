"""Everything in `config/rbac`: the manager's roles and account, and roles for users and Prometheus.

For each kind of the operator there is an admin, an editor and a viewer role to bind users to. Names and files are those
of kubebuilder, so that its documentation applies: the overlay in `config/default` prefixes the names and sets the
namespace. Only `other_namespaces`, with permissions in single other namespaces, is outside of that overlay:
`kubectl apply -k config/rbac/other_namespaces`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright._base import yaml
from kubewright.api.resource import Definition
from kubewright.generate.rbac.grants import Grant
from kubewright.generate.rbac.permissions import HOME, ROLE, access_of, role, roles_of
from kubewright.manager.operator import Operator
from kubewright.webhooks.registration.manifests import configuration_name, converted_crds

__all__ = ("ACCOUNT", "rbac_files", "services_grants")

ACCOUNT: Final = "controller-manager"
Tree = dict[str, Any]

_LEADER_ELECTION: Final = frozenset(
    Grant("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")
)
_METRICS_AUTH: Final = frozenset(
    (
        Grant("authentication.k8s.io", "tokenreviews", "create"),
        Grant("authorization.k8s.io", "subjectaccessreviews", "create"),
    )
)
_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "admin": ("*",),
    "editor": ("create", "delete", "get", "list", "patch", "update", "watch"),
    "viewer": ("get", "list", "watch"),
}


def services_grants(operator: Operator) -> frozenset[Grant]:
    """The permissions for leader election, protected metrics and certificates, whether they are used or not."""
    return (
        _LEADER_ELECTION
        | _METRICS_AUTH
        | (_certificate_grants(operator) | _ca_injection_grants(operator) if operator.webhooks else frozenset())
    )


def rbac_files(operator: Operator) -> dict[str, str]:
    """The manifests by file name."""
    labels = {"app.kubernetes.io/managed-by": "kustomize", "app.kubernetes.io/name": operator.name}
    access = access_of(operator)
    roles = [tree for tree in roles_of(access) if tree["metadata"].get("namespace", HOME) == HOME]
    files = {
        "service_account.yaml": [_account(labels)],
        "leader_election_role.yaml": [role("leader-election-role", _LEADER_ELECTION, namespace=HOME, labels=labels)],
        "leader_election_role_binding.yaml": [_binding("leader-election", labels, namespace=HOME)],
        "metrics_auth_role.yaml": [role("metrics-auth-role", _METRICS_AUTH)],
        "metrics_auth_role_binding.yaml": [_binding("metrics-auth", {})],
        "metrics_reader_role.yaml": [role("metrics-reader", [Grant("", "", "get", url="/metrics")])],
    }
    if roles:
        files["role.yaml"] = roles
        files["role_binding.yaml"] = [
            _binding("manager", labels, namespace=tree["metadata"].get("namespace", "")) for tree in roles
        ]
    if operator.webhooks:
        files["webhook_role.yaml"] = [
            role("webhook-role", _ca_injection_grants(operator), labels=labels),
            role("webhook-role", _certificate_grants(operator), namespace=HOME, labels=labels),
        ]
        files["webhook_role_binding.yaml"] = [_binding("webhook", labels), _binding("webhook", labels, namespace=HOME)]
    for namespace in access.namespaces.keys() - {HOME}:
        files[f"other_namespaces/{namespace}.yaml"] = _other_namespace_role(
            operator, namespace, access.namespaces[namespace], labels
        )
    for stem, definition in _role_names(operator).items():
        for name, verbs in _VERBS.items():
            files[f"{stem}_{name}_role.yaml"] = [_user_role(stem, name, verbs, definition, labels)]
    texts = {name: yaml.dump_all(trees) for name, trees in sorted(files.items())}
    if roles:
        texts["role.yaml"] = "".join(f"# {note}.\n" for note in access.notes) + texts["role.yaml"]
    return texts


def _other_namespace_role(
    operator: Operator, namespace: str, grants: frozenset[Grant], labels: dict[str, str]
) -> list[Tree]:
    """A role in a namespace that is not the operator's, and its binding, with their final names.

    An overlay that sets a namespace sets it on everything, so these cannot go through it and are applied separately.
    """
    name, binding = f"{operator.name}-{ROLE}", _binding("manager", labels, namespace=namespace)
    binding["metadata"]["name"] = f"{operator.name}-{binding['metadata']['name']}"
    binding["roleRef"]["name"] = name
    binding["subjects"] = [
        {"kind": "ServiceAccount", "name": f"{operator.name}-{ACCOUNT}", "namespace": operator.namespace}
    ]
    return [role(name, grants, namespace=namespace, labels=labels), binding]


def _certificate_grants(operator: Operator) -> frozenset[Grant]:
    """For webhook certificates that the operator makes itself and keeps in a Secret in its namespace."""
    # resourceNames also covers lists and watches of a single name; only a create has no name.
    name = f"{operator.name}-webhook-certs"
    grants = {Grant("", "secrets", verb, name) for verb in ("get", "list", "update", "watch")}
    return frozenset(grants | {Grant("", "secrets", "create")})


def _ca_injection_grants(operator: Operator) -> frozenset[Grant]:
    """For writing `caBundle`: only the operator's own configurations and CRDs.

    kustomize does not change names here, so they are those that `config/default` will give.
    """
    webhooks = "admissionregistration.k8s.io"
    written = [
        (webhooks, f"{type_}webhookconfigurations", configuration_name(type_, operator.name))
        for type_ in ("mutating", "validating")
        if any(getattr(item, "type", None) == type_ for item in operator.webhooks)
    ]
    written += [
        ("apiextensions.k8s.io", "customresourcedefinitions", name) for name in converted_crds(operator.webhooks)
    ]
    return frozenset(
        Grant(group, resource, verb, name if verb == "patch" else "")
        for group, resource, name in written
        for verb in ("get", "list", "patch", "watch")
    )


def _role_names(operator: Operator) -> dict[str, Definition]:
    """The names of each kind's roles: the kind, with its group if two kinds have the same name."""
    definitions = [classes[0].__definition__ for classes in operator.by_crd.values()]
    singulars = [definition.singular for definition in definitions]
    return {
        definition.singular
        if singulars.count(definition.singular) == 1
        else f"{definition.gvk.group.replace('.', '-')}-{definition.singular}": definition
        for definition in definitions
    }


def _user_role(stem: str, name: str, verbs: tuple[str, ...], definition: Definition, labels: dict[str, str]) -> Tree:
    group, plural = definition.gvk.group, definition.plural
    grants = {Grant(group, plural, verb) for verb in verbs}
    if definition.status:
        grants.add(Grant(group, f"{plural}/status", "get"))
    if definition.scale is not None:
        scaling = ("get",) if name == "viewer" else ("get", "patch", "update")
        grants |= {Grant(group, f"{plural}/scale", verb) for verb in scaling}
    return role(f"{stem}-{name}-role", grants, labels=labels)


def _account(labels: dict[str, str]) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"labels": labels, "name": ACCOUNT, "namespace": HOME},
    }


def _binding(stem: str, labels: dict[str, str], *, namespace: str = "") -> Tree:
    metadata: Tree = {"labels": labels} if labels else {}
    metadata["name"] = f"{stem}-rolebinding"
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role" if namespace else "ClusterRole",
            "name": ROLE if stem == "manager" else f"{stem}-role",
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}],
    }
