"""Values in messages look as Go prints them."""

import pytest

from kubewright.api.field_errors import FieldError, bad_value, too_long, too_many, unsupported
from kubewright.api.go_text import GoStruct, as_maps, format_value, number_text, quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (123456.0, "123456"),
        (1234567.0, "1.234567e+06"),
        (1e20, "1e+20"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-1234567.5, "-1.2345675e+06"),
        (-0.0, "0"),
        (2**63 - 1, "9223372036854775807"),
        (10**19, "1e+19"),
    ],
)
def test_a_number_has_its_shortest_form(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_string_is_quoted_with_the_escapes_of_go() -> None:
    assert quoted("a\x01\x7f\u200bé\n\"'<") == r'''"a\x01\x7f\u200bé\n\"'<"'''


def test_a_tree_is_json_with_sorted_keys_and_safe_for_html() -> None:
    assert (
        format_value(as_maps({"b": "<&>", "a": [1.0, 1e-7, 1e21, None, True]}))
        == r'{"a":[1,1e-7,1e+21,null,true],"b":"\u003c\u0026\u003e"}'
    )


def test_a_struct_keeps_the_order_of_its_fields() -> None:
    assert format_value(as_maps([GoStruct(Name="b", Able=True)])) == '[{"Name":"b","Able":true}]'


def test_a_field_error_shows_its_value_as_go_does() -> None:
    assert bad_value("a", "Invalid", 1e7, "why").body == "Invalid value: 1e+07: why"
    assert bad_value("a", "Duplicate", {"b": 1, "a": 2}).body == 'Duplicate value: {"a":2,"b":1}'
    assert bad_value("a", "Invalid", "x", "why").value == "x"
    assert (
        FieldError("a", "Invalid", "why", {"b": 1e7, "a": "\x01"}).body
        == r'Invalid value: {"b":10000000,"a":"\u0001"}: why'
    )
    assert FieldError("a", "Invalid", "why", "\x01\u0085").body == r'Invalid value: "\x01\u0085": why'


def test_limits_and_lists_have_their_own_sentences() -> None:
    assert too_long("a", 1).body == "Too long: may not be more than 1 byte"
    assert too_many("a", 3, 2).body == "Too many: 3: must have at most 2 items"
    assert unsupported("a", "x", ("b", "a")).body == 'Unsupported value: "x": supported values: "b", "a"'
