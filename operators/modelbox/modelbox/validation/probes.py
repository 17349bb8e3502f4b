"""Probes that the user gives."""

from kubewright import FieldErrors
from kubewright.k8s.core.v1 import Probe

from modelbox.api.v1.modelbox import ModelBoxSpec

__all__ = ("check_probes",)


def check_probes(spec: ModelBoxSpec, errors: FieldErrors) -> None:
    """That each asks in exactly one way."""
    if spec.liveness_probe is not None:
        _check_shape("spec.livenessProbe", spec.liveness_probe, errors)
        if spec.liveness_probe.success_threshold not in (None, 1):
            errors.add("spec.livenessProbe.successThreshold", "must be 1")
    if spec.readiness_probe is not None:
        _check_shape("spec.readinessProbe", spec.readiness_probe, errors)


def _check_shape(path: str, probe: Probe, errors: FieldErrors) -> None:
    handlers = [
        handler for handler in (probe.exec, probe.grpc, probe.http_get, probe.tcp_socket) if handler is not None
    ]
    if not handlers:
        errors.required(path, "must have a handler: exec, grpc, httpGet or tcpSocket")
    elif len(handlers) > 1:
        errors.forbidden(path, "may not have more than one handler")
    if probe.timeout_seconds is not None and probe.timeout_seconds < 1:
        errors.add(f"{path}.timeoutSeconds", "must be greater than or equal to 1")
