"""What a class statement says about its kind, on the real API server: versions, columns, scale, status, rules.

Covers: kubewright.generate.crds, kubewright.api
"""

import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from kubewright import Client
from kubewright.api.fields import Field, Rule
from kubewright.api.resource import Column, KubeObject, Resource, Spec, Status
from kubewright.cluster.install import install_crds
from kubewright.generate.crds.manifests import crd_for
from kubewright.k8s.core.v1 import PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector
from kubewright.testing import time_limit

pytestmark = pytest.mark.real

Kubectl = Callable[..., Awaitable[str]]

GROUP = "kinds.example.io"


class GadgetSpec(Spec):
    size: int = 1
    color: str = "red"
    born: datetime | None = None


class GadgetStatus(Status):
    ready: int = 0
    selector: str | None = None


class Gadget(
    Resource[GadgetSpec, GadgetStatus],
    group=GROUP,
    version="v1",
    scope="Cluster",
    short_names=("gd",),
    categories=("all", "gadgets"),
    scale=("spec.size", "status.ready", "status.selector"),
    selectable_fields=("spec.color",),
    columns={
        "Size": "spec.size",
        "Color": Column(path=".spec.color", description="Which colour", priority=1),
        "Ready": '.status.conditions[?(@.type=="Ready")].status',
        "Born": ".spec.born",
        "Age": ".metadata.creationTimestamp",
    },
    marker=Field(rules=[Rule(rule="self.metadata.name.size() < 20", message="the name is too long")]),
):
    """A gadget."""


class OldGadget(
    Resource[GadgetSpec, GadgetStatus],
    group=GROUP,
    version="v1alpha1",
    kind="Gadget",
    scope="Cluster",
    short_names=("gd",),
    categories=("all", "gadgets"),
    storage=False,
    deprecated="use v1",
):
    """A gadget."""


class Bag(KubeObject, group=GROUP, version="v1"):
    """A kind without spec and status."""

    data: dict[str, str] = {}


class WorkloadSpec(Spec):
    selector: LabelSelector | None = None
    template: PodTemplateSpec


class Workload(Resource[WorkloadSpec, None], group=GROUP, version="v1"):
    """A kind with built-in types inside."""


def gadget(name: str, **spec: Any) -> str:
    document: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}}
    return json.dumps({**document, "spec": spec} if spec else document)


@pytest.fixture(scope="module")
async def installed(kubectl: Kubectl, client: Client) -> Kubectl:
    """kubectl, once the kinds of this module are served."""
    crds = [crd_for(OldGadget, Gadget), crd_for(Bag), crd_for(Workload)]
    for crd in crds:
        await kubectl("apply", "--server-side", "--warnings-as-errors", "-f", "-", stdin=json.dumps(crd))
    await install_crds(client, *crds)
    return kubectl


async def test_a_spec_with_defaults_may_be_left_out(installed: Kubectl) -> None:
    answer = await installed("create", "-o", "json", "-f", "-", stdin=gadget("bare"))

    assert json.loads(answer)["spec"] == {"size": 1, "color": "red"}


async def test_a_rule_on_the_kind_sees_the_metadata(installed: Kubectl) -> None:
    with pytest.raises(AssertionError, match="the name is too long"):
        await installed("create", "-f", "-", stdin=gadget("x" * 30))


async def test_columns_are_printed_with_the_types_found_in_the_schema(installed: Kubectl) -> None:
    await installed("create", "-f", "-", stdin=gadget("printed", size=3, color="green", born="2020-01-01T00:00:00Z"))

    table = (await installed("get", "gd", "--field-selector=spec.color=green")).splitlines()

    assert table[0].split() == ["NAME", "SIZE", "READY", "BORN", "AGE"]
    assert [line.split()[:2] for line in table[1:]] == [["printed", "3"]]
    assert re.match(r"[0-9]+y", table[1].split()[2]), "a date is printed as an age"


async def test_the_scale_subresource_changes_the_size(installed: Kubectl) -> None:
    await installed("create", "-f", "-", stdin=gadget("scaled"))

    await installed("scale", "gd/scaled", "--replicas=5")

    assert json.loads(await installed("get", "gd", "scaled", "-o", "json"))["spec"]["size"] == 5


async def test_a_deprecated_version_warns(installed: Kubectl) -> None:
    with pytest.raises(AssertionError, match="use v1"):
        await installed("get", f"gadgets.v1alpha1.{GROUP}", "--warnings-as-errors")


async def test_a_status_takes_conditions_and_gets_no_defaults(installed: Kubectl) -> None:
    await installed("create", "-f", "-", stdin=gadget("observed"))
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2024-05-01T10:00:00Z",
    }
    patch = ("patch", "gd", "observed", "--subresource=status", "--type=merge", "-o", "json", "-p")

    answer = await installed(*patch, json.dumps({"status": {"conditions": [condition]}}))

    assert json.loads(answer)["status"] == {"conditions": [condition]}
    with pytest.raises(AssertionError, match="Duplicate value"):
        await installed(*patch, json.dumps({"status": {"conditions": [condition, condition]}}))


async def test_a_kind_without_spec_and_status_keeps_its_own_fields(installed: Kubectl) -> None:
    document = {"apiVersion": f"{GROUP}/v1", "kind": "Bag", "metadata": {"name": "bag"}, "data": {"a": "b"}}

    answer = await installed("create", "-o", "json", "-f", "-", stdin=json.dumps(document))

    assert json.loads(answer)["data"] == {"a": "b"}


async def test_built_in_types_inside_a_spec_keep_what_is_written(installed: Kubectl) -> None:
    container = {"name": "web", "image": "nginx:1", "resources": {"limits": {"cpu": "500m", "memory": 1024}}}
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
    }
    document = {"apiVersion": f"{GROUP}/v1", "kind": "Workload", "metadata": {"name": "web"}, "spec": spec}

    answer = await installed("create", "-o", "json", "-f", "-", stdin=json.dumps(document))

    assert json.loads(answer)["spec"] == spec


class Lever(Resource[GadgetSpec, GadgetStatus], group=GROUP, version="v1"):
    """A kind whose stored version changes."""


class NewLever(Resource[GadgetSpec, GadgetStatus], group=GROUP, version="v2", kind="Lever", storage=False):
    """The same, later."""


async def test_an_update_without_a_change_moves_an_object_to_the_version_that_is_stored_now(
    client: Client, namespace: str
) -> None:
    crd = crd_for(Lever, NewLever)
    await install_crds(client, crd)
    made = await client.create(Lever.named("a", namespace))
    assert (await client.update(made)).metadata.resource_version == made.metadata.resource_version

    for version in crd["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    await install_crds(client, crd)

    async with time_limit(30):  # a real server serves the old definition for a moment longer
        while (moved := await client.update(made)).metadata.resource_version == made.metadata.resource_version:
            pass
    assert moved.metadata.generation == made.metadata.generation
    assert (await client.update(moved)).metadata.resource_version == moved.metadata.resource_version
