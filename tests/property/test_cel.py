"""Laws of the expression language, on arbitrary values and arbitrary text.

Covers: kubewright.cel
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.cel import (
    BOOL,
    DYN,
    INT,
    STRING,
    CompileError,
    CostExceeded,
    Environment,
    EvaluationError,
    list_of,
    type_of_schema,
)
from kubewright.cel.library.standard import number_text

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
PIECES = st.sampled_from(
    [
        *("self", ".a", ".?b", "[0]", "[?1]", "(", ")", "[", "]", "{", "}", ":", ",", "?", "1", "2u", "1.5", "'x'"),
        *("b'y'", "true", "null", "+", "-", "*", "/", "%", "==", "!=", "<", "<=", "in", "&&", "||", "!", " ", "\n"),
        *(".all(x, ", ".map(x, ", ".exists(x, ", "x", "has(", "size(", "string(", ".orValue(", "dyn(", "type("),
        *("quantity(", "ip(", ".matches(", "'['", "// c\n", "\\", "`", "é", "@", "0x", "1e9"),
    ]
)
ANY = Environment({"x": DYN, "y": DYN})
NUMBERS = Environment({"x": INT, "y": INT})
TEXTS = Environment({"x": STRING, "y": STRING})
OPERATIONS = {
    text: NUMBERS.compile(text) for text in ("x + y", "x - y", "x * y", "x / y", "x % y", "x < y", "x == y", "-x")
}


def outcome(text: str, x: int, y: int) -> Any:
    try:
        return OPERATIONS[text].evaluate({"x": x, "y": y})
    except EvaluationError as error:
        return str(error)


@given(st.lists(PIECES, max_size=12).map("".join) | TEXT)
def test_any_text_compiles_or_says_why_not(text: str) -> None:
    kind = type_of_schema({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}})
    assert kind is not None
    said = "nothing"
    try:
        program = Environment({"self": kind}).compile(text)
        assert program.estimate() >= 0
        program.evaluate({"self": {"a": [1, 2]}})
    except (CompileError, EvaluationError) as error:
        said = str(error)

    assert said


@given(INTEGERS, INTEGERS)
def test_integers_are_exact_or_overflow(x: int, y: int) -> None:
    for text, exact in (("x + y", x + y), ("x - y", x - y), ("x * y", x * y), ("-x", -x)):
        fits = -(2**63) <= exact < 2**63
        assert outcome(text, x, y) == (exact if fits else "integer overflow")
    assert outcome("x < y", x, y) is (x < y)
    assert outcome("x == y", x, y) is (x == y)


@given(INTEGERS, INTEGERS.filter(bool))
def test_division_and_remainder_belong_together(x: int, y: int) -> None:
    quotient, rest = outcome("x / y", x, y), outcome("x % y", x, y)

    if quotient == "integer overflow":
        assert (x, y) == (-(2**63), -1)
    else:
        assert quotient * y + rest == x
        assert abs(rest) < abs(y)


@given(VALUES, VALUES)
def test_equality_is_symmetric_and_reflexive(x: Any, y: Any) -> None:
    same = ANY.compile("x == y", expect=BOOL)

    assert same.evaluate({"x": x, "y": x}) is True
    assert same.evaluate({"x": x, "y": y}) is same.evaluate({"x": y, "y": x})
    assert ANY.compile("x != y").evaluate({"x": x, "y": y}) is not same.evaluate({"x": x, "y": y})


@given(TEXT, TEXT)
def test_text_functions_agree_with_each_other(x: str, y: str) -> None:
    bindings = {"x": x, "y": y}

    assert TEXTS.compile("(x + y).startsWith(x) && (x + y).endsWith(y)").evaluate(bindings) is True
    assert TEXTS.compile("x.contains(y) == (x.indexOf(y) >= 0)").evaluate(bindings) is True
    assert TEXTS.compile("x.split(y).join(y) == x").evaluate(bindings) is True
    assert TEXTS.compile("size(x) + size(y) == size(x + y)").evaluate(bindings) is True


@given(st.lists(INTEGERS, max_size=8), st.integers(-3, 3))
def test_loops_say_what_python_says(items: list[int], limit: int) -> None:
    environment = Environment({"x": list_of(INT), "n": INT})
    bindings = {"x": items, "n": limit}

    assert environment.compile("x.all(i, i > n)").evaluate(bindings) is all(i > limit for i in items)
    assert environment.compile("x.exists(i, i > n)").evaluate(bindings) is any(i > limit for i in items)
    assert environment.compile("x.filter(i, i > n)").evaluate(bindings) == [i for i in items if i > limit]
    assert environment.compile("x.sort()").evaluate(bindings) == sorted(items)
    assert environment.compile("x.map(i, i == n)").evaluate(bindings) == [i == limit for i in items]


@given(st.lists(INTEGERS, max_size=8), st.integers(0, 200))
def test_a_program_never_spends_more_than_its_budget_unnoticed(items: list[int], budget: int) -> None:
    program = Environment({"x": list_of(INT)}).compile("x.map(i, i / 2).size() >= 0")
    _, cost = program.evaluate_with_cost({"x": items})

    try:
        program.evaluate({"x": items}, budget=budget)
        assert cost <= budget
    except CostExceeded:
        assert cost > budget


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_survive_being_written(value: float) -> None:
    assert float(number_text(value)) == value


@given(st.integers(-62135596800, 253402300799), st.integers(0, 999_999_999))
def test_timestamps_survive_being_written(seconds: int, nanoseconds: int) -> None:
    program = Environment({"s": INT, "d": STRING}).compile(
        "timestamp(string(timestamp(s) + duration(d))) == timestamp(s) + duration(d)"
    )

    assert program.evaluate({"s": seconds, "d": f"{nanoseconds}ns"}) is True
