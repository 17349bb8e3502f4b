"""The types of patches: which a resource takes, how each changes an object, and the errors in kube-apiserver's words.

kube-apiserver: `jsonPatcher` and `smpPatcher` in staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import apply_merge_patch
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.verbs.patches.json_patch import JsonPatchError, apply_json_patch
from kubewright.apiserver.verbs.patches.strategic_merge.merge_errors import go_value
from kubewright.apiserver.wire.decoding import decode_json, decode_json_body, normalize_numbers, not_an_object_error
from kubewright.apiserver.wire.duplicates import check_depth, duplicate_fields, nested_too_deep
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

__all__ = ("APPLY_TYPES", "apply_patch", "duplicate_warnings", "patch_type", "patched_object_error")

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY_TYPES: Final = (APPLY_YAML, APPLY_JSON)
_METADATA_ORDER: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)
_MAX_OPERATIONS: Final = 10_000
_CANNOT_UNMARSHAL: Final = re.compile(r"json: cannot unmarshal (\w+)(?: \S+)? into Go .*of type (\S+)")
_GO_KINDS: Final = {"array": "slice", "object": "map", "number": "int64"}


def patch_type(call: Call) -> str:
    """The type of the patch in the body; raises `StatusError` (415) if the resource does not take it."""
    kind = media_type(call.request.header("content-type"))
    # CBOR is not offered. Custom resources have no patch strategies and merge keys, so no strategic merge patch.
    offered = [JSON_PATCH, MERGE, APPLY_YAML]
    if call.resource.strategy.strategic_merge_patch:
        offered.insert(2, STRATEGIC)
    if kind not in (JSON_PATCH, MERGE, STRATEGIC, *APPLY_TYPES):
        raise status_error(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if kind not in offered and kind != APPLY_JSON:
        raise unsupported_media_type(offered)
    return kind


def apply_patch(resource: Resource, kind: str, body: bytes, live: Tree) -> Tree:
    """The live object with a patch applied. The live one stays as it is; the result shares parts with it."""
    patch = _decode(kind, body)
    if kind == JSON_PATCH:
        result = _apply_json_patch(patch, live)
    elif kind == MERGE and patch is None:
        raise bad_request("Invalid JSON Patch")
    elif kind == MERGE and not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type_name(patch)} into Go value of type"
            " map[string]interface {}"
        )
    elif kind == MERGE:
        result = apply_merge_patch(live, _without_nulls_in_lists(patch))
    else:
        from kubewright.apiserver.verbs.patches.strategic_merge import apply_strategic_patch

        result = apply_strategic_patch(live, patch, gvk=resource.kind)
    if not isinstance(result, dict):
        error = FieldError("patch", "Invalid", not_an_object_error(result), encode_json(result).decode())
        raise invalid(GroupVersionKind("", "", ""), "", [error])
    check_depth(result)
    if kind == STRATEGIC:  # kube-apiserver decodes the result into the type it knows and ignores kind and apiVersion
        return result | {name: live[name] for name in ("apiVersion", "kind") if isinstance(result.get(name), str)}
    return result


def _without_nulls_in_lists(patch: Any, *, listed: bool = False) -> Any:
    """A merge patch without nulls in objects inside lists: kube-apiserver drops these, against RFC 7386."""
    if isinstance(patch, dict):
        return {
            name: _without_nulls_in_lists(value, listed=listed)
            for name, value in patch.items()
            if value is not None or not listed
        }
    return [_without_nulls_in_lists(item, listed=True) for item in patch] if isinstance(patch, list) else patch


def _decode(kind: str, body: bytes) -> Any:
    try:
        return normalize_numbers(body, decode_json_body(body))
    except StatusError as error:
        if error.code == 413:
            raise
        why = syntax_error(body)
        raise bad_request(why if kind == STRATEGIC else f"error decoding patch: {why}") from None


def duplicate_warnings(kind: str, body: bytes) -> list[str]:
    """The messages about duplicate fields in a patch."""
    if kind == JSON_PATCH:
        return []
    return [f'duplicate field "{path}"' for path in duplicate_fields(body, decode_json(body))]


def patched_object_error(resource: Resource, kind: str, body: bytes, result: Tree, error: StatusError) -> StatusError:
    """The error of decoding a patched object, in the form it has for a patch: it shows the whole object."""
    _, found, why = str(error).partition(" cannot be handled as a ")
    if error.code != 400 or not found:
        return error
    why = why.partition(": ")[2]
    touched = decode_json(body) if kind == MERGE else {}
    value = encode_json(_in_order(result, None if resource.custom else touched)).decode()
    if kind == STRATEGIC:
        value, why = go_value(decode_json(body)), _in_converter_words(why)
    return invalid(GroupVersionKind("", "", ""), "", [FieldError("patch", "Invalid", why, value)])


def _in_order(value: Any, touched: Any) -> Any:
    """The fields in kube-apiserver's order: alphabetical in the objects that the patch touched, or in all of them if
    `touched` is None; else that of Go's structs."""
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
        elif name == "metadata" and isinstance(value[name], dict):
            result[name] = {part: value[name][part] for part in sorted(value[name], key=_position)}
        else:
            result[name] = value[name]
    return result


def _position(name: str) -> int:
    return _METADATA_ORDER.index(name) if name in _METADATA_ORDER else len(_METADATA_ORDER)


def _in_converter_words(why: str) -> str:
    """The same error in the words of the converter from maps: kube-apiserver does not decode JSON after a strategic
    merge."""
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


def _apply_json_patch(operations: Any, live: Tree) -> Any:
    if operations is None:
        return live
    if not isinstance(operations, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type_name(operations)} into Go value of type"
            " []handlers.jsonPatchOp"
        )
    if len(operations) > _MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise too_large(f"Request entity too large: {why}")
    for operation in operations:
        _check_operation(operation)
    try:
        return apply_json_patch(live, operations)
    except RecursionError:
        raise nested_too_deep() from None
    except JsonPatchError:
        # kube-apiserver does not say which operation failed and why, and clients match its sentence.
        message = "the server rejected our request due to an error in our request"
        raise status_error(422, "Invalid", message, details={}) from None


def _check_operation(operation: Any) -> None:
    """Refuse an operation that does not fit Go's struct; null does."""
    wrong, place = operation, "value"
    if isinstance(operation, dict):
        for name in ("op", "path", "from"):
            wrong, place = operation.get(name), f"struct field jsonPatchOp.{name}"
            if wrong is not None and not isinstance(wrong, str):
                break
        else:
            return
    elif operation is None:
        return
    kind = "handlers.jsonPatchOp" if place == "value" else "string"
    found = json_type_name(wrong)
    raise bad_request(f"error decoding patch: json: cannot unmarshal {found} into Go {place} of type {kind}")
