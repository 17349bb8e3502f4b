"""Differential tests of API servers: kube-apiserver and the embedded server must answer the same requests alike.

`ServerPair.send` sends one request to both and compares code, relevant headers and body. `normalized` first masks what
differs from run to run: uids, versions, times, addresses. A case is a few requests in a row, in a namespace of its own.

`run_case` takes a case as data: a sequence of `Request`. It compares more closely: it numbers the uids and versions of
each server in the order of their appearance, so it tells a write that changed nothing from one that did. A later
request can use values of an earlier response: `keep` names them, and `${name}` stands for them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from kubewright._base.yaml import load
from kubewright.apiserver.wire.protobuf import decode, decode_watch_event
from kubewright.testing import time_limit

__all__ = (
    "Request",
    "Response",
    "ServerClient",
    "ServerPair",
    "apply",
    "delete",
    "differences",
    "fresh_pair",
    "get",
    "json_patch",
    "merge",
    "normalized",
    "open_server",
    "post",
    "put",
    "run_case",
    "strategic",
)

_HIDDEN = {
    "uid": "<uid>",
    "resourceVersion": "<version>",
    "creationTimestamp": "<time>",
    "deletionTimestamp": "<time>",
    "time": "<time>",
    "lastTransitionTime": "<time>",
    "lastUpdateTime": "<time>",
    "clusterIP": "<address>",
    "clusterIPs": "<address>",
    "nodePort": "<port>",
    "healthCheckNodePort": "<port>",
    "continue": "<token>",
    "selfLink": "<link>",
    "token": "<token>",
}
_SHOWN = 700
_MAX_BASE = 58
_RANDOM = re.compile(r"(?<=kube-api-access-)[a-z0-9]{5}\b|(?<=X_)[a-z0-9]{5}\b")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(r"(?<=record \()[0-9]+(?=\))|(?<=current: )[0-9]+")

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z")
_LATELY = timedelta(hours=2)

# A patch that does not fit is shown with all it made of the object, in the order of Go's maps.
_OBJECT = re.compile(r'(?<=Invalid value: ")\{.*\}(?=": )', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Response:
    """The response of one server."""

    code: int
    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    body: bytes

    @property
    def tree(self) -> Any:
        """The body as a tree, whatever its media type."""
        if not self.body:
            return None
        kind = self.headers.get("Content-Type", "")
        if "json" in kind:
            lines = self.body.splitlines()
            if len(lines) > 1 and lines[0].startswith(b'{"type":'):
                return [json.loads(line) for line in lines if line]
            return json.loads(self.body)
        if "yaml" in kind:
            return load(self.body)
        if "protobuf;stream" in kind:
            return [{"type": kind, "object": tree} for kind, tree in map(decode_watch_event, _frames(self.body))]
        if "protobuf" in kind:
            return decode(self.body)
        return self.body.decode()

    def shown(self) -> dict[str, Any]:
        """What is compared."""
        content_type = self.headers.get("Content-Type", "")
        return {
            "code": self.code,
            "type": content_type,
            "warnings": sorted(self.warnings),
            "body": normalized(self.tree),
        }


def _frames(body: bytes) -> Iterator[bytes]:
    """The frames of a watch in protobuf: each begins with its length."""
    while body:
        size = 4 + int.from_bytes(body[:4], "big")
        yield body[:size]
        body = body[size:]


def normalized(tree: Any, name: str = "") -> Any:
    """A tree in which everything that differs from run to run is masked."""
    if isinstance(tree, dict):
        return {key: normalized(value, key) for key, value in sorted(tree.items())}
    if name in _HIDDEN and tree not in (None, "", "None", ["None"]):
        return _HIDDEN[name]
    if isinstance(tree, list):
        return [normalized(item) for item in tree]
    if isinstance(tree, str):
        return _without_now(_VERSION.sub("<version>", _UID.sub("<uid>", tree)))
    return tree


def _without_now(text: str) -> str:
    """A text without a time that is about now: two servers need not agree on the second; one that was given stays."""
    if _TIME.fullmatch(text) and abs(datetime.fromisoformat(text) - datetime.now(UTC)) < _LATELY:
        return "<time>"
    return text


@dataclass(slots=True)
class ServerClient:
    """A raw HTTP client of one of the two servers."""

    session: aiohttp.ClientSession
    url: str
    tls: ssl.SSLContext
    names: dict[str, str] = field(default_factory=dict)

    async def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], seconds: float
    ) -> Response:
        """One request."""
        data = None if body is None else BytesIO(body)
        async with (
            time_limit(seconds),
            self.session.request(method, self.url + path, data=data, headers=headers, allow_redirects=False) as answer,
        ):
            said = answer.headers.getall("Warning", [])
            return Response(answer.status, dict(answer.headers), tuple(said), await answer.read())


class ServerPair:
    """Both servers."""

    def __init__(self, real: ServerClient, embedded: ServerClient, namespace: str) -> None:
        self.real = real
        self.embedded = embedded
        self.namespace = namespace

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
        ignore: tuple[str, ...] = (),
        seconds: float = 30.0,
    ) -> Response:
        """Send to both, compare, and return the embedded server's response. `{ns}` in a path is the case's namespace.

        `ignore` names members of the body that may differ, such as `items`.
        """
        path = path.replace("{ns}", self.namespace)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Accept": accept, "User-Agent": "differential/1", **(headers or {})}
        if data is not None:
            sent["Content-Type"] = content_type
        real, embedded = await asyncio.gather(
            self.real.send(method, path, data, sent, seconds), self.embedded.send(method, path, data, sent, seconds)
        )
        expected, found = real.shown(), embedded.shown()
        for name in ignore:
            for shown in (expected, found):
                if isinstance(shown["body"], dict):
                    shown["body"].pop(name, None)
        assert found == expected, f"{method} {path}: the embedded server answers otherwise than kube-apiserver"
        return embedded

    async def both(self, method: str, path: str, body: Any = None) -> tuple[Response, Response]:
        """Send to both and compare nothing: (real, embedded)."""
        path = path.replace("{ns}", self.namespace)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"User-Agent": "differential/1", "Content-Type": "application/json"}
        real = await self.real.send(method, path, data, sent, 30.0)
        return real, await self.embedded.send(method, path, data, sent, 30.0)


async def fresh_pair(servers: tuple[ServerClient, ServerClient]) -> ServerPair:
    """Both servers, with a new namespace of the same name on each."""
    pair = ServerPair(*servers, f"pair-{uuid4().hex[:10]}")
    await pair.both("POST", "/api/v1/namespaces", {"metadata": {"name": pair.namespace}})
    return pair


def open_server(kubeconfig: Path) -> ServerClient:
    """A raw HTTP client for the cluster of a kubeconfig."""
    tree = load(kubeconfig.read_text())
    cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as file:
        parts = [base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")]
        file.write(b"\n".join(parts))
        file.flush()
        context.load_cert_chain(file.name)
    return ServerClient(aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)), cluster["server"], context)


# Cases as data


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a case, sent to both servers."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    """Names for values of the response, by their dotted paths."""
    ignore: tuple[str, ...] = ()
    """Dotted paths of the response that may differ."""
    until: Callable[[Any], bool] | None = None
    """Repeat the request until the body satisfies this, on each server by itself."""
    quiet: bool = False
    """Send without a comparison, to bring both servers to the same state."""


def get(path: str, **options: Any) -> Request:
    """Read."""
    return Request("GET", path, **options)


def post(path: str, body: Any, **options: Any) -> Request:
    """Create."""
    return Request("POST", path, body, **options)


def put(path: str, body: Any, **options: Any) -> Request:
    """Replace."""
    return Request("PUT", path, body, **options)


def delete(path: str, body: Any = None, **options: Any) -> Request:
    """Delete."""
    return Request("DELETE", path, body, **options)


def merge(path: str, body: Any, **options: Any) -> Request:
    """Merge patch."""
    return Request("PATCH", path, body, "application/merge-patch+json", **options)


def json_patch(path: str, *operations: Any, **options: Any) -> Request:
    """JSON patch."""
    return Request("PATCH", path, list(operations), "application/json-patch+json", **options)


def strategic(path: str, body: Any, **options: Any) -> Request:
    """Strategic merge patch."""
    return Request("PATCH", path, body, "application/strategic-merge-patch+json", **options)


def apply(path: str, body: Any, *, manager: str = "applier", force: bool = False, **options: Any) -> Request:
    """Server-side apply."""
    sign = "&" if "?" in path else "?"
    query = f"{sign}fieldManager={manager}" + ("&force=true" if force else "")
    return Request("PATCH", path + query, body, "application/apply-patch+yaml", **options)


class _Normalizer:
    """The responses of one server in the course of one case, with numbers for uids and versions."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, str]] = {"uid": {}, "version": {}}
        self.kept: dict[str, str] = {}

    def number(self, kind: str, value: str) -> str:
        known = self._numbers[kind]
        return known.setdefault(value, f"<{kind} {len(known) + 1}>")

    def of(self, answer: Response, ignore: tuple[str, ...]) -> dict[str, Any]:
        # What may differ goes first: it gives no uid or version a number.
        body = _without_bookmarks(answer.tree)
        for path in ignore:
            _drop(body, path.split("."))
        body = self.tree(body)
        return {
            "code": answer.code,
            "type": answer.headers.get("Content-Type", ""),
            "retry": answer.headers.get("Retry-After", ""),
            "warnings": sorted(answer.warnings),
            "body": body,
        }

    def tree(self, tree: Any, name: str = "") -> Any:
        if isinstance(tree, dict):
            of_many = str(tree.get("kind", "")).endswith("List") or tree.get("kind") == "Table"
            seen = {
                self._named(key): normalized(value, key) if of_many and key == "metadata" else self.tree(value, key)
                for key, value in sorted(tree.items())
            }
            return _without_chance(tree, seen)
        if isinstance(tree, list):
            return [self.tree(item) for item in tree] if name not in _HIDDEN or not tree else normalized(tree, name)
        if isinstance(tree, str):
            if name == "resourceVersion" and tree:
                return self.number("version", tree)
            if name == "uid" and tree:
                return self.number("uid", tree)
            if name in _HIDDEN:
                return normalized(tree, name)
            shown = _RANDOM.sub("<random>", _OBJECT.sub("<object>", tree))
            return _without_now(_VERSION.sub("<version>", _UID.sub(lambda found: self.number("uid", found[0]), shown)))
        return normalized(tree, name)

    def _named(self, key: str) -> str:
        return _UID.sub(lambda found: self.number("uid", found[0]), key) if "uid" in key else key

    def fill(self, text: str) -> str:
        for name, value in self.kept.items():
            text = text.replace("${" + name + "}", value)
        return text


def _without_bookmarks(tree: Any) -> Any:
    """When a bookmark comes is chance, but for the one that says that all there was has been sent."""
    events = [tree] if isinstance(tree, dict) and tree.keys() == {"type", "object"} else tree
    if not isinstance(events, list):
        return tree
    return [event for event in events if event.get("type") != "BOOKMARK" or "initial-events-end" in str(event)]


def _without_chance(tree: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """The version of a list is that of the whole server, and a generated name is chance."""
    prefix, given = tree.get("generateName"), tree.get("name")
    if isinstance(prefix, str) and isinstance(given, str) and prefix and given.startswith(prefix[:_MAX_BASE]):
        seen["name"] = f"{prefix[:_MAX_BASE]}<{len(given) - len(prefix[:_MAX_BASE])} characters>"
    if "managedFields" in tree and isinstance(tree["managedFields"], list):
        # Entries are in the order of their times, which are whole seconds.
        seen["managedFields"] = sorted(seen["managedFields"], key=_manager)
    details = tree.get("details", {}) if tree.get("kind") == "Status" else {}
    if ".example.io" in str(details.get("group", "")) or "FieldManagerConflict" in str(details):
        _put_causes_in_order(seen)
    if tree.get("type") == "BOOKMARK":
        seen["object"]["metadata"]["resourceVersion"] = "<version>"
    return seen


def _manager(entry: dict[str, Any]) -> list[str]:
    return [str(entry.get(name, "")) for name in ("operation", "manager", "apiVersion", "subresource", "fieldsV1")]


def _put_causes_in_order(status: dict[str, Any]) -> None:
    """The members of a custom object are checked, and managers asked for conflicts, in the order of a Go map."""
    causes = status["details"].get("causes") or []
    if len(causes) > 1:
        causes.sort(key=json.dumps)
        status["message"] = status["message"].partition(" is invalid: ")[0]


def _drop(tree: Any, path: list[str]) -> None:
    if isinstance(tree, list):
        for item in tree:
            _drop(item, path)
    elif isinstance(tree, dict):
        if len(path) == 1:
            tree.pop(path[0], None)
        elif path[0] in tree:
            _drop(tree[path[0]], path[1:])


def differences(real: Any, embedded: Any, path: str = "") -> list[str]:
    """Where two responses differ, one line each."""
    if not path and real.get("code") != embedded.get("code"):
        return [f"\n      real:     {_summary(real)}\n      embedded: {_summary(embedded)}"]
    if type(real) is type(embedded) and isinstance(real, dict):
        return [
            line
            for key in sorted({*real, *embedded})
            for line in differences(real.get(key, "<none>"), embedded.get(key, "<none>"), f"{path}.{key}")
        ]
    if isinstance(real, list) and isinstance(embedded, list):
        return [
            line
            for index, (left, right) in enumerate(zip_longest(real, embedded, fillvalue="<none>"))
            for line in differences(left, right, f"{path}[{index}]")
        ]
    if type(real) is type(embedded) and real == embedded:
        return []
    return [f"{path}\n      real:     {json.dumps(real)[:_SHOWN]}\n      embedded: {json.dumps(embedded)[:_SHOWN]}"]


def _summary(shown: dict[str, Any]) -> str:
    body = shown["body"]
    said = body.get("message", body.get("kind")) if isinstance(body, dict) else body
    causes = body.get("details", {}).get("causes", "") if isinstance(body, dict) else ""
    return f"{shown['code']} {json.dumps(said)[:_SHOWN]} {json.dumps(causes)[:_SHOWN] if causes else ''}"


async def run_case(pair: ServerPair, requests: Iterable[Request]) -> None:
    """Send all requests to both servers; the error at the end lists every difference."""
    real, embedded = _Normalizer(), _Normalizer()
    found: list[str] = []
    for number, request in enumerate(requests, 1):
        answers = await asyncio.gather(
            _send(pair.real, request, real, pair.namespace), _send(pair.embedded, request, embedded, pair.namespace)
        )
        for normalizer, answer in zip((real, embedded), answers, strict=True):
            normalizer.kept.update({name: _value(answer.tree, path) for name, path in request.keep.items()})
        if request.quiet:
            continue
        expected, given = real.of(answers[0], request.ignore), embedded.of(answers[1], request.ignore)
        found.extend(f"{number}. {request.method} {request.path}: {line}" for line in differences(expected, given))
    assert not found, "the embedded server answers otherwise than kube-apiserver:\n  " + "\n  ".join(found)


async def _send(apiserver: ServerClient, request: Request, normalizer: _Normalizer, namespace: str) -> Response:
    def filled(text: str) -> str:
        return normalizer.fill(text.replace("{ns}", namespace))

    data = request.body
    if data is not None and not isinstance(data, bytes):
        data = filled(data if isinstance(data, str) else json.dumps(data)).encode()
    sent = {"Accept": request.accept, "User-Agent": "differential/1", **request.headers}
    if data is not None:
        sent.setdefault("Content-Type", request.content_type)
    path = filled(request.path)
    async with time_limit(60):
        while True:
            answer = await apiserver.send(request.method, path, data, sent, 30.0)
            if request.until is None or request.until(answer.tree):
                return answer
            await asyncio.sleep(0.02)


def _value(tree: Any, path: str) -> str:
    for step in path.split("."):
        tree = tree[int(step)] if isinstance(tree, list) else tree[step]
    return str(tree)
