"""Defaults of containers: pull policy, termination messages, ports, probes, references to fields."""

from __future__ import annotations

from kubewright.apiserver.builtin.defaults.images import pull_policy
from kubewright.apiserver.builtin.defaults.resources import round_resources
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items

__all__ = ("default_container", "default_field_reference")


def default_container(container: Tree) -> None:  # hot
    """A container, init container or ephemeral container."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    fill_empty(container, "terminationMessagePath", "/dev/termination-log")
    fill_empty(container, "terminationMessagePolicy", "File")
    for port in items(container, "ports"):
        fill_empty(port, "protocol", "TCP")
    for variable in items(container, "env"):
        source = variable.get("valueFrom")
        if source:
            default_field_reference(source)
            key = source.get("fileKeyRef")
            if key is not None:
                fill(key, "optional", False)
    round_resources(container)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _default_probe(probe)
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            _default_http(lifecycle.get(name))


def default_field_reference(holder: Tree) -> None:
    """The apiVersion of a fieldRef."""
    reference = holder.get("fieldRef")
    if reference is not None:
        fill_empty(reference, "apiVersion", "v1")


def _default_probe(probe: Tree) -> None:
    fill_empty(probe, "timeoutSeconds", 1)
    fill_empty(probe, "periodSeconds", 10)
    fill_empty(probe, "successThreshold", 1)
    fill_empty(probe, "failureThreshold", 3)
    _default_http(probe)
    grpc = probe.get("grpc")
    if grpc is not None:
        fill(grpc, "service", "")


def _default_http(handler: Tree | None) -> None:
    action = handler.get("httpGet") if handler else None
    if action is not None:
        fill_empty(action, "path", "/")
        fill_empty(action, "scheme", "HTTP")
