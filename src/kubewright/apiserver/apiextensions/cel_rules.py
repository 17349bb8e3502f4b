"""The rules of a CustomResourceDefinition, checked on objects: `x-kubernetes-validations` anywhere in a schema.

`compile_rules` walks a schema once; the `Rules` it gives are checked on every write of an object whose schema is
otherwise fine. A rule about the old value runs only where there is one to compare with: fields and map entries by
name, items of keyed lists by their keys, nothing inside other lists. A rule that does not hold on something left
unchanged by an update is only warned of. Wording and limits are those of the API server. `check_rules` is for the
definition itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from kubewright.api.field_errors import FieldError, FieldErrorType
from kubewright.api.patches import json_equal
from kubewright.apiserver.apiextensions.cel_rule_programs import RuleProgram, compile_rule, environments, type_of_node
from kubewright.apiserver.apiextensions.cel_rule_validation import check_rules
from kubewright.cel import CALL_BUDGET, NONE, CelType, CostExceeded, EvaluationError, OptionalValue, escape_field_name
from kubewright.cel.values import from_json

__all__ = ("OBJECT_BUDGET", "Rules", "check_rules", "compile_rules")

OBJECT_BUDGET: Final = 10_000_000
"""What all rules together may cost on one object."""
_LONGEST_MESSAGE: Final = 5 * 1024
_REASONS: Final = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required",
    "FieldValueDuplicate": "Duplicate",
}
_BROKE: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


def compile_rules(schema: Mapping[str, Any]) -> Rules:
    """The rules of a version's openAPIV3Schema; without any, they find nothing wrong."""
    return Rules(_compiled(schema, root=True))


@final
@dataclass(frozen=True, slots=True)
class _Node:
    """A place in the schema with rules at it or below."""

    type: CelType | None
    word: str
    rules: tuple[RuleProgram, ...]
    properties: Mapping[str, _Node]
    entries: _Node | None
    items: _Node | None
    schema: Mapping[str, Any]


def _compiled(schema: Any, *, root: bool) -> _Node | None:
    if not isinstance(schema, Mapping):
        return None
    kind = type_of_node(schema, root=root)
    properties = {}
    for name, inner in (schema.get("properties") or {}).items():
        node = None if _hidden(kind, name) else _below(inner)
        if node is not None:
            properties[name] = node
    entries, items = _below(schema.get("additionalProperties")), _below(schema.get("items"))
    written = schema.get("x-kubernetes-validations") or ()
    programs: tuple[RuleProgram, ...] = ()
    if written and kind is not None:
        both = environments(kind)
        programs = tuple(compile_rule(each, schema, both) for each in written)
    if not (programs or properties or entries or items):
        return None
    return _Node(kind, schema.get("type", ""), programs, properties, entries, items, schema)


def _below(schema: Any) -> _Node | None:
    embedded = isinstance(schema, Mapping) and bool(schema.get("x-kubernetes-embedded-resource"))
    return _compiled(schema, root=embedded)


def _hidden(kind: CelType | None, name: str) -> bool:
    """Whether expressions cannot see a field although they could name it: then its own rules are not run either."""
    spelled = escape_field_name(name)
    fields = kind.details.fields if kind is not None and kind.details else None
    return spelled is not None and (fields is None or spelled not in fields)


@final
class Rules:
    """All rules of a schema, compiled. Immutable, and shared by all who check objects of the kind."""

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
        """What rules an object breaks; changes neither object.

        `old` is the object before an update, None for a create. What is let pass because it did not change is added
        to `warnings`.
        """
        if self._root is None:
            return []
        walk = _Walk(budget, [] if warnings is None else warnings)
        both = None if old is None else _Pair(value, old, self._root.schema)
        with contextlib.suppress(_Stopped):
            walk.node(self._root, path, value, old, _Kept(both, None))
        return walk.errors


@final
class _Stopped(Exception):
    """The budget is gone; nothing more is checked."""


@final
class _Pair:
    """A value and the one it replaces, found by following the schema."""

    __slots__ = ("_same", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: Mapping[str, Any]) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._same: bool | None = None

    def key(self, name: str) -> _Pair | None:
        """The pair at a field or entry, if it was there before."""
        if not isinstance(self.old, dict) or not isinstance(self.value, dict) or name not in self.old:
            return None
        inner = (self.schema.get("properties") or {}).get(name) or self.schema.get("additionalProperties")
        if not isinstance(inner, Mapping) or name not in self.value:
            return None
        return _Pair(self.value[name], self.old[name], inner)

    def item(self, value: Any) -> _Pair | None:
        """The pair for an item of a keyed list, if it was there before."""
        found = _KeyedItems(self.schema, self.old).get(value)
        inner = self.schema.get("items")
        if found is None or not isinstance(inner, Mapping):
            return None
        return _Pair(value, found, inner)

    def same(self) -> bool:
        """Whether nothing changed; the order of a keyed list does not count."""
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
class _Kept:
    """What can be compared at a place: the pair there, or else the nearest one above."""

    here: _Pair | None
    above: _Pair | None

    def same(self) -> bool:
        pair = self.here or self.above
        return pair is not None and pair.same()

    def key(self, name: str) -> _Kept:
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            # Both objects were converted to one version: a change could not be seen.
            return _Kept(None, None)
        return _Kept(self.here.key(name), self.here)

    def item(self, value: Any) -> _Kept:
        return self if self.here is None else _Kept(self.here.item(value), self.here)


@final
class _KeyedItems:
    """The items of a list by their keys; of a list that has none, nothing is found."""

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
        # The type belongs to the key: 1 and true are one key to Python only.
        plain = all(isinstance(value, bool | int | float | str) for value in values)
        return tuple((type(value), value) for value in values) if plain else None

    def get(self, item: Any) -> Any:
        """The item with the keys of this one, or None."""
        key = self._key(item) if self._items else None
        return None if key is None else self._items.get(key)


@final
class _Walk:
    """One check: what is left of the budget, and what was found."""

    def __init__(self, budget: int, warnings: list[str]) -> None:
        self.errors: list[FieldError] = []
        self._left = budget
        self._warnings = warnings

    def node(self, node: _Node, path: str, value: Any, old: Any, kept: _Kept) -> None:
        """A value and all inside it."""
        if value is None:
            return
        if node.rules:
            self._rules(node, path, value, old, kept)
        if isinstance(value, list) and node.items is not None:
            before = _KeyedItems(node.schema, old)
            for place, item in enumerate(value):
                self.node(node.items, f"{path}[{place}]", item, before.get(item), kept.item(item))
        elif isinstance(value, dict):
            self._entries(node, path, value, old if isinstance(old, dict) else {}, kept)

    def _entries(self, node: _Node, path: str, value: dict[str, Any], old: dict[str, Any], kept: _Kept) -> None:
        if node.entries is not None:
            for name, inner in value.items():
                self.node(node.entries, f"{path}[{name}]", inner, old.get(name), kept.key(name))
        for name, below in node.properties.items():
            if name in value:
                self.node(below, f"{path}.{name}" if path else name, value[name], old.get(name), kept.key(name))

    def _rules(self, node: _Node, path: str, value: Any, old: Any, kept: _Kept) -> None:
        if self._left <= 0:
            self._stop(path, node.word, _BROKE)
        bindings = {"self": value, "oldSelf": old}
        for rule in node.rules:
            if rule.problem:
                self._add(path, node.word, f"rule compile error: {rule.problem}")
            elif rule.program is not None and not (rule.uses_old and old is None and not rule.optional_old):
                names = _with_optional(bindings, node.type) if rule.optional_old else bindings
                if self._holds(rule, path, node.word, names) is False:
                    self._broken(node, rule, path, names, kept)

    def _holds(self, rule: RuleProgram, path: str, word: str, bindings: Mapping[str, Any]) -> bool | None:
        """Whether the rule holds; None if that could not be found out, which has been noted."""
        assert rule.program is not None
        error: EvaluationError | None = None
        value: Any = None
        try:
            value, spent = rule.program.evaluate_with_cost(bindings, CALL_BUDGET)
        except EvaluationError as caught:
            error, spent = caught, caught.spent
        if spent > self._left:
            self._stop(path, word, _BROKE)
        self._left -= spent
        if error is None:
            return value is True
        if isinstance(error, CostExceeded):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(path, word, f"'{error}': {why}: {rule.shown}")
        if str(error).startswith("no such overload"):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            self._add(path, word, f"'{error}': {why}: {rule.shown}")
        else:
            self._add(path, word, f"{error} evaluating rule: {rule.shown}")
        return None

    def _broken(self, node: _Node, rule: RuleProgram, path: str, bindings: Mapping[str, Any], kept: _Kept) -> None:
        where = f"{path}.{rule.field_path}" if path and rule.field_path else rule.field_path or path
        forgiven = not rule.uses_old and kept.same()
        detail, problem = self._message(rule, bindings)
        if problem:
            self._note(FieldError(_shown(where), "Invalid", problem, node.word), forgiven=forgiven)
            raise _Stopped
        kind = cast("FieldErrorType", _REASONS.get(rule.reason, "Invalid"))
        found = FieldError(_shown(where), kind, "" if kind == "Duplicate" else detail)
        if node.word not in ("object", "array"):
            found = FieldError(found.path, kind, found.detail, bindings["self"])
        self._note(found, forgiven=forgiven)

    def _note(self, error: FieldError, *, forgiven: bool) -> None:
        if forgiven:
            self._warnings.append(error.message)
        else:
            self.errors.append(error)

    def _message(self, rule: RuleProgram, bindings: Mapping[str, Any]) -> tuple[str, str]:
        """What to say about a broken rule, or why nothing more can be said at all."""
        if rule.message_program is None:
            return rule.message, ""
        try:
            said, spent = rule.message_program.evaluate_with_cost(bindings, CALL_BUDGET)
        except EvaluationError as error:
            said, spent = None, error.spent
            if isinstance(error, CostExceeded) and spent <= self._left:
                why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
                return "", f"{why}: {_quoted(rule.message_source)}"
        if spent > self._left:
            broke = "messageExpression evaluation failed due to running out of cost budget"
            return "", f"{broke}, no further validation rules will be run"
        self._left -= spent
        text = said.strip() if isinstance(said, str) else ""
        usable = text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE
        return (text if usable else rule.message), ""

    def _add(self, path: str, word: str, detail: str) -> None:
        self.errors.append(FieldError(_shown(path), "Invalid", detail, word))

    def _stop(self, path: str, word: str, detail: str) -> None:
        self._add(path, word, detail)
        raise _Stopped


def _with_optional(bindings: Mapping[str, Any], kind: CelType | None) -> dict[str, Any]:
    old = bindings["oldSelf"]
    if old is None or kind is None:
        return {**bindings, "oldSelf": NONE}
    return {**bindings, "oldSelf": OptionalValue(from_json(old, kind))}


def _shown(path: str) -> str:
    # The path of a whole object is no path, and Go says so.
    return path or "<nil>"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
