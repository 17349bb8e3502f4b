"""Objects in the negotiated media type: whole, as PartialObjectMetadata or as a Table; in JSON, YAML or protobuf.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go. Get, list, every write and every event
of a watch end here. A whole object in JSON is the stored bytes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.printers import (
    cells,
    column_definitions,
    row_conditions,
    row_order,
    scale_cells,
    scale_columns,
)
from kubewright.apiserver.verbs.long_lists import LONG_LIST, LongList, respond_long_list
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import JSON
from kubewright.apiserver.wire.responses import LongResponse, Response, encode_json, object_response
from kubewright.apiserver.wire.status_errors import bad_request, status_error

__all__ = ("metadata_only", "respond_list", "respond_object", "respond_scale", "table_tree")

_META: str = "meta.k8s.io/v1"
_COPIES: Final = 1000
_ROWS: Final = 8
"""Rows and metadata take this part of the work of a conversion: kubectl's tables are not to wait for large requests."""


def metadata_only(tree: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """An object as PartialObjectMetadata."""
    kind, api_version = "PartialObjectMetadata", f"meta.k8s.io/{version}"
    return {"kind": kind, "apiVersion": api_version, "metadata": tree.get("metadata", {})}


def _check_partial_kind(call: Call, *, is_list: bool) -> None:
    """Refuse PartialObjectMetadata for a list, and PartialObjectMetadataList for an object."""
    requested, kind = call.output.as_kind, call.resource.kind
    if (requested == "PartialObjectMetadataList") == is_list:
        return
    package = kind.group.partition(".")[0] or "core"
    go_type = f"*{package}.{kind.kind}" if not call.resource.custom else "*unstructured.Unstructured"
    found = f"a list ({go_type}List)" if is_list else f"not a list ({go_type})"
    raise status_error(406, "NotAcceptable", f"you requested {requested}, but the requested object is {found}")


async def respond_object(call: Call, value: bytes, *, code: int = 200) -> Response:
    """The response with an object, given as the bytes of the call's resource."""
    output = call.output
    if not output.as_kind and output.media == JSON:
        return Response(code, value + b"\n", JSON, call.headers())
    return await off_loop(len(value), lambda: _transformed_object(call, value, code))


def _transformed_object(call: Call, value: bytes, code: int) -> Response:
    output = call.output
    tree = decode_json(value)
    if output.as_kind == "Table":
        version = tree["metadata"].get("resourceVersion")
        tree = table_tree(call.resource, [value], call.request.query.get("includeObject", ""))
        tree["metadata"] = {"resourceVersion": version} if version else {}
    elif output.as_kind:
        _check_partial_kind(call, is_list=False)
        tree = metadata_only(tree, output.version)
    return object_response(tree, output, code=code, headers=call.headers())


async def respond_list(call: Call, items: Sequence[bytes], meta: dict[str, Any]) -> Response | LongResponse:
    """The response with a list of objects; `meta` is the metadata of the list."""
    output, resource = call.output, call.resource
    size = sum(map(len, items))
    if output.as_kind:
        if size > LONG_LIST:
            return await respond_long_list(call, _long_list_of_rows(call, items, meta))
        return await off_loop(size // _ROWS, lambda: _shortened_list(call, items, meta))
    if resource.custom:
        meta = {"continue": "", **meta}
    members = {"kind": resource.list_kind, "apiVersion": resource.kind.api_version, "metadata": meta}
    # The items of a built-in list have no kind and apiVersion: those of the list are enough.
    skip = 0 if resource.custom else len(resource.prefix)
    if size > LONG_LIST:
        objects = LongList(members, items, encode=lambda item: _without_prefix(item, skip), share=_COPIES)
        return await respond_long_list(call, objects)
    if skip:
        items = [_without_prefix(item, skip) for item in items]
    body = b"".join((encode_json(members)[:-1], b',"items":[', b",".join(items), b"]}\n"))
    if output.media != JSON:
        return await off_loop(len(body), lambda: object_response(decode_json(body), output, headers=call.headers()))
    return Response(200, body, JSON, call.headers())


def _without_prefix(item: bytes, size: int) -> bytes:
    return b"{" + item[size:] if size else item


def _shortened_list(call: Call, items: Sequence[bytes], meta: dict[str, Any]) -> Response:
    output = call.output
    if output.as_kind == "Table":
        tree = table_tree(call.resource, items, call.request.query.get("includeObject", ""))
        tree["metadata"] = meta
        return object_response(tree, output, headers=call.headers())
    _check_partial_kind(call, is_list=True)
    partial = [metadata_only(decode_json(item), output.version) for item in items]
    tree = {**_partial_list(call, meta), "items": partial}
    return object_response(tree, output, headers=call.headers())


def _partial_list(call: Call, meta: dict[str, Any]) -> dict[str, Any]:
    api_version = f"meta.k8s.io/{call.output.version}"
    return {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": meta}


def _long_list_of_rows(call: Call, items: Sequence[bytes], meta: dict[str, Any]) -> LongList:
    resource, version = call.resource, call.output.version
    if call.output.as_kind != "Table":
        _check_partial_kind(call, is_list=True)
        return LongList(
            _partial_list(call, meta),
            items,
            encode=lambda item: encode_json(metadata_only(decode_json(item), version)),
            share=_ROWS,
        )
    include = call.request.query.get("includeObject", "")
    table = table_tree(resource, (), include)
    del table["rows"]
    items = row_order(resource, items, tree_of=decode_json)
    return LongList(
        {**table, "metadata": meta},
        items,
        encode=lambda item: encode_json(_row(resource, decode_json(item), include)),
        share=_ROWS,
        items_name="rows",
    )


def table_tree(resource: Resource, items: Sequence[bytes], include: str, *, columns: bool = True) -> dict[str, Any]:
    """Objects as a Table. `include` is what each row has of its object: None, Metadata (the default) or Object."""
    if include not in ("", "None", "Metadata", "Object"):
        error = FieldError("includeObject", "Invalid", "must be 'Metadata', 'Object', 'None', or empty", include)
        raise bad_request(f"Unable to convert to Table as requested: {error.message}")
    trees = row_order(resource, [decode_json(item) for item in items], tree_of=lambda tree: tree)
    rows = [_row(resource, tree, include) for tree in trees]
    definitions = column_definitions(resource) if columns else None
    return {"kind": "Table", "apiVersion": _META, "metadata": {}, "columnDefinitions": definitions, "rows": rows}


def _row(resource: Resource, tree: Tree, include: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": cells(resource, tree)}
    if conditions := row_conditions(resource, tree):
        row["conditions"] = conditions
    if include == "Object":
        row["object"] = tree
    else:
        row["object"] = None if include == "None" else metadata_only(tree)
    return row


def respond_scale(call: Call, scale: dict[str, Any]) -> Response:
    """The response with the Scale of an object."""
    output, tree = call.output, scale
    if output.as_kind == "Table":
        include = call.request.query.get("includeObject", "")
        included = {"": metadata_only(scale), "Metadata": metadata_only(scale), "Object": scale}.get(include)
        tree = {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion", "")},
            "columnDefinitions": scale_columns(call.resource),
            "rows": [{"cells": scale_cells(scale), "object": included}],
        }
    elif output.as_kind:
        tree = metadata_only(scale)
    return object_response(tree, output, headers=call.headers())
