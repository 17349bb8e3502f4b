"""The real control plane: it starts, it is a Kubernetes, it fails loudly, and it leaves nothing behind.

Covers: kubewright.cluster.planes, kubewright.cluster.processes
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from kubewright._base.files import write_private
from kubewright.cluster import Cluster
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.real import RealCluster
from kubewright.cluster.processes.probe import Probe
from kubewright.errors import ClusterError
from kubewright.testing import time_limit
from kubewright.testing.time_limits import slowness

pytestmark = [pytest.mark.real, pytest.mark.slow]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

# A program as users write one: starts a cluster, says its processes and its folder, and waits to be killed.
PROGRAM = """
import asyncio, json, os
from kubewright.cluster import Cluster

async def main() -> None:
    async with Cluster.real(start_timeout=300) as cluster:
        pids = [process.pid for process in cluster.processes.values()]
        print(json.dumps({"pids": pids, "folder": str(cluster.folder)}), flush=True)
        await cluster.wait()

asyncio.run(main())
"""


class Kubectl(Protocol):
    async def __call__(self, *arguments: str, stdin: str = "") -> str: ...


def admin(cluster: RealCluster) -> Probe:
    """Plain requests as the admin."""
    user = yaml.safe_load(cluster.kubeconfig.read_text())["users"][0]["user"]
    context = ssl.create_default_context(cadata=cluster.ca_data.decode())
    pem = cluster.folder / "test-admin.pem"
    encoded = user["client-certificate-data"], user["client-key-data"]
    write_private(pem, b"".join(map(base64.b64decode, encoded)))
    context.load_cert_chain(pem)
    return Probe(int(cluster.url.rpartition(":")[2]), tls=context, timeout=30)


async def created(probe: Probe, name: str) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    status, answer = await probe.post(CONFIG_MAPS, json.dumps(body).encode())
    assert status == 201, answer
    decoded: dict[str, Any] = json.loads(answer)
    return decoded


async def readers_may_list_pods(probe: Probe) -> bool:
    spec = {"groups": ["readers"], "resourceAttributes": {"verb": "list", "resource": "pods"}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    _, answer = await probe.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json.dumps(body).encode())
    allowed = json.loads(answer)["status"]["allowed"]
    assert isinstance(allowed, bool)
    return allowed


def kubewright(*arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubewright.cli", *arguments],
        env={**os.environ, "KUBEWRIGHT_STATE": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )


async def test_kubectl_of_the_same_version_lists_namespaces(real_cluster: RealCluster, kubectl: Kubectl) -> None:
    names = await kubectl("get", "namespaces", "-o", "name")
    versions = json.loads(await kubectl("version", "-o", "json"))

    assert {"namespace/default", "namespace/kube-system"} <= set(names.split())
    assert versions["serverVersion"]["gitVersion"] == f"v{real_cluster.version}"
    assert versions["clientVersion"]["gitVersion"] == f"v{real_cluster.version}"
    assert f"1.{versions['serverVersion']['minor']}." in real_cluster.version


async def test_controllers_run_and_service_account_tokens_work(real_cluster: RealCluster, kubectl: Kubectl) -> None:
    name = "controllers-run"
    await kubectl("create", "namespace", name)
    await kubectl("create", "deployment", "web", "--image=none", "--replicas=2", "-n", name)
    await kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deployment/web", "-n", name, "--timeout=30s")
    await kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
    token = (await kubectl("create", "token", "default", "-n", name)).strip()

    who = await kubectl(
        "--kubeconfig=/dev/null",  # the admin's certificate would win over a token
        f"--server={real_cluster.url}",
        f"--certificate-authority={real_cluster.folder / 'pki' / 'ca.crt'}",
        f"--token={token}",
        *("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"),
    )

    assert who == f"system:serviceaccount:{name}:default"
    await kubectl("delete", "namespace", name, "--timeout=60s")
    assert name not in await kubectl("get", "namespaces", "-o", "name")


async def test_another_user_may_do_what_rbac_says(real_cluster: RealCluster, kubectl: Kubectl) -> None:
    path = await real_cluster.user("jane:doe", groups=["readers"])

    before = await kubectl(f"--kubeconfig={path}", "auth", "whoami", "-o", "jsonpath={.status.userInfo}")
    await kubectl("create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
    async with time_limit(30):
        while not await readers_may_list_pods(admin(real_cluster)):
            """The authorizer learns of bindings by watching, so a moment later."""
    may = await kubectl(f"--kubeconfig={path}", "auth", "can-i", "list", "pods", "-A")

    assert json.loads(before)["username"] == "jane:doe"
    assert "readers" in json.loads(before)["groups"]
    assert may.strip() == "yes"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_it_starts_in_seconds_and_two_run_side_by_side(real_binaries: Binaries, tmp_path: Path) -> None:
    begun = time.monotonic()
    async with Cluster.real(start_timeout=300) as one:
        took = time.monotonic() - begun
        async with Cluster.real(audit_log=tmp_path / "audit.log", start_timeout=300) as two:
            await created(admin(one), "only-in-one")

            there, _ = await admin(one).get(f"{CONFIG_MAPS}/only-in-one")
            elsewhere, _ = await admin(two).get(f"{CONFIG_MAPS}/only-in-one")

        assert (there, elsewhere) == (200, 404)
        assert one.url != two.url
        assert f"{CONFIG_MAPS}/only-in-one" in (tmp_path / "audit.log").read_text()
        assert not two.folder.exists()
    # About 3 s on an idle machine; the bound only catches a start that waits for a time-out somewhere.
    assert took < 20 * slowness()


async def test_an_api_server_that_crashes_is_a_cluster_error_with_its_last_log_lines(real_binaries: Binaries) -> None:
    cluster = Cluster.real(start_timeout=300)

    async def program() -> None:
        async with cluster:
            cluster.processes["apiserver"].send(signal.SIGKILL)
            await cluster.wait()

    expected = r"(?s)kube-apiserver was killed by SIGKILL; its log .* ends:\n  \S"
    with pytest.raises(ClusterError, match=expected) as caught:
        await program()

    assert len(str(caught.value).splitlines()) == 16
    assert not any(process.running for process in cluster.processes.values())


async def test_a_wrong_flag_is_reported_with_the_message_of_the_server(real_binaries: Binaries) -> None:
    with pytest.raises(ClusterError, match="unknown flag: --no-such-flag"):
        await Cluster.real(apiserver_flags={"no-such-flag": "1"}).start()


async def test_faults_can_be_made_and_mended(real_binaries: Binaries) -> None:
    async with Cluster.real(start_timeout=300) as cluster:
        old = (await created(admin(cluster), "before"))["metadata"]["resourceVersion"]
        await created(admin(cluster), "after")

        await cluster.pause("apiserver")
        impatient = Probe(int(cluster.url.rpartition(":")[2]), timeout=0.3)
        assert await impatient.get("/readyz") == (0, b"")
        await cluster.resume("apiserver")
        assert (await admin(cluster).get("/readyz"))[0] == 200

        await cluster.kill("etcd")
        await cluster.restart("etcd")
        revision = await cluster.compact()
        await cluster.restart("apiserver")

        watch = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={old}"
        code, event = await admin(cluster).get(watch)
        while code == 429:  # it has not read everything yet
            code, event = await admin(cluster).get(watch)
        assert json.loads(event)["object"]["reason"] == "Expired"
        assert revision > int(old)
        cluster.check()


async def test_data_and_tokens_survive_in_a_data_folder(real_binaries: Binaries, tmp_path: Path) -> None:
    async with Cluster.real(data=tmp_path, start_timeout=300) as first:
        await created(admin(first), "kept")
        ca = first.ca_data
    async with Cluster.real(data=tmp_path, start_timeout=300) as second:
        status, _ = await admin(second).get(f"{CONFIG_MAPS}/kept")

        assert status == 200
        assert second.ca_data == ca


def test_nothing_is_left_when_the_parent_is_killed(real_binaries: Binaries, gone: Callable[[int], bool]) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        said = json.loads(program.stdout.readline())
        assert len(said["pids"]) == 3
        parent_watch = _child_that_is_none_of(program.pid, said["pids"])

        program.kill()

        assert all(gone(pid) for pid in said["pids"])
        assert gone(parent_watch)
        assert not Path(said["folder"]).exists()


def _child_that_is_none_of(parent: int, known: list[int]) -> int:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (parent_watch,) = set(map(int, children)) - set(known)
    return parent_watch


def test_a_detached_cluster_is_found_used_and_stopped_by_name(
    real_binaries: Binaries, tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    started = kubewright("cluster", "up", "--real", "--detach", "--name", "ci", state=tmp_path)
    assert started.returncode == 0, started.stderr
    try:
        again = kubewright("cluster", "up", "--real", "--detach", "--name", "ci", state=tmp_path)
        status = json.loads(kubewright("cluster", "status", "-o", "json", state=tmp_path).stdout)
        path = kubewright("cluster", "kubeconfig", "--name", "ci", "--path", state=tmp_path).stdout.strip()
        content = kubewright("cluster", "kubeconfig", "--name", "ci", state=tmp_path).stdout
        listed = subprocess.run(
            [real_binaries.kubectl, f"--kubeconfig={path}", "get", "ns", "default", "-o", "name"],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        stopped = kubewright("cluster", "down", "--name", "ci", state=tmp_path)

    (record,) = status
    assert started.stdout == f"export KUBECONFIG={path}\n"
    assert again.returncode == 1
    assert again.stderr.startswith("A cluster named ci is running already")
    assert content.startswith("apiVersion: v1\nkind: Config\n")
    assert (record["name"], record["type"], record["data"]) == ("ci", "real", None)
    assert {process["name"] for process in record["processes"]} >= {"etcd", "apiserver"}
    assert listed.stdout == "namespace/default\n"
    assert stopped.returncode == 0
    assert all(gone(pid) for pid in [record["pid"], *(process["pid"] for process in record["processes"])])
    assert not Path(path).exists()


def test_a_foreground_cluster_says_how_to_use_it_and_stops_on_ctrl_c(real_binaries: Binaries, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kubewright.cli", "cluster", "up", "--real"]
    environment = {**os.environ, "KUBEWRIGHT_STATE": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline()

        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate()

    assert line.startswith("export KUBECONFIG=")
    assert running.returncode == 0
    assert "Ctrl-C stops it." in stderr
    assert "Traceback" not in stderr


async def test_a_cancelled_program_leaves_no_processes(real_binaries: Binaries) -> None:
    cluster = Cluster.real(start_timeout=300)
    ready = asyncio.Event()

    async def program() -> None:
        async with cluster:
            ready.set()
            await cluster.wait()

    task = asyncio.create_task(program())
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not any(process.running for process in cluster.processes.values())
    assert not cluster.folder.exists()
