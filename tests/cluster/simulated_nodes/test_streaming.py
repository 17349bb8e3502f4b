"""exec, attach, cp and port-forward into simulated pods: the same on both planes, by kubectl and by another client.

On the real plane kube-apiserver stands in between and speaks SPDY to the kubelet for a kubectl that speaks WebSockets
to it; on the embedded one the kubelet is spoken to as kubectl speaks. What the clients see must not differ.

Covers: kubewright.cluster.kubelet
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import TIMING, is_ready
from tests.waiting import reach

from kubewright import Client
from kubewright.api.codec import from_tree
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import ConfigMap, Container, Pod
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

Cluster = EmbeddedCluster | RealCluster


class Ran(NamedTuple):
    """How a kubectl ended."""

    code: int
    out: str
    errors: str


Run = Callable[..., Awaitable[Ran]]
Official = Callable[[str], Awaitable[list[Any]]]


@pytest.fixture(scope="module")
async def embedded_nodes() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(timing=TIMING) as cluster:
        await cluster.wait_for_controllers()
        yield cluster


@pytest.fixture(scope="module", params=["embedded", "real"])
def nodes_cluster(request: pytest.FixtureRequest) -> Cluster:
    cluster = request.getfixturevalue(f"{request.param}_nodes")
    assert isinstance(cluster, EmbeddedCluster | RealCluster)
    return cluster


@pytest.fixture
def run(nodes_cluster: Cluster, real_binaries: Binaries, namespace: str) -> Run:
    """kubectl in the namespace, however it ends."""

    async def run(*arguments: str, stdin: str = "") -> Ran:
        child = await asyncio.create_subprocess_exec(
            real_binaries.kubectl,
            f"--kubeconfig={nodes_cluster.kubeconfig}",
            f"--namespace={namespace}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await child.communicate(stdin.encode())
        return Ran(child.returncode or 0, out.decode(), errors.decode())

    return run


@pytest.fixture
def official(nodes_cluster: Cluster, namespace: str) -> Official:
    """Runs a part of `official_client`."""

    async def talk(part: str) -> list[Any]:
        program = Path(__file__).with_name("official_client.py")
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, str(program), str(nodes_cluster.kubeconfig), namespace, part),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await child.communicate()
        found: list[Any] = json.loads(out)
        return found

    return talk


@pytest.fixture
async def web(client: Client, namespace: str) -> Pod:
    """A pod that runs, with an environment, a mounted ConfigMap and a port."""
    meta = {"name": "settings", "namespace": namespace}
    await client.create(from_tree(ConfigMap, {"metadata": meta, "data": {"app.ini": "size=3\n", "LEVEL": "debug"}}))
    container = {
        "env": [
            {"name": "PLAIN", "value": "yes"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "LEVEL"}}},
        ],
        "ports": [{"containerPort": 80}],
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}],
    }
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    given = pod("web", namespace, container=container, volumes=volumes)
    return await reach(client, await client.create(given), is_ready)


async def test_output_errors_and_the_exit_code_come_back(web: Pod, run: Run) -> None:
    assert await run("exec", "web", "--", "echo", "hello", "world") == Ran(0, "hello world\n", "")
    ran = await run("exec", "web", "--", "sh", "-c", "echo out; echo wrong >&2; exit 3")
    assert ran == Ran(3, "out\n", "wrong\ncommand terminated with exit code 3\n")
    assert (await run("exec", "web", "--", "false")).code == 1


async def test_the_environment_and_the_files_are_those_of_the_container(web: Pod, run: Run) -> None:
    lines = (await run("exec", "web", "--", "env")).out.splitlines()
    assert {"PLAIN=yes", "POD=web", "LEVEL=debug", "HOSTNAME=web"} <= set(lines)
    assert (await run("exec", "web", "--", "cat", "/etc/settings/app.ini")).out == "size=3\n"
    assert (await run("exec", "web", "--", "ls", "/etc/settings")).out == "LEVEL\napp.ini\n"
    missing = await run("exec", "web", "--", "cat", "/etc/nothing")
    assert missing == Ran(
        1, "", "cat: /etc/nothing: No such file or directory\ncommand terminated with exit code 1\n"
    )  # fmt: skip


async def test_a_missing_program_is_the_error_of_a_container_runtime(web: Pod, run: Run) -> None:
    ran = await run("exec", "web", "--", "psql")
    assert ran.code == 127
    assert 'exec: "psql": executable file not found in $PATH' in ran.errors
    assert (await run("exec", "web", "--", "/etc/hostname")).code == 126
    shell = await run("exec", "web", "--", "sh", "-c", "psql || echo again")
    assert (shell.code, shell.out, shell.errors) == (0, "again\n", "sh: psql: not found\n")


async def test_input_reaches_the_command_and_its_end_too(web: Pod, run: Run) -> None:
    assert await run("exec", "-i", "web", "--", "cat", stdin="typed\n" * 5000) == Ran(0, "typed\n" * 5000, "")
    script = "X=5\necho $X | wc -c\nexit 4\n"
    assert await run("exec", "-i", "web", "--", "sh", stdin=script) == Ran(
        4, "2\n", "command terminated with exit code 4\n"
    )  # fmt: skip


async def test_files_are_copied_in_and_out(web: Pod, run: Run, tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(bytes(range(256)) * 1000)
    assert (await run("cp", str(tmp_path / "sent"), "web:/tmp/kept")).code == 0
    assert (await run("exec", "web", "--", "wc", "-c", "/tmp/kept")).out == "256000 /tmp/kept\n"
    assert (await run("cp", "web:/tmp/kept", str(tmp_path / "back"))).code == 0
    assert (tmp_path / "back").read_bytes() == (tmp_path / "sent").read_bytes()


async def test_exec_into_a_missing_container_is_an_error(client: Client, web: Pod, run: Run, namespace: str) -> None:
    pair = pod("pair", namespace, initContainers=[{"name": "first", "image": "busybox"}])
    pair.spec.containers.append(from_tree(Container, {"name": "second", "image": "nginx"}))
    await reach(client, await client.create(pair), is_ready)

    wrong = await run("exec", "web", "-c", "nope", "--", "true")
    assert wrong.errors == "Error from server (BadRequest): container nope is not valid for pod web\n"
    assert (await run("exec", "gone", "--", "true")).errors == 'Error from server (NotFound): pods "gone" not found\n'
    assert (await run("exec", "pair", "-c", "second", "--", "hostname")).out == "pair\n"
    over = await run("exec", "pair", "-c", "first", "--", "true")
    assert (over.code, over.errors) == (
        1,
        'error: Internal error occurred: unable to upgrade connection: container not found ("first")\n',
    )
    bare = await run("get", "--raw", f"/api/v1/namespaces/{namespace}/pods/pair/exec?command=true&stdout=1")
    assert bare.errors == (
        "Error from server (BadRequest): a container name must be specified for pod pair, choose one of: "
        "[first main second]\n"
    )
    plain = await run("get", "--raw", f"/api/v1/namespaces/{namespace}/pods/web/exec?command=true&stdout=1")
    assert plain.errors == "Error from server (BadRequest): Upgrade request required\n"


async def test_attach_ends_with_the_container(client: Client, run: Run, namespace: str) -> None:
    work = {"image": "busybox", "command": ["sh", "-c", "echo begun; sleep 600"]}
    given = pod("job", namespace, container=work, restartPolicy="Never")
    created = await client.create(given)
    await reach(client, created, is_ready)

    attaching = asyncio.ensure_future(run("attach", "job", "--quiet"))
    await _attached()
    assert not attaching.done()
    await client.patch_by_name(Pod, created.key, {"spec": {"activeDeadlineSeconds": 1}})

    assert await attaching == Ran(0, "", "")
    ended = await reach(client, created, lambda item: item.status.phase == "Failed")
    assert ended.status.reason == "DeadlineExceeded"


async def _attached() -> None:
    """Returns when somebody is attached to a container, which nothing but the kubelet knows: it is on this loop."""
    async with time_limit(60):
        while not any("._attach" in repr(task.get_coro()) for task in asyncio.all_tasks()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_the_official_client_runs_a_command_over_a_web_socket(web: Pod, official: Official) -> None:
    assert await official("command") == ["out\n", "wrong\n", 7]


async def test_the_official_client_runs_an_interactive_shell(web: Pod, official: Official) -> None:
    assert await official("shell") == ["web", "web"]


async def test_the_official_client_forwards_ports_over_a_web_socket(web: Pod, official: Official) -> None:
    answer, refused = await official("ports")

    assert "pod web, port 80:" in answer
    assert "connection refused" in refused


async def test_a_declared_port_responds_and_another_refuses(
    web: Pod, nodes_cluster: Cluster, real_binaries: Binaries
) -> None:
    child = await asyncio.create_subprocess_exec(
        real_binaries.kubectl,
        f"--kubeconfig={nodes_cluster.kubeconfig}",
        f"--namespace={web.metadata.namespace}",
        *("port-forward", "pod/web", "--address=127.0.0.1", ":80", ":81"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        ports = [int((await child.stdout.readline()).split(b":")[1].split()[0]) for _ in range(2)]
        answer = await _http(ports[0])
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"pod web, port 80:" in answer
        assert await _http(ports[1]) == b""
        assert b"connection refused" in await child.stderr.readline()
    finally:
        if child.returncode is None:
            child.terminate()
        await child.communicate()


async def _http(port: int) -> bytes:
    """What is answered; nothing if the connection is cut, which may be before the question was read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
        await writer.drain()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
