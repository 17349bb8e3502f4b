"""The operator's own servers: probes, metrics and webhooks, which nobody logs in to."""

from __future__ import annotations

import asyncio

from tests.security.harness.attack import Target, attack
from tests.security.harness.exchange import Answer, request_bytes

_JSON = {"Content-Type": "application/json"}


async def _unread(on: Target, data: bytes) -> Answer:
    connection = await on.connect()
    connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.wait([asyncio.create_task(connection._send(data))], timeout=5)
    await asyncio.sleep(1)
    return Answer(0)


@attack(by="anonymous", where="metrics")
async def pipelined_metrics(on: Target) -> Answer:
    """Half a megabyte of requests for metrics that nobody reads."""
    return await _unread(on, b"GET /metrics HTTP/1.1\r\n\r\n" * 20_000)


@attack(by="anonymous", where="probes")
async def pipelined_probes(on: Target) -> Answer:
    """As many probes."""
    return await _unread(on, b"GET /healthz HTTP/1.1\r\n\r\n" * 100_000)


@attack(by="anonymous", where="webhooks")
async def pipelined_webhooks(on: Target) -> Answer:
    """Requests for no webhook, unread."""
    return await _unread(on, b"GET /x HTTP/1.1\r\n\r\n" * 150_000)


@attack(by="anonymous", where="probes")
async def short_header_lines(on: Target) -> Answer:
    """Header lines of four bytes."""
    return await (await on.connect()).ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 720_000 + b"\r\n")


@attack(by="anonymous", where="probes")
async def an_endless_header(on: Target) -> Answer:
    """A header that does not end."""
    return await (await on.connect()).ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000_000)


@attack(by="anonymous", where="probes")
async def trickling_connections(on: Target) -> Answer:
    """A thousand connections, a byte of a head each; somebody else asks."""
    for _ in range(10):
        for connection in await asyncio.gather(*(on.connect() for _ in range(110))):
            connection.writer.write(b"G")
    try:
        async with asyncio.timeout(20):
            return await on.get("/healthz")
    except TimeoutError:
        return Answer(0)


@attack(by="anonymous", where="webhooks")
async def trickling_webhooks(on: Target) -> Answer:
    """Three hundred connections with TLS that say nothing; somebody else asks."""
    for _ in range(3):
        await asyncio.gather(*(on.connect() for _ in range(100)))
    async with asyncio.timeout(20):
        return await on.post("/validate--v1-configmap", b"{}")


@attack(by="anonymous", where="webhooks")
async def conversions_that_are_not_served(on: Target) -> Answer:
    """A body of a hundred megabytes for a conversion that nobody declared."""
    return await on.ask("POST", "/convert", b" " * 100_000_000, headers=_JSON)


@attack(by="anonymous", where="webhooks", connections=100)
async def half_bodies(on: Target) -> Answer:
    """A hundred bodies of three megabytes, all but their last byte."""
    data = request_bytes("POST", "/validate--v1-configmap", b" " * 2_900_000, headers=_JSON)[:-1]
    connections = await asyncio.gather(*(on.connect() for _ in range(100)))
    await asyncio.wait([asyncio.create_task(each._send(data)) for each in connections], timeout=20)
    return await on.post("/validate--v1-configmap", b"{}")


@attack(by="anonymous", where="webhooks")
async def repeated_names(on: Target) -> Answer:
    """A review whose object says one name again and again."""
    return await on.post("/validate--v1-configmap", _review(b'{"data":{' + b",".join([b'"a":"b"'] * 350_000) + b"}}"))


@attack(by="anonymous", where="webhooks")
async def a_wide_object(on: Target) -> Answer:
    """A review of an object with two hundred thousand fields."""
    fields = b",".join(b'"%d":""' % number for number in range(230_000))
    return await on.post("/mutate--v1-configmap", _review(b'{"data":{' + fields + b"}}"))


@attack(by="anonymous", where="webhooks")
async def empty_objects(on: Target) -> Answer:
    """A review of an object with a million empty owners."""
    owners = b",".join([b"{}"] * 900_000)
    return await on.post("/mutate--v1-configmap", _review(b'{"metadata":{"ownerReferences":[' + owners + b"]}}"))


@attack(by="anonymous", where="webhooks")
async def deep_objects(on: Target) -> Answer:
    """Reviews of deep objects."""
    answer = Answer(0)
    for levels in (900, 3000, 100_000):
        answer = await on.post("/mutate--v1-configmap", _review(b'{"a":' * levels + b"1" + b"}" * levels))
        if answer.is_internal_error:
            return answer
    return answer


@attack(by="anonymous", where="webhooks")
async def a_long_timeout(on: Target) -> Answer:
    """A webhook asked to take a million hours, and as long as no number says."""
    answer = Answer(0)
    for value in ("1000000h", "1h" * 8000, "nan", "1e400s", "-1s", "9" * 5000 + "s"):
        answer = await on.post(f"/validate--v1-configmap?timeout={value}", _review(b'{"metadata":{"name":"a"}}'))
        if answer.is_internal_error:
            return answer
    return answer


def _review(tree: bytes) -> bytes:
    return (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":'
        b'"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},"name":"a","namespace":'
        b'"b","operation":"CREATE","userInfo":{"username":"c"},"object":' + tree + b"}}"
    )
