"""A policy evaluated on a write: failed validations, their messages, and expressions that cannot be evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.apiserver.admission.policies.programs import Outcome, compile_policy
from kubewright.cel.library.authorization import Authorizer, Decision

OBJECT = {"metadata": {"name": "it"}, "data": {"x": "bad"}}


def run(**spec: Any) -> Outcome:
    values = {
        "object": OBJECT,
        "oldObject": None,
        "request": {"name": "it", "namespace": "here", "operation": "CREATE", "userInfo": {"username": "me"}},
        "namespaceObject": {"metadata": {"name": "here", "labels": {"a": "b"}}},
        "authorizer": Authorizer(lambda user, about: Decision(about.get("resource") == "pods")),
        "params": None,
    }
    return compile_policy(spec).run(values)


def rule(expression: str, **parts: str) -> dict[str, Any]:
    return {"validations": [{"expression": expression, **parts}]}


@pytest.mark.parametrize(
    "expression",
    [
        "object.data.x == 'bad' && oldObject == null",
        "request.namespace == 'here' && request.userInfo.username == 'me'",
        "namespaceObject.metadata.labels['a'] == 'b'",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "!authorizer.group('').resource('nodes').check('get').allowed()",
    ],
)
def test_what_holds_denies_nothing(expression: str) -> None:
    assert run(**rule(expression)) == Outcome()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "failed expression: 1 == 2"),
        ({"message": " no "}, "no"),
        ({"message": "no", "messageExpression": "'x is ' + object.data.x"}, "x is bad"),
        ({"message": "no", "messageExpression": "object.data['none'] + ''"}, "no"),
        ({"message": "no", "messageExpression": "'two\\nlines'"}, "no"),
    ],
)
def test_what_does_not_hold_is_said_in_the_best_words_there_are(parts: dict[str, str], words: str) -> None:
    (decision,) = run(**rule("1 == 2", **parts)).denied

    assert (decision.message, decision.reason) == (words, "Invalid")


def test_an_error_denies_unless_it_is_to_be_ignored() -> None:
    (decision,) = run(**rule("object.spec.y == 1")).denied

    assert decision.message == "expression 'object.spec.y == 1' resulted in error: no such key: spec"
    assert run(failurePolicy="Ignore", **rule("object.spec.y == 1")) == Outcome()


def test_an_expression_that_does_not_compile_denies() -> None:
    (decision,) = run(**rule("nope")).denied

    assert decision.message.startswith(
        "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference"
    )


def test_a_condition_that_does_not_hold_leaves_the_policy_out() -> None:
    conditions = [{"name": "a", "expression": "object.spec.y == 1"}, {"name": "b", "expression": "false"}]

    assert run(matchConditions=conditions, **rule("false")) == Outcome()


def test_variables_are_computed_once_and_only_if_they_are_needed() -> None:
    variables = [
        {"name": "x", "expression": "object.data.x"},
        {"name": "y", "expression": "variables.x + '!'"},
        {"name": "broken", "expression": "object.spec.z"},
    ]

    assert run(variables=variables, **rule("variables.y == 'bad!' && variables.y.size() == 4")) == Outcome()
    (decision,) = run(variables=variables, **rule("variables.broken == 1")).denied
    assert decision.message.endswith('composited variable "broken" fails to evaluate: no such key: spec')


def test_notes_are_kept_unless_they_are_empty() -> None:
    notes = [
        {"key": "a", "valueExpression": "' v ' + object.metadata.name"},
        {"key": "b", "valueExpression": "''"},
        {"key": "c", "valueExpression": "null"},
    ]

    assert run(auditAnnotations=notes).annotations == (("a", "v it"),)


def test_what_costs_too_much_denies() -> None:
    nested = "a + b + c + d + e + f > 0"
    for name in "fedcba":
        nested = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all({name}, {nested})"

    (decision,) = run(**rule(nested)).denied

    assert "cost" in decision.message
