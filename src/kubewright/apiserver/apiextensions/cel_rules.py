"""Evaluates the validation rules of a CRD, `x-kubernetes-validations` anywhere in a schema, on objects.

`compile_rules` walks a schema once; `resource_strategy` runs the `CelValidator` on every write of an object, unless its
schema validation found errors that block it. A transition rule (with oldSelf) runs only where the old value is known:
fields and map entries correlate by name, items of map lists by their keys, and items of other lists not at all.

Ratcheting: a rule that fails on a value which the update did not change is a warning, not an error, so that a CRD with
a new rule does not block every write of objects that were stored before it. A transition rule never ratchets: it is
about the change. Messages and limits follow k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, the
correlation k8s.io/apiserver/pkg/cel/common/equality.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from kubewright.api.field_errors import FieldError, FieldErrorType
from kubewright.api.patches import json_equal
from kubewright.apiserver.apiextensions.cel_rule_programs import RuleProgram, compile_rule, environments, type_of_node
from kubewright.apiserver.apiextensions.cel_rule_validation import validate_rules
from kubewright.cel import NONE, CelType, CostExceeded, EvaluationError, OptionalValue
from kubewright.cel.environment import CALL_BUDGET
from kubewright.cel.names import escape_field_name
from kubewright.cel.values import from_json

__all__ = ("OBJECT_BUDGET", "CelValidator", "compile_rules", "validate_rules")

OBJECT_BUDGET: Final = 10_000_000
"""The cost limit of all rules on one object."""
_MAX_MESSAGE_BYTES: Final = 5 * 1024
_REASONS: Final = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required",
    "FieldValueDuplicate": "Duplicate",
}
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


def compile_rules(schema: Mapping[str, Any]) -> CelValidator:
    """The validator of the rules of an openAPIV3Schema; false if there are none."""
    with_rules: set[int] = set()
    _find_rules(schema, with_rules)
    return CelValidator(_compile(schema, with_rules, root=True))


def _find_rules(schema: Any, found: set[int]) -> bool:
    """Add the ids of the nodes with rules at or below them: the types of all others need not be known."""
    if not isinstance(schema, Mapping):
        return False
    inner = (*(schema.get("properties") or {}).values(), schema.get("additionalProperties"), schema.get("items"))
    below = [_find_rules(each, found) for each in inner]
    if not (any(below) or schema.get("x-kubernetes-validations")):
        return False
    found.add(id(schema))
    return True


@final
@dataclass(frozen=True, slots=True)
class _Node:
    """A schema node with rules at it or below it."""

    type: CelType | None
    type_name: str
    rules: tuple[RuleProgram, ...]
    properties: Mapping[str, _Node]
    entries: _Node | None
    items: _Node | None
    schema: Mapping[str, Any]


def _compile(schema: Any, with_rules: set[int], *, root: bool) -> _Node | None:
    if not isinstance(schema, Mapping) or id(schema) not in with_rules:
        return None
    kind = type_of_node(schema, root=root)
    properties = {}
    for name, inner in (schema.get("properties") or {}).items():
        node = None if _is_hidden(kind, name) else _below(inner, with_rules)
        if node is not None:
            properties[name] = node
    entries = _below(schema.get("additionalProperties"), with_rules)
    items = _below(schema.get("items"), with_rules)
    written = schema.get("x-kubernetes-validations") or ()
    programs: tuple[RuleProgram, ...] = ()
    if written and kind is not None:
        both = environments(kind)
        programs = tuple(compile_rule(each, schema, both) for each in written)
    if not (programs or properties or entries or items):
        return None
    return _Node(kind, schema.get("type", ""), programs, properties, entries, items, schema)


def _below(schema: Any, with_rules: set[int]) -> _Node | None:
    embedded = isinstance(schema, Mapping) and bool(schema.get("x-kubernetes-embedded-resource"))
    return _compile(schema, with_rules, root=embedded)


def _is_hidden(kind: CelType | None, name: str) -> bool:
    """Whether CEL cannot access a field although its name can be escaped: then its rules are not evaluated either."""
    spelled = escape_field_name(name)
    fields = kind.details.fields if kind is not None and kind.details else None
    return spelled is not None and (fields is None or spelled not in fields)


@final
class CelValidator:
    """The compiled rules of a schema. Immutable: all writes of a kind share it."""

    __slots__ = ("_root",)

    def __init__(self, root: _Node | None) -> None:
        self._root = root

    def __bool__(self) -> bool:
        return self._root is not None

    def check(
        self,
        value: Any,
        old: Any = None,
        *,
        path: str = "",
        warnings: list[str] | None = None,
        budget: int = OBJECT_BUDGET,
    ) -> list[FieldError]:
        """The errors of an object; changes neither object.

        `old` is the object before an update, None for a create. Ratcheted errors are added to `warnings`.
        """
        if self._root is None:
            return []
        evaluation = _Evaluation(budget, [] if warnings is None else warnings)
        both = None if old is None else _CorrelatedObject(value, old, self._root.schema)
        with contextlib.suppress(_StopEvaluation):
            evaluation.node(self._root, path, value, old, _Correlation(both, None))
        return evaluation.errors


@final
class _StopEvaluation(Exception):
    """The cost budget is spent: no further rule is evaluated."""


@final
class _CorrelatedObject:
    """A value and the old value it replaces, correlated by the schema; whether they are equal is computed once."""

    __slots__ = ("_same", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: Mapping[str, Any]) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._same: bool | None = None

    def key(self, name: str) -> _CorrelatedObject | None:
        """The correlated values of a field or map entry; None if there was none before."""
        if not isinstance(self.old, dict) or not isinstance(self.value, dict) or name not in self.old:
            return None
        inner = (self.schema.get("properties") or {}).get(name) or self.schema.get("additionalProperties")
        if not isinstance(inner, Mapping) or name not in self.value:
            return None
        return _CorrelatedObject(self.value[name], self.old[name], inner)

    def item(self, value: Any) -> _CorrelatedObject | None:
        """The correlated values of an item of a map list; None if there was none before."""
        found = _MapList(self.schema, self.old).get(value)
        inner = self.schema.get("items")
        if found is None or not isinstance(inner, Mapping):
            return None
        return _CorrelatedObject(value, found, inner)

    def same(self) -> bool:
        """Whether the value is unchanged; the order of a map list does not count."""
        if self._same is None:
            self._same = self._compare()
        return self._same

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if isinstance(value, dict) and isinstance(old, dict):
            if len(value) != len(old):
                return False
            return all((inner := self.key(name)) is not None and inner.same() for name in value)
        if isinstance(value, list) and isinstance(old, list) and self.schema.get("x-kubernetes-list-type") == "map":
            if len(value) != len(old):
                return False
            return all((inner := self.item(each)) is not None and inner.same() for each in value)
        return json_equal(value, old)


@final
@dataclass(frozen=True, slots=True)
class _Correlation:
    """The correlated values at a node, or else those of the nearest correlated parent.

    An item of an atomic list has no old value of its own, but if the whole list is unchanged, so is the item.
    """

    here: _CorrelatedObject | None
    above: _CorrelatedObject | None

    def same(self) -> bool:
        pair = self.here or self.above
        return pair is not None and pair.same()

    def key(self, name: str) -> _Correlation:
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            # Both objects were converted to one version, so these are always equal and say nothing.
            return _Correlation(None, None)
        return _Correlation(self.here.key(name), self.here)

    def item(self, value: Any) -> _Correlation:
        return self if self.here is None else _Correlation(self.here.item(value), self.here)


@final
class _MapList:
    """The items of a map list by their keys; empty for any other list."""

    def __init__(self, schema: Mapping[str, Any], items: Any) -> None:
        self._keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        keyed = self._keys and schema.get("x-kubernetes-list-type") == "map" and isinstance(items, list)
        self._items: dict[Any, Any] = {}
        for item in items if keyed else ():
            key = self._key(item)
            if key is not None:
                self._items.setdefault(key, item)

    def _key(self, item: Any) -> tuple[Any, ...] | None:
        if not isinstance(item, dict):
            return None
        values = tuple(item.get(key) for key in self._keys)
        # With the type, since 1 == True in Python.
        plain = all(isinstance(value, bool | int | float | str) for value in values)
        return tuple((type(value), value) for value in values) if plain else None

    def get(self, item: Any) -> Any:
        """The item with the keys of this one, or None."""
        key = self._key(item) if self._items else None
        return None if key is None else self._items.get(key)


@final
class _Evaluation:
    """One evaluation of all rules: the remaining budget and the errors."""

    def __init__(self, budget: int, warnings: list[str]) -> None:
        self.errors: list[FieldError] = []
        self._left = budget
        self._warnings = warnings

    def node(self, node: _Node, path: str, value: Any, old: Any, correlation: _Correlation) -> None:
        """Evaluate the rules on a value and everything inside it."""
        if value is None:
            return
        if node.rules:
            self._rules(node, path, value, old, correlation)
        if isinstance(value, list) and node.items is not None:
            before = _MapList(node.schema, old)
            for place, item in enumerate(value):
                self.node(node.items, f"{path}[{place}]", item, before.get(item), correlation.item(item))
        elif isinstance(value, dict):
            self._entries(node, path, value, old if isinstance(old, dict) else {}, correlation)

    def _entries(
        self, node: _Node, path: str, value: dict[str, Any], old: dict[str, Any], correlation: _Correlation
    ) -> None:
        if node.entries is not None:
            for name, inner in value.items():
                self.node(node.entries, f"{path}[{name}]", inner, old.get(name), correlation.key(name))
        for name, below in node.properties.items():
            if name in value:
                self.node(below, f"{path}.{name}" if path else name, value[name], old.get(name), correlation.key(name))

    def _rules(self, node: _Node, path: str, value: Any, old: Any, correlation: _Correlation) -> None:
        if self._left <= 0:
            self._stop(path, node.type_name, _OUT_OF_BUDGET)
        bindings = {"self": value, "oldSelf": old}
        for rule in node.rules:
            if rule.error:
                self._add(path, node.type_name, f"rule compile error: {rule.error}")
            elif rule.program is not None and not (rule.uses_old_self and old is None and not rule.optional_old_self):
                names = _with_optional(bindings, node.type) if rule.optional_old_self else bindings
                if self._evaluate(rule, path, node.type_name, names) is False:
                    self._record_failure(node, rule, path, names, correlation)

    def _evaluate(self, rule: RuleProgram, path: str, type_name: str, bindings: Mapping[str, Any]) -> bool | None:
        """Whether the rule holds; None after an evaluation error, which was recorded."""
        assert rule.program is not None
        error: EvaluationError | None = None
        value: Any = None
        try:
            value, spent = rule.program.evaluate_with_cost(bindings, CALL_BUDGET)
        except EvaluationError as caught:
            error, spent = caught, caught.spent
        if spent > self._left:
            self._stop(path, type_name, _OUT_OF_BUDGET)
        self._left -= spent
        if error is None:
            return value is True
        if isinstance(error, CostExceeded):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(path, type_name, f"'{error}': {why}: {rule.text}")
        if str(error).startswith("no such overload"):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            self._add(path, type_name, f"'{error}': {why}: {rule.text}")
        else:
            self._add(path, type_name, f"{error} evaluating rule: {rule.text}")
        return None

    def _record_failure(
        self, node: _Node, rule: RuleProgram, path: str, bindings: Mapping[str, Any], correlation: _Correlation
    ) -> None:
        where = f"{path}.{rule.field_path}" if path and rule.field_path else rule.field_path or path
        ratcheted = not rule.uses_old_self and correlation.same()
        detail, error = self._message(rule, bindings)
        if error:
            self._record(FieldError(_path_text(where), "Invalid", error, node.type_name), ratcheted=ratcheted)
            raise _StopEvaluation
        kind = cast("FieldErrorType", _REASONS.get(rule.reason, "Invalid"))
        found = FieldError(_path_text(where), kind, "" if kind == "Duplicate" else detail)
        if node.type_name not in ("object", "array"):
            found = FieldError(found.path, kind, found.detail, bindings["self"])
        self._record(found, ratcheted=ratcheted)

    def _record(self, error: FieldError, *, ratcheted: bool) -> None:
        if ratcheted:
            self._warnings.append(error.message)
        else:
            self.errors.append(error)

    def _message(self, rule: RuleProgram, bindings: Mapping[str, Any]) -> tuple[str, str]:
        """The message for a failed rule, and the error that ends the evaluation if messageExpression costs too much."""
        if rule.message_program is None:
            return rule.message, ""
        try:
            text_value, spent = rule.message_program.evaluate_with_cost(bindings, CALL_BUDGET)
        except EvaluationError as error:
            text_value, spent = None, error.spent
            if isinstance(error, CostExceeded) and spent <= self._left:
                why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
                return "", f"{why}: {_quoted(rule.message_source)}"
        if spent > self._left:
            exceeded = "messageExpression evaluation failed due to running out of cost budget"
            return "", f"{exceeded}, no further validation rules will be run"
        self._left -= spent
        text = text_value.strip() if isinstance(text_value, str) else ""
        usable = text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE_BYTES
        return (text if usable else rule.message), ""

    def _add(self, path: str, type_name: str, detail: str) -> None:
        self.errors.append(FieldError(_path_text(path), "Invalid", detail, type_name))

    def _stop(self, path: str, type_name: str, detail: str) -> None:
        self._add(path, type_name, detail)
        raise _StopEvaluation


def _with_optional(bindings: Mapping[str, Any], kind: CelType | None) -> dict[str, Any]:
    old = bindings["oldSelf"]
    if old is None or kind is None:
        return {**bindings, "oldSelf": NONE}
    return {**bindings, "oldSelf": OptionalValue(from_json(old, kind))}


def _path_text(path: str) -> str:
    # Go prints the nil path of the root as <nil>.
    return path or "<nil>"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
