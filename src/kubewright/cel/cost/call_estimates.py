"""Estimated cost of single calls, from the sizes of their operands; the counterpart of `cost.actual`.

Kubernetes fixed these numbers (apiserver: pkg/cel/library/cost.go, EstimateCallCost): changing one would make stored
CRDs valid or invalid. `cost.estimator` calls this for every call; the result is a cost range, and the size of the
result if it is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from kubewright.cel.celtypes import CelType
from kubewright.cel.cost.sizes import MAX_UINT64, UNKNOWN, ZERO, Range, exactly
from kubewright.cel.syntax import Literal

__all__ = ("Operand", "estimate_call")

CallEstimate = tuple[Range, Range | None]

_ONE: Final = exactly(1)
_NEW_LIST_COST: Final = exactly(11)
_IP: Final = Range(4, 16)
_MAX_FORMAT_PATTERN: Final = 128
_AUTHORIZER_CHECK_COST: Final = 350_000


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """An argument or the target of a call."""

    type: CelType
    known: Range | None
    path: tuple[str, ...]
    literal: Literal | None
    bound: Callable[[tuple[str, ...]], Range | None]

    @property
    def size(self) -> Range:
        """The best known size."""
        if self.known is not None:
            return self.known
        return self.bound(self.path) or UNKNOWN

    @property
    def element(self) -> tuple[CelType, Range] | None:
        """The type and size of the elements of a list, or of the first parameter of any other type."""
        if not self.type.parameters:
            return None
        path = (*self.path, "@items") if self.path else ()
        return self.type.parameters[0], self.bound(path) or UNKNOWN


def estimate_call(function: str, identity: str, target: Operand | None, operands: list[Operand]) -> CallEstimate:
    """The cost of a call without its arguments, and the size of its result."""
    for found in (
        _extension_estimate(identity, target, operands),
        _kubernetes_estimate(function, identity, target, operands),
    ):
        if found is not None:
            return found
    return _standard_estimate(identity, target, operands) or (_ONE, None)


def _extension_estimate(identity: str, target: Operand | None, operands: list[Operand]) -> CallEstimate | None:
    if identity.startswith("list_sets_"):
        factor = 2 if "equivalent" in identity else 1
        return operands[0].size.times(operands[1].size).scaled(factor).plus(_ONE), None
    if identity == "lists_range":
        return _new_list(1, exactly(_whole(operands[0], MAX_UINT64)))
    if target is None:
        return None
    if identity == "list_slice":
        start, end = _whole(operands[0], 0), _whole(operands[1], target.size.high)
        return _new_list(1, exactly((end - start) % (MAX_UINT64 + 1)))
    if identity == "list_reverse":
        return _new_list(1, target.size)
    if identity in ("list_flatten", "list_flatten_int"):
        return _new_list(_whole(operands[0], MAX_UINT64) if operands else 1, target.size)
    if identity == "list_distinct":
        return _new_list(2.0, target.size.times(target.size))
    if identity.endswith(("_sort", "_sortByAssociatedKeys")):
        keys = operands[0] if operands else target
        texts = identity.startswith(("list_string_", "list_bytes_"))
        return _new_list(2.1 if texts else 2.0, keys.size.times(keys.size))
    return None


def _new_list(factor: float, size: Range) -> CallEstimate:
    return size.scaled(factor).plus(_NEW_LIST_COST), size


def _whole(operand: Operand, otherwise: int) -> int:
    literal = operand.literal
    if literal is None or literal.kind != "int" or not isinstance(literal.value, int):
        return otherwise
    return max(literal.value, 0)


def _kubernetes_estimate(
    function: str, identity: str, target: Operand | None, operands: list[Operand]
) -> CallEstimate | None:
    if function in _NOMINAL or identity == "cidr_ip":
        return _ONE, None
    if function == "_==_":
        return _equality(operands)
    if function in _ON_TARGET:
        return None if target is None else _ON_TARGET[function](target, operands)
    if function in _ON_FIRST and operands:
        return _ON_FIRST[function](operands[0], identity)
    return None


def _equality(operands: list[Operand]) -> CallEstimate | None:
    kind = operands[0].type
    if kind != operands[1].type:
        return None
    if kind.name in ("net.IP", "net.CIDR", *_CHEAP):
        return _ONE, None
    if kind.name == "kubernetes.NamedFormat":
        return Range(1, 64).scaled(0.1), None
    if kind.name == "kubernetes.URL":
        size = operands[1].known or _ONE
        return Range(1, size.high).scaled(0.1), None
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


def _search_list(target: Operand, _: list[Operand]) -> CallEstimate:
    element = target.element
    if element is None:
        return target.size.scaled(0.1), None
    each = _ONE
    if element[0].kind in ("string", "bytes"):
        each = each.plus(element[1].scaled(0.1))
    return target.size.times(each), None


def _rewrite(target: Operand, _: list[Operand]) -> CallEstimate:
    return target.size.scaled(0.1), target.size


def _replace(target: Operand, operands: list[Operand]) -> CallEstimate | None:
    if len(operands) < 2:
        return None
    size, old, new = target.size, operands[0].size, operands[1].size
    if old.low == 0:
        longest, kept_most = min(size.high + 1, MAX_UINT64), size.high
    elif new.high <= old.low:
        longest, kept_most = 0, size.high
    else:
        longest, kept_most = math.ceil(float(size.high) / float(old.low)), 0
    if old.high == 0:
        shortest, kept_least = min(size.low + 1, MAX_UINT64), size.low
    elif old.high <= new.low:
        shortest, kept_least = 0, size.low
    else:
        shortest, kept_least = math.ceil(float(size.low) / float(old.high)), 0
    grown = Range(shortest, min(longest, MAX_UINT64)).times(new).plus(Range(kept_least, kept_most))
    return size.scaled(0.2), grown


def _split(target: Operand, operands: list[Operand]) -> CallEstimate:
    limit = target.size.high
    if len(operands) > 1 and operands[1].literal is not None and isinstance(operands[1].literal.value, int):
        limit = operands[1].literal.value % (MAX_UINT64 + 1)
    return target.size.scaled(0.2), Range(0, limit)


def _join(target: Operand, operands: list[Operand]) -> CallEstimate:
    count = target.size
    element = target.element
    size = ZERO if element is None else count.times(element[1])
    if operands:
        between = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(operands[0].size.times(between))
    return size.scaled(0.1), size


def _find(target: Operand, operands: list[Operand]) -> CallEstimate | None:
    if not operands:
        return None
    text = target.size.plus(_ONE).scaled(0.1)
    return text.times(operands[0].size.scaled(0.25)), Range(0, target.size.high)


def _contains_ip(_: Operand, operands: list[Operand]) -> CallEstimate | None:
    if not operands:
        return None
    total = _IP.plus(_IP).scaled(0.1)
    if operands[0].type.kind == "string":
        total = total.plus(operands[0].size.scaled(0.1))
    return total, None


def _contains_network(target: Operand, operands: list[Operand]) -> CallEstimate | None:
    inner = _contains_ip(target, operands)
    return None if inner is None else (inner[0].plus(_IP.scaled(0.1)).plus(_ONE), None)


def _validate(_: Operand, operands: list[Operand]) -> CallEstimate | None:
    return (operands[0].size.scaled(0.1).scaled(_MAX_FORMAT_PATTERN * 0.25), None) if operands else None


def _authorizer_check(*_: object) -> CallEstimate:
    return exactly(_AUTHORIZER_CHECK_COST), None


def _selector(_: Operand, operands: list[Operand]) -> CallEstimate | None:
    if len(operands) != 1:
        return None
    size = operands[0].size
    return exactly(10).plus(size.scaled(0.1)).plus(size.scaled(0.5).scaled(50.0)), None


_ON_TARGET: Final[dict[str, Callable[[Operand, list[Operand]], CallEstimate | None]]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _search_list),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _rewrite),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_network,
    "validate": _validate,
    "check": _authorizer_check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
}


def _parse(first: Operand, _: str) -> CallEstimate:
    return first.size.scaled(0.1), None


def _parse_url(first: Operand, _: str) -> CallEstimate:
    return first.size.scaled(0.1), first.size


def _parse_twice(first: Operand, _: str) -> CallEstimate:
    return first.size.scaled(0.2), None


_ON_FIRST: Final[dict[str, Callable[[Operand, str], CallEstimate]]] = {
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _parse),
    "url": _parse_url,
    "ip.isCanonical": _parse_twice,
}


def _standard_estimate(identity: str, target: Operand | None, operands: list[Operand]) -> CallEstimate | None:
    if identity == "string_format" and target is not None:
        return target.size.scaled(0.1), None
    if identity == "string_to_bytes":
        size = operands[0].size
        return size.scaled(0.1), Range(size.low, size.high * 4 % (MAX_UINT64 + 1))
    if identity == "bytes_to_string":
        size = operands[0].size
        return size.scaled(0.1), Range(size.low // 4, size.high)
    if identity == "strings_quote":
        size = operands[0].size
        return size.scaled(0.1), Range(size.low + 2, (size.high * 2 + 2) % (MAX_UINT64 + 1))
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
    if identity in _COMPARISONS:
        shorter = min(operands[0].size.high, operands[1].size.high)
        return Range(int(shorter > 0), shorter).scaled(0.1), None
    return None


_COMPARISONS: Final = frozenset(
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
