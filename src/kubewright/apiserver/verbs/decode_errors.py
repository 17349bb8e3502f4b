"""What the verbs that write object to, and in which words: types that do not fit, fields twice, metadata.

Pure functions on trees, called by `writes` alone; what a kind itself objects to is in its rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.object_meta import path_segment_errors, validate_metadata
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.wire.decoding import field_paths
from kubewright.apiserver.wire.go_json import summarize_data
from kubewright.apiserver.wire.negotiation import JSON, YAML, media_type
from kubewright.apiserver.wire.status_errors import bad_request, invalid
from kubewright.k8s.documents import schema_of

__all__ = (
    "check_custom_type",
    "check_patched_type",
    "general_errors",
    "ill_named",
    "nulls_of",
    "own_errors",
    "put_back_nulls",
    "strict_error",
    "wrong_type",
)


def nulls_of(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where an object is null, its metadata aside."""
    for name, value in tree.items():
        if value is None:
            yield (*path, name)
        elif isinstance(value, dict) and (path or name != "metadata"):
            yield from nulls_of(value, (*path, name))


def put_back_nulls(tree: Tree, paths: Iterable[tuple[str, ...]]) -> None:
    """Have the object be null there again, unless something has come to be there."""
    for *outer, last in paths:
        node: Any = tree
        for step in outer:
            node = node.get(step) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node.setdefault(last, None)


def check_custom_type(call: Call, tree: Tree) -> None:
    """A custom object must say its kind; that it is another is a question of validity."""
    kind, body = call.resource.kind.kind, call.request.body
    if not tree.get("kind"):
        why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}' ({summarize_data(body)})"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")
    if tree["kind"] != kind and tree.get("apiVersion") == call.resource.kind.api_version:
        name = call.target.name or str((tree.get("metadata") or {}).get("name", ""))
        error = FieldError("kind", "Invalid", f"must be {kind}", tree["kind"])
        raise invalid(GroupVersionKind(call.resource.kind.group, "", str(tree["kind"])), name, [error])
    if not tree.get("apiVersion"):
        raise bad_request(wrong_type(call.resource, "", kind))


def check_patched_type(call: Call, tree: Tree) -> None:
    """What a patch makes of the type of a custom object is a question of validity."""
    kind = call.resource.kind
    said = (("kind", tree.get("kind"), kind.kind), ("apiVersion", tree.get("apiVersion"), kind.api_version))
    errors = [
        FieldError(name, "Invalid", f"must be {wanted}", given)
        for name, given, wanted in said
        if given and given != wanted
    ]
    if errors:
        group = str(tree.get("apiVersion") or "").rpartition("/")[0]
        raise invalid(GroupVersionKind(group, "", str(tree.get("kind") or "")), call.target.name, errors)


def ill_named(call: Call, repeated: list[str], unknown: list[str], *, patched: bool) -> list[str]:
    """What is said of names that stand twice, and of names nobody knows.

    JSON of a built-in kind is checked while it is read: both come as they stand there, and what is in a field nobody
    knows is passed over. Else a text is first read, then checked; YAML becomes JSON first, which is in order.
    """
    never = [f'unknown field "{path}"' for path in unknown]
    if patched or call.resource.custom or not never:
        return [*repeated, *never]
    if media_type(call.request.header("content-type") or JSON) == YAML:
        return [*repeated, *sorted(never)]
    outside = [text for text in repeated if not any(f'"{path}.' in text or f'"{path}"' in text for path in unknown)]
    return _as_they_stand(call.request.body, outside, never) if outside else never


def _as_they_stand(body: bytes, twice: list[str], never: list[str]) -> list[str]:
    left = {*twice, *never}
    seen: set[str] = set()
    said: list[str] = []
    for path in field_paths(body):
        text = f'duplicate field "{path}"' if path in seen else f'unknown field "{path}"'
        seen.add(path)
        if text in left:
            left.remove(text)
            said.append(text)
    return said


def general_errors(resource: Resource, tree: Tree, old: Tree) -> list[FieldError]:
    """What is wrong with metadata is said again on an update: by the rules of all kinds, before the kind's own."""
    meta, before = tree["metadata"], old["metadata"]
    return [
        *validate_metadata(meta, namespaced=resource.namespaced, name_errors=path_segment_errors),
        *validate_metadata(meta, namespaced=resource.namespaced, name_errors=path_segment_errors, old=before),
    ]


def own_errors(resource: Resource, errors: list[FieldError]) -> list[FieldError]:
    """What the kind itself says; of these kinds nothing that only updates may not do."""
    if resource.kind.kind not in ("EndpointSlice", "LimitRange"):
        return errors
    return [error for error in errors if error.detail != "field is immutable" or not error.path.startswith("metadata")]


def wrong_type(resource: Resource, version: str, name: str) -> str:
    """What is said of a body of another type than the URL's."""
    kind = resource.kind
    if resource.custom:
        if version != kind.api_version:
            return (
                f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
            )
        return f"the kind in the data ({name}) does not match the expected kind ({kind.kind})"
    return wrong_kind(kind, version, name)


def wrong_kind(kind: GroupVersionKind, version: str, name: str) -> str:
    """What is said of a body of another type than the built-in one that is wanted."""
    why = f'no kind "{name}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    group, _, number = version.rpartition("/")
    if schema_of(GroupVersionKind(group, number, name)) is not None:
        package = kind.group.partition(".")[0] or "core"
        why = f"converting ({number}.{name}) to ({package}.{kind.kind}): unknown conversion"
    return f'{name} in version "{number}" cannot be handled as a {kind.kind}: {why}'


def strict_error(resource: Resource, said: list[str]) -> str:
    """What is said of fields there are not, or are twice, when they are not to be let pass."""
    kind = resource.kind
    lines = [text for text in said if text.startswith("line ")]  # of YAML, which complains of all of them at once
    texts = ["\n  ".join(["yaml: unmarshal errors:", *lines])] if lines else []
    texts += [text for text in said if not text.startswith("line ")]
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: ' + (
        ", ".join(texts)
    )
