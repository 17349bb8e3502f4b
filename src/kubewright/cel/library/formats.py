"""`format.dns1123Label().validate(name)`: the named formats of Kubernetes, and the errors of a text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final, final

from kubewright.api import names
from kubewright.cel.celtypes import STRING, list_of, object_type, optional_of
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.library.urls import url_problem
from kubewright.cel.values import NONE, OpaqueValue, OptionalValue, Timestamp

__all__ = ("FORMAT", "declarations")

FORMAT: Final = object_type("kubernetes.NamedFormat")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I | re.A)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.A)


@final
class _Format(OpaqueValue):
    """A format by name; `pattern_size` is the size of its check in cost estimates."""

    __slots__ = ("check", "name", "pattern_size")
    cel_type = FORMAT

    def __init__(self, name: str, check: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.check = check
        self.pattern_size = pattern_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Format) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield member("validate", "format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate)
    yield function("format.named", "format-named", (STRING,), optional_of(FORMAT), _named)
    for name, each in _FORMATS.items():
        yield function(f"format.{name}", f"format.{name}", (), FORMAT, lambda each=each: each)


def _validate(format_: _Format, text: str) -> OptionalValue:
    wrong = format_.check(text)
    return OptionalValue(wrong) if wrong else NONE


def _named(name: str) -> OptionalValue:
    found = _FORMATS.get(name)
    return NONE if found is None else OptionalValue(found)


def _in_characters(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Messages count names in characters, everything else in bytes."""

    def check_name(text: str) -> list[str]:
        return [wrong.replace(" bytes", " characters") for wrong in check(text)]

    return check_name


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def check_prefix(text: str) -> list[str]:
        # The server appends text to a prefix, so a final dash is valid.
        return check(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)

    return check_prefix


def _uri(text: str) -> list[str]:
    problem = url_problem(text)
    return [] if problem is None else [problem]


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if text else ["invalid base64"]


def _date(text: str) -> list[str]:
    try:
        Timestamp.parse(f"{text}T00:00:00Z")
    except ValueError:
        return ["invalid date"]
    return []


def _datetime(text: str) -> list[str]:
    parts = text.lower().split("t")
    if len(parts) < 2 or _date(parts[0]):
        return ["invalid datetime"]
    match = _TIME.fullmatch(parts[1])
    fine = match is not None and match.group(1) <= "23" and match.group(2) <= "59" and match.group(3) <= "59"
    return [] if fine else ["invalid datetime"]


_LABEL: Final = _in_characters(names.dns1123_label_errors)
_SUBDOMAIN: Final = _in_characters(names.dns1123_subdomain_errors)
_LABEL_1035: Final = _in_characters(names.dns1035_label_errors)
_FORMATS: Final[dict[str, _Format]] = {
    "dns1123Label": _Format("DNS1123Label", _LABEL, 30),
    "dns1123Subdomain": _Format("DNS1123Subdomain", _SUBDOMAIN, 60),
    "dns1035Label": _Format("DNS1035Label", _LABEL_1035, 30),
    "qualifiedName": _Format("QualifiedName", names.qualified_name_errors, 60),
    "dns1123LabelPrefix": _Format("DNS1123LabelPrefix", _prefix(_LABEL), 30),
    "dns1123SubdomainPrefix": _Format("DNS1123SubdomainPrefix", _prefix(_SUBDOMAIN), 60),
    "dns1035LabelPrefix": _Format("DNS1035LabelPrefix", _prefix(_LABEL_1035), 30),
    "labelValue": _Format("LabelValue", names.label_value_errors, 40),
    "uri": _Format("URI", _uri, 1103),
    "uuid": _Format("uuid", _uuid, 69),
    "byte": _Format("byte", _byte, 84),
    "date": _Format("date", _date, 69),
    "datetime": _Format("datetime", _datetime, 69),
}
