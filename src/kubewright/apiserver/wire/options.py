"""The options of a request: dry run, field manager, field validation, deletion, lists and watches.

Each comes from the query, deletion's also from the body. Wrong values are refused with the texts of kube-apiserver.
Plain frozen data; the verbs act on it.
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
from kubewright.errors import DecodeError

__all__ = (
    "DeleteOptions",
    "ListOptions",
    "WriteOptions",
    "asked_version",
    "delete_options",
    "flag",
    "list_options",
    "write_options",
)

FieldValidation = Literal["Ignore", "Warn", "Strict"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]

_META: Final = "meta.k8s.io"
_MAX_MANAGER: Final = 128
_NOT_WITH_CONTINUE: Final = "resourceVersionMatch is forbidden when continue is provided"
_UNESCAPED: Final = re.compile(r"(?<=value: )'(.)'; put a backslash before it")


class WriteOptions(Struct, frozen=True):
    """Of create, update and patch."""

    dry_run: bool = False
    manager: str = ""
    """As asked for; empty means that it is taken from the user agent."""
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
    """Of list, watch and deletecollection."""

    labels: Selector
    fields: FieldSelector
    version: int | None = None
    """The version asked for; None when none was."""
    match: str = ""
    limit: int = 0
    token: str = ""
    timeout: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


_EVERYTHING: Final = Selector.parse("")
_ANY_FIELD: Final = FieldSelector()


@lru_cache(maxsize=512)
def _labels(text: str) -> Selector:
    try:
        return Selector.parse(text)
    except DecodeError as exc:
        said = str(exc)
        # Between requirements nothing is being parsed yet.
        plain = "unable" in said or said.endswith(("or 'end of string'", "identifier after ','"))
        raise bad_request(said if plain else f"unable to parse requirement: {said}") from None


@lru_cache(maxsize=512)
def _fields(text: str) -> FieldSelector:
    try:
        return FieldSelector.parse(text)
    except DecodeError as exc:
        # Go shows the character as a number.
        said = _UNESCAPED.sub(lambda found: str(ord(found[1])), str(exc))
        raise bad_request(said) from None


def _invalid(kind: str, errors: Iterable[FieldError]) -> StatusError:
    return invalid(GroupVersionKind(_META, "v1", kind), "", errors)


def write_options(
    kind: str, query: Mapping[str, str], *, is_apply: bool = False, is_patch: bool = False
) -> WriteOptions:
    """Of a create, update or patch; `kind` is CreateOptions, UpdateOptions or PatchOptions."""
    if not query:
        if is_apply:
            raise _invalid(kind, [FieldError("fieldManager", "Required", "is required for apply patch")])
        return _PLAIN
    errors: list[FieldError] = []
    manager = query.get("fieldManager", "")
    force = _boolean(query.get("force"), kind, "force")
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


_PLAIN: Final = WriteOptions()


def flag(text: str) -> bool:
    """Whether a parameter that is there says yes."""
    return bool(_boolean(text, "", ""))


def _boolean(text: str | None, kind: str, name: str) -> bool | None:
    if text is None:
        return None
    if text.lower() in ("", "0", "false", "f"):
        # Go reads an empty value as true for a flag that is there.
        return text == ""
    if text.lower() in ("1", "true", "t"):
        return True
    return True  # whatever else is neither 0 nor false counts as true


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
    """From the body, or from the query when there is none."""
    errors: list[FieldError] = []
    source: Mapping[str, Any] = body if body is not None else query
    grace = _integer(source.get("gracePeriodSeconds"), "gracePeriodSeconds")
    policy = source.get("propagationPolicy")
    orphan = source.get("orphanDependents")
    if body is None and orphan is not None:
        orphan = _boolean(str(orphan), "DeleteOptions", "orphanDependents")
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
    wanted = (body or {}).get("preconditions") or {}
    return DeleteOptions(dry_run, grace, wanted.get("uid"), wanted.get("resourceVersion"), policy or "")


_DIGITS: Final = re.compile(r"[0-9]+")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,400}")


def _integer(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if _INTEGER.fullmatch(str(value)) is None:
        raise bad_request(f"strconv.ParseInt: parsing {quoted(str(value))}: invalid syntax")
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
    return number


def list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Of a list or a watch."""
    if not query:
        return ListOptions(_EVERYTHING, _ANY_FIELD)
    options = ListOptions(
        labels=_labels(query["labelSelector"]) if query.get("labelSelector") else _EVERYTHING,
        fields=_fields(query["fieldSelector"]) if query.get("fieldSelector") else _ANY_FIELD,
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query.get("limit"), "limit") or 0,
        token=query.get("continue", ""),
        timeout=_integer(query.get("timeoutSeconds"), "timeoutSeconds"),
        bookmarks=bool(_boolean(query.get("allowWatchBookmarks"), "", "")),
        initial_events=_boolean(query.get("sendInitialEvents"), "", ""),
    )
    text = query.get("resourceVersion", "")
    errors = list(_list_errors(options, text, watch=watch))
    if errors:
        raise _invalid("ListOptions", errors)
    # Only whoever would look it up reads the version; everything else about the options is said before.
    return replace(options, version=asked_version(text, of_list=not watch)) if text else options


def asked_version(text: str, *, of_list: bool = False) -> int | None:
    """A version as a parameter; only a list calls a bad one the client's fault, as kube-apiserver does."""
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
