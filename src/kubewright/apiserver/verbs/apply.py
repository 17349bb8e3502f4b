"""Server-side apply: merges the object in the body into the live one, or creates it.

kube-apiserver: `applyPatcher` in staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go. The body is YAML, of
which JSON is a part. It must state its type and may have no managed fields. Which fields a manager owns, and which
managers conflict, is decided in `managedfields`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, final

from kubewright._base.yaml import TooManyValuesError, load
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.kinds.system_metadata import meta_of
from kubewright.apiserver.verbs.create import CreateHandler
from kubewright.apiserver.verbs.decode import check_name, clear_version, normalize
from kubewright.apiserver.verbs.field_tracking import track_apply
from kubewright.apiserver.verbs.registry import OPTIMISTIC_LOCK_ERROR, Registry
from kubewright.apiserver.verbs.update import MAX_RETRIES, UpdateHandler
from kubewright.apiserver.wire.decoding import decode_json, go_yaml_error
from kubewright.apiserver.wire.duplicates import duplicate_fields
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, conflict, not_found
from kubewright.apiserver.wire.value_limits import MAX_VALUES, check_json_values, too_many_values

__all__ = ("ApplyHandler", "decode_applied")


@final
class ApplyHandler:
    """Applies objects in a registry."""

    def __init__(self, registry: Registry, creates: CreateHandler, updates: UpdateHandler) -> None:
        self._registry = registry
        self._creates = creates
        self._updates = updates

    async def apply(self, call: Call, options: WriteOptions) -> Response:
        """Apply the object in the body; again to what is there then if somebody else wrote it meanwhile."""
        resource = call.resource
        for _ in range(MAX_RETRIES):
            applied = await off_loop(call.size, lambda: decode_applied(call, options))
            entry = self._registry.find(call)
            if entry is None:
                return await self._create(call, applied, options)
            old = await resource.tree_of(entry)
            live = await resource.tree_of(entry)  # decoded once more: the result shares parts with it
            tree = await self._merge(call, live, applied, options)
            version = meta_of(applied).get("resourceVersion")
            meta_of(tree)["resourceVersion"] = version or old["metadata"]["resourceVersion"]
            response = await self._updates.update_object(call, entry, old, tree, options, is_tracked=True)
            if response is not None:
                return response
        raise conflict(resource.group_resource, call.info.name, OPTIMISTIC_LOCK_ERROR)

    async def _create(self, call: Call, applied: Tree, options: WriteOptions) -> Response:
        resource = call.resource
        if call.info.subresource:
            raise not_found(resource.group_resource, call.info.name)
        tree = await self._merge(call, None, applied, options)
        meta = meta_of(tree)
        check_name(call, meta)
        if meta.get("uid"):
            why = f"the provided object specified uid {meta['uid']}, and no existing object was found"
            raise conflict(resource.group_resource, call.info.name, f"uid mismatch: {why}")
        clear_version(meta, options)
        return await self._creates.create_object(call, tree, options, is_tracked=True)

    async def _merge(self, call: Call, live: Tree | None, applied: Tree, options: WriteOptions) -> Tree:
        tree = await track_apply(call, live, applied, options, self._registry.clock.now())
        await off_loop(call.size, lambda: _normalize(call, tree, options))
        return tree


def _normalize(call: Call, tree: Tree, options: WriteOptions) -> None:
    # A map or a list that an apply has emptied is null; normalizing drops nulls, a custom resource keeps them.
    nulls = list(_null_paths(tree)) if call.resource.custom else []
    normalize(call, tree, options, [])
    _restore_nulls(tree, nulls)


def _null_paths(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of the nulls of an object, its metadata aside."""
    for name, value in tree.items():
        if value is None:
            yield (*path, name)
        elif isinstance(value, dict) and (path or name != "metadata"):
            yield from _null_paths(value, (*path, name))


def _restore_nulls(tree: Tree, paths: Iterable[tuple[str, ...]]) -> None:
    """Set these paths to null again, unless they have got a default."""
    for *outer, last in paths:
        node: Any = tree
        for step in outer:
            node = node.get(step) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node.setdefault(last, None)


def decode_applied(call: Call, options: WriteOptions) -> Tree:
    """The object in the body, without anything filled in: only what a manager applies becomes its own."""
    duplicates: list[str] = []
    tree = _parse(call.request.body, duplicates)
    if duplicates and options.validation == "Strict":
        lines = "\n".join(f"  {text}" for text in duplicates)
        why = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        raise bad_request(f"error strict decoding YAML: {why}")
    if options.validation == "Warn":
        for text in duplicates:
            call.warn(text)
    kind = call.resource.kind
    api_version, name = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
    if api_version != kind.api_version or name != kind.kind:
        group, slash, version = api_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}{slash or '/'}{version}, Kind={name}")
    if tree.get("metadata") is not None and not isinstance(tree["metadata"], dict):
        # kube-apiserver has a 500 with more words.
        raise bad_request("failed to create typed patch object: .metadata: expected map")
    meta = meta_of(tree)
    if meta.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if meta.get("name"):
        check_name(call, meta)
    namespace = meta.get("namespace")
    if namespace and not call.namespace:  # ignored for a cluster-scoped kind
        del meta["namespace"]
    elif namespace and namespace != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return tree


def _parse(body: bytes, duplicates: list[str]) -> Tree:
    """The body as a tree. JSON with duplicate fields is parsed as YAML too, whose parser reports where they are."""
    try:
        if body.lstrip()[:1] == b"{":
            check_json_values(body)
        tree = decode_json(body)
        if duplicate_fields(body, tree):
            load(body, repeated=duplicates)
    except StatusError as error:
        if error.code == 413:
            raise
        try:
            tree = load(body, repeated=duplicates, max_values=MAX_VALUES)
        except TooManyValuesError:
            raise too_many_values() from None
        except (ValueError, RecursionError) as exc:
            raise bad_request(f"error decoding YAML: error converting YAML to JSON: {go_yaml_error(exc)}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal"
            f" {json_type_name(tree)} into Go value of type map[string]interface {{}}"
        )
    return tree
