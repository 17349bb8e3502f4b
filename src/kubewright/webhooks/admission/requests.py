"""AdmissionRequest: who wants to do what to which object, and whether it is a dry-run.

    def validate_cache(cache: Cache, request: AdmissionRequest, errors: FieldErrors) -> None:
        if request.operation == "DELETE" and "system:masters" not in request.user.groups: ...

Plain data that `serving.router` decodes from an AdmissionReview; the objects in it stay undecoded until
`admission.handler` needs them.
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
    """The user who sent the request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


@final
class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One request to the API server, before it is executed (admission.k8s.io/v1 AdmissionRequest)."""

    uid: str
    """The id of this request, not of an object."""
    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    kind: GroupVersionKind = _NO_KIND
    resource: GroupVersionResource = _NO_RESOURCE
    subresource: str = msgspec.field(default="", name="subResource")
    """Empty for the object itself; `status`, `scale` and so on."""
    request_kind: GroupVersionKind | None = None
    """The kind of the original request, before the server converted the object to the version of the webhook's rule."""
    request_resource: GroupVersionResource | None = None
    name: str = ""
    """Empty on CREATE with `generateName`, before the server has made the name."""
    namespace: str = ""
    """Empty for cluster-scoped objects."""
    user: User = msgspec.field(default_factory=User, name="userInfo")
    dry_run: bool = False
    """Nothing will be stored: have no effect outside this request."""
    object: msgspec.Raw = _NOTHING
    """The new object as the API server sent it, undecoded."""
    old_object: msgspec.Raw = _NOTHING
    """The stored object, undecoded."""
    options: msgspec.Raw = _NOTHING
    """CreateOptions and so on, undecoded."""


@final
class AdmissionReview(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The body that the API server posts."""

    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None
