"""What is asked before SidecarSet objects are stored."""

from kubewright import FieldErrors, Warnings, default, validate
from kubewright.cache import CacheReader

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.clashes import check_others
from sidecarset.defaults import defaulted, fill_in
from sidecarset.validation import check, warn

__all__ = ("default_sidecarset", "validate_sidecarset")


@default(SidecarSet)
def default_sidecarset(sidecarset: SidecarSet) -> None:
    """Fill in what the defaults of the schema cannot."""
    fill_in(sidecarset.spec)


@validate(SidecarSet, reads=[SidecarSet])
async def validate_sidecarset(
    sidecarset: SidecarSet, old: SidecarSet | None, cached: CacheReader, errors: FieldErrors, warnings: Warnings
) -> None:
    """Say what the rules of the schema cannot.

    What is stored already may stay: rules that became stricter must not keep labels from being edited, nor an object
    from being deleted.
    """
    if sidecarset.metadata.deletion_timestamp is not None or (old is not None and old.spec == sidecarset.spec):
        return
    check(sidecarset, errors)
    warn(sidecarset, warnings)
    check_others(defaulted(sidecarset), cached.list(SidecarSet), errors)
