"""The audit log: what a line says, and when it is written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.apiserver.front.audit import AuditLog, Level
from kubewright.apiserver.wire.requests import Peer, Request, request_info
from kubewright.apiserver.wire.responses import Reply, Response, Sink, Stream
from kubewright.apiserver.wire.users import User
from kubewright.errors import ClusterError

ANN = User("ann", ("dev",), "u-1", {"k": ("v",)})
CONFIG = "/api/v1/namespaces/shop/configmaps"
ALLOWED = {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}


class Quiet(Stream):
    """A stream that says nothing."""

    def start(self, sink: Sink) -> None:
        return None

    def disconnected(self) -> None:
        return None


def _request(method: str, path: str, body: bytes = b"", **headers: str) -> Request:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(method, path, {}, sent, body, Peer(address="127.0.0.1"), uri=f"{path}?x=1")
    request.audit_id = "id-1"
    request.authenticated = ANN
    request.annotations = dict(ALLOWED)
    return request


async def _lines(
    path: Path,
    request: Request,
    reply: Reply,
    *,
    user: User | None = ANN,
    level: Level = "Metadata",
    watch: bool = False,
) -> list[dict[str, Any]]:
    log = AuditLog(path, level=level)
    query = {"watch": "1"} if watch else {}
    log.observe(request, request_info(request.method, request.path, query), user, reply, seconds=0.5)
    if isinstance(reply, Stream):
        reply.finish()
    await log.close()
    return _read(path)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_an_event_has_user_verb_and_object(tmp_path: Path) -> None:
    body = b'{"metadata":{"name":"c","uid":"u-2","resourceVersion":"7"},"data":{"a":"b"}}'
    request = _request("POST", CONFIG, body, user_agent="kubectl/1")

    (line,) = await _lines(tmp_path / "log", request, Response(201, b'{"kind":"ConfigMap"}'))

    assert line.pop("requestReceivedTimestamp") < line.pop("stageTimestamp")
    assert line == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "id-1",
        "stage": "ResponseComplete",
        "requestURI": f"{CONFIG}?x=1",
        "verb": "create",
        "user": {"username": "ann", "uid": "u-1", "groups": ["dev"], "extra": {"k": ["v"]}},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "kubectl/1",
        "objectRef": {
            "resource": "configmaps",
            "namespace": "shop",
            "name": "c",
            "uid": "u-2",
            "apiVersion": "v1",
            "resourceVersion": "7",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": ALLOWED,
    }


async def test_an_error_is_logged_with_its_message(tmp_path: Path) -> None:
    status = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","code":404}'

    (line,) = await _lines(tmp_path / "log", _request("GET", f"{CONFIG}/c"), Response(404, status))

    assert line["responseStatus"] == {"metadata": {}, "status": "Failure", "message": "no", "code": 404}


async def test_a_body_that_was_not_decoded_gives_no_object_reference(tmp_path: Path) -> None:
    request = _request("POST", CONFIG, b'{"metadata":{"name":"c"}}')
    request.annotations["authorization.k8s.io/decision"] = "forbid"

    (line,) = await _lines(tmp_path / "log", request, Response(403))

    assert "name" not in line["objectRef"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"metadata":5}', b"\xff", b'{"metadata":{"name":5}}'])
async def test_a_broken_body_is_logged(tmp_path: Path, body: bytes) -> None:
    (line,) = await _lines(tmp_path / "log", _request("POST", CONFIG, body), Response(400))

    assert line["objectRef"] == {"resource": "configmaps", "namespace": "shop", "apiVersion": "v1"}


async def test_a_stream_has_an_event_at_its_start_and_its_end(tmp_path: Path) -> None:
    lines = await _lines(tmp_path / "log", _request("GET", CONFIG), Quiet(), watch=True)

    assert [(line["verb"], line["stage"]) for line in lines] == [
        ("watch", "ResponseStarted"),
        ("watch", "ResponseComplete"),
    ]


async def test_a_stream_ends_once(tmp_path: Path) -> None:
    stream = Quiet()
    lines = await _lines(tmp_path / "log", _request("GET", CONFIG), stream, watch=True)

    stream.finish()

    assert len(lines) == 2


async def test_an_unauthenticated_request_has_no_user(tmp_path: Path) -> None:
    request = _request("GET", CONFIG)
    request.authenticated, request.annotations = None, {}

    (line,) = await _lines(tmp_path / "log", request, Response(401), user=None)

    assert (line["user"], line["stage"], "annotations" in line) == ({}, "ResponseStarted", False)


async def test_an_impersonated_user_is_logged_with_the_authenticated_one(tmp_path: Path) -> None:
    (line,) = await _lines(tmp_path / "log", _request("GET", CONFIG), Response(200), user=User("bob"))

    assert (line["user"]["username"], line["impersonatedUser"]) == ("ann", {"username": "bob"})


async def test_addresses_of_proxies_come_first(tmp_path: Path) -> None:
    request = _request("GET", CONFIG, x_forwarded_for="1.2.3.4, what, 5.6.7.8", x_real_ip="5.6.7.8")

    (line,) = await _lines(tmp_path / "log", request, Response(200))

    assert line["sourceIPs"] == ["1.2.3.4", "5.6.7.8", "127.0.0.1"]


async def test_a_long_user_agent_is_truncated(tmp_path: Path) -> None:
    (line,) = await _lines(tmp_path / "log", _request("GET", CONFIG, user_agent="u" * 2000), Response(200))

    assert line["userAgent"] == "u" * 1024 + "...TRUNCATED"


async def test_the_level_decides_which_bodies_are_logged(tmp_path: Path) -> None:
    body = b'{"metadata":{"name":"c"}}'
    said = {}
    for level in ("None", "Metadata", "Request", "RequestResponse"):
        request = _request("POST", CONFIG, body)
        lines = await _lines(tmp_path / level, request, Response(201, b'{"kind":"X"}'), level=level)
        said[level] = [("requestObject" in line, "responseObject" in line) for line in lines]

    assert said == {
        "None": [],
        "Metadata": [(False, False)],
        "Request": [(True, False)],
        "RequestResponse": [(True, True)],
    }


async def test_events_are_written_while_requests_are_served(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = AuditLog(path)
    for _ in range(100):
        log.observe(_request("GET", CONFIG), request_info("GET", CONFIG, {}), ANN, Response(200), seconds=0)
        await asyncio.sleep(0)

    await log.close()

    assert len(path.read_text().splitlines()) == 100


def test_a_path_that_cannot_be_written_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ClusterError, match="choose another path"):
        AuditLog(tmp_path / "file" / "log")
