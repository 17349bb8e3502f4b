"""What is asked before a cache is stored, and how its versions become one another."""

from __future__ import annotations

from kubewright.webhooks.admission.declarations import default, validate
from kubewright.webhooks.admission.field_errors import FieldErrors
from kubewright.webhooks.conversion.declarations import convert

from ..api import v1, v1alpha1


@default(v1.Cache)
def default_cache(cache: v1.Cache) -> None:
    """Fill in."""
    cache.spec.image = cache.spec.image.strip()


@validate(v1.Cache, on=("create", "update"))
def validate_cache(cache: v1.Cache, errors: FieldErrors) -> None:
    """Refuse."""
    if cache.spec.image.endswith(":latest"):
        errors.forbidden("spec.image", "name a version")


@convert(v1alpha1.Cache, v1.Cache)
def up(old: v1alpha1.Cache) -> v1.Cache:
    """To the stored version."""
    return v1.Cache(spec=v1.CacheSpec(replicas=old.spec.size))


@convert(v1.Cache, v1alpha1.Cache)
def down(new: v1.Cache) -> v1alpha1.Cache:
    """From the stored version."""
    return v1alpha1.Cache(spec=v1alpha1.CacheSpec(size=new.spec.replicas))
