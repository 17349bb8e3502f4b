"""CreateOptions, UpdateOptions, PatchOptions, DeleteOptions and ListOptions: parsed from the query and validated.

DeleteOptions come from the body too. A bad value raises a StatusError with kube-apiserver's text
(k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, and for lists and watches
k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go). The options are frozen data; the verbs
act on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.field_errors import FieldError, unsupported
from kubewright.api.go_text import quoted
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, invalid, status_error
from kubewright.apiserver.wire.value_limits import MAX_SELECTOR
from kubewright.errors import DecodeError

__all__ = (
    "DeleteOptions",
    "ListOptions",
    "WriteOptions",
    "delete_options",
    "list_options",
    "parse_bool",
    "parse_resource_version",
    "write_options",
)

FieldValidation = Literal["Ignore", "Warn", "Strict"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]

_META: Final = "meta.k8s.io"
_MAX_MANAGER: Final = 128
_NOT_WITH_CONTINUE: Final = "resourceVersionMatch is forbidden when continue is provided"
_UNESCAPED: Final = re.compile(r"(?<=value: )'(.)'; put a backslash before it")


class WriteOptions(Struct, frozen=True):
    """CreateOptions, UpdateOptions or PatchOptions."""

    dry_run: bool = False
    manager: str = ""
    """The fieldManager parameter; if empty, the user agent's name is used."""
    validation: FieldValidation = "Warn"
    force: bool | None = None


class DeleteOptions(Struct, frozen=True):
    """Of delete and deletecollection."""

    dry_run: bool = False
    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: Propagation = ""


class ListOptions(Struct, frozen=True):
    """Of list, watch and deletecollection; `token` is the continue token."""

    labels: Selector
    fields: FieldSelector
    version: int | None = None
    """The resourceVersion parameter; None without one."""
    match: str = ""
    limit: int = 0
    token: str = ""
    timeout: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


_SHORT: Final = 8 * 1024
"""Characters of a selector that is worth remembering."""
_EVERYTHING: Final = Selector.parse("")
_ANY_FIELD: Final = FieldSelector()


def _labels(text: str) -> Selector:
    return (_cached_labels if len(text) <= _SHORT else _parse_labels)(text)


def _fields(text: str) -> FieldSelector:
    return (_cached_fields if len(text) <= _SHORT else _parse_fields)(text)


def _parse_labels(text: str) -> Selector:
    _check_size(text)
    try:
        return Selector.parse(text)
    except DecodeError as exc:
        message = str(exc)
        # An error between two requirements is not an error of parsing one.
        plain = "unable" in message or message.endswith(("or 'end of string'", "identifier after ','"))
        raise bad_request(message if plain else f"unable to parse requirement: {message}") from None


def _parse_fields(text: str) -> FieldSelector:
    _check_size(text)
    try:
        return FieldSelector.parse(text)
    except DecodeError as exc:
        # Go prints the rune as a number.
        raise bad_request(_UNESCAPED.sub(lambda found: str(ord(found[1])), str(exc))) from None


_cached_labels: Final = lru_cache(maxsize=512)(_parse_labels)
_cached_fields: Final = lru_cache(maxsize=512)(_parse_fields)


def _check_size(text: str) -> None:
    if len(text) > MAX_SELECTOR:
        raise bad_request(f"a selector has {len(text)} characters, and this server reads at most {MAX_SELECTOR}")


def _invalid(kind: str, errors: Iterable[FieldError]) -> StatusError:
    return invalid(GroupVersionKind(_META, "v1", kind), "", errors)


def write_options(
    kind: str, query: Mapping[str, str], *, is_apply: bool = False, is_patch: bool = False
) -> WriteOptions:
    """Parse the options of a create, update or patch; `kind` is CreateOptions, UpdateOptions or PatchOptions."""
    if not query:
        if is_apply:
            raise _invalid(kind, [FieldError("fieldManager", "Required", "is required for apply patch")])
        return _NO_OPTIONS
    errors: list[FieldError] = []
    manager = query.get("fieldManager", "")
    force = _boolean(query.get("force"))
    if is_patch and force is not None and not is_apply:
        errors.append(FieldError("force", "Forbidden", "may not be specified for non-apply patch"))
    if is_apply and not manager:
        errors.append(FieldError("fieldManager", "Required", "is required for apply patch"))
    errors += _manager_errors(manager)
    dry_run = _dry_run(query, errors)
    validation = query.get("fieldValidation", "") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        errors.append(unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if errors:
        raise _invalid(kind, errors)
    return WriteOptions(dry_run, manager, validation, force)  # type: ignore[arg-type] # checked above


_NO_OPTIONS: Final = WriteOptions()


def parse_bool(text: str) -> bool:
    """The value of a boolean parameter of a query: anything but 0, f and false is true, an empty value too.

    kube-apiserver: `Convert_Slice_string_To_bool` in k8s.io/apimachinery/pkg/runtime/conversion.go.
    """
    return text.lower() not in ("0", "false", "f")


def _boolean(text: str | None) -> bool | None:
    return None if text is None else parse_bool(text)


def _manager_errors(manager: str) -> list[FieldError]:
    if len(manager) > _MAX_MANAGER:
        detail = f"may not be more than {_MAX_MANAGER} bytes"
        return [FieldError("fieldManager", "TooLong", detail)]
    for position, character in enumerate(manager):
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            return [FieldError("fieldManager", "Invalid", detail, manager)]
    return []


def _dry_run(query: Mapping[str, Any], errors: list[FieldError]) -> bool:
    value = query.get("dryRun")
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not values:
        return False
    if any(item != "All" for item in values):
        errors.append(FieldError("dryRun", "NotSupported", 'supported values: "All"', values))
    return True


def delete_options(query: Mapping[str, str], body: Mapping[str, Any] | None) -> DeleteOptions:
    """Parse the options of a delete: from the body, or from the query if there is no body."""
    errors: list[FieldError] = []
    source: Mapping[str, Any] = body if body is not None else query
    grace = _integer(source.get("gracePeriodSeconds"))
    policy = source.get("propagationPolicy")
    orphan = source.get("orphanDependents")
    if body is None and orphan is not None:
        orphan = _boolean(str(orphan))
    if policy is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(FieldError("propagationPolicy", "Invalid", detail, policy))
    elif policy is not None and policy not in ("Foreground", "Background", "Orphan"):
        detail = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        errors.append(FieldError("propagationPolicy", "NotSupported", detail, policy))
    dry_run = _dry_run(source, errors)
    if errors:
        raise _invalid("DeleteOptions", errors)
    if policy is None and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    preconditions = (body or {}).get("preconditions") or {}
    return DeleteOptions(dry_run, grace, preconditions.get("uid"), preconditions.get("resourceVersion"), policy or "")


_DIGITS: Final = re.compile(r"[0-9]+")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,400}")


def _integer(value: Any) -> int | None:
    if value is None:
        return None
    if _INTEGER.fullmatch(str(value)) is None:
        raise bad_request(f"strconv.ParseInt: parsing {quoted(str(value))}: invalid syntax")
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
    return number


def list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Parse the options of a list, a watch or a deletecollection."""
    if not query:
        return ListOptions(_EVERYTHING, _ANY_FIELD)
    options = ListOptions(
        labels=_labels(query["labelSelector"]) if query.get("labelSelector") else _EVERYTHING,
        fields=_fields(query["fieldSelector"]) if query.get("fieldSelector") else _ANY_FIELD,
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query.get("limit")) or 0,
        token=query.get("continue", ""),
        timeout=_integer(query.get("timeoutSeconds")),
        bookmarks=bool(_boolean(query.get("allowWatchBookmarks"))),
        initial_events=_boolean(query.get("sendInitialEvents")),
    )
    text = query.get("resourceVersion", "")
    errors = list(_list_errors(options, text, watch=watch))
    if errors:
        raise _invalid("ListOptions", errors)
    # The storage parses the version, after the options were validated: errors about them come first.
    return replace(options, version=parse_resource_version(text, of_list=not watch)) if text else options


def parse_resource_version(text: str, *, of_list: bool = False) -> int | None:
    """The resourceVersion parameter; a bad one is a 400 of a list and, as in kube-apiserver, a 500 of other verbs."""
    if text == "":
        return None
    in_range = True
    if not _DIGITS.fullmatch(text) or not (in_range := int(text[:32]) < 2**64):
        detail = f"strconv.ParseUint: parsing {quoted(text)}: {'invalid syntax' if in_range else 'value out of range'}"
        why = FieldError("resourceVersion", "Invalid", detail, text).message
        raise bad_request(f"invalid resource version: {why}") if of_list else status_error(500, "", why)
    return int(text)


def _list_errors(options: ListOptions, version: str, *, watch: bool) -> Iterable[FieldError]:
    if watch:
        yield from _watch_errors(options)
        return
    if options.match:
        yield from _match_errors(options, version)
    if options.initial_events is not None:
        yield FieldError("sendInitialEvents", "Forbidden", "sendInitialEvents is forbidden for list")


def _watch_errors(options: ListOptions) -> Iterable[FieldError]:
    match = options.match
    if options.initial_events is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        yield FieldError("resourceVersionMatch", "Forbidden", detail)
    if not match:
        return
    if options.initial_events is None:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        yield FieldError("resourceVersionMatch", "Forbidden", detail)
    if match != "NotOlderThan":
        yield FieldError("resourceVersionMatch", "NotSupported", 'supported values: "NotOlderThan"', match)
    if options.token:
        yield FieldError("resourceVersionMatch", "Forbidden", _NOT_WITH_CONTINUE)


def _match_errors(options: ListOptions, version: str) -> Iterable[FieldError]:
    match = options.match
    if not version:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        yield FieldError("resourceVersionMatch", "Forbidden", detail)
    if options.token:
        yield FieldError("resourceVersionMatch", "Forbidden", _NOT_WITH_CONTINUE)
    if match not in ("Exact", "NotOlderThan"):
        detail = 'supported values: "Exact", "NotOlderThan", ""'
        yield FieldError("resourceVersionMatch", "NotSupported", detail, match)
    if match == "Exact" and version == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        yield FieldError("resourceVersionMatch", "Forbidden", detail)
