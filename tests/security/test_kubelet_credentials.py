"""The simulated kubelet demands credentials, as a real one whose anonymous access is disabled.

Covers: kubewright.cluster.kubelet.server, kubewright.cluster.kubelet.auth
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders.pods import pod
from tests.planes import PLANES, Plane, fresh_namespace
from tests.security.raw_requests import UPGRADE, Caller
from tests.waiting import present, reach

from kubewright import Client
from kubewright._base.certificates import Authority
from kubewright.api.codec import from_tree
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Node, Pod, ServiceAccount
from kubewright.k8s.rbac.v1 import ClusterRole, ClusterRoleBinding

PATHS = (
    "/exec/{ns}/web/main?command=env&output=1",
    "/attach/{ns}/web/main?output=1",
    "/portForward/{ns}/web?port=80",
    "/containerLogs/{ns}/web/main",
    "/healthz",
    "/pods",
    "/elsewhere",
)
RIGHTS = "/exec/{ns}/web/main?command=env&output=1"


@pytest.fixture(scope="module", params=PLANES)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Plane]:
    """A control plane with a simulated node."""
    made: Plane
    if request.param == "embedded":
        made = EmbeddedCluster(storage=False)
    else:
        made = RealCluster(
            start_timeout=300, version=request.getfixturevalue("real_binaries").version, nodes=1, storage=False
        )
    async with made:
        await made.wait_for_controllers()
        yield made


@pytest.fixture(scope="module")
async def namespace(cluster: Plane) -> str:
    """A namespace with a pod that runs, `web`."""
    client = cluster.client
    name = await fresh_namespace(client, prefix="victim")
    await present(client, ServiceAccount, name, lambda have: "default" in have)
    await reach(client, await client.create(pod("web", name)), is_running)
    return name


@pytest.fixture(scope="module")
async def kubelet(cluster: Plane, namespace: str) -> Caller:
    """Somebody without credentials, at the kubelet."""
    node = await cluster.client.get(Node, "node-1")
    endpoint = node.status.daemon_endpoints
    assert endpoint is not None
    assert endpoint.kubelet_endpoint is not None
    return Caller("127.0.0.1", endpoint.kubelet_endpoint.port)


def is_running(given: Pod) -> bool:
    return given.status.phase == "Running"


@pytest.mark.parametrize("path", PATHS)
async def test_a_local_process_without_credentials_is_unauthorized(kubelet: Caller, namespace: str, path: str) -> None:
    for headers in ((), UPGRADE, ("Connection: Upgrade", "Upgrade: SPDY/3.1")):
        answer = await kubelet.send(path.format(ns=namespace), *headers)

        assert (answer.code, answer.body) == (401, "Unauthorized")


async def test_an_unknown_token_is_unauthorized(kubelet: Caller, namespace: str) -> None:
    stranger = Caller(kubelet.host, kubelet.port, token="not-a-token")

    answer = await stranger.send(RIGHTS.format(ns=namespace), *UPGRADE)

    assert (answer.code, answer.body) == (401, "Unauthorized")


async def test_a_certificate_of_another_authority_is_refused(kubelet: Caller, namespace: str, tmp_path: Path) -> None:
    forged = Authority.create("kubewright-ca").client("admin", groups=("system:masters",))
    file = tmp_path / "forged.pem"
    file.write_bytes(forged.certificate + forged.key)

    with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
        await Caller(kubelet.host, kubelet.port, file).send(RIGHTS.format(ns=namespace), *UPGRADE)


async def test_a_user_without_rights_is_forbidden(
    cluster: Plane, kubelet: Caller, namespace: str, tmp_path: Path
) -> None:
    nobody = Caller.of_kubeconfig(await cluster.user("nobody"), tmp_path).at(kubelet.port)

    answers = {
        method: await nobody.send(RIGHTS.format(ns=namespace), *UPGRADE, method=method) for method in ("GET", "POST")
    }
    pods, health, stats = [await nobody.send(path) for path in ("/pods", "/healthz/x", "/stats/summary")]

    def forbidden(verb: str, subresources: str) -> tuple[int, str]:
        return 403, f"Forbidden (user=nobody, verb={verb}, resource=nodes, subresource(s)=[{subresources}])\n"

    assert (answers["GET"].code, answers["GET"].body) == forbidden("get", "proxy")
    assert (answers["POST"].code, answers["POST"].body) == forbidden("create", "proxy")
    assert (pods.code, pods.body) == forbidden("get", "pods proxy")
    assert (health.code, health.body) == forbidden("get", "healthz proxy")
    assert (stats.code, stats.body) == forbidden("get", "stats")


async def test_an_administrator_is_served_by_certificate(
    cluster: Plane, kubelet: Caller, namespace: str, tmp_path: Path
) -> None:
    admin = Caller.of_kubeconfig(cluster.kubeconfig, tmp_path).at(kubelet.port)

    assert (await admin.send(RIGHTS.format(ns=namespace), *UPGRADE)).code == 101
    assert (await admin.send("/healthz")).body == "ok"


async def test_a_token_is_served_by_the_rights_of_its_account(cluster: Plane, kubelet: Caller, namespace: str) -> None:
    client = cluster.client
    role = f"health-{namespace}"
    await client.create(
        from_tree(
            ClusterRole,
            {
                "metadata": {"name": role},
                "rules": [{"apiGroups": [""], "resources": ["nodes/healthz"], "verbs": ["get"]}],
            },
        )
    )
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    await client.create(
        from_tree(ClusterRoleBinding, {"metadata": {"name": role}, "subjects": [subject], "roleRef": reference})
    )
    account = Caller(kubelet.host, kubelet.port, token=await token_of(client, namespace))

    assert (await account.send("/healthz")).body == "ok"
    refused = await account.send(RIGHTS.format(ns=namespace), *UPGRADE)
    user = f"system:serviceaccount:{namespace}:default"
    assert (refused.code, refused.body) == (
        403,
        f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[proxy])\n",
    )


async def test_the_kubelet_client_certificate_gives_no_other_rights(cluster: Plane, tmp_path: Path) -> None:
    folder = cluster.folder / "pki"
    file = tmp_path / "kubelet-client.pem"
    file.write_bytes(b"".join((folder / f"apiserver-kubelet-client.{end}").read_bytes() for end in ("crt", "key")))
    admin = Caller.of_kubeconfig(cluster.kubeconfig, tmp_path)

    answer = await Caller(admin.host, admin.port, file).send("/api/v1/secrets")

    assert answer.code == 403
    assert 'User \\"kube-apiserver-kubelet-client\\" cannot list resource' in answer.body


async def token_of(client: Client, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    body: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    response = await client.request("POST", path, body=json.dumps(body).encode())
    return str(json.loads(response.body)["status"]["token"])
