"""Type checks of the expressions of a policy against the kinds it matches.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go. When a policy is
created its expressions are compiled without types, so they may use any field. Afterwards a controller
(`cluster.controller_manager.validating_admission_policy_status`) checks each expression against each kind that the
constraints name, and writes what does not fit into the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.expressions.environment import Scope
from kubewright.cel import DYN, CelType, CompileError, Environment, type_of_schema
from kubewright.cel.celtypes import list_of, map_of

__all__ = ("KindsFor", "TypeWarning", "kinds_to_check", "resource_type", "type_warnings")

_MOST: Final = 10
"""At most so many kinds are checked for one rule."""
_REFERENCE: Final = "#/components/schemas/"
_INT_OR_STRING: Final = "int-or-string"
_SIMPLE: Final = frozenset(("bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint"))

KindsFor = Callable[[str, str, str], Sequence[GroupVersionKind]]
"""The kinds that a group, a version and the name of a resource stand for."""
Schema = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class TypeWarning:
    """The type errors of one expression, for all kinds."""

    path: str
    text: str


# the kinds


def kinds_to_check(constraints: Mapping[str, Any], kinds_for: KindsFor) -> list[GroupVersionKind]:
    """The kinds that `matchConstraints` name one by one, in order; wildcards and subresources name none."""
    found: set[GroupVersionKind] = set()
    for rule in constraints.get("resourceRules") or ():
        for count, kind in enumerate(_named(rule, kinds_for), 1):
            found.add(kind)
            if count == _MOST:
                return _sorted(found)
    return _sorted(found)


def _named(rule: Mapping[str, Any], kinds_for: KindsFor) -> Iterator[GroupVersionKind]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = sorted(name for name in rule.get("resources") or () if "*" not in name and "/" not in name)
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in resources:
                yield from kinds_for(group, version, resource)


def _sorted(kinds: Iterable[GroupVersionKind]) -> list[GroupVersionKind]:
    return sorted(kinds, key=lambda kind: (kind.group, kind.version, kind.kind))


# their types


def resource_type(schema: Schema, components: Callable[[str], Schema | None], name: str) -> CelType | None:
    """The type of a kind from its schema in an OpenAPI document; `components` finds what it refers to."""
    return type_of_schema(_resolved(schema, components, frozenset()), root=True, name=name)


def _resolved(schema: Schema, components: Callable[[str], Schema | None], within: frozenset[str]) -> Schema:
    """A schema with its references resolved; a reference to itself is an object without known fields."""
    reference = _reference_of(schema)
    if reference:
        if reference in within:
            return {"type": "object"}
        schema, within = components(reference) or {}, within | {reference}
    result = dict(schema)
    if result.get("properties"):
        result["properties"] = {
            name: _resolved(inner, components, within) for name, inner in result["properties"].items()
        }
    for name in ("additionalProperties", "items"):
        if isinstance(result.get(name), Mapping):
            result[name] = _resolved(result[name], components, within)
    if result.get("format") == _INT_OR_STRING:
        result["x-kubernetes-int-or-string"] = True
    return result


def _reference_of(schema: Schema) -> str:
    """The component a schema refers to; a reference may be wrapped in `allOf`, to have a description of its own."""
    for part in (schema, *(schema.get("allOf") or ())):
        if "$ref" in part:
            return str(part["$ref"]).removeprefix(_REFERENCE)
    return ""


# the warnings


def type_warnings(
    spec: Mapping[str, Any], types: Sequence[tuple[GroupVersionKind, CelType]], params: CelType | None
) -> list[TypeWarning]:
    """Check the validations of a policy and their messages against types; nothing else is checked."""
    scopes = [(kind, _environment(spec, target, params)) for kind, target in types]
    found = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for name in ("expression", "messageExpression"):
            text = validation.get(name)
            if not text:
                continue
            problems = [_line(kind, problem) for kind, scope in scopes if (problem := _problem(text, scope))]
            if problems:
                found.append(TypeWarning(f"spec.validations[{index}].{name}", "\n".join(problems)))
    return found


def _environment(spec: Mapping[str, Any], target: CelType, params: CelType | None) -> Environment:
    variables: dict[str, CelType] = {}
    for item in spec.get("variables") or ():
        text, scope = item.get("expression") or "", _scope(variables, target, params)
        try:
            variables[item["name"]] = _variable_type(scope.compile(text).type)
        except CompileError:
            variables[item["name"]] = DYN
    return _scope(variables, target, params)


def _scope(variables: Mapping[str, CelType], target: CelType, params: CelType | None) -> Environment:
    names = {**Scope().environment(variables).variables, "object": target, "oldObject": target}
    if params is not None:
        names["params"] = params
    return Environment(names)


def _variable_type(kind: CelType) -> CelType:
    """The type of a variable: DYN for objects and for types that are not JSON."""
    if kind.kind == "list":
        return list_of(_variable_type(kind.parameters[0]))
    if kind.kind == "map":
        return map_of(*(_variable_type(inner) for inner in kind.parameters))
    return CelType(kind.kind, kind.name) if kind.kind in _SIMPLE else DYN


def _problem(text: str, scope: Environment) -> str:
    try:
        scope.compile(text)
    except CompileError as error:
        return "" if error.failure else str(error)
    return ""


def _line(kind: GroupVersionKind, problem: str) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}: {problem}\n"
