"""Objects in the form a client asked for: whole, as metadata alone, or as rows of a table; JSON, YAML or protobuf.

Get, list, every write and every event of a watch end here. Whole objects in JSON are the stored bytes themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.printers import (
    cells,
    column_definitions,
    row_conditions,
    row_order,
    scale_cells,
    scale_columns,
)
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import JSON
from kubewright.apiserver.wire.responses import Response, encode_json, object_response
from kubewright.apiserver.wire.status_errors import bad_request, status_error

__all__ = ("metadata_only", "of_bytes", "of_items", "of_scale", "table_tree")

_META: str = "meta.k8s.io/v1"


def metadata_only(tree: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """An object reduced to its metadata."""
    kind, api_version = "PartialObjectMetadata", f"meta.k8s.io/{version}"
    return {"kind": kind, "apiVersion": api_version, "metadata": tree.get("metadata", {})}


def _check_number(call: Call, *, many: bool) -> None:
    """Metadata of one must be asked for as such, and of many too."""
    asked, kind = call.output.as_kind, call.resource.kind
    of_many = asked == "PartialObjectMetadataList"
    if of_many == many:
        return
    package = kind.group.partition(".")[0] or "core"
    go_type = f"*{package}.{kind.kind}" if not call.resource.custom else "*unstructured.Unstructured"
    found = f"a list ({go_type}List)" if many else f"not a list ({go_type})"
    raise status_error(406, "NotAcceptable", f"you requested {asked}, but the requested object is {found}")


def of_bytes(call: Call, value: bytes, *, code: int = 200) -> Response:
    """One object, of the call's own kind, as an answer."""
    output = call.output
    if not output.as_kind and output.media == JSON:
        return Response(code, value + b"\n", JSON, call.headers())
    tree = decode_json(value)
    if output.as_kind == "Table":
        version = tree["metadata"].get("resourceVersion")
        tree = table_tree(call.resource, [value], call.request.query.get("includeObject", ""))
        tree["metadata"] = {"resourceVersion": version} if version else {}
    elif output.as_kind:
        _check_number(call, many=False)
        tree = metadata_only(tree, output.version)
    return object_response(tree, output, code=code, headers=call.headers())


def of_items(call: Call, items: Sequence[bytes], meta: dict[str, Any]) -> Response:
    """A list as an answer; `meta` is its own metadata."""
    output, resource = call.output, call.resource
    if output.as_kind == "Table":
        tree = table_tree(resource, items, call.request.query.get("includeObject", ""))
        tree["metadata"] = meta
        return object_response(tree, output, headers=call.headers())
    if output.as_kind:
        _check_number(call, many=True)
        partial = [metadata_only(decode_json(item), output.version) for item in items]
        api_version = f"meta.k8s.io/{output.version}"
        tree = {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": meta, "items": partial}
        return object_response(tree, output, headers=call.headers())
    kind = resource.list_kind
    if resource.custom:
        meta = {"continue": "", **meta}
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        kind.encode(),
        resource.kind.api_version.encode(),
        encode_json(meta),
    )
    if not resource.custom:
        # Items of a built-in list do not say their type: the list does.
        skip = len(resource.prefix)
        items = [b"{" + item[skip:] for item in items]
    body = b"".join((head, b",".join(items), b"]}\n"))
    if output.media != JSON:
        return object_response(decode_json(body), output, headers=call.headers())
    return Response(200, body, JSON, call.headers())


def table_tree(resource: Resource, items: Sequence[bytes], include: str, *, columns: bool = True) -> dict[str, Any]:
    """Objects as a `Table`. `include` is what each row carries of its object: None, Metadata (if empty) or Object."""
    if include not in ("", "None", "Metadata", "Object"):
        error = FieldError("includeObject", "Invalid", "must be 'Metadata', 'Object', 'None', or empty", include)
        raise bad_request(f"Unable to convert to Table as requested: {error.message}")
    rows = []
    for tree in row_order(resource, [decode_json(item) for item in items]):
        row: dict[str, Any] = {"cells": cells(resource, tree)}
        if conditions := row_conditions(resource, tree):
            row["conditions"] = conditions
        if include == "Object":
            row["object"] = tree
        else:
            row["object"] = None if include == "None" else metadata_only(tree)
        rows.append(row)
    definitions = column_definitions(resource) if columns else None
    return {"kind": "Table", "apiVersion": _META, "metadata": {}, "columnDefinitions": definitions, "rows": rows}


def of_scale(call: Call, scale: dict[str, Any]) -> Response:
    """The Scale of an object as an answer."""
    output, tree = call.output, scale
    if output.as_kind == "Table":
        include = call.request.query.get("includeObject", "")
        shown = {"": metadata_only(scale), "Metadata": metadata_only(scale), "Object": scale}.get(include)
        tree = {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion", "")},
            "columnDefinitions": scale_columns(call.resource),
            "rows": [{"cells": scale_cells(scale), "object": shown}],
        }
    elif output.as_kind:
        tree = metadata_only(scale)
    return object_response(tree, output, headers=call.headers())
