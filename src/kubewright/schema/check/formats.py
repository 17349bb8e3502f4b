"""String formats that the API server checks: dates, addresses, colours.

It ignores unknown formats, and dashes in names: `date-time` and `datetime` are the same. The results are those of the
server's own checks (kube-openapi: pkg/validation/strfmt), lenient and strict in odd places: an `ipv4` may have leading
zeros, a `duration` may be written `3 days`, `/path` is a `uri`.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Mapping
from typing import Final

from kubewright.schema.check.internet_addresses import is_email, is_request_uri

__all__ = ("format_test", "is_known")

_ISBN_NOISE: Final = re.compile(r"[\t\n\f\r -]")
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}  # both micro signs are units
_DURATION: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")  # as above
_LOOSE_DURATION: Final = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")
_LOOSE_UNITS: Final = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_INT64_LIMIT: Final = 2**63
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_USUAL_TIME: Final = re.compile(
    "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)
_HOST: Final = re.compile(
    r"[a-zA-Z0-9$](-?[a-zA-Z0-9$]{0,62})?|([a-zA-Z0-9$]([a-zA-Z0-9$-]{0,61}[a-zA-Z0-9$])?\.)+[a-zA-Z]{2,63}"
)
_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_SHADE: Final = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HEX: Final = "[0-9a-fA-F]"


def is_known(name: str) -> bool:
    """Whether the server checks this format."""
    return name.replace("-", "") in _TESTS


def format_test(name: str) -> Callable[[str], bool] | None:
    """The check for a format; None if the server has none."""
    return _TESTS.get(name.replace("-", ""))


def _matcher(pattern: str, *, max_length: int | None = None) -> Callable[[str], bool]:
    expression = re.compile(pattern)
    if max_length is None:
        return lambda text: expression.fullmatch(text) is not None
    return lambda text: len(text) <= max_length and expression.fullmatch(text) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matcher(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    # The calendar module begins with year 1; year 0 is a leap year like 2000.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def _is_date_time(text: str) -> bool:  # hot
    if _USUAL_TIME.fullmatch(text) is not None:
        return True
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    found = _TIME.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    return _is_go_duration(text) or _is_loose_duration(text)


def _is_go_duration(text: str) -> bool:
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return True
    total, at = 0, 0
    while at < len(rest):
        found = _DURATION.match(rest, at)
        if found is None or not (found[1] or found[2]):
            return False
        unit = _UNITS[found[3]]
        total += int(found[1] or 0) * unit + (int(found[2]) * unit // 10 ** len(found[2]) if found[2] else 0)
        at = found.end()
    return at > 0 and total <= _INT64_LIMIT - (not text.startswith("-"))


def _is_loose_duration(text: str) -> bool:
    """In Scala's notation: a number and a unit, anywhere in the text."""
    some = False
    for digits, name in _LOOSE_DURATION.findall(text):
        if int(digits) >= _INT64_LIMIT:
            return False
        unit = name.lower()
        some = some or any(unit in names or unit.startswith(names[-1]) for names in _LOOSE_UNITS)
    return some


def _is_host_name(text: str) -> bool:
    if not text.isascii() or any(char in "$+<=>^`|~" for char in text):
        plain = "".join(_host_char(char) for char in text)
    else:
        plain = text
    if _HOST.fullmatch(plain) is None:
        return False
    return len(text.encode()) <= 255 and all(len(label.encode()) <= 63 for label in text.split("."))


def _host_char(char: str) -> str:
    """Letters of any script count as letters, symbols as characters of a name."""
    kind = unicodedata.category(char)[0]
    if kind == "L":
        return "a"
    return "$" if kind == "S" else char if char.isascii() else "\0"


def _is_ip4(text: str) -> bool:
    return "." in text and _sloppy_ip(text) is not None


def _is_ip6(text: str) -> bool:
    return ":" in text and "%" not in text and _is_plain_ip6(text)


def _is_plain_ip6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _sloppy_ip(text: str) -> int | None:
    """The number of bits of an address, leading zeros allowed; None if it is no address."""
    if "%" in text or "/" in text:
        return None
    head, colon, tail = text.rpartition(":")
    if "." in tail:
        octets = tail.split(".")
        if len(octets) != 4 or not all(re.fullmatch("[0-9]+", part) and int(part) <= 255 for part in octets):
            return None
        tail = ".".join(str(int(part)) for part in octets)
        if not colon:
            return 32
    return 128 if _is_plain_ip6(head + colon + tail) else None


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    bits = _sloppy_ip(address)
    return bool(slash) and bits is not None and re.fullmatch("[0-9]+", length) is not None and int(length) <= bits


def _is_mac(text: str) -> bool:
    return any(
        re.fullmatch(f"({_HEX}{{{width}}}{mark}){{{size // width - 1}}}{_HEX}{{{width}}}", text)
        for mark, width in ((":", 2), ("-", 2), (r"\.", 4), ("", 2))
        for size in (12, 16, 40)
    )


def _is_isbn10(text: str) -> bool:
    digits = _ISBN_NOISE.sub("", text)
    if re.fullmatch("[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((i + 1) * (10 if digit == "X" else int(digit)) for i, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _ISBN_NOISE.sub("", text)
    if re.fullmatch("[0-9]{13}", digits) is None:
        return False
    return sum((1, 3)[i % 2] * int(digit) for i, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = (int(digit) * (1 + i % 2) for i, digit in enumerate(reversed(digits)))
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0


_TESTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matcher(f"{_HEX}{{24}}"),
    "byte": _matcher("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": is_email,
    "hexcolor": _matcher(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_host_name,
    "ipv4": _is_ip4,
    "ipv6": _is_ip6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _matcher(rf"{_LABEL}(\.{_LABEL})*", max_length=253),
    "k8sshortname": _matcher(_LABEL, max_length=63),
    "mac": _is_mac,
    "password": lambda text: True,
    "rgbcolor": _matcher(rf"rgb\({_SHADE},{_SHADE},{_SHADE}\)"),
    "ssn": _matcher("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "uri": is_request_uri,
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
}
