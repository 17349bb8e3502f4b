"""The request behind an admission: who wants to do what to which object, and whether it is only a trial.

    def validate_cache(cache: Cache, request: AdmissionRequest, errors: FieldErrors) -> None:
        if request.operation == "DELETE" and "system:masters" not in request.user.groups: ...

Plain data, decoded from an AdmissionReview by `admission`; the objects in it stay undecoded until somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from kubewright.api.kinds import GroupVersionKind, GroupVersionResource

__all__ = ("AdmissionRequest", "AdmissionReview", "User")

_NOTHING = msgspec.Raw(b"null")
_NO_KIND = GroupVersionKind("", "", "")
_NO_RESOURCE = GroupVersionResource("", "", "")


@final
class User(msgspec.Struct, frozen=True, gc=False):
    """Who sent the request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


@final
class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What is about to happen in the cluster."""

    uid: str
    """Of this request, not of an object."""
    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    kind: GroupVersionKind = _NO_KIND
    resource: GroupVersionResource = _NO_RESOURCE
    subresource: str = msgspec.field(default="", name="subResource")
    """Empty for the object itself; `status`, `scale` and so on."""
    request_kind: GroupVersionKind | None = None
    """As it was asked for, before the server converted it to the version that the webhook wants."""
    request_resource: GroupVersionResource | None = None
    name: str = ""
    """Empty where the server is still to make one from `generateName`."""
    namespace: str = ""
    """Empty for cluster-scoped objects."""
    user: User = msgspec.field(default_factory=User, name="userInfo")
    dry_run: bool = False
    """Nothing will be stored: have no effect outside this request."""
    object: msgspec.Raw = _NOTHING
    """The new object as it was sent, undecoded."""
    old_object: msgspec.Raw = _NOTHING
    """The object as it is stored, undecoded."""
    options: msgspec.Raw = _NOTHING
    """CreateOptions and so on, undecoded."""


@final
class AdmissionReview(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What the API server posts."""

    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None
