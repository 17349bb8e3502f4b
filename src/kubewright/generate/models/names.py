"""Names: from JSON to Python and back.

A field `clusterIPs` becomes `cluster_ips`, a group `cert-manager.io` becomes the module `cert_manager`, and an inline
object at `spec.keystores` of a Certificate becomes the class `CertificateSpecKeystores`. Whatever the text, the result
is an ASCII identifier and no keyword: the text is a stranger's, and the name becomes code. Pure functions on text, for
`models.openapi` and `models.modules`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Container
from typing import Final

__all__ = (
    "RESERVED",
    "attribute_name",
    "camel_case",
    "class_name",
    "component_class_name",
    "module_name",
    "singular",
    "snake_case",
    "unique_name",
)

RESERVED: Final = frozenset(
    {*keyword.kwlist, "bool", "bytes", "datetime", "dict", "field", "float", "int", "list", "str"}
)
"""Attribute names a generated class cannot have: keywords, and names its own annotations use."""

_WORD: Final = re.compile(
    r"IPv[46]"  # else split into I and Pv4
    r"|[A-Z]{2,}s(?![a-z])"  # the plural of an abbreviation: IPs, CIDRs, URLs
    r"|[A-Z]+(?=[A-Z][a-z]|V[0-9])"  # an abbreviation in front of a word or a version: HTTP in HTTPGet
    r"|[A-Z]?[a-z0-9]+"
    r"|[A-Z]+[0-9]*"
)

_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")


def snake_case(name: str) -> str:
    """`nonResourceURLs` to `non_resource_urls`; other characters than letters and digits separate words."""
    return "_".join(word.lower() for word in _WORD.findall(name))


def camel_case(name: str) -> str:
    """The JSON name that msgspec's `rename="camel"` makes of an attribute; a test keeps them identical."""
    parts = name.split("_")
    if len(parts) == 1:
        return name
    leading = 0
    while leading < len(parts) and not parts[leading]:
        leading += 1
    return "_" * leading + "".join(part if not i else part.title() for i, part in enumerate(parts[leading:]))


def attribute_name(wire_name: str, *, taken: Container[str] = (), reserved: Container[str] = ()) -> str:
    """The attribute for a field: snake_case, a valid identifier, not one of the names taken or reserved."""
    name = snake_case(wire_name) or "value"
    if name[0].isdigit():
        name = f"field_{name}"
    if name in RESERVED or name in reserved:
        name = f"{name}_"
    return unique_name(name, taken)


def class_name(*words: str) -> str:
    """`CertificateSpec` and `jksKeystore` to `CertificateSpecJksKeystore`; inner capitals stay as they are."""
    parts = [part for word in words for part in re.split(r"[^A-Za-z0-9]+", word) if part]
    name = "".join(part[0].upper() + part[1:] for part in parts) or "Value"
    if name[0].isdigit():
        return f"V{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def component_class_name(component: str) -> str:
    """The class for a component: the last part of its name, changed only if it is no name of a class.

    It begins with a capital, so no attribute of a class and no type of Python's, all in lower case, has its name.
    """
    last = component.rpartition(".")[2]
    return last if _CLASS.fullmatch(last) and not keyword.iskeyword(last) else class_name(last)


def module_name(group: str) -> str:
    """A Python module for a group, or for any part of its name."""
    name = re.sub(r"[^a-z0-9]+", "_", group.lower()).strip("_") or "core"
    return f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name


def singular(word: str) -> str:
    """A guess at the name of one item of a list: `addresses` to `address`, `policies` to `policy`."""
    if len(word) <= 3 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


def unique_name(name: str, taken: Container[str]) -> str:
    """The name itself, or with the first number from 2 on that makes it unique."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{'_' if name.islower() else ''}{number}" in taken:
        number += 1
    return f"{name}{'_' if name.islower() else ''}{number}"
