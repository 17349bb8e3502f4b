"""What may not change about a Service once it exists."""

from kubewright import FieldErrors

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.defaults import service_type_of

__all__ = ("check_service_change",)


def check_service_change(new: ModelBoxSpec, old: ModelBoxSpec, errors: FieldErrors) -> None:
    """Kubernetes never gives an address to a headless Service, nor takes one away."""
    before, after = service_type_of(old), service_type_of(new)
    if (before == "Headless") != (after == "Headless"):
        errors.forbidden(
            "spec.serviceType", f"may not change from {before} to {after}; delete the ModelBox and create it again"
        )
