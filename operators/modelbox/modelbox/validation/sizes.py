"""Sizes: a name and numbers of one's own do not go together."""

from collections.abc import Mapping

from kubewright import FieldErrors, Quantity
from kubewright.errors import DecodeError

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.defaults import has_resources, resource_type_of

__all__ = ("check_size",)


def check_size(spec: ModelBoxSpec, errors: FieldErrors) -> None:
    """That resources are given exactly where they count, and make sense."""
    size = resource_type_of(spec)
    if size == "custom" and not has_resources(spec):
        errors.required("spec.resources", "resourceType custom says nothing by itself")
    if size != "custom" and has_resources(spec):
        errors.forbidden("spec.resources", f"resourceType {size} has resources of its own; use custom to give others")
    if spec.resources is None:
        return
    requests = _amounts("spec.resources.requests", spec.resources.requests or {}, errors)
    limits = _amounts("spec.resources.limits", spec.resources.limits or {}, errors)
    for name in requests.keys() & limits.keys():
        if requests[name] > limits[name]:
            errors.add(f"spec.resources.requests[{name}]", f"must be less than or equal to {name} limit")


def _amounts(path: str, given: Mapping[str, Quantity], errors: FieldErrors) -> dict[str, Quantity]:
    """Those that are quantities; the others are reported."""
    good = {}
    for name, quantity in given.items():
        try:
            amount = Quantity.parse(quantity.text)
        except DecodeError:
            errors.add(f"{path}[{name}]", "must be a quantity, such as 500m or 2Gi", value=quantity.text)
            continue
        if amount < 0:
            errors.add(f"{path}[{name}]", "must be greater than or equal to 0", value=quantity.text)
        good[name] = amount
    return good
