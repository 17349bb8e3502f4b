"""The verbs get and list.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go and storage/continue.go. A list is one
consistent state: its first page has a version, and the continue tokens make the further pages show that version,
however much has changed since, until it is compacted.
"""

from __future__ import annotations

import base64
import posixpath
import string
from collections.abc import Iterable, Sequence
from typing import Any, final

import msgspec

from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.storage.compaction import Compactor
from kubewright.apiserver.storage.store import Compacted, Entry, Store, Table
from kubewright.apiserver.verbs.selectors import Selection
from kubewright.apiserver.verbs.transform import respond_list, respond_object
from kubewright.apiserver.wire.go_json import json_type_name, syntax_error
from kubewright.apiserver.wire.options import ListOptions, list_options, parse_bool, parse_resource_version
from kubewright.apiserver.wire.responses import LongResponse, Response, encode_json
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    bad_request,
    expired,
    not_found,
    too_large_resource_version,
)

__all__ = ("ReadHandler",)

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list"
    " without the continue parameter, or use the continue token in this response to retrieve the remainder of the"
    " results. Continuing with the provided token results in an inconsistent list - objects that were created,"
    " modified, or deleted between the time the first chunk was returned and now may show up in the list."
)

_CONTINUE_VERSION = "meta.k8s.io/v1"
_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")


class _Token(msgspec.Struct):
    """A continue token: the version of the list, and the key its next page begins behind."""

    v: str
    rv: int
    start: str


@final
class ReadHandler:
    """Reads objects from a store."""

    def __init__(self, store: Store, compaction: Compactor) -> None:
        self._store = store
        self._compaction = compaction

    async def get(self, call: Call) -> Response:
        """Get one object."""
        if "export" in call.request.query and parse_bool(call.request.query["export"]):
            raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        self._check_not_future(parse_resource_version(call.request.query.get("resourceVersion", "")))
        entry = self._store.table(call.resource.table).get(call.key)
        if entry is None:
            raise not_found(call.resource.group_resource, call.info.name)
        return await respond_object(call, await call.resource.bytes_of(entry))

    async def list(self, call: Call) -> Response | LongResponse:
        """List the objects of a namespace, or of all, or a page of them."""
        options = list_options(call.request.query, watch=False)
        resource = call.resource
        selection = Selection(resource, call.namespace, options.labels, options.fields)
        table = self._store.table(resource.table)
        version, after, pinned = self._where(options)
        past = pinned and version != self._store.version
        entries: Iterable[Entry] = table.entries(selection.namespace or None, after=after)
        if past:
            entries = self._past_entries(table, selection, version, after)
        # A list at resourceVersion 0 is not paged: kube-apiserver answers it whole from its watch cache. Neither are
        # ComponentStatuses, which it does not store and which alone cannot be watched.
        stored = "watch" in resource.verbs
        limit = 0 if not stored or (options.version == 0 and not options.token) else options.limit
        page, more = _page(entries, selection, limit)
        meta: dict[str, Any] = {"resourceVersion": str(version)} if stored else {}
        if more:
            last = page[-1].key
            meta["continue"] = _token(version, last)
            if selection.everything:
                behind = table.count(selection.namespace or None, after=last)
                meta["remainingItemCount"] = len(entries) - len(page) if isinstance(entries, list) else behind
        return await respond_list(call, await resource.all_bytes(page), meta)

    def _check_not_future(self, version: int | None) -> None:
        if version is not None and version > self._store.version:
            raise too_large_resource_version(version, self._store.version)

    def _where(self, options: ListOptions) -> tuple[int, str, bool]:
        """The version to list, the key to begin behind, and whether the list is bound to that version."""
        present = self._store.version
        if options.token:
            token = _read_token(options.token)
            if options.version not in (None, 0):
                raise bad_request("specifying resource version is not allowed when using continue")
            # The token that comes with a 410 has the version -1: it continues with the present state, inconsistently.
            return (present, token.start, False) if token.rv == -1 else (token.rv, token.start, True)
        self._check_not_future(options.version)
        exact = options.match == "Exact" or (options.limit > 0 and not options.match)
        if options.version and exact:
            return options.version, "", True
        return present, "", False

    def _past_entries(self, table: Table, selection: Selection, version: int, after: str) -> Sequence[Entry]:
        try:
            if version < self._compaction.oldest:
                raise Compacted(version, self._compaction.oldest)
            return table.entries_at(version, selection.namespace or None, after=after)
        except Compacted:
            if not after:
                raise expired("The resourceVersion for the provided list is too old.") from None
            raise _expired_token(after) from None


def _page(entries: Iterable[Entry], selection: Selection, limit: int) -> tuple[list[Entry], bool]:
    if not limit:
        return [entry for entry in entries if selection.everything or selection.matches(entry)], False
    page: list[Entry] = []
    for entry in entries:
        if len(page) == limit:
            return page, True  # whether more objects match is not known: the next page may be empty
        if selection.matches(entry):
            page.append(entry)
    return page, False


def _token(version: int, last: str) -> str:
    text = encode_json({"v": _CONTINUE_VERSION, "rv": version, "start": last})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    at = next((index for index, character in enumerate(text) if character not in _BASE64), len(text))
    if at < len(text) or len(text) % 4 == 1:  # one letter alone is no byte
        raise _bad_token(f"illegal base64 data at input byte {min(at, len(text) - 1)}")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    try:
        tree = msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise _bad_token(syntax_error(data)) from None
    token = _decode_token({} if tree is None else tree)
    if token.v != _CONTINUE_VERSION:
        raise _bad_token(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {token.v})")
    if not token.start:
        raise _bad_token(f"encoded start key empty (version {token.v})")
    if posixpath.normpath(f"/{token.start}") != f"/{token.start}":
        raise _bad_token(token.start)
    return token


def _decode_token(tree: Any) -> _Token:
    if not isinstance(tree, dict):
        raise _bad_token(f"json: cannot unmarshal {json_type_name(tree)} into Go value of type storage.continueToken")
    given = {name: value for name, value in tree.items() if value is not None}
    for name, (kind, shown) in {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}.items():
        value = given.get(name)
        if value is not None and type(value) is not kind:
            found = f"number {value}" if isinstance(value, float) else json_type_name(value)
            raise _bad_token(
                f"json: cannot unmarshal {found} into Go struct field continueToken.{name} of type {shown}"
            )
    return _Token(given.get("v", ""), given.get("rv", 0), given.get("start", ""))


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _expired_token(after: str) -> StatusError:
    error = expired(_TOO_OLD)
    error.status = {**error.status, "metadata": {"continue": _token(-1, after)}}
    return error
