"""An operator that works in some namespaces: its project can be worked on, and its roles reach no further."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubewright._base import yaml
from kubewright.cli.overlays import object_of
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import Namespace, ServiceAccount
from kubewright.k8s.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleRef, Subject

from .conftest import API, output_of
from .deployed import token_of
from .test_dev import until
from .test_failures import kubeconfig

OWN = ("--namespaced",)
SEVERAL = ("--namespaces", "shop,store")


async def made(parent: Path, *options: str) -> Path:
    folder = parent / "pods-operator"
    await asyncio.to_thread(folder.mkdir)
    await output_of((sys.executable, "-m", "kubewright.cli", "init", "--domain", "example.io", *options), folder)
    await output_of((sys.executable, "-m", "kubewright.cli", *API, "--kind", "PodSet"), folder)
    return folder


@asynccontextmanager
async def started(folder: Path, *arguments: str, **environment: str) -> AsyncIterator[asyncio.StreamReader]:
    """A command in the background, and what it prints to standard error."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", *arguments, cwd=folder, env={**os.environ, **environment},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        yield child.stderr
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()
    assert child.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("options", "where", "sentence"),
    [
        (OWN, "pods-operator-system", "in the namespace pods-operator-system alone"),
        (SEVERAL, "shop", "in the namespaces shop, store alone"),
    ],
    ids=["own", "several"],
)
async def test_the_sample_is_reconciled_in_a_namespace_that_is_watched(
    tmp_path: Path, options: tuple[str, ...], where: str, sentence: str
) -> None:
    folder = await made(tmp_path, *options)
    sample = folder / "config/samples/apps_v1alpha1_podset.yaml"
    assert yaml.load(sample.read_text())["metadata"]["namespace"] == where
    # One that somebody has written, without a thought for namespaces.
    sample.write_text(sample.read_text().replace(f"  namespace: {where}\n", ""))

    async with started(folder, "dev", "--samples") as told:
        await until(told, f"It works {sentence}; objects elsewhere are nothing to it")
        await until(told, rf"podset {where}/podset-sample  .* ok  because: PodSet {where}/podset-sample added")

    tested = await output_of((sys.executable, "-m", "pytest", "-p", "no:cacheprovider"), folder)
    assert "2 passed" in tested


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_namespace_that_is_watched_and_does_not_exist_is_named(
    tmp_path: Path, embedded_cluster: EmbeddedCluster
) -> None:
    folder, kubeconfig = await made(tmp_path, *SEVERAL), str(embedded_cluster.kubeconfig)
    await embedded_cluster.client.apply(Namespace.named("shop"), force=True)
    await output_of((sys.executable, "-m", "kubewright.cli", "install"), folder, KUBECONFIG=kubeconfig)

    async with started(folder, "run", KUBECONFIG=kubeconfig) as told:
        missing = await until(told, r"^The namespace (\w+) does not exist, so nothing happens there")
        assert missing[1] == "store"
        await until(told, "It works in the namespaces shop, store alone")
        await until(told, "started")

    async with started(folder, "run", "--watch-namespaces=market", KUBECONFIG=kubeconfig) as told:
        await until(told, "^The namespace market does not exist")
        await until(told, "started")


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_the_doctor_asks_for_permissions_where_they_are_needed(
    tmp_path: Path, embedded_cluster: EmbeddedCluster
) -> None:
    folder, client = await made(tmp_path, *SEVERAL), embedded_cluster.client
    for name in ("shop", "store", "pods-operator-system"):
        await client.apply(Namespace.named(name), force=True)
    account = "pods-operator-controller-manager"
    await client.apply(ServiceAccount.named(account, "pods-operator-system"), force=True)
    for name in ("shop", "store"):
        for tree in yaml.load_all((folder / f"config/rbac/other_namespaces/{name}.yaml").read_text()):
            await client.apply(object_of(tree), force=True)
    rules = [PolicyRule(api_groups=["*"], resources=["customresourcedefinitions"], verbs=["get"])]
    await client.apply(ClusterRole.named("crd-reader", rules=rules), force=True)
    subject = Subject(kind="ServiceAccount", name=account, namespace="pods-operator-system")
    role = RoleRef(kind="ClusterRole", name="crd-reader", api_group="rbac.authorization.k8s.io")
    await client.apply(ClusterRoleBinding.named("crd-reader", subjects=[subject], role_ref=role), force=True)
    cluster = yaml.load(embedded_cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    trust = {"certificate-authority-data": cluster["certificate-authority-data"]}
    token = await token_of(client, "pods-operator-system", account)
    file = kubeconfig(tmp_path / "account", cluster["server"], token, **trust)

    found = await doctor(folder, file)
    await client.delete(Role, "pods-operator-manager-role", namespace="store")
    denied = await doctor(folder, file)

    assert found["permissions"][0] == "good", found
    assert denied["permissions"][0] == "wrong"
    assert "list on podsets in apps.example.io in the namespace store" in denied["permissions"][1]
    assert "in the namespace shop" not in denied["permissions"][1]


async def doctor(folder: Path, file: str) -> dict[str, tuple[str, str]]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "doctor", "-o", "json", cwd=folder,
        env={**os.environ, "KUBECONFIG": file}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stdout, _ = await child.communicate()
    return {item["about"]: (item["result"], item["text"]) for item in json.loads(stdout)}


async def test_roles_are_for_the_namespaces_that_are_named_and_nothing_wider(tmp_path: Path) -> None:
    folder = await made(tmp_path, *SEVERAL)
    rbac = folder / "config/rbac"

    assert not (rbac / "role.yaml").exists()
    for name in ("shop", "store"):
        role, binding = yaml.load_all((rbac / f"other_namespaces/{name}.yaml").read_text())
        assert (role["kind"], role["metadata"]["namespace"]) == ("Role", name)
        assert binding["subjects"][0]["namespace"] == "pods-operator-system"
    config = yaml.load((folder / "config/manager/controller_manager_config.yaml").read_text())
    assert config["watchNamespaces"] == ["shop", "store"]
