"""An operator with nothing but its generated role can do its work, and the audit log shows that it needs all of it.

Covers: kubewright.generate.rbac
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.planes import PLANES

from kubewright import Client, Config, Manager, ManagerOptions, connect
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import Forbidden
from kubewright.generate.project import operator_crds
from kubewright.generate.rbac.audit import deviations, least_access, read_audit
from kubewright.generate.rbac.grants import policy_rules
from kubewright.generate.rbac.permissions import access_of
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.k8s.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kubewright.manager.operator import Operator, load_operator
from kubewright.testing import gone, running, time_limit
from kubewright.testing import until as wait_until

pytestmark = pytest.mark.timeout(120)

USER = "web-operator"
RBAC = "rbac.authorization.k8s.io"
OPERATOR = '''
"""A ConfigMap for each page, as long as the page is shown."""

from kubewright import Context, Resource, Spec, Status, controller
from kubewright.k8s.core.v1 import ConfigMap


class PageSpec(Spec):
    shown: bool = True


class PageStatus(Status):
    shown: bool = False


class Page(Resource[PageSpec, PageStatus], group="roles.example.io", version="v1"):
    pass


@controller(Page, owns=[ConfigMap])
class PageController:
    async def reconcile(self, page: Page, ctx: Context) -> None:
        child = ConfigMap.named(page.metadata.name, data={"a": "b"})
        if page.spec.shown:
            await ctx.apply(child)
        elif (present := await ctx.client.find(ConfigMap, page.key)) is not None:
            await ctx.delete(present)
        if page.status.shown != page.spec.shown:
            ctx.event("Changed", "now otherwise")
        page.status.shown = page.spec.shown

    async def finalize(self, page: Page, ctx: Context) -> None:
        pass
'''


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    file = tmp_path_factory.mktemp("operator") / "page_operator.py"
    file.write_text(OPERATOR)
    return load_operator(str(file))


@pytest.fixture(params=PLANES)
async def logged(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[EmbeddedCluster | RealCluster, Path]]:
    """A cluster that writes an audit log."""
    log = tmp_path / "audit.log"
    if request.param == "embedded":
        async with EmbeddedCluster(audit_log=log) as cluster:
            yield cluster, log
        return
    binaries: Binaries = request.getfixturevalue("real_binaries")
    async with RealCluster(start_timeout=300, version=binaries.version, audit_log=log) as real:
        yield real, log


async def grant(client: Client, operator: Operator) -> None:
    """The generated ClusterRole, bound to the operator's user."""
    rules = [
        PolicyRule(api_groups=rule.get("apiGroups"), resources=rule.get("resources"), verbs=rule["verbs"])
        for rule in policy_rules(access_of(operator).cluster)
    ]
    await client.create(ClusterRole.named(USER, rules=rules))
    subject = Subject(kind="User", name=USER, api_group=RBAC)
    role = RoleRef(kind="ClusterRole", name=USER, api_group=RBAC)
    await client.create(ClusterRoleBinding.named(USER, subjects=[subject], role_ref=role))


async def until(client: Client, kind: type[Any], holds: Callable[[Any], bool]) -> None:
    """Until the object called home is as it should be, seen through a watch."""
    where: dict[str, Any] = {"namespace": "default", "fields": {"metadata.name": "home"}}
    async with time_limit(30), client.watch(kind, **where, initial_events=True) as events:
        async for event in events:
            if event.type != "DELETED" and holds(event.object):
                return


async def until_gone(client: Client, kind: type[Any]) -> None:
    """Until there is no object called home."""
    where: dict[str, Any] = {"namespace": "default", "fields": {"metadata.name": "home"}}
    listed = await client.list(kind, **where)
    if not listed.items:
        return
    version = listed.metadata.resource_version
    async with time_limit(30), client.watch(kind, **where, resource_version=version) as events:
        async for event in events:
            if event.type == "DELETED":
                return


async def until_allowed(config: Config) -> None:
    """The server's authorizer learns of a binding through a watch of its own, so ask until it has."""
    async with time_limit(30), connect(config) as client:
        while True:
            try:
                await client.list(ConfigMap)
                return
            except Forbidden:
                continue


async def live(client: Client, operator: Operator) -> None:
    """A page is shown, hidden and deleted."""
    (page,) = operator.kinds
    made = await client.create(page.named("home", "default"))
    await until(client, page, lambda found: found.status.shown)
    await until(client, ConfigMap, lambda found: found.data == {"a": "b"})
    await client.patch_by_name(page, made.key, {"spec": {"shown": False}})
    await until(client, page, lambda found: not found.status.shown)
    await until_gone(client, ConfigMap)
    await client.delete(page, "home", namespace="default")
    await until_gone(client, page)


async def test_the_inferred_role_is_what_the_operator_needs(
    logged: tuple[EmbeddedCluster | RealCluster, Path], operator: Operator
) -> None:
    cluster, log = logged
    config = Config.load(kubeconfig=cluster.kubeconfig)
    # As in a pod: only outside a cluster does a manager look for webhooks that ended processes have left.
    off = ManagerOptions(health_address="0", metrics_address="0", name="page-operator", webhook_certificates="secret")
    async with connect(config) as client:
        await install_crds(client, *operator_crds(operator).values())
        await grant(client, operator)
        await until_allowed(config.impersonating(USER))
        async with Manager(*operator.controllers, config=config.impersonating(USER), options=off):
            await live(client, operator)
    await cluster.stop()

    with log.open() as lines:
        asked = read_audit(lines, user=USER)

    assert [str(item) for item in deviations(access_of(operator).cluster, asked)] == []
    assert least_access(asked).cluster <= access_of(operator).cluster


SCOPED = (
    OPERATOR.replace("import Context, ", "import Context, Scope, ")
    .replace("roles.example.io", "limited.example.io")
    .replace("owns=[ConfigMap])", 'owns=[ConfigMap], scope=Scope(namespaces=("left", "right")))')
)


async def test_an_operator_in_some_namespaces_does_its_work_with_roles_there_alone(tmp_path: Path) -> None:
    (tmp_path / "limited_operator.py").write_text(SCOPED)
    operator = load_operator(str(tmp_path / "limited_operator.py"))
    page: Any = operator.kinds[0]

    async with EmbeddedCluster() as cluster:
        async with running(operator, on=cluster) as at_work:
            for place in ("left", "right"):
                made = await at_work.client.create(page.named("home", place))
                await wait_until(at_work.client, page, made.key, lambda seen: seen.status.shown)
                await at_work.client.patch_by_name(page, made.key, {"spec": {"shown": False}})
                await gone(at_work.client, ConfigMap, made.key)
                await at_work.client.delete(page, made.key)
                await gone(at_work.client, page, made.key)

        names = {role.metadata.name for role in await cluster.client.list(ClusterRole)}
        assert "limited-operator-manager-role" not in names
