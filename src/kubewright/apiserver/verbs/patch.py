"""Applying what a PATCH sends: JSON patch, merge patch and strategic merge patch.

From a live tree and a body to the patched tree, or a refusal with the real server's words. Server-side apply is not
here: it needs to know who owns what (`fields`).
"""

from __future__ import annotations

import re
from typing import Any, Final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import apply_merge_patch
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.verbs.json_patch import PatchMisfit, apply_operations
from kubewright.apiserver.verbs.strategic_merge.wording import go_value
from kubewright.apiserver.wire.decoding import decode_json, duplicate_fields, normalize_numbers
from kubewright.apiserver.wire.go_json import json_type_name, syntax_error
from kubewright.apiserver.wire.negotiation import APPLY_JSON, APPLY_YAML, media_type
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    bad_request,
    invalid,
    status_error,
    too_large,
    unsupported_media_type,
)

__all__ = ("APPLY_TYPES", "patch_type", "patched", "said_twice", "unfit")

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY_TYPES: Final = (APPLY_YAML, APPLY_JSON)
_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)
_MAX_OPERATIONS: Final = 10_000
_CANNOT_UNMARSHAL: Final = re.compile(r"json: cannot unmarshal (\w+)(?: \S+)? into Go .*of type (\S+)")
_GO_KINDS: Final = {"array": "slice", "object": "map", "number": "int64"}


def patch_type(call: Call) -> str:
    """The kind of patch, if this resource takes it."""
    kind = media_type(call.request.header("content-type"))
    # cbor is not offered, and custom resources have no merge keys a strategic patch could go by.
    offered = [JSON_PATCH, MERGE, APPLY_YAML]
    if call.resource.strategy.strategic:
        offered.insert(2, STRATEGIC)
    if kind not in (JSON_PATCH, MERGE, STRATEGIC, *APPLY_TYPES):
        raise status_error(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if kind not in offered and kind != APPLY_JSON:
        raise unsupported_media_type(offered)
    return kind


def patched(resource: Resource, kind: str, body: bytes, live: Tree) -> Tree:
    """The live object with the patch applied; the live one stays as it is."""
    patch = _read(kind, body)
    if kind == JSON_PATCH:
        result = _json_patched(patch, live)
    elif kind == MERGE and patch is None:
        raise bad_request("Invalid JSON Patch")
    elif kind == MERGE and not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type_name(patch)} into Go value of type"
            " map[string]interface {}"
        )
    elif kind == MERGE:
        result = apply_merge_patch(live, _listed_whole(patch))
    else:
        from kubewright.apiserver.verbs.strategic_merge import apply_strategic_patch

        result = apply_strategic_patch(live, patch, gvk=resource.kind)
    if not isinstance(result, dict):
        raise bad_request("the patched object is no JSON object")
    if kind == STRATEGIC:  # what it makes is read into a type that is known: nobody looks at what it calls itself
        return result | {name: live[name] for name in ("apiVersion", "kind") if isinstance(result.get(name), str)}
    return result


def _listed_whole(patch: Any, *, listed: bool = False) -> Any:
    """A merge patch without nulls in objects inside lists: kube-apiserver drops those too, other than the standard."""
    if isinstance(patch, dict):
        return {
            name: _listed_whole(value, listed=listed)
            for name, value in patch.items()
            if value is not None or not listed
        }
    return [_listed_whole(item, listed=True) for item in patch] if isinstance(patch, list) else patch


def _read(kind: str, body: bytes) -> Any:
    try:
        return normalize_numbers(body, decode_json(body))
    except StatusError:
        why = syntax_error(body)
        raise bad_request(why if kind == STRATEGIC else f"error decoding patch: {why}") from None


def said_twice(kind: str, body: bytes) -> list[str]:
    """What is to be said about members that stand twice in one object of a patch."""
    if kind == JSON_PATCH:
        return []
    return [f'duplicate field "{path}"' for path in duplicate_fields(body, decode_json(body))]


def unfit(resource: Resource, kind: str, body: bytes, result: Tree, refusal: StatusError) -> StatusError:
    """A refusal of what a patch made of an object: it does not say what, but shows all of it."""
    _, found, why = str(refusal).partition(" cannot be handled as a ")
    if refusal.code != 400 or not found:
        return refusal
    why = why.partition(": ")[2]
    touched = decode_json(body) if kind == MERGE else {}
    shown = encode_json(_in_order(result, None if resource.custom else touched)).decode()
    if kind == STRATEGIC:
        shown, why = go_value(decode_json(body)), _without_json(why)
    return invalid(GroupVersionKind("", "", ""), "", [FieldError("patch", "Invalid", why, shown)])


def _in_order(value: Any, touched: Any) -> Any:
    """The order of names: sorted where the patch went, or everywhere if that is None, as in Go's structs elsewhere."""
    if isinstance(value, list) and touched is None:
        return [_in_order(item, None) for item in value]
    if not isinstance(value, dict):
        return value
    if touched is None:
        return {name: _in_order(value[name], None) for name in sorted(value)}
    result = {}
    for name in sorted(value):
        if isinstance(touched, dict) and name in touched:
            result[name] = _in_order(value[name], touched[name])
        elif name == "metadata":
            result[name] = {part: value[name][part] for part in sorted(value[name], key=_place)}
        else:
            result[name] = value[name]
    return result


def _place(name: str) -> int:
    return _METADATA.index(name) if name in _METADATA else len(_METADATA)


def _without_json(why: str) -> str:
    """What a strategic patch made is not read as JSON, so the words are others."""
    found = _CANNOT_UNMARSHAL.match(why)
    if found is None:
        return why
    given, wanted = _GO_KINDS.get(found[1], found[1]), found[2]
    if wanted.startswith("map["):
        return f"cannot restore map from {given}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {given}"
    if "." in wanted and given in ("int64", "string", "bool", "slice"):
        return f"cannot restore struct from: {given}"
    return f"cannot convert {given} to {wanted}" if wanted == "string" else f"unrecognized type: {wanted}"


def _json_patched(operations: Any, live: Tree) -> Any:
    if not isinstance(operations, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type_name(operations)} into Go value of type"
            " []handlers.jsonPatchOp"
        )
    if len(operations) > _MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise too_large(f"Request entity too large: {why}")
    try:
        return apply_operations(live, operations)
    except PatchMisfit:
        # Which operation failed and why is not said: kube-apiserver does not, and clients match its sentence.
        message = "the server rejected our request due to an error in our request"
        raise status_error(422, "Invalid", message, details={}) from None
