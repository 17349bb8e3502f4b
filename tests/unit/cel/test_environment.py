"""Compiling and running expressions: what is expected, what may be named, what it may cost."""

from typing import Any

import pytest

from kubewright.cel import (
    BOOL,
    DYN,
    INT,
    NONE,
    STRING,
    CelType,
    CompileError,
    CostExceeded,
    Environment,
    EvaluationError,
    OptionalValue,
    list_of,
    map_of,
    optional_of,
)
from kubewright.cel.library.authorization import AUTHORIZER, Authorizer, Decision
from kubewright.errors import DecodeError


def value(text: str, /, bind: bool = False, **bindings: Any) -> Any:
    """An expression's value, its variables dynamic."""
    return Environment(dict.fromkeys(bindings, DYN), bind=bind).compile(text).evaluate(bindings)


def test_a_program_runs_on_other_bindings_each_time() -> None:
    program = Environment({"x": INT}).compile("x * x", expect=INT)

    assert [program.evaluate({"x": x}) for x in (2, 3, 4)] == [4, 9, 16]


def test_another_type_than_expected_is_refused() -> None:
    with pytest.raises(CompileError, match="expected type 'bool' but found 'int'"):
        Environment({}).compile("1 + 1", expect=BOOL)


def test_what_is_not_declared_cannot_be_named() -> None:
    with pytest.raises(CompileError) as caught:
        Environment({"x": INT}).compile("x + y")

    assert str(caught.value) == (
        "ERROR: <input>:1:5: undeclared reference to 'y' (in container '')\n | x + y\n | ....^"
    )
    assert isinstance(caught.value, DecodeError)


def test_all_issues_are_told_in_the_order_of_the_text() -> None:
    with pytest.raises(CompileError) as caught:
        Environment({}).compile("a ||\n  b || 'x' == 1")

    assert [line for line in str(caught.value).splitlines() if line.startswith("ERROR")] == [
        "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')",
        "ERROR: <input>:2:3: undeclared reference to 'b' (in container '')",
        "ERROR: <input>:2:12: found no matching overload for '_==_' applied to '(string, int)'",
    ]


def test_the_mark_stands_below_wide_characters() -> None:
    with pytest.raises(CompileError) as caught:
        Environment({}).compile("'é' + x")

    assert str(caught.value).splitlines()[-1] == " | .\uff0e....^"


def test_a_binding_that_is_missing_is_said() -> None:
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): x"):
        Environment({"x": INT}).compile("x").evaluate({})


def test_a_budget_ends_an_evaluation_that_costs_more() -> None:
    program = Environment({"x": list_of(INT)}).compile("x.all(i, x.all(j, i + j > 0))")

    assert program.evaluate({"x": [1] * 10}) is True
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate({"x": [1] * 10}, budget=100)


def test_an_error_says_what_was_spent_until_then() -> None:
    program = Environment({"x": INT}).compile("1 / x")

    with pytest.raises(EvaluationError) as caught:
        program.evaluate_with_cost({"x": 0})
    assert caught.value.spent == 2


def test_no_evaluation_outlives_the_default_budget() -> None:
    program = Environment({"x": list_of(INT)}).compile("x.map(i, x.map(j, x.map(k, i + j + k)))")

    with pytest.raises(CostExceeded):
        program.evaluate({"x": list(range(1000))})


def test_names_are_bound_only_where_that_is_allowed() -> None:
    assert value("cel.bind(y, x + 1, y * y)", bind=True, x=2) == 9
    with pytest.raises(CompileError, match="undeclared reference to 'cel'"):
        Environment({"x": INT}).compile("cel.bind(y, x + 1, y * y)")


def test_a_program_knows_which_variables_it_uses() -> None:
    program = Environment({"self": INT, "oldSelf": INT}).compile("[1].all(x, x < oldSelf)")

    assert program.uses("oldSelf")
    assert not program.uses("self")


def test_an_optional_variable_is_asked_first() -> None:
    program = Environment({"old": optional_of(INT)}).compile("old.hasValue() ? old.value() : -1")

    assert program.evaluate({"old": OptionalValue(5)}) == 5
    assert program.evaluate({"old": NONE}) == -1


def test_values_are_never_changed() -> None:
    given = {"a": [1, 2], "m": {"k": 1}}

    assert value("(x.a + [3]).size() == 3 && x.a.map(i, i + 1).size() == 2 && x.m == {'k': 1}", x=given) is True
    assert given == {"a": [1, 2], "m": {"k": 1}}


def test_null_among_objects_is_an_error_not_a_crash() -> None:
    kind = CelType("object", "thing")
    program = Environment({"x": list_of(kind)}).compile("x.map(i, i)", expect=list_of(kind))

    assert program.evaluate({"x": [None]}) == [None]
    with pytest.raises(EvaluationError, match="no such overload"):
        Environment({"x": map_of(STRING, map_of(STRING, INT))}).compile("x.a.b").evaluate({"x": {"a": None}})


def test_deep_nesting_is_refused_not_suffered() -> None:
    with pytest.raises(CompileError, match="expression recursion limit exceeded: 250"):
        Environment({}).compile("(" * 400 + "1" + ")" * 400)


@pytest.mark.parametrize("text", ["+".join(["1"] * 300), "'a'" + ".trim()" * 300, "x" + "[0]" * 300])
def test_long_chains_of_operators_are_refused(text: str) -> None:
    with pytest.raises(CompileError, match="max recursion depth exceeded"):
        Environment({"x": DYN}).compile(text)


def test_a_long_chain_of_choices_is_fine() -> None:
    assert value("".join(f"x == {number} ? {number} : " for number in range(100)) + "-1", x=77) == 77


def test_long_chains_of_conditions_are_fine() -> None:
    assert value(" && ".join(["x"] * 5000), x=True) is True


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (
            "authorizer.group('apps').resource('deployments').namespace('shop').name('web').check('get').allowed()",
            (None, {"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web", "verb": "get"}),
        ),
        ("authorizer.path('/healthz').check('get').allowed()", (None, {"path": "/healthz", "verb": "get"})),
        (
            "authorizer.serviceAccount('shop', 'web').group('').resource('pods').subresource('log')"
            ".labelSelector('a=b').check('list').allowed()",
            (
                "system:serviceaccount:shop:web",
                {"group": "", "resource": "pods", "subresource": "log", "labelSelector": "a=b", "verb": "list"},
            ),
        ),
    ],
)
def test_an_authorizer_is_asked_for_exactly_what_was_built(text: str, asked: tuple[Any, Any]) -> None:
    heard = []

    def decide(user: str | None, attributes: Any) -> Decision:
        heard.append((user, dict(attributes)))
        return Decision(allowed=True)

    program = Environment({"authorizer": AUTHORIZER}).compile(text, expect=BOOL)

    assert program.evaluate({"authorizer": Authorizer(decide)}) is True
    assert heard == [asked]


def test_two_authorization_checks_are_affordable_and_three_are_not() -> None:
    check = "authorizer.path('/x').check('get').allowed()"
    bindings = {"authorizer": Authorizer(lambda user, attributes: Decision(allowed=True, reason="why"))}
    environment = Environment({"authorizer": AUTHORIZER})

    assert environment.compile(f"{check} && {check}").evaluate(bindings) is True
    with pytest.raises(CostExceeded):
        environment.compile(f"{check} && {check} && {check}").evaluate(bindings)
