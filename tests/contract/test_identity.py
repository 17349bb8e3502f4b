"""Who is asking: certificates, tokens, plug-ins, impersonation; and what a bad configuration says.

Covers: kubewright.apiserver.auth, kubewright.client.config
"""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright import Client, Config, Dynamic, connect
from kubewright._base import yaml
from kubewright._base.certificates import Authority
from kubewright._base.yaml import load
from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.errors import Forbidden, TransportError, Unauthorized

REVIEW = Dynamic("authentication.k8s.io/v1", "SelfSubjectReview", plural="selfsubjectreviews", namespaced=False)


async def whoami(client: Client) -> tuple[str, set[str]]:
    answer = await client.create(REVIEW())
    return answer.get("status.userInfo.username"), set(answer.get("status.userInfo.groups"))


async def token_of(client: Client, namespace: str, account: str = "robot", *, create: bool = True) -> str:
    kind = Dynamic("v1", "ServiceAccount")
    if create:
        await client.create(kind.named(account, namespace))
    path = await client.object_path(kind, account, namespace=namespace, subresource="token")
    body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}}'
    response = await client.request("POST", path, body=body)
    token = json.loads(response.body)["status"]["token"]
    assert isinstance(token, str)
    return token


def kubeconfig(plane: Any, user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    place = {"server": plane.url, "certificate-authority-data": base64.b64encode(plane.ca_data).decode(), **cluster}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": place}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


async def test_client_certificate(plane: Any) -> None:
    async with connect(kubeconfig=await plane.user("alice", groups=("dev",))) as client:
        name, groups = await whoami(client)

    assert name == "alice"
    assert {"dev", "system:authenticated"} <= groups


async def test_bearer_token(plane: Any, client: Client, namespace: str) -> None:
    token = await token_of(client, namespace)

    async with connect(Config.from_dict(kubeconfig(plane, {"token": token}), Path())) as robot:
        name, _ = await whoami(robot)

    assert name == f"system:serviceaccount:{namespace}:robot"


async def test_token_file_is_read_again_after_a_401(plane: Any, client: Client, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("not.a.token")
    async with connect(Config.from_dict(kubeconfig(plane, {"tokenFile": str(file)}), tmp_path)) as robot:
        with pytest.raises(Unauthorized):
            await whoami(robot)

        file.write_text(await token_of(client, namespace))
        name, _ = await whoami(robot)

    assert name.endswith(":robot")


async def test_exec_plug_in_is_run_again_after_a_401(
    plane: Any, client: Client, namespace: str, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(json.dumps(["not.a.token", await token_of(client, namespace)]))
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "tokens = json.loads(file.read_text())\n"
        "file.write_text(json.dumps(tokens[1:] or tokens))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',\n"
        "                  'status': {'token': tokens[0]}}))\n"
    )
    command = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(plugin), str(tokens)],
        "interactiveMode": "Never",
    }

    async with connect(Config.from_dict(kubeconfig(plane, {"exec": command}), tmp_path)) as robot:
        name, _ = await whoami(robot)

    assert name.endswith(":robot")


async def test_in_cluster_configuration(plane: Any, client: Client, namespace: str, tmp_path: Path) -> None:
    host, port = plane.url.removeprefix("https://").split(":")
    (tmp_path / "token").write_text(await token_of(client, namespace))
    (tmp_path / "ca.crt").write_bytes(plane.ca_data)
    (tmp_path / "namespace").write_text(namespace)
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    config = Config.in_cluster(folder=tmp_path, environ=environ)
    async with connect(config) as robot:
        name, _ = await whoami(robot)

    assert name == f"system:serviceaccount:{namespace}:robot"
    assert robot.namespace == namespace


async def test_impersonation(plane: Any) -> None:
    config = Config.load(kubeconfig=plane.kubeconfig).impersonating("bob", groups=("ops",))

    async with connect(config) as client:
        name, groups = await whoami(client)
        with pytest.raises(Forbidden, match='User "bob" cannot list'):
            await client.list(Dynamic("v1", "Secret"))

    assert name == "bob"
    assert "ops" in groups


async def test_the_key_in_a_kubeconfig_is_one_that_every_client_reads(plane: Any) -> None:
    user = load((await plane.user("alice")).read_text())["users"][0]["user"]

    key = base64.b64decode(user["client-key-data"])

    assert key.startswith(b"-----BEGIN EC PRIVATE KEY-----")


async def test_merged_kubeconfigs_find_the_user_in_another_file(plane: Any, tmp_path: Path) -> None:
    whole = yaml.load((await plane.user("carol")).read_text())
    users = {"users": whole.pop("users")}
    (tmp_path / "places").write_text(yaml.dump(whole))
    (tmp_path / "users").write_text(yaml.dump(users))

    environ = {"KUBECONFIG": f"{tmp_path / 'places'}:{tmp_path / 'missing'}:{tmp_path / 'users'}"}
    async with connect(Config.load(environ=environ)) as client:
        name, _ = await whoami(client)

    assert name == "carol"


async def test_wrong_ca_is_one_sentence(plane: Any) -> None:
    other = base64.b64encode(Authority.create("somebody else").certificate).decode()
    tree = kubeconfig(plane, {"token": "t"}, **{"certificate-authority-data": other})

    async with connect(Config.from_dict(tree, Path())) as client:
        with pytest.raises(TransportError, match=r"cannot trust https://.*not signed by the CA"):
            await whoami(client)


async def test_verification_can_be_skipped(plane: Any, client: Client, namespace: str) -> None:
    tree = kubeconfig(plane, {"token": await token_of(client, namespace)}, **{"insecure-skip-tls-verify": True})
    del tree["clusters"][0]["cluster"]["certificate-authority-data"]

    async with connect(Config.from_dict(tree, Path())) as robot:
        name, _ = await whoami(robot)

    assert name.endswith(":robot")


async def test_tls_server_name_must_fit(plane: Any) -> None:
    config = dataclasses.replace(Config.load(kubeconfig=plane.kubeconfig), tls_server_name="nobody.example.io")

    async with connect(config) as client:
        with pytest.raises(TransportError, match=r"nobody\.example\.io"):
            await whoami(client)


async def test_unreachable_server_is_one_sentence() -> None:
    tree = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }

    async with Client(AiohttpTransport(Config.from_dict(tree, Path()))) as client:
        with pytest.raises(TransportError, match=r"^cannot reach http://127\.0\.0\.1:1: the connection was refused"):
            await whoami(client)
