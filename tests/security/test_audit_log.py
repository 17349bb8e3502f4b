"""Nobody keeps a request out of the audit log, nor adds one that was not made.

Covers: kubewright.apiserver.front.audit
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.security.raw_requests import Caller
from tests.stub_server import StubResponse, StubServer

from kubewright.apiserver.front.audit import AuditLog, Level
from kubewright.apiserver.wire.requests import Peer, Request, request_info
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.users import User
from kubewright.cluster import Cluster

FORGED = b'{"kind":"Event","auditID":"forged"}'
BODIES = {
    "half a Status": b'{"kind":"Status",',
    "a Status with a line": b'{"kind":"Status","message":"a"}\n' + FORGED,
    "an object with a line in it": b'{"kind":"Status","x":\n' + FORGED + b"\n}",
    "a Status of many levels": b'{"kind":"Status","x":' + b"[" * 100_000,
    "a Status of odd types": b'{"kind":"Status","code":{},"message":[1],"details":5}',
    "no UTF-8": b'{"kind":"Status","message":"\xff"}',
}


def observed(log: AuditLog, audit_id: str, body: bytes) -> None:
    path = "/api/v1/nodes/a/proxy/x"
    request = Request("GET", path, {}, {}, b"", Peer(address="127.0.0.1"), uri=path)
    request.audit_id, request.authenticated = audit_id, User("ann")
    reply = Response(500, body, "application/json")
    log.observe(request, request_info("GET", path, {}), request.authenticated, reply, seconds=0.5)


@pytest.mark.parametrize("level", ["Metadata", "RequestResponse"])
@pytest.mark.parametrize("case", BODIES)
async def test_a_response_of_another_server_is_one_line_and_costs_nobody_theirs(
    tmp_path: Path, level: Level, case: str
) -> None:
    log = AuditLog(tmp_path / "log", level=level)
    observed(log, "before", b"{}")
    observed(log, "hostile", BODIES[case])
    observed(log, "after", b"{}")
    await log.close()

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    found = [line["auditID"] for line in lines if line["stage"] == "ResponseComplete"]
    assert found == ["before", "hostile", "after"]
    assert {line["auditID"] for line in lines} == {"before", "hostile", "after"}


async def test_a_hostile_kubelet_keeps_no_request_out_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with StubServer() as stub, Cluster.embedded(pods=False, audit_log=log) as cluster:
        stub.handlers["/"] = lambda received: StubResponse(BODIES["half a Status"])
        client = cluster.client
        await client.request("POST", "/api/v1/nodes", body=b'{"metadata": {"name": "stub"}}')
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": stub.port}},
        }
        await client.request(
            "PATCH",
            "/api/v1/nodes/stub/status",
            body=json.dumps({"status": status}).encode(),
            content_type="application/merge-patch+json",
        )
        cluster.server.kubelets.register("127.0.0.1", stub.port, authorities=stub.authority.certificate)
        admin = Caller.of_kubeconfig(cluster.kubeconfig, tmp_path)
        await admin.send("/api/v1/nodes/stub/proxy/x")
        await client.request("GET", "/api/v1/namespaces/kube-system")

    paths = [json.loads(line)["requestURI"] for line in log.read_text().splitlines()]
    assert "/api/v1/nodes/stub/proxy/x" in paths
    assert "/api/v1/namespaces/kube-system" in paths
