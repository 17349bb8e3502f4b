"""What stands in a command's way is one sentence with what to do, exit code 1, and nothing on standard output."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kubewright._base import yaml
from kubewright.cluster.install import CRD
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import ServiceAccount

from .conftest import output_of
from .deployed import token_of

Failing = Callable[..., Awaitable[str]]
ASKING = [
    ("install",),
    ("uninstall", "--yes"),
    ("deploy",),
    ("undeploy", "--yes"),
    ("run", "--no-webhooks"),
    ("tree", "podset", "web"),
    ("generate", "crds", "--against-cluster"),
    ("generate", "models", "--cluster", "--output", "models"),
]
"""Every command that needs a cluster."""


@pytest.fixture
def failing(project: Path) -> Failing:
    """Runs a command that must fail; the last line it says."""

    async def run(*arguments: str, folder: Path = project, **environment: str) -> str:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kubewright.cli", *arguments,
            cwd=folder, env={**os.environ, **environment},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        stdout, stderr = (stream.decode() for stream in await child.communicate())
        assert (child.returncode, stdout) == (1, ""), stderr
        assert "Traceback" not in stderr
        return stderr.splitlines()[-1]

    return run


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKING, ids=" ".join)
async def test_a_kubeconfig_that_is_not_there_is_named(failing: Failing, command: tuple[str, ...]) -> None:
    said = await failing(*command, KUBECONFIG="/nonexistent/kubeconfig")

    assert said == (
        "none of the kubeconfig files exists: /nonexistent/kubeconfig; check KUBECONFIG, or start a cluster here with "
        "`kubewright cluster up`"
    )


def kubeconfig(file: Path, server: str, token: str = "none", **trust: str) -> str:
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **trust}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file.write_text(yaml.dump(tree))
    return str(file)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("install",), ("run", "--no-webhooks")], ids=" ".join)
async def test_a_server_that_does_not_answer_is_named(
    failing: Failing, tmp_path: Path, command: tuple[str, ...]
) -> None:
    with socket.socket() as taken:  # and not listened on
        taken.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{taken.getsockname()[1]}"

        said = await failing(*command, KUBECONFIG=kubeconfig(tmp_path / "away", server))

    assert said.startswith(f"cannot reach {server}: the connection was refused; check that the server is running")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("install",), "cannot get resource \"customresourcedefinitions\""),
        (("uninstall", "--yes"), "cannot get resource \"customresourcedefinitions\""),
        (("deploy",), "cannot patch resource \"namespaces\""),
        (("undeploy", "--yes"), "cannot get resource \"customresourcedefinitions\""),
        (("tree", "deployment", "web"), "cannot get resource \"deployments\""),
        (("generate", "crds", "--against-cluster"), "cannot get resource"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)  # fmt: skip
async def test_what_the_user_may_not_do_is_said_in_the_servers_words(
    failing: Failing, embedded_cluster: EmbeddedCluster, tmp_path: Path, command: tuple[str, ...], sentence: str
) -> None:
    client = embedded_cluster.client
    await client.apply(ServiceAccount.named("nobody", "default"), force=True)
    cluster = yaml.load(embedded_cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    trust = {"certificate-authority-data": cluster["certificate-authority-data"]}
    file = kubeconfig(tmp_path / "nobody", cluster["server"], await token_of(client, "default", "nobody"), **trust)

    said = await failing(*command, KUBECONFIG=file)

    assert 'User "system:serviceaccount:default:nobody"' in said
    assert sentence in said
    assert said.endswith("; choose another --context, or ask for a role that allows it")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("generate",),
        ("generate", "--check"),
        ("install",),
        ("create", "api", "--group", "apps", "--version", "v1", "--kind", "Other"),
        ("create", "webhook", "--group", "apps", "--version", "v1alpha1", "--kind", "PodSet", "--defaulting"),
        ("edit", "--owner", "Somebody Else"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("phase: complex = 1j", "PodSetStatus.phase: complex has no schema"),
        ("phase: PodSetSpec | str = ''", "PodSetStatus.phase: "),
    ],
)
async def test_a_type_that_is_no_schema_is_named_and_nothing_is_touched(
    failing: Failing, project: Path, tmp_path: Path, command: tuple[str, ...], field: str, sentence: str
) -> None:
    folder = tmp_path / "pods-operator"
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("__pycache__"))
    kind = folder / "pods_operator/api/v1alpha1/podset.py"
    kind.write_text(kind.read_text().replace("    pod_names:", f"    {field}\n    pod_names:"))
    before = contents(folder)

    said = await failing(*command, folder=folder, PYTHONDONTWRITEBYTECODE="1")

    assert said.startswith(sentence) or f" {sentence}" in said
    assert contents(folder) == before


@pytest.mark.slow
async def test_a_namespace_that_is_needed_and_not_there_is_named_before_anything_is_done(
    failing: Failing, embedded_cluster: EmbeddedCluster
) -> None:
    said = await failing("deploy", "--dry-run", KUBECONFIG=str(embedded_cluster.kubeconfig))

    assert said.startswith("the namespace pods-operator-system of ")
    assert "does not exist, and a dry run does not make it; nothing was applied: create it with `kubectl" in said


@pytest.mark.slow
async def test_a_definition_is_installed_with_its_labels_and_the_one_who_converts(
    project: Path, embedded_cluster: EmbeddedCluster
) -> None:
    """The deployed operator, which is not there: so a conversion is refused rather than guessed."""
    kind = project / "pods_operator/api/v1alpha1/podset.py"
    text = kind.read_text()
    kind.write_text(text.replace("    columns=", '    crd_labels={"team": "storage"},\n    columns='))
    kubewright = (sys.executable, "-m", "kubewright.cli")
    try:
        await output_of((*kubewright, "generate"), project)
        done = json.loads(
            await output_of(
                (*kubewright, "install", "-o", "json"), project, KUBECONFIG=str(embedded_cluster.kubeconfig)
            )
        )
    finally:
        kind.write_text(text)
        await output_of((*kubewright, "generate"), project)

    names = ["podsets.apps.whole-path.io", "sidecarsets.apps.whole-path.io"]
    assert done["installed"] == names
    podsets, sidecarsets = [await embedded_cluster.client.get(CRD, name) for name in names]
    assert podsets.metadata.labels == {"team": "storage"}
    called = sidecarsets["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    assert (called["namespace"], called["name"]) == ("pods-operator-system", "pods-operator-webhook-service")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
