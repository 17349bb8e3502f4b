"""What selectors promise. The tables were printed by k8s.io/apimachinery 0.35."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubewright.api.selectors import (
    FieldSelector,
    FieldTerm,
    Requirement,
    Selector,
    StructuredSelector,
)
from kubewright.errors import DecodeError

# fmt: off
PRINTED = (
    ("", ""), ("a=b", "a=b"), ("a==b", "a==b"), ("a!=b", "a!=b"), ("a", "a"), ("!a", "!a"),
    ("a in (x,y)", "a in (x,y)"), ("a in (y,x)", "a in (x,y)"), ("a notin (z)", "a notin (z)"),
    ("a notin ()", "a notin ()"), ("a in (,)", "a in ()"), ("a in (x,,y)", "a in (,x,y)"),
    ("a in (x,)", "a in (,x)"), ("i>1", "i>1"), ("j<5", "j<5"), ("z=1,a=2", "a=2,z=1"),
    ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"), ("a=", "a="), ("a==", "a=="),
    ("a!=", "a!="), ("a=,b=c", "a=,b=c"), (" a = b , c ", "a=b,c"), ("in", "in"), ("notin", "notin"),
    ("in in (in)", "in in (in)"), ("a in (in,notin)", "a in (in,notin)"), ("in=notin", "in=notin"),
    ("!in", "!in"), ("a,a=1,a!=2", "a,a=1,a!=2"), ("b,a", "a,b"), ("a\tin\n(x)", "a in (x)"),
    ("example.com/a=b", "example.com/a=b"), ("a.b-c_d=e", "a.b-c_d=e"), ("a=x.y_z-1", "a=x.y_z-1"),
    ("a <1", "a<1"), ("a< 1", "a<1"), (" ", ""),
)

REFUSED = (
    ("a>b", "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"),  # noqa: E501
    ("a>1.5", "unable to parse requirement: values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer"),  # noqa: E501
    ("a in in", "unable to parse requirement: found 'in' expected: '('"),
    ("/a=b", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty"),
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ("a=b=c", "found '=', expected: ',' or 'end of string'"),
    ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
    ("=b", "found '=', expected: !, identifier, or 'end of string'"),
    ("a,", "found '', expected: identifier after ','"),
    ("a,,b", "found ',', expected: identifier after ','"),
    (",a", "found ',', expected: !, identifier, or 'end of string'"),
    ("a in x", "unable to parse requirement: found 'x' expected: '('"),
    ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
    ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
    ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
    ("a in )", "unable to parse requirement: found ')' expected: '('"),
    ("!a=b", "found '=', expected: ',' or 'end of string'"),
    ("!!a", "unable to parse requirement: found '!', expected: identifier"),
    ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
    ("a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "unable to parse requirement: values[0][a]: Invalid value: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": must be no more than 63 bytes"),  # noqa: E501
    ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx=a", "unable to parse requirement: <nil>: Invalid value: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": name part must be no more than 63 bytes"),  # noqa: E501
    ("a,!", "unable to parse requirement: found '', expected: identifier"),
    ("!", "unable to parse requirement: found '', expected: identifier"),
    ("a in", "unable to parse requirement: found '' expected: '('"),
    ("a<", "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer"),  # noqa: E501
    ("a>=1", "unable to parse requirement: found '=', expected: identifier"),
    ("a=>1", "unable to parse requirement: found '>', expected: identifier"),
    ("a===b", "unable to parse requirement: found '=', expected: identifier"),
    ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
    ("a(", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
    ("(", "found '(', expected: !, identifier, or 'end of string'"),
    (")", "found ')', expected: !, identifier, or 'end of string'"),
    ("i>9223372036854775808", "unable to parse requirement: values[0]: Invalid value: \"9223372036854775808\": for 'Gt', 'Lt' operators, the value must be an integer"),  # noqa: E501
    ("<nothing>", "found '<', expected: !, identifier, or 'end of string'"),
)

FIELDS_PRINTED = (
    ("", ""), ("metadata.name=x", "metadata.name=x"), ("metadata.name==x", "metadata.name=x"),
    ("status.phase!=Running", "status.phase!=Running"),
    ("metadata.name=x,status.phase!=Running", "metadata.name=x,status.phase!=Running"),
    ("z=1,a=2", "a=2,z=1"), ("a=b\\,c", "a=b\\,c"), ("a=b\\=c", "a=b\\=c"), ("a=b\\\\", "a=b\\\\"),
    ("=b", "=b"), ("a=", "a="), ("a!=", "a!="), (",a=b,", "a=b"), ("a=b,,c=d", "a=b,c=d"),
    ("a = b", "a = b"), ("!=x", "!=x"), ("\u00e9=\u00fc", "\u00e9=\u00fc"), ("a!b=c", "a!b=c"),
)

FIELDS_REFUSED = (
    ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ("a=b\\x", "invalid field selector: invalid escape sequence: \\x"),
    ("a", "invalid selector: 'a'; can't understand 'a'"),
    ("a,b=c", "invalid selector: 'a,b=c'; can't understand 'a'"),
)
# fmt: on


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_label_selectors_print_as_kubernetes_prints_them(text: str, printed: str) -> None:
    assert printed == str(Selector.parse(text))


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_bad_label_selectors_are_refused_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Selector.parse(text)

    assert message == str(caught.value)


def test_a_bad_key_names_the_rule() -> None:
    with pytest.raises(DecodeError) as caught:
        Selector.parse("-a=b")

    assert str(caught.value) == (
        'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters, '
        "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
        "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    )


def test_several_errors_are_reported_together() -> None:
    with pytest.raises(DecodeError) as caught:
        Requirement("-a", "gt", ("-x",))

    message = str(caught.value)
    assert message.startswith('[key: Invalid value: "-a": name part must')
    assert "values[0]: Invalid value: \"-x\": for 'Gt', 'Lt' operators, the value must be an integer" in message
    assert 'values[0][-a]: Invalid value: "-x": a valid label must be' in message


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        ("in", (), "for 'in', 'notin' operators, values set can't be empty"),
        ("=", ("a", "b"), "exact-match compatibility requires one single value"),
        ("exists", ("a",), "values set must be empty for exists and does not exist"),
        ("lt", ("1", "2"), "for 'Gt', 'Lt' operators, exactly one value is required"),
        ("like", ("a",), 'operator: Unsupported value: "like"'),
    ],
)
def test_requirements_have_the_right_number_of_values(operator: Any, values: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Requirement("a", operator, values)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("a=b", [{"a": "b"}, {"a": "b", "c": "d"}], [{}, {"a": "c"}, {"b": "a"}]),
        ("a==b", [{"a": "b"}], [{"a": "c"}]),
        ("a!=b", [{}, {"a": "c"}], [{"a": "b"}]),
        ("a", [{"a": ""}, {"a": "x"}], [{}, {"b": "a"}]),
        ("!a", [{}, {"b": "a"}], [{"a": ""}]),
        ("a in (x,y)", [{"a": "x"}, {"a": "y"}], [{}, {"a": "z"}]),
        ("a notin (x,y)", [{}, {"a": "z"}], [{"a": "x"}]),
        ("a in ()", [{"a": ""}], [{}, {"a": "x"}]),
        ("a>1", [{"a": "2"}, {"a": "10"}], [{}, {"a": "1"}, {"a": "x"}, {"a": ""}]),
        ("a<1", [{"a": "0"}, {"a": "-5"}], [{}, {"a": "1"}, {"a": "9223372036854775808"}]),
        ("a=b,c", [{"a": "b", "c": ""}], [{"a": "b"}, {"c": ""}]),
        ("", [{}, {"a": "b"}], []),
        ("a,!a", [], [{}, {"a": ""}]),
    ],
)
def test_label_selectors_match(text: str, matching: list[dict[str, str]], others: list[dict[str, str]]) -> None:
    selector = Selector.parse(text)

    assert all(selector.matches(labels) for labels in matching)
    assert not any(selector.matches(labels) for labels in others)


def test_no_labels_at_all_are_like_empty_labels() -> None:
    assert Selector.parse("!a").matches(None)
    assert not Selector.parse("a").matches(None)


def test_everything_and_nothing() -> None:
    assert Selector.everything().matches({})
    assert Selector.everything().selects_everything
    assert str(Selector.everything()) == ""
    assert not Selector.nothing().matches({})
    assert Selector.nothing().selects_nothing
    assert not Selector.nothing().selects_everything
    assert Selector.nothing() != Selector.everything()


def test_nothing_prints_as_text_that_no_server_accepts() -> None:
    with pytest.raises(DecodeError):
        Selector.parse(str(Selector.nothing()))


def test_selector_from_labels() -> None:
    selector = Selector.of({"tier": "front", "app": "web"})

    assert str(selector) == "app=web,tier=front"
    assert selector == Selector.parse("tier=front,app=web")
    assert hash(selector) == hash(Selector.parse("tier=front,app=web"))
    assert repr(selector) == "Selector.parse('app=web,tier=front')"
    assert selector != "app=web,tier=front"


def test_selectors_combine() -> None:
    assert str(Selector.parse("b=1") & Selector.parse("a")) == "a,b=1"
    assert (Selector.parse("a") & Selector.nothing()).selects_nothing


def test_the_only_possible_value_is_known() -> None:
    selector = Selector.parse("a=1,b in (2),c in (3,4),d!=5,e")

    assert [selector.required_value(key) for key in "abcdef"] == ["1", "2", None, None, None, None]


STRUCTURED = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "env", "operator": "NotIn", "values": ["test"]},
        {"key": "legacy", "operator": "DoesNotExist"},
        {"key": "owner", "operator": "Exists"},
        {"key": "tier", "operator": "In", "values": ["back", "front"]},
    ],
}


def test_structured_form_is_read_and_written() -> None:
    selector = Selector.from_structured(STRUCTURED)

    assert str(selector) == "app=web,env notin (test),!legacy,owner,tier in (back,front)"
    assert selector.to_structured() == STRUCTURED


def test_structured_form_of_a_class_is_read() -> None:
    typed = SimpleNamespace(
        match_labels={"app": "web"},
        match_expressions=[SimpleNamespace(key="tier", operator="In", values=["front"])],
    )

    assert str(Selector.from_structured(cast("StructuredSelector", typed))) == "app=web,tier in (front)"


@pytest.mark.parametrize("empty", [{}, {"matchLabels": {}, "matchExpressions": []}, {"matchLabels": None}])
def test_an_empty_structured_selector_selects_everything(empty: dict[str, Any]) -> None:
    assert Selector.from_structured(empty).selects_everything


def test_an_absent_structured_selector_selects_nothing() -> None:
    assert Selector.from_structured(None).selects_nothing


def test_an_unknown_structured_operator_is_refused() -> None:
    with pytest.raises(DecodeError, match='"Like" is not a valid label selector operator'):
        Selector.from_structured({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]})


def test_two_values_for_one_label_both_survive_the_structured_form() -> None:
    selector = Selector.parse("a=1,a=2,a!=3")

    assert selector.to_structured() == {
        "matchLabels": {"a": "1"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["2"]},
            {"key": "a", "operator": "NotIn", "values": ["3"]},
        ],
    }


@pytest.mark.parametrize("selector", [Selector.parse("a>1"), Selector.nothing()])
def test_what_has_no_structured_form_is_refused(selector: Selector) -> None:
    with pytest.raises(ValueError, match="has no structured form"):
        selector.to_structured()


@pytest.mark.parametrize(("text", "printed"), FIELDS_PRINTED)
def test_field_selectors_print_as_kubernetes_prints_them(text: str, printed: str) -> None:
    assert printed == str(FieldSelector.parse(text))


@pytest.mark.parametrize(("text", "message"), FIELDS_REFUSED)
def test_bad_field_selectors_are_refused_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        FieldSelector.parse(text)

    assert message == str(caught.value)


@pytest.mark.parametrize("text", ["a=b=c", "a!==b", "a=!=b"])
def test_an_unescaped_character_in_a_field_value_is_named(text: str) -> None:
    with pytest.raises(DecodeError, match="unescaped character in value: '='; put a backslash before it"):
        FieldSelector.parse(text)


def test_field_selectors_match_a_mapping_or_a_lookup() -> None:
    selector = FieldSelector.parse("metadata.name=web,status.phase!=Running")
    pending = {"metadata.name": "web", "status.phase": "Pending"}

    assert selector.matches(pending)
    assert selector.matches(pending.get)
    assert selector.matches({"metadata.name": "web"})
    assert not selector.matches({"metadata.name": "web", "status.phase": "Running"})
    assert not selector.matches({"status.phase": "Pending"})


def test_a_missing_field_counts_as_empty() -> None:
    assert FieldSelector.parse("spec.nodeName=").matches({})
    assert not FieldSelector.parse("spec.nodeName!=").matches({})


def test_a_bare_operator_is_ignored_as_the_server_does() -> None:
    assert FieldSelector.parse("==,a=b,!=") == FieldSelector.parse("a=b")


def test_field_terms_are_unescaped() -> None:
    selector = FieldSelector.parse(r"a=x\,y\=z\\")

    assert selector.terms == (FieldTerm("a", "=", "x,y=z\\"),)
    assert selector == FieldSelector.of({"a": "x,y=z\\"})
    assert hash(selector) == hash(FieldSelector.of({"a": "x,y=z\\"}))
    assert selector != "a"
    assert repr(FieldSelector.parse("a==b")) == "FieldSelector.parse('a=b')"


def test_field_selectors_combine_and_tell_required_values() -> None:
    selector = FieldSelector.parse("a=1") & FieldSelector.parse("b!=2")

    assert str(selector) == "a=1,b!=2"
    assert selector.required_value("a") == "1"
    assert selector.required_value("b") is None
    assert not selector.selects_everything
    assert FieldSelector().selects_everything
