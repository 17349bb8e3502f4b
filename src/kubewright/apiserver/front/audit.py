"""The audit log: a JSON line with an Event of `audit.k8s.io/v1` for each request.

`AuditLog` is an observer of the router. A thread makes the lines and writes them in batches, so that neither a large
body nor a slow disk delays a request. A long-running request has two events, ResponseStarted and ResponseComplete. It
follows k8s.io/apiserver/pkg/endpoints/filters/audit.go and k8s.io/apiserver/pkg/audit/request.go.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, final

import msgspec

from kubewright._base.files import open_private
from kubewright.api.times import format_micro_time
from kubewright.apiserver.wire.decoding import read_body
from kubewright.apiserver.wire.negotiation import JSON, YAML, media_type
from kubewright.apiserver.wire.requests import Peer, Request, RequestInfo
from kubewright.apiserver.wire.responses import LongResponse, Reply, Response, Stream, encode_json
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User
from kubewright.errors import ClusterError

__all__ = ("AuditLog", "Level")

_MakeEvent = Callable[[], dict[str, Any]]
Level = Literal["None", "Metadata", "Request", "RequestResponse"]

_LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
_MAX_USER_AGENT: Final = 1024
_TRUNCATED: Final = "...TRUNCATED"
_BATCH_SECONDS: Final = 0.05
_LOG: Final = logging.getLogger(__name__)


class _Meta(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _ObjectWithMeta(msgspec.Struct):
    metadata: _Meta | None = None


_decode_meta: Final = msgspec.json.Decoder(_ObjectWithMeta).decode


@final
class AuditLog:
    """Writes the log. It must be made in the event loop that serves the requests; `close` writes the last lines."""

    def __init__(self, path: Path, *, level: Level = "Metadata") -> None:
        self._level = _LEVELS.index(level)
        self._name = level
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file: BinaryIO = open_private(path)
        except OSError as error:
            raise ClusterError(f"The audit log {path} cannot be written ({error}); choose another path.") from error
        self._lines: list[Callable[[], bytes]] = []
        """What makes the lines, which a body may make large."""
        self._writer: asyncio.Task[None] | None = None

    def observe(self, request: Request, info: RequestInfo, user: User | None, reply: Reply, *, seconds: float) -> None:
        """Log one request."""
        if not self._level:
            return
        now = time.time()
        event = partial(self._event, request, info, user, reply, _timestamp(now - seconds))
        if request.authenticated is None:
            # A request that fails authentication has this stage alone (endpoints/filters/authn_audit.go).
            self._write(event, "ResponseStarted", now, request.annotations)
            return
        if info.is_long_running:
            self._write(event, "ResponseStarted", now, request.annotations)
            if isinstance(reply, Stream):
                self._write_when_finished(reply, event, request.annotations)
                return
        self._write(event, "ResponseComplete", now, request.annotations)

    def _write_when_finished(self, stream: Stream, event: _MakeEvent, annotations: Mapping[str, str]) -> None:
        def finish() -> None:
            stream.on_finish = None
            self._write(event, "ResponseComplete", time.time(), annotations)

        stream.on_finish = finish

    def _event(
        self, request: Request, info: RequestInfo, user: User | None, reply: Reply, received: str
    ) -> dict[str, Any]:
        authenticated: User | None = request.authenticated
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self._name,
            "auditID": request.audit_id,
            "stage": "",
            "requestURI": request.uri or request.path,
            "verb": info.verb,
            "user": {} if authenticated is None else authenticated.tree(),
        }
        if user is not None and user is not authenticated:
            event["impersonatedUser"] = user.tree()
        event["sourceIPs"] = _source_ips(request)
        agent = request.header("user-agent")
        if agent:
            event["userAgent"] = agent if len(agent) <= _MAX_USER_AGENT else agent[:_MAX_USER_AGENT] + _TRUNCATED
        status = _status(reply)
        if info.is_resource:
            event["objectRef"] = _object_ref(request, info, status)
        event["responseStatus"] = status
        self._add_bodies(event, request, info, reply)
        event["requestReceivedTimestamp"] = received
        return event

    def _add_bodies(self, event: dict[str, Any], request: Request, info: RequestInfo, reply: Reply) -> None:
        if self._level >= 2 and request.body and info.verb in ("create", "update", "patch", "delete"):
            tree = _tree(request)
            if tree is not None:
                event["requestObject"] = tree
        if self._level >= 3 and isinstance(reply, Response) and reply.content_type == JSON and reply.body:
            tree = _decoded(reply.body)  # encoded again, without the line breaks that another server put there
            if tree is not None:
                event["responseObject"] = tree

    def _write(self, event: _MakeEvent, stage: str, now: float, annotations: Mapping[str, str]) -> None:
        self._lines.append(partial(_line, event, stage, now, dict(sorted(annotations.items()))))
        if self._writer is None and not self._file.closed:
            self._writer = asyncio.get_running_loop().create_task(self._drain(), name="audit log")

    async def _drain(self) -> None:
        """Write until there are no more lines; a short wait collects a batch."""
        try:
            while self._lines:
                await asyncio.sleep(_BATCH_SECONDS)
                lines, self._lines = self._lines, []
                await asyncio.to_thread(self._write_lines, lines)
        except OSError as exc:
            # As kube-apiserver by default: a log that cannot be written does not fail requests.
            _LOG.error("audit events are lost", extra={"path": self._file.name, "error": str(exc)})
        finally:
            self._writer = None

    def _write_lines(self, lines: Iterable[Callable[[], bytes]]) -> None:
        self._file.write(b"".join(map(self._made, lines)))

    def _made(self, make: Callable[[], bytes]) -> bytes:
        """One line; none for a request that cannot be described, which must not cost others theirs."""
        try:
            return make()
        except Exception:
            _LOG.exception("an audit event is lost", extra={"path": self._file.name})
            return b""

    async def close(self) -> None:
        """Write the last lines and close the file."""
        while self._writer is not None:
            await asyncio.shield(self._writer)
        if not self._file.closed:
            self._write_lines(self._lines)
            self._lines = []
            self._file.close()


def _line(event: _MakeEvent, stage: str, now: float, annotations: Mapping[str, str]) -> bytes:
    tree = event()
    tree["stage"] = stage
    tree["stageTimestamp"] = _timestamp(now)
    if annotations:
        tree["annotations"] = annotations
    return encode_json(tree) + b"\n"


def _timestamp(seconds: float) -> str:
    return format_micro_time(datetime.fromtimestamp(seconds, UTC))


def _source_ips(request: Request) -> list[str]:
    """sourceIPs: those that proxies report, then the peer of the connection."""
    found = [address for address in map(_ip, request.header("x-forwarded-for").split(",")) if address]
    real = _ip(request.header("x-real-ip"))
    if real and real not in found:
        found.append(real)
    peer = request.peer.address
    if peer and (not found or found[-1] != peer):
        found.append(peer)
    return found


def _ip(text: str) -> str:
    if not text:
        return ""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return ""


def _status(reply: Reply) -> dict[str, Any]:
    if not isinstance(reply, Response):
        return {"metadata": {}, "code": reply.code if isinstance(reply, (LongResponse, Stream)) else 101}
    given = _response_status(reply)
    status: dict[str, Any] = {"metadata": {}}
    for name in ("status", "message", "reason", "details"):
        if name in given:
            status[name] = given[name]
    status["code"] = given.get("code") or reply.code
    return status


def _response_status(response: Response) -> Mapping[str, Any]:
    """The Status in a response; empty if it has none."""
    if response.content_type == JSON and response.body.startswith(b'{"kind":"Status"'):
        given = _decoded(response.body)  # of a proxied server, it may be anything
        return given if isinstance(given, dict) else {}
    if response.content_type == YAML and response.code >= 400:
        return _tree_of(YAML, response.body) or {}
    return {}


def _decoded(body: bytes) -> Any:
    """A JSON text; None if it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _object_ref(request: Request, info: RequestInfo, status: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "uid": "",
        "apiGroup": info.group,
        "apiVersion": info.version,
        "resourceVersion": "",
        "subresource": info.subresource,
    }
    if info.verb in ("create", "update") and request.body and _was_decoded(request, status):
        meta = _metadata(request)
        if meta is not None:
            found["namespace"] = found["namespace"] or meta.namespace or ""
            found["name"] = found["name"] or meta.name or ""
            found["uid"] = meta.uid or ""
            found["resourceVersion"] = meta.resource_version or ""
    return {name: value for name, value in found.items() if value}


def _was_decoded(request: Request, status: Mapping[str, Any]) -> bool:
    """Whether the request got as far as decoding its body."""
    if request.annotations.get("authorization.k8s.io/decision") != "allow":
        return False
    # Without details: no such resource, or not with this verb or these media types.
    return not (status["code"] in (404, 405, 406, 415) and not status.get("details"))


def _metadata(request: Request) -> _Meta | None:
    """The metadata in a body."""
    media = media_type(request.header("content-type")) or JSON
    try:
        if media == JSON:
            return _decode_meta(request.body).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return msgspec.convert(request.metadata, _Meta)


def _tree(request: Request) -> dict[str, Any] | None:
    media = media_type(request.header("content-type")) or JSON
    return _tree_of(JSON if "json" in media else YAML if "yaml" in media else media, request.body)


def _tree_of(media: str, body: bytes) -> dict[str, Any] | None:
    try:
        tree, _ = read_body(Request("", "", {}, {"content-type": media}, body, Peer()))
    except (StatusError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None
