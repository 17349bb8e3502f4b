"""The watch verb: from the present state or from a version in the past, every change as one line.

`WatchStream` is told of a change from within the write and sends it in the same step; what is sent to many watchers is
encoded once. A client that does not read is cut off and resumes later. A resource whose versions are converted by a
webhook cannot answer at once; its changes are queued and sent in order by a task.
"""

from __future__ import annotations

import asyncio
import random
import time
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
from kubewright.apiserver.wire.responses import Sink, Stream, encode_json
from kubewright.apiserver.wire.status_errors import StatusError, expired, status_error, too_large_resource_version

__all__ = ("WatchHandler", "WatchStream")

_MAX_BACKLOG: Final = 64 * 1024 * 1024
_BOOKMARK_EVERY: Final = 55.0
_LAST_BOOKMARK: Final = 2.0
"""Seconds before the end of a watch; one that is shorter gets none."""
_DEFAULT_TIMEOUT: Final = (1800.0, 3600.0)
_GONE: Final = "The resourceVersion for the provided watch is too old."
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}

Event = tuple[str, Entry]


@final
class WatchHandler:
    """The watches on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.streams: set[WatchStream] = set()

    async def watch(self, call: Call) -> WatchStream:
        """A stream of changes; what is wrong with the request is said now, what happens later in the stream."""
        if call.output.media == YAML:
            accepted = ", ".join((f"{JSON};stream=watch", STREAM_MEDIA_TYPE))
            raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {accepted}")
        options = list_options(call.request.query, watch=True)
        if call.info.name:  # the old way to watch one object has its name in the path
            only = FieldSelector.parse(f"metadata.name={call.info.name}")
            options = msgspec.structs.replace(options, fields=FieldSelector((*options.fields.terms, *only.terms)))
        selection = Selection(call.resource, call.namespace, options.labels, options.fields)
        return WatchStream(self, self._store, call, options, selection)

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
        self._leave: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._farewell: asyncio.TimerHandle | None = None
        self._sent = 0
        self._next_bookmark = 0.0
        self._columns_sent = False
        self._queue: asyncio.Queue[Event | None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._protobuf = call.output.media == PROTOBUF
        self._plain = not call.output.as_kind and not self._protobuf
        self.content_type = STREAM_MEDIA_TYPE if self._protobuf else JSON
        self.headers = call.headers()

    # the connection's side

    def start(self, sink: Sink) -> None:
        """Send what is there or was missed, then follow."""
        self._sink = sink
        self._owner.streams.add(self)
        self._leave = self._table.watch(self)
        loop = asyncio.get_running_loop()
        timeout = self._options.timeout
        seconds = float(timeout) if timeout is not None else random.uniform(*_DEFAULT_TIMEOUT)
        self._timer = loop.call_later(seconds, self._finish)
        if self._options.bookmarks and seconds > _LAST_BOOKMARK:
            self._farewell = loop.call_later(seconds - _LAST_BOOKMARK, self._last_bookmark)
        self._next_bookmark = time.monotonic() + random.uniform(0.5, 1.0) * _BOOKMARK_EVERY
        if self._call.resource.strategy.converts_slowly:
            self._queue = asyncio.Queue()
            self._pump = loop.create_task(self._send_queued(self._queue))
        try:
            self._send_past()
        except Compacted as exc:
            # Events are the one kind the real server keeps no recent history of, and its words for them are others.
            is_event = self._call.resource.kind.kind == "Event"
            self._send_error(expired(_GONE if is_event else str(exc)))
            self._finish()

    def disconnected(self) -> None:
        """The client is gone, or the server stops."""
        self._stop()
        self._sink = None

    def _stop(self) -> None:
        self._owner.streams.discard(self)
        if self._leave is not None:
            self._leave()
            self._leave = None
        for timer in (self._timer, self._farewell):
            if timer is not None:
                timer.cancel()
        if self._pump is not None and self._pump is not asyncio.current_task():
            self._pump.cancel()

    def _finish(self) -> None:
        sink, self._sink = self._sink, None
        self._stop()
        if sink is not None:
            sink.end()

    def _last_bookmark(self) -> None:
        if self._queue is None:
            self._bookmark()

    # the store's side

    def deliver(self, change: Change) -> None:
        """One change of the table."""
        self._sent = change.version
        event = self._event_of(change)
        if event is None or self._sink is None:
            return
        if self._queue is not None:
            self._queue.put_nowait(event)
            return
        self._send(*event, change=change)

    def table_gone(self) -> None:
        """The kind is gone: so is the watch."""
        self._finish()

    def _send_past(self) -> None:
        version, options = self._options.version, self._options
        initial = options.initial_events
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
                self._bookmark(_INITIAL_END)
            return
        for change in self._table.changes_since(version or self._store.version):
            self._sent = change.version
            event = self._event_of(change)
            if event is not None:
                self._put(*event)

    def _event_of(self, change: Change) -> Event | None:
        """What this watcher sees of a change: an object may enter or leave what is selected."""
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

    def _put(self, kind: str, entry: Entry) -> None:
        if self._queue is not None:
            self._queue.put_nowait((kind, entry))
        else:
            self._send(kind, entry)

    async def _send_queued(self, queue: asyncio.Queue[Event | None]) -> None:
        while True:
            event = await queue.get()
            if event is None or self._sink is None:
                return
            kind, entry = event
            try:
                value = await self._call.resource.bytes_of(entry)
            except StatusError as exc:
                self._send_error(exc)
                self._finish()
                return
            self._write(kind, value)

    # sending

    def _send(self, kind: str, entry: Entry, *, change: Change | None = None) -> None:
        resource = self._call.resource
        if entry.schema_id == resource.schema_id and self._plain:
            self._write_frame(_frames.frame(kind, entry.value, change))
            return
        value = entry.value
        if entry.schema_id != resource.schema_id:
            value = resource.encode(_run_now(resource.strategy.from_storage([decode_json(value)]))[0])
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
        if sink.backlog > _MAX_BACKLOG:
            self._finish()

    def _send_error(self, refusal: StatusError) -> None:
        self._write_tree("ERROR", refusal.status)

    def tick(self, now: float) -> None:
        """Send a bookmark when one is due."""
        if self._options.bookmarks and now >= self._next_bookmark and self._queue is None:
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
            # A bookmark has a row too: that of an object with nothing in it.
            tree = table_tree(resource, [encode_json(tree)], "", columns=not self._columns_sent)
            tree["metadata"] = {"resourceVersion": meta["resourceVersion"]}
            self._columns_sent = True
        self._write_tree("BOOKMARK", tree)


@final
class _Frames:
    """The last change as bytes, for the next watcher that wants the same."""

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
    """An object that left what is selected: as it last was, at the version of the change that took it away."""
    tree = decode_json(entry.value)
    tree["metadata"]["resourceVersion"] = str(version)
    return Entry(entry.key, encode_json(tree), version, entry.schema_id)


def _run_now(conversion: Any) -> Any:
    """The result of a conversion that waits for nothing."""
    try:
        conversion.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a conversion that needs a webhook was not queued")
