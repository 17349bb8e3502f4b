"""Validates the syntax of strings: names, ports, addresses, keys.

Each function returns messages, one for each violated rule; none if the value is valid. The rules that clients need too,
such as those of labels, are in `kubewright.api.names`. Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go
and ip.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

from kubewright.api.names import (
    dns1035_label_errors,
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)

__all__ = (
    "Address",
    "NameRule",
    "cidr_errors",
    "config_key_errors",
    "dns_label",
    "dns_label_1035",
    "dns_subdomain",
    "env_name_errors",
    "header_errors",
    "id_errors",
    "ip_errors",
    "label_value_errors",
    "mode_errors",
    "parse_cidr",
    "parse_ip",
    "path_segment",
    "percent_errors",
    "port_name_errors",
    "port_number_errors",
    "qualified_name_errors",
    "range_error",
    "search_domain_errors",
    "wildcard_domain_errors",
)

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
NameRule: TypeAlias = Callable[[str, bool], list[str]]
"""Takes a name and whether it is a prefix (generateName)."""

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_IS_SEARCH: Final = re.compile(_SEARCH)
_IS_WILDCARD: Final = re.compile(rf"\*\.{_SUBDOMAIN}")
_IS_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_HAS_LETTER: Final = re.compile("[a-z]")
_IS_PERCENT: Final = re.compile("[0-9]+%")
_IS_CONFIG_KEY: Final = re.compile("[-._a-zA-Z0-9]+")
_IS_HEADER: Final = re.compile("[-A-Za-z0-9]+")
_ENDS: Final = "and must start and end with an alphanumeric character"


def _characters(errors: list[str]) -> list[str]:
    # As in the messages: labels are limited in bytes, names in characters.
    return [error.replace(" bytes", " characters") for error in errors] if errors else errors


def _unfinished(name: str, prefix: bool) -> str:
    """A prefix may end with a dash, since a suffix follows (maskTrailingDash)."""
    return f"{name[:-2]}a" if prefix and len(name) > 1 and name.endswith("-") else name


@lru_cache(maxsize=4096)
def _subdomain(name: str) -> tuple[str, ...]:
    return tuple(_characters(dns1123_subdomain_errors(name)))


@lru_cache(maxsize=4096)
def _label(name: str) -> tuple[str, ...]:
    return tuple(_characters(dns1123_label_errors(name)))


def dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    """NameIsDNSSubdomain: most names, such as example.com."""
    return list(_subdomain(_unfinished(name, prefix)))


def dns_label(name: str, prefix: bool = False) -> list[str]:
    """NameIsDNSLabel: names that become part of a host name, such as my-name."""
    return list(_label(_unfinished(name, prefix)))


def dns_label_1035(name: str, prefix: bool = False) -> list[str]:
    """NameIsDNS1035Label: names of Services."""
    return _characters(dns1035_label_errors(_unfinished(name, prefix)))


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """IsValidPathSegmentName: names that only have to be a segment of a URL, such as those of roles."""
    if name in (".", "..") and not prefix:
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def search_domain_errors(name: str) -> list[str]:
    """A DNS search domain, which may contain underscores."""
    errors = ["must be no more than 253 characters"] if len(name) > 253 else []
    if not _IS_SEARCH.fullmatch(name):
        rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
        errors.append(f"{rule}{_ENDS} (e.g. 'example.com', regex used for validation is '{_SEARCH}')")
    return errors


def wildcard_domain_errors(name: str) -> list[str]:
    """IsWildcardDNS1123Subdomain: `*.example.com`."""
    errors = ["must be no more than 253 characters"] if len(name) > 253 else []
    if not _IS_WILDCARD.fullmatch(name):
        errors.append(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
            rf"(e.g. '*.example.com', regex used for validation is '\*\.{_SUBDOMAIN}')"
        )
    return errors


def range_error(low: int, high: int) -> str:
    """InclusiveRangeError."""
    return f"must be between {low} and {high}, inclusive"


def port_number_errors(port: int) -> list[str]:
    """IsValidPortNum."""
    return [] if 1 <= port <= 65535 else [range_error(1, 65535)]


def id_errors(number: int) -> list[str]:
    """IsValidUserID and IsValidGroupID."""
    return [] if 0 <= number <= 2**31 - 1 else [range_error(0, 2**31 - 1)]


def port_name_errors(name: str) -> list[str]:
    """IsValidPortName: an IANA service name, such as `http`."""
    errors = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _IS_PORT_NAME.fullmatch(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _HAS_LETTER.search(name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def percent_errors(text: str) -> list[str]:
    """IsValidPercent: `25%`."""
    if _IS_PERCENT.fullmatch(text):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [f"{rule} (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"]


def env_name_errors(name: str) -> list[str]:
    """IsRelaxedEnvVarName: any printable ASCII characters but `=`."""
    if all(" " <= letter <= "~" and letter != "=" for letter in name):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_key_errors(key: str) -> list[str]:
    """IsConfigMapKey: keys of ConfigMaps and Secrets, which become file names."""
    errors = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not _IS_CONFIG_KEY.fullmatch(key):
        errors.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        errors.append(f"must not be '{key}'")
    elif key.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def header_errors(name: str) -> list[str]:
    """IsHTTPHeaderName."""
    if _IS_HEADER.fullmatch(name):
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [f"{rule} (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"]


def mode_errors(mode: int) -> list[str]:
    """A file mode."""
    return [] if 0 <= mode <= 0o777 else ["must be a number between 0 and 0777 (octal), both inclusive"]


_LEADING_ZEROS: Final = re.compile(r"(?<![0-9.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])")


def parse_ip(text: str) -> Address | None:
    """An address as ParseIPSloppy reads it: leading zeros are ignored."""
    if "%" in text or text != text.strip():
        return None
    try:
        return ip_address(_LEADING_ZEROS.sub("", text) if ":" not in text else text)
    except ValueError:
        return None


def ip_errors(text: str) -> list[str]:
    """IsValidIPForLegacyField: an address of either family."""
    return [] if parse_ip(text) else ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


def parse_cidr(text: str) -> Network | None:
    """A network as ParseCIDRSloppy reads it: bits beyond the prefix are ignored."""
    address, slash, bits = text.partition("/")
    start = parse_ip(address)
    if start is None or not slash or not bits.isascii() or not bits.isdigit():
        return None
    if int(bits) > start.max_prefixlen:
        return None
    if isinstance(start, IPv4Address):
        return IPv4Network((start, int(bits)), strict=False)
    return IPv6Network((start, int(bits)), strict=False)


def cidr_errors(text: str) -> list[str]:
    """IsValidCIDRForLegacyField: a network of either family."""
    return [] if parse_cidr(text) else ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
