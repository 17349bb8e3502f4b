"""Errors of the verbs that write, in kube-apiserver's words: mismatched types, unknown and duplicate fields, metadata.

Pure functions, called by `decode`, `patch` and `registry`. The errors of a kind itself are in its strategy.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.object_meta import path_segment_errors, validate_metadata
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.wire.decoding import read_object
from kubewright.apiserver.wire.duplicates import MAX_STRICT_ERRORS, in_text_order
from kubewright.apiserver.wire.go_json import summarize_data
from kubewright.apiserver.wire.negotiation import JSON, YAML, media_type
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, invalid
from kubewright.k8s.documents import schema_of

__all__ = (
    "as_sent",
    "check_custom_type",
    "check_patched_type",
    "kind_errors",
    "kind_mismatch",
    "metadata_errors",
    "strict_decoding_error",
    "strict_errors",
    "type_mismatch",
)

_STEPS: Final = re.compile(r"([^.\[\]]+)(?![^.\[]*\])|\[(\d+)\]")


def check_custom_type(call: Call, tree: Tree) -> None:
    """Refuse a custom resource without a kind (400) or of another kind (422)."""
    kind, body = call.resource.kind.kind, call.request.body
    if not tree.get("kind"):
        why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}' ({summarize_data(body)})"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")
    if tree["kind"] != kind and tree.get("apiVersion") == call.resource.kind.api_version:
        name = call.info.name or str((tree.get("metadata") or {}).get("name", ""))
        error = FieldError("kind", "Invalid", f"must be {kind}", tree["kind"])
        raise invalid(GroupVersionKind(call.resource.kind.group, "", str(tree["kind"])), name, [error])
    if not tree.get("apiVersion"):
        raise bad_request(type_mismatch(call.resource, "", kind))


def check_patched_type(call: Call, tree: Tree) -> None:
    """Refuse a patch that changes the type of a custom resource (422)."""
    kind = call.resource.kind
    stated = (("kind", tree.get("kind"), kind.kind), ("apiVersion", tree.get("apiVersion"), kind.api_version))
    errors = [
        FieldError(name, "Invalid", f"must be {wanted}", given)
        for name, given, wanted in stated
        if given and given != wanted
    ]
    if errors:
        group = str(tree.get("apiVersion") or "").rpartition("/")[0]
        raise invalid(GroupVersionKind(group, "", str(tree.get("kind") or "")), call.info.name, errors)


def strict_errors(call: Call, duplicates: list[str], unknown: list[str], *, is_patched: bool) -> list[str]:
    """The messages about duplicate and unknown fields, in the order in which kube-apiserver finds them.

    JSON of a built-in kind is checked while it is decoded: both kinds of errors are in the order of the text, and
    the inside of an unknown field is not checked. Everything else is decoded first and checked then; YAML is
    converted to JSON before, in alphabetical order.
    """
    unknowns = [f'unknown field "{path}"' for path in unknown]
    if is_patched or call.resource.custom or not unknowns:
        return [*duplicates, *unknowns]
    if media_type(call.request.header("content-type") or JSON) == YAML:
        return [*duplicates, *sorted(unknowns)]
    outside = [text for text in duplicates if not any(f'"{path}.' in text or f'"{path}"' in text for path in unknown)]
    return in_text_order(call.request.body, outside, unknowns)[:MAX_STRICT_ERRORS] if outside else unknowns


def metadata_errors(resource: Resource, tree: Tree, old: Tree) -> list[FieldError]:
    """The errors of the metadata of an update: `rest.BeforeUpdate` validates it for all kinds, before the strategy."""
    meta, before = tree["metadata"], old["metadata"]
    return [
        *validate_metadata(meta, namespaced=resource.namespaced, name_errors=path_segment_errors),
        *validate_metadata(meta, namespaced=resource.namespaced, name_errors=path_segment_errors, old=before),
    ]


def kind_errors(resource: Resource, errors: list[FieldError]) -> list[FieldError]:
    """The errors of the strategy; those of two kinds do not validate metadata for an update once more."""
    if resource.kind.kind not in ("EndpointSlice", "LimitRange"):
        return errors
    return [error for error in errors if error.detail != "field is immutable" or not error.path.startswith("metadata")]


def as_sent(call: Call, tree: Tree, errors: list[FieldError]) -> list[FieldError]:
    """The errors of a create or an update with empty lists and maps as the body has them.

    They are dropped before validation, which cannot tell them from nothing; Go's structs can, and its messages do.
    """
    if call.resource.custom or call.request.method == "PATCH" or all(error.value is not None for error in errors):
        return errors
    try:
        body, _ = read_object(call.request)
    except StatusError:
        return errors
    if call.info.subresource != "status":
        body.pop("status", None)  # what was sent there was reset
    return [_as_in(body, tree, error) for error in errors]


def _as_in(body: Any, tree: Tree, error: FieldError) -> FieldError:
    if error.value is not None or _at(tree, error.path) is not None:
        return error
    sent = _at(body, error.path)
    return replace(error, value=sent) if sent in ([], {}) else error


def _at(tree: Any, path: str) -> Any:
    for name, index in _STEPS.findall(path):
        if index:
            tree = tree[int(index)] if isinstance(tree, list) and int(index) < len(tree) else None
        else:
            tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def type_mismatch(resource: Resource, version: str, name: str) -> str:
    """The message about a body of another type than the URL's."""
    kind = resource.kind
    if resource.custom:
        if version != kind.api_version:
            return (
                f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
            )
        return f"the kind in the data ({name}) does not match the expected kind ({kind.kind})"
    return kind_mismatch(kind, version, name)


def kind_mismatch(kind: GroupVersionKind, version: str, name: str) -> str:
    """The message about a body of another type than a built-in kind."""
    why = f'no kind "{name}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    group, _, number = version.rpartition("/")
    if schema_of(GroupVersionKind(group, number, name)) is not None:
        package = kind.group.partition(".")[0] or "core"
        why = f"converting ({number}.{name}) to ({package}.{kind.kind}): unknown conversion"
    return f'{name} in version "{number}" cannot be handled as a {kind.kind}: {why}'


def strict_decoding_error(resource: Resource, errors: list[str]) -> str:
    """The message about unknown and duplicate fields under `fieldValidation: Strict`."""
    kind = resource.kind
    lines = [text for text in errors if text.startswith("line ")]  # of YAML, whose decoder reports all of them at once
    texts = ["\n  ".join(["yaml: unmarshal errors:", *lines])] if lines else []
    texts += [text for text in errors if not text.startswith("line ")]
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: ' + (
        ", ".join(texts)
    )
