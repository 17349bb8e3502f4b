"""Converts a v2 document to v3, for aggregated API servers that have no v3.

It follows k8s.io/kube-openapi/pkg/openapiconv/convert.go, which drops the shared parameters but keeps the references to
them. `aggregated` calls it; `swagger` is the other direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ("convert_v2_to_v3",)

Tree = dict[str, Any]
Node = Mapping[str, Any]

_VERBS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_OLD: Final = "#/definitions/"
_NEW: Final = "#/components/schemas/"
_FLOWS: Final = {"authorizationUrl": "authorizationUrl", "tokenUrl": "tokenUrl", "scopes": "scopes"}
_OF_OPERATION: Final = ("description", "externalDocs", "tags", "summary", "deprecated", "operationId")
_OF_PARAMETER: Final = ("name", "description", "in", "required", "allowEmptyValue")


def convert_v2_to_v3(document: Node) -> Tree:
    """The v3 document of a v2 document."""
    found: Tree = {"openapi": "3.0.0"}
    found.update({name: document[name] for name in ("info", "externalDocs") if document.get(name)})
    if document.get("paths") is not None:
        found["paths"] = {path: _path(item) for path, item in document["paths"].items()}
    found["components"] = _components(document)
    return found


def _components(document: Node) -> Tree:
    found: Tree = {}
    if document.get("definitions"):
        found["schemas"] = {name: _schema(schema) for name, schema in document["definitions"].items()}
    if document.get("responses"):
        produced = document.get("produces") or []
        found["responses"] = {name: _response(one, produced) for name, one in document["responses"].items()}
    if document.get("securityDefinitions"):
        found["securitySchemes"] = {name: _security(one) for name, one in document["securityDefinitions"].items()}
    return found


def _security(scheme: Node) -> Tree:
    found = {name: scheme[name] for name in ("type", "description", "name", "in") if scheme.get(name)}
    found |= _extensions(scheme)
    if scheme.get("flow"):
        found["flows"] = {scheme["flow"]: {new: scheme[old] for old, new in _FLOWS.items() if scheme.get(old)}}
    return found


def _path(item: Node) -> Tree:
    found: Tree = {verb: _operation(item[verb]) for verb in _VERBS if item.get(verb)}
    if item.get("parameters"):
        found["parameters"] = [_parameter(one) for one in item["parameters"]]
    if item.get("$ref"):
        found["$ref"] = item["$ref"]
    return found | _extensions(item)


def _operation(operation: Node) -> Tree:
    found: Tree = {name: operation[name] for name in _OF_OPERATION if operation.get(name)}
    parameters = []
    for one in operation.get("parameters") or ():
        if one.get("name") == "body" and one.get("schema") is not None:
            media = operation.get("consumes") or ()
            content = {media_type: {"schema": _schema(one["schema"])} for media_type in media}
            found["requestBody"] = {"content": content} if content else {}
        else:
            parameters.append(_parameter(one))
    if parameters:
        found["parameters"] = parameters
    produced = operation.get("produces") or []
    responses = operation.get("responses") or {}
    found["responses"] = {
        code: response if code.startswith("x-") else _response(response, produced)
        for code, response in responses.items()
    }
    return found | _extensions(operation)


def _response(response: Node, produced: list[str]) -> Tree:
    found: Tree = {"description": response["description"]} if response.get("description") else {}
    if response.get("$ref"):
        found["$ref"] = str(response["$ref"]).replace("#/responses/", "#/components/responses/", 1)
    if response.get("schema") is not None and produced:
        found["content"] = {media_type: {"schema": _schema(response["schema"])} for media_type in produced}
    return found | _extensions(response)


def _parameter(parameter: Node) -> Tree:
    found: Tree = {name: parameter[name] for name in _OF_PARAMETER if parameter.get(name)}
    if parameter.get("$ref"):
        found["$ref"] = str(parameter["$ref"]).replace("#/parameters/", "#/components/parameters/", 1)
    if parameter.get("schema") is not None:
        found["schema"] = _schema(parameter["schema"])
    else:
        simple = {name: parameter[name] for name in ("format", "uniqueItems") if parameter.get(name)}
        found["schema"] = {"type": parameter.get("type") or "", **simple}
    return found | _extensions(parameter)


def _schema(schema: Node) -> Tree:
    found: Tree = {}
    for name, value in schema.items():
        match name:
            case "$ref":
                found[name] = _NEW + value.partition(_OLD)[2] if _OLD in value else value
            case "properties":
                found[name] = {field: _schema(child) for field, child in value.items()}
            case "items" | "additionalProperties" | "additionalItems" if isinstance(value, Mapping):
                found[name] = _schema(value)
            case "items" if isinstance(value, list):
                found[name] = [_schema(child) for child in value]
            case _:
                found[name] = value
    if "$ref" in found and len(found) > 1:  # v3 ignores siblings of a $ref
        found["allOf"] = [{"$ref": found.pop("$ref")}]
    return found


def _extensions(tree: Node) -> Tree:
    return {name: value for name, value in tree.items() if name.startswith("x-")}
