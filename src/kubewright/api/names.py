"""ObjectKey, and the rules for names, label keys and label values.

The checks return messages, one for each rule that is broken, in the API server's words (apimachinery:
pkg/util/validation/validation.go), so that a check here and a response from a cluster read the same. An empty list
means the name is valid. Used by selectors, by the schema of kinds and by the embedded API server.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kubewright.errors import DecodeError

__all__ = (
    "ObjectKey",
    "dns1035_label_errors",
    "dns1123_label_errors",
    "dns1123_subdomain_errors",
    "label_value_errors",
    "qualified_name_errors",
)


class ObjectKey(Struct, frozen=True, order=True, gc=False):
    """Namespace and name: `ObjectKey("shop", "web")`, or `ObjectKey("", "node-1")` for a cluster-scoped object."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """From `namespace/name`, or `name` alone."""
        namespace, slash, name = text.rpartition("/")
        if not name or "/" in namespace or bool(slash) != bool(namespace):
            raise DecodeError(f"{text!r} is not an object key: write namespace/name, or name alone")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"

_IS_LABEL: Final = re.compile(_LABEL)
_IS_SUBDOMAIN: Final = re.compile(_SUBDOMAIN)
_IS_LABEL_1035: Final = re.compile(_LABEL_1035)
_IS_QUALIFIED: Final = re.compile(_QUALIFIED)
_IS_VALUE: Final = re.compile(_VALUE)

_ENDS: Final = "and must start and end with an alphanumeric character"
_LABEL_RULE: Final = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
_SUBDOMAIN_RULE: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_QUALIFIED_RULE: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_VALUE_RULE: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
)


def dns1123_label_errors(name: str) -> list[str]:
    """Namespaces and most port names: at most 63 of a-z, 0-9 and `-`."""
    errors = _too_long(name, 63, "characters")
    if not _IS_LABEL.fullmatch(name):
        if _IS_SUBDOMAIN.fullmatch(name):
            errors.append("must not contain dots")
        else:
            errors.append(_rule_message(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return errors


def dns1123_subdomain_errors(name: str) -> list[str]:
    """Most object names: labels joined by dots, at most 253 in all."""
    errors = _too_long(name, 253, "characters")
    if not _IS_SUBDOMAIN.fullmatch(name):
        errors.append(_rule_message(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return errors


def dns1035_label_errors(name: str) -> list[str]:
    """Names of services: as a label, beginning with a letter."""
    errors = _too_long(name, 63, "characters")
    if not _IS_LABEL_1035.fullmatch(name):
        errors.append(_rule_message(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123"))
    return errors


def qualified_name_errors(key: str) -> list[str]:
    """Keys of labels and annotations, finalizers, conditions: a name, or `domain/name`."""
    parts = key.split("/")
    if len(parts) > 2:
        rule = _rule_message(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
        prefix_rule = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rule} {prefix_rule}"]
    errors: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        wrong = dns1123_subdomain_errors(prefix) if prefix else ["must be non-empty"]
        errors.extend(f"prefix part {message}" for message in wrong)
    name = parts[-1]
    wrong = _too_long(name, 63) if name else ["must be non-empty"]
    if not _IS_QUALIFIED.fullmatch(name):
        wrong.append(_rule_message(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc"))
    errors.extend(f"name part {message}" for message in wrong)
    return errors


def label_value_errors(value: str) -> list[str]:
    """Values of labels: empty, or at most 63 of letters, digits, `-`, `_` and `.`."""
    errors = _too_long(value, 63)
    if not _IS_VALUE.fullmatch(value):
        errors.append(_rule_message(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return errors


def _too_long(text: str, limit: int, unit: str = "bytes") -> list[str]:
    # The server counts bytes in both cases; its word for the unit depends on the rule.
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return [f"must be no more than {limit} {unit}"] if size > limit else []


def _rule_message(rule: str, pattern: str, *examples: str) -> str:
    # The stray ",  or" is the server's; tools compare these sentences.
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
