"""The verb watch: every change of a resource, from the present state or from a past version on.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go and its watch cache. The table calls
`WatchStream` from within the write, and it sends the event in the same step; an event for many watchers is encoded
once. While a client does not read, its events wait in order; when they are too many bytes, of this watch or of all
together, the connection of the one that is furthest behind is closed, and its client resumes from the version it has
seen (kube-apiserver: `forceCloseWatcher` of the watch cache). A large event goes to one watcher in each turn of
the loop, so that a write with hundreds of watchers holds up nobody else. A resource with a conversion webhook cannot
send at once either: a task converts its events and sends them in order.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import msgspec

from kubewright.api.selectors import FieldSelector
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.storage.store import Change, Compacted, Entry, Store
from kubewright.apiserver.verbs.selectors import Selection
from kubewright.apiserver.verbs.transform import metadata_only, table_tree
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import JSON, PROTOBUF, YAML
from kubewright.apiserver.wire.options import ListOptions, list_options
from kubewright.apiserver.wire.protobuf import STREAM_MEDIA_TYPE, encode_watch_event
from kubewright.apiserver.wire.responses import Reply, Sink, Stream, encode_json
from kubewright.apiserver.wire.status_errors import StatusError, expired, status_error, too_large_resource_version
from kubewright.apiserver.wire.web_sockets import is_web_socket, web_socket_reply

__all__ = ("WatchHandler", "WatchStream")

_MAX_BEHIND: Final = 8 * 1024 * 1024
"""Bytes of changes that wait for one client. The initial events do not count: they are the objects of the store."""
_MAX_ALL_BEHIND: Final = 96 * 1024 * 1024
"""Bytes that wait for all clients together."""
_LARGE_EVENT: Final = 64 * 1024
"""Bytes of an object from which on each watcher gets it in a turn of its own."""
_EVENT_BYTES: Final = 256
"""What an event that waits takes beside its object."""
_BOOKMARK_EVERY: Final = 55.0
_LAST_BOOKMARK: Final = 2.0
"""Seconds before the end of a watch at which it gets a bookmark, so that the client resumes from there; a shorter watch
gets none."""
_DEFAULT_TIMEOUT: Final = (1800.0, 3600.0)
_TOO_OLD: Final = "The resourceVersion for the provided watch is too old."
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}

Event = tuple[str, Entry]


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    """An event that waits for the client to read, or for a conversion. Without an entry it ends the initial events."""

    kind: str
    entry: Entry | None
    size: int
    change: Change | None = None


@final
class WatchHandler:
    """Opens watches on a store and sends their bookmarks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.streams: set[WatchStream] = set()
        self._behind = 0
        self._turns: deque[WatchStream] = deque()

    def take_turn(self, stream: WatchStream) -> None:
        """Let the stream send one of its large events when those before it are sent."""
        if not self._turns:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._turns.append(stream)

    def _next_turn(self) -> None:
        self._turns[0].send_large()
        self._turns.popleft()
        if self._turns:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def fall_behind(self, size: int) -> None:
        """The watches have so many bytes more to send, or less; above the limit, the one with most of them ends."""
        self._behind += size
        if size > 0 and self._behind > _MAX_ALL_BEHIND:
            max(self.streams, key=lambda stream: stream.behind).cut_off()

    async def watch(self, call: Call) -> Reply:
        """A stream of events. Errors of the request are raised now; later errors are events of the stream."""
        stream = self.open(call)
        if is_web_socket(call.request):
            return web_socket_reply(call.request, stream, text=call.output.media == JSON)
        return stream

    def open(self, call: Call) -> WatchStream:
        """The stream, which begins when it is given the connection."""
        if call.output.media == YAML:
            accepted = ", ".join((f"{JSON};stream=watch", STREAM_MEDIA_TYPE))
            raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {accepted}")
        options = list_options(call.request.query, watch=True)
        if call.info.name:  # the deprecated path of a watch of one object has its name
            only = FieldSelector.parse(f"metadata.name={call.info.name}")
            options = msgspec.structs.replace(options, fields=FieldSelector((*options.fields.terms, *only.terms)))
        selection = Selection(call.resource, call.namespace, options.labels, options.fields)
        return WatchStream(self, self._store, call, options, selection)

    def end(self) -> None:
        """End all watches: the server stops."""
        for stream in tuple(self.streams):
            stream.table_gone()

    def tick(self, now: float) -> None:
        """Send the bookmarks that are due."""
        for stream in tuple(self.streams):
            stream.tick(now)


@final
class WatchStream(Stream):
    """One open watch."""

    def __init__(
        self, owner: WatchHandler, store: Store, call: Call, options: ListOptions, selection: Selection
    ) -> None:
        self._owner = owner
        self._store = store
        self._call = call
        self._options = options
        self._selection = selection
        self._table = store.table(call.resource.table)
        self._sink: Sink | None = None
        self._unwatch: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._final_bookmark_timer: asyncio.TimerHandle | None = None
        self._sent = 0
        self._next_bookmark = 0.0
        self._columns_sent = False
        self._waiting: deque[_Waiting] = deque()
        self.behind = 0
        """Bytes that wait for the client."""
        self._changes_behind = 0
        self._large: deque[tuple[str, Entry, Change]] = deque()
        """Events whose turn is still to come: a large one, and those after it."""
        self._large_bytes = 0
        self._unread = 0
        """Bytes of them that are written, but not read."""
        self._wake: asyncio.Event | None = None
        self._converter_task: asyncio.Task[None] | None = None
        self._protobuf = call.output.media == PROTOBUF
        self._plain = not call.output.as_kind and not self._protobuf
        self.content_type = STREAM_MEDIA_TYPE if self._protobuf else JSON
        self.headers = call.headers()

    # called by the connection

    def start(self, sink: Sink) -> None:
        """Send the initial events, or those since the version of the request, and each change from now on."""
        self._sink = sink
        self._owner.streams.add(self)
        self._unwatch = self._table.watch(self)
        loop = asyncio.get_running_loop()
        timeout = self._options.timeout
        seconds = float(timeout) if timeout is not None else random.uniform(*_DEFAULT_TIMEOUT)
        self._timer = loop.call_later(seconds, self._finish)
        if self._options.bookmarks and seconds > _LAST_BOOKMARK:
            self._final_bookmark_timer = loop.call_later(seconds - _LAST_BOOKMARK, self._last_bookmark)
        self._next_bookmark = time.monotonic() + random.uniform(0.5, 1.0) * _BOOKMARK_EVERY
        if self._call.resource.strategy.has_conversion_webhook:
            self._wake = asyncio.Event()
            self._converter_task = loop.create_task(self._convert_and_send(self._wake))
        try:
            self._send_past()
        except Compacted as exc:
            # kube-apiserver has no watch cache for Events; etcd answers, in other words.
            is_event = self._call.resource.kind.kind == "Event"
            self._send_error(expired(_TOO_OLD if is_event else str(exc)))
            self._finish()

    def unblocked(self) -> None:
        """The client reads again: send what waits, until it is blocked once more."""
        self._count_unread(0)
        if self._wake is not None:
            self._wake.set()
            return
        while self._waiting and self._sink is not None and not self._sink.blocked:
            waiting = self._next_waiting()
            if waiting.entry is None:
                self._bookmark(_INITIAL_END)
            else:
                self._send(waiting.kind, waiting.entry, change=waiting.change)

    def disconnected(self) -> None:
        """The client is gone, or the server stops."""
        self._stop()
        self._sink = None

    def cut_off(self) -> None:
        """The client is too far behind: close its connection."""
        sink, self._sink = self._sink, None
        self._stop()
        if sink is not None:
            sink.abort()

    def _stop(self) -> None:
        self._owner.streams.discard(self)
        self._waiting.clear()
        self._large.clear()
        self._unread = 0
        self._count_behind(-self.behind)
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        for timer in (self._timer, self._final_bookmark_timer):
            if timer is not None:
                timer.cancel()
        if self._converter_task is not None and self._converter_task is not asyncio.current_task():
            self._converter_task.cancel()

    def _finish(self) -> None:
        sink, self._sink = self._sink, None
        self._stop()
        if sink is not None:
            sink.end()

    def _last_bookmark(self) -> None:
        if self._is_prompt:
            self._bookmark()

    # called by the table

    def deliver(self, change: Change) -> None:
        """Send the event of a change, or queue it for conversion."""
        self._sent = change.version
        event = self._event_of(change)
        if event is None or self._sink is None:
            return
        kind, entry = event
        if self._large or (self._is_prompt and len(entry.value) >= _LARGE_EVENT):
            self._large.append((kind, entry, change))
            self._large_bytes += len(entry.value)
            self._owner.take_turn(self)
            if self._large_bytes > _MAX_BEHIND:
                self.cut_off()
        else:
            self._send_or_wait(kind, entry, change)

    def send_large(self) -> None:
        """Send the first event whose turn has come; none is left if the watch has ended."""
        if self._large:
            kind, entry, change = self._large.popleft()
            self._large_bytes -= len(entry.value)
            self._send_or_wait(kind, entry, change)

    def _send_or_wait(self, kind: str, entry: Entry, change: Change) -> None:
        if self._reads:
            self._send(kind, entry, change=change)
            return
        size = _EVENT_BYTES + len(entry.value)
        self._changes_behind += size
        self._wait(_Waiting(kind, entry, size, change))
        if self._changes_behind > _MAX_BEHIND:
            self.cut_off()

    def table_gone(self) -> None:
        """The kind is served no more, or the server stops: end the watch."""
        self._finish()

    def _send_past(self) -> None:
        version, options = self._options.version, self._options
        initial = options.initial_events
        # Three ways to begin: the state as synthetic ADDED events, ended by a bookmark (sendInitialEvents); the same
        # without the bookmark (no version, or 0); or every change after a version, if it is not compacted.
        if initial or (initial is None and not version):
            if initial and version and version > self._store.version:
                self._send_error(too_large_resource_version(version, self._store.version))
                self._finish()
                return
            for entry in self._table.entries(self._selection.namespace or None):
                if self._selection.matches(entry):
                    self._put("ADDED", entry)
            self._sent = self._store.version
            if initial and options.bookmarks:
                if self._is_prompt:
                    self._bookmark(_INITIAL_END)
                else:
                    self._wait(_Waiting("BOOKMARK", None, _EVENT_BYTES))
            return
        for change in self._table.changes_since(version or self._store.version):
            self._sent = change.version
            event = self._event_of(change)
            if event is not None:
                self._put(*event)

    def _event_of(self, change: Change) -> Event | None:
        """The event of a change for this watch: an object that begins or ceases to match is ADDED or DELETED."""
        matches = self._selection.matches
        was = change.old is not None and matches(change.old)
        if change.new is not None and matches(change.new):
            return ("MODIFIED" if was else "ADDED", change.new)
        if not was:
            return None
        if change.last is not None:
            return ("DELETED", change.last)
        assert change.old is not None
        return ("DELETED", _at_version(change.old, change.version))

    # waiting

    @property
    def _is_prompt(self) -> bool:
        """Whether an event can be sent at once: nothing waits before it, and the client reads."""
        return not self._large and self._reads

    @property
    def _reads(self) -> bool:
        return not self._waiting and self._wake is None and self._sink is not None and not self._sink.blocked

    def _put(self, kind: str, entry: Entry) -> None:
        """Send an event of the past, or let it wait."""
        if self._is_prompt:
            self._send(kind, entry)
        else:
            self._wait(_Waiting(kind, entry, _EVENT_BYTES))

    def _wait(self, waiting: _Waiting) -> None:
        if self._sink is None:
            return
        self._waiting.append(waiting)
        if self._wake is not None:
            self._wake.set()
        self._count_behind(waiting.size)

    def _next_waiting(self) -> _Waiting:
        waiting = self._waiting.popleft()
        if waiting.change is not None:
            self._changes_behind -= waiting.size
        self._count_behind(-waiting.size)
        return waiting

    def _count_unread(self, size: int) -> None:
        more, self._unread = size - self._unread, size
        self._count_behind(more)

    def _count_behind(self, size: int) -> None:
        self.behind += size
        self._owner.fall_behind(size)

    async def _convert_and_send(self, wake: asyncio.Event) -> None:
        while True:
            await wake.wait()
            wake.clear()
            while self._waiting and self._sink is not None and not self._sink.blocked:
                waiting = self._next_waiting()
                if waiting.entry is None:
                    self._bookmark(_INITIAL_END)
                    continue
                try:
                    value = await self._call.resource.bytes_of(waiting.entry)
                except StatusError as exc:
                    self._send_error(exc)
                    self._finish()
                    return
                self._write(waiting.kind, value)

    # sending

    def _send(self, kind: str, entry: Entry, *, change: Change | None = None) -> None:
        resource = self._call.resource
        if entry.schema_id == resource.schema_id and self._plain:
            self._write_frame(_frames.frame(kind, entry.value, change))
            return
        value = entry.value
        if entry.schema_id != resource.schema_id:
            value = resource.encode(_completed(resource.strategy.from_storage([decode_json(value)]))[0])
        self._write(kind, value)

    def _write(self, kind: str, value: bytes) -> None:
        if self._plain:
            self._write_frame(b'{"type":"%b","object":%b}\n' % (kind.encode(), value))
            return
        tree: dict[str, Any]
        if not self._call.output.as_kind:
            tree = decode_json(value)
        elif self._call.output.as_kind == "Table":
            include = self._call.request.query.get("includeObject", "")
            tree = table_tree(self._call.resource, [value], include, columns=not self._columns_sent)
            tree["metadata"] = {"resourceVersion": decode_json(value)["metadata"]["resourceVersion"]}
            self._columns_sent = True
        else:
            tree = metadata_only(decode_json(value))
        self._write_tree(kind, tree)

    def _write_tree(self, kind: str, tree: Mapping[str, Any]) -> None:
        if self._protobuf:
            self._write_frame(encode_watch_event(kind, tree))
        else:
            self._write_frame(encode_json({"type": kind, "object": tree}) + b"\n")

    def _write_frame(self, frame: bytes) -> None:
        sink = self._sink
        if sink is None:
            return
        sink.write(frame)
        if sink.blocked:
            self._count_unread(sink.backlog)

    def _send_error(self, error: StatusError) -> None:
        self._write_tree("ERROR", error.status)

    def tick(self, now: float) -> None:
        """Send a bookmark if one is due."""
        if self._options.bookmarks and now >= self._next_bookmark and self._is_prompt:
            self._next_bookmark = now + _BOOKMARK_EVERY
            self._bookmark()

    def _bookmark(self, annotations: Mapping[str, str] | None = None) -> None:
        resource = self._call.resource
        meta: dict[str, Any] = {"resourceVersion": str(max(self._sent, self._store.version))}
        if annotations:
            meta["annotations"] = dict(annotations)
        tree: dict[str, Any] = {"kind": resource.kind.kind, "apiVersion": resource.kind.api_version, "metadata": meta}
        if self._call.output.as_kind == "PartialObjectMetadata":
            tree = metadata_only(tree)
        elif self._call.output.as_kind == "Table":
            # A bookmark is a table too, with the row of an empty object.
            tree = table_tree(resource, [encode_json(tree)], "", columns=not self._columns_sent)
            tree["metadata"] = {"resourceVersion": meta["resourceVersion"]}
            self._columns_sent = True
        self._write_tree("BOOKMARK", tree)


@final
class _Frames:
    """The bytes of the last change, for the next watch that sends the same event."""

    def __init__(self) -> None:
        self._change: Change | None = None
        self._made: dict[str, bytes] = {}

    def frame(self, kind: str, value: bytes, change: Change | None) -> bytes:
        if change is None:
            return b'{"type":"%b","object":%b}\n' % (kind.encode(), value)
        if change is not self._change:
            self._change, self._made = change, {}
        found = self._made.get(kind)
        if found is None:
            found = self._made[kind] = b'{"type":"%b","object":%b}\n' % (kind.encode(), value)
        return found


_frames: Final = _Frames()


def _at_version(entry: Entry, version: int) -> Entry:
    """An object that no longer matches: as it was, at the version of the change."""
    tree = decode_json(entry.value)
    tree["metadata"]["resourceVersion"] = str(version)
    return Entry(entry.key, encode_json(tree), version, entry.schema_id)


def _completed(conversion: Any) -> Any:
    """The result of a conversion that does not wait."""
    try:
        conversion.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a conversion that needs a webhook was not queued")
