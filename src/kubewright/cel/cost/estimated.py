"""The cost of single calls before anything is known but sizes; the counterpart of `charges`.

Kubernetes fixed these numbers: changing one would make stored definitions valid or invalid. `estimate` asks for every
call; what comes back is a range, and the size of the result if it can be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from kubewright.cel.celtypes import CelType
from kubewright.cel.cost.sizes import LARGEST, NOTHING, UNKNOWN, Range, exactly
from kubewright.cel.syntax import Literal

__all__ = ("Operand", "price")

Priced = tuple[Range, Range | None]

_ONE: Final = exactly(1)
_LIST: Final = exactly(11)
_IP: Final = Range(4, 16)
_LONGEST_FORMAT: Final = 128
_EXPENSIVE: Final = 350_000


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """An argument, or what a function is called on."""

    type: CelType
    known: Range | None
    path: tuple[str, ...]
    literal: Literal | None
    bound: Callable[[tuple[str, ...]], Range | None]

    @property
    def size(self) -> Range:
        """As well as it can be told."""
        if self.known is not None:
            return self.known
        return self.bound(self.path) or UNKNOWN

    @property
    def element(self) -> tuple[CelType, Range] | None:
        """Of a list, or of anything else that has parameters: the first one, and its size."""
        if not self.type.parameters:
            return None
        path = (*self.path, "@items") if self.path else ()
        return self.type.parameters[0], self.bound(path) or UNKNOWN


def price(function: str, identity: str, target: Operand | None, operands: list[Operand]) -> Priced:
    """The cost of a call beyond that of its arguments, and the size of its result."""
    for found in (_tracked(identity, target, operands), _kubernetes(function, identity, target, operands)):
        if found is not None:
            return found
    return _standard(identity, target, operands) or (_ONE, None)


def _tracked(identity: str, target: Operand | None, operands: list[Operand]) -> Priced | None:
    if identity.startswith("list_sets_"):
        factor = 2 if "equivalent" in identity else 1
        return operands[0].size.times(operands[1].size).scaled(factor).plus(_ONE), None
    if identity == "lists_range":
        return _made(1, exactly(_whole(operands[0], LARGEST)))
    if target is None:
        return None
    if identity == "list_slice":
        start, end = _whole(operands[0], 0), _whole(operands[1], target.size.most)
        return _made(1, exactly((end - start) % (LARGEST + 1)))
    if identity == "list_reverse":
        return _made(1, target.size)
    if identity in ("list_flatten", "list_flatten_int"):
        return _made(_whole(operands[0], LARGEST) if operands else 1, target.size)
    if identity == "list_distinct":
        return _made(2.0, target.size.times(target.size))
    if identity.endswith(("_sort", "_sortByAssociatedKeys")):
        keys = operands[0] if operands else target
        texts = identity.startswith(("list_string_", "list_bytes_"))
        return _made(2.1 if texts else 2.0, keys.size.times(keys.size))
    return None


def _made(factor: float, size: Range) -> Priced:
    return size.scaled(factor).plus(_LIST), size


def _whole(operand: Operand, otherwise: int) -> int:
    literal = operand.literal
    if literal is None or literal.kind != "int" or not isinstance(literal.value, int):
        return otherwise
    return max(literal.value, 0)


def _kubernetes(function: str, identity: str, target: Operand | None, operands: list[Operand]) -> Priced | None:
    if function in _NOMINAL or identity == "cidr_ip":
        return _ONE, None
    if function == "_==_":
        return _equality(operands)
    if function in _ON_TARGET:
        return None if target is None else _ON_TARGET[function](target, operands)
    if function in _ON_FIRST and operands:
        return _ON_FIRST[function](operands[0], identity)
    return None


def _equality(operands: list[Operand]) -> Priced | None:
    kind = operands[0].type
    if kind != operands[1].type:
        return None
    if kind.name in ("net.IP", "net.CIDR", *_CHEAP):
        return _ONE, None
    if kind.name == "kubernetes.NamedFormat":
        return Range(1, 64).scaled(0.1), None
    if kind.name == "kubernetes.URL":
        size = operands[1].known or _ONE
        return Range(1, size.most).scaled(0.1), None
    return None


_CHEAP: Final = (
    "kubernetes.Quantity",
    "kubernetes.Semver",
    *(
        f"kubernetes.authorization.{name}"
        for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
    ),
)
_NOMINAL: Final = frozenset(
    (
        *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name"),
        *("allowed", "reason", "error", "errored"),
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "format.named"),
        *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
        *("add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)


def _searched_list(target: Operand, _: list[Operand]) -> Priced:
    element = target.element
    if element is None:
        return target.size.scaled(0.1), None
    each = _ONE
    if element[0].kind in ("string", "bytes"):
        each = each.plus(element[1].scaled(0.1))
    return target.size.times(each), None


def _rewritten(target: Operand, _: list[Operand]) -> Priced:
    return target.size.scaled(0.1), target.size


def _replaced(target: Operand, operands: list[Operand]) -> Priced | None:
    if len(operands) < 2:
        return None
    size, old, new = target.size, operands[0].size, operands[1].size
    if old.least == 0:
        longest, kept_most = min(size.most + 1, LARGEST), size.most
    elif new.most <= old.least:
        longest, kept_most = 0, size.most
    else:
        longest, kept_most = math.ceil(float(size.most) / float(old.least)), 0
    if old.most == 0:
        shortest, kept_least = min(size.least + 1, LARGEST), size.least
    elif old.most <= new.least:
        shortest, kept_least = 0, size.least
    else:
        shortest, kept_least = math.ceil(float(size.least) / float(old.most)), 0
    grown = Range(shortest, min(longest, LARGEST)).times(new).plus(Range(kept_least, kept_most))
    return size.scaled(0.2), grown


def _split(target: Operand, operands: list[Operand]) -> Priced:
    most = target.size.most
    if len(operands) > 1 and operands[1].literal is not None and isinstance(operands[1].literal.value, int):
        most = operands[1].literal.value % (LARGEST + 1)
    return target.size.scaled(0.2), Range(0, most)


def _joined(target: Operand, operands: list[Operand]) -> Priced:
    count = target.size
    element = target.element
    size = NOTHING if element is None else count.times(element[1])
    if operands:
        between = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(operands[0].size.times(between))
    return size.scaled(0.1), size


def _found(target: Operand, operands: list[Operand]) -> Priced | None:
    if not operands:
        return None
    text = target.size.plus(_ONE).scaled(0.1)
    return text.times(operands[0].size.scaled(0.25)), Range(0, target.size.most)


def _contains_ip(_: Operand, operands: list[Operand]) -> Priced | None:
    if not operands:
        return None
    total = _IP.plus(_IP).scaled(0.1)
    if operands[0].type.kind == "string":
        total = total.plus(operands[0].size.scaled(0.1))
    return total, None


def _contains_network(target: Operand, operands: list[Operand]) -> Priced | None:
    inner = _contains_ip(target, operands)
    return None if inner is None else (inner[0].plus(_IP.scaled(0.1)).plus(_ONE), None)


def _validated(_: Operand, operands: list[Operand]) -> Priced | None:
    return (operands[0].size.scaled(0.1).scaled(_LONGEST_FORMAT * 0.25), None) if operands else None


def _authorized(*_: object) -> Priced:
    return exactly(_EXPENSIVE), None


def _selected(_: Operand, operands: list[Operand]) -> Priced | None:
    if len(operands) != 1:
        return None
    size = operands[0].size
    return exactly(10).plus(size.scaled(0.1)).plus(size.scaled(0.5).scaled(50.0)), None


_ON_TARGET: Final[dict[str, Callable[[Operand, list[Operand]], Priced | None]]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _searched_list),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _rewritten),
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "find": _found,
    "findAll": _found,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_network,
    "validate": _validated,
    "check": _authorized,
    "fieldSelector": _selected,
    "labelSelector": _selected,
}


def _parsed(first: Operand, _: str) -> Priced:
    return first.size.scaled(0.1), None


def _parsed_url(first: Operand, _: str) -> Priced:
    return first.size.scaled(0.1), first.size


def _parsed_twice(first: Operand, _: str) -> Priced:
    return first.size.scaled(0.2), None


_ON_FIRST: Final[dict[str, Callable[[Operand, str], Priced]]] = {
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _parsed),
    "url": _parsed_url,
    "ip.isCanonical": _parsed_twice,
}


def _standard(identity: str, target: Operand | None, operands: list[Operand]) -> Priced | None:
    if identity == "string_format" and target is not None:
        return target.size.scaled(0.1), None
    if identity == "string_to_bytes":
        size = operands[0].size
        return size.scaled(0.1), Range(size.least, size.most * 4 % (LARGEST + 1))
    if identity == "bytes_to_string":
        size = operands[0].size
        return size.scaled(0.1), Range(size.least // 4, size.most)
    if identity == "strings_quote":
        size = operands[0].size
        return size.scaled(0.1), Range(size.least + 2, (size.most * 2 + 2) % (LARGEST + 1))
    if identity in ("starts_with_string", "ends_with_string"):
        return operands[0].size.scaled(0.1), None
    if identity == "in_list":
        return operands[1].size.scaled(1), None
    if identity == "matches_string" and target is not None:
        return target.size.plus(_ONE).scaled(0.1).times(operands[0].size.scaled(0.25)), None
    if identity == "contains_string" and target is not None:
        return target.size.scaled(0.1).times(operands[0].size.scaled(0.1)), None
    if identity in ("add_string", "add_bytes", "add_list"):
        size = operands[0].size.plus(operands[1].size)
        return (_ONE if identity == "add_list" else size.scaled(0.1)), size
    if identity in _COMPARED:
        shorter = min(operands[0].size.most, operands[1].size.most)
        return Range(int(shorter > 0), shorter).scaled(0.1), None
    return None


_COMPARED: Final = frozenset(
    (
        "equals",
        "not_equals",
        *(
            f"{word}_{kind}"
            for word in ("less", "less_equals", "greater", "greater_equals")
            for kind in ("string", "bytes")
        ),
    )
)
