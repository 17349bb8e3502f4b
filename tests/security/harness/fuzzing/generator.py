"""Requests at random, each from a seed and its number alone, so that one can be sent again without those before it.

A request begins as a proper one: an operation of the server's own documents and a body that fits it. Then something of
it is spoilt: the tree, the bytes, the encoding, the query, the headers, or all of it. Now and then a place becomes
large: the limits are about what a request costs, not only about how it is answered.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple, Self, final
from urllib.parse import quote, quote_plus

from tests.scenarios.embedded.requests_at_random import (
    ACCEPTED,
    MEDIA,
    ODD_NAMES,
    SAMPLES,
    VALUES,
    WORDS,
    Operation,
)
from tests.security.harness.exchange import request_bytes
from tests.security.harness.fuzzing.trees import anything, fitting, spoilt
from tests.security.harness.fuzzing.wire_bytes import as_yaml, random_protobuf, spoilt_bytes, spoilt_protobuf
from tests.security.harness.limits import REQUEST_LIMIT
from tests.security.harness.protobuf import MEDIA_TYPE, enveloped

from kubewright.apiserver.wire.protobuf import encode, has_protobuf
from kubewright.errors import DecodeError

__all__ = ("FuzzedRequest", "RequestGenerator")

_USERS: Final = (*("admin",) * 24, *("editor",) * 3, *("nobody",) * 2, "anonymous")
_HEADERS: Final = (
    *(
        ("Authorization", "Bearer x"),
        ("Authorization", "Bearer a.b.c"),
        ("Authorization", "Basic eDp5"),
        ("Range", "bytes=0-1"),
    ),
    *(("Impersonate-User", "a"), ("Impersonate-Group", "b"), ("Impersonate-Extra-a%", "b"), ("Impersonate-Uid", "c")),
    *(("X-Remote-User", "a"), ("Expect", "100-continue"), ("Content-Encoding", "gzip"), ("Accept-Encoding", "gzip")),
    *(("Transfer-Encoding", "chunked"), ("Content-Length", "1"), ("Connection", "Upgrade"), ("Upgrade", "websocket")),
    *(
        ("If-Match", "*"),
        ("If-None-Match", "x"),
        ("Host", ""),
        ("Origin", "x"),
        ("Cookie", "a" * 3000),
        ("Audit-ID", "x"),
    ),
    *(
        ("Content-Type", "application/cbor"),
        ("Content-Type", "application/apply-patch+cbor"),
        ("Accept", "application/cbor"),
    ),
    *(("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.eA"), ("Traceparent", "00-0-0-0")),
)
_NAMES: Final = ("a", "a", "a", "b", "c", "default")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "")
_POINTERS: Final = (
    "",
    "/",
    "/metadata",
    "/metadata/labels",
    "/metadata/labels/a",
    "/metadata/name",
    "/spec",
    "/spec/x/0",
)
_POINTERS_TOO: Final = (
    "/data",
    "/data/a",
    "/spec/containers/0",
    "/spec/containers/-",
    "/kind",
    "a",
    "/~",
    "/~2",
    "/a/b/c",
)


class FuzzedRequest(NamedTuple):
    """One request: who sends which bytes."""

    who: str
    data: bytes
    endless: bool = False
    """Whether the answer may have no end."""
    broken: bool = False
    """Whether it is no whole request, so that there may be no answer."""

    def to_tree(self) -> dict[str, Any]:
        """As JSON, for a file."""
        return {**self._asdict(), "data": base64.b64encode(self.data).decode()}

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        return cls(**{**tree, "data": base64.b64decode(tree["data"])})


@final
class RequestGenerator:
    """Makes the requests of a seed."""

    def __init__(self, seed: int, operations: Sequence[Operation]) -> None:
        self._seed = seed
        self._operations = operations
        self._writes = [each for each in operations if each.method in ("POST", "PUT", "PATCH")]
        self._sampled = [each for each in self._writes if _sample(each) is not None]

    def request(self, number: int) -> FuzzedRequest:
        """The request of this number."""
        rng = Random(f"{self._seed}:{number}")
        who = rng.choice(_USERS)
        # One in a thousand as large as can be, one in a hundred a tenth of that; others stay quick.
        largest = rng.choices((2_000, 300_000, REQUEST_LIMIT - 100_000), (989, 10, 1))[0]
        operation = rng.choice(rng.choices((self._sampled, self._writes, self._operations), (45, 30, 25))[0])
        method = operation.method if rng.random() < 0.96 else rng.choice(_METHODS)
        name = "things.random.example.com" if "customresourcedefinitions" in operation.path else rng.choice(_NAMES)
        path = self._path(rng, operation, name)
        body, media = self._body(rng, operation, method, name, largest)
        if media == "application/apply-patch+yaml" and rng.random() < 0.7:
            path += ("&" if "?" in path else "?") + "force=true"
        headers = {"Accept": "application/json" if rng.random() < 0.7 else rng.choice(ACCEPTED), "User-Agent": "fuzz"}
        if body is not None:
            headers["Content-Type"] = media if rng.random() < 0.95 else rng.choice(MEDIA)
        if rng.random() < 0.06:
            headers.update(rng.choices(_HEADERS, k=rng.randrange(1, 4)))
        data = request_bytes(method, path, body and body[:REQUEST_LIMIT], headers=headers)
        endless = any(word in path for word in ("watch", "follow", "exec", "attach", "portforward", "proxy"))
        odd = any(
            name in headers for name in ("Transfer-Encoding", "Content-Length", "Upgrade", "Expect", "Connection")
        )
        if method not in ("GET", "POST", "PUT", "PATCH", "DELETE") or odd:
            return FuzzedRequest(who, data, endless=endless, broken=True)
        if rng.random() < 0.01:
            return FuzzedRequest(who, spoilt_bytes(rng, data, largest=largest), endless=endless, broken=True)
        return FuzzedRequest(who, data, endless=endless)

    def _path(self, rng: Random, operation: Operation, name: str) -> str:
        path = operation.path
        while "{" in path:
            before, _, rest = path.partition("{")
            what, _, rest = rest.partition("}")
            value = rng.choice(ODD_NAMES)
            if rng.random() < 0.97:
                value = rng.choice(("edited", "edited", "default")) if what == "namespace" else name
            path = before + quote(value, safe="" if rng.random() < 0.7 else "/") + rest
        names = operation.parameters or ("x",)
        if operation.method == "PATCH" and rng.random() < 0.8:
            return f"{path}?fieldManager={rng.choice('abc')}"
        if rng.random() < (0.5 if operation.method == "GET" else 0.1):
            values = [(each, rng.choice((*VALUES, *WORDS))) for each in rng.choices(names, k=rng.randrange(1, 4))]
            path += "?" + "&".join(f"{each}={quote_plus(value, errors='replace')}" for each, value in values)
        return path

    def _body(
        self, rng: Random, operation: Operation, method: str, name: str, largest: int
    ) -> tuple[bytes | None, str]:
        if method in ("GET", "HEAD", "OPTIONS") or (method == "DELETE" and rng.random() < 0.6):
            return None, ""
        if rng.random() < 0.02:
            return rng.randbytes(rng.randrange(200)), rng.choice(MEDIA)
        if operation.method == "PATCH":
            return self._patch(rng, operation, name, largest)
        tree = self._tree(rng, operation, name, largest)
        choice = rng.randrange(20)
        if choice < 5:
            return self._protobuf(rng, operation, tree, largest), MEDIA_TYPE
        if choice < 7:
            data = as_yaml(rng, tree)
            return spoilt_bytes(rng, data, largest=largest) if rng.random() < 0.4 else data, "application/yaml"
        data = json.dumps(tree, ensure_ascii=rng.random() < 0.8).encode("utf-8", "surrogatepass")
        return spoilt_bytes(rng, data, largest=largest) if choice == 7 else data, "application/json"

    def _patch(self, rng: Random, operation: Operation, name: str, largest: int) -> tuple[bytes, str]:
        kind = rng.choice(("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"))
        media = f"application/{kind}"
        if kind == "json-patch+json":
            pointers = (*_POINTERS, *_POINTERS_TOO)
            steps: list[Any] = [
                {
                    "op": rng.choice(("add", "remove", "replace", "move", "copy", "copy", "test", "x")),
                    "path": rng.choice(pointers),
                    "from": rng.choice(pointers),
                    "value": anything(rng),
                }
                for _ in range(rng.choice((1, 2, 3, 8)))
            ]
            return json.dumps(spoilt(rng, steps, largest=largest)).encode(), media
        tree = self._tree(rng, operation, name, largest)
        if kind == "strategic-merge-patch+json" and isinstance(tree, dict) and rng.random() < 0.4:
            tree[rng.choice(("$patch", "$retainKeys", "$setElementOrder/a", "$deleteFromPrimitiveList/a"))] = anything(
                rng
            )
        data = as_yaml(rng, tree) if kind == "apply-patch+yaml" else json.dumps(tree).encode()
        return spoilt_bytes(rng, data, largest=largest) if rng.random() < 0.05 else data, media

    def _tree(self, rng: Random, operation: Operation, name: str, largest: int) -> Any:
        """An object for the operation; its kind is named, and its name is that of the path."""
        sample = _sample(operation)
        kind = operation.kind
        if sample is not None and rng.random() < 0.7:
            tree: Any = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, **sample}
        else:
            schema = self._schema_of(operation)
            tree = fitting(rng, schema, operation.schemas) if schema else anything(rng)
        if not isinstance(tree, dict):
            return tree
        if kind:
            group = f"{kind['group']}/" if kind.get("group") else ""
            tree = {**tree, "apiVersion": group + kind.get("version", ""), "kind": kind.get("kind", "")}
        meta = tree.get("metadata")
        tree["metadata"] = {**(meta if isinstance(meta, dict) else {}), "name": name}
        return spoilt(rng, tree, largest=largest)

    def _schema_of(self, operation: Operation) -> dict[str, Any]:
        """The schema of the kind, also for a patch, whose own schema says nothing."""
        for each in self._operations:
            if each.path == operation.path and each.method in ("PUT", "POST"):
                return each.schema
        return operation.schema

    def _protobuf(self, rng: Random, operation: Operation, tree: Any, largest: int) -> bytes:
        kind = operation.kind
        group = f"{kind['group']}/" if kind.get("group") else ""
        version, name = group + kind.get("version", "v1"), kind.get("kind", "Pod")
        choice = rng.random()
        if choice > 0.6 and has_protobuf(version, name):
            try:
                data = encode(tree, version, name)
            except (DecodeError, TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError):
                data = enveloped(version, name, b"")
            return data[:4] + spoilt_protobuf(rng, data[4:], largest=largest)
        if choice > 0.1:
            return enveloped(version, name, random_protobuf(rng, largest=largest))
        return b"k8s\x00" + random_protobuf(rng, largest=largest)


def _sample(operation: Operation) -> dict[str, Any] | None:
    """A proper object of the operation's kind, for the kinds that have one."""
    parts = operation.path.replace("/namespaces/{namespace}", "").split("/")[::-1]
    return next((SAMPLES[part] for part in parts if part in SAMPLES), None)
