"""Merges the v2 document of an aggregated API server into this server's.

`filter_by_paths` reduces a document to the paths of the server's group and version. A definition or parameter that both
documents have is shared if it is the same, and renamed (`..._v2`) if it is not; the kinds of a shared definition are
those of both. It follows k8s.io/kube-openapi/pkg/aggregator/aggregator.go. `aggregated` and `endpoints` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubewright.apiserver.openapi.references import references

__all__ = ("filter_by_paths", "merge_into")

Tree = dict[str, Any]
Node = Mapping[str, Any]

_KINDS: Final = "x-kubernetes-group-version-kind"
_DEFINITIONS: Final = "#/definitions/"
_PARAMETERS: Final = "#/parameters/"


def filter_by_paths(document: Node, wanted: Callable[[str], bool]) -> Tree:
    """A document with some of its paths, and without the definitions that only the other paths use."""
    paths = {path: item for path, item in (document.get("paths") or {}).items() if wanted(path)}
    before, now = _used_definitions(document), _used_definitions({**document, "paths": paths})
    definitions = {
        name: schema
        for name, schema in (document.get("definitions") or {}).items()
        if name in now or name not in before
    }
    return {**document, "paths": paths, "definitions": definitions}


def merge_into(whole: Tree, document: Node) -> None:
    """Add a document to `whole`, which is changed; paths that it has already stay."""
    paths, known = document.get("paths") or {}, whole["paths"]
    if not any(path not in known for path in paths):
        return
    if any(path in known for path in paths):
        document = filter_by_paths(document, lambda path: path not in known)
    source: Tree = {
        "paths": document["paths"],
        "definitions": document.get("definitions") or {},
        "parameters": document.get("parameters") or {},
    }
    for group, prefix, same in (
        ("definitions", _DEFINITIONS, _is_same_definition),
        ("parameters", _PARAMETERS, lambda one, other: one == other),
    ):
        names = _new_names(whole[group], source[group], same)
        if names:
            source = _rename_references(source, {prefix + old: prefix + new for old, new in names.items()})
            source[group] = {names.get(name, name): value for name, value in source[group].items()}
    for name, schema in source["definitions"].items():
        if name in whole["definitions"]:
            whole["definitions"][name] = _with_kinds(whole["definitions"][name], schema)
        else:
            whole["definitions"][name] = schema
    for name, parameter in source["parameters"].items():
        whole["parameters"].setdefault(name, parameter)
    known.update(source["paths"])


# references


def _used_definitions(document: Node) -> set[str]:
    """The names of the definitions that the paths of a document refer to."""
    definitions, parameters = document.get("definitions") or {}, document.get("parameters") or {}
    seen: set[str] = set()
    waiting = list(references(document.get("paths") or {}))
    while waiting:
        reference = waiting.pop()
        if reference in seen:
            continue
        seen.add(reference)
        if reference.startswith(_DEFINITIONS):
            waiting += references(definitions.get(reference.removeprefix(_DEFINITIONS)))
        elif reference.startswith(_PARAMETERS):
            waiting += references(parameters.get(reference.removeprefix(_PARAMETERS)))
    return {one.removeprefix(_DEFINITIONS) for one in seen if one.startswith(_DEFINITIONS)}


def _rename_references(tree: Any, names: Mapping[str, str]) -> Any:
    """A copy with references to the new names."""
    if isinstance(tree, Mapping):
        return {
            key: names.get(value, value)
            if key == "$ref" and isinstance(value, str)
            else _rename_references(value, names)
            for key, value in tree.items()
        }
    return [_rename_references(item, names) for item in tree] if isinstance(tree, list) else tree


# names


def _new_names(known: Node, source: Node, same: Callable[[Any, Any], bool]) -> dict[str, str]:
    """New names for what both documents have and differ in; an earlier new name for the same is used again."""
    found: dict[str, str] = {}
    taken = set(known)
    for name, value in source.items():
        if name not in known or same(known[name], value):
            continue
        number = 2
        while (new := f"{name}_v{number}") in known and not same(known[new], value):
            number += 1
        if new not in known:
            while (new := f"{name}_v{number}") in taken or new in source:
                number += 1
            taken.add(new)
        found[name] = new
    return found


def _is_same_definition(one: Node, other: Node) -> bool:
    return one == other or {**one, _KINDS: None} == {**other, _KINDS: None}


def _with_kinds(schema: Node, other: Node) -> Node:
    kinds, more = schema.get(_KINDS), other.get(_KINDS)
    if not more or kinds == more:
        return schema
    if not kinds:
        return {**schema, _KINDS: more}
    new = [kind for kind in more if kind not in kinds]
    return {**schema, _KINDS: sorted((*kinds, *new), key=_kind_key)} if new else schema


def _kind_key(kind: Node) -> str:
    return f"{kind.get('group')}/{kind.get('version')}.{kind.get('kind')}"
