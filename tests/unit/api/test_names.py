"""What object keys and name checks promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.names import (
    ObjectKey,
    dns1035_label_errors,
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)
from kubewright.errors import DecodeError

Check = Callable[[str], list[str]]

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(("text", "key"), [("shop/web", ObjectKey("shop", "web")), ("node", ObjectKey("", "node"))])
def test_keys_are_read_and_printed(text: str, key: ObjectKey) -> None:
    assert key == ObjectKey.parse(text)
    assert text == str(key)


@pytest.mark.parametrize("text", ["", "/", "a/", "/b", "a/b/c"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="is not an object key"):
        ObjectKey.parse(text)


def test_keys_sort_and_hash() -> None:
    keys = [ObjectKey("b", "a"), ObjectKey("a", "b"), ObjectKey("a", "a")]

    assert [str(key) for key in sorted(keys)] == ["a/a", "a/b", "b/a"]
    assert len({*keys, ObjectKey("a", "a")}) == 3


@pytest.mark.parametrize(
    ("check", "names"),
    [
        (dns1123_label_errors, ["a", "0", "a-b", "a" * 63]),
        (dns1123_subdomain_errors, ["a", "a.b", "0.a-b.c", "a" * 253]),
        (dns1035_label_errors, ["a", "a-0", "a" * 63]),
        (qualified_name_errors, ["a", "A_b.c-d", "example.com/a", "a" * 63, f"{'a' * 253}/{'b' * 63}"]),
        (label_value_errors, ["", "a", "A_b.c-d", "0", "a" * 63]),
    ],
)
def test_good_names_have_no_errors(check: Check, names: list[str]) -> None:
    assert [[]] * len(names) == [check(name) for name in names]


@pytest.mark.parametrize(
    ("check", "name", "errors"),
    [
        (dns1123_label_errors, "", [LABEL]),
        (dns1123_label_errors, "A", [LABEL]),
        (dns1123_label_errors, "a\n", [LABEL]),
        (dns1123_label_errors, "a.b", ["must not contain dots"]),
        (dns1123_label_errors, "a" * 64, ["must be no more than 63 characters"]),
        (dns1123_subdomain_errors, "a..b", [SUBDOMAIN]),
        (dns1123_subdomain_errors, "-", [SUBDOMAIN]),
        (dns1123_subdomain_errors, "a" * 254, ["must be no more than 253 characters"]),
        (dns1035_label_errors, "0a", [LABEL_1035]),
        (dns1035_label_errors, "A" * 64, ["must be no more than 63 characters", LABEL_1035]),
        (qualified_name_errors, "", ["name part must be non-empty", f"name part {QUALIFIED}"]),
        (qualified_name_errors, "/a", ["prefix part must be non-empty"]),
        (qualified_name_errors, "A/a", [f"prefix part {SUBDOMAIN}"]),
        (qualified_name_errors, "a/b!", [f"name part {QUALIFIED}"]),
        (qualified_name_errors, "a" * 64, ["name part must be no more than 63 bytes"]),
        (
            qualified_name_errors,
            "a/b/c",
            [
                f"a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
        ),
        (label_value_errors, "-a", [VALUE]),
        (label_value_errors, "a\n", [VALUE]),
        (label_value_errors, "\u00e9" * 32, ["must be no more than 63 bytes", VALUE]),
    ],
)
def test_errors_are_in_the_words_of_kubernetes(check: Check, name: str, errors: list[str]) -> None:
    assert errors == check(name)
