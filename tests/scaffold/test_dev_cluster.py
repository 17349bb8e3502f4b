"""The cluster of `kubewright dev`: where its kubeconfig is, what it keeps, and which changes it cannot follow.

Covers: kubewright.cli.dev_cluster, kubewright.cli.dev_definitions, kubewright.cli.contexts
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubewright import Client, Config, Resource, Spec
from kubewright._base import yaml
from kubewright.cli.commands.cluster import cluster as cluster_command
from kubewright.cli.dev_cluster import cluster_name, dev_cluster
from kubewright.cli.dev_definitions import DevDefinitions
from kubewright.cluster.install import CRD
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ConfigError, Invalid
from kubewright.generate.crds.manifests import crd_for
from kubewright.k8s.core.v1 import ConfigMap

FRESH = "begin afresh"


class LampSpec(Spec):
    watts: int = 1


class Lamp(Resource[LampSpec, None], group="dev.example.io", version="v1"):
    """A lamp."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder, and a kubeconfig of the user's own."""
    monkeypatch.setenv("KUBEWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    return tmp_path / "state"


@pytest.mark.parametrize(
    ("package", "name"),
    [("shop_operator", "dev-shop-operator"), ("a.b", "dev-a-b"), ("_", "dev"), ("x" * 80, f"dev-{'x' * 59}")],
)
def test_the_name_of_the_cluster_follows_from_the_package(package: str, name: str) -> None:
    assert cluster_name(package) == name


async def test_the_kubeconfig_is_at_the_same_path_each_time_and_the_cluster_is_listed(state: Path) -> None:
    paths = []
    for _ in range(2):
        async with dev_cluster("shop") as cluster:
            paths.append(cluster.kubeconfig)
            listed = CliRunner().invoke(cluster_command, ["status", "--name", "dev-shop"])
            printed = CliRunner().invoke(cluster_command, ["kubeconfig", "--name", "dev-shop"])
            assert str(cluster.kubeconfig) in listed.output
            assert cluster.url in printed.output

    assert paths == [state / "clusters/dev-shop/kubeconfig"] * 2
    assert not paths[0].exists(), "who has exported the path talks to the next cluster, and not to another by mistake"
    assert CliRunner().invoke(cluster_command, ["status", "--name", "dev-shop"]).exit_code != 0


async def test_a_second_session_for_the_operator_is_told_where_its_kubeconfig_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with dev_cluster("shop") as first, dev_cluster("shop") as second:
        assert first.kubeconfig != second.kubeconfig
        said = capsys.readouterr()

    assert "in a temporary folder: a cluster named dev-shop is running already" in said.err
    assert f"export KUBECONFIG={second.kubeconfig}" in said.out


async def test_objects_in_a_data_folder_are_there_the_next_time(tmp_path: Path) -> None:
    async with dev_cluster("shop", data=tmp_path / "data") as cluster:
        await cluster.client.create(ConfigMap.named("kept", data={"a": "b"}))
    async with dev_cluster("shop", data=tmp_path / "data") as cluster:
        assert (await cluster.client.get(ConfigMap, "kept")).data == {"a": "b"}
    async with dev_cluster("shop") as cluster:
        assert await cluster.client.find(ConfigMap, "kept") is None


async def test_the_cluster_is_added_to_the_kubeconfig_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "mine", "user": {"token": "t"}}]}
    (tmp_path / "mine").write_text(yaml.dump(other))
    async with dev_cluster("shop", merge=True) as cluster:
        config = Config.load()
        assert config.server == cluster.url
        assert f"{tmp_path / 'mine'} has the context kubewright-dev-shop now" in capsys.readouterr().err

    kept = yaml.load((tmp_path / "mine").read_text())
    assert [user["name"] for user in kept["users"]] == ["mine", "kubewright-dev-shop"]


# Changes of the schema


@pytest.fixture
async def client(embedded_cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    yield embedded_cluster.client
    for crd in await _definitions(embedded_cluster.client):
        await embedded_cluster.client.delete(crd)


async def _definitions(client: Client) -> list[Any]:
    return list((await client.list(CRD)).items)


def changed(**watts: Any) -> dict[str, Any]:
    """The CRD, with another schema of the field."""
    crd = copy.deepcopy(crd_for(Lamp))
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["watts"] = watts
    return crd


def named(*crds: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {crd["metadata"]["name"]: crd for crd in crds}


async def test_a_change_that_fits_the_objects_is_applied_without_a_word(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions = DevDefinitions(client, fresh=FRESH)
    await definitions.update(named(crd_for(Lamp)))
    await client.create(Lamp.named("one", "default", spec=LampSpec(watts=5)))

    await definitions.update(named(changed(type="integer", minimum=1)))

    assert capsys.readouterr().err == ""
    with pytest.raises(Invalid, match=r"spec\.watts"):
        await client.create(Lamp.named("two", "default", spec=LampSpec(watts=0)))
    await client.delete(Lamp, "one", namespace="default")


async def test_objects_that_a_new_schema_does_not_allow_are_told(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions = DevDefinitions(client, fresh=FRESH)
    await definitions.update(named(crd_for(Lamp)))
    for number in range(5):
        await client.create(Lamp.named(f"lamp-{number}", "default", spec=LampSpec(watts=5)))

    await definitions.update(named(changed(type="string")))

    said = capsys.readouterr().err
    assert "5 findings in objects that were made before the schema changed; correct or delete them, or begin" in said
    assert "Lamp default/lamp-0: spec.watts: Invalid value" in said
    assert "and 2 more" in said


async def test_a_change_that_the_server_refuses_says_how_to_begin_afresh(client: Client) -> None:
    definitions = DevDefinitions(client, fresh=FRESH)
    await definitions.update(named(crd_for(Lamp)))
    other = changed(type="integer")
    other["spec"]["scope"] = "Cluster"

    with pytest.raises(
        ConfigError, match=r"cannot follow the change of lamps\.dev\.example\.io: .*scope.*begin afresh"
    ):
        await definitions.update(named(other))


async def test_a_kind_that_is_declared_no_more_is_told_once(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    definitions = DevDefinitions(client, fresh=FRESH)
    await definitions.update(named(crd_for(Lamp)))

    await definitions.update({})
    await definitions.update({})

    said = capsys.readouterr().err
    assert said.count("the code declares lamps.dev.example.io no more") == 1
    assert "kubectl delete crd lamps.dev.example.io" in said
