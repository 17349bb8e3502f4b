"""AdmissionReviews: the request to an admission webhook and its response, in the versions v1 and v1beta1.

Pure functions. A response that makes no sense is an `InvalidReview`, one that kube-apiserver cannot even decode a
`WebhookCallError`; the messages are kube-apiserver's.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from kubewright.apiserver.admission.request_values import request_tree
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.outbound.webhook_client import WebhookCallError, check_fields, check_status, check_type
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("InvalidReview", "ReviewResponse", "denial", "read_review", "review_of")

_GROUP: Final = "admission.k8s.io"
_STATUS: Final = ("status", "message", "reason", "details")
_MAX_CODE: Final = 999
_PLACE: Final = "AdmissionResponse.response"
_TYPES: Final = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "patchType": (str, "v1.PatchType"),
    "patch": (str, "[]uint8"),
    "status": (dict, "v1.Status"),
    "warnings": (list, "[]string"),
    "auditAnnotations": (dict, "map[string]string"),
}
_KNOWN: Final = frozenset({(f"{_GROUP}/v1", "AdmissionReview"), (f"{_GROUP}/v1beta1", "AdmissionReview")})


@final
class InvalidReview(Exception):
    """A response that can be decoded and makes no sense."""


@final
@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The response of a webhook."""

    allowed: bool
    status: Mapping[str, Any] | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def review_of(
    attributes: Attributes, matched: Resource, objects: tuple[Tree | None, Tree | None], uid: str, version: str
) -> Tree:
    """The review to send: the new and the old object as `matched` has them."""
    request: Tree = {"uid": uid, **request_tree(attributes, matched)}
    request["object"], request["oldObject"] = objects
    request["dryRun"] = attributes.dry_run
    request["options"] = attributes.options or None
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}


def read_review(tree: Mapping[str, Any], *, uid: str, version: str, mutating: bool) -> ReviewResponse:
    """The response in a review."""
    check_type(tree, f"{_GROUP}/{version}", "AdmissionReview", _KNOWN)
    response = tree.get("response")
    if response is not None and not isinstance(response, dict):
        what = f"json: cannot unmarshal {json_type_name(response)} into Go struct field AdmissionReview.response"
        raise WebhookCallError(f"{what} of type {version}.AdmissionResponse")
    patch = b"" if response is None else _checked(response)
    if response is None:
        raise InvalidReview("webhook response was absent")
    if version == "v1":
        _check_v1(tree, response, uid, patch, mutating=mutating)
    kind = str(response.get("patchType") or "")
    if version != "v1" and patch:
        kind = "JSONPatch"  # v1beta1 need not state the type
    return ReviewResponse(
        allowed=bool(response.get("allowed")),
        status=response.get("status"),
        patch=patch if mutating else b"",
        patch_type=kind,
        warnings=tuple(item or "" for item in response.get("warnings") or ()),
        annotations={name: value or "" for name, value in (response.get("auditAnnotations") or {}).items()},
    )


def _checked(response: Mapping[str, Any]) -> bytes:
    check_fields(response, _TYPES, _PLACE)
    check_status(response.get("status") or {}, "response.status")
    for name, items in (
        ("warnings", response.get("warnings") or ()),
        ("auditAnnotations", (response.get("auditAnnotations") or {}).values()),
    ):
        for item in items:
            check_fields({name: item}, {name: (str, "string")}, _PLACE)
    text = response.get("patch") or ""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _not_base64(text)


def _not_base64(text: str) -> bytes:
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    at = next((place for place, one in enumerate(text) if one not in alphabet), len(text))
    raise WebhookCallError(f"illegal base64 data at input byte {at}")


def _check_v1(tree: Mapping[str, Any], response: Mapping[str, Any], uid: str, patch: bytes, *, mutating: bool) -> None:
    given = response.get("uid") or ""
    if given != uid:
        raise InvalidReview(f'expected response.uid="{uid}", got "{given}"')
    api_version, kind = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
    if (api_version, kind) != (f"{_GROUP}/v1", "AdmissionReview"):
        matched = api_version if "/" in api_version else f"/{api_version}"
        raise InvalidReview(
            f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {matched}, Kind={kind}"
        )
    patch_type = response.get("patchType")
    if not mutating:
        if patch:
            raise InvalidReview("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidReview("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise InvalidReview("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise InvalidReview("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise InvalidReview('webhook returned invalid response.patchType of ""')


def denial(name: str, status: Mapping[str, Any] | None) -> StatusError:
    """The error for a write that a webhook does not allow."""
    result: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    given = status or {}
    if isinstance(given.get("metadata"), dict):
        result["metadata"] = given["metadata"]
    result.update({key: given[key] for key in _STATUS if given.get(key)})
    if result.get("status") in (None, "Success"):
        result["status"] = "Failure"
    denied = f'admission webhook "{name}" denied the request'
    why = given.get("message") or given.get("reason")
    result["message"] = f"{denied}: {why}" if why else f"{denied} without explanation"
    code = given.get("code")
    # kube-apiserver breaks the connection off at a code of four digits, which no HTTP response can have.
    result["code"] = code if type(code) is int and 400 <= code <= _MAX_CODE else 400
    return StatusError(result)
