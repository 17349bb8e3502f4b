"""What kustomize makes of a project's config, judged by a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubewright._base import yaml
from kubewright.client.config import Config
from kubewright.client.connect import connect
from kubewright.cluster.binaries import Binaries
from kubewright.cluster.install import CRD, install_crds
from kubewright.cluster.real import RealCluster
from kubewright.k8s.core.v1 import Namespace

from .conftest import Kubewright, output_of

pytestmark = [pytest.mark.real, pytest.mark.slow]

HOME = "pods-operator-system"
SECURE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


async def built(binaries: Binaries, project: Path, overlay: str) -> list[dict[str, Any]]:
    return yaml.load_all(await output_of((binaries.kubectl, "kustomize", f"config/{overlay}"), project))


@pytest.fixture
async def prepared(real_cluster: RealCluster) -> AsyncIterator[RealCluster]:
    """A server with the namespace and with kinds of cert-manager's names, without which a dry run cannot be."""
    crds = [_crd("Certificate", "certificates"), _crd("Issuer", "issuers")]
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        await install_crds(client, *crds)
        await client.create(Namespace.named(HOME))
        yield real_cluster
        await client.delete(Namespace, HOME)
        for crd in crds:
            await client.delete(CRD, crd["metadata"]["name"])


def _crd(kind: str, plural: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_everything_that_is_deployed_is_accepted_by_a_dry_run(
    prepared: RealCluster, real_binaries: Binaries, project: Path, kubewright: Kubewright
) -> None:
    text = await output_of((real_binaries.kubectl, "kustomize", "config/default"), project)
    kubectl = (real_binaries.kubectl, f"--kubeconfig={prepared.kubeconfig}")

    applied = await output_of((*kubectl, "apply", "--server-side", "--dry-run=server", "-f", "-"), project, stdin=text)

    assert len(applied.splitlines()) == len(yaml.load_all(text))
    assert all(line.endswith("serverside-applied (server dry run)") for line in applied.splitlines())
    assert await kubewright("deploy", "--dry-run", "--kubeconfig", str(prepared.kubeconfig)) == ""


async def test_the_operators_pod_is_locked_down(real_binaries: Binaries, project: Path) -> None:
    trees = await built(real_binaries, project, "default")
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] == "Deployment"]
    (container,) = pod["containers"]
    environment = {item["name"]: item.get("value") for item in container["env"]}

    assert container["securityContext"] == SECURE
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["resources"].keys() == {"limits", "requests"}
    assert (environment["KUBEWRIGHT_LEADER_ELECTION"], environment["KUBEWRIGHT_RELEASE_LEASE"]) == ("true", "true")
    assert pod["terminationGracePeriodSeconds"] > int(environment["KUBEWRIGHT_GRACE_PERIOD"].removesuffix("s"))


async def test_names_that_kustomize_changes_still_fit_together(real_binaries: Binaries, project: Path) -> None:
    trees = await built(real_binaries, project, "default")
    services = {tree["metadata"]["name"] for tree in trees if tree["kind"] == "Service"}
    called = {
        (hook["clientConfig"]["service"]["namespace"], hook["clientConfig"]["service"]["name"])
        for tree in trees
        for hook in tree.get("webhooks", ())
    }
    (certificate,) = [tree for tree in trees if tree["kind"] == "Certificate"]
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] == "Deployment"]

    assert called == {(HOME, "pods-operator-webhook-service")}
    assert "pods-operator-webhook-service" in services
    assert f"pods-operator-webhook-service.{HOME}.svc" in certificate["spec"]["dnsNames"]
    assert pod["volumes"][0]["secret"]["secretName"] == certificate["spec"]["secretName"]


@pytest.mark.parametrize("overlay", ["prometheus", "samples", "scorecard"])
async def test_the_other_parts_build_too(real_binaries: Binaries, project: Path, overlay: str) -> None:
    assert await built(real_binaries, project, overlay)
