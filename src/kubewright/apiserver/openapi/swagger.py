"""Builds the v2 document (Swagger 2.0) from all v3 documents.

Request bodies become parameters, media types move to the operation, a wrapped reference becomes a plain one, and
defaults are dropped, as kube-apiserver's v2 has none. Shared parameters are written once, under kube-apiserver's names.
`endpoints` calls it; `conversion` is the other direction.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from kubewright.apiserver.wire.responses import encode_json
from kubewright.k8s.release import KUBERNETES_MINOR_VERSION

__all__ = ("swagger_document", "swagger_schema")

Tree = dict[str, Any]
Node = Mapping[str, Any]

_VERBS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_OLD: Final = "#/definitions/"
_NEW: Final = "#/components/schemas/"
_META: Final = f"{_OLD}io.k8s.apimachinery"
# The order of media types in kube-apiserver; any other comes after, in its own order.
_MEDIA: Final = (
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_BODIES: Final = ("application/json", "application/yaml")
_NOT_SHARED: Final = ("name", "fieldValidation", "dryRun")
"""Parameters that are never shared: old clients look for them in the operation."""


def swagger_document(documents: Iterable[Node], custom_schemas: Node) -> Tree:
    """The v2 document of all v3 documents. The components of custom resources are given, already in v2."""
    paths: Tree = {}
    definitions: Tree = {}
    parameters: Tree = {}
    for document in documents:
        custom = "securitySchemes" not in document["components"]
        for path, item in document["paths"].items():
            paths[path] = _path(item, parameters, custom=custom)
        for name, schema in document["components"].get("schemas", {}).items():
            if name not in definitions and name not in custom_schemas:
                definitions[name] = swagger_schema(schema)
    definitions.update(custom_schemas)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_MINOR_VERSION},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "parameters": dict(sorted(parameters.items())),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            }
        },
        "security": [{"BearerToken": []}],
    }


def swagger_schema(schema: Node) -> Tree:
    """A v3 schema in v2."""
    found: Tree = {}
    for name, value in schema.items():
        match name:
            case "default":
                continue
            case "$ref":
                found[name] = value.replace(_NEW, _OLD)
            case "allOf" if len(value) == 1 and "$ref" in value[0]:
                found["$ref"] = value[0]["$ref"].replace(_NEW, _OLD)
            case "properties":
                found[name] = {field: swagger_schema(child) for field, child in value.items()}
            case "items" | "additionalProperties" if isinstance(value, Mapping):
                found[name] = swagger_schema(value)
            case "oneOf":  # Quantity or IntOrString: in v2 a string
                found["type"] = "string"
            case _:
                found[name] = value
    return found


def _path(item: Node, shared: Tree, *, custom: bool) -> Tree:
    found: Tree = {verb: _operation(item[verb], shared, custom=custom) for verb in _VERBS if verb in item}
    if "parameters" in item:
        found["parameters"] = [_share(_parameter(one), shared) for one in item["parameters"]]
    return found


def _operation(operation: Node, shared: Tree, *, custom: bool) -> Tree:
    body = operation.get("requestBody")
    consumed = _consumed(operation, custom=custom)
    found: Tree = {
        "description": operation["description"],
        **({"consumes": consumed} if consumed else {}),
        "produces": _produced(operation["responses"]),
        "schemes": ["https"],
        "tags": operation["tags"],
        "operationId": operation["operationId"],
    }
    parameters = [_parameter(one) for one in operation.get("parameters", ())]
    if body is not None:
        parameters.append(_body(body))
    if parameters:
        parameters.sort(key=lambda one: str(one["name"]))
        found["parameters"] = [_share(one, shared) for one in parameters]
    found["responses"] = {code: _response(response) for code, response in operation["responses"].items()}
    found.update((name, value) for name, value in operation.items() if name.startswith("x-"))
    return found


def _consumed(operation: Node, *, custom: bool) -> list[str]:
    if (body := operation.get("requestBody")) is not None:
        return _ordered(body["content"])
    if "x-kubernetes-action" not in operation:  # discovery consumes what it produces
        schema = _response(operation["responses"]["200"])["schema"]
        return _produced(operation["responses"]) if "$ref" in schema else []
    return list(_BODIES) if custom else ["*/*"]


def _produced(responses: Node) -> list[str]:
    return _ordered({media: None for response in responses.values() for media in response.get("content", ())})


def _ordered(media: Iterable[str]) -> list[str]:
    found = list(media)
    known = [one for one in _MEDIA if one in found]
    return [*known, *(one for one in found if one not in known)]


def _response(response: Node) -> Tree:
    found: Tree = {"description": response["description"]}
    for content in response.get("content", {}).values():
        if "schema" in content:
            found["schema"] = swagger_schema(content["schema"])
        break
    return found


def _body(body: Node) -> Tree:
    content = next(iter(body["content"].values()))
    found: Tree = {"name": "body", "in": "body"}
    if body.get("required"):
        found["required"] = True
    found["schema"] = swagger_schema(content["schema"])
    return found


def _parameter(parameter: Node) -> Tree:
    schema = parameter.get("schema", {})
    found: Tree = {name: schema[name] for name in ("uniqueItems", "type") if name in schema}
    found.update((name, parameter[name]) for name in ("description", "name", "in", "required") if name in parameter)
    return found


def _share(parameter: Tree, shared: Tree) -> Tree:
    """The parameter itself, or a reference to the shared one."""
    if parameter["name"] in _NOT_SHARED:
        return parameter
    if parameter["in"] == "body" and not parameter["schema"].get("$ref", "").startswith(_META):
        return parameter
    name = f"{parameter['name']}-{_digest(_go_json(parameter))}"
    shared[name] = parameter
    return {"$ref": f"#/parameters/{name}"}


def _go_json(parameter: Tree) -> bytes:
    text = encode_json(parameter)
    return text.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


@lru_cache(maxsize=1024)
def _digest(data: bytes) -> str:
    """The first six bytes of the 64-bit FNV-1 hash, which kube-openapi puts into the names of shared parameters."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF ^ byte
    return base64.urlsafe_b64encode(found.to_bytes(8, "big")[:6]).decode()
