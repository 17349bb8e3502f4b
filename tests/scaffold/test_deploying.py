"""`kubewright deploy` and `undeploy`: a whole operator in and out of a cluster that has nothing but Kubernetes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kubewright import Client, Config, Dynamic, ObjectKey, connect
from kubewright.api import DynamicObject
from kubewright.api.codec import from_tree
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import CRD
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import Invalid, NotFound, ServerError
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.authorization.v1 import SubjectAccessReview
from kubewright.k8s.core.v1 import Secret, ServiceAccount
from kubewright.k8s.rbac.v1 import ClusterRoleBinding, Role, RoleRef, Subject
from kubewright.testing import time_limit, until

from .conftest import output_of, rename_field
from .deployed import Ports, at_work, overlay_for, scraped, token_of

HOME = "shop-operator-system"
OLD = Dynamic("apps.deploying.io/v1alpha1", "Cart", plural="carts", namespaced=True)
NEW = Dynamic("apps.deploying.io/v1", "Cart", plural="carts", namespaced=True)
CART = ("--group", "apps", "--kind", "Cart", "--version")


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory, real_binaries: Binaries) -> Path:
    """A project with a kind of two versions, all three webhooks, and a permission in another namespace."""
    assert real_binaries.kubectl.exists()  # it builds the overlay
    folder = tmp_path_factory.mktemp("deployed") / "shop-operator"
    folder.mkdir()

    async def kubewright(*arguments: str) -> None:
        await output_of((sys.executable, "-m", "kubewright.cli", *arguments), folder)

    await kubewright("init", "--domain", "deploying.io")
    await kubewright("create", "api", *CART, "v1alpha1")
    await kubewright("create", "api", *CART, "v1", "--controller=false")
    await kubewright("create", "webhook", *CART, "v1alpha1", "--defaulting", "--validation")
    await kubewright("create", "webhook", *CART, "v1", "--conversion")
    rename_field(folder, "Cart")
    controller = folder / "shop_operator/controllers/cart.py"
    text = controller.read_text().replace("import Context, controller", "import Context, controller, rbac")
    controller.write_text(f'{text}\n\nrbac("configmaps", verbs="get", names="extra", namespace="kube-system")\n')
    await kubewright("generate")
    return folder


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedCluster | RealCluster]:
    """A cluster whose pods get ready."""
    if request.param == "embedded":
        async with EmbeddedCluster() as embedded:
            await embedded.wait_for_controllers()
            yield embedded
    else:
        version = request.getfixturevalue("real_binaries").version
        async with RealCluster(start_timeout=300, version=version, nodes=1) as real:
            yield real


async def answered(ask: Callable[[], Coroutine[Any, Any, DynamicObject]]) -> DynamicObject:
    """The answer, once the API server has heard whom to trust: it follows its configurations at its own pace."""
    async with time_limit(60):
        while True:
            try:
                return await ask()
            except ServerError as error:
                if "webhook" not in str(error):
                    raise


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_operator_is_deployed_works_and_is_taken_away_again(
    plane: EmbeddedCluster | RealCluster, shop: Path
) -> None:
    client, ports = plane.client, Ports()
    where = ("--overlay", overlay_for(shop, ports), "--kubeconfig", str(plane.kubeconfig), "-o", "json")

    async def kubewright(*arguments: str) -> dict[str, Any]:
        command = (sys.executable, "-m", "kubewright.cli", *arguments, *where)
        found: dict[str, Any] = json.loads(await output_of(command, shop))
        return found

    done = await kubewright("deploy", "--image", "shop:1.2")

    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "namespace": "kube-system"}
    assert {**role, "name": "shop-operator-manager-role"} in done["applied"]
    assert done["simulated"] is True
    deployment = await client.get(Deployment, "shop-operator-controller-manager", namespace=HOME)
    assert deployment.status.available_replicas == 1
    pod = deployment.spec.template.spec
    assert pod is not None
    assert [container.image for container in pod.containers] == ["shop:1.2"]

    async with at_work(client, plane.kubeconfig, shop, deployment, ports):
        await check_webhooks(client)
        await check_metrics(client, ports)
        assert (await client.get(Secret, "shop-operator-webhook-certs", namespace=HOME)).data
        again = await kubewright("deploy", "--image", "shop:1.2")
        assert again["applied"] == done["applied"]
        await client.create(OLD.named("later", "default", content={"spec": {"replicas": 1}}))
        await client.delete_collection(OLD, namespace="default")

    gone = await kubewright("undeploy", "--yes")

    assert len(gone["deleted"]) == len(done["applied"])
    with pytest.raises(NotFound):
        await client.get(ServiceAccount, "shop-operator-controller-manager", namespace=HOME)
    with pytest.raises(NotFound):
        await client.get(Role, "shop-operator-manager-role", namespace="kube-system")
    assert (await kubewright("undeploy", "--yes"))["deleted"] in ([], [_home()])


def _home() -> dict[str, str]:
    """A namespace takes a while to go."""
    return {"apiVersion": "v1", "kind": "Namespace", "name": HOME}


async def check_webhooks(client: Client) -> None:
    """Defaults, refusals and conversion, with certificates that nobody but the operator has made."""
    made = await answered(lambda: client.create(OLD.named("mine", "default", content={"spec": {"replicas": 3}})))
    assert made.metadata.labels == {"app.kubernetes.io/managed-by": "shop-operator"}
    with pytest.raises(Invalid, match="must be no more than 52 characters"):
        await client.create(OLD.named("a" * 53, "default", content={"spec": {"replicas": 1}}))

    new = await answered(lambda: client.get(NEW, "mine", namespace="default"))
    assert new["spec"] == {"size": 3}
    new["spec"]["size"] = 5
    await client.patch(new)  # whatever the operator has written into the status meanwhile
    old = await until(
        client, OLD, ObjectKey("default", "mine"), lambda cart: cart.get("status.replicas") == 5, timeout=60
    )
    assert old["spec"] == {"replicas": 5}
    crd = await client.get(CRD, "carts.apps.deploying.io")
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]


async def check_metrics(client: Client, ports: Ports) -> None:
    """Only for those who were given the role, and never in the clear."""
    await client.apply(ServiceAccount.named("prometheus", "default"), force=True)
    token = await token_of(client, "default", "prometheus")
    assert (await scraped(ports))[0] == 401
    assert (await scraped(ports, token))[0] == 403

    binding = ClusterRoleBinding(
        role_ref=RoleRef(
            kind="ClusterRole", name="shop-operator-metrics-reader", api_group="rbac.authorization.k8s.io"
        ),
        subjects=[Subject(kind="ServiceAccount", name="prometheus", namespace="default")],
    )
    binding.metadata.name = "prometheus-reads"
    await client.apply(binding, force=True)
    await until_allowed(client, "system:serviceaccount:default:prometheus", "/metrics")
    # A refusal is remembered by token for half a minute, so another token of the same account is shown.
    code, text = await scraped(ports, await token_of(client, "default", "prometheus"))
    assert code == 200
    assert 'controller="cart"' in text


async def until_allowed(client: Client, user: str, path: str) -> None:
    """The server's authorizer learns of a binding through a watch of its own, so ask until it has."""
    spec = {"user": user, "nonResourceAttributes": {"path": path, "verb": "get"}}
    async with time_limit(60):
        while True:
            review = await client.create(from_tree(SubjectAccessReview, {"spec": spec}))
            if review.status is not None and review.status.allowed:
                return


def has_available_condition(deployment: Deployment) -> bool:
    """Whether the Deployment controller has set the Available condition."""
    return any(condition.type == "Available" for condition in deployment.status.conditions or ())


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_operator_that_does_not_start_is_told_in_time(real_cluster: RealCluster, shop: Path) -> None:
    """There is no node here, so its pod waits for ever."""
    where = ("--kubeconfig", str(real_cluster.kubeconfig))
    command = (sys.executable, "-m", "kubewright.cli")
    # What there is to tell has been said before it is asked for: then three seconds are enough, whoever is busy.
    await output_of((*command, "deploy", "--no-wait", *where), shop)
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        name = ObjectKey(HOME, "shop-operator-controller-manager")
        await until(client, Deployment, name, has_available_condition, timeout=60)
    child = await asyncio.create_subprocess_exec(
        *command, "deploy", "--timeout", "3", *where,
        cwd=shop, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stdout, stderr = await child.communicate()
    await output_of((*command, "undeploy", "--yes", *where), shop)

    assert (child.returncode, stdout) == (1, b"")
    last = stderr.decode().splitlines()[-1]
    assert last.startswith("shop-operator-controller-manager is not available after 3 s: ")
    assert "minimum availability" in last
