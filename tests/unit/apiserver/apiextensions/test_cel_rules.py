"""Rules of a CustomResourceDefinition: on objects, on changes of objects, and on the definition itself.

The expected words are those of kube-apiserver 1.35; tests/differential/components/test_cel_rules.py asks it.
"""

from typing import Any

import pytest

from kubewright.apiserver.apiextensions.cel_rules import compile_rules, validate_rules

Schema = dict[str, Any]


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"rule": text, **more}


def schema(spec: Schema) -> Schema:
    """The schema of a kind with this spec."""
    return {"type": "object", "properties": {"spec": {"type": "object", **spec}}}


def broken(spec: Schema, value: Any, old: Any = None, **options: Any) -> list[str]:
    """What is said about an object with this spec, or about a change of it."""
    before = None if old is None else {"spec": old}
    found = compile_rules(schema(spec)).check({"spec": value}, before, **options)
    return [error.message for error in found]


N: Schema = {"properties": {"n": {"type": "integer"}}}


def test_a_schema_without_rules_has_no_errors() -> None:
    rules = compile_rules(schema(N))

    assert not rules
    assert rules.check({"spec": {"n": 1}}) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "spec: Invalid value: failed rule: self.n > 1"),
        ({"message": " too small "}, "spec: Invalid value: too small"),
        ({"message": "small", "fieldPath": ".n"}, "spec.n: Invalid value: small"),
        ({"message": "small", "reason": "FieldValueForbidden"}, "spec: Forbidden: small"),
        ({"message": "small", "reason": "FieldValueRequired"}, "spec: Required value: small"),
        ({"message": "small", "reason": "FieldValueDuplicate"}, "spec: Duplicate value"),
        ({"messageExpression": "'n is %d'.format([self.n])"}, "spec: Invalid value: n is 1"),
        ({"messageExpression": "'a\\nb'", "message": "plain"}, "spec: Invalid value: plain"),
        ({"messageExpression": "string(1 / 0)", "message": "plain"}, "spec: Invalid value: plain"),
    ],
)
def test_a_failed_rule_has_its_own_message_reason_and_path(more: dict[str, Any], message: str) -> None:
    assert broken({**N, "x-kubernetes-validations": [rule("self.n > 1", **more)]}, {"n": 1}) == [message]


def test_a_failed_rule_on_a_scalar_shows_the_value() -> None:
    spec = {"properties": {"n": {"type": "integer", "x-kubernetes-validations": [rule("self > 1", message="small")]}}}

    assert broken(spec, {"n": 1}) == ["spec.n: Invalid value: 1: small"]


def test_a_rule_on_the_whole_object_has_no_path() -> None:
    kind = {"type": "object", "x-kubernetes-validations": [rule("self.metadata.name != 'x'", message="not x")]}

    found = compile_rules(kind).check({"metadata": {"name": "x"}})

    assert [error.cause() for error in found] == [
        {"reason": "FieldValueInvalid", "message": "Invalid value: not x", "field": "<nil>"}
    ]


def test_rules_are_found_in_items_entries_and_embedded_resources() -> None:
    small = {"type": "integer", "x-kubernetes-validations": [rule("self < 5", message="large")]}
    pod = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-validations": [rule("self.kind == 'Pod' && self.metadata.name.size() < 3", message="no pod")],
    }
    spec = {
        "properties": {
            "list": {"type": "array", "items": small},
            "map": {"type": "object", "additionalProperties": small},
            "pod": pod,
        }
    }
    value = {"list": [1, 9], "map": {"a": 1, "b/c": 9}, "pod": {"kind": "Pod", "metadata": {"name": "long"}}}

    assert broken(spec, value) == [
        "spec.list[1]: Invalid value: 9: large",
        "spec.map[b/c]: Invalid value: 9: large",
        "spec.pod: Invalid value: no pod",
    ]


def test_null_is_not_checked() -> None:
    spec = {"properties": {"n": {"type": "integer", "nullable": True, "x-kubernetes-validations": [rule("false")]}}}

    assert broken(spec, {"n": None}) == []


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("self.n > 1", {}, 'spec: Invalid value: "object": no such key: n evaluating rule: self.n > 1'),
        ("1 / self.n > 1", {"n": 0}, 'spec: Invalid value: "object": division by zero evaluating rule: 1 / self.n > 1'),
        (
            "self.x + 1 > 1",
            {"x": "a"},
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator,"
            " function or macro signature for rule: self.x + 1 > 1",
        ),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_an_error_too(text: str, value: Any, message: str) -> None:
    properties = {**N["properties"], "x": {"x-kubernetes-int-or-string": True}}

    assert broken({"properties": properties, "x-kubernetes-validations": [rule(text)]}, value) == [message]


def test_a_transition_rule_runs_only_on_a_change() -> None:
    fixed = {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf", message="fixed")]}
    spec = {"properties": {"s": fixed}}

    assert broken(spec, {"s": "a"}) == []
    assert broken(spec, {"s": "a"}, {}) == []
    assert broken(spec, {"s": "a"}, {"s": "a"}) == []
    assert broken(spec, {"s": "a"}, {"s": "b"}) == ['spec.s: Invalid value: "a": fixed']


def test_an_optional_old_value_lets_a_transition_rule_run_on_create() -> None:
    text = "oldSelf.hasValue() ? self.n >= oldSelf.value().n : self.n == 1"
    spec = {**N, "x-kubernetes-validations": [rule(text, optionalOldSelf=True, message="grows from 1")]}

    assert broken(spec, {"n": 1}) == []
    assert broken(spec, {"n": 2}) == ["spec: Invalid value: grows from 1"]
    assert broken(spec, {"n": 3}, {"n": 2}) == []
    assert broken(spec, {"n": 1}, {"n": 2}) == ["spec: Invalid value: grows from 1"]


def test_items_are_compared_with_old_ones_by_their_keys() -> None:
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [rule("self.v >= oldSelf.v", message="shrinks")],
    }
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    spec = {"properties": {"list": {"type": "array", "items": item, **keyed}}}
    old = {"list": [{"name": "a", "v": 5}, {"name": "b", "v": 5}]}

    assert broken(spec, {"list": [{"name": "b", "v": 6}, {"name": "c", "v": 1}]}, old) == []
    assert broken(spec, {"list": [{"name": "b", "v": 4}]}, old) == ["spec.list[0]: Invalid value: shrinks"]


def test_an_unchanged_value_is_only_warned_of() -> None:
    small = {"type": "integer", "x-kubernetes-validations": [rule("self < 5", message="large")]}
    spec = {"properties": {"a": small, "b": small, "list": {"type": "array", "items": small}}}
    warnings: list[str] = []

    found = broken(spec, {"a": 9, "b": 9, "list": [9]}, {"a": 9, "b": 8, "list": [9]}, warnings=warnings)

    assert found == ["spec.b: Invalid value: 9: large"]
    assert warnings == ["spec.a: Invalid value: 9: large", "spec.list[0]: Invalid value: 9: large"]


def test_a_changed_atomic_list_is_not_ratcheted() -> None:
    small = {"type": "integer", "x-kubernetes-validations": [rule("self < 5", message="large")]}
    spec = {"properties": {"list": {"type": "array", "items": small}}}

    assert broken(spec, {"list": [9, 1]}, {"list": [9]}) == ["spec.list[0]: Invalid value: 9: large"]


LOOP = "self.list.all(x, self.list.all(y, x == y || true))"
TEXTS: Schema = {
    "properties": {"list": {"type": "array", "maxItems": 700, "items": {"type": "string", "maxLength": 10}}}
}


def test_a_rule_that_costs_too_much_ends_the_evaluation() -> None:
    spec = {**TEXTS, "x-kubernetes-validations": [rule(LOOP, message="loop"), rule("false", message="never")]}

    assert broken(spec, {"list": ["a" * 10] * 600}) == [
        "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation"
        " rules will be run due to call cost exceeds limit for rule: loop"
    ]


def test_rules_share_a_budget() -> None:
    spec = {**TEXTS, "x-kubernetes-validations": [*[rule("self.list.all(x, x != 'b')")] * 3, rule("false")]}
    ended = "validation failed due to running out of cost budget, no further validation rules will be run"

    assert broken(spec, {"list": ["a"] * 10}, budget=1000) == ["spec: Invalid value: failed rule: false"]
    assert broken(spec, {"list": ["a"] * 10}, budget=150) == [f'spec: Invalid value: "object": {ended}']


def test_fields_with_odd_names_have_rules_too() -> None:
    positive = {"type": "integer", "x-kubernetes-validations": [rule("self > 0")]}
    spec = {
        "properties": {"a-b": positive, "1": positive},
        "x-kubernetes-validations": [rule("self.a__dash__b != 7", message="seven")],
    }

    assert broken(spec, {"a-b": 7, "1": 0}) == [
        "spec: Invalid value: seven",
        "spec.1: Invalid value: 0: failed rule: self > 0",
    ]


def wrong(spec: Schema) -> list[tuple[str, str]]:
    """What is said about a definition: where below the spec, and what."""
    found = validate_rules(schema(spec), path="s")
    return [(error.path.removeprefix("s.properties[spec]."), error.body) for error in found]


@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        (rule(" "), "rule", "Required value: rule is not specified"),
        (rule("true", message=" "), "message", 'Invalid value: " ": must be non-empty if specified'),
        (rule("true", message="a\nb"), "message", 'Invalid value: "a\\nb": must not contain line breaks'),
        (rule("true\n"), "", ""),
        (
            rule("true &&\ntrue"),
            "message",
            "Required value: message must be specified if rule contains line breaks",
        ),
        (
            rule("true", reason="Foo"),
            "reason",
            'Unsupported value: "Foo": supported values: "FieldValueDuplicate", "FieldValueForbidden",'
            ' "FieldValueInvalid", "FieldValueRequired"',
        ),
        (rule("true", fieldPath=".x"), "fieldPath", 'Invalid value: ".x": must be a valid path'),
        (rule("true", fieldPath=".n"), "", ""),
        (
            rule("true", optionalOldSelf=True),
            "optionalOldSelf",
            "Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
    ],
)
def test_a_rule_must_be_well_formed(written: dict[str, Any], field: str, words: str) -> None:
    expected = [(f"x-kubernetes-validations[0].{field}", words)] if field else []

    assert wrong({**N, "x-kubernetes-validations": [written]}) == expected


@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        (
            rule("self.x < 1"),
            "rule",
            "compilation failed: ERROR: <input>:1:5: undefined field 'x'\n | self.x < 1\n | ....^",
        ),
        (rule("self.n"), "rule", "cel expression must evaluate to a bool"),
        (
            rule("self.n == int('x')"),
            "rule",
            "program instantiation failed: type conversion error from 'string' to 'int'",
        ),
        (rule("true", messageExpression="self.n"), "messageExpression", "messageExpression must evaluate to a string"),
    ],
)
def test_a_rule_must_compile(written: dict[str, Any], field: str, words: str) -> None:
    [(where, said)] = wrong({**N, "x-kubernetes-validations": [written]})

    shown = written["rule"].replace("<", "\\u003c")
    expression = written.get("messageExpression", "")
    assert where == f"x-kubernetes-validations[0].{field}"
    assert said == (
        f'Invalid value: {{"Rule":"{shown}","Message":"","MessageExpression":"{expression}","Reason":null,'
        f'"FieldPath":"","OptionalOldSelf":null}}: {words}'
    )


def test_old_self_cannot_be_used_inside_atomic_lists() -> None:
    item = {"type": "integer", "x-kubernetes-validations": [rule("self == oldSelf")]}
    spec = {"properties": {"list": {"type": "array", "maxItems": 5, "items": item}}}

    assert wrong(spec) == [
        (
            "properties[list].items.x-kubernetes-validations[0].rule",
            'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema'
            " within s.properties[spec].properties[list]",
        )
    ]


ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)


def test_a_rule_without_bounds_is_too_expensive() -> None:
    spec = {
        "properties": {"list": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [rule("self.list.all(x, x.startsWith('a'))")],
    }
    assert wrong(spec) == []

    spec["x-kubernetes-validations"] = [rule("self.list.all(x, x.contains('a'))")]
    place = "x-kubernetes-validations[0].rule"
    total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    together = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    assert wrong(spec) == [
        (place, f"Forbidden: estimated rule cost exceeds budget by factor of more than 100x {ADVICE}"),
        (place, f"Forbidden: {together}"),
        ("s", f"Forbidden: {total} exceeds budget by factor of more than 100x {ADVICE}"),
    ]


def test_a_rule_counts_as_often_as_its_value_can_occur() -> None:
    item = {"type": "string", "maxLength": 100, "x-kubernetes-validations": [rule("self.matches('^[a-z]+$')")]}
    spec: Schema = {"properties": {"list": {"type": "array", "maxItems": 10, "items": item}}}
    assert wrong(spec) == []

    del spec["properties"]["list"]["maxItems"]
    assert wrong(spec)[0] == (
        "properties[list].items.x-kubernetes-validations[0].rule",
        f"Forbidden: estimated rule cost exceeds budget by factor of 8.7x {ADVICE}",
    )
