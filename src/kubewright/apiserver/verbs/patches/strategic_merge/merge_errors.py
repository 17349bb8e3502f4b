"""The errors of strategic merge patches, letter by letter.

The messages quote parts of the patch as Go prints them. Most have the code 500 and no reason, because they are plain
errors of a library and not API errors.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright.api.patches import Json
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, status_error

__all__ = (
    "LIST",
    "MAP",
    "bad_order_list",
    "bad_primitive_list",
    "bad_retain_keys",
    "failed",
    "go_type",
    "go_value",
    "lists_of_lists",
    "no_merge_key",
    "unknown_directive",
    "wrong_type",
)

MAP: Final = "map[string]interface {}"
LIST: Final = "[]interface {}"


def failed(message: str) -> StatusError:
    """500 without a reason, as for any error that is no API error."""
    return status_error(500, "", message)


def bad_primitive_list() -> StatusError:
    """400: `$deleteFromPrimitiveList` without a field."""
    return bad_request("invalid patch format of primitive list")


def bad_order_list() -> StatusError:
    """400: `$setElementOrder` without a field."""
    return bad_request("invalid patch format of setElementOrder list")


def bad_retain_keys() -> StatusError:
    """400: `$retainKeys` is no list, or the patch sets what is not in it."""
    return bad_request("invalid patch format of retainKeys")


def lists_of_lists() -> StatusError:
    """422: a list of lists cannot be merged; kube-apiserver does not say why."""
    return status_error(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def no_merge_key(element: Json, key: str) -> StatusError:
    """An element has no merge key."""
    return failed(f"map: {go_value(element)} does not contain declared merge key: {key}")


def wrong_type(expected: str, actual: Json) -> StatusError:
    """A directive or an element has the wrong type."""
    return failed(f"expected a {expected}, but received a {go_type(actual) or '%!s(<nil>)'}")


def unknown_directive(directive: Json, holder: Json) -> StatusError:
    """`$patch` is neither delete, replace nor merge."""
    if isinstance(directive, str):
        printed = directive
    elif directive is None:
        printed = "%!s(<nil>)"
    else:
        printed = f"%!s({go_type(directive)}={go_value(directive)})"
    return failed(f"unknown patch type: {printed} in map: {go_value(holder)}")


def go_type(value: Json) -> str:
    """The type a JSON value has in Go; empty for null."""
    if value is None:
        return ""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return type(value).__name__


_TYPES: Final[tuple[tuple[type[Any], str], ...]] = (
    (bool, "bool"),  # before int, which it is to Python
    (str, "string"),
    (int, "int64"),
    (float, "float64"),
    (dict, MAP),
    (list, LIST),
)


def go_value(value: Json) -> str:
    """A JSON value as Go's %v prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_value(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Python switches to an exponent at 1e16, Go at 1e21.
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e21 else repr(value)
    return "<nil>" if value is None else str(value)
