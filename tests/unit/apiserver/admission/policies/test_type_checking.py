"""The kinds a policy is type-checked against, and the warnings about expressions that do not fit them."""

from __future__ import annotations

from typing import Any

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.policies.type_checking import (
    TypeWarning,
    kinds_to_check,
    resource_type,
    type_warnings,
)

SHOP = GroupVersionKind("example.io", "v1", "Shop")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"description": "wrapped", "allOf": [{"$ref": "#/components/schemas/Spec"}]},
    },
}
COMPONENTS: dict[str, dict[str, Any]] = {
    "Spec": {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
            "more": {"type": "array", "items": {"$ref": "#/components/schemas/Spec"}},
        },
    }
}


def rule(*resources: str, group: str = "example.io", version: str = "v1") -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": [version], "resources": list(resources)}


def kind_of(group: str, version: str, resource: str) -> list[GroupVersionKind]:
    return [] if resource == "none" else [GroupVersionKind(group, version, resource.title())]


def kinds(*rules: dict[str, Any]) -> list[str]:
    return [kind.kind for kind in kinds_to_check({"resourceRules": list(rules)}, kind_of)]


def said(text: str, **spec: Any) -> list[TypeWarning]:
    shop = resource_type(SCHEMA, COMPONENTS.get, "Shop")
    assert shop is not None
    return type_warnings({"validations": [{"expression": text}], **spec}, [(SHOP, shop)], None)


def test_only_what_is_named_is_checked() -> None:
    assert kinds(rule("b", "a", "b/scale", "*", "none")) == ["A", "B"]
    assert kinds(rule("a", group="*"), rule("a", version="*")) == []
    assert kinds() == []


def test_ten_kinds_of_a_rule_end_it_for_all() -> None:
    names = [f"k{number:02}" for number in range(12)]

    assert kinds(rule("first"), rule(*names), rule("last")) == ["First", *(name.title() for name in names[:10])]


def test_an_expression_that_does_not_fit_is_shown_with_its_kind() -> None:
    (warning,) = said("object.spec.nope == 1")

    assert warning.path == "spec.validations[0].expression"
    assert warning.text == (
        "example.io/v1, Kind=Shop: ERROR: <input>:1:12: undefined field 'nope'\n"
        " | object.spec.nope == 1\n"
        " | ...........^\n"
    )


def test_a_type_within_itself_has_no_fields() -> None:
    assert not said("object.spec.more.all(each, each == each) && object.spec.port == 1")
    assert "undefined field 'size'" in said("object.spec.more[0].size == 1")[0].text


def test_a_variable_that_does_not_fit_may_be_anything() -> None:
    wrong = {"name": "wrong", "expression": "object.nope"}
    size = {"name": "size", "expression": "object.spec.size"}

    assert not said("variables.wrong.any == 1", variables=[wrong])
    assert "(int, string)" in said("variables.size == 'x'", variables=[wrong, size])[0].text
