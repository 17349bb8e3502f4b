"""Builds the v3 document of a group-version of custom resources: paths, operations and schemas.

The parameters of operations are those of built-in kinds, copied from the document of Deployments, which has all of
them. Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go. `endpoints` calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.openapi.builtin import referenced
from kubewright.apiserver.openapi.names import article, model_name, operation_name
from kubewright.apiserver.openapi.schemas import VersionSchema, item_schema, list_schema
from kubewright.k8s.documents import openapi_document

__all__ = ("custom_document", "custom_paths", "list_kind_of")

Tree = dict[str, Any]

_REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_BODIES: Final = ("application/json", "application/yaml")
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_SAMPLE: Final = "/apis/apps/v1/namespaces/{namespace}/deployments"
_ACTION_WORDS: Final = {
    "get": "read",
    "put": "replace",
    "post": "create",
    "patch": "patch",
    "delete": "delete",
    "list": "list",
}
_CODES: Final = {"post": ("200", "201", "202"), "put": ("200", "201"), "delete": ("200", "202")}
_MEANINGS: Final = {"200": "OK", "201": "Created", "202": "Accepted"}
# Groups that are not in the scheme from which kube-apiserver builds these documents.
_NOT_SHARED: Final = ("admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io")


def custom_document(resources: Iterable[Resource], version_schema: Callable[[Resource], VersionSchema]) -> Tree:
    """The document of all custom resources of a group-version."""
    ordered = sorted(resources, key=lambda resource: resource.plural)
    shared = [f"{_META}{name}" for name in ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status")]
    if any("scale" in resource.subresources for resource in ordered):
        shared.append(_SCALE)
    schemas = dict(referenced(*shared))
    schemas[shared[0]] = _delete_options(schemas[shared[0]])
    paths: Tree = {}
    for resource in ordered:
        version = version_schema(resource)
        schemas[model_name(resource.kind)] = item_schema(resource.kind, version)
        schemas[model_name(list_kind_of(resource))] = list_schema(
            resource.kind, resource.list_kind, resource.plural, version
        )
        paths.update(custom_paths(resource))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def list_kind_of(resource: Resource) -> GroupVersionKind:
    """The list kind of a resource."""
    return GroupVersionKind(resource.kind.group, resource.kind.version, resource.list_kind)


def custom_paths(resource: Resource) -> Tree:
    """The paths of a custom resource."""
    root = f"/apis/{resource.kind.api_version}"
    make = _Operations(resource)
    found: Tree = {}
    base = f"{root}/{resource.plural}"
    if resource.namespaced:
        get = make.operation("list", suffix="ForAllNamespaces", namespaced=False)
        # If a path has one operation, its parameters are those of the path.
        beside = sorted([*get.pop("parameters"), _shared("pretty")], key=lambda one: str(one["name"]))
        found[base] = {"get": get, "parameters": beside}
        base = f"{root}/namespaces/{{namespace}}/{resource.plural}"
    scope = [_shared("namespace")] if resource.namespaced else []
    found[base] = {
        "get": make.operation("list"),
        "post": make.operation("post"),
        "delete": make.collection(),
        "parameters": [*scope, _shared("pretty")],
    }
    name = {**_shared("namespace"), "name": "name", "description": f"name of the {resource.kind.kind}"}
    beside = [name, *scope, _shared("pretty")]
    found[f"{base}/{{name}}"] = {
        **{verb: make.operation(verb) for verb in ("get", "put", "delete", "patch")},
        "parameters": beside,
    }
    for subresource in ("scale", "status"):
        if subresource in resource.subresources:
            found[f"{base}/{{name}}/{subresource}"] = {
                **{verb: make.operation(verb, subresource) for verb in ("get", "put", "patch")},
                "parameters": beside,
            }
    return found


class _Operations:
    """Builds the operations of one resource."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._kind = kind = resource.kind
        trimmed = kind.group.removesuffix(".k8s.io")
        self._tag = f"{operation_name(trimmed)}_{operation_name(kind.version)}"
        self._middle = operation_name(trimmed, capital=True) + operation_name(kind.version, capital=True)
        self._scope = "Namespaced" if resource.namespaced else ""

    def operation(self, verb: str, subresource: str = "", *, suffix: str = "", namespaced: bool = True) -> Tree:
        """One operation; `verb` is the value of the extension `x-kubernetes-action`."""
        kind = self._kind.kind
        scope = self._scope if namespaced else ""
        name = f"{_ACTION_WORDS[verb]}{self._middle}{scope}{kind}{subresource.capitalize()}{suffix}"
        response = (
            f"{_META}Status" if verb == "delete" else _SCALE if subresource == "scale" else model_name(self._kind)
        )
        if verb == "list":
            response = model_name(list_kind_of(self._resource))
        return self._operation(verb, self._text(verb, subresource), name, response)

    def collection(self) -> Tree:
        """The operation deletecollection."""
        kind = self._kind.kind
        name = f"delete{self._middle}Collection{self._scope}{kind}"
        return self._operation("deletecollection", f"delete collection of {kind}", name, f"{_META}Status")

    def _text(self, verb: str, subresource: str) -> str:
        of = f" {subresource} of" if subresource else ""
        word = "partially update" if verb == "patch" else _ACTION_WORDS[verb]
        between = {"list": " objects of kind ", "post": article(self._kind.kind), "delete": article(self._kind.kind)}
        return f"{word}{of}{between.get(verb, ' the specified ')}{self._kind.kind}"

    def _operation(self, verb: str, text: str, name: str, response: str) -> Tree:
        found: Tree = {
            "tags": [self._tag],
            "description": text,
            "operationId": name,
            "parameters": list(_parameters(verb)),
        }
        body = {"patch": f"{_META}Patch", "delete": f"{_META}DeleteOptions"}.get(verb, response)
        if verb in ("post", "put", "patch"):
            found["requestBody"] = {**_content(body, _PATCHES if verb == "patch" else _BODIES), "required": True}
        elif verb == "delete":
            found["requestBody"] = _content(body, _BODIES)
        found["responses"] = {
            **{
                code: {"description": _MEANINGS[code], **_content(response, _BODIES)}
                for code in _CODES.get(verb, ("200",))
            },
            "401": {"description": "Unauthorized"},
        }
        kind = self._kind
        found["x-kubernetes-action"] = verb
        found["x-kubernetes-group-version-kind"] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        return found


def _content(component: str, media: Iterable[str]) -> Tree:
    return {"content": {kind: {"schema": {"$ref": f"{_REFERENCE}{component}"}} for kind in media}}


@cache
def _sample(path: str, verb: str) -> tuple[Mapping[str, Any], ...]:
    item = openapi_document("apps/v1")["paths"][path]
    return tuple(item[verb] if verb == "parameters" else item[verb]["parameters"])


@cache
def _parameters(verb: str) -> tuple[Mapping[str, Any], ...]:
    if verb in ("list", "deletecollection"):
        return _sample(_SAMPLE, "get")
    if verb == "get":
        return tuple(one for one in _sample(_SAMPLE, "get") if one["name"] == "resourceVersion")
    return _sample(_SAMPLE if verb == "post" else f"{_SAMPLE}/{{name}}", verb)


def _shared(name: str) -> Tree:
    """A parameter of a whole path."""
    return next(dict(one) for one in _sample(_SAMPLE, "parameters") if one["name"] == name)


def _delete_options(schema: Mapping[str, Any]) -> Tree:
    kinds = schema["x-kubernetes-group-version-kind"]
    return {**schema, "x-kubernetes-group-version-kind": [one for one in kinds if one["group"] not in _NOT_SHARED]}
