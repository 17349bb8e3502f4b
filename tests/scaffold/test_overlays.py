"""What kustomize builds from a project's config, validated by a real API server."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.builders.definitions import definition_tree

from kubewright._base import yaml
from kubewright.client.config.config import Config
from kubewright.client.connection import connect
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import CRD, install_crds
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace
from kubewright.manager.options import ManagerOptions

from .conftest import Kubewright, output_of

pytestmark = [pytest.mark.real, pytest.mark.slow]

HOME = "pods-operator-system"
SECURE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


async def built(binaries: Binaries, project: Path, overlay: str) -> list[dict[str, Any]]:
    return yaml.load_all(await output_of((binaries.kubectl, "kustomize", f"config/{overlay}"), project))


@pytest.fixture(scope="module")
async def home(real_cluster: RealCluster) -> AsyncIterator[RealCluster]:
    """A server with the namespace, without which a dry run cannot be, and nothing else."""
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        await client.create(Namespace.named(HOME))
        yield real_cluster
        await client.delete(Namespace, HOME)


@pytest.fixture
async def certified(home: RealCluster) -> AsyncIterator[RealCluster]:
    """The same with kinds of cert-manager's names."""
    crds = [_crd("Certificate", "certificates"), _crd("Issuer", "issuers")]
    async with connect(Config.load(kubeconfig=home.kubeconfig)) as client:
        await install_crds(client, *crds)
        yield home
        for crd in crds:
            await client.delete(CRD, crd["metadata"]["name"])


@pytest.fixture(scope="module")
def with_certificates(project: Path) -> str:
    """The overlay of somebody who has taken in the commented lines."""
    text = (project / "config/default/kustomization.yaml").read_text()
    assert "#components:\n# The operator makes" in text
    (project / "config/certified").mkdir()
    shutil.copy(project / "config/default/metrics_service.yaml", project / "config/certified")
    (project / "config/certified/kustomization.yaml").write_text(
        text.replace("#components:\n", "components:\n").replace("#- ../certmanager\n", "- ../certmanager\n")
    )
    return "certified"


def _crd(kind: str, plural: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return definition_tree(plural, "cert-manager.io", kind=kind, schema=anything)


async def accepted(cluster: RealCluster, binaries: Binaries, project: Path, overlay: str) -> None:
    text = await output_of((binaries.kubectl, "kustomize", f"config/{overlay}"), project)
    kubectl = (binaries.kubectl, f"--kubeconfig={cluster.kubeconfig}")

    applied = await output_of((*kubectl, "apply", "--server-side", "--dry-run=server", "-f", "-"), project, stdin=text)

    assert len(applied.splitlines()) == len(yaml.load_all(text))
    assert all(line.endswith("serverside-applied (server dry run)") for line in applied.splitlines())


async def test_everything_that_is_deployed_is_accepted_by_a_dry_run(
    home: RealCluster, real_binaries: Binaries, project: Path, kubewright: Kubewright
) -> None:
    await accepted(home, real_binaries, project, "default")
    assert await kubewright("deploy", "--dry-run", "--kubeconfig", str(home.kubeconfig)) == ""


async def test_the_same_with_certificates_of_cert_manager(
    certified: RealCluster, real_binaries: Binaries, project: Path, with_certificates: str
) -> None:
    await accepted(certified, real_binaries, project, with_certificates)


async def test_the_operators_pod_is_locked_down(real_binaries: Binaries, project: Path) -> None:
    trees = await built(real_binaries, project, "default")
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] == "Deployment"]
    (container,) = pod["containers"]
    options = options_of(trees)

    assert container["securityContext"] == SECURE
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["resources"].keys() == {"limits", "requests"}
    assert (options["leaderElection"], options["releaseLease"]) == (True, True)
    assert pod["terminationGracePeriodSeconds"] > int(options["gracePeriod"].removesuffix("s"))


async def test_names_that_kustomize_changes_still_fit_together(real_binaries: Binaries, project: Path) -> None:
    trees = await built(real_binaries, project, "default")
    services = {tree["metadata"]["name"] for tree in trees if tree["kind"] == "Service"}
    called = {
        (hook["clientConfig"]["service"]["namespace"], hook["clientConfig"]["service"]["name"])
        for tree in trees
        for hook in tree.get("webhooks", ())
    }
    assert called == {(HOME, "pods-operator-webhook-service")}
    assert "pods-operator-webhook-service" in services
    assert not [tree for tree in trees if "cert-manager.io" in tree["apiVersion"]]
    assert options_of(trees)["webhookCertificates"] == "secret"


async def test_cert_manager_is_taken_in_with_one_line(
    real_binaries: Binaries, project: Path, with_certificates: str
) -> None:
    trees = await built(real_binaries, project, with_certificates)
    (certificate,) = [tree for tree in trees if tree["kind"] == "Certificate"]
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] == "Deployment"]
    (mount,) = [item for item in pod["containers"][0]["volumeMounts"] if item["name"] == "webhook-certs"]
    (volume,) = [item for item in pod["volumes"] if item["name"] == "webhook-certs"]

    assert f"pods-operator-webhook-service.{HOME}.svc" in certificate["spec"]["dnsNames"]
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    assert environment_of(trees)["KUBEWRIGHT_WEBHOOK_CERTIFICATES"] == mount["mountPath"]


async def test_metrics_are_served_over_tls_to_those_who_may_read_them(real_binaries: Binaries, project: Path) -> None:
    trees = await built(real_binaries, project, "default")
    (service,) = [tree for tree in trees if tree["metadata"]["name"].endswith("-metrics-service")]
    (monitor,) = await built(real_binaries, project, "prometheus")
    options = options_of(trees)

    assert (options["metricsCertificates"], options["metricsAccess"]) == ("self", True)
    assert options["metricsAddress"] == f":{service['spec']['ports'][0]['port']}"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["port"]) == ("https", service["spec"]["ports"][0]["name"])


def options_of(trees: list[dict[str, Any]]) -> dict[str, Any]:
    """The file of options that the operator's container is started with; every option is one that a manager has."""
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] in ("DaemonSet", "Deployment")]
    (container,) = pod["containers"]
    place, _, name = container["args"][0].removeprefix("--config=").rpartition("/")
    (mount,) = [item for item in container["volumeMounts"] if item["mountPath"] == place]
    (volume,) = [item for item in pod["volumes"] if item["name"] == mount["name"]]
    (files,) = [tree["data"] for tree in trees if tree["metadata"]["name"] == volume["configMap"]["name"]]
    found: dict[str, Any] = yaml.load(files[name])
    assert found.keys() <= {option.encode_name for option in msgspec.structs.fields(ManagerOptions)}
    return found


async def test_one_line_makes_it_a_daemon_set_whose_pods_all_work(
    home: RealCluster, real_binaries: Binaries, project: Path
) -> None:
    folder = project / "config/on-each-node"
    folder.mkdir()
    text = (project / "config/default/kustomization.yaml").read_text()
    text = text.replace("#components:\n", "components:\n").replace("#- ../daemonset\n", "- ../daemonset\n")
    assert "components:\n" in text
    shutil.copy(project / "config/default/metrics_service.yaml", folder)
    (folder / "kustomization.yaml").write_text(text)

    trees = await built(real_binaries, project, "on-each-node")

    (daemon_set,) = [tree for tree in trees if tree["kind"] == "DaemonSet"]
    assert not [tree for tree in trees if tree["kind"] == "Deployment"]
    assert daemon_set["metadata"]["name"] == "pods-operator-controller-manager"
    assert environment_of(trees)["KUBEWRIGHT_LEADER_ELECTION"] == "false"
    await accepted(home, real_binaries, project, "on-each-node")


def environment_of(trees: list[dict[str, Any]]) -> dict[str, str | None]:
    """What the operator's container is started with."""
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] in ("DaemonSet", "Deployment")]
    (container,) = pod["containers"]
    return {item["name"]: item.get("value") for item in container["env"]}


async def test_the_installer_is_one_file_with_the_image_that_was_asked_for(
    home: RealCluster, real_binaries: Binaries, project: Path, kubewright: Kubewright
) -> None:
    text = await kubewright("deploy", "--print", "--image", "registry.example.com/pods:1.2")
    kubectl = (real_binaries.kubectl, f"--kubeconfig={home.kubeconfig}")
    applied = await output_of((*kubectl, "apply", "--server-side", "--dry-run=server", "-f", "-"), project, stdin=text)

    trees = yaml.load_all(text)
    (pod,) = [tree["spec"]["template"]["spec"] for tree in trees if tree["kind"] == "Deployment"]
    assert pod["containers"][0]["image"] == "registry.example.com/pods:1.2"
    assert trees[0]["kind"] == "Namespace"
    assert len(applied.splitlines()) == len(trees)


@pytest.mark.parametrize("overlay", ["prometheus", "samples", "scorecard"])
async def test_the_other_parts_build_too(real_binaries: Binaries, project: Path, overlay: str) -> None:
    assert await built(real_binaries, project, overlay)
