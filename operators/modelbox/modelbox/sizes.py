"""What small, medium and large mean. Requests equal limits, so that the main container is the last to be evicted."""

from kubewright import Quantity
from kubewright.k8s.core.v1 import ResourceRequirements

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.defaults import resource_type_of

__all__ = ("SIZES", "resources_of")

SIZES = {
    "small": {"cpu": "1", "memory": "2Gi"},
    "medium": {"cpu": "2", "memory": "4Gi"},
    "large": {"cpu": "4", "memory": "8Gi"},
}


def resources_of(spec: ModelBoxSpec) -> ResourceRequirements:
    """What the main container gets, and it alone."""
    size = SIZES.get(resource_type_of(spec))
    if size is None:
        return spec.resources or ResourceRequirements()
    return ResourceRequirements(
        requests={name: Quantity(amount) for name, amount in size.items()},
        limits={name: Quantity(amount) for name, amount in size.items()},
    )
