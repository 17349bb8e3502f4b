"""Everything in `config/webhook` and `config/certmanager`, and `spec.conversion` of CRDs, from webhook declarations.

`config/webhook` has the two webhook configurations and the Service in front of the operator. `config/certmanager` is a
kustomize component: added to an overlay, it adds an issuer and a certificate, and cert-manager injects its authority
into the configurations and into CRDs with conversion; the Deployment mounts the certificate. Without it the operator
makes its own certificates.

Names that kustomize cannot replace (hosts in a certificate, the excluded namespace) are written in full, with the
operator's name as a prefix and its namespace: `config/default` must use those, as a scaffolded project does.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright._base import yaml
from kubewright.generate.rbac.permissions import HOME
from kubewright.manager.operator import Operator
from kubewright.webhooks.registration.manifests import (
    ServiceReference,
    conversion_stanza,
    converted_crds,
    webhook_configurations,
)

__all__ = ("SERVICE", "certificate_files", "conversion_of", "files_without_webhooks", "webhook_files")

SERVICE: Final = ServiceReference(name="webhook-service", namespace=HOME)
_PORT: Final = 9443
_FOLDER: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - in the pod, controller-runtime's default
_INJECT_ANNOTATION: Final = "cert-manager.io/inject-ca-from"
Tree = dict[str, Any]


def webhook_files(operator: Operator) -> dict[str, str]:
    """The manifests of `config/webhook` by file name; none for an operator without webhooks."""
    if not operator.webhooks:
        return {}
    files = {"service.yaml": yaml.dump(_service(operator)), "kustomizeconfig.yaml": yaml.dump(_service_references())}
    configurations = _configurations(operator)
    if configurations:
        files["manifests.yaml"] = yaml.dump_all(configurations)
    return files


def certificate_files(operator: Operator) -> dict[str, str]:
    """The component `config/certmanager` by file name; none for an operator without webhooks."""
    if not operator.webhooks:
        return {}
    targets = [(tree["kind"], tree["metadata"]["name"]) for tree in _configurations(operator)]
    targets += [("CustomResourceDefinition", name) for name in converted_crds(operator.webhooks)]
    annotation = f"{operator.namespace}/{operator.name}-serving-cert"
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": ["certificate.yaml", "issuer.yaml"],
        "configurations": ["kustomizeconfig.yaml"],
        "patches": [*(_annotation_patch(kind, name, annotation) for kind, name in targets), _volume_patch(operator)],
    }
    return {
        "certificate.yaml": yaml.dump(_certificate(operator)),
        "issuer.yaml": yaml.dump(_issuer()),
        "kustomization.yaml": yaml.dump(component),
        "kustomizeconfig.yaml": yaml.dump(_issuer_references()),
    }


def files_without_webhooks() -> dict[str, str]:
    """What is left, by the path below `config`, of an operator's files when its last webhook is gone.

    An overlay still builds with them.
    """
    component = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "resources": []}
    return {
        "certmanager/kustomization.yaml": yaml.dump(component),
        "webhook/kustomizeconfig.yaml": yaml.dump(_service_references()),
    }


def conversion_of(operator: Operator) -> dict[str, Tree]:
    """The value of `spec.conversion`, by the name of the CRD, for kinds with converters."""
    return {name: conversion_stanza(service=SERVICE) for name in converted_crds(operator.webhooks)}


def _configurations(operator: Operator) -> list[Tree]:
    # An operator that works only in its own namespace has its objects there, so it must not be excluded.
    excluded = () if operator.scope == "namespace" else (operator.namespace,)
    return webhook_configurations(operator.webhooks, service=SERVICE, exclude_namespaces=excluded)


def _service(operator: Operator) -> Tree:
    labels = {"app.kubernetes.io/managed-by": "kustomize", "app.kubernetes.io/name": operator.name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"labels": labels, "name": SERVICE.name, "namespace": SERVICE.namespace},
        "spec": {
            "ports": [{"port": SERVICE.port, "protocol": "TCP", "targetPort": _PORT}],
            "selector": {"app.kubernetes.io/name": operator.name, "control-plane": "controller-manager"},
        },
    }


def _service_references() -> Tree:
    """The fields where kustomize replaces the name and namespace of the Service, beyond those it knows."""
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    places = [(kind, "admissionregistration.k8s.io", "webhooks/clientConfig/service") for kind in kinds]
    places.append(("CustomResourceDefinition", "apiextensions.k8s.io", "spec/conversion/webhook/clientConfig/service"))
    return {
        "nameReference": [
            {
                "kind": "Service",
                "version": "v1",
                "fieldSpecs": [{"kind": kind, "group": group, "path": f"{path}/name"} for kind, group, path in places],
            }
        ],
        "namespace": [
            {"kind": kind, "group": group, "path": f"{path}/namespace", "create": False} for kind, group, path in places
        ],
    }


def _issuer() -> Tree:
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": "selfsigned-issuer", "namespace": HOME},
        "spec": {"selfSigned": {}},
    }


def _certificate(operator: Operator) -> Tree:
    host = f"{operator.name}-{SERVICE.name}.{operator.namespace}.svc"
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "serving-cert", "namespace": HOME},
        "spec": {
            "dnsNames": [host, f"{host}.cluster.local"],
            "issuerRef": {"kind": "Issuer", "name": "selfsigned-issuer"},
            "secretName": _secret(operator),
        },
    }


def _secret(operator: Operator) -> str:
    """The Secret of cert-manager; not the one that the operator keeps itself."""
    return f"{operator.name}-webhook-server-cert"


def _volume_patch(operator: Operator) -> Tree:
    """The certificate mounted in the operator's pod, and the setting to use it."""
    container = {
        "name": "manager",
        "env": [{"name": "KUBEWRIGHT_WEBHOOK_CERTIFICATES", "value": _FOLDER}],
        "volumeMounts": [{"mountPath": _FOLDER, "name": "webhook-certs", "readOnly": True}],
    }
    volume = {"name": "webhook-certs", "secret": {"secretName": _secret(operator)}}
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "controller-manager"},
        "spec": {"template": {"spec": {"containers": [container], "volumes": [volume]}}},
    }
    return {"patch": yaml.dump(patch), "target": {"kind": "Deployment", "name": "controller-manager"}}


def _issuer_references() -> Tree:
    path = {"kind": "Certificate", "group": "cert-manager.io", "path": "spec/issuerRef/name"}
    return {"nameReference": [{"kind": "Issuer", "group": "cert-manager.io", "fieldSpecs": [path]}]}


def _annotation_patch(kind: str, name: str, annotation: str) -> Tree:
    group = "apiextensions.k8s.io" if kind == "CustomResourceDefinition" else "admissionregistration.k8s.io"
    patch = {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {_INJECT_ANNOTATION: annotation}},
    }
    return {"patch": yaml.dump(patch), "target": {"group": group, "kind": kind, "name": name}}
