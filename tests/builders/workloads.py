"""Workloads: one application, one container, and the labels that tie them together."""

from __future__ import annotations

from typing import Any

from kubewright.api.metadata import ObjectMeta
from kubewright.k8s.apps.v1 import (
    DaemonSet,
    DaemonSetSpec,
    Deployment,
    DeploymentSpec,
    ReplicaSet,
    ReplicaSetSpec,
    StatefulSet,
    StatefulSetSpec,
)
from kubewright.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

__all__ = ("daemon_set", "deployment", "pod_template", "replica_set", "selector", "stateful_set")


def selector(app: str = "web") -> LabelSelector:
    """Selects the pods of an application, `web`."""
    return LabelSelector(match_labels={"app": app})


def pod_template(*, app: str = "web", image: str = "web:1", **spec: Any) -> PodTemplateSpec:
    """Pods of the application `web` with one container `main`; `spec` is fields of `PodSpec`."""
    return PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": app}),
        spec=PodSpec(containers=[Container(name="main", image=image)], **spec),
    )


def deployment(name: str = "web", namespace: str = "", *, replicas: int = 3, **spec: Any) -> Deployment:
    """A Deployment `web` of three replicas; `app` of its pods is its name."""
    fields = {"selector": selector(name), "template": pod_template(app=name), **spec}
    return Deployment.named(name, namespace, spec=DeploymentSpec(replicas=replicas, **fields))


def replica_set(name: str = "web", namespace: str = "", *, replicas: int = 3, **spec: Any) -> ReplicaSet:
    """A ReplicaSet `web` of three replicas; `app` of its pods is its name."""
    fields = {"selector": selector(name), "template": pod_template(app=name), **spec}
    return ReplicaSet.named(name, namespace, spec=ReplicaSetSpec(replicas=replicas, **fields))


def stateful_set(name: str = "db", namespace: str = "", *, replicas: int = 3, **spec: Any) -> StatefulSet:
    """A StatefulSet `db` of three replicas with the Service of its name; `app` of its pods is its name."""
    fields = {"selector": selector(name), "template": pod_template(app=name), "service_name": name, **spec}
    return StatefulSet.named(name, namespace, spec=StatefulSetSpec(replicas=replicas, **fields))


def daemon_set(name: str = "agent", namespace: str = "", **spec: Any) -> DaemonSet:
    """A DaemonSet `agent`; `app` of its pods is its name."""
    fields = {"selector": selector(name), "template": pod_template(app=name), **spec}
    return DaemonSet.named(name, namespace, spec=DaemonSetSpec(**fields))
